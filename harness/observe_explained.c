/* SPDX-License-Identifier: MIT */
#include "observe_model.h"

#include "json.h"

static size_t qp_of(const struct model *m, const struct m_event *ev)
{
	return m_qp_find(m, ev->obj, strlen(ev->obj));
}

static bool once_in_its_life(const struct model *m, const struct m_event *ev)
{
	for (size_t i = 0; i < m->events.n; i++) {
		const struct m_event *o = &m->events.v[i];

		if (o->rec < ev->rec && o->life == ev->life && !strcmp(o->obj, ev->obj) && !strcmp(o->event, ev->event))
			return false;
	}
	return true;
}

/* A CQ that overflowed may say so for each completion that it loses; the first has to be expected. */
static bool said_before(const struct model *m, const struct m_event *ev)
{
	return !once_in_its_life(m, ev);
}

static bool always(const struct model *m, const struct m_event *ev)
{
	(void)m;
	(void)ev;
	return true;
}

/* Addresses come and go by these faults, and by the lab's own set-up before the first step. */
static bool after_address_step(const struct model *m, const struct m_event *ev)
{
	static const char *const names[] = { "address_removed", "address_moved", "link_down", "device_recreated" };

	if (m->insts.v[ev->inst].step == 0)
		return true;
	for (size_t i = 0; i < m->faults.n; i++)
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			if (m->faults.v[i].inst <= ev->inst && !strcmp(m->faults.v[i].name, names[k]))
				return true;
	return false;
}

static bool after_srq_qp_in_error(const struct model *m, const struct m_event *ev)
{
	size_t qp = qp_of(m, ev);

	return qp != M_NONE && m->qps.v[qp].srq != M_NONE && once_in_its_life(m, ev) &&
	       m_why_error(m, qp, ev->life ? ev->life : m->qps.v[qp].life, ev->inst, ev->t);
}

/* The newest move of its QP into SQD until then; NULL: there was none in this life. */
static const struct m_state *into_sqd(const struct model *m, const struct m_event *ev)
{
	size_t qp = qp_of(m, ev);

	for (size_t i = m->states.n; i-- > 0;) {
		const struct m_state *s = &m->states.v[i];

		if (s->qp == qp && s->inst <= ev->inst && !s->err && !strcmp(s->asked, "SQD") && strcmp(s->old, "SQD") &&
		    (!ev->life || s->life == ev->life))
			return s;
	}
	return NULL;
}

static bool said_since(const struct model *m, const struct m_state *s, const struct m_event *ev)
{
	for (size_t i = 0; i < m->events.n; i++) {
		const struct m_event *o = &m->events.v[i];

		if (o->rec < ev->rec && o->inst >= s->inst && !strcmp(o->obj, ev->obj) && !strcmp(o->event, ev->event))
			return true;
	}
	return false;
}

/* Once for each move into SQD that has asked for it. */
static bool after_asked_sqd(const struct model *m, const struct m_event *ev)
{
	const struct m_state *s = into_sqd(m, ev);

	return s && s->notify && !said_since(m, s, ev);
}

static bool on_infiniband(const struct model *m, const struct m_event *ev)
{
	const char *layer = json_str(json_object_get(m->values, ev->obj), "link_layer");

	return layer && !strcmp(layer, "InfiniBand");
}

static const struct {
	const char *event;
	bool cm;
	bool (*when)(const struct model *m, const struct m_event *ev);
} table[] = {
	{ "COMM_EST", false, once_in_its_life },
	{ "PORT_ACTIVE", false, always },
	{ "GID_CHANGE", false, after_address_step },
	{ "CQ_ERR", false, said_before },
	{ "PATH_MIG", false, on_infiniband },
	{ "QP_LAST_WQE_REACHED", false, after_srq_qp_in_error },
	{ "SQ_DRAINED", false, after_asked_sqd },
	{ "TIMEWAIT_EXIT", true, always },
	{ "ADDR_RESOLVED", true, always },
	{ "ROUTE_RESOLVED", true, always },
	{ "CONNECT_REQUEST", true, always },
	{ "CONNECT_RESPONSE", true, always },
	{ "ESTABLISHED", true, always },
};

bool m_event_explained(const struct model *m, const struct m_event *ev)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].cm == ev->cm && !strcmp(table[i].event, ev->event))
			return table[i].when(m, ev);
	return false;
}

bool m_event_asked_for(const struct model *m, const struct m_event *ev)
{
	const struct m_state *s = !ev->cm && !strcmp(ev->event, "SQ_DRAINED") ? into_sqd(m, ev) : NULL;

	return s && s->notify && !strcmp(s->by, "step");
}

bool m_event_notify_is(const struct model *m, const struct m_event *ev, const char *notify)
{
	const struct m_state *s = into_sqd(m, ev);

	return s && !strcmp(notify, !s->notify ? "unasked" : said_since(m, s, ev) ? "again" : "asked");
}
