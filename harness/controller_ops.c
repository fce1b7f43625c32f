/* SPDX-License-Identifier: MIT */
/* Requests in bundles: one message to each agent, all agents at the same time. */
#include "controller_case.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "json.h"
#include "many.h"
#include "proc.h"
#include "units.h"

#define LOOK_NS (250 * NSEC_PER_MSEC)

struct bundle {
	struct ctl_agent *agent;
	char name[CTL_NAME_MAX];
	struct request *q;
	size_t n;
	unsigned parts; /* of the message */
	int rc;
	bool collected;
};

struct bundles {
	struct bundle *b;
	size_t n;
};

struct op *ops_add(struct ops *ops, const char *agent, json_t *req)
{
	struct op *op = calloc(1, sizeof *op);

	if (!op || !req) {
		free(op);
		json_decref(req);
		return NULL;
	}
	snprintf(op->agent, sizeof op->agent, "%s", agent);
	op->req = req;
	DL_APPEND(ops->head, op);
	return op;
}

void ops_free(struct ops *ops)
{
	struct op *op;

	HASH_CLEAR(hh, ops->made);
	while (ops->head) {
		op = ops->head;
		DL_DELETE(ops->head, op);
		json_decref(op->req);
		json_decref(op->reply);
		free(op->obj);
		free(op);
	}
}

static struct bundle *bundle_of(struct bundles *all, const char *agent)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->b[i].name, agent) == 0)
			return &all->b[i];
	return NULL;
}

static int bundles_make(struct case_run *r, const struct ops *ops, struct bundles *all)
{
	struct op *op;
	size_t n = 0;

	for (op = ops->head; op; op = op->next)
		n++;
	all->b = calloc(n ? n : 1, sizeof *all->b);
	if (!all->b)
		return -ENOMEM;
	for (op = ops->head; op; op = op->next) {
		struct bundle *b = bundle_of(all, op->agent);

		if (!b) {
			b = &all->b[all->n++];
			snprintf(b->name, sizeof b->name, "%s", op->agent);
			b->agent = agent_find(r, op->agent);
		}
		b->n += op->of ? op->n_obj : 1;
	}
	return 0;
}

/* The next one for the same agent. */
static struct op *next_for(struct op *op, const char *agent)
{
	while (op && strcmp(op->agent, agent) != 0)
		op = op->next;
	return op;
}

/* Of those from here on that ask for the same, one after the other: the requests, in a new array. */
static json_t *alike(struct op *op)
{
	const char *what = json_str(op->req, "op");
	json_t *reqs = json_array();

	for (struct op *o = op; o; o = next_for(o->next, op->agent)) {
		const char *other = json_str(o->req, "op");

		if (op->of || o->of || !what || !other || strcmp(what, other) != 0)
			break;
		json_array_append(reqs, o->req);
	}
	return reqs;
}

/* A part of the message from this request on, as many as can be folded; *ret_next: the one after it. */
static json_t *make_part(struct op *op, bool stops, unsigned part, struct op **ret_next)
{
	json_t *reqs = alike(op), *fold = json_array_size(reqs) >= MANY_MIN ? many_fold(reqs) : NULL;
	size_t n = fold ? json_array_size(reqs) : 1;
	json_t *what = json_incref(json_object_get(op->req, "op")), *made = fold ? fold : json_incref(op->req);

	if (op->of)
		many_complete(op, stops);
	for (size_t i = 0; i < n; i++, op = next_for(op->next, op->agent)) {
		op->part = part;
		op->member = (unsigned)i;
	}
	*ret_next = op;
	if (fold) {
		json_object_del(json_object_get(fold, "all"), "op");
		json_object_set_new(fold, "op", json_string("many"));
		json_object_set(fold, "of", what);
		json_object_set_new(fold, "stops", json_boolean(stops));
	}
	json_decref(what);
	json_decref(reqs);
	return made;
}

static int bundle_send(struct bundle *b, const struct ops *ops)
{
	struct op *op = next_for(ops->head, b->name);
	json_t *list, *msg;

	if (agent_unreachable(b->agent))
		return -EHOSTDOWN;
	list = json_array();
	while (op)
		json_array_append_new(list, make_part(op, ops->stops, b->parts++, &op));
	msg = b->parts > 1 ? json_pack("{s:s,s:b,s:O}", "op", "batch", "stops", ops->stops, "ops", list)
			   : json_incref(json_array_get(list, 0));
	json_decref(list);
	return agent_send(b->agent, msg, &b->q);
}

static bool has_answer(const struct bundle *b)
{
	return !b->q || b->q->done;
}

/* An answer that was not collected yet. */
static bool news(void *user)
{
	const struct bundles *all = user;

	for (size_t i = 0; i < all->n; i++)
		if (!all->b[i].collected && has_answer(&all->b[i]))
			return true;
	return false;
}

static void op_fail(struct op *op, int rc, const char *why)
{
	const char *name = json_str(op->req, "name") ? json_str(op->req, "name") : json_str(op->req, "qp");

	op->rc = rc;
	if (op->of) {
		many_failed(op, why);
		return;
	}
	snprintf(op->text, sizeof op->text, "agent %s, %s%s%s: %s", op->agent, json_str(op->req, "op"), name ? " " : "",
		 name ? name : "", why ? why : strerror(-rc));
}

static void op_take(struct case_run *r, struct op *op, json_t *reply)
{
	op->reply = json_incref(reply);
	op->rc = (int)json_int(reply, "rc", 0);
	if (op->rc < 0)
		op_fail(op, op->rc, json_str(reply, "error"));
	else if (op->of)
		many_take(r, op);
	if (!op->of)
		effect_apply(r, op->agent, op->req, reply);
}

/* What blocks is still under way: whoever makes the object again has to wait for it. */
static void note_leaving(struct case_run *r, const struct op *op)
{
	struct object *o = ctl_object_find(r, json_str(op->req, "name"));

	if (o && op->rc == -ETIMEDOUT && !strcmp(json_str(op->req, "op"), "destroy"))
		o->leaving = true;
}

/* What an agent answered to one of the requests. New reference, NULL when the answer is too short. */
static json_t *reply_to(const struct bundle *b, const struct op *op)
{
	json_t *reply = b->q->reply;
	size_t n;

	if (b->parts > 1)
		reply = json_array_get(json_object_get(reply, "replies"), op->part);
	if (op->of || json_int(reply, "rc", 0) < 0) /* for all of them */
		return json_incref(reply);
	n = many_count(reply);
	if (n)
		return op->member < n ? many_member(reply, op->member) : NULL;
	/* Those that could not be folded again. */
	if (op->member || json_object_get(reply, "replies"))
		reply = json_array_get(json_object_get(reply, "replies"), op->member);
	return json_incref(reply);
}

static void op_collect(struct case_run *r, const struct bundle *b, struct op *op)
{
	json_t *reply;

	if (!b->q) {
		op_fail(op, b->rc, b->rc == -EHOSTDOWN ? agent_unreachable(b->agent) : NULL);
		return;
	}
	if (!b->q->done) {
		op_fail(op, -ETIMEDOUT, "no answer in time");
		return;
	}
	if (!b->q->reply) {
		op_fail(op, b->q->rc, "the agent died");
		return;
	}
	reply = reply_to(b, op);
	if (reply)
		op_take(r, op, reply);
	else
		op_fail(op, -EPROTO, "the answer to a batch is too short");
	json_decref(reply);
}

static void bundle_collect(struct case_run *r, struct bundle *b, struct ops *ops, uint64_t waited_ns)
{
	if (b->q && !b->q->done)
		case_record(r, "controller",
			    json_pack("{s:s,s:s,s:o,s:I}", "kind", "blocked", "verb", "agent request", "text",
				      json_sprintf("agent %s did not answer", b->name), "waited_ns", (json_int_t)waited_ns));
	for (struct op *op = next_for(ops->head, b->name); op; op = next_for(op->next, b->name)) {
		op_collect(r, b, op);
		note_leaving(r, op);
	}
}

static void collect(struct case_run *r, struct bundles *all, struct ops *ops, uint64_t begin, bool last)
{
	for (size_t i = 0; i < all->n; i++) {
		struct bundle *b = &all->b[i];

		if (b->collected || (!last && !has_answer(b)))
			continue;
		b->collected = true;
		bundle_collect(r, b, ops, now_ns() - begin);
		/* At once: the agent may be started anew while the others are waited for. */
		ctl_request_free(b->agent, b->q);
		b->q = NULL;
	}
}

static bool all_collected(const struct bundles *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (!all->b[i].collected)
			return false;
	return true;
}

/* One that has not answered would, had it a turn. */
static bool someone_is_at_work(const struct bundles *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (!all->b[i].collected && all->b[i].agent && proc_is_at_work(all->b[i].agent->proc.pid))
			return true;
	return false;
}

int ops_run_watched(struct case_run *r, struct ops *ops, uint64_t timeout_ns,
		    void (*watch)(struct case_run *r, struct ops *ops, void *user), void *user, struct error *e)
{
	uint64_t begin = now_ns(), end = begin + (timeout_ns ? timeout_ns : CTL_REQUEST_NS), last;
	size_t most = 1;
	struct bundles all = { .n = 0 };
	struct op *op;
	int rc;

	if (!ops->head)
		return 0;
	rc = bundles_make(r, ops, &all);
	if (rc)
		return error_set(e, rc, "out of memory");
	for (size_t i = 0; i < all.n; i++) {
		most = all.b[i].n > most ? all.b[i].n : most;
		all.b[i].rc = bundle_send(&all.b[i], ops);
	}
	if (ops->meanwhile)
		ops->meanwhile(ops->user);
	end += (most - 1) * CTL_REQUEST_EACH_NS;
	last = end + CTL_TURN_NS;
	while (!rc && !all_collected(&all)) {
		rc = case_wait(r, news, &all, end);
		if (rc == -ETIMEDOUT && now_ns() < last && someone_is_at_work(&all)) {
			end = now_ns() + LOOK_NS;
			rc = 0;
		}
		collect(r, &all, ops, begin, rc != 0);
		if (watch)
			watch(r, ops, user);
	}
	free(all.b);
	if (rc && rc != -ETIMEDOUT)
		return error_set(e, rc, "event loop: %s", strerror(-rc));
	for (op = ops->head; op; op = op->next)
		if (op->rc < 0)
			return error_set(e, op->rc, "%s", op->text);
	return 0;
}

int ops_run(struct case_run *r, struct ops *ops, uint64_t timeout_ns, struct error *e)
{
	return ops_run_watched(r, ops, timeout_ns, NULL, NULL, e);
}

int ask(struct case_run *r, const char *agent, json_t *req, uint64_t timeout_ns, json_t **ret_reply, struct error *e)
{
	struct ops ops = { .head = NULL };
	struct op *op = ops_add(&ops, agent, req);
	int rc;

	if (!op)
		return error_set(e, -ENOMEM, "out of memory");
	rc = ops_run(r, &ops, timeout_ns, e);
	if (ret_reply && op->reply)
		*ret_reply = json_incref(op->reply);
	ops_free(&ops);
	return rc;
}
