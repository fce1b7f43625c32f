/* SPDX-License-Identifier: MIT */
#include "wire_path.h"

#include "../harness/json.h"
#include "wire_path_rig.h"

#define N_VARIANTS (sizeof test_variants / sizeof *test_variants)

/*
 * a sends requests 0 to 5 (1024 bytes each), b answers each with its ACK; then 10 ms pass, then the rule is cleared. What b got
 * while they came, what it got in the 10 ms, what it got at the clearing; what a got in all.
 */
static void test_actions(void)
{
	static const struct {
		const char *rule, *b_at_once, *b_later, *b_cleared, *a;
		unsigned hits;
	} rows[] = {
		{ "\"action\":\"drop\",\"match\":{\"from\":\"a\",\"psn\":2}", "01345", "", "", "ABCDEF", 1 },
		{ "\"action\":\"drop\",\"match\":{\"from\":\"b\",\"class\":\"ack\"}", "012345", "", "", "", 6 },
		{ "\"action\":\"drop\",\"match\":{\"class\":\"ack\",\"nth\":2}", "012345", "", "", "ACDEF", 1 },
		{ "\"action\":\"drop\",\"match\":{\"class\":\"request\",\"every\":3}", "0134", "", "", "ABCDEF", 2 },
		{ "\"action\":\"drop\",\"match\":{\"class\":\"request\"},\"times\":2", "2345", "", "", "ABCDEF", 2 },
		{ "\"action\":\"hold\",\"match\":{\"from\":\"p.a\",\"psn\":{\"op\":\"range\",\"min\":1,\"max\":2}}", "0345", "",
		  "12", "ABCDEF", 2 },
		{ "\"action\":\"hold\",\"match\":{\"from\":\"p.a\",\"psn\":1},\"for\":\"5ms\"", "02345", "1", "", "ABCDEF", 1 },
		{ "\"action\":\"delay\",\"by\":\"5ms\",\"match\":{\"from\":\"a\",\"psn\":0}", "12345", "0", "", "ABCDEF", 1 },
		{ "\"action\":\"delay\",\"by\":5000000,\"match\":{\"from\":\"a\"}", "", "012345", "", "ABCDEF", 6 },
		{ "\"action\":\"duplicate\",\"match\":{\"from\":\"a\",\"psn\":3}", "0123345", "", "", "ABCDEF", 1 },
		{ "\"action\":\"duplicate\",\"copies\":2,\"by\":\"2ms\",\"match\":{\"from\":\"a\",\"psn\":3}", "012345", "33", "",
		  "ABCDEF", 1 },
		{ "\"action\":\"reorder\",\"match\":{\"from\":\"a\",\"psn\":1}", "021345", "", "", "ABCDEF", 1 },
		{ "\"action\":\"reorder\",\"packets\":3,\"match\":{\"from\":\"a\",\"psn\":1}", "023415", "", "", "ABCDEF", 1 },
		{ "\"action\":\"reorder\",\"packets\":9,\"match\":{\"from\":\"a\",\"psn\":1}", "02345", "", "1", "ABCDEF", 1 },
		{ "\"action\":\"reorder\",\"packets\":2,\"match\":{\"from\":\"a\",\"psn\":{\"op\":\"range\",\"min\":1,\"max\":2}}",
		  "034125", "", "", "ABCDEF", 2 },
		{ "\"action\":\"corrupt\",\"match\":{\"from\":\"a\",\"psn\":1}", "0!2345", "", "", "ABCDEF", 1 },
		{ "\"action\":\"corrupt\",\"where\":\"header\",\"bit\":9,\"match\":{\"from\":\"a\",\"psn\":1}", "0!2345", "", "",
		  "ABCDEF", 1 },
		{ "\"action\":\"corrupt\",\"where\":\"icrc\",\"bit\":31,\"match\":{\"from\":\"a\",\"psn\":1}", "0!2345", "", "",
		  "ABCDEF", 1 },
		{ "\"action\":\"corrupt\",\"icrc\":\"mended\",\"bit\":8191,\"match\":{\"from\":\"a\",\"psn\":1}", "012345", "", "",
		  "ABCDEF", 1 },
		{ "\"action\":\"corrupt\",\"bit\":8192,\"match\":{\"from\":\"a\",\"psn\":1}", "012345", "", "", "ABCDEF", 0 },
		{ "\"action\":\"truncate\",\"bytes\":1000,\"match\":{\"from\":\"a\",\"psn\":1}", "012345", "", "", "ABCDEF", 1 },
		{ "\"action\":\"truncate\",\"bytes\":4,\"icrc\":\"wrong\",\"match\":{\"from\":\"a\",\"psn\":1}", "0!2345", "", "",
		  "ABCDEF", 1 },
		{ "\"action\":\"truncate\",\"bytes\":4,\"lengths\":\"kept\",\"match\":{\"from\":\"a\",\"psn\":1}", "0?2345", "", "",
		  "ABCDEF", 1 },
		{ "\"action\":\"truncate\",\"bytes\":4,\"match\":{\"from\":\"b\",\"psn\":1}", "012345", "", "", "ABCDEF", 0 },
		{ "\"action\":\"rewrite\",\"rewrite\":{\"psn\":8},\"match\":{\"from\":\"a\",\"psn\":1}", "082345", "", "", "ABCDEF",
		  1 },
		{ "\"action\":\"rewrite\",\"rewrite\":{\"psn\":\"+3\"},\"match\":{\"from\":\"a\",\"psn\":0}", "312345", "", "",
		  "ABCDEF", 1 },
		{ "\"action\":\"rewrite\",\"rewrite\":{\"syndrome\":96},\"match\":{\"from\":\"a\"}", "012345", "", "", "ABCDEF",
		  0 },
		{ "\"action\":\"replay\",\"by\":\"1ms\",\"match\":{\"from\":\"a\",\"psn\":1}", "012345", "1", "", "ABCDEF", 1 },
		{ "\"action\":\"replay\",\"rewrite\":{\"psn\":9},\"match\":{\"from\":\"a\",\"psn\":1}", "0192345", "", "", "ABCDEF",
		  1 },
		{ "\"action\":\"forge\",\"forge\":{\"kind\":\"ACK\",\"psn\":7},\"match\":{\"from\":\"a\",\"psn\":1}", "012345", "",
		  "", "AHBCDEF", 1 },
		{ "\"action\":\"forge\",\"forge\":{\"kind\":\"RNR_NAK\",\"timer\":14,\"instead\":true},\"match\":{\"from\":\"a\","
		  "\"psn\":1}",
		  "02345", "", "", "ABBCDEF", 1 },
		{ "\"action\":\"forge\",\"forge\":{\"kind\":\"NAK_PSN\",\"psn\":\"-1\",\"to\":\"receiver\"},\"match\":{\"from\":"
		  "\"b\",\"psn\":2}",
		  "012345", "", "", "ABCBDEF", 1 },
		{ "\"action\":\"forge\",\"by\":\"1ms\",\"forge\":{\"kind\":\"READ_RESPONSE\",\"size\":64},\"match\":{\"from\":"
		  "\"a\",\"psn\":5}",
		  "012345", "", "", "ABCDEFF", 1 },
		{ "\"action\":\"blackhole\"", "", "", "", "", 12 },
		{ "\"action\":\"blackhole\",\"match\":{\"pair\":\"p\"}", "", "", "", "", 12 },
		{ "\"action\":\"blackhole\",\"match\":{\"pair\":\"q\"}", "012345", "", "", "ABCDEF", 0 },
		{ "\"action\":\"blackhole\",\"match\":{\"from\":\"a\",\"psn\":2}", "01", "", "", "ABCDEF", 4 },
		{ "\"action\":\"blackhole\",\"ways\":\"both\",\"match\":{\"from\":\"a\",\"psn\":2}", "01", "", "", "AB", 8 },
		{ "\"action\":\"blackhole\",\"match\":{\"class\":\"ack\",\"psn\":2},\"times\":3", "01245", "", "", "ABEF", 3 },
	};
	for (size_t k = 0; k < sizeof rows / sizeof *rows * N_VARIANTS; k++) {
		size_t i = k / N_VARIANTS;
		struct bench b = open_bench();
		char json[512], buf[64];
		struct error e = { "" };
		json_t *report = NULL;

		test_variant = &test_variants[k % N_VARIANTS];
		start(&b);
		snprintf(json, sizeof json, "{\"as\":\"x\",%s}", rows[i].rule);
		ROW_ASSERT(rule(&b, json, &e) == 0, "%s, %s: %s", test_variant->name, rows[i].rule, e.text);
		for (int psn = 0; psn < 6; psn++) {
			send_packet(&b, 0, "RC_SEND_ONLY", psn, 1024);
			send_packet(&b, 1, "RC_ACKNOWLEDGE", psn, 0);
		}
		ROW_ASSERT(!strcmp(came_out(&b, 1, buf, sizeof buf), rows[i].b_at_once), "%s, %s: b got %s", test_variant->name,
			   rows[i].rule, buf);
		advance(&b, 10 * MS);
		ROW_ASSERT(!strcmp(came_out(&b, 1, buf, sizeof buf), rows[i].b_later), "%s, %s: b got later %s", test_variant->name,
			   rows[i].rule, buf);
		ROW_ASSERT(wire_path_clear(b.w, "x", clock_of(&b), &report) == 0, "%s", rows[i].rule);
		ROW_ASSERT(!strcmp(came_out(&b, 1, buf, sizeof buf), rows[i].b_cleared), "%s, %s: b got at the end %s",
			   test_variant->name, rows[i].rule, buf);
		ROW_ASSERT(!strcmp(came_out(&b, 0, buf, sizeof buf), rows[i].a), "%s, %s: a got %s", test_variant->name,
			   rows[i].rule, buf);
		unsigned hits = (unsigned)json_integer_value(json_object_get(report, "hits"));

		ROW_ASSERT(hits == rows[i].hits, "%s: %u hits", rows[i].rule, hits);
		ROW_ASSERT(!hits == (json_object_get(report, "why") != NULL), "%s", rows[i].rule);
		json_decref(report);
		for (unsigned d = 0; d < 2; d++)
			ROW_ASSERT(!wire_path_unaccounted(b.w, d) && !wire_path_account(b.w, d)->kept, "%s", rows[i].rule);
		stop(&b);
	}
	test_variant = &test_variants[0];
}

/*
 * A connection that only looks on: whatever a rule says, it means packets of the others; only where the whole link goes dark it is
 * dark for both, and no hit. No record tells of it, and the account has it.
 */
static void test_aside(void)
{
	static const struct {
		const char *rule, *beside, *own;
		int64_t hits, eaten;
	} rows[] = {
		{ "\"action\":\"drop\"", "012345", "", 1, 1 },
		{ "\"action\":\"drop\",\"match\":{\"from\":\"a\"}", "012345", "", 1, 1 },
		{ "\"action\":\"drop\",\"match\":{\"pair\":\"bystander\"}", "012345", "0", 0, 0 },
		{ "\"action\":\"hold\"", "012345", "", 1, 0 },
		{ "\"action\":\"reorder\",\"packets\":3", "012345", "", 1, 0 },
		{ "\"action\":\"duplicate\"", "012345", "00", 1, 0 },
		{ "\"action\":\"drop\",\"match\":{\"class\":\"request\",\"nth\":2}", "012345", "0", 0, 0 },
		{ "\"action\":\"blackhole\",\"match\":{\"pair\":\"p\"}", "012345", "", 1, 1 },
		/* Before the packet that it waits for it is not dark. */
		{ "\"action\":\"blackhole\"", "012", "", 1, 4 },
		{ "\"action\":\"blackhole\",\"match\":{\"from\":\"a\"}", "012", "", 1, 4 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct bench b = open_bench();
		char json[256], got[64];
		struct wire_conn conn;
		json_t *report, *r;
		size_t k;

		start(&b);
		conn = test_conn(wire_path_names(b.w), 1);
		conn.pair = wire_name(wire_path_names(b.w), "bystander");
		conn.aside = true;
		conn.end[0].qpn += 100;
		conn.end[1].qpn += 100;
		CU_ASSERT(wire_path_connect(b.w, &conn, NULL) == 0);
		snprintf(json, sizeof json, "{\"as\":\"x\",%s}", rows[i].rule);
		CU_ASSERT(rule(&b, json, NULL) == 0);
		for (int n = 0; n < 3; n++)
			send_beside(&b, 0, "RC_SEND_ONLY", n, 64);
		came_out(&b, 1, got, sizeof got);
		send_packet(&b, 0, "RC_SEND_ONLY", 0, 64);
		came_out(&b, 1, json, sizeof json);
		ROW_ASSERT(!strcmp(json, rows[i].own), "%s: of p came \"%s\"", rows[i].rule, json);
		for (int n = 3; n < 6; n++)
			send_beside(&b, 0, "RC_SEND_ONLY", n, 64);
		came_out(&b, 1, got + strlen(got), sizeof got - strlen(got));
		ROW_ASSERT(!strcmp(got, rows[i].beside), "%s: beside it came \"%s\"", rows[i].rule, got);
		report = wire_path_rule_report(b.w, "x");
		ROW_ASSERT(json_int(report, "hits", -1) == rows[i].hits, "%s: %lld hits", rows[i].rule,
			   (long long)json_int(report, "hits", -1));
		json_decref(report);
		ROW_ASSERT((int64_t)wire_path_account(b.w, 0)->eaten == rows[i].eaten && !wire_path_unaccounted(b.w, 0),
			   "%s: %llu eaten", rows[i].rule, (unsigned long long)wire_path_account(b.w, 0)->eaten);
		wire_report_flush(wire_path_report(b.w), UINT64_MAX);
		json_array_foreach(b.records, k, r)
			ROW_ASSERT(!json_str(r, "pair") || strcmp(json_str(r, "pair"), "bystander"), "%s: it is told of",
				   rows[i].rule);
		stop(&b);
	}
}

static void test_rules_refused(void)
{
	static const struct {
		const char *rule, *says;
	} rows[] = {
		{ "{\"action\":\"drop\"}", "`as`" },
		{ "{\"as\":\"x\"}", "no action" },
		{ "{\"as\":\"x\",\"action\":\"explode\"}", "no action `explode`" },
		{ "{\"as\":\"x\",\"action\":\"drop\",\"by\":5}", "has no `by`" },
		{ "{\"as\":\"x\",\"action\":\"delay\"}", "needs `by`" },
		{ "{\"as\":\"x\",\"action\":\"delay\",\"by\":\"5\"}", "a duration" },
		{ "{\"as\":\"x\",\"action\":\"delay\",\"by\":0}", "it goes from 1" },
		{ "{\"as\":\"x\",\"action\":\"duplicate\",\"copies\":65}", "it goes from 1 to 64" },
		{ "{\"as\":\"x\",\"action\":\"corrupt\",\"where\":\"tail\"}", "one of: payload header icrc" },
		{ "{\"as\":\"x\",\"action\":\"corrupt\",\"where\":\"header\",\"bit\":33}", "nobody could notice" },
		{ "{\"as\":\"x\",\"action\":\"rewrite\"}", "needs `rewrite`" },
		{ "{\"as\":\"x\",\"action\":\"rewrite\",\"rewrite\":{}}", "no field is named" },
		{ "{\"as\":\"x\",\"action\":\"rewrite\",\"rewrite\":{\"colour\":1}}", "no field `colour`" },
		{ "{\"as\":\"x\",\"action\":\"rewrite\",\"rewrite\":{\"pkey\":65536}}", "16 bits" },
		{ "{\"as\":\"x\",\"action\":\"rewrite\",\"rewrite\":{\"va\":\"much\"}}", "no number" },
		{ "{\"as\":\"x\",\"action\":\"forge\",\"forge\":{}}", "`kind` is one of" },
		{ "{\"as\":\"x\",\"action\":\"forge\",\"forge\":{\"kind\":\"ACK\",\"timer\":3}}", "only an RNR_NAK" },
		{ "{\"as\":\"x\",\"action\":\"forge\",\"forge\":{\"kind\":\"ACK\",\"size\":3}}", "only a READ_RESPONSE" },
		{ "{\"as\":\"x\",\"action\":\"forge\",\"forge\":{\"kind\":\"RNR_NAK\",\"timer\":32}}", "from 0 to 31" },
		{ "{\"as\":\"x\",\"action\":\"forge\",\"forge\":{\"kind\":\"ACK\",\"how\":1}}", "has no `how`" },
		{ "{\"as\":\"x\",\"action\":\"drop\",\"times\":0}", "`times`" },
		{ "{\"as\":\"x\",\"action\":\"drop\",\"for\":\"soon\"}", "`for`" },
		{ "{\"as\":\"x\",\"action\":\"drop\",\"match\":{\"nth\":0}}", "can never be" },
		{ "{\"as\":\"taken\",\"action\":\"drop\"}", "already" },
	};
	struct bench b = open_bench();

	start(&b);
	CU_ASSERT(rule(&b, "{\"as\":\"taken\",\"action\":\"hold\",\"match\":{\"pair\":\"q\"}}", NULL) == 0);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct error e = { "" };

		ROW_ASSERT(rule(&b, rows[i].rule, &e) < 0 && strstr(e.text, rows[i].says), "%s: %s", rows[i].rule, e.text);
	}
	json_t *rules = wire_path_rules(b.w);

	CU_ASSERT(json_array_size(rules) == 1);
	json_decref(rules);
	stop(&b);
}

/* Rules compose in their order: what the first copies comes to the second, what the second eats does not come to the third. */
static void test_chain(void)
{
	struct bench b = open_bench();
	char buf[64];

	start(&b);
	rule(&b, "{\"as\":\"one\",\"action\":\"duplicate\",\"match\":{\"from\":\"a\",\"psn\":1}}", NULL);
	rule(&b, "{\"as\":\"two\",\"action\":\"drop\",\"match\":{\"from\":\"a\",\"psn\":1,\"nth\":1}}", NULL);
	rule(&b, "{\"as\":\"three\",\"action\":\"rewrite\",\"rewrite\":{\"psn\":\"+5\"},\"match\":{\"from\":\"a\",\"psn\":1}}",
	     NULL);
	for (int psn = 0; psn < 3; psn++)
		send_packet(&b, 0, "RC_SEND_ONLY", psn, 16);
	CU_ASSERT_STRING_EQUAL(came_out(&b, 1, buf, sizeof buf), "062");
	json_t *r = wire_path_rule_report(b.w, "three");

	CU_ASSERT(json_integer_value(json_object_get(r, "hits")) == 1 && json_integer_value(json_object_get(r, "reached")) == 3);
	json_decref(r);
	CU_ASSERT(wire_path_rule_report(b.w, "four") == NULL);
	stop(&b);
}

/* The next life begins 2^22 further on; what was kept of the former one comes after its first packet. */
static void test_next_life(void)
{
	static const struct {
		const char *fit;
		int64_t psn; /* of the stale packet as it comes, relative to life 1 */
	} rows[] = {
		{ "none", 1 },
		{ "qpn", 1 },
		{ "psn", 0x400001 },
		{ "both", 0x400001 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct bench b = open_bench();
		const uint8_t *frame;
		size_t len;
		struct packet p;
		char json[256], buf[64];

		start(&b);
		snprintf(json, sizeof json,
			 "{\"as\":\"stale\",\"action\":\"replay\",\"into\":\"next_life\",\"fit\":\"%s\",\"match\":{\"from\":\"a\","
			 "\"psn\":1},\"times\":1}",
			 rows[i].fit);
		CU_ASSERT(rule(&b, json, NULL) == 0);
		for (int psn = 0; psn < 3; psn++)
			send_packet(&b, 0, "RC_SEND_ONLY", psn, 16);
		CU_ASSERT_STRING_EQUAL(came_out(&b, 1, buf, sizeof buf), "012");
		connect_life(&b, 2, 0x400000);
		send_packet(&b, 1, "RC_ACKNOWLEDGE", 0x400000, 0);
		CU_ASSERT(!wire_link_memory_pop(b.ports[1], &frame, &len));
		send_packet(&b, 0, "RC_SEND_ONLY", 0x400000, 16);
		CU_ASSERT(wire_link_memory_pop(b.ports[1], &frame, &len) && packet_decode(frame, len, &p) == PACKET_ROCE);
		CU_ASSERT(p.psn == ((START_A + 0x400000) & PACKET_PSN_MASK));
		CU_ASSERT(wire_link_memory_pop(b.ports[1], &frame, &len) && packet_decode(frame, len, &p) == PACKET_ROCE);
		ROW_ASSERT(p.psn == ((START_A + (uint32_t)rows[i].psn) & PACKET_PSN_MASK), "%s: %06x", rows[i].fit, p.psn);
		ROW_ASSERT(packet_icrc_compute(frame, &p) == packet_icrc_carried(frame, &p), "%s", rows[i].fit);
		CU_ASSERT(!wire_link_memory_pop(b.ports[1], &frame, &len));
		stop(&b);
	}
}

static const struct test_case cases[] = {
	{ "what only looks on", test_aside },
	{ "each action on a small conversation", test_actions },
	{ "rules that make no sense are refused", test_rules_refused },
	{ "rules compose in their order", test_chain },
	{ "a packet of a former life comes into the next", test_next_life },
};
TEST_MAIN("wire_path", cases)
