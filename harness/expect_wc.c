/* SPDX-License-Identifier: MIT */
#include "expect_internal.h"

#include <errno.h>

#include "json.h"
#include "units.h"

/* A pattern with a range is settled when nothing is left to come, or nothing came for this long. */
#define QUIET_NS (100 * NSEC_PER_MSEC)

struct elem {
	const json_t *any;
	uint32_t min, max;     /* UINT32_MAX: no bound */
	bool rest;
};

struct pattern {
	VEC(struct elem) e;
	bool all, none, open;  /* open: some element has a range */
	bool unknown;          /* a ref that no device has answered yet */
};

/* The completions that an expectation looks at: of one post, or of one queue. */
struct group {
	size_t qp;
	bool recv;
	const char *at;
	VEC(size_t) comps;
	uint32_t units;
	uint32_t accepted, awaited, discarded, retired;
	uint64_t last_t;
};

struct fit {
	enum expect_state state;
	size_t used;           /* completions that the pattern took */
	uint32_t *elem_of;     /* of each, NULL when it does not fit */
};

static const struct m_comp *comp(const struct eval *v, const struct group *g, size_t i)
{
	return &v->m->comps.v[g->comps.v[i]];
}

static bool bound(const struct eval *v, const json_t *value, uint32_t def, uint32_t *ret)
{
	int64_t n;

	*ret = def;
	if (!value)
		return true;
	if (m_number(v->m, value, &n) || n < 0)
		return false;
	*ret = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
	return true;
}

static int pattern_read(const struct eval *v, const json_t *value, struct pattern *ret)
{
	struct pattern pt = { .none = json_bool(value, "none", false), .all = json_object_get(value, "all") != NULL };
	const json_t *seq = json_object_get(value, "seq"), *s;
	struct elem *e;
	size_t i;

	if (pt.all) {
		e = VEC_PUSH(&pt.e);
		if (!e)
			return -ENOMEM;
		*e = (struct elem){ .any = json_object_get(value, "all"), .min = 1, .max = UINT32_MAX, .rest = true };
		pt.open = true;
	}
	json_array_foreach(seq, i, s) {
		e = VEC_PUSH(&pt.e);
		if (!e) {
			free(pt.e.v);
			return -ENOMEM;
		}
		e->any = json_object_get(s, "any");
		e->rest = json_bool(s, "rest", false);
		pt.unknown |= !bound(v, json_object_get(s, "min"), e->rest ? 0 : 1, &e->min);
		pt.unknown |= !bound(v, json_object_get(s, "max"), UINT32_MAX, &e->max);
		if (e->rest)
			e->max = UINT32_MAX;
		pt.open |= e->min != e->max;
	}
	*ret = pt;
	return 0;
}

static void pattern_text(const struct eval *v, const struct pattern *pt, struct text *t)
{
	if (pt->none)
		text_add(t, "none");
	for (size_t i = 0; i < pt->e.n; i++) {
		const struct elem *e = &pt->e.v[i];
		const json_t *s;
		size_t k;

		text_add(t, "%s", i ? ", " : pt->all ? "every one " : "[");
		json_array_foreach(e->any, k, s)
			text_add(t, "%s%s", k ? " | " : "", json_string_value(s) ? json_string_value(s) : "?");
		if (pt->all)
			continue;
		if (e->rest)
			text_add(t, " x rest");
		else if (e->min != e->max && e->max == UINT32_MAX)
			text_add(t, " x %u..", e->min);
		else if (e->min != e->max)
			text_add(t, " x %u..%u", e->min, e->max);
		else if (e->min != 1)
			text_add(t, " x %u", e->min);
	}
	if (pt->e.n && !pt->all)
		text_add(t, "]");
	(void)v;
}

static void group_text(const struct eval *v, const struct group *g, struct text *t)
{
	const char *status = NULL;
	uint32_t n = 0;
	bool first = true;

	for (size_t i = 0; i <= g->comps.n; i++) {
		const struct m_comp *c = i < g->comps.n ? comp(v, g, i) : NULL;

		if (c && status && !strcmp(c->status, status)) {
			n += c->count;
			continue;
		}
		if (status) {
			text_add(t, "%s%s", first ? "" : ", ", status);
			if (n > 1)
				text_add(t, " x %u", n);
			first = false;
		}
		if (c) {
			status = c->status;
			n = c->count;
		}
	}
	if (first)
		text_add(t, "no completion");
	if (g->awaited)
		text_add(t, " (%u still in flight)", g->awaited);
	else if (g->discarded)
		text_add(t, " (%u discarded)", g->discarded);
	else if (!g->accepted && first)
		text_add(t, ", and no request was accepted");
}

static struct m_match match_of(const struct eval *v, const struct group *g, size_t i)
{
	const struct m_comp *c = i < g->comps.n ? comp(v, g, i) : NULL;

	return (struct m_match){ .qp = g->qp, .life = c ? c->qp_life : 0, .recv = g->recv, .post = c ? m_comp_post(v->m, c) : NULL,
		                 .rec = c ? c->rec : v->m->n_recs };
}

/* The entry by which this completion may stand for one of the element's; NULL when it is itself one of them or does not fit. */
static bool fits(const struct eval *v, const struct group *g, const struct elem *e, size_t i, bool deviate, const json_t **ret_entry,
                 bool *ret_seen)
{
	const char *status = comp(v, g, i)->status;
	struct m_match what;
	const json_t *s;
	size_t k;

	*ret_entry = NULL;
	if (json_array_has(e->any, status))
		return true;
	if (!deviate)
		return false;
	what = match_of(v, g, i);
	json_array_foreach(e->any, k, s) {
		what.spec = json_string_value(s);
		*ret_entry = what.spec ? m_profile_excuse(v->m, &what, status, ret_seen) : NULL;
		if (*ret_entry)
			return true;
	}
	return false;
}

static bool fits_seen(const struct eval *v, const struct group *g, const struct elem *e, size_t i, bool deviate)
{
	const json_t *entry;
	bool seen = true;

	return fits(v, g, e, i, deviate, &entry, &seen) && seen;
}

struct grid {
	size_t n, elems;
	uint32_t *from;        /* (elems + 1) x (n + 1): where this element began; UINT32_MAX: not reachable */
	bool viable;           /* more completions could complete the pattern */
};

static uint32_t *cell(const struct grid *gr, size_t e, size_t i)
{
	return &gr->from[e * (gr->n + 1) + i];
}

static void grid_fill_elem(const struct eval *v, const struct group *g, const struct pattern *pt, struct grid *gr, size_t k, bool deviate)
{
	const struct elem *e = &pt->e.v[k];
	size_t to, filled = 0;
	uint32_t units;

	for (size_t i = 0; i <= gr->n; i++) {
		if (*cell(gr, k, i) == UINT32_MAX)
			continue;
		/* A run that an earlier start has filled to its end is not walked again. */
		if (e->max == UINT32_MAX && e->min <= 1 && filled > i && filled == gr->n)
			break;
		units = 0;
		if (e->min == 0 && *cell(gr, k + 1, i) == UINT32_MAX)
			*cell(gr, k + 1, i) = (uint32_t)i;
		for (to = i; to < gr->n && units < e->max && fits_seen(v, g, e, to, deviate);) {
			units += comp(v, g, to)->count;
			to++;
			if (units >= e->min && units <= e->max && *cell(gr, k + 1, to) == UINT32_MAX)
				*cell(gr, k + 1, to) = (uint32_t)i;
		}
		if (to == gr->n && units < e->max)
			gr->viable = true;
		filled = to > filled ? to : filled;
	}
}

static uint32_t *trace(const struct grid *gr, size_t end)
{
	uint32_t *of = malloc((end + 1) * sizeof(*of));
	size_t i = end;

	for (size_t e = gr->elems; of && e-- > 0;) {
		size_t start = *cell(gr, e + 1, i);

		while (i > start)
			of[--i] = (uint32_t)e;
	}
	return of;
}

static bool wants_all(const struct eval *v, const struct pattern *pt, bool of)
{
	return v->for_ns || pt->all || (pt->e.n && pt->e.v[pt->e.n - 1].rest) || (of && pt->open);
}

static enum expect_state open_state(const struct eval *v, const struct group *g, const struct pattern *pt, bool all_there)
{
	if (!pt->open || (!g->awaited && !g->discarded) || (!pt->all && all_there && v->for_ns))
		return EXPECT_MET;
	if (!pt->all && v->now >= (g->last_t > v->begin_t ? g->last_t : v->begin_t) + QUIET_NS)
		return EXPECT_MET;
	return EXPECT_PENDING;
}

static struct fit fit_pattern(const struct eval *v, const struct group *g, const struct pattern *pt, bool of, bool deviate)
{
	struct grid gr = { .n = g->comps.n, .elems = pt->e.n };
	struct fit fit = { .state = EXPECT_BROKEN };
	size_t cells = (gr.elems + 1) * (gr.n + 1), end = gr.n;
	bool all = wants_all(v, pt, of);

	gr.from = malloc(cells * sizeof(*gr.from));
	if (!gr.from) {
		v->m->err = -ENOMEM;
		return fit;
	}
	memset(gr.from, 0xff, cells * sizeof(*gr.from));
	*cell(&gr, 0, 0) = 0;
	for (size_t k = 0; k < gr.elems; k++)
		grid_fill_elem(v, g, pt, &gr, k, deviate);
	while (!all && end && *cell(&gr, gr.elems, end) == UINT32_MAX)
		end--;
	if (*cell(&gr, gr.elems, end) != UINT32_MAX) {
		fit.state = open_state(v, g, pt, end == gr.n);
		fit.used = end;
		fit.elem_of = trace(&gr, end);
		if (!fit.elem_of)
			v->m->err = -ENOMEM;
	} else if (gr.viable && !(of && g->accepted && !g->awaited && !g->discarded)) {
		fit.state = EXPECT_PENDING;
	}
	free(gr.from);
	return fit;
}

static void mark(struct eval *v, const struct group *g, const struct pattern *pt, const struct fit *fit)
{
	size_t n = fit->state == EXPECT_MET ? fit->used : g->comps.n;

	for (size_t i = 0; i < n; i++) {
		struct m_comp *c = &v->m->comps.v[g->comps.v[i]];
		struct m_match what = match_of(v, g, i);
		const json_t *entry = NULL;
		bool seen = false;

		if (!c->taken)
			c->taken = (v->inst == M_NONE ? 0 : v->inst) + 1;
		if (!fit->elem_of || fit->state != EXPECT_MET)
			continue;
		fits(v, g, &pt->e.v[fit->elem_of[i]], i, true, &entry, &seen);
		if (entry && seen) {
			c->deviation = entry;
			m_profile_used(v->m, entry, v->step);
		} else {
			what.spec = c->status;
			m_profile_specified(v->m, &what, v->step);
		}
	}
}

static void note_deviations(struct eval *v, const struct group *g, const struct pattern *pt, const struct fit *fit)
{
	for (size_t i = 0; fit->elem_of && i < fit->used; i++) {
		const json_t *entry = NULL;
		bool seen = false;

		if (fits(v, g, &pt->e.v[fit->elem_of[i]], i, true, &entry, &seen) && entry)
			expect_deviates(v, entry, seen);
	}
}

/* Nothing fits: would an entry that this kernel has not shown explain it? */
static void note_likely(struct eval *v, const struct group *g, const struct pattern *pt)
{
	for (size_t i = 0; i < g->comps.n; i++)
		for (size_t k = 0; k < pt->e.n; k++) {
			const json_t *entry = NULL;
			bool seen = false;

			if (fits(v, g, &pt->e.v[k], i, true, &entry, &seen) && entry && !seen)
				expect_deviates(v, entry, false);
		}
}

/* The profile may say that a completion which must come does not; believed only when the whole deadline has passed. */
static bool never_comes(struct eval *v, const struct group *g, const struct pattern *pt)
{
	struct m_match what = match_of(v, g, 0);
	const json_t *s, *entry;
	bool seen;
	size_t k;

	if (g->comps.n || !pt->e.n || !v->deadline_ns || v->now < v->begin_t + v->deadline_ns)
		return false;
	json_array_foreach(pt->e.v[0].any, k, s) {
		what.spec = json_string_value(s);
		entry = what.spec ? m_profile_excuse(v->m, &what, "none", &seen) : NULL;
		if (!entry)
			continue;
		expect_deviates(v, entry, seen);
		if (seen && v->take)
			m_profile_used(v->m, entry, v->step);
		if (seen)
			return true;
	}
	return false;
}

static enum expect_state eval_group(struct eval *v, const struct group *g, const struct pattern *pt, bool of)
{
	struct fit fit = { .state = EXPECT_PENDING }, with;

	if (pt->none) {
		fit.state = g->comps.n ? EXPECT_BROKEN : EXPECT_MET;
	} else if (!pt->unknown) {
		fit = fit_pattern(v, g, pt, of, false);
		/* Requests that were not signaled tell of their success by a later completion. */
		if (pt->all && !g->comps.n && g->retired && !g->awaited && !g->discarded && json_array_has(pt->e.v[0].any, "SUCCESS"))
			fit.state = EXPECT_MET;
		if (fit.state != EXPECT_MET && v->m->profile) {
			with = fit_pattern(v, g, pt, of, true);
			if (with.state == EXPECT_MET || fit.state == EXPECT_BROKEN) {
				free(fit.elem_of);
				fit = with;
			} else {
				free(with.elem_of);
			}
		}
		if (fit.state == EXPECT_PENDING && never_comes(v, g, pt))
			fit.state = EXPECT_MET;
	}
	note_deviations(v, g, pt, &fit);
	if (fit.state == EXPECT_BROKEN)
		note_likely(v, g, pt);
	if (fit.state == EXPECT_MET && fit.used)
		expect_held(v, comp(v, g, fit.used - 1)->t_last);
	if (v->take)
		mark(v, g, pt, &fit);
	free(fit.elem_of);
	return fit.state;
}

static void group_add(struct eval *v, struct group *g, size_t index)
{
	size_t *c = VEC_PUSH(&g->comps);

	if (!c) {
		v->m->err = -ENOMEM;
		return;
	}
	*c = index;
	g->units += v->m->comps.v[index].count;
	if (v->m->comps.v[index].t_last > g->last_t)
		g->last_t = v->m->comps.v[index].t_last;
}

static void group_of_posts(struct eval *v, struct group *g, const char *of, size_t inst, size_t queue)
{
	const struct model *m = v->m;

	for (size_t i = 0; i < m->posts.n; i++) {
		const struct m_post *p = &m->posts.v[i];
		struct m_account a;

		if (p->inst != inst || p->queue != queue || strcmp(p->as, of) || !p->accepted)
			continue;
		a = m_account_post(m, p);
		g->accepted += a.accepted;
		g->awaited += a.awaited;
		g->discarded += a.discarded;
		g->retired += a.retired;
		for (size_t k = 0; k < m->comps.n; k++) {
			const struct m_comp *c = &m->comps.v[k];

			if (c->queue == queue && c->life == p->life && p->first <= c->seq && c->seq <= p->last && !c->twice)
				group_add(v, g, k);
		}
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

	if (peer == M_NONE)
		return 0;
	for (size_t i = 0; i < m->posts.n; i++) {
		const struct m_post *p = &m->posts.v[i];
		struct m_account a;

		if (p->queue != m->qps.v[peer].send || p->life != m->qps.v[peer].life || *p->traffic || !p->accepted || !takes_receive(p->op))
			continue;
		a = m_account_post(m, p);
		in_flight += a.awaited;
		delivered += a.retired;
		for (size_t k = 0; k < m->comps.n; k++) {
			const struct m_comp *c = &m->comps.v[k];

			if (c->queue == p->queue && c->life == p->life && p->first <= c->seq && c->seq <= p->last && c->success && !c->twice)
				delivered++;
		}
	}
	return in_flight + (delivered > have ? delivered - have : 0);
}

static bool speaks_of_flush(const struct pattern *pt)
{
	for (size_t i = 0; i < pt->e.n; i++)
		if (json_array_has(pt->e.v[i].any, "WR_FLUSH_ERR"))
			return true;
	return false;
}

static void group_of_end(struct eval *v, struct group *g, const struct m_end *end, const struct pattern *pt)
{
	const struct model *m = v->m;
	const struct m_qp *q = &m->qps.v[end->qp];
	unsigned life = end->life ? end->life : q->life;
	size_t queue = g->recv ? q->recv : q->send;
	struct m_account a = m_account_life(m, queue, m_life_of(m, queue, life), g->recv);
	uint32_t have = 0;

	for (size_t k = 0; k < m->comps.n; k++) {
		const struct m_comp *c = &m->comps.v[k];

		if (c->qp != end->qp || c->recv != g->recv || c->qp_life != life || c->twice || c->marker || (*c->traffic && c->success))
			continue;
		have += c->success ? c->count : 0;
		if (!c->taken || c->taken == v->inst + 1)
			group_add(v, g, k);
	}
	g->accepted = a.accepted;
	if (!g->recv || (speaks_of_flush(pt) && q->srq == M_NONE))
		g->awaited = a.awaited;
	else if (g->recv && q->srq == M_NONE)
		g->awaited = recv_awaited(v, q, have);
	g->retired = g->recv ? 0 : a.retired;
}

static void add_group_result(struct eval *v, struct part *p, struct group *g, const struct pattern *pt, bool of, bool several)
{
	enum expect_state state = eval_group(v, g, pt, of);

	if (p->seen.len)
		text_add(&p->seen, "; ");
	if (several)
		text_add(&p->seen, "%s ", g->at);
	group_text(v, g, &p->seen);
	if (state != EXPECT_MET && !p->at)
		p->at = g->at;
	p->state = expect_worse(p->state, state);
	free(g->comps.v);
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

static void wc_of_traffic(struct eval *v, const char *of, bool recv, const struct pattern *pt, struct part *p)
{
	const struct model *m = v->m;

	for (size_t q = 0; q < m->qps.n; q++) {
		struct group g = { .qp = q, .recv = recv, .at = m->qps.v[q].name };

		for (size_t k = 0; k < m->comps.n; k++)
			if (m->comps.v[k].qp == q && m->comps.v[k].recv == recv && !strcmp(m->comps.v[k].traffic, of))
				group_add(v, &g, k);
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

static void wc_of_post(struct eval *v, const json_t *x, const char *of, const struct pattern *pt, const struct ends *ends, struct part *p)
{
	const struct model *m = v->m;
	size_t inst = expect_post_inst(m, of);
	unsigned groups = 0, n = 0;

	for (size_t q = 0; q < m->queues.n; q++)
		for (size_t i = 0; i < m->posts.n; i++)
			if (m->posts.v[i].inst == inst && m->posts.v[i].queue == q && !strcmp(m->posts.v[i].as, of)) {
				groups++;
				break;
			}
	for (size_t q = 0; inst != M_NONE && q < m->queues.n; q++) {
		struct group g = { .qp = m->queues.v[q].qp, .recv = !m->queues.v[q].send, .at = m->queues.v[q].name };
		bool posted = false;

		for (size_t i = 0; i < m->posts.n; i++)
			posted |= m->posts.v[i].inst == inst && m->posts.v[i].queue == q && !strcmp(m->posts.v[i].as, of);
		if (!posted || (g.qp != M_NONE && !among(ends, x, g.qp)))
			continue;
		group_of_posts(v, &g, of, inst, q);
		if (g.qp == M_NONE && g.comps.n)
			g.qp = comp(v, &g, 0)->qp;
		if (g.qp != M_NONE)
			g.at = m->qps.v[g.qp].name;
		if (!g.accepted && !pt->none) {
			p->state = EXPECT_BROKEN;
			p->at = g.at;
		}
		add_group_result(v, p, &g, pt, true, groups > 1);
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
	struct pattern pt = { .none = false };
	struct ends ends;

	if (pattern_read(v, json_object_get(x, recv ? "recv_wc" : "wc"), &pt) || expect_ends(v, x, &ends)) {
		v->m->err = -ENOMEM;
		free(pt.e.v);
		return;
	}
	pattern_text(v, &pt, &p->expected);
	if (of && is_traffic(v->m, of)) {
		wc_of_traffic(v, of, recv, &pt, p);
	} else if (of && recv == is_receive_post(v->m, of)) {
		wc_of_post(v, x, of, &pt, &ends, p);
	} else {
		for (size_t i = 0; i < ends.e.n; i++) {
			struct m_end end = ends.e.v[i];
			struct group g = { .qp = end.qp, .recv = recv };

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
