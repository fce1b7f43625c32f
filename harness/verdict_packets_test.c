/* SPDX-License-Identifier: MIT */
/*
 * What always holds of packets: a case that passed with packets changed in one place must not pass, and must say why; what the
 * specification allows must still pass. packets-recorded: PSN 1 is lost once and sent again after a NAK, then PSN 7 meets RNR NAKs
 * until its retries are spent. wire-pass: PSN 0 is sent four times into silence.
 */
#include "verdict_rig.h"

#define MS 1000000

static json_t *packet(json_t *records, int n)
{
	json_t *r;
	size_t i;

	json_array_foreach(records, i, r)
		if (!strcmp(json_str(r, "kind"), "packet") && json_int(r, "packet", 0) == n)
			return r;
	CU_FAIL("the packet to change is not there");
	return NULL;
}

static void set(json_t *r, const char *key, int64_t value)
{
	json_object_set_new(r, key, json_integer(value));
}

static void later(json_t *r, int64_t ns)
{
	set(r, "t", json_int(r, "t", 0) + ns);
	if (json_object_get(r, "t_last"))
		set(r, "t_last", json_int(r, "t_last", 0) + ns);
}

/* Another one like it, so much later; numbered behind all others. */
static json_t *again(json_t *records, int n, int64_t ns)
{
	json_t *which = packet(records, n), *copy = json_deep_copy(which), *r;
	size_t i, at = 0;

	json_array_foreach(records, i, r)
		if (r == which)
			at = i;
	later(copy, ns);
	set(copy, "packet", 1000 + n);
	json_array_insert_new(records, at + 1, copy);
	return copy;
}

static void remove_packet(json_t *records, int n)
{
	json_t *r;
	size_t i;

	json_array_foreach(records, i, r)
		if (!strcmp(json_str(r, "kind"), "packet") && json_int(r, "packet", 0) == n) {
			json_array_remove(records, i);
			return;
		}
}

static void nothing(json_t *rs)
{
	(void)rs;
}

static void another_qpn(json_t *rs)
{
	json_t *r = packet(rs, 1);

	json_object_del(r, "pair");
	json_object_set_new(r, "obj", json_string("?"));
	set(r, "dest_qpn", 99);
}

static void another_first_psn(json_t *rs)
{
	set(packet(rs, 1), "psn", -1);
}

static void psn_out_of_order(json_t *rs)
{
	set(again(rs, 22, 1000), "psn", 9);
	set(again(rs, 22, 2000), "psn", 8);
	set(packet(rs, 1022), "packet", 1023);
}

static void reading_goes_on(json_t *rs)
{
	json_t *r = again(rs, 3, 2 * MS);

	set(r, "count", 1);
	set(r, "psn", 20);
	json_object_set_new(r, "opcode", json_string("RC_RDMA_READ_REQUEST"));
	r = again(rs, 3, 3 * MS);
	set(r, "count", 1);
	set(r, "psn", 30);
	set(r, "packet", 1004);
	r = again(rs, 3, 4 * MS);
	set(r, "count", 1);
	set(r, "psn", 22);
	set(r, "packet", 1005);
	json_object_set_new(r, "opcode", json_string("RC_RDMA_READ_REQUEST"));
}

static void writing_goes_on(json_t *rs)
{
	reading_goes_on(rs);
	json_object_set_new(packet(rs, 1005), "opcode", json_string("RC_RDMA_WRITE_ONLY"));
}

static void resumed_behind_the_nak(json_t *rs)
{
	set(packet(rs, 10), "psn", 2);
	set(packet(rs, 10), "count", 5);
}

static void resumed_behind_a_forged_ack(json_t *rs)
{
	json_t *r = again(rs, 8, 1000);

	json_object_set_new(r, "fate", json_string("invented"));
	json_object_set_new(r, "late", json_true());
	set(r, "psn", 6);
	resumed_behind_the_nak(rs);
}

static void resumed_before_the_nak(json_t *rs)
{
	set(packet(rs, 10), "psn", 0);
	set(packet(rs, 10), "count", 7);
}

static void rnr_too_soon_on_a_busy_machine(json_t *rs)
{
	set(packet(rs, 24), "t", json_int(packet(rs, 23), "t", 0) + 1 * MS);
}

static void be_in_time(json_t *rs)
{
	json_t *r;
	size_t i;

	json_array_foreach(rs, i, r)
		if (json_bool(r, "witness", false))
			set(r, "late_max_ns", 0);
}

static void rnr_too_soon(json_t *rs)
{
	be_in_time(rs);
	rnr_too_soon_on_a_busy_machine(rs);
}

static void rnr_a_tick_early(json_t *rs)
{
	be_in_time(rs);
	set(packet(rs, 24), "t", json_int(packet(rs, 23), "t", 0) + 7 * MS);
}

static void rnr_once_more(json_t *rs)
{
	set(again(rs, 26, 12 * MS), "transmission", 4);
	again(rs, 25, 29 * MS);
}

static void request_after_error(json_t *rs)
{
	set(again(rs, 26, 3000ll * MS), "psn", 8);
}

/* The QP has a next life by then, and answers a stale packet. */
static void answer_in_the_next_life(json_t *rs)
{
	json_t *answer = again(rs, 26, 3000ll * MS), *reset = json_deep_copy(answer);

	set(answer, "psn", 8);
	json_object_set_new(reset, "kind", json_string("state"));
	json_object_set_new(reset, "obj", json_string("p.a"));
	json_object_set_new(reset, "old", json_string("ERR"));
	json_object_set_new(reset, "new", json_string("RESET"));
	json_object_set_new(reset, "asked", json_string("RESET"));
	set(reset, "life", 2);
	set(reset, "t", json_int(reset, "t", 0) - MS);
	json_array_append_new(rs, reset);
}

static void answer_of_the_other_end(json_t *rs)
{
	again(rs, 27, 3000ll * MS);
}

static void wrong_icrc(json_t *rs)
{
	json_object_set_new(packet(rs, 10), "icrc", json_string("bad"));
}

static void malformed(json_t *rs)
{
	json_t *r = packet(rs, 9);

	json_object_del(r, "pair");
	json_object_set_new(r, "obj", json_string("?"));
	json_object_set_new(r, "class", json_string("malformed"));
	json_object_set_new(r, "why", json_string("UDP's length goes past the packet"));
}

static void silence_once_more(json_t *rs)
{
	set(again(rs, 4, 18 * MS), "transmission", 5);
}

static void silence_too_short(json_t *rs)
{
	later(packet(rs, 4), -15 * MS);
}

/* Where the wire was killed and replaced, what came meanwhile is not known, and counting begins anew. */
static void another_wire(json_t *rs)
{
	json_t *f = NULL, *r, *copy;
	size_t i;

	json_array_foreach(rs, i, r)
		if (!strcmp(json_str(r, "kind"), "fault") && !strcmp(json_str(r, "phase"), "inject"))
			f = r;
	for (unsigned k = 0; k < 2; k++) {
		copy = json_deep_copy(f);
		json_object_set_new(copy, "as", json_string("away"));
		json_object_set_new(copy, "name", json_string("wire_killed"));
		json_object_set_new(copy, "phase", json_string(k ? "clear" : "inject"));
		set(copy, "t", json_int(packet(rs, 10), "t", 0) - (k ? 1 : 2));
		json_array_insert_new(rs, json_array_size(rs) - 1, copy);
	}
	set(packet(rs, 10), "transmission", 1);
}

static void counted_anew_without_reason(json_t *rs)
{
	set(packet(rs, 10), "transmission", 1);
}

static void first_is_not_seen(json_t *rs)
{
	remove_packet(rs, 1);
}

static const struct {
	const char *of, *what;
	void (*change)(json_t *records);
	const char *text; /* NULL: nothing is found about packets */
} rows[] = {
	{ "packets-recorded", "nothing changed", nothing, NULL },
	{ "packets-recorded", "another QPN", another_qpn,
	  "a packet of no connection came by the wire: RC_SEND_ONLY from a for QP 99" },
	{ "packets-recorded", "another first PSN", another_first_psn,
	  "begins with a PSN that is not the configured one: -1 from it" },
	{ "packets-recorded", "the first packet never sent", first_is_not_seen, "not the configured one: +1 from it" },
	{ "packets-recorded", "a PSN out of order", psn_out_of_order, "PSN 8 for the first time after PSN 9" },
	{ "packets-recorded", "a READ goes on in its middle", reading_goes_on, NULL },
	{ "packets-recorded", "a WRITE goes on in a READ", writing_goes_on, "PSN 22 for the first time after PSN 30" },
	{ "packets-recorded", "again from behind the NAK's PSN", resumed_behind_the_nak, "after a NAK of PSN 1 (packet 9" },
	{ "packets-recorded", "again from behind it after a forged ACK", resumed_behind_a_forged_ack, NULL },
	{ "packets-recorded", "again from before the NAK's PSN", resumed_before_the_nak, NULL },
	{ "packets-recorded", "RNR timer not waited for", rnr_too_soon,
	  "PSN 7 was sent again after 1.00 ms: the least is 6.24 ms" },
	{ "packets-recorded", "RNR timer not waited for, on a busy machine", rnr_too_soon_on_a_busy_machine, NULL },
	{ "packets-recorded", "RNR timer on a tick of 4 ms", rnr_a_tick_early, NULL },
	{ "packets-recorded", "an RNR retry too many", rnr_once_more, "PSN 7 was sent again after 3 RNR NAKs: rnr_retry allows 2" },
	{ "packets-recorded", "a request after ERR", request_after_error, "p.a: it is in ERR and sends on: RC_SEND_ONLY, PSN 8" },
	{ "packets-recorded", "an answer in the next life", answer_in_the_next_life, NULL },
	{ "packets-recorded", "an answer of the end in RTS", answer_of_the_other_end, NULL },
	{ "packets-recorded", "a wrong ICRC", wrong_icrc, "a sent a wrong ICRC: RC_SEND_ONLY (packet 10" },
	{ "packets-recorded", "a malformed packet", malformed, "b sent a malformed packet: UDP's length goes past the packet" },
	{ "packets-recorded", "another wire", another_wire, NULL },
	{ "packets-recorded", "new for a second time", counted_anew_without_reason, "PSN 1 for the first time after PSN 2" },
	{ "wire-pass", "nothing changed", nothing, NULL },
	{ "wire-pass", "a transmission too many", silence_once_more, "PSN 0 was sent 5 times with no answer between" },
	{ "wire-pass", "sent again too soon", silence_too_short, "PSN 0 was sent again after 3.00 ms: the least is" },
};

static const char *about_packets(const json_t *v)
{
	const json_t *f;
	size_t i;

	json_array_foreach(json_object_get(v, "findings"), i, f)
		if (!strcmp(json_str(f, "check"), "packets"))
			return json_str(f, "text");
	return "";
}

static void test_changes(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *text;
		struct input in;
		json_t *v;

		input_load(rows[i].of, &in);
		rows[i].change(in.records);
		renumber(in.records);
		v = judge(&in, false);
		text = about_packets(v);
		ROW_ASSERT(rows[i].text ? strstr(text, rows[i].text) && is_verdict(v, "fail") : !*text, "%s, %s: %s, '%s'",
			   rows[i].of, rows[i].what, json_str(v, "verdict"), text);
		json_decref(v);
		input_release(&in);
	}
}

/* What a wire that died unasked makes of a case is an error of the harness, whatever else was seen. */
static void test_wire_gone(void)
{
	struct input in;
	json_t *lost, *v;

	input_load("packets-recorded", &in);
	another_qpn(in.records);
	lost = json_deep_copy(packet(in.records, 26));
	json_object_set_new(lost, "kind", json_string("lost"));
	json_object_set_new(lost, "src", json_string("controller"));
	json_object_set_new(lost, "what", json_string("wire"));
	json_object_set_new(lost, "text", json_string("the wire died: killed by signal 9"));
	json_array_insert_new(in.records, json_array_size(in.records) - 1, lost);
	v = judge(&in, false);
	ROW_ASSERT(is_verdict(v, "error") && strstr(json_str(v, "headline"), "the wire died"), "%s: %s", json_str(v, "verdict"),
		   json_str(v, "headline"));
	json_decref(v);
	input_release(&in);
}

static const struct test_case cases[] = {
	{ "a wire that died unasked", test_wire_gone },
	{ "one packet changed", test_changes },
};

TEST_MAIN("verdict_packets", cases)
