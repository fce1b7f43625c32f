/* SPDX-License-Identifier: MIT */
/* Completion events that a `poll` has waited for. */
#include "verdict_internal.h"

#include <string.h>

#include "json.h"

unsigned verdict_waited_of(struct judge *j, size_t inst)
{
	const json_t *step = j->m->insts.v[inst].plan;
	int64_t wanted = json_int(step, "events", -1);
	unsigned n = 0;

	for (size_t i = 0; wanted >= 0 && i < j->m->verbs.n; i++) {
		const struct m_verb *v = &j->m->verbs.v[i];
		int64_t seen;
		struct finding *f;

		if (v->inst != inst || strcmp(v->verb, "ibv_get_cq_event"))
			continue;
		n++;
		seen = json_int(json_object_get(json_array_get(j->records, v->rec), "ret"), "events", -1);
		f = seen == wanted ? NULL : judge_find(j, SEVERITY_FAIL, "expect", inst, v->rec, v->obj);
		if (!f)
			continue;
		finding_set(f, f->expected, "%lld completion events since it was armed", (long long)wanted);
		finding_set(f, f->seen, "%lld", (long long)seen);
		finding_set(f, f->text, "%s: expected %s, seen %s", v->obj, f->expected, f->seen);
	}
	return n;
}
