/* SPDX-License-Identifier: MIT */
/*
 * The lanes of this kernel: lab, links, and for each lane a process of its own with a controller in it, so that cases run side by
 * side and one that hangs holds up nobody else. What executor_native and the inner controller of a guest share.
 *
 * The lane's processes are children by fork(): they have loaded everything already, and the lanes are up before they begin.
 * Messages go over a socket each, in JSON lines (executor_lane_child.c).
 */
#ifndef QD_EXECUTOR_LANE_H
#define QD_EXECUTOR_LANE_H

#include <jansson.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "error.h"
#include "executor.h"
#include "lab.h"

struct lanes_options {
	const char *const *launch; /* prefix argv, NULL-terminated, or NULL */
	const char *rdma_core;     /* PREFIX, or NULL */
	const char *kept;          /* where the lanes of a saved guest are written down (lab.h), or NULL */
	int boot;
	unsigned n;    /* lanes, 1 to EXECUTOR_LANES_MAX */
	bool wire;     /* some cases have the wire between their devices */
	bool any_link; /* link faults also where somebody is reached by */
	bool keep;
	/* All from the loop. What a lane says: {"case","state","step"…} as in executor.h, or an answer to lanes_ask(). */
	void (*on_message)(void *user, unsigned lane, json_t *message);
	/* Its process has ended. The lane is not to be used any more. */
	void (*on_gone)(void *user, unsigned lane, const char *why);
	void *user;
};

struct lanes;

/* The absolute path of an rdma-core installed at prefix (caller frees); NULL when there is no libibverbs, with the reason in e. */
char *rdma_core_find(const char *prefix, struct error *e);
/* Brings the lanes up and starts their processes. After that the caller may have threads (kernel_witness.h): a lane's process is
 * not to be forked later. */
int lanes_open(sd_event *loop, const struct lanes_options *o, struct lanes **ret, struct error *e);
/* {"kernel","provider","fw","rdma_core","lab","netns","netns_why","guest"}: `netns` is "each" where each end of a lane lives in a
 * network namespace of its own, else "one", and `netns_why` the reason. New reference. */
json_t *lanes_environment(const struct lanes *x);
/* {"case":ID,"dir":ABSOLUTE} runs DIR/plan.json there; what went wrong in the harness itself is in the records as well. */
int lanes_ask(struct lanes *x, unsigned lane, const json_t *request);
/* Ends the processes (those that run something, at once) and takes the links away. */
void lanes_close(struct lanes *x);

/* ---- inside a lane's process (executor_lane_child.c) ---- */

struct lane_child {
	struct lab *lab;
	struct lab_lane lane;
	const struct lanes_options *o;
	const char *agent, *wire; /* programs */
	struct kernel_witness *witness;
};

/* Serves the socket until its end; never returns. */
_Noreturn void lane_child_main(const struct lane_child *what, int fd);

#endif
