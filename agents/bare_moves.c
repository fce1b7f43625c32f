/* SPDX-License-Identifier: MIT */
#include "bare_moves.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/units.h"

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr; /* where all receives would go; NULL: none is posted */
	unsigned receives; /* of each QP */
	union ibv_gid gid;
	int gid_index;
	struct ibv_qp **qp; /* `made` of them */
	unsigned made;
};

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	for (int i = 0; list && list[i] && !ctx; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return ctx;
}

/* An IPv4 address as IPv6 writes it. */
static bool find_gid(struct end *d)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	for (d->gid_index = 0; ibv_query_gid(d->ctx, 1, d->gid_index, &d->gid) == 0; d->gid_index++)
		if (memcmp(d->gid.raw, mapped, sizeof mapped) == 0)
			return true;
	return false;
}

#define CQ_MAX 32767
#define FLUSH_NS (30 * NSEC_PER_SEC)

static char landing[64]; /* nothing ever arrives */

static int make_end(const char *device, unsigned pairs, bool whole, struct end *d, struct error *e)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1 } };

	d->ctx = open_device(device);
	if (!d->ctx || !find_gid(d))
		return error_set(e, -ENODEV, "%s: %s", device, d->ctx ? "it has no IPv4 address" : "it cannot be opened");
	d->pd = ibv_alloc_pd(d->ctx);
	d->cq = d->pd ? ibv_create_cq(d->ctx, whole ? CQ_MAX : 64, NULL, NULL, 0) : NULL;
	d->mr = whole && d->pd ? ibv_reg_mr(d->pd, landing, sizeof landing, IBV_ACCESS_LOCAL_WRITE) : NULL;
	d->qp = calloc(pairs, sizeof(struct ibv_qp *));
	if (!d->cq || !d->qp || (whole && !d->mr))
		return error_set(e, -ENOMEM, "%s: no CQ", device);
	init.send_cq = init.recv_cq = d->cq;
	for (; d->made < pairs; d->made++) {
		d->qp[d->made] = ibv_create_qp(d->pd, &init);
		if (!d->qp[d->made])
			return error_set(e, -errno, "%s: QP %u of %u: %s", device, d->made, pairs, strerror(errno));
		d->receives = init.cap.max_recv_wr;
		if (whole && (size_t)d->receives * pairs > CQ_MAX)
			return error_set(e, -E2BIG, "%s: %u receives of %u QPs do not go into one CQ", device, d->receives, pairs);
	}
	return 0;
}

static void drop_end(struct end *d)
{
	while (d->made)
		ibv_destroy_qp(d->qp[--d->made]);
	free(d->qp);
	if (d->mr)
		ibv_dereg_mr(d->mr);
	if (d->cq)
		ibv_destroy_cq(d->cq);
	if (d->pd)
		ibv_dealloc_pd(d->pd);
	if (d->ctx)
		ibv_close_device(d->ctx);
}

static int move(struct end *d, const struct end *peer, unsigned i, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = { .qp_state = to,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = peer->qp[i]->qp_num,
				    .rq_psn = i,
				    .sq_psn = i,
				    .max_dest_rd_atomic = 4,
				    .max_rd_atomic = 4,
				    .min_rnr_timer = 12,
				    .timeout = 20,
				    .retry_cnt = 6,
				    .rnr_retry = 5,
				    .ah_attr = {
					    .is_global = 1,
					    .port_num = 1,
					    .grh = { .dgid = peer->gid, .sgid_index = (uint8_t)d->gid_index, .hop_limit = 64 } } };
	int mask = IBV_QP_STATE;

	if (to == IBV_QPS_INIT)
		mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	if (to == IBV_QPS_RTR)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			IBV_QP_MIN_RNR_TIMER;
	if (to == IBV_QPS_RTS)
		mask |= IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(d->qp[i], &attr, mask);
}

/* A QP's receives, one call each, as many as it holds. */
static int fill(struct end *d, unsigned i)
{
	struct ibv_sge sge = { .addr = (uintptr_t)landing, .length = sizeof landing, .lkey = d->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	int err = 0;

	for (unsigned n = 0; n < d->receives && !err; n++)
		err = ibv_post_recv(d->qp[i], &wr, &bad);
	return err;
}

/* All receives have come back. */
static int flushed(struct end *d)
{
	uint64_t end_ns = now_ns() + FLUSH_NS;
	struct ibv_wc wc[32];

	for (size_t left = (size_t)d->receives * d->made; left;) {
		int n = ibv_poll_cq(d->cq, 32, wc);

		if (n < 0 || (!n && now_ns() > end_ns))
			return n < 0 ? EIO : ETIMEDOUT;
		left -= (size_t)n;
	}
	return 0;
}

static int move_one(struct end ends[2], int k, unsigned i, enum ibv_qp_state to)
{
	int err = move(&ends[k], &ends[!k], i, to);

	return !err && ends[k].mr && to == IBV_QPS_INIT ? fill(&ends[k], i) : err;
}

static int move_all(struct end ends[2], const enum ibv_qp_state *moves, size_t n, struct error *e)
{
	for (size_t m = 0; m < n; m++)
		for (int k = 0; k < 2; k++) {
			int err = 0;

			for (unsigned i = 0; !err && i < ends[k].made; i++)
				err = move_one(ends, k, i, moves[m]);
			if (!err && ends[k].mr && moves[m] == IBV_QPS_ERR)
				err = flushed(&ends[k]);
			if (err)
				return error_set(e, -abs(err), "move %zu: %s", m, strerror(abs(err)));
		}
	return 0;
}

int bare_moves(const char *device_a, const char *device_b, unsigned pairs, bool whole, double *ret_us, struct error *e)
{
	static const enum ibv_qp_state moves[] = { IBV_QPS_ERR, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	struct end ends[2] = { { .ctx = NULL }, { .ctx = NULL } };
	int rc = make_end(device_a, pairs, whole, &ends[0], e);
	uint64_t begin_ns = 0;

	if (rc == 0)
		rc = make_end(device_b, pairs, whole, &ends[1], e);
	if (rc == 0)
		rc = move_all(ends, moves + 2, 3, e);
	begin_ns = now_ns();
	if (rc == 0)
		rc = move_all(ends, moves, 5, e);
	if (rc == 0)
		*ret_us = (double)(now_ns() - begin_ns) / 1e3 / pairs;
	drop_end(&ends[0]);
	drop_end(&ends[1]);
	return rc;
}
