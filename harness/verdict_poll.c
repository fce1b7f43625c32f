/* SPDX-License-Identifier: MIT */
/* Completion events that a `poll` has waited for. */
#include "verdict_internal.h"

#include <string.h>

#include "json.h"

static const char *word_for(int64_t events)
{
	return events ? "comes" : "none";
}

/* Each QP's queue that uses this CQ, in turn. */
static bool next_user(const struct judge *j, struct m_match *what, size_t *at)
{
	static const char *const ends[] = { "send_cq", "recv_cq" };

	for (; *at < 2 * j->m->qps.n; ++*at) {
		const char *cq = json_str(j->m->qps.v[*at / 2].plan, ends[*at % 2]);

		if (!cq || strcmp(cq, what->cq))
			continue;
		what->qp = *at / 2;
		what->recv = *at % 2;
		++*at;
		return true;
	}
	return false;
}

/* Too few of several, or too many, is nothing that an entry could speak of. */
static const json_t *excuse_of(const struct judge *j, struct m_match what, int64_t wanted, int64_t seen, bool *ret_seen)
{
	const json_t *entry, *likely = NULL;

	*ret_seen = false;
	for (size_t at = 0; !wanted != !seen && next_user(j, &what, &at);) {
		entry = m_profile_excuse(j->m, &what, word_for(seen), ret_seen);
		if (*ret_seen)
			return entry;
		likely = entry ? entry : likely;
	}
	return likely;
}

static void other_number(struct judge *j, size_t inst, const struct m_verb *v, struct m_match what, int64_t wanted, int64_t seen)
{
	const json_t *entry;
	struct finding *f;
	bool excused;

	entry = excuse_of(j, what, wanted, seen, &excused);
	if (excused) {
		judge_deviation(j, entry, "expect", inst, v->rec, v->obj,
				"%s: expected %lld completion events since it was armed, seen %lld: the profile's %s", v->obj,
				(long long)wanted, (long long)seen, json_str(entry, "id"));
		return;
	}
	f = judge_find(j, SEVERITY_FAIL, "expect", inst, v->rec, v->obj);
	if (!f)
		return;
	finding_set(f, f->expected, "%lld completion events since it was armed", (long long)wanted);
	finding_set(f, f->seen, "%lld", (long long)seen);
	finding_set(f, f->text, "%s: expected %s, seen %s", v->obj, f->expected, f->seen);
	if (entry)
		finding_likely_entry(j, f, entry);
}

unsigned verdict_waited_of(struct judge *j, size_t inst)
{
	const json_t *step = j->m->insts.v[inst].plan;
	int64_t wanted = json_int(step, "events", -1);
	unsigned n = 0;

	for (size_t i = 0; wanted >= 0 && i < j->m->verbs.n; i++) {
		const struct m_verb *v = &j->m->verbs.v[i];
		struct m_match what = { .completion_event = word_for(wanted), .cq = v->obj, .qp = M_NONE, .rec = v->rec };
		int64_t seen;

		if (v->inst != inst || strcmp(v->verb, "ibv_get_cq_event"))
			continue;
		n++;
		seen = json_int(json_object_get(json_array_get(j->records, v->rec), "ret"), "events", -1);
		if (seen != wanted)
			other_number(j, inst, v, what, wanted, seen);
		for (size_t at = 0; seen == wanted && next_user(j, &what, &at);)
			m_profile_specified(j->m, &what, j->m->insts.v[inst].step);
	}
	return n;
}
