/* SPDX-License-Identifier: MIT */
/* A move of one queue pair. */
#include "qp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/attr.h"
#include "../harness/json.h"
#include "../harness/names.h"
#include "object.h"
#include "qp_move.h"
#include "verbs_thread.h"

struct modify_call {
	struct verbs_call call;
	struct move move;
	json_t *set, *values;
	char by[16];
	bool brief;
};

static void run_modify(struct verbs_call *call)
{
	struct modify_call *c = (struct modify_call *)call;

	move_run(&c->move);
	call->err = c->move.err;
	call->started_ns = c->move.started_ns;
	call->ended_ns = c->move.started_ns + c->move.dur_ns;
}

/* Values that the mask took up are given as well. */
static json_t *all_given(const struct modify_call *c)
{
	json_t *given = c->set ? json_copy(c->set) : json_object(), *v;
	const char *key;

	json_object_foreach(c->values, key, v) {
		const struct attr *row = attr_find(key);

		if (row && row->mask & c->move.mask && !json_object_get(given, key))
			json_object_set(given, key, v);
	}
	return given;
}

static void finish_modify(struct agent *a, struct verbs_call *call)
{
	struct modify_call *c = (struct modify_call *)call;
	struct error e;
	json_t *reply;

	if (call->cancelled) {
		c->move.qp->o.busy = false;
		goto free_call;
	}
	moves_settle(a, &c->move, 1);
	if (call->late)
		verbs_record(a, call, NULL);
	move_record(a, &c->move, c->by, all_given(c), call->late);
	reply = move_reply(&c->move);
	if (!c->move.seen.err && !c->brief)
		json_object_set_new(reply, "queried", qp_seen_queried(&c->move.seen));
	if (call->err && call->req) {
		request_fail_with(call->req, move_error(&c->move, &e), reply, "%s", e.text);
		call->req = NULL;
	} else {
		verbs_reply(call, reply);
	}
free_call:
	json_decref(c->set);
	json_decref(c->values);
	free(c);
}

/* What the mask's bits say where `set` does not speak of them. */
static json_t *merged_values(const json_t *values, const json_t *set)
{
	json_t *both = values ? json_copy((json_t *)values) : json_object();

	if (set)
		json_object_update(both, (json_t *)set);
	return both;
}

/* NULL when the request was answered: it asks for something that is not to be had. */
static struct modify_call *modify_new(struct agent *a, struct request *r)
{
	struct object *o = object_need(a, r, OBJECT_QP, "name");
	const char *to_name = json_str(r->body, "to"), *by = json_str(r->body, "by");
	const struct name *to = name_find(&names_state, to_name ? to_name : "");
	const json_t *set = json_object_get(r->body, "set");
	json_t *merged;
	struct qp_defaults d;
	struct modify_call *c;
	struct error e = { "" };
	struct qp *qp = (struct qp *)o;
	int ignored;

	if (!o)
		return NULL;
	if (!to) {
		request_fail(r, -EINVAL, "qp_modify: %s: unknown state \"%s\"", o->name, to_name ? to_name : "");
		return NULL;
	}
	c = verbs_call_new(sizeof(*c));
	d = move_defaults(qp);
	c->call = (struct verbs_call){ .verb = MODIFY, .obj = o, .req = r, .run = run_modify, .finish = finish_modify };
	snprintf(c->by, sizeof(c->by), "%s", by ? by : "harness");
	c->brief = json_bool(r->body, "brief", false);
	merged = merged_values(json_object_get(r->body, "values"), set);
	if (qp_attr_parse(set, &d, &c->move.attr, &c->move.given, &e) < 0 ||
	    qp_attr_parse(merged, &d, &c->move.attr, &ignored, &e) < 0 ||
	    qp_mask_parse(json_object_get(r->body, "leave_out"), &c->move.leave_out, &e) < 0 ||
	    qp_mask_parse(json_object_get(r->body, "add"), &c->move.add, &e) < 0) {
		request_fail(r, -EINVAL, "qp_modify: %s: %s", o->name, e.text);
		json_decref(merged);
		free(c);
		return NULL;
	}
	json_decref(merged);
	c->set = move_given(set, false, &d);
	c->values = json_incref(json_object_get(r->body, "values"));
	move_begin(&c->move, qp, to->value);
	return c;
}

void op_qp_modify(struct agent *a, struct request *r)
{
	struct modify_call *c = modify_new(a, r);

	if (c)
		verbs_submit(a, &c->call, json_u64(r->body, "deadline_ns", 0));
}

void qp_to_err(struct agent *a, struct qp *qp, const char *by)
{
	struct modify_call *c;

	if (!qp->o.alive || qp->o.busy || qp->dying)
		return;
	c = verbs_call_new(sizeof(*c));
	c->call = (struct verbs_call){ .verb = MODIFY, .obj = &qp->o, .run = run_modify, .finish = finish_modify };
	snprintf(c->by, sizeof(c->by), "%s", by);
	move_begin(&c->move, qp, IBV_QPS_ERR);
	verbs_submit(a, &c->call, 0);
}
