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
