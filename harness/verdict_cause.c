/* SPDX-License-Identifier: MIT */
/* In one life of a queue the first error names the cause, and all later ones are flushes. */
#include "verdict_internal.h"

#include <stdio.h>

#include "json.h"

struct queue_life {
	const struct m_comp *first_error, *cause, *first_flush;
	unsigned causes;
};

static bool is_flush(const struct m_comp *c)
{
	return !strcmp(c->status, "WR_FLUSH_ERR");
}

static const char *side(const struct m_comp *c)
{
	return c->recv ? "receive" : "send";
}

static void order_of_errors(struct judge *j, size_t qp, const struct m_comp *c, const struct queue_life *q)
{
	struct finding *f;

	if (c->success && q->first_error && c->seq > q->first_error->seq) {
		f = judge_find(j, SEVERITY_FAIL, "cause-first", c->inst, c->rec, judge_qp(j, qp));
		if (!f)
			return;
		finding_set(f, f->expected, "only WR_FLUSH_ERR after %s", q->first_error->status);
		finding_set(f, f->seen, "SUCCESS for request %u", c->seq);
		finding_set(f, f->text, "%s, %s queue: expected %s, seen %s", judge_qp(j, qp), side(c), f->expected, f->seen);
	} else if (!c->success && !is_flush(c) && q->first_error) {
		f = judge_find(j, SEVERITY_FAIL, "cause-first", c->inst, c->rec, judge_qp(j, qp));
		if (!f)
			return;
		finding_set(f, f->expected, "one cause, first in its queue");
		finding_set(f, f->seen, "%s after %s", c->status, q->first_error->status);
		finding_set(f, f->text, "%s, %s queue: expected %s, seen %s", judge_qp(j, qp), side(c), f->expected, f->seen);
	}
}

static struct queue_life read_queue(struct judge *j, size_t qp, unsigned life, bool recv)
{
	struct queue_life q = { .cause = NULL };
	const struct m_qp *of = &j->m->qps.v[qp];

	for (size_t i = 0; i < of->comps.n; i++) {
		const struct m_comp *c = &j->m->comps.v[of->comps.v[i]];

		if (c->qp_life != life || c->recv != recv || c->twice)
			continue;
		order_of_errors(j, qp, c, &q);
		if (c->success)
			continue;
		if (!q.first_error)
			q.first_error = c;
		if (!is_flush(c) && !q.causes++)
			q.cause = c;
		if (is_flush(c) && !q.first_flush)
			q.first_flush = c;
	}
	return q;
}

static bool cause_is_lost(const struct m_comp *flush)
{
	return flush && flush->deviation && m_profile_waives(flush->deviation, "cause-first");
}

/* Nothing but flushes: something on record must have moved the QP to ERR. Where the profile says that the first flush of a queue
 * stands for a cause that the device has lost, that is the other queue's as well. */
static void flush_without_cause(struct judge *j, size_t qp, unsigned life, const struct m_comp *flush)
{
	const json_t *entry;
	struct finding *f;
	bool seen;

	if (m_why_error(j->m, qp, life, flush->inst, flush->t))
		return;
	entry = judge_missing_event(j, qp, life, flush->t, "cause-first", &seen);
	if (entry && seen) {
		judge_deviation(j, entry, "cause-first", flush->inst, flush->rec, judge_qp(j, qp),
				"%s: flushed without a cause of its own and without the event that would say why: the profile's %s",
				judge_qp(j, qp), json_str(entry, "id"));
		return;
	}
	f = judge_find(j, SEVERITY_FAIL, "cause-first", flush->inst, flush->rec, judge_qp(j, qp));
	if (!f)
		return;
	f->flush = flush;
	finding_set(f, f->expected, "a cause: an error completion, an event, or a step that moved the QP to ERR");
	finding_set(f, f->seen, "WR_FLUSH_ERR on the %s queue and nothing that explains it", side(flush));
	finding_set(f, f->text, "%s: flush without explanation: expected %s, seen %s", judge_qp(j, qp), f->expected, f->seen);
	if (entry)
		finding_likely_entry(j, f, entry);
}

void verdict_check_cause(struct judge *j)
{
	for (size_t qp = 0; qp < j->m->qps.n; qp++) {
		const struct m_queue *q = &j->m->queues.v[j->m->qps.v[qp].send];

		for (size_t i = 0; i < q->lives.n; i++) {
			unsigned life = q->lives.v[i].life;
			struct queue_life s = read_queue(j, qp, life, false), r = read_queue(j, qp, life, true);
			const struct m_comp *flush = s.first_flush;

			if (!flush || (r.first_flush && r.first_flush->rec < flush->rec))
				flush = r.first_flush ? r.first_flush : flush;
			if (flush && !s.cause && !r.cause && !cause_is_lost(s.first_flush) && !cause_is_lost(r.first_flush))
				flush_without_cause(j, qp, life, flush);
		}
	}
}
