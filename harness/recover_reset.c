/* SPDX-License-Identifier: MIT */
/* ERR -> RESET -> INIT -> receives -> handover -> RTR -> RTS at the same QPs. */
#include "controller_step.h"

#include <errno.h>
#include <string.h>

#include "json.h"

static int to_reset(struct case_run *r, const struct ends *ends, struct error *e)
{
	struct ops ops = { .head = NULL };
	int rc;

	link_reset(r, &ops, ends, "recover");
	rc = ops_run(r, &ops, 0, e);
	ops_free(&ops);
	return rc;
}

/* MRs and CQs named by `replace`: gone and made anew. A CQ can go only when no QP uses it. */
static int replace(struct case_run *r, const json_t *step, bool cqs, struct error *e)
{
	const json_t *name;
	struct ops ops = { .head = NULL };
	size_t i;
	int rc;

	json_array_foreach(json_object_get(step, "replace"), i, name) {
		struct object *o = ctl_object_find(r, json_string_value(name));

		if (!o || !o->exists || (o->type == OBJECT_CQ) != cqs)
			continue;
		ops_add(&ops, o->agent,
			json_pack("{s:s,s:s,s:s}", "op", "destroy", "type", ctl_object_type_names[o->type], "name", o->name));
	}
	rc = ops_run(r, &ops, 0, e);
	ops_free(&ops);
	json_array_foreach(json_object_get(step, "replace"), i, name) {
		struct object *o = ctl_object_find(r, json_string_value(name));

		if (!rc && o && (o->type == OBJECT_CQ) == cqs)
			link_create(r, &ops, o);
	}
	if (!rc)
		rc = ops_run(r, &ops, 0, e);
	ops_free(&ops);
	return rc;
}

static bool replaces_cq(struct case_run *r, const json_t *step)
{
	const json_t *name;
	size_t i;

	json_array_foreach(json_object_get(step, "replace"), i, name) {
		const struct object *o = ctl_object_find(r, json_string_value(name));

		if (o && o->type == OBJECT_CQ)
			return true;
	}
	return false;
}

int recover_reset(struct case_run *r, const struct ends *ends, const json_t *step, struct error *e)
{
	int rc = recover_drain(r, ends, e);

	if (rc)
		return rc;
	if (replaces_cq(r, step))
		return error_set(e, -EINVAL, "path reset cannot replace a CQ that its QPs use: use path recreate");
	recover_phase(r, step, "drained", r->attempt, NULL);
	recover_phase(r, step, "told", r->attempt, NULL);
	if (!json_object_get(step, "replace"))
		return link_renew(r, ends, "recover", e);
	rc = to_reset(r, ends, e);
	if (!rc)
		rc = replace(r, step, false, e);
	return rc ? rc : link_up(r, ends, "RTS", "recover", e);
}

static int destroy_qps(struct case_run *r, const struct ends *ends, struct error *e)
{
	struct ops ops = { .head = NULL };
	int rc;

	for (size_t i = 0; i < ends->n; i++)
		if (ends->qp[i]->exists)
			ops_add(&ops, ends->qp[i]->agent,
				json_pack("{s:s,s:s,s:s}", "op", "destroy", "type", "qp", "name", ends->qp[i]->name));
	rc = ops_run(r, &ops, 0, e);
	ops_free(&ops);
	return rc;
}

int recover_remake(struct case_run *r, const struct ends *ends, const json_t *step, struct error *e)
{
	int rc = destroy_qps(r, ends, e);

	if (!rc)
		rc = replace(r, step, true, e);
	return rc ? rc : replace(r, step, false, e);
}

/* A QP number that the CM has just parted from is refused for a while (STALE_CONN): the QPs are new ones. */
int recover_cm(struct case_run *r, const struct ends *ends, const json_t *step, struct error *e)
{
	int rc;

	payload_settle(r, 0);
	rc = cm_down(r, ends, e);
	if (!rc)
		rc = recover_drain(r, ends, e);
	if (rc && rc != -EBUSY)
		return rc;
	recover_phase(r, step, "drained", r->attempt, rc ? e->text : NULL);
	recover_phase(r, step, "told", r->attempt, NULL);
	rc = recover_remake(r, ends, step, e);
	return rc ? rc : cm_up(r, ends, NULL, "recover", NULL, e);
}

int recover_recreate(struct case_run *r, const struct ends *ends, const json_t *step, struct error *e)
{
	/* What cannot be drained goes with its QP. */
	int rc = recover_drain(r, ends, e);

	if (rc && rc != -EBUSY)
		return rc;
	recover_phase(r, step, "drained", r->attempt, rc ? e->text : NULL);
	recover_phase(r, step, "told", r->attempt, NULL);
	rc = recover_remake(r, ends, step, e);
	return rc ? rc : link_up(r, ends, "RTS", "recover", e);
}
