/* SPDX-License-Identifier: MIT */
/*
 * What is in a message: bytes that follow from (seed, tag, index) alone, so that either end can tell
 * whether a place holds this message, an older one, its background, or a mixture.
 */
#ifndef QD_PATTERN_H
#define QD_PATTERN_H

#include <stddef.h>
#include <stdint.h>

struct pattern {
	uint64_t seed;
	uint32_t tag;   /* 0 is the background that is there before anything arrives */
	uint64_t index; /* message number; ignored for tag 0 */
};

enum pattern_seen {
	PATTERN_INVALID,
	PATTERN_INTACT,  /* every byte */
	PATTERN_ABSENT,  /* the background, every byte */
	PATTERN_PARTIAL, /* some 8-byte words are the message's, some are not */
	PATTERN_STALE,   /* none is the message's and it is no background */
	NUM_PATTERN_SEEN,
};

/* A message of one byte has a pattern of one byte: two messages may then look alike. */
void pattern_fill(struct pattern p, void *buf, size_t size);
enum pattern_seen pattern_check(struct pattern p, const void *buf, size_t size);

#endif
