/* SPDX-License-Identifier: MIT */
#include "pattern.h"

#include <stdbool.h>
#include <string.h>

#include "test.h"

#define SEED 0x1234567890abcdefULL

static unsigned char buf[4096 + 16], other[4096 + 16];

static const size_t sizes[] = { 1, 7, 8, 9, 63, 64, 65, 1024, 4096 };
#define N_SIZES (sizeof(sizes) / sizeof(*sizes))

static void test_intact_at_any_offset(void)
{
	struct pattern p = { .seed = SEED, .tag = 3, .index = 17 };

	for (size_t i = 0; i < N_SIZES; i++) {
		for (size_t off = 0; off < 9; off++) {
			memset(buf, 0xaa, sizeof(buf));
			pattern_fill(p, buf + off, sizes[i]);
			CU_ASSERT_EQUAL(pattern_check(p, buf + off, sizes[i]), PATTERN_INTACT);
			CU_ASSERT_EQUAL(buf[off + sizes[i]], 0xaa);
			if (off)
				CU_ASSERT_EQUAL(buf[off - 1], 0xaa);
		}
	}
}

static void test_absent_from_any_offset(void)
{
	struct pattern bg = { .seed = SEED, .tag = 0, .index = 5 }, p = { .seed = SEED, .tag = 1 };

	pattern_fill(bg, buf, sizeof(buf));
	for (size_t i = 0; i < N_SIZES; i++) {
		if (sizes[i] < 8)
			continue;
		for (size_t off = 0; off < 9; off++) {
			CU_ASSERT_EQUAL(pattern_check(p, buf + off, sizes[i]), PATTERN_ABSENT);
			CU_ASSERT_EQUAL(pattern_check(bg, buf + off, sizes[i]), PATTERN_ABSENT);
		}
	}
	memset(buf, 0, 64);
	CU_ASSERT_EQUAL(pattern_check(p, buf, 64), PATTERN_STALE);
	CU_ASSERT_EQUAL(pattern_check(bg, buf, 64), PATTERN_STALE);
}

/* Every other (seed, tag, index) is another message, of which nothing may be taken for this one. */
static void test_others_are_stale(void)
{
	static const struct pattern p = { .seed = SEED, .tag = 2, .index = 9 };
	static const struct pattern others[] = {
		{ .seed = SEED, .tag = 2, .index = 8 },
		{ .seed = SEED, .tag = 2, .index = 10 },
		{ .seed = SEED, .tag = 1, .index = 9 },
		{ .seed = SEED, .tag = 3, .index = 9 },
		{ .seed = SEED + 1, .tag = 2, .index = 9 },
		{ .seed = SEED, .tag = 9, .index = 2 },
		{ .seed = SEED, .tag = 2, .index = 9 | 1ULL << 32 },
	};

	for (size_t o = 0; o < sizeof(others) / sizeof(*others); o++) {
		for (size_t i = 0; i < N_SIZES; i++) {
			if (sizes[i] < 8)
				continue;
			pattern_fill(others[o], buf, sizes[i]);
			CU_ASSERT_EQUAL(pattern_check(p, buf, sizes[i]), PATTERN_STALE);
		}
	}
}

static void test_partial(void)
{
	static const struct {
		size_t size, cut;
	} rows[] = { { 16, 8 }, { 4096, 8 }, { 4096, 4088 }, { 4096, 1024 }, { 65, 64 }, { 15, 8 } };
	struct pattern p = { .seed = SEED, .tag = 4, .index = 1 }, old = { .seed = SEED, .tag = 3, .index = 1 };
	struct pattern bg = { .seed = SEED };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		pattern_fill(p, other, rows[i].size);
		pattern_fill(bg, buf, rows[i].size);
		memcpy(buf, other, rows[i].cut);
		CU_ASSERT_EQUAL(pattern_check(p, buf, rows[i].size), PATTERN_PARTIAL);
		pattern_fill(old, buf, rows[i].size);
		memcpy(buf, other, rows[i].cut);
		CU_ASSERT_EQUAL(pattern_check(p, buf, rows[i].size), PATTERN_PARTIAL);
	}
}

static void test_one_flipped_bit(void)
{
	struct pattern p = { .seed = SEED, .tag = 4, .index = 1 };

	/* Rounds of words, single words and a tail. */
	for (size_t bit = 0; bit < 157 * 8; bit++) {
		pattern_fill(p, buf, 157);
		buf[bit / 8] ^= (unsigned char)(1u << bit % 8);
		CU_ASSERT_EQUAL(pattern_check(p, buf, 157), PATTERN_PARTIAL);
	}
}

static void test_nothing(void)
{
	struct pattern p = { .seed = SEED, .tag = 4, .index = 1 };

	CU_ASSERT_EQUAL(pattern_check(p, buf, 0), PATTERN_INTACT);
	buf[0] = 0x55;
	pattern_fill(p, buf, 0);
	CU_ASSERT_EQUAL(buf[0], 0x55);
}

static const struct test_case cases[] = {
	{ "intact at any offset", test_intact_at_any_offset }, { "absent from any offset", test_absent_from_any_offset },
	{ "other messages are stale", test_others_are_stale }, { "partial", test_partial },
	{ "one flipped bit", test_one_flipped_bit },           { "nothing", test_nothing },
};

TEST_MAIN("pattern", cases)
