/* SPDX-License-Identifier: MIT */
/* Retries that this machine's own lateness may have spent: the peer answered in time by its own clock, and got its turn too late.
 */
#include "verdict_internal.h"

#include <stdio.h>
#include <string.h>

#include "attr.h"
#include "json.h"
#include "lateness.h"
#include "units.h"

/* The shortest time in which all of its retries may end; 0: they never do. */
static uint64_t retries_ns(const json_t *attr)
{
	unsigned timeout = (unsigned)json_int(attr, "timeout", 0);

	return timeout ? ((uint64_t)json_int(attr, "retry_cnt", 0) + 1) * timer_ack_ns(timeout) : 0;
}

/* A step that names the status expects it: what it complains of is something else. */
static bool names(const struct judge *j, size_t inst, const char *status)
{
	const json_t *step = j->m->insts.v[inst].plan, *x;
	size_t i;

	if (verdict_pattern_has(json_object_get(step, "wc"), status))
		return true;
	json_array_foreach(json_object_get(step, "any"), i, x)
		if (verdict_pattern_has(json_object_get(x, "wc"), status))
			return true;
	return false;
}

/* The finding that is about this completion itself. */
static bool is_about(const struct judge *j, const struct finding *f, const struct m_comp *c)
{
	if (f->severity != SEVERITY_FAIL || !lateness_is_end_of_retries(f->check))
		return false;
	if (f->rec == c->rec && !strcmp(f->check, "unexpected"))
		return true;
	if (f->inst == c->inst && (!strcmp(f->check, "recover") || !strcmp(f->check, "traffic")))
		return true;
	return c->taken && f->inst == c->taken - 1 && !strcmp(f->check, "expect") && !names(j, f->inst, c->status);
}

static bool is_of_pair(const struct judge *j, const struct finding *f, size_t qp)
{
	const char *pair = j->m->qps.v[qp].pair;
	size_t len = strlen(pair);

	return !*f->at || (!strncmp(f->at, pair, len) && (!f->at[len] || f->at[len] == '.'));
}

/* That life of an end was current when the retries of this completion were over. */
static bool is_of_connection(const struct judge *j, size_t qp, unsigned life, const struct m_comp *c)
{
	const struct m_life *l = m_life_of(j->m, j->m->qps.v[qp].send, life);

	if (qp == c->qp)
		return life == c->qp_life;
	return l && !strcmp(j->m->qps.v[qp].pair, j->m->qps.v[c->qp].pair) && l->begin_rec <= c->rec &&
	       (!l->over || l->over_rec >= c->rec);
}

/* The end of its retries moved the QP to ERR and nothing else did, and a completion had said so before this was posted. */
static bool is_posted_after(const struct judge *j, size_t qp, const struct m_post *p)
{
	bool spent = false, told = false;

	for (size_t i = 0; i < j->m->comps.n; i++) {
		const struct m_comp *c = &j->m->comps.v[i];
		bool end = !strcmp(c->status, "RETRY_EXC_ERR");

		if (c->qp != qp || c->qp_life != p->life || c->success)
			continue;
		if (!end && strcmp(c->status, "WR_FLUSH_ERR"))
			return false;
		spent |= end;
		told |= c->t < p->t;
	}
	return spent && told;
}

/* Whatever lacks an end in that life of a queue was posted to a QP in ERR, into which the retries' end had brought it. */
static bool only_later_work_lacks_an_end(const struct judge *j, const struct m_post *of, const struct m_comp *c)
{
	size_t qp = j->m->queues.v[of->queue].qp;

	if (qp == M_NONE || !is_of_connection(j, qp, of->life, c))
		return false;
	for (size_t i = 0; i < j->m->posts.n; i++) {
		const struct m_post *p = &j->m->posts.v[i];
		struct m_account a;

		if (p->queue != of->queue || p->life != of->life || !p->accepted)
			continue;
		a = m_account_post(j->m, p);
		if (a.in_flight + a.discarded && !is_posted_after(j, qp, p))
			return false;
	}
	return true;
}

/* Not made by the retries' end, but by what it left: work given to a QP that no longer worked, and a peer whose refusal nobody was
 * there to be told of. */
static bool follows(const struct judge *j, const struct finding *f, const struct m_comp *c)
{
	if (f->post)
		return only_later_work_lacks_an_end(j, f->post, c);
	return f->flush && f->flush->qp != c->qp && is_of_connection(j, f->flush->qp, f->flush->qp_life, c);
}

/* What follows from it at both ends is worth a note; that it happened leaves the case open. */
static void excuse(struct judge *j, const struct m_comp *c, size_t inst, const json_t *attr)
{
	char late[64], all[64];

	for (size_t i = 0; i < j->findings.n; i++) {
		struct finding *f = &j->findings.v[i];

		if (f->severity != SEVERITY_FAIL || !is_of_pair(j, f, c->qp))
			continue;
		if ((lateness_is_end_of_retries(f->check) && (f->rec >= c->rec || is_about(j, f, c))) || follows(j, f, c))
			f->severity = SEVERITY_NOTE;
	}
	judge_say(j, SEVERITY_INCONCLUSIVE, "late", inst, c->rec, judge_qp(j, c->qp),
		  "%s: unexpected %s, but all retries may be over after %s (timeout %lld, retry_cnt %lld), and timers of this "
		  "machine "
		  "were up to %s late: the peer may not have had its turn",
		  judge_qp(j, c->qp), c->status, units_format_ns(retries_ns(attr), all, sizeof(all)),
		  (long long)json_int(attr, "timeout", 0), (long long)json_int(attr, "retry_cnt", 0),
		  units_format_ns(j->m->late_max_ns, late, sizeof(late)));
}

/* A request and its answer take several turns of the kernel's tasks at both ends, and each may be as late as the timers were. Where
 * a fault acts on the QP, it is the nearer cause. */
static uint64_t round_trip_late_ns(const struct judge *j, const struct m_comp *c)
{
	return (m_fault_on(j->m, c->qp, c->rec) ? 1 : LATE_ONES) * j->m->late_max_ns;
}

/* The peer was taken to ERR and has begun no life since: a QP in ERR answers nothing. */
static bool is_peer_in_error(const struct judge *j, const struct m_fault *f, const struct m_comp *c)
{
	const char *name = j->m->qps.v[c->qp].peer;
	size_t peer = m_qp_find(j->m, name, strlen(name));

	if (strcmp(f->name, "qp_error") || peer == M_NONE || !json_array_has(f->at, name))
		return false;
	for (unsigned life = 1; life <= j->m->qps.v[peer].life; life++) {
		const struct m_life *l = m_life_of(j->m, j->m->qps.v[peer].send, life);

		if (l && l->begin_rec > f->rec && l->begin_rec < c->rec)
			return false;
	}
	return true;
}

/* Nothing got through, and by the order of the steps nothing was to until this expectation had ended: how late the end of it came
 * makes no difference. */
static bool is_link_dark(const struct judge *j, const struct m_fault *f, const struct m_comp *c, const struct finding *about)
{
	const json_t *step = j->m->insts.v[f->inst].plan;
	const char *loss = json_str(json_object_get(step, "args"), "loss");
	const struct m_inst *in = &j->m->insts.v[about->inst];

	if (strcmp(f->name, "link_down") && (strcmp(f->name, "netem") || !loss || strcmp(loss, "100%")))
		return false;
	if (strcmp(about->check, "expect") || json_object_get(step, "for") || json_object_get(step, "for_ns"))
		return false;
	return m_fault_reaches(j->m, f, c->qp) && in->end_rec != M_NONE && (!f->cleared || f->clear_rec > in->end_rec);
}

/* A proven fault that was there before the request is enough of a reason: the peer would not have answered in any time. */
static bool is_by_fault(const struct judge *j, const struct m_comp *c, const struct finding *about)
{
	const struct m_post *p = m_comp_post(j->m, c);

	for (size_t i = 0; p && i < j->m->faults.n; i++) {
		const struct m_fault *f = &j->m->faults.v[i];

		if (f->injected && f->fired && f->rec < p->rec && f->inject_t < p->t &&
		    (is_peer_in_error(j, f, c) || is_link_dark(j, f, c, about)))
			return true;
	}
	return false;
}

void verdict_excuse_late(struct judge *j)
{
	for (size_t i = 0; i < j->m->comps.n; i++) {
		const struct m_comp *c = &j->m->comps.v[i];
		const json_t *attr;
		uint64_t all_ns;

		if (c->recv || c->marker || c->twice || strcmp(c->status, "RETRY_EXC_ERR"))
			continue;
		attr = judge_attr_at(j, c->qp, c->rec);
		all_ns = retries_ns(attr);
		if (!all_ns || all_ns > round_trip_late_ns(j, c))
			continue;
		for (size_t k = 0; k < j->findings.n; k++)
			if (is_about(j, &j->findings.v[k], c)) {
				if (!is_by_fault(j, c, &j->findings.v[k]))
					excuse(j, c, j->findings.v[k].inst, attr);
				break;
			}
	}
}
