/* SPDX-License-Identifier: MIT */
#include <limits.h>

#include "json.h"
#include "observe_model.h"

static void on_step(struct model *m, const struct m_record *r)
{
	const char *phase = json_str(r->r, "phase");
	struct m_inst *in;

	if (!phase)
		return;
	if (!strcmp(phase, "begin")) {
		const char *iter = json_str(r->r, "iter");
		size_t i = r->inst;

		if (m->insts.v[i].begin_rec != M_NONE)
			i = m_inst_new(m, (int)json_int(r->r, "step", 0), iter ? iter : "");
		in = &m->insts.v[i];
		in->begin_t = r->t;
		in->begin_rec = r->rec;
		m->inst = i;
		if (in->plan && json_str(in->plan, "do") && !strcmp(json_str(in->plan, "do"), "allow")) {
			size_t *a = M_PUSH(m, &m->allows);

			if (a)
				*a = i;
		}
		return;
	}
	in = &m->insts.v[r->inst];
	in->end_t = r->t;
	in->end_rec = r->rec;
	in->outcome = m_intern(m, json_str(r->r, "outcome"));
	in->text = m_intern(m, json_str(r->r, "text"));
}

static void remember_values(struct model *m, const char *obj, const json_t *values)
{
	json_t *have = json_object_get(m->values, obj);
	const json_t *v;
	const char *key;

	if (!json_is_object(values))
		return;
	if (!have) {
		have = json_object();
		if (json_object_set_new(m->values, obj, have)) {
			m->err = -ENOMEM;
			return;
		}
	}
	json_object_foreach((json_t *)values, key, v) {
		if (!strcmp(key, "cap"))
			json_object_update(have, (json_t *)v);
		else
			json_object_set(have, key, (json_t *)v);
	}
}

static void on_hello(struct model *m, const struct m_record *r)
{
	const char *kernel = json_str(r->r, "kernel");

	if (kernel)
		m->kernel = m_intern(m, kernel);
	if (json_str(r->r, "rdma_core"))
		m->rdma_core = m_intern(m, json_str(r->r, "rdma_core"));
	if (json_bool(r->r, "ends", false))
		m->ends_told = m->has_no_end = true;
}

static void on_end(struct model *m, const struct m_record *r)
{
	(void)r;
	m->has_no_end = false;
}

/* Measured again it may have drifted: as far it is not known. */
static void clock_of(struct model *m, const char *of, int64_t offset_ns, uint64_t bound_ns)
{
	struct m_clock *c = NULL;

	for (size_t i = 0; i < m->clocks.n; i++)
		if (!strcmp(m->clocks.v[i].of, of))
			c = &m->clocks.v[i];
	if (c) {
		uint64_t moved = (uint64_t)llabs(offset_ns - c->offset_ns);

		c->bound_ns = (bound_ns > c->bound_ns ? bound_ns : c->bound_ns) + moved;
		return;
	}
	c = M_PUSH(m, &m->clocks);
	if (c)
		*c = (struct m_clock){ m_intern(m, of), offset_ns, bound_ns };
}

static void on_clock(struct model *m, const struct m_record *r)
{
	const char *of = json_str(r->r, "of");
	uint64_t late = json_u64(r->r, "late_max_ns", 0), bound = json_u64(r->r, "bound_ns", 0);

	if (json_bool(r->r, "witness", false) && late > m->late_max_ns)
		m->late_max_ns = late;
	if (bound > m->clock_bound_ns)
		m->clock_bound_ns = bound;
	if (of && json_object_get(r->r, "offset_ns"))
		clock_of(m, of, json_int(r->r, "offset_ns", 0), bound);
}

static void on_verb(struct model *m, const struct m_record *r)
{
	const char *verb = json_str(r->r, "verb");
	struct m_verb *v = M_PUSH(m, &m->verbs);
	size_t qp = m_qp_find(m, r->obj, strlen(r->obj));

	if (!v)
		return;
	*v = (struct m_verb){ .verb = m_intern(m, verb),
			      .obj = m_intern(m, r->obj),
			      .err = (int)json_int(r->r, "errno", 0),
			      .inst = r->inst,
			      .rec = r->rec,
			      .t = r->t };
	if (v->err || !verb)
		return;
	remember_values(m, v->obj, json_object_get(r->r, "ret"));
	if (qp == M_NONE)
		return;
	if (!strcmp(verb, "ibv_destroy_qp") || !strcmp(verb, "rdma_destroy_qp")) {
		m_qp_over(m, qp, r, "the QP was destroyed");
		m->qps.v[qp].exists = false;
		m->qps.v[qp].state = "";
	} else if (!strcmp(verb, "ibv_create_qp") || !strcmp(verb, "ibv_create_qp_ex") || !strcmp(verb, "rdma_create_qp")) {
		m_qp_new_life(m, qp, r->life, r, "the QP was created anew");
		m->qps.v[qp].exists = true;
		m->qps.v[qp].state = "RESET";
		m->qps.v[qp].state_since = r->t;
	}
}

static void on_state(struct model *m, const struct m_record *r)
{
	size_t i = m_qp_find(m, r->obj, strlen(r->obj));
	const json_t *queried = json_object_get(r->r, "queried");
	const char *new_ = json_str(r->r, "new"), *asked = json_str(r->r, "asked");
	struct m_state *s;
	struct m_qp *qp;
	size_t *own;

	if (i == M_NONE)
		return;
	s = M_PUSH(m, &m->states);
	if (!s)
		return;
	if (!new_)
		new_ = json_str(queried, "state");
	*s = (struct m_state){ .qp = i,
			       .asked = m_intern(m, asked),
			       .old = m_intern(m, json_str(r->r, "old")),
			       .new_ = m_intern(m, new_),
			       .by = m_intern(m, json_str(r->r, "by")),
			       .err = (int)json_int(r->r, "errno", 0),
			       .notify = json_int(json_object_get(r->r, "attrs"), "en_sqd_async_notify", 0) != 0,
			       .t = r->t,
			       .inst = r->inst,
			       .rec = r->rec };
	qp = &m->qps.v[i];
	own = M_PUSH(m, &qp->states);
	if (!own)
		return;
	*own = m->states.n - 1;
	if (!s->err && !strcmp(s->asked, "RESET"))
		m_qp_over(m, i, r, "the QP went to RESET");
	if (r->life > qp->life)
		m_qp_new_life(m, i, r->life, r, "the QP went to RESET");
	s->life = r->life ? r->life : qp->life;
	if (*s->new_) {
		if (strcmp(qp->state, s->new_))
			qp->state_since = r->t;
		qp->state = s->new_;
		qp->state_t = r->t;
		qp->state_rec = r->rec;
	}
	if (json_is_object(queried)) {
		json_decref(qp->queried);
		qp->queried = json_incref((json_t *)queried);
		s->queried = json_incref((json_t *)queried);
		remember_values(m, qp->name, queried);
	}
}

static void on_event(struct model *m, const struct m_record *r)
{
	const char *kind = json_str(r->r, "kind"), *event = json_str(r->r, "event");
	struct m_event *ev = M_PUSH(m, &m->events);

	if (!ev)
		return;
	*ev = (struct m_event){ .obj = m_intern(m, r->obj),
				.event = m_intern(m, event),
				.agent = m_intern(m, r->agent),
				.reason = m_intern(m, json_str(r->r, "reason")),
				.cm = kind && !strcmp(kind, "cm"),
				.life = r->life,
				.t = r->t,
				.inst = r->inst,
				.rec = r->rec };
	if (!strcmp(ev->event, "CQ_ERR"))
		m_cq_broken(m, ev->obj, r);
	if (!strcmp(ev->event, "DEVICE_FATAL"))
		m_agent_gone(m, r->agent, r, "the device died (DEVICE_FATAL)");
}

/* A device that was made anew counts from 0: what it had counted before counts on. */
static void counted_anew(struct model *m, const char *dev)
{
	const json_t *base = json_object_get(m->counter_base, dev), *last;
	json_t *moved = json_object();
	const char *name;

	json_object_foreach(json_object_get(m->counter_now, dev), name, last)
		json_object_set_new(moved, name, json_integer(json_int(base, name, 0) - json_integer_value(last)));
	json_object_set_new(m->counter_base, dev, moved);
}

static void on_counter(struct model *m, const struct m_record *r)
{
	json_t *values = json_object_get(r->r, "values");

	if (!json_is_object(values))
		return;
	if (json_bool(r->r, "anew", false))
		counted_anew(m, r->obj);
	if (!json_object_get(m->counter_base, r->obj))
		json_object_set(m->counter_base, r->obj, values);
	json_object_set(m->counter_now, r->obj, values);
	json_object_set_new(m->counter_rec, r->obj, json_integer((json_int_t)r->rec));
}

/* The newest of that name, or that injection of it. */
static struct m_fault *fault_named(struct model *m, const char *as, int nth)
{
	for (size_t i = m->faults.n; i-- > 0;)
		if (!strcmp(m->faults.v[i].as, as) && (!nth || m->faults.v[i].nth == nth))
			return &m->faults.v[i];
	return NULL;
}

static void fault_inject(struct model *m, const struct m_record *r, const char *as)
{
	struct m_fault *f = M_PUSH(m, &m->faults);
	bool ends;

	if (!f)
		return;
	*f = (struct m_fault){ .as = m_intern(m, as),
			       .nth = (int)json_int(r->r, "nth", 0),
			       .name = m_intern(m, json_str(r->r, "name")),
			       .detection = m_intern(m, json_str(r->r, "detection")),
			       .blast = m_intern(m, json_str(r->r, "blast")),
			       .rec_ref = json_incref((json_t *)r->r),
			       .inject_t = r->t,
			       .inst = r->inst,
			       .rec = r->rec,
			       .clear_rec = M_NONE,
			       .injected = !json_int(r->r, "errno", 0) };
	f->at = json_object_get(f->rec_ref, "at");
	if (f->injected && m_fault_is_of_process(f, &ends) && ends) {
		const json_t *step = m->insts.v[r->inst].plan;
		const char *agent = json_str(step, "agent");

		if (!agent)
			agent = json_str(json_object_get(step, "args"), "agent");
		if (agent)
			m_agent_gone(m, agent, r, "its process has ended");
	}
}

static void on_fault(struct model *m, const struct m_record *r)
{
	const char *as = json_str(r->r, "as"), *phase = json_str(r->r, "phase");
	json_t *evidence = json_object_get(r->r, "evidence");
	struct m_fault *f;

	if (!as || !*as)
		as = json_str(r->r, "name");
	if (!as || !phase)
		return;
	if (!strcmp(phase, "inject")) {
		fault_inject(m, r, as);
		return;
	}
	f = fault_named(m, as, (int)json_int(r->r, "nth", 0));
	if (!f)
		return;
	if (json_is_object(evidence) && json_object_size(evidence)) {
		json_decref(f->evidence);
		f->evidence = json_incref(evidence);
	}
	if (!strcmp(phase, "fired")) {
		f->fired = true;
	} else if (!strcmp(phase, "not_fired")) {
		f->not_fired = true;
		f->why = json_str(r->r, "text") ? m_intern(m, json_str(r->r, "text")) : NULL;
	} else if (!strcmp(phase, "clear")) {
		f->cleared = true;
		f->clear_t = r->t;
		f->clear_rec = r->rec;
	}
}

static void on_payload(struct model *m, const struct m_record *r)
{
	struct m_payload *p;

	if (json_u64(r->r, "total", 0) > M_RUN_MAX) {
		m->odd++;
		return;
	}
	p = M_PUSH(m, &m->payloads);
	if (!p)
		return;
	*p = (struct m_payload){
		.as = m_intern(m, json_str(r->r, "as")),
		.op = m_intern(m, json_str(r->r, "op")),
		.at = m_intern(m, json_str(r->r, "at")),
		.obj = m_intern(m, r->obj),
		.indices = m_intern(m, json_str(r->r, "indices")),
		.unreachable = m_intern(m, json_str(r->r, "unreachable")),
		.tag = json_int(r->r, "tag", 0),
		.of_step = json_int(r->r, "of_step", 0),
		.total = (unsigned)json_int(r->r, "total", 0),
		.intact = (unsigned)json_int(r->r, "intact", 0),
		.absent = (unsigned)json_int(r->r, "absent", 0),
		.partial = (unsigned)json_int(r->r, "partial", 0),
		.stale = (unsigned)json_int(r->r, "stale", 0),
		.torn = (unsigned)json_int(r->r, "torn", 0),
		.index = json_int(r->r, "index", -1),
		.twice = (unsigned)json_int(r->r, "twice", 0),
		.succeeded = (unsigned)json_int(r->r, "succeeded", UINT_MAX),
		.t = r->t,
		.inst = r->inst,
		.rec = r->rec,
	};
}

static void on_recover(struct model *m, const struct m_record *r)
{
	struct m_recover *v = M_PUSH(m, &m->recovers);
	const char *agent = json_str(r->r, "agent");

	if (!v)
		return;
	if (agent && json_bool(r->r, "killed", false))
		m_agent_gone(m, agent, r, "its process was killed");
	*v = (struct m_recover){ .pair = m_intern(m, json_str(r->r, "pair")),
				 .path = m_intern(m, json_str(r->r, "path")),
				 .phase = m_intern(m, json_str(r->r, "phase")),
				 .text = m_intern(m, json_str(r->r, "text")),
				 .attempt = (int)json_int(r->r, "attempt", 1),
				 .t = r->t,
				 .inst = r->inst,
				 .rec = r->rec };
}

static void keep(struct model *m, struct m_kept *k, const struct m_record *r)
{
	if (k)
		*k = (struct m_kept){ .kind = m_intern(m, json_str(r->r, "kind")),
				      .r = json_incref((json_t *)r->r),
				      .t = r->t,
				      .inst = r->inst,
				      .rec = r->rec };
}

/* How late the machine was is one thing, whoever has measured it. */
void m_on_bystander(struct model *m, const struct m_record *r)
{
	if (!strcmp(json_str(r->r, "kind"), "clock"))
		on_clock(m, r);
	keep(m, M_PUSH(m, &m->bystander), r);
}

static void on_kept(struct model *m, const struct m_record *r)
{
	keep(m, M_PUSH(m, &m->kept), r);
}

static void on_traffic(struct model *m, const struct m_record *r)
{
	const char *from = json_str(r->r, "from");
	size_t qp = from ? m_qp_find(m, from, strlen(from)) : M_NONE;
	size_t *at = qp == M_NONE ? NULL : M_PUSH(m, &m->qps.v[qp].traffics);

	if (at)
		*at = m->kept.n;
	on_kept(m, r);
}

static void on_lost(struct model *m, const struct m_record *r)
{
	const char *what = json_str(r->r, "what");

	on_kept(m, r);
	if (what && !strncmp(what, "agent/", 6))
		m_agent_gone(m, what + 6, r, "its process is gone");
}

static const struct {
	const char *kind;
	void (*on)(struct model *m, const struct m_record *r);
} kinds[] = {
	{ "hello", on_hello },     { "clock", on_clock },
	{ "step", on_step },       { "verb", on_verb },
	{ "state", on_state },     { "post", m_on_post },
	{ "wc", m_on_wc },         { "event", on_event },
	{ "cm", on_event },        { "counter", on_counter },
	{ "fault", on_fault },     { "payload", on_payload },
	{ "packet", m_on_packet }, { "connection", m_on_connection },
	{ "recover", on_recover }, { "traffic", on_traffic },
	{ "klog", on_kept },       { "residue", on_kept },
	{ "blocked", on_kept },    { "lost", on_lost },
	{ "dump", on_kept },       { "wire_stats", on_kept },
	{ "key", on_kept },        { "release", on_kept },
	{ "resources", on_kept },  { "end", on_end },
};

void m_record_take(struct model *m, const char *kind, const struct m_record *r)
{
	for (size_t i = 0; !m->err && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].kind, kind))
			kinds[i].on(m, r);
}
