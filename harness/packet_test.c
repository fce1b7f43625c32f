/* SPDX-License-Identifier: MIT */
#include "packet.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "packet_bytes.h"
#include "test.h"

#define FRAME_MAX 2048

struct vector {
	const char *hex;
	const char *opcode;
	enum packet_class class;
	uint32_t dest_qp, psn;
	unsigned payload_bytes, pad;
	bool ack_req, v6;
};

/* Sent by soft-RoCE between two devices of one machine. */
static const struct vector vectors[] = {
	/* RC_RDMA_WRITE_ONLY over IPv6, 13 bytes and 3 of pad, ack requested; to QP 0x15, PSN 0x76a352 */
	{ "168d13616de59e75335ff67086dd6000000000381140fe800000000000009c7533fffe5ff670fe80000000000000148d"
	  "13fffe616de5c1b912b7003800000a30ffff000000158076a352000055b62c430000000006e20000000d2242d0cdaa1b"
	  "ed110af916f757000000006e5fd0",
	  "RC_RDMA_WRITE_ONLY", PACKET_CLASS_REQUEST, 0x15, 0x76a352, 13, 3, true, true },
	/* RC_SEND_LAST, 16 bytes, ack requested; to QP 0x11, PSN 0x452b7a */
	{ "168d13616de59e75335ff67008004500003cd11d4000401155910a0000010a000002c12112b7002800000200ffff0000"
	  "001180452b7a7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b5c31235f",
	  "RC_SEND_LAST", PACKET_CLASS_REQUEST, 0x11, 0x452b7a, 16, 0, true, false },
	/* RC_ACKNOWLEDGE, MSN 1; to QP 0x11, PSN 0x452b7a */
	{ "9e75335ff670168d13616de5080045000030556640004011d1540a0000020a000001c12112b7001c00001100ffff0000"
	  "001100452b7a1f00000159099e4b",
	  "RC_ACKNOWLEDGE", PACKET_CLASS_ACK, 0x11, 0x452b7a, 0, 0, false, false },
	/* RC_FETCH_ADD of 1; to QP 0x13, PSN 0xbb66c0 */
	{ "168d13616de59e75335ff670080045000048d28d4000401154150a0000010a000002c16912b7003400001400ffff0000"
	  "001380bb66c0000055c764a380000000044500000000000000010000000000000000bf97a329",
	  "RC_FETCH_ADD", PACKET_CLASS_REQUEST, 0x13, 0xbb66c0, 0, 0, true, false },
	/* RC_ATOMIC_ACKNOWLEDGE, MSN 1; to QP 0x13, PSN 0xbb66c0 */
	{ "9e75335ff670168d13616de508004500003855a240004011d1100a0000020a000001c16912b7002400001200ffff0000"
	  "001300bb66c01f0000019a7fafe539c06ccbdb4af554",
	  "RC_ATOMIC_ACKNOWLEDGE", PACKET_CLASS_ATOMIC_ACK, 0x13, 0xbb66c0, 0, 0, false, false },
	/* RC_COMPARE_SWAP; to QP 0x14, PSN 0x3efd4a */
	{ "168d13616de59e75335ff670080045000048d31c4000401153860a0000010a000002c19012b7003400001300ffff0000"
	  "0014803efd4a000055b1d19080000000058100000000000000000000000000000000f6806eeb",
	  "RC_COMPARE_SWAP", PACKET_CLASS_REQUEST, 0x14, 0x3efd4a, 0, 0, true, false },
	/* RC_RDMA_READ_REQUEST of 22 bytes over IPv6; to QP 0x16, PSN 0xcc7a70 */
	{ "168d13616de59e75335ff67086dd6000000000281140fe800000000000009c7533fffe5ff670fe80000000000000148d"
	  "13fffe616de5c1e412b7002800000c00ffff0000001680cc7a70000055bb008740000000072c000000162cae5f41",
	  "RC_RDMA_READ_REQUEST", PACKET_CLASS_REQUEST, 0x16, 0xcc7a70, 0, 0, true, true },
	/* RC_RDMA_READ_RESPONSE_ONLY, 22 bytes and 2 of pad, over IPv6; to QP 0x16, PSN 0xcc7a70 */
	{ "9e75335ff670168d13616de586dd6000000000341140fe80000000000000148d13fffe616de5fe800000000000009c75"
	  "33fffe5ff670c1e412b7003400001020ffff0000001600cc7a701f000001330287d8d46045b1564bc6ff24830ce5a263"
	  "4f80757e0000af67f0c6",
	  "RC_RDMA_READ_RESPONSE_ONLY", PACKET_CLASS_READ_RESPONSE, 0x16, 0xcc7a70, 22, 2, false, true },
	/* UC_SEND_ONLY, 31 bytes and 1 of pad; to QP 0x17, PSN 0x6351d0 */
	{ "168d13616de59e75335ff67008004500004cd52d4000401151710a0000010a000002c21112b7003800002410ffff0000"
	  "0017006351d0a4dc04c4e27015e3250ff6d1cde92aea238083a5e8283119696b815ce860270083b87063",
	  "UC_SEND_ONLY", PACKET_CLASS_REQUEST, 0x17, 0x6351d0, 31, 1, false, false },
	/* RC_ACKNOWLEDGE over IPv6; to QP 0x12, PSN 0xf6816e */
	{ "9e75335ff670168d13616de586dd60000000001c1140fe80000000000000148d13fffe616de5fe800000000000009c75"
	  "33fffe5ff670c14412b7001c00001100ffff0000001200f6816e1f000001b830c5ac",
	  "RC_ACKNOWLEDGE", PACKET_CLASS_ACK, 0x12, 0xf6816e, 0, 0, false, true },
};

static size_t unhex(const char *hex, uint8_t *buf)
{
	size_t n = 0;

	for (; hex[0] && hex[1]; hex += 2) {
		char byte[3] = { hex[0], hex[1], 0 };

		buf[n++] = (uint8_t)strtoul(byte, NULL, 16);
	}
	return n;
}

static uint32_t crc_bits(uint32_t crc, uint8_t byte)
{
	for (int bit = 0; bit < 8; bit++, byte >>= 1)
		crc = (crc ^ byte) & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
	return crc;
}

/* A second implementation of the ICRC, bit by bit and byte by byte: which bytes count as ones is decided here per position. */
static uint32_t icrc_by_bits(const uint8_t *frame, size_t l3, size_t udp, size_t end)
{
	uint32_t crc = 0xffffffffu;
	bool v6 = frame[l3] >> 4 == 6;

	for (int i = 0; i < 8; i++)
		crc = crc_bits(crc, 0xff);
	for (size_t at = l3; at < end - 4; at++) {
		uint8_t byte = frame[at];
		size_t ip = at - l3;

		if (v6 && at < udp && (ip == 1 || ip == 2 || ip == 3 || ip == 7))
			byte = 0xff;
		if (v6 && ip == 0)
			byte |= 0x0f;
		if (!v6 && (ip == 1 || ip == 8 || ip == 10 || ip == 11))
			byte = 0xff;
		if (at == udp + 6 || at == udp + 7 || at == udp + 12)
			byte = 0xff;
		crc = crc_bits(crc, byte);
	}
	return ~crc;
}

static uint32_t icrc_of(const uint8_t *frame, const struct packet *p)
{
	return icrc_by_bits(frame, p->l3, p->udp, p->icrc + 4u);
}

static void test_captured(void)
{
	for (const struct vector *v = vectors; v < vectors + sizeof vectors / sizeof *vectors; v++) {
		uint8_t frame[FRAME_MAX];
		size_t len = unhex(v->hex, frame);
		struct packet p;

		ROW_ASSERT(packet_decode(frame, len, &p) == PACKET_ROCE, "%s", v->opcode);
		if (!p.op) {
			CU_FAIL("no opcode");
			continue;
		}
		ROW_ASSERT(!strcmp(p.op->name, v->opcode) && p.class == v->class, "%s", v->opcode);
		ROW_ASSERT(p.dest_qp == v->dest_qp && p.psn == v->psn && p.pkey == 0xffff, "%s", v->opcode);
		ROW_ASSERT(p.payload_bytes == v->payload_bytes && p.pad == v->pad, "%s", v->opcode);
		ROW_ASSERT(p.ack_req == v->ack_req && p.v6 == v->v6, "%s", v->opcode);
		ROW_ASSERT(packet_icrc_compute(frame, &p) == packet_icrc_carried(frame, &p), "%s", v->opcode);
		ROW_ASSERT(icrc_of(frame, &p) == packet_icrc_carried(frame, &p), "%s", v->opcode);
		memset(frame + p.icrc, 0, 4);
		packet_icrc_mend(frame, &p);
		ROW_ASSERT(icrc_of(frame, &p) == packet_icrc_carried(frame, &p), "%s", v->opcode);
	}
}

static uint64_t field(const uint8_t *frame, const struct packet *p, const char *name)
{
	uint64_t v = 0xdeadbeef;

	ROW_ASSERT(packet_field_get(frame, p, name, &v) == 0, "%s", name);
	return v;
}

/* The fetch-and-add above: va 0x55c764a38000, rkey 0x445, add 1, compare 0. The acknowledge of an atomic: syndrome 0x1f, MSN 1. */
static void test_captured_fields(void)
{
	uint8_t frame[FRAME_MAX];
	struct packet p;

	for (const struct vector *v = vectors; v < vectors + sizeof vectors / sizeof *vectors; v++) {
		size_t len = unhex(v->hex, frame);

		packet_decode(frame, len, &p);
		if (!strcmp(v->opcode, "RC_FETCH_ADD")) {
			CU_ASSERT(field(frame, &p, "va") == 0x55c764a38000);
			CU_ASSERT(field(frame, &p, "rkey") == 0x445);
			CU_ASSERT(field(frame, &p, "swap") == 1 && field(frame, &p, "compare") == 0);
		} else if (!strcmp(v->opcode, "RC_ATOMIC_ACKNOWLEDGE")) {
			CU_ASSERT(field(frame, &p, "syndrome") == 0x1f && field(frame, &p, "msn") == 1);
			CU_ASSERT(field(frame, &p, "original") == 0x9a7fafe539c06ccb);
		} else if (!strcmp(v->opcode, "RC_RDMA_READ_REQUEST")) {
			CU_ASSERT(field(frame, &p, "length") == 22 && field(frame, &p, "rkey") == 0x72c);
		}
	}
}

static const uint8_t addr_a[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 }, addr_b[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 };
static const uint8_t addr6_a[16] = { 0xfe, 0x80, [15] = 1 }, addr6_b[16] = { 0xfe, 0x80, [15] = 2 };

static struct packet_spec spec_of(const struct packet_opcode *op, bool v6, unsigned tags, size_t payload)
{
	struct packet_spec s = {
		.dmac = { 2, 0, 0, 0, 0, 2 },
		.smac = { 2, 0, 0, 0, 0, 1 },
		.n_tags = (uint8_t)tags,
		.tags = { 0x2005, 7 },
		.tos = 2,
		.opcode = op->value,
		.solicited = true,
		.ack_req = true,
		.pkey = 0x8001,
		.dest_qp = 0x123456,
		.psn = 0xfffffe,
		.qkey = 0x11111111,
		.src_qp = 0x654321,
		.va = 0x1122334455667788,
		.rkey = 0xa1b2c3d4,
		.length = 0x10000,
		.swap = 0xfeedfacecafebeef,
		.compare = 0x0123456789abcdef,
		.syndrome = 0x1f,
		.msn = 0x7abcde,
		.original = 0x5555aaaa5555aaaa,
		.imm = 0x01020304,
		.inv_rkey = 0x0a0b0c0d,
		.xrc_srq = 0x33,
		.payload_bytes = op->payload ? payload : 0,
	};

	memcpy(s.src, v6 ? addr6_a : addr_a, 16);
	memcpy(s.dst, v6 ? addr6_b : addr_b, 16);
	return s;
}

static void check_spec(const struct packet_opcode *op, const struct packet_spec *s, const uint8_t *frame, const struct packet *p)
{
	static const struct {
		const char *name;
		size_t at;
		size_t bytes;
	} rows[] = {
#define ROW(f, m) { f, offsetof(struct packet_spec, m), sizeof(((struct packet_spec *)0)->m) }
		ROW("qkey", qkey),       ROW("src_qp", src_qp),     ROW("va", va),   ROW("length", length),     ROW("swap", swap),
		ROW("compare", compare), ROW("syndrome", syndrome), ROW("msn", msn), ROW("original", original), ROW("imm", imm),
		ROW("xrc_srq", xrc_srq),
#undef ROW
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint64_t want = 0, seen;

		memcpy(&want, (const uint8_t *)s + rows[i].at, rows[i].bytes);
		if (packet_field_get(frame, p, rows[i].name, &seen) == 0)
			ROW_ASSERT(seen == want, "%s %s", op->name, rows[i].name);
	}
	uint64_t rkey;

	if (packet_field_get(frame, p, "rkey", &rkey) == 0)
		ROW_ASSERT(rkey == (op->headers & 1u << PACKET_IETH ? s->inv_rkey : s->rkey), "%s rkey", op->name);
	ROW_ASSERT(field(frame, p, "ecn") == 2, "%s", op->name);
}

/* Each prefix of a frame in memory of exactly its length, so that a sanitizer sees a step beyond it. */
static void check_prefixes(const struct packet_opcode *op, const uint8_t *frame, size_t len)
{
	for (size_t n = 0; n < len; n++) {
		uint8_t *cut = malloc(n ? n : 1);
		struct packet p;

		memcpy(cut, frame, n);
		enum packet_kind kind = packet_decode(cut, n, &p);

		ROW_ASSERT(kind == PACKET_OTHER || kind == PACKET_MALFORMED, "%s cut to %zu", op->name, n);
		free(cut);
	}
}

static void test_every_opcode(void)
{
	static const size_t sizes[] = { 0, 1, 2, 3, 4, 1024 };

	for (size_t i = 0; i < packet_n_opcodes * 4; i++) {
		const struct packet_opcode *op = &packet_opcodes[i / 4];
		bool v6 = i & 1;
		unsigned tags = i & 2 ? 2 : 0;

		for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
			struct packet_spec s = spec_of(op, v6, tags, sizes[k]);
			uint8_t frame[FRAME_MAX];
			struct packet p = { 0 };
			int len = packet_build(&s, frame, sizeof frame);

			ROW_ASSERT(len > 0 && packet_decode(frame, (size_t)len, &p) == PACKET_ROCE, "%s %zu", op->name, sizes[k]);
			ROW_ASSERT(p.op == op && p.dest_qp == s.dest_qp && p.psn == s.psn && p.pkey == s.pkey, "%s", op->name);
			ROW_ASSERT(p.solicited && p.ack_req && p.v6 == v6 && p.n_tags == tags, "%s", op->name);
			ROW_ASSERT(p.payload_bytes == s.payload_bytes && p.icrc + 4 == len, "%s %zu", op->name, sizes[k]);
			ROW_ASSERT(packet_icrc_carried(frame, &p) == icrc_of(frame, &p), "%s %zu", op->name, sizes[k]);
			check_spec(op, &s, frame, &p);
			if (k < 4)
				check_prefixes(op, frame, (size_t)len);
		}
	}
}

static void test_table(void)
{
	bool taken[256] = { false };

	for (const struct packet_opcode *op = packet_opcodes; op < packet_opcodes + packet_n_opcodes; op++) {
		char full[64];

		ROW_ASSERT(!taken[op->value], "%s", op->name);
		taken[op->value] = true;
		snprintf(full, sizeof full, "IBV_OPCODE_%s", op->name);
		ROW_ASSERT(packet_opcode_find(op->value) == op && packet_opcode_by_name(full) == op, "%s", op->name);
		ROW_ASSERT(packet_opcode_by_name(op->name) == op, "%s", op->name);
	}
	CU_ASSERT(packet_opcode_find(0x15) == NULL && packet_opcode_by_name("RC_SEND") == NULL);
	for (int c = PACKET_CLASS_REQUEST; c < NUM_PACKET_CLASSES; c++)
		CU_ASSERT(packet_class_find(packet_class_names[c]) == (enum packet_class)c);
	CU_ASSERT(packet_class_find("rnr-nak") == PACKET_CLASS_RNR_NAK);
	CU_ASSERT(packet_class_find("read_response") == PACKET_CLASS_READ_RESPONSE);
	CU_ASSERT(packet_class_find("ac") == PACKET_CLASS_INVALID && packet_class_find("acks") == PACKET_CLASS_INVALID);
}

static void test_syndromes(void)
{
	static const struct {
		uint8_t syndrome;
		enum packet_class class;
	} rows[] = {
		{ 0x00, PACKET_CLASS_ACK },     { 0x1f, PACKET_CLASS_ACK }, { 0x20, PACKET_CLASS_RNR_NAK },
		{ 0x3f, PACKET_CLASS_RNR_NAK }, { 0x40, PACKET_CLASS_NAK }, { 0x60, PACKET_CLASS_NAK },
		{ 0x63, PACKET_CLASS_NAK },     { 0x7f, PACKET_CLASS_NAK },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct packet_spec s = spec_of(packet_opcode_by_name("RC_ACKNOWLEDGE"), false, 0, 0);
		uint8_t frame[FRAME_MAX];
		struct packet p;

		s.syndrome = rows[i].syndrome;
		packet_decode(frame, (size_t)packet_build(&s, frame, sizeof frame), &p);
		ROW_ASSERT(p.class == rows[i].class && p.syndrome == rows[i].syndrome, "%02x", rows[i].syndrome);
	}
}

/* One byte of a good frame is changed; what is it then? */
static void test_lies(void)
{
	static const struct {
		const char *what;
		size_t at;
		uint8_t value;
		enum packet_kind kind;
	} rows[] = {
		{ "UDP length one more", 39, 8 + 12 + 16 + 5 + 4, PACKET_MALFORMED },
		{ "UDP length 0", 39, 0, PACKET_MALFORMED },
		{ "IP total length one less", 17, 20 + 8 + 12 + 16 + 4 + 3, PACKET_MALFORMED },
		{ "an atomic in what held a write", 42, 0x13, PACKET_MALFORMED },
		{ "a read request with payload", 42, 0x0c, PACKET_MALFORMED },
		{ "an unknown opcode", 42, 0x1f, PACKET_ROCE },
		{ "another port", 37, 0xb8, PACKET_OTHER },
		{ "a fragment", 20, 0x60, PACKET_OTHER },
		{ "TCP", 23, 6, PACKET_OTHER },
		{ "IP version 5", 14, 0x55, PACKET_OTHER },
		{ "IP header of 16 bytes", 14, 0x44, PACKET_OTHER },
		{ "IP header of 60 bytes", 14, 0x4f, PACKET_OTHER },
		{ "RoCE v1's ethertype", 12, 0x89, PACKET_OTHER },
		{ "pad 3 of 4 bytes", 43, 0x80 | 3 << 4, PACKET_ROCE },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct packet_spec s = spec_of(packet_opcode_by_name("RC_RDMA_WRITE_ONLY"), false, 0, 4);
		uint8_t frame[FRAME_MAX];
		struct packet p;
		size_t len = (size_t)packet_build(&s, frame, sizeof frame);

		frame[rows[i].at] = rows[i].value;
		enum packet_kind kind = packet_decode(frame, len, &p);

		ROW_ASSERT(kind == rows[i].kind && p.kind == kind, "%s: %d", rows[i].what, kind);
		ROW_ASSERT((kind == PACKET_MALFORMED) == (p.why != NULL), "%s", rows[i].what);
	}
}

static bool ipv4_checksum_good(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += get16(ip + i);
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

static void test_fields(void)
{
	for (size_t i = 0; i < packet_n_opcodes * 2; i++) {
		struct packet_spec s = spec_of(&packet_opcodes[i / 2], i & 1, 0, 8);
		uint8_t frame[FRAME_MAX], before[FRAME_MAX];
		struct packet p;
		size_t len = (size_t)packet_build(&s, before, sizeof before);

		packet_decode(before, len, &p);
		for (const struct packet_field *f = packet_fields; f < packet_fields + packet_n_fields; f++) {
			uint64_t all = f->bits == 64 ? UINT64_MAX : (1ULL << f->bits) - 1, old, seen;

			memcpy(frame, before, len);
			if (packet_field_get(frame, &p, f->name, &old) == -ENOENT) {
				CU_ASSERT(packet_field_set(frame, &p, f->name, 0) == -ENOENT);
				continue;
			}
			ROW_ASSERT(packet_field_set(frame, &p, f->name, all) == 0, "%s", f->name);
			ROW_ASSERT(packet_field_get(frame, &p, f->name, &seen) == 0 && seen == all, "%s", f->name);
			if (!p.v6)
				ROW_ASSERT(ipv4_checksum_good(frame + p.l3), "%s", f->name);
			ROW_ASSERT(packet_field_set(frame, &p, f->name, old) == 0, "%s", f->name);
			ROW_ASSERT(!memcmp(frame, before, len), "%s changes its neighbours", f->name);
			if (f->bits < 64)
				ROW_ASSERT(packet_field_set(frame, &p, f->name, all + 1) == -ERANGE, "%s", f->name);
		}
	}
	uint64_t v;
	struct packet p = { .kind = PACKET_ROCE };

	CU_ASSERT(packet_field_get(NULL, &p, "colour", &v) == -EINVAL && packet_field_find("colour") == NULL);
	CU_ASSERT(packet_field_find("psn") && !strcmp(packet_field_find("psn")->name, "psn"));
}

static void test_cut(void)
{
	for (int v6 = 0; v6 < 2; v6++) {
		struct packet_spec s = spec_of(packet_opcode_by_name("RC_RDMA_WRITE_ONLY"), v6, 1, 100);
		uint8_t frame[FRAME_MAX];
		struct packet p;
		size_t len = (size_t)packet_build(&s, frame, sizeof frame);

		packet_decode(frame, len, &p);
		uint32_t old = packet_icrc_carried(frame, &p);

		CU_ASSERT(packet_cut(frame, len, &p, 40) == len - 40);
		CU_ASSERT(packet_decode(frame, len - 40, &p) == PACKET_ROCE && p.payload_bytes == 60);
		CU_ASSERT(packet_icrc_carried(frame, &p) == old);
		CU_ASSERT(v6 || ipv4_checksum_good(frame + p.l3));
		CU_ASSERT(packet_cut(frame, len - 40, &p, 4000) == len - 100);
		CU_ASSERT(packet_decode(frame, len - 100, &p) == PACKET_ROCE && p.payload_bytes == 0);
	}
}

static void test_answer(void)
{
	struct packet_spec s = spec_of(packet_opcode_by_name("RC_SEND_ONLY"), false, 1, 4), answer;
	uint8_t frame[FRAME_MAX], src[16], dst[16];
	struct packet p;
	size_t len = (size_t)packet_build(&s, frame, sizeof frame);

	packet_decode(frame, len, &p);
	packet_spec_answer(frame, &p, &answer);
	answer.opcode = packet_opcode_by_name("RC_ACKNOWLEDGE")->value;
	len = (size_t)packet_build(&answer, frame, sizeof frame);
	CU_ASSERT(packet_decode(frame, len, &p) == PACKET_ROCE && p.n_tags == 1 && p.tags[0] == 0x2005);
	packet_addresses(frame, &p, src, dst);
	CU_ASSERT(!memcmp(src, addr_b, 16) && !memcmp(dst, addr_a, 16));
	CU_ASSERT(!memcmp(frame, s.smac, 6) && !memcmp(frame + 6, s.dmac, 6));
}

static void test_build_refuses(void)
{
	struct packet_spec s = spec_of(packet_opcode_by_name("RC_SEND_ONLY"), false, 0, 4);
	uint8_t frame[FRAME_MAX];

	CU_ASSERT(packet_build(&s, frame, 40) == -ENOSPC);
	s.opcode = 0x1f;
	CU_ASSERT(packet_build(&s, frame, sizeof frame) == -EINVAL);
	s.opcode = packet_opcode_by_name("RC_ACKNOWLEDGE")->value;
	CU_ASSERT(packet_build(&s, frame, sizeof frame) == -EINVAL);
	s.payload_bytes = 0;
	memcpy(s.dst, addr6_b, 16);
	CU_ASSERT(packet_build(&s, frame, sizeof frame) == -EINVAL);
}

static void test_psn_diff(void)
{
	static const struct {
		uint32_t psn, from;
		int32_t diff;
	} rows[] = {
		{ 0, 0, 0 },
		{ 0, 0xffffff, 1 },
		{ 0xffffff, 0, -1 },
		{ 5, 0xfffffb, 10 },
		{ 0x7fffff, 0, 0x7fffff },
		{ 0x800000, 0, -0x800000 },
		{ 0x800000, 0x7fffff, 1 },
		{ 0x000000, 0x800000, -0x800000 },
		{ 0xfffffb, 5, -10 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		ROW_ASSERT(packet_psn_diff(rows[i].psn, rows[i].from) == rows[i].diff, "%06x - %06x", rows[i].psn, rows[i].from);
}

/* What the fuzzer begins with, captured at a wire: every class over IPv4, IPv6, tags, and what is malformed. */
static void test_seeds(void)
{
	static const char dir[] = "harness/testdata/packet_fuzz";
	unsigned kinds[NUM_PACKET_KINDS] = { 0 }, classes[NUM_PACKET_CLASSES] = { 0 }, v6 = 0, tagged = 0;
	DIR *d = opendir(dir);
	struct dirent *entry;

	MUST(d != NULL);
	while ((entry = readdir(d))) {
		uint8_t frame[FRAME_MAX];
		char path[512];
		struct packet p;
		FILE *f;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
		f = fopen(path, "re");
		ROW_ASSERT(f != NULL, "%s", path);
		if (!f)
			continue;
		size_t len = fread(frame, 1, sizeof frame, f);

		fclose(f);
		kinds[packet_decode(frame, len, &p)]++;
		if (p.kind != PACKET_ROCE)
			continue;
		ROW_ASSERT(packet_icrc_compute(frame, &p) == packet_icrc_carried(frame, &p), "%s: its ICRC", path);
		classes[p.class]++;
		v6 += p.v6;
		tagged += p.n_tags > 0;
	}
	closedir(d);
	CU_ASSERT(kinds[PACKET_MALFORMED] >= 2 && kinds[PACKET_OTHER] == 0 && v6 >= 4 && tagged >= 2);
	for (int c = PACKET_CLASS_REQUEST; c < PACKET_CLASS_UNKNOWN; c++)
		ROW_ASSERT(classes[c] > 0, "no seed of class %s", packet_class_names[c]);
}

static void test_outer(void)
{
	for (int v6 = 0; v6 < 2; v6++) {
		struct packet_spec s = spec_of(packet_opcode_by_name("RC_SEND_ONLY"), v6, 0, 64);
		uint8_t frame[512];
		struct packet p;
		struct packet_outer plain, outer;

		s.tos = 0;
		MUST(packet_decode(frame, (size_t)packet_build(&s, frame, sizeof frame), &p) == PACKET_ROCE);
		plain = packet_outer(frame, &p);
		for (int i = 0; i < NUM_PACKET_OUTER; i++)
			ROW_ASSERT(plain.v[i] == (i == PACKET_OUTER_SOURCE_PORT           ? 0xc000
						  : v6 && i == PACKET_OUTER_HEADER_WORDS  ? 10
						  : v6 && i == PACKET_OUTER_DONT_FRAGMENT ? 0
											  : packet_outer_rows[i].usual),
				   "%s: %d", packet_outer_rows[i].name, plain.v[i]);
		s.tos = 0x6b;
		s.ttl = 3;
		s.src_port = 0xc123;
		MUST(packet_decode(frame, (size_t)packet_build(&s, frame, sizeof frame), &p) == PACKET_ROCE);
		frame[p.udp + 6] = 0x12;
		frame[p.bth + 4] |= 0x21;
		frame[p.bth + 8] |= 0x41;
		if (v6)
			memcpy(frame + p.l3 + 1, (const uint8_t[]){ (frame[p.l3 + 1] & 0xf0) | 1, 0x23, 0x45 }, 3);
		else
			frame[p.l3 + 6] = 0;
		outer = packet_outer(frame, &p);
		CU_ASSERT(outer.v[PACKET_OUTER_TRAFFIC_CLASS] == 0x6b && outer.v[PACKET_OUTER_HOP_LIMIT] == 3);
		CU_ASSERT(outer.v[PACKET_OUTER_FLOW_LABEL] == (v6 ? 0x12345 : 0) && outer.v[PACKET_OUTER_DONT_FRAGMENT] == 0);
		CU_ASSERT(outer.v[PACKET_OUTER_SOURCE_PORT] == 0xc123 && outer.v[PACKET_OUTER_UDP_CHECKSUM] == 0x1200);
		CU_ASSERT(outer.v[PACKET_OUTER_RESERVED] == (0x21 << 7 | 0x41));
	}
	CU_ASSERT(packet_outer_find("source_port") == PACKET_OUTER_SOURCE_PORT && packet_outer_find("psn") == -1);
}

static const struct test_case cases[] = {
	{ "what IP, UDP and reserved bits say", test_outer },
	{ "the fuzzer's seeds", test_seeds },
	{ "captured packets read as they were sent", test_captured },
	{ "fields of captured packets", test_captured_fields },
	{ "every opcode is built and read back, and none of its prefixes passes", test_every_opcode },
	{ "the tables have no doubles and find what they name", test_table },
	{ "the syndrome decides the class of an acknowledge", test_syndromes },
	{ "lengths that lie, and what is not RoCEv2", test_lies },
	{ "every field is written and read without touching its neighbours", test_fields },
	{ "payload is cut with lengths that follow", test_cut },
	{ "an answer goes back the way", test_answer },
	{ "what cannot be built is refused", test_build_refuses },
	{ "distances of PSNs around the wrap", test_psn_diff },
};
TEST_MAIN("packet", cases)
