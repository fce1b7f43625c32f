/* SPDX-License-Identifier: MIT */
/*
 * Extended reliable connections (IBTA A14). Of a pair one end sends and has a send queue alone, the other receives, by SRQs of its
 * domain. Both CQs of an end are the same one: the receiving end's is that of its SRQs.
 */
#include "plan_internal.h"

#include <errno.h>
#include <string.h>

#include "json.h"

static bool is_a(const json_t *qp, const char *type)
{
	return !strcmp(json_str(qp, "type"), type);
}

bool plan_is_xrc(const json_t *qp)
{
	return !strncmp(json_str(qp, "type"), "XRC", 3);
}

void plan_xrc_end(json_t *qp, bool first)
{
	if (is_a(qp, "XRC"))
		json_object_set_new(qp, "type", json_string(first ? "XRC_SEND" : "XRC_RECV"));
}

int plan_xrc_pair(struct planner *p, const json_t *one, const json_t *other)
{
	if (plan_is_xrc(one) == plan_is_xrc(other) && (!plan_is_xrc(one) || !is_a(one, json_str(other, "type"))))
		return 0;
	return error_set(p->e, -EINVAL, "%s is %s and %s is %s: an XRC_SEND QP is connected to an XRC_RECV QP alone",
			 json_str(one, "name"), json_str(one, "type"), json_str(other, "name"), json_str(other, "type"));
}

void plan_xrc_cqs(json_t *qp)
{
	if (is_a(qp, "XRC_SEND"))
		json_object_set(qp, "recv_cq", json_object_get(qp, "send_cq"));
	else if (is_a(qp, "XRC_RECV"))
		json_object_set(qp, "send_cq", json_object_get(qp, "recv_cq"));
}

/* One domain for each agent that receives. */
static const char *domain_of(struct planner *p, json_t *qp)
{
	json_t *domains = json_object_get(p->plan, "xrcds"), *name = json_sprintf("%s.xrcd", json_str(qp, "agent"));

	if (!domains) {
		domains = json_array();
		json_object_set_new(p->plan, "xrcds", domains);
	}
	if (!plan_find(p->plan, "xrcds", json_string_value(name)))
		json_array_append_new(domains, json_pack("{s:O,s:s}", "name", name, "agent", json_str(qp, "agent")));
	json_object_set_new(qp, "xrcd", name);
	return json_string_value(name);
}

/* The CQ is as deep as what may complete into it, unless the file says how deep. */
static void make_room(struct planner *p, const json_t *qp, int64_t receives)
{
	json_t *cq = (json_t *)plan_find(p->plan, "cqs", json_str(qp, "recv_cq"));
	int64_t most = json_int(cq, "srq_receives", 0) + receives;

	if (!cq || json_object_get(json_object_get(p->doc, "cq"), json_str(cq, "name")))
		return;
	json_object_set_new(cq, "srq_receives", json_integer((json_int_t)most));
	most *= 2;
	if (most > json_int(cq, "depth", 0))
		json_object_set_new(cq, "depth", json_integer((json_int_t)most));
}

bool plan_xrc_feed(struct planner *p, json_t *qp, json_t *srq)
{
	json_t *all = json_object_get(qp, "srqs");

	if (!is_a(qp, "XRC_RECV"))
		return false;
	if (!all) {
		all = json_array();
		json_object_set_new(qp, "srqs", all);
		json_object_set(qp, "srq", json_object_get(srq, "name"));
		if (json_str(srq, "cq"))
			json_object_set(qp, "recv_cq", json_object_get(srq, "cq"));
		plan_xrc_cqs(qp);
	}
	json_array_append(all, json_object_get(srq, "name"));
	if (!json_str(srq, "cq")) {
		json_object_set(srq, "cq", json_object_get(qp, "recv_cq"));
		json_object_set_new(srq, "xrcd", json_string(domain_of(p, qp)));
		make_room(p, qp, json_int(srq, "depth", 0));
	}
	return true;
}

void plan_xrc_domains(struct planner *p)
{
	json_t *item;
	size_t i;

	json_array_foreach(p->qps, i, item)
		if (is_a(item, "XRC_RECV"))
			domain_of(p, item);
	json_array_foreach(p->cqs, i, item)
		json_object_del(item, "srq_receives");
}

bool plan_any_xrc(const struct planner *p, const json_t *pairs)
{
	const json_t *qp;
	size_t i;

	json_array_foreach(p->qps, i, qp)
		if (json_array_has(pairs, json_str(qp, "pair")) && plan_is_xrc(qp))
			return true;
	return false;
}

static uint64_t sends_of(struct planner *p, const json_t *traffic)
{
	const json_t *ops = json_object_get(traffic, "ops"), *op;
	uint64_t messages = plan_ref_bound(p, json_object_get(traffic, "messages")), n = 0;
	size_t i, turns = json_array_size(ops);

	json_array_foreach(ops, i, op)
		if (!strcmp(json_string_value(op), "SEND"))
			n += messages ? messages / turns + (i < messages % turns) : UINT32_MAX;
	return n;
}

int plan_xrc_traffic(struct planner *p, const json_t *traffic, const json_t *pairs)
{
	uint64_t each = sends_of(p, traffic);
	const json_t *srq, *qp;
	size_t i, k;

	json_array_foreach(p->srqs, i, srq) {
		uint64_t depth = (uint64_t)json_int(srq, "depth", 0), all = 0;

		json_array_foreach(p->qps, k, qp)
			if (is_a(qp, "XRC_RECV") && json_array_has(pairs, json_str(qp, "pair")) &&
			    !strcmp(json_str(qp, "srq") ? json_str(qp, "srq") : "", json_str(srq, "name")))
				all += each;
		if (all > depth)
			return error_set(
				p->e, -EINVAL,
				"traffic: its SENDs go one way, and nothing tells who sends them when `%s` has receives again: "
				"there may be %llu, its depth, and here are more: fewer `messages`, or `ops: [WRITE, READ]`",
				json_str(srq, "name"), (unsigned long long)depth);
	}
	return 0;
}
