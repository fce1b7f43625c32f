/* SPDX-License-Identifier: MIT */
/* Bounds of phases that no clock here is fine enough to judge. */
#include "verdict_internal.h"

#include "json.h"
#include "phases.h"
#include "units.h"

static void one_bound(struct judge *j, size_t inst, const struct phases *p, const char *key, const json_t *cmp)
{
	uint64_t ns, bound;
	char took[64], wide[64];

	for (int k = 0; k < NUM_PHASES; k++) {
		if (strcmp(phase_names[k], key) || !phases_took(p, (enum phase)k, &ns, &bound) || !bound)
			continue;
		if (cmp_holds(j->m, cmp, (int64_t)(ns > bound ? ns - bound : 0), NULL) ==
		    cmp_holds(j->m, cmp, (int64_t)(ns + bound), NULL))
			continue;
		judge_say(j, SEVERITY_INCONCLUSIVE, "phase", inst, j->m->insts.v[inst].end_rec, p->pair,
			  "pair %s: `%s` took %s, and the clocks of the two ends compare to %s only: that is too coarse for its "
			  "bound",
			  p->pair, key, units_format_ns(ns, took, sizeof(took)), units_format_ns(bound, wide, sizeof(wide)));
	}
}

static void bounds_of(struct judge *j, size_t inst, const json_t *x)
{
	size_t recovery = phases_before(j->m, json_str(x, "of"), inst);
	struct phases p;
	const char *key;
	json_t *cmp;

	if (!json_object_get(x, "phase") || recovery == M_NONE || !phases_of(j->m, recovery, &p))
		return;
	json_object_foreach(json_object_get(x, "phase"), key, cmp)
		one_bound(j, inst, &p, key, cmp);
}

void verdict_check_phases(struct judge *j)
{
	for (size_t i = 0; i < j->m->insts.n; i++) {
		const struct m_inst *in = &j->m->insts.v[i];
		const json_t *x;
		size_t k;

		if (strcmp(judge_do(j, i), "expect") || in->end_rec == M_NONE || strcmp(in->outcome, "met"))
			continue;
		bounds_of(j, i, in->plan);
		json_array_foreach(json_object_get(in->plan, "any"), k, x)
			bounds_of(j, i, x);
	}
}

void verdict_add_phases(const struct judge *j, json_t *verdict)
{
	json_t *phases, *times;

	phases_json(j->m, &phases, &times);
	if (!phases)
		return;
	json_object_set_new(verdict, "phases", phases);
	json_object_set_new(verdict, "phase_times", times);
}
