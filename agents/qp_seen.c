/* SPDX-License-Identifier: MIT */
#include "qp_seen.h"

#include <errno.h>

#include "../harness/many.h"
#include "../harness/names.h"
#include "agent.h"
#include "qp.h"
#include "qp_attr.h"

void qp_seen_ask(struct qp_seen *s, struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;

	s->err = ibv_query_qp(qp, &s->attr, QP_QUERY_MASK, &init);
	if (s->err < 0)
		s->err = s->err == -1 && errno ? errno : -s->err;
	s->qpn = qp->qp_num;
	s->new = "?";
	if (s->err)
		return;
	s->cap = init.cap;
	s->new = name_of(&names_state, (int)s->attr.qp_state);
}

json_t *qp_seen_queried(const struct qp_seen *s)
{
	return s->err ? NULL : qp_attr_json(&s->attr, &s->cap, s->qpn);
}

/* Names of states are those of one table. */
bool qp_seen_alike(const struct qp_seen *a, const struct qp_seen *b)
{
	return !a->err && !b->err && a->old == b->old && a->new == b->new &&qp_attr_alike(&a->attr, &a->cap, &b->attr, &b->cap);
}

void qp_seen_record(struct agent *a, struct rows seen, json_t *all, struct each *each)
{
	static const struct column own[] = { COLUMN_TEXT(struct qp_seen, obj, "obj"), COLUMN(struct qp_seen, t_ns, "t"),
					     COLUMN(struct qp_seen, life, "life"), COLUMN_TEXT(struct qp_seen, old, "old"),
					     COLUMN_TEXT(struct qp_seen, new, "new") },
				   qpn = COLUMN(struct qp_seen, qpn, "queried.qpn");
	const struct qp_seen *first = seen.first;
	json_t *queried = qp_seen_queried(first);

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		column_write(&own[i], seen, all, each);
	qp_attr_columns((struct rows){ &first->attr, seen.stride, seen.n }, queried, each);
	if (!column_is_alike(&qpn, seen)) {
		json_object_del(queried, "qpn");
		each_column(each, qpn.name, &qpn, seen);
	}
	json_object_set_new(all, "queried", queried);
	agent_record_many(a, "state", first->t_ns, seen.n, all, each);
}

void qp_seen_records(struct agent *a, const struct qp_seen_ops *ops, const void *user, size_t n)
{
	agent_fold(a, true);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && ops->alike(user, from, to);)
			to++;
		if (to - from >= MANY_MIN) {
			ops->many(a, user, from, to - from);
			continue;
		}
		for (size_t i = from; i < to; i++)
			ops->one(a, user, i);
	}
	agent_fold(a, false);
}
