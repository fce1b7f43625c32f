/* SPDX-License-Identifier: MIT */
#include "run.h"

#include "commands.h"
#include "run_rig.h"

static const char needs_new[] = "qpdrill: 1\ntitle: t\nrequires: [\"kernel >= 99\"]\nsteps:\n  - connect:\n";
static const char faulty[] = "qpdrill: 1\ntitle: t\nsteps:\n  - conect:\n";

static const struct exit_row {
	const char *names[5];
	int status;
	const char *results;
} exit_rows[] = {
	{ { "a-pass", "b-pass" }, 0, "t/a-pass=pass t/b-pass=pass" },
	{ { "a-pass", "b-deviation" }, 0, "t/a-pass=pass t/b-deviation=deviation" },
	{ { "a-fail", "b-pass" }, 1, "t/a-fail=fail t/b-pass=pass" },
	{ { "a-inconclusive", "b-pass" }, 3, "t/a-inconclusive=inconclusive t/b-pass=pass" },
	{ { "a-error", "b-fail" }, 1, "t/a-error=error t/b-fail=fail" },
	{ { "a-error", "b-pass" }, 3, "t/a-error=error t/b-pass=pass" },
	{ { "a-wired", "b-wired" }, 77, "t/a-wired=skip t/b-wired=skip" },
	{ { "a-pass", "b-wired", "c-pass" }, 0, "t/a-pass=pass t/b-wired=skip t/c-pass=pass" },
	{ { "a-wired", "b-new", "c-wired", "d-pass" }, 0, "t/a-wired=skip t/b-new=skip t/c-wired=skip t/d-pass=pass" },
	{ { "a-unjudgeable", "b-pass" }, 3, "t/a-unjudgeable=error t/b-pass=pass" },
};

static void test_exit_status(void)
{
	for (size_t i = 0; i < sizeof(exit_rows) / sizeof(*exit_rows); i++) {
		const struct exit_row *r = &exit_rows[i];
		struct run_options o = { .out = NULL };
		int status;

		setup();
		for (int k = 0; k < 5 && r->names[k]; k++)
			put(r->names[k], strstr(r->names[k], "wired") ? wired : strstr(r->names[k], "new") ? needs_new : good);
		status = run_with(&o);
		ROW_ASSERT(status == r->status, "%s: exit status %d, expected %d", r->results, status, r->status);
		check_results(r->results, r->results);
		teardown();
	}
}

/* A skip for want of what is required fails; others stay skips. */
static void test_required(void)
{
	static const struct {
		const char *require;
		int status;
		const char *results;
	} rows[] = {
		{ "srq", 0, "t/a-wired=skip t/b-new=skip t/c-pass=pass" },
		{ "xrc", EXIT_FAILED, "t/a-wired=fail t/b-new=skip t/c-pass=pass" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct run_options o = { .require = &rows[i].require, .n_require = 1 };
		int status;

		setup();
		put("a-wired", wired);
		put("b-new", needs_new);
		put("c-pass", good);
		status = run_with(&o);
		ROW_ASSERT(status == rows[i].status, "%s: exit status %d, expected %d", rows[i].results, status, rows[i].status);
		check_results(rows[i].results, rows[i].results);
		teardown();
	}
}

/* Whoever found that it is not there: plan, runner or controller. */
static void test_required_by_reason(void)
{
	static const struct {
		const char *verdict, *reason, *plan;
		bool fails;
	} rows[] = {
		{ "skip", "needs ud, which the device does not have", "{}", true },
		{ "skip", "fault ah_destroyed needs ud: this build's agents make none", "{}", true },
		{ "skip", "needs udx, which nothing here provides", "{}", false },
		{ "skip", "needs srq, which the device does not have", "{\"requires\":[\"ud\",\"srq\"]}", false },
		{ "skip", "the run was stopped", "{\"requires\":[\"ud\"]}", false },
		{ "fail", "needs ud, which the device does not have", "{}", false },
		{ "pass", "", "{\"requires\":[\"ud\"]}", false },
	};
	static const char *const require[] = { "ud" };
	const struct run_options o = { .require = require, .n_require = 1 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		json_t *plan = json_loads(rows[i].plan, 0, NULL), *failed;
		json_t *verdict = json_pack("{s:s,s:s,s:[]}", "verdict", rows[i].verdict, "headline", rows[i].reason, "findings");

		failed = run_require(&o, plan, verdict);
		ROW_ASSERT(!!failed == rows[i].fails, "%s: %s", rows[i].verdict, rows[i].reason);
		if (failed) {
			CU_ASSERT_STRING_EQUAL(json_str(failed, "verdict"), "fail");
			CU_ASSERT_PTR_NOT_NULL(strstr(json_str(failed, "headline"), rows[i].reason));
			CU_ASSERT_EQUAL(json_array_size(json_object_get(failed, "findings")), 1);
		}
		json_decref(failed);
		json_decref(verdict);
		json_decref(plan);
	}
}

static json_t *run_json(void)
{
	struct error e = { "" };
	json_t *run = NULL;
	char path[256];

	snprintf(path, sizeof(path), "%s/runs/latest/run.json", base);
	CU_ASSERT_EQUAL(json_load(path, &run, &e), 0);
	return run;
}

/* Hours run when somebody asks for them, and it is told that they did not. */
static void test_left_out(void)
{
	static const char soak[] = "qpdrill: 1\ntitle: t\ntags: [core, soak]\nsteps:\n  - connect:\n";
	static const struct {
		const char *glob;
		bool all, by_file;
		size_t ran, left_out;
	} rows[] = {
		{ NULL, false, false, 1, 1 },   { NULL, true, false, 2, 0 },        { NULL, false, true, 1, 0 },
		{ "soak", false, false, 1, 0 }, { "t/a-pass", false, false, 1, 0 }, { "t/*", false, false, 2, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct run_options o = { .select = &rows[i].glob, .n_select = rows[i].glob != NULL, .all = rows[i].all };
		char path[256];
		const char *paths[] = { path };
		json_t *run;

		setup();
		put("a-pass", soak);
		put("b-pass", good);
		snprintf(path, sizeof(path), "%s/scenarios/t/a-pass.yaml", base);
		o.paths = rows[i].by_file ? paths : NULL;
		o.n_paths = rows[i].by_file;
		ROW_ASSERT(run_with(&o) == 0 && ran == rows[i].ran, "row %zu: %zu ran", i, ran);
		run = run_json();
		ROW_ASSERT(json_int(json_object_get(run, "left_out"), "soak", 0) == (json_int_t)rows[i].left_out, "row %zu", i);
		json_decref(run);
		teardown();
	}
	setup();
	put("a-pass", soak);
	CU_ASSERT(run_with(&(struct run_options){ .out = NULL }) == EXIT_ERROR);
	CU_ASSERT(ran == 0);
	teardown();
}

static void test_nothing_to_run(void)
{
	const char *globs[] = { "nothing/like/it" }, *quick[] = { "qui*" };
	struct run_options o = { .out = NULL };

	setup();
	put("a-pass", good);
	o.select = globs;
	o.n_select = 1;
	CU_ASSERT(run_with(&o) == EXIT_ERROR);
	CU_ASSERT(ran == 0);
	o.select = quick;
	CU_ASSERT(run_with(&o) == 0);
	CU_ASSERT(ran == 1);
	teardown();
	setup();
	put("a-pass", good);
	o.n_select = 0;
	o.paths = (const char *[]){ base };
	o.n_paths = 1;
	nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	CU_ASSERT(mkdir(base, 0777) == 0);
	CU_ASSERT(run_with(&o) == EXIT_ERROR);
	o.paths = (const char *[]){ "/nonexistent/x.yaml" };
	o.n_paths = 1;
	CU_ASSERT(run_with(&o) == EXIT_USAGE);
	CU_ASSERT(ran == 0);
	teardown();
}

static void test_faulty_files(void)
{
	struct run_options o = { .out = NULL };
	const char *set[] = { "qp.tmieout=1", NULL };
	char path[128];

	setup();
	put("a-pass", good);
	put("b-pass", faulty);
	CU_ASSERT(run_with(&o) == EXIT_USAGE);
	put("b-pass", good);
	o.set = set;
	CU_ASSERT(run_with(&o) == EXIT_USAGE);
	CU_ASSERT(ran == 0);
	snprintf(path, sizeof(path), "%s/runs", base);
	CU_ASSERT(access(path, F_OK) < 0);
	teardown();
}

static void test_stops_early(void)
{
	struct run_options o = { .fail_fast = true };

	setup();
	put("a-pass", good);
	put("b-fail", good);
	put("c-pass", good);
	CU_ASSERT(run_with(&o) == EXIT_FAILED);
	CU_ASSERT(ran == 2);
	check_results("--fail-fast", "t/a-pass=pass t/b-fail=fail t/c-pass=skip");
	teardown();

	setup();
	o.fail_fast = false;
	put("a-pass", good);
	put("b-pass", good);
	break_after = 1;
	CU_ASSERT(run_with(&o) == EXIT_ERROR);
	check_results("lab breaks", "t/a-pass=pass t/b-pass=error");
	teardown();

	setup();
	put("a-pass", good);
	raise_term = true;
	CU_ASSERT(run_with(&o) == EXIT_ERROR);
	check_results("SIGTERM", "t/a-pass=error");
	teardown();
}

/* nohup: whoever hangs up does not end it. A shell has the others ignored too, of what it puts into the background. */
static void test_ignored(void)
{
	static const struct {
		int number;
		bool ignored, ends;
	} rows[] = { { SIGHUP, true, false }, { SIGHUP, false, true }, { SIGINT, true, true },
		     { SIGINT, false, true }, { SIGTERM, true, true }, { SIGTERM, false, true } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		void (*before)(int) = signal(rows[i].number, rows[i].ignored ? SIG_IGN : SIG_DFL);
		struct run_stop stop = { .progress = &(struct progress){ .out = stderr } };
		struct error e = { "" };
		sd_event *loop = NULL;
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		CU_ASSERT_FATAL(sd_event_new(&loop) >= 0 && run_stop_open(&stop, loop, 0, &e) == 0);
		raise(rows[i].number);
		CU_ASSERT(sd_event_run(loop, 0) >= 0);
		ROW_ASSERT(stop.now == rows[i].ends, "%s, ignored %d", strsignal(rows[i].number), rows[i].ignored);
		sd_event_unref(loop);
		signal(rows[i].number, before);
	}
}

static void test_folder(void)
{
	struct run_options o = { .repeat = 2 };
	struct error e = { "" };
	json_t *run = NULL;
	char path[256], first[128] = "", second[128] = "";
	struct stat st;

	setup();
	put("a-pass", good);
	CU_ASSERT(run_with(&o) == 0);
	check_results("--repeat", "t/a-pass~r1=pass t/a-pass~r2=pass");
	snprintf(path, sizeof(path), "%s/runs/latest", base);
	CU_ASSERT(readlink(path, first, sizeof(first) - 1) > 0);
	snprintf(path, sizeof(path), "%s/runs/latest/run.json", base);
	CU_ASSERT_FATAL(json_load(path, &run, &e) == 0);
	CU_ASSERT(json_int(run, "schema", 0) == 1 && json_u64(run, "seed", 0) == 7 && json_int(run, "exit", -1) == 0);
	CU_ASSERT_STRING_EQUAL(json_str(run, "kernel"), "6.1.0-99-amd64");
	CU_ASSERT_STRING_EQUAL(json_str(run, "lab"), "fake");
	CU_ASSERT_STRING_EQUAL(json_str(run, "narrowed"), " --repeat 2");
	CU_ASSERT(json_object_size(json_object_get(run, "hashes")) >= 1);
	CU_ASSERT(json_array_size(json_object_get(run, "cases")) == 2);
	json_decref(run);
	for (const char *const *f =
		     (const char *const[]){ "junit.xml", "report.json", "cases/t/a-pass~r1/plan.json",
					    "cases/t/a-pass~r2/scenario.yaml", "cases/t/a-pass~r1/verdict.json", NULL };
	     *f; f++) {
		snprintf(path, sizeof(path), "%s/runs/latest/%s", base, *f);
		ROW_ASSERT(stat(path, &st) == 0 && st.st_size > 0, "%s", path);
	}
	CU_ASSERT(run_with(&o) == 0);
	snprintf(path, sizeof(path), "%s/runs/latest", base);
	CU_ASSERT(readlink(path, second, sizeof(second) - 1) > 0);
	CU_ASSERT_STRING_NOT_EQUAL(first, second);
	snprintf(path, sizeof(path), "%s/runs/%s/results.jsonl", base, first);
	CU_ASSERT(access(path, R_OK) == 0);
	/* A case is called the same, whichever folder was asked for. */
	snprintf(path, sizeof(path), "%s/scenarios/t", base);
	o.paths = (const char *[]){ path };
	o.n_paths = 1;
	CU_ASSERT(run_with(&o) == 0);
	check_results("a folder of the folder", "t/a-pass~r1=pass t/a-pass~r2=pass");
	o.out = "/proc/nowhere";
	CU_ASSERT(run_with(&o) == EXIT_ERROR);
	teardown();
}

static void test_deadline(void)
{
	struct run_options o = { .deadline_ns = 1000000 };

	setup();
	put("a-pass", good);
	put("b-pass", good);
	wait_for_stop = true;
	CU_ASSERT(run_with(&o) == EXIT_ERROR);
	check_results("--deadline", "t/a-pass=error t/b-pass=error");
	teardown();
}

static void test_profile(void)
{
	char path[256], *found;
	FILE *out;

	setup();
	put("a-pass", good);
	snprintf(path, sizeof(path), "%s/scenarios/profiles", base);
	CU_ASSERT(mkdir(path, 0777) == 0);
	snprintf(path, sizeof(path), "%s/scenarios/profiles/odd.yaml", base);
	out = fopen(path, "w");
	fputs("[]\n", out);
	fclose(out);
	snprintf(path, sizeof(path), "%s/scenarios/t/a-pass.yaml", base);
	found = run_profile_find(path, "odd");
	CU_ASSERT(found && strstr(found, "/scenarios/profiles/odd.yaml"));
	free(found);
	CU_ASSERT_PTR_NULL(run_profile_find(path, "nobody"));
	teardown();
}

static const struct dir_row {
	const char *id, *dir;
} dir_rows[] = {
	{ "core/x~size=64", "cases/core/x~size=64" },
	{ "core/x~t=1.5ms", "cases/core/x~t=1.5ms" },
	{ "a/../../etc", "cases/a/_./_./etc" },
	{ "a b\n*$", "cases/a_b___" },
};

static void test_case_dir(void)
{
	for (size_t i = 0; i < sizeof(dir_rows) / sizeof(*dir_rows); i++) {
		char *dir = run_case_dir(dir_rows[i].id);

		ROW_ASSERT(!strcmp(dir, dir_rows[i].dir), "%s: %s", dir_rows[i].id, dir);
		free(dir);
	}
}

static const struct test_case cases[] = {
	{ "a skip for want of what is required", test_required },
	{ "whoever found that it is not there", test_required_by_reason },
	{ "exit status and order", test_exit_status },
	{ "what is left out", test_left_out },
	{ "nothing to run", test_nothing_to_run },
	{ "faulty files", test_faulty_files },
	{ "stops early", test_stops_early },
	{ "signals that are ignored", test_ignored },
	{ "folder", test_folder },
	{ "deadline", test_deadline },
	{ "profile", test_profile },
	{ "case folders", test_case_dir },
};

TEST_MAIN("run", cases)
