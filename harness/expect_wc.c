/* SPDX-License-Identifier: MIT */
/* Which completions an expectation speaks of: those of a post wherever they are, or those at an end that none before it took. */
#include "expect_internal.h"

#include <errno.h>
#include <stdio.h>

#include "json.h"

static const struct m_comp *comp(const struct eval *v, const struct wc_group *g, size_t i)
{
	return &v->m->comps.v[g->comps.v[i]];
}

static void group_add(struct eval *v, struct wc_group *g, size_t index)
{
	size_t *c = M_PUSH(v->m, &g->comps);

	if (!c)
		return;
	*c = index;
	g->units += v->m->comps.v[index].count;
	if (v->m->comps.v[index].t_last > g->last_t)
		g->last_t = v->m->comps.v[index].t_last;
}

static void group_of_posts(struct eval *v, struct wc_group *g, const char *of, size_t inst, size_t queue)
{
	const struct model *m = v->m;
	const struct m_queue *q = &m->queues.v[queue];

	for (size_t i = 0; i < q->posts.n; i++) {
		const struct m_post *p = &m->posts.v[q->posts.v[i]];
		struct m_account a;

		if (p->inst != inst || strcmp(p->as, of))
			continue;
		if (!g->post)
			g->post = p;
		a = m_account_post(m, p);
		g->accepted += a.accepted;
		g->awaited += a.awaited;
		g->left += a.in_flight;
		g->discarded += a.discarded;
		g->retired += a.retired;
		for (size_t k = 0; k < q->comps.n; k++) {
			const struct m_comp *c = &m->comps.v[q->comps.v[k]];

			if (c->life == p->life && p->first <= c->seq && c->seq <= p->last && !c->twice)
				group_add(v, g, q->comps.v[k]);
		}
	}
	for (size_t i = 0; !g->post && i < q->tried.n; i++) {
		const struct m_post *p = &m->posts.v[q->tried.v[i]];

		if (p->inst == inst && !strcmp(p->as, of))
			g->post = p;
	}
}

static bool takes_receive(const char *op)
{
	return !strncmp(op, "SEND", 4) || !strcmp(op, "WRITE_WITH_IMM");
}

/* Receives stand ready for ever: what is still to come follows from what the peer has sent. */
static uint32_t recv_awaited(const struct eval *v, const struct m_qp *q, uint32_t have)
{
	const struct model *m = v->m;
	size_t peer = m_qp_find(m, q->peer, strlen(q->peer));
	uint32_t in_flight = 0, delivered = 0;
	const struct m_queue *sq;

	if (peer == M_NONE)
		return 0;
	sq = &m->queues.v[m->qps.v[peer].send];
	for (size_t i = m_posts_of_life(m, m->qps.v[peer].send, m->qps.v[peer].life); i < sq->posts.n; i++) {
		const struct m_post *p = &m->posts.v[sq->posts.v[i]];
		struct m_account a;

		if (p->life != m->qps.v[peer].life)
			break;
		if (*p->traffic || !takes_receive(p->op))
			continue;
		a = m_account_post(m, p);
		in_flight += a.awaited;
		delivered += a.retired;
		for (size_t k = 0; k < sq->comps.n; k++) {
			const struct m_comp *c = &m->comps.v[sq->comps.v[k]];

			if (c->life == p->life && p->first <= c->seq && c->seq <= p->last && c->success && !c->twice)
				delivered++;
		}
	}
	return in_flight + (delivered > have ? delivered - have : 0);
}

static bool speaks_of_flush(const struct wc_pattern *pt)
{
	for (size_t i = 0; i < pt->e.n; i++)
		if (json_array_has(pt->e.v[i].any, "WR_FLUSH_ERR"))
			return true;
	return false;
}

static void group_of_end(struct eval *v, struct wc_group *g, const struct m_end *end, const struct wc_pattern *pt)
{
	const struct model *m = v->m;
	const struct m_qp *q = &m->qps.v[end->qp];
	unsigned life = end->life ? end->life : q->life;
	size_t queue = g->recv ? q->recv : q->send;
	struct m_account a = m_account_life(m, queue, m_life_of(m, queue, life), g->recv);
	uint32_t have = 0;

	for (size_t k = m_comps_of_life(q, life); k < q->comps.n; k++) {
		const struct m_comp *c = &m->comps.v[q->comps.v[k]];

		if (c->recv != g->recv || c->qp_life != life || c->twice || c->marker || (*c->traffic && c->success))
			continue;
		have += c->success ? c->count : 0;
		if (!c->taken || c->taken == v->inst + 1)
			group_add(v, g, q->comps.v[k]);
	}
	g->accepted = a.accepted;
	if (!g->recv || (speaks_of_flush(pt) && q->srq == M_NONE))
		g->awaited = a.awaited;
	else if (g->recv && q->srq == M_NONE)
		g->awaited = recv_awaited(v, q, have);
	g->retired = g->recv ? 0 : a.retired;
}

/* What a completion says of one thing; -1: nothing. */
static int64_t said(const struct m_comp *c, const char *key)
{
	return !strcmp(key, "imm") ? c->imm : !strcmp(key, "bytes") ? c->bytes : c->invalidated;
}

/* The key that a window had last been bound with, else the value itself. */
static bool says_this(const struct eval *v, const struct m_comp *c, const char *key, const json_t *want)
{
	if (!strcmp(key, "opcode"))
		return !strcmp(c->opcode, json_string_value(want));
	if (json_is_string(want))
		return c->invalidated >= 0 && c->invalidated == json_int(v->m->mw_keys, json_string_value(want), -2);
	return said(c, key) >= 0 && cmp_holds(v->m, want, said(c, key), NULL) == 1;
}

/* Does the profile have it that the device says something else, or nothing? */
static bool says_excused(struct eval *v, const struct m_comp *c, const char *key)
{
	struct m_match what = { .qp = c->qp, .life = c->qp_life, .recv = c->recv, .says = key, .rec = c->rec };
	char device[32];

	snprintf(device, sizeof(device), "%lld", (long long)said(c, key));
	return expect_excused(v, &what,
			      !strcmp(key, "opcode") ? (*c->opcode ? c->opcode : "none")
			      : said(c, key) < 0     ? "none"
						     : device);
}

/* What each of the completions that the pattern took says beside its status; "seen" has what the first odd one says. */
static bool says(struct eval *v, const struct wc_group *g, const json_t *want, struct text *seen)
{
	const char *key;
	json_t *value;

	for (size_t i = 0; i < g->used; i++)
		json_object_foreach((json_t *)want, key, value) {
			const struct m_comp *c = comp(v, g, i);

			if (says_this(v, c, key, value) || says_excused(v, c, key))
				continue;
			if (!strcmp(key, "opcode"))
				text_add(seen, " with opcode %s", *c->opcode ? c->opcode : "none");
			else if (said(c, key) < 0)
				text_add(seen, " without %s", key);
			else
				text_add(seen, " with %s %lld", key, (long long)said(c, key));
			return false;
		}
	return true;
}

static void says_text(const struct eval *v, const json_t *want, struct text *t)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)want, key, value) {
		text_add(t, " with %s ", key);
		if (json_is_string(value))
			text_add(t, "%s", json_string_value(value));
		else
			cmp_text(v->m, value, t);
	}
}

static enum expect_state add_group_result(struct eval *v, struct part *p, struct wc_group *g, const struct wc_pattern *pt, bool of,
					  bool several)
{
	enum expect_state state = wc_group_eval(v, g, pt, of);
	struct text odd = { .len = 0 };

	if (p->seen.len)
		text_add(&p->seen, "; ");
	if (several)
		text_add(&p->seen, "%s ", g->at);
	wc_group_text(v, g, &p->seen);
	if (state == EXPECT_MET && !says(v, g, pt->says, &odd)) {
		text_add(&p->seen, "%s", odd.b);
		state = EXPECT_BROKEN;
	}
	if (state != EXPECT_MET && !p->at)
		p->at = g->at;
	p->state = expect_worse(p->state, state);
	free(g->comps.v);
	return state;
}

static bool is_traffic(const struct model *m, const char *name)
{
	for (size_t i = 0; i < m->kept.n; i++) {
		const char *as = json_str(m->kept.v[i].r, "as");

		if (!strcmp(m->kept.v[i].kind, "traffic") && as && !strcmp(as, name))
			return true;
	}
	return false;
}

static void wc_of_traffic(struct eval *v, const char *of, bool recv, const struct wc_pattern *pt, struct part *p)
{
	const struct model *m = v->m;

	for (size_t q = 0; q < m->qps.n; q++) {
		struct wc_group g = { .qp = q, .recv = recv, .at = m->qps.v[q].name };

		for (size_t k = 0; k < m->qps.v[q].comps.n; k++) {
			size_t c = m->qps.v[q].comps.v[k];

			if (m->comps.v[c].recv == recv && !strcmp(m->comps.v[c].traffic, of))
				group_add(v, &g, c);
		}
		if (g.comps.n)
			add_group_result(v, p, &g, pt, false, true);
	}
	if (!p->seen.len) {
		p->state = pt->none ? EXPECT_MET : EXPECT_PENDING;
		text_add(&p->seen, "no completion of this traffic");
	}
}

static bool among(const struct ends *ends, const json_t *x, size_t qp)
{
	if (!json_object_get(x, "at"))
		return true;
	for (size_t i = 0; i < ends->e.n; i++)
		if (ends->e.v[i].qp == qp)
			return true;
	return false;
}

static bool has_posted(const struct model *m, size_t queue, size_t inst, const char *of)
{
	const struct m_queue *q = &m->queues.v[queue];

	for (size_t i = q->tried.n; i-- > 0;) {
		const struct m_post *p = &m->posts.v[q->tried.v[i]];

		if (p->inst == inst && !strcmp(p->as, of))
			return true;
	}
	return false;
}

static void wc_of_post(struct eval *v, const json_t *x, const char *of, const struct wc_pattern *pt, const struct ends *ends,
		       struct part *p)
{
	const struct model *m = v->m;
	size_t inst = expect_post_inst(m, of);
	unsigned groups = 0, n = 0;

	for (size_t q = 0; inst != M_NONE && q < m->queues.n; q++)
		groups += has_posted(m, q, inst, of);
	for (size_t q = 0; inst != M_NONE && q < m->queues.n; q++) {
		struct wc_group g = { .qp = m->queues.v[q].qp, .recv = !m->queues.v[q].send, .at = m->queues.v[q].name };

		if (!has_posted(m, q, inst, of) || (g.qp != M_NONE && !among(ends, x, g.qp)))
			continue;
		group_of_posts(v, &g, of, inst, q);
		if (g.qp == M_NONE && g.comps.n)
			g.qp = comp(v, &g, 0)->qp;
		if (g.qp != M_NONE)
			g.at = m->qps.v[g.qp].name;
		/* Of what was refused nothing comes, unless the profile has it that the device refuses it. */
		if (add_group_result(v, p, &g, pt, true, groups > 1) != EXPECT_MET || (pt->open && !pt->all)) {
			if (!g.accepted && !pt->none) {
				p->state = EXPECT_BROKEN;
				p->at = g.at;
			}
		}
		n++;
	}
	if (!n) {
		p->state = EXPECT_PENDING;
		text_add(&p->seen, "`%s` was never posted", of);
	}
}

static bool is_receive_post(const struct model *m, const char *as)
{
	size_t inst = expect_post_inst(m, as);

	for (size_t i = 0; i < m->posts.n; i++)
		if (m->posts.v[i].inst == inst && !strcmp(m->posts.v[i].as, as) && m->posts.v[i].queue != M_NONE)
			return !m->queues.v[m->posts.v[i].queue].send;
	return false;
}

static void eval_wc(struct eval *v, const json_t *x, bool recv, struct part *p)
{
	const char *of = json_str(x, "of");
	struct wc_pattern pt = { .none = false };
	struct ends ends;

	if (wc_pattern_read(v, json_object_get(x, recv ? "recv_wc" : "wc"), &pt) || expect_ends(v, x, &ends)) {
		v->m->err = -ENOMEM;
		free(pt.e.v);
		return;
	}
	pt.says = json_object_get(x, "says");
	wc_pattern_text(&pt, &p->expected);
	says_text(v, pt.says, &p->expected);
	if (of && is_traffic(v->m, of)) {
		wc_of_traffic(v, of, recv, &pt, p);
	} else if (of && recv == is_receive_post(v->m, of)) {
		wc_of_post(v, x, of, &pt, &ends, p);
	} else {
		for (size_t i = 0; i < ends.e.n; i++) {
			struct m_end end = ends.e.v[i];
			struct wc_group g = { .qp = end.qp, .recv = recv };

			/* What a send post brings about at the other end is that end's receives. */
			if (of && recv && end.qp != M_NONE)
				end.qp = g.qp = m_qp_find(v->m, v->m->qps.v[end.qp].peer, strlen(v->m->qps.v[end.qp].peer));
			if (end.qp == M_NONE)
				continue;
			g.at = v->m->qps.v[end.qp].name;
			group_of_end(v, &g, &end, &pt);
			add_group_result(v, p, &g, &pt, false, ends.e.n > 1);
		}
		if (!p->seen.len) {
			p->state = EXPECT_BROKEN;
			text_add(&p->seen, "no such end");
		}
	}
	free(ends.e.v);
	free(pt.e.v);
}

void expect_wc(struct eval *v, const json_t *x, struct part *p)
{
	eval_wc(v, x, false, p);
}

void expect_recv_wc(struct eval *v, const json_t *x, struct part *p)
{
	eval_wc(v, x, true, p);
}
