/* SPDX-License-Identifier: MIT */
/* Between the JSON of a request and struct ibv_qp_attr. Pure. */
#ifndef QD_QP_ATTR_H
#define QD_QP_ATTR_H

#include <infiniband/verbs.h>
#include <jansson.h>

#include "../harness/error.h"
#include "columns.h"

struct qp_defaults {
	int port, gid_index;
};

/* Reads `set` into *attr (address vectors are global, as RoCE wants them) and the mask bits that it speaks of into *ret_given. */
int qp_attr_parse(const json_t *set, const struct qp_defaults *d, struct ibv_qp_attr *attr, int *ret_given, struct error *e);
/* One of them by itself: NULL when there is none of that name. -EINVAL with e filled for a value that it cannot have. */
struct qp_attr_setter;
const struct qp_attr_setter *qp_attr_setter(const char *name);
int qp_attr_put(const struct qp_attr_setter *s, const json_t *value, struct ibv_qp_attr *attr, struct error *e);
/* Names of mask bits ("TIMEOUT") to bits. */
int qp_mask_parse(const json_t *names, int *ret_mask, struct error *e);
/* The mask of a move: see formats.md, qp_modify. */
int qp_mask_choose(int type, int from, int to, int given, int leave_out, int add);
json_t *qp_mask_json(int mask);
/* `queried{}` */
json_t *qp_attr_json(const struct ibv_qp_attr *attr, const struct ibv_qp_cap *cap, uint32_t qpn);
/* Those of two have no difference but in integers and in qpn: as columns they are one `queried{}`, that of the first. */
bool qp_attr_alike(const struct ibv_qp_attr *a, const struct ibv_qp_cap *cap_a, const struct ibv_qp_attr *b,
		   const struct ibv_qp_cap *cap_b);
/* The integers that differ go from queried to a column of each; qpn is left alone. */
void qp_attr_columns(struct rows attrs, json_t *queried, struct each *each);
json_t *qp_cap_json(const struct ibv_qp_cap *cap);

#endif
