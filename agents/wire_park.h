/* SPDX-License-Identifier: MIT */
/* Packets that do not stay in the stream: copies of frames, waiting for their time, for a rule, or for their turn. */
#ifndef QD_WIRE_PARK_H
#define QD_WIRE_PARK_H

#include <stdbool.h>
#include <stdint.h>

#include "../faults/action.h"
#include "wire_report.h"

/* A packet in the path. */
struct wire_item {
	struct action_packet a;
	struct wire_place place;
	uint64_t real_ns;
	uint64_t after; /* rules up to this order have had it */
	uint64_t n, of; /* number in the capture; that of the arrival it comes from */
	bool roce, invented, late, changed, icrc_bad;
	unsigned touched[WIRE_TOUCHED_MAX], n_touched;
};

struct wire_parked {
	struct wire_parked *prev, *next;
	uint64_t due_ns, seq;
	struct wire_item item; /* its frame is data */
	uint8_t data[];
};

/* NULL: no memory. */
struct wire_parked *wire_parked_new(const struct wire_item *item, const uint8_t *frame, size_t len);

/* Ordered by due_ns, equal ones as they came. */
struct wire_park {
	struct wire_parked **heap;
	size_t n, room;
	uint64_t seq;
};
int wire_park_add(struct wire_park *park, struct wire_parked *p);
/* The next one if it is due; the caller's. */
struct wire_parked *wire_park_take(struct wire_park *park, uint64_t now_ns);
uint64_t wire_park_next(const struct wire_park *park); /* UINT64_MAX: none */
void wire_park_release(struct wire_park *park);

#endif
