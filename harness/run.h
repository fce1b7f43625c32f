/* SPDX-License-Identifier: MIT */
/*
 * A run: scenarios loaded and planned, a run folder filled, cases handed to an executor in file order, each judged as it ends,
 * reported at the end. One thread, one loop; judging happens here, outside of what is judged.
 */
#ifndef QD_RUN_H
#define QD_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "error.h"
#include "executor.h"
#include "plan.h"
#include "scenario.h"
#include "verdict.h"

struct run_options;

/* ---- the list of cases (run_cases.c) ---- */

#define RUN_LEFT_OUT "soak" /* the tag of cases that run only when they are asked for */

struct run_case {
	char *id;                        /* with ~rN for a repetition */
	const struct scenario *scenario; /* borrowed from the list */
	const struct scenario_case *source;
	json_t *plan; /* owned; NULL before run_cases_plan */
	char *dir;    /* "cases/core/x", below the run folder */
	bool named;   /* the path that it was loaded from is its file, not a folder */
	size_t place; /* its own number, or that of the first pass that it follows from: where it stands in reports */
	bool judged;
	int trouble;    /* the boot whose trouble made it run again alone; 0: none did */
	char *again;    /* why what it showed at first does not count; NULL: that does */
	json_t *result; /* its line of results.jsonl */
};

struct run_cases {
	struct scenario *scenarios;
	size_t n_scenarios;
	struct run_case *cases;
	size_t n;
	bool *named;                 /* of each scenario: a path is its file */
	struct scenario **followers; /* of first passes */
	size_t n_followers;
	const char *const *globs; /* what run_cases_select kept; borrowed */
	size_t n_globs;
	size_t gone; /* globs for cases of an earlier run that are not there any more */
};

/* Loads every scenario below the paths. Mistakes in files go to d, rendered, and make it return -EINVAL; a path that cannot be
 * read, or two files with one id, are a negative errno with e filled. On error *ret is empty. */
int run_cases_load(const char *const *paths, size_t n, struct run_cases *ret, struct diag *d, struct error *e);
/* Keeps the cases whose id, or one of whose tags, matches the glob, and the first passes that such a case may follow from.
 * Several globs: any of them. They are used by run_cases_follow too, and stay the caller's. */
void run_cases_select(struct run_cases *list, const char *const *globs, size_t n);
/* Whether a case of the list, or one that may follow from one, matches it. */
bool run_cases_glob_fits(const struct run_cases *list, const char *glob);
/* Keeps what is not tagged `soak`, unless a path names its file: hours belong into no run that nobody asked them of. Returns how
 * many it has left out. */
size_t run_cases_leave_out(struct run_cases *list);
/* Keeps part `shard` (from 1) of `shards`: which that is follows from a case's id alone. What follows from a first pass goes with
 * it.
 */
void run_cases_shard(struct run_cases *list, unsigned shard, unsigned shards);
bool run_in_shard(const char *case_id, unsigned shard, unsigned shards);
/* Each case n times, ~r1 ~r2 ... */
int run_cases_repeat(struct run_cases *list, unsigned n);
/* The one case stops before that step. 0 or an exit status with e filled. Of a first pass it is said to what follows from it. */
int run_cases_pause(const struct run_options *o, struct run_cases *list, struct error *e);
int run_cases_plan(struct run_cases *list, const struct plan_options *o, struct error *e);
/* The sum of what the cases that will run may take, one after the other. */
uint64_t run_cases_budget(const struct run_cases *list);
int run_case_plan(struct run_case *c, const struct plan_options *o, struct error *e);
/* Where in the id of a first pass a packet's name would stand: *ret_tail is what comes after it. doc: its document or plan. NULL:
 * it is no first pass, or has no such place. */
const char *run_packet_place(const char *id, const json_t *doc, const char **ret_tail);
/* Whether a glob of the list could match a case that follows from this first pass (run_follow.c). */
bool run_follow_possible(const struct run_cases *list, const struct scenario_case *pass);
/* Adds, planned, the selected cases that follow from the first pass number i: one for each packet (`packets` of its verdict), and
 * one that is selected by its whole name though it was not found. Numbers of cases stay; pointers to them do not. */
int run_cases_follow(struct run_cases *list, size_t i, const json_t *packets, const struct plan_options *o, struct error *e);
/* Whether it was asked for by a glob, not only for what follows from it. */
bool run_case_selected(const struct run_cases *list, const struct run_case *c);
/* Numbers of the cases in the order of the files. NULL when out of memory; caller frees. */
size_t *run_cases_order(const struct run_cases *list);
void run_cases_release(struct run_cases *list);

/* ---- the run folder (run_folder.c) ---- */

struct run_folder {
	char *dir; /* "runs/20260102-030405-3f9c" */
	char *id;
	FILE *results; /* results.jsonl */
	json_t *run;   /* run.json */
};

/* Makes OUT/<id>/ and the link OUT/latest; an id that is taken is never used again. */
int run_folder_open(const char *out, struct run_folder *ret, struct error *e);
/* cases/<case>/ with scenario.yaml, profile.yaml (profile may be NULL) and plan.json. */
int run_folder_add(struct run_folder *f, const struct run_case *c, const char *profile, struct error *e);
/* A file of that name in the folder itself. */
int run_folder_keep(const struct run_folder *f, const char *name, const void *data, size_t len, struct error *e);
/* Writes a case's verdict.json. */
int run_folder_verdict(const struct run_folder *f, const struct run_case *c, const json_t *verdict, struct error *e);
/* Writes run.json as it stands. */
int run_folder_save(struct run_folder *f, struct error *e);
/* What time it is (UTC, ISO 8601), as `key` of run.json. */
void run_folder_stamp(struct run_folder *f, const char *key);
/* Appends a line to results.jsonl, at once on disk. */
int run_folder_result(struct run_folder *f, const json_t *result, struct error *e);
/* Writes results.jsonl anew, in the order of the list: cases that ran side by side ended in another. */
int run_folder_sort(struct run_folder *f, const struct run_cases *list, struct error *e);
/* What a case left that is to run again is kept beside: "observations-1.jsonl". */
int run_folder_again(struct run_folder *f, const struct run_case *c, int boot, struct error *e);
void run_folder_close(struct run_folder *f);
/* A case's folder name from its id: what no file system minds. Caller frees. */
char *run_case_dir(const char *id);

/* ---- judging (run_judge.c) ---- */

/* The verdict on what lies in case_dir (plan.json, observations.jsonl, profile.yaml), written to verdict.json. kernel: uname -r of
 * what ran, or NULL. New reference. */
int run_judge(const char *case_dir, const char *kernel, bool strict, json_t **ret_verdict, struct error *e);
/* Puts into run.json's `devices` what the records of a case tell of the devices of the two ends, until both are known. looks
 * counts the cases that were asked. */
void run_devices(json_t *run, const char *case_dir, unsigned *looks);
/* How late the witness timers of the case were at most. UINT64_MAX: it did not come so far that they ran. */
uint64_t run_lateness(const char *case_dir);
/* A verdict for a case that never ran. verdict: VERDICT_SKIP or VERDICT_ERROR. New reference. */
json_t *run_verdict_unrun(const json_t *plan, enum verdict verdict, const char *why);
/* The provider's profile for a scenario at path: beside it, in the share folder, in the tree of the program. NULL when there is
 * none. Caller frees. */
char *run_profile_find(const char *scenario_path, const char *provider);
/* 0 when each case has one, or `none` was asked for: without it every deviation would be a failure. */
int run_profiles_find(const struct run_cases *cases, const char *provider, struct error *e);

/* ---- what happened while several cases ran (run_trouble.c) ---- */

/* troubles: {"1":{"why","cases":[…],"found":BOOL}} by boot. The case ran then, and is to run again alone. */
void run_trouble_note(json_t *troubles, struct run_case *c, const struct executor_end *end);
/* It has: when the kernel complained or died once more, or the case hung once more, that was it. */
void run_trouble_look(json_t *troubles, const struct run_case *c, const json_t *verdict);
/* True when a trouble is left that no case makes alone: that is no pass of the run. */
bool run_trouble_left(const json_t *troubles, struct error *e);

/* Of a case that did not pass beside others: true when it may be the measurement that failed, because the lanes asked too much of
 * the machine, and when it could not be judged; why, for people. */
bool run_void(const json_t *verdict, const char *case_dir, char *why, size_t size);

/* ---- progress (run_progress.c) ---- */

struct progress {
	FILE *out;
	size_t total, started, done;
	bool live; /* a terminal: one line that changes */
	bool quiet;
	bool line_open; /* the live line is on screen */
	uint64_t drawn_ns;
};

void progress_init(struct progress *p, FILE *out, bool is_terminal, bool quiet, size_t total);
__attribute__((format(printf, 2, 3))) void progress_note(struct progress *p, const char *fmt, ...);
void progress_start(struct progress *p, const char *case_id);
void progress_step(struct progress *p, const char *case_id, int step, const char *what);
void progress_end(struct progress *p, const json_t *result);
/* Takes the live line away. */
void progress_clear(struct progress *p);

/* ---- what ends a run before its time (run_stop.c) ---- */

struct run_stop {
	struct progress *progress;
	bool now;
	bool too_late; /* by the deadline */
	unsigned signals;
};

/* From now on SIGINT, SIGTERM, SIGHUP and the deadline (0: none) set s->now; a signal that is ignored stays ignored. */
int run_stop_open(struct run_stop *s, sd_event *loop, uint64_t deadline_ns, struct error *e);

/* ---- the run itself (run.c) ---- */

struct run_options {
	const char *const *paths;
	size_t n_paths;
	const char *lab; /* "auto" "guest" "rxe" */
	const char *kernel, *modules, *rdma_core, *accel;
	const char *const *set; /* NULL-terminated */
	const char *const *select;
	size_t n_select;
	bool all;                   /* what is tagged `soak` too */
	bool rerun;                 /* `select` are the cases that did not pass in an earlier run */
	bool rerun_part;            /* ... and those of them that are not below the paths are not asked for */
	const char *const *require; /* capabilities without which a skip is a failure */
	size_t n_require;
	const char *const *launch; /* NULL-terminated, or NULL */
	const char *out;
	const char *provider; /* "rxe" */
	uint64_t seed;
	unsigned repeat;
	unsigned lanes;         /* 0: as many as suit this machine */
	unsigned shard, shards; /* part of so many; 0: all */
	uint64_t deadline_ns;   /* of the whole run; 0: none */
	const char *pause_at;   /* a step of the one case that there is (pause.h), or NULL */
	uint64_t pause_max_ns;
	bool any_link; /* link faults also where somebody is reached by (link_guard.h) */
	bool strict, keep, cold, fail_fast, quiet, verbose, colour;
	const json_t *command;      /* array: how it was called */
	const char *program;        /* how it was called */
	const char *repeat_options; /* that, `run`, the paths and these words (quoted) call the same run again */
	/* For tests; NULL: the one that `lab` names, and run_judge. */
	const struct executor_ops *executor;
	int (*judge)(const char *case_dir, const char *kernel, bool strict, json_t **ret_verdict, struct error *e);
};

/* Fills run.json with how the run was called and what repeats it (run_describe.c). What came by standard input is kept. */
int run_describe(const struct run_options *o, const struct run_cases *list, struct run_folder *f, struct error *e);

/* The failure that a skip is for want of a capability of o->require (run_require.c): a new verdict; NULL: this is none. */
json_t *run_require(const struct run_options *o, const json_t *plan, const json_t *verdict);

/* Where, on how many lanes, and whether some case has the wire between its devices (run_choose.c). */
int run_choose_executor(const struct run_options *o, const struct executor_ops **ret, struct error *e);
unsigned run_choose_lanes(const struct run_options *o, const struct run_cases *list);
bool run_wire_wanted(const struct run_cases *list);

/* The cases that the options name, planned (run_load.c), and how many of them were left out for their tag. 0 or an exit status with
 * e filled. */
int run_load(const struct run_options *o, struct run_cases *ret, size_t *ret_left_out, struct error *e);

/* ---- what did not pass in an earlier run (run_failed.c) ---- */

struct run_failed {
	json_t *run;         /* its run.json */
	char **globs;        /* for --select: they match the cases of it that have no good result */
	size_t n;            /* ... so many */
	size_t all, skipped; /* how many cases it had, and how many of them were skipped for want of something */
};

/* By the verdict.json of each case: `judge` writes that anew. */
int run_failed_load(const char *run_dir, struct run_failed *ret, struct error *e);
void run_failed_release(struct run_failed *f);

/* Everything; progress goes to stderr, the report to out. Returns the exit status. */
int run_main(const struct run_options *o, FILE *out);

#endif
