/* SPDX-License-Identifier: MIT */
/* Runs cases in this kernel. It cannot be had afresh: what runs again alone does so in the same. */
#include "executor.h"

#include <errno.h>
#include <string.h>

#include "executor_crash.h"
#include "executor_lane.h"
#include "executor_pool.h"
#include "journal.h"
#include "json.h"
#include "log.h"
#include "loop.h"
#include "units.h"

struct native {
	const struct executor_options *o;
	const struct executor_queue *queue;
	sd_event *loop;
	struct lanes *lanes;
	struct pool pool;
	bool marked_told;
};

static void on_message(void *user, unsigned lane, json_t *message)
{
	struct native *x = user;

	if (json_bool(message, "marked", false) && !x->marked_told) {
		log_warn("%s: the kernel complained; a warning that speaks once a boot will not speak again until this machine is "
			 "restarted",
			 json_str(message, "case") ?: "?");
		x->marked_told = true;
	}
	pool_on_message(&x->pool, lane, message);
}

static void on_gone(void *user, unsigned lane, const char *why)
{
	struct native *x = user;

	pool_on_lane_gone(&x->pool, lane, why);
}

static bool stopped(void *user)
{
	const struct executor_options *o = ((const struct native *)user)->o;

	return o->stop && *o->stop;
}

static int start_case(void *user, unsigned lane, size_t i, struct error *e)
{
	struct native *x = user;
	json_t *request = json_pack("{s:s,s:s}", "case", x->queue->cases[i].id, "dir", x->queue->cases[i].dir);
	int rc = request ? lanes_ask(x->lanes, lane, request) : -ENOMEM;

	json_decref(request);
	return rc < 0 ? error_set(e, rc, "lane %u takes no case: %s", lane, strerror(-rc)) : 0;
}

static int resume(void *user, unsigned lane)
{
	struct native *x = user;
	json_t *request = json_pack("{s:b}", "resume", true);
	int rc = lanes_ask(x->lanes, lane, request);

	json_decref(request);
	return rc;
}

static int case_lost(void *user, size_t i, bool whole, const char *why, struct error *e)
{
	const struct native *x = user;

	return executor_crash_record(x->queue->cases[i].dir, NULL, 1, whole ? "guest" : "lane", why, e);
}

static void gone_text(void *user, char *buf, size_t size)
{
	(void)user;
	if (size)
		buf[0] = '\0';
}

static void keep_up(void *user, size_t i)
{
	struct native *x = user;

	log_info("the lab of %s stays up: links and devices of this run are there (ip link; rdma link), the agents are attached. "
		 "Ctrl-C ends it",
		 x->queue->cases[i].id);
	loop_wait(x->loop, stopped, x, UINT64_MAX);
}

static const struct pool_ops pool_ops = {
	.start = start_case,
	.resume = resume,
	.lost = case_lost,
	.gone_text = gone_text,
	.keep_up = keep_up,
};

static int native_probe(struct error *e)
{
	return lab_rxe.probe(e);
}

static int native_run(sd_event *loop, const struct executor_queue *queue, const struct executor_options *o, struct error *e)
{
	struct native x = { .o = o, .queue = queue, .loop = loop };
	const struct lanes_options lo = { .launch = o->launch,
					  .rdma_core = o->rdma_core,
					  .boot = 1,
					  .n = o->lanes,
					  .wire = o->wire,
					  .any_link = o->any_link,
					  .keep = o->keep,
					  .on_message = on_message,
					  .on_gone = on_gone,
					  .user = &x };
	unsigned undone = 0;
	int rc = journal_clean(&undone, o->verbose, e);

	if (undone)
		log_info("put back %u change%s that a killed run had left", undone, undone == 1 ? "" : "s");
	if (rc == 0)
		rc = lanes_open(loop, &lo, &x.lanes, e);
	if (rc < 0)
		return rc;
	if (o->on_environment) {
		json_t *env = lanes_environment(x.lanes);

		o->on_environment(o->user, env);
		json_decref(env);
	}
	x.pool = (struct pool){ .loop = loop, .o = o, .queue = queue, .ops = &pool_ops, .user = &x, .n = o->lanes, .boot = 1 };
	rc = pool_run(&x.pool, e);
	lanes_close(x.lanes);
	return rc;
}

const struct executor_ops executor_native = {
	.name = "rxe",
	.probe = native_probe,
	.run = native_run,
};
