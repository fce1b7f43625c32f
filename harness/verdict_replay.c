/* SPDX-License-Identifier: MIT */
#include "verdict_internal.h"

#include "json.h"
#include "units.h"

static size_t first_end(const struct judge *j, size_t inst, const json_t *step)
{
	struct eval v = { .m = j->m, .inst = inst };
	struct ends ends;
	size_t qp = M_NONE;

	if (expect_ends(&v, step, &ends))
		return M_NONE;
	for (size_t i = 0; i < ends.e.n && qp == M_NONE; i++)
		qp = ends.e.v[i].qp;
	free(ends.e.v);
	return qp;
}

static void note_deviations(struct judge *j, size_t inst, const json_t *why, size_t rec)
{
	const json_t *ids = json_object_get(why, "deviations"), *id;
	size_t i;

	json_array_foreach(ids, i, id) {
		struct finding *f = judge_find(j, SEVERITY_DEVIATION, "expect", inst, rec, json_str(why, "at"));

		if (!f)
			return;
		finding_set(f, f->expected, "%s", json_str(why, "expected"));
		finding_set(f, f->seen, "%s", json_str(why, "seen"));
		finding_set(f, f->text, "expected %s, seen %s: the profile's %s", f->expected, f->seen, json_string_value(id));
		f->deviation = json_pack("[O]", id);
	}
}

static void not_met(struct judge *j, size_t inst, const json_t *why, size_t rec, enum expect_state state)
{
	const struct m_inst *in = &j->m->insts.v[inst];
	const char *at = json_str(why, "at");
	struct finding *f;
	char took[64];

	if (!at || !*at)
		at = judge_qp(j, first_end(j, inst, in->plan));
	f = judge_find(j, SEVERITY_FAIL, "expect", inst, rec, at);
	if (!f)
		return;
	units_format_ns(in->end_t - in->begin_t, took, sizeof(took));
	finding_set(f, f->expected, "%s", json_str(why, "expected"));
	finding_set(f, f->seen, "%s", json_str(why, "seen"));
	finding_set(f, f->text, "%s%sexpected %s, seen %s%s%s", *at ? at : "", *at ? ": " : "", f->expected, f->seen,
		    state == EXPECT_PENDING ? " after " : "", state == EXPECT_PENDING ? took : "");
	finding_likely(j, f, json_object_get(why, "likely"));
}

static void end_of_expect(struct judge *j, size_t inst, size_t rec)
{
	const struct m_inst *in = &j->m->insts.v[inst];
	uint64_t for_ns = json_u64(in->plan, "for_ns", 0), begin_t = in->begin_t, end_t = in->end_t;
	const json_t *step = in->plan;
	enum expect_state state;
	json_t *why = NULL;

	if (!strcmp(in->outcome, "skipped") || !strcmp(in->outcome, "error"))
		return;
	state = model_expect(j->m, step, end_t, &why);
	if (state != EXPECT_MET)
		not_met(j, inst, why, rec, state);
	else
		note_deviations(j, inst, why, rec);
	if (state == EXPECT_MET && for_ns && end_t - begin_t < for_ns) {
		char want[64], had[64];

		judge_say(j, SEVERITY_INCONCLUSIVE, "expect", inst, rec, judge_qp(j, first_end(j, inst, step)),
			  "to be observed for %s, but the step ended after %s", units_format_ns(for_ns, want, sizeof(want)),
			  units_format_ns(end_t - begin_t, had, sizeof(had)));
	}
	json_decref(why);
	model_settle(j->m, step);
}

void verdict_replay(struct judge *j)
{
	const json_t *r;
	size_t i;

	json_array_foreach(j->records, i, r) {
		const char *kind = json_str(r, "kind"), *phase = json_str(r, "phase");
		size_t inst;

		model_feed(j->m, r);
		if (j->m->err)
			return;
		if (!kind || !phase || strcmp(kind, "step") || strcmp(phase, "end"))
			continue;
		inst = m_inst_latest(j->m, (int)json_int(r, "step", 0));
		if (inst != M_NONE && !strcmp(judge_do(j, inst), "expect"))
			end_of_expect(j, inst, i);
	}
}
