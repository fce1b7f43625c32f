/* SPDX-License-Identifier: MIT */
#include "scenario_grammar.h"

#include <stdlib.h>
#include <string.h>

/* Statement numbers whose meaning is known from a text or from a test beside the number. CA17 has 1 to 46. */
static const char *const known[] = {
	"C9-6",        "C9-42",       "C9-60",       "C9-88",       "C9-92",       "C9-94",       "C9-105",       "C9-130",
	"C9-140",      "C9-141",      "C9-142",      "C9-143",      "C9-148",      "C9-165",      "C9-166",       "C9-167",
	"C9-168",      "C9-169",      "C9-205",      "C9-218",      "C9-220",      "C9-222.1.1",  "o9-30",        "o9-115",
	"o9-116",      "C10-2",       "C10-10",      "C10-15",      "C10-20",      "C10-38",      "C10-42",       "C10-56",
	"C10-57",      "C10-68",      "C10-72",      "C10-73",      "C10-74",      "C10-75",      "C10-76.2.1",   "C10-77",
	"C10-93.1.1",  "C10-96",      "C10-97.2.1",  "C11-15",      "C11-17",      "C11-31",      "C11-32",       "C11-37",
	"C11-39",      "o10-2.2.3",   "o10-2.2.5",   "o10-36.2.2",  "o10-37.2.13", "o10-37.2.17", "o10-37.2.26",  "o10-37.2.30",
	"o10-37.2.31", "o10-37.2.34", "o10-37.2.35", "o10-37.2.40", "o10-37.2.43", "o11-5.2.5",   "o11-40.2-1.1", "oA19-1",
	"oA19-28",     "CA16-18",
};

static const char *const not_on_roce[] = {
	"C9-43.1.1", "C9-43.1.2", "C9-44", "C9-45", "C11-13", "o11-1", "C17-7", "C17-9", "C17-19", "C17-20", "C17-21", "C17-24",
};

bool grammar_statement(const char *number, bool *ret_applies)
{
	*ret_applies = true;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i], number))
			return true;
	if (!strncmp(number, "CA17-", 5) && strspn(number + 5, "0123456789") == strlen(number + 5)) {
		long n = strtol(number + 5, NULL, 10);

		return n >= 1 && n <= 46;
	}
	*ret_applies = false;
	for (size_t i = 0; i < sizeof(not_on_roce) / sizeof(not_on_roce[0]); i++)
		if (!strcmp(not_on_roce[i], number))
			return true;
	return false;
}
