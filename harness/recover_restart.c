/* SPDX-License-Identifier: MIT */
/* The process of an end is gone, or goes, and another one takes its place: nothing of what it had is left but its name. */
#include "recover_renew.h"

#include "json.h"
#include "units.h"

#define LEAVE_NS (2 * NSEC_PER_SEC)

static bool is_gone(struct case_run *r, const char *agent)
{
	return agent_unreachable(agent_find(r, agent)) != NULL;
}

/* What stood still is killed; what runs lets go of everything first, which is on record, and leaves. */
static void end(struct case_run *r, const json_t *step, const char *agent)
{
	struct ctl_agent *a = agent_find(r, agent);
	bool runs = a && !agent_unreachable(a), stood = a && !runs && !a->ended;

	if (runs)
		agent_lets_go(r, agent, NULL);
	if (a) {
		a->end_noted = true;
		case_drain(r);
		agent_end(a, runs ? LEAVE_NS : 0);
	}
	ctl_objects_lost(r, agent);
	if (runs || stood)
		case_record(r, "controller",
			    json_pack("{s:s,s:O?,s:s,s:i,s:s,s:s,s:b}", "kind", "recover", "pair",
				      json_array_get(json_object_get(step, "pairs"), 0), "path", "restart", "attempt",
				      (int)r->attempt, "phase", "ended", "agent", agent, "killed", stood));
}

static int begin(struct case_run *r, const json_t *agents, struct error *e)
{
	const json_t *name;
	size_t i;
	int rc = agents_start(r, e);

	json_array_foreach((json_t *)agents, i, name)
		rc = rc ? rc : agents_open(r, json_string_value(name), e);
	return rc;
}

int recover_restart(struct case_run *r, const struct ends *ends, const json_t *step, struct error *e)
{
	static const struct renewal restart = { is_gone, end, begin };

	return recover_renew(r, ends, step, &restart, e);
}
