/* SPDX-License-Identifier: MIT */
/* SQE -> RTS: a send queue of UC or UD that failed goes on; the receive queue has never stopped. */
#include "controller_step.h"

#include <errno.h>
#include <string.h>

#include "json.h"

int recover_sq(struct case_run *r, const struct ends *ends, const json_t *step, struct error *e)
{
	struct ops ops = { .head = NULL };
	int rc;

	payload_settle(r, 0);
	query_states(r, ends, "recover");
	for (size_t i = 0; i < ends->n; i++) {
		const struct object *qp = ends->qp[i];
		const char *state = qp->exists && qp->state ? qp->state : "no state";

		if (strcmp(state, "RTS") == 0)
			continue;
		if (strcmp(state, "SQE") != 0) {
			ops_free(&ops);
			return error_set(e, -ENOTCONN, "%s is in %s: path sq leads from SQE to RTS", qp->name, state);
		}
		ops_add(&ops, qp->agent,
			json_pack("{s:s,s:s,s:s,s:s}", "op", "qp_modify", "name", qp->name, "to", "RTS", "by", "recover"));
	}
	recover_phase(r, step, "drained", r->attempt, NULL);
	rc = ops_run(r, &ops, 0, e);
	ops_free(&ops);
	return rc;
}
