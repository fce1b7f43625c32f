/* SPDX-License-Identifier: MIT */
/* One move of a queue pair: what single moves (qp_modify.c) and folded ones (qp_many.c) have in common. */
#ifndef QD_QP_MOVE_H
#define QD_QP_MOVE_H

#include <infiniband/verbs.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "object.h"
#include "qp_attr.h"
#include "qp_seen.h"

#define MODIFY "ibv_modify_qp"

struct move {
	struct qp *qp;
	struct ibv_qp *handle;
	int type, to, given, leave_out, add;
	struct ibv_qp_attr attr;
	bool believes; /* the device is not asked where the QP is when it can be known otherwise: a question costs half a move */

	/* How it went. */
	int old; /* -1: the query before failed */
	int mask;
	int err; /* 0 or a positive errno */
	uint64_t started_ns, dur_ns;
	struct qp_seen seen; /* after it */
};

/* A QP's own where a request does not speak of it. */
struct qp_defaults move_defaults(const struct qp *qp);
void move_begin(struct move *m, struct qp *qp, int to);
/* On the verbs thread. */
void move_run(struct move *m);
/* On the loop, when they have returned: the agent knows what the device told, and lives that begin by a move to RESET have begun.
 */
void moves_settle(struct agent *a, struct move *m, unsigned n);
/* What was given, with the device's own where the request left it to us; gid: a GID is given beside `set`. */
json_t *move_given(const json_t *set, bool gid, const struct qp_defaults *d);
/* The fields of the `state` records of those that have them alike, without `attrs{}` and what the device told. */
json_t *move_fields(const struct move *m, const char *by);
/* The record of one; given is stolen. */
void move_record(struct agent *a, const struct move *m, const char *by, json_t *given, bool late);
/* `old new life`. New reference. */
json_t *move_reply(const struct move *m);
/* Of one that failed: what to say, and the negative errno. */
int move_error(const struct move *m, struct error *e);

#endif
