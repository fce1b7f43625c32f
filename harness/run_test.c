/* SPDX-License-Identifier: MIT */
/* The run with an executor that runs nothing and a judge that reads the verdict from the case's name: what is tested is the order,
 * the files and the exit status. */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"
#include "json.h"
#include "test.h"

static const char good[] = "qpdrill: 1\ntitle: t\ntags: [quick]\nsteps:\n  - connect:\n";
static const char wired[] = "qpdrill: 1\ntitle: t\nrequires: [xrc]\nsteps:\n  - connect:\n";
static const char needs_new[] = "qpdrill: 1\ntitle: t\nrequires: [\"kernel >= 99\"]\nsteps:\n  - connect:\n";
static const char faulty[] = "qpdrill: 1\ntitle: t\nsteps:\n  - conect:\n";

static const char swept[] = "qpdrill: 1\ntitle: t\ntags: [quick]\nrequires: [wire]\n"
			    "sweep: { k: { packets: {} }, op: [SEND, READ] }\nsteps:\n"
			    "  - fault: { wire: { match: \"${k}\", action: drop, times: 1 }, as: f }\n"
			    "  - connect:\n  - post: { at: a, op: \"${op}\" }\n";

static char base[64];
static size_t ran;
static size_t break_after; /* the executor fails after so many cases; 0: never */
static bool raise_term, wait_for_stop;
static const struct again_row *first_end; /* how the first case ends; NULL: as any */
static struct executor_end end_of_first(const char *dir);

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void setup(void)
{
	snprintf(base, sizeof(base), "/tmp/qpdrill-run-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(base));
	setenv("QPDRILL_CACHE", base, 1);
	ran = break_after = 0;
	raise_term = wait_for_stop = false;
}

static void teardown(void)
{
	nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *name, const char *text)
{
	char path[256];
	FILE *out;

	snprintf(path, sizeof(path), "%s/scenarios", base);
	mkdir(path, 0777);
	snprintf(path, sizeof(path), "%s/scenarios/t", base);
	mkdir(path, 0777);
	snprintf(path, sizeof(path), "%s/scenarios/t/%s.yaml", base, name);
	out = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	fputs(text, out);
	fclose(out);
}

static int fake_probe(struct error *e)
{
	(void)e;
	return 0;
}

static bool stopped(void *user)
{
	return *(const bool *)user;
}

static int fake_run(sd_event *loop, const struct executor_queue *queue, const struct executor_options *o, struct error *e)
{
	json_t *env = json_pack("{s:s,s:s,s:s,s:b}", "kernel", "6.1.0-99-amd64", "lab", "rxe", "provider", "rxe", "guest", 1);
	struct executor_end end;
	bool fresh;
	size_t i;

	o->on_environment(o->user, env);
	json_decref(env);
	while (o->next(o->user, &i, &fresh) == EXECUTOR_CASE) {
		if (break_after && ran == break_after)
			return error_set(e, -EIO, "the lab fell apart");
		if (raise_term) {
			kill(getpid(), SIGTERM);
			while (!stopped((void *)o->stop))
				sd_event_run(loop, UINT64_MAX);
			return error_set(e, -EINTR, "interrupted");
		}
		if (wait_for_stop) {
			while (!stopped((void *)o->stop))
				sd_event_run(loop, UINT64_MAX);
			return error_set(e, -EINTR, "interrupted");
		}
		CU_ASSERT(access(queue->cases[i].dir, R_OK) == 0);
		CU_ASSERT(queue->cases[i].budget_ns >= 10000000000ULL);
		o->on_start(o->user, i);
		o->on_step(o->user, i, 1, "connect");
		ran++;
		end = first_end && ran == 1 ? end_of_first(queue->cases[i].dir)
					    : (struct executor_end){ .boot = 1, .dur_ns = 1000000 };
		if (!o->on_done(o->user, i, &end))
			break;
	}
	return 0;
}

static const struct executor_ops fake = { .name = "fake", .probe = fake_probe, .run = fake_run };

static int fake_judge(const char *dir, const char *kernel, bool strict, json_t **ret, struct error *e)
{
	static const char *const names[] = { "pass", "deviation", "fail", "inconclusive", "error", "skip" };
	const char *name = strrchr(dir, '/') + 1, *verdict = "pass";
	json_t *plan = NULL;
	char path[512];

	(void)strict;
	CU_ASSERT(!strcmp(kernel, "6.1.0-99-amd64"));
	if (strstr(name, "unjudgeable"))
		return error_set(e, -EIO, "cannot be judged");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strstr(name, names[i]))
			verdict = names[i];
	snprintf(path, sizeof(path), "%s/plan.json", dir);
	CU_ASSERT_FATAL(json_load(path, &plan, e) == 0);
	if (json_str(plan, "skip"))
		verdict = "skip";
	*ret = json_pack("{s:s,s:s,s:s,s:i}", "verdict", verdict, "headline", json_str(plan, "skip") ? json_str(plan, "skip") : "h",
			 "seen", "s", "duration_ns", 5);
	if (json_object_get(plan, "first_pass"))
		json_object_set_new(*ret, "packets",
				    json_pack("[{s:s,s:s,s:i},{s:s,s:s,s:i}]", "from", "a", "class", "request", "psn", 0, "from",
					      "b", "class", "ack", "psn", 3));
	if (strstr(name, "kernel"))
		json_object_set_new(*ret, "findings", json_pack("[{s:s,s:s}]", "severity", "fail", "check", "kernel"));
	snprintf(path, sizeof(path), "%s/verdict.json", dir);
	CU_ASSERT(json_save(path, *ret, e) == 0);
	json_decref(plan);
	return 0;
}

static int run_with(struct run_options *o)
{
	char scenarios[128], out_dir[128];
	const char *paths[] = { scenarios };
	FILE *out = fopen("/dev/null", "w");
	int status;

	snprintf(scenarios, sizeof(scenarios), "%s/scenarios", base);
	snprintf(out_dir, sizeof(out_dir), "%s/runs", base);
	if (!o->paths) {
		o->paths = paths;
		o->n_paths = 1;
	}
	o->lab = "auto";
	o->accel = "auto";
	o->provider = "rxe";
	o->out = o->out ? o->out : out_dir;
	o->repeat = o->repeat ? o->repeat : 1;
	o->seed = 7;
	o->quiet = true;
	o->repeat_command = "qpdrill run x";
	o->executor = &fake;
	o->judge = fake_judge;
	status = run_main(o, out);
	fclose(out);
	o->paths = NULL;
	return status;
}

static json_t *results(void)
{
	char path[256];
	json_t *lines = NULL;
	struct error e = { "" };
	bool torn;

	snprintf(path, sizeof(path), "%s/runs/latest/results.jsonl", base);
	return json_load_lines(path, &lines, &torn, &e) ? NULL : lines;
}

/* "t/a=pass t/b=skip" */
static void check_results(const char *what, const char *expected)
{
	json_t *lines = results(), *line;
	char seen[1024] = "";
	size_t i;

	json_array_foreach(lines, i, line)
		snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%s%s=%s", i ? " " : "", json_str(line, "case"),
			 json_str(line, "verdict"));
	ROW_ASSERT(!strcmp(seen, expected), "%s: expected '%s', seen '%s'", what, expected, seen);
	json_decref(lines);
}

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
		ROW_ASSERT(run_with(&o) == 0, "%s", r->glob);
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

static void test_failed_again(void)
{
	struct run_options o = { .out = NULL };
	struct error e = { "" };
	json_t *run = NULL;
	char path[256], **globs = NULL;
	size_t n = 0;

	setup();
	put("a-pass", good);
	put("b-fail", good);
	put("c-deviation", good);
	put("d-error", good);
	put("e-wired", wired);
	o.repeat = 2;
	CU_ASSERT(run_with(&o) == EXIT_FAILED);
	snprintf(path, sizeof(path), "%s/runs/latest", base);
	CU_ASSERT_FATAL(run_failed_load(path, &run, &globs, &n, &e) == 0);
	CU_ASSERT(n == 4 && !strcmp(globs[0], "t/b-fail") && !strcmp(globs[2], "t/d-error"));
	CU_ASSERT(json_u64(run, "seed", 0) == 7 && json_array_size(json_object_get(run, "paths")) == 1);
	o.select = (const char *const *)globs;
	o.n_select = n;
	o.repeat = 1;
	CU_ASSERT(run_with(&o) == EXIT_FAILED);
	check_results("--rerun-failed", "t/b-fail=fail t/d-error=error");
	for (size_t i = 0; i < n; i++)
		free(globs[i]);
	free(globs);
	json_decref(run);
	CU_ASSERT(run_failed_load("/nowhere", &run, &globs, &n, &e) < 0);
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

/* How the fake lab ends a case the first time it runs. */
static const struct again_row {
	enum executor_blame blame;
	bool beside;
	const char *name;
	const char *late; /* what lies in its folder */
	int status;
	size_t runs;
} again_rows[] = {
	{ EXECUTOR_OWN, true, "a-pass", "500000000", 0, 1 },
	{ EXECUTOR_OWN, true, "a-fail", "1000000", EXIT_FAILED, 1 },
	{ EXECUTOR_OWN, true, "a-fail", "500000000", EXIT_FAILED, 2 },
	{ EXECUTOR_OWN, false, "a-fail", "500000000", EXIT_FAILED, 1 },
	{ EXECUTOR_OWN, true, "a-fail", NULL, EXIT_FAILED, 2 },
	{ EXECUTOR_OWN, true, "a-kernel-fail", "500000000", EXIT_FAILED, 1 },
	{ EXECUTOR_BESIDE, true, "a-pass", NULL, 0, 2 },
	{ EXECUTOR_ALONE, true, "a-pass", NULL, EXIT_ERROR, 2 },
	{ EXECUTOR_ALONE, true, "a-kernel-fail", NULL, EXIT_FAILED, 2 },
};

static struct executor_end end_of_first(const char *dir)
{
	char path[512];
	FILE *out;

	if (first_end->late) {
		snprintf(path, sizeof(path), "%s/observations.jsonl", dir);
		out = fopen(path, "w");
		CU_ASSERT_PTR_NOT_NULL_FATAL(out);
		fprintf(out, "{\"kind\":\"clock\",\"witness\":true,\"late_max_ns\":%s}\n", first_end->late);
		fclose(out);
	}
	return (struct executor_end){ .boot = 1, .beside = first_end->beside, .blame = first_end->blame, .why = "it complained" };
}

static void test_runs_again(void)
{
	for (size_t i = 0; i < sizeof(again_rows) / sizeof(*again_rows); i++) {
		struct run_options o = { .out = NULL };
		char path[256];
		int status;

		setup();
		put(again_rows[i].name, good);
		first_end = &again_rows[i];
		status = run_with(&o);
		first_end = NULL;
		ROW_ASSERT(status == again_rows[i].status, "row %zu: exit status %d", i, status);
		ROW_ASSERT(ran == again_rows[i].runs, "row %zu: ran %zu times", i, ran);
		snprintf(path, sizeof(path), "%s/runs/latest/cases/t/%s/observations-1.jsonl", base, again_rows[i].name);
		ROW_ASSERT((access(path, R_OK) == 0) == (again_rows[i].late && again_rows[i].runs == 2), "row %zu", i);
		teardown();
	}
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
	{ "exit status and order", test_exit_status },
	{ "nothing to run", test_nothing_to_run },
	{ "faulty files", test_faulty_files },
	{ "stops early", test_stops_early },
	{ "folder", test_folder },
	{ "what follows from a first pass", test_follow },
	{ "what follows from none", test_follow_nothing },
	{ "shards", test_shards },
	{ "what failed, again", test_failed_again },
	{ "deadline", test_deadline },
	{ "runs again", test_runs_again },
	{ "profile", test_profile },
	{ "case folders", test_case_dir },
};

TEST_MAIN("run", cases)
