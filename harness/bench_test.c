/* SPDX-License-Identifier: MIT */
#include "bench.h"

#include <errno.h>
#include <string.h>

#include "json.h"
#include "test.h"

static json_t *figures(const char *unit, double median, double at_most, double at_least)
{
	const struct bench_figure f = { "k", "a figure", unit, at_most, at_least };
	struct bench_samples s = { .n = 0 };
	json_t *all = json_pack("{s:{}}", "figures");

	bench_sample(&s, median * 2);
	bench_sample(&s, median);
	bench_sample(&s, median / 2);
	bench_add(json_object_get(all, "figures"), &f, &s);
	return all;
}

static void test_figure(void)
{
	json_t *all = figures("x", 4, 5, 0);
	const json_t *f = json_object_get(json_object_get(all, "figures"), "k");

	CU_ASSERT_EQUAL(json_number_value(json_object_get(f, "median")), 4);
	CU_ASSERT_EQUAL(json_number_value(json_object_get(f, "min")), 2);
	CU_ASSERT_EQUAL(json_number_value(json_object_get(f, "max")), 8);
	CU_ASSERT_EQUAL(json_int(f, "n", 0), 3);
	json_decref(all);
}

/* A bar is kept by the median; how far samples spread does not matter. */
static void test_bars(void)
{
	static const struct {
		double median, at_most, at_least;
		bool kept;
	} rows[] = {
		{ 4, 0, 0, true }, { 4, 4, 0, true }, { 4, 3.9, 0, false }, { 4, 0, 4, true }, { 4, 0, 4.1, false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *all = figures("x", rows[i].median, rows[i].at_most, rows[i].at_least);

		ROW_ASSERT(bench_table(json_object_get(all, "figures"), true) == rows[i].kept, "row %zu", i);
		json_decref(all);
	}
}

static void test_compare(void)
{
	static const struct {
		const char *unit;
		double old, new, at_least;
		int want;
	} rows[] = {
		{ "x", 3, 3, 0, 0 },
		{ "x", 3, 3.9, 0, 0 },
		{ "x", 3, 4.1, 0, 1 },
		{ "x", 3, 1, 0, 0 },
		{ "x", 1, 0.8, 0.9, 0 },
		{ "x", 1, 0.7, 0.9, 1 },
		{ "x", 1, 2, 0.9, 0 },
		{ "x", 1, 0, 0.9, 1 },
		/* Milliseconds are another machine's: only ratios are compared. */
		{ "ms", 3, 30, 0, -EINVAL },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *old = figures(rows[i].unit, rows[i].old, 0, rows[i].at_least);
		json_t *new = figures(rows[i].unit, rows[i].new, 0, rows[i].at_least);
		char *text = NULL;
		size_t len = 0;
		FILE *out = open_memstream(&text, &len);

		ROW_ASSERT(bench_compare(old, new, out) == rows[i].want, "row %zu", i);
		fclose(out);
		ROW_ASSERT((strstr(text, "MORE THAN A THIRD") != NULL) == (rows[i].want > 0), "row %zu: %s", i, text);
		free(text);
		json_decref(old);
		json_decref(new);
	}
}

static const struct test_case cases[] = {
	{ "a figure is a median with its spread", test_figure },
	{ "bars", test_bars },
	{ "what is worse by more than a third", test_compare },
};

TEST_MAIN("bench", cases)
