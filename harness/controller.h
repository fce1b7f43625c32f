/* SPDX-License-Identifier: MIT */
/*
 * Runs one planned case in this kernel: starts or reuses agents, carries connection data between them, runs the steps, writes every
 * record to observations.jsonl at once. It decides nothing about right and wrong: model_expect() tells it when to stop waiting.
 *
 * Straight-line code over loop_wait(); each wait has a deadline. One file per group of steps (step_*.c), each step one row of a
 * const table.
 */
#ifndef QD_CONTROLLER_H
#define QD_CONTROLLER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "error.h"
#include "lab.h"
#include "kernel_witness.h"
#include "profile.h"

struct controller_options {
	const char *agent_path;        /* the qpdrill-agent binary */
	const char *wire_path;         /* the qpdrill-wire binary; NULL: there is none */
	const char *const *launch;     /* prefix argv before it, NULL-terminated, or NULL */
	const struct profile *profile; /* may be NULL */
	const bool *stop;              /* as in executor.h; may be NULL */
	struct kernel_witness *witness;     /* of this kernel; NULL: each agent has a timer of its own */
	bool any_link;                 /* link faults also where somebody is reached by (link_guard.h) */
	bool keep;                     /* leave the state of a failed case up: no release, no lab undo */
	/* Progress: called when a step begins. May be NULL. */
	void (*on_step)(void *user, const char *case_id, int step, const char *what);
	/* A case stops before a step, or goes on (pause.h); and whether it is to go on. Called together, or NULL both. */
	void (*on_pause)(void *user, const json_t *where);
	bool (*resumed)(void *user);
	void *user;
};

struct controller;

/* One per lane. lane is borrowed. Agents are kept between cases while they come back clean. */
int controller_new(sd_event *loop, struct lab *lab, const struct lab_lane *lane, const struct controller_options *o,
		   struct controller **ret, struct error *e);
/* Runs case_dir/plan.json and writes case_dir/observations.jsonl. 0 when the case ran to its end, whatever came out; negative errno
 * when the harness itself could not (recorded as well, so that the verdict says `error`). */
int controller_run_case(struct controller *c, const char *case_dir, struct error *e);
/* What the kernel had to complain of while the last case ran, in lines: `own` name a device of this lane, `other` none. Lines that
 * name another lane's count for nothing. */
struct controller_complaints {
	unsigned own, other;
	char first[200];
};
const struct controller_complaints *controller_complaints(const struct controller *c);
/* No more cases can run here: a process of this lane sits in a call that does not return, or what a case has left behind does not
 * go away, or a device cannot be opened. */
bool controller_is_stuck(const struct controller *c);
void controller_free(struct controller *c);

#endif
