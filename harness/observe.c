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
	size_t qp, queue; /* that have this name; M_NONE */
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

static struct string *string_find(const struct model *m, const char *text, size_t len)
{
	struct string *s;

	HASH_FIND(hh, m->strings->head, text, len, s);
	return s;
}

const char *m_intern(struct model *m, const char *text)
{
	struct string *s;
	size_t len;

	if (!text || !*text)
		return "";
	len = strlen(text);
	s = string_find(m, text, len);
	if (s)
		return s->text;
	len++;
	s = calloc(1, sizeof(*s) + len);
	if (!s) {
		m->err = -ENOMEM;
		return "";
	}
	memcpy(s->text, text, len);
	s->qp = s->queue = M_NONE;
	HASH_ADD_STR(m->strings->head, text, s);
	return s->text;
}

size_t m_qp_find(const struct model *m, const char *name, size_t len)
{
	const struct string *s = string_find(m, name, len);

	return s ? s->qp : M_NONE;
}

size_t m_queue_find(const struct model *m, const char *name)
{
	const struct string *s = string_find(m, name, strlen(name));

	return s ? s->queue : M_NONE;
}

/* The first that has a name keeps it. */
static void name_qp(struct model *m, const char *name, size_t qp)
{
	struct string *s = string_find(m, name, strlen(name));

	if (s && s->qp == M_NONE)
		s->qp = qp;
}

static void name_queue(struct model *m, const char *name, size_t queue)
{
	struct string *s = string_find(m, name, strlen(name));

	if (s && s->queue == M_NONE)
		s->queue = queue;
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

size_t m_inst_new(struct model *m, int step, const char *iter)
{
	struct m_inst *in = M_PUSH(m, &m->insts);

	if (!in)
		return 0;
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
	return m_inst_new(m, step, iter);
}

/* Records are numbered as they are written: one that is missing, or there twice, shows. */
static void look_for_holes(struct model *m, const json_t *record)
{
	int64_t n = json_int(record, "n", 0);

	if (n > 0 && n != m->last_n + 1 && !m->hole_n)
		m->hole_n = n;
	m->last_n = n > 0 ? n : m->last_n;
}

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
	look_for_holes(m, record);
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
		m_on_bystander(m, &r);
		return;
	}
	m_record_take(m, kind, &r);
}

static size_t queue_new(struct model *m, const char *base, const char *suffix, size_t qp, const char *agent)
{
	struct m_queue *q = M_PUSH(m, &m->queues);
	char name[256];

	if (!q)
		return M_NONE;
	snprintf(name, sizeof(name), "%s%s", base, suffix);
	q->name = m_intern(m, name);
	q->qp = qp;
	q->agent = m_intern(m, agent);
	q->send = !strcmp(suffix, ".send");
	q->srq = !*suffix;
	name_queue(m, q->name, m->queues.n - 1);
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
		name_qp(m, qp->name, m->qps.n - 1);
		send = queue_new(m, name, ".send", m->qps.n - 1, qp->agent);
		recv = queue_new(m, name, ".recv", m->qps.n - 1, qp->agent);
		m->qps.v[m->qps.n - 1].send = send;
		m->qps.v[m->qps.n - 1].recv = recv;
	}
}

static void entries_of_kernel(struct model *m)
{
	const json_t *entry, **seen;
	size_t i;

	json_array_foreach(m->profile ? m->profile->entries : NULL, i, entry) {
		if (!profile_entry_seen(m->profile, entry))
			continue;
		seen = M_PUSH(m, &m->entries_seen); /* NOLINT(bugprone-sizeof-expression): a list of pointers */
		if (seen)
			*seen = entry;
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
	m->touching = json_object();
	if (!m->strings || !m->values || !m->counter_base || !m->counter_now || !m->counter_rec || !m->used || !m->touching) {
		model_free(m);
		return -ENOMEM;
	}
	objects_of_plan(m);
	entries_of_kernel(m);
	m->inst = m_inst_new(m, 0, "");
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
	s = strings->head;
	HASH_CLEAR(hh, strings->head);
	for (; s; s = next) {
		next = s->hh.next;
		free(s);
	}
	free(strings);
}

void model_free(struct model *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->qps.n; i++) {
		json_decref(m->qps.v[i].queried);
		free(m->qps.v[i].states.v);
		free(m->qps.v[i].comps.v);
		free(m->qps.v[i].traffics.v);
	}
	for (size_t i = 0; i < m->queues.n; i++) {
		for (size_t k = 0; k < m->queues.v[i].lives.n; k++)
			free(m->queues.v[i].lives.v[k].ended.r.v);
		free(m->queues.v[i].lives.v);
		free(m->queues.v[i].posts.v);
		free(m->queues.v[i].tried.v);
		free(m->queues.v[i].comps.v);
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
	free(m->clocks.v);
	free(m->insts.v);
	free(m->qps.v);
	free(m->queues.v);
	free(m->posts.v);
	free(m->comps.v);
	json_decref(m->datagrams);
	json_decref(m->mw_keys);
	free(m->states.v);
	free(m->entries_seen.v);
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
	json_decref(m->touching);
	strings_free(m->strings);
	free(m);
}
