/* SPDX-License-Identifier: MIT */
#include "observe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "expect_internal.h"
#include "json.h"
#include "units.h"

/* An event that the profile says never comes is waited for this long after everything else holds. */
#define ABSENT_WAIT_NS (200 * NSEC_PER_MSEC)

void text_add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->len >= sizeof(t->b) - 1)
		return;
	va_start(ap, fmt);
	n = vsnprintf(t->b + t->len, sizeof(t->b) - t->len, fmt, ap);
	va_end(ap);
	t->len += n > 0 ? (size_t)n : 0;
	if (t->len >= sizeof(t->b))
		t->len = sizeof(t->b) - 1;
}

enum expect_state expect_worse(enum expect_state a, enum expect_state b)
{
	if (a == EXPECT_BROKEN || b == EXPECT_BROKEN)
		return EXPECT_BROKEN;
	return a == EXPECT_PENDING || b == EXPECT_PENDING ? EXPECT_PENDING : EXPECT_MET;
}

void expect_held(struct eval *v, uint64_t t)
{
	if (t > v->held_since)
		v->held_since = t;
}

bool expect_fresh(const struct eval *v, size_t rec)
{
	return rec != M_NONE && (v->begin_rec == M_NONE || rec > v->begin_rec);
}

void expect_deviates(struct eval *v, const json_t *entry, bool seen)
{
	const char *id = json_str(entry, "id");
	json_t *list = seen ? v->deviations : v->likely;

	if (id && !json_array_has(list, id))
		json_array_append_new(list, json_string(id));
}

bool expect_excused(struct eval *v, const struct m_match *what, const char *device)
{
	bool seen = false;
	const json_t *entry = m_profile_excuse(v->m, what, device, &seen);

	if (!entry)
		return false;
	expect_deviates(v, entry, seen);
	if (seen && v->take)
		m_profile_used(v->m, entry, v->step);
	return seen;
}

size_t expect_post_inst(const struct model *m, const char *as)
{
	for (size_t i = m->posts.n; i-- > 0;)
		if (!strcmp(m->posts.v[i].as, as))
			return m->posts.v[i].inst;
	return M_NONE;
}

static int end_add(struct ends *ends, struct m_end end)
{
	struct m_end *e;

	for (size_t i = 0; i < ends->e.n; i++)
		if (ends->e.v[i].qp == end.qp && ends->e.v[i].side == end.side && end.qp != M_NONE && ends->e.v[i].life == end.life)
			return 0;
	e = VEC_PUSH(&ends->e);
	if (!e)
		return -ENOMEM;
	*e = end;
	return 0;
}

int expect_ends(const struct eval *v, const json_t *x, struct ends *ret)
{
	const json_t *at = json_object_get(x, "at"), *s;
	const char *of = json_str(x, "of");
	const struct model *m = v->m;
	size_t i, inst;
	int rc = 0;

	*ret = (struct ends){ 0 };
	if (json_is_string(at))
		return end_add(ret, m_end_of(m, json_string_value(at)));
	json_array_foreach(at, i, s)
		if (!rc && json_is_string(s))
			rc = end_add(ret, m_end_of(m, json_string_value(s)));
	if (rc || json_array_size(at) || !of)
		return rc;
	inst = expect_post_inst(m, of);
	for (i = 0; !rc && i < m->posts.n; i++) {
		const struct m_post *p = &m->posts.v[i];
		struct m_end end = { .obj = p->obj, .qp = p->queue != M_NONE ? m->queues.v[p->queue].qp : M_NONE };

		if (p->inst == inst && !strcmp(p->as, of))
			rc = end_add(ret, end);
	}
	return rc;
}

void names_text(const json_t *value, struct text *t)
{
	const json_t *all = json_is_array(value) ? value : json_object_get(value, "all"), *s;
	size_t i;

	if (json_bool(value, "none", false))
		text_add(t, "none");
	else if (json_is_string(value))
		text_add(t, "%s", json_string_value(value));
	json_array_foreach(all, i, s)
		text_add(t, "%s%s", i ? ", " : "", json_is_string(s) ? json_string_value(s) : "?");
}

const struct part_ops expect_parts[] = {
	{ "wc", expect_wc },           { "recv_wc", expect_recv_wc },   { "qp", expect_qp },
	{ "attr", expect_attr },       { "event", expect_event },       { "cm", expect_cm },
	{ "payload", expect_payload }, { "counter", expect_counter },   { "ledger", expect_ledger },
	{ "hits", expect_hits },       { "errors", expect_traffic },    { "gap", expect_traffic },
	{ "p50", expect_traffic },     { "p99", expect_traffic },       { "phase", expect_phase },
	{ "packets", expect_packets }, { "grh", expect_grh },           { "delivered", expect_traffic },
	{ "doubled", expect_traffic }, { "reordered", expect_traffic }, { "lost", expect_traffic },
};
const size_t expect_parts_n = sizeof(expect_parts) / sizeof(expect_parts[0]);

struct sum {
	enum expect_state state;
	bool only_absent; /* pending, and only for what never comes */
	unsigned parts;
	struct text expected, seen; /* of what does not hold, else of all */
	struct text good_expected, good_seen;
	const char *at;
	const json_t *entries[16];
	size_t n_entries;
};

static void sum_add(struct sum *s, const char *key, const struct part *p)
{
	bool good = p->state == EXPECT_MET;
	struct text *expected = good ? &s->good_expected : &s->expected, *seen = good ? &s->good_seen : &s->seen;

	text_add(expected, "%s%s: %s", expected->len ? ", " : "", key, p->expected.b);
	text_add(seen, "%s%s", seen->len ? ", " : "", p->seen.b);
	if (!good && !s->at)
		s->at = p->at;
	if (p->state == EXPECT_PENDING && (!p->n_absent || p->late))
		s->only_absent = false;
	for (size_t i = 0; i < p->n_absent && s->n_entries < sizeof(s->entries) / sizeof(s->entries[0]); i++)
		s->entries[s->n_entries++] = p->absent[i];
	s->state = expect_worse(s->state, p->state);
	s->parts++;
}

/* From when on what the profile says never comes is taken to be missing: a `for` may be shorter than the usual wait. */
static uint64_t absent_at(const struct eval *v)
{
	return v->for_ns && v->for_ns < ABSENT_WAIT_NS ? v->begin_t + v->for_ns : v->held_since + ABSENT_WAIT_NS;
}

static void eval_map(struct eval *v, const json_t *x, struct sum *s)
{
	bool traffic = false;

	for (size_t i = 0; i < expect_parts_n; i++) {
		struct part p = { .state = EXPECT_MET };

		if (!json_object_get(x, expect_parts[i].key))
			continue;
		/* The statistics of a traffic are one part. */
		if (expect_parts[i].eval == expect_traffic && traffic)
			continue;
		traffic |= expect_parts[i].eval == expect_traffic;
		expect_parts[i].eval(v, x, &p);
		sum_add(s, expect_parts[i].key, &p);
	}
	if (!s->parts) {
		s->state = EXPECT_BROKEN;
		text_add(&s->seen, "nothing that could be checked");
	}
	if (s->state == EXPECT_PENDING && s->only_absent && v->now >= absent_at(v)) {
		s->state = EXPECT_MET;
		for (size_t i = 0; i < s->n_entries; i++) {
			expect_deviates(v, s->entries[i], true);
			if (v->take)
				m_profile_used(v->m, s->entries[i], v->step);
		}
	}
}

static struct eval eval_begin(struct model *m, const json_t *step, uint64_t now, bool take)
{
	struct eval v = { .m = m,
			  .step = (int)json_int(step, "n", 0),
			  .now = now,
			  .take = take,
			  .begin_rec = M_NONE,
			  .for_ns = json_u64(step, "for_ns", json_u64(step, "for", 0)),
			  .deadline_ns = json_u64(step, "deadline_ns", 0),
			  .deviations = json_array(),
			  .likely = json_array() };

	v.inst = m_inst_latest(m, v.step);
	if (v.inst != M_NONE && m->insts.v[v.inst].begin_rec != M_NONE) {
		v.begin_t = m->insts.v[v.inst].begin_t;
		v.begin_rec = m->insts.v[v.inst].begin_rec;
	}
	v.held_since = v.begin_t;
	return v;
}

static void eval_end(struct eval *v)
{
	json_decref(v->deviations);
	json_decref(v->likely);
}

static json_t *why_of(const struct eval *v, const struct sum *s)
{
	bool good = s->state == EXPECT_MET && !s->expected.len;

	return json_pack("{s:s, s:s, s:s, s:O, s:O}", "expected", good ? s->good_expected.b : s->expected.b, "seen",
			 good ? s->good_seen.b : s->seen.b, "at", s->at ? s->at : "", "deviations", v->deviations, "likely",
			 v->likely);
}

static enum expect_state eval_one(struct model *m, const json_t *step, const json_t *x, uint64_t now, bool take, json_t **ret_why)
{
	struct eval v = eval_begin(m, step, now, take);
	struct sum s = { .state = EXPECT_MET, .only_absent = true };
	enum expect_state state;

	eval_map(&v, x, &s);
	state = s.state;
	if (ret_why)
		*ret_why = why_of(&v, &s);
	eval_end(&v);
	return state;
}

static const char *const state_rank[NUM_EXPECT_STATES] = { [EXPECT_MET] = "2", [EXPECT_PENDING] = "1", [EXPECT_BROKEN] = "0" };

/* Of several ways the best; *ret_best is its index. */
static enum expect_state eval_any(struct model *m, const json_t *step, const json_t *any, uint64_t now, size_t *ret_best,
				  json_t **ret_why)
{
	enum expect_state best = EXPECT_INVALID, state;
	struct text expected = { .len = 0 }, seen = { .len = 0 };
	json_t *why, *good = NULL;
	const json_t *x;
	size_t i;

	json_array_foreach(any, i, x) {
		state = eval_one(m, step, x, now, false, &why);
		text_add(&expected, "%s%s", i ? ", or " : "", json_str(why, "expected"));
		text_add(&seen, "%s%s", i ? "; " : "", json_str(why, "seen"));
		if (best == EXPECT_INVALID || *state_rank[state] > *state_rank[best]) {
			best = state;
			*ret_best = i;
			json_decref(good);
			good = json_incref(why);
		}
		json_decref(why);
	}
	if (ret_why && best == EXPECT_MET)
		*ret_why = json_incref(good);
	else if (ret_why)
		*ret_why = json_pack("{s:s, s:s, s:s, s:[], s:[]}", "expected", expected.b, "seen", seen.b, "at", "", "deviations",
				     "likely");
	json_decref(good);
	return best == EXPECT_INVALID ? EXPECT_BROKEN : best;
}

enum expect_state model_expect(struct model *m, const json_t *step, uint64_t now_ns, json_t **ret_why)
{
	const json_t *any = json_object_get(step, "any");
	size_t best;

	if (json_is_array(any))
		return eval_any(m, step, any, now_ns, &best, ret_why);
	return eval_one(m, step, step, now_ns, false, ret_why);
}

void model_settle(struct model *m, const json_t *step)
{
	const json_t *any = json_object_get(step, "any"), *x = step;
	size_t best = 0;

	if (json_is_array(any)) {
		eval_any(m, step, any, m->last_t, &best, NULL);
		x = json_array_get(any, best);
	}
	if (x)
		eval_one(m, step, x, m->last_t, true, NULL);
}

static void needs_of(const json_t *x, struct model_needs *n)
{
	n->state |= json_object_get(x, "qp") || json_object_get(x, "attr");
	n->counter |= json_object_get(x, "counter") != NULL;
	n->payload |= json_object_get(x, "payload") != NULL;
	n->packets |= json_object_get(x, "packets") != NULL;
	n->hits |= json_object_get(x, "hits") != NULL;
}

struct model_needs model_expect_needs(const json_t *step)
{
	struct model_needs n = { 0 };
	const json_t *x;
	size_t i;

	needs_of(step, &n);
	json_array_foreach(json_object_get(step, "any"), i, x)
		needs_of(x, &n);
	return n;
}
