/* SPDX-License-Identifier: MIT */
/* connect, create, destroy, modify. */
#include "controller_case.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "names.h"

static bool is_past_connect(const struct object *qp)
{
	return qp->exists && qp->state &&
	       (strcmp(qp->state, "ERR") == 0 || strcmp(qp->state, "SQE") == 0 || strcmp(qp->state, "SQD") == 0);
}

void step_connect(struct case_run *r, const json_t *step, struct step_result *res)
{
	const char *upto = json_str(step, "upto"), *by = json_str(step, "by");
	struct ends ends = { NULL, 0 };
	struct error e = { "" };
	int rc = ends_of_pairs(r, json_object_get(step, "pairs"), &ends, &e);

	if (!rc && by && strcmp(by, "verbs") != 0)
		rc = error_set(&e, -EPROTO, "connect by %s: the agents of this build do not", by);
	payload_settle(r, 0);
	for (size_t i = 0; !rc && i < ends.n; i++)
		if (is_past_connect(ends.qp[i]))
			rc = error_set(&e, -EISCONN, "%s is in %s: connect goes on from RESET, INIT or RTR only", ends.qp[i]->name,
				       ends.qp[i]->state);
	if (!rc)
		rc = link_up(r, &ends, upto ? upto : "RTS", "connect", &e);
	ends_free(&ends);
	step_from_rc(res, rc, &e);
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

static int add_modify(struct case_run *r, struct ops *ops, struct object *qp, const json_t *step, struct error *e)
{
	const char *to = json_str(step, "to");
	json_t *req;

	if (!to)
		to = qp->state ? qp->state : "RTS";
	if (strcmp(to, "RTR") == 0 && !qp->told) {
		struct object *peer = ctl_object_find(r, qp->peer);
		int rc = peer && peer->exists ? handover_tell(r, qp, false, e) : 0;

		if (rc)
			return rc;
	}
	req = json_pack("{s:s,s:s,s:s,s:o,s:s}", "op", "qp_modify", "name", qp->name, "to", to, "set", modify_set(r, qp, step, to),
			"by", "step");
	if (json_object_get(step, "leave_out"))
		json_object_set(req, "leave_out", json_object_get(step, "leave_out"));
	if (json_object_get(step, "add"))
		json_object_set(req, "add", json_object_get(step, "add"));
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

int step_modify_queue(struct case_run *r, const json_t *step, struct ops *ops, struct error *e)
{
	json_t *qps = json_array();
	const json_t *name;
	struct ends ends = { NULL, 0 };
	size_t i;
	int rc;

	json_array_foreach(json_object_get(step, "at"), i, name) {
		const struct object *o = ctl_object_find(r, json_string_value(name));

		if (o && o->type == OBJECT_SRQ)
			ops_add(ops, o->agent, srq_request(r, o, step));
		else
			json_array_append(qps, (json_t *)name);
	}
	payload_settle(r, 0);
	rc = json_array_size(qps) ? ends_of_names(r, qps, &ends, e) : 0;
	json_decref(qps);
	for (i = 0; !rc && i < ends.n; i++)
		rc = add_modify(r, ops, ends.qp[i], step, e);
	ends_free(&ends);
	return rc;
}
