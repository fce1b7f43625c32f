/* SPDX-License-Identifier: MIT */
#include "text_repeat.h"

#include <inttypes.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/log.h"
#include "../harness/phases.h"
#include "../harness/units.h"
#include "report_util.h"

/* Those that went well, or not at all: they have nothing more to tell than how many they are. */
static bool folds(const json_t *entry)
{
	const char *verdict = report_str(json_object_get(entry, "verdict"), "verdict");

	return !strcmp(verdict, "pass") || !strcmp(verdict, "deviation") || !strcmp(verdict, "skip") || !report_ran(entry);
}

bool text_repeat_fold(json_t *folded, const json_t *entry, json_t *row)
{
	const char *id = report_str(entry, "case");
	size_t base = report_base_length(id);
	char key[1200];
	json_t *first;

	if (!id[base] || !folds(entry))
		return false;
	snprintf(key, sizeof(key), "%s %d %.*s", report_str(row, "verdict"), report_ran(entry), (int)base, id);
	first = json_object_get(folded, key);
	if (!first) {
		json_object_set(folded, key, row);
		json_object_set_new(row, "base", json_sprintf("%.*s", (int)base, id));
		json_object_set_new(row, "times", json_integer(1));
		return false;
	}
	json_object_set_new(first, "times", json_integer(json_int(first, "times", 1) + 1));
	if (json_int(row, "duration_ns", 0) > json_int(first, "duration_ns", 0))
		json_object_set(first, "duration_ns", json_object_get(row, "duration_ns"));
	return true;
}

void text_repeat_name(json_t *row)
{
	if (json_int(row, "times", 1) > 1)
		json_object_set_new(row, "case", json_sprintf("%s x %" PRId64, report_str(row, "base"), json_int(row, "times", 1)));
}

static void put_spread(FILE *out, const char *name, const json_t *spread)
{
	char min[32], median[32], p99[32], max[32];

	fprintf(out, "    %-10smin %s, median %s, p99 %s, max %s (%" PRId64 ")\n", name,
		units_format_ns(json_u64(spread, "min_ns", 0), min, sizeof(min)),
		units_format_ns(json_u64(spread, "median_ns", 0), median, sizeof(median)),
		units_format_ns(json_u64(spread, "p99_ns", 0), p99, sizeof(p99)),
		units_format_ns(json_u64(spread, "max_ns", 0), max, sizeof(max)), json_int(spread, "n", 0));
}

void text_repeats(FILE *out, const struct report_run *run)
{
	json_t *repeats = report_repeats(run), *repeat;
	char safe[1200], verdicts[256];
	size_t i;

	json_array_foreach(repeats, i, repeat) {
		int64_t left = json_int(repeat, "repeat", 0) - json_int(repeat, "ran", 0);

		fprintf(out, "%s%s %s", i ? "" : "\n", json_bool(repeat, "flaky", false) ? "flaky   " : "repeated",
			log_escape(report_str(repeat, "case"), safe, sizeof(safe)));
		fprintf(out, ": %s", report_verdicts(repeat, verdicts, sizeof(verdicts)));
		if (left)
			fprintf(out, ", %" PRId64 " not run", left);
		fputc('\n', out);
		if (json_object_get(json_object_get(repeat, "duration"), "n"))
			put_spread(out, "whole", json_object_get(repeat, "duration"));
		for (int k = 0; k < NUM_PHASES; k++)
			if (json_object_get(json_object_get(repeat, "phases"), phase_names[k]))
				put_spread(out, phase_names[k], json_object_get(json_object_get(repeat, "phases"), phase_names[k]));
	}
	json_decref(repeats);
}
