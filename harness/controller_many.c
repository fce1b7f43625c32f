/* SPDX-License-Identifier: MIT */
/* Hundreds of queue pairs that are asked for the same: the request is made once, with a column for what differs. */
#include "controller_case.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "many.h"
#include "names.h"

bool many_may(struct case_run *r, const struct ends *ends)
{
	return ends->n >= CTL_CROWD_MIN && !faults_active(r);
}

/* ---- which are alike ---- */

static bool same(const json_t *a, const json_t *b, const char *key)
{
	const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);

	return x == y || json_equal(x, y);
}

static bool attrs_are_equal(const json_t *a, const json_t *b)
{
	const char *key;
	json_t *value;

	if (json_object_size(a) != json_object_size(b))
		return false;
	json_object_foreach((json_t *)a, key, value) {
		const json_t *other = json_object_get(b, key);

		if (!other || (strcmp(key, "sq_psn") != 0 && !json_equal(value, other)))
			return false;
	}
	return true;
}

/* Nothing of it follows from what a device has answered. */
static bool is_plain(const json_t *values)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)values, key, value)
		if (json_is_object(value))
			return false;
	return true;
}

static const char *agent_of_peer(struct case_run *r, const struct object *qp)
{
	const struct object *peer = ctl_object_find(r, qp->peer);

	return peer ? peer->agent : "";
}

static bool may_have_others(const struct object *qp)
{
	const json_t *attr = json_object_get(qp->plan, "attr"), *psn = json_object_get(attr, "rq_psn");
	const char *type = json_str(qp->plan, "type");

	return type && (strcmp(type, "RC") == 0 || strcmp(type, "UC") == 0) && !json_str(qp->plan, "srq") &&
	       (!psn || json_is_null(psn)) && is_plain(attr) && is_plain(json_object_get(qp->plan, "cap"));
}

static bool are_alike(struct case_run *r, const struct object *a, const struct object *b)
{
	static const char *const keys[] = { "type", "cap", "msg_bytes", "head_bytes" };
	const struct object *rx = link_receive_mr(a), *other = link_receive_mr(b);

	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		if (!same(a->plan, b->plan, keys[i]))
			return false;
	return attrs_are_equal(json_object_get(a->plan, "attr"), json_object_get(b->plan, "attr")) && !rx == !other &&
	       (!rx || same(rx->plan, other->plan, "bytes")) && strcmp(agent_of_peer(r, a), agent_of_peer(r, b)) == 0;
}

void many_classes(struct case_run *r)
{
	unsigned classes = 0;

	for (struct object *o = r->objects; o; o = o->hh.next) {
		struct object *last = NULL;

		if (o->type != OBJECT_QP || !may_have_others(o))
			continue;
		for (struct object *p = o->hh.prev; p && !last; p = p->hh.prev)
			if (p->type == OBJECT_QP && strcmp(p->agent, o->agent) == 0)
				last = p;
		o->alike = last && last->alike && are_alike(r, last, o) ? last->alike : ++classes;
	}
}

/* ---- the request ---- */

struct op *many_find(struct ops *ops, const struct object *o, const char *of, unsigned alike)
{
	struct op *op = ops->head ? ops->head->prev : NULL;

	while (op && strcmp(op->agent, o->agent) != 0)
		op = op == ops->head ? NULL : op->prev;
	return op && op->of && strcmp(op->of, of) == 0 && op->alike == alike ? op : NULL;
}

struct op *many_begin(struct ops *ops, const struct object *o, const char *of, unsigned alike, json_t *all)
{
	struct op *op = ops_add(ops, o->agent, json_pack("{s:s,s:s,s:o,s:{}}", "op", "many", "of", of, "all", all, "each"));

	if (!op)
		abort(); /* no memory */
	op->of = of;
	op->alike = alike;
	return op;
}

void many_column(struct op *op, const char *path, json_t *value)
{
	unsigned i = 0;

	while (i < op->n_columns && strcmp(op->column[i].path, path) != 0)
		i++;
	if (i == CTL_COLUMNS_MAX)
		abort(); /* no request has as many */
	if (i == op->n_columns) {
		op->column[op->n_columns].path = path;
		op->column[op->n_columns++].values = json_array();
		json_object_set_new(json_object_get(op->req, "each"), path, op->column[i].values);
	}
	json_array_append_new(op->column[i].values, value ? json_incref(value) : json_null());
}

void many_join(struct op *op, struct object *o, const char *key)
{
	if (op->n_obj == op->room) {
		size_t room = op->room ? 2 * op->room : 64;
		struct object **grown = reallocarray(op->obj, room, sizeof(struct object *));

		if (!grown)
			abort();
		op->obj = grown;
		op->room = room;
	}
	op->obj[op->n_obj++] = o;
	many_column(op, key, o->named);
}

void many_move(struct ops *ops, struct object *qp, const char *to, const char *by, bool many)
{
	struct op *op;

	if (!many) {
		ops_add(ops, qp->agent,
			json_pack("{s:s,s:s,s:s,s:s,s:b}", "op", "qp_modify", "name", qp->name, "to", to, "by", by, "brief", 1));
		return;
	}
	op = many_find(ops, qp, "qp_modify", 0);
	if (!op)
		op = many_begin(ops, qp, "qp_modify", 0, json_pack("{s:s,s:s,s:b}", "to", to, "by", by, "brief", 1));
	many_join(op, qp, "name");
}

void many_complete(struct op *op, bool stops)
{
	json_object_set_new(op->req, "count", json_integer((json_int_t)op->n_obj));
	json_object_set_new(op->req, "stops", json_boolean(stops));
}

/* ---- the reply ---- */

struct answers {
	const char *to; /* of a move */
	struct many_column rc, error, now, life, psn;
};

static const struct name *state_of(const struct answers *s, size_t i)
{
	const char *text = json_string_value(many_value(&s->now, i));

	return name_find(&names_state, text ? text : "");
}

static void moved(struct case_run *r, struct object *o, const struct answers *s, size_t i)
{
	const struct name *now = state_of(s, i);
	const json_t *life = many_value(&s->life, i);

	effect_moved(r, o, s->to, now ? now->text : NULL, life ? (unsigned)json_integer_value(life) : o->life);
}

static void queried(struct case_run *r, struct object *o, const struct answers *s, size_t i)
{
	const struct name *now = state_of(s, i);
	const json_t *psn = many_value(&s->psn, i);

	(void)r;
	if (now)
		o->state = now->text;
	o->has_seen_psn = psn != NULL;
	o->seen_psn = (uint32_t)json_integer_value(psn);
}

static void received(struct case_run *r, struct object *o, const struct answers *s, size_t i)
{
	(void)r;
	(void)s;
	(void)i;
	o->receives_posted = true;
}

/* What may be asked of many, where the answer says how they are, and what it does when it succeeds; NULL: nothing. */
static const struct effect {
	const char *of, *now;
	void (*take)(struct case_run *r, struct object *o, const struct answers *s, size_t i);
} effects[] = {
	{ "qp_modify", "new", moved },
	{ "qp_query", "state", queried },
	{ "post_recv", "", received },
	{ "drain", "", NULL },
};

static const struct effect *effect_of(const char *of)
{
	for (size_t i = 0; i < sizeof effects / sizeof effects[0]; i++)
		if (strcmp(effects[i].of, of) == 0)
			return &effects[i];
	return NULL;
}

static void fail(struct op *op, size_t i, int rc, const char *error)
{
	if (op->rc < 0)
		return;
	op->rc = rc;
	snprintf(op->text, sizeof op->text, "agent %s, %s %s: %s", op->agent, op->of, op->obj[i]->name,
		 error ? error : strerror(-rc));
}

void many_failed(struct op *op, const char *why)
{
	char others[32] = "";

	if (op->n_obj > 1)
		snprintf(others, sizeof others, " and %zu more", op->n_obj - 1);
	snprintf(op->text, sizeof op->text, "agent %s, %s %s%s: %s", op->agent, op->of, op->obj[0]->name, others,
		 why ? why : strerror(-op->rc));
}

void many_take(struct case_run *r, struct op *op)
{
	const struct effect *effect = effect_of(op->of);
	const struct answers s = { .to = json_str(json_object_get(op->req, "all"), "to"),
				   .rc = many_column_at(op->reply, "rc"),
				   .error = many_column_at(op->reply, "error"),
				   .now = many_column_at(op->reply, effect ? effect->now : ""),
				   .life = many_column_at(op->reply, "life"),
				   .psn = many_column_at(op->reply, "sq_psn") };

	if (many_count(op->reply) != op->n_obj) {
		op->rc = -EPROTO;
		many_failed(op, "the answer is not for as many");
		return;
	}
	for (size_t i = 0; i < op->n_obj; i++) {
		int rc = (int)json_integer_value(many_value(&s.rc, i));

		if (rc < 0)
			fail(op, i, rc, json_string_value(many_value(&s.error, i)));
		else if (effect && effect->take)
			effect->take(r, op->obj[i], &s, i);
	}
}
