/* SPDX-License-Identifier: MIT */
/* What UD QPs have that others have not: address handles, and a header in front of each message in its receive. */
#include "plan_internal.h"

#include <errno.h>
#include <string.h>

#include "attr.h"
#include "grh.h"
#include "json.h"

static const char *const way[] = { "gid_index", "hop_limit", "traffic_class", "sl", "flow_label" };

static bool is_ud(const json_t *qp)
{
	return !strcmp(json_str(qp, "type"), "UD");
}

static json_t *ah_new(const char *agent, const char *pd, const json_t *attr)
{
	json_t *ah = json_pack("{s:s,s:s}", "agent", agent, "pd", pd);

	for (size_t i = 0; i < sizeof(way) / sizeof(*way); i++) {
		json_t *v = json_object_get(attr, way[i]);

		if (v && !json_is_null(v))
			json_object_set(ah, way[i], v);
	}
	return ah;
}

/* One of its own, to its peer. */
static void own_ah(json_t *ahs, json_t *qp)
{
	const char *name = json_str(qp, "name");
	json_t *ah = ah_new(json_str(qp, "agent"), json_str(qp, "pd"), json_object_get(qp, "attr"));

	json_object_set_new(ah, "name", json_sprintf("%s.ah", name));
	json_object_set_new(ah, "qp", json_string(name));
	json_array_append_new(ahs, ah);
	json_object_set(qp, "ah", json_object_get(ah, "name"));
	json_object_set_new(qp, "head_bytes", json_integer(GRH_BYTES));
	if (!json_object_get(json_object_get(qp, "attr"), "qkey"))
		json_object_set_new(json_object_get(qp, "attr"), "qkey", json_integer(attr_find("qkey")->def));
}

/* The agent at the other end of a pair, where there is one only. */
static const char *only_peer(const struct planner *p, const char *agent)
{
	const char *found = NULL;
	const json_t *qp;
	size_t i;

	json_array_foreach(p->qps, i, qp) {
		const char *peer = json_str(qp, "peer"), *other = strrchr(peer, '.') + 1;

		if (strcmp(json_str(qp, "agent"), agent))
			continue;
		if (found && strcmp(found, other))
			return NULL;
		found = other;
	}
	return found;
}

static int named_ah(struct planner *p, json_t *ahs, const char *name, const json_t *given)
{
	const char *agent = json_str(given, "at"), *pd = json_str(given, "pd"), *to = json_str(given, "to");
	const char *group = json_str(given, "group");
	json_t *ah, *own_pd = json_sprintf("%s.pd", agent ? agent : "");

	if (!to && !group)
		to = agent ? only_peer(p, agent) : NULL;
	if (!agent || !json_object_get(p->agents, agent) || (!group && (!to || !json_object_get(p->agents, to)))) {
		json_decref(own_pd);
		return error_set(p->e, -EINVAL, "ah %s: %s: there is no agent '%s'", name,
				 agent && json_object_get(p->agents, agent) ? "to" : "at", to ? to : "");
	}
	ah = ah_new(agent, pd ? pd : json_string_value(own_pd), given);
	json_decref(own_pd);
	json_object_set_new(ah, "name", json_string(name));
	if (group)
		json_object_set_new(ah, "group", json_string(group));
	else
		json_object_set_new(ah, "to", json_string(to));
	json_array_append_new(ahs, ah);
	return 0;
}

int plan_datagrams(struct planner *p)
{
	json_t *ahs = json_array(), *item;
	const char *name;
	size_t i;
	int rc = 0;

	json_array_foreach(p->qps, i, item) {
		if (!is_ud(item))
			continue;
		own_ah(ahs, item);
		if (json_str(item, "srq"))
			json_object_set_new((json_t *)plan_find(p->plan, "srqs", json_str(item, "srq")), "head_bytes",
					    json_integer(GRH_BYTES));
	}
	json_object_foreach(json_object_get(p->doc, "ah"), name, item)
		if (!rc)
			rc = named_ah(p, ahs, name, item);
	if (!rc && json_array_size(ahs))
		json_object_set(p->plan, "ahs", ahs);
	json_decref(ahs);
	return rc;
}
