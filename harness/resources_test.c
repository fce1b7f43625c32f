/* SPDX-License-Identifier: MIT */
#include "resources.h"

#include "test.h"

static void looks_are_spread_evenly(void)
{
	static const int64_t rows[] = { 10, 11, 12, 20, 33, 34, 35, 50, 99, 100, 1000, 100000 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int64_t first = resources_warm_up(rows[i]), last = 0, looks = 0, longest = 0, shortest = rows[i];

		for (int64_t round = 1; round <= rows[i]; round++) {
			if (!resources_is_due(rows[i], round))
				continue;
			ROW_ASSERT(looks || round == first, "%lld rounds: the first look after %lld", (long long)rows[i],
				   (long long)round);
			longest = looks && round - last > longest ? round - last : longest;
			shortest = looks && round - last < shortest ? round - last : shortest;
			last = round;
			looks++;
		}
		ROW_ASSERT(last == rows[i] && longest - shortest <= 1, "%lld rounds: last %lld, %lld..%lld apart",
			   (long long)rows[i], (long long)last, (long long)shortest, (long long)longest);
		ROW_ASSERT(looks >= RESOURCES_ROUNDS_MIN - 1 && looks <= RESOURCES_LOOKS_MAX + 1, "%lld rounds: %lld looks",
			   (long long)rows[i], (long long)looks);
	}
}

static void growth_is_told_from_movement(void)
{
	static const struct {
		const char *name, *what;
		int64_t values[16];
		size_t n;
		bool grew;
	} rows[] = {
		{ "the same", "qp", { 3, 3, 3, 3 }, 4, false },
		{ "one more in the end", "qp", { 3, 3, 3, 4 }, 4, true },
		{ "more on the way", "qp", { 3, 9, 9, 3 }, 4, false },
		{ "fewer", "files", { 30, 29, 29, 29 }, 4, false },
		{ "one file each round", "files", { 29, 30, 31, 32 }, 4, true },
		{ "one look", "qp", { 3 }, 1, false },
		{ "steady", "heap_bytes", { 100000, 104000, 108000, 112000, 116000, 120000, 124000, 128000 }, 8, true },
		{ "steady, with noise", "heap_bytes", { 100000, 105000, 107000, 112000, 113000, 121000, 122000, 127000 }, 8, true },
		{ "below a step", "heap_bytes", { 100000, 100500, 101000, 101500, 102000, 102500, 103000, 103500 }, 8, false },
		{ "a burst", "heap_bytes", { 100000, 100000, 100000, 190000, 190000, 190000, 190000, 190000 }, 8, false },
		{ "two bursts", "heap_bytes", { 100000, 100000, 150000, 150000, 150000, 150000, 190000, 190000 }, 8, false },
		{ "warms up", "heap_bytes", { 100000, 110000, 118000, 124000, 124100, 124200, 124100, 124200 }, 8, false },
		{ "falls", "heap_bytes", { 190000, 180000, 170000, 160000, 150000, 140000, 130000, 120000 }, 8, false },
		{ "pages by the heap's measure", "anon_bytes", { 0, 4096, 8192, 12288, 16384, 20480, 24576, 28672 }, 8, false },
		{ "pages", "anon_bytes", { 0, 65536, 131072, 196608, 262144, 327680, 393216, 458752 }, 8, true },
		{ "too few looks", "heap_bytes", { 100000, 200000, 300000 }, 3, false },
	};
	static const int64_t rounds[16] = { 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct resources_trend t = resources_trend(rows[i].what, rounds, rows[i].values, rows[i].n);

		ROW_ASSERT(t.grew == rows[i].grew, "%s: %lld to %lld", rows[i].name, (long long)t.from, (long long)t.to);
	}
	CU_ASSERT_DOUBLE_EQUAL(resources_trend("qp", rounds, (int64_t[]){ 3, 4, 9 }, 3).per_round, 1.5, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(resources_trend("heap_bytes", rounds, (int64_t[]){ 0, 10, 20, 30, 40, 50, 60, 70 }, 8).per_round, 5,
			       1e-9);
}

static const struct test_case cases[] = {
	{ "looks are spread evenly", looks_are_spread_evenly },
	{ "growth is told from movement", growth_is_told_from_movement },
};

int main(void)
{
	return test_run("resources", cases, sizeof(cases) / sizeof(cases[0]));
}
