/* SPDX-License-Identifier: MIT */
/* Scenarios below testdata/coverage become plans, and those what is in testdata/coverage/expected.txt. With QPDRILL_GOLDEN=write it
 * is written anew; look at the difference before you commit it. */
#include "coverage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "plan.h"
#include "scenario.h"
#include "test.h"

#define FOLDER "harness/testdata/coverage/"

static const char *const tables[NUM_REF_TABLES] = {
	"demands:\n"
	"  - { id: C9-105/send, says: \"once\" }\n"
	"  - { id: 9.4.5/alignment, says: \"aligned\" }\n"
	"  - { id: 9.7.5.2.8/spent, says: \"spent\" }\n"
	"  - { id: CA16-18, says: \"level\", part: \"drivers\" }\n"
	"  - { id: C17-9, says: \"none\", never: \"not here\" }\n",
	"seeds:\n"
	"  - { id: 004 4.3/RNR_RETRY_EXC_ERR, says: \"rnr\" }\n"
	"  - { id: 004 4.3/WR_FLUSH_ERR, says: \"flush\" }\n",
	"unreached:\n"
	"  - { id: status TM_ERR, says: \"tags\", never: \"no tags\" }\n",
	"field:\n"
	"  - { id: R20, says: \"slow\", source: \"a/b#1\" }\n"
	"  - { id: R31, says: \"keys\" }\n"
	"  - { id: R56, says: \"partitions\", never: \"one\" }\n",
};

static void add_plans(json_t *plans, const char *name)
{
	const struct plan_options o = { .seed = 1 };
	struct scenario s;
	struct diag d = { 0 };
	struct error e = { "" };
	char path[256];

	snprintf(path, sizeof(path), FOLDER "%s.yaml", name);
	int rc = scenario_load(path, name, &s, &d, &e);

	ROW_ASSERT(rc == 0, "%s: %s%s", path, d.text ? d.text : "", e.text);
	for (size_t i = 0; !rc && i < s.n_cases; i++) {
		json_t *plan = NULL;

		ROW_ASSERT(plan_make(&s.cases[i], &o, &plan, &e) == 0, "%s: %s", path, e.text);
		if (plan)
			json_array_append_new(plans, plan);
	}
	if (!rc)
		scenario_release(&s);
	diag_release(&d);
}

static json_t *make(const json_t *verdicts)
{
	static const char *const files[] = { "dry", "keys" };
	json_t *plans = json_array(), *coverage = NULL;
	struct error e = { "" };
	struct refs refs;

	MUST(refs_load_text(tables, &refs, &e) == 0);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		add_plans(plans, files[i]);
	MUST(coverage_make(plans, verdicts, &refs, &coverage, &e) == 0);
	refs_release(&refs);
	json_decref(plans);
	return coverage;
}

static const json_t *find(const json_t *rows, const char *key, const char *value)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
		if (json_str(row, key) && !strcmp(json_str(row, key), value))
			return row;
	return NULL;
}

static void check_golden(const char *text)
{
	const char *how = getenv("QPDRILL_GOLDEN");
	char was[32768] = "";
	FILE *f = fopen(FOLDER "expected.txt", how && !strcmp(how, "write") ? "we" : "re");

	MUST(f != NULL);
	if (how && !strcmp(how, "write"))
		fputs(text, f);
	else
		was[fread(was, 1, sizeof(was) - 1, f)] = '\0';
	fclose(f);
	ROW_ASSERT((how && !strcmp(how, "write")) || !strcmp(was, text), "%sexpected.txt differs, there is now:\n%s", FOLDER, text);
}

static void test_golden(void)
{
	json_t *verdicts = json_pack("{s:s,s:s}", "dry", "pass", "keys~rkey=wrong", "deviation"), *coverage = make(verdicts);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	MUST(out != NULL);
	/* Those that there are is another's table. */
	json_object_set_new(json_object_get(coverage, "holes"), "faults", json_pack("[{s:s}]", "name", "netem"));
	coverage_text(coverage, out);
	fclose(out);
	check_golden(text);
	free(text);
	json_decref(coverage);
	json_decref(verdicts);
}

/* The table once more in words, so that a golden file written anew cannot go wrong unseen. */
static void test_rows(void)
{
	json_t *coverage = make(NULL), *again = make(NULL);
	const json_t *rows = json_object_get(coverage, "rows"), *row = find(rows, "status", "RNR_RETRY_EXC_ERR");
	const json_t *demands = json_object_get(coverage, "demands");

	CU_ASSERT(json_equal(coverage, again));
	MUST(row != NULL);
	CU_ASSERT_STRING_EQUAL(json_str(row, "op"), "SEND");
	CU_ASSERT_STRING_EQUAL(json_str(row, "fault"), "missing_receive");
	CU_ASSERT_STRING_EQUAL(json_str(row, "recovery"), "reset");
	CU_ASSERT_EQUAL(json_int(row, "cases", 0), 1);
	row = find(rows, "fault", "(old rkey)");
	CU_ASSERT(row && !strcmp(json_str(row, "recovery"), "-") && !strcmp(json_str(row, "op"), "WRITE"));
	CU_ASSERT(find(json_object_get(coverage, "events"), "event", "QP_ACCESS_ERR") != NULL);
	CU_ASSERT_EQUAL(json_int(find(demands, "id", "9.7.5.2.8/spent"), "cases", 0), 1);
	CU_ASSERT_EQUAL(json_int(find(demands, "id", "9.4.5/alignment"), "cases", 9), 0);
	CU_ASSERT(!find(json_object_get(json_object_get(coverage, "holes"), "ops"), "name", "RC WRITE"));
	CU_ASSERT(find(json_object_get(json_object_get(coverage, "holes"), "ops"), "name", "RC READ") != NULL);
	CU_ASSERT(!find(json_object_get(json_object_get(coverage, "holes"), "faults"), "name", "missing_receive"));
	CU_ASSERT(find(json_object_get(json_object_get(coverage, "holes"), "faults"), "name", "netem") != NULL);
	json_decref(coverage);
	json_decref(again);
}

static void test_possible(void)
{
	static const struct {
		const char *transport, *op;
		bool is;
	} rows[] = {
		{ "RC", "READ", true },   { "UC", "READ", false }, { "UC", "WRITE", true }, { "UD", "SEND", true },
		{ "UD", "WRITE", false }, { "XRC", "READ", true }, { "C", "SEND", false },  { "RC", "NOTHING", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ROW_ASSERT(coverage_possible(rows[i].transport, rows[i].op) == rows[i].is, "%s %s", rows[i].transport, rows[i].op);
}

static const struct test_case cases[] = {
	{ "as a person reads it", test_golden },
	{ "rows, events, demands and holes", test_rows },
	{ "what verbs have", test_possible },
};

TEST_MAIN("coverage", cases)
