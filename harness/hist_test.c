/* SPDX-License-Identifier: MIT */
#include "hist.h"

#include <CUnit/Basic.h>

#include "test.h"

static void quantiles(void)
{
	struct hist h = { 0 };

	CU_ASSERT_EQUAL(hist_quantile(&h, 500), 0);
	for (uint64_t v = 1; v <= 100000; v++)
		hist_add(&h, v);
	CU_ASSERT_EQUAL(h.max, 100000);
	for (unsigned permille = 10; permille <= 1000; permille += 10) {
		uint64_t exact = 100 * permille, got = hist_quantile(&h, permille);

		CU_ASSERT(got >= exact && got <= exact + exact / 15 + 1);
	}
	hist_add(&h, UINT64_MAX);
	CU_ASSERT_EQUAL(hist_quantile(&h, 1000), UINT64_MAX);
}

static void what_came_since(void)
{
	struct hist h = { 0 }, before, sum = { 0 };

	for (uint64_t v = 1; v <= 50; v++)
		hist_add(&h, 1000000);
	before = h;
	for (uint64_t v = 1; v <= 100; v++)
		hist_add(&h, 10);
	hist_add_since(&sum, &h, &before);
	CU_ASSERT_EQUAL(sum.count, 100);
	CU_ASSERT_EQUAL(hist_quantile(&sum, 990), 10);
	CU_ASSERT_EQUAL(sum.max, 1000000);
	hist_add_since(&sum, &h, &h);
	CU_ASSERT_EQUAL(sum.count, 100);
	hist_add_since(&sum, &h, &(const struct hist){ 0 });
	CU_ASSERT_EQUAL(sum.count, 250);
	CU_ASSERT_EQUAL(hist_quantile(&sum, 1000), 1000000);
}

static const struct test_case cases[] = {
	{ "quantiles", quantiles },
	{ "what came since a copy was made", what_came_since },
};

int main(void)
{
	return test_run("hist", cases, sizeof(cases) / sizeof(cases[0]));
}
