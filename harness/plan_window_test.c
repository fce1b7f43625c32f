/* SPDX-License-Identifier: MIT */
#include "plan.h"

#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>

#include "units.h"

#define T12 16777216ULL /* 4.096 us x 2^12 */
#define T14 67108864ULL
#define T15 134217728ULL
#define T18 1073741824ULL

static const struct row {
	const char *what;
	enum detection d;
	unsigned timeout, retry_cnt, rnr_retry;
	int min_rnr_timer; /* -1: the responder is not known */
	bool seen_start;
	struct window w;
} rows[] = {
	{ "silent, the wire shows the start", DETECTION_SILENT, 12, 3, 0, 12, true, { 4 * T12, 16 * T12, false, false } },
	{ "silent, nothing shows the start", DETECTION_SILENT, 12, 3, 0, 12, false, { 3 * T12, 16 * T12, false, false } },
	{ "0.54 s to 2.15 s (design, neighbour change)",
	  DETECTION_SILENT,
	  15,
	  3,
	  0,
	  12,
	  true,
	  { 536870912ULL, 2147483648ULL, false, false } },
	{ "at least 7.5 s (design, reset discards)", DETECTION_SILENT, 18, 6, 0, 12, true, { 7 * T18, 28 * T18, false, false } },
	{ "retry_cnt 0, start unseen", DETECTION_SILENT, 14, 0, 0, 12, false, { 0, 4 * T14, false, false } },
	{ "retry_cnt 7 is seven", DETECTION_SILENT, 14, 7, 0, 12, true, { 8 * T14, 32 * T14, false, false } },
	{ "timeout 0: no timer", DETECTION_SILENT, 0, 3, 0, 12, true, { UINT64_MAX, UINT64_MAX, false, true } },
	{ "a sequence NAK spends one retry", DETECTION_SEQ_NAK, 12, 3, 0, 12, false, { 3 * T12, 12 * T12, false, false } },
	{ "a sequence NAK with no retry", DETECTION_SEQ_NAK, 12, 0, 0, 12, false, { 0, WINDOW_AT_ONCE_NS, false, false } },
	{ "a sequence NAK, no retry, no timer", DETECTION_SEQ_NAK, 0, 0, 0, 12, false, { 0, WINDOW_AT_ONCE_NS, false, false } },
	{ "a sequence NAK, no timer", DETECTION_SEQ_NAK, 0, 2, 0, 12, false, { UINT64_MAX, UINT64_MAX, false, true } },
	{ "rnr: 5 x 0.64 ms", DETECTION_RNR, 14, 5, 5, 12, false, { 3200000ULL, 12800000ULL, true, false } },
	{ "rnr: code 0 is the longest", DETECTION_RNR, 14, 5, 1, 0, false, { 655360000ULL, 2621440000ULL, true, false } },
	{ "rnr: code 1 is the shortest", DETECTION_RNR, 14, 5, 2, 1, false, { 20000ULL, 80000ULL, true, false } },
	{ "rnr: code 31", DETECTION_RNR, 14, 5, 1, 31, false, { 491520000ULL, 1966080000ULL, true, false } },
	{ "rnr_retry 0: the first NAK is fatal", DETECTION_RNR, 14, 5, 0, 12, false, { 0, WINDOW_AT_ONCE_NS, true, false } },
	{ "rnr_retry 7 is infinite", DETECTION_RNR, 14, 5, 7, 12, false, { UINT64_MAX, UINT64_MAX, false, true } },
	{ "rnr, responder unknown", DETECTION_RNR, 14, 5, 5, -1, false, { 0, UINT64_MAX, false, false } },
	{ "local: at once", DETECTION_LOCAL, 14, 5, 5, 12, false, { 0, WINDOW_AT_ONCE_NS, false, false } },
	{ "nak: at once", DETECTION_NAK, 14, 5, 5, 12, true, { 0, WINDOW_AT_ONCE_NS, false, false } },
	{ "none: never", DETECTION_NONE, 14, 5, 5, 12, true, { UINT64_MAX, UINT64_MAX, false, true } },
};

static void test_windows(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *r = &rows[i];
		json_t *attr = json_pack("{s:i,s:i,s:i}", "timeout", (int)r->timeout, "retry_cnt", (int)r->retry_cnt, "rnr_retry",
					 (int)r->rnr_retry);
		json_t *peer = r->min_rnr_timer < 0 ? json_object() : json_pack("{s:i}", "min_rnr_timer", r->min_rnr_timer);
		struct window w = plan_window(r->d, attr, peer, r->seen_start);
		bool ok = w.low_ns == r->w.low_ns && w.high_ns == r->w.high_ns && w.high_warns == r->w.high_warns &&
			  w.never == r->w.never;

		if (!ok)
			fprintf(stderr, "%s: expected %llu..%llu, seen %llu..%llu\n", r->what, (unsigned long long)r->w.low_ns,
				(unsigned long long)r->w.high_ns, (unsigned long long)w.low_ns, (unsigned long long)w.high_ns);
		CU_ASSERT(ok);
		json_decref(attr);
		json_decref(peer);
	}
}

static void test_names(void)
{
	for (int d = DETECTION_LOCAL; d < NUM_DETECTIONS; d++) {
		CU_ASSERT_PTR_NOT_NULL_FATAL(detection_names[d]);
		if (!detection_names[d])
			return;
		for (int other = d + 1; other < NUM_DETECTIONS; other++)
			CU_ASSERT_STRING_NOT_EQUAL(detection_names[d], detection_names[other]);
	}
}

int main(void)
{
	CU_pSuite suite;
	unsigned failed;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	suite = CU_add_suite("plan_window", NULL, NULL);
	if (!suite || !CU_add_test(suite, "windows", test_windows) || !CU_add_test(suite, "names", test_names))
		return 1;
	CU_basic_run_tests();
	failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failed != 0;
}
