/* SPDX-License-Identifier: MIT */
#include "observe_model.h"

#include <errno.h>

#include "json.h"
#include "units.h"

/* The records of two ends cross by about this much. */
#define CROSSING_NS (250 * NSEC_PER_MSEC)
#define LINK_TAIL_NS (2500 * NSEC_PER_MSEC) /* the wire gives a device two seconds before it says that frames are missing */

struct m_end m_end_of(const struct model *m, const char *text)
{
	struct m_end end = { .qp = M_NONE, .side = M_SIDE_QP, .obj = text };
	const char *at = strchr(text, '@');
	size_t len = at ? (size_t)(at - text) : strlen(text);

	if (at)
		end.life = (unsigned)strtoul(at + 1, NULL, 10);
	end.qp = m_qp_find(m, text, len);
	if (end.qp == M_NONE && len > 5 && !memcmp(text + len - 5, ".send", 5)) {
		end.side = M_SIDE_SEND;
		end.qp = m_qp_find(m, text, len - 5);
	} else if (end.qp == M_NONE && len > 5 && !memcmp(text + len - 5, ".recv", 5)) {
		end.side = M_SIDE_RECV;
		end.qp = m_qp_find(m, text, len - 5);
	}
	if (end.qp == M_NONE) {
		if (!strncmp(text, "srq.", 4))
			end.obj = text + 4;
		else if (!strncmp(text, "cq.", 3))
			end.obj = text + 3;
	}
	return end;
}

bool m_event_at(const struct model *m, const struct m_event *ev, const struct m_end *end)
{
	static const char *const used[] = { "send_cq", "recv_cq", "srq" };
	const struct m_qp *q;
	const char *name;

	if (end->qp == M_NONE)
		return !strcmp(ev->obj, end->obj);
	q = &m->qps.v[end->qp];
	if (!strcmp(ev->obj, q->name))
		return !end->life || end->life == ev->life;
	for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++) {
		name = json_str(q->plan, used[i]);
		if (name && !strcmp(name, ev->obj))
			return true;
	}
	return !strncmp(ev->obj, "dev.", 4) && !strcmp(ev->obj + 4, q->agent);
}

static const json_t *values_of(const struct model *m, const char *obj)
{
	const json_t *v = json_object_get(m->values, obj);

	for (size_t i = 0; !v && i < m->qps.n; i++)
		if (!strcmp(m->qps.v[i].agent, obj))
			v = json_object_get(m->values, m->qps.v[i].name);
	return v;
}

int m_number(const struct model *m, const json_t *value, int64_t *ret)
{
	const char *ref = json_str(value, "ref"), *dot;
	const json_t *v;
	char obj[256];
	size_t len;

	if (json_is_integer(value)) {
		*ret = json_integer_value(value);
		return 0;
	}
	if (!ref)
		return -EINVAL;
	dot = strrchr(ref, '.');
	len = dot ? (size_t)(dot - ref) : 0;
	if (!dot || len >= sizeof(obj))
		return -EINVAL;
	memcpy(obj, ref, len);
	obj[len] = 0;
	v = json_object_get(values_of(m, obj), dot + 1);
	if (!json_is_integer(v))
		return -ENOENT;
	*ret = json_integer_value(v) + json_int(value, "add", 0);
	return 0;
}

static bool same_device(const struct model *m, const char *agent, const char *text)
{
	const char *device = json_str(json_object_get(json_object_get(m->plan, "agents"), agent), "device");

	if (!strncmp(text, "dev.", 4))
		text += 4;
	return !strcmp(agent, text) || (device && !strcmp(device, text));
}

bool m_fault_is_of_process(const struct m_fault *f, bool *ret_ends)
{
	bool of = !strcmp(f->name, "controller_killed") || !strncmp(f->name, "agent_", 6);

	if (ret_ends)
		*ret_ends = of && strcmp(f->name, "agent_frozen");
	return of;
}

bool m_fault_reaches(const struct model *m, const struct m_fault *f, size_t qp)
{
	const struct m_qp *q = &m->qps.v[qp];
	size_t peer = m_qp_find(m, q->peer, strlen(q->peer)), i;
	const json_t *e;

	if (!strcmp(f->blast, "link") || !json_array_size(f->at))
		return true;
	json_array_foreach(f->at, i, e) {
		const char *text = json_string_value(e);
		struct m_end end;

		if (!text)
			continue;
		end = m_end_of(m, text);
		if (end.qp != M_NONE && !strcmp(f->blast, "device") &&
		    (same_device(m, q->agent, m->qps.v[end.qp].agent) ||
		     (peer != M_NONE && same_device(m, m->qps.v[peer].agent, m->qps.v[end.qp].agent))))
			return true;
		if (end.qp != M_NONE && !strcmp(m->qps.v[end.qp].pair, q->pair))
			return true;
		if (end.qp == M_NONE &&
		    (same_device(m, q->agent, text) || (peer != M_NONE && same_device(m, m->qps.v[peer].agent, text))))
			return true;
	}
	return false;
}

const struct m_fault *m_fault_on(const struct model *m, size_t qp, size_t rec)
{
	for (size_t i = m->faults.n; i-- > 0;) {
		const struct m_fault *f = &m->faults.v[i];
		size_t begin = m->insts.v[f->inst].begin_rec;

		if (!f->injected || (begin == M_NONE ? f->rec : begin) > rec || (f->cleared && f->clear_rec < rec))
			continue;
		if (m_fault_reaches(m, f, qp))
			return f;
	}
	return NULL;
}

static bool is_link_fault(const struct m_fault *f)
{
	static const char *const names[] = { "link_down", "mtu_shrunk", "address_removed", "netem" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(f->name, names[i]))
			return true;
	return false;
}

static bool is_at_device(const struct model *m, const struct m_fault *f, const char *device)
{
	const json_t *e;
	size_t i;

	if (!json_array_size(f->at))
		return true;
	json_array_foreach(f->at, i, e) {
		struct m_end end = m_end_of(m, json_string_value(e) ? json_string_value(e) : "");

		if (same_device(m, end.qp != M_NONE ? m->qps.v[end.qp].agent : end.obj, device))
			return true;
	}
	return false;
}

const struct m_fault *m_link_fault_on(const struct model *m, const char *device, size_t rec, uint64_t t)
{
	for (size_t i = m->faults.n; i-- > 0;) {
		const struct m_fault *f = &m->faults.v[i];
		size_t begin = m->insts.v[f->inst].begin_rec;

		if (!f->injected || !is_link_fault(f) || (begin == M_NONE ? f->rec : begin) > rec)
			continue;
		if ((!f->cleared || t <= f->clear_t + LINK_TAIL_NS) && is_at_device(m, f, device))
			return f;
	}
	return NULL;
}

static bool device_said(size_t e_inst, uint64_t e_t, size_t inst, uint64_t t)
{
	return e_inst <= inst || e_t <= t + CROSSING_NS;
}

static const char *asked_error(const struct model *m, size_t qp, unsigned life, size_t inst)
{
	for (size_t i = 0; i < m->states.n; i++) {
		const struct m_state *s = &m->states.v[i];

		if (s->qp == qp && s->life == life && !s->err && !strcmp(s->asked, "ERR") && s->inst <= inst)
			return "it was moved to ERR";
	}
	return NULL;
}

static const char *event_explains(const struct model *m, size_t qp, unsigned life, size_t inst, uint64_t t)
{
	static const char *const fatal[] = { "QP_ACCESS_ERR", "QP_REQ_ERR", "QP_FATAL", "CQ_ERR", "DEVICE_FATAL", "SRQ_ERR" };
	static const char *const cm[] = { "DISCONNECTED", "DEVICE_REMOVAL", "ADDR_CHANGE" };
	struct m_end end = { .qp = qp, .obj = "" };
	const struct m_life *l = m_life_of(m, m->qps.v[qp].send, life);

	for (size_t i = 0; i < m->events.n; i++) {
		const struct m_event *ev = &m->events.v[i];

		if (!m_event_at(m, ev, &end) || !device_said(ev->inst, ev->t, inst, t) || (l && ev->rec < l->begin_rec) ||
		    (l && l->over && ev->rec > l->over_rec))
			continue;
		for (size_t k = 0; !ev->cm && k < sizeof(fatal) / sizeof(fatal[0]); k++)
			if (!strcmp(ev->event, fatal[k]))
				return ev->event;
		for (size_t k = 0; ev->cm && k < sizeof(cm) / sizeof(cm[0]); k++)
			if (!strcmp(ev->event, cm[k]))
				return ev->event;
	}
	return NULL;
}

static const char *cause_explains(const struct model *m, size_t qp, unsigned life, size_t inst, uint64_t t)
{
	for (size_t i = 0; i < m->qps.v[qp].comps.n; i++) {
		const struct m_comp *c = &m->comps.v[m->qps.v[qp].comps.v[i]];

		/* Of a flush that stands for a cause which the device has lost the profile says so. */
		if (c->qp_life == life && !c->success &&
		    (strcmp(c->status, "WR_FLUSH_ERR") != 0 || (c->deviation && m_profile_waives(c->deviation, "cause-first"))) &&
		    device_said(c->inst, c->t, inst, t))
			return c->status;
	}
	return NULL;
}

/* Faults that take the device or its address from under a QP. */
static const char *device_gone(const struct model *m, size_t qp, size_t inst)
{
	static const char *const names[] = { "link_down", "address_removed", "address_moved", "device_recreated" };

	for (size_t i = 0; i < m->faults.n; i++) {
		const struct m_fault *f = &m->faults.v[i];

		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			if (f->injected && f->inst <= inst && !strcmp(f->name, names[k]) && m_fault_reaches(m, f, qp))
				return f->name;
	}
	return NULL;
}

const char *m_why_error(const struct model *m, size_t qp, unsigned life, size_t inst, uint64_t t)
{
	const char *why = asked_error(m, qp, life, inst);

	if (!why)
		why = cause_explains(m, qp, life, inst, t);
	if (!why)
		why = event_explains(m, qp, life, inst, t);
	if (!why)
		why = device_gone(m, qp, inst);
	return why;
}

const json_t *m_attr_at(const struct model *m, size_t qp, size_t rec)
{
	for (size_t i = m->qps.v[qp].states.n; i-- > 0;) {
		const struct m_state *s = &m->states.v[m->qps.v[qp].states.v[i]];

		if (s->rec <= rec && s->queried && (!strcmp(s->new_, "RTS") || !strcmp(s->new_, "RTR")))
			return s->queried;
	}
	return json_object_get(m->qps.v[qp].plan, "attr");
}
