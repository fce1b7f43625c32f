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

static uint64_t load(const uint8_t *at)
{
	uint64_t w;

	memcpy(&w, at, WORD);
	return w;
}

/* Words are a Weyl sequence from the message's key: at one place two messages agree only when their keys do, and a word that was
 * moved agrees nowhere. One addition a word, and a round of words without a branch: it costs less than copying does.
 *
 * Each word goes through a general register, which is what the empty asm is for. An emulated processor keeps its vector registers
 * in memory and reads and writes them for every instruction: with vectors a check takes four times as long there. */
#define ROUND (8 * WORD)

static inline uint64_t word_on(uint64_t w, uint64_t step)
{
	w += step;
	__asm__("" : "+r"(w));
	return w;
}

static inline uint64_t put_two(uint8_t *at, uint64_t w, uint64_t step)
{
	memcpy(at, &w, WORD);
	w = word_on(w, step);
	memcpy(at + WORD, &w, WORD);
	return word_on(w, step);
}

/* step 0 is the background: not memset(), which an emulated processor may do byte by byte. */
static void fill(uint8_t *at, size_t size, uint64_t w, uint64_t step)
{
	for (; size >= ROUND; size -= ROUND, at += ROUND) {
		w = put_two(at, w, step);
		w = put_two(at + 2 * WORD, w, step);
		w = put_two(at + 4 * WORD, w, step);
		w = put_two(at + 6 * WORD, w, step);
	}
	for (; size >= WORD; size -= WORD, at += WORD, w = word_on(w, step))
		memcpy(at, &w, WORD);
	if (size)
		memcpy(at, &w, size);
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

static inline uint64_t look_at_two(const uint8_t *at, uint64_t w, uint64_t *differs)
{
	*differs |= load(at) ^ w;
	w = word_on(w, GOLDEN);
	*differs |= load(at + WORD) ^ w;
	return word_on(w, GOLDEN);
}

static bool intact(uint64_t w, const uint8_t *at, size_t size)
{
	uint64_t differs = 0;

	for (; size >= ROUND; size -= ROUND, at += ROUND) {
		w = look_at_two(at, w, &differs);
		w = look_at_two(at + 2 * WORD, w, &differs);
		w = look_at_two(at + 4 * WORD, w, &differs);
		w = look_at_two(at + 6 * WORD, w, &differs);
	}
	for (; size >= WORD; size -= WORD, at += WORD, w = word_on(w, GOLDEN))
		differs |= load(at) ^ w;
	return !differs && (size == 0 || memcmp(at, &w, size) == 0);
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
