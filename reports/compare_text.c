/* SPDX-License-Identifier: MIT */
/* A comparison for people. */
#include "compare.h"

#include <inttypes.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/log.h"
#include "../harness/units.h"
#include "compare_internal.h"
#include "report_util.h"

#define CASES_SHOWN 6  /* of those that one thing is said of */
#define TIMES_SHOWN 20 /* of each kind */
#define SAFE_BYTES 4096

/* In the order in which they are told. */
static const struct kind {
	const char *change, *one, *many, *colour;
	bool at_length;
} kinds[] = {
	{ "regression", "regression", "regressions", "\033[31m", true },
	{ "untold", "not judged any more", "not judged any more", "\033[33m", true },
	{ "unheld", "failure without a past", "failures without a past", "\033[31m", true },
	{ "incomparable", "not comparable", "not comparable", "\033[33m", false },
	{ "other", "other change", "other changes", "\033[36m", false },
	{ "improvement", "improvement", "improvements", "\033[32m", false },
};

static void put(FILE *out, const char *text)
{
	char safe[SAFE_BYTES];

	fputs(log_escape(text, safe, sizeof(safe)), out);
}

static void put_run(FILE *out, const char *label, const json_t *run)
{
	static const char *const keys[][2] = { { "lab", "lab" },           { "kernel", "kernel" },       { "provider", "provider" },
					       { "firmware", "firmware" }, { "rdma_core", "rdma-core" }, { "build", "qpdrill" } };
	const json_t *counts = json_object_get(run, "counts");
	const char *between = ": ", *word;
	json_t *n;

	fprintf(out, "%-5s", label);
	put(out, report_str(run, "dir"));
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (*report_str(run, keys[i][0])) {
			fprintf(out, ", %s ", keys[i][1]);
			put(out, report_str(run, keys[i][0]));
		}
	fprintf(out, ", %" PRId64 " cases", json_int(run, "cases", 0));
	json_object_foreach((json_t *)counts, word, n)
		if (json_integer_value(n)) {
			fprintf(out, "%s%" JSON_INTEGER_FORMAT " %s", between, json_integer_value(n), word);
			between = ", ";
		}
	fputs(*report_str(run, "ended") ? "\n" : "; it did not come to its end: it was killed, or is still going on\n", out);
}

static void put_sum(FILE *out, const json_t *doc)
{
	const json_t *counts = json_object_get(doc, "counts");
	const char *between = "\n";
	size_t gone = json_array_size(json_object_get(doc, "gone")), come = json_array_size(json_object_get(doc, "appeared"));

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		int64_t n = json_int(counts, kinds[i].change, 0);

		if (!n && i)
			continue;
		fprintf(out, "%s%" PRId64 " %s", between, n, n == 1 ? kinds[i].one : kinds[i].many);
		between = ", ";
		if (!i && json_int(counts, "slower", 0))
			fprintf(out, ", %" PRId64 " of times", json_int(counts, "slower", 0));
	}
	fprintf(out, "; %" PRId64 " alike", json_int(counts, "alike", 0));
	if (gone)
		fprintf(out, "; %zu only in the older run", gone);
	if (come)
		fprintf(out, "; %zu only in the newer one", come);
	fputc('\n', out);
}

static void put_differences(FILE *out, const json_t *doc)
{
	const json_t *d;
	const char *file;
	json_t *n;
	size_t i;

	json_array_foreach(json_object_get(doc, "differences"), i, d) {
		fprintf(out, "%-12s", i ? "" : "different:");
		put(out, report_str(d, "what"));
		fputc(' ', out);
		put(out, *report_str(d, "old") ? report_str(d, "old") : "none");
		fputs(" -> ", out);
		put(out, *report_str(d, "new") ? report_str(d, "new") : "none");
		fputc('\n', out);
	}
	if (!i)
		fputs("different: nothing that the runs tell of kernel, device, library and lab\n", out);
	if (json_bool(doc, "profile_differs", false))
		fputs("            the profile: a deviation that is new or gone may be its doing, not the device's\n", out);
	json_object_foreach(json_object_get(doc, "changed_scenarios"), file, n) {
		fputs("            ", out);
		put(out, file);
		fprintf(out, " is another text: %" JSON_INTEGER_FORMAT " case%s of it not comparable\n", json_integer_value(n),
			json_integer_value(n) == 1 ? "" : "s");
	}
}

/* How `beyond the spread` is decided, with this comparison's own figures. */
static void put_rule(FILE *out, const json_t *times)
{
	char grid[32];
	int64_t held = json_int(times, "held", 0), often = json_int(times, "often", 0);

	if (*report_str(times, "why_not")) {
		fprintf(out, "times:      not compared: %s\n", report_str(times, "why_not"));
		return;
	}
	if (!held) {
		fputs("times:      none: no recovery ran in both\n", out);
		return;
	}
	fprintf(out,
		"times:      %" PRId64 " phases of recoveries. One is told as slower or faster when all of its times lie beyond "
		"all of the other run's, and\n"
		"            the medians are apart by more than half, after this is taken off: the factor %.2f that half of all "
		"phases exceed (the machine),\n"
		"            the timers' grid of %s, and the lateness of this machine's timers in that case: once where both ran "
		"it %d times or more\n"
		"            (%" PRId64 " phases), %d times where they did not, since a recovery waits so often. ",
		held, json_number_value(json_object_get(times, "common")),
		units_format_ns(json_u64(times, "granularity_ns", 0), grid, sizeof(grid)), COMPARE_OFTEN, often, COMPARE_WAITS);
	if (!json_bool(times, "same_machine", false))
		fputs("None is a regression: the runs had different hosts or lanes.\n", out);
	else
		fputs("Only the first kind can be a regression.\n", out);
	if (json_int(times, "unknown_lateness", 0))
		fprintf(out, "            %" PRId64 " case%s left out: nothing tells how late the machine was\n",
			json_int(times, "unknown_lateness", 0), json_int(times, "unknown_lateness", 0) == 1 ? "" : "s");
}

static bool says_the_same(const json_t *a, const json_t *b)
{
	const json_t *x = json_object_get(a, "finding"), *y = json_object_get(b, "finding");

	return !strcmp(report_str(a, "change"), report_str(b, "change")) && !strcmp(report_str(a, "why"), report_str(b, "why")) &&
	       !strcmp(report_str(x, "expected"), report_str(y, "expected")) &&
	       !strcmp(report_str(x, "seen"), report_str(y, "seen"));
}

/* Whether something before it has said the same, so that it stood there. */
static bool is_told(const json_t *cases, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (says_the_same(json_array_get(cases, i), json_array_get(cases, at)))
			return true;
	return false;
}

/* The others of which the same is said. */
static void put_also(FILE *out, const json_t *cases, size_t at)
{
	size_t n = 0;

	for (size_t i = at + 1; i < json_array_size(cases); i++) {
		if (!says_the_same(json_array_get(cases, i), json_array_get(cases, at)))
			continue;
		if (n++ < CASES_SHOWN)
			report_line(out, n == 1 ? "also" : "", "%s", report_str(json_array_get(cases, i), "case"));
	}
	if (n > CASES_SHOWN)
		report_line(out, "", "and %zu more (--json has all)", n - CASES_SHOWN);
}

static void put_side(FILE *out, const char *label, const json_t *side)
{
	const char *seen = report_str(side, "seen");

	if (json_int(side, "n", 0))
		report_line(out, label, "%s%s%s", report_str(side, "ended"), *seen ? ": " : "", seen);
}

static void put_case(FILE *out, const struct kind *kind, const json_t *cases, size_t at, bool colour)
{
	const json_t *c = json_array_get(cases, at), *finding = json_object_get(c, "finding");

	fprintf(out, "\n%s%s%s ", colour ? kind->colour : "", kind->one, colour ? "\033[0m" : "");
	put(out, report_str(c, "case"));
	if (kind->at_length && *report_str(c, "title")) {
		fputs(": ", out);
		put(out, report_str(c, "title"));
	}
	fputs("\n  ", out);
	put(out, report_str(c, "why"));
	fputc('\n', out);
	if (kind->at_length) {
		report_line(out, "where", "%s", report_str(finding, "where"));
		report_line(out, "expected", "%s", report_str(finding, "expected"));
		report_line(out, "seen", "%s", report_str(finding, "seen"));
		if (!*report_str(finding, "expected"))
			report_line(out, "", "%s", report_str(finding, "text"));
	}
	if (kind->at_length || !strcmp(kind->change, "incomparable")) {
		put_side(out, "old", json_object_get(c, "old"));
		put_side(out, "new", json_object_get(c, "new"));
	}
	put_also(out, cases, at);
	if (kind->at_length)
		report_line(out, "repeat", "%s", report_str(c, "repeat"));
}

static void put_cases(FILE *out, const json_t *doc, const struct kind *kind, bool colour)
{
	const json_t *cases = json_object_get(doc, "cases"), *c;
	size_t i;

	json_array_foreach(cases, i, c)
		if (!strcmp(report_str(c, "change"), kind->change) && !is_told(cases, i))
			put_case(out, kind, cases, i, colour);
}

static char *format_spread(const json_t *s, char *buf, size_t size)
{
	char min[32], median[32], max[32];

	units_format_ns(json_u64(s, "median_ns", 0), median, sizeof(median));
	if (json_int(s, "n", 0) == 1)
		snprintf(buf, size, "%s", median);
	else
		snprintf(buf, size, "%s (%s to %s, %" PRId64 ")", median,
			 units_format_ns(json_u64(s, "min_ns", 0), min, sizeof(min)),
			 units_format_ns(json_u64(s, "max_ns", 0), max, sizeof(max)), json_int(s, "n", 0));
	return buf;
}

static void put_time(FILE *out, const json_t *change)
{
	char older[128], newer[128], slack[32];

	fputs("  ", out);
	put(out, report_str(change, "case"));
	fprintf(out, " step %" PRId64 " (%s), %s: %s -> %s, slack %s\n", json_int(change, "step", 0), report_str(change, "path"),
		report_str(change, "phase"), format_spread(json_object_get(change, "old"), older, sizeof(older)),
		format_spread(json_object_get(change, "new"), newer, sizeof(newer)),
		units_format_ns(json_u64(change, "slack_ns", 0), slack, sizeof(slack)));
}

static void put_times(FILE *out, const json_t *times, const char *title, const char *change, bool regression)
{
	const json_t *t;
	size_t i, n = 0;

	json_array_foreach(json_object_get(times, "changes"), i, t) {
		if (strcmp(report_str(t, "change"), change) != 0 || json_bool(t, "regression", false) != regression)
			continue;
		if (!n++)
			fprintf(out, "\n%s\n", title);
		if (n <= TIMES_SHOWN)
			put_time(out, t);
	}
	if (n > TIMES_SHOWN)
		fprintf(out, "  and %zu more (--json has all)\n", n - TIMES_SHOWN);
}

static void put_deviations(FILE *out, const json_t *doc)
{
	static const char *const words[][2] = { { "new", "deviation, new" }, { "gone", "deviation, gone" } };

	for (size_t k = 0; k < 2; k++) {
		const json_t *list = json_object_get(json_object_get(doc, "deviations"), words[k][0]);
		const char *id;
		json_t *n;

		if (json_object_size(list))
			fputc('\n', out);
		json_object_foreach((json_t *)list, id, n) {
			fprintf(out, "%s: ", words[k][1]);
			put(out, id);
			fprintf(out, ", in %" JSON_INTEGER_FORMAT " case%s\n", json_integer_value(n),
				json_integer_value(n) == 1 ? "" : "s");
		}
	}
}

static void put_statuses(FILE *out, const json_t *doc)
{
	bool first = true;
	const char *name;
	json_t *n;

	json_object_foreach(json_object_get(doc, "statuses"), name, n) {
		int64_t older = json_int(n, "old", 0), newer = json_int(n, "new", 0);

		if (older && newer)
			continue;
		fprintf(out, "%sstatus %s: in %" PRId64 " case%s of the %s run alone\n", first ? "\n" : "", name, older + newer,
			older + newer == 1 ? "" : "s", older ? "older" : "newer");
		first = false;
	}
}

static void put_single(FILE *out, const json_t *list, const char *what)
{
	size_t i, n = json_array_size(list);
	json_t *c;

	if (n)
		fprintf(out, "\nonly in the %s run, %zu case%s:\n", what, n, n == 1 ? "" : "s");
	json_array_foreach(list, i, c) {
		if (i == 2 * CASES_SHOWN) {
			fprintf(out, "  and %zu more (--json has all)\n", n - i);
			return;
		}
		fputs("  ", out);
		put(out, report_str(c, "case"));
		fprintf(out, " (%s)\n", report_str(c, "ended"));
	}
}

void compare_text(const json_t *doc, FILE *out, bool colour)
{
	const json_t *times = json_object_get(doc, "times");

	put_run(out, "old", json_object_get(doc, "old"));
	put_run(out, "new", json_object_get(doc, "new"));
	put_sum(out, doc);
	put_differences(out, doc);
	put_rule(out, times);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		put_cases(out, doc, &kinds[i], colour);
		if (!i)
			put_times(out, times, "regression: recoveries that are slower", "slower", true);
	}
	put_times(out, times, "slower, as far as this can tell", "slower", false);
	put_times(out, times, "faster", "faster", false);
	put_deviations(out, doc);
	put_statuses(out, doc);
	put_single(out, json_object_get(doc, "gone"), "older");
	put_single(out, json_object_get(doc, "appeared"), "newer");
}
