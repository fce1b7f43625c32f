/* SPDX-License-Identifier: MIT */
#include "units.h"

#include <errno.h>

#include "test.h"

struct row {
	const char *text;
	int rc;
	uint64_t value;
};

static void durations(void)
{
	static const struct row rows[] = {
		{ "0ms", 0, 0 },
		{ "5ns", 0, 5 },
		{ "10us", 0, 10000 },
		{ "20ms", 0, 20000000 },
		{ "3s", 0, 3000000000 },
		{ "18446744073s", 0, 18446744073000000000ULL },
		{ "18446744074s", -ERANGE, 0 },
		{ "99999999999999999999ns", -ERANGE, 0 },
		{ "20", -EINVAL, 0 },
		{ "20m", -EINVAL, 0 },
		{ "ms", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "-1ms", -EINVAL, 0 },
		{ "1.5s", -EINVAL, 0 },
		{ " 1s", -EINVAL, 0 },
		{ "1s ", -EINVAL, 0 },
		{ "1 s", -EINVAL, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t v = 77;

		ROW_ASSERT(units_parse_duration(rows[i].text, &v) == rows[i].rc, "'%s'", rows[i].text);
		ROW_ASSERT(v == (rows[i].rc ? 77 : rows[i].value), "'%s' gave %llu", rows[i].text, (unsigned long long)v);
	}
}

static void sizes(void)
{
	static const struct row rows[] = {
		{ "64", 0, 64 },
		{ "4KiB", 0, 4096 },
		{ "2MiB", 0, 2097152 },
		{ "1GiB", 0, 1073741824 },
		{ "17179869183GiB", 0, 18446744072635809792ULL },
		{ "17179869184GiB", -ERANGE, 0 },
		{ "4K", -EINVAL, 0 },
		{ "4kib", -EINVAL, 0 },
		{ "4KB", -EINVAL, 0 },
		{ "0x40", -EINVAL, 0 },
		{ "KiB", -EINVAL, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t v = 77;

		ROW_ASSERT(units_parse_size(rows[i].text, &v) == rows[i].rc, "'%s'", rows[i].text);
		ROW_ASSERT(v == (rows[i].rc ? 77 : rows[i].value), "'%s' gave %llu", rows[i].text, (unsigned long long)v);
	}
}

static void shown(void)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} rows[] = {
		{ 0, "0 ns" },
		{ 999, "999 ns" },
		{ 1000, "1.00 us" },
		{ 840000, "840 us" },
		{ 999499, "999 us" },
		{ 999500, "1.00 ms" },
		{ 12900000, "12.9 ms" },
		{ 9995000, "10.0 ms" },
		{ 99960000, "100 ms" },
		{ 1200000000, "1.20 s" },
		{ 123456000000000ULL, "123456 s" },
	};
	char buf[32];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		units_format_ns(rows[i].ns, buf, sizeof(buf));
		ROW_ASSERT(!strcmp(buf, rows[i].text), "%llu ns is shown as '%s', not '%s'", (unsigned long long)rows[i].ns, buf,
			   rows[i].text);
	}
	CU_ASSERT_STRING_EQUAL(units_format_bytes(4096, buf, sizeof(buf)), "4 KiB");
	CU_ASSERT_STRING_EQUAL(units_format_bytes(1025, buf, sizeof(buf)), "1025 B");
	CU_ASSERT_STRING_EQUAL(units_format_bytes(0, buf, sizeof(buf)), "0 B");
}

static void clock_moves(void)
{
	uint64_t first = now_ns();

	while (now_ns() == first)
		;
	CU_ASSERT(now_ns() > first);
}

static const struct test_case cases[] = {
	{ "durations", durations },
	{ "sizes", sizes },
	{ "shown", shown },
	{ "the clock moves", clock_moves },
};

TEST_MAIN("units", cases)
