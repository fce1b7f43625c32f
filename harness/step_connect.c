/* SPDX-License-Identifier: MIT */
/* connect, create, destroy. */
#include "controller_step.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

static bool is_past_connect(const struct object *qp)
{
	return qp->exists && qp->state &&
	       (strcmp(qp->state, "ERR") == 0 || strcmp(qp->state, "SQE") == 0 || strcmp(qp->state, "SQD") == 0);
}

/* SQD and ERR are no stations on the way to RTS: they are reached from it. */
static int beyond_rts(struct case_run *r, const struct ends *ends, const char *to, struct error *e)
{
	struct ops ops = { .head = NULL };
	int rc;

	for (size_t i = 0; i < ends->n; i++)
		if (ends->qp[i]->state && strcmp(ends->qp[i]->state, "RTS") == 0)
			ops_add(&ops, ends->qp[i]->agent,
				json_pack("{s:s,s:s,s:s,s:s}", "op", "qp_modify", "name", ends->qp[i]->name, "to", to, "by",
					  "connect"));
	rc = ops_run(r, &ops, 0, e);
	ops_free(&ops);
	return rc;
}

static bool is_beyond_rts(const char *state)
{
	return state && (strcmp(state, "SQD") == 0 || strcmp(state, "ERR") == 0);
}

void step_connect(struct case_run *r, const json_t *step, struct step_result *res)
{
	const char *upto = json_str(step, "upto"), *by = json_str(step, "by"), *reason = NULL;
	struct ends ends = { NULL, 0 };
	struct error e = { "" };
	int rc = ends_of_pairs(r, json_object_get(step, "pairs"), &ends, &e);

	payload_settle(r, 0);
	for (size_t i = 0; !rc && i < ends.n; i++)
		if (is_past_connect(ends.qp[i]))
			rc = error_set(&e, -EISCONN, "%s is in %s: connect goes on from RESET, INIT or RTR only", ends.qp[i]->name,
				       ends.qp[i]->state);
	if (!rc && by && strcmp(by, "cm") == 0)
		rc = cm_up(r, &ends, json_str(step, "from"), "connect", &reason, &e);
	else if (!rc)
		rc = link_up(r, &ends, upto && !is_beyond_rts(upto) ? upto : "RTS", "connect", &e);
	if (!rc && is_beyond_rts(upto))
		rc = beyond_rts(r, &ends, upto, &e);
	ends_free(&ends);
	step_from_rc(res, rc, &e);
	/* Said by the CM, whatever its errno: somebody did not want it, or nobody was there. */
	if (reason)
		res->outcome = OUTCOME_REFUSED;
}

static const char *const object_keys[] = { "pd", "cq", "srq", "mr", "mw", "ah", "qp" };

static int each_object(struct case_run *r, const json_t *step, struct ops *ops, struct error *e,
		       void (*add)(struct case_run *r, struct ops *ops, struct object *o), bool reverse)
{
	size_t n = sizeof object_keys / sizeof object_keys[0];

	for (size_t k = 0; k < n; k++) {
		const json_t *names = json_object_get(step, object_keys[reverse ? n - 1 - k : k]);
		size_t count = json_is_string(names) ? 1 : json_array_size(names);

		for (size_t i = 0; i < count; i++) {
			const char *name = json_string_value(json_is_string(names) ? names : json_array_get(names, i));
			struct object *o = ctl_object_find(r, name);

			if (!o)
				return error_set(e, -ENOENT, "there is no %s %s in the plan", object_keys[reverse ? n - 1 - k : k],
						 name);
			add(r, ops, o);
		}
	}
	return 0;
}

int step_create_queue(struct case_run *r, const json_t *step, struct ops *ops, struct error *e)
{
	return each_object(r, step, ops, e, link_create, false);
}

static void add_destroy(struct case_run *r, struct ops *ops, struct object *o)
{
	(void)r;
	ops_add(ops, o->agent,
		json_pack("{s:s,s:s,s:s}", "op", "destroy", "type", ctl_object_type_names[o->type], "name", o->name));
}

int step_destroy_queue(struct case_run *r, const json_t *step, struct ops *ops, struct error *e)
{
	payload_settle(r, 0);
	return each_object(r, step, ops, e, add_destroy, true);
}
