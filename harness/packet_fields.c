/* SPDX-License-Identifier: MIT */
#include "packet.h"

#include <errno.h>
#include <string.h>

#include "packet_bytes.h"

/* ECN lies in the second byte of IPv4's header and in the low nibble of its second byte's high half in IPv6's: the row says
 * where in IPv4, v6_shift() moves it. */
const struct packet_field packet_fields[] = {
	{ "opcode", PACKET_BTH, 0, 1, 0, 8, "the BTH opcode" },
	{ "solicited", PACKET_BTH, 1, 1, 7, 1, "solicited event" },
	{ "pad", PACKET_BTH, 1, 1, 4, 2, "pad count" },
	{ "tver", PACKET_BTH, 1, 1, 0, 4, "transport header version" },
	{ "pkey", PACKET_BTH, 2, 2, 0, 16, "partition key" },
	{ "becn", PACKET_BTH, 4, 1, 6, 1, "backward congestion notification (not covered by the ICRC)" },
	{ "dest_qp", PACKET_BTH, 5, 3, 0, 24, "destination QP number" },
	{ "ack_req", PACKET_BTH, 8, 1, 7, 1, "acknowledge request" },
	{ "psn", PACKET_BTH, 9, 3, 0, 24, "packet sequence number" },
	{ "reserved6", PACKET_BTH, 4, 1, 0, 6, "reserved bits beside the QP number (not covered by the ICRC)" },
	{ "reserved7", PACKET_BTH, 8, 1, 0, 7, "reserved bits beside the PSN" },
	{ "source_port", PACKET_UDP, 0, 2, 0, 16, "UDP source port" },
	{ "ecn", PACKET_IP, 1, 1, 0, 2, "congestion field of IP: 0 none, 1 or 2 capable, 3 congestion experienced" },
	{ "qkey", PACKET_DETH, 0, 4, 0, 32, "queue key" },
	{ "src_qp", PACKET_DETH, 5, 3, 0, 24, "source QP number" },
	{ "va", PACKET_RETH, 0, 8, 0, 64, "remote address" },
	{ "va", PACKET_ATOMIC, 0, 8, 0, 64, "remote address" },
	{ "rkey", PACKET_RETH, 8, 4, 0, 32, "remote key" },
	{ "rkey", PACKET_ATOMIC, 8, 4, 0, 32, "remote key" },
	{ "rkey", PACKET_IETH, 0, 4, 0, 32, "remote key to invalidate" },
	{ "length", PACKET_RETH, 12, 4, 0, 32, "DMA length" },
	{ "swap", PACKET_ATOMIC, 12, 8, 0, 64, "swap or add operand" },
	{ "compare", PACKET_ATOMIC, 20, 8, 0, 64, "compare operand" },
	{ "syndrome", PACKET_AETH, 0, 1, 0, 8, "acknowledge syndrome" },
	{ "msn", PACKET_AETH, 1, 3, 0, 24, "message sequence number" },
	{ "original", PACKET_ATOMIC_ACK, 0, 8, 0, 64, "original value of an atomic" },
	{ "imm", PACKET_IMM, 0, 4, 0, 32, "immediate data" },
	{ "xrc_srq", PACKET_XRCETH, 1, 3, 0, 24, "XRC shared receive queue" },
};
const size_t packet_n_fields = sizeof packet_fields / sizeof packet_fields[0];

const struct packet_outer_row packet_outer_rows[NUM_PACKET_OUTER] = {
#define OUTER_ROW(id, name, max, usual, help) [PACKET_OUTER_##id] = { name, usual },
	PACKET_OUTER(OUTER_ROW)
#undef OUTER_ROW
};

int packet_outer_find(const char *name)
{
	for (int i = 0; i < NUM_PACKET_OUTER; i++)
		if (!strcmp(packet_outer_rows[i].name, name))
			return i;
	return -1;
}

/* Of every packet that comes by: no names are looked up. */
struct packet_outer packet_outer(const uint8_t *frame, const struct packet *p)
{
	const uint8_t *ip = frame + p->l3, *udp = frame + p->udp, *bth = frame + p->bth;
	struct packet_outer o = { .v = {
					  [PACKET_OUTER_SOURCE_PORT] = (int32_t)get16(udp),
					  [PACKET_OUTER_UDP_CHECKSUM] = (int32_t)get16(udp + 6),
					  [PACKET_OUTER_RESERVED] = (bth[4] & 0x3f) << 7 | (bth[8] & 0x7f),
				  } };

	if (p->v6) {
		o.v[PACKET_OUTER_TRAFFIC_CLASS] = (uint8_t)(ip[0] << 4 | ip[1] >> 4);
		o.v[PACKET_OUTER_HOP_LIMIT] = ip[7];
		o.v[PACKET_OUTER_FLOW_LABEL] = (int32_t)(get24(ip + 1) & 0xfffff);
		o.v[PACKET_OUTER_HEADER_WORDS] = 10;
	} else {
		o.v[PACKET_OUTER_TRAFFIC_CLASS] = ip[1];
		o.v[PACKET_OUTER_HOP_LIMIT] = ip[8];
		o.v[PACKET_OUTER_HEADER_WORDS] = ip[0] & 0xf;
		o.v[PACKET_OUTER_DONT_FRAGMENT] = ip[6] >> 6 & 1;
	}
	return o;
}

const struct packet_field *packet_field_find(const char *name)
{
	for (size_t i = 0; i < packet_n_fields; i++)
		if (!strcmp(packet_fields[i].name, name))
			return &packet_fields[i];
	return NULL;
}

/* Where the field's header begins; 0: the packet has none. */
static size_t header_of(const struct packet *p, const struct packet_field *f)
{
	switch (f->header) {
	case PACKET_IP:
		return p->l3;
	case PACKET_UDP:
		return p->udp;
	case PACKET_BTH:
		return p->bth;
	default:
		return p->ext[f->header];
	}
}

static unsigned shift_of(const struct packet *p, const struct packet_field *f)
{
	return f->shift + (f->header == PACKET_IP && p->v6 ? 4u : 0u);
}

static uint64_t mask_of(const struct packet_field *f)
{
	return f->bits == 64 ? UINT64_MAX : (1ULL << f->bits) - 1;
}

/* The row of this name whose header the packet has. */
static int find_row(const struct packet *p, const char *name, const struct packet_field **ret)
{
	int rc = -EINVAL;

	for (const struct packet_field *f = packet_fields; f < packet_fields + packet_n_fields; f++) {
		if (strcmp(f->name, name))
			continue;
		rc = -ENOENT;
		if (!header_of(p, f))
			continue;
		*ret = f;
		return 0;
	}
	return rc;
}

int packet_field_get(const uint8_t *frame, const struct packet *p, const char *name, uint64_t *ret)
{
	const struct packet_field *f = NULL;
	int rc = find_row(p, name, &f);

	if (rc)
		return rc;
	*ret = get_be(frame + header_of(p, f) + f->byte, f->bytes) >> shift_of(p, f) & mask_of(f);
	return 0;
}

int packet_field_set(uint8_t *frame, const struct packet *p, const char *name, uint64_t value)
{
	const struct packet_field *f = NULL;
	int rc = find_row(p, name, &f);

	if (rc)
		return rc;
	if (value & ~mask_of(f))
		return -ERANGE;
	uint8_t *at = frame + header_of(p, f) + f->byte;
	uint64_t old = get_be(at, f->bytes);

	put_be(at, f->bytes, (old & ~(mask_of(f) << shift_of(p, f))) | value << shift_of(p, f));
	if (f->header == PACKET_IP && !p->v6)
		ipv4_checksum_mend(frame + p->l3);
	return 0;
}
