/* SPDX-License-Identifier: MIT */
#include "packet.h"

#include <string.h>

#define B(h) (uint16_t)(1u << PACKET_##h)
#define REQ PACKET_CLASS_REQUEST
#define RESP PACKET_CLASS_READ_RESPONSE

const uint8_t packet_header_bytes[NUM_PACKET_HEADERS] = {
	[PACKET_BTH] = 12, [PACKET_XRCETH] = 4,     [PACKET_DETH] = 8, [PACKET_RETH] = 16, [PACKET_ATOMIC] = 28,
	[PACKET_AETH] = 4, [PACKET_ATOMIC_ACK] = 8, [PACKET_IMM] = 4,  [PACKET_IETH] = 4,  [PACKET_CNP] = 16,
};

const char *const packet_class_names[NUM_PACKET_CLASSES] = {
	[PACKET_CLASS_INVALID] = "invalid",
	[PACKET_CLASS_REQUEST] = "request",
	[PACKET_CLASS_ACK] = "ack",
	[PACKET_CLASS_NAK] = "nak",
	[PACKET_CLASS_RNR_NAK] = "rnr_nak",
	[PACKET_CLASS_READ_RESPONSE] = "read_response",
	[PACKET_CLASS_ATOMIC_ACK] = "atomic_ack",
	[PACKET_CLASS_CNP] = "cnp",
	[PACKET_CLASS_UNKNOWN] = "unknown",
};

/* What each transport that has them adds is x: XRC requests carry an XRCETH. */
#define SENDS_AND_WRITES(base, t, x)                                                                                               \
	{ (base) + 0x00, true, REQ, (x), t "_SEND_FIRST" }, { (base) + 0x01, true, REQ, (x), t "_SEND_MIDDLE" },                   \
		{ (base) + 0x02, true, REQ, (x), t "_SEND_LAST" },                                                                 \
		{ (base) + 0x03, true, REQ, (x) | B(IMM), t "_SEND_LAST_WITH_IMMEDIATE" },                                         \
		{ (base) + 0x04, true, REQ, (x), t "_SEND_ONLY" },                                                                 \
		{ (base) + 0x05, true, REQ, (x) | B(IMM), t "_SEND_ONLY_WITH_IMMEDIATE" },                                         \
		{ (base) + 0x06, true, REQ, (x) | B(RETH), t "_RDMA_WRITE_FIRST" },                                                \
		{ (base) + 0x07, true, REQ, (x), t "_RDMA_WRITE_MIDDLE" },                                                         \
		{ (base) + 0x08, true, REQ, (x), t "_RDMA_WRITE_LAST" },                                                           \
		{ (base) + 0x09, true, REQ, (x) | B(IMM), t "_RDMA_WRITE_LAST_WITH_IMMEDIATE" },                                   \
		{ (base) + 0x0a, true, REQ, (x) | B(RETH), t "_RDMA_WRITE_ONLY" },                                                 \
	{                                                                                                                          \
		(base) + 0x0b, true, REQ, (x) | B(RETH) | B(IMM), t "_RDMA_WRITE_ONLY_WITH_IMMEDIATE"                              \
	}

#define READS_AND_ATOMICS(base, t, x)                                                                                              \
	{ (base) + 0x0c, false, REQ, (x) | B(RETH), t "_RDMA_READ_REQUEST" },                                                      \
		{ (base) + 0x0d, true, RESP, B(AETH), t "_RDMA_READ_RESPONSE_FIRST" },                                             \
		{ (base) + 0x0e, true, RESP, 0, t "_RDMA_READ_RESPONSE_MIDDLE" },                                                  \
		{ (base) + 0x0f, true, RESP, B(AETH), t "_RDMA_READ_RESPONSE_LAST" },                                              \
		{ (base) + 0x10, true, RESP, B(AETH), t "_RDMA_READ_RESPONSE_ONLY" },                                              \
		{ (base) + 0x11, false, PACKET_CLASS_ACK, B(AETH), t "_ACKNOWLEDGE" },                                             \
		{ (base) + 0x12, false, PACKET_CLASS_ATOMIC_ACK, B(AETH) | B(ATOMIC_ACK), t "_ATOMIC_ACKNOWLEDGE" },               \
		{ (base) + 0x13, false, REQ, (x) | B(ATOMIC), t "_COMPARE_SWAP" },                                                 \
		{ (base) + 0x14, false, REQ, (x) | B(ATOMIC), t "_FETCH_ADD" },                                                    \
		{ (base) + 0x16, true, REQ, (x) | B(IETH), t "_SEND_LAST_WITH_INVALIDATE" },                                       \
	{                                                                                                                          \
		(base) + 0x17, true, REQ, (x) | B(IETH), t "_SEND_ONLY_WITH_INVALIDATE"                                            \
	}

const struct packet_opcode packet_opcodes[] = {
	SENDS_AND_WRITES(0x00, "RC", 0),
	READS_AND_ATOMICS(0x00, "RC", 0),
	SENDS_AND_WRITES(0x20, "UC", 0),
	{ 0x64, true, REQ, B(DETH), "UD_SEND_ONLY" },
	{ 0x65, true, REQ, B(DETH) | B(IMM), "UD_SEND_ONLY_WITH_IMMEDIATE" },
	{ 0x81, false, PACKET_CLASS_CNP, B(CNP), "CNP" },
	SENDS_AND_WRITES(0xa0, "XRC", B(XRCETH)),
	READS_AND_ATOMICS(0xa0, "XRC", B(XRCETH)),
};
const size_t packet_n_opcodes = sizeof packet_opcodes / sizeof packet_opcodes[0];

const char *packet_opcode_names[sizeof packet_opcodes / sizeof packet_opcodes[0] + 1];

const char *const packet_syndrome_names[] = { "ACK",        "RNR_NAK", "NAK_PSN",        "NAK_INV_REQ",
					      "NAK_ACCESS", "NAK_OP",  "NAK_INV_RD_REQ", NULL };
static const struct packet_syndrome syndromes[] = {
	{ 0x00, AETH_ACK },
	{ AETH_RNR_NAK, 0x3f },
	{ AETH_NAK_PSN, AETH_NAK_PSN },
	{ AETH_NAK_INV_REQ, AETH_NAK_INV_REQ },
	{ AETH_NAK_ACCESS, AETH_NAK_ACCESS },
	{ AETH_NAK_OP, AETH_NAK_OP },
	{ AETH_NAK_INV_RD_REQ, AETH_NAK_INV_RD_REQ },
};

const struct packet_syndrome *packet_syndrome_by_name(const char *name)
{
	for (size_t i = 0; packet_syndrome_names[i]; i++)
		if (!strcmp(packet_syndrome_names[i], name))
			return &syndromes[i];
	return NULL;
}

/* Opcode -> row + 1, so that one look-up per packet costs one load. */
static uint8_t row_of[256];

__attribute__((constructor)) static void index_opcodes(void)
{
	for (size_t i = 0; i < packet_n_opcodes; i++) {
		row_of[packet_opcodes[i].value] = (uint8_t)(i + 1);
		packet_opcode_names[i] = packet_opcodes[i].name;
	}
}

const struct packet_opcode *packet_opcode_find(uint8_t value)
{
	return row_of[value] ? &packet_opcodes[row_of[value] - 1] : NULL;
}

const struct packet_opcode *packet_opcode_by_name(const char *name)
{
	static const char prefix[] = "IBV_OPCODE_";

	if (!strncmp(name, prefix, sizeof prefix - 1))
		name += sizeof prefix - 1;
	for (size_t i = 0; i < packet_n_opcodes; i++)
		if (!strcmp(packet_opcodes[i].name, name))
			return &packet_opcodes[i];
	return NULL;
}

enum packet_class packet_class_find(const char *text)
{
	for (int c = PACKET_CLASS_INVALID + 1; c < NUM_PACKET_CLASSES; c++) {
		const char *name = packet_class_names[c], *t = text;

		while (*name && (*name == *t || (*name == '_' && *t == '-')))
			name++, t++;
		if (!*name && !*t)
			return (enum packet_class)c;
	}
	return PACKET_CLASS_INVALID;
}
