/* SPDX-License-Identifier: MIT */
/* Questions to agents that become records: states, counters, and the dump of a hang. */
#include "controller_step.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "json.h"
#include "units.h"

#define QUERY_NS (3 * NSEC_PER_SEC)

static void state_unreachable(struct case_run *r, const struct object *qp, const char *why)
{
	case_record(r, "controller",
		    json_pack("{s:s,s:s,s:i,s:s,s:i,s:o}", "kind", "state", "obj", qp->name, "life", (int)qp->life, "by", "query",
			      "errno", EHOSTDOWN, "note", json_sprintf("unreachable: agent %s is %s", qp->agent, why)));
}

static void query_one(struct ops *ops, struct object *qp, const char *by, bool many)
{
	struct op *op;

	if (!many) {
		ops_add(ops, qp->agent, json_pack("{s:s,s:s,s:s,s:b}", "op", "qp_query", "name", qp->name, "by", by, "brief", 1));
		return;
	}
	op = many_find(ops, qp, "qp_query", 0);
	if (!op)
		op = many_begin(ops, qp, "qp_query", 0, json_pack("{s:s,s:b}", "by", by, "brief", 1));
	many_join(op, qp, "name");
}

void query_states_add(struct case_run *r, struct ops *ops, const struct ends *ends, const char *by)
{
	bool many = many_may(r, ends);

	for (size_t i = 0; i < ends->n; i++) {
		struct object *qp = ends->qp[i];
		const char *why = agent_unreachable(agent_find(r, qp->agent));

		if (why)
			state_unreachable(r, qp, why);
		else if (qp->exists)
			query_one(ops, qp, by, many);
	}
}

void query_states(struct case_run *r, const struct ends *ends, const char *by)
{
	struct ops ops = { .head = NULL };

	query_states_add(r, &ops, ends, by);
	ops_run(r, &ops, QUERY_NS, NULL);
	ops_free(&ops);
}

void query_counted(struct case_run *r, const struct ctl_agent *a)
{
	if (a && a->lab_device)
		json_object_set_new(r->c->counted, a->lab_device->rdma, json_integer((json_int_t)now_ns()));
}

/* With what is known of the last reader the agent need not wait for a picture to become old that already is. */
static json_t *counters_request(struct case_run *r, const struct ctl_agent *a)
{
	json_t *req = json_pack("{s:s,s:o}", "op", "counters", "dev", json_sprintf("dev.%s", a->name));
	json_t *last = a->lab_device ? json_object_get(r->c->counted, a->lab_device->rdma) : NULL;

	if (last && clock_is_shared(a))
		json_object_set(req, "read_ns", last);
	return req;
}

void counters_add(struct case_run *r, struct ops *ops, const char *agent)
{
	struct ctl_agent *a;

	for (a = r->c->agents; a; a = a->next) {
		if (!a->name[0] || agent_unreachable(a) || (agent ? strcmp(a->name, agent) != 0 : plan_is_bystander(a->name)))
			continue;
		ops_add(ops, a->name, counters_request(r, a));
		a->own_counters = 0;
	}
}

/* Those of a device that was made anew begin anew. */
static void counter_record(struct case_run *r, const char *agent, json_t *values)
{
	json_t *rec = json_pack("{s:s,s:o,s:i,s:O?}", "kind", "counter", "obj", json_sprintf("dev.%s", agent), "life", 1, "values",
				values);

	if (json_object_get(r->counted_anew, agent)) {
		json_object_set_new(rec, "anew", json_true());
		json_object_del(r->counted_anew, agent);
	}
	case_record(r, "controller", rec);
}

void query_counters_anew(struct case_run *r, const struct lab_device *device)
{
	if (!r->counted_anew)
		r->counted_anew = json_object();
	for (const struct ctl_agent *a = r->c->agents; a; a = a->next)
		if (a->name[0] && a->lab_device == device)
			json_object_set_new(r->counted_anew, a->name, json_true());
}

void counters_take(struct case_run *r, const struct ops *ops)
{
	/* An agent that wrote the record itself has said it all. */
	for (const struct op *op = ops->head; op; op = op->next) {
		struct ctl_agent *a = agent_find(r, op->agent);

		if (strcmp(json_str(op->req, "op"), "counters") != 0)
			continue;
		query_counted(r, a);
		if (op->rc == 0 && a && !a->own_counters)
			counter_record(r, op->agent, json_object_get(op->reply, "values"));
	}
}

void query_counters(struct case_run *r, const char *agent)
{
	struct ops ops = { .head = NULL };

	counters_add(r, &ops, agent);
	ops_run(r, &ops, QUERY_NS, NULL);
	counters_take(r, &ops);
	ops_free(&ops);
}

static bool agent_in(const struct ends *ends, const char *agent)
{
	for (size_t i = 0; ends && i < ends->n; i++)
		if (strcmp(ends->qp[i]->agent, agent) == 0)
			return true;
	return !ends;
}

void query_dump(struct case_run *r, const struct ends *ends, const char *why)
{
	struct ctl_agent *a;

	for (a = r->c->agents; a; a = a->next) {
		unsigned before = a->own_dumps;
		json_t *reply = NULL;

		if (!a->name[0] || agent_unreachable(a) || !agent_in(ends, a->name))
			continue;
		int rc = ask(r, a->name, json_pack("{s:s,s:s}", "op", "dump", "why", why), QUERY_NS, &reply, NULL);

		query_counted(r, a);
		if (rc == 0 && a->own_dumps == before) {
			json_t *rec = json_deep_copy(reply);

			json_object_del(rec, "id");
			json_object_del(rec, "rc");
			json_object_set_new(rec, "kind", json_string("dump"));
			json_object_set_new(rec, "why", json_string(why));
			json_object_set_new(rec, "of", json_string(a->name));
			case_record(r, "controller", rec);
		}
		json_decref(reply);
	}
}
