/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "../harness/json.h"
#include "object.h"
#include "verbs_thread.h"
#include "xrc.h"

struct srq_call {
	struct verbs_call call;
	struct srq *srq;
	struct ibv_pd *pd;
	struct ibv_srq_init_attr init;
	uint32_t limit;
	struct ibv_srq *made;
};

static void run_create(struct verbs_call *call)
{
	struct srq_call *c = (struct srq_call *)call;
	struct ibv_srq_attr attr = { .srq_limit = c->limit };

	errno = 0;
	c->made = c->srq->xrcd ? xrc_create_srq(c->srq, &c->init, &c->srq->number) : ibv_create_srq(c->pd, &c->init);
	if (!c->made) {
		call->err = errno ? errno : EIO;
		return;
	}
	if (c->limit) {
		call->verb = "ibv_modify_srq";
		call->err = ibv_modify_srq(c->made, &attr, IBV_SRQ_LIMIT);
	}
}

static void count_users(struct srq *srq, int by)
{
	srq->pd->o.users += (unsigned)by;
	if (!srq->xrcd)
		return;
	srq->xrcd->o.users += (unsigned)by;
	srq->cq->o.users += (unsigned)by;
}

static void finish_create(struct agent *a, struct verbs_call *call)
{
	struct srq_call *c = (struct srq_call *)call;
	struct srq *srq = c->srq;
	json_t *ret = NULL;

	if (c->made)
		ret = json_pack("{s:i, s:I}", "life", (int)srq->o.life, "depth", (json_int_t)c->init.attr.max_wr);
	if (c->made && srq->xrcd)
		json_object_set_new(ret, "srqn", json_integer((json_int_t)srq->number));
	if (!call->cancelled)
		verbs_record(a, call, json_incref(ret));
	object_settle(&srq->o, c->made != NULL);
	if (c->made) {
		srq->srq = c->made;
		srq->max_sge = c->init.attr.max_sge;
		srq->depth = c->init.attr.max_wr;
		if (!srq->rq)
			srq->rq = queue_new(a, srq->o.name, NULL, false);
		queue_begin(srq->rq, srq->o.life);
	} else {
		count_users(srq, -1);
	}
	verbs_end(call, ret);
}

void op_srq_create(struct agent *a, struct request *r)
{
	struct object *pd = object_need(a, r, OBJECT_PD, "pd"), *xrcd = NULL, *cq = NULL, *o;
	struct srq_call *c;

	if (!pd || (json_str(r->body, "xrcd") &&
		    (!(xrcd = object_need(a, r, OBJECT_XRCD, "xrcd")) || !(cq = object_need(a, r, OBJECT_CQ, "cq")))))
		return;
	o = object_claim(a, r, OBJECT_SRQ);
	if (!o)
		return;
	c = verbs_call_new(sizeof(*c));
	*c = (struct srq_call){ .call = { .verb = xrcd ? "ibv_create_srq_ex" : "ibv_create_srq",
					  .obj = o,
					  .req = r,
					  .run = run_create,
					  .finish = finish_create,
					  .args = json_pack("{s:s, s:I}", "pd", pd->name, "depth",
							    json_int(r->body, "depth", 64)) },
				.srq = (struct srq *)o,
				.pd = ((struct pd *)pd)->pd,
				.init = { .attr = { .max_wr = (uint32_t)json_int(r->body, "depth", 64),
						    .max_sge = (uint32_t)json_int(r->body, "max_sge", 1) } },
				.limit = (uint32_t)json_int(r->body, "limit", 0) };
	c->srq->pd = (struct pd *)pd;
	c->srq->xrcd = (struct xrcd *)xrcd;
	c->srq->cq = (struct cq *)cq;
	count_users(c->srq, 1);
	verbs_submit(a, &c->call, json_u64(r->body, "deadline_ns", 0));
}

struct srq_modify_call {
	struct verbs_call call;
	struct ibv_srq *srq;
	struct ibv_srq_attr attr;
	int mask;
};

static void run_modify(struct verbs_call *call)
{
	struct srq_modify_call *c = (struct srq_modify_call *)call;

	call->err = ibv_modify_srq(c->srq, &c->attr, c->mask);
	if (call->err < 0)
		call->err = errno ? errno : -call->err;
}

static void finish_modify(struct agent *a, struct verbs_call *call)
{
	if (!call->cancelled)
		verbs_record(a, call, NULL);
	call->obj->busy = false;
	verbs_end(call, NULL);
}

void op_srq_modify(struct agent *a, struct request *r)
{
	struct object *o = object_need(a, r, OBJECT_SRQ, "name");
	json_t *set = json_object_get(r->body, "set");
	struct srq_modify_call *c;

	if (!o)
		return;
	c = verbs_call_new(sizeof(*c));
	*c = (struct srq_modify_call){ .call = { .verb = "ibv_modify_srq",
						 .obj = o,
						 .req = r,
						 .run = run_modify,
						 .finish = finish_modify,
						 .args = json_pack("{s:O*}", "set", set) },
				       .srq = ((struct srq *)o)->srq,
				       .attr = { .max_wr = (uint32_t)json_int(set, "max_wr", 0),
						 .srq_limit = (uint32_t)json_int(set, "limit", 0) } };
	if (json_object_get(set, "limit"))
		c->mask |= IBV_SRQ_LIMIT;
	if (json_object_get(set, "max_wr"))
		c->mask |= IBV_SRQ_MAX_WR;
	o->busy = true;
	verbs_submit(a, &c->call, json_u64(r->body, "deadline_ns", 0));
}
