/* SPDX-License-Identifier: MIT */
/* The two ends of what failed. */
#include "verdict_hint.h"

#include <stdio.h>

#include "json.h"
#include "plan.h"

#define CAUSES_MAX 3

static bool is_cause(const struct m_comp *c)
{
	return !c->success && strcmp(c->status, "WR_FLUSH_ERR");
}

/* In the newest life that had one by then. What the send queue says is the answer; what the receive queue says is the other end's
 * reason. */
static const struct m_comp *first_cause(const struct judge *j, size_t qp, size_t rec)
{
	const struct model *m = j->m;
	const struct m_comp *best = NULL;

	for (size_t i = 0; qp != M_NONE && i < m->comps.n; i++) {
		const struct m_comp *c = &m->comps.v[i];

		/* Records of a batch cross the step's end. */
		if (c->qp != qp || !is_cause(c) || (best && c->rec > rec) || (c->rec > rec && judge_is_release(j, c->inst)))
			continue;
		if (!best || c->qp_life > best->qp_life || (c->qp_life == best->qp_life && best->recv && !c->recv))
			best = c;
	}
	return best;
}

static bool has_flush(const struct model *m, size_t qp)
{
	for (size_t i = 0; i < m->comps.n; i++)
		if (m->comps.v[i].qp == qp && !m->comps.v[i].success && !m->comps.v[i].recv)
			return true;
	return false;
}

/* The first post of an end that a step made and that had no good end by then. */
static const struct m_post *unfinished(const struct model *m, size_t qp, size_t rec)
{
	for (size_t i = 0; i < m->posts.n; i++) {
		const struct m_post *p = &m->posts.v[i];
		uint32_t ended = 0;

		if (p->queue != m->qps.v[qp].send || !p->accepted || !p->signaled || *p->traffic || p->rec > rec)
			continue;
		for (size_t k = 0; k < m->comps.n; k++)
			if (m->comps.v[k].qp == qp && m->comps.v[k].rec <= rec && m_comp_post(m, &m->comps.v[k]) == p)
				ended += m->comps.v[k].count;
		if (ended < p->accepted)
			return p;
	}
	return NULL;
}

static size_t peer_of(const struct model *m, size_t qp)
{
	const char *peer = m->qps.v[qp].peer;

	return peer ? m_qp_find(m, peer, strlen(peer)) : M_NONE;
}

static const struct m_post *last_post(const struct model *m, size_t qp)
{
	for (size_t i = m->posts.n; i-- > 0;)
		if (m->posts.v[i].queue == m->qps.v[qp].send && m->posts.v[i].accepted)
			return &m->posts.v[i];
	return NULL;
}

/* The newest post that the finding's step asks about. */
static const struct m_post *post_in_question(const struct judge *j, const struct finding *f)
{
	const struct model *m = j->m;
	const char *of = json_str(m->insts.v[f->inst].plan, "of");

	for (size_t i = m->posts.n; of && i-- > 0;)
		if (m->posts.v[i].rec <= f->rec && m->posts.v[i].queue != M_NONE && !strcmp(m->posts.v[i].as, of))
			return &m->posts.v[i];
	return NULL;
}

/* What did not arrive is missed at the other end: the one that posted it has asked. */
static size_t who_asked(const struct judge *j, const struct finding *f, size_t qp)
{
	const struct m_post *post = f->post ? f->post : post_in_question(j, f);
	size_t own = post && post->queue != M_NONE ? j->m->queues.v[post->queue].qp : M_NONE;
	const struct m_comp *c = first_cause(j, qp, f->rec);

	/* Its own request has failed: it is about that. */
	if (c && !c->recv)
		return qp;
	return own != M_NONE && (qp == M_NONE || qp == peer_of(j->m, own)) ? own : qp;
}

bool scene_set(struct scene *s, const struct judge *j, const struct finding *f)
{
	static const char *const aside[] = { "kernel", "residue", "harness", "bystander", "hang", "resources" };
	const struct model *m = j->m;
	const struct m_post *late;
	struct m_end end = m_end_of(m, f->at);

	for (size_t i = 0; i < sizeof(aside) / sizeof(*aside); i++)
		if (!strcmp(f->check, aside[i]))
			return false;
	*s = (struct scene){ .j = j, .qp = who_asked(j, f, end.qp), .check = f->check };
	if (s->qp == M_NONE && m->qps.n)
		s->qp = 0;
	if (s->qp == M_NONE)
		return false;
	s->peer = peer_of(m, s->qp);
	s->c = first_cause(j, s->qp, f->rec);
	s->peer_c = first_cause(j, s->peer, f->rec);
	/* The one that asked is the one whose send queue failed. */
	if (s->peer != M_NONE && s->peer_c && !s->peer_c->recv && (!s->c || s->c->recv)) {
		const struct m_comp *c = s->c;
		size_t qp = s->qp;

		s->qp = s->peer, s->peer = qp;
		s->c = s->peer_c, s->peer_c = c;
	}
	late = unfinished(m, s->qp, f->rec);
	s->t = s->c ? s->c->t : m->insts.v[f->inst].end_t ? m->insts.v[f->inst].end_t : m->last_t;
	s->post = s->c ? m_comp_post(m, s->c) : late;
	if (!s->c && !s->post)
		s->post = last_post(m, s->qp);
	s->step = s->post ? m->insts.v[s->post->inst].plan : NULL;
	s->status = s->c ? s->c->status : has_flush(m, s->qp) ? "WR_FLUSH_ERR" : late ? "" : "SUCCESS";
	return true;
}

/* The newest transition of an end, no later than its failure, that was given this attribute. */
static const json_t *asked(const struct scene *s, size_t qp, const char *key)
{
	const struct model *m = s->j->m;

	for (size_t i = m->states.n; i-- > 0;) {
		const struct m_state *st = &m->states.v[i];
		const json_t *value;

		if (st->qp != qp || st->err || (s->c && st->rec > s->c->rec))
			continue;
		value = json_object_get(json_object_get(json_array_get(s->j->records, st->rec), "attrs"), key);
		if (value)
			return value;
	}
	return qp == M_NONE ? NULL : json_object_get(judge_attr_at(s->j, qp, s->c ? s->c->rec : M_NONE), key);
}

int64_t scene_asked(const struct scene *s, size_t qp, const char *key, int64_t def)
{
	const json_t *value = asked(s, qp, key);

	return json_is_integer(value) ? json_integer_value(value) : def;
}

const char *scene_asked_text(const struct scene *s, size_t qp, const char *key)
{
	return json_string_value(asked(s, qp, key));
}

const char *scene_op(const struct scene *s)
{
	return s->post ? s->post->op : "";
}

const char *scene_right(const char *op)
{
	static const struct {
		const char *op, *right;
	} rights[] = { { "WRITE", "REMOTE_WRITE" },
		       { "WRITE_WITH_IMM", "REMOTE_WRITE" },
		       { "READ", "REMOTE_READ" },
		       { "CMP_AND_SWP", "REMOTE_ATOMIC" },
		       { "FETCH_AND_ADD", "REMOTE_ATOMIC" } };

	for (size_t i = 0; i < sizeof(rights) / sizeof(*rights); i++)
		if (!strcmp(rights[i].op, op))
			return rights[i].right;
	return NULL;
}

bool scene_takes_receive(const char *op)
{
	return !strncmp(op, "SEND", 4) || !strcmp(op, "WRITE_WITH_IMM");
}

const char *scene_name(const struct scene *s, size_t qp)
{
	return judge_qp(s->j, qp);
}

const char *scene_target(const struct scene *s, char *buf, size_t size)
{
	const json_t *to = json_object_get(s->step, "to");

	if (json_str(to, "mr"))
		return json_str(to, "mr");
	if (json_is_string(to))
		return json_string_value(to);
	snprintf(buf, size, "%s.mem", s->peer == M_NONE ? "" : scene_name(s, s->peer));
	return buf;
}

bool scene_is_answered(const struct scene *s)
{
	const char *type = s->j->m->qps.v[s->qp].type;

	return strcmp(type, "UC") && strcmp(type, "UD");
}

bool scene_is_datagram(const struct scene *s)
{
	return !strcmp(s->j->m->qps.v[s->qp].type, "UD");
}

int64_t scene_sent(const struct scene *s, const char *key, int64_t def)
{
	return s->post ? json_int(json_array_get(s->j->records, s->post->rec), key, def) : def;
}

const json_t *scene_verb(const struct scene *s, const char *verb, const char *obj)
{
	const struct model *m = s->j->m;

	for (size_t i = m->verbs.n; i-- > 0;) {
		const struct m_verb *v = &m->verbs.v[i];

		if (!v->err && !strcmp(v->verb, verb) && !strcmp(v->obj, obj) && (!s->c || v->rec < s->c->rec))
			return json_array_get(s->j->records, v->rec);
	}
	return NULL;
}

static const char *device_of(const struct scene *s, size_t qp, char *buf, size_t size)
{
	snprintf(buf, size, "dev.%s", qp == M_NONE ? "" : s->j->m->qps.v[qp].agent);
	return buf;
}

const char *scene_gid(const struct scene *s, size_t qp)
{
	char dev[128];

	return json_str(json_object_get(scene_verb(s, "ibv_open_device", device_of(s, qp, dev, sizeof(dev))), "ret"), "gid");
}

int64_t scene_mtu(const struct scene *s, size_t qp)
{
	char dev[128];

	return json_int(json_object_get(scene_verb(s, "ibv_open_device", device_of(s, qp, dev, sizeof(dev))), "ret"), "mtu", 0);
}

int64_t scene_moved(const struct scene *s, size_t qp, const char *const *names, const char **ret_name)
{
	char dev[128];
	const json_t *now = json_object_get(s->j->m->counter_now, device_of(s, qp, dev, sizeof(dev)));
	const json_t *base = json_object_get(s->j->m->counter_base, dev);

	for (; *names; names++) {
		int64_t delta = json_int(now, *names, 0) - json_int(base, *names, 0);

		*ret_name = *names;
		if (delta > 0)
			return delta;
	}
	return 0;
}

const char *scene_provider(const struct scene *s)
{
	return s->j->profile && s->j->profile->provider ? s->j->profile->provider : "";
}

static void add_cause(json_t *list, const char *cause, const char *why)
{
	if (json_array_size(list) < CAUSES_MAX)
		json_array_append_new(list, json_pack("{s:s, s:s}", "cause", cause, "why", why));
}

json_t *verdict_causes(const struct judge *j, const struct finding *first)
{
	json_t *list;
	struct scene s;
	char why[512];

	if (!scene_set(&s, j, first))
		return NULL;
	list = json_array();
	for (int shown = 1; shown >= 0; shown--)
		for (const struct hint *h = verdict_hints; h->cause; h++) {
			if ((h->shows != NULL) != shown || (h->status && strcmp(h->status, s.status)))
				continue;
			*why = 0;
			if (!h->shows || h->shows(&s, why, sizeof(why)))
				add_cause(list, h->cause, why);
		}
	if (json_array_size(list))
		return list;
	json_decref(list);
	return NULL;
}

static json_t *end_json(const struct scene *s, size_t qp, const struct m_comp *c)
{
	static const char *const numbers[] = { "qpn",     "dest_qpn",  "path_mtu",  "sq_psn",        "rq_psn",
					       "timeout", "retry_cnt", "rnr_retry", "min_rnr_timer", "gid_index" };
	const struct m_qp *q = &s->j->m->qps.v[qp];
	json_t *o = json_pack("{s:s, s:s, s:s}", "qp", q->name, "type", q->type, "state", q->state);

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		int64_t value = scene_asked(s, qp, numbers[i], -1);

		if (value >= 0)
			json_object_set_new(o, numbers[i], json_integer(value));
	}
	if (scene_gid(s, qp))
		json_object_set_new(o, "gid", json_string(scene_gid(s, qp)));
	if (scene_asked_text(s, qp, "dest_gid"))
		json_object_set_new(o, "dest_gid", json_string(scene_asked_text(s, qp, "dest_gid")));
	if (c) {
		json_object_set_new(o, "status", json_string(c->status));
		json_object_set_new(o, "vendor_err",
				    json_integer(json_int(json_array_get(s->j->records, c->rec), "vendor_err", 0)));
	}
	return o;
}

/* The key that the request went out by, and whose it should have been. */
static void add_key(const struct scene *s, json_t *end)
{
	int64_t used = scene_sent(s, "rkey", -1);
	char buf[128];
	const char *mr = scene_target(s, buf, sizeof(buf));
	const json_t *made = scene_verb(s, "ibv_reg_mr", mr);

	if (used < 0 || !scene_right(scene_op(s)))
		return;
	json_object_set_new(end, "rkey", json_hex((uint64_t)used));
	if (!made)
		return;
	json_object_set_new(end, "mr", json_string(mr));
	json_object_set_new(end, "mr_rkey", json_hex(json_u64(json_object_get(made, "ret"), "rkey", 0)));
}

json_t *verdict_ends(const struct judge *j, const struct finding *first)
{
	struct scene s;
	json_t *ends;

	if (!scene_set(&s, j, first))
		return NULL;
	ends = json_array();
	json_array_append_new(ends, end_json(&s, s.qp, s.c));
	add_key(&s, json_array_get(ends, 0));
	if (s.peer != M_NONE)
		json_array_append_new(ends, end_json(&s, s.peer, s.peer_c));
	return ends;
}
