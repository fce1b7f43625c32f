/* SPDX-License-Identifier: MIT */
/* What a path says of the packets that came by: records, and accounts that add up. */
#include "wire_path_rig.h"

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
		int64_t psn, syndrome, reserved;
	} rows[] = {
		{ "\"rewrite\",\"rewrite\":{\"psn\":\"+5\"}", NULL, "ack", 2, 6, 0x1f, 0 },
		{ "\"rewrite\",\"rewrite\":{\"reserved6\":1,\"reserved7\":2}", NULL, "ack", 2, 1, 0x1f, 1 << 7 | 2 },
		{ "\"rewrite\",\"rewrite\":{\"syndrome\":98}", NULL, "nak", 2, 1, 98, 0 },
		{ "\"rewrite\",\"rewrite\":{\"psn\":\"+5\"}", "drop", NULL, 1, 0, 0, 0 },
		{ "\"corrupt\",\"where\":\"header\",\"bit\":88", NULL, "ack", 2, 2, 0x1f, 0 },
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
				   !strcmp(record_text(&b, 0, "class"), "ack") && !record_int(&b, 0, "reserved"),
			   "%s", rows[i].action);
		ROW_ASSERT(!strcmp(record_text(&b, 0, "fate"), rows[i].behind ? "eaten" : "changed"), "%s", rows[i].action);
		ROW_ASSERT(!json_object_get(json_array_get(b.records, 0), "late"), "%s", rows[i].action);
		if (rows[i].records > 1) {
			ROW_ASSERT(record_int(&b, 1, "psn") == rows[i].psn && record_int(&b, 1, "syndrome") == rows[i].syndrome &&
					   !strcmp(record_text(&b, 1, "class"), rows[i].class) &&
					   record_int(&b, 1, "reserved") == rows[i].reserved,
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
	{ "what is not RoCEv2", test_others },
	{ "packets as records", test_records },
	{ "changed packets as records", test_changed },
	{ "frames that cannot be sent are counted", test_lost_on_sending },
	{ "accounts add up under random rules", test_accounts_add_up },
	{ "untouched packets are the same bytes in the same order", test_untouched },
};
TEST_MAIN("wire_account", cases)
