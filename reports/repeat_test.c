/* SPDX-License-Identifier: MIT */
/* Repetitions of a case: what the reports make of them. */
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/test.h"
#include "report.h"
#include "report_util.h"

/* case, verdict, error after ms (0: no recovery), headline */
static const struct entry {
	const char *id, *verdict;
	int error_ms;
	const char *headline;
} entries[] = {
	{ "t/firm~r1", "pass", 10, "" },
	{ "t/firm~r2", "pass", 30, "" },
	{ "t/firm~r3", "pass", 20, "" },
	{ "t/flaky~x=1~r1", "pass", 0, "" },
	{ "t/flaky~x=1~r2", "fail", 0, "scenarios/t/flaky.yaml:3: step 2 (expect): seen nothing" },
	{ "t/flaky~x=1~r3", "skip", 0, "not run: an earlier case failed (--fail-fast or --keep)" },
	{ "t/once~r=5", "pass", 5, "" },
};

static json_t *case_of(const struct entry *e)
{
	json_t *phases = json_array();

	if (e->error_ms)
		json_array_append_new(phases, json_pack("{s:i,s:s,s:s,s:s,s:I}", "step", 4, "path", "reset", "since", "fault",
							"fault", "dry", "error_ns", (json_int_t)e->error_ms * 1000000));
	return json_pack("{s:s,s:s,s:{},s:{},s:{s:s,s:s,s:s,s:s,s:I,s:[],s:o}}", "case", e->id, "dir", "x", "plan", "result",
			 "verdict", "case", e->id, "verdict", e->verdict, "headline", e->headline, "seen", "a SUCCESS",
			 "duration_ns", (json_int_t)(strcmp(e->verdict, "skip") ? 1000000 : 0), "findings", "phases", phases);
}

static struct report_run run_new(void)
{
	struct report_run run = { .dir = "runs/x", .run = json_pack("{s:s}", "id", "x"), .cases = json_array() };

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		json_array_append_new(run.cases, case_of(&entries[i]));
	return run;
}

static void run_done(struct report_run *run)
{
	json_decref(run->run);
	json_decref(run->cases);
}

static void repetitions_are_put_together(void)
{
	struct report_run run = run_new();
	json_t *repeats = report_repeats(&run), *firm, *flaky, *error;
	char text[128];

	CU_ASSERT_EQUAL_FATAL(json_array_size(repeats), 2);
	firm = json_array_get(repeats, 0);
	flaky = json_array_get(repeats, 1);
	CU_ASSERT_STRING_EQUAL(json_str(firm, "case"), "t/firm");
	CU_ASSERT_FALSE(json_bool(firm, "flaky", true));
	CU_ASSERT_STRING_EQUAL(report_verdicts(firm, text, sizeof(text)), "3 pass");
	error = json_object_get(json_object_get(firm, "phases"), "error");
	CU_ASSERT_EQUAL(json_int(error, "n", 0), 3);
	CU_ASSERT_EQUAL(json_int(error, "min_ns", 0), 10000000);
	CU_ASSERT_EQUAL(json_int(error, "median_ns", 0), 20000000);
	CU_ASSERT_EQUAL(json_int(error, "p99_ns", 0), 30000000);
	CU_ASSERT_STRING_EQUAL(json_str(flaky, "case"), "t/flaky~x=1");
	CU_ASSERT_TRUE(json_bool(flaky, "flaky", false));
	CU_ASSERT_EQUAL(json_int(flaky, "repeat", 0), 3);
	CU_ASSERT_EQUAL(json_int(flaky, "ran", 0), 2);
	CU_ASSERT_STRING_EQUAL(report_verdicts(flaky, text, sizeof(text)), "1 pass, 1 fail");
	json_decref(repeats);
	run_done(&run);
}

static void formats_name_what_is_flaky(void)
{
	static const struct {
		const char *format;
		const char *has[6];
	} rows[] = {
		{ "text",
		  { "t/firm x 3", "repeated t/firm: 3 pass\n", "error     min 10.0 ms, median 20.0 ms, p99 30.0 ms",
		    "flaky    t/flaky~x=1: 1 pass, 1 fail, 1 not run\n", "fail          t/flaky~x=1~r2", "t/once~r=5 " } },
		{ "junit",
		  { "name=\"t/firm~r3\"", "t/firm: repeated: 3 pass\n", "t/flaky~x=1: flaky: 1 pass, 1 fail\n",
		    "t/firm: error: min 10000000 ns, median 20000000 ns, p99 30000000 ns" } },
		{ "json", { "\"repeats\": [", "\"flaky\": true", "\"case\": \"t/firm~r3\"" } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct report_run run = run_new();
		char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);
		struct error e = { "" };

		MUST(out != NULL);
		CU_ASSERT(report_find(rows[i].format)->write(&run, out, false, &e) == 0);
		fclose(out);
		for (size_t k = 0; k < 6 && rows[i].has[k]; k++)
			ROW_ASSERT(strstr(text, rows[i].has[k]) != NULL, "%s: without \"%s\":\n%s", rows[i].format, rows[i].has[k],
				   text);
		free(text);
		run_done(&run);
	}
}

static const struct test_case cases[] = {
	{ "repetitions are put together", repetitions_are_put_together },
	{ "formats name what is flaky", formats_name_what_is_flaky },
};

TEST_MAIN("repeat", cases)
