/* SPDX-License-Identifier: MIT */
#include "packet.h"

#include <errno.h>
#include <string.h>

#include "packet_bytes.h"

#define DEFAULT_SRC_PORT 0xc000
#define DEFAULT_PKEY 0xffff

static bool is_mapped(const uint8_t a[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(a, mapped, sizeof mapped);
}

static uint8_t *put_ethernet(const struct packet_spec *s, bool v6, uint8_t *at)
{
	memcpy(at, s->dmac, 6);
	memcpy(at + 6, s->smac, 6);
	at += 12;
	for (unsigned i = 0; i < s->n_tags && i < PACKET_MAX_TAGS; i++, at += 4) {
		put16(at, i + 1 < s->n_tags ? 0x88a8 : 0x8100);
		put16(at + 2, s->tags[i]);
	}
	put16(at, v6 ? 0x86dd : 0x0800);
	return at + 2;
}

static uint8_t *put_ip(const struct packet_spec *s, bool v6, size_t udp_bytes, uint8_t *ip)
{
	uint8_t ttl = s->ttl ? s->ttl : PACKET_HOP_LIMIT;

	if (v6) {
		put_be(ip, 4, 6u << 28 | (uint32_t)s->tos << 20);
		put16(ip + 4, (uint16_t)udp_bytes);
		ip[6] = 17;
		ip[7] = ttl;
		memcpy(ip + 8, s->src, 16);
		memcpy(ip + 24, s->dst, 16);
		return ip + 40;
	}
	memset(ip, 0, 20);
	ip[0] = 0x45;
	ip[1] = s->tos;
	put16(ip + 2, (uint16_t)(udp_bytes + 20));
	put16(ip + 6, 0x4000);
	ip[8] = ttl;
	ip[9] = 17;
	memcpy(ip + 12, s->src + 12, 4);
	memcpy(ip + 16, s->dst + 12, 4);
	ipv4_checksum_mend(ip);
	return ip + 20;
}

static void put_ext(const struct packet_spec *s, int header, uint8_t *at)
{
	switch (header) {
	case PACKET_XRCETH:
		put_be(at, 4, s->xrc_srq & 0xffffff);
		break;
	case PACKET_DETH:
		put_be(at, 4, s->qkey);
		put_be(at + 4, 4, s->src_qp & 0xffffff);
		break;
	case PACKET_RETH:
		put_be(at, 8, s->va);
		put_be(at + 8, 4, s->rkey);
		put_be(at + 12, 4, s->length);
		break;
	case PACKET_ATOMIC:
		put_be(at, 8, s->va);
		put_be(at + 8, 4, s->rkey);
		put_be(at + 12, 8, s->swap);
		put_be(at + 20, 8, s->compare);
		break;
	case PACKET_AETH:
		put_be(at, 4, (uint32_t)s->syndrome << 24 | (s->msn & 0xffffff));
		break;
	case PACKET_ATOMIC_ACK:
		put_be(at, 8, s->original);
		break;
	case PACKET_IMM:
		put_be(at, 4, s->imm);
		break;
	case PACKET_IETH:
		put_be(at, 4, s->inv_rkey);
		break;
	default:
		memset(at, 0, packet_header_bytes[header]);
	}
}

static uint8_t *put_bth(const struct packet_spec *s, const struct packet_opcode *op, size_t pad, uint8_t *at)
{
	bool cnp = op->class == PACKET_CLASS_CNP;

	at[0] = s->opcode;
	at[1] = (uint8_t)(s->solicited << 7 | s->migreq << 6 | pad << 4);
	put16(at + 2, s->pkey ? s->pkey : DEFAULT_PKEY);
	at[4] = cnp ? 0x40 : 0;
	put_be(at + 5, 3, s->dest_qp & 0xffffff);
	at[8] = (uint8_t)(s->ack_req << 7);
	put_be(at + 9, 3, s->psn & PACKET_PSN_MASK);
	at += packet_header_bytes[PACKET_BTH];
	for (int h = PACKET_BTH + 1; h < NUM_PACKET_HEADERS; h++) {
		if (!(op->headers & 1u << h))
			continue;
		put_ext(s, h, at);
		at += packet_header_bytes[h];
	}
	return at;
}

int packet_build(const struct packet_spec *s, uint8_t *buf, size_t size)
{
	const struct packet_opcode *op = packet_opcode_find(s->opcode);
	bool v6 = !is_mapped(s->src);
	size_t pad = -s->payload_bytes & 3, ib = packet_header_bytes[PACKET_BTH];
	struct packet p;

	if (!op || v6 == is_mapped(s->dst) || (s->payload_bytes && !op->payload))
		return -EINVAL;
	for (int h = PACKET_BTH + 1; h < NUM_PACKET_HEADERS; h++)
		ib += op->headers & 1u << h ? packet_header_bytes[h] : 0u;
	size_t udp_bytes = 8 + ib + s->payload_bytes + pad + PACKET_ICRC_BYTES;

	if (udp_bytes > UINT16_MAX - PACKET_MAX_HEADERS_BYTES || size < 14 + 4 * PACKET_MAX_TAGS + 40 + udp_bytes)
		return -ENOSPC;
	uint8_t *at = put_ip(s, v6, udp_bytes, put_ethernet(s, v6, buf));

	put16(at, s->src_port ? s->src_port : DEFAULT_SRC_PORT);
	put16(at + 2, PACKET_PORT);
	put16(at + 4, (uint16_t)udp_bytes);
	put16(at + 6, 0);
	at = put_bth(s, op, pad, at + 8);
	if (s->payload)
		memcpy(at, s->payload, s->payload_bytes);
	else
		memset(at, 0, s->payload_bytes);
	at += s->payload_bytes;
	memset(at, 0, pad + PACKET_ICRC_BYTES);
	at += pad + PACKET_ICRC_BYTES;
	packet_decode(buf, (size_t)(at - buf), &p);
	packet_icrc_mend(buf, &p);
	return (int)(at - buf);
}

void packet_spec_answer(const uint8_t *frame, const struct packet *p, struct packet_spec *ret)
{
	memset(ret, 0, sizeof *ret);
	memcpy(ret->dmac, frame + 6, 6);
	memcpy(ret->smac, frame, 6);
	ret->n_tags = p->n_tags;
	memcpy(ret->tags, p->tags, sizeof ret->tags);
	packet_addresses(frame, p, ret->dst, ret->src);
	ret->ttl = PACKET_HOP_LIMIT;
	ret->pkey = p->pkey;
}
