/* SPDX-License-Identifier: MIT */
#include "packet.h"

#include <libdeflate.h>
#include <string.h>

#include "packet_bytes.h"

#define ETH_BYTES 14
#define TAG_BYTES 4
#define UDP_BYTES 8
#define IPV6_BYTES 40
#define IPV4_MIN_BYTES 20
#define IPV4_MAX_BYTES 60
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define ETHERTYPE_TAG 0x8100
#define ETHERTYPE_TAG_OUTER 0x88a8
#define PROTO_UDP 17

static enum packet_kind malformed(struct packet *p, const char *why)
{
	p->why = why;
	return p->kind = PACKET_MALFORMED;
}

/* Steps over the tags. Returns the ethertype, or 0 when the frame ends before it. */
static unsigned read_ethernet(const uint8_t *frame, size_t len, struct packet *p)
{
	size_t at = ETH_BYTES;

	if (len < ETH_BYTES)
		return 0;
	unsigned type = get16(frame + 12);

	while (type == ETHERTYPE_TAG || type == ETHERTYPE_TAG_OUTER) {
		if (p->n_tags == PACKET_MAX_TAGS || len < at + TAG_BYTES)
			return 0;
		p->tags[p->n_tags++] = get16(frame + at);
		type = get16(frame + at + 2);
		at += TAG_BYTES;
	}
	p->l3 = (uint16_t)at;
	return type;
}

/* Finds UDP. *ret_ip_end: where IP says that the packet ends (it may lie behind the frame). False: nothing of ours. */
static bool read_ip(const uint8_t *frame, size_t len, unsigned type, struct packet *p, size_t *ret_ip_end)
{
	const uint8_t *ip = frame + p->l3;
	size_t room = len - p->l3;

	if (type == ETHERTYPE_IPV4) {
		if (room < IPV4_MIN_BYTES || ip[0] >> 4 != 4 || ip[9] != PROTO_UDP)
			return false;
		size_t header = (size_t)(ip[0] & 0xf) * 4;

		if (header < IPV4_MIN_BYTES || room < header + UDP_BYTES || get16(ip + 6) & 0x3fff)
			return false;
		p->udp = (uint16_t)(p->l3 + header);
		*ret_ip_end = p->l3 + get16(ip + 2);
		return true;
	}
	if (type != ETHERTYPE_IPV6 || room < IPV6_BYTES + UDP_BYTES || ip[0] >> 4 != 6 || ip[6] != PROTO_UDP)
		return false;
	p->v6 = true;
	p->udp = (uint16_t)(p->l3 + IPV6_BYTES);
	*ret_ip_end = p->l3 + IPV6_BYTES + get16(ip + 4);
	return true;
}

static enum packet_class refine(const struct packet *p)
{
	if (!p->op)
		return PACKET_CLASS_UNKNOWN;
	if (p->op->class != PACKET_CLASS_ACK)
		return p->op->class;
	switch (p->syndrome >> 5 & 3) {
	case 0:
		return PACKET_CLASS_ACK;
	case 1:
		return PACKET_CLASS_RNR_NAK;
	default:
		return PACKET_CLASS_NAK;
	}
}

static enum packet_kind read_ib(const uint8_t *frame, struct packet *p)
{
	const uint8_t *bth = frame + p->bth;
	size_t at = p->bth + packet_header_bytes[PACKET_BTH];

	p->opcode = bth[0];
	p->solicited = bth[1] >> 7;
	p->pad = bth[1] >> 4 & 3;
	p->pkey = get16(bth + 2);
	p->dest_qp = get24(bth + 5);
	p->ack_req = bth[8] >> 7;
	p->psn = get24(bth + 9);
	p->op = packet_opcode_find(p->opcode);
	p->class = refine(p);
	for (int h = PACKET_BTH + 1; p->op && h < NUM_PACKET_HEADERS; h++) {
		if (!(p->op->headers & 1u << h))
			continue;
		if (p->icrc - at < packet_header_bytes[h])
			return malformed(p, "ends inside an extension header");
		p->ext[h] = (uint16_t)at;
		at += packet_header_bytes[h];
	}
	if (p->ext[PACKET_AETH]) {
		p->syndrome = frame[p->ext[PACKET_AETH]];
		p->class = refine(p);
	}
	p->payload = (uint16_t)at;
	if (p->icrc - at < p->pad)
		return malformed(p, "more pad than payload");
	p->payload_bytes = (uint16_t)(p->icrc - at - p->pad);
	if (p->op && !p->op->payload && p->icrc != at)
		return malformed(p, "payload where the opcode has none");
	return p->kind = PACKET_ROCE;
}

enum packet_kind packet_decode(const uint8_t *frame, size_t len, struct packet *ret)
{
	size_t ip_end = 0;

	memset(ret, 0, sizeof *ret);
	ret->kind = PACKET_OTHER;
	unsigned type = len > UINT16_MAX ? 0 : read_ethernet(frame, len, ret);

	if (!type || !read_ip(frame, len, type, ret, &ip_end) || get16(frame + ret->udp + 2) != PACKET_PORT)
		return PACKET_OTHER;
	size_t udp_end = ret->udp + (size_t)get16(frame + ret->udp + 4);

	if (udp_end > len)
		return malformed(ret, "UDP is longer than the frame");
	if (udp_end != ip_end)
		return malformed(ret, "the lengths of IP and UDP disagree");
	if (udp_end < ret->udp + (size_t)UDP_BYTES + packet_header_bytes[PACKET_BTH] + PACKET_ICRC_BYTES)
		return malformed(ret, "too short for BTH and ICRC");
	ret->bth = (uint16_t)(ret->udp + UDP_BYTES);
	ret->icrc = (uint16_t)(udp_end - PACKET_ICRC_BYTES);
	return read_ib(frame, ret);
}

void packet_addresses(const uint8_t *frame, const struct packet *p, uint8_t ret_src[16], uint8_t ret_dst[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const uint8_t *ip = frame + p->l3;

	if (p->v6) {
		memcpy(ret_src, ip + 8, 16);
		memcpy(ret_dst, ip + 24, 16);
		return;
	}
	memcpy(ret_src, mapped, sizeof mapped);
	memcpy(ret_src + 12, ip + 12, 4);
	memcpy(ret_dst, mapped, sizeof mapped);
	memcpy(ret_dst + 12, ip + 16, 4);
}

/* What routers may change counts as ones; before it stand eight bytes of ones where an LRH would be. */
uint32_t packet_icrc_compute(const uint8_t *frame, const struct packet *p)
{
	uint8_t head[8 + IPV4_MAX_BYTES + UDP_BYTES + 12];
	size_t l3_bytes = (size_t)p->udp - p->l3, n = 8 + l3_bytes + UDP_BYTES + 12;
	uint8_t *ip = head + 8, *udp = ip + l3_bytes;

	memset(head, 0xff, 8);
	memcpy(ip, frame + p->l3, n - 8);
	if (p->v6) {
		ip[0] |= 0x0f;
		ip[1] = ip[2] = ip[3] = ip[7] = 0xff;
	} else {
		ip[1] = ip[8] = ip[10] = ip[11] = 0xff;
	}
	udp[6] = udp[7] = 0xff;
	udp[UDP_BYTES + 4] = 0xff;
	uint32_t crc = libdeflate_crc32(0, head, n);
	size_t rest = (size_t)p->bth + 12;

	return libdeflate_crc32(crc, frame + rest, p->icrc - rest);
}

uint32_t packet_icrc_carried(const uint8_t *frame, const struct packet *p)
{
	const uint8_t *c = frame + p->icrc;

	return (uint32_t)c[0] | (uint32_t)c[1] << 8 | (uint32_t)c[2] << 16 | (uint32_t)c[3] << 24;
}

/* A UDP checksum would be wrong after any change; RoCEv2 allows none. */
void packet_udp_unchecked(uint8_t *frame, const struct packet *p)
{
	put16(frame + p->udp + 6, 0);
}

void packet_icrc_mend(uint8_t *frame, const struct packet *p)
{
	packet_udp_unchecked(frame, p);
	uint32_t crc = packet_icrc_compute(frame, p);
	uint8_t *c = frame + p->icrc;

	for (int i = 0; i < PACKET_ICRC_BYTES; i++)
		c[i] = (uint8_t)(crc >> 8 * i);
}

size_t packet_cut(uint8_t *frame, size_t len, const struct packet *p, size_t bytes)
{
	size_t cuttable = (size_t)p->icrc - p->payload;

	if (!p->payload)
		return len;
	if (bytes > cuttable)
		bytes = cuttable;
	memmove(frame + p->icrc - bytes, frame + p->icrc, len - p->icrc);
	size_t udp_bytes = get16(frame + p->udp + 4) - bytes;

	packet_udp_unchecked(frame, p);
	put16(frame + p->udp + 4, (uint16_t)udp_bytes);
	if (p->v6) {
		put16(frame + p->l3 + 4, (uint16_t)udp_bytes);
	} else {
		put16(frame + p->l3 + 2, (uint16_t)(get16(frame + p->l3 + 2) - bytes));
		ipv4_checksum_mend(frame + p->l3);
	}
	return len - bytes;
}
