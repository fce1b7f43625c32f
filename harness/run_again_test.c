/* SPDX-License-Identifier: MIT */
/* Which cases run: what follows from a first pass, a part of them, what failed before, and what is to run once more. */
#include "commands.h"
#include "run_rig.h"

static const char swept[] = "qpdrill: 1\ntitle: t\ntags: [quick]\nrequires: [wire]\n"
			    "sweep: { k: { packets: {} }, op: [SEND, READ] }\nsteps:\n"
			    "  - fault: { wire: { match: \"${k}\", action: drop, times: 1 }, as: f }\n"
			    "  - connect:\n  - post: { at: a, op: \"${op}\" }\n";

/* Cases in the order of run.json, which is that of the reports; what ran, in the order of results.jsonl. */
static void check_listed(const char *what, const char *expected)
{
	char path[256], seen[1024] = "";
	struct error e = { "" };
	json_t *run = NULL;
	const json_t *c;
	size_t i;

	snprintf(path, sizeof(path), "%s/runs/latest/run.json", base);
	if (json_load(path, &run, &e))
		run = NULL;
	json_array_foreach(json_object_get(run, "cases"), i, c)
		snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%s%s", i ? " " : "", json_str(c, "case"));
	ROW_ASSERT(!strcmp(seen, expected), "%s: expected '%s', listed '%s'", what, expected, seen);
	json_decref(run);
}

static const struct follow_row {
	const char *glob;
	unsigned repeat;
	const char *listed;
} follow_rows[] = {
	{ "t/b-pass*", 1,
	  "t/b-pass~k=first-pass~op=SEND t/b-pass~k=a.request.0~op=SEND t/b-pass~k=b.ack.3~op=SEND "
	  "t/b-pass~k=first-pass~op=READ t/b-pass~k=a.request.0~op=READ t/b-pass~k=b.ack.3~op=READ" },
	{ "t/b-pass~k=b.ack.3~op=READ", 1, "t/b-pass~k=first-pass~op=READ t/b-pass~k=b.ack.3~op=READ" },
	{ "*~k=[b-z].*~op=S???", 1, "t/b-pass~k=first-pass~op=SEND t/b-pass~k=b.ack.3~op=SEND" },
	{ "*a.request.[0-9]~op=SEND", 2,
	  "t/b-pass~k=first-pass~op=SEND~r1 t/b-pass~k=a.request.0~op=SEND~r1 "
	  "t/b-pass~k=first-pass~op=SEND~r2 t/b-pass~k=a.request.0~op=SEND~r2" },
	/* Not found, but asked for by name: it runs, and its verdict says what it proves. */
	{ "t/b-pass~k=p.a.nak.77~op=SEND", 1, "t/b-pass~k=first-pass~op=SEND t/b-pass~k=p.a.nak.77~op=SEND" },
	{ "*.request.1*~op=SEND", 1, "t/b-pass~k=first-pass~op=SEND" },
	{ "*a.*.*[0-9]~op=SEN?", 1, "t/b-pass~k=first-pass~op=SEND t/b-pass~k=a.request.0~op=SEND" },
	{ "*******************************************b.ack.3~op=READ", 1,
	  "t/b-pass~k=first-pass~op=READ t/b-pass~k=b.ack.3~op=READ" },
	{ "t*~*~*~*~*~*~*~*~*~*~*~*~*~*~*~*~*~*~*~*~*~*~*~*~*~*~*", 1, NULL },
	{ "*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?*?never", 1, NULL },
	{ "*first-pass~op=READ", 1, "t/b-pass~k=first-pass~op=READ" },
	{ "quick", 1,
	  "t/a-pass t/b-pass~k=first-pass~op=SEND t/b-pass~k=a.request.0~op=SEND t/b-pass~k=b.ack.3~op=SEND "
	  "t/b-pass~k=first-pass~op=READ t/b-pass~k=a.request.0~op=READ t/b-pass~k=b.ack.3~op=READ t/c-pass" },
};

static void test_follow(void)
{
	for (size_t i = 0; i < sizeof(follow_rows) / sizeof(*follow_rows); i++) {
		const struct follow_row *r = &follow_rows[i];
		struct run_options o = { .select = &r->glob, .n_select = 1, .repeat = r->repeat };

		setup();
		put("a-pass", good);
		put("b-pass", swept);
		put("c-pass", good);
		ROW_ASSERT(run_with(&o) == (r->listed ? 0 : EXIT_ERROR), "%s", r->glob);
		if (r->listed)
			check_listed(r->glob, r->listed);
		teardown();
	}
}

/* Only a first pass that passed has anything that follows; what follows stands in results.jsonl as it ran. */
static void test_follow_nothing(void)
{
	static const char *const unlike[] = { "*.request.0~op=NEVER", "*none*" };
	struct run_options o = { .out = NULL };

	setup();
	put("a-pass", swept);
	put("b-fail", swept);
	CU_ASSERT(run_with(&o) == EXIT_FAILED);
	check_results("first passes first", "t/a-pass~k=first-pass~op=SEND=pass t/a-pass~k=first-pass~op=READ=pass "
					    "t/b-fail~k=first-pass~op=SEND=fail t/b-fail~k=first-pass~op=READ=fail "
					    "t/a-pass~k=a.request.0~op=SEND=pass t/a-pass~k=b.ack.3~op=SEND=pass "
					    "t/a-pass~k=a.request.0~op=READ=pass t/a-pass~k=b.ack.3~op=READ=pass");
	for (size_t i = 0; i < sizeof(unlike) / sizeof(*unlike); i++) {
		o.select = &unlike[i];
		o.n_select = 1;
		ROW_ASSERT(run_with(&o) == EXIT_ERROR, "%s", unlike[i]);
	}
	teardown();
}

/* Each case is in one part, and the same in every run. */
static void test_shards(void)
{
	struct run_options o = { .shards = 3 };
	size_t all = 0;

	setup();
	for (int i = 0; i < 8; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%c-pass", 'a' + i);
		put(name, good);
	}
	for (o.shard = 1; o.shard <= o.shards; o.shard++) {
		size_t before = ran;

		CU_ASSERT(run_with(&o) == 0);
		ROW_ASSERT(ran > before, "part %u of %u is empty", o.shard, o.shards);
		all += ran - before;
	}
	CU_ASSERT(all == 8);
	CU_ASSERT(run_in_shard("t/a-pass", 1, 1) && run_in_shard("t/a-pass", 0, 0));
	CU_ASSERT(run_in_shard("access/wrong-lkey", 1, 2) != run_in_shard("access/wrong-lkey", 2, 2));
	teardown();
}

static void put_json(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");

	CU_ASSERT_FATAL(out && fputs(text, out) >= 0 && !fclose(out));
}

/* "t/a t/b": what is to run again of the latest run. */
static void check_failed(const char *what, const char *expected)
{
	struct run_failed f = { 0 };
	struct error e = { "" };
	char path[256], seen[1024] = "";

	snprintf(path, sizeof(path), "%s/runs/latest", base);
	ROW_ASSERT(run_failed_load(path, &f, &e) == 0, "%s: %s", what, e.text);
	for (size_t i = 0; i < f.n; i++)
		snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%s%s", i ? " " : "", f.globs[i]);
	ROW_ASSERT(!strcmp(seen, expected), "%s: expected '%s', seen '%s'", what, expected, seen);
	run_failed_release(&f);
}

static void test_failed_again(void)
{
	struct run_options o = { .out = NULL };
	struct error e = { "" };
	struct run_failed f = { 0 };
	char path[256];

	setup();
	put("a-pass", good);
	put("b-fail", good);
	put("c-deviation", good);
	put("d-error", good);
	put("e-wired", wired);
	o.repeat = 2;
	CU_ASSERT(run_with(&o) == EXIT_FAILED);
	check_failed("all", "t/b-fail t/d-error");
	snprintf(path, sizeof(path), "%s/runs/latest", base);
	CU_ASSERT_FATAL(run_failed_load(path, &f, &e) == 0);
	CU_ASSERT(json_u64(f.run, "seed", 0) == 7 && json_array_size(json_object_get(f.run, "paths")) == 1);
	CU_ASSERT(f.all == 10 && f.skipped == 2);
	o.select = (const char *const *)f.globs;
	o.n_select = f.n;
	o.repeat = 1;
	CU_ASSERT(run_with(&o) == EXIT_FAILED);
	check_results("--rerun-failed", "t/b-fail=fail t/d-error=error");
	run_failed_release(&f);
	CU_ASSERT(run_failed_load("/nowhere", &f, &e) < 0);
	teardown();
}

/* Of a first pass without a result all that follows from it, where it has not followed already. */
static void test_failed_first_pass(void)
{
	struct run_options o = { .out = NULL };
	struct run_failed f = { 0 };
	char path[256];

	setup();
	put("a-pass", swept);
	put("b-error", swept);
	put("c-pass", good);
	CU_ASSERT(run_with(&o) == EXIT_ERROR);
	check_failed("passes", "t/b-error~k=*~op=SEND t/b-error~k=*~op=READ");
	snprintf(path, sizeof(path), "%s/runs/latest/cases/t/a-pass~k=first-pass~op=SEND/verdict.json", base);
	put_json(path, "{\"verdict\":\"error\"}");
	snprintf(path, sizeof(path), "%s/runs/latest/cases/t/a-pass~k=b.ack.3~op=READ/verdict.json", base);
	put_json(path, "{\"verdict\":\"fail\"}");
	check_failed("what followed", "t/a-pass~k=first-pass~op=SEND t/a-pass~k=b.ack.3~op=READ t/b-error~k=*~op=SEND "
				      "t/b-error~k=*~op=READ");
	teardown();

	setup();
	put("a-pass", swept);
	break_after = 1;
	o.repeat = 2;
	CU_ASSERT(run_with(&o) == EXIT_ERROR);
	check_failed("passes repeated", "t/a-pass~k=a.request.0~op=SEND t/a-pass~k=b.ack.3~op=SEND t/a-pass~k=*~op=SEND "
					"t/a-pass~k=*~op=READ");
	break_after = 0;
	snprintf(path, sizeof(path), "%s/runs/latest", base);
	CU_ASSERT_FATAL(run_failed_load(path, &f, &(struct error){ "" }) == 0);
	o = (struct run_options){ .select = (const char *const *)f.globs, .n_select = f.n };
	CU_ASSERT(run_with(&o) == 0);
	check_listed("passes again", "t/a-pass~k=first-pass~op=SEND t/a-pass~k=a.request.0~op=SEND t/a-pass~k=b.ack.3~op=SEND "
				     "t/a-pass~k=first-pass~op=READ t/a-pass~k=a.request.0~op=READ t/a-pass~k=b.ack.3~op=READ");
	run_failed_release(&f);
	teardown();
}

/* A case that is not there any more is no pass, unless paths were given that leave it out. */
static void test_failed_gone(void)
{
	static const char *const globs[] = { "t/a-pass", "t/gone" };
	static const struct {
		const char *other;
		bool part;
		int status;
	} rows[] = { { "b-pass", false, EXIT_ERROR }, { "b-pass", true, 0 }, { "gone", false, 0 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct run_options o = { .select = globs, .n_select = 2, .rerun = true, .rerun_part = rows[i].part };
		int status;

		setup();
		put("a-pass", good);
		put(rows[i].other, good);
		status = run_with(&o);
		ROW_ASSERT(status == rows[i].status, "row %zu: exit status %d", i, status);
		o.rerun = false;
		ROW_ASSERT(run_with(&o) == (strcmp(rows[i].other, "gone") ? EXIT_ERROR : 0), "row %zu", i);
		teardown();
	}
}

/* A skip for want of something is good, one because the run ended early is none. */
static void test_failed_unrun(void)
{
	struct run_options o = { .fail_fast = true };
	json_t *lines;

	setup();
	put("a-wired", wired);
	put("b-fail", good);
	put("c-pass", good);
	CU_ASSERT(run_with(&o) == EXIT_FAILED);
	check_results("--fail-fast", "t/a-wired=skip t/b-fail=fail t/c-pass=skip");
	check_failed("--fail-fast", "t/b-fail t/c-pass");
	lines = results();
	CU_ASSERT(!json_object_get(json_array_get(lines, 0), "unrun"));
	CU_ASSERT(json_bool(json_array_get(lines, 2), "unrun", false));
	json_decref(lines);
	teardown();
}

/* What a case's folder says counts, not what results.jsonl said once: judged anew, or never come to. */
static void test_failed_by_verdict(void)
{
	char path[256];

	setup();
	put("a-pass", good);
	put("b-fail", good);
	put("c-pass", good);
	CU_ASSERT(run_with(&(struct run_options){ .out = NULL }) == EXIT_FAILED);
	check_failed("as it ran", "t/b-fail");
	snprintf(path, sizeof(path), "%s/runs/latest/cases/t/b-fail/verdict.json", base);
	put_json(path, "{\"verdict\":\"deviation\"}");
	check_failed("judged anew", "");
	snprintf(path, sizeof(path), "%s/runs/latest/cases/t/c-pass/verdict.json", base);
	CU_ASSERT(unlink(path) == 0);
	check_failed("killed", "t/c-pass");
	put_json(path, "{\"verdict\":");
	check_failed("damaged", "t/c-pass");
	snprintf(path, sizeof(path), "%s/runs/latest/run.json", base);
	put_json(path, "{\"cases\":[]}");
	*strrchr(path, '/') = '\0';
	CU_ASSERT(run_failed_load(path, &(struct run_failed){ 0 }, &(struct error){ "" }) < 0);
	teardown();
}

/* What came by standard input is kept, and the command that repeats the run reads that: the case is called the same, wherever the
 * run folder lies. */
static void test_stdin_again(void)
{
	const char *stdin_path[] = { "-" }, *kept[1];
	struct run_options o = { .paths = stdin_path, .n_paths = 1, .select = (const char *[]){ "stdin" }, .n_select = 1 };
	struct error e = { "" };
	char path[256], out[256], text[600];
	json_t *run = NULL;

	setup();
	put("a-pass", good);
	snprintf(path, sizeof(path), "%s/scenarios/t/a-pass.yaml", base);
	CU_ASSERT_FATAL(freopen(path, "r", stdin) != NULL);
	o.repeat_options = " --seed 0x7";
	snprintf(out, sizeof(out), "%s/scenarios/runs", base);
	snprintf(path, sizeof(path), "%s/runs", base);
	CU_ASSERT_FATAL(symlink("scenarios/runs", path) == 0);
	o.out = out;
	CU_ASSERT(run_with(&o) == 0);
	check_results("-", "stdin=pass");
	snprintf(path, sizeof(path), "%s/runs/latest/run.json", base);
	CU_ASSERT_FATAL(json_load(path, &run, &e) == 0);
	kept[0] = json_string_value(json_array_get(json_object_get(run, "paths"), 0));
	CU_ASSERT_FATAL(kept[0] && strstr(kept[0], "/stdin.yaml"));
	snprintf(text, sizeof(text), "qpdrill run %s --seed 0x7", kept[0]);
	CU_ASSERT_STRING_EQUAL(json_str(run, "repeat"), text);
	CU_ASSERT_STRING_EQUAL(json_str(run, "narrowed"), " --select stdin");
	o.paths = kept;
	CU_ASSERT(run_with(&o) == 0);
	check_results(kept[0], "stdin=pass");
	/* It is at its end. */
	o.paths = stdin_path;
	CU_ASSERT(run_with(&o) == EXIT_USAGE);
	json_decref(run);
	teardown();
}

static const struct again_row {
	struct fake_end end;
	const char *name;
	int status;
	size_t runs;
} again_rows[] = {
	{ { EXECUTOR_OWN, true, "500000000" }, "a-pass", 0, 1 },
	{ { EXECUTOR_OWN, true, "1000000" }, "a-fail", EXIT_FAILED, 1 },
	{ { EXECUTOR_OWN, true, "500000000" }, "a-fail", EXIT_FAILED, 2 },
	{ { EXECUTOR_OWN, false, "500000000" }, "a-fail", EXIT_FAILED, 1 },
	{ { EXECUTOR_OWN, true, NULL }, "a-fail", EXIT_FAILED, 2 },
	/* What could not be judged, however punctual the machine was. */
	{ { EXECUTOR_OWN, true, "1000000" }, "a-inconclusive", EXIT_ERROR, 2 },
	{ { EXECUTOR_OWN, false, "1000000" }, "a-inconclusive", EXIT_ERROR, 1 },
	{ { EXECUTOR_OWN, true, "500000000" }, "a-kernel-fail", EXIT_FAILED, 1 },
	{ { EXECUTOR_OWN, true, "500000000" }, "a-ledger-fail", EXIT_FAILED, 1 },
	{ { EXECUTOR_OWN, true, "500000000" }, "a-recover-ledger-fail", EXIT_FAILED, 2 },
	{ { EXECUTOR_OWN, true, "500000000" }, "a-recover-payload-fail", EXIT_FAILED, 1 },
	{ { EXECUTOR_BESIDE, true, NULL }, "a-pass", 0, 2 },
	{ { EXECUTOR_ALONE, true, NULL }, "a-pass", EXIT_ERROR, 2 },
	{ { EXECUTOR_ALONE, true, NULL }, "a-kernel-fail", EXIT_FAILED, 2 },
};

static void test_runs_again(void)
{
	for (size_t i = 0; i < sizeof(again_rows) / sizeof(*again_rows); i++) {
		struct run_options o = { .out = NULL };
		char path[256];
		int status;

		setup();
		put(again_rows[i].name, good);
		first_end = &again_rows[i].end;
		status = run_with(&o);
		first_end = NULL;
		ROW_ASSERT(status == again_rows[i].status, "row %zu: exit status %d", i, status);
		ROW_ASSERT(ran == again_rows[i].runs, "row %zu: ran %zu times", i, ran);
		snprintf(path, sizeof(path), "%s/runs/latest/cases/t/%s/observations-1.jsonl", base, again_rows[i].name);
		ROW_ASSERT((access(path, R_OK) == 0) == (again_rows[i].end.late && again_rows[i].runs == 2), "row %zu", i);
		teardown();
	}
}

static const struct test_case cases[] = {
	{ "what follows from a first pass", test_follow },
	{ "what follows from none", test_follow_nothing },
	{ "shards", test_shards },
	{ "what failed, again", test_failed_again },
	{ "a first pass that failed, again", test_failed_first_pass },
	{ "what was not come to, again", test_failed_unrun },
	{ "what failed and is gone", test_failed_gone },
	{ "what failed, by its verdict", test_failed_by_verdict },
	{ "a scenario from standard input, run again", test_stdin_again },
	{ "runs again", test_runs_again },
};

TEST_MAIN("run_again", cases)
