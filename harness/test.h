/* SPDX-License-Identifier: MIT */
/*
 * What the unit tests share: a suite is a const table of cases, a test program runs its suites and exits
 * non-zero when an assertion failed, when the registry could not be built, or when nothing ran.
 */
#ifndef QD_TEST_H
#define QD_TEST_H

#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test_case {
	const char *name;
	void (*run)(void);
};

/* Asserts and, when it fails, prints the row that was tried. */
#define ROW_ASSERT(cond, ...)                                                                                                      \
	do {                                                                                                                       \
		int row_ok_ = !!(cond);                                                                                            \
		CU_ASSERT(row_ok_);                                                                                                \
		if (!row_ok_) {                                                                                                    \
			fprintf(stderr, "    %s: ", #cond);                                                                        \
			fprintf(stderr, __VA_ARGS__);                                                                              \
			fputc('\n', stderr);                                                                                       \
		}                                                                                                                  \
	} while (0)

/* Ends the test when it does not hold. CUnit leaves by longjmp, which an analyzer does not see: abort() says it. */
#define MUST(cond)                                                                                                                 \
	do {                                                                                                                       \
		int must_ok_ = !!(cond);                                                                                           \
		CU_ASSERT_FATAL(must_ok_);                                                                                         \
		if (!must_ok_)                                                                                                     \
			abort();                                                                                                   \
	} while (0)

static inline int test_run(const char *suite_name, const struct test_case *cases, size_t n)
{
	int status = 1;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	CU_pSuite suite = CU_add_suite(suite_name, NULL, NULL);

	for (size_t i = 0; suite && i < n; i++)
		if (!CU_add_test(suite, cases[i].name, cases[i].run))
			suite = NULL;
	if (suite && n) {
		CU_basic_set_mode(CU_BRM_NORMAL);
		if (CU_basic_run_tests() == CUE_SUCCESS && CU_get_number_of_asserts() > 0)
			status = CU_get_number_of_failures() || CU_get_number_of_suites_failed() ? 1 : 0;
	}
	CU_cleanup_registry();
	return status;
}

#define TEST_MAIN(suite_name, cases_)                                                                                              \
	int main(void)                                                                                                             \
	{                                                                                                                          \
		return test_run(suite_name, cases_, sizeof(cases_) / sizeof((cases_)[0]));                                         \
	}

#endif
