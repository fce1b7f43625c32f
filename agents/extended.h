/* SPDX-License-Identifier: MIT */
/*
 * The extended interface: ibv_wr_* in place of a list for ibv_post_send(), ibv_start_poll() in place of an array for ibv_poll_cq().
 * Everybody posts and polls through here; which interface serves follows from how the queue was made.
 */
#ifndef QD_EXTENDED_H
#define QD_EXTENDED_H

#include <infiniband/verbs.h>
#include <stdbool.h>

struct cq;
struct qp;

/* Every operation that the type can do, IBV_QP_EX_WITH_*. */
uint64_t extended_send_ops(enum ibv_qp_type type);
/* As ibv_create_qp(), with every operation that the type can do; init->cap becomes what the device made of it. */
struct ibv_qp *extended_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init);
/* As ibv_create_cq(). */
struct ibv_cq *extended_create_cq(struct ibv_context *ctx, int depth, void *user, struct ibv_comp_channel *channel);

/* As ibv_post_send(). The extended interface takes all of a list or nothing: *bad is its first then. */
int qp_send(struct qp *qp, struct ibv_send_wr *list, struct ibv_send_wr **bad);
/* As ibv_poll_cq(); on an error only what an error completion holds is read. */
int cq_take(struct cq *cq, int max, struct ibv_wc *wc);

#endif
