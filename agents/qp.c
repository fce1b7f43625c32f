/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/attr.h"
#include "../harness/json.h"
#include "../harness/names.h"
#include "../harness/units.h"
#include "cq.h"
#include "extended.h"
#include "object.h"
#include "qp.h"
#include "qp_attr.h"
#include "verbs_thread.h"
#include "xrc.h"

#define QUERY_MASK                                                                                                                 \
	(IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_AV |       \
	 IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC |        \
	 IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_CAP | IBV_QP_DEST_QPN)

struct create_call {
	struct verbs_call call;
	struct qp *qp;
	struct ibv_pd *pd;
	struct ibv_qp_init_attr init;
	struct ibv_qp *made;
};

static void run_create(struct verbs_call *call)
{
	struct create_call *c = (struct create_call *)call;

	errno = 0;
	c->made = xrc_is(c->qp->type) ? xrc_create_qp(c->qp, &c->init)
		  : c->qp->extended   ? extended_create_qp(c->pd, &c->init)
				      : ibv_create_qp(c->pd, &c->init);
	if (!c->made)
		call->err = errno ? errno : EIO;
}

static void count_users(struct qp *qp, int by)
{
	qp->pd->o.users += (unsigned)by;
	qp->scq->o.users += (unsigned)by;
	qp->rcq->o.users += (unsigned)by;
	if (qp->srq)
		qp->srq->o.users += (unsigned)by;
	if (qp->xrcd)
		qp->xrcd->o.users += (unsigned)by;
}

static void make_queues(struct agent *a, struct qp *qp)
{
	char name[300];

	if (!qp->sq) {
		snprintf(name, sizeof(name), "%s.send", qp->o.name);
		qp->sq = queue_new(a, name, qp, true);
		snprintf(name, sizeof(name), "%s.recv", qp->o.name);
		qp->rq = queue_new(a, name, qp, false);
	}
	queue_begin(qp->sq, qp->o.life);
	queue_begin(qp->rq, qp->o.life);
}

static void finish_create(struct agent *a, struct verbs_call *call)
{
	struct create_call *c = (struct create_call *)call;
	struct qp *qp = c->qp;
	json_t *ret = NULL;

	if (c->made) {
		qp->qp = c->made;
		qp->cap = c->init.cap;
		qp->state = IBV_QPS_RESET;
		qp_number_add(a, qp);
		ret = json_pack("{s:i, s:I, s:o}", "life", (int)qp->o.life, "qpn", (json_int_t)c->made->qp_num, "cap",
				qp_cap_json(&c->init.cap));
	}
	if (!call->cancelled)
		verbs_record(a, call, json_incref(ret));
	object_settle(&qp->o, c->made != NULL);
	if (c->made)
		make_queues(a, qp);
	else
		count_users(qp, -1);
	verbs_end(call, ret);
}

static uint32_t cap_value(const json_t *cap, const char *key, int64_t def)
{
	return (uint32_t)json_int(cap, key, def);
}

static void fill_init(const struct request *r, const struct qp *qp, struct ibv_qp_init_attr *init)
{
	const json_t *cap = json_object_get(r->body, "cap");

	*init = (struct ibv_qp_init_attr){
		.send_cq = qp->scq->cq,
		.recv_cq = qp->rcq->cq,
		.srq = qp->srq ? qp->srq->srq : NULL,
		.qp_type = qp->type,
		.sq_sig_all = qp->signal_all,
		.cap = { .max_send_wr = cap_value(cap, "max_send_wr", 64),
			 .max_recv_wr = cap_value(cap, "max_recv_wr", 64),
			 .max_send_sge = cap_value(cap, "max_send_sge", 1),
			 .max_recv_sge = cap_value(cap, "max_recv_sge", 1),
			 .max_inline_data = cap_value(cap, "max_inline_data", 0) },
	};
}

/* What it is made with. Of XRC's two ends each has one CQ, which stands for both. */
struct parts {
	struct object *pd, *scq, *rcq, *srq, *xrcd;
};

static bool find_parts(struct agent *a, struct request *r, int type, struct parts *p)
{
	bool sends = type != IBV_QPT_XRC_RECV, receives = type != IBV_QPT_XRC_SEND;

	if (!(p->pd = object_need(a, r, OBJECT_PD, "pd")) || (sends && !(p->scq = object_need(a, r, OBJECT_CQ, "send_cq"))) ||
	    (receives && !(p->rcq = object_need(a, r, OBJECT_CQ, "recv_cq"))) ||
	    (receives && json_str(r->body, "srq") && !(p->srq = object_need(a, r, OBJECT_SRQ, "srq"))) ||
	    (!sends && !(p->xrcd = object_need(a, r, OBJECT_XRCD, "xrcd"))))
		return false;
	p->scq = sends ? p->scq : p->rcq;
	p->rcq = receives ? p->rcq : p->scq;
	return true;
}

void op_qp_create(struct agent *a, struct request *r)
{
	const char *type_name = json_str(r->body, "type"), *rx = json_str(r->body, "rx"), *api = json_str(r->body, "api");
	const struct name *type = name_find(&names_qp_type, type_name ? type_name : "RC");
	struct parts p = { .pd = NULL };
	struct create_call *c;
	struct object *o;
	struct qp *qp;

	if (!type) {
		request_fail(r, -EINVAL, "qp_create: unknown type \"%s\"", type_name);
		return;
	}
	if (!find_parts(a, r, type->value, &p))
		return;
	o = object_claim(a, r, OBJECT_QP);
	if (!o)
		return;
	c = verbs_call_new(sizeof(*c));
	qp = (struct qp *)o;
	qp->pd = (struct pd *)p.pd;
	qp->scq = (struct cq *)p.scq;
	qp->rcq = (struct cq *)p.rcq;
	qp->srq = (struct srq *)p.srq;
	qp->xrcd = (struct xrcd *)p.xrcd;
	qp->type = (enum ibv_qp_type)type->value;
	qp->extended = api && strcmp(api, "extended") == 0;
	qp->signal_all = json_bool(r->body, "signal_all", false);
	snprintf(qp->rx_name, sizeof(qp->rx_name), "%s", rx ? rx : "");
	count_users(qp, 1);
	*c = (struct create_call){ .call = { .verb = qp->extended || xrc_is(qp->type) ? "ibv_create_qp_ex" : "ibv_create_qp",
					     .obj = o,
					     .req = r,
					     .run = run_create,
					     .finish = finish_create,
					     .args = json_pack("{s:s, s:s, s:s, s:s, s:O*}", "type", type->text, "pd", p.pd->name,
							       "send_cq", p.scq->name, "recv_cq", p.rcq->name, "cap",
							       json_object_get(r->body, "cap")) },
				   .qp = qp,
				   .pd = qp->pd->pd };
	fill_init(r, qp, &c->init);
	verbs_submit(a, &c->call, json_u64(r->body, "deadline_ns", 0));
}

struct modify_call {
	struct verbs_call call;
	struct qp *qp;
	struct ibv_qp *handle;
	int type, to, given, leave_out, add, mask;
	struct ibv_qp_attr attr;
	json_t *set, *values;
	char by[16];
	bool brief;
	struct ibv_qp_attr before, after;
	struct ibv_qp_init_attr init;
	int query_err;
	int old; /* -1: the query before failed */
};

static void run_modify(struct verbs_call *call)
{
	struct modify_call *c = (struct modify_call *)call;

	c->old = ibv_query_qp(c->handle, &c->before, QUERY_MASK, &c->init) == 0 ? (int)c->before.qp_state : -1;
	c->attr.qp_state = (enum ibv_qp_state)c->to;
	c->mask = qp_mask_choose(c->type, c->old < 0 ? (int)c->qp->state : c->old, c->to, c->given, c->leave_out, c->add);
	call->started_ns = now_ns();
	call->err = ibv_modify_qp(c->handle, &c->attr, c->mask);
	call->ended_ns = now_ns();
	if (call->err < 0)
		call->err = call->err == -1 && errno ? errno : -call->err;
	c->query_err = ibv_query_qp(c->handle, &c->after, QUERY_MASK, &c->init);
}

/* Completions that are there belong to the life that ends; what else was outstanding ends unseen. */
static void begin_next_life(struct agent *a, struct qp *qp)
{
	cq_catch_up(a, qp->scq);
	if (qp->rcq != qp->scq)
		cq_catch_up(a, qp->rcq);
	qp_discard(a, qp);
	qp->o.life++;
	queue_begin(qp->sq, qp->o.life);
	queue_begin(qp->rq, qp->o.life);
}

/* Values that the mask took up are given as well. */
static json_t *all_given(const struct modify_call *c)
{
	json_t *given = c->set ? json_copy(c->set) : json_object(), *v;
	const char *key;

	json_object_foreach(c->values, key, v) {
		const struct attr *row = attr_find(key);

		if (row && row->mask & c->mask && !json_object_get(given, key))
			json_object_set(given, key, v);
	}
	return given;
}

static json_t *state_fields(const struct modify_call *c, const char *old, const char *new, json_t *queried)
{
	json_t *f = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o*, s:i, s:s, s:I}", "asked", name_of(&names_state, c->to), "old", old,
			      "new", new, "mask", qp_mask_json(c->mask), "attrs", all_given(c), "queried", queried, "errno",
			      c->call.err, "by", c->by, "dur_ns", (json_int_t)(c->call.ended_ns - c->call.started_ns));

	if (c->query_err)
		json_object_set_new(f, "note", json_sprintf("ibv_query_qp: %s", strerror(c->query_err)));
	if (c->call.late)
		json_object_set_new(f, "late", json_true());
	return f;
}

static void finish_modify(struct agent *a, struct verbs_call *call)
{
	struct modify_call *c = (struct modify_call *)call;
	struct qp *qp = c->qp;
	const char *old, *new;
	json_t *queried = NULL, *reply;

	qp->o.busy = false;
	if (call->cancelled)
		goto free_call;
	old = c->old < 0 ? "?" : name_of(&names_state, c->old);
	if (!c->query_err) {
		queried = qp_attr_json(&c->after, &c->init.cap, qp->qp->qp_num);
		qp->state = c->after.qp_state;
		/* The device's last word: some round depths up and do not say so when they make the QP. */
		qp->cap.max_recv_wr = c->init.cap.max_recv_wr;
	}
	new = c->query_err ? "?" : name_of(&names_state, (int)c->after.qp_state);
	if (!call->err && c->to == IBV_QPS_RESET)
		begin_next_life(a, qp);
	if (call->late)
		verbs_record(a, call, NULL);
	agent_record(a, call->started_ns, "state", qp->o.name, qp->o.life, state_fields(c, old, new, json_incref(queried)));
	reply = json_pack("{s:s, s:s, s:i}", "old", old, "new", new, "life", (int)qp->o.life);
	if (queried && !c->brief)
		json_object_set(reply, "queried", queried);
	json_decref(queried);
	if (call->err && call->req) {
		request_fail_with(call->req, -call->err, reply, "%s from %s to %s: %s", qp->o.name, old,
				  name_of(&names_state, c->to), strerror(call->err));
		call->req = NULL;
	} else {
		verbs_reply(call, reply);
	}
free_call:
	json_decref(c->set);
	json_decref(c->values);
	free(c);
}

/* What was given, with the device's own where the request left it to us. */
static json_t *given_json(const json_t *set, const struct qp_defaults *d)
{
	json_t *copy = set ? json_copy((json_t *)set) : json_object();

	json_t *gid_index = json_object_get(copy, "gid_index");

	if (json_is_null(gid_index) || (!gid_index && json_object_get(copy, "dest_gid")))
		json_object_set_new(copy, "gid_index", json_integer(d->gid_index));
	return copy;
}

/* What the mask's bits say where `set` does not speak of them. */
static json_t *merged_values(const json_t *values, const json_t *set)
{
	json_t *both = values ? json_copy((json_t *)values) : json_object();

	if (set)
		json_object_update(both, (json_t *)set);
	return both;
}

void op_qp_modify(struct agent *a, struct request *r)
{
	struct object *o = object_need(a, r, OBJECT_QP, "name");
	const char *to_name = json_str(r->body, "to"), *by = json_str(r->body, "by");
	const struct name *to = name_find(&names_state, to_name ? to_name : "");
	const json_t *set = json_object_get(r->body, "set");
	json_t *merged;
	struct qp_defaults d;
	struct modify_call *c;
	struct error e = { "" };
	struct qp *qp = (struct qp *)o;
	int ignored;

	if (!o)
		return;
	if (!to) {
		request_fail(r, -EINVAL, "qp_modify: %s: unknown state \"%s\"", o->name, to_name ? to_name : "");
		return;
	}
	c = verbs_call_new(sizeof(*c));
	d = (struct qp_defaults){ qp->pd->dev->port, qp->pd->dev->gid_index };
	c->call = (struct verbs_call){ .verb = "ibv_modify_qp", .obj = o, .req = r, .run = run_modify, .finish = finish_modify };
	c->qp = qp;
	c->handle = qp->qp;
	c->type = (int)qp->type;
	c->to = to->value;
	snprintf(c->by, sizeof(c->by), "%s", by ? by : "harness");
	c->brief = json_bool(r->body, "brief", false);
	merged = merged_values(json_object_get(r->body, "values"), set);
	if (qp_attr_parse(set, &d, &c->attr, &c->given, &e) < 0 || qp_attr_parse(merged, &d, &c->attr, &ignored, &e) < 0 ||
	    qp_mask_parse(json_object_get(r->body, "leave_out"), &c->leave_out, &e) < 0 ||
	    qp_mask_parse(json_object_get(r->body, "add"), &c->add, &e) < 0) {
		request_fail(r, -EINVAL, "qp_modify: %s: %s", o->name, e.text);
		json_decref(merged);
		free(c);
		return;
	}
	json_decref(merged);
	c->set = given_json(set, &d);
	c->values = json_incref(json_object_get(r->body, "values"));
	o->busy = true;
	verbs_submit(a, &c->call, json_u64(r->body, "deadline_ns", 0));
}

void qp_to_err(struct agent *a, struct qp *qp, const char *by)
{
	struct modify_call *c;

	if (!qp->o.alive || qp->o.busy || qp->dying)
		return;
	c = verbs_call_new(sizeof(*c));
	c->call = (struct verbs_call){ .verb = "ibv_modify_qp", .obj = &qp->o, .run = run_modify, .finish = finish_modify };
	c->qp = qp;
	c->handle = qp->qp;
	c->type = (int)qp->type;
	c->to = IBV_QPS_ERR;
	snprintf(c->by, sizeof(c->by), "%s", by);
	qp->o.busy = true;
	verbs_submit(a, &c->call, 0);
}

int qp_query(struct qp *qp, json_t **ret)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	int err = ibv_query_qp(qp->qp, &attr, QUERY_MASK, &init);

	if (err)
		return err < 0 ? (errno ? -errno : -EIO) : -err;
	qp->state = attr.qp_state;
	*ret = qp_attr_json(&attr, &init.cap, qp->qp->qp_num);
	return 0;
}

void op_qp_query(struct agent *a, struct request *r)
{
	struct object *o = object_need(a, r, OBJECT_QP, "name");
	struct qp *qp = (struct qp *)o;
	const char *by = json_str(r->body, "by"), *old, *new;
	json_t *queried = NULL;
	uint64_t t = now_ns();
	int rc;

	if (!o)
		return;
	old = name_of(&names_state, (int)qp->state);
	rc = qp_query(qp, &queried);
	new = name_of(&names_state, (int)qp->state);
	agent_record(a, t, "state", o->name, o->life,
		     json_pack("{s:s, s:s, s:O*, s:i, s:s}", "old", old, "new", rc < 0 ? "?" : new, "queried", queried, "errno",
			       -rc, "by", by ? by : "query"));
	if (rc < 0)
		request_fail(r, rc, "ibv_query_qp: %s: %s", o->name, strerror(-rc));
	else
		request_reply(r, json_pack("{s:i, s:O*}", "life", (int)o->life, "queried",
					   json_bool(r->body, "brief", false) ? NULL : queried));
	json_decref(queried);
}
