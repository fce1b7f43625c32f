/* SPDX-License-Identifier: MIT */
/* What a request did, by what its reply says: the table of objects follows, whoever asked (a step, a recovery, a fault). */
#include "controller_case.h"

#include <string.h>

#include "json.h"
#include "names.h"

static void made(struct object *o, const json_t *reply)
{
	o->exists = true;
	o->leaving = false;
	o->life = (unsigned)json_int(reply, "life", o->life + 1);
	json_decref(o->ret);
	o->ret = json_deep_copy(reply);
}

static void on_cq_resize(struct case_run *r, const char *agent, const json_t *req, const json_t *reply)
{
	struct object *o = ctl_object_find(r, json_str(req, "name"));

	(void)agent;
	if (o && o->ret)
		json_object_set(o->ret, "cqe", json_object_get(reply, "cqe"));
}

static void remember_answer(json_t **place, const json_t *queried)
{
	json_decref(*place);
	*place = json_incref((json_t *)queried);
}

static void on_device_open(struct case_run *r, const char *agent, const json_t *req, const json_t *reply)
{
	struct ctl_agent *a = agent_find(r, agent);

	(void)req;
	if (!a)
		return;
	json_decref(a->device);
	a->device = json_deep_copy(reply);
	if (a->lab_device) {
		json_object_set_new(a->device, "netdev", json_string(a->lab_device->netdev));
		json_object_set_new(a->device, "rdma", json_string(a->lab_device->rdma));
	}
}

static void on_create(struct case_run *r, const char *agent, const json_t *req, const json_t *reply)
{
	struct object *o = ctl_object_find(r, json_str(req, "name"));

	(void)agent;
	if (o)
		made(o, reply);
}

static void on_ah_create(struct case_run *r, const char *agent, const json_t *req, const json_t *reply)
{
	struct object *o = ctl_object_find(r, json_str(req, "name"));

	(void)agent;
	if (!o)
		return;
	made(o, reply);
	remember_answer(&o->told, json_object_get(req, "dest_gid"));
}

static void new_key(struct object *o, const json_t *rkey)
{
	o->old_rkey = o->rkey;
	o->had_old = o->life > 0;
	o->rkey = (uint32_t)json_integer_value(rkey);
}

static void on_mr_create(struct case_run *r, const char *agent, const json_t *req, const json_t *reply)
{
	struct object *o = ctl_object_find(r, json_str(req, "name"));

	(void)agent;
	if (!o)
		return;
	new_key(o, json_object_get(reply, "rkey"));
	made(o, reply);
}

/* A window has another key from each bind on. */
static void on_post(struct case_run *r, const char *agent, const json_t *req, const json_t *reply)
{
	const char *name;
	const json_t *rkey;

	(void)agent;
	(void)req;
	json_object_foreach(json_object_get(reply, "rkeys"), name, rkey) {
		struct object *o = ctl_object_find(r, name);

		if (o)
			new_key(o, rkey);
	}
}

/* Packets of the old life may still be on their way: its PSNs stay far from the new one's. */
static void new_psn(struct case_run *r, struct object *qp)
{
	uint32_t last = (qp->has_seen_psn ? qp->seen_psn : (uint32_t)json_int(qp->queried, "sq_psn", qp->sq_psn)) & CTL_PSN_MASK;

	/* A device that answers something else than its next PSN gives no window. */
	if (((last - qp->sq_psn) & CTL_PSN_MASK) > CTL_PSN_GAP)
		last = qp->sq_psn;
	qp->sq_psn = psn_away(qp->sq_psn, last, case_random(r->seed, qp->name, ++qp->psn_lives));
	qp->has_seen_psn = false;
}

static void new_life(struct object *o)
{
	o->receives_posted = false;
	o->receives_own = 0;
	o->kept_back = 0;
	json_decref(o->rtr);
	json_decref(o->rts);
	o->rtr = o->rts = NULL;
}

static void on_qp_create(struct case_run *r, const char *agent, const json_t *req, const json_t *reply)
{
	struct object *o = ctl_object_find(r, json_str(req, "name"));

	(void)agent;
	if (!o)
		return;
	if (o->life)
		new_psn(r, o);
	made(o, reply);
	new_life(o);
	o->qpn = (uint32_t)json_int(reply, "qpn", 0);
	o->state = "RESET";
}

static void on_destroy(struct case_run *r, const char *agent, const json_t *req, const json_t *reply)
{
	struct object *o = ctl_object_find(r, json_str(req, "name"));

	(void)agent;
	(void)reply;
	if (!o)
		return;
	o->exists = o->leaving = false;
	o->state = NULL;
	if (o->type == OBJECT_QP || o->type == OBJECT_SRQ)
		new_life(o);
}

void effect_moved(struct case_run *r, struct object *qp, const char *to, const char *now, unsigned life)
{
	if (now)
		qp->state = now;
	qp->life = life;
	if (to && strcmp(to, "RESET") == 0) {
		new_psn(r, qp);
		new_life(qp);
	}
}

static void on_qp_modify(struct case_run *r, const char *agent, const json_t *req, const json_t *reply)
{
	struct object *o = ctl_object_find(r, json_str(req, "name"));
	const json_t *queried = json_object_get(reply, "queried");
	const char *to = json_str(req, "to"), *state = json_str(queried, "state");
	const struct name *now;

	(void)agent;
	if (!o)
		return;
	if (!state)
		state = json_str(reply, "new");
	now = name_find(&names_state, state ? state : "");
	effect_moved(r, o, to, now ? now->text : NULL, (unsigned)json_int(reply, "life", o->life));
	if (!queried)
		return;
	remember_answer(&o->queried, queried);
	if (to && strcmp(to, "RTR") == 0)
		remember_answer(&o->rtr, queried);
	if (to && strcmp(to, "RTS") == 0 && !o->rts)
		remember_answer(&o->rts, queried);
}

static void on_qp_query(struct case_run *r, const char *agent, const json_t *req, const json_t *reply)
{
	struct object *o = ctl_object_find(r, json_str(req, "name"));
	const json_t *queried = json_object_get(reply, "queried");
	const char *state = json_str(queried, "state");

	(void)agent;
	if (!o || !queried)
		return;
	remember_answer(&o->queried, queried);
	if (state && name_find(&names_state, state))
		o->state = name_find(&names_state, state)->text;
}

static void on_post_recv(struct case_run *r, const char *agent, const json_t *req, const json_t *reply)
{
	const char *qp = json_str(req, "qp"), *by = json_str(req, "by");
	struct object *o = ctl_object_find(r, qp ? qp : json_str(req, "srq"));
	bool own = by && !strcmp(by, "step");

	(void)agent;
	if (o && own && qp)
		o->receives_own += (unsigned)json_int(reply, "accepted", 0);
	/* Those for the whole queue, which may be as new as they are. */
	if (o && !own && (!qp || json_object_get(req, "depth")))
		o->receives_posted = true;
}

static void on_cm(struct case_run *r, const char *agent, const json_t *req, const json_t *reply)
{
	struct ctl_agent *a = agent_find(r, agent);

	(void)req;
	(void)reply;
	if (a)
		a->used_cm = true;
}

static const struct {
	const char *op;
	void (*apply)(struct case_run *r, const char *agent, const json_t *req, const json_t *reply);
} effects[] = {
	{ "device_open", on_device_open }, { "pd_create", on_create },    { "cq_create", on_create },
	{ "cq_resize", on_cq_resize },     { "srq_create", on_create },   { "mr_create", on_mr_create },
	{ "ah_create", on_ah_create },     { "qp_create", on_qp_create }, { "destroy", on_destroy },
	{ "qp_modify", on_qp_modify },     { "qp_query", on_qp_query },   { "post_recv", on_post_recv },
	{ "mw_create", on_mr_create },     { "post", on_post },           { "cm_listen", on_cm },
	{ "cm_connect", on_cm },           { "xrcd_open", on_create },
};

void effect_apply(struct case_run *r, const char *agent, const json_t *req, const json_t *reply)
{
	const char *op = json_str(req, "op");

	if (json_int(reply, "rc", 0) < 0)
		return;
	for (size_t i = 0; i < sizeof effects / sizeof effects[0]; i++)
		if (op && strcmp(effects[i].op, op) == 0)
			effects[i].apply(r, agent, req, reply);
}
