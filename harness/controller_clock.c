/* SPDX-License-Identifier: MIT */
/* Offset and bound between the agents' clocks and the controller's; witness timers that measure how late this machine is. */
#include "controller_step.h"

#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "json.h"
#include "units.h"

#define PING_NS NSEC_PER_SEC
#define PINGS 8
/* Of each agent whose kernel is not this one (kernel_witness.h). */
#define WITNESS_PERIOD_NS (10 * NSEC_PER_MSEC)
/* Its bound is wide: a coarser look is enough, and costs the case less. */
#define BYSTANDER_PERIOD_NS (50 * NSEC_PER_MSEC)

bool clock_is_shared(const struct ctl_agent *a)
{
	const char *clk = json_str(a->hello, "clk");

	return clk && strcmp(clk, a->c->clk) == 0;
}

/* The shortest of a few round trips says most. -1: no answer. */
static int ping(struct case_run *r, const char *agent, int64_t *ret_offset, int64_t *ret_bound)
{
	int64_t bound = INT64_MAX;

	for (int i = 0; i < PINGS; i++) {
		uint64_t before = now_ns(), after;
		json_t *reply = NULL;
		int rc = ask(r, agent, json_pack("{s:s}", "op", "clock"), PING_NS, &reply, NULL);

		after = now_ns();
		if (rc == 0 && (int64_t)(after - before) / 2 < bound) {
			bound = (int64_t)(after - before) / 2;
			*ret_offset = json_int(reply, "t", 0) - (int64_t)(before / 2 + after / 2);
			*ret_bound = bound;
		}
		json_decref(reply);
	}
	return bound == INT64_MAX ? -1 : 0;
}

void clock_measure(struct case_run *r)
{
	struct ctl_agent *a;

	for (a = r->c->agents; a; a = a->next) {
		const char *clk = json_str(a->hello, "clk");
		int64_t offset = 0, bound = 0;

		if (!a->name[0] || agent_unreachable(a) || (plan_is_bystander(a->name) && clock_is_shared(a)))
			continue;
		/* Within one domain times compare as they are: nothing to measure. */
		if (!clock_is_shared(a) && ping(r, a->name, &offset, &bound))
			continue;
		case_record(r, "controller",
			    json_pack("{s:s,s:o,s:I,s:I,s:s}", "kind", "clock", "of", json_sprintf("agent/%s", a->name),
				      "offset_ns", (json_int_t)offset, "bound_ns", (json_int_t)bound, "of_clk", clk ? clk : ""));
	}
}

static bool is_watched_here(const struct ctl_agent *a)
{
	return a->c->o.witness && clock_is_shared(a);
}

void witness_add(struct case_run *r, struct ops *ops, bool on)
{
	struct ctl_agent *a;

	for (a = r->c->agents; a; a = a->next)
		if (a->name[0] && !agent_unreachable(a) && !is_watched_here(a))
			ops_add(ops, a->name,
				json_pack("{s:s,s:I}", "op", "witness", "period_ns",
					  (json_int_t)(!on                          ? 0
						       : plan_is_bystander(a->name) ? BYSTANDER_PERIOD_NS
										    : WITNESS_PERIOD_NS)));
}

void witness_begin(struct case_run *r)
{
	if (r->c->o.witness)
		kernel_witness_begin(r->c->o.witness, (unsigned)r->c->lane.lane);
	r->witnessed = r->c->o.witness;
}

void witness_note(struct case_run *r)
{
	json_t *rec;

	if (!r->witnessed)
		return;
	rec = kernel_witness_json(r->c->o.witness, (unsigned)r->c->lane.lane);
	json_object_set_new(rec, "kind", json_string("clock"));
	case_record(r, "controller", rec);
}
