/* SPDX-License-Identifier: MIT */
/* READs of a traffic: which of the peer's slots each brings, and that it is there. */
#include <stdlib.h>

#include "object.h"
#include "traffic.h"

/* The next slot in each round, so that what one brings differs everywhere from what the one before left in its landing slot. */
static uint64_t readable_of(const struct traffic *t, uint64_t i)
{
	return (i + i / t->nslots) % t->nslots;
}

uint64_t traffic_read_begins(struct traffic *t, uint64_t i)
{
	uint64_t readable = readable_of(t, i);
	uint32_t *landed = &t->landed[i % t->nslots];

	if (*landed == readable + 1)
		pattern_fill(traffic_pattern(t, 0, 0), traffic_at(t, TRAFFIC_READ_LANDING, i), t->size);
	*landed = (uint32_t)readable + 1;
	return traffic_slot(t, TRAFFIC_READABLE_HERE, readable);
}

bool traffic_read_is_there(const struct traffic *t, uint64_t i)
{
	struct pattern want = traffic_pattern(t, t->peer_tag, TRAFFIC_READABLE + readable_of(t, i));

	return pattern_check(want, traffic_at(t, TRAFFIC_READ_LANDING, i), t->size) == PATTERN_INTACT;
}
