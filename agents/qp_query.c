/* SPDX-License-Identifier: MIT */
/* What the device tells of queue pairs, of one or of many. */
#include "qp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/names.h"
#include "../harness/units.h"
#include "fold.h"
#include "object.h"
#include "qp_attr.h"
#include "qp_seen.h"

/* What is seen is what the agent knows from now on. */
static void look(struct qp *qp, struct qp_seen *s)
{
	s->obj = qp->o.name;
	s->old = name_of(&names_state, (int)qp->state);
	s->life = qp->o.life;
	s->t_ns = now_ns();
	qp_seen_ask(s, qp->qp);
	if (!s->err)
		qp->state = s->attr.qp_state;
}

int qp_query(struct qp *qp, json_t **ret)
{
	struct qp_seen s;

	look(qp, &s);
	if (s.err)
		return -s.err;
	*ret = qp_seen_queried(&s);
	return 0;
}

static void record(struct agent *a, const struct qp_seen *s, const char *by)
{
	json_t *f = json_pack("{s:s, s:s, s:i, s:s}", "old", s->old, "new", s->new, "errno", s->err, "by", by);

	if (!s->err)
		json_object_set_new(f, "queried", qp_seen_queried(s));
	agent_record(a, s->t_ns, "state", s->obj, s->life, f);
}

/* What there is to say when the device does not tell, and the negative errno. */
static int query_error(const struct qp_seen *s, struct error *e)
{
	return error_set(e, -s->err, "ibv_query_qp: %s: %s", s->obj, strerror(s->err));
}

static const char *by_of(const json_t *body)
{
	const char *by = json_str(body, "by");

	return by ? by : "query";
}

/* The reply in brief. */
static const struct column columns[] = {
	COLUMN(struct qp_seen, life, "life"),
	COLUMN_TEXT(struct qp_seen, new, "state"),
	COLUMN(struct qp_seen, attr.sq_psn, "sq_psn"),
};
#define NUM_COLUMNS (sizeof(columns) / sizeof(*columns))

void op_qp_query(struct agent *a, struct request *r)
{
	struct object *o = object_need(a, r, OBJECT_QP, "name");
	struct qp_seen s;
	struct error e;
	json_t *reply;

	if (!o)
		return;
	look((struct qp *)o, &s);
	record(a, &s, by_of(r->body));
	if (s.err) {
		request_fail(r, query_error(&s, &e), "%s", e.text);
		return;
	}
	reply = json_object();
	if (json_bool(r->body, "brief", false)) {
		for (size_t i = 0; i < NUM_COLUMNS; i++)
			json_object_set_new(reply, columns[i].name, column_value(&columns[i], &s));
	} else {
		json_object_set_new(reply, "life", json_integer(s.life));
		json_object_set_new(reply, "queried", qp_seen_queried(&s));
	}
	request_reply(r, reply);
}

/* ---- many ---- */

struct looks {
	struct fold fold;
	struct qp_seen *seen; /* without obj: nobody was asked */
};

static bool have_alike(const void *user, size_t i, size_t k)
{
	const struct qp_seen *s = ((const struct looks *)user)->seen;

	return s[i].obj && s[k].obj && qp_seen_alike(&s[i], &s[k]);
}

static void record_one(struct agent *a, const void *user, size_t i)
{
	const struct looks *l = user;

	if (l->seen[i].obj)
		record(a, &l->seen[i], by_of(l->fold.all));
}

static void record_many(struct agent *a, const void *user, size_t from, size_t n)
{
	const struct looks *l = user;
	struct each each = { .text = NULL };

	qp_seen_record(a, (struct rows){ &l->seen[from], sizeof(*l->seen), n },
		       json_pack("{s:i, s:s}", "errno", 0, "by", by_of(l->fold.all)), &each);
}

static void look_at(struct looks *l, size_t i)
{
	struct object *o;
	struct error e;
	int rc = object_want(l->fold.agent, OBJECT_QP, "qp_query", fold_name(&l->fold, i), &o, &e);

	if (rc == 0) {
		look((struct qp *)o, &l->seen[i]);
		rc = l->seen[i].err ? query_error(&l->seen[i], &e) : 0;
	}
	if (rc < 0)
		fold_fail(&l->fold, i, reply_failed(rc, NULL, e.text));
}

bool many_qp_query(struct agent *a, struct request *r)
{
	static const char *const known[] = { "by", "brief", NULL };
	static const struct qp_seen_ops ops = { have_alike, record_many, record_one };
	struct looks l;

	if (!json_bool(json_object_get(r->body, "all"), "brief", false) ||
	    json_object_size(json_object_get(r->body, "each")) != 1 || !fold_begin(&l.fold, a, r, "name", known))
		return false;
	l.seen = calloc(l.fold.n, sizeof(*l.seen));
	if (!l.seen)
		abort();
	line_cork(a->line);
	for (size_t i = 0; i < l.fold.n; i++) {
		if (l.fold.stops && l.fold.failed) {
			fold_stop(&l.fold, i);
			break;
		}
		look_at(&l, i);
	}
	qp_seen_records(a, &ops, &l, l.fold.n);
	fold_answer(&l.fold, columns, NUM_COLUMNS, (struct rows){ l.seen, sizeof(*l.seen), l.fold.n });
	line_uncork(a->line);
	fold_release(&l.fold);
	free(l.seen);
	return true;
}
