/* SPDX-License-Identifier: MIT */
#include "wire_match.h"

#include <errno.h>

#include "wire_test.h"

static int parse(const char *json, struct wire_names *names, struct wire_match *m, struct error *e)
{
	json_t *j = json_loads(json, 0, NULL);
	int rc = wire_match_parse(j, names, m, e);

	CU_ASSERT(j != NULL);
	json_decref(j);
	return rc;
}

static void test_refused(void)
{
	static const struct {
		const char *json, *says;
	} rows[] = {
		{ "{\"color\":1}", "has no `color`" },
		{ "{\"class\":\"acks\"}", "there is no \"acks\"" },
		{ "{\"class\":[]}", "a name or a list" },
		{ "{\"class\":[\"ack\",\"acks\"]}", "number 2" },
		{ "{\"opcode\":\"SEND\"}", "there is no \"SEND\"" },
		{ "{\"syndrome\":\"NAK_FOO\"}", "`syndrome` is a name" },
		{ "{\"syndrome\":256}", "`syndrome` is a name" },
		{ "{\"syndrome\":[]}", "`syndrome` is a name" },
		{ "{\"syndrome\":[\"NAK_PSN\",-1]}", "number 2" },
		{ "{\"psn\":\"2\"}", "a number or a range" },
		{ "{\"psn\":{\"op\":\"range\"}}", "a number or a range" },
		{ "{\"nth\":0}", "can never be" },
		{ "{\"transmission\":{\"op\":\"<\",\"value\":1}}", "can never be" },
		{ "{\"size\":{\"op\":\"range\",\"min\":9,\"max\":5}}", "can never be" },
		{ "{\"every\":0}", "from 1" },
		{ "{\"from\":5}", "a name or a list" },
		{ "{\"from\":\"\"}", "there is no \"\"" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct wire_names names = { 0 };
		struct wire_match m = { .every = 77 };
		struct error e = { "" };

		ROW_ASSERT(parse(rows[i].json, &names, &m, &e) == -EINVAL && strstr(e.text, rows[i].says), "%s: %s", rows[i].json,
			   e.text);
		ROW_ASSERT(m.every == 77, "%s is written to", rows[i].json);
		wire_names_release(&names);
	}
}

/* Names as they are numbered below: p 1, q 2, a 3, b 4. */
static void test_each_key(void)
{
	static const struct wire_look base = {
		.class = PACKET_CLASS_REQUEST,
		.opcode = 0x04,
		.pair = 1,
		.agent = 3,
		.size = 1024,
		.psn = 7,
		.transmission = 2,
	};
	static const struct {
		const char *json;
		enum wire_refusal want;
	} rows[] = {
		{ "{}", WIRE_MATCHED },
		{ "{\"from\":\"a\"}", WIRE_MATCHED },
		{ "{\"from\":\"p.a\"}", WIRE_MATCHED },
		{ "{\"from\":[\"b\",\"p.a\"]}", WIRE_MATCHED },
		{ "{\"from\":\"q.a\"}", WIRE_WRONG_FROM },
		{ "{\"from\":\"b\"}", WIRE_WRONG_FROM },
		{ "{\"pair\":\"p\"}", WIRE_MATCHED },
		{ "{\"pair\":[\"q\"]}", WIRE_WRONG_PAIR },
		{ "{\"class\":\"request\"}", WIRE_MATCHED },
		{ "{\"class\":[\"ack\",\"request\"]}", WIRE_MATCHED },
		{ "{\"class\":\"read-response\"}", WIRE_WRONG_CLASS },
		{ "{\"opcode\":\"RC_SEND_ONLY\"}", WIRE_MATCHED },
		{ "{\"opcode\":[\"RC_SEND_LAST\",\"UD_SEND_ONLY\"]}", WIRE_WRONG_OPCODE },
		{ "{\"size\":1024}", WIRE_MATCHED },
		{ "{\"size\":{\"op\":\">\",\"value\":1024}}", WIRE_WRONG_SIZE },
		{ "{\"size\":{\"op\":\">=\",\"value\":1024}}", WIRE_MATCHED },
		{ "{\"size\":{\"op\":\"<\",\"value\":1024}}", WIRE_WRONG_SIZE },
		{ "{\"size\":{\"op\":\"<=\",\"value\":1024}}", WIRE_MATCHED },
		{ "{\"psn\":7}", WIRE_MATCHED },
		{ "{\"psn\":{\"op\":\"range\",\"min\":2}}", WIRE_MATCHED },
		{ "{\"psn\":{\"op\":\"range\",\"min\":2,\"max\":6}}", WIRE_WRONG_PSN },
		{ "{\"psn\":{\"op\":\"==\",\"value\":8}}", WIRE_WRONG_PSN },
		{ "{\"transmission\":2}", WIRE_MATCHED },
		{ "{\"transmission\":1}", WIRE_WRONG_TRANSMISSION },
		{ "{\"nth\":1}", WIRE_MATCHED },
		{ "{\"nth\":2}", WIRE_WRONG_NTH },
		{ "{\"every\":1}", WIRE_MATCHED },
		{ "{\"every\":2}", WIRE_WRONG_NTH },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct wire_names names = { 0 };
		struct wire_match m;
		struct error e = { "" };

		wire_name(&names, "p");
		wire_name(&names, "q");
		wire_name(&names, "a");
		wire_name(&names, "b");
		ROW_ASSERT(parse(rows[i].json, &names, &m, &e) == 0, "%s: %s", rows[i].json, e.text);
		enum wire_refusal seen = wire_match_try(&m, &base);

		ROW_ASSERT(seen == rows[i].want && m.refused[seen] == 1, "%s: %s", rows[i].json, wire_refusal_names[seen]);
		ROW_ASSERT(wire_match_is_empty(&m) == !strcmp(rows[i].json, "{}"), "%s", rows[i].json);
		wire_names_release(&names);
	}
}

static void test_syndrome(void)
{
	static const struct {
		const char *json;
		int syndrome; /* -1: no AETH */
		enum wire_refusal want;
	} rows[] = {
		{ "{\"syndrome\":\"NAK_PSN\"}", 0x60, WIRE_MATCHED },
		{ "{\"syndrome\":\"NAK_PSN\"}", 0x61, WIRE_WRONG_SYNDROME },
		{ "{\"syndrome\":\"ACK\"}", 0x00, WIRE_MATCHED },
		{ "{\"syndrome\":\"ACK\"}", 0x1f, WIRE_MATCHED },
		{ "{\"syndrome\":\"ACK\"}", 0x20, WIRE_WRONG_SYNDROME },
		{ "{\"syndrome\":\"ACK\"}", -1, WIRE_WRONG_SYNDROME },
		{ "{\"syndrome\":\"RNR_NAK\"}", 0x3f, WIRE_MATCHED },
		{ "{\"syndrome\":0}", -1, WIRE_WRONG_SYNDROME },
		{ "{\"syndrome\":255}", 0xff, WIRE_MATCHED },
		{ "{\"syndrome\":[\"NAK_OP\",\"NAK_INV_RD_REQ\",127]}", 0x7f, WIRE_MATCHED },
		{ "{\"syndrome\":[\"NAK_OP\",\"NAK_INV_RD_REQ\"]}", 0x64, WIRE_MATCHED },
		{ "{\"syndrome\":[\"NAK_OP\",\"NAK_INV_RD_REQ\"]}", 0x62, WIRE_WRONG_SYNDROME },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct wire_names names = { 0 };
		struct wire_match m;
		struct error e = { "" };
		struct wire_look look = { .class = PACKET_CLASS_ACK, .aeth = rows[i].syndrome >= 0 };

		look.syndrome = look.aeth ? (uint8_t)rows[i].syndrome : 0;
		ROW_ASSERT(parse(rows[i].json, &names, &m, &e) == 0, "%s: %s", rows[i].json, e.text);
		enum wire_refusal seen = wire_match_try(&m, &look);

		ROW_ASSERT(seen == rows[i].want && m.refused[seen] == 1, "%s, 0x%02x: %s", rows[i].json, (unsigned)look.syndrome,
			   wire_refusal_names[seen]);
		ROW_ASSERT(!wire_match_is_empty(&m), "%s", rows[i].json);
		wire_names_release(&names);
	}
}

static void test_counts(void)
{
	static const struct {
		const char *json, *pattern;
	} rows[] = {
		{ "{\"nth\":2}", ".x......" },
		{ "{\"nth\":{\"op\":\"range\",\"min\":2,\"max\":5}}", ".xxxx..." },
		{ "{\"nth\":{\"op\":\"range\",\"min\":6}}", ".....xxx" },
		{ "{\"every\":3}", "..x..x.." },
		{ "{\"every\":2,\"nth\":{\"op\":\"range\",\"min\":3}}", "...x.x.x" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct wire_names names = { 0 };
		struct wire_match m;
		char seen[9] = "";

		parse(rows[i].json, &names, &m, NULL);
		for (int k = 0; k < 8; k++)
			seen[k] = wire_match_try(&m, &(struct wire_look){ .class = PACKET_CLASS_ACK }) == WIRE_MATCHED ? 'x' : '.';
		ROW_ASSERT(!strcmp(seen, rows[i].pattern), "%s: %s", rows[i].json, seen);
		wire_names_release(&names);
	}
}

static void test_stranger(void)
{
	struct wire_names names = { 0 };
	struct wire_match m;
	struct wire_look look = { .class = PACKET_CLASS_REQUEST, .psn = 0, .transmission = 0 };

	parse("{\"psn\":0}", &names, &m, NULL);
	CU_ASSERT(wire_match_try(&m, &look) == WIRE_UNKNOWN_CONNECTION);
	for (int i = 0; i < NUM_WIRE_REFUSALS; i++)
		CU_ASSERT(wire_refusal_names[i] && wire_refusal_texts[i]);
	wire_names_release(&names);
}

static const struct test_case cases[] = {
	{ "what is wrong in a match is named", test_refused },
	{ "each key matches and refuses", test_each_key },
	{ "a syndrome by name and by number", test_syndrome },
	{ "the n-th and every k-th", test_counts },
	{ "a PSN is asked of a packet without a connection", test_stranger },
};
TEST_MAIN("wire_match", cases)
