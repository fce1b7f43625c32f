/* SPDX-License-Identifier: MIT */
/* A pattern that says how many, was met, and left some over counted wrongly. Other errors that are left over are unexpected anyway.
 */
#include "verdict_internal.h"

#include <stdio.h>

#include "json.h"

/* The expectation that held and named how many of this post's requests succeed; M_NONE. */
static size_t counted_by(const struct judge *j, const struct m_post *p)
{
	size_t found = M_NONE;

	for (size_t i = p->inst; *p->as && i < j->m->insts.n; i++) {
		const struct m_inst *in = &j->m->insts.v[i];
		const char *of = json_str(in->plan, "of");

		if (of && !strcmp(of, p->as) && !strcmp(judge_do(j, i), "expect") && !strcmp(in->outcome, "met") &&
		    !strcmp(in->iter, j->m->insts.v[p->inst].iter) && json_object_get(json_object_get(in->plan, "wc"), "seq"))
			found = i;
	}
	return found;
}

static void success_left(struct judge *j, const struct m_comp *c)
{
	const struct m_post *p = m_comp_post(j->m, c);
	size_t inst = p && c->success && !c->taken && !c->twice && !c->recv && !*c->traffic ? counted_by(j, p) : M_NONE;
	struct finding *f;

	if (inst == M_NONE || !strcmp(judge_do(j, c->inst), "recover"))
		return;
	f = judge_find(j, SEVERITY_FAIL, "expect", inst, c->rec, judge_qp(j, c->qp));
	if (!f)
		return;
	finding_set(f, f->expected, "no completion of `%s` but those that the pattern names", p->as);
	finding_set(f, f->seen, "one more SUCCESS (request %u)", c->seq);
	finding_set(f, f->text, "%s: expected %s, seen %s", judge_qp(j, c->qp), f->expected, f->seen);
}

/* The expectation that took the newest one of a queue's life. */
struct counted {
	size_t inst; /* M_NONE: there is none, or it says not how many */
	size_t queue;
	unsigned life;
};

/* Its pattern says how many flushes there are: none of its items has room for more. */
static bool counts(const json_t *x, bool recv)
{
	const json_t *seq = json_object_get(json_object_get(x, recv ? "recv_wc" : "wc"), "seq"), *e;
	bool names = false;
	size_t i;

	json_array_foreach(seq, i, e) {
		names |= json_array_has(json_object_get(e, "any"), "WR_FLUSH_ERR");
		if (!json_object_get(e, "max"))
			return false;
	}
	return names;
}

static bool counts_flushes(const json_t *plan, bool recv)
{
	const json_t *x;
	size_t i;

	json_array_foreach(json_object_get(plan, "any"), i, x)
		if (counts(x, recv))
			return true;
	return counts(plan, recv);
}

/* Requests that were there when it was asked how many are flushed, of those that it is about. */
static bool is_left_over(const struct judge *j, const struct m_comp *c, const struct counted *last)
{
	const struct m_post *p = m_comp_post(j->m, c);
	const struct m_inst *in = last->inst == M_NONE ? NULL : &j->m->insts.v[last->inst];
	const char *of = in ? json_str(in->plan, "of") : NULL;

	return in && c->queue == last->queue && c->life == last->life && !strcmp(c->status, "WR_FLUSH_ERR") && !c->marker &&
	       !c->twice && p && p->rec < in->begin_rec && (!of || !strcmp(of, p->as)) && !verdict_allowed(j, c);
}

static void report_left(struct judge *j, const struct m_qp *q, const struct counted *last, const struct m_comp *first, unsigned n)
{
	struct finding *f = judge_find(j, SEVERITY_WARNING, "expect", last->inst, first->rec, q->name);

	if (!f)
		return;
	finding_set(f, f->expected, "no WR_FLUSH_ERR on the %s queue but those that the pattern names",
		    first->recv ? "receive" : "send");
	finding_set(f, f->seen, "%u more", n);
	finding_set(f, f->text, "%s: expected %s, seen %s", q->name, f->expected, f->seen);
}

static void flushes_left(struct judge *j, const struct m_qp *q, bool recv)
{
	struct counted last = { .inst = M_NONE };
	const struct m_comp *first = NULL;
	unsigned n = 0;

	for (size_t k = 0; k < q->comps.n; k++) {
		const struct m_comp *c = &j->m->comps.v[q->comps.v[k]];

		if (c->recv != recv)
			continue;
		if (c->taken) {
			if (n)
				report_left(j, q, &last, first, n);
			n = 0;
			last = (struct counted){ c->taken - 1, c->queue, c->life };
			if (!counts_flushes(j->m->insts.v[last.inst].plan, recv))
				last.inst = M_NONE;
		} else if (is_left_over(j, c, &last)) {
			first = n ? first : c;
			n += c->count;
		}
	}
	if (n)
		report_left(j, q, &last, first, n);
}

void verdict_check_counted(struct judge *j)
{
	for (size_t i = 0; i < j->m->comps.n; i++)
		success_left(j, &j->m->comps.v[i]);
	for (size_t i = 0; i < j->m->qps.n; i++) {
		flushes_left(j, &j->m->qps.v[i], false);
		flushes_left(j, &j->m->qps.v[i], true);
	}
}
