/* SPDX-License-Identifier: MIT */
/*
 * Extended reliable connections (IBTA A14). Of a connection one end, XRC_SEND, has a send queue alone; the other, XRC_RECV, has no
 * queue at all. Each request names by its number the shared receive queue at the other end that it is for: one of those in the same
 * domain as the QP that it comes in by. A message's completion is in the CQ of that SRQ, with the number of the receiving QP.
 */
#ifndef QD_XRC_H
#define QD_XRC_H

#include <infiniband/verbs.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct qp;
struct srq;

bool xrc_is(enum ibv_qp_type type);

/* As ibv_create_qp() and ibv_create_srq(), of what qp (srq) says that it is made with. init's cap is what the device made of it. */
struct ibv_qp *xrc_create_qp(const struct qp *qp, struct ibv_qp_init_attr *init);
struct ibv_srq *xrc_create_srq(const struct srq *srq, struct ibv_srq_init_attr *init, uint32_t *ret_number);

/* Where a request of an XRC_SEND QP goes: `remote_srqn` of body. */
uint32_t xrc_parse(const struct qp *qp, const json_t *body);
void xrc_put(const struct qp *qp, uint32_t srqn, struct ibv_send_wr *wr);

#endif
