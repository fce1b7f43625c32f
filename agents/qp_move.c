/* SPDX-License-Identifier: MIT */
#include "qp_move.h"

#include <errno.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/names.h"
#include "../harness/units.h"
#include "cq.h"
#include "qp.h"

struct qp_defaults move_defaults(const struct qp *qp)
{
	return (struct qp_defaults){ qp->pd->dev->port, qp->pd->dev->gid_index };
}

void move_begin(struct move *m, struct qp *qp, int to)
{
	m->qp = qp;
	m->handle = qp->qp;
	m->type = (int)qp->type;
	m->to = to;
	m->seen.obj = qp->o.name;
	qp->o.busy = true;
}

static int state_now(const struct move *m)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	return ibv_query_qp(m->handle, &attr, QP_QUERY_MASK, &init) == 0 ? (int)attr.qp_state : -1;
}

/* One that the device allows from there alone: that it was made says where the QP was. */
static bool tells_from(const struct move *m)
{
	static const struct {
		int from, to;
	} rows[] = { { IBV_QPS_RESET, IBV_QPS_INIT }, { IBV_QPS_INIT, IBV_QPS_RTR }, { IBV_QPS_RTR, IBV_QPS_RTS } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (m->believes && (int)m->qp->state == rows[i].from && m->to == rows[i].to)
			return true;
	return false;
}

void move_run(struct move *m)
{
	bool tells = tells_from(m);

	m->old = tells ? (int)m->qp->state : state_now(m);
	m->attr.qp_state = (enum ibv_qp_state)m->to;
	m->mask = qp_mask_choose(m->type, m->old < 0 ? (int)m->qp->state : m->old, m->to, m->given, m->leave_out, m->add);
	m->started_ns = now_ns();
	m->err = ibv_modify_qp(m->handle, &m->attr, m->mask);
	m->dur_ns = now_ns() - m->started_ns;
	if (m->err < 0)
		m->err = m->err == -1 && errno ? errno : -m->err;
	if (m->err && tells)
		m->old = state_now(m);
	m->seen.t_ns = m->started_ns;
	m->seen.old = m->old < 0 ? "?" : name_of(&names_state, m->old);
	qp_seen_ask(&m->seen, m->handle);
}

static bool begins_life(const struct move *m)
{
	return !m->err && m->to == IBV_QPS_RESET;
}

/* Completions that are there belong to the life that ends; what else was outstanding ends unseen. */
static void catch_up(struct agent *a, const struct move *m, unsigned n)
{
	const struct cq *seen[2] = { NULL };

	for (unsigned i = 0; i < n; i++) {
		struct cq *const own[2] = { m[i].qp->scq, m[i].qp->rcq };

		for (unsigned k = 0; k < 2 && begins_life(&m[i]); k++) {
			if (own[k] == seen[0] || own[k] == seen[1])
				continue;
			cq_catch_up(a, own[k]);
			seen[k] = own[k];
		}
	}
}

void moves_settle(struct agent *a, struct move *m, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct qp *qp = m[i].qp;

		qp->o.busy = false;
		if (m[i].seen.err)
			continue;
		qp->state = m[i].seen.attr.qp_state;
		/* The device's last word: some round depths up and do not say so when they make the QP. */
		qp->cap.max_recv_wr = m[i].seen.cap.max_recv_wr;
	}
	catch_up(a, m, n);
	for (unsigned i = 0; i < n; i++) {
		struct qp *qp = m[i].qp;

		if (begins_life(&m[i])) {
			qp_discard(a, qp);
			qp->o.life++;
			queue_begin(qp->sq, qp->o.life);
			queue_begin(qp->rq, qp->o.life);
		}
		m[i].seen.life = qp->o.life;
	}
}

json_t *move_given(const json_t *set, bool gid, const struct qp_defaults *d)
{
	json_t *copy = set ? json_copy((json_t *)set) : json_object();
	json_t *gid_index = json_object_get(copy, "gid_index");

	if (json_is_null(gid_index) || (!gid_index && (gid || json_object_get(copy, "dest_gid"))))
		json_object_set_new(copy, "gid_index", json_integer(d->gid_index));
	return copy;
}

json_t *move_fields(const struct move *m, const char *by)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:i, s:s}", "asked", name_of(&names_state, m->to), "old", m->seen.old, "new",
			 m->seen.new, "mask", qp_mask_json(m->mask), "errno", m->err, "by", by);
}

void move_record(struct agent *a, const struct move *m, const char *by, json_t *given, bool late)
{
	json_t *f = move_fields(m, by);

	json_object_set_new(f, "attrs", given);
	if (!m->seen.err)
		json_object_set_new(f, "queried", qp_seen_queried(&m->seen));
	json_object_set_new(f, "dur_ns", json_integer((json_int_t)m->dur_ns));
	if (m->seen.err)
		json_object_set_new(f, "note", json_sprintf("ibv_query_qp: %s", strerror(m->seen.err)));
	if (late)
		json_object_set_new(f, "late", json_true());
	agent_record(a, m->started_ns, "state", m->qp->o.name, m->seen.life, f);
}

json_t *move_reply(const struct move *m)
{
	return json_pack("{s:s, s:s, s:i}", "old", m->seen.old, "new", m->seen.new, "life", (int)m->seen.life);
}

int move_error(const struct move *m, struct error *e)
{
	return error_set(e, -m->err, "%s from %s to %s: %s", m->qp->o.name, m->seen.old, name_of(&names_state, m->to),
			 strerror(m->err));
}
