/* SPDX-License-Identifier: MIT */
/* Golden folders: testdata/verdict/NAME/{plan.json,observations.jsonl,profile.yaml?,verdict.json}. What each must come to stands in
 * the table below as well, so that a golden file written anew with QPDRILL_GOLDEN=write cannot go wrong unseen. */
#include "verdict_rig.h"

#include "scenario.h"

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
	/* A send queue that is drained, or not yet. */
	{ "sqd-work-held-back", "fail", { "step 4 (expect): p.a: expected wc: every one SUCCESS, seen no completion" } },
	{ "sqd-drained-unasked-in-profile", "deviation", { "event: none, seen SQD, SQ_DRAINED: the profile's drained-unasked" } },
	/* What a verb returns. */
	{ "masks-tried", "pass", { "" } },
	{ "masks-tried-too-few", "error", { "p.a: 3 of 4 attempts were made for `mask: missing`" } },
	{ "queue-full", "pass", { "" } },
	{ "queue-full-stale-profile", "pass", { "" } },
	{ "queue-holds-more", "fail", { "p.a.send: expected the post to return ENOMEM, seen 0" } },
	{ "queue-holds-more-in-profile", "deviation", { "holds-more" } },
	/* An event that a poll waits for. */
	{ "completion-event", "pass", { "" } },
	{ "completion-event-missing-in-profile", "deviation", { "seen 0: the profile's not-solicited" } },
	{ "completion-event-missing-armed-otherwise", "fail", { "expected 1 completion events since it was armed, seen 0" } },
	/* The account. */
	{ "double-completion", "fail", { "seen a second one (WR_FLUSH_ERR) for request 2 of life 1" } },
	{ "unknown-wr-id", "fail", { "unknown wr_id" } },
	{ "refused-otherwise",
	  "fail",
	  { "step 2 (connect): expected the connect to be refused with STALE_CONN, seen p.a: p.a.cm: REJECTED CONSUMER_DEFINED" } },
	{ "refused-send-completes", "fail", { "perhaps of `too_early`, whose post was refused (EINVAL)" } },
	{ "refused-send-completes-in-profile", "deviation", { "runs-later" } },
	{ "missing-completion", "fail", { "WR_FLUSH_ERR" } },
	{ "counted-one-too-few",
	  "fail",
	  { "p.a: expected no completion of `w` but those that the pattern names, seen one more SUCCESS (request 2)" } },
	{ "flushes-counted-too-few",
	  "pass",
	  { "no WR_FLUSH_ERR on the receive queue but those that the pattern names, seen 4 more" } },
	{ "out-of-order", "fail", { "p.a.recv: expected completions in posting order" } },
	{ "former-life",
	  "fail",
	  { "p.b.recv: expected no completion of life 1 after the QP went to RESET, seen WR_FLUSH_ERR for request 3 of life 1" } },
	{ "flush-without-cause", "fail", { "p.b: flush without explanation" } },
	{ "cause-lost-in-both-queues", "deviation", { "the profile's cause-lost" } },
	/* Time. */
	{ "too-early", "fail", { "too early", "rnr", "12" } },
	{ "too-late-warns", "pass", { "" } },
	{ "silent-too-early", "fail", { "too early", "silent" } },
	{ "silent-too-late", "fail", { "too late", "silent" } },
	{ "silent-late-on-a-busy-machine", "pass", { "" } },
	{ "retries-spent-on-a-late-machine",
	  "inconclusive",
	  { "timers of this machine were up to 90.0 ms late: the peer may not have" } },
	{ "retries-spent-while-others-were-late",
	  "inconclusive",
	  { "timers of this machine were up to 90.0 ms late: the peer may not have" } },
	/* A SUCCESS that is none. */
	{ "psn-false-success",
	  "fail",
	  { "step 4 (expect): p.a: SUCCESS for `ghost`, but nothing of it there at p.b",
	    "expected wc: every one RETRY_EXC_ERR, seen SUCCESS" } },
	{ "psn-says-success-and-absent", "fail", { "SUCCESS for `ghost`, but nothing of it there at p.b" } },
	{ "payload-looked-at-before-its-completion", "pass", { "" } },
	{ "payload-looked-at-while-it-completed", "pass", { "" } },
	{ "payload-looked-at-and-not-there", "fail", { "SUCCESS for `ghost`, but nothing of it there at p.b" } },
	{ "psn-false-success-in-profile", "deviation", { "the profile's false-success" } },
	{ "psn-false-success-unseen",
	  "fail",
	  { "likely the profile's false-success, which no run has shown on this kernel (6.1.0-57-amd64, inside its range)" } },
	{ "psn-false-success-other-kernel", "fail", { "likely the profile's false-success" } },
	{ "psn-stale-profile", "pass", { "" } },
	/* What was only published excuses nothing. */
	{ "rnr-published-of-another-device",
	  "fail",
	  { "likely the profile's rnr-as-retries (a sender that finds no receive gives up with the status of an unanswered "
	    "one)" } },
	/* An event that the device does not have. */
	{ "rkey-no-event", "fail", { "WR_FLUSH_ERR" } },
	{ "rkey-no-event-in-profile", "deviation", { "no-event" } },
	{ "rkey-no-event-without-waiver", "fail", { "flush without explanation" } },
	{ "rkey-stale-profile", "pass", { "" } },
	/* Kernel, lab, harness. */
	{ "guest-crash", "fail", { "the guest died", "Kernel panic - not syncing: sysrq triggered crash" } },
	{ "lane-silent",
	  "error",
	  { "the case did not come to its end: no answer within 85 s (the case's time and 45 s more), and the kernel does not say "
	    "why",
	    "NMI: Not continuing" } },
	{ "lane-silent-and-stalled",
	  "fail",
	  { "rcu_sched detected stalls", "the case did not come to its end: no answer within 85 s" } },
	{ "guest-hang", "fail", { "the guest died", "no word for 30 s" } },
	{ "torn", "error", { "ends in the middle of a line" } },
	{ "no-end", "error", { "the record has no end" } },
	{ "nothing-observed", "error", { "step 1" } },
	{ "setup-failed", "error", { "the case could not be set up: agent a ended before its hello: exit status 3" } },
	{ "setup-stalled",
	  "error",
	  { "the case could not be set up: agent a, seed: no answer in time", "agent a did not answer: agent request" } },
	{ "kernel-warning", "fail", { "WARNING: CPU: 1" } },
	{ "residue", "fail", { "netem on qd0a" } },
	{ "fault-proven-each-time", "pass", { "" } },
	{ "fault-not-proven-once",
	  "inconclusive",
	  { "step 5 iteration 2 (fault): fault held (qp_error) left no evidence that it fired" } },
	{ "resources-flat", "pass", { "" } },
	{ "resources-flat-after-a-burst", "pass", { "" } },
	{ "resources-qps-grow",
	  "fail",
	  { "step 2 (repeat): resources: b: qp grew from 1 (round 5) to 11 (round 50), 0.2222 each round" } },
	{ "resources-heap-grows", "fail", { "resources: a: heap_bytes grew from", "resources: b: heap_bytes grew from" } },
	{ "resources-files-grow", "fail", { "resources: b: files grew from 29 (round 5) to 49 (round 50)" } },
	{ "resources-not-seen-to-the-end", "inconclusive", { "resources: the last look is of round 16" } },
	{ "agent-died", "fail", { "agent b is gone and no fault explains it: killed by signal 11" } },
	{ "records-lost", "error", { "12 of records lost" } },
	{ "step-error", "error", { "agent a: no answer" } },
	{ "skipped-by-plan", "skip", { "needs the wire" } },
	{ "answer-late", "fail", { "agent b did not answer: agent request blocked for 5.16 s" } },
	{ "answer-late-on-a-busy-machine",
	  "inconclusive",
	  { "agent b did not answer for 5.16 s, and timers of this machine were up to 1.50 s late: it may not have had its "
	    "turn" } },
	{ "step-late-on-a-busy-machine", "inconclusive", { "step 3 (post): agent b did not answer for 5.16 s" } },
	{ "blocked-as-expected", "pass", { "" } },
	{ "blocked-unexpected", "fail", { "rx: ibv_destroy_cq blocked for 300 ms" } },
	/* What is allowed, from when on; a key that proves nothing. */
	{ "allowed-event", "pass", { "" } },
	{ "allowed-too-late", "fail", { "p.b: unexpected event QP_FATAL: the allow of step" } },
	{ "allowed-in-profile",
	  "deviation",
	  { "p.a: REM_ACCESS_ERR on the send queue instead of what is allowed: the profile's other-status" } },
	{ "old-key", "pass", { "" } },
	{ "old-key-given-out-again", "inconclusive", { "the device gave out the same rkey again for pool" } },
	/* Recovery, traffic, repetition. */
	{ "recovery-not-verified", "fail", { "pair p", "3 of 24 messages bad" } },
	{ "recovery-meant-to-fail", "fail", { "the scenario says it fails" } },
	{ "recovery-meant-to-fail-in-profile", "deviation", { "the profile's recovers-all-the-same" } },
	{ "bad-traffic", "fail", { "p.b: traffic traffic-9: expected every message intact, seen 1 bad" } },
	/* What the wire saw. */
	{ "wire-pass", "pass", { "" } },
	{ "datagrams-recorded", "pass", { "" } },
	{ "wire-nak-spends-a-retry", "pass", { NULL } },
	{ "wire-shows-too-early", "fail", { "too early", "silent" } },
	{ "wire-stranger", "fail", { "a packet of no connection came by the wire: RC_ACKNOWLEDGE from b for QP 99" } },
	{ "wire-first-psn", "fail", { "p.a: life 1 begins with a PSN that is not the configured one: +5 from it" } },
	{ "wire-sent-too-often", "fail", { "p.a: PSN 0 was sent 5 times with no answer between: retry_cnt 3 allows 4" } },
	{ "wire-sent-too-soon", "fail", { "p.a: PSN 0 was sent again after 5", "the least is 16.6 ms (timeout)" } },
	{ "wire-rnr-before-it-was-sent", "fail", { "PSN 0 was sent 5 times with no answer between: retry_cnt 3 allows 4" } },
	{ "wire-rnr-too-soon", "fail", { "p.a: PSN 0 was sent again after 2.9", "the least is 10.0 ms (the RNR NAK's timer)" } },
	{ "wire-rnr-waited-out", "pass", { "" } },
	{ "wire-rnr-told-before-its-request", "pass", { "" } },
	{ "wire-read-resumed", "pass", { NULL } },
	{ "wire-out-of-order", "fail", { "PSN 1 for the first time after PSN 2" } },
	{ "wire-lost-frames", "inconclusive", { "the wire at port a lost 3 frames: they came in and the receive ring was full" } },
	{ "wire-lost-by-a-link-fault", "pass", { "3 frames were lost at port b, where unplugged (link_down) was active" } },
	{ "wire-lost-after-a-link-fault", "inconclusive", { "the wire at port b lost 3 frames" } },
	{ "wire-lost-since-a-link-fault", "pass", { "3 frames were lost at port b, where unplugged (link_down) was active" } },
	{ "wire-lost-captures", "pass", { "" } },
	{ "wire-died", "error", { "the wire died: killed by signal 9" } },
	{ "wire-never-matched", "inconclusive", { "fault hole (wire)", "512 packets came to it" } },
	/* A sweep over packets. */
	{ "first-pass", "pass", { "" } },
	{ "first-pass-of-some", "pass", { "" } },
	{ "first-pass-found-none",
	  "inconclusive",
	  { "the first pass found no packet that ${packet} could be: of 4 packets of the transfer none matches "
	    "{\"class\":\"cnp\"}" } },
	{ "first-pass-without-wire", "error", { "the wire died: killed by signal 9" } },
	{ "packet-did-not-occur",
	  "inconclusive",
	  { "packet a.request.7 did not occur: fault hole (wire) left no evidence that it fired", "512 packets came to it" } },
	{ "repeat-all-pass", "pass", { "" } },
	{ "repeat-enough-pass", "pass", { "" } },
	{ "repeat-too-few-pass", "fail", { "step 4 iteration 2" } },
	{ "repeat-inside-a-repeat", "pass", { "2 of 2 iterations passed, as >= 2 were to" } },
	{ "repeat-inside-a-repeat-too-few-pass",
	  "fail",
	  { "step 5 iteration 2.1", "expected >= 2 iterations that pass, seen 1 of 2", "1 of 2 iterations passed, as 1 were to" } },
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

/* What a first pass found, in order: by end, class and PSN; first transmissions of the first life, each once. */
static void test_first_pass(void)
{
	static const struct {
		const char *name, *packets;
	} passes[] = {
		{ "first-pass", "a.request.0 a.request.1 a.request.2 a.request.3 b.request.0 b.ack.0 b.ack.3" },
		{ "first-pass-of-some", "b.request.0 b.ack.0 b.ack.3" },
		{ "first-pass-found-none", "" },
	};

	for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++) {
		char found[256] = "";
		const json_t *packet;
		struct input in;
		json_t *v;
		size_t k;

		input_load(passes[i].name, &in);
		v = judge(&in, false);
		json_array_foreach(json_object_get(v, "packets"), k, packet) {
			char *name = scenario_packet_name(packet);

			snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%s", k ? " " : "", name);
			free(name);
		}
		ROW_ASSERT(!strcmp(found, passes[i].packets), "%s: %s", passes[i].name, found);
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
		      { "queue-full-stale-profile", "holds-more" },
		      { "completion-event", "not-solicited" } };

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
	{ "first passes", test_first_pass },
	{ "the same files give the same bytes", test_same_bytes },
	{ "strict", test_strict },
	{ "stale entries", test_stale },
	{ "a failure is told", test_failure_is_told },
	{ "a pass is told", test_pass_is_told },
	{ "exit status", test_exit_status },
	{ "every verdict has a name", test_names },
};

TEST_MAIN("verdict", cases)
