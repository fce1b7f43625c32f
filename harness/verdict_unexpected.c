/* SPDX-License-Identifier: MIT */
/* Error completions and events that neither an expectation nor an `allow` names; and what a SUCCESS is worth. */
#include "verdict_internal.h"

#include <stdio.h>

#include "json.h"
#include "names.h"

bool verdict_pattern_has(const json_t *pattern, const char *status)
{
	const json_t *e;
	size_t i;

	if (json_array_has(json_object_get(pattern, "all"), status))
		return true;
	json_array_foreach(json_object_get(pattern, "seq"), i, e)
		if (json_array_has(json_object_get(e, "any"), status))
			return true;
	return false;
}

static bool allow_is_for(const struct judge *j, size_t inst, const json_t *x, size_t qp)
{
	struct eval v = { .m = j->m, .inst = inst };
	struct ends ends;
	bool hit = false;

	if (expect_ends(&v, x, &ends))
		return false;
	for (size_t i = 0; i < ends.e.n; i++)
		hit |= ends.e.v[i].qp == qp;
	free(ends.e.v);
	return hit;
}

/* The entry by which the device's own value stands for one that the pattern names. */
static const json_t *pattern_entry(const struct judge *j, const json_t *pattern, const struct m_comp *c)
{
	struct m_match what = { .qp = c->qp, .life = c->qp_life, .recv = c->recv, .post = m_comp_post(j->m, c), .rec = c->rec };

	for (size_t i = 0; i < names_status.n; i++) {
		bool seen = false;
		const json_t *entry;

		what.spec = names_status.rows[i].text;
		entry = verdict_pattern_has(pattern, what.spec) ? m_profile_excuse(j->m, &what, c->status, &seen) : NULL;
		if (entry && seen)
			return entry;
	}
	return NULL;
}

/* ret_entry NULL: as the pattern has it; else by the profile, which is told. */
static bool allow_comp(const struct judge *j, size_t inst, const json_t *x, const struct m_comp *c, const json_t **ret_entry)
{
	const struct m_post *p = m_comp_post(j->m, c);
	const json_t *pattern = json_object_get(x, c->recv ? "recv_wc" : "wc");
	const char *of = json_str(x, "of");

	if (of ? strcmp(of, *c->traffic ? c->traffic : p ? p->as : "") : !allow_is_for(j, inst, x, c->qp))
		return false;
	if (!ret_entry)
		return verdict_pattern_has(pattern, c->status);
	*ret_entry = pattern_entry(j, pattern, c);
	return *ret_entry;
}

static bool allow_event(const struct judge *j, size_t inst, const json_t *x, const struct m_event *ev)
{
	const json_t *want = json_object_get(x, ev->cm ? "cm" : "event");
	const json_t *all = json_is_array(want) ? want : json_object_get(want, "all");
	struct eval v = { .m = j->m, .inst = inst };
	struct ends ends;
	bool hit = false;

	if (!json_array_has(all, ev->event) || expect_ends(&v, x, &ends))
		return false;
	for (size_t i = 0; i < ends.e.n; i++)
		hit |= m_event_at(j->m, ev, &ends.e.v[i]);
	free(ends.e.v);
	return hit;
}

/* Exactly one of c and ev is given; ret_entry: as above, beside c. */
static bool allowed(const struct judge *j, const struct m_comp *c, const struct m_event *ev, const json_t **ret_entry)
{
	size_t rec = c ? c->rec : ev ? ev->rec : 0;

	for (size_t i = 0; i < j->m->allows.n; i++) {
		size_t inst = j->m->allows.v[i], k;
		const struct m_inst *in = &j->m->insts.v[inst];
		const json_t *any = json_object_get(in->plan, "any"), *x;

		if (in->begin_rec > rec)
			continue;
		if (c ? allow_comp(j, inst, in->plan, c, ret_entry) : allow_event(j, inst, in->plan, ev))
			return true;
		json_array_foreach(any, k, x)
			if (c ? allow_comp(j, inst, x, c, ret_entry) : allow_event(j, inst, x, ev))
				return true;
	}
	return false;
}

bool verdict_allowed(const struct judge *j, const struct m_comp *c)
{
	const json_t *entry;

	return allowed(j, c, NULL, NULL) || allowed(j, c, NULL, &entry);
}

static void completion(struct judge *j, const struct m_comp *c)
{
	const struct m_post *p;
	const json_t *entry = NULL;
	struct finding *f;

	/* Flushes are the business of cause-first; what a recovery ran into is the recovery's. */
	if (c->success || c->taken || c->marker || c->twice || !strcmp(c->status, "WR_FLUSH_ERR") ||
	    !strcmp(judge_do(j, c->inst), "recover") || allowed(j, c, NULL, NULL))
		return;
	if (allowed(j, c, NULL, &entry)) {
		judge_deviation(j, entry, "unexpected", c->inst, c->rec, judge_qp(j, c->qp),
				"%s: %s on the %s queue instead of what is allowed: the profile's %s", judge_qp(j, c->qp),
				c->status, c->recv ? "receive" : "send", json_str(entry, "id"));
		return;
	}
	p = m_comp_post(j->m, c);
	f = judge_find(j, SEVERITY_FAIL, "unexpected", c->inst, c->rec, judge_qp(j, c->qp));
	if (!f)
		return;
	finding_set(f, f->expected, "no error completion that the scenario does not name");
	finding_set(f, f->seen, "%s", c->status);
	finding_set(f, f->text, "%s: unexpected %s on the %s queue%s%s%s%s", judge_qp(j, c->qp), c->status,
		    c->recv ? "receive" : "send",
		    p && *p->as   ? " of `"
		    : *c->traffic ? " of traffic `"
				  : "",
		    p && *p->as ? p->as : c->traffic, (p && *p->as) || *c->traffic ? "`" : "", ": no expect or allow names it");
}

bool verdict_cm_routine(const struct judge *j, const struct m_event *ev)
{
	const struct m_inst *in = &j->m->insts.v[ev->inst];
	const char *what = judge_do(j, ev->inst), *refused = json_str(in->plan, "refused");

	if (ev->cm && !strcmp(ev->event, "DISCONNECTED"))
		return !strcmp(what, "connect") || !strcmp(what, "recover") || !strcmp(what, "destroy") ||
		       judge_is_release(j, ev->inst);
	if (!ev->cm || strcmp(what, "connect") || !*ev->reason)
		return false;
	/* A connect that was refused otherwise than was asked for says so itself. */
	return !strcmp(in->outcome, "refused") || (refused && !strcmp(ev->reason, refused));
}

static bool unexpected(const struct judge *j, const struct m_event *ev)
{
	return !ev->taken && !m_event_explained(j->m, ev) && !verdict_cm_routine(j, ev) && !allowed(j, NULL, ev, NULL);
}

/* The same again in the same step: 0 when an earlier one has been reported for both. */
static unsigned times(const struct judge *j, const struct m_event *ev)
{
	unsigned n = 1;

	for (size_t i = 0; i < j->m->events.n; i++) {
		const struct m_event *o = &j->m->events.v[i];

		if (o == ev || o->inst != ev->inst || strcmp(o->obj, ev->obj) || strcmp(o->event, ev->event) || !unexpected(j, o))
			continue;
		if (o->rec < ev->rec)
			return 0;
		n++;
	}
	return n;
}

/* The step of an `allow` that names it and ran only when it had come; 0: none. */
static int allowed_too_late(const struct judge *j, const struct m_event *ev)
{
	for (size_t i = 0; i < j->m->allows.n; i++) {
		const struct m_inst *in = &j->m->insts.v[j->m->allows.v[i]];

		if (in->begin_rec > ev->rec && allow_event(j, j->m->allows.v[i], in->plan, ev))
			return in->step;
	}
	return 0;
}

static void event(struct judge *j, const struct m_event *ev)
{
	unsigned n = unexpected(j, ev) ? times(j, ev) : 0;
	const json_t *entry;
	struct finding *f;
	char again[24] = "";
	bool seen;
	int late;

	if (!n)
		return;
	entry = m_event_excuse(j->m, ev, &seen);
	if (entry && seen) {
		judge_deviation(j, entry, "unexpected", ev->inst, ev->rec, ev->obj,
				"%s: event %s, which nothing asks for: the profile's %s", ev->obj, ev->event,
				json_str(entry, "id"));
		return;
	}
	if (n > 1)
		snprintf(again, sizeof(again), " x %u", n);
	f = judge_find(j, SEVERITY_FAIL, "unexpected", ev->inst, ev->rec, ev->obj);
	if (!f)
		return;
	finding_set(f, f->expected, "no event that the scenario does not name");
	finding_set(f, f->seen, "%s%s", ev->event, again);
	late = allowed_too_late(j, ev);
	if (late)
		finding_set(f, f->text, "%s: unexpected event %s%s: the allow of step %d counts from where it stands, behind it",
			    ev->obj, ev->event, again, late);
	else
		finding_set(f, f->text, "%s: unexpected event %s%s: no expect or allow names it", ev->obj, ev->event, again);
	if (entry)
		finding_likely_entry(j, f, entry);
}

void verdict_check_unexpected(struct judge *j)
{
	for (size_t i = 0; i < j->m->comps.n; i++)
		completion(j, &j->m->comps.v[i]);
	for (size_t i = 0; i < j->m->events.n; i++)
		event(j, &j->m->events.v[i]);
}

static bool memory_was_replaced(const struct judge *j, const struct m_payload *r)
{
	for (size_t i = 0; i < j->m->faults.n; i++)
		if (!strcmp(j->m->faults.v[i].name, "memory_replaced") && j->m->faults.v[i].rec < r->rec)
			return true;
	return false;
}

/* `stale`, `torn` and `partial` in a scenario say that something else was written over it; `absent` excuses nothing. */
static bool overwritten_as_said(const struct judge *j, const struct m_payload *r)
{
	static const char *const said[] = { "stale", "torn", "partial" };
	const json_t *want;

	for (size_t i = 0; i < j->m->insts.n; i++) {
		const json_t *step = j->m->insts.v[i].plan;
		const char *of = json_str(step, "of");

		want = json_object_get(step, "payload");
		if (!want || !of || strcmp(of, r->as))
			continue;
		for (size_t k = 0; k < sizeof(said) / sizeof(said[0]); k++)
			if ((json_is_string(want) && !strcmp(json_string_value(want), said[k])) ||
			    json_array_has(json_is_array(want) ? want : json_object_get(want, "all"), said[k]))
				return true;
	}
	return false;
}

static const struct m_comp *comp_of_message(const struct judge *j, const struct m_payload *r, unsigned index)
{
	size_t inst = M_NONE;
	unsigned n = 0;

	for (size_t i = j->m->posts.n; i-- > 0 && inst == M_NONE;)
		if (!strcmp(j->m->posts.v[i].as, r->as) && j->m->posts.v[i].rec < r->rec)
			inst = j->m->posts.v[i].inst;
	for (size_t i = 0; inst != M_NONE && i < j->m->posts.n; i++) {
		const struct m_post *p = &j->m->posts.v[i];

		if (p->inst != inst || strcmp(p->as, r->as) || !p->accepted || p->queue == M_NONE || !j->m->queues.v[p->queue].send)
			continue;
		if (index >= n + p->accepted) {
			n += p->accepted;
			continue;
		}
		for (size_t k = 0; k < j->m->comps.n; k++) {
			const struct m_comp *c = &j->m->comps.v[k];

			if (c->queue == p->queue && c->life == p->life && c->seq == p->first + (index - n))
				return c;
		}
		return NULL;
	}
	return NULL;
}

/* The completion's own deviation, or an entry about what lies there, where it says that the rule does not hold. */
static const json_t *success_excused(const struct judge *j, const struct m_payload *r, const struct m_comp *c, char letter)
{
	const char *device = letter == 'a' ? "absent" : letter == 'p' ? "partial" : "stale";
	struct m_match what = { .qp = c->qp, .life = c->qp_life, .payload = "intact", .rec = r->rec };
	const json_t *entry;
	bool seen = false;

	if (c->deviation && m_profile_waives(c->deviation, "payload"))
		return c->deviation;
	for (size_t i = 0; i < j->m->posts.n; i++)
		if (!strcmp(j->m->posts.v[i].as, r->as) && j->m->posts.v[i].rec <= r->rec)
			what.post = &j->m->posts.v[i];
	entry = m_profile_excuse(j->m, &what, device, &seen);
	return entry && seen && m_profile_waives(entry, "payload") ? entry : NULL;
}

static void false_success(struct judge *j, const struct m_payload *r, const struct m_comp *c, char letter)
{
	static const struct {
		char letter;
		const char *name;
	} kinds[] = { { 'a', "nothing of it there" }, { 'p', "a part of it there" }, { 's', "something else in its place" } };
	const json_t *entry = success_excused(j, r, c, letter);
	const char *what = "not intact";
	struct finding *f;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].letter == letter)
			what = kinds[i].name;
	if (entry) {
		judge_deviation(j, entry, "payload", r->inst, r->rec, judge_qp(j, c->qp),
				"%s: SUCCESS for `%s`, with %s at %s: the profile's %s", judge_qp(j, c->qp), r->as, what, r->at,
				json_str(entry, "id"));
		return;
	}
	f = judge_find(j, SEVERITY_FAIL, "payload", r->inst, r->rec, judge_qp(j, c->qp));
	if (!f)
		return;
	finding_set(f, f->expected, "the data at %s, as the completion says SUCCESS", r->at);
	finding_set(f, f->seen, "%s", what);
	finding_set(f, f->text, "%s: SUCCESS for `%s`, but %s at %s (%u intact, %u absent, %u partial, %u stale of %u)",
		    judge_qp(j, c->qp), r->as, what, r->at, r->intact, r->absent, r->partial, r->stale, r->total);
}

/* It was on record, among so many of its queue's that had succeeded, when the look began: what came while it was looked for may
 * have landed behind the look. */
static bool ended_before(const struct judge *j, const struct m_payload *r, const struct m_comp *c)
{
	const struct m_post *p = NULL;
	unsigned earlier = 0;

	for (size_t i = 0; i < j->m->posts.n && !p; i++) {
		const struct m_post *q = &j->m->posts.v[i];

		if (q->queue == c->queue && q->life == c->life && c->seq >= q->first && c->seq - q->first < q->accepted)
			p = q;
	}
	/* A member of a list is looked at by itself, and counts alone. */
	for (size_t i = 0; p && r->index < 0 && i < j->m->comps.n; i++) {
		const struct m_comp *o = &j->m->comps.v[i];

		earlier += o->queue == c->queue && o->life == c->life && o->success && o->seq >= p->first && o->seq < c->seq;
	}
	return c->rec <= r->rec && earlier < r->succeeded;
}

static void payload(struct judge *j, const struct m_payload *r)
{
	size_t n = strlen(r->indices);

	/* An agent that is out of reach has shown nothing. */
	if (!(r->intact | r->absent | r->partial | r->stale | r->torn))
		return;
	if (r->intact == r->total || memory_was_replaced(j, r) || overwritten_as_said(j, r))
		return;
	for (unsigned i = 0; i < r->total; i++) {
		char letter = i < n ? r->indices[i] : r->absent ? 'a' : r->stale ? 's' : 'p';
		const struct m_comp *c;

		/* Without a letter for each only a whole that is alike can be told. */
		if (letter == 'i' || (i >= n && r->intact))
			continue;
		c = comp_of_message(j, r, i + (r->index > 0 ? (unsigned)r->index : 0));
		if (!c || !c->success || !ended_before(j, r, c) || c->qp == M_NONE || !qp_type_is_reliable(j->m->qps.v[c->qp].type))
			continue;
		false_success(j, r, c, letter);
		return;
	}
}

static void traffic_payload(struct judge *j, const struct m_kept *k)
{
	int64_t bad = json_int(k->r, "bad_payload", 0);
	const char *as = json_str(k->r, "as"), *from = json_str(k->r, "from"), *phase = json_str(k->r, "phase");
	struct finding *f;

	if (strcmp(k->kind, "traffic") || !bad || !phase || (strcmp(phase, "end") && strcmp(phase, "stop")))
		return;
	f = judge_find(j, SEVERITY_FAIL, "payload", k->inst, k->rec, from);
	if (!f)
		return;
	finding_set(f, f->expected, "every message intact");
	finding_set(f, f->seen, "%lld bad", (long long)bad);
	finding_set(f, f->text, "%s: traffic %s: expected %s, seen %s", from ? from : "", as ? as : "", f->expected, f->seen);
}

static bool is_looked_at_again(const struct judge *j, size_t i)
{
	const struct m_payload *r = &j->m->payloads.v[i];

	for (size_t k = i + 1; k < j->m->payloads.n; k++) {
		const struct m_payload *later = &j->m->payloads.v[k];

		if (!strcmp(later->as, r->as) && later->inst == r->inst && later->index == r->index && !strcmp(later->at, r->at))
			return true;
	}
	return false;
}

/* Looked at several times the last look counts, as what an ACK says may become visible at the peer later. What a READ brings is
 * there when it ends: each look counts. */
void verdict_check_payload(struct judge *j)
{
	for (size_t i = 0; i < j->m->payloads.n; i++)
		if (!strcmp(j->m->payloads.v[i].op, "READ") || !is_looked_at_again(j, i))
			payload(j, &j->m->payloads.v[i]);
	for (size_t i = 0; i < j->m->kept.n; i++)
		traffic_payload(j, &j->m->kept.v[i]);
}
