/* SPDX-License-Identifier: MIT */
/* Between the JSON of a request and struct ibv_qp_attr. Pure. */
#ifndef QD_QP_ATTR_H
#define QD_QP_ATTR_H

#include <infiniband/verbs.h>
#include <jansson.h>

#include "../harness/error.h"

struct qp_defaults {
	int port, gid_index;
};

/* Reads `set` into *attr (address vectors are global, as RoCE wants them) and the mask bits that it speaks of into *ret_given. */
int qp_attr_parse(const json_t *set, const struct qp_defaults *d, struct ibv_qp_attr *attr, int *ret_given, struct error *e);
/* Names of mask bits ("TIMEOUT") to bits. */
int qp_mask_parse(const json_t *names, int *ret_mask, struct error *e);
/* The mask of a move: see formats.md, qp_modify. */
int qp_mask_choose(int type, int from, int to, int given, int leave_out, int add);
json_t *qp_mask_json(int mask);
/* `queried{}` */
json_t *qp_attr_json(const struct ibv_qp_attr *attr, const struct ibv_qp_cap *cap, uint32_t qpn);
json_t *qp_cap_json(const struct ibv_qp_cap *cap);

#endif
