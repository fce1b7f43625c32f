/* SPDX-License-Identifier: MIT */
/* Moves of queue pairs, one by one or many in one call. */
#include "qp.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/attr.h"
#include "../harness/json.h"
#include "../harness/names.h"
#include "../harness/units.h"
#include "cq.h"
#include "object.h"
#include "qp_attr.h"
#include "verbs_thread.h"

#define MODIFY "ibv_modify_qp"

struct modify_call {
	struct verbs_call call;
	struct qp *qp;
	struct ibv_qp *handle;
	int type, to, given, leave_out, add, mask;
	struct ibv_qp_attr attr;
	json_t *set, *values;
	char by[16];
	bool brief;
	struct ibv_qp_attr before, after;
	struct ibv_qp_init_attr init;
	int query_err;
	int old; /* -1: the query before failed */
};

static void run_modify(struct verbs_call *call)
{
	struct modify_call *c = (struct modify_call *)call;

	c->old = ibv_query_qp(c->handle, &c->before, QP_QUERY_MASK, &c->init) == 0 ? (int)c->before.qp_state : -1;
	c->attr.qp_state = (enum ibv_qp_state)c->to;
	c->mask = qp_mask_choose(c->type, c->old < 0 ? (int)c->qp->state : c->old, c->to, c->given, c->leave_out, c->add);
	call->started_ns = now_ns();
	call->err = ibv_modify_qp(c->handle, &c->attr, c->mask);
	call->ended_ns = now_ns();
	if (call->err < 0)
		call->err = call->err == -1 && errno ? errno : -call->err;
	c->query_err = ibv_query_qp(c->handle, &c->after, QP_QUERY_MASK, &c->init);
}

/* Completions that are there belong to the life that ends; what else was outstanding ends unseen. */
static void begin_next_life(struct agent *a, struct qp *qp)
{
	cq_catch_up(a, qp->scq);
	if (qp->rcq != qp->scq)
		cq_catch_up(a, qp->rcq);
	qp_discard(a, qp);
	qp->o.life++;
	queue_begin(qp->sq, qp->o.life);
	queue_begin(qp->rq, qp->o.life);
}

/* Values that the mask took up are given as well. */
static json_t *all_given(const struct modify_call *c)
{
	json_t *given = c->set ? json_copy(c->set) : json_object(), *v;
	const char *key;

	json_object_foreach(c->values, key, v) {
		const struct attr *row = attr_find(key);

		if (row && row->mask & c->mask && !json_object_get(given, key))
			json_object_set(given, key, v);
	}
	return given;
}

static json_t *state_fields(const struct modify_call *c, const char *old, const char *new, json_t *queried)
{
	json_t *f = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o*, s:i, s:s, s:I}", "asked", name_of(&names_state, c->to), "old", old,
			      "new", new, "mask", qp_mask_json(c->mask), "attrs", all_given(c), "queried", queried, "errno",
			      c->call.err, "by", c->by, "dur_ns", (json_int_t)(c->call.ended_ns - c->call.started_ns));

	if (c->query_err)
		json_object_set_new(f, "note", json_sprintf("ibv_query_qp: %s", strerror(c->query_err)));
	if (c->call.late)
		json_object_set_new(f, "late", json_true());
	return f;
}

static void finish_modify(struct agent *a, struct verbs_call *call)
{
	struct modify_call *c = (struct modify_call *)call;
	struct qp *qp = c->qp;
	const char *old, *new;
	json_t *queried = NULL, *reply;

	qp->o.busy = false;
	if (call->cancelled)
		goto free_call;
	old = c->old < 0 ? "?" : name_of(&names_state, c->old);
	if (!c->query_err) {
		queried = qp_attr_json(&c->after, &c->init.cap, qp->qp->qp_num);
		qp->state = c->after.qp_state;
		/* The device's last word: some round depths up and do not say so when they make the QP. */
		qp->cap.max_recv_wr = c->init.cap.max_recv_wr;
	}
	new = c->query_err ? "?" : name_of(&names_state, (int)c->after.qp_state);
	if (!call->err && c->to == IBV_QPS_RESET)
		begin_next_life(a, qp);
	if (call->late)
		verbs_record(a, call, NULL);
	agent_record(a, call->started_ns, "state", qp->o.name, qp->o.life, state_fields(c, old, new, json_incref(queried)));
	reply = json_pack("{s:s, s:s, s:i}", "old", old, "new", new, "life", (int)qp->o.life);
	if (queried && !c->brief)
		json_object_set(reply, "queried", queried);
	json_decref(queried);
	if (call->err && call->req) {
		request_fail_with(call->req, -call->err, reply, "%s from %s to %s: %s", qp->o.name, old,
				  name_of(&names_state, c->to), strerror(call->err));
		call->req = NULL;
	} else {
		verbs_reply(call, reply);
	}
free_call:
	json_decref(c->set);
	json_decref(c->values);
	free(c);
}

/* What was given, with the device's own where the request left it to us. */
static json_t *given_json(const json_t *set, const struct qp_defaults *d)
{
	json_t *copy = set ? json_copy((json_t *)set) : json_object();

	json_t *gid_index = json_object_get(copy, "gid_index");

	if (json_is_null(gid_index) || (!gid_index && json_object_get(copy, "dest_gid")))
		json_object_set_new(copy, "gid_index", json_integer(d->gid_index));
	return copy;
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
	d = (struct qp_defaults){ qp->pd->dev->port, qp->pd->dev->gid_index };
	c->call = (struct verbs_call){ .verb = MODIFY, .obj = o, .req = r, .run = run_modify, .finish = finish_modify };
	c->qp = qp;
	c->handle = qp->qp;
	c->type = (int)qp->type;
	c->to = to->value;
	snprintf(c->by, sizeof(c->by), "%s", by ? by : "harness");
	c->brief = json_bool(r->body, "brief", false);
	merged = merged_values(json_object_get(r->body, "values"), set);
	if (qp_attr_parse(set, &d, &c->attr, &c->given, &e) < 0 || qp_attr_parse(merged, &d, &c->attr, &ignored, &e) < 0 ||
	    qp_mask_parse(json_object_get(r->body, "leave_out"), &c->leave_out, &e) < 0 ||
	    qp_mask_parse(json_object_get(r->body, "add"), &c->add, &e) < 0) {
		request_fail(r, -EINVAL, "qp_modify: %s: %s", o->name, e.text);
		json_decref(merged);
		free(c);
		return NULL;
	}
	json_decref(merged);
	c->set = given_json(set, &d);
	c->values = json_incref(json_object_get(r->body, "values"));
	o->busy = true;
	return c;
}

void op_qp_modify(struct agent *a, struct request *r)
{
	struct modify_call *c = modify_new(a, r);

	if (c)
		verbs_submit(a, &c->call, json_u64(r->body, "deadline_ns", 0));
}

/* ---- many in one call ---- */

/* To hand each of them to the other thread costs more than the move. */
struct moves_call {
	struct verbs_call call;
	struct modify_call *move[REQUEST_MANY_MAX];
	unsigned n;
	atomic_uint begun; /* moves; with HALTED none is begun any more */
	bool stops;
	unsigned answered; /* those before were not late */
};
#define HALTED 0x80000000u

static void run_moves(struct verbs_call *call)
{
	struct moves_call *c = (struct moves_call *)call;

	for (unsigned i = 0; i < c->n; i++) {
		unsigned expected = i;
		struct modify_call *m = c->move[i];

		if (!atomic_compare_exchange_strong(&c->begun, &expected, i + 1))
			return;
		run_modify(&m->call);
		if (c->stops && m->call.err)
			return;
	}
}

static struct object *moves_at(const struct verbs_call *call)
{
	const struct moves_call *c = (const struct moves_call *)call;
	unsigned begun = atomic_load(&c->begun) & ~HALTED;

	return c->move[begun ? begun - 1 : 0]->call.obj;
}

static void never_made(struct modify_call *m, int rc, const char *why)
{
	m->qp->o.busy = false;
	if (m->call.req)
		request_fail_with(m->call.req, rc, rc == -ETIMEDOUT ? json_pack("{s:b}", "blocked", 1) : NULL,
				  "%s of %s was not made: %s", MODIFY, m->qp->o.name, why);
	json_decref(m->set);
	json_decref(m->values);
	free(m);
}

static void finish_moves(struct agent *a, struct verbs_call *call)
{
	struct moves_call *c = (struct moves_call *)call;
	unsigned begun = atomic_load(&c->begun) & ~HALTED;

	agent_fold(a, true);
	for (unsigned i = c->answered; i < c->n; i++) {
		if (!c->move[i])
			continue;
		if (i >= begun) {
			never_made(c->move[i], call->cancelled ? -ETIMEDOUT : -ECANCELED,
				   call->cancelled ? "a call before it has not returned" : "one before it failed");
			continue;
		}
		c->move[i]->call.late = call->late;
		finish_modify(a, &c->move[i]->call);
	}
	agent_fold(a, false);
	free(c);
}

/* Those that have returned are no part of what hangs. */
static void moves_overdue(struct agent *a, struct verbs_call *call, uint64_t waited_ns)
{
	struct moves_call *c = (struct moves_call *)call;
	unsigned at = (atomic_fetch_or(&c->begun, HALTED) & ~HALTED) - 1;
	struct modify_call *hangs = c->move[at];

	for (unsigned i = 0; i < at; i++)
		finish_modify(a, &c->move[i]->call);
	verbs_overdue(a, MODIFY, hangs->call.obj, hangs->call.req, waited_ns);
	hangs->call.req = NULL;
	for (unsigned i = at + 1; i < c->n; i++) {
		never_made(c->move[i], -ETIMEDOUT, "one before it has not returned");
		c->move[i] = NULL;
	}
	c->answered = at;
}

static bool moves_have(const struct moves_call *c, const struct object *qp)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->move[i]->call.obj == qp)
			return true;
	return false;
}

unsigned op_qp_modify_many(struct agent *a, struct request *const *members, unsigned n, bool stops)
{
	struct moves_call *c = verbs_call_new(sizeof(*c));
	unsigned i = 0;

	for (; i < n; i++) {
		const char *name = json_str(members[i]->body, "name");
		const struct object *qp = name ? object_find(a, OBJECT_QP, name) : NULL;
		struct modify_call *m;

		if (qp && moves_have(c, qp))
			break;
		m = modify_new(a, members[i]);
		if (m)
			c->move[c->n++] = m;
		else if (stops)
			break;
	}
	if (i < n && stops && (!c->n || c->move[c->n - 1]->call.req != members[i]))
		i++; /* it was answered */
	if (!c->n) {
		free(c);
		return i;
	}
	c->stops = stops;
	c->call = (struct verbs_call){ .verb = MODIFY,
				       .obj = c->move[0]->call.obj,
				       .run = run_moves,
				       .finish = finish_moves,
				       .at = moves_at,
				       .overdue = moves_overdue };
	verbs_submit(a, &c->call, json_u64(members[0]->body, "deadline_ns", 0));
	return i;
}

void qp_to_err(struct agent *a, struct qp *qp, const char *by)
{
	struct modify_call *c;

	if (!qp->o.alive || qp->o.busy || qp->dying)
		return;
	c = verbs_call_new(sizeof(*c));
	c->call = (struct verbs_call){ .verb = MODIFY, .obj = &qp->o, .run = run_modify, .finish = finish_modify };
	c->qp = qp;
	c->handle = qp->qp;
	c->type = (int)qp->type;
	c->to = IBV_QPS_ERR;
	snprintf(c->by, sizeof(c->by), "%s", by);
	qp->o.busy = true;
	verbs_submit(a, &c->call, 0);
}
