/* SPDX-License-Identifier: MIT */
/* A case that stops before a step (pause.h). */
#include "controller_case.h"

#include "json.h"
#include "pause.h"
#include "units.h"

/* What somebody who looks wants to know: processes, devices, QP numbers. */
static json_t *what_is_there(struct case_run *r, const json_t *step)
{
	json_t *agents = json_array(), *ends = json_array();
	const json_t *q;
	size_t i;

	for (const struct ctl_agent *a = r->c->agents; a; a = a->next)
		if (a->name[0] && !plan_is_bystander(a->name))
			json_array_append_new(agents, json_pack("{s:s,s:i,s:s,s:s}", "agent", a->name, "pid", (int)a->proc.pid,
								"device", a->lab_device ? a->lab_device->rdma : "", "netdev",
								a->lab_device ? a->lab_device->netdev : ""));
	json_array_foreach(json_object_get(r->plan, "qps"), i, q) {
		const struct object *o = ctl_object_find(r, json_str(q, "name"));

		if (o && o->exists)
			json_array_append_new(ends,
					      json_pack("{s:s,s:s,s:i,s:s,s:i}", "qp", o->name, "agent", o->agent, "qpn",
							(int)o->qpn, "state", o->state ? o->state : "?", "life", (int)o->life));
	}
	return json_pack("{s:O,s:s,s:I,s:i,s:i,s:o,s:o}", "step", json_object_get(step, "n"), "what", json_str(step, "do"), "line",
			 (json_int_t)json_int(step, "line", 0), "lane", r->c->lane.lane, "wire_pid", (int)wire_pid(r), "agents",
			 agents, "ends", ends);
}

static bool is_resumed(void *user)
{
	const struct controller_options *o = user;

	return o->resumed(o->user);
}

static void tell(struct case_run *r, const char *state, json_t *message)
{
	json_object_set_new(message, "case", json_string(r->id));
	json_object_set_new(message, "state", json_string(state));
	r->c->o.on_pause(r->c->o.user, message);
	json_decref(message);
}

void case_pause(struct case_run *r, const json_t *step)
{
	const json_t *pause = json_object_get(r->plan, "pause");
	uint64_t begin, paused, max_ns = pause_max_ns(r->plan);
	int rc;

	if (!pause || r->paused || json_int(pause, "step", 0) != json_int(step, "n", 0) || !r->c->o.on_pause)
		return;
	r->paused = true;
	case_record(r, "controller",
		    json_pack("{s:s,s:s,s:O,s:I}", "kind", "pause", "phase", "begin", "before", json_object_get(step, "n"),
			      "max_ns", (json_int_t)max_ns));
	recorder_flush(r->rec);
	tell(r, "paused", what_is_there(r, step));
	begin = now_ns();
	rc = case_wait(r, is_resumed, &r->c->o, begin + max_ns);
	paused = now_ns() - begin;
	/* The case's own time stands still meanwhile. */
	if (r->end_ns)
		r->end_ns += paused;
	case_record(r, "controller",
		    json_pack("{s:s,s:s,s:O,s:I,s:b}", "kind", "pause", "phase", "end", "before", json_object_get(step, "n"),
			      "paused_ns", (json_int_t)paused, "asked", rc == 0));
	tell(r, "resumed", json_pack("{s:I,s:b}", "paused_ns", (json_int_t)paused, "asked", rc == 0));
}
