/* SPDX-License-Identifier: MIT */
#include "bench.h"

#include <string.h>

#include "json.h"
#include "test.h"

/* 'a' for "a". */
static json_t *parse(const char *text)
{
	char buf[1024];

	snprintf(buf, sizeof buf, "%s", text);
	for (char *c = buf; *c; c++)
		if (*c == '\'')
			*c = '"';
	return json_loads(buf, 0, NULL);
}

static void test_knee(void)
{
	static const struct {
		const char *curve;
		int64_t want;
	} rows[] = {
		{ "[]", 0 },
		{ "[{'pairs':1,'rate':0},{'pairs':10,'rate':0}]", 0 },
		{ "[{'pairs':1,'rate':7}]", 1 },
		{ "[{'pairs':1,'rate':100},{'pairs':10,'rate':899},{'pairs':100,'rate':1000}]", 100 },
		{ "[{'pairs':1,'rate':100},{'pairs':10,'rate':900},{'pairs':100,'rate':1000}]", 10 },
		/* It falls again: the knee is before that. */
		{ "[{'pairs':1,'rate':100},{'pairs':10,'rate':1000},{'pairs':100,'rate':300}]", 10 },
		{ "[{'pairs':1,'rate':1000},{'pairs':10,'rate':950},{'pairs':100,'rate':1010}]", 1 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *curve = parse(rows[i].curve);

		ROW_ASSERT(curve && bench_knee(curve, "pairs") == rows[i].want, "row %zu", i);
		json_decref(curve);
	}
}

static void test_curves(void)
{
	/* Two rounds, out of order; one pair at depth 1 is a point of both. */
	json_t *load = parse("[{'pairs':10,'depth':1,'rate':500,'p50_us':20,'p99_us':90},"
			     "{'pairs':1,'depth':4,'rate':300,'p50_us':13,'p99_us':40},"
			     "{'pairs':1,'depth':1,'rate':100,'p50_us':10,'p99_us':30},"
			     "{'pairs':1,'depth':1,'rate':200,'p50_us':12,'p99_us':50},"
			     "{'pairs':10,'depth':1,'rate':700,'p50_us':30,'p99_us':70}]");
	json_t *curves = bench_curves(load), *pairs = json_object_get(curves, "pairs"), *depth = json_object_get(curves, "depth");
	const json_t *points = json_object_get(pairs, "points");
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	CU_ASSERT_EQUAL(json_array_size(points), 2);
	CU_ASSERT_EQUAL(json_int(json_array_get(points, 0), "pairs", 0), 1);
	CU_ASSERT_EQUAL(json_number_value(json_object_get(json_array_get(points, 0), "rate")), 150);
	CU_ASSERT_EQUAL(json_int(json_array_get(points, 0), "n", 0), 2);
	CU_ASSERT_EQUAL(json_number_value(json_object_get(json_array_get(points, 1), "rate")), 600);
	CU_ASSERT_EQUAL(json_number_value(json_object_get(json_array_get(points, 1), "p50_us")), 25);
	CU_ASSERT_EQUAL(json_int(pairs, "knee", 0), 10);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(depth, "points")), 2);
	CU_ASSERT_EQUAL(json_int(depth, "knee", 0), 4);
	bench_curves_print(curves, out);
	bench_curves_print(NULL, out);
	fclose(out);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "<- knee"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "90 %"));
	free(text);
	json_decref(load);
	json_decref(curves);
}

static void test_figures(void)
{
	json_t *measured = parse("{'cost':[{'round':0,'pairs':100,'rts_us':10,'verified_us':20},"
				 "{'round':0,'pairs':100,'rts_us':12,'verified_us':24},"
				 "{'round':0,'pairs':1000,'rts_us':11,'verified_us':33},"
				 "{'round':1,'pairs':100,'rts_us':100,'verified_us':200},"
				 "{'round':1,'pairs':1000,'rts_us':110,'verified_us':200}],"
				 "'bare':[{'round':0,'pairs':1000,'us':5.5},{'round':1,'pairs':1000,'us':55}]}");
	json_t *figures = json_object();
	const json_t *f;

	bench_scale_figures(measured, 2, figures);
	/* What is compared was measured in the same round, however busy the machine was in another. */
	f = json_object_get(figures, "pair_scale_ratio");
	CU_ASSERT_EQUAL(json_number_value(json_object_get(f, "min")), 1);
	CU_ASSERT_EQUAL(json_number_value(json_object_get(f, "max")), 1.5);
	CU_ASSERT_EQUAL(json_number_value(json_object_get(f, "at_most")), BENCH_SCALE_BAR);
	f = json_object_get(figures, "pair_bare_ratio");
	CU_ASSERT_EQUAL(json_number_value(json_object_get(f, "median")), 2);
	CU_ASSERT_EQUAL(json_int(f, "n", 0), 2);
	CU_ASSERT_PTR_NULL(json_object_get(figures, "pair_verified_10"));
	json_decref(measured);
	json_decref(figures);
}

static const struct test_case cases[] = {
	{ "the knee of a curve", test_knee },
	{ "curves are medians", test_curves },
	{ "figures of a pair, round by round", test_figures },
};

TEST_MAIN("bench of many pairs", cases)
