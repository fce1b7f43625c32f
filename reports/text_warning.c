/* SPDX-License-Identifier: MIT */
#include "text_warning.h"

#include <inttypes.h>
#include <string.h>

#include "report_util.h"
#include "../harness/json.h"
#include "../harness/log.h"

#define TEXT_MAX 4096

/* It is told with the deviations that an entry is stale. */
static bool is_warning(const json_t *finding)
{
	return !strcmp(report_str(finding, "severity"), "warning") && strcmp(report_str(finding, "check"), "stale");
}

/* Those of one step are alike: the first one speaks for them. */
static void put_warnings_of(FILE *out, const json_t *entry, bool *first)
{
	const json_t *findings = json_object_get(json_object_get(entry, "verdict"), "findings"), *finding, *other;
	char safe[TEXT_MAX];
	size_t i, k;

	json_array_foreach((json_t *)findings, i, finding) {
		int64_t step = json_int(finding, "step", 0);
		unsigned before = 0, more = 0;

		if (!is_warning(finding))
			continue;
		json_array_foreach((json_t *)findings, k, other)
			if (k != i && is_warning(other) && json_int(other, "step", 0) == step)
				*(k < i ? &before : &more) += 1;
		if (before)
			continue;
		fprintf(out, "%swarning in %s", *first ? "\n" : "", log_escape(report_str(entry, "case"), safe, sizeof(safe)));
		fprintf(out, ", step %" PRId64 ": %s", step, log_escape(report_str(finding, "text"), safe, sizeof(safe)));
		if (more)
			fprintf(out, "; %u more of that step, in verdict.json", more);
		fputc('\n', out);
		*first = false;
	}
}

void text_warnings(FILE *out, const struct report_run *run)
{
	bool first = true;
	json_t *entry;
	size_t i;

	json_array_foreach(run->cases, i, entry) {
		const char *name = report_str(json_object_get(entry, "verdict"), "verdict");

		if (!strcmp(name, "pass") || !strcmp(name, "deviation"))
			put_warnings_of(out, entry, &first);
	}
}
