/* SPDX-License-Identifier: MIT */
#include "xrc.h"

#include <errno.h>
#include <fcntl.h>

#include "../harness/json.h"
#include "extended.h"
#include "object.h"
#include "verbs_thread.h"

struct xrcd_call {
	struct verbs_call call;
	struct xrcd *xrcd;
	struct ibv_context *ctx;
	struct ibv_xrcd *made;
};

/* Of no file: a domain that no other process has. */
static void run_open(struct verbs_call *call)
{
	struct xrcd_call *c = (struct xrcd_call *)call;
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	errno = 0;
	c->made = ibv_open_xrcd(c->ctx, &init);
	if (!c->made)
		call->err = errno ? errno : EIO;
}

static void finish_open(struct agent *a, struct verbs_call *call)
{
	struct xrcd_call *c = (struct xrcd_call *)call;
	struct xrcd *xrcd = c->xrcd;

	if (!call->cancelled)
		verbs_record(a, call, NULL);
	xrcd->xrcd = c->made;
	object_settle(&xrcd->o, c->made != NULL);
	if (!c->made)
		xrcd->dev->o.users--;
	verbs_end(call, json_pack("{s:i}", "life", (int)xrcd->o.life));
}

void op_xrcd_open(struct agent *a, struct request *r)
{
	struct object *dev = object_need(a, r, OBJECT_DEV, "dev"), *o;
	struct xrcd_call *c;

	if (!dev)
		return;
	o = object_claim(a, r, OBJECT_XRCD);
	if (!o)
		return;
	c = verbs_call_new(sizeof(*c));
	*c = (struct xrcd_call){ .call = { .verb = "ibv_open_xrcd",
					   .obj = o,
					   .req = r,
					   .run = run_open,
					   .finish = finish_open,
					   .args = json_pack("{s:s}", "dev", dev->name) },
				 .xrcd = (struct xrcd *)o,
				 .ctx = ((struct dev *)dev)->ctx };
	c->xrcd->dev = (struct dev *)dev;
	dev->users++;
	verbs_submit(a, &c->call, json_u64(r->body, "deadline_ns", 0));
}

bool xrc_is(enum ibv_qp_type type)
{
	return type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
}

struct ibv_qp *xrc_create_qp(const struct qp *qp, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex ex = { .qp_type = qp->type, .sq_sig_all = init->sq_sig_all };
	struct ibv_qp *made;

	if (qp->type == IBV_QPT_XRC_SEND) {
		ex.comp_mask = IBV_QP_INIT_ATTR_PD;
		ex.pd = qp->pd->pd;
		ex.send_cq = init->send_cq;
		ex.cap = (struct ibv_qp_cap){ .max_send_wr = init->cap.max_send_wr,
					      .max_send_sge = init->cap.max_send_sge,
					      .max_inline_data = init->cap.max_inline_data };
	} else {
		ex.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		ex.xrcd = qp->xrcd->xrcd;
	}
	if (qp->extended && qp->type == IBV_QPT_XRC_SEND) {
		ex.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		ex.send_ops_flags = extended_send_ops(qp->type);
	}
	made = ibv_create_qp_ex(qp->pd->dev->ctx, &ex);
	if (made)
		init->cap = ex.cap;
	return made;
}

struct ibv_srq *xrc_create_srq(const struct srq *srq, struct ibv_srq_init_attr *init, uint32_t *ret_number)
{
	struct ibv_srq_init_attr_ex ex = {
		.attr = init->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = srq->pd->pd,
		.xrcd = srq->xrcd->xrcd,
		.cq = srq->cq->cq,
	};
	struct ibv_srq *made = ibv_create_srq_ex(srq->pd->dev->ctx, &ex);
	int err = made ? ibv_get_srq_num(made, ret_number) : 0;

	if (made && err) {
		ibv_destroy_srq(made);
		errno = err < 0 ? errno : err;
		return NULL;
	}
	if (made)
		init->attr = ex.attr;
	return made;
}

uint32_t xrc_parse(const struct qp *qp, const json_t *body)
{
	return qp->type == IBV_QPT_XRC_SEND ? (uint32_t)json_int(body, "remote_srqn", 0) : 0;
}

void xrc_put(const struct qp *qp, uint32_t srqn, struct ibv_send_wr *wr)
{
	if (qp->type == IBV_QPT_XRC_SEND)
		wr->qp_type.xrc.remote_srqn = srqn;
}
