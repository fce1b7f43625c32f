/* SPDX-License-Identifier: MIT */
/*
 * Runs a list of planned cases somewhere: in this kernel (executor_native.c) or in a guest that it boots (executor_guest.c). The
 * run folder is the hand-over: each case's plan.json lies there before, its observations.jsonl after.
 */
#ifndef QD_EXECUTOR_H
#define QD_EXECUTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "error.h"

#define EXECUTOR_LANES_MAX 32

struct executor_case {
	const char *id;
	const char *dir;    /* runs/<id>/cases/<case> */
	uint64_t budget_ns; /* beyond this (and a margin) the case hangs */
};

/* What a free lane is to do. */
enum executor_next {
	EXECUTOR_CASE, /* run the case that was named */
	EXECUTOR_WAIT, /* nothing now; ask again when a case that runs has ended and on_done() has returned */
	EXECUTOR_END,  /* nothing more; what runs is awaited */
};

/* Whose doing it is, what the kernel has said or done while the case ran. */
enum executor_blame {
	EXECUTOR_OWN,    /* its own, or nobody's: it is judged by what lies in its folder */
	EXECUTOR_BESIDE, /* another's: it runs again, because what speaks once a boot had spoken */
	EXECUTOR_ALONE, /* this one's or that of another that ran beside it: it runs again alone, in a fresh boot where there is one
			 */
};

struct executor_end {
	int boot, lane;
	uint64_t dur_ns;
	bool beside; /* another case ran while this one did */
	enum executor_blame blame;
	const char *why; /* unless EXECUTOR_OWN: what happened, for people */
};

/* What is to run. It may grow during on_done() (what a case has shown decides what else there is), at its end: a number once given
 * stays, a pointer into it does not. All is done when every case in it has ended and none has added more. */
struct executor_queue {
	const struct executor_case *cases;
	size_t n;
};

struct executor_options {
	const char *run_dir;
	const char *self;    /* path of the qpdrill binary; agent beside it */
	const char *profile; /* name of the provider's profile file, or NULL */
	const char *const *launch;
	const char *kernel, *modules; /* --kernel, --modules, or NULL */
	const char *rdma_core;        /* --rdma-core PREFIX, or NULL */
	const char *accel;            /* "auto" "kvm" "tcg" */
	unsigned lanes;               /* how many cases may run side by side */
	bool wire;                    /* some of them have the wire between their devices */
	bool any_link;                /* --allow-any-link; a guest has no link that anybody is reached by */
	bool keep, verbose;
	bool pause; /* some case may stop: there is to be a shell where it runs */
	bool cold;  /* --cold: no saved guest, neither made nor used */
	/* Becomes true when the run is to end now (SIGINT, SIGTERM come through the loop, so a wait in it wakes up): ask it in
	 * every done() that waits for long, put everything back, return -EINTR. May be NULL. */
	const bool *stop;
	/* What ran: uname -r, provider, firmware, rdma-core... as soon as it is known. */
	void (*on_environment)(void *user, const json_t *env);
	void (*on_start)(void *user, size_t index);
	void (*on_step)(void *user, size_t index, int step, const char *what);
	/* A case has stopped, or goes on (pause.h), as the controller in it says: {"state":"paused"|"resumed",…}. May be NULL. */
	void (*on_pause)(void *user, size_t index, const json_t *where);
	bool *go_on; /* becomes true when one that stands is to go on; set back when it has been told. May be NULL */
	/* A lane is free: its number in the queue, and whether it wants a boot that has run nothing. */
	enum executor_next (*next)(void *user, size_t *ret_index, bool *ret_fresh);
	/* The case has ended: its observations are complete (a crash or hang is in them as klog / lost / dump records), or it is to
	 * run again. Return false to stop the run (--fail-fast, --keep after a failure). */
	bool (*on_done)(void *user, size_t index, const struct executor_end *end);
	void *user;
};

struct executor_ops {
	const char *name; /* "rxe" "guest" */
	int (*probe)(struct error *e);
	int (*run)(sd_event *loop, const struct executor_queue *queue, const struct executor_options *o, struct error *e);
};

extern const struct executor_ops executor_native;
extern const struct executor_ops executor_guest;

/* `qpdrill-inner RUNDIR CHANNEL`: the inner controller's side, a program of its own because it starts cold in every boot. What it
 * is to know lies in RUNDIR/inner.json ({"boot","lanes","wire","launch","rdma_core","keep","verbose"}). Lines on the channel;
 * `lane` is absent for lane 0: outer -> inner  {"case":"ID","dir":"cases/ID","lane":1}   run it there (dir is below RUNDIR)
 * {"lane":1,"resume":true}   goes on, where it has stopped
 * {"bye":true}   leave, power off
 *                   {"spawn":N} {"memory":true}      measure (qpdrill bench)
 *   inner -> outer  {"ready":{environment}}    {"error":"…"}: not ready, and never will be     {"bye":true}
 *                   {"lane":1,"case":"ID","state":"start"}  {"lane":1,"case":"ID","state":"step","step":3,"what":"expect"}, now and
 * then
 *                   {"lane":1,"case":"ID","state":"paused","step":3,…} and "resumed" (controller_pause.c)
 *                   {"lane":1,"case":"ID","state":"done","dur_ns":…,"marked":BOOL,"stuck":BOOL,"own":N,"other":N,"complaint":"…",
 *                   "error":"…"}: marked when the kernel has complained (WARN, BUG, Oops) since it came up, so that what follows
 * wants a fresh boot; stuck when nothing more can run in this lane (controller.h), which wants a fresh boot as well; how many
 * complaints of the kernel named a device of the lane, and how many named none, with the first of them
 *                   {"lane":1,"gone":"…"}: the lane's process has ended
 *                   {"spawn_ns":[…]}  {"memory_kb":{"controller":N,"agents":[N]}} */
int executor_inner(const char *run_dir, const char *channel, struct error *e);

#endif
