/* SPDX-License-Identifier: MIT */
#ifndef QD_QP_H
#define QD_QP_H

#include <jansson.h>

struct agent;
struct qp;

/* All that a device can be asked of a QP. */
#define QP_QUERY_MASK                                                                                                              \
	(IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_AV |       \
	 IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC |        \
	 IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_CAP | IBV_QP_DEST_QPN)

/* `queried{}` of a living QP. 0 or a negative errno. */
int qp_query(struct qp *qp, json_t **ret);

/* Moves a QP to ERR because somebody else than the controller wants it so; `by` is for the record. Nothing while a call on it is
 * under way. */
void qp_to_err(struct agent *a, struct qp *qp, const char *by);

#endif
