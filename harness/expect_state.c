/* SPDX-License-Identifier: MIT */
#include "expect_internal.h"

#include <errno.h>
#include <stdio.h>

#include "json.h"
#include "names.h"

/* `ERR`, {"all":[…]} or a list: any of them will do. */
static bool state_wanted(const json_t *value, const char *state)
{
	const json_t *all = json_is_array(value) ? value : json_object_get(value, "all");

	if (json_is_string(value))
		return !strcmp(json_string_value(value), state);
	return json_array_has(all, state);
}

static const char *first_wanted(const json_t *value)
{
	const json_t *all = json_is_array(value) ? value : json_object_get(value, "all");

	return json_is_string(value) ? json_string_value(value) : json_string_value(json_array_get(all, 0));
}

/* ERR and RESET stay until a step moves the QP on: waiting for anything else is in vain. */
static bool is_final(const char *state)
{
	return !strcmp(state, "ERR") || !strcmp(state, "unreachable");
}

static enum expect_state qp_state(struct eval *v, const json_t *want, size_t qp)
{
	const struct m_qp *q = &v->m->qps.v[qp];
	struct m_match what = { .qp = qp, .state = first_wanted(want), .rec = v->m->n_recs };

	if (!expect_fresh(v, q->state_rec))
		return EXPECT_PENDING;
	if (state_wanted(want, q->state)) {
		expect_held(v, q->state_since);
		if (v->take) {
			what.state = q->state;
			m_profile_specified(v->m, &what, v->step);
		}
		return EXPECT_MET;
	}
	if (what.state && expect_excused(v, &what, q->state)) {
		expect_held(v, q->state_since);
		return EXPECT_MET;
	}
	return is_final(q->state) ? EXPECT_BROKEN : EXPECT_PENDING;
}

static void add_end(struct eval *v, struct part *p, const struct ends *ends, size_t i, const char *seen, enum expect_state state)
{
	const struct m_end *end = &ends->e.v[i];
	const char *name = end->qp != M_NONE ? v->m->qps.v[end->qp].name : end->obj;

	text_add(&p->seen, "%s", p->seen.len ? ", " : "");
	if (ends->e.n > 1)
		text_add(&p->seen, "%s ", name);
	text_add(&p->seen, "%s", seen);
	if (state != EXPECT_MET && !p->at)
		p->at = name;
	p->state = expect_worse(p->state, state);
}

void expect_qp(struct eval *v, const json_t *x, struct part *p)
{
	const json_t *want = json_object_get(x, "qp");
	struct ends ends;

	names_text(want, &p->expected);
	if (expect_ends(v, x, &ends)) {
		v->m->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < ends.e.n; i++) {
		size_t qp = ends.e.v[i].qp;
		enum expect_state state = qp == M_NONE ? EXPECT_BROKEN : qp_state(v, want, qp);
		const char *seen = qp == M_NONE ? "no such QP" : *v->m->qps.v[qp].state ? v->m->qps.v[qp].state : "no state yet";

		if (qp != M_NONE && !expect_fresh(v, v->m->qps.v[qp].state_rec))
			seen = "not queried in this step";
		add_end(v, p, &ends, i, seen, state);
	}
	if (!ends.e.n)
		p->state = EXPECT_BROKEN;
	free(ends.e.v);
}

static bool same_value(const struct model *m, const json_t *want, const json_t *have)
{
	size_t i;
	const json_t *s;
	int64_t n = 0;

	if (json_is_array(have)) {
		const json_t *list = json_is_array(want) ? want : json_object_get(want, "all");

		if (json_array_size(list) != json_array_size(have))
			return false;
		json_array_foreach(list, i, s)
			if (!json_is_string(s) || !json_array_has(have, json_string_value(s)))
				return false;
		return true;
	}
	if (json_is_integer(have))
		return cmp_holds(m, want, json_integer_value(have), NULL) == 1;
	return json_equal((json_t *)want, (json_t *)have) ||
	       (!m_number(m, want, &n) && json_is_integer(have) && json_integer_value(have) == n);
}

static void value_text(const json_t *value, struct text *t)
{
	char *s = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;

	text_add(t, "%s", s ? s : "nothing");
	free(s);
}

/* As it was asked for, or as the profile has it. */
static bool attr_holds(struct eval *v, size_t qp, const char *key, const json_t *want, const json_t *have)
{
	struct m_match what = { .qp = qp, .attr = key, .rec = v->m->n_recs };
	char device[32];

	if (same_value(v->m, want, have)) {
		if (v->take)
			m_profile_specified(v->m, &what, v->step);
		return true;
	}
	if (!json_is_integer(have))
		return false;
	snprintf(device, sizeof(device), "%lld", (long long)json_integer_value(have));
	return expect_excused(v, &what, device);
}

void expect_attr(struct eval *v, const json_t *x, struct part *p)
{
	const json_t *attrs = json_object_get(x, "attr"), *want;
	const char *key;
	struct ends ends;

	if (expect_ends(v, x, &ends)) {
		v->m->err = -ENOMEM;
		return;
	}
	json_object_foreach((json_t *)attrs, key, want) {
		text_add(&p->expected, "%s%s ", p->expected.len ? ", " : "", key);
		cmp_text(v->m, want, &p->expected);
	}
	for (size_t i = 0; i < ends.e.n; i++) {
		const struct m_qp *q = ends.e.v[i].qp != M_NONE ? &v->m->qps.v[ends.e.v[i].qp] : NULL;
		enum expect_state state = q ? EXPECT_MET : EXPECT_BROKEN;
		struct text seen = { .len = 0 };

		if (q && !expect_fresh(v, q->state_rec))
			state = EXPECT_PENDING;
		json_object_foreach((json_t *)attrs, key, want) {
			const json_t *have = q ? json_object_get(q->queried, key) : NULL;

			if (!have && q)
				have = json_object_get(json_object_get(q->queried, "cap"), key);
			if (!have || !attr_holds(v, ends.e.v[i].qp, key, want, have))
				state = expect_worse(state, EXPECT_PENDING);
			text_add(&seen, "%s%s ", seen.len ? ", " : "", key);
			value_text(have, &seen);
		}
		add_end(v, p, &ends, i, seen.b, state);
	}
	if (!ends.e.n)
		p->state = EXPECT_BROKEN;
	free(ends.e.v);
}

static bool event_of_end(const struct eval *v, const struct m_event *ev, const struct m_end *end, bool cm)
{
	const struct m_life *l;

	if (ev->cm != cm || (ev->taken && ev->taken != v->inst + 1) || !m_event_at(v->m, ev, end))
		return false;
	if (end->qp == M_NONE || end->life)
		return true;
	l = m_life_of(v->m, v->m->qps.v[end->qp].send, v->m->qps.v[end->qp].life);
	return !l || ev->rec >= l->begin_rec;
}

/* The first such event at this end that no name before has used; M_NONE. */
static size_t find_event(const struct eval *v, const struct m_end *end, bool cm, const char *name, const bool *used)
{
	for (size_t i = 0; i < v->m->events.n; i++)
		if (!used[i] && !strcmp(v->m->events.v[i].event, name) && event_of_end(v, &v->m->events.v[i], end, cm))
			return i;
	return M_NONE;
}

static void take_event(struct eval *v, size_t i)
{
	if (v->take && !v->m->events.v[i].taken)
		v->m->events.v[i].taken = (v->inst == M_NONE ? 0 : v->inst) + 1;
}

/* The event did not come: does the profile have something else for it, or nothing at all? */
static enum expect_state missing_event(struct eval *v, const struct m_end *end, bool cm, const char *name, bool *used,
				       struct part *p)
{
	struct m_match what = { .qp = end->qp, .event = name, .rec = v->m->n_recs };
	const json_t *entry;
	bool seen;

	if (cm || end->qp == M_NONE) {
		p->late = true;
		return EXPECT_PENDING;
	}
	for (size_t i = 0; i < v->m->events.n; i++) {
		if (used[i] || !event_of_end(v, &v->m->events.v[i], end, cm))
			continue;
		entry = m_profile_excuse(v->m, &what, v->m->events.v[i].event, &seen);
		if (!entry)
			continue;
		expect_deviates(v, entry, seen);
		if (!seen)
			continue;
		used[i] = true;
		take_event(v, i);
		if (v->take)
			m_profile_used(v->m, entry, v->step);
		return EXPECT_MET;
	}
	entry = m_profile_excuse(v->m, &what, "none", &seen);
	if (entry && !seen)
		expect_deviates(v, entry, false);
	if (entry && seen && p->n_absent < sizeof(p->absent) / sizeof(p->absent[0]))
		p->absent[p->n_absent++] = entry;
	else
		p->late = true;
	return EXPECT_PENDING;
}

/* What `none` does not bear. An event that a step has asked for needs no word, but where the file says that it does not come. */
static bool is_against_none(const struct eval *v, const struct m_event *ev, const struct m_end *end, bool cm)
{
	return event_of_end(v, ev, end, cm) && (!m_event_explained(v->m, ev) || m_event_asked_for(v->m, ev));
}

static void events_seen(const struct eval *v, const struct m_end *end, bool cm, struct text *t)
{
	bool any = false;

	for (size_t i = 0; i < v->m->events.n; i++)
		if (is_against_none(v, &v->m->events.v[i], end, cm)) {
			text_add(t, "%s%s", any ? ", " : "", v->m->events.v[i].event);
			any = true;
		}
	if (!any)
		text_add(t, "no event");
}

static enum expect_state eval_no_event(struct eval *v, const struct m_end *end, bool cm)
{
	for (size_t i = 0; i < v->m->events.n; i++) {
		const struct m_event *ev = &v->m->events.v[i];
		const json_t *entry;
		bool seen;

		if (!is_against_none(v, ev, end, cm))
			continue;
		entry = m_event_excuse(v->m, ev, &seen);
		if (entry)
			expect_deviates(v, entry, seen);
		if (!entry || !seen)
			return EXPECT_BROKEN;
		if (v->take)
			m_profile_used(v->m, entry, v->step);
	}
	return EXPECT_MET;
}

static enum expect_state eval_events(struct eval *v, const json_t *want, const struct m_end *end, bool cm, bool *used,
				     struct part *p)
{
	const json_t *all = json_is_array(want) ? want : json_object_get(want, "all"), *s;
	enum expect_state state = EXPECT_MET;
	struct m_match what = { .qp = end->qp, .rec = v->m->n_recs };
	size_t i, at;

	if (json_bool(want, "none", false))
		return eval_no_event(v, end, cm);
	json_array_foreach(all, i, s) {
		what.event = json_string_value(s);
		if (!what.event)
			continue;
		at = find_event(v, end, cm, what.event, used);
		if (at == M_NONE) {
			state = expect_worse(state, missing_event(v, end, cm, what.event, used, p));
			continue;
		}
		used[at] = true;
		expect_held(v, v->m->events.v[at].t);
		take_event(v, at);
		if (v->take && end->qp != M_NONE)
			m_profile_specified(v->m, &what, v->step);
	}
	return state;
}

static void eval_event_part(struct eval *v, const json_t *x, bool cm, struct part *p)
{
	const json_t *want = json_object_get(x, cm ? "cm" : "event");
	bool *used = calloc(v->m->events.n + 1, sizeof(*used));
	struct ends ends;

	names_text(want, &p->expected);
	if (!used || expect_ends(v, x, &ends)) {
		v->m->err = -ENOMEM;
		free(used);
		return;
	}
	for (size_t i = 0; i < ends.e.n; i++) {
		enum expect_state state = eval_events(v, want, &ends.e.v[i], cm, used, p);
		struct text seen = { .len = 0 };

		events_seen(v, &ends.e.v[i], cm, &seen);
		add_end(v, p, &ends, i, seen.b, state);
	}
	if (!ends.e.n)
		p->state = EXPECT_BROKEN;
	free(ends.e.v);
	free(used);
}

void expect_event(struct eval *v, const json_t *x, struct part *p)
{
	eval_event_part(v, x, false, p);
}

void expect_cm(struct eval *v, const json_t *x, struct part *p)
{
	eval_event_part(v, x, true, p);
}
