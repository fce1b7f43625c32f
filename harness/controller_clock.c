/* SPDX-License-Identifier: MIT */
/* Offset and bound between the agents' clocks and the controller's; witness timers that measure how late this machine is. */
#include "controller_case.h"

#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "json.h"
#include "units.h"

#define PING_NS NSEC_PER_SEC
#define PINGS_NEAR 2       /* one clock: a ping only shows that it is one */
#define PINGS_FAR 8
#define WITNESS_PERIOD_NS (5 * NSEC_PER_MSEC)

static bool same_clock(const struct ctl_agent *a)
{
	const char *clk = json_str(a->hello, "clk");

	return clk && strcmp(clk, a->c->clk) == 0;
}

void clock_measure(struct case_run *r)
{
	struct ctl_agent *a;

	DL_FOREACH (r->c->agents, a) {
		int pings = same_clock(a) ? PINGS_NEAR : PINGS_FAR;
		int64_t offset = 0, bound = INT64_MAX;

		if (!a->name[0] || agent_unreachable(a))
			continue;
		for (int i = 0; i < pings; i++) {
			uint64_t before = now_ns(), after;
			json_t *reply = NULL;
			int rc = ask(r, a->name, json_pack("{s:s}", "op", "clock"), PING_NS, &reply, NULL);

			after = now_ns();
			if (rc == 0 && (int64_t)(after - before) / 2 < bound) {
				bound = (int64_t)(after - before) / 2;
				offset = json_int(reply, "t", 0) - (int64_t)(before / 2 + after / 2);
			}
			json_decref(reply);
		}
		if (bound == INT64_MAX)
			continue;
		/* Within one domain times compare as they are. */
		if (same_clock(a))
			offset = bound = 0;
		case_record(r, "controller", json_pack("{s:s,s:o,s:I,s:I,s:s}", "kind", "clock", "of", json_sprintf("agent/%s", a->name), "offset_ns",
		                                       (json_int_t)offset, "bound_ns", (json_int_t)bound, "of_clk",
		                                       json_str(a->hello, "clk") ? json_str(a->hello, "clk") : ""));
	}
}

void clock_witness(struct case_run *r, bool on)
{
	struct ops ops = { NULL };
	struct ctl_agent *a;

	DL_FOREACH (r->c->agents, a)
		if (a->name[0] && !agent_unreachable(a))
			ops_add(&ops, a->name, json_pack("{s:s,s:I}", "op", "witness", "period_ns", (json_int_t)(on ? WITNESS_PERIOD_NS : 0)));
	ops_run(r, &ops, PING_NS, NULL);
	ops_free(&ops);
}
