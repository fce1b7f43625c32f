/* SPDX-License-Identifier: MIT */
/* A modify that tries masks makes as many attempts as the table of moves has for it. */
#include "verdict_internal.h"

#include "attr.h"
#include "json.h"
#include "names.h"

/* How many attempts `mask:` stands for at this QP, from the state that it was in. */
static unsigned trials_wanted(const char *mask, const char *type, const struct m_state *s)
{
	const struct name *kind = name_find(&names_mask_trial, mask), *t = name_find(&names_qp_type, type);
	const struct name *from = name_find(&names_state, s->old), *to = name_find(&names_state, s->asked);

	if (!kind || !t || !from || !to)
		return 0;
	if (kind->value == MASK_EXACT)
		return 1;
	return (unsigned)__builtin_popcount(
		(unsigned)mask_trial_bits((enum mask_trial)kind->value, t->value, from->value, to->value));
}

static unsigned trials_made(const struct judge *j, size_t inst, size_t qp, const struct m_state **ret_first)
{
	unsigned n = 0;

	*ret_first = NULL;
	for (size_t i = 0; i < j->m->states.n; i++) {
		const struct m_state *s = &j->m->states.v[i];

		if (s->qp != qp || !*s->asked || !judge_in_step(j, inst, s->inst))
			continue;
		if (!n++)
			*ret_first = s;
	}
	return n;
}

/* Attempts that were never made show nothing. */
void verdict_check_trials(struct judge *j, size_t inst)
{
	const json_t *step = j->m->insts.v[inst].plan, *name;
	const char *mask = json_str(step, "mask"), *outcome = j->m->insts.v[inst].outcome;
	size_t i;

	if (!strcmp(outcome, "error") || !strcmp(outcome, "skipped"))
		return;
	json_array_foreach(json_object_get(step, "at"), i, name) {
		size_t qp = m_qp_find(j->m, json_string_value(name), json_string_length(name));
		const struct m_state *first;
		unsigned made, wanted;

		if (!mask || qp == M_NONE)
			continue;
		made = trials_made(j, inst, qp, &first);
		wanted = first ? trials_wanted(mask, j->m->qps.v[qp].type, first) : 1;
		if (made != wanted)
			judge_say(j, SEVERITY_ERROR, "harness", inst, first ? first->rec : j->m->insts.v[inst].end_rec,
				  judge_qp(j, qp), "%s: %u of %u attempts were made for `mask: %s`", judge_qp(j, qp), made, wanted,
				  mask);
	}
}
