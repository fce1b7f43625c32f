/* SPDX-License-Identifier: MIT */
#ifndef QD_QP_H
#define QD_QP_H

#include <jansson.h>

struct agent;
struct qp;

/* `queried{}` of a living QP. 0 or a negative errno. */
int qp_query(struct qp *qp, json_t **ret);

/* Moves a QP to ERR because somebody else than the controller wants it so; `by` is for the record. Nothing while a call on it is
 * under way. */
void qp_to_err(struct agent *a, struct qp *qp, const char *by);

#endif
