/* SPDX-License-Identifier: MIT */
#include "plan_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

#define CQ_DEPTH_MIN 16
#define SRQ_DEPTH 64
#define PAGE 4096
#define PAIRS_MAX 65536

static int add_agents(struct planner *p)
{
	const json_t *given = json_object_get(p->doc, "agents");
	const char *name;
	json_t *agent;

	json_object_foreach((json_t *)given, name, agent) {
		const char *device = json_str(agent, "device");

		json_object_set_new(p->agents, name, json_pack("{s:s}", "device", device ? device : name));
	}
	if (!given) {
		json_object_set_new(p->agents, "a", json_pack("{s:s}", "device", "a"));
		json_object_set_new(p->agents, "b", json_pack("{s:s}", "device", "b"));
	}
	return 0;
}

static json_t *qp_new(const char *pair, const char *agent, const char *peer)
{
	return json_pack("{s:o,s:s,s:s,s:o,s:n}", "name", json_sprintf("%s.%s", pair, agent), "pair", pair, "agent", agent, "peer",
			 json_sprintf("%s.%s", pair, peer), "srq");
}

static int add_pair(struct planner *p, const char *of, const char *instance, int index, const json_t *given, json_t *ends)
{
	const char *end[2] = { json_string_value(json_array_get(ends, 0)), json_string_value(json_array_get(ends, 1)) };

	if (!end[0] || !end[1] || json_array_size(ends) != 2)
		return error_set(p->e, -EINVAL, "pair %s: ends must be two agents", of);
	if (!strcmp(end[0], end[1]))
		return error_set(p->e, -EINVAL, "pair %s: both ends are agent '%s': a pair has two agents", of, end[0]);
	for (int i = 0; i < 2; i++)
		if (!json_object_get(p->agents, end[i]))
			return error_set(p->e, -EINVAL, "pair %s: there is no agent '%s'", of, end[i]);
	json_object_set_new(p->pairs, instance, json_pack("{s:s,s:i,s:O}", "of", of, "index", index, "ends", ends));
	for (int i = 0; i < 2; i++) {
		json_t *qp = qp_new(instance, end[i], end[!i]);
		int rc = plan_attributes(p, qp, json_object_get(given, "qp"));

		json_array_append_new(p->qps, qp);
		if (rc)
			return rc;
		plan_xrc_end(qp, i == 0);
	}
	return plan_xrc_pair(p, json_array_get(p->qps, json_array_size(p->qps) - 2),
			     json_array_get(p->qps, json_array_size(p->qps) - 1));
}

static int add_default_pair(struct planner *p)
{
	json_t *ends = json_array();
	const char *name;
	json_t *agent;
	int rc;

	json_object_foreach(p->agents, name, agent)
		json_array_append_new(ends, json_string(name));
	if (json_array_size(ends) == 2)
		rc = add_pair(p, "p", "p", 0, NULL, ends);
	else
		rc = error_set(p->e, -EINVAL, "with %zu agents the pairs must be named: pairs: { NAME: { ends: [AGENT, AGENT] } }",
			       json_array_size(ends));
	json_decref(ends);
	return rc;
}

static int add_pairs(struct planner *p)
{
	const json_t *given = json_object_get(p->doc, "pairs");
	const char *of;
	json_t *pair;

	if (!given)
		return add_default_pair(p);
	json_object_foreach((json_t *)given, of, pair) {
		/* `p: [a, b]` is short for `p: { ends: [a, b] }`. */
		json_t *ends = json_is_array(pair) ? pair : json_object_get(pair, "ends");
		int64_t count = json_int(pair, "count", 1);

		if (count < 1 || count > PAIRS_MAX)
			return error_set(p->e, -EINVAL, "pair %s: count is %lld, allowed are 1 to %d", of, (long long)count,
					 PAIRS_MAX);
		for (int i = 0; i < (int)count; i++) {
			char instance[96];
			int rc;

			snprintf(instance, sizeof(instance), count > 1 ? "%s[%d]" : "%s", of, i);
			rc = add_pair(p, of, instance, i, pair, ends);
			if (rc)
				return rc;
		}
	}
	return 0;
}

static int check_at(struct planner *p, const char *what, const char *name, const char *agent)
{
	if (agent && json_object_get(p->agents, agent))
		return 0;
	return error_set(p->e, -EINVAL, "%s %s: at: there is no agent '%s'", what, name, agent ? agent : "");
}

/* The QPs of a `used_by`, whichever queue was named. */
static bool uses(const json_t *used_by, const json_t *qp, const char *queue)
{
	const char *name = json_str(qp, "name");
	char full[160];

	snprintf(full, sizeof(full), "%s.%s", name, queue);
	return json_array_has(used_by, name) || json_array_has(used_by, full);
}

static int add_pds(struct planner *p)
{
	const char *name;
	json_t *given, *qp;
	size_t i;

	json_object_foreach(p->agents, name, given)
		json_array_append_new(p->pds, json_pack("{s:o,s:s}", "name", json_sprintf("%s.pd", name), "agent", name));
	json_array_foreach(p->qps, i, qp)
		json_object_set_new(qp, "pd", json_sprintf("%s.pd", json_str(qp, "agent")));
	json_object_foreach(json_object_get(p->doc, "pd"), name, given) {
		json_t *used_by;
		int rc = check_at(p, "pd", name, json_str(given, "at"));

		if (!rc)
			rc = plan_used_by(p, given, &used_by);
		if (rc)
			return rc;
		json_array_append_new(p->pds, json_pack("{s:s,s:s}", "name", name, "agent", json_str(given, "at")));
		json_array_foreach(p->qps, i, qp)
			if (uses(used_by, qp, "send"))
				json_object_set_new(qp, "pd", json_string(name));
		json_decref(used_by);
	}
	return 0;
}

/* The PD of a named MR or SRQ: the one it asks for, the one of the QPs that use it, its agent's. */
static json_t *pd_of(struct planner *p, const json_t *given, const json_t *used_by)
{
	size_t i;
	json_t *qp;

	if (json_str(given, "pd"))
		return json_string(json_str(given, "pd"));
	json_array_foreach(p->qps, i, qp)
		if (uses(used_by, qp, "send") || uses(used_by, qp, "recv"))
			return json_incref(json_object_get(qp, "pd"));
	return json_sprintf("%s.pd", json_str(given, "at"));
}

/* What a recovery makes of it in a new life, where that is more. */
static int64_t most_in_a_new_life(const json_t *steps, const json_t *qp, const char *cap, int64_t most)
{
	const json_t *step;
	size_t i;

	json_array_foreach(steps, i, step) {
		const json_t *block = json_object_get(step, "qp"), *own = json_object_get(block, json_str(qp, "agent"));
		int64_t n = json_int(block, cap, 0), own_n = json_int(own, cap, 0);

		most = most_in_a_new_life(json_object_get(step, "steps"), qp, cap, most);
		if (strcmp(json_str(step, "do"), "recover"))
			continue;
		most = n > most ? n : most;
		most = own_n > most ? own_n : most;
	}
	return most;
}

static int64_t wr_count(const struct planner *p, const json_t *qp, const char *queue)
{
	const char *cap = strcmp(queue, "send") ? "max_recv_wr" : "max_send_wr";

	return most_in_a_new_life(json_object_get(p->doc, "steps"), qp, cap, json_int(json_object_get(qp, "cap"), cap, 0));
}

/* Twice what was asked for: a device may round queues up to the next power of two, and they may be filled. */
static int64_t cq_depth(int64_t requests)
{
	return requests * 2 > CQ_DEPTH_MIN ? requests * 2 : CQ_DEPTH_MIN;
}

static json_t *cq_new(const char *name, const char *agent, int64_t depth, const char *poll)
{
	return json_pack("{s:s,s:s,s:I,s:s}", "name", name, "agent", agent, "depth", (json_int_t)depth, "poll", poll);
}

static int add_named_cq(struct planner *p, const char *name, const json_t *given)
{
	static const struct {
		const char *queue, *key;
	} sides[] = { { "send", "send_cq" }, { "recv", "recv_cq" } };
	const char *poll = json_str(given, "poll"), *agent = json_str(given, "at");
	int64_t requests = 0;
	json_t *used_by, *qp;
	size_t i;
	int rc = check_at(p, "cq", name, agent);

	if (!rc)
		rc = plan_used_by(p, given, &used_by);
	if (rc)
		return rc;
	json_array_foreach(p->qps, i, qp) {
		for (int s = 0; s < 2; s++) {
			if (!uses(used_by, qp, sides[s].queue))
				continue;
			if (strcmp(json_str(qp, "agent"), agent)) {
				rc = error_set(p->e, -EINVAL, "cq %s is at %s: %s cannot use it", name, agent,
					       json_str(qp, "name"));
				break;
			}
			json_object_set_new(qp, sides[s].key, json_string(name));
			requests += wr_count(p, qp, sides[s].queue);
		}
	}
	json_decref(used_by);
	if (!rc) {
		json_t *cq = cq_new(name, agent, json_int(given, "depth", cq_depth(requests)), poll ? poll : "auto");

		if (json_object_get(given, "api"))
			json_object_set(cq, "api", json_object_get(given, "api"));
		json_array_append_new(p->cqs, cq);
	}
	return rc;
}

static void add_own_cq(struct planner *p, json_t *qp, const char *key, const char *suffix, const char *queue)
{
	char name[160];

	if (json_object_get(qp, key))
		return;
	snprintf(name, sizeof(name), "%s.%s", json_str(qp, "name"), suffix);
	json_array_append_new(p->cqs, cq_new(name, json_str(qp, "agent"), cq_depth(wr_count(p, qp, queue)), "auto"));
	json_object_set_new(qp, key, json_string(name));
}

static int add_cqs(struct planner *p)
{
	const char *name;
	json_t *given, *qp;
	size_t i;

	json_object_foreach(json_object_get(p->doc, "cq"), name, given) {
		int rc = add_named_cq(p, name, given);

		if (rc)
			return rc;
	}
	json_array_foreach(p->qps, i, qp) {
		if (strcmp(json_str(qp, "type"), "XRC_RECV"))
			add_own_cq(p, qp, "send_cq", "scq", "send");
		if (strcmp(json_str(qp, "type"), "XRC_SEND"))
			add_own_cq(p, qp, "recv_cq", "rcq", "recv");
		plan_xrc_cqs(qp);
	}
	return 0;
}

static bool srq_fill(const json_t *given)
{
	const json_t *fill = json_object_get(given, "fill");

	return !json_is_false(fill) && !(json_is_string(fill) && !strcmp(json_string_value(fill), "none"));
}

static int add_srqs(struct planner *p)
{
	const char *name;
	json_t *given, *qp;
	size_t i;

	json_object_foreach(json_object_get(p->doc, "srq"), name, given) {
		json_t *used_by;
		int rc = check_at(p, "srq", name, json_str(given, "at"));

		if (!rc)
			rc = plan_used_by(p, given, &used_by);
		if (rc)
			return rc;
		json_array_append_new(p->srqs,
				      json_pack("{s:s,s:o,s:s,s:o,s:I,s:I,s:b,s:I,s:I}", "name", name, "mr",
						json_sprintf("%s.rx", name), "agent", json_str(given, "at"), "pd",
						pd_of(p, given, used_by), "depth", (json_int_t)json_int(given, "depth", SRQ_DEPTH),
						"max_sge", (json_int_t)json_int(given, "max_sge", 1), "fill", (int)srq_fill(given),
						"bytes", (json_int_t)json_int(given, "size", (int64_t)p->msg_bytes), "limit",
						(json_int_t)json_int(given, "limit", 0)));
		json_array_foreach(p->qps, i, qp)
			if (uses(used_by, qp, "recv") &&
			    !plan_xrc_feed(p, qp, json_array_get(p->srqs, json_array_size(p->srqs) - 1)))
				json_object_set_new(qp, "srq", json_string(name));
		json_decref(used_by);
	}
	return 0;
}

static int add_named_mrs(struct planner *p)
{
	const char *name;
	json_t *given;

	json_object_foreach(json_object_get(p->doc, "mr"), name, given) {
		json_t *access = json_object_get(given, "access"), *used_by, *mr;
		int rc = check_at(p, "mr", name, json_str(given, "at"));

		if (!rc)
			rc = plan_used_by(p, given, &used_by);
		if (rc)
			return rc;
		mr = json_pack("{s:s,s:s,s:o,s:I,s:s,s:n}", "name", name, "agent", json_str(given, "at"), "pd",
			       pd_of(p, given, used_by), "bytes", (json_int_t)json_int(given, "size", PAGE), "role", "named", "qp");
		json_object_set_new(mr, "access",
				    access ? json_incref(access)
					   : json_pack("[s,s,s,s]", "LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC"));
		json_object_set_new(mr, "used_by", used_by);
		json_array_append_new(p->mrs, mr);
	}
	return 0;
}

/* A window is made in the protection domain of the region that it opens, unless the file says otherwise. */
static int add_mws(struct planner *p)
{
	json_t *given, *mws = json_object_get(p->doc, "mw") ? json_array() : NULL;
	const char *name;

	if (mws)
		json_object_set_new(p->plan, "mws", mws);
	json_object_foreach(json_object_get(p->doc, "mw"), name, given) {
		const char *over = json_str(given, "over"), *type = json_str(given, "type"), *pd = json_str(given, "pd");
		json_t *region = over ? plan_object_name(p, over) : NULL, *access = json_object_get(given, "access");
		const json_t *mr = plan_find(p->plan, "mrs", json_string_value(region));
		int rc = check_at(p, "mw", name, json_str(given, "at"));

		if (!rc && !mr)
			rc = error_set(p->e, -EINVAL, "mw %s: over: wanted is an MR that the file names", name);
		else if (!rc && strcmp(json_str(mr, "agent"), json_str(given, "at")))
			rc = error_set(p->e, -EINVAL, "mw %s: over: %s is at %s", name, over, json_str(mr, "agent"));
		if (rc) {
			json_decref(region);
			return rc;
		}
		json_array_append_new(
			mws, json_pack("{s:s,s:s,s:s,s:i,s:o,s:I,s:I,s:o}", "name", name, "agent", json_str(given, "at"), "pd",
				       pd ? pd : json_str(mr, "pd"), "type", type && !strcmp(type, "1") ? 1 : 2, "over", region,
				       "offset", (json_int_t)json_int(given, "offset", 0), "bytes",
				       (json_int_t)json_int(given, "size", json_int(mr, "bytes", 0) - json_int(given, "offset", 0)),
				       "access", access ? json_incref(access) : json_pack("[s,s]", "REMOTE_WRITE", "REMOTE_READ")));
	}
	return 0;
}

int plan_objects(struct planner *p)
{
	int rc = add_agents(p);

	if (!rc)
		rc = plan_set_check(p);
	if (!rc)
		rc = add_pairs(p);
	if (!rc)
		rc = plan_link(p);
	if (!rc)
		rc = add_pds(p);
	if (!rc)
		rc = add_cqs(p);
	if (!rc)
		rc = add_srqs(p);
	plan_xrc_domains(p);
	if (!rc)
		rc = add_named_mrs(p);
	if (!rc)
		rc = add_mws(p);
	if (!rc)
		rc = plan_datagrams(p);
	return rc;
}

static uint64_t whole_pages(uint64_t bytes)
{
	return bytes ? (bytes + PAGE - 1) / PAGE * PAGE : PAGE;
}

static void add_mr(struct planner *p, const json_t *owner, const char *owner_key, const char *role, uint64_t bytes, bool remote)
{
	json_t *access = remote ? json_pack("[s,s,s,s]", "LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC")
				: json_pack("[s]", "LOCAL_WRITE");
	json_t *mr = json_pack("{s:o,s:s,s:s,s:I,s:o,s:s,s:n}", "name", json_sprintf("%s.%s", json_str(owner, "name"), role),
			       "agent", json_str(owner, "agent"), "pd", json_str(owner, "pd"), "bytes",
			       (json_int_t)whole_pages(bytes), "access", access, "role", role, "qp");

	json_object_set_new(mr, owner_key, json_string(json_str(owner, "name")));
	json_array_append_new(p->mrs, mr);
}

/* Slots for what a device makes of `depth`. */
static uint64_t receive_bytes(int64_t depth, uint64_t bytes)
{
	uint64_t slots = 1;

	while (slots < (uint64_t)depth + 1)
		slots <<= 1;
	return slots * ((bytes + 63) / 64 * 64);
}

static uint64_t head_bytes(const json_t *receiver)
{
	return (uint64_t)json_int(receiver, "head_bytes", 0);
}

static uint64_t room_of(const struct planner *p, const json_t *qp, const char *role)
{
	char name[160];

	snprintf(name, sizeof(name), "%s.%s", json_str(qp, "name"), role);
	return (uint64_t)json_int(p->room, name, 0);
}

static int check_agent_bytes(struct planner *p)
{
	const char *agent;
	json_t *unused, *mr;
	size_t i;

	json_object_foreach(p->agents, agent, unused) {
		uint64_t bytes = 0;

		json_array_foreach(p->mrs, i, mr)
			if (!strcmp(json_str(mr, "agent"), agent))
				bytes += (uint64_t)json_int(mr, "bytes", 0);
		if (bytes > PLAN_AGENT_BYTES_MAX)
			return error_set(p->e, -EFBIG,
					 "agent %s would need %llu MiB of registered memory, allowed are %llu: shorter messages, "
					 "smaller queues (max_recv_wr) or fewer pairs",
					 agent, (unsigned long long)(bytes >> 20),
					 (unsigned long long)(PLAN_AGENT_BYTES_MAX >> 20));
	}
	return 0;
}

int plan_memory(struct planner *p)
{
	size_t i;
	json_t *qp, *srq;

	json_array_foreach(p->qps, i, qp) {
		uint64_t quarter = (uint64_t)json_int(p->traffic, json_str(qp, "name"), 0);

		add_mr(p, qp, "qp", "tx", room_of(p, qp, "tx"), false);
		if (!json_str(qp, "srq") && !plan_is_xrc(qp))
			add_mr(p, qp, "qp", "rx", receive_bytes(wr_count(p, qp, "recv"), p->msg_bytes + head_bytes(qp)), false);
		add_mr(p, qp, "qp", "mem", room_of(p, qp, "mem"), true);
		if (quarter)
			add_mr(p, qp, "qp", "trf", 4 * quarter, true);
	}
	json_array_foreach(p->srqs, i, srq)
		add_mr(p, srq, "srq", "rx",
		       receive_bytes(json_int(srq, "depth", 0), (uint64_t)json_int(srq, "bytes", 0) + head_bytes(srq)), false);
	return check_agent_bytes(p);
}
