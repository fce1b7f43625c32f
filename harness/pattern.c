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

/* Words are a Weyl sequence from the message's key: at one place two messages agree only when their keys do, and a word that was
 * moved agrees nowhere. One addition a word, several words at once: it costs about what copying does. */
#define LANES 2u
#define ROUND (2 * LANES * WORD)
typedef uint64_t words __attribute__((vector_size(LANES * WORD)));

static words words_from(uint64_t key, uint64_t step)
{
	return (words){ key, key + step };
}

static words words_on(words w, uint64_t step)
{
	return w + (words){ step, step };
}

/* step 0 is the background: not memset(), which an emulated processor may do byte by byte. */
static void fill(uint8_t *at, size_t size, uint64_t key, uint64_t step)
{
	for (words w = words_from(key, step); size >= ROUND; size -= ROUND, at += ROUND, key += 2 * LANES * step) {
		words more = words_on(w, LANES * step);

		memcpy(at, &w, sizeof w);
		memcpy(at + sizeof w, &more, sizeof more);
		w = words_on(w, 2 * LANES * step);
	}
	for (; size >= WORD; size -= WORD, at += WORD, key += step)
		memcpy(at, &key, WORD);
	if (size)
		memcpy(at, &key, size);
}

void pattern_fill(struct pattern p, void *buf, size_t size)
{
	if (p.tag == 0)
		fill(buf, size, background(p.seed) * 0x0101010101010101ULL, 0);
	else
		fill(buf, size, message_key(p), GOLDEN);
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

static uint64_t load(const uint8_t *at)
{
	uint64_t w;

	memcpy(&w, at, WORD);
	return w;
}

static bool intact(uint64_t key, const uint8_t *at, size_t size)
{
	words w = words_from(key, GOLDEN), differs = { 0 };
	uint64_t rest;

	for (; size >= ROUND; size -= ROUND, at += ROUND, key += 2 * LANES * GOLDEN) {
		words one, other;

		memcpy(&one, at, sizeof one);
		memcpy(&other, at + sizeof one, sizeof other);
		differs |= (one ^ w) | (other ^ words_on(w, LANES * GOLDEN));
		w = words_on(w, 2 * LANES * GOLDEN);
	}
	rest = differs[0] | differs[1];
	for (; size >= WORD; size -= WORD, at += WORD, key += GOLDEN)
		rest |= load(at) ^ key;
	return !rest && (size == 0 || memcmp(at, &key, size) == 0);
}

enum pattern_seen pattern_check(struct pattern p, const void *buf, size_t size)
{
	const uint8_t *at = buf;
	uint64_t key = message_key(p);
	bool some = false;

	if (p.tag == 0)
		return all_background(p.seed, at, size) ? PATTERN_ABSENT : PATTERN_STALE;
	if (intact(key, at, size))
		return PATTERN_INTACT;
	if (all_background(p.seed, at, size))
		return PATTERN_ABSENT;
	/* A short tail may agree by chance, so only whole words show that part of the message is there. */
	for (size_t i = 0; i < size / WORD && !some; i++)
		some = load(at + i * WORD) == key + i * GOLDEN;
	return some ? PATTERN_PARTIAL : PATTERN_STALE;
}
