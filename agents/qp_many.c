/* SPDX-License-Identifier: MIT */
/*
 * Moves of many queue pairs in one request: CHUNK of them at a time go to the verbs thread in one call, and between two such calls
 * the loop has its turn. What their request says of all is parsed once for each chunk, of each only what is a column; and their
 * records and replies are built as columns.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/attr.h"
#include "../harness/json.h"
#include "../harness/names.h"
#include "qp_move.h"
#include "verbs_thread.h"

#define CHUNK 64u
#define PUTS_MAX 32u
#define HALTED 0x80000000u

/* A column of `set`. */
struct put {
	const struct qp_attr_setter *setter;
	const char *path; /* "set.rq_psn" */
	const json_t *column;
};

/* What became of a member; reply: what the others do not have. */
struct ended {
	const char *old, *new;
	uint32_t life;
	json_t *reply;
};

struct moves {
	struct agent *agent;
	struct request *req; /* NULL once answered: a chunk that hangs outlives it */
	json_t *body;
	const json_t *names, *set;
	struct put put[PUTS_MAX];
	unsigned n_put;
	int to, put_mask;
	bool gid, stops;
	char by[16];
	size_t n, next;
	struct ended *ended;
	bool failed; /* any */
	unsigned refs;
};

struct chunk {
	struct verbs_call call;
	struct moves *of;
	struct qp_defaults defaults;
	struct ibv_qp_attr attr; /* of all */
	int given;
	bool stops;
	atomic_uint begun; /* moves; with HALTED none is begun any more */
	unsigned n;
	bool answered; /* but for the one that hung, `late` */
	unsigned late;
	struct move move[CHUNK];
	size_t member[CHUNK];
};

static void moves_unref(struct moves *f)
{
	if (--f->refs)
		return;
	for (size_t i = 0; i < f->n; i++)
		json_decref(f->ended[i].reply);
	json_decref(f->body);
	free(f->ended);
	free(f);
}

/* ---- on the verbs thread ---- */

static void run_chunk(struct verbs_call *call)
{
	struct chunk *c = (struct chunk *)call;

	for (unsigned i = 0; i < c->n; i++) {
		unsigned expected = i;

		if (!atomic_compare_exchange_strong(&c->begun, &expected, i + 1))
			return;
		move_run(&c->move[i]);
		if (c->stops && c->move[i].err)
			return;
	}
}

static struct object *chunk_at(const struct verbs_call *call)
{
	const struct chunk *c = (const struct chunk *)call;
	unsigned begun = atomic_load(&c->begun) & ~HALTED;

	return &c->move[begun ? begun - 1 : 0].qp->o;
}

/* ---- records ---- */

static bool have_alike(const void *user, size_t i, size_t k)
{
	const struct chunk *c = user;
	const struct move *a = &c->move[i], *b = &c->move[k];

	return !a->err && !b->err && a->mask == b->mask && qp_seen_alike(&a->seen, &b->seen);
}

static json_t *given_of(const struct chunk *c, unsigned i)
{
	const struct moves *f = c->of;
	json_t *given = move_given(f->set, f->gid, &c->defaults);

	for (unsigned k = 0; k < f->n_put; k++)
		json_object_set(given, f->put[k].path + strlen("set."), json_array_get(f->put[k].column, c->member[i]));
	return given;
}

static void record_one(struct agent *a, const void *user, size_t i)
{
	const struct chunk *c = user;

	move_record(a, &c->move[i], c->of->by, given_of(c, (unsigned)i), false);
}

/* Columns of the request are those of the record. */
static void put_attrs(const struct chunk *c, size_t from, size_t n, json_t *all, json_t *each)
{
	const struct moves *f = c->of;
	json_t *given = move_given(f->set, f->gid, &c->defaults);

	for (unsigned k = 0; k < f->n_put; k++) {
		json_t *column = json_array();
		char path[64];

		for (size_t i = from; i < from + n; i++)
			json_array_append(column, json_array_get(f->put[k].column, c->member[i]));
		snprintf(path, sizeof(path), "attrs.%s", f->put[k].path + strlen("set."));
		json_object_set_new(each, path, column);
		json_object_del(given, f->put[k].path + strlen("set."));
	}
	json_object_set_new(all, "attrs", given);
}

static void record_many(struct agent *a, const void *user, size_t from, size_t n)
{
	static const struct column dur = COLUMN(struct move, dur_ns, "dur_ns");
	const struct chunk *c = user;
	const struct move *first = &c->move[from];
	json_t *all = move_fields(first, c->of->by), *each = json_object();

	put_attrs(c, from, n, all, each);
	column_put(&dur, (struct rows){ first, sizeof(*first), n }, all, each);
	qp_seen_record(a, (struct rows){ &first->seen, sizeof(*first), n }, all, each);
}

static const struct qp_seen_ops record_ops = { have_alike, record_many, record_one };

/* ---- replies ---- */

static void end_failed(struct moves *f, size_t member, json_t *reply)
{
	f->ended[member].reply = reply;
	f->failed = true;
}

static void end_move(struct moves *f, size_t member, const struct move *m)
{
	struct error e;

	if (m->err) {
		int rc = move_error(m, &e);

		end_failed(f, member, reply_failed(rc, move_reply(m), e.text));
		return;
	}
	f->ended[member].old = m->seen.old;
	f->ended[member].new = m->seen.new;
	f->ended[member].life = m->seen.life;
}

static void end_not_made(struct moves *f, size_t member, const char *why)
{
	json_t *reply;
	struct error e;

	error_set(&e, 0, "%s of %s was not made: %s", MODIFY, json_string_value(json_array_get(f->names, member)), why);
	reply = reply_failed(-ETIMEDOUT, json_pack("{s:b}", "blocked", 1), e.text);
	end_failed(f, member, reply);
}

/* Those that no chunk has. */
static void end_rest(struct moves *f, const char *blocked)
{
	for (; f->next < f->n; f->next++) {
		if (f->stops || !blocked)
			end_failed(f, f->next, reply_not_done());
		else
			end_not_made(f, f->next, blocked);
	}
}

static void answer_each(struct moves *f)
{
	json_t *replies = json_array();

	for (size_t i = 0; i < f->n; i++) {
		struct ended *one = &f->ended[i];

		json_array_append_new(replies, one->reply ? one->reply
							  : json_pack("{s:s, s:s, s:i, s:i}", "old", one->old, "new", one->new,
								      "life", (int)one->life, "rc", 0));
		one->reply = NULL;
	}
	request_reply_each(f->req, replies);
}

static void answer(struct moves *f)
{
	static const struct column columns[] = { COLUMN_TEXT(struct ended, old, "old"), COLUMN_TEXT(struct ended, new, "new"),
						 COLUMN(struct ended, life, "life") };
	struct line *line = f->agent->line;

	if (f->failed) {
		answer_each(f);
	} else {
		json_t *all = json_object(), *each = json_object();

		for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
			column_put(&columns[i], (struct rows){ f->ended, sizeof(*f->ended), f->n }, all, each);
		request_reply_fold(f->req, f->n, all, each);
	}
	f->req = NULL;
	line_uncork(line);
	moves_unref(f);
}

/* ---- chunks ---- */

static bool chunk_has(const struct chunk *c, const struct object *qp)
{
	for (unsigned i = 0; i < c->n; i++)
		if (&c->move[i].qp->o == qp)
			return true;
	return false;
}

/* What the request says of all, with this QP's own where it does not. */
static bool parse_for(struct chunk *c, const struct qp *qp)
{
	struct qp_defaults d = move_defaults(qp);
	struct error e;

	if (c->n)
		return d.port == c->defaults.port && d.gid_index == c->defaults.gid_index;
	c->defaults = d;
	if (qp_attr_parse(c->of->set, &d, &c->attr, &c->given, &e) < 0)
		abort(); /* it was parsed before */
	c->given |= c->of->put_mask;
	return true;
}

static void chunk_add(struct chunk *c, struct qp *qp, size_t member)
{
	const struct moves *f = c->of;
	struct move *m = &c->move[c->n];

	c->member[c->n++] = member;
	m->attr = c->attr;
	m->given = c->given;
	for (unsigned i = 0; i < f->n_put; i++)
		qp_attr_put(f->put[i].setter, json_array_get(f->put[i].column, member), &m->attr, NULL);
	move_begin(m, qp, f->to);
}

/* The next members, up to one that has to wait for those before it. */
static void chunk_fill(struct chunk *c, struct moves *f)
{
	while (c->n < CHUNK && f->next < f->n) {
		const char *name = json_string_value(json_array_get(f->names, f->next));
		struct object *o = object_find(f->agent, OBJECT_QP, name);
		struct error e;
		int rc;

		if (o && o->busy && chunk_has(c, o))
			return;
		rc = object_want(f->agent, OBJECT_QP, "qp_modify", name, &o, &e);
		if (rc == 0) {
			if (!parse_for(c, (struct qp *)o))
				return;
			chunk_add(c, (struct qp *)o, f->next++);
			continue;
		}
		if (f->stops && c->n) /* those before it first */
			return;
		end_failed(f, f->next++, reply_failed(rc, NULL, e.text));
		if (f->stops)
			end_rest(f, NULL);
	}
}

static void finish_chunk(struct agent *a, struct verbs_call *call);
static void chunk_overdue(struct agent *a, struct verbs_call *call, uint64_t waited_ns);

/* False: there is nothing more to be done. */
static bool next_chunk(struct moves *f)
{
	struct chunk *c;

	if (f->agent->leaving) /* what it releases is not to be moved any more */
		end_rest(f, "the controller is gone");
	if (f->next == f->n)
		return false;
	c = verbs_call_new(sizeof(*c));
	c->of = f;
	c->stops = f->stops;
	chunk_fill(c, f);
	if (!c->n) {
		free(c);
		return false;
	}
	c->call = (struct verbs_call){ .verb = MODIFY,
				       .obj = &c->move[0].qp->o,
				       .run = run_chunk,
				       .finish = finish_chunk,
				       .at = chunk_at,
				       .overdue = chunk_overdue };
	f->refs++;
	verbs_submit(f->agent, &c->call, json_u64(json_object_get(f->body, "all"), "deadline_ns", 0));
	return true;
}

/* Of the first n, all of which have returned, what the agent knows of them. */
static void chunk_settle(struct agent *a, struct chunk *c, unsigned n)
{
	agent_fold(a, true);
	moves_settle(a, c->move, n);
	agent_fold(a, false);
	for (unsigned i = 0; i < n; i++)
		end_move(c->of, c->member[i], &c->move[i]);
}

static void release_from(struct chunk *c, unsigned i)
{
	for (; i < c->n; i++)
		c->move[i].qp->o.busy = false;
}

/* Those that were not begun. */
static void chunk_cut(struct chunk *c, unsigned begun, const char *blocked)
{
	struct moves *f = c->of;

	release_from(c, begun);
	for (unsigned i = begun; i < c->n; i++) {
		if (blocked)
			end_not_made(f, c->member[i], blocked);
		else
			end_failed(f, c->member[i], reply_not_done());
	}
	end_rest(f, blocked);
}

/* The request was answered when it was overdue. */
static void finish_late(struct agent *a, struct chunk *c)
{
	struct move *m = &c->move[c->late];

	if (c->late == c->n)
		return;
	moves_settle(a, m, 1);
	c->call.obj = &m->qp->o;
	c->call.err = m->err;
	c->call.started_ns = m->started_ns;
	c->call.ended_ns = m->started_ns + m->dur_ns;
	verbs_record(a, &c->call, NULL);
	move_record(a, m, c->of->by, given_of(c, c->late), true);
}

static void finish_chunk(struct agent *a, struct verbs_call *call)
{
	struct chunk *c = (struct chunk *)call;
	struct moves *f = c->of;
	unsigned begun = atomic_load(&c->begun) & ~HALTED;
	bool more;

	if (c->answered) {
		finish_late(a, c);
		goto free_chunk;
	}
	chunk_settle(a, c, begun);
	if (call->cancelled)
		chunk_cut(c, begun, "a call before it has not returned");
	else if (f->stops && f->failed)
		chunk_cut(c, begun, NULL);
	/* While it is under way, there is time for the records. */
	more = next_chunk(f);
	qp_seen_records(a, &record_ops, c, begun);
	if (!more)
		answer(f);
free_chunk:
	moves_unref(f);
	free(c);
}

/* Those that have returned are no part of what hangs. */
static void chunk_overdue(struct agent *a, struct verbs_call *call, uint64_t waited_ns)
{
	struct chunk *c = (struct chunk *)call;
	unsigned begun = atomic_fetch_or(&c->begun, HALTED), at = begun ? begun - 1 : 0;
	struct error e;

	chunk_settle(a, c, at);
	qp_seen_records(a, &record_ops, c, at);
	c->answered = true;
	c->late = begun ? at : c->n;
	if (begun) {
		int rc = verbs_overdue(a, MODIFY, &c->move[at].qp->o, waited_ns, &e);

		end_failed(c->of, c->member[at], reply_failed(rc, json_pack("{s:b}", "blocked", 1), e.text));
	}
	chunk_cut(c, begun, "one before it has not returned");
	answer(c->of);
}

/* ---- the request ---- */

static bool all_is_plain(const json_t *all)
{
	static const char *const known[] = { "to", "by", "brief", "set", "deadline_ns" };
	const json_t *set = json_object_get(all, "set");
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)all, key, v) {
		bool found = false;

		for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
			found |= strcmp(key, known[i]) == 0;
		if (!found)
			return false;
	}
	return json_bool(all, "brief", false) && (!set || json_is_object(set));
}

static bool column_has_no(const json_t *column, const struct put *p)
{
	struct ibv_qp_attr scratch;
	const json_t *v;
	size_t i;

	json_array_foreach((json_t *)column, i, v)
		if (p ? json_is_null(v) || qp_attr_put(p->setter, v, &scratch, NULL) < 0 : !json_is_string(v))
			return true;
	return false;
}

/* A column of the request. */
static bool take_column(struct moves *f, const char *path, const json_t *column)
{
	struct put *p = &f->put[f->n_put];

	if (strcmp(path, "name") == 0) {
		f->names = column;
		return !column_has_no(column, NULL);
	}
	if (strncmp(path, "set.", strlen("set.")) != 0 || f->n_put == PUTS_MAX)
		return false;
	*p = (struct put){ qp_attr_setter(path + strlen("set.")), path, column };
	if (!p->setter || column_has_no(column, p))
		return false;
	f->put_mask |= attr_find(path + strlen("set."))->mask;
	f->gid |= strcmp(path, "set.dest_gid") == 0;
	f->n_put++;
	return true;
}

static bool moves_parse(struct moves *f)
{
	const json_t *all = json_object_get(f->body, "all"), *each = json_object_get(f->body, "each");
	const char *to = json_str(all, "to"), *by = json_str(all, "by"), *path;
	const struct name *state = name_find(&names_state, to ? to : "");
	struct ibv_qp_attr attr;
	struct error e;
	json_t *column;
	int given;

	if (!state || !all_is_plain(all))
		return false;
	f->to = state->value;
	f->set = json_object_get(all, "set");
	snprintf(f->by, sizeof(f->by), "%s", by ? by : "harness");
	if (qp_attr_parse(f->set, &(struct qp_defaults){ 0 }, &attr, &given, &e) < 0)
		return false;
	json_object_foreach((json_t *)each, path, column)
		if (!take_column(f, path, column))
			return false;
	return f->names != NULL;
}

bool many_qp_modify(struct agent *a, struct request *r)
{
	struct moves *f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	*f = (struct moves){
		.agent = a, .req = r, .body = json_incref(r->body), .stops = json_bool(r->body, "stops", false), .refs = 1
	};
	if (!moves_parse(f)) {
		moves_unref(f);
		return false;
	}
	f->n = json_array_size(f->names);
	f->ended = calloc(f->n, sizeof(*f->ended));
	if (!f->ended)
		abort();
	line_cork(a->line);
	if (!next_chunk(f))
		answer(f);
	return true;
}
