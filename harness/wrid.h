/* SPDX-License-Identifier: MIT */
/* wr_id = life modulo 4096 (12 bits) | queue (16) | kind (4) | sequence (32). */
#ifndef QD_WRID_H
#define QD_WRID_H

#include <stdint.h>

enum wrid_kind {
	WRID_INVALID,
	WRID_SEND,    /* a `post` */
	WRID_RECV,    /* a receive */
	WRID_TRAFFIC, /* a traffic's send side */
	WRID_MARKER,  /* a drain marker */
	NUM_WRID_KINDS,
};

struct wrid {
	unsigned life;  /* modulo 4096 */
	unsigned queue; /* 16 bits */
	enum wrid_kind kind;
	uint32_t seq; /* counts per queue and life, from 0, over all kinds: posting order */
};

static inline uint64_t wrid_encode(struct wrid w)
{
	return (uint64_t)(w.life & 0xfff) << 52 | (uint64_t)(w.queue & 0xffff) << 36 | (uint64_t)((unsigned)w.kind & 0xf) << 32 |
	       w.seq;
}

static inline struct wrid wrid_decode(uint64_t id)
{
	return (struct wrid){
		.life = (unsigned)(id >> 52) & 0xfff,
		.queue = (unsigned)(id >> 36) & 0xffff,
		.kind = (enum wrid_kind)((id >> 32) & 0xf),
		.seq = (uint32_t)id,
	};
}

#endif
