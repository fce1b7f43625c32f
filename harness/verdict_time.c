/* SPDX-License-Identifier: MIT */
/* When the first error came, against what the queried attributes and the way the device found out predict. */
#include "verdict_internal.h"

#include <stdio.h>

#include "attr.h"
#include "json.h"
#include "packet.h"
#include "plan.h"
#include "units.h"

struct timing {
	const struct m_comp *c;
	const struct m_post *p;
	const json_t *attr, *peer_attr;
	enum detection detection;
	const struct m_fault *fault; /* that made it so; NULL */
	uint64_t low_start, high_start, widened;
	struct window w;
};

const json_t *judge_attr_at(const struct judge *j, size_t qp, size_t rec)
{
	return qp == M_NONE ? NULL : m_attr_at(j->m, qp, rec);
}

/* An active fault says how the device finds out, where that agrees with the status that came. */
static void find_detection(const struct judge *j, struct timing *t)
{
	t->detection = plan_detection(t->c->status);
	for (size_t i = j->m->faults.n; i-- > 0;) {
		const struct m_fault *f = &j->m->faults.v[i];

		if (!f->injected || f->rec > t->c->rec || (f->cleared && f->clear_rec < t->c->rec) ||
		    !m_fault_reaches(j->m, f, t->c->qp))
			continue;
		if (t->detection == DETECTION_SILENT && !strcmp(f->detection, detection_names[DETECTION_SEQ_NAK]))
			t->detection = DETECTION_SEQ_NAK;
		else if (strcmp(f->detection, detection_names[t->detection]))
			continue;
		t->fault = f;
		return;
	}
}

static void later(uint64_t *t, uint64_t than)
{
	if (than > *t)
		*t = than;
}

/* The timer started no earlier than low_start, and no later than high_start. */
static void find_start(const struct judge *j, struct timing *t)
{
	size_t peer = m_qp_find(j->m, j->m->qps.v[t->c->qp].peer, strlen(j->m->qps.v[t->c->qp].peer));

	t->low_start = t->p->t;
	t->high_start = t->p->t_last > t->c->t ? t->p->t : t->p->t_last;
	if (t->fault && !j->m->several_clocks) {
		later(&t->low_start, j->m->insts.v[t->fault->inst].begin_t);
		later(&t->high_start, t->fault->inject_t);
	}
	for (size_t i = 0; i < j->m->comps.n; i++) {
		const struct m_comp *o = &j->m->comps.v[i];

		if (o->queue == t->c->queue && o->life == t->c->life && o->success && o->seq < t->c->seq)
			later(&t->high_start, o->t_last);
	}
	for (size_t i = 0; !j->m->several_clocks && i < j->m->states.n; i++) {
		const struct m_state *s = &j->m->states.v[i];

		if (s->qp == peer && *s->asked && !s->err && s->t <= t->c->t)
			later(&t->high_start, s->t);
	}
	if (t->high_start > t->c->t)
		t->high_start = t->low_start;
	if (t->low_start > t->c->t)
		t->low_start = t->p->t;
}

/* The first transmission of the request that failed, where the wire saw it and nothing was on its way shortly before it, for which
 * a timer that no ACK stops might still have been running: this request's alone. NULL: nothing shows it. */
static const struct m_packet *shown_start(const struct judge *j, const struct timing *t)
{
	const struct m_packet *first = NULL;
	unsigned life = m_connection_of(j->m, t->c->qp, t->c->qp_life);
	uint64_t running_ns = 2 * timer_ack_ns((unsigned)json_int(t->attr, "timeout", 0));

	for (size_t i = 0; life && i < j->m->packets.n; i++) {
		const struct m_packet *p = &j->m->packets.v[i];

		if (p->qp == t->c->qp && p->life == life && !p->late && p->transmission == 1 && !strcmp(p->class_, "request") &&
		    p->t >= t->p->t && p->t <= t->c->t && (!first || p->t < first->t))
			first = p;
	}
	for (size_t i = 0; first && i < j->m->comps.n; i++) {
		const struct m_comp *o = &j->m->comps.v[i];

		if (o->queue == t->c->queue && o->life == t->c->life && o->seq < t->c->seq &&
		    (!o->success || o->t_last + running_ns >= first->t))
			return NULL;
	}
	return first;
}

/* How many of its retries an answer may have asked for at once, so that no timer ran out for them: a sequence NAK asks for one, and
 * of a READ whose answer breaks off any. */
static uint64_t prompted(const struct judge *j, const struct timing *t)
{
	unsigned life = m_connection_of(j->m, t->c->qp, t->c->qp_life);
	uint64_t turns = (uint64_t)json_int(t->attr, "retry_cnt", 0) + 1, n = 0;

	for (size_t i = 0; life && i < j->m->packets.n; i++) {
		const struct m_packet *p = &j->m->packets.v[i];

		if (p->qp == t->c->qp || p->qp == M_NONE || p->life != life || strcmp(p->pair, j->m->qps.v[t->c->qp].pair) ||
		    p->t < t->p->t || p->t > t->c->t || !strcmp(p->fate, "eaten") || !strcmp(p->fate, "kept"))
			continue;
		if (!strcmp(p->class_, "read_response"))
			return turns;
		n += !strcmp(p->class_, "nak") && p->syndrome == AETH_NAK_PSN;
	}
	return n < turns ? n : turns;
}

/* How much earlier than it came by a packet may have been sent, on this machine. */
static uint64_t lateness(const struct judge *j, uint64_t came_ns, uint64_t posted_ns)
{
	return came_ns - posted_ns < j->m->late_max_ns ? came_ns - posted_ns : j->m->late_max_ns;
}

static uint64_t above(uint64_t floor_ns, uint64_t ns)
{
	return floor_ns > ns ? floor_ns - ns : 0;
}

/* The provider's own timers; and for each wait, this machine may have been late. */
static void apply_profile(const struct judge *j, struct timing *t)
{
	unsigned waits = plan_window_timing(&t->w, t->detection, t->attr, t->peer_attr, j->profile ? j->profile->timing : NULL);

	t->widened = waits ? (waits + 1) * j->m->late_max_ns : j->m->late_max_ns;
}

/* Under a loss that lets some packets through, or on a link that went away, nothing shows when the last timer began. */
static bool start_is_vague(const struct judge *j, const struct timing *t)
{
	const json_t *step = t->fault ? j->m->insts.v[t->fault->inst].plan : NULL;
	const char *loss = json_str(json_object_get(step, "args"), "loss");

	if (!t->fault)
		return false;
	if (!strcmp(t->fault->name, "netem"))
		return !loss || strcmp(loss, "100%");
	return !strcmp(t->fault->name, "link_down") || !strcmp(t->fault->name, "neighbour");
}

static void out_of_window(struct judge *j, const struct timing *t, uint64_t measured, bool early)
{
	bool warns = !early && (t->w.high_warns || start_is_vague(j, t));
	/* When the fault began stands on another machine's clock. */
	bool unknown = !early && t->fault && j->m->several_clocks;
	struct finding *f = judge_find(j,
				       warns     ? SEVERITY_WARNING
				       : unknown ? SEVERITY_INCONCLUSIVE
						 : SEVERITY_FAIL,
				       "time", t->c->inst, t->c->rec, judge_qp(j, t->c->qp));
	char low[64], high[64], got[64], wide[64];

	if (!f)
		return;
	units_format_ns(t->w.low_ns, low, sizeof(low));
	units_format_ns(t->w.high_ns, high, sizeof(high));
	units_format_ns(t->widened, wide, sizeof(wide));
	if (t->w.high_ns == UINT64_MAX)
		finding_set(f, f->expected, "%s no earlier than %s", t->c->status, low);
	else
		finding_set(f, f->expected, "%s between %s and %s (+ %s measured lateness)", t->c->status, low, high, wide);
	finding_set(f, f->seen, "%s", units_format_ns(measured, got, sizeof(got)));
	finding_set(f, f->text, "%s: too %s: expected %s (%s), seen after %s", judge_qp(j, t->c->qp), early ? "early" : "late",
		    f->expected, detection_names[t->detection], f->seen);
}

static void report(struct judge *j, const struct timing *t)
{
	uint64_t high = t->w.high_ns, measured_low = t->c->t - t->low_start, measured = t->c->t - t->high_start;
	bool early = measured_low < t->w.low_ns, late = false, ok;
	json_t *o;

	if (high != UINT64_MAX && high < UINT64_MAX - t->widened)
		late = measured > high + t->widened;
	ok = !early && !late;
	/* Where the two starts differ, the one that speaks for the device is the one to show. */
	if (!early && measured < t->w.low_ns)
		measured = measured_low;
	o = json_pack("{s:i, s:s, s:s, s:I, s:I, s:I, s:b}", "step", j->m->insts.v[t->p->inst].step, "of",
		      *t->p->as ? t->p->as : t->p->op, "detection", detection_names[t->detection], "low_ns",
		      (json_int_t)t->w.low_ns, "measured_ns", (json_int_t)(early ? measured_low : measured), "widened_ns",
		      (json_int_t)t->widened, "ok", ok);
	json_object_set_new(o, "high_ns", high == UINT64_MAX ? json_null() : json_integer((json_int_t)high));
	json_array_append_new(j->windows, o);
	if (early || late)
		out_of_window(j, t, early ? measured_low : measured, early);
}

static void first_error(struct judge *j, const struct m_comp *c)
{
	struct timing t = { .c = c, .p = m_comp_post(j->m, c) };
	size_t peer = m_qp_find(j->m, j->m->qps.v[c->qp].peer, strlen(j->m->qps.v[c->qp].peer));
	const struct m_packet *start;

	if (!t.p || *t.p->traffic || c->t < t.p->t)
		return;
	find_detection(j, &t);
	find_start(j, &t);
	t.attr = judge_attr_at(j, c->qp, c->rec);
	t.peer_attr = judge_attr_at(j, peer, c->rec);
	start = t.detection == DETECTION_SILENT ? shown_start(j, &t) : NULL;
	/* It was sent no later than it came by. */
	if (start)
		t.low_start = start->t - lateness(j, start->t, t.p->t);
	t.w = plan_window(t.detection, t.attr, t.peer_attr, start != NULL);
	if (t.w.never) {
		judge_say(j, SEVERITY_FAIL, "time", c->inst, c->rec, judge_qp(j, c->qp),
			  "%s: %s can never come with timeout %lld and rnr_retry %lld, but it came", judge_qp(j, c->qp), c->status,
			  (long long)json_int(t.attr, "timeout", 0), (long long)json_int(t.attr, "rnr_retry", 0));
		return;
	}
	if (t.detection == DETECTION_SILENT)
		t.w.low_ns = above(t.w.low_ns, prompted(j, &t) * timer_ack_ns((unsigned)json_int(t.attr, "timeout", 0)));
	apply_profile(j, &t);
	report(j, &t);
}

void verdict_check_time(struct judge *j)
{
	for (size_t q = 0; q < j->m->queues.n; q++) {
		const struct m_queue *queue = &j->m->queues.v[q];

		for (size_t k = 0; queue->send && k < queue->lives.n; k++) {
			size_t at = queue->lives.v[k].first_error;
			const struct m_comp *c = at == M_NONE ? NULL : &j->m->comps.v[at];

			if (c && c->qp != M_NONE && strcmp(c->status, "WR_FLUSH_ERR"))
				first_error(j, c);
		}
	}
}
