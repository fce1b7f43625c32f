/* SPDX-License-Identifier: MIT */
/* The pair that looks on: agents and objects of its own on the file's two devices. */
#include "plan_internal.h"

#include <string.h>

#include "json.h"
#include "units.h"

#define PERIOD_NS (2 * NSEC_PER_MSEC)
/* Under emulation one message costs a good part of a millisecond of the two processors that all lanes share. */
#define GUEST_PERIOD_NS (40 * NSEC_PER_MSEC)
#define SIZE_BYTES 64
#define SEND_DEPTH 8
/* So many messages may come while the receiver's process does not run: there is no RNR NAK of a pair that only looks on. */
#define RECV_DEPTH 256
#define PAGE 4096

/* A busy machine answers late, and that is no error; what is lost is sent again after a second. */
static const struct {
	const char *name;
	int64_t value;
} patient[] = { { "timeout", 18 }, { "retry_cnt", 6 }, { "rnr_retry", 7 }, { "min_rnr_timer", 12 }, { "path_mtu", 256 } };

static json_t *mr_new(const char *qp, const char *agent, const char *role, int64_t bytes)
{
	return json_pack("{s:o,s:s,s:o,s:I,s:[s],s:s,s:s}", "name", json_sprintf("%s.%s", qp, role), "agent", agent, "pd",
			 json_sprintf("%s.pd", agent), "bytes", (json_int_t)bytes, "access", "LOCAL_WRITE", "role", role, "qp", qp);
}

static void add_end(struct planner *p, json_t *b, const char *agent, const char *device, const char *peer, int receives)
{
	json_t *qp = json_pack("{s:o,s:s,s:s,s:o,s:n,s:o,s:o,s:o,s:i}", "name", json_sprintf("%s.%s", PLAN_BYSTANDER, agent),
			       "pair", PLAN_BYSTANDER, "agent", agent, "peer", json_sprintf("%s.%s", PLAN_BYSTANDER, peer), "srq",
			       "pd", json_sprintf("%s.pd", agent), "send_cq", json_sprintf("%s.cq", agent), "recv_cq",
			       json_sprintf("%s.cq", agent), "msg_bytes", SIZE_BYTES);
	const char *name = json_str(qp, "name");
	json_t *cap, *attr;

	plan_attributes_default(p, qp);
	cap = json_object_get(qp, "cap");
	attr = json_object_get(qp, "attr");
	json_object_set_new(cap, "max_send_wr", json_integer(SEND_DEPTH));
	json_object_set_new(cap, "max_recv_wr", json_integer(receives ? receives : 1));
	json_object_set_new(attr, "access", json_array());
	for (size_t i = 0; i < sizeof(patient) / sizeof(*patient); i++)
		json_object_set_new(attr, patient[i].name, json_integer(patient[i].value));
	json_object_set_new(json_object_get(b, "agents"), agent, json_pack("{s:s}", "device", device));
	json_array_append_new(json_object_get(b, "pds"),
			      json_pack("{s:o,s:s}", "name", json_sprintf("%s.pd", agent), "agent", agent));
	json_array_append_new(json_object_get(b, "cqs"),
			      json_pack("{s:o,s:s,s:i,s:s}", "name", json_sprintf("%s.cq", agent), "agent", agent, "depth",
					2 * (SEND_DEPTH + receives), "poll", "auto"));
	/* One region each: to send from, or (a device may round its queue up) to receive into. */
	json_array_append_new(json_object_get(b, "mrs"),
			      mr_new(name, agent, receives ? "rx" : "trf", receives ? (int64_t)2 * receives * SIZE_BYTES : PAGE));
	json_array_append_new(json_object_get(b, "qps"), qp);
}

bool plan_is_bystander(const char *name)
{
	static const char *const before[] = { "", "dev.", "agent/" };

	for (size_t i = 0; name && i < sizeof(before) / sizeof(*before); i++) {
		size_t len = strlen(before[i]);

		if (!strncmp(name, before[i], len) && !strncmp(name + len, PLAN_BYSTANDER, strlen(PLAN_BYSTANDER)))
			return true;
	}
	return false;
}

json_t *plan_bystander(struct planner *p)
{
	json_t *b;

	if (json_object_get(p->doc, "bystander"))
		return json_false();
	b = json_pack("{s:s,s:I,s:I,s:i,s:I,s:{},s:[],s:[],s:[],s:[]}", "pair", PLAN_BYSTANDER, "period_ns", (json_int_t)PERIOD_NS,
		      "guest_period_ns", (json_int_t)GUEST_PERIOD_NS, "size", SIZE_BYTES, "gap_ns",
		      (json_int_t)(GUEST_PERIOD_NS + WINDOW_AT_ONCE_NS), "agents", "pds", "cqs", "mrs", "qps");
	add_end(p, b, PLAN_BYSTANDER "_a", "a", PLAN_BYSTANDER "_b", 0);
	add_end(p, b, PLAN_BYSTANDER "_b", "b", PLAN_BYSTANDER "_a", RECV_DEPTH);
	return b;
}
