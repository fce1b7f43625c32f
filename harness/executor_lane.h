/* SPDX-License-Identifier: MIT */
/*
 * One lane in this kernel: journal, lab, link, controller. What executor_native and the inner controller of a guest share.
 */
#ifndef QD_EXECUTOR_LANE_H
#define QD_EXECUTOR_LANE_H

#include <jansson.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "controller.h"
#include "error.h"
#include "lab.h"
#include "profile.h"

struct lane_options {
	const char *const *launch; /* prefix argv, NULL-terminated, or NULL */
	const char *rdma_core;     /* PREFIX, or NULL */
	const char *kept;          /* where the lanes of a saved guest are written down (lab.h), or NULL */
	int boot;
	bool keep;
	void (*on_step)(void *user, const char *case_id, int step, const char *what);
	void *user;
};

struct executor_lane;

/* The absolute path of an rdma-core installed at prefix (caller frees); NULL when there is no libibverbs, with the reason in e. */
char *rdma_core_find(const char *prefix, struct error *e);
int executor_lane_open(sd_event *loop, const struct lane_options *o, struct executor_lane **ret, struct error *e);
/* {"kernel","provider","fw","rdma_core","lab","guest"}. New reference. */
json_t *executor_lane_environment(const struct executor_lane *x);
/* Runs case_dir/plan.json. What went wrong in the harness itself is in the records as well. */
int executor_lane_run(struct executor_lane *x, const char *case_dir, struct error *e);
/* The kernel has complained since the lane was opened (WARN, BUG, Oops, lockup): what speaks only once a boot has spoken. */
bool executor_lane_kernel_marked(const struct executor_lane *x);
/* Ends the agents and takes the links away. */
void executor_lane_close(struct executor_lane *x);

#endif
