/* SPDX-License-Identifier: MIT */
/* testdata/compare has two run folders (a run that broke off, an edited scenario, text that tries to break out) and what is to be
 * said of them. QPDRILL_GOLDEN=write writes that anew. */
#include "compare.h"

#include <errno.h>
#include <unistd.h>

#include "../harness/json.h"
#include "../harness/test.h"
#include "../harness/units.h"
#include "compare_internal.h"
#include "report_util.h"

#define DATA "reports/testdata/compare/"

static json_t *finding(const char *severity, const char *check, const char *deviation, const char *likely)
{
	json_t *f = json_pack("{s:s,s:s,s:s,s:s,s:s}", "severity", severity, "check", check, "deviation", deviation, "expected",
			      "x", "seen", "y");

	if (*likely)
		json_object_set_new(f, "likely", json_pack("[s]", likely));
	return f;
}

/* A word of a row: "pass" "dev:ID" "strict:ID" "unseen:ID" "fail" "fail:CHECK" "skip" "inconclusive" "notrun" "killed". */
static json_t *verdict_for(const char *word)
{
	const char *colon = strchr(word, ':'), *arg = colon ? colon + 1 : "";
	int len = (int)strcspn(word, ":");
	json_t *v = json_pack("{s:s%,s:s,s:[],s:[]}", "verdict", word, len, "headline", "why", "findings", "deviations");

	if (!strncmp(word, "dev", 3) || !strncmp(word, "strict", 6)) {
		json_object_set_new(v, "verdict", json_string(word[0] == 'd' ? "deviation" : "fail"));
		json_array_append_new(json_object_get(v, "deviations"), json_pack("{s:s}", "id", arg));
		json_array_append_new(json_object_get(v, "findings"),
				      finding(word[0] == 'd' ? "deviation" : "fail", "expect", arg, ""));
	} else if (!strncmp(word, "unseen", 6)) {
		json_object_set_new(v, "verdict", json_string("fail"));
		json_array_append_new(json_object_get(v, "findings"), finding("fail", "expect", "", arg));
		json_array_append_new(json_object_get(v, "findings"), finding("fail", "payload", "", ""));
	} else if (!strncmp(word, "fail", 4)) {
		json_array_append_new(json_object_get(v, "findings"), finding("fail", colon ? arg : "expect", "", ""));
	} else if (!strcmp(word, "notrun") || !strcmp(word, "killed")) {
		json_object_set_new(v, "verdict", json_string("error"));
		json_object_set_new(v, "headline",
				    json_string(word[0] == 'n' ? "not run: interrupted" : "no verdict: the run ended"));
	}
	return v;
}

/* "pass*18 fail*2" */
static json_t *entries_for(const char *spec)
{
	json_t *entries = json_array();
	char word[64];
	int used, n;

	while (sscanf(spec, " %63[^ *]%n", word, &used) == 1) {
		spec += used;
		n = *spec == '*' ? (int)strtol(spec + 1, (char **)&spec, 10) : 1;
		while (n--)
			json_array_append_new(entries, json_pack("{s:s,s:s,s:{},s:o}", "case", "t/x", "dir", "none", "plan",
								 "verdict", verdict_for(word)));
	}
	return entries;
}

static const struct change_row {
	const char *older, *newer;
	bool profile_differs;
	enum change change;
	const char *says;
} change_rows[] = {
	{ "pass", "pass", false, CHANGE_ALIKE, "" },
	{ "pass", "fail", false, CHANGE_REGRESSION, "fails" },
	{ "fail", "pass", false, CHANGE_IMPROVEMENT, "does not fail any more" },
	{ "fail", "fail", false, CHANGE_ALIKE, "" },
	{ "fail:expect", "fail:kernel", false, CHANGE_OTHER, "fails in another way: kernel, before it was expect" },
	{ "pass", "dev:x", false, CHANGE_REGRESSION, "deviates from the specification: x" },
	{ "dev:x", "pass", false, CHANGE_IMPROVEMENT, "any more: x" },
	{ "dev:x", "dev:x", false, CHANGE_ALIKE, "" },
	{ "dev:x", "dev:y", false, CHANGE_OTHER, "y in place of x" },
	{ "dev:x", "fail", false, CHANGE_REGRESSION, "fails" },
	{ "dev:x", "fail", true, CHANGE_REGRESSION, "or the profile does not excuse it any more" },
	{ "fail", "dev:x", false, CHANGE_IMPROVEMENT, "does not fail any more" },
	{ "fail", "dev:x", true, CHANGE_OTHER, "the profile is another one, and excuses it" },
	/* What --strict says of a deviation is no other behaviour of the device, nor what a profile does not know of this kernel.
	 */
	{ "dev:x", "strict:x", false, CHANGE_ALIKE, "" },
	{ "pass", "strict:x", false, CHANGE_REGRESSION, "deviates from the specification: x" },
	{ "dev:x", "unseen:x", false, CHANGE_OTHER, "the same deviation as before, x, but no run has shown it on this kernel" },
	{ "unseen:x", "dev:x", false, CHANGE_OTHER, "the profile knows it" },
	{ "pass", "unseen:x", false, CHANGE_REGRESSION, "deviates from the specification: x" },
	/* Nobody can tell: that is the device's fault in no case, and a pass in none. */
	{ "pass", "inconclusive", false, CHANGE_UNTOLD, "could not be judged: why" },
	{ "fail", "error", false, CHANGE_UNTOLD, "could not be judged" },
	{ "pass", "notrun", false, CHANGE_UNTOLD, "did not run to its end: not run: interrupted" },
	{ "dev:x", "killed", false, CHANGE_UNTOLD, "did not run to its end" },
	{ "inconclusive", "error", false, CHANGE_ALIKE, "" },
	{ "inconclusive", "pass", false, CHANGE_IMPROVEMENT, "could not be judged, and is now" },
	{ "inconclusive", "fail", false, CHANGE_UNHELD, "could not be judged before" },
	{ "skip", "fail", false, CHANGE_UNHELD, "was skipped before" },
	{ "skip", "pass", false, CHANGE_OTHER, "was skipped, and runs now" },
	{ "pass", "skip", false, CHANGE_OTHER, "is skipped: why" },
	{ "skip", "skip", false, CHANGE_ALIKE, "" },
	/* Repetitions. */
	{ "pass*20", "pass*19 fail", false, CHANGE_REGRESSION, "fails in 1 of 20, where none of 20 did" },
	{ "pass*20", "pass*19 dev:x", false, CHANGE_REGRESSION, "deviates" },
	{ "pass*18 fail*2", "pass*20", false, CHANGE_OTHER, "0 of 20 fail, 2 of 20 did: that may be chance" },
	{ "pass*10 fail*10", "pass*20", false, CHANGE_IMPROVEMENT, "fails less often: 0 of 20, 10 of 20 before" },
	{ "pass*18 fail*2", "fail*20", false, CHANGE_REGRESSION, "fails more often: 20 of 20, 2 of 20 before" },
	{ "pass*18 fail*2", "pass*16 fail*4", false, CHANGE_OTHER, "may be chance" },
	{ "pass*18 fail*2", "pass*9 fail", false, CHANGE_ALIKE, "" },
	{ "pass*3", "pass*2 inconclusive", false, CHANGE_ALIKE, "" },
	{ "pass*3", "inconclusive*3", false, CHANGE_UNTOLD, "could not be judged" },
	{ "pass", "pass*20", false, CHANGE_ALIKE, "" },
};

static void a_change_is_judged(void)
{
	struct report_run run = { .dir = "/nonexistent" };

	for (size_t i = 0; i < sizeof(change_rows) / sizeof(*change_rows); i++) {
		const struct change_row *r = &change_rows[i];
		json_t *older = entries_for(r->older), *newer = entries_for(r->newer);
		struct compare_case sides[2];
		struct change_why why;

		compare_case_init(&sides[0], &run, older);
		compare_case_init(&sides[1], &run, newer);
		why = compare_change(&sides[0], &sides[1], r->profile_differs);
		ROW_ASSERT(why.change == r->change && strstr(why.text, r->says), "%s -> %s: %s: %s", r->older, r->newer,
			   change_names[why.change], why.text);
		compare_case_release(&sides[0]);
		compare_case_release(&sides[1]);
		json_decref(older);
		json_decref(newer);
	}
}

static void chance_is_fishers(void)
{
	static const struct {
		unsigned a, m, b, n;
		double low, high;
	} rows[] = {
		{ 0, 8, 8, 8, 7.76e-5, 7.78e-5 }, /* 1 in 12870 */
		{ 1, 10, 9, 10, 5.46e-4, 5.47e-4 },
		{ 0, 1, 1, 1, 0.499, 0.501 },
		{ 3, 10, 3, 10, 0.68, 0.69 },
		{ 5, 5, 0, 5, 0.999, 1.001 },
		{ 0, 100000, 100000, 100000, 0, 1e-100 },
		{ 50000, 100000, 50000, 100000, 0.49, 0.51 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		double p = compare_chance(rows[i].a, rows[i].m, rows[i].b, rows[i].n);

		ROW_ASSERT(p >= rows[i].low && p <= rows[i].high, "row %zu: %g", i, p);
	}
}

/* What was known before is not what changed. */
static void the_finding_that_is_new(void)
{
	struct report_run run = { .dir = "/nonexistent" };
	json_t *entries = entries_for("dev:old"), *known = json_pack("{s:i}", "old", 1);
	json_t *findings = json_object_get(json_object_get(json_array_get(entries, 0), "verdict"), "findings");
	struct compare_case c;

	json_array_append_new(findings, finding("deviation", "expect", "new", ""));
	json_array_append_new(findings, finding("note", "expect", "", ""));
	compare_case_init(&c, &run, entries);
	CU_ASSERT(json_has(compare_finding(&c, known), "deviation", "new"));
	CU_ASSERT(json_has(compare_finding(&c, NULL), "deviation", "old"));
	json_array_remove(findings, 1);
	CU_ASSERT(json_has(compare_finding(&c, known), "deviation", "old"));
	json_array_clear(findings);
	CU_ASSERT_PTR_NULL(compare_finding(&c, known));
	compare_case_release(&c);
	json_decref(entries);
	json_decref(known);
}

/* Recoveries of `n` repetitions, `first` to `last` ms, spread evenly. */
static json_t *recoveries(unsigned n, double first_ms, double last_ms)
{
	json_t *entries = json_array();

	for (unsigned i = 0; i < n; i++) {
		double ms = n > 1 ? first_ms + (last_ms - first_ms) * i / (n - 1) : first_ms;

		json_array_append_new(entries, json_pack("{s:{s:[{s:i,s:s,s:I}]}}", "verdict", "phases", "step", 8, "path", "reset",
							 "rts_ns", (json_int_t)(ms * (double)NSEC_PER_MSEC)));
	}
	return entries;
}

/* One recovery, beside others that show what the machine is like. */
static const struct time_row {
	const char *what;
	unsigned n[2];
	double ms[2][2];
	double late_ms, machine; /* how late, and what factor all others have */
	bool other_host;
	const char *change; /* "": none */
	bool regression;
} time_rows[] = {
	{ "the same", { 8, 8 }, { { 10, 14 }, { 10, 14 } }, 2, 1, false, "", false },
	{ "slower, often", { 8, 8 }, { { 10, 14 }, { 40, 44 } }, 2, 1, false, "slower", true },
	{ "slower on another host", { 8, 8 }, { { 10, 14 }, { 40, 44 } }, 2, 1, true, "slower", false },
	{ "slower, 7 times", { 8, 7 }, { { 10, 14 }, { 90, 94 } }, 2, 1, false, "slower", false },
	{ "faster", { 8, 8 }, { { 40, 44 }, { 10, 14 } }, 2, 1, false, "faster", false },
	{ "spreads that overlap", { 8, 8 }, { { 10, 80 }, { 70, 200 } }, 2, 1, false, "", false },
	{ "apart by less than half", { 8, 8 }, { { 100, 101 }, { 130, 131 } }, 2, 1, false, "", false },
	{ "as late as that", { 8, 8 }, { { 10, 14 }, { 40, 44 } }, 30, 1, false, "", false },
	{ "as slow as the machine", { 8, 8 }, { { 10, 14 }, { 40, 44 } }, 2, 4, false, "", false },
	{ "as fast as the machine", { 8, 8 }, { { 40, 44 }, { 10, 14 } }, 2, 0.25, false, "", false },
	{ "slower than the slow machine", { 8, 8 }, { { 10, 14 }, { 400, 440 } }, 2, 4, false, "slower", true },
	{ "slower though the machine is faster", { 8, 8 }, { { 10, 14 }, { 40, 44 } }, 2, 0.25, false, "slower", true },
	{ "once each, and 8 waits may be late", { 1, 1 }, { { 10, 10 }, { 90, 90 } }, 10, 1, false, "", false },
	{ "once each, and more than that", { 1, 1 }, { { 10, 10 }, { 900, 900 } }, 10, 1, false, "slower", false },
	{ "only in one of them", { 0, 8 }, { { 0, 0 }, { 40, 44 } }, 2, 1, false, "", false },
};

static void add_recoveries(struct compare_times *t, const char *id, const struct time_row *r, const double ms[2][2])
{
	struct compare_case sides[2];
	json_t *entries[2];

	for (int k = 0; k < 2; k++) {
		entries[k] = recoveries(r->n[k], ms[k][0], ms[k][1]);
		sides[k] =
			(struct compare_case){ .entries = entries[k], .late_ns = (uint64_t)(r->late_ms * (double)NSEC_PER_MSEC) };
	}
	compare_times_add(t, id, &sides[0], &sides[1]);
	json_decref(entries[0]);
	json_decref(entries[1]);
}

static void a_time_is_judged(void)
{
	for (size_t i = 0; i < sizeof(time_rows) / sizeof(*time_rows); i++) {
		const struct time_row *r = &time_rows[i];
		const double others[2][2] = { { 100, 101 }, { 100 * r->machine, 101 * r->machine } };
		struct compare_times *t = compare_times_new();
		json_t *times, *changes, *first;

		add_recoveries(t, "t/it", r, r->ms);
		for (int k = 0; k < 6; k++) {
			char id[16];

			snprintf(id, sizeof(id), "t/%d", k);
			add_recoveries(t, id, r, others);
		}
		times = compare_times_judge(t, 4 * NSEC_PER_MSEC, !r->other_host, NULL);
		changes = json_object_get(times, "changes");
		first = json_array_get(changes, 0);
		ROW_ASSERT(json_array_size(changes) == (*r->change != 0), "%s: %zu changes", r->what, json_array_size(changes));
		ROW_ASSERT(!*r->change || (json_has(first, "change", r->change) && json_has(first, "case", "t/it") &&
					   json_bool(first, "regression", false) == r->regression),
			   "%s: %s", r->what, report_str(first, "change"));
		json_decref(times);
		compare_times_free(t);
	}
}

/* Nothing is said of times where nothing tells how late the machine was, or the labs differ. */
static void times_that_nobody_can_judge(void)
{
	struct compare_times *t = compare_times_new();
	json_t *older = recoveries(8, 10, 14), *newer = recoveries(8, 400, 440), *times;
	struct compare_case sides[2] = { { .entries = older, .late_ns = UINT64_MAX }, { .entries = newer, .late_ns = 5 } };

	compare_times_add(t, "t/blind", &sides[0], &sides[1]);
	times = compare_times_judge(t, 0, true, NULL);
	CU_ASSERT(json_int(times, "held", -1) == 0 && json_int(times, "unknown_lateness", 0) == 1);
	json_decref(times);
	sides[0].late_ns = 5;
	compare_times_add(t, "t/seen", &sides[0], &sides[1]);
	times = compare_times_judge(t, 0, true, NULL);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(times, "changes")), 1);
	json_decref(times);
	times = compare_times_judge(t, 0, true, "accel");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(times, "changes")), 0);
	CU_ASSERT_STRING_EQUAL(report_str(times, "why_not"), "accel");
	json_decref(times);
	compare_times_free(t);
	json_decref(older);
	json_decref(newer);
}

static json_t *compared(const char *older, const char *newer, struct error *e)
{
	struct report_run runs[2];
	json_t *doc = NULL;

	MUST(!report_load(older, &runs[0], e) && !report_load(newer, &runs[1], e));
	compare_runs(&runs[0], &runs[1], &doc, e);
	report_release(&runs[0]);
	report_release(&runs[1]);
	return doc;
}

static void as_golden(const char *path, const char *text)
{
	const char *how = getenv("QPDRILL_GOLDEN");
	static char expected[1 << 18];
	FILE *f = fopen(path, how && !strcmp(how, "write") ? "w+" : "r");

	MUST(f != NULL);
	if (how && !strcmp(how, "write"))
		fputs(text, f);
	rewind(f);
	expected[fread(expected, 1, sizeof(expected) - 1, f)] = 0;
	fclose(f);
	ROW_ASSERT(!strcmp(text, expected), "%s differs; seen:\n%s", path, text);
}

static char *text_of(const json_t *doc)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	compare_text(doc, out, false);
	fclose(out);
	for (size_t i = 0; i < len; i++)
		ROW_ASSERT((unsigned char)text[i] >= 0x20 || text[i] == '\n', "control character at %zu", i);
	return text;
}

static void what_is_said_is_golden(void)
{
	struct error e = { "" };
	json_t *doc = compared(DATA "old", DATA "new", &e);
	char *text, *json;

	MUST(doc != NULL);
	text = text_of(doc);
	json = json_dumps(doc, JSON_INDENT(1) | JSON_SORT_KEYS);
	as_golden(DATA "golden.text", text);
	as_golden(DATA "golden.json", json);
	CU_ASSERT_EQUAL(compare_exit_status(doc), 1);
	free(text);
	free(json);
	json_decref(doc);
}

static void a_run_is_like_itself(void)
{
	static const char *const dirs[] = { DATA "old", DATA "new", "reports/testdata/run", "reports/testdata/ladder" };
	struct error e = { "" };

	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++) {
		json_t *doc = compared(dirs[i], dirs[i], &e), *counts = json_object_get(doc, "counts");
		char *text = text_of(doc);

		ROW_ASSERT(json_array_size(json_object_get(doc, "cases")) == 0, "%s:\n%s", dirs[i], text);
		ROW_ASSERT(json_int(counts, "alike", 0) > 2 && compare_exit_status(doc) == 0, "%s:\n%s", dirs[i], text);
		ROW_ASSERT(strstr(text, "0 regressions; ") != NULL, "%s:\n%s", dirs[i], text);
		free(text);
		json_decref(doc);
	}
}

static void runs_that_cannot_be_compared(void)
{
	struct error e = { "" };
	json_t *doc = compared(DATA "old", "reports/testdata/ladder", &e);
	struct report_run run;

	CU_ASSERT_PTR_NULL(doc);
	CU_ASSERT(strstr(e.text, "have no case in common: 13 cases (a/alike, ...) and 4 (wire/") != NULL);
	json_decref(doc);
	CU_ASSERT(report_load(DATA "golden.text", &run, &e) == -ENOTDIR);
}

/* Nothing got worse, but what was judged is not any more: no all-clear. */
static void what_is_lost_is_no_all_clear(void)
{
	static const struct {
		const char *change;
		int status;
	} rows[] = { { "regression", 1 },  { "slower", 1 }, { "untold", 3 }, { "unheld", 0 },
		     { "improvement", 0 }, { "other", 0 },  { "alike", 0 },  { "incomparable", 0 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		json_t *doc = json_pack("{s:{s:i}}", "counts", rows[i].change, 2);

		ROW_ASSERT(compare_exit_status(doc) == rows[i].status, "%s", rows[i].change);
		json_decref(doc);
	}
}

static const struct test_case cases[] = {
	{ "a change is judged", a_change_is_judged },
	{ "the finding that is new", the_finding_that_is_new },
	{ "chance is Fisher's", chance_is_fishers },
	{ "a time is judged", a_time_is_judged },
	{ "times that nobody can judge", times_that_nobody_can_judge },
	{ "what is said is golden", what_is_said_is_golden },
	{ "a run is like itself", a_run_is_like_itself },
	{ "runs that cannot be compared", runs_that_cannot_be_compared },
	{ "what is lost is no all-clear", what_is_lost_is_no_all_clear },
};

TEST_MAIN("compare", cases)
