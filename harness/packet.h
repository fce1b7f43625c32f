/* SPDX-License-Identifier: MIT */
/*
 * RoCEv2 packets as bytes: Ethernet (+ 802.1Q/802.1ad tags), IPv4 or IPv6, UDP to port 4791, BTH, extension headers, payload,
 * pad, ICRC. Decoding never reads past the frame and never changes it; numbers on the wire are big-endian, except the ICRC,
 * which is stored least significant byte first.
 *
 * Sources: IBTA volume 1 chapters 5 and 9 (BTH and extension headers, opcodes, AETH), annex A17 (RoCEv2, CNP, ICRC).
 */
#ifndef QD_PACKET_H
#define QD_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_PORT 4791
#define PACKET_PSN_MASK 0xffffffu
#define PACKET_ICRC_BYTES 4
#define PACKET_MAX_TAGS 2
#define PACKET_MAX_HEADERS_BYTES 160 /* the longest packet_build() makes without payload */

enum packet_kind {
	PACKET_INVALID,
	PACKET_OTHER,     /* not RoCEv2 (a fragment neither): carried untouched */
	PACKET_MALFORMED, /* goes to port 4791, and its lengths lie */
	PACKET_ROCE,
	NUM_PACKET_KINDS,
};

enum packet_class {
	PACKET_CLASS_INVALID,
	PACKET_CLASS_REQUEST,
	PACKET_CLASS_ACK,
	PACKET_CLASS_NAK, /* syndrome 011xxxxx, and the reserved 010xxxxx */
	PACKET_CLASS_RNR_NAK,
	PACKET_CLASS_READ_RESPONSE,
	PACKET_CLASS_ATOMIC_ACK,
	PACKET_CLASS_CNP,
	PACKET_CLASS_UNKNOWN, /* an opcode that the table does not have */
	NUM_PACKET_CLASSES,
};
extern const char *const packet_class_names[NUM_PACKET_CLASSES]; /* "request" "rnr_nak" ... */
/* Takes '-' for '_'. PACKET_CLASS_INVALID when there is none. */
enum packet_class packet_class_find(const char *text);

/* Headers in the order in which they follow each other. */
enum packet_header {
	PACKET_BTH,
	PACKET_XRCETH,
	PACKET_DETH,
	PACKET_RETH,
	PACKET_ATOMIC, /* AtomicETH */
	PACKET_AETH,
	PACKET_ATOMIC_ACK, /* AtomicAckETH */
	PACKET_IMM,        /* ImmDt */
	PACKET_IETH,
	PACKET_CNP, /* the 16 reserved bytes of a CNP */
	NUM_PACKET_HEADERS,
	PACKET_IP, /* only for struct packet_field, as is the next */
	PACKET_UDP,
};
extern const uint8_t packet_header_bytes[NUM_PACKET_HEADERS];

struct packet_opcode {
	uint8_t value;
	bool payload;            /* may carry payload */
	enum packet_class class; /* an acknowledge's is refined by its syndrome */
	uint16_t headers;        /* bit (1 << enum packet_header) for each that follows BTH */
	const char *name;        /* IBV_OPCODE_ name without the prefix: "RC_RDMA_WRITE_FIRST" */
};
extern const struct packet_opcode packet_opcodes[];
extern const size_t packet_n_opcodes;
const struct packet_opcode *packet_opcode_find(uint8_t value);       /* NULL: unknown */
const struct packet_opcode *packet_opcode_by_name(const char *name); /* with or without "IBV_OPCODE_" */
extern const char *packet_opcode_names[];                            /* NULL at their end */

/* What the first byte of an AETH says. */
enum {
	AETH_ACK = 0x1f, /* without a limit of credits */
	AETH_RNR_NAK = 0x20,
	AETH_NAK_PSN = 0x60,
	AETH_NAK_INV_REQ,
	AETH_NAK_ACCESS,
	AETH_NAK_OP,
	AETH_NAK_INV_RD_REQ,
};
struct packet_syndrome {
	uint8_t first, last; /* the low bits of an ACK are credits, those of an RNR NAK a timer */
};
extern const char *const packet_syndrome_names[]; /* NULL at their end: "ACK", "NAK_PSN" */
const struct packet_syndrome *packet_syndrome_by_name(const char *name);

/* A frame as decoded. Offsets count from the frame's first byte; 0 means not there. */
struct packet {
	enum packet_kind kind;
	enum packet_class class;
	const struct packet_opcode *op; /* NULL: unknown opcode */
	const char *why;                /* of PACKET_MALFORMED: what does not fit */
	bool v6;
	bool solicited, ack_req;
	uint8_t opcode, pad, syndrome, n_tags;
	uint16_t tags[PACKET_MAX_TAGS]; /* TCI, outermost first */
	uint16_t pkey;
	uint16_t l3, udp, bth, payload, icrc;
	uint16_t ext[NUM_PACKET_HEADERS];
	uint16_t payload_bytes; /* without pad */
	uint32_t dest_qp, psn;
};

/* Of a malformed packet everything up to the header that does not fit is set, and icrc when UDP's length is true. */
enum packet_kind packet_decode(const uint8_t *frame, size_t len, struct packet *ret);

/* The addresses as 16 bytes, IPv4 as ::ffff:a.b.c.d. Needs p->l3. */
void packet_addresses(const uint8_t *frame, const struct packet *p, uint8_t ret_src[16], uint8_t ret_dst[16]);

#define PACKET_HOP_LIMIT 64
/* What a packet says beside its transport: its name, the largest value, the usual one (-1: there is none), and what it is. */
#define PACKET_OUTER(X)                                                                                                            \
	X(TRAFFIC_CLASS, "traffic_class", 0xff, 0, "traffic class or TOS byte of its IP header")                                   \
	X(HOP_LIMIT, "hop_limit", 0xff, PACKET_HOP_LIMIT, "its hop limit or TTL")                                                  \
	X(FLOW_LABEL, "flow_label", 0xfffff, 0, "its flow label (IPv6)")                                                           \
	X(HEADER_WORDS, "header_words", 15, 5, "length of its IP header in words of 32 bits, 10 of IPv6")                          \
	X(DONT_FRAGMENT, "dont_fragment", 1, 1, "whether it forbids fragments: a bit of IPv4")                                     \
	X(SOURCE_PORT, "source_port", 0xffff, -1, "its UDP source port")                                                           \
	X(UDP_CHECKSUM, "udp_checksum", 0xffff, 0, "its UDP checksum, 0 for none")                                                 \
	X(RESERVED, "reserved", 0x1fff, 0, "the reserved bits of its BTH: six beside the QP number, seven beside the PSN")

enum packet_outer_field {
#define PACKET_OUTER_ENUM(id, name, max, usual, help) PACKET_OUTER_##id,
	PACKET_OUTER(PACKET_OUTER_ENUM) NUM_PACKET_OUTER
#undef PACKET_OUTER_ENUM
};
struct packet_outer_row {
	const char *name;
	int32_t usual;
};
extern const struct packet_outer_row packet_outer_rows[NUM_PACKET_OUTER];
/* -1: there is no such field. */
int packet_outer_find(const char *name);
struct packet_outer {
	int32_t v[NUM_PACKET_OUTER];
};
/* Needs p->l3 and p->bth. */
struct packet_outer packet_outer(const uint8_t *frame, const struct packet *p);

/* Needs p->icrc. */
uint32_t packet_icrc_compute(const uint8_t *frame, const struct packet *p);
uint32_t packet_icrc_carried(const uint8_t *frame, const struct packet *p);
/* Takes the UDP checksum away (0), as every change of a packet has to. */
void packet_udp_unchecked(uint8_t *frame, const struct packet *p);
/* Writes the right ICRC (and takes the UDP checksum away). */
void packet_icrc_mend(uint8_t *frame, const struct packet *p);

/* Distance from `from` to psn, -2^23 to 2^23-1. */
static inline int32_t packet_psn_diff(uint32_t psn, uint32_t from)
{
	return (int32_t)((psn - from) << 8) >> 8;
}

/* A named field of a header. */
struct packet_field {
	const char *name; /* "dest_qp" */
	enum packet_header header;
	uint8_t byte, bytes; /* where the big-endian number lies that holds it */
	uint8_t shift, bits;
	const char *help;
};
extern const struct packet_field packet_fields[];
extern const size_t packet_n_fields;
const struct packet_field *packet_field_find(const char *name);
/* -ENOENT: the packet has no such header. A field that lies in several headers (va, rkey) is taken from the one there. */
int packet_field_get(const uint8_t *frame, const struct packet *p, const char *name, uint64_t *ret);
/* As above; -EINVAL: no such field; -ERANGE: the value has more bits. IP's checksum is mended, the ICRC is not; p stays as it was
 * decoded. */
int packet_field_set(uint8_t *frame, const struct packet *p, const char *name, uint64_t value);

/* Cuts bytes off the end of payload and pad (bytes too many: all of it); the lengths in IP and UDP follow, the ICRC moves with its
 * old value. Returns the new length of the frame. */
size_t packet_cut(uint8_t *frame, size_t len, const struct packet *p, size_t bytes);

/* What packet_build() makes a packet of. */
struct packet_spec {
	uint8_t dmac[6], smac[6];
	uint8_t n_tags;
	uint16_t tags[PACKET_MAX_TAGS];
	uint8_t src[16], dst[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint8_t tos, ttl;         /* ttl 0: 64 */
	uint16_t src_port;        /* 0: 0xc000 */
	uint8_t opcode;
	bool solicited, ack_req, migreq;
	uint16_t pkey; /* 0: 0xffff */
	uint32_t dest_qp, psn;
	uint32_t qkey, src_qp; /* DETH */
	uint64_t va;           /* RETH, AtomicETH */
	uint32_t rkey, length;
	uint64_t swap, compare; /* AtomicETH */
	uint8_t syndrome;       /* AETH */
	uint32_t msn;
	uint64_t original; /* AtomicAckETH */
	uint32_t imm, inv_rkey, xrc_srq;
	const uint8_t *payload; /* may be NULL: zeros */
	size_t payload_bytes;
};
/* A whole frame with right lengths, checksums and ICRC. Returns its length, -EINVAL for an unknown opcode or mixed address
 * families, -ENOSPC when size is too small. */
int packet_build(const struct packet_spec *s, uint8_t *buf, size_t size);
/* Fills MACs, tags, addresses, hop limit and P_Key of an answer to this packet. */
void packet_spec_answer(const uint8_t *frame, const struct packet *p, struct packet_spec *ret);

#endif
