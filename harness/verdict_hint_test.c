/* SPDX-License-Identifier: MIT */
/*
 * testdata/mistakes: records of real runs in which somebody made one mistake and expected success. What is named first must be the
 * mistake; it is found from the symptoms alone, so it is found again where all that tells of the injected fault is taken away.
 */
#include "verdict_rig.h"

#include "many.h"
#include "plan.h"

#define MISTAKES "harness/testdata/mistakes/"

static const struct {
	const char *name, *cause, *why; /* what both must contain */
} rows[] = {
	{ "acks-lost", "answers (acknowledgements", "p.b were lost on the way back" },
	{ "gid-moved", "not behind the GID", "p.a sends to ::ffff:" },
	{ "link-down", "a link or a port on the way is down", "PORT_ERR" },
	{ "missing-receive", "no receive posted", "posted 0 receives" },
	{ "mr-without-the-right", "registered without the right", "p.b.mem is registered without REMOTE_WRITE" },
	{ "mtu-mismatch", "disagree on path_mtu", "4096 at p.a and 1024 at p.b" },
	{ "no-retries", "retry_cnt 0", "1 packets were lost" },
	{ "old-key", "the rkey is not that of the memory", "which pool had in life 1" },
	{ "path-mtu-too-long", "packets of this length", "up to 64 bytes" },
	{ "peer-died", "the peer's process has died", "agent b is dead" },
	{ "peer-destroyed", "the peer's queue pair is gone", "p.b was destroyed" },
	{ "peer-in-error", "does not answer in its state", "p.b was in ERR" },
	{ "pkey-wrong", "the P_Key is not one of the peer's", "bad_pkey_cntr +3 at p.b" },
	{ "psn-behind", "PSN is behind", "16 behind" },
	{ "psn-off-by-one", "PSN is ahead", "1 ahead" },
	{ "qp-without-the-right", "made without the right", "p.b does not allow REMOTE_WRITE" },
	{ "rnr-for-ever", "no receive", "posted 0 receives" },
	{ "short-receive", "receive is shorter", "65 bytes, the receive at p.b has 64" },
	{ "stale-qpn", "another QPN", "p.a sends to QPN 0x" },
	{ "timeout-off", "timer that would send it again is off", "timeout 0" },
	{ "uc-missing-receive", "no receive posted: what finds none is lost", "posted 0 receives" },
	{ "ud-handle-gone", "the address handle was destroyed", "far was destroyed" },
	{ "ud-too-long", "a datagram is one packet", "8192 bytes, a packet of p.a at most 1024" },
	{ "ud-wrong-address", "does not lead to the peer", "p.a.ah leads to ::ffff:10.227.0.129" },
	{ "ud-wrong-qkey", "the Q_Key is not the peer's", "p.b has 0x11111111" },
	{ "ud-wrong-qpn", "another QPN", "p.a sends to QPN 0xffff" },
	{ "wrong-lkey", "the lkey is not that of the buffer", "SEND" },
	{ "wrong-rkey", "the rkey is not that of the memory", "only its key" },
};

static void load(const char *name, struct profile *profile, json_t **ret_plan, json_t **ret_records)
{
	struct error e = { "" };
	struct diag d = { .text = NULL };
	char path[256];
	bool torn;

	snprintf(path, sizeof(path), MISTAKES "%s/plan.json", name);
	MUST(json_load(path, ret_plan, &e) == 0);
	snprintf(path, sizeof(path), MISTAKES "%s/observations.jsonl", name);
	MUST(many_load_records(path, ret_records, &torn, &e) == 0);
	MUST(profile_load("scenarios/profiles/rxe.yaml", KERNEL, profile, &d, &e) == 0);
	diag_release(&d);
}

/* As if nobody had said what was done. */
static void forget_faults(json_t *plan, json_t *records)
{
	json_t *r, *step;
	size_t i;

	for (i = json_array_size(records); i-- > 0;) {
		r = json_array_get(records, i);
		if (json_str(r, "kind") && !strcmp(json_str(r, "kind"), "fault"))
			json_array_remove(records, i);
	}
	json_array_foreach(json_object_get(plan, "steps"), i, step) {
		if (strcmp(json_str(step, "do"), "fault"))
			continue;
		json_object_set_new(step, "do", json_string("wait"));
		json_object_del(step, "fault");
		json_object_del(step, "args");
	}
	renumber(records);
}

static void check(const char *name, const json_t *verdict, const char *cause, const char *why, const char *how)
{
	const json_t *first = json_array_get(json_object_get(verdict, "causes"), 0);
	const char *seen = json_str(first, "cause") ? json_str(first, "cause") : "none";

	ROW_ASSERT(!is_verdict(verdict, "pass"), "%s%s passes", name, how);
	ROW_ASSERT(strstr(seen, cause), "%s%s: expected '%s', seen '%s': %s", name, how, cause, seen,
		   first ? json_str(first, "why") : json_str(verdict, "headline"));
	ROW_ASSERT(first && strstr(json_str(first, "why"), why), "%s%s: expected '%s', seen '%s'", name, how, why,
		   first ? json_str(first, "why") : "");
}

static json_t *judge_with(const struct profile *profile, const json_t *plan, const json_t *records)
{
	struct verdict_options o = { .strict = false };
	struct error e = { "" };
	json_t *verdict = NULL;

	ROW_ASSERT(verdict_judge(plan, records, false, profile, &o, &verdict, &e) == 0, "%s", e.text);
	return verdict;
}

static void test_mistakes(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct profile profile;
		json_t *plan, *records, *verdict;

		load(rows[i].name, &profile, &plan, &records);
		verdict = judge_with(&profile, plan, records);
		check(rows[i].name, verdict, rows[i].cause, rows[i].why, "");
		json_decref(verdict);
		forget_faults(plan, records);
		verdict = judge_with(&profile, plan, records);
		check(rows[i].name, verdict, rows[i].cause, rows[i].why, " without its fault");
		json_decref(verdict);
		json_decref(plan);
		json_decref(records);
		profile_release(&profile);
	}
}

/* That it was started again, and asked once more, makes its death no other one. */
static void test_peer_is_back(void)
{
	struct profile profile;
	json_t *plan, *records, *verdict, *again = NULL;
	size_t i;

	load("peer-died", &profile, &plan, &records);
	for (i = 0; i < json_array_size(records) && !again; i++)
		if (json_str(json_array_get(records, i), "asked") && !strcmp(json_str(json_array_get(records, i), "obj"), "p.b"))
			again = json_deep_copy(json_array_get(records, i));
	MUST(again);
	json_object_set(again, "t", json_object_get(json_array_get(records, json_array_size(records) - 1), "t"));
	json_object_set_new(again, "life", json_integer(2));
	MUST(json_array_append_new(records, again) == 0);
	renumber(records);
	verdict = judge_with(&profile, plan, records);
	check("peer-died", verdict, "the peer's process has died", "agent b is dead", ", with its peer back");
	json_decref(verdict);
	json_decref(plan);
	json_decref(records);
	profile_release(&profile);
}

/* The peer does not answer, and its CQ has said why. */
static void test_peer_cq_overflowed(void)
{
	struct profile profile;
	json_t *plan, *records, *verdict, *event;
	size_t i;

	load("peer-in-error", &profile, &plan, &records);
	for (i = 0; i < json_array_size(records); i++)
		if (json_has(json_array_get(records, i), "src", "agent/b"))
			break;
	MUST(i < json_array_size(records));
	event = json_pack("{s:O,s:O,s:s,s:s,s:s,s:s,s:i,s:i}", "t", json_object_get(json_array_get(records, i), "t"), "clk",
			  json_object_get(json_array_get(records, i), "clk"), "src", "agent/b", "kind", "event", "obj", "p.b.rcq",
			  "event", "CQ_ERR", "life", 1, "step", 1);
	MUST(event && json_array_insert_new(records, i + 1, event) == 0);
	renumber(records);
	verdict = judge_with(&profile, plan, records);
	check("peer-in-error", verdict, "a completion queue has overflowed", "p.b.rcq told CQ_ERR", ", by its CQ");
	json_decref(verdict);
	json_decref(plan);
	json_decref(records);
	profile_release(&profile);
}

/* Who they were, and how each ended. */
static void test_ends(void)
{
	struct profile profile;
	json_t *plan, *records, *verdict, *a, *b;

	load("wrong-rkey", &profile, &plan, &records);
	verdict = judge_with(&profile, plan, records);
	a = json_array_get(json_object_get(verdict, "ends"), 0);
	b = json_array_get(json_object_get(verdict, "ends"), 1);
	CU_ASSERT_STRING_EQUAL(json_str(a, "qp"), "p.a");
	CU_ASSERT_STRING_EQUAL(json_str(a, "status"), "REM_ACCESS_ERR");
	CU_ASSERT_STRING_EQUAL(json_str(a, "state"), "ERR");
	CU_ASSERT(json_object_get(a, "vendor_err") != NULL && !json_object_get(b, "vendor_err"));
	CU_ASSERT(json_int(a, "qpn", -1) == json_int(b, "dest_qpn", -2) && json_int(b, "qpn", -1) == json_int(a, "dest_qpn", -2));
	CU_ASSERT(json_int(a, "sq_psn", -1) == json_int(b, "rq_psn", -2) && json_int(b, "sq_psn", -1) == json_int(a, "rq_psn", -2));
	CU_ASSERT_STRING_EQUAL(json_str(a, "gid"), json_str(b, "dest_gid"));
	CU_ASSERT(json_int(a, "timeout", 0) == 14 && json_int(a, "retry_cnt", 0) == 3 && json_int(a, "path_mtu", 0) == 1024);
	json_decref(verdict);
	json_decref(plan);
	json_decref(records);
	profile_release(&profile);
}

/* The key that went out, beside the one that the memory has. */
static void test_ends_key(void)
{
	struct profile profile;
	json_t *plan, *records, *verdict, *a, *b;

	load("old-key", &profile, &plan, &records);
	verdict = judge_with(&profile, plan, records);
	a = json_array_get(json_object_get(verdict, "ends"), 0);
	b = json_array_get(json_object_get(verdict, "ends"), 1);
	CU_ASSERT_STRING_EQUAL(json_str(a, "mr"), "pool");
	CU_ASSERT(json_u64(a, "rkey", 0) && json_u64(a, "mr_rkey", 0) && json_u64(a, "rkey", 0) != json_u64(a, "mr_rkey", 0));
	CU_ASSERT(!json_object_get(b, "rkey") && !json_object_get(b, "mr"));
	json_decref(verdict);
	json_decref(plan);
	json_decref(records);
	profile_release(&profile);
}

/* What passes needs no explanation. */
static void test_none_of_a_pass(void)
{
	struct input in;
	json_t *verdict;

	input_load("rnr-pass", &in);
	verdict = judge(&in, false);
	CU_ASSERT(is_verdict(verdict, "pass") && !json_object_get(verdict, "causes") && !json_object_get(verdict, "ends"));
	json_decref(verdict);
	input_release(&in);
}

static const struct test_case cases[] = {
	{ "the first cause that is named is the mistake", test_mistakes },
	{ "a peer that is back had died all the same", test_peer_is_back },
	{ "a peer whose CQ has overflowed", test_peer_cq_overflowed },
	{ "both ends", test_ends },
	{ "the key that was used", test_ends_key },
	{ "a pass has none", test_none_of_a_pass },
};

TEST_MAIN("hints", cases)
