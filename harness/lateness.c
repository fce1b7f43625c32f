/* SPDX-License-Identifier: MIT */
#include "lateness.h"

#include <stddef.h>
#include <string.h>

/* What is not named here may be made, and says more than that retries ended. */
static const struct {
	const char *check;
	enum lateness how;
	bool end_of_retries;
} checks[] = {
	{ "kernel", LATENESS_NEVER, false },      { "payload", LATENESS_NEVER, false },
	{ "residue", LATENESS_NEVER, false },     { "resources", LATENESS_NEVER, false },
	{ "ledger", LATENESS_MAY_FOLLOW, false }, { "cause-first", LATENESS_MAY_FOLLOW, false },
	{ "expect", LATENESS_MAY_MAKE, true },    { "unexpected", LATENESS_MAY_MAKE, true },
	{ "state", LATENESS_MAY_MAKE, true },     { "traffic", LATENESS_MAY_MAKE, true },
	{ "recover", LATENESS_MAY_MAKE, true },
};

static size_t find(const char *check)
{
	size_t i = 0;

	while (i < sizeof(checks) / sizeof(*checks) && strcmp(checks[i].check, check))
		i++;
	return i;
}

enum lateness lateness_of(const char *check)
{
	size_t i = find(check);

	return i < sizeof(checks) / sizeof(*checks) ? checks[i].how : LATENESS_MAY_MAKE;
}

bool lateness_is_end_of_retries(const char *check)
{
	size_t i = find(check);

	return i < sizeof(checks) / sizeof(*checks) && checks[i].end_of_retries;
}
