/* SPDX-License-Identifier: MIT */
/* SENDs over what may lose, double and reorder them: which message one is says its content, and only a content that is none's is
 * bad. */
#include <stdlib.h>
#include <string.h>

#include "../harness/pattern.h"
#include "object.h"
#include "traffic.h"

#define BEHIND 1024u /* messages that one may be overtaken by */
#define AHEAD 4096u  /* that may be lost in a row */
#define GLANCE_BYTES 8u

static bool is_message(const struct traffic *t, uint64_t index, const void *at)
{
	uint32_t glance = t->size < GLANCE_BYTES ? t->size : GLANCE_BYTES;

	return pattern_check(traffic_pattern(t, t->peer_tag, index), at, glance) == PATTERN_INTACT &&
	       pattern_check(traffic_pattern(t, t->peer_tag, index), at, t->size) == PATTERN_INTACT;
}

/* The next one first, then what comes after losses, then what was overtaken. */
static bool find_message(const struct traffic *t, const void *at, uint64_t *ret)
{
	for (uint64_t i = t->newest; i < t->newest + AHEAD && (!t->messages || i < t->messages); i++)
		if (is_message(t, i, at)) {
			*ret = i;
			return true;
		}
	for (uint64_t i = t->newest; i-- > 0 && t->newest - i <= BEHIND;)
		if (is_message(t, i, at)) {
			*ret = i;
			return true;
		}
	return false;
}

/* True when it had come before. */
static bool mark(struct traffic *t, uint64_t index)
{
	uint64_t want = index / 8 + 1, room = t->came_bytes ? t->came_bytes : 64;
	uint8_t bit = (uint8_t)(1u << index % 8);
	bool was;

	while (room < want)
		room *= 2;
	if (room > t->came_bytes) {
		t->came = realloc(t->came, room);
		if (!t->came)
			abort(); /* no memory */
		memset(t->came + t->came_bytes, 0, room - t->came_bytes);
		t->came_bytes = room;
	}
	was = t->came[index / 8] & bit;
	t->came[index / 8] |= bit;
	return was;
}

bool traffic_lossy_took(struct traffic *t, const void *at, uint32_t bytes)
{
	uint64_t index = 0;

	if (bytes != t->size || !find_message(t, at, &index))
		return false;
	if (mark(t, index)) {
		t->doubled++;
		return true;
	}
	t->received++;
	if (index < t->newest)
		t->reordered++;
	else
		t->newest = index + 1;
	return true;
}
