/* SPDX-License-Identifier: MIT */
/* A world made of a few values, for the tests of faults: struct fault_env over it, and short ways to make and ask a fault. */
#ifndef QD_FAULTS_RIG_H
#define QD_FAULTS_RIG_H

#include "fault_common.h"

#include <CUnit/Basic.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "action.h"

struct world {
	json_t *plan, *qp, *counters, *remembered, *device, *reply, *netem;
	json_t *asked;    /* every request */
	json_t *commands; /* every lab command */
	int gid_index[2]; /* before, and after a move */
	unsigned removed, made;
	unsigned wc, posts, released, resumed, exchanged, renewed, restarted;
	uint64_t timer_ns;
	const char *status;
	int rc;
	struct fault_env env;
};

static int w_request(void *ctl, const char *agent, json_t *req, json_t **ret_reply, struct error *e)
{
	struct world *w = ctl;

	(void)agent;
	json_array_append_new(w->asked, req);
	if (w->rc < 0)
		return error_set(e, w->rc, "refused");
	if (ret_reply)
		*ret_reply = json_incref(w->reply);
	return 0;
}

static int w_lab(void *ctl, const char *tool, const char *args, json_t **ret_out, struct error *e)
{
	struct world *w = ctl;

	(void)e;
	json_array_append_new(w->commands, json_sprintf("%s %s", tool, args));
	if (ret_out)
		*ret_out = json_incref(w->netem);
	return 0;
}

static const json_t *w_device(void *ctl, const char *agent)
{
	(void)agent;
	return ((struct world *)ctl)->device;
}

static const json_t *w_plan(void *ctl)
{
	return ((struct world *)ctl)->plan;
}

static const char *w_peer(void *ctl, const char *qp)
{
	(void)ctl;
	return strcmp(qp, "p.a") == 0 ? "p.b" : "p.a";
}

static const json_t *w_qp(void *ctl, const char *qp)
{
	return json_object_get(((struct world *)ctl)->qp, qp);
}

static const json_t *w_remembered(void *ctl, const char *name)
{
	return json_object_get(((struct world *)ctl)->remembered, name);
}

static json_t *w_counters(void *ctl, const char *agent)
{
	(void)agent;
	return json_deep_copy(((struct world *)ctl)->counters);
}

static int w_release(void *ctl, const char *qp, struct error *e)
{
	(void)qp;
	(void)e;
	((struct world *)ctl)->released++;
	return 0;
}

static int w_resume(void *ctl, const char *qp, struct error *e)
{
	(void)qp;
	(void)e;
	((struct world *)ctl)->resumed++;
	return 0;
}

static int w_exchange(void *ctl, const char *pair, struct error *e)
{
	(void)e;
	CU_ASSERT_STRING_EQUAL(pair, "p");
	((struct world *)ctl)->exchanged++;
	return 0;
}

static int w_timer(void *ctl, struct fault *f, uint64_t after_ns)
{
	(void)f;
	((struct world *)ctl)->timer_ns = after_ns;
	return 0;
}

static unsigned w_wc_count(void *ctl, const char *queue, const char *status)
{
	(void)queue;
	(void)status;
	return ((struct world *)ctl)->wc;
}

static unsigned w_posts_since(void *ctl, const struct fault *f, const char *qp)
{
	(void)f;
	(void)qp;
	return ((struct world *)ctl)->posts;
}

static int w_signal(void *ctl, const char *agent, int sig, char *ret_status, size_t size, struct error *e)
{
	struct world *w = ctl;

	(void)agent;
	(void)sig;
	if (!w->status)
		return error_set(e, -ESRCH, "gone");
	if (ret_status)
		snprintf(ret_status, size, "%s", w->status);
	return 0;
}

static int w_abandon(void *ctl, const char *agent, char *ret_status, size_t size, struct error *e)
{
	return w_signal(ctl, agent, 0, ret_status, size, e);
}

static int w_restart(void *ctl, const char *agent, struct error *e)
{
	(void)agent;
	(void)e;
	((struct world *)ctl)->restarted++;
	return 0;
}

static int w_wire(void *ctl, json_t *req, json_t **ret_reply, struct error *e)
{
	return w_request(ctl, "wire", req, ret_reply, e);
}

static int w_wire_signal(void *ctl, int sig, char *ret_status, size_t size, struct error *e)
{
	return w_signal(ctl, "wire", sig, ret_status, size, e);
}

static int w_wire_restart(void *ctl, struct error *e)
{
	return w_restart(ctl, "wire", e);
}

static int w_mr_renew(void *ctl, const char *mr, const json_t *access, struct error *e)
{
	struct world *w = ctl;

	(void)e;
	w->renewed++;
	json_array_append_new(w->asked, json_pack("{s:s,s:s,s:O?}", "op", "renew", "mr", mr, "access", access));
	return 0;
}

static int w_gid_index(void *ctl, const char *agent, int but_not, struct error *e)
{
	const struct world *w = ctl;
	int index = w->gid_index[but_not >= 0];

	CU_ASSERT_STRING_EQUAL(agent, "b");
	return index == but_not ? error_set(e, -ETIMEDOUT, "no other index") : index;
}

static int w_device_remove(void *ctl, const char *agent, struct error *e)
{
	struct world *w = ctl;

	CU_ASSERT_STRING_EQUAL(agent, "b");
	w->removed++;
	return w->rc < 0 ? error_set(e, w->rc, "somebody has it open") : 0;
}

static int w_device_make(void *ctl, const char *agent, struct error *e)
{
	CU_ASSERT_STRING_EQUAL(agent, "b");
	(void)e;
	((struct world *)ctl)->made++;
	return 0;
}

static void world_init(struct world *w)
{
	*w = (struct world){
		.plan = json_pack(
			"{s:[{s:s,s:s,s:s,s:s,s:s,s:s,s:{s:[s,s]}},{s:s,s:s,s:s,s:s,s:s,s:s,s:{s:[s,s]}}],s:[{s:s,s:s,s:[s,s]}]}",
			"qps", "name", "p.a", "pair", "p", "agent", "a", "peer", "p.b", "send_cq", "ac", "recv_cq", "ac", "attr",
			"access", "REMOTE_WRITE", "REMOTE_READ", "name", "p.b", "pair", "p", "agent", "b", "peer", "p.a", "send_cq",
			"bs", "recv_cq", "br", "attr", "access", "REMOTE_WRITE", "REMOTE_READ", "mrs", "name", "p.b.mem", "agent",
			"b", "access", "LOCAL_WRITE", "REMOTE_WRITE"),
		.qp = json_pack("{s:{s:s},s:{s:s}}", "p.a", "state", "RTS", "p.b", "state", "RTS"),
		.counters = json_pack("{s:i,s:i}", "send_rnr_err", 5, "rcvd_rnr_err", 5),
		.remembered = json_object(),
		.device = json_pack("{s:s,s:s,s:s}", "netdev", "v0", "rdma", "r0", "gid", "::a"),
		.reply = json_object(),
		.netem = json_array(),
		.asked = json_array(),
		.commands = json_array(),
		.env = { .request = w_request,
			 .lab = w_lab,
			 .device = w_device,
			 .plan = w_plan,
			 .peer = w_peer,
			 .qp = w_qp,
			 .remembered = w_remembered,
			 .counters = w_counters,
			 .release_receives = w_release,
			 .resume_connect = w_resume,
			 .exchange = w_exchange,
			 .timer = w_timer,
			 .wc_count = w_wc_count,
			 .posts_since = w_posts_since,
			 .signal = w_signal,
			 .restart = w_restart,
			 .abandon = w_abandon,
			 .wire = w_wire,
			 .wire_signal = w_wire_signal,
			 .wire_restart = w_wire_restart,
			 .mr_renew = w_mr_renew,
			 .gid_index = w_gid_index,
			 .device_remove = w_device_remove,
			 .device_make = w_device_make },
	};
	w->env.ctl = w;
}

static void world_free(struct world *w)
{
	json_t *all[] = { w->plan, w->qp, w->counters, w->remembered, w->device, w->reply, w->netem, w->asked, w->commands };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		json_decref(all[i]);
}

/* args is stolen. */
static struct fault fault_of(struct world *w, const char *name, json_t *args)
{
	const struct fault_ops *ops = fault_find(name);

	if (!ops || !args)
		abort();
	return (struct fault){ .ops = ops, .env = &w->env, .as = "x", .args = args, .state = json_object(), .active = true };
}

static void fault_done(struct fault *f)
{
	json_decref((json_t *)f->args);
	json_decref(f->state);
}

static int prove(struct fault *f)
{
	json_t *evidence = NULL;
	struct error e = { "" };
	int rc = f->ops->prove(f, &evidence, &e);

	CU_ASSERT(rc < 0 || json_object_size(evidence) > 0);
	json_decref(evidence);
	return rc;
}

static json_t *parse(const char *text)
{
	char buf[256];
	json_t *v;

	snprintf(buf, sizeof buf, "%s", text);
	for (char *c = buf; *c; c++)
		if (*c == '\'')
			*c = '"';
	v = json_loads(buf, 0, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(v);
	return v;
}

#endif
