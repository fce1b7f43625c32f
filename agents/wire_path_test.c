/* SPDX-License-Identifier: MIT */
#include "wire_path.h"

#include <errno.h>
#include <stdlib.h>

#include "../harness/json.h"
#include "wire_test.h"

struct bench {
	struct wire_link *ports[2];
	struct wire_path *w;
	json_t *records;
	uint64_t now_ns;
};

static void keep_record(void *user, json_t *rec)
{
	json_array_append_new(((struct bench *)user)->records, rec);
}

static struct wire_clock clock_of(const struct bench *b)
{
	return (struct wire_clock){ .mono_ns = b->now_ns, .real_ns = b->now_ns + 1000000000000 };
}

static void connect_life(struct bench *b, unsigned life, uint32_t psn_shift)
{
	struct wire_conn conn = test_conn(wire_path_names(b->w), life);

	for (int e = 0; e < 2; e++)
		conn.end[e].stream.start = (conn.end[e].stream.start + psn_shift) & PACKET_PSN_MASK;
	CU_ASSERT(wire_path_connect(b->w, &conn, NULL) == 0);
}

static struct bench open_bench(void)
{
	struct bench b = { .records = json_array(), .now_ns = 1000000 };

	return b;
}

static void start(struct bench *b)
{
	static const char *const names[2] = { "a", "b" };

	wire_link_memory_open(&b->ports[0]);
	wire_link_memory_open(&b->ports[1]);
	CU_ASSERT(wire_path_new(b->ports, names, keep_record, b, &b->w) == 0);
	connect_life(b, 1, 0);
}

static void stop(struct bench *b)
{
	wire_path_free(b->w);
	b->ports[0]->ops->close(b->ports[0]);
	b->ports[1]->ops->close(b->ports[1]);
	json_decref(b->records);
}

static int rule(struct bench *b, const char *json, struct error *e)
{
	json_t *j = json_loads(json, 0, NULL);
	int rc = wire_path_rule(b->w, j, clock_of(b), e);

	ROW_ASSERT(j != NULL, "%s", json);
	json_decref(j);
	return rc;
}

static void send_frame(struct bench *b, unsigned port, const uint8_t *frame, size_t len)
{
	wire_link_memory_push(b->ports[port], frame, len, 0);
	wire_path_pump(b->w, port, clock_of(b));
}

static void send_packet(struct bench *b, unsigned from, const char *opcode, int64_t psn, size_t payload)
{
	uint8_t frame[FRAME_MAX];

	send_frame(b, from, frame, test_packet(from, opcode, psn, 0x1f, payload, frame));
}

/* The same between two QPs beside those of p. */
static void send_beside(struct bench *b, unsigned from, const char *opcode, int64_t psn, size_t payload)
{
	uint8_t frame[FRAME_MAX];
	size_t len = test_packet(from, opcode, psn, 0x1f, payload, frame);
	struct packet p;

	CU_ASSERT(packet_decode(frame, len, &p) == PACKET_ROCE);
	CU_ASSERT(packet_field_set(frame, &p, "dest_qp", p.dest_qp + 100) == 0);
	packet_icrc_mend(frame, &p);
	send_frame(b, from, frame, len);
}

/* What came out at a port, one letter a packet: its relative PSN as a digit for a request of a, 'A' + PSN for what answers a, '!'
 * when its ICRC is wrong,
 * '?' when it is no RoCE packet. */
static char *came_out(struct bench *b, unsigned port, char *buf, size_t size)
{
	const uint8_t *frame;
	size_t len, n = 0;

	while (n + 1 < size && wire_link_memory_pop(b->ports[port], &frame, &len)) {
		struct packet p;
		enum packet_kind kind = packet_decode(frame, len, &p);
		int psn = packet_psn_diff(p.psn, START_A);

		if (kind != PACKET_ROCE)
			buf[n++] = '?';
		else if (packet_icrc_compute(frame, &p) != packet_icrc_carried(frame, &p))
			buf[n++] = '!';
		else
			buf[n++] = (char)((port ? '0' : 'A') + psn);
	}
	buf[n] = 0;
	return buf;
}

static void advance(struct bench *b, uint64_t ns)
{
	b->now_ns += ns;
	wire_path_due(b->w, clock_of(b));
}

#define MS 1000000ull
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

/* What is not RoCEv2 crosses untouched, unless the link is dark. */
static void test_others(void)
{
	uint8_t arp[60] = { [12] = 0x08, [13] = 0x06, [20] = 0x77 }, lie[FRAME_MAX];
	size_t lie_len = test_packet(0, "RC_SEND_ONLY", 0, 0, 64, lie) - 10;
	struct bench b = open_bench();
	const uint8_t *frame;
	size_t len;

	start(&b);
	rule(&b, "{\"as\":\"all\",\"action\":\"drop\"}", NULL);
	send_frame(&b, 0, arp, sizeof arp);
	CU_ASSERT(wire_link_memory_pop(b.ports[1], &frame, &len) && len == sizeof arp && !memcmp(frame, arp, len));
	send_frame(&b, 0, lie, lie_len);
	CU_ASSERT(wire_link_memory_pop(b.ports[1], &frame, &len) && len == lie_len && !memcmp(frame, lie, len));
	CU_ASSERT(wire_path_account(b.w, 0)->malformed == 1 && json_array_size(b.records) == 1);
	rule(&b, "{\"as\":\"dark\",\"action\":\"blackhole\",\"for\":\"1ms\"}", NULL);
	send_frame(&b, 1, arp, sizeof arp);
	CU_ASSERT(!wire_link_memory_pop(b.ports[0], &frame, &len));
	CU_ASSERT(wire_path_next(b.w) == b.now_ns + MS);
	advance(&b, MS);
	CU_ASSERT(json_array_size(b.records) == 2);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json_array_get(b.records, 1), "phase")), "expired");
	send_frame(&b, 1, arp, sizeof arp);
	CU_ASSERT(wire_link_memory_pop(b.ports[0], &frame, &len));
	stop(&b);
}

static const char *record_text(struct bench *b, size_t i, const char *key)
{
	const char *text = json_string_value(json_object_get(json_array_get(b->records, i), key));

	return text ? text : "";
}

static int64_t record_int(struct bench *b, size_t i, const char *key)
{
	return json_integer_value(json_object_get(json_array_get(b->records, i), key));
}

static void test_records(void)
{
	struct bench b = open_bench();

	start(&b);
	for (int psn = 0; psn < 4; psn++) {
		send_packet(&b, 0, "RC_SEND_ONLY", psn, 1024);
		b.now_ns += 1000;
	}
	rule(&b, "{\"as\":\"lost\",\"action\":\"drop\",\"match\":{\"class\":\"ack\"}}", NULL);
	CU_ASSERT(json_array_size(b.records) == 1);
	CU_ASSERT(record_int(&b, 0, "count") == 4 && record_int(&b, 0, "psn") == 0 && record_int(&b, 0, "transmission") == 1);
	CU_ASSERT(record_int(&b, 0, "t") == 1000000 && record_int(&b, 0, "t_last") == 1003000 && record_int(&b, 0, "size") == 1024);
	CU_ASSERT_STRING_EQUAL(record_text(&b, 0, "obj"), "p.a");
	CU_ASSERT_STRING_EQUAL(record_text(&b, 0, "class"), "request");
	CU_ASSERT_STRING_EQUAL(record_text(&b, 0, "fate"), "passed");
	/* What had the same fate is one run too. */
	send_packet(&b, 1, "RC_ACKNOWLEDGE", 3, 0);
	send_packet(&b, 1, "RC_ACKNOWLEDGE", 4, 0);
	wire_report_flush(wire_path_report(b.w), UINT64_MAX);
	CU_ASSERT(json_array_size(b.records) == 2 && record_int(&b, 1, "syndrome") == 0x1f && record_int(&b, 1, "psn") == 3);
	CU_ASSERT(record_int(&b, 1, "count") == 2);
	CU_ASSERT_STRING_EQUAL(record_text(&b, 1, "fate"), "eaten");
	CU_ASSERT_STRING_EQUAL(record_text(&b, 1, "obj"), "p.b");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(json_object_get(json_array_get(b.records, 1), "rules"), 0)),
			       "lost");
	send_packet(&b, 0, "RC_SEND_ONLY", 2, 1024);
	wire_report_flush(wire_path_report(b.w), UINT64_MAX);
	CU_ASSERT(json_array_size(b.records) == 3 && record_int(&b, 2, "transmission") == 2);
	wire_path_disconnect(b.w, "p");
	send_packet(&b, 0, "RC_SEND_ONLY", 2, 1024);
	wire_report_flush(wire_path_report(b.w), UINT64_MAX);
	CU_ASSERT(json_array_size(b.records) == 4 && record_int(&b, 3, "dest_qpn") == QPN_B &&
		  record_int(&b, 3, "psn_raw") == ((START_A + 2) & PACKET_PSN_MASK));
	CU_ASSERT_STRING_EQUAL(record_text(&b, 3, "src"), "10.0.0.1");
	CU_ASSERT_STRING_EQUAL(record_text(&b, 3, "obj"), "?");
	stop(&b);
}

/* An arrival is told as it came in, and once more as it left. */
static void test_changed(void)
{
	static const struct {
		const char *action, *behind, *class;
		size_t records;
		int64_t psn, syndrome;
	} rows[] = {
		{ "\"rewrite\",\"rewrite\":{\"psn\":\"+5\"}", NULL, "ack", 2, 6, 0x1f },
		{ "\"rewrite\",\"rewrite\":{\"syndrome\":98}", NULL, "nak", 2, 1, 98 },
		{ "\"rewrite\",\"rewrite\":{\"psn\":\"+5\"}", "drop", NULL, 1, 0, 0 },
		{ "\"corrupt\",\"where\":\"header\",\"bit\":88", NULL, "ack", 2, 2, 0x1f },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bench b = open_bench();
		char text[256];

		start(&b);
		snprintf(text, sizeof text, "{\"as\":\"odd\",\"action\":%s}", rows[i].action);
		ROW_ASSERT(rule(&b, text, NULL) == 0, "%s", text);
		snprintf(text, sizeof text, "{\"as\":\"behind\",\"action\":\"%s\"}", rows[i].behind ? rows[i].behind : "drop");
		if (rows[i].behind)
			rule(&b, text, NULL);
		send_packet(&b, 1, "RC_ACKNOWLEDGE", 1, 0);
		wire_report_flush(wire_path_report(b.w), UINT64_MAX);
		ROW_ASSERT(json_array_size(b.records) == rows[i].records, "%s: %zu records", text, json_array_size(b.records));
		ROW_ASSERT(record_int(&b, 0, "psn") == 1 && record_int(&b, 0, "syndrome") == 0x1f &&
				   !strcmp(record_text(&b, 0, "class"), "ack"),
			   "%s", rows[i].action);
		ROW_ASSERT(!strcmp(record_text(&b, 0, "fate"), rows[i].behind ? "eaten" : "changed"), "%s", rows[i].action);
		ROW_ASSERT(!json_object_get(json_array_get(b.records, 0), "late"), "%s", rows[i].action);
		if (rows[i].records > 1) {
			ROW_ASSERT(record_int(&b, 1, "psn") == rows[i].psn && record_int(&b, 1, "syndrome") == rows[i].syndrome &&
					   !strcmp(record_text(&b, 1, "class"), rows[i].class),
				   "%s: psn %lld", rows[i].action, (long long)record_int(&b, 1, "psn"));
			ROW_ASSERT(json_is_true(json_object_get(json_array_get(b.records, 1), "late")), "%s", rows[i].action);
		}
		stop(&b);
	}
}

static void test_lost_on_sending(void)
{
	struct bench b = open_bench();
	char buf[64];

	start(&b);
	wire_link_memory_fail(b.ports[1], 2);
	for (int psn = 0; psn < 3; psn++)
		send_packet(&b, 0, "RC_SEND_ONLY", psn, 16);
	CU_ASSERT_STRING_EQUAL(came_out(&b, 1, buf, sizeof buf), "2");
	CU_ASSERT(wire_path_account(b.w, 0)->lost == 2 && wire_path_unaccounted(b.w, 0) == 0);
	stop(&b);
}

/* ---- random traffic through random rules ---- */

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void random_rule(struct bench *b, uint64_t *rng, unsigned i)
{
	static const char *const actions[] = {
		"\"drop\"",
		"\"hold\"",
		"\"delay\",\"by\":300000",
		"\"duplicate\",\"by\":100000",
		"\"duplicate\"",
		"\"reorder\",\"packets\":2",
		"\"corrupt\"",
		"\"truncate\",\"bytes\":4",
		"\"rewrite\",\"rewrite\":{\"pkey\":\"^1\"}",
		"\"replay\"",
		"\"forge\",\"forge\":{\"kind\":\"CNP\"}",
		"\"blackhole\"",
		"\"rewrite\",\"rewrite\":{\"dest_qp\":5}",
	};
	static const char *const matches[] = {
		"{}",
		"{\"from\":\"a\"}",
		"{\"class\":\"ack\",\"every\":3}",
		"{\"pair\":\"p\",\"every\":5}",
		"{\"psn\":{\"op\":\"range\",\"min\":20}}",
		"{\"transmission\":1,\"nth\":4}",
	};
	char json[512];

	snprintf(json, sizeof json, "{\"as\":\"r%u\",\"action\":%s,\"match\":%s,\"times\":%u,\"for\":%u}", i,
		 actions[next_random(rng) % (sizeof actions / sizeof *actions)],
		 matches[next_random(rng) % (sizeof matches / sizeof *matches)], (unsigned)(next_random(rng) % 20 + 1),
		 (unsigned)(next_random(rng) % 5000000 + 1));
	ROW_ASSERT(rule(b, json, NULL) == 0, "%s", json);
}

static unsigned drain(struct bench *b, unsigned port)
{
	const uint8_t *frame;
	size_t len;
	unsigned n = 0;

	while (wire_link_memory_pop(b->ports[port], &frame, &len))
		n++;
	return n;
}

static void test_accounts_add_up(void)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct bench b = open_bench();
		uint64_t rng = seed * 0x9e3779b97f4a7c15u, out[2] = { 0, 0 };
		json_t *report;

		start(&b);
		for (unsigned i = 0; i < 1 + seed % 6; i++)
			random_rule(&b, &rng, i);
		for (int k = 0; k < 200; k++) {
			unsigned from = next_random(&rng) & 1;

			send_packet(&b, from, from ? "RC_ACKNOWLEDGE" : "RC_SEND_ONLY", (int64_t)(next_random(&rng) % 50),
				    from ? 0 : 64);
			advance(&b, next_random(&rng) % 100000);
			if (k == 150 && wire_path_clear(b.w, "r0", clock_of(&b), &report) == 0)
				json_decref(report);
		}
		advance(&b, 10 * MS);
		for (unsigned d = 0; d < 2; d++) {
			const struct wire_account *a = wire_path_account(b.w, d);

			out[d] = drain(&b, !d);
			ROW_ASSERT(wire_path_unaccounted(b.w, d) == 0, "seed %llu", (unsigned long long)seed);
			ROW_ASSERT(a->out == out[d] && a->out == b.ports[!d]->n.out && a->in == b.ports[d]->n.in, "seed %llu",
				   (unsigned long long)seed);
			/* rules end after 5 ms: nothing may be left */
			ROW_ASSERT(a->kept == 0, "seed %llu: %llu kept", (unsigned long long)seed, (unsigned long long)a->kept);
		}
		stop(&b);
	}
}

/* 10,000 packets, 100 rules that mean none of them: the same bytes in the same order. */
static void test_untouched(void)
{
	struct bench b = open_bench();
	uint8_t frame[FRAME_MAX];
	const uint8_t *seen;
	size_t len, seen_len;
	unsigned wrong = 0;

	start(&b);
	for (int i = 0; i < 100; i++) {
		char json[128];

		snprintf(json, sizeof json, "{\"as\":\"r%d\",\"action\":\"drop\",\"match\":{\"from\":\"%s\",\"psn\":%d}}", i,
			 i & 1 ? "a" : "b", 20000 + i);
		CU_ASSERT(rule(&b, json, NULL) == 0);
	}
	for (int psn = 0; psn < 10000; psn++) {
		unsigned from = psn & 1;

		len = test_packet(from, from ? "RC_RDMA_READ_RESPONSE_MIDDLE" : "RC_RDMA_WRITE_MIDDLE", psn, 0, (size_t)psn % 1025,
				  frame);
		send_frame(&b, from, frame, len);
		wrong += !wire_link_memory_pop(b.ports[!from], &seen, &seen_len) || seen_len != len || memcmp(seen, frame, len);
	}
	CU_ASSERT(wrong == 0 && wire_path_account(b.w, 0)->icrc_bad == 0 && wire_path_account(b.w, 0)->out == 5000);
	json_t *r = wire_path_rule_report(b.w, "r1");

	CU_ASSERT(strstr(json_string_value(json_object_get(r, "why")), "5000 from another end, 5000 with another PSN") != NULL);
	json_decref(r);
	stop(&b);
}

static const struct test_case cases[] = {
	{ "what only looks on", test_aside },
	{ "each action on a small conversation", test_actions },
	{ "rules that make no sense are refused", test_rules_refused },
	{ "rules compose in their order", test_chain },
	{ "a packet of a former life comes into the next", test_next_life },
	{ "what is not RoCEv2", test_others },
	{ "packets as records", test_records },
	{ "changed packets as records", test_changed },
	{ "frames that cannot be sent are counted", test_lost_on_sending },
	{ "accounts add up under random rules", test_accounts_add_up },
	{ "untouched packets are the same bytes in the same order", test_untouched },
};
TEST_MAIN("wire_path", cases)
