/* SPDX-License-Identifier: MIT */
#include "observe.h"

#include <errno.h>
#include <stdio.h>
#include <uthash.h>

#include "json.h"
#include "observe_model.h"
#include "plan.h"

struct string {
	UT_hash_handle hh;
	char text[];
};

struct strings {
	struct string *head;
};

void *vec_room(void *v, size_t n, size_t *cap, size_t size)
{
	if (n == *cap) {
		size_t more = *cap ? *cap * 2 : 16;
		void *moved = reallocarray(v, more, size);

		if (!moved)
			return NULL;
		v = moved;
		*cap = more;
	}
	memset((char *)v + n * size, 0, size);
	return v;
}

const char *m_intern(struct model *m, const char *text)
{
	struct string *s;
	size_t len;

	if (!text || !*text)
		return "";
	HASH_FIND_STR(m->strings->head, text, s);
	if (s)
		return s->text;
	len = strlen(text) + 1;
	s = calloc(1, sizeof(*s) + len);
	if (!s) {
		m->err = -ENOMEM;
		return "";
	}
	memcpy(s->text, text, len);
	HASH_ADD_STR(m->strings->head, text, s);
	return s->text;
}

size_t m_qp_find(const struct model *m, const char *name, size_t len)
{
	for (size_t i = 0; i < m->qps.n; i++)
		if (strlen(m->qps.v[i].name) == len && !memcmp(m->qps.v[i].name, name, len))
			return i;
	return M_NONE;
}

size_t m_queue_find(const struct model *m, const char *name)
{
	for (size_t i = 0; i < m->queues.n; i++)
		if (!strcmp(m->queues.v[i].name, name))
			return i;
	return M_NONE;
}

size_t m_inst_latest(const struct model *m, int step)
{
	for (size_t i = m->insts.n; i-- > 0;)
		if (m->insts.v[i].step == step)
			return i;
	return M_NONE;
}

static const json_t *find_step(const json_t *steps, int n)
{
	const json_t *s, *found;
	size_t i;

	json_array_foreach(steps, i, s) {
		if (json_int(s, "n", -1) == n)
			return s;
		found = find_step(json_object_get(s, "steps"), n);
		if (found)
			return found;
	}
	return NULL;
}

static size_t inst_new(struct model *m, int step, const char *iter)
{
	struct m_inst *in = VEC_PUSH(&m->insts);

	if (!in) {
		m->err = -ENOMEM;
		return 0;
	}
	*in = (struct m_inst){ .step = step,
			       .iter = m_intern(m, iter),
			       .begin_rec = M_NONE,
			       .end_rec = M_NONE,
			       .outcome = "",
			       .text = "",
			       .plan = find_step(json_object_get(m->plan, "steps"), step) };
	return m->insts.n - 1;
}

/* The instance a record belongs to; one is made for a step whose begin was never written. */
static size_t inst_of(struct model *m, const json_t *r)
{
	int step = (int)json_int(r, "step", 0);
	const char *iter = json_str(r, "iter");

	if (!iter)
		iter = "";
	for (size_t i = m->insts.n; i-- > 0;)
		if (m->insts.v[i].step == step && !strcmp(m->insts.v[i].iter, iter))
			return i;
	return inst_new(m, step, iter);
}

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
			i = inst_new(m, (int)json_int(r->r, "step", 0), iter ? iter : "");
		in = &m->insts.v[i];
		in->begin_t = r->t;
		in->begin_rec = r->rec;
		m->inst = i;
		if (in->plan && json_str(in->plan, "do") && !strcmp(json_str(in->plan, "do"), "allow")) {
			size_t *a = VEC_PUSH(&m->allows);

			if (a)
				*a = i;
			else
				m->err = -ENOMEM;
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
}

static void on_clock(struct model *m, const struct m_record *r)
{
	uint64_t late = json_u64(r->r, "late_max_ns", 0), bound = json_u64(r->r, "bound_ns", 0);

	if (json_bool(r->r, "witness", false) && late > m->late_max_ns)
		m->late_max_ns = late;
	if (bound > m->clock_bound_ns)
		m->clock_bound_ns = bound;
}

static void on_verb(struct model *m, const struct m_record *r)
{
	const char *verb = json_str(r->r, "verb");
	struct m_verb *v = VEC_PUSH(&m->verbs);
	size_t qp = m_qp_find(m, r->obj, strlen(r->obj));

	if (!v) {
		m->err = -ENOMEM;
		return;
	}
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

	if (i == M_NONE)
		return;
	s = VEC_PUSH(&m->states);
	if (!s) {
		m->err = -ENOMEM;
		return;
	}
	if (!new_)
		new_ = json_str(queried, "state");
	*s = (struct m_state){ .qp = i,
			       .asked = m_intern(m, asked),
			       .old = m_intern(m, json_str(r->r, "old")),
			       .new_ = m_intern(m, new_),
			       .by = m_intern(m, json_str(r->r, "by")),
			       .err = (int)json_int(r->r, "errno", 0),
			       .t = r->t,
			       .inst = r->inst,
			       .rec = r->rec };
	qp = &m->qps.v[i];
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
	struct m_event *ev = VEC_PUSH(&m->events);

	if (!ev) {
		m->err = -ENOMEM;
		return;
	}
	*ev = (struct m_event){ .obj = m_intern(m, r->obj),
				.event = m_intern(m, event),
				.agent = m_intern(m, r->agent),
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

static void on_counter(struct model *m, const struct m_record *r)
{
	json_t *values = json_object_get(r->r, "values");

	if (!json_is_object(values))
		return;
	if (!json_object_get(m->counter_base, r->obj))
		json_object_set(m->counter_base, r->obj, values);
	json_object_set(m->counter_now, r->obj, values);
	json_object_set_new(m->counter_rec, r->obj, json_integer((json_int_t)r->rec));
}

static struct m_fault *fault_named(struct model *m, const char *as)
{
	for (size_t i = m->faults.n; i-- > 0;)
		if (!strcmp(m->faults.v[i].as, as))
			return &m->faults.v[i];
	return NULL;
}

static void fault_inject(struct model *m, const struct m_record *r, const char *as)
{
	struct m_fault *f = VEC_PUSH(&m->faults);

	if (!f) {
		m->err = -ENOMEM;
		return;
	}
	*f = (struct m_fault){ .as = m_intern(m, as),
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
	if (f->injected && !strncmp(f->name, "agent_", 6) && strcmp(f->name, "agent_frozen")) {
		const char *agent = json_str(find_step(json_object_get(m->plan, "steps"), m->insts.v[r->inst].step), "agent");
		const json_t *step = m->insts.v[r->inst].plan;

		if (!agent)
			agent = json_str(json_object_get(step, "args"), "agent");
		if (agent)
			m_agent_gone(m, agent, r, "its process was killed");
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
	f = fault_named(m, as);
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
	p = VEC_PUSH(&m->payloads);
	if (!p) {
		m->err = -ENOMEM;
		return;
	}
	*p = (struct m_payload){
		.as = m_intern(m, json_str(r->r, "as")),
		.op = m_intern(m, json_str(r->r, "op")),
		.at = m_intern(m, json_str(r->r, "at")),
		.indices = m_intern(m, json_str(r->r, "indices")),
		.tag = json_int(r->r, "tag", 0),
		.of_step = json_int(r->r, "of_step", 0),
		.total = (unsigned)json_int(r->r, "total", 0),
		.intact = (unsigned)json_int(r->r, "intact", 0),
		.absent = (unsigned)json_int(r->r, "absent", 0),
		.partial = (unsigned)json_int(r->r, "partial", 0),
		.stale = (unsigned)json_int(r->r, "stale", 0),
		.torn = (unsigned)json_int(r->r, "torn", 0),
		.t = r->t,
		.inst = r->inst,
		.rec = r->rec,
	};
}

static void on_recover(struct model *m, const struct m_record *r)
{
	struct m_recover *v = VEC_PUSH(&m->recovers);

	if (!v) {
		m->err = -ENOMEM;
		return;
	}
	*v = (struct m_recover){ .pair = m_intern(m, json_str(r->r, "pair")),
				 .path = m_intern(m, json_str(r->r, "path")),
				 .phase = m_intern(m, json_str(r->r, "phase")),
				 .text = m_intern(m, json_str(r->r, "text")),
				 .attempt = (int)json_int(r->r, "attempt", 1),
				 .t = r->t,
				 .inst = r->inst,
				 .rec = r->rec };
}

static void on_bystander(struct model *m, const struct m_record *r)
{
	struct m_kept *k = VEC_PUSH(&m->bystander);

	if (!k) {
		m->err = -ENOMEM;
		return;
	}
	*k = (struct m_kept){ .kind = m_intern(m, json_str(r->r, "kind")),
			      .r = json_incref((json_t *)r->r),
			      .t = r->t,
			      .inst = r->inst,
			      .rec = r->rec };
}

static void on_kept(struct model *m, const struct m_record *r)
{
	struct m_kept *k = VEC_PUSH(&m->kept);
	const char *what = json_str(r->r, "what");

	if (!k) {
		m->err = -ENOMEM;
		return;
	}
	*k = (struct m_kept){ .kind = m_intern(m, json_str(r->r, "kind")),
			      .r = json_incref((json_t *)r->r),
			      .t = r->t,
			      .inst = r->inst,
			      .rec = r->rec };
	if (!strcmp(k->kind, "lost") && what && !strncmp(what, "agent/", 6))
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
	{ "recover", on_recover }, { "traffic", on_kept },
	{ "klog", on_kept },       { "residue", on_kept },
	{ "blocked", on_kept },    { "lost", on_kept },
	{ "dump", on_kept },
};

void model_feed(struct model *m, const json_t *record)
{
	const char *kind = json_str(record, "kind"), *src = json_str(record, "src"), *obj = json_str(record, "obj");
	struct m_record r = { .r = record,
			      .src = src ? src : "",
			      .obj = obj ? obj : "",
			      .agent = "",
			      .life = (unsigned)json_int(record, "life", 0),
			      .t = json_u64(record, "t", 0),
			      .rec = m->n_recs };

	m->n_recs++;
	if (!kind || m->err)
		return;
	if (!strncmp(r.src, "agent/", 6))
		r.agent = r.src + 6;
	if (json_str(record, "clk")) {
		const char *clk = m_intern(m, json_str(record, "clk"));

		m->several_clocks |= m->clk && strcmp(m->clk, clk);
		m->clk = clk;
	}
	if (!m->first_t)
		m->first_t = r.t;
	if (r.t > m->last_t)
		m->last_t = r.t;
	if (json_int(record, "step", 0) == -1)
		m->ended = true;
	r.inst = inst_of(m, record);
	if (plan_is_bystander(src) || plan_is_bystander(obj) || plan_is_bystander(json_str(record, "pair")) ||
	    plan_is_bystander(json_str(record, "what"))) {
		on_bystander(m, &r);
		return;
	}
	for (size_t i = 0; !m->err && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].kind, kind))
			kinds[i].on(m, &r);
}

static size_t queue_new(struct model *m, const char *base, const char *suffix, size_t qp, const char *agent)
{
	struct m_queue *q = VEC_PUSH(&m->queues);
	char name[256];

	if (!q) {
		m->err = -ENOMEM;
		return M_NONE;
	}
	snprintf(name, sizeof(name), "%s%s", base, suffix);
	q->name = m_intern(m, name);
	q->qp = qp;
	q->agent = m_intern(m, agent);
	q->send = !strcmp(suffix, ".send");
	q->srq = !*suffix;
	return m->queues.n - 1;
}

static void objects_of_plan(struct model *m)
{
	const json_t *o;
	size_t i;

	json_array_foreach(json_object_get(m->plan, "srqs"), i, o)
		queue_new(m, json_str(o, "name") ? json_str(o, "name") : "", "", M_NONE, json_str(o, "agent"));
	json_array_foreach(json_object_get(m->plan, "qps"), i, o) {
		const char *name = json_str(o, "name"), *srq = json_str(o, "srq");
		struct m_qp *qp = VEC_PUSH(&m->qps);
		size_t send, recv;

		if (!qp || !name) {
			m->err = qp ? m->err : -ENOMEM;
			m->qps.n -= qp ? 1 : 0;
			continue;
		}
		*qp = (struct m_qp){ .name = m_intern(m, name),
				     .agent = m_intern(m, json_str(o, "agent")),
				     .pair = m_intern(m, json_str(o, "pair")),
				     .peer = m_intern(m, json_str(o, "peer")),
				     .type = m_intern(m, json_str(o, "type")),
				     .plan = o,
				     .state = "",
				     .state_rec = M_NONE,
				     .srq = srq ? m_queue_find(m, srq) : M_NONE };
		send = queue_new(m, name, ".send", m->qps.n - 1, qp->agent);
		recv = queue_new(m, name, ".recv", m->qps.n - 1, qp->agent);
		m->qps.v[m->qps.n - 1].send = send;
		m->qps.v[m->qps.n - 1].recv = recv;
	}
}

int model_new(const json_t *plan, const struct profile *profile, struct model **ret)
{
	struct model *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->plan = plan;
	m->profile = profile;
	m->kernel = "";
	m->strings = calloc(1, sizeof(*m->strings));
	m->values = json_object();
	m->counter_base = json_object();
	m->counter_now = json_object();
	m->counter_rec = json_object();
	m->used = json_object();
	if (!m->strings || !m->values || !m->counter_base || !m->counter_now || !m->counter_rec || !m->used) {
		model_free(m);
		return -ENOMEM;
	}
	objects_of_plan(m);
	m->inst = inst_new(m, 0, "");
	if (m->err) {
		model_free(m);
		return -ENOMEM;
	}
	*ret = m;
	return 0;
}

static void strings_free(struct strings *strings)
{
	struct string *s, *next;

	if (!strings)
		return;
	HASH_ITER(hh, strings->head, s, next)
	{
		HASH_DEL(strings->head, s);
		free(s);
	}
	free(strings);
}

void model_free(struct model *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->qps.n; i++)
		json_decref(m->qps.v[i].queried);
	for (size_t i = 0; i < m->queues.n; i++) {
		for (size_t k = 0; k < m->queues.v[i].lives.n; k++)
			free(m->queues.v[i].lives.v[k].ended.r.v);
		free(m->queues.v[i].lives.v);
		free(m->queues.v[i].posts.v);
	}
	for (size_t i = 0; i < m->states.n; i++)
		json_decref(m->states.v[i].queried);
	for (size_t i = 0; i < m->faults.n; i++) {
		json_decref(m->faults.v[i].rec_ref);
		json_decref(m->faults.v[i].evidence);
	}
	for (size_t i = 0; i < m->kept.n; i++)
		json_decref(m->kept.v[i].r);
	for (size_t i = 0; i < m->bystander.n; i++)
		json_decref(m->bystander.v[i].r);
	free(m->insts.v);
	free(m->qps.v);
	free(m->queues.v);
	free(m->posts.v);
	free(m->comps.v);
	free(m->states.v);
	free(m->events.v);
	free(m->verbs.v);
	free(m->payloads.v);
	free(m->faults.v);
	free(m->recovers.v);
	free(m->packets.v);
	free(m->connections.v);
	free(m->kept.v);
	free(m->bystander.v);
	free(m->allows.v);
	json_decref(m->values);
	json_decref(m->counter_base);
	json_decref(m->counter_now);
	json_decref(m->counter_rec);
	json_decref(m->used);
	strings_free(m->strings);
	free(m);
}
