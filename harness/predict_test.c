/* SPDX-License-Identifier: MIT */
/* The oracle on plans: a table of single windows, and testdata/predict/windows.yaml, which becomes windows.txt (written anew with
 * QPDRILL_GOLDEN=write). */
#include "predict.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "plan.h"
#include "scenario.h"
#include "test.h"

#define GOLDEN "harness/testdata/predict/windows"
#define T12 16777216LL /* 4.096 us x 2^12 */

static const struct row {
	const char *what, *fault, *status, *timing;
	int timeout, retry_cnt, rnr_retry;
	bool wire;
	const char *detection;
	int64_t low, high; /* high -1: none */
	bool never;
} rows[] = {
	{ "nothing shows the start", "silent", "RETRY_EXC_ERR", NULL, 12, 3, 0, false, "silent", 3 * T12, 16 * T12, false },
	{ "the wire shows it", "silent", "RETRY_EXC_ERR", NULL, 12, 3, 0, true, "silent", 4 * T12, 16 * T12, false },
	{ "a NAK in the sequence spends one", "seq-nak", "RETRY_EXC_ERR", NULL, 12, 3, 0, true, "seq-nak", 3 * T12, 12 * T12,
	  false },
	{ "timers on a grid", "silent", "RETRY_EXC_ERR", "{\"granularity\":4000000}", 12, 3, 0, true, "silent", 4 * T12 - 16000000,
	  16 * T12 + 32000000, false },
	{ "a floor above the timer", "silent", "RETRY_EXC_ERR", "{\"ack_floor\":20000000}", 12, 3, 0, true, "silent", 4 * T12,
	  16 * T12 + 16 * (20000000 - T12), false },
	{ "a scheme of its own begins sooner", "silent", "RETRY_EXC_ERR", "{\"ack_adaptive\":4000000}", 12, 3, 0, true, "silent",
	  16000000, 16 * T12, false },
	{ "no timer", "silent", "RETRY_EXC_ERR", NULL, 0, 3, 0, true, "silent", -1, -1, true },
	{ "receives that are not there", "rnr", "RNR_RETRY_EXC_ERR", NULL, 12, 3, 2, true, "rnr", 1280000, 5120000, false },
	{ "rnr_retry 7 is for ever", "rnr", "RNR_RETRY_EXC_ERR", NULL, 12, 3, 7, true, "rnr", -1, -1, true },
	{ "a wrong key", "silent", "REM_ACCESS_ERR", NULL, 12, 3, 0, true, "nak", 0, (int64_t)WINDOW_AT_ONCE_NS, false },
	{ "one's own", "silent", "LOC_PROT_ERR", NULL, 12, 3, 0, true, "local", 0, (int64_t)WINDOW_AT_ONCE_NS, false },
};

static json_t *plan_of(const struct row *r)
{
	return json_pack("{s:s,s:i,s:b,s:[{s:s,s:s,s:s,s:{s:i,s:i,s:i}},{s:s,s:s,s:s,s:{s:i}}],"
			 "s:[{s:i,s:s,s:s,s:s,s:{s:[s]}},{s:i,s:s,s:s,s:[s]},{s:i,s:s,s:s,s:{s:[s,s]}}]}",
			 "case", "t/x", "budget_ns", 7, "wire", r->wire, "qps", "name", "p.a", "pair", "p", "peer", "p.b", "attr",
			 "timeout", r->timeout, "retry_cnt", r->retry_cnt, "rnr_retry", r->rnr_retry, "name", "p.b", "pair", "p",
			 "peer", "p.a", "attr", "min_rnr_timer", 12, "steps", "n", 1, "do", "fault", "as", "f", "detection",
			 r->fault, "args", "at", "p.b", "n", 2, "do", "post", "as", "w", "at", "p.a", "n", 3, "do", "expect", "of",
			 "w", "wc", "all", r->status, "WR_FLUSH_ERR");
}

static int64_t ns_of(const json_t *w, const char *key)
{
	return json_int(w, key, -1);
}

static void test_windows(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		json_t *plan = plan_of(r), *timing = r->timing ? json_loads(r->timing, 0, NULL) : NULL, *p, *w;

		MUST(plan != NULL);
		p = predict_case(plan, timing);
		w = json_array_get(json_object_get(json_array_get(json_object_get(p, "steps"), 2), "windows"), 0);
		ROW_ASSERT(w && !strcmp(json_str(w, "status"), r->status) && !strcmp(json_str(w, "detection"), r->detection),
			   "%s: %s", r->what, w ? json_str(w, "detection") : "no window");
		ROW_ASSERT(ns_of(w, "low_ns") == r->low && ns_of(w, "high_ns") == r->high, "%s: %lld to %lld", r->what,
			   (long long)ns_of(w, "low_ns"), (long long)ns_of(w, "high_ns"));
		ROW_ASSERT(json_bool(w, "never", !r->never) == r->never, "%s", r->what);
		CU_ASSERT_EQUAL(json_array_size(json_object_get(json_array_get(json_object_get(p, "steps"), 1), "windows")), 0);
		json_decref(p);
		json_decref(plan);
		json_decref(timing);
	}
}

static char *predicted(void)
{
	struct scenario s = { 0 };
	struct diag d = { 0 };
	struct error e = { "" };
	json_t *timing = json_pack("{s:i}", "granularity", 4000000);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	MUST(out != NULL);
	ROW_ASSERT(scenario_load(GOLDEN ".yaml", "t/windows", &s, &d, &e) == 0, "%s%s", d.text ? d.text : "", e.text);
	for (size_t i = 0; i < s.n_cases; i++) {
		struct plan_options o = { .seed = 1, .file = "t.yaml" };
		json_t *plan = NULL, *p;

		ROW_ASSERT(plan_make(&s.cases[i], &o, &plan, &e) == 0, "%s", e.text);
		p = predict_case(plan, timing);
		predict_text(p, out);
		json_decref(p);
		json_decref(plan);
	}
	fclose(out);
	json_decref(timing);
	scenario_release(&s);
	diag_release(&d);
	return text;
}

static void test_golden(void)
{
	const char *how = getenv("QPDRILL_GOLDEN");
	char *seen = predicted(), expected[16384] = "";
	FILE *f;

	if (how && !strcmp(how, "write")) {
		f = fopen(GOLDEN ".txt", "w");
		MUST(f != NULL);
		fputs(seen, f);
		fclose(f);
	}
	f = fopen(GOLDEN ".txt", "r");
	MUST(f != NULL);
	expected[fread(expected, 1, sizeof(expected) - 1, f)] = 0;
	fclose(f);
	ROW_ASSERT(!strcmp(seen, expected), "%s.txt differs; seen:\n%s", GOLDEN, seen);
	free(seen);
}

static const struct test_case cases[] = {
	{ "windows", test_windows },
	{ "golden file", test_golden },
};

TEST_MAIN("predict", cases)
