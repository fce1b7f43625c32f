/* SPDX-License-Identifier: MIT */
/* The pair that looks on: outside of a device's or the link's fault nothing may happen to it, inside it is only told. */
#include "verdict_internal.h"

#include <stdio.h>

#include "../faults/fault.h"
#include "attr.h"
#include "json.h"
#include "plan.h"
#include "units.h"

#define CHECK "bystander"
#define FINDINGS_MAX 4

struct look {
	struct judge *j;
	uint64_t period_ns;
	uint64_t bound_ns; /* of a gap */
	uint64_t tail_ns;  /* so long after a fault it may still be busy with it */
	bool wire_lost;    /* the harness itself has lost packets */
	unsigned n;        /* findings */
	int64_t sent, received, errors, bad;
	uint64_t gap_max_ns, gap_t_ns;       /* of all */
	bool any, hurt_inside, gone, starts; /* hurt: an error in a blast may have ended it */
};

static bool reaches(const struct m_fault *f)
{
	return f->injected && (!strcmp(f->blast, "link") || !strcmp(f->blast, "device"));
}

/* The fault in whose time, or in the time that it takes to get over it, something lies; NULL. */
static const struct m_fault *inside(const struct look *l, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < l->j->m->faults.n; i++) {
		const struct m_fault *f = &l->j->m->faults.v[i];

		if (reaches(f) && to >= f->inject_t && (!f->cleared || from <= f->clear_t + l->tail_ns))
			return f;
	}
	return NULL;
}

__attribute__((format(printf, 4, 5))) static void say(struct look *l, const struct m_kept *k, const char *expected, const char *fmt,
						      ...)
{
	enum severity severity = l->wire_lost || l->j->wire_gone ? SEVERITY_INCONCLUSIVE : SEVERITY_FAIL;
	struct finding *f;
	va_list ap;

	if (l->j->crashed || l->n++ >= FINDINGS_MAX)
		return;
	f = judge_find(l->j, severity, CHECK, k->inst, k->rec, CHECK);
	if (!f)
		return;
	va_start(ap, fmt);
	vsnprintf(f->seen, sizeof(f->seen), fmt, ap);
	va_end(ap);
	finding_set(f, f->expected, "%s", expected);
	finding_set(f, f->text, "bystander: %s: expected %s; it has nothing to do with this case's faults%s", f->seen, expected,
		    severity == SEVERITY_INCONCLUSIVE ? ", but the wire has lost packets as well" : "");
}

/* Something that has no duration. */
static bool excused(struct look *l, const struct m_kept *k)
{
	if (!inside(l, k->t, k->t))
		return false;
	l->hurt_inside = true;
	return true;
}

static void completion(struct look *l, const struct m_kept *k)
{
	const char *status = json_str(k->r, "status"), *obj = json_str(k->r, "obj");

	if (status && strcmp(status, "SUCCESS") && !excused(l, k))
		say(l, k, "no error completion", "%s at %s", status, obj ? obj : "?");
}

static void event(struct look *l, const struct m_kept *k)
{
	const char *name = json_str(k->r, "event"), *obj = json_str(k->r, "obj");
	struct m_event ev = { .obj = obj ? obj : "",
			      .event = name ? name : "",
			      .life = (unsigned)json_int(k->r, "life", 0),
			      .t = k->t,
			      .inst = k->inst,
			      .rec = k->rec };

	if (!m_event_explained(l->j->m, &ev) && !excused(l, k))
		say(l, k, "no event", "event %s at %s", ev.event, ev.obj);
}

static void gap(struct look *l, const struct m_kept *k)
{
	uint64_t ns = json_u64(k->r, "gap_ns", 0), from = k->t > ns ? k->t - ns : 0;
	char got[64], most[64], want[160];

	if (inside(l, from, k->t))
		return;
	if (ns <= l->bound_ns)
		return;
	snprintf(want, sizeof(want), "at most %s between two messages (period %s, and how late this machine's timers were)",
		 units_format_ns(l->bound_ns, most, sizeof(most)), units_format_ns(l->period_ns, got, sizeof(got)));
	say(l, k, want, "%s without a message", units_format_ns(ns, got, sizeof(got)));
}

/* The last word of a traffic: what it was in all. */
static void whole(struct look *l, const struct m_kept *k, const char *phase)
{
	int64_t bad = json_int(k->r, "bad_payload", 0), errors = json_int(k->r, "errors", 0);
	uint64_t gap_ns = json_u64(k->r, "gap_max_ns", 0);
	const char *first = json_str(k->r, "first_error");
	bool watches = json_int(k->r, "sent", 0) == 0;

	l->any |= watches;
	l->sent += json_int(k->r, "sent", 0);
	l->received += json_int(k->r, "received", 0);
	l->errors += errors;
	l->bad += bad;
	if (watches && gap_ns > l->gap_max_ns) {
		l->gap_max_ns = gap_ns;
		l->gap_t_ns = json_u64(k->r, "gap_t_ns", 0);
	}
	if (!strcmp(phase, "end") && !excused(l, k))
		say(l, k, "it to go on until the case ends", "it ended: %s", first ? first : "for no reason that it gave");
}

static void traffic(struct look *l, const struct m_kept *k)
{
	const char *phase = json_str(k->r, "phase");

	if (!phase)
		return;
	if (!strcmp(phase, "gap"))
		gap(l, k);
	else if (!strcmp(phase, "stop") || !strcmp(phase, "end"))
		whole(l, k, phase);
}

static void state(struct look *l, const struct m_kept *k)
{
	const char *now = json_str(k->r, "new"), *obj = json_str(k->r, "obj");

	if (json_int(k->r, "errno", 0) || !now || !strcmp(now, "RTS") || l->hurt_inside || l->gone || excused(l, k))
		return;
	say(l, k, "RTS at the end", "%s is in %s", obj ? obj : "?", now);
}

static void word(struct look *l, const struct m_kept *k)
{
	const char *phase = json_str(k->r, "phase"), *text = json_str(k->r, "text");

	if (phase && !strcmp(phase, "start")) {
		l->starts = true;
		l->period_ns = json_u64(k->r, "period_ns", 0);
	}
	if (!phase || strcmp(phase, "gone"))
		return;
	l->gone = true;
	judge_say(l->j, SEVERITY_NOTE, CHECK, k->inst, k->rec, CHECK, "bystander: not connected again after the fault: %s",
		  text ? text : "no reason given");
}

static void lost(struct look *l, const struct m_kept *k)
{
	const char *text = json_str(k->r, "text");

	say(l, k, "its agents to live", "%s", text ? text : "an agent is gone");
}

static void blocked(struct look *l, const struct m_kept *k)
{
	const char *verb = json_str(k->r, "verb");
	char waited[64];

	/* What kept it from starting is an error of the set-up, and said there. */
	if (l->starts && !excused(l, k))
		say(l, k, "its calls to return", "%s blocked for %s", verb ? verb : "a call",
		    units_format_ns(json_u64(k->r, "waited_ns", 0), waited, sizeof(waited)));
}

static const struct {
	const char *kind;
	void (*look)(struct look *l, const struct m_kept *k);
} kinds[] = {
	{ "wc", completion }, { "event", event }, { "traffic", traffic }, { "state", state },
	{ CHECK, word },      { "lost", lost },   { "blocked", blocked },
};

/* Damaged messages have no time of their own: those of the parts that lie in a blast are taken off. */
static void payload(struct look *l)
{
	int64_t bad = l->bad;
	const struct m_kept *last = NULL;

	for (size_t i = 0; i < l->j->m->bystander.n; i++) {
		const struct m_kept *k = &l->j->m->bystander.v[i];
		const char *phase = json_str(k->r, "phase");

		if (strcmp(k->kind, "traffic") || !phase)
			continue;
		last = k;
		for (size_t n = 0; !strncmp(phase, "during:", 7) && n < l->j->m->faults.n; n++)
			if (reaches(&l->j->m->faults.v[n]) && !strcmp(l->j->m->faults.v[n].as, phase + 7))
				bad -= json_int(k->r, "bad_payload", 0);
	}
	if (bad > 0 && last)
		say(l, last, "every message as it was sent", "%lld messages arrived damaged", (long long)bad);
}

static uint64_t lateness(const struct judge *j)
{
	uint64_t most = j->m->late_max_ns;

	for (size_t i = 0; i < j->m->bystander.n; i++) {
		uint64_t late = json_u64(j->m->bystander.v[i].r, "late_max_ns", 0);

		if (!strcmp(j->m->bystander.v[i].kind, "clock") && late > most)
			most = late;
	}
	return most;
}

static bool wire_lost_some(const struct judge *j)
{
	for (size_t i = 0; i < j->m->kept.n; i++) {
		const json_t *r = j->m->kept.v[i].r;
		const char *src = json_str(r, "src"), *what = json_str(r, "what");

		if (!strcmp(j->m->kept.v[i].kind, "lost") && src && what && !strcmp(src, "wire") &&
		    !verdict_loss_is_planned(j, &j->m->kept.v[i]) &&
		    (!strcmp(what, "frames") || !strcmp(what, "account") || !strcmp(what, "port")))
			return true;
	}
	return false;
}

/* What it was in the time of each fault that reaches it: told, not judged. */
static json_t *blasts(struct look *l)
{
	json_t *list = json_array();

	for (size_t i = 0; i < l->j->m->faults.n; i++) {
		const struct m_fault *f = &l->j->m->faults.v[i];
		uint64_t longest = 0;
		int64_t received = 0, errors = 0;
		char took[64];

		for (size_t n = 0; reaches(f) && n < l->j->m->bystander.n; n++) {
			const json_t *r = l->j->m->bystander.v[n].r;
			const char *phase = json_str(r, "phase");
			uint64_t t = l->j->m->bystander.v[n].t, gap_ns = json_u64(r, "gap_ns", 0);

			if (phase && !strncmp(phase, "during:", 7) && !strcmp(phase + 7, f->as)) {
				received += json_int(r, "received", 0);
				errors += json_int(r, "errors", 0);
				gap_ns = json_int(r, "sent", 0) ? 0 : json_u64(r, "gap_max_ns", 0);
			} else if (!phase || strcmp(phase, "gap") || inside(l, t - (gap_ns < t ? gap_ns : t), t) != f) {
				continue;
			}
			longest = gap_ns > longest ? gap_ns : longest;
		}
		/* Where it was kept silent, what it lacked says nothing. */
		if (!reaches(f) || (fault_find(f->name) && fault_find(f->name)->counts_link))
			continue;
		json_array_append_new(list, json_pack("{s:s,s:s,s:I,s:I,s:I}", "fault", f->as, "blast", f->blast, "received",
						      (json_int_t)received, "errors", (json_int_t)errors, "gap_max_ns",
						      (json_int_t)longest));
		judge_say(l->j, SEVERITY_NOTE, CHECK, f->inst, f->rec, CHECK,
			  "bystander: in the blast of %s (%s): %lld messages came, %lld errors, the longest gap %s", f->as,
			  f->blast, (long long)received, (long long)errors, units_format_ns(longest, took, sizeof(took)));
	}
	return list;
}

static void nothing_of_it(struct look *l)
{
	const struct judge *j = l->j;

	if (j->crashed || j->cut || j->wire_gone || !j->m->ended || l->n || l->gone)
		return;
	judge_say(l->j, SEVERITY_INCONCLUSIVE, CHECK, j->m->inst, j->m->n_recs ? j->m->n_recs - 1 : 0, CHECK,
		  "bystander: the plan has one, and %s: nobody looked on",
		  l->starts ? "its end is not on record" : "it never started");
}

void verdict_check_bystander(struct judge *j)
{
	const json_t *plan = json_object_get(j->plan, PLAN_BYSTANDER);
	struct look l = { .j = j };
	json_t *inside_of;

	if (!json_is_object(plan))
		return;
	l.bound_ns = json_u64(plan, "gap_ns", 0) + LATE_ONES * lateness(j);
	l.tail_ns = 4 * timer_ack_ns((unsigned)json_int(json_object_get(json_array_get(json_object_get(plan, "qps"), 0), "attr"),
							"timeout", 0)) +
		    l.bound_ns;
	l.wire_lost = wire_lost_some(j);
	for (size_t i = 0; i < j->m->bystander.n; i++)
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
			if (!strcmp(j->m->bystander.v[i].kind, kinds[k].kind))
				kinds[k].look(&l, &j->m->bystander.v[i]);
	payload(&l);
	inside_of = blasts(&l);
	if (!l.any)
		nothing_of_it(&l);
	else if (!l.received && !inside(&l, 0, UINT64_MAX) && !l.n)
		say(&l, &j->m->bystander.v[j->m->bystander.n - 1], "its messages to arrive", "not one of %lld messages arrived",
		    (long long)l.sent);
	j->bystander = json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "period_ns", (json_int_t)l.period_ns, "sent",
				 (json_int_t)l.sent, "received", (json_int_t)l.received, "errors", (json_int_t)l.errors,
				 "bad_payload", (json_int_t)l.bad, "gap_max_ns", (json_int_t)l.gap_max_ns, "gap_t_ns",
				 (json_int_t)l.gap_t_ns, "gap_bound_ns", (json_int_t)l.bound_ns, "inside", inside_of);
}
