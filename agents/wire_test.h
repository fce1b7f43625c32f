/* SPDX-License-Identifier: MIT */
/* A connection p between a (10.0.0.1, QP 17, first PSN START_A) and b (10.0.0.2, QP 18, first PSN START_B), and its packets, for
 * the tests of the wire. */
#ifndef QD_WIRE_TEST_H
#define QD_WIRE_TEST_H

#include "../harness/packet.h"
#include "../harness/test.h"
#include "wire_conn.h"

#define QPN_A 17u
#define QPN_B 18u
#define START_A 0xfffffdu
#define START_B 0x123u
#define FRAME_MAX 4400

static const uint8_t test_addr[2][16] = { { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 }, { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 } };
static const uint8_t test_addr6[2][16] = { { 0xfe, 0x80, [8] = 2, 0, 0, 0xff, 0xfe, [15] = 1 },
					   { 0xfe, 0x80, [8] = 2, 0, 0, 0xff, 0xfe, [15] = 2 } };

/* How the packets of the connection are addressed and tagged. */
static const struct test_variant {
	const char *name;
	const uint8_t (*addr)[16];
	uint8_t n_tags;
	uint16_t tags[PACKET_MAX_TAGS];
} test_variants[] = {
	{ "IPv4", test_addr, 0, { 0 } },
	{ "IPv6", test_addr6, 0, { 0 } },
	{ "IPv4, a tag", test_addr, 1, { 0x6005 } },
	{ "IPv6, two tags", test_addr6, 2, { 0x2064, 0xf005 } },
};
static const struct test_variant *test_variant = &test_variants[0];

static inline struct wire_conn test_conn(struct wire_names *names, unsigned life)
{
	struct wire_conn c = { .pair = wire_name(names, "p"), .life = life };

	for (unsigned e = 0; e < 2; e++) {
		c.end[e].agent = wire_name(names, e ? "b" : "a");
		memcpy(c.end[e].addr, test_variant->addr[e], 16);
		c.end[e].qpn = e ? QPN_B : QPN_A;
		c.end[e].stream.start = e ? START_B : START_A;
	}
	return c;
}

/* from 0: a sends to b. psn is relative to the first PSN of the requester, which for an answer is the receiver. */
static inline size_t test_packet(unsigned from, const char *opcode, int64_t psn, uint8_t syndrome, size_t payload, uint8_t *frame)
{
	const struct packet_opcode *op = packet_opcode_by_name(opcode);
	unsigned requester = op && op->class == PACKET_CLASS_REQUEST ? from : !from;
	struct packet_spec s = {
		.dmac = { 2, 0, 0, 0, 0, (uint8_t)!from },
		.smac = { 2, 0, 0, 0, 0, (uint8_t)from },
		.opcode = op ? op->value : 0,
		.dest_qp = from ? QPN_A : QPN_B,
		.psn = (uint32_t)((requester ? START_B : START_A) + psn) & PACKET_PSN_MASK,
		.syndrome = syndrome,
		.payload_bytes = payload,
		.va = 0x1000,
		.rkey = 0x77,
		.length = (uint32_t)payload,
	};

	memcpy(s.src, test_variant->addr[from], 16);
	memcpy(s.dst, test_variant->addr[!from], 16);
	s.n_tags = test_variant->n_tags;
	memcpy(s.tags, test_variant->tags, sizeof s.tags);
	int len = packet_build(&s, frame, FRAME_MAX);

	return len > 0 ? (size_t)len : 0;
}

#endif
