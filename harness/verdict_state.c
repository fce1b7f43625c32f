/* SPDX-License-Identifier: MIT */
/* A QP is in the state it was asked into, or in ERR with an explanation; nothing else moves it. */
#include "verdict_internal.h"

#include <stdio.h>

#include "json.h"
#include "names.h"

static bool wants_state(const json_t *value, const void *user)
{
	const json_t *all = json_is_array(value) ? value : json_object_get(value, "all");

	if (json_is_string(value))
		return !strcmp(json_string_value(value), user);
	return json_array_has(all, user);
}

static bool cm_moved(const struct judge *j, size_t qp)
{
	struct m_end end = { .qp = qp };

	for (size_t i = 0; i < j->m->events.n; i++)
		if (j->m->events.v[i].cm && m_event_at(j->m, &j->m->events.v[i], &end))
			return true;
	return false;
}

/* What explains a state that no step asked for; *ret_entry: only the profile does. */
static bool explained(struct judge *j, const struct m_state *s, const json_t **ret_entry, bool *ret_seen)
{
	const char *type = j->m->qps.v[s->qp].type;

	*ret_entry = NULL;
	if (!strcmp(s->new_, "ERR") && m_why_error(j->m, s->qp, s->life, s->inst, s->t))
		return true;
	if (!strcmp(s->new_, "SQE") && !qp_type_is_reliable(type) && m_why_error(j->m, s->qp, s->life, s->inst, s->t))
		return true;
	if (judge_scenario_says(j, s->qp, "qp", wants_state, s->new_))
		return true;
	if (strcmp(s->new_, "ERR"))
		return cm_moved(j, s->qp);
	*ret_entry = judge_missing_event(j, s->qp, s->life, s->t, "cause-first", ret_seen);
	return false;
}

static void moved_by_itself(struct judge *j, const struct m_state *s, const char *from)
{
	const json_t *entry;
	struct finding *f;
	bool seen = false;

	if (explained(j, s, &entry, &seen))
		return;
	if (entry && seen) {
		judge_deviation(j, entry, "state", s->inst, s->rec, judge_qp(j, s->qp),
				"%s: in %s without the event that would say why: the profile's %s", judge_qp(j, s->qp), s->new_,
				json_str(entry, "id"));
		return;
	}
	f = judge_find(j, SEVERITY_FAIL, "state", s->inst, s->rec, judge_qp(j, s->qp));
	if (!f)
		return;
	finding_set(f, f->expected, "%s", from);
	finding_set(f, f->seen, "%s", s->new_);
	finding_set(f, f->text, "%s: expected %s, seen %s, and no step or error explains the change", judge_qp(j, s->qp), from,
		    s->new_);
}

static void after_modify(struct judge *j, const struct m_state *s, const char *before)
{
	const json_t *entry;
	struct finding *f;
	bool seen;

	if (!*s->new_)
		return;
	if (s->err) {
		if (*before && strcmp(s->new_, before) && !explained(j, s, &entry, &seen)) {
			f = judge_find(j, SEVERITY_FAIL, "state", s->inst, s->rec, judge_qp(j, s->qp));
			if (!f)
				return;
			finding_set(f, f->expected, "%s still, as the move to %s was refused", before, s->asked);
			finding_set(f, f->seen, "%s", s->new_);
			finding_set(f, f->text, "%s: expected %s, seen %s", judge_qp(j, s->qp), f->expected, f->seen);
		}
		return;
	}
	if (!strcmp(s->new_, s->asked) || (!strcmp(s->new_, "ERR") && explained(j, s, &entry, &seen)))
		return;
	f = judge_find(j, SEVERITY_FAIL, "state", s->inst, s->rec, judge_qp(j, s->qp));
	if (!f)
		return;
	finding_set(f, f->expected, "%s", s->asked);
	finding_set(f, f->seen, "%s", s->new_);
	finding_set(f, f->text, "%s: asked into %s, and the modify succeeded, but it is in %s", judge_qp(j, s->qp), s->asked,
		    s->new_);
}

void verdict_check_state(struct judge *j)
{
	for (size_t qp = 0; qp < j->m->qps.n; qp++) {
		const char *before = "";
		unsigned life = 0;

		for (size_t i = 0; i < j->m->states.n; i++) {
			const struct m_state *s = &j->m->states.v[i];

			if (s->qp != qp)
				continue;
			/* A QP that was made anew begins in RESET. */
			if (s->life != life && strcmp(s->asked, "RESET"))
				before = life || *before ? "RESET" : before;
			life = s->life;
			if (*s->asked)
				after_modify(j, s, before);
			else if (*before && *s->new_ && strcmp(before, s->new_) && strcmp(s->new_, "unreachable"))
				moved_by_itself(j, s, before);
			if (*s->new_ && strcmp(s->new_, "unreachable"))
				before = s->new_;
		}
	}
}
