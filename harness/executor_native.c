/* SPDX-License-Identifier: MIT */
/* Runs cases in this kernel, one after the other, on one lane. */
#include "executor.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "executor_lane.h"
#include "journal.h"
#include "log.h"
#include "loop.h"
#include "units.h"

struct native {
	const struct executor_options *o;
	size_t index;
};

static void on_step(void *user, const char *case_id, int step, const char *what)
{
	const struct native *n = user;

	(void)case_id;
	if (n->o->on_step)
		n->o->on_step(n->o->user, n->index, step, what);
}

static bool stopped(void *user)
{
	const struct executor_options *o = user;

	return o->stop && *o->stop;
}

static int native_probe(struct error *e)
{
	return lab_rxe.probe(e);
}

static int native_run(sd_event *loop, const struct executor_queue *queue, const struct executor_options *o, struct error *e)
{
	struct native self = { .o = o };
	const struct lane_options lo = {
		.launch = o->launch, .rdma_core = o->rdma_core, .boot = 1, .keep = o->keep, .on_step = on_step, .user = &self
	};
	struct executor_lane *lane = NULL;
	unsigned undone = 0;
	bool go_on = true, told = false, wanted;
	size_t i;
	int rc = journal_clean(&undone, o->verbose, e);

	if (undone)
		log_info("put back %u change%s that a killed run had left", undone, undone == 1 ? "" : "s");
	if (rc == 0)
		rc = executor_lane_open(loop, &lo, &lane, e);
	if (rc < 0)
		return rc;
	if (o->on_environment) {
		json_t *env = executor_lane_environment(lane);

		o->on_environment(o->user, env);
		json_decref(env);
	}
	while (go_on && !stopped((void *)o) && o->next(o->user, &i, &wanted) == EXECUTOR_CASE) {
		uint64_t begin = now_ns();
		struct error broken = { "" };

		self.index = i;
		o->on_start(o->user, i);
		if (executor_lane_run(lane, queue->cases[i].dir, &broken) < 0)
			log_warn("%s: %s", queue->cases[i].id, broken.text);
		go_on = o->on_done(o->user, i, &(struct executor_end){ .boot = 1, .dur_ns = now_ns() - begin });
		if (!told && executor_lane_kernel_marked(lane)) {
			log_warn("%s: the kernel complained; a warning that speaks once a boot will not speak again until this "
				 "machine is restarted",
				 queue->cases[i].id);
			told = true;
		}
	}
	if (o->keep && !go_on && !stopped((void *)o)) {
		log_info("the lab stays up: links and devices of this run are there (ip link; rdma link), the agents are attached. "
			 "Ctrl-C ends it");
		loop_wait(loop, stopped, (void *)o, UINT64_MAX);
	}
	if (go_on && stopped((void *)o))
		rc = error_set(e, -EINTR, "interrupted");
	executor_lane_close(lane);
	return rc;
}

const struct executor_ops executor_native = {
	.name = "rxe",
	.probe = native_probe,
	.run = native_run,
};
