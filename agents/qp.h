/* SPDX-License-Identifier: MIT */
#ifndef QD_QP_H
#define QD_QP_H

#include <jansson.h>

struct qp;

/* `queried{}` of a living QP. 0 or a negative errno. */
int qp_query(struct qp *qp, json_t **ret);

#endif
