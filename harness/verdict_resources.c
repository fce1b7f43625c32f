/* SPDX-License-Identifier: MIT */
/* Of a repeat whose resources are to be flat: what its agents and devices held after the warm-up and in the end. */
#include "verdict_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "json.h"
#include "resources.h"

#define LOOKS_MAX (RESOURCES_LOOKS_MAX + 1)

/* The looks of one repeat, in order. */
struct looks {
	const struct m_kept *first, *last;
	size_t n;
	int64_t rounds[LOOKS_MAX];
	const json_t *held[LOOKS_MAX];
};

static bool is_flat_repeat(const struct judge *j, size_t inst)
{
	return !strcmp(judge_do(j, inst), "repeat") && json_str(j->m->insts.v[inst].plan, "resources");
}

static struct looks looks_of(const struct judge *j, size_t inst)
{
	struct looks l = { .n = 0 };

	for (size_t i = 0; i < j->m->kept.n && l.n < LOOKS_MAX; i++) {
		const struct m_kept *k = &j->m->kept.v[i];

		if (strcmp(k->kind, "resources") || k->inst != inst)
			continue;
		l.first = l.first ? l.first : k;
		l.last = k;
		l.rounds[l.n] = json_int(k->r, "round", 0);
		l.held[l.n++] = json_object_get(k->r, "held");
	}
	return l;
}

/* false: it is not known at each look. */
static bool trend_of(const struct looks *l, const char *of, const char *what, struct resources_trend *ret)
{
	int64_t values[LOOKS_MAX];

	for (size_t i = 0; i < l->n; i++) {
		const json_t *value = json_object_get(json_object_get(l->held[i], of), what);

		if (!json_is_integer(value))
			return false;
		values[i] = json_integer_value(value);
	}
	*ret = resources_trend(what, l->rounds, values, l->n);
	return true;
}

static bool is_device(const char *of)
{
	return !strncmp(of, "dev.", 4);
}

/* An agent that holds more is why its device has more. */
static bool is_told_of_an_agent(const struct looks *l, const char *what)
{
	struct resources_trend t;
	const char *of;
	const json_t *held;

	json_object_foreach((json_t *)l->held[0], of, held)
		if (!is_device(of) && trend_of(l, of, what, &t) && t.grew)
			return true;
	return false;
}

/* A leak of its own is a fault of the harness. */
static enum severity severity_of(const char *of)
{
	return strcmp(of, "controller") ? SEVERITY_FAIL : SEVERITY_ERROR;
}

static void one_figure(struct judge *j, size_t inst, const struct looks *l, const char *of, const char *what)
{
	struct resources_trend t;
	struct finding *f;

	if (!trend_of(l, of, what, &t) || !t.grew || (is_device(of) && is_told_of_an_agent(l, what)))
		return;
	f = judge_find(j, severity_of(of), "resources", inst, l->last->rec, of);
	if (!f)
		return;
	finding_set(f, f->expected, "no more %s than after round %lld: %lld", what, (long long)l->rounds[0], (long long)t.from);
	finding_set(f, f->seen, "%lld after round %lld", (long long)t.to, (long long)l->rounds[l->n - 1]);
	finding_set(f, f->text, "resources: %s: %s grew from %lld (round %lld) to %lld (round %lld), %.4g each round", of, what,
		    (long long)t.from, (long long)l->rounds[0], (long long)t.to, (long long)l->rounds[l->n - 1], t.per_round);
}

static void one_repeat(struct judge *j, size_t inst)
{
	const struct m_inst *in = &j->m->insts.v[inst];
	struct looks l = looks_of(j, inst);
	const char *of, *what;
	const json_t *held, *value;

	if (!l.n || l.rounds[l.n - 1] != json_int(l.last->r, "rounds", 0)) {
		judge_say(j, SEVERITY_INCONCLUSIVE, "resources", inst, in->end_rec == M_NONE ? in->begin_rec : in->end_rec, "",
			  "resources: the last look is of round %lld: whether they are flat is not known",
			  (long long)(l.n ? l.rounds[l.n - 1] : 0));
		return;
	}
	json_object_foreach((json_t *)json_object_get(l.last->r, "held"), of, held)
		json_object_foreach((json_t *)held, what, value)
			one_figure(j, inst, &l, of, what);
}

void verdict_check_resources(struct judge *j)
{
	for (size_t i = 0; i < j->m->insts.n; i++)
		if (is_flat_repeat(j, i))
			one_repeat(j, i);
}

static json_t *figures(const struct looks *l)
{
	json_t *list = json_array(), *o;
	struct resources_trend t;
	const char *of, *what;
	const json_t *held, *value;

	json_object_foreach((json_t *)l->held[0], of, held)
		json_object_foreach((json_t *)held, what, value) {
			if (!trend_of(l, of, what, &t))
				continue;
			o = json_pack("{s:s,s:s,s:I,s:I,s:b}", "of", of, "what", what, "from", (json_int_t)t.from, "to",
				      (json_int_t)t.to, "grew", t.grew);
			if (resources_is_memory(what))
				json_object_set_new(o, "per_round", json_integer((json_int_t)t.per_round));
			json_array_append_new(list, o);
		}
	return list;
}

void verdict_add_resources(const struct judge *j, json_t *verdict)
{
	json_t *list = json_array();

	for (size_t i = 0; i < j->m->insts.n; i++) {
		const struct m_inst *in = &j->m->insts.v[i];
		struct looks l = looks_of(j, i);

		if (is_flat_repeat(j, i) && l.n)
			json_array_append_new(list,
					      json_pack("{s:i,s:s,s:I,s:I,s:I,s:o}", "step", in->step, "iter", in->iter, "rounds",
							(json_int_t)json_int(l.last->r, "rounds", 0), "after",
							(json_int_t)l.rounds[0], "looks", (json_int_t)l.n, "figures", figures(&l)));
	}
	if (json_array_size(list))
		json_object_set(verdict, "resources", list);
	json_decref(list);
}
