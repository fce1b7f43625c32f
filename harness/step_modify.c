/* SPDX-License-Identifier: MIT */
/* modify: one move, or one for each mask that is to be tried. */
#include "controller_step.h"

#include <errno.h>
#include <string.h>

#include "attr.h"
#include "json.h"
#include "names.h"

/* The transition's own attributes where it is one of connecting; whatever the file sets on top. */
static json_t *modify_set(struct case_run *r, struct object *qp, const json_t *step, const char *to)
{
	static const char *const from[][2] = { { "INIT", "RESET" }, { "RTR", "INIT" }, { "RTS", "RTR" } };
	json_t *set = NULL, *value;
	const char *key;

	for (size_t i = 0; i < 3; i++)
		if (strcmp(from[i][0], to) == 0 && qp->state && strcmp(from[i][1], qp->state) == 0)
			set = link_attrs(r, qp, to);
	if (!set)
		set = json_object();
	json_object_foreach(json_object_get(step, "set"), key, value) {
		int64_t n;

		if (json_str(value, "ref") && value_resolve(r, value, 0, &n, NULL) == 0)
			json_object_set_new(set, key, json_integer(n));
		else
			json_object_set(set, key, value);
	}
	faults_on_modify(r, qp->name, to, set);
	return set;
}

/* Good values for every bit, so that nothing but the mask can be why a move is refused. */
static json_t *all_values(struct case_run *r, struct object *qp)
{
	static const char *const stations[] = { "INIT", "RTR", "RTS" };
	json_t *values = json_object();

	for (size_t i = 0; i < sizeof stations / sizeof stations[0]; i++) {
		json_t *some = link_attrs(r, qp, stations[i]);

		json_object_update_missing(values, some);
		json_decref(some);
	}
	if (qp->state)
		json_object_set_new(values, "cur_state", json_string(qp->state));
	return values;
}

static json_t *mask_names(int mask)
{
	json_t *names = json_array();

	for (size_t i = 0; i < names_attr_mask.n; i++)
		if (mask & names_attr_mask.rows[i].value)
			json_array_append_new(names, json_string(names_attr_mask.rows[i].text));
	return names;
}

/* leave_out and add are names of mask bits; takes both. */
static void add_trial(struct case_run *r, struct ops *ops, struct object *qp, const char *to, json_t *leave_out, json_t *add)
{
	ops_add(ops, qp->agent,
		json_pack("{s:s,s:s,s:s,s:o,s:o,s:o,s:s}", "op", "qp_modify", "name", qp->name, "to", to, "values",
			  all_values(r, qp), "leave_out", leave_out, "add", add, "by", "step"));
}

/* `mask:` makes one request for each attempt. A move that does not exist is tried with all that could be asked of one. */
static int add_trials(struct case_run *r, struct ops *ops, struct object *qp, const char *to, const char *mask, struct error *e)
{
	const struct name *kind = name_find(&names_mask_trial, mask), *from = name_find(&names_state, qp->state ? qp->state : "");
	int type = name_find(&names_qp_type, json_str(qp->plan, "type"))->value, to_state = name_find(&names_state, to)->value;
	const struct transition *t = from ? transition_find(type, from->value, to_state) : NULL;
	int bits;

	if (!from)
		return error_set(e, -ENOTCONN, "%s does not exist", qp->name);
	if (kind->value == MASK_EXACT) {
		add_trial(r, ops, qp, to, json_array(), mask_names(t ? 0 : transition_required_into(type, to_state)));
		return 0;
	}
	bits = mask_trial_bits((enum mask_trial)kind->value, type, from->value, to_state);
	if (!bits)
		return error_set(e, -EPROTO, "%s: a move from %s to %s has no mask of kind %s to try", qp->name, from->text, to,
				 mask);
	for (size_t i = 0; i < names_attr_mask.n; i++) {
		int bit = names_attr_mask.rows[i].value;

		if (!(bits & bit))
			continue;
		if (kind->value == MASK_MISSING)
			add_trial(r, ops, qp, to, mask_names(bit), json_array());
		else
			add_trial(r, ops, qp, to, json_array(), mask_names(bit));
	}
	return 0;
}

static int add_modify(struct case_run *r, struct ops *ops, struct object *qp, const json_t *step, struct error *e)
{
	const char *to = json_str(step, "to");
	json_t *req;

	if (!to)
		to = qp->state ? qp->state : "RTS";
	if ((strcmp(to, "RTR") == 0 || json_str(step, "mask") || json_object_get(step, "add")) && !qp->told) {
		struct object *peer = ctl_object_find(r, qp->peer);
		int rc = peer && peer->exists ? handover_tell(r, qp, false, e) : 0;

		if (rc)
			return rc;
	}
	if (json_str(step, "mask"))
		return add_trials(r, ops, qp, to, json_str(step, "mask"), e);
	req = json_pack("{s:s,s:s,s:s,s:o,s:s}", "op", "qp_modify", "name", qp->name, "to", to, "set", modify_set(r, qp, step, to),
			"by", "step");
	if (json_object_get(step, "leave_out"))
		json_object_set(req, "leave_out", json_object_get(step, "leave_out"));
	if (json_object_get(step, "add"))
		json_object_set(req, "add", json_object_get(step, "add"));
	/* Of an address vector all of it has to be given, whichever part the file sets. */
	if (json_object_get(step, "add") || json_object_get(step, "set"))
		json_object_set_new(req, "values", all_values(r, qp));
	ops_add(ops, qp->agent, req);
	return 0;
}

static json_t *srq_request(struct case_run *r, const struct object *srq, const json_t *step)
{
	json_t *set = json_object(), *value;
	const char *key;

	json_object_foreach(json_object_get(step, "set"), key, value) {
		int64_t n;

		if (value_resolve(r, value, 0, &n, NULL) == 0)
			json_object_set_new(set, key, json_integer(n));
	}
	return json_pack("{s:s,s:s,s:o}", "op", "srq_modify", "name", srq->name, "set", set);
}

static json_t *cq_request(struct case_run *r, const struct object *cq, const json_t *step)
{
	int64_t depth = 1;

	value_resolve(r, json_object_get(json_object_get(step, "set"), "depth"), 1, &depth, NULL);
	return json_pack("{s:s,s:s,s:I}", "op", "cq_resize", "name", cq->name, "depth", (json_int_t)depth);
}

/* A move to a state that no QP needs attributes for. */
static bool is_bare(const json_t *step)
{
	static const char *const states[] = { "RESET", "SQD", "ERR" }, *const more[] = { "mask", "set", "add", "leave_out" };
	bool bare = false;

	for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
		bare |= json_has(step, "to", states[i]);
	for (size_t i = 0; i < sizeof more / sizeof more[0]; i++)
		bare &= !json_object_get(step, more[i]);
	return bare;
}

int step_modify_queue(struct case_run *r, const json_t *step, struct ops *ops, struct error *e)
{
	json_t *qps = json_array();
	const json_t *name;
	struct ends ends = { NULL, 0 };
	bool many;
	size_t i;
	int rc;

	json_array_foreach(json_object_get(step, "at"), i, name) {
		const struct object *o = ctl_object_find(r, json_string_value(name));

		if (o && o->type == OBJECT_SRQ)
			ops_add(ops, o->agent, srq_request(r, o, step));
		else if (o && o->type == OBJECT_CQ)
			ops_add(ops, o->agent, cq_request(r, o, step));
		else
			json_array_append(qps, (json_t *)name);
	}
	payload_settle(r, 0);
	rc = json_array_size(qps) ? ends_of_names(r, qps, &ends, e) : 0;
	json_decref(qps);
	many = !rc && is_bare(step) && many_may(r, &ends);
	case_later(r, many);
	for (i = 0; !rc && i < ends.n; i++) {
		if (many)
			many_move(ops, ends.qp[i], json_str(step, "to"), "step", true);
		else
			rc = add_modify(r, ops, ends.qp[i], step, e);
	}
	ends_free(&ends);
	return rc;
}
