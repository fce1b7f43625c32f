/* SPDX-License-Identifier: MIT */
#include "report_util.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/log.h"
#include "../harness/plan.h"
#include "report.h"

#define LINE_BYTES_MAX 2048

const char *report_str(const json_t *obj, const char *key)
{
	const char *s = json_str(obj, key);

	return s ? s : "";
}

struct report_counts report_count(const struct report_run *run)
{
	struct report_counts c = { 0 };
	struct {
		const char *name;
		unsigned *n;
	} names[] = { { "pass", &c.pass },
		      { "deviation", &c.deviation },
		      { "fail", &c.fail },
		      { "inconclusive", &c.inconclusive },
		      { "skip", &c.skip } };
	size_t i;
	json_t *entry;

	json_array_foreach(run->cases, i, entry) {
		const char *verdict = report_str(json_object_get(entry, "verdict"), "verdict");
		unsigned *n = &c.error;

		for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
			if (!strcmp(names[k].name, verdict))
				n = names[k].n;
		(*n)++;
	}
	return c;
}

unsigned report_passed(const struct report_counts *c)
{
	return c->pass + c->deviation;
}

unsigned report_failed(const struct report_counts *c)
{
	return c->fail + c->inconclusive + c->error;
}

uint64_t report_duration(const json_t *entry)
{
	uint64_t ns = json_u64(json_object_get(entry, "verdict"), "duration_ns", 0);

	return ns ? ns : json_u64(json_object_get(entry, "result"), "duration_ns", 0);
}

/* Without the ~rN of a repetition: one is enough. */
static int plain_len(const char *id)
{
	const char *tilde = strrchr(id, '~');

	if (tilde && tilde[1] == 'r' && tilde[2] && strspn(tilde + 2, "0123456789") == strlen(tilde + 2))
		return (int)(tilde - id);
	return (int)strlen(id);
}

char *report_repeat(const json_t *run, const char *id, char *buf, size_t size)
{
	snprintf(buf, size, "%s --select '%.*s'", report_str(run, "repeat"), plain_len(id), id);
	return buf;
}

void report_line(FILE *out, const char *name, const char *fmt, ...)
{
	char text[LINE_BYTES_MAX], safe[2 * LINE_BYTES_MAX], label[256], *rest = text, *line;
	va_list args;

	log_escape(name, label, sizeof(label));
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	while (*text && (line = strsep(&rest, "\n"))) {
		if (*line)
			fprintf(out, "    %-10s%s\n", label, log_escape(line, safe, sizeof(safe)));
		*label = 0;
	}
}

char *report_where(const json_t *plan, const json_t *finding, char *buf, size_t size)
{
	const char *check = report_str(finding, "check"), *at = report_str(finding, "at"), *iter = report_str(finding, "iter");
	int64_t line = json_int(finding, "line", 0), step = json_int(finding, "step", 0);
	const json_t *planned = plan_step(plan, (int)step);
	bool says_check = strcmp(check, report_str(planned, "do")) != 0;
	char file[512] = "", what[256] = "";

	if (!line)
		line = json_int(planned, "line", 0);
	if (line)
		snprintf(file, sizeof(file), "%s:%" PRId64 ": ", report_str(plan, "file"), line);
	if (step > 0)
		snprintf(what, sizeof(what), "step %" PRId64 "%s%s%s%s", step, planned ? ", " : "", report_str(planned, "do"),
			 *iter ? ", round " : "", iter);
	snprintf(buf, size, "%s%s%s%s%s%s", file, what, says_check && *what ? ": " : "", says_check ? check : "", *at ? " at " : "",
		 at);
	return buf;
}

char *report_failure(const json_t *run, const json_t *entry)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	report_text_failure(out, json_object_get(entry, "plan"), json_object_get(entry, "verdict"), run, false);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}
