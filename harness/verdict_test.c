/* SPDX-License-Identifier: MIT */
/* Golden folders: testdata/verdict/NAME/{plan.json,observations.jsonl,profile.yaml?,verdict.json}. What each must come to stands in
 * the table below as well, so that a golden file written anew with QPDRILL_GOLDEN=write cannot go wrong unseen. */
#include "verdict.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"
#include "json.h"
#include "test.h"

#define DATA "harness/testdata/verdict/"
#define KERNEL "6.1.0-57-amd64"

struct input {
	json_t *plan, *records;
	bool torn, has_profile;
	struct profile profile;
};

static void input_load(const char *name, struct input *in)
{
	struct error e = { "" };
	struct diag d = { .text = NULL };
	char path[512];

	memset(in, 0, sizeof(*in));
	snprintf(path, sizeof(path), DATA "%s/plan.json", name);
	CU_ASSERT_FATAL(json_load(path, &in->plan, &e) == 0);
	snprintf(path, sizeof(path), DATA "%s/observations.jsonl", name);
	CU_ASSERT_FATAL(json_load_lines(path, &in->records, &in->torn, &e) == 0);
	snprintf(path, sizeof(path), DATA "%s/profile.yaml", name);
	if (!access(path, F_OK)) {
		in->has_profile = !profile_load(path, KERNEL, &in->profile, &d, &e);
		ROW_ASSERT(in->has_profile, "%s: %s", path, d.text ? d.text : e.text);
	}
	diag_release(&d);
}

static void input_release(struct input *in)
{
	json_decref(in->plan);
	json_decref(in->records);
	if (in->has_profile)
		profile_release(&in->profile);
}

static json_t *judge(const struct input *in, bool strict)
{
	struct verdict_options o = { .strict = strict };
	struct error e = { "" };
	json_t *verdict = NULL;
	int rc = verdict_judge(in->plan, in->records, in->torn, in->has_profile ? &in->profile : NULL, &o, &verdict, &e);

	ROW_ASSERT(rc == 0, "%s", e.text);
	return verdict;
}

static bool is_verdict(const json_t *v, const char *want)
{
	const char *have = json_str(v, "verdict");

	return have && !strcmp(have, want);
}

static const struct row {
	const char *name, *verdict;
	const char *headline[4]; /* all of them are in it, or in the text of another finding */
} rows[] = {
	{ "rnr-pass", "pass", { "" } },
	{ "explained-event", "pass", { "" } },
	{ "psn-pass", "pass", { "" } },
	{ "rkey-pass", "pass", { "" } },
	{ "alternatives-and-ranges", "pass", { "" } },
	/* The scenario is wrong: step, side, expected, seen. */
	{ "wrong-expectation",
	  "fail",
	  { "scenarios/t/wrong-expectation.yaml:8: step 4 (expect): p.a: expected wc: [RETRY_EXC_ERR",
	    "seen RNR_RETRY_EXC_ERR, WR_FLUSH_ERR x 2" } },
	{ "wrong-return", "fail", { "step 3 (post)", "expected the post to return 0", "seen ENOMEM" } },
	{ "fault-not-fired-and-missed",
	  "fail",
	  { "step 4 (expect): p.a: expected wc: every one RETRY_EXC_ERR",
	    "; and fault dry (missing_receive) left no evidence that it fired" } },
	{ "fault-not-fired", "inconclusive", { "fault dry (missing_receive) left no evidence that it fired" } },
	/* What nobody named. */
	{ "unexplained-completion", "fail", { "unexpected REM_OP_ERR" } },
	{ "unexplained-event", "fail", { "unexpected event QP_FATAL" } },
	{ "unexplained-state", "fail", { "p.b: expected RTS, seen ERR, and no step or error explains the change" } },
	/* What a verb returns. */
	{ "queue-full", "pass", { "" } },
	{ "queue-full-stale-profile", "pass", { "" } },
	{ "queue-holds-more", "fail", { "p.a.send: expected the post to return ENOMEM, seen 0" } },
	{ "queue-holds-more-in-profile", "deviation", { "holds-more" } },
	/* The account. */
	{ "double-completion", "fail", { "seen a second one (WR_FLUSH_ERR) for request 2 of life 1" } },
	{ "unknown-wr-id", "fail", { "unknown wr_id" } },
	{ "refused-send-completes", "fail", { "perhaps of `too_early`, whose post was refused (EINVAL)" } },
	{ "refused-send-completes-in-profile", "deviation", { "runs-later" } },
	{ "missing-completion", "fail", { "WR_FLUSH_ERR" } },
	{ "counted-one-too-few",
	  "fail",
	  { "p.a: expected no completion of `w` but those that the pattern names, seen one more SUCCESS (request 2)" } },
	{ "out-of-order", "fail", { "p.a.recv: expected completions in posting order" } },
	{ "former-life",
	  "fail",
	  { "p.b.recv: expected no completion of life 1 after the QP went to RESET, seen WR_FLUSH_ERR for request 3 of life 1" } },
	{ "flush-without-cause", "fail", { "p.b: flush without explanation" } },
	/* Time. */
	{ "too-early", "fail", { "too early", "rnr", "12" } },
	{ "too-late-warns", "pass", { "" } },
	{ "silent-too-early", "fail", { "too early", "silent" } },
	{ "silent-too-late", "fail", { "too late", "silent" } },
	{ "silent-late-on-a-busy-machine", "pass", { "" } },
	/* A SUCCESS that is none. */
	{ "psn-false-success",
	  "fail",
	  { "step 4 (expect): p.a: SUCCESS for `ghost`, but nothing of it there at p.b",
	    "expected wc: every one RETRY_EXC_ERR, seen SUCCESS" } },
	{ "psn-says-success-and-absent", "fail", { "SUCCESS for `ghost`, but nothing of it there at p.b" } },
	{ "payload-looked-at-before-its-completion", "pass", { "" } },
	{ "psn-false-success-in-profile", "deviation", { "the profile's false-success" } },
	{ "psn-false-success-unseen",
	  "fail",
	  { "likely the profile's false-success, which no run has shown on this kernel (6.1.0-57-amd64, inside its range)" } },
	{ "psn-false-success-other-kernel", "fail", { "likely the profile's false-success" } },
	{ "psn-stale-profile", "pass", { "" } },
	/* An event that the device does not have. */
	{ "rkey-no-event", "fail", { "WR_FLUSH_ERR" } },
	{ "rkey-no-event-in-profile", "deviation", { "no-event" } },
	{ "rkey-no-event-without-waiver", "fail", { "flush without explanation" } },
	{ "rkey-stale-profile", "pass", { "" } },
	/* Kernel, lab, harness. */
	{ "guest-crash", "fail", { "the guest died", "Kernel panic - not syncing: sysrq triggered crash" } },
	{ "guest-hang", "fail", { "the guest died", "no word for 30 s" } },
	{ "torn", "error", { "ends in the middle of a line" } },
	{ "no-end", "error", { "the record has no end" } },
	{ "nothing-observed", "error", { "step 1" } },
	{ "setup-failed", "error", { "the case could not be set up: agent a ended before its hello: exit status 3" } },
	{ "kernel-warning", "fail", { "WARNING: CPU: 1" } },
	{ "residue", "fail", { "netem on qd0a" } },
	{ "agent-died", "fail", { "agent b is gone and no fault explains it: killed by signal 11" } },
	{ "records-lost", "error", { "12 of records lost" } },
	{ "step-error", "error", { "agent a: no answer" } },
	{ "skipped-by-plan", "skip", { "needs the wire" } },
	{ "blocked-as-expected", "pass", { "" } },
	{ "blocked-unexpected", "fail", { "rx: ibv_destroy_cq blocked for 300 ms" } },
	/* What is allowed, from when on; a key that proves nothing. */
	{ "allowed-event", "pass", { "" } },
	{ "allowed-too-late", "fail", { "p.b: unexpected event QP_FATAL" } },
	{ "old-key", "pass", { "" } },
	{ "old-key-given-out-again", "inconclusive", { "the device gave out the same rkey again for pool" } },
	/* Recovery, traffic, repetition. */
	{ "recovery-not-verified", "fail", { "pair p", "3 of 24 messages bad" } },
	{ "recovery-meant-to-fail", "fail", { "the scenario says it fails" } },
	{ "bad-traffic", "fail", { "p.b: traffic traffic-9: expected every message intact, seen 1 bad" } },
	/* What the wire saw. */
	{ "wire-pass", "pass", { "" } },
	{ "wire-shows-too-early", "fail", { "too early", "silent" } },
	{ "wire-stranger", "fail", { "a packet of no connection came by the wire: RC_ACKNOWLEDGE from b for QP 99" } },
	{ "wire-first-psn", "fail", { "p.a: life 1 begins with a PSN that is not the configured one: +5 from it" } },
	{ "wire-sent-too-often", "fail", { "p.a: PSN 0 was sent 5 times with no answer between: retry_cnt 3 allows 4" } },
	{ "wire-sent-too-soon", "fail", { "p.a: PSN 0 was sent again after 5", "the least is 16.6 ms (timeout)" } },
	{ "wire-rnr-too-soon", "fail", { "p.a: PSN 0 was sent again after 2.9", "the least is 10.2 ms (the RNR NAK's timer)" } },
	{ "wire-rnr-waited-out", "pass", { "" } },
	{ "wire-out-of-order", "fail", { "PSN 1 for the first time after PSN 2" } },
	{ "wire-lost-frames", "inconclusive", { "the wire at port a lost 3 frames: they came in and the receive ring was full" } },
	{ "wire-lost-captures", "pass", { "" } },
	{ "wire-died", "error", { "the wire died: killed by signal 9" } },
	{ "wire-never-matched", "inconclusive", { "fault hole (wire)", "512 packets came to it" } },
	{ "repeat-all-pass", "pass", { "" } },
	{ "repeat-enough-pass", "pass", { "" } },
	{ "repeat-too-few-pass", "fail", { "step 4 iteration 2" } },
};

static bool is_told(const json_t *v, const char *text)
{
	const json_t *f;
	size_t i;

	if (strstr(json_str(v, "headline"), text))
		return true;
	json_array_foreach(json_object_get(v, "findings"), i, f)
		if (strstr(json_str(f, "text"), text))
			return true;
	return false;
}

static void check_golden(const struct row *row, json_t *verdict)
{
	const char *write = getenv("QPDRILL_GOLDEN");
	struct error e = { "" };
	json_t *golden = NULL;
	char path[512];

	snprintf(path, sizeof(path), DATA "%s/verdict.json", row->name);
	if (write && !strcmp(write, "write"))
		CU_ASSERT(json_save(path, verdict, &e) == 0);
	if (json_load(path, &golden, &e))
		golden = NULL;
	ROW_ASSERT(golden && json_equal(golden, verdict), "%s differs (QPDRILL_GOLDEN=write writes it anew)", path);
	json_decref(golden);
}

static void test_golden(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		struct input in;
		json_t *v;

		input_load(row->name, &in);
		v = judge(&in, false);
		ROW_ASSERT(is_verdict(v, row->verdict), "%s: wanted %s, is %s: %s", row->name, row->verdict, json_str(v, "verdict"),
			   json_str(v, "headline"));
		for (int k = 0; k < 4 && row->headline[k]; k++)
			ROW_ASSERT(is_told(v, row->headline[k]), "%s: `%s` is not in `%s`", row->name, row->headline[k],
				   json_str(v, "headline"));
		check_golden(row, v);
		json_decref(v);
		input_release(&in);
	}
}

static void test_same_bytes(void)
{
	struct input in;
	json_t *a, *b;

	input_load("rkey-no-event-in-profile", &in);
	a = judge(&in, false);
	b = judge(&in, false);
	CU_ASSERT(json_equal(a, b));
	json_decref(a);
	json_decref(b);
	input_release(&in);
}

static void test_strict(void)
{
	struct input in;
	json_t *v;

	input_load("psn-false-success-in-profile", &in);
	v = judge(&in, true);
	CU_ASSERT(is_verdict(v, "fail"));
	CU_ASSERT(json_array_size(json_object_get(v, "deviations")) == 2);
	json_decref(v);
	input_release(&in);
}

static bool has_finding(const json_t *v, const char *severity, const char *text)
{
	const json_t *f;
	size_t i;

	json_array_foreach(json_object_get(v, "findings"), i, f)
		if (!strcmp(json_str(f, "severity"), severity) && strstr(json_str(f, "text"), text))
			return true;
	return false;
}

static void test_stale(void)
{
	static const struct {
		const char *name, *id;
	} stale[] = { { "psn-stale-profile", "false-success" },
		      { "psn-stale-profile", "stays-up" },
		      { "rkey-stale-profile", "no-event" },
		      { "queue-full-stale-profile", "holds-more" } };

	for (size_t i = 0; i < sizeof(stale) / sizeof(stale[0]); i++) {
		struct input in;
		json_t *v;

		input_load(stale[i].name, &in);
		v = judge(&in, false);
		ROW_ASSERT(json_array_has(json_object_get(v, "stale"), stale[i].id), "%s: %s", stale[i].name, stale[i].id);
		ROW_ASSERT(has_finding(v, "warning", stale[i].id), "%s: %s", stale[i].name, stale[i].id);
		json_decref(v);
		input_release(&in);
	}
}

/* A failure tells its step, line, side, what was expected and seen, and what was observed last. */
static void test_failure_is_told(void)
{
	struct input in;
	const json_t *f;
	json_t *v;

	input_load("wrong-expectation", &in);
	v = judge(&in, false);
	f = json_array_get(json_object_get(v, "findings"), 0);
	CU_ASSERT_FATAL(f != NULL);
	CU_ASSERT(json_int(f, "step", 0) == 4 && json_int(f, "line", 0) == 8);
	CU_ASSERT(!strcmp(json_str(f, "at"), "p.a"));
	CU_ASSERT(strstr(json_str(f, "expected"), "RETRY_EXC_ERR") == json_str(f, "expected") + strlen("wc: ["));
	CU_ASSERT(strstr(json_str(f, "seen"), "RNR_RETRY_EXC_ERR, WR_FLUSH_ERR x 2") != NULL);
	CU_ASSERT(json_array_size(json_object_get(f, "last")) > 2);
	json_decref(v);
	input_release(&in);
}

static void test_pass_is_told(void)
{
	const json_t *w;
	struct input in;
	json_t *v;

	input_load("rnr-pass", &in);
	v = judge(&in, false);
	CU_ASSERT(json_array_size(json_object_get(v, "findings")) == 0);
	CU_ASSERT(!strcmp(json_str(v, "seen"), "a RNR_RETRY_EXC_ERR 41.0 ms, b RTS"));
	w = json_array_get(json_object_get(v, "windows"), 0);
	CU_ASSERT(w && !strcmp(json_str(w, "detection"), "rnr") && json_int(w, "low_ns", 0) == 3 * 10240000 &&
		  json_bool(w, "ok", false));
	CU_ASSERT(json_int(json_object_get(json_object_get(v, "counters"), "dev.a"), "rcvd_rnr_err", 0) == 4);
	CU_ASSERT(json_int(json_object_get(json_object_get(v, "ledger"), "p.a.send"), "posted", 0) == 7);
	json_decref(v);
	input_release(&in);
}

/* ---- one thing changed in a record that passes: the verdict must leave `pass` ---- */

static json_t *find(json_t *records, const char *kind, const char *obj, const char *key, const char *value)
{
	json_t *r;
	size_t i;

	json_array_foreach(records, i, r)
		if (!strcmp(json_str(r, "kind"), kind) && (!obj || (json_str(r, "obj") && !strcmp(json_str(r, "obj"), obj))) &&
		    (!key || (json_str(r, key) && !strcmp(json_str(r, key), value))))
			return r;
	CU_FAIL("the record to change is not there");
	return NULL;
}

static void drop(json_t *records, const json_t *which)
{
	const json_t *r;
	size_t i;

	json_array_foreach(records, i, r)
		if (r == which) {
			json_array_remove(records, i);
			return;
		}
}

static json_t *copy_before(json_t *records, const json_t *which)
{
	json_t *r, *copy = json_deep_copy(which);
	size_t i;

	json_array_foreach(records, i, r)
		if (r == which) {
			json_array_insert_new(records, i, copy);
			return copy;
		}
	json_decref(copy);
	return NULL;
}

static void set(json_t *r, const char *key, const char *value)
{
	json_object_set_new(r, key, json_string(value));
}

static void status_of_the_cause(json_t *rs)
{
	set(find(rs, "wc", "p.a.send", "status", "RNR_RETRY_EXC_ERR"), "status", "RETRY_EXC_ERR");
}

static void cause_becomes_success(json_t *rs)
{
	set(find(rs, "wc", "p.a.send", "status", "RNR_RETRY_EXC_ERR"), "status", "SUCCESS");
}

static void flush_becomes_a_second_cause(json_t *rs)
{
	set(find(rs, "wc", "p.a.send", "status", "WR_FLUSH_ERR"), "status", "RNR_RETRY_EXC_ERR");
}

static void cause_is_lost(json_t *rs)
{
	drop(rs, find(rs, "wc", "p.a.send", "status", "RNR_RETRY_EXC_ERR"));
}

static void receive_flush_is_lost(json_t *rs)
{
	drop(rs, find(rs, "wc", "p.a.recv", "status", "WR_FLUSH_ERR"));
}

static void order_is_swapped(json_t *rs)
{
	json_t *cause = find(rs, "wc", "p.a.send", "status", "RNR_RETRY_EXC_ERR"),
	       *flush = find(rs, "wc", "p.a.send", "status", "WR_FLUSH_ERR");

	set(cause, "status", "WR_FLUSH_ERR");
	set(flush, "status", "RNR_RETRY_EXC_ERR");
	json_object_set_new(flush, "count", json_integer(1));
	json_object_set(flush, "last", json_object_get(flush, "first"));
}

static void qpn_of_another_life(json_t *rs)
{
	set(find(rs, "wc", "p.a.send", "status", "RNR_RETRY_EXC_ERR"), "first", "0x20001100000000");
}

static void a_completion_twice(json_t *rs)
{
	copy_before(rs, find(rs, "wc", "p.a.recv", "status", "WR_FLUSH_ERR"));
}

static void an_event_more(json_t *rs)
{
	json_t *r = copy_before(rs, find(rs, "payload", NULL, NULL, NULL));

	set(r, "kind", "event");
	set(r, "obj", "p.a");
	set(r, "event", "QP_FATAL");
	set(r, "src", "agent/a");
}

static void state_after_the_error(json_t *rs)
{
	json_t *r;
	size_t i;

	json_array_foreach(rs, i, r)
		if (!strcmp(json_str(r, "kind"), "state") && json_int(r, "step", 0) == 5)
			set(r, "new", "RTS");
}

static void peer_state(json_t *rs)
{
	json_t *r;
	size_t i;

	json_array_foreach(rs, i, r)
		if (!strcmp(json_str(r, "kind"), "state") && json_int(r, "step", 0) == 6)
			set(r, "new", "ERR");
}

static void modify_that_went_elsewhere(json_t *rs)
{
	set(find(rs, "state", "p.b", "asked", "RTS"), "new", "RTR");
}

static void fired_is_gone(json_t *rs)
{
	drop(rs, find(rs, "fault", NULL, "phase", "fired"));
}

static void evidence_is_empty(json_t *rs)
{
	json_object_set_new(find(rs, "fault", NULL, "phase", "fired"), "evidence", json_object());
}

static void injection_is_gone(json_t *rs)
{
	drop(rs, find(rs, "fault", NULL, "phase", "inject"));
}

static void payload_arrived(json_t *rs)
{
	json_t *r = find(rs, "payload", NULL, NULL, NULL);

	json_object_set_new(r, "absent", json_integer(2));
	json_object_set_new(r, "intact", json_integer(1));
	set(r, "indices", "iaa");
}

static void payload_not_looked_at(json_t *rs)
{
	drop(rs, find(rs, "payload", NULL, NULL, NULL));
}

static void post_accepted_less(json_t *rs)
{
	json_object_set_new(find(rs, "post", "p.a.send", "as", "unheard"), "errno", json_integer(22));
}

static void traffic_had_errors(json_t *rs)
{
	json_object_set_new(find(rs, "traffic", "p.b", "as", "traffic-9"), "bad_payload", json_integer(1));
}

static void traffic_completion_failed(json_t *rs)
{
	set(find(rs, "wc", "p.b.send", "traffic", "traffic-9"), "status", "REM_OP_ERR");
}

static void recovery_not_verified(json_t *rs)
{
	set(find(rs, "recover", NULL, "phase", "verified"), "phase", "failed");
}

static void recovery_never_told(json_t *rs)
{
	drop(rs, find(rs, "recover", NULL, "phase", "verified"));
}

static void step_timed_out(json_t *rs)
{
	json_t *r;
	size_t i;

	json_array_foreach(rs, i, r)
		if (!strcmp(json_str(r, "kind"), "step") && json_int(r, "step", 0) == 9 && json_str(r, "outcome"))
			set(r, "outcome", "timeout");
}

static void step_skipped(json_t *rs)
{
	json_t *r;
	size_t i;

	json_array_foreach(rs, i, r)
		if (!strcmp(json_str(r, "kind"), "step") && json_int(r, "step", 0) == 9 && json_str(r, "outcome"))
			set(r, "outcome", "skipped");
}

static void residue_is_left(json_t *rs)
{
	json_object_set_new(find(rs, "residue", NULL, "what", "link"), "ok", json_false());
}

static void last_records_are_gone(json_t *rs)
{
	while (json_array_size(rs) > 60)
		json_array_remove(rs, json_array_size(rs) - 1);
}

static void observed_too_short(json_t *rs)
{
	uint64_t begin = 0;
	json_t *r;
	size_t i;

	json_array_foreach(rs, i, r) {
		if (json_int(r, "step", 0) != 6)
			continue;
		if (!begin)
			begin = json_u64(r, "t", 0);
		json_object_set_new(r, "t", json_integer((json_int_t)begin + 1000000));
	}
}

static const struct {
	const char *name;
	void (*change)(json_t *records);
} mutations[] = {
	{ "another status", status_of_the_cause },
	{ "the cause becomes SUCCESS", cause_becomes_success },
	{ "a second cause", flush_becomes_a_second_cause },
	{ "the cause is lost", cause_is_lost },
	{ "a receive's flush is lost", receive_flush_is_lost },
	{ "flush before cause", order_is_swapped },
	{ "a wr_id of another life", qpn_of_another_life },
	{ "completions twice", a_completion_twice },
	{ "an event more", an_event_more },
	{ "the failed QP is in RTS", state_after_the_error },
	{ "the peer is in ERR", peer_state },
	{ "a modify that went elsewhere", modify_that_went_elsewhere },
	{ "no proof of the fault", fired_is_gone },
	{ "proof without evidence", evidence_is_empty },
	{ "no injection", injection_is_gone },
	{ "a message arrived", payload_arrived },
	{ "nobody looked at the payload", payload_not_looked_at },
	{ "the post was refused", post_accepted_less },
	{ "a bad message", traffic_had_errors },
	{ "an error in the traffic", traffic_completion_failed },
	{ "recovery failed", recovery_not_verified },
	{ "recovery not verified", recovery_never_told },
	{ "a step timed out", step_timed_out },
	{ "a step was skipped", step_skipped },
	{ "residue", residue_is_left },
	{ "the record is cut", last_records_are_gone },
	{ "not observed for as long as asked", observed_too_short },
};

static void test_mutations(void)
{
	for (size_t i = 0; i < sizeof(mutations) / sizeof(mutations[0]); i++) {
		struct input in;
		json_t *v;

		input_load("rnr-pass", &in);
		mutations[i].change(in.records);
		v = judge(&in, false);
		ROW_ASSERT(v && !is_verdict(v, "pass") && !is_verdict(v, "deviation"), "%s: still %s", mutations[i].name,
			   json_str(v, "verdict"));
		json_decref(v);
		input_release(&in);
	}
}

/* Whatever single record is missing, the verdict never becomes a crash, and no verdict is missing. */
static void test_any_record_missing(void)
{
	struct input in;
	size_t n;

	input_load("rnr-pass", &in);
	n = json_array_size(in.records);
	for (size_t i = 0; i < n; i++) {
		json_t *gone = json_incref(json_array_get(in.records, i)), *v;

		json_array_remove(in.records, i);
		v = judge(&in, false);
		ROW_ASSERT(v && json_str(v, "verdict"), "without record %zu", i);
		json_decref(v);
		json_array_insert_new(in.records, i, gone);
	}
	input_release(&in);
}

/* A field that is missing, or of another sort, is no crash either: each case gets a verdict. */
static void test_any_field_odd(void)
{
	static const char *const odd[] = { NULL, "7", "\"x\"", "[]", "{}", "-1", "\"0xffffffffffffffff\"", "null" };
	const char *const names[] = { "rnr-pass", "psn-false-success-in-profile", "blocked-as-expected", "repeat-enough-pass" };
	unsigned judged = 0;

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		struct input in;

		input_load(names[n], &in);
		for (size_t i = 0; i < json_array_size(in.records); i++) {
			json_t *whole = json_array_get(in.records, i), *value;
			const char *key;
			size_t k = i % (sizeof(odd) / sizeof(odd[0]));

			json_incref(whole);
			json_object_foreach(whole, key, value) {
				json_t *copy = json_deep_copy(whole), *v;

				if (odd[k])
					json_object_set_new(copy, key, json_loads(odd[k], JSON_DECODE_ANY, NULL));
				else
					json_object_del(copy, key);
				json_array_set_new(in.records, i, copy);
				v = judge(&in, false);
				ROW_ASSERT(v && json_str(v, "verdict"), "%s: record %zu, %s", names[n], i, key);
				json_decref(v);
				judged++;
				k = (k + 1) % (sizeof(odd) / sizeof(odd[0]));
			}
			json_array_set_new(in.records, i, whole);
		}
		input_release(&in);
	}
	CU_ASSERT(judged > 1000);
}

static void test_exit_status(void)
{
	static const struct {
		unsigned counts[NUM_VERDICTS];
		int status;
	} table[] = {
		{ { 0 }, 3 },
		{ { [VERDICT_PASS] = 5 }, 0 },
		{ { [VERDICT_PASS] = 5, [VERDICT_DEVIATION] = 1 }, 0 },
		{ { [VERDICT_PASS] = 5, [VERDICT_SKIP] = 1 }, 0 },
		{ { [VERDICT_SKIP] = 2 }, 77 },
		{ { [VERDICT_SKIP] = 2, [VERDICT_INCONCLUSIVE] = 1 }, 3 },
		{ { [VERDICT_PASS] = 2, [VERDICT_ERROR] = 1 }, 3 },
		{ { [VERDICT_FAIL] = 1, [VERDICT_ERROR] = 1, [VERDICT_PASS] = 9 }, 1 },
		{ { [VERDICT_FAIL] = 1, [VERDICT_SKIP] = 9 }, 1 },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		ROW_ASSERT(verdict_exit_status(table[i].counts) == table[i].status, "row %zu: %d", i,
			   verdict_exit_status(table[i].counts));
}

static void test_names(void)
{
	for (int i = 0; i < NUM_VERDICTS; i++)
		ROW_ASSERT(verdict_names[i] != NULL, "%d", i);
}

static const struct test_case cases[] = {
	{ "golden folders", test_golden },
	{ "the same files give the same bytes", test_same_bytes },
	{ "strict", test_strict },
	{ "stale entries", test_stale },
	{ "a failure is told", test_failure_is_told },
	{ "a pass is told", test_pass_is_told },
	{ "one thing changed and it passes no more", test_mutations },
	{ "any record missing", test_any_record_missing },
	{ "any field odd", test_any_field_odd },
	{ "exit status", test_exit_status },
	{ "every verdict has a name", test_names },
};

TEST_MAIN("verdict", cases)
