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
#include "fold.h"
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

struct ended {
	const char *old, *new;
	uint32_t life;
};

struct moves {
	struct fold fold;
	const json_t *set;
	struct put put[PUTS_MAX];
	unsigned n_put;
	int to, put_mask;
	bool gid;
	char by[16];
	size_t next;
	struct ended *ended; /* of those that did not fail */
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

/* When none of its chunks is under way any more: one that hangs outlives the answer. */
static void moves_free(struct moves *f)
{
	fold_release(&f->fold);
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
static void put_attrs(const struct chunk *c, size_t from, size_t n, json_t *all, struct each *each)
{
	const struct moves *f = c->of;
	json_t *given = move_given(f->set, f->gid, &c->defaults);

	for (unsigned k = 0; k < f->n_put; k++) {
		char path[64];

		snprintf(path, sizeof(path), "attrs.%s", f->put[k].path + strlen("set."));
		each_begin(each, path);
		for (size_t i = from; i < from + n; i++)
			each_value(each, json_array_get(f->put[k].column, c->member[i]));
		each_end(each);
		json_object_del(given, f->put[k].path + strlen("set."));
	}
	json_object_set_new(all, "attrs", given);
}

static void record_many(struct agent *a, const void *user, size_t from, size_t n)
{
	static const struct column dur = COLUMN(struct move, dur_ns, "dur_ns");
	const struct chunk *c = user;
	const struct move *first = &c->move[from];
	json_t *all = move_fields(first, c->of->by);
	struct each each = { .text = NULL };

	put_attrs(c, from, n, all, &each);
	column_write(&dur, (struct rows){ first, sizeof(*first), n }, all, &each);
	qp_seen_record(a, (struct rows){ &first->seen, sizeof(*first), n }, all, &each);
}

static const struct qp_seen_ops record_ops = { have_alike, record_many, record_one };

/* ---- replies ---- */

static void end_move(struct moves *f, size_t member, const struct move *m)
{
	struct error e;

	if (m->err) {
		int rc = move_error(m, &e);

		fold_fail(&f->fold, member, reply_failed(rc, move_reply(m), e.text));
		return;
	}
	f->ended[member] = (struct ended){ m->seen.old, m->seen.new, m->seen.life };
}

static void end_not_made(struct moves *f, size_t member, const char *why)
{
	struct error e;
	int rc = error_set(&e, -ETIMEDOUT, "%s of %s was not made: %s", MODIFY, fold_name(&f->fold, member), why);

	fold_fail(&f->fold, member, reply_failed(rc, json_pack("{s:b}", "blocked", 1), e.text));
}

/* Those that no chunk has. */
static void end_rest(struct moves *f, const char *blocked)
{
	if (f->fold.stops || !blocked)
		fold_stop(&f->fold, f->next);
	else
		for (size_t i = f->next; i < f->fold.n; i++)
			end_not_made(f, i, blocked);
	f->next = f->fold.n;
}

static void answer(struct moves *f)
{
	static const struct column columns[] = { COLUMN_TEXT(struct ended, old, "old"), COLUMN_TEXT(struct ended, new, "new"),
						 COLUMN(struct ended, life, "life") };
	struct line *line = f->fold.agent->line;

	fold_answer(&f->fold, columns, sizeof(columns) / sizeof(*columns), (struct rows){ f->ended, sizeof(*f->ended), f->fold.n });
	line_uncork(line);
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
	m->believes = true;
	for (unsigned i = 0; i < f->n_put; i++)
		qp_attr_put(f->put[i].setter, json_array_get(f->put[i].column, member), &m->attr, NULL);
	move_begin(m, qp, f->to);
}

/* The next members, up to one that has to wait for those before it. */
static void chunk_fill(struct chunk *c, struct moves *f)
{
	while (c->n < CHUNK && f->next < f->fold.n) {
		const char *name = fold_name(&f->fold, f->next);
		struct object *o;
		struct error e;
		int rc = object_want(f->fold.agent, OBJECT_QP, "qp_modify", name, &o, &e);

		if (rc == -EBUSY && chunk_has(c, object_find(f->fold.agent, OBJECT_QP, name)))
			return;
		if (rc == 0) {
			if (!parse_for(c, (struct qp *)o))
				return;
			chunk_add(c, (struct qp *)o, f->next++);
			continue;
		}
		if (f->fold.stops && c->n) /* those before it first */
			return;
		fold_fail(&f->fold, f->next++, reply_failed(rc, NULL, e.text));
		if (f->fold.stops)
			end_rest(f, NULL);
	}
}

static void finish_chunk(struct agent *a, struct verbs_call *call);
static void chunk_overdue(struct agent *a, struct verbs_call *call, uint64_t waited_ns);

/* False: there is nothing more to be done. */
static bool next_chunk(struct moves *f)
{
	struct chunk *c;

	if (f->fold.agent->leaving) /* what it releases is not to be moved any more */
		end_rest(f, "the controller is gone");
	if (f->next == f->fold.n)
		return false;
	c = verbs_call_new(sizeof(*c));
	c->of = f;
	c->stops = f->fold.stops;
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
	verbs_submit(f->fold.agent, &c->call, json_u64(f->fold.all, "deadline_ns", 0));
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
			fold_fail(&f->fold, c->member[i], reply_not_done());
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
	bool more = false;

	if (c->answered) {
		finish_late(a, c);
	} else {
		chunk_settle(a, c, begun);
		if (call->cancelled)
			chunk_cut(c, begun, "a call before it has not returned");
		else if (f->fold.stops && f->fold.failed)
			chunk_cut(c, begun, NULL);
		/* While it is under way, there is time for the records. */
		more = next_chunk(f);
		qp_seen_records(a, &record_ops, c, begun);
		if (!more)
			answer(f);
	}
	if (!more)
		moves_free(f);
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

		fold_fail(&c->of->fold, c->member[at], reply_failed(rc, json_pack("{s:b}", "blocked", 1), e.text));
	}
	chunk_cut(c, begun, "one before it has not returned");
	answer(c->of);
}

/* ---- the request ---- */

static bool column_may_be_put(const json_t *column, const struct qp_attr_setter *setter)
{
	struct ibv_qp_attr scratch;
	const json_t *v;
	size_t i;

	json_array_foreach((json_t *)column, i, v)
		if (json_is_null(v) || qp_attr_put(setter, v, &scratch, NULL) < 0)
			return false;
	return true;
}

/* A column of the request. */
static bool take_column(struct moves *f, const char *path, const json_t *column)
{
	struct put *p = &f->put[f->n_put];

	if (column == f->fold.names)
		return true;
	if (strncmp(path, "set.", strlen("set.")) != 0 || f->n_put == PUTS_MAX)
		return false;
	*p = (struct put){ qp_attr_setter(path + strlen("set.")), path, column };
	if (!p->setter || !column_may_be_put(column, p->setter))
		return false;
	f->put_mask |= attr_find(path + strlen("set."))->mask;
	f->gid |= strcmp(path, "set.dest_gid") == 0;
	f->n_put++;
	return true;
}

static bool moves_parse(struct moves *f)
{
	const char *to = json_str(f->fold.all, "to"), *by = json_str(f->fold.all, "by"), *path;
	const struct name *state = name_find(&names_state, to ? to : "");
	struct ibv_qp_attr attr;
	struct error e;
	json_t *column;
	int given;

	f->set = json_object_get(f->fold.all, "set");
	if (!state || !json_bool(f->fold.all, "brief", false) || (f->set && !json_is_object(f->set)))
		return false;
	f->to = state->value;
	snprintf(f->by, sizeof(f->by), "%s", by ? by : "harness");
	if (qp_attr_parse(f->set, &(struct qp_defaults){ 0 }, &attr, &given, &e) < 0)
		return false;
	json_object_foreach((json_t *)f->fold.each, path, column)
		if (!take_column(f, path, column))
			return false;
	return true;
}

bool many_qp_modify(struct agent *a, struct request *r)
{
	static const char *const known[] = { "to", "by", "brief", "set", "deadline_ns", NULL };
	struct fold fold;
	struct moves *f;

	if (!fold_begin(&fold, a, r, "name", known))
		return false;
	f = calloc(1, sizeof(*f));
	if (!f)
		abort();
	f->fold = fold;
	f->ended = calloc(fold.n, sizeof(*f->ended));
	if (!f->ended)
		abort();
	if (!moves_parse(f)) {
		moves_free(f);
		return false;
	}
	line_cork(a->line);
	if (!next_chunk(f)) {
		answer(f);
		moves_free(f);
	}
	return true;
}
