/* SPDX-License-Identifier: MIT */
#include "phases.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "json.h"

/* A rate counts as that of before from so many hundredths of it on. */
#define FULL_PERCENT 90

const char *const phase_names[NUM_PHASES] = {
	[PHASE_SYMPTOM] = "symptom", [PHASE_ERROR] = "error", [PHASE_DRAINED] = "drained",   [PHASE_TOLD] = "told",
	[PHASE_RTS] = "rts",         [PHASE_GOOD] = "good",   [PHASE_VERIFIED] = "verified", [PHASE_FULL] = "full",
};

/* What state the recovery found a QP in. */
struct down {
	unsigned life; /* in ERR or SQE, in this life; 0: it was in neither */
	bool seen;     /* since it began */
};

/* What a pass over the record of one recovery needs. */
struct look {
	const struct model *m;
	struct phases *p;
	const char **pair; /* those that it is about */
	size_t n_pairs;
	bool *is_of;                        /* by QP */
	struct down *down;                  /* by QP */
	size_t from_rec, begin_rec, to_rec; /* records of it; begin_rec: where the recovery begins */
	size_t rts_rec;
};

static struct phase_time on_clock_of(const struct model *m, const char *agent, uint64_t t)
{
	char of[128];

	snprintf(of, sizeof(of), "agent/%s", agent);
	for (size_t i = 0; i < m->clocks.n; i++)
		if (!strcmp(m->clocks.v[i].of, of))
			return (struct phase_time){ true, t - (uint64_t)m->clocks.v[i].offset_ns, m->clocks.v[i].bound_ns };
	return (struct phase_time){ true, t, 0 };
}

static void sooner(struct phase_time *have, struct phase_time t)
{
	if (!have->reached || t.t < have->t)
		*have = t;
}

static void later(struct phase_time *have, struct phase_time t)
{
	if (!have->reached || t.t > have->t)
		*have = t;
}

static bool is_about(const struct look *l, const char *pair)
{
	for (size_t i = 0; i < l->n_pairs; i++)
		if (l->pair[i] && !strcmp(l->pair[i], pair))
			return true;
	return false;
}

/* The first of a QP's completions whose record is not before rec. */
static size_t first_comp(const struct model *m, const struct m_qp *q, size_t rec)
{
	size_t low = 0, high = q->comps.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m->comps.v[q->comps.v[mid]].rec < rec)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct phase_time comp_time(const struct look *l, size_t qp, const struct m_comp *c)
{
	return on_clock_of(l->m, l->m->qps.v[qp].agent, c->t);
}

/* The last attempt's, each once all pairs have it. */
static bool steps_of_recovery(struct look *l)
{
	const struct model *m = l->m;
	struct phases *p = l->p;

	for (size_t i = 0; i < m->recovers.n; i++) {
		const struct m_recover *r = &m->recovers.v[i];
		struct phase_time t = { true, r->t, 0 };

		if (r->inst != p->inst)
			continue;
		if (!strcmp(r->phase, "begin") && r->attempt > p->attempts) {
			p->attempts = r->attempt;
			p->path = r->path;
			p->pair = p->pair ? p->pair : r->pair;
			if (r->attempt == 1) {
				p->begin = t;
				l->begin_rec = r->rec;
			}
			memset(p->at, 0, sizeof(p->at));
			l->rts_rec = M_NONE;
		}
		p->pairs += !strcmp(r->phase, "begin") && r->attempt == 1;
		for (int k = PHASE_DRAINED; k <= PHASE_VERIFIED; k++)
			if (k != PHASE_GOOD && !strcmp(r->phase, phase_names[k]))
				later(&p->at[k], t);
		if (!strcmp(r->phase, "rts"))
			l->rts_rec = r->rec;
	}
	return p->attempts > 0;
}

static bool pairs_of_recovery(struct look *l)
{
	const struct model *m = l->m;

	l->pair = calloc(l->p->pairs ? l->p->pairs : 1, sizeof(*l->pair)); /* NOLINT(bugprone-sizeof-expression): pointers */
	l->is_of = calloc(m->qps.n ? m->qps.n : 1, sizeof(*l->is_of));
	if (!l->pair || !l->is_of)
		return false;
	for (size_t i = 0; i < m->recovers.n && l->n_pairs < l->p->pairs; i++)
		if (m->recovers.v[i].inst == l->p->inst && !strcmp(m->recovers.v[i].phase, "begin"))
			l->pair[l->n_pairs++] = m->recovers.v[i].pair;
	for (size_t i = 0; i < m->qps.n; i++)
		l->is_of[i] = is_about(l, m->qps.v[i].pair);
	return true;
}

/* Its story begins where that of the recovery before it ended. */
static void bounds(struct look *l)
{
	const struct model *m = l->m;
	const struct m_inst *in = &m->insts.v[l->p->inst];

	l->from_rec = 0;
	l->to_rec = in->end_rec == M_NONE ? m->n_recs : in->end_rec;
	for (size_t i = m->recovers.n; i-- > 0;) {
		const struct m_recover *r = &m->recovers.v[i];

		if (r->rec < l->begin_rec && r->inst != l->p->inst && is_about(l, r->pair)) {
			l->from_rec = r->rec;
			return;
		}
	}
}

static bool is_down(const char *state)
{
	return !strcmp(state, "ERR") || !strcmp(state, "SQE");
}

static size_t first_state(const struct model *m, size_t rec)
{
	size_t low = 0, high = m->states.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m->states.v[mid].rec < rec)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Which QPs the recovery found broken, and did not break: so the last that was seen before it says, or the first after it began,
 * which by path cm follows a disconnect of its own. */
static bool find_down(struct look *l)
{
	bool cm = !strcmp(l->p->path, "cm");

	l->down = calloc(l->m->qps.n ? l->m->qps.n : 1, sizeof(*l->down));
	if (!l->down)
		return false;
	for (size_t i = first_state(l->m, l->from_rec); i < l->m->states.n && l->m->states.v[i].rec <= l->to_rec; i++) {
		const struct m_state *s = &l->m->states.v[i];
		struct down *d = &l->down[s->qp];
		bool before = s->rec < l->begin_rec;

		if (!before && (d->seen || cm))
			continue;
		d->seen = !before;
		if (is_down(before || !*s->asked ? s->new_ : s->old))
			d->life = s->life;
		else if (before)
			d->life = 0;
	}
	return true;
}

/* What is flushed because the recovery takes its QP down is no sign of what it is to recover from. A cause is one whenever it
 * comes. */
static bool is_own_flush(const struct look *l, const struct m_comp *c, size_t qp)
{
	const struct down *d = &l->down[qp];

	return c->rec > l->begin_rec && !strcmp(c->status, "WR_FLUSH_ERR") && (!d->life || c->qp_life != d->life);
}

static const struct m_comp *find_errors(struct look *l, struct phase_time *error)
{
	const struct m_comp *first = NULL;

	for (size_t q = 0; q < l->m->qps.n; q++) {
		const struct m_qp *qp = &l->m->qps.v[q];

		for (size_t i = l->is_of[q] ? first_comp(l->m, qp, l->from_rec) : qp->comps.n; i < qp->comps.n; i++) {
			const struct m_comp *c = &l->m->comps.v[qp->comps.v[i]];
			struct phase_time t = comp_time(l, q, c);

			if (c->rec > l->to_rec)
				break;
			if (c->success || (error->reached && t.t >= error->t) || is_own_flush(l, c, q))
				continue;
			*error = t;
			first = c;
		}
	}
	return first;
}

static void find_good(struct look *l)
{
	for (size_t q = 0; l->rts_rec != M_NONE && q < l->m->qps.n; q++) {
		const struct m_qp *qp = &l->m->qps.v[q];

		for (size_t i = l->is_of[q] ? first_comp(l->m, qp, l->rts_rec) : qp->comps.n; i < qp->comps.n; i++) {
			const struct m_comp *c = &l->m->comps.v[qp->comps.v[i]];

			if (c->rec > l->to_rec)
				break;
			if (c->success)
				sooner(&l->p->at[PHASE_GOOD], comp_time(l, q, c));
		}
	}
}

static bool reaches_any(const struct look *l, const struct m_fault *f)
{
	for (size_t q = 0; q < l->m->qps.n; q++)
		if (l->is_of[q] && m_fault_reaches(l->m, f, q))
			return true;
	return false;
}

static const struct m_fault *find_fault(const struct look *l)
{
	for (size_t i = l->m->faults.n; i-- > 0;) {
		const struct m_fault *f = &l->m->faults.v[i];

		if (f->injected && f->rec < l->begin_rec && f->rec >= l->from_rec && reaches_any(l, f))
			return f;
	}
	return NULL;
}

/* A step of the file took an end to where its work is flushed: the first of them. */
static bool find_move(const struct look *l, struct phase_time *ret)
{
	bool found = false;

	for (size_t i = l->m->states.n; i-- > 0;) {
		const struct m_state *s = &l->m->states.v[i];

		if (s->rec < l->from_rec)
			break;
		if (s->rec < l->begin_rec && l->is_of[s->qp] && !s->err && !strcmp(s->by, "step") &&
		    (!strcmp(s->asked, "ERR") || !strcmp(s->asked, "RESET"))) {
			*ret = on_clock_of(l->m, l->m->qps.v[s->qp].agent, s->t);
			found = true;
		}
	}
	return found;
}

/* What broke it: a fault, once there was work for it to meet; a request that was wrong in itself; a move by the file. */
static void find_start(struct look *l, const struct m_comp *error)
{
	const struct m_fault *f = find_fault(l);
	const struct m_post *post = error ? m_comp_post(l->m, error) : NULL;
	struct phases *p = l->p;
	struct phase_time posted = { false, 0, 0 };

	p->fault = f ? f->as : "";
	if (post && post->queue != M_NONE)
		posted = on_clock_of(l->m, l->m->queues.v[post->queue].agent, post->t);
	if (f) {
		p->since = "fault";
		p->start = (struct phase_time){ true, f->inject_t, 0 };
		if (posted.reached && !error->recv)
			later(&p->start, posted);
	} else if (error && posted.reached && strcmp(error->status, "WR_FLUSH_ERR")) {
		p->since = "post";
		p->start = posted;
	} else if (find_move(l, &p->start)) {
		p->since = "modify";
	} else if (p->at[PHASE_ERROR].reached && p->at[PHASE_ERROR].t < p->begin.t) {
		p->since = "error";
		p->start = p->at[PHASE_ERROR];
	} else {
		p->since = "recovery";
		p->start = p->begin;
	}
}

static void find_symptom(struct look *l)
{
	size_t low = 0, high = l->m->packets.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (l->m->packets.v[mid].rec < l->from_rec)
			low = mid + 1;
		else
			high = mid;
	}
	for (size_t i = low; i < l->m->packets.n && l->m->packets.v[i].rec <= l->to_rec; i++) {
		const struct m_packet *k = &l->m->packets.v[i];
		bool odd = k->touched || k->transmission > 1 || k->icrc_bad || !strcmp(k->class_, "malformed") ||
			   !strcmp(k->class_, "nak") || !strcmp(k->class_, "rnr_nak");

		if (odd && k->t >= l->p->start.t && is_about(l, k->pair))
			sooner(&l->p->at[PHASE_SYMPTOM], (struct phase_time){ true, k->t, 0 });
	}
}

/* ---- how fast it was, and is again ---- */

struct rate {
	const json_t *ops, *size, *depth;
	double per_ns;
	uint64_t end_t;
	size_t rec;
};

static const json_t *traffic_plan(const struct model *m, size_t inst)
{
	const json_t *step = m->insts.v[inst].plan, *check = json_object_get(step, "check");

	return check ? check : step;
}

static bool is_traffic(const struct m_kept *k, const char *phase)
{
	const char *what = strcmp(k->kind, "traffic") ? NULL : json_str(k->r, "phase");

	return what && !strcmp(what, phase);
}

static bool has_same(const json_t *a, const json_t *b, const char *key)
{
	const char *x = json_str(a, key), *y = json_str(b, key);

	return x && y && !strcmp(x, y);
}

/* Where traffics begin, among the records that are kept. */
struct starts {
	size_t *at, n;
};

static int starts_find(const struct model *m, struct starts *s)
{
	*s = (struct starts){ .at = calloc(m->kept.n + 1, sizeof(*s->at)) };
	for (size_t i = 0; s->at && i < m->kept.n; i++)
		if (is_traffic(&m->kept.v[i], "start"))
			s->at[s->n++] = i;
	return s->at ? 0 : -ENOMEM;
}

/* The traffic of which record i of those that are kept is the end. */
static bool rate_of(const struct look *l, const struct starts *s, size_t i, struct rate *ret)
{
	const struct m_kept *end = &l->m->kept.v[i];
	bool is_end = is_traffic(end, "end") || is_traffic(end, "stop");
	const char *obj = is_end ? json_str(end->r, "obj") : NULL;
	int64_t done = json_int(end->r, "done", 0);
	size_t qp = obj ? m_qp_find(l->m, obj, strlen(obj)) : M_NONE;

	if (qp == M_NONE || !l->is_of[qp] || done <= 0)
		return false;
	for (size_t k = s->n; k-- > 0;) {
		const struct m_kept *b = &l->m->kept.v[s->at[k]];
		const json_t *plan;

		if (s->at[k] >= i || !has_same(b->r, end->r, "as") || !has_same(b->r, end->r, "obj"))
			continue;
		if (end->t <= b->t)
			return false;
		plan = traffic_plan(l->m, b->inst);
		*ret = (struct rate){ .ops = json_object_get(plan, "ops"),
				      .size = json_object_get(plan, "size"),
				      .depth = json_object_get(plan, "depth"),
				      .per_ns = (double)done / (double)(end->t - b->t),
				      .end_t = end->t,
				      .rec = end->rec };
		return true;
	}
	return false;
}

static bool alike(const struct rate *a, const struct rate *b)
{
	return a->ops && b->ops && json_equal(a->ops, b->ops) && json_equal(a->size, b->size) && json_equal(a->depth, b->depth);
}

/* Up to the next recovery of the same pairs. */
static size_t story_ends(const struct look *l)
{
	for (size_t i = 0; i < l->m->recovers.n; i++) {
		const struct m_recover *r = &l->m->recovers.v[i];

		if (r->rec > l->to_rec && r->inst != l->p->inst && is_about(l, r->pair))
			return r->rec;
	}
	return l->m->n_recs;
}

static void find_full_of(struct look *l, const struct starts *s)
{
	struct rate before = { .per_ns = 0 }, r;
	size_t end = story_ends(l), i;

	for (i = 0; i < l->m->kept.n && l->m->kept.v[i].rec < l->begin_rec; i++)
		;
	/* The newest before it. */
	for (size_t k = i; before.per_ns <= 0 && k-- > 0;)
		if (rate_of(l, s, k, &r) && r.end_t <= l->p->begin.t)
			before = r;
	for (; before.per_ns > 0 && i < l->m->kept.n && l->m->kept.v[i].rec < end; i++)
		if (rate_of(l, s, i, &r) && alike(&r, &before) && r.per_ns * 100 >= before.per_ns * FULL_PERCENT) {
			const char *obj = json_str(l->m->kept.v[i].r, "obj");
			size_t qp = m_qp_find(l->m, obj, strlen(obj));

			l->p->at[PHASE_FULL] = on_clock_of(l->m, l->m->qps.v[qp].agent, r.end_t);
			return;
		}
}

static void find_full(struct look *l)
{
	struct starts s;

	if (l->n_pairs == 1 && !starts_find(l->m, &s)) {
		if (s.n)
			find_full_of(l, &s);
		free(s.at);
	}
}

bool phases_of(const struct model *m, size_t inst, struct phases *ret)
{
	struct phases p = { .inst = inst, .fault = "", .since = "" };
	struct look l = { .m = m, .p = &p, .begin_rec = 0, .rts_rec = M_NONE };
	const struct m_comp *error;
	bool found = steps_of_recovery(&l) && pairs_of_recovery(&l);

	if (found) {
		bounds(&l);
		found = find_down(&l);
	}
	if (found) {
		error = find_errors(&l, &p.at[PHASE_ERROR]);
		find_start(&l, error);
		find_good(&l);
		find_symptom(&l);
		find_full(&l);
		*ret = p;
	}
	free(l.pair);
	free(l.is_of);
	free(l.down);
	return found;
}

bool phases_took(const struct phases *p, enum phase phase, uint64_t *ret_ns, uint64_t *ret_bound_ns)
{
	const struct phase_time *from = phase <= PHASE_ERROR ? &p->start : &p->begin, *at = &p->at[phase];

	if (!at->reached)
		return false;
	/* Within the bounds of two clocks what came later may seem to have come sooner. */
	*ret_ns = at->t > from->t ? at->t - from->t : 0;
	*ret_bound_ns = at->bound_ns + from->bound_ns;
	return true;
}

size_t phases_before(const struct model *m, const char *as, size_t inst)
{
	for (size_t i = inst == M_NONE ? m->insts.n : inst; i-- > 0;) {
		const json_t *step = m->insts.v[i].plan;
		const char *what = json_str(step, "do"), *name = json_str(step, "as");

		if (what && !strcmp(what, "recover") && (!as || (name && !strcmp(name, as))))
			return i;
	}
	return M_NONE;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

json_t *phases_spread(uint64_t *v, size_t n)
{
	size_t p99 = (n * 99 + 99) / 100;

	qsort(v, n, sizeof(*v), by_size);
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "n", (json_int_t)n, "min_ns", (json_int_t)v[0], "median_ns",
			 (json_int_t)v[(n - 1) / 2], "p99_ns", (json_int_t)v[p99 - 1], "max_ns", (json_int_t)v[n - 1]);
}

static json_t *one_json(const struct model *m, const struct phases *p)
{
	const struct m_inst *in = &m->insts.v[p->inst];
	uint64_t ns, bound, widest = 0;
	json_t *o = json_pack("{s:i, s:s, s:s, s:s, s:i, s:i, s:s, s:s, s:I}", "step", in->step, "iter", in->iter, "path", p->path,
			      "pair", p->pair, "pairs", (int)p->pairs, "attempts", p->attempts, "since", p->since, "fault",
			      p->fault, "began_ns", (json_int_t)(p->begin.t > p->start.t ? p->begin.t - p->start.t : 0));
	char key[32];

	for (int k = 0; k < NUM_PHASES; k++) {
		if (!phases_took(p, (enum phase)k, &ns, &bound))
			continue;
		widest = bound > widest ? bound : widest;
		snprintf(key, sizeof(key), "%s_ns", phase_names[k]);
		json_object_set_new(o, key, json_integer((json_int_t)ns));
	}
	if (widest)
		json_object_set_new(o, "bound_ns", json_integer((json_int_t)widest));
	return o;
}

void phases_json(const struct model *m, json_t **ret_phases, json_t **ret_times)
{
	VEC(uint64_t) took[NUM_PHASES] = { { .n = 0 } };
	json_t *list = NULL, *times = NULL;
	struct phases p;

	for (size_t i = 0; i < m->insts.n; i++) {
		if (!m->insts.v[i].plan || !json_str(m->insts.v[i].plan, "do") ||
		    strcmp(json_str(m->insts.v[i].plan, "do"), "recover") || !phases_of(m, i, &p))
			continue;
		list = list ? list : json_array();
		if (json_array_size(list) < PHASES_MAX)
			json_array_append_new(list, one_json(m, &p));
		for (int k = 0; k < NUM_PHASES; k++) {
			uint64_t ns, bound, *v = phases_took(&p, (enum phase)k, &ns, &bound) ? VEC_PUSH(&took[k]) : NULL;

			if (v)
				*v = ns;
		}
	}
	for (int k = 0; list && k < NUM_PHASES; k++) {
		times = times ? times : json_object();
		if (took[k].n)
			json_object_set_new(times, phase_names[k], phases_spread(took[k].v, took[k].n));
	}
	for (int k = 0; k < NUM_PHASES; k++)
		free(took[k].v);
	*ret_phases = list;
	*ret_times = times;
}
