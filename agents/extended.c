/* SPDX-License-Identifier: MIT */
#include "extended.h"

#include <errno.h>
#include <string.h>

#include "object.h"
#include "post.h"

#define UD_OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define UC_OPS (UD_OPS | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define RC_OPS                                                                                                                     \
	(UC_OPS | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |             \
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)

uint64_t extended_send_ops(enum ibv_qp_type type)
{
	return type == IBV_QPT_UD ? UD_OPS : type == IBV_QPT_UC ? UC_OPS : RC_OPS;
}

struct ibv_qp *extended_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = init->qp_context,
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.srq = init->srq,
		.cap = init->cap,
		.qp_type = init->qp_type,
		.sq_sig_all = init->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = extended_send_ops(init->qp_type),
	};
	struct ibv_qp *qp = ibv_create_qp_ex(pd->context, &ex);

	if (qp)
		init->cap = ex.cap;
	return qp;
}

struct ibv_cq *extended_create_cq(struct ibv_context *ctx, int depth, void *user, struct ibv_comp_channel *channel)
{
	struct ibv_cq_init_attr_ex ex = {
		.cqe = (uint32_t)depth,
		.cq_context = user,
		.channel = channel,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &ex);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

static void set_operation(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(qp);
		return;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp, wr->imm_data);
		return;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(qp, wr->invalidate_rkey);
		return;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		return;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, wr->imm_data);
		return;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		return;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr, wr->wr.atomic.compare_add,
				      wr->wr.atomic.swap);
		return;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr, wr->wr.atomic.compare_add);
		return;
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(qp, wr->invalidate_rkey);
		return;
	case IBV_WR_BIND_MW:
		ibv_wr_bind_mw(qp, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		return;
	default: /* none of the language's */
		return;
	}
}

static void *at(const struct ibv_sge *sge)
{
	return (void *)(uintptr_t)sge->addr; /* NOLINT(performance-no-int-to-ptr): verbs keep addresses as numbers */
}

static void set_data(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	const struct ibv_sge *one = wr->num_sge == 1 ? wr->sg_list : NULL;
	bool is_inline = wr->send_flags & IBV_SEND_INLINE;
	struct ibv_data_buf buf[POST_SGE_MAX];

	if (one && is_inline)
		ibv_wr_set_inline_data(qp, at(one), one->length);
	else if (one)
		ibv_wr_set_sge(qp, one->lkey, one->addr, one->length);
	else if (!is_inline)
		ibv_wr_set_sge_list(qp, (size_t)wr->num_sge, wr->sg_list);
	if (one || !is_inline)
		return;
	for (int i = 0; wr->sg_list && i < wr->num_sge; i++)
		buf[i] = (struct ibv_data_buf){ .addr = at(&wr->sg_list[i]), .length = wr->sg_list[i].length };
	ibv_wr_set_inline_data_list(qp, (size_t)wr->num_sge, buf);
}

static int send_extended(struct ibv_qp *ibqp, struct ibv_send_wr *list, struct ibv_send_wr **bad)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(ibqp);
	int err;

	ibv_wr_start(qp);
	for (const struct ibv_send_wr *wr = list; wr; wr = wr->next) {
		qp->wr_id = wr->wr_id;
		qp->wr_flags = wr->send_flags;
		set_operation(qp, wr);
		if (wr->opcode == IBV_WR_LOCAL_INV || wr->opcode == IBV_WR_BIND_MW)
			continue;
		if (ibqp->qp_type == IBV_QPT_XRC_SEND)
			ibv_wr_set_xrc_srqn(qp, wr->qp_type.xrc.remote_srqn);
		if (ibqp->qp_type == IBV_QPT_UD)
			ibv_wr_set_ud_addr(qp, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
		set_data(qp, wr);
	}
	err = ibv_wr_complete(qp);
	if (err)
		*bad = list;
	return err;
}

int qp_send(struct qp *qp, struct ibv_send_wr *list, struct ibv_send_wr **bad)
{
	return qp->extended ? send_extended(qp->qp, list, bad) : ibv_post_send(qp->qp, list, bad);
}

static void read_one(struct ibv_cq_ex *cq, struct ibv_wc *wc)
{
	*wc = (struct ibv_wc){
		.wr_id = cq->wr_id, .status = cq->status, .qp_num = ibv_wc_read_qp_num(cq), .vendor_err = ibv_wc_read_vendor_err(cq)
	};
	if (wc->status != IBV_WC_SUCCESS)
		return;
	wc->opcode = ibv_wc_read_opcode(cq);
	wc->byte_len = ibv_wc_read_byte_len(cq);
	wc->wc_flags = ibv_wc_read_wc_flags(cq);
	if (wc->wc_flags & IBV_WC_WITH_IMM)
		wc->imm_data = ibv_wc_read_imm_data(cq);
	else if (wc->wc_flags & IBV_WC_WITH_INV)
		wc->invalidated_rkey = ibv_wc_read_invalidated_rkey(cq);
	wc->src_qp = ibv_wc_read_src_qp(cq);
}

int cq_take(struct cq *cq, int max, struct ibv_wc *wc)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_cq_ex *ex;
	int n = 0, err = 0;

	if (!cq->extended)
		return ibv_poll_cq(cq->cq, max, wc);
	/* The library has this only the other way round; its CQs begin alike. */
	ex = (struct ibv_cq_ex *)cq->cq;
	/* One at a time: librxe takes ibv_next_poll() that finds nothing for the end, and ibv_end_poll() after it for one more. */
	while (n < max && !(err = ibv_start_poll(ex, &attr))) {
		read_one(ex, &wc[n++]);
		ibv_end_poll(ex);
	}
	return err && err != ENOENT ? -err : n;
}
