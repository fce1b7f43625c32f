/* SPDX-License-Identifier: MIT */
#include "pattern.h"

#include <stdbool.h>
#include <string.h>

#define WORD 8u
#define GOLDEN 0x9e3779b97f4a7c15ULL

/* The finaliser of the public-domain splitmix64 generator. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* One byte throughout, so that the background looks the same from any offset; never 0, so that fresh pages are no background. */
static uint8_t background(uint64_t seed)
{
	return (uint8_t)(mix(seed + GOLDEN) % 255 + 1);
}

static uint64_t message_key(struct pattern p)
{
	return mix(mix(p.seed + GOLDEN) ^ mix((uint64_t)p.tag << 32 | 0x71u) ^ mix(p.index + 2 * GOLDEN));
}

void pattern_fill(struct pattern p, void *buf, size_t size)
{
	uint8_t *at = buf;
	uint64_t key;

	if (p.tag == 0) {
		if (size)
			memset(buf, background(p.seed), size);
		return;
	}
	key = message_key(p);
	while (size >= WORD) {
		uint64_t w = mix(key);

		memcpy(at, &w, WORD);
		key += GOLDEN;
		at += WORD;
		size -= WORD;
	}
	if (size) {
		uint64_t w = mix(key);

		memcpy(at, &w, size);
	}
}

static bool all_background(uint64_t seed, const uint8_t *at, size_t size)
{
	uint8_t want = background(seed);

	for (size_t i = 0; i < size; i++) {
		if (at[i] != want)
			return false;
	}
	return true;
}

enum pattern_seen pattern_check(struct pattern p, const void *buf, size_t size)
{
	const uint8_t *at = buf;
	size_t whole = size / WORD, tail = size % WORD, matching = 0;
	uint64_t key = message_key(p), w;
	bool tail_ok = true;

	if (p.tag == 0)
		return all_background(p.seed, at, size) ? PATTERN_ABSENT : PATTERN_STALE;
	for (size_t i = 0; i < whole; i++, key += GOLDEN) {
		w = mix(key);
		matching += memcmp(at + i * WORD, &w, WORD) == 0;
	}
	if (tail) {
		w = mix(key);
		tail_ok = memcmp(at + whole * WORD, &w, tail) == 0;
	}
	if (matching == whole && tail_ok)
		return PATTERN_INTACT;
	if (all_background(p.seed, at, size))
		return PATTERN_ABSENT;
	/* A short tail may agree by chance, so only whole words show that part of the message is there. */
	return matching ? PATTERN_PARTIAL : PATTERN_STALE;
}
