/* SPDX-License-Identifier: MIT */
/*
 * A picture of what a case might leave behind, made comparable: only objects of this run, no counters, no ages, no kernel objects.
 */
#ifndef QD_LAB_SNAPSHOT_H
#define QD_LAB_SNAPSHOT_H

#include <jansson.h>

#include "error.h"

#define LAB_SNAPSHOT_SPACES_MAX 3

/* A command in the network namespace with that number. */
typedef int lab_command_fn(void *user, unsigned space, const char *tool, const char *args, json_t **ret_out, struct error *e);

struct lab_snapshot_of {
	lab_command_fn *command;
	void *user;
	const char *netns[LAB_SNAPSHOT_SPACES_MAX]; /* paths; "": this process's own */
	unsigned n;                                 /* namespaces */
	int lane;
	const char *suffix; /* what the names of this run end in: "-3f9c" */
};

/* The last picture of a lane's links, queues and rules, which is good for as long as the kernel tells of no change. RDMA objects
 * are always counted. */
struct lab_snapshot_memory;
void lab_snapshot_forget(struct lab_snapshot_memory *m); /* NULL is fine */

/* Objects of one lane. Shape: lab.h. The arrays are shared with *memory (NULL at first; the caller's to forget), and must not be
 * changed. */
int lab_snapshot(const struct lab_snapshot_of *of, struct lab_snapshot_memory **memory, json_t **ret, struct error *e);

#endif
