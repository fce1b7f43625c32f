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
		{ "x", 1, 0, 0.9, -EINVAL },
		{ "x", 1, 0, 0, -EINVAL },
		{ "x", 0, 1, 0, -EINVAL },
		/* Milliseconds are another machine's: only ratios are compared. */
		{ "ms", 3, 30, 0, -EINVAL },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *old = figures(rows[i].unit, rows[i].old, 0, rows[i].at_least);
		json_t *new = figures(rows[i].unit, rows[i].new, 0, rows[i].at_least);
		char *text = NULL;
		size_t len = 0;
		FILE *out = open_memstream(&text, &len);
		struct error e = { "" };

		ROW_ASSERT(bench_compare(old, new, out, &e) == rows[i].want, "row %zu", i);
		fclose(out);
		ROW_ASSERT((strstr(text, "MORE THAN A THIRD") != NULL) == (rows[i].want > 0), "row %zu: %s", i, text);
		free(text);
		json_decref(old);
		json_decref(new);
	}
}

/* What two files say besides medians; OLD has the ratio a = 2. */
static void test_compare_files(void)
{
	static const struct {
		const char *new;
		int want;
		const char *told;
	} rows[] = {
		{ "{'figures':{'a':{'unit':'x','median':2}}}", 0, "better by 0 %" },
		{ "{'figures':{'a':{'unit':'x','median':'x'}}}", -EINVAL, "a in the newer file" },
		{ "{'figures':{'a':{'unit':'x'}}}", -EINVAL, "a in the newer file" },
		{ "{'figures':{'b':{'unit':'x','median':1}}}", -EINVAL, "no ratio in common" },
		{ "{'figures':{'a':{'unit':'x','median':2},'b':{'unit':'x','median':1}}}", 0, "is no ratio of the older" },
		{ "{'kernel':'6.12','figures':{'a':{'unit':'x','median':2}}}", 0, "different: kernel \"6.1\" -> \"6.12\"" },
		{ "{'schema':2,'figures':{'a':{'unit':'x','median':2}}}", -EINVAL, "two schemas" },
	};
	json_t *old = json_pack("{s:s,s:{s:{s:s,s:i}}}", "kernel", "6.1", "figures", "a", "unit", "x", "median", 2), *new;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char text[200], *told = NULL;
		size_t len = 0;
		FILE *out = open_memstream(&told, &len);
		struct error e = { "" };

		snprintf(text, sizeof text, "%s", rows[i].new);
		for (char *c = text; *c; c++)
			*c = *c == '\'' ? '"' : *c;
		new = json_loads(text, 0, NULL);
		ROW_ASSERT(bench_compare(old, new, out, &e) == rows[i].want, "row %zu", i);
		fclose(out);
		ROW_ASSERT(strstr(told, rows[i].told) || strstr(e.text, rows[i].told), "row %zu: %s %s", i, told, e.text);
		free(told);
		json_decref(new);
	}
	/* The other way round: what the older one has is missing. */
	json_object_set_new(json_object_get(old, "figures"), "b", json_pack("{s:s,s:i}", "unit", "x", "median", 1));
	new = json_pack("{s:{s:{s:s,s:i}}}", "figures", "a", "unit", "x", "median", 2);
	CU_ASSERT_EQUAL(bench_compare(old, new, stdout, &(struct error){ "" }), 1);
	json_decref(new);
	json_decref(old);
}

static const struct test_case cases[] = {
	{ "a figure is a median with its spread", test_figure },
	{ "bars", test_bars },
	{ "what is worse by more than a third", test_compare },
	{ "what cannot be compared, and what is different", test_compare_files },
};

TEST_MAIN("bench", cases)
