/* SPDX-License-Identifier: MIT */
#include "expect_internal.h"

#include <errno.h>
#include <stdio.h>

#include "cmp.h"
#include "json.h"
#include "phases.h"
#include "units.h"

int cmp_holds(const struct model *m, const json_t *cmp, int64_t value, const int64_t *before)
{
	const char *op = json_str(cmp, "op");
	int64_t want, min = INT64_MIN, max = INT64_MAX;

	if (!op)
		return m_number(m, cmp, &want) ? -ENOENT : value == want;
	if (!strcmp(op, "range")) {
		if (json_object_get(cmp, "min") && m_number(m, json_object_get(cmp, "min"), &min))
			return -ENOENT;
		if (json_object_get(cmp, "max") && m_number(m, json_object_get(cmp, "max"), &max))
			return -ENOENT;
		return value >= min && value <= max;
	}
	if (m_number(m, json_object_get(cmp, "value"), &want))
		return -ENOENT;
	if (json_bool(cmp, "before", false)) {
		if (!before)
			return -ENOENT;
		want *= *before;
	}
	return cmp_op(op, value, want);
}

bool cmp_exceeded(const struct model *m, const json_t *cmp, int64_t value)
{
	const char *op = json_str(cmp, "op");
	const json_t *bound = op && !strcmp(op, "range") ? json_object_get(cmp, "max") : op ? json_object_get(cmp, "value") : cmp;
	int64_t max;

	if (op && (*op == '>' || *op == '!'))
		return false;
	if (!bound || json_bool(cmp, "before", false) || m_number(m, bound, &max))
		return false;
	return op && !strcmp(op, "<") ? value >= max : value > max;
}

static void number_text(const struct model *m, const json_t *value, bool ns, struct text *t)
{
	const char *ref = json_str(value, "ref");
	char buf[64];
	int64_t n;

	if (m_number(m, value, &n))
		text_add(t, "%s", ref ? ref : "?");
	else if (ns)
		text_add(t, "%s", units_format_ns((uint64_t)n, buf, sizeof(buf)));
	else
		text_add(t, "%lld", (long long)n);
}

void cmp_text(const struct model *m, const json_t *cmp, struct text *t)
{
	const char *op = json_str(cmp, "op"), *unit = json_str(cmp, "unit");
	bool ns = unit && !strcmp(unit, "ns");

	if (json_is_string(cmp)) {
		text_add(t, "%s", json_string_value(cmp));
	} else if (json_is_array(cmp)) {
		names_text(cmp, t);
	} else if (!op) {
		number_text(m, cmp, false, t);
	} else if (!strcmp(op, "range")) {
		if (json_object_get(cmp, "min"))
			number_text(m, json_object_get(cmp, "min"), ns, t);
		text_add(t, "..");
		if (json_object_get(cmp, "max"))
			number_text(m, json_object_get(cmp, "max"), ns, t);
	} else {
		if (strcmp(op, "=="))
			text_add(t, "%s ", op);
		number_text(m, json_object_get(cmp, "value"), ns, t);
		if (json_bool(cmp, "before", false))
			text_add(t, " x before");
	}
}

static void number_is(struct eval *v, struct part *p, const char *name, const json_t *cmp, int64_t value, bool known, bool final)
{
	int holds = known ? cmp_holds(v->m, cmp, value, NULL) : -ENOENT;

	text_add(&p->seen, "%s%s ", p->seen.len ? ", " : "", name);
	if (known)
		text_add(&p->seen, "%lld", (long long)value);
	else
		text_add(&p->seen, "unknown");
	if (holds == 1)
		return;
	if (known && (final || cmp_exceeded(v->m, cmp, value)))
		p->state = EXPECT_BROKEN;
	else
		p->state = expect_worse(p->state, EXPECT_PENDING);
}

static void wanted_text(struct eval *v, const json_t *wanted, struct part *p)
{
	const json_t *cmp;
	const char *key;

	json_object_foreach((json_t *)wanted, key, cmp) {
		text_add(&p->expected, "%s%s ", p->expected.len ? ", " : "", key);
		cmp_text(v->m, cmp, &p->expected);
	}
}

static const char *device_of(struct model *m, const struct m_end *end)
{
	char name[256];

	if (end->qp == M_NONE)
		return end->obj;
	snprintf(name, sizeof(name), "dev.%s", m->qps.v[end->qp].agent);
	return m_intern(m, name);
}

void expect_counter(struct eval *v, const json_t *x, struct part *p)
{
	const json_t *wanted = json_object_get(x, "counter"), *cmp;
	const char *key;
	struct ends ends;

	wanted_text(v, wanted, p);
	if (expect_ends(v, x, &ends)) {
		v->m->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < ends.e.n; i++) {
		const char *dev = device_of(v->m, &ends.e.v[i]);
		const json_t *base = json_object_get(v->m->counter_base, dev), *now = json_object_get(v->m->counter_now, dev);
		size_t rec = (size_t)json_int(v->m->counter_rec, dev, -1);
		enum expect_state before = p->state;

		json_object_foreach((json_t *)wanted, key, cmp) {
			bool known = json_object_get(now, key) && expect_fresh(v, rec);

			number_is(v, p, key, cmp, json_int(now, key, 0) - json_int(base, key, 0), known, false);
		}
		if (p->state != EXPECT_MET && p->state != before)
			p->at = ends.e.v[i].qp != M_NONE ? v->m->qps.v[ends.e.v[i].qp].name : dev;
	}
	if (!ends.e.n)
		p->state = EXPECT_BROKEN;
	free(ends.e.v);
}

static const struct m_life *life_of_end(const struct model *m, const struct m_end *end, size_t queue)
{
	return end->life ? m_life_of(m, queue, end->life) : m_queue_life(m, queue);
}

/* Over all lives unless one is named: what was discarded lies in a former one. */
static struct m_account account_of_end(const struct model *m, const struct m_end *end, size_t queue)
{
	const struct m_queue *q = &m->queues.v[queue];
	struct m_account sum = { 0 }, a;

	for (size_t i = 0; i < q->lives.n; i++) {
		if (end->life && q->lives.v[i].life != end->life)
			continue;
		a = m_account_life(m, queue, &q->lives.v[i], true);
		sum.accepted += a.accepted;
		sum.completed += a.completed;
		sum.retired += a.retired;
		sum.discarded += a.discarded;
		sum.in_srq += a.in_srq;
		sum.in_flight += a.in_flight;
	}
	return sum;
}

static void ledger_open(struct eval *v, struct part *p, const char *key, const struct m_end *end, size_t queue, const char *want)
{
	const struct m_life *l = life_of_end(v->m, end, queue);
	bool open = l && l->open;

	for (size_t i = 0; !end->life && i < v->m->queues.v[queue].lives.n; i++)
		open |= v->m->queues.v[queue].lives.v[i].open;
	text_add(&p->seen, "%s%s %s", p->seen.len ? ", " : "", key, open ? "open" : "closed");
	if (open != !strcmp(want, "open"))
		p->state = expect_worse(p->state, EXPECT_PENDING);
}

static void ledger_key(struct eval *v, struct part *p, const struct m_end *end, const char *key, const json_t *cmp)
{
	static const struct {
		const char *key;
		size_t offset;
	} fields[] = {
		{ "in_flight", offsetof(struct m_account, in_flight) }, { "discarded", offsetof(struct m_account, discarded) },
		{ "completed", offsetof(struct m_account, completed) }, { "retired", offsetof(struct m_account, retired) },
		{ "accepted", offsetof(struct m_account, accepted) },   { "posted", offsetof(struct m_account, accepted) },
		{ "in_srq", offsetof(struct m_account, in_srq) },
	};
	const struct m_qp *q = &v->m->qps.v[end->qp];
	struct m_account a = account_of_end(v->m, end, end->side == M_SIDE_RECV ? q->recv : q->send);

	if ((!strcmp(key, "recv") || !strcmp(key, "send")) && json_is_string(cmp)) {
		ledger_open(v, p, key, end, !strcmp(key, "recv") ? q->recv : q->send, json_string_value(cmp));
		return;
	}
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		uint32_t value;

		if (strcmp(fields[i].key, key))
			continue;
		memcpy(&value, (const char *)&a + fields[i].offset, sizeof(value));
		number_is(v, p, key, cmp, value, true, false);
		/* in_flight falls: too many now may be none later. */
		if (!strcmp(key, "in_flight") && p->state == EXPECT_BROKEN)
			p->state = EXPECT_PENDING;
		return;
	}
	p->state = EXPECT_BROKEN;
	text_add(&p->seen, "no account named %s", key);
}

void expect_ledger(struct eval *v, const json_t *x, struct part *p)
{
	const json_t *wanted = json_object_get(x, "ledger"), *cmp;
	const char *key;
	struct ends ends;

	wanted_text(v, wanted, p);
	if (expect_ends(v, x, &ends)) {
		v->m->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < ends.e.n; i++) {
		size_t srq = ends.e.v[i].qp == M_NONE ? m_queue_find(v->m, ends.e.v[i].obj) : M_NONE;
		enum expect_state before = p->state;

		if (srq != M_NONE && json_object_get(wanted, "in_srq"))
			number_is(v, p, "in_srq", json_object_get(wanted, "in_srq"), account_of_end(v->m, &ends.e.v[i], srq).in_srq,
				  true, false);
		else if (ends.e.v[i].qp == M_NONE)
			p->state = EXPECT_BROKEN;
		else
			json_object_foreach((json_t *)wanted, key, cmp)
				ledger_key(v, p, &ends.e.v[i], key, cmp);
		if (p->state != before && !p->at)
			p->at = ends.e.v[i].qp != M_NONE ? v->m->qps.v[ends.e.v[i].qp].name : ends.e.v[i].obj;
	}
	if (!ends.e.n)
		p->state = EXPECT_BROKEN;
	free(ends.e.v);
}

void expect_hits(struct eval *v, const json_t *x, struct part *p)
{
	static const char *const names[] = { "hits", "dropped", "drops", "packets", "count" };
	const json_t *cmp = json_object_get(x, "hits");
	const char *as = json_str(x, "fault") ? json_str(x, "fault") : json_str(x, "of");
	const struct m_fault *f = NULL;
	int64_t value = 0;
	bool known = false;

	cmp_text(v->m, cmp, &p->expected);
	for (size_t i = v->m->faults.n; as && !f && i-- > 0;)
		if (!strcmp(v->m->faults.v[i].as, as))
			f = &v->m->faults.v[i];
	for (size_t i = 0; f && !known && i < sizeof(names) / sizeof(names[0]); i++) {
		known = json_is_integer(json_object_get(f->evidence, names[i]));
		value = json_int(f->evidence, names[i], 0);
	}
	number_is(v, p, "hits", cmp, value, known, false);
}

struct statistic {
	const char *key, *field;
	bool ns;
};
static const struct statistic statistics[] = {
	{ "errors", "errors", false },       { "gap", "gap_max_ns", true },      { "p50", "p50_ns", true },
	{ "p99", "p99_ns", true },           { "delivered", "received", false }, { "doubled", "doubled", false },
	{ "reordered", "reordered", false }, { "lost", "lost", false },
};

/* The newest statistics of a traffic in a phase, of one direction; phases: the accepted names, NULL-terminated. */
static const struct statistic *const first_growing = &statistics[4];

static const json_t *traffic_record(const struct model *m, const char *as, size_t from, const char *const *phases)
{
	for (size_t i = m->qps.v[from].traffics.n; i-- > 0;) {
		const json_t *r = m->kept.v[m->qps.v[from].traffics.v[i]].r;
		const char *name = json_str(r, "as"), *phase = json_str(r, "phase");

		if (!name || !phase || strcmp(name, as))
			continue;
		for (const char *const *want = phases; *want; want++)
			if (!strcmp(*want, phase))
				return r;
	}
	return NULL;
}

/* Of what the peer has sent so much has not come. */
static int64_t lost_towards(const struct model *m, const char *as, size_t to, const json_t *here, const char *const *phases)
{
	const char *peer = m->qps.v[to].peer;
	size_t from = peer ? m_qp_find(m, peer, strlen(peer)) : M_NONE;
	const json_t *there = from == M_NONE ? NULL : traffic_record(m, as, from, phases);
	int64_t lost = json_int(there, "sent", 0) - json_int(here, "received", 0);

	return lost > 0 ? lost : 0;
}

/* What a lossy traffic counts only grows: too little of it may still become enough. */
static enum expect_state growing(const struct eval *v, const struct statistic *st, const json_t *cmp, int64_t value,
				 const json_t *now)
{
	const char *phase = json_str(now, "phase");

	return st >= first_growing && phase && !strcmp(phase, "now") && !cmp_exceeded(v->m, cmp, value) ? EXPECT_PENDING
													: EXPECT_BROKEN;
}

static void traffic_direction(struct eval *v, const json_t *x, const char *as, size_t qp, const char *const *phases,
			      const char *const *before_phases, struct part *p)
{
	const char *from = v->m->qps.v[qp].name;
	const json_t *now = traffic_record(v->m, as, qp, phases), *before = traffic_record(v->m, as, qp, before_phases);
	char buf[64];

	for (size_t i = 0; i < sizeof(statistics) / sizeof(statistics[0]); i++) {
		const struct statistic *st = &statistics[i];
		const json_t *cmp = json_object_get(x, st->key);
		int64_t value = json_int(now, st->field, 0), base = json_int(before, st->field, 0);

		if (!cmp)
			continue;
		text_add(&p->seen, "%s%s %s ", p->seen.len ? ", " : "", from, st->key);
		if (now && !strcmp(st->key, "lost"))
			value = lost_towards(v->m, as, qp, now, phases);
		else if (!now || !json_object_get(now, st->field)) {
			text_add(&p->seen, "unknown");
			p->state = expect_worse(p->state, EXPECT_PENDING);
			continue;
		}
		if (st->ns)
			text_add(&p->seen, "%s", units_format_ns((uint64_t)value, buf, sizeof(buf)));
		else
			text_add(&p->seen, "%lld", (long long)value);
		if (cmp_holds(v->m, cmp, value, before ? &base : NULL) != 1)
			p->state = expect_worse(p->state, growing(v, st, cmp, value, now));
	}
}

static void take_errors(struct eval *v, const char *as)
{
	for (size_t i = 0; v->take && i < v->m->comps.n; i++)
		if (!strcmp(v->m->comps.v[i].traffic, as) && !v->m->comps.v[i].success && !v->m->comps.v[i].taken)
			v->m->comps.v[i].taken = (v->inst == M_NONE ? 0 : v->inst) + 1;
}

void expect_traffic(struct eval *v, const json_t *x, struct part *p)
{
	const char *as = json_str(x, "of"), *during = json_str(x, "during");
	char phase[128], before[128];
	const char *phases[] = { "end", "stop", "now", NULL }, *before_phases[] = { "before", before, NULL };
	bool any = false;

	snprintf(phase, sizeof(phase), "during:%s", during ? during : "");
	snprintf(before, sizeof(before), "before:%s", during ? during : "");
	if (during) {
		phases[0] = phase;
		phases[1] = NULL;
	}
	for (size_t i = 0; i < sizeof(statistics) / sizeof(statistics[0]); i++)
		if (json_object_get(x, statistics[i].key)) {
			text_add(&p->expected, "%s%s ", p->expected.len ? ", " : "", statistics[i].key);
			cmp_text(v->m, json_object_get(x, statistics[i].key), &p->expected);
		}
	for (size_t i = 0; as && i < v->m->qps.n; i++) {
		const char *all[] = { "start", "end", "stop", "now", phase, before, "before", NULL };

		if (!traffic_record(v->m, as, i, all))
			continue;
		traffic_direction(v, x, as, i, phases, before_phases, p);
		any = true;
	}
	if (!any) {
		p->state = EXPECT_PENDING;
		text_add(&p->seen, "no statistics of %s", as ? as : "a traffic");
	}
	if (as)
		take_errors(v, as);
}

/* Where the clocks compare too coarsely for the bound it is not broken: the verdict says so then. */
static bool phase_holds(const struct model *m, const json_t *cmp, uint64_t ns, uint64_t bound)
{
	return cmp_holds(m, cmp, (int64_t)(ns > bound ? ns - bound : 0), NULL) == 1 ||
	       cmp_holds(m, cmp, (int64_t)(ns + bound), NULL) == 1;
}

void expect_phase(struct eval *v, const json_t *x, struct part *p)
{
	const json_t *wanted = json_object_get(x, "phase"), *cmp;
	size_t inst = phases_before(v->m, json_str(x, "of"), v->inst);
	struct phases of;
	const char *key;
	char buf[64];

	wanted_text(v, wanted, p);
	if (inst == M_NONE || !phases_of(v->m, inst, &of)) {
		p->state = EXPECT_PENDING;
		text_add(&p->seen, "no recovery");
		return;
	}
	p->at = m_intern(v->m, of.pair);
	json_object_foreach((json_t *)wanted, key, cmp) {
		uint64_t ns = 0, bound = 0;
		const char *never = "was not reached";
		bool reached = false;

		for (int k = 0; k < NUM_PHASES; k++) {
			if (strcmp(phase_names[k], key))
				continue;
			reached = phases_took(&of, (enum phase)k, &ns, &bound);
			never = k <= PHASE_ERROR ? "did not occur" : never;
		}
		text_add(&p->seen, "%s%s %s", p->seen.len ? ", " : "", key,
			 reached ? units_format_ns(ns, buf, sizeof(buf)) : never);
		if (!reached)
			p->state = expect_worse(p->state, EXPECT_PENDING);
		else if (!phase_holds(v->m, cmp, ns, bound))
			p->state = EXPECT_BROKEN;
	}
}
