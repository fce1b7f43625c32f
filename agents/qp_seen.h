/* SPDX-License-Identifier: MIT */
/* What was seen of queue pairs, and the `state` records of it: of many that are alike, one. */
#ifndef QD_QP_SEEN_H
#define QD_QP_SEEN_H

#include <infiniband/verbs.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "columns.h"

struct agent;
struct qp;

struct qp_seen {
	const char *obj, *old, *new; /* names, of states: "?" where the device did not tell */
	uint32_t life;
	uint64_t t_ns;
	int err; /* of ibv_query_qp(): 0 or a positive errno; what follows is only known without one */
	struct ibv_qp_attr attr;
	struct ibv_qp_cap cap;
	uint32_t qpn;
};

/* Asks the device. Nothing of the agent's is touched. */
void qp_seen_ask(struct qp_seen *s, struct ibv_qp *qp);
/* New reference; NULL when the device did not tell. */
json_t *qp_seen_queried(const struct qp_seen *s);
/* They differ in nothing but what can be a column. */
bool qp_seen_alike(const struct qp_seen *a, const struct qp_seen *b);
/* One record of those, all alike. all is stolen, each released; they have the other fields. */
void qp_seen_record(struct agent *a, struct rows seen, json_t *all, struct each *each);

/* Records of n, first to last: `many` of those that are alike (MANY_MIN at least), `one` of any other. */
struct qp_seen_ops {
	bool (*alike)(const void *user, size_t i, size_t k);
	void (*many)(struct agent *a, const void *user, size_t from, size_t n);
	void (*one)(struct agent *a, const void *user, size_t i);
};
void qp_seen_records(struct agent *a, const struct qp_seen_ops *ops, const void *user, size_t n);

#endif
