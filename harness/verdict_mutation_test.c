/* SPDX-License-Identifier: MIT */
/* Records that pass, changed in one place: none may still pass, and none may be a crash. */
#include "verdict_rig.h"

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

static void set_states(json_t *rs, int step, const char *state)
{
	json_t *r;
	size_t i;

	json_array_foreach(rs, i, r)
		if (!strcmp(json_str(r, "kind"), "state") && json_int(r, "step", 0) == step)
			set(r, "new", state);
}

static void state_after_the_error(json_t *rs)
{
	set_states(rs, 5, "RTS");
}

static void peer_state(json_t *rs)
{
	set_states(rs, 6, "ERR");
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

/* One of its agents did not take part, and the others' calls say nothing of that. */
static void step_refused_by_no_call(json_t *rs)
{
	json_t *r;
	size_t i;

	json_array_foreach(rs, i, r)
		if (!strcmp(json_str(r, "kind"), "step") && json_has(r, "do", "post") && json_str(r, "outcome"))
			set(r, "outcome", "refused");
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
	{ "a step was refused and no call was", step_refused_by_no_call },
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
		renumber(in.records);
		v = judge(&in, false);
		ROW_ASSERT(v && !is_verdict(v, "pass") && !is_verdict(v, "deviation"), "%s: still %s", mutations[i].name,
			   json_str(v, "verdict"));
		json_decref(v);
		input_release(&in);
	}
}

static void connect_was_refused(json_t *rs)
{
	json_t *r;
	size_t i;

	json_object_set_new(find(rs, "state", "p.b", "asked", "RTS"), "errno", json_integer(EINVAL));
	json_array_foreach(rs, i, r)
		if (!strcmp(json_str(r, "kind"), "step") && json_has(r, "do", "connect") && json_str(r, "outcome"))
			set(r, "outcome", "refused");
}

/* Whether the verdict has anything to say of what the connect returned. */
static bool speaks_of_connect(const json_t *verdict)
{
	const json_t *f;
	size_t i;

	json_array_foreach(json_object_get(verdict, "findings"), i, f)
		if (strstr(json_str(f, "text"), "the connect to return") || strstr(json_str(f, "text"), "connect was refused"))
			return true;
	return false;
}

/* `returns` of a connect holds both ways: one that is to be refused may not succeed. */
static void test_connect_returns(void)
{
	static const struct {
		const char *returns;
		bool refused, wrong;
	} rows[] = {
		{ "0", false, false },     { "EINVAL", false, true }, { "ENOMEM", false, true },
		{ "EINVAL", true, false }, { "ENOMEM", true, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct input in;
		json_t *v, *step;
		size_t k;

		input_load("rnr-pass", &in);
		json_array_foreach(json_object_get(in.plan, "steps"), k, step)
			if (json_has(step, "do", "connect"))
				json_object_set_new(step, "returns", json_pack("[s]", rows[i].returns));
		if (rows[i].refused)
			connect_was_refused(in.records);
		v = judge(&in, false);
		ROW_ASSERT(v && speaks_of_connect(v) == rows[i].wrong, "row %zu: %s", i, json_str(v, "headline"));
		ROW_ASSERT(!rows[i].wrong || is_verdict(v, "fail"), "row %zu: %s", i, json_str(v, "verdict"));
		json_decref(v);
		input_release(&in);
	}
}

static void rules_are_gone(json_t *rs)
{
	json_t *r;
	size_t i;

	json_array_foreach(rs, i, r)
		json_object_del(r, "rules");
}

static void set_evidence(json_t *rs, const char *key)
{
	json_t *r;
	size_t i;

	json_array_foreach(rs, i, r)
		if (json_object_get(json_object_get(r, "evidence"), key))
			json_object_set_new(json_object_get(r, "evidence"), key, json_integer(0));
}

static void hits_are_none(json_t *rs)
{
	set_evidence(rs, "hits");
	set_evidence(rs, "invented");
}

static void account_is_open(json_t *rs)
{
	json_array_append_new(rs, json_pack("{s:s,s:s,s:i,s:b}", "kind", "wire_stats", "src", "wire", "step", -1, "complete", 0));
}

static void account_is_closed(json_t *rs)
{
	json_array_append_new(rs, json_pack("{s:s,s:s,s:i,s:b}", "kind", "wire_stats", "src", "wire", "step", -1, "complete", 1));
}

static void nothing(json_t *rs)
{
	(void)rs;
}

/* The wire's own words have to agree with each other. */
static void test_wire(void)
{
	static const struct {
		const char *name;
		void (*change)(json_t *records);
		const char *verdict;
	} rows[] = {
		{ "as it is", nothing, "pass" },
		{ "no packet shows the rule", rules_are_gone, "inconclusive" },
		{ "no hit was counted", hits_are_none, "inconclusive" },
		{ "the account is complete", account_is_closed, "pass" },
		{ "the account is not complete", account_is_open, "inconclusive" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct input in;
		json_t *v;

		input_load("wire-pass", &in);
		rows[i].change(in.records);
		renumber(in.records);
		v = judge(&in, false);
		ROW_ASSERT(v && is_verdict(v, rows[i].verdict), "%s: %s", rows[i].name, json_str(v, "verdict"));
		json_decref(v);
		input_release(&in);
	}
}

/* Whatever single record is missing, the verdict never becomes a crash, and is no pass. */
static void test_any_record_missing(void)
{
	struct input in;
	size_t n;

	input_load("rnr-pass", &in);
	n = json_array_size(in.records);
	/* that there was one more after the last word cannot be known */
	for (size_t i = 0; i < n - 1; i++) {
		json_t *gone = json_incref(json_array_get(in.records, i)), *v;

		json_array_remove(in.records, i);
		v = judge(&in, false);
		ROW_ASSERT(v && json_str(v, "verdict") && !is_verdict(v, "pass"), "without record %zu", i);
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

static const struct test_case cases[] = {
	{ "one thing changed and it passes no more", test_mutations },
	{ "a connect that is to be refused", test_connect_returns },
	{ "the wire contradicts itself", test_wire },
	{ "any record missing", test_any_record_missing },
	{ "any field odd", test_any_field_odd },
};

TEST_MAIN("verdict_mutation", cases)
