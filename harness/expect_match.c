/* SPDX-License-Identifier: MIT */
#include "expect_internal.h"

#include <errno.h>

#include "json.h"
#include "units.h"

/* A pattern with a range is settled when nothing is left to come, or nothing came for this long. */
#define QUIET_NS (100 * NSEC_PER_MSEC)

struct fit {
	enum expect_state state;
	size_t used;       /* completions that the pattern took */
	uint32_t *elem_of; /* of each, NULL when it does not fit */
};

static const struct m_comp *comp(const struct eval *v, const struct wc_group *g, size_t i)
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

int wc_pattern_read(const struct eval *v, const json_t *value, struct wc_pattern *ret)
{
	struct wc_pattern pt = { .none = json_bool(value, "none", false), .all = json_object_get(value, "all") != NULL };
	const json_t *seq = json_object_get(value, "seq"), *s;
	struct wc_elem *e;
	size_t i;

	if (pt.all) {
		e = VEC_PUSH(&pt.e);
		if (!e)
			return -ENOMEM;
		*e = (struct wc_elem){ .any = json_object_get(value, "all"), .min = 1, .max = UINT32_MAX, .rest = true };
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

void wc_pattern_text(const struct wc_pattern *pt, struct text *t)
{
	if (pt->none)
		text_add(t, "none");
	for (size_t i = 0; i < pt->e.n; i++) {
		const struct wc_elem *e = &pt->e.v[i];
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
}

void wc_group_text(const struct eval *v, const struct wc_group *g, struct text *t)
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

static struct m_match match_of(const struct eval *v, const struct wc_group *g, size_t i)
{
	const struct m_comp *c = i < g->comps.n ? comp(v, g, i) : NULL;

	return (struct m_match){ .qp = g->qp,
				 .life = c ? c->qp_life : 0,
				 .recv = g->recv,
				 .post = c ? m_comp_post(v->m, c) : g->post,
				 .rec = c ? c->rec : v->m->n_recs };
}

/* The entry by which this completion may stand for one of the element's; NULL when it is itself one of them or does not fit. */
static bool fits(const struct eval *v, const struct wc_group *g, const struct wc_elem *e, size_t i, bool deviate,
		 const json_t **ret_entry, bool *ret_seen)
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

static bool fits_seen(const struct eval *v, const struct wc_group *g, const struct wc_elem *e, size_t i, bool deviate)
{
	const json_t *entry;
	bool seen = true;

	return fits(v, g, e, i, deviate, &entry, &seen) && seen;
}

struct grid {
	size_t n, elems;
	uint32_t *from; /* (elems + 1) x (n + 1): where this element began; UINT32_MAX: not reachable */
	bool viable;    /* more completions could complete the pattern */
};

static uint32_t *cell(const struct grid *gr, size_t e, size_t i)
{
	return &gr->from[e * (gr->n + 1) + i];
}

static void grid_fill_elem(const struct eval *v, const struct wc_group *g, const struct wc_pattern *pt, struct grid *gr, size_t k,
			   bool deviate)
{
	const struct wc_elem *e = &pt->e.v[k];
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

static bool wants_all(const struct eval *v, const struct wc_pattern *pt, bool of)
{
	return v->for_ns || pt->all || (pt->e.n && pt->e.v[pt->e.n - 1].rest) || (of && pt->open);
}

static enum expect_state open_state(const struct eval *v, const struct wc_group *g, const struct wc_pattern *pt, bool all_there)
{
	if (!pt->open || (!g->awaited && !g->discarded) || (!pt->all && all_there && v->for_ns))
		return EXPECT_MET;
	if (!pt->all && v->now >= (g->last_t > v->begin_t ? g->last_t : v->begin_t) + QUIET_NS)
		return EXPECT_MET;
	return EXPECT_PENDING;
}

static struct fit fit_pattern(const struct eval *v, const struct wc_group *g, const struct wc_pattern *pt, bool of, bool deviate)
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
	} else if (gr.viable && !(of && g->accepted && !g->left && !g->discarded)) {
		fit.state = EXPECT_PENDING;
	}
	free(gr.from);
	return fit;
}

static void mark(struct eval *v, const struct wc_group *g, const struct wc_pattern *pt, const struct fit *fit)
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

static void note_deviations(struct eval *v, const struct wc_group *g, const struct wc_pattern *pt, const struct fit *fit)
{
	for (size_t i = 0; fit->elem_of && i < fit->used; i++) {
		const json_t *entry = NULL;
		bool seen = false;

		if (fits(v, g, &pt->e.v[fit->elem_of[i]], i, true, &entry, &seen) && entry)
			expect_deviates(v, entry, seen);
	}
}

/* Nothing fits: would an entry that this kernel has not shown explain it? */
static void note_likely(struct eval *v, const struct wc_group *g, const struct wc_pattern *pt)
{
	for (size_t i = 0; i < g->comps.n; i++)
		for (size_t k = 0; k < pt->e.n; k++) {
			const json_t *entry = NULL;
			bool seen = false;

			if (fits(v, g, &pt->e.v[k], i, true, &entry, &seen) && entry && !seen)
				expect_deviates(v, entry, false);
		}
}

static bool is_refused(const struct wc_group *g)
{
	return g->post && g->post->err && !g->accepted;
}

/* The profile may say that a completion which must come does not; believed only when the whole deadline has passed. */
static bool never_comes(struct eval *v, const struct wc_group *g, const struct wc_pattern *pt)
{
	struct m_match what = match_of(v, g, 0);
	const json_t *s, *entry;
	bool seen;
	size_t k;

	if (g->comps.n || !pt->e.n)
		return false;
	/* Of a request that was refused nothing can come, however long one waits. */
	if (!is_refused(g) && (!v->deadline_ns || v->now < v->begin_t + v->deadline_ns))
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

enum expect_state wc_group_eval(struct eval *v, struct wc_group *g, const struct wc_pattern *pt, bool of)
{
	struct fit fit = { .state = EXPECT_PENDING }, with;

	if (pt->none) {
		fit.state = g->comps.n ? EXPECT_BROKEN : EXPECT_MET;
	} else if (!pt->unknown) {
		fit = fit_pattern(v, g, pt, of, false);
		/* Requests that were not signaled tell of their success by a later completion. */
		if (pt->all && !g->comps.n && g->retired && !g->awaited && !g->discarded &&
		    json_array_has(pt->e.v[0].any, "SUCCESS"))
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
		if ((fit.state == EXPECT_PENDING || (fit.state == EXPECT_BROKEN && is_refused(g))) && never_comes(v, g, pt))
			fit.state = EXPECT_MET;
	}
	note_deviations(v, g, pt, &fit);
	if (fit.state == EXPECT_BROKEN)
		note_likely(v, g, pt);
	if (fit.state == EXPECT_MET && fit.used)
		expect_held(v, comp(v, g, fit.used - 1)->t_last);
	if (v->take)
		mark(v, g, pt, &fit);
	g->used = fit.used;
	free(fit.elem_of);
	return fit.state;
}
