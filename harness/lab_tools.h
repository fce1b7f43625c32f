/* SPDX-License-Identifier: MIT */
/*
 * The programs of iproute2 that a lab works with, one of each in each network namespace that it has: its own, where the wire
 * stands, and those of the ends where each end lives in one (lab_apart.h).
 */
#ifndef QD_LAB_TOOLS_H
#define QD_LAB_TOOLS_H

#include <jansson.h>
#include <stdbool.h>

#include "error.h"
#include "lab_tool.h"

enum lab_which { LAB_IP, LAB_TC, LAB_RDMA, NUM_LAB_WHICH };
enum lab_space { LAB_HOME, LAB_A, LAB_B, NUM_LAB_SPACES };

struct lab_tools {
	struct lab_tool *tool[NUM_LAB_SPACES][NUM_LAB_WHICH]; /* none in a space that is not there */
	bool rdma_stale[NUM_LAB_SPACES];                      /* devices came or went since rdma started */
};

/* netns: the path of the space's namespace, "" for this process's own. */
int lab_tools_new(struct lab_tools *t, enum lab_space space, const char *netns, struct error *e);
void lab_tools_free(struct lab_tools *t, enum lab_space space);
void lab_tools_forked(struct lab_tools *t);
/* -EINVAL for a program that it does not know. */
int lab_tools_find(const char *name, enum lab_which *ret, struct error *e);
int lab_tools_run_text(struct lab_tools *t, enum lab_space space, enum lab_which which, const char *args, json_t **ret_out,
		       struct error *e);
int lab_tools_run(struct lab_tools *t, enum lab_space space, enum lab_which which, json_t **ret_out, struct error *e,
		  const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* Several commands, one a line. */
int lab_tools_batch(struct lab_tools *t, enum lab_space space, enum lab_which which, const char *lines, struct error *e);
/* A device came or went by other means. */
void lab_tools_stale(struct lab_tools *t);

#endif
