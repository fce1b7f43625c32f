/* SPDX-License-Identifier: MIT */
/* Extended reliable connections of the device that exists only in a test program. Included by one file of it, which calls
 * fake_xrc(). */
#ifndef QD_FAKE_XRC_H
#define QD_FAKE_XRC_H

#include "fake_verbs.h"

static struct ibv_xrcd *fake_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *init)
{
	const uint32_t wanted = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct fake_xrcd *xrcd = NULL;

	errno = EINVAL;
	if (init->comp_mask == wanted)
		xrcd = fake_make(sizeof(*xrcd));
	if (!xrcd)
		return NULL;
	xrcd->xrcd.context = context;
	return &xrcd->xrcd;
}

static int fake_close_xrcd(struct ibv_xrcd *ibxrcd)
{
	return ((struct fake_xrcd *)ibxrcd)->users ? EBUSY : fake_unmake(ibxrcd);
}

static struct ibv_srq *fake_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init)
{
	struct fake_srq *srq;

	errno = EINVAL;
	if (init->srq_type != IBV_SRQT_XRC || !init->pd || !init->xrcd || !init->cq)
		return NULL;
	srq = fake_make(sizeof(*srq));
	if (!srq)
		return NULL;
	srq->srq = (struct ibv_srq){ .context = context, .pd = init->pd };
	srq->attr = init->attr;
	srq->number = 0x500 + fake.next_qpn++;
	srq->cq = init->cq;
	srq->xrcd = (struct fake_xrcd *)init->xrcd;
	srq->xrcd->users++;
	fake.srq = srq;
	return &srq->srq;
}

static int fake_get_srq_num(struct ibv_srq *ibsrq, uint32_t *number)
{
	if (fake_fails())
		return ENOMEM;
	*number = ((struct fake_srq *)ibsrq)->number;
	return 0;
}

/* Of the two ends: each has what it needs, and nothing else. */
static struct ibv_qp *fake_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
	struct fake_qp *qp;

	errno = EINVAL;
	if (init->qp_type != IBV_QPT_XRC_RECV || init->comp_mask != IBV_QP_INIT_ATTR_XRCD || !init->xrcd || init->send_cq ||
	    init->recv_cq || init->srq)
		return NULL;
	qp = fake_make(sizeof(*qp));
	if (!qp)
		return NULL;
	qp->qp = (struct ibv_qp){ .context = context, .qp_num = fake.next_qpn++, .qp_type = init->qp_type };
	qp->xrcd = (struct fake_xrcd *)init->xrcd;
	qp->xrcd->users++;
	fake.qp = qp;
	return &qp->qp;
}

static void fake_xrc_extend(struct verbs_context *verbs)
{
	verbs->sz = sizeof(*verbs);
	verbs->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	verbs->open_xrcd = fake_open_xrcd;
	verbs->close_xrcd = fake_close_xrcd;
	verbs->create_qp_ex = fake_create_qp_ex;
	verbs->create_srq_ex = fake_create_srq_ex;
	verbs->get_srq_num = fake_get_srq_num;
}

static void fake_xrc(void)
{
	fake.cap_flags = IBV_DEVICE_XRC;
	fake.extend = fake_xrc_extend;
}

#endif
