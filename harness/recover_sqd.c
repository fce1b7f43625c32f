/* SPDX-License-Identifier: MIT */
/* RTS -> SQD, what was begun ends, other attributes, RTS: the connection, its PSNs and its peer stay as they are. */
#include "controller_step.h"

#include <errno.h>
#include <string.h>

#include "json.h"
#include "plan_timers.h"
#include "units.h"

#define DRAIN_NS (5 * NSEC_PER_SEC)
#define LOOK_NS (2 * NSEC_PER_MSEC)

static bool is_in(const struct object *qp, const char *state)
{
	return qp->exists && qp->state && strcmp(qp->state, state) == 0;
}

static void add_move(struct ops *ops, const struct object *qp, const char *to, json_t *set, json_t *values)
{
	json_t *req =
		json_pack("{s:s,s:s,s:s,s:o,s:s}", "op", "qp_modify", "name", qp->name, "to", to, "set", set, "by", "recover");

	if (values)
		json_object_set_new(req, "values", values);
	ops_add(ops, qp->agent, req);
}

static int to_sqd(struct case_run *r, const struct ends *ends, struct error *e)
{
	struct ops ops = { .head = NULL };
	int rc;

	for (size_t i = 0; i < ends->n; i++)
		if (is_in(ends->qp[i], "RTS"))
			add_move(&ops, ends->qp[i], "SQD", json_pack("{s:i}", "en_sqd_async_notify", 1), NULL);
	rc = ops_run(r, &ops, 0, e);
	ops_free(&ops);
	return rc;
}

/* The event says it once, to whoever reads it; the QP says it to everybody. */
static int wait_drained(struct case_run *r, const struct ends *ends, struct error *e)
{
	uint64_t end = now_ns() + DRAIN_NS;

	for (;;) {
		const struct object *busy = NULL;

		query_states(r, ends, "recover");
		for (size_t i = 0; i < ends->n; i++) {
			if (!is_in(ends->qp[i], "SQD"))
				return error_set(e, -ENOTCONN, "%s left SQD for %s while it was drained", ends->qp[i]->name,
						 ends->qp[i]->state ? ends->qp[i]->state : "nowhere");
			if (json_bool(ends->qp[i]->queried, "sq_draining", false))
				busy = ends->qp[i];
		}
		if (!busy)
			return 0;
		if (now_ns() >= end)
			return error_set(e, -ETIMEDOUT, "%s is not drained after %llu s in SQD", busy->name,
					 DRAIN_NS / NSEC_PER_SEC);
		case_wait(r, NULL, NULL, now_ns() + LOOK_NS);
	}
}

/* What this step sets at an end, by number where the file has it from a device. What a recovery before it has set is of a life, or
 * of a creation, that a drained queue takes nothing of. */
static json_t *set_of(struct case_run *r, const struct object *qp, const json_t *step)
{
	json_t *own = plan_own_attr(json_object_get(step, "qp"), qp->agent), *set = json_object(), *value;
	const char *key;
	int64_t n;

	json_object_foreach(own, key, value) {
		if (!json_str(value, "ref"))
			json_object_set(set, key, value);
		else if (value_resolve(r, value, 0, &n, NULL) == 0)
			json_object_set_new(set, key, json_integer(n));
	}
	json_decref(own);
	return set;
}

/* What the file wants changed; of an address vector all of it has to be given. */
static int change(struct case_run *r, const struct ends *ends, const json_t *step, struct error *e)
{
	struct ops ops = { .head = NULL };
	int rc;

	for (size_t i = 0; i < ends->n; i++) {
		json_t *set = set_of(r, ends->qp[i], step);

		if (json_object_size(set))
			add_move(&ops, ends->qp[i], "SQD", set, link_attrs(r, ends->qp[i], "RTR"));
		else
			json_decref(set);
	}
	rc = ops_run(r, &ops, 0, e);
	ops_free(&ops);
	return rc;
}

static int to_rts(struct case_run *r, const struct ends *ends, struct error *e)
{
	struct ops ops = { .head = NULL };
	int rc;

	for (size_t i = 0; i < ends->n; i++)
		add_move(&ops, ends->qp[i], "RTS", json_object(), NULL);
	rc = ops_run(r, &ops, 0, e);
	ops_free(&ops);
	return rc;
}

int recover_sqd(struct case_run *r, const struct ends *ends, const json_t *step, struct error *e)
{
	int rc;

	payload_settle(r, 0);
	query_states(r, ends, "recover");
	for (size_t i = 0; i < ends->n; i++)
		if (!is_in(ends->qp[i], "RTS") && !is_in(ends->qp[i], "SQD"))
			return error_set(e, -ENOTCONN, "%s is in %s: path sqd begins in RTS or SQD", ends->qp[i]->name,
					 ends->qp[i]->state ? ends->qp[i]->state : "no state");
	rc = to_sqd(r, ends, e);
	if (!rc)
		rc = wait_drained(r, ends, e);
	if (rc)
		return rc;
	recover_phase(r, step, "drained", r->attempt, NULL);
	rc = change(r, ends, step, e);
	if (!rc)
		rc = to_rts(r, ends, e);
	payload_settle(r, 0);
	return rc;
}
