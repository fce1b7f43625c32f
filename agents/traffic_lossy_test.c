/* SPDX-License-Identifier: MIT */
#include "../harness/pattern.h"
#include "../harness/test.h"
#include "object.h"
#include "traffic.h"

#define SIZE 200u

static bool take(struct traffic *t, uint64_t index, uint32_t bytes, int damaged)
{
	unsigned char message[SIZE];

	pattern_fill(traffic_pattern(t, t->peer_tag, index), message, SIZE);
	if (damaged >= 0)
		message[damaged] ^= 1;
	return traffic_lossy_took(t, message, bytes);
}

static void test_counts(void)
{
	struct agent a = { .seed = 0x1234 };
	struct traffic t = { .agent = &a, .tag = 7, .peer_tag = 7, .size = SIZE, .messages = 9000, .lossy = true };
	static const struct {
		uint64_t index;
		int damaged;
		bool taken;
		uint64_t received, doubled, reordered;
	} rows[] = {
		{ 0, -1, true, 1, 0, 0 },           { 2, -1, true, 2, 0, 0 }, /* 1 is late */
		{ 1, -1, true, 3, 0, 1 },           { 2, -1, true, 3, 1, 1 },     { 1, -1, true, 3, 2, 1 },
		{ 4000, -1, true, 4, 2, 1 },        { 3, -1, false, 4, 2, 1 },    /* later than anything is looked for */
		{ 3999, -1, true, 5, 2, 2 },        { 4001, 0, false, 5, 2, 2 },  /* damaged, where it is looked at first, */
		{ 4001, SIZE - 1, false, 5, 2, 2 }, { 9000, -1, false, 5, 2, 2 }, /* at its end; and one that was never sent */
		{ 4001, -1, true, 6, 2, 2 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool taken = take(&t, rows[i].index, SIZE, rows[i].damaged);

		ROW_ASSERT(taken == rows[i].taken && t.received == rows[i].received && t.doubled == rows[i].doubled &&
				   t.reordered == rows[i].reordered,
			   "row %zu: message %llu: %d, received %llu doubled %llu reordered %llu", i,
			   (unsigned long long)rows[i].index, taken, (unsigned long long)t.received, (unsigned long long)t.doubled,
			   (unsigned long long)t.reordered);
	}
	CU_ASSERT_FALSE(take(&t, 4002, SIZE - 8, -1)); /* cut short */
	free(t.came);
}

static const struct test_case cases[] = {
	{ "messages are told apart by what they contain", test_counts },
};

TEST_MAIN("traffic_lossy", cases)
