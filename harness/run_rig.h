/* SPDX-License-Identifier: MIT */
/* The run with an executor that runs nothing and a judge that reads the verdict from the case's name: what is tested is the order,
 * the files and the exit status. */
#ifndef QD_RUN_RIG_H
#define QD_RUN_RIG_H

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json.h"
#include "run.h"
#include "test.h"

/* How the fake lab ends a case the first time it runs. */
struct fake_end {
	enum executor_blame blame;
	bool beside;
	const char *late; /* what lies in its folder */
};

static const char good[] = "qpdrill: 1\ntitle: t\ntags: [quick]\nsteps:\n  - connect:\n";
static const char wired[] = "qpdrill: 1\ntitle: t\nrequires: [xrc]\nsteps:\n  - connect:\n";

static char base[64];
static size_t ran;
static size_t break_after; /* the executor fails after so many cases; 0: never */
static bool raise_term, wait_for_stop;
static const struct fake_end *first_end; /* how the first case ends; NULL: as any */

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void setup(void)
{
	snprintf(base, sizeof(base), "/tmp/qpdrill-run-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(base));
	setenv("QPDRILL_CACHE", base, 1);
	ran = break_after = 0;
	raise_term = wait_for_stop = false;
}

static inline void teardown(void)
{
	nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void put(const char *name, const char *text)
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

static inline int fake_probe(struct error *e)
{
	(void)e;
	return 0;
}

static bool stopped(void *user)
{
	return *(const bool *)user;
}

static inline struct executor_end end_of_first(const char *dir)
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

static inline int fake_run(sd_event *loop, const struct executor_queue *queue, const struct executor_options *o, struct error *e)
{
	json_t *env = json_pack("{s:s,s:s,s:s,s:b,s:[]}", "kernel", "6.1.0-99-amd64", "lab", "rxe", "provider", "rxe", "guest", 1,
				"device_caps");
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

static inline int fake_judge(const char *dir, const char *kernel, bool strict, json_t **ret, struct error *e)
{
	static const char *const names[] = { "pass", "deviation", "fail", "inconclusive", "error", "skip" };
	static const char *const checks[] = { "kernel", "ledger", "payload", "recover" };
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
	json_object_set_new(*ret, "findings", json_array());
	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++)
		if (strstr(name, checks[i]))
			json_array_append_new(json_object_get(*ret, "findings"),
					      json_pack("{s:s,s:s}", "severity", "fail", "check", checks[i]));
	snprintf(path, sizeof(path), "%s/verdict.json", dir);
	CU_ASSERT(json_save(path, *ret, e) == 0);
	json_decref(plan);
	return 0;
}

/* Runs what the options ask for; what they leave open is the same in every run here. */
static inline int run_with(const struct run_options *options)
{
	struct run_options o = *options;
	char scenarios[128], out_dir[128];
	const char *paths[] = { scenarios };
	FILE *out = fopen("/dev/null", "w");
	int status;

	snprintf(scenarios, sizeof(scenarios), "%s/scenarios", base);
	snprintf(out_dir, sizeof(out_dir), "%s/runs", base);
	if (!o.paths) {
		o.paths = paths;
		o.n_paths = 1;
	}
	o.lab = "auto";
	o.accel = "auto";
	o.provider = "rxe";
	o.out = o.out ? o.out : out_dir;
	o.repeat = o.repeat ? o.repeat : 1;
	o.seed = 7;
	o.quiet = true;
	o.program = "qpdrill";
	o.executor = &fake;
	o.judge = fake_judge;
	status = run_main(&o, out);
	fclose(out);
	return status;
}

static inline json_t *results(void)
{
	char path[256];
	json_t *lines = NULL;
	struct error e = { "" };
	bool torn;

	snprintf(path, sizeof(path), "%s/runs/latest/results.jsonl", base);
	return json_load_lines(path, &lines, &torn, &e) ? NULL : lines;
}

/* "t/a=pass t/b=skip" */
static inline void check_results(const char *what, const char *expected)
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

#endif
