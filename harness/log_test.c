/* SPDX-License-Identifier: MIT */
#include "log.h"

#include "test.h"

static void escapes(void)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "", "" },
		{ "plain text", "plain text" },
		{ "a\tb\nc\r", "a\\x09b\\x0ac\\x0d" },
		{ "\033[31mred", "\\x1b[31mred" },
		{ "\x7f", "\\x7f" },
		{ "\xc2\x9b"
		  "31m",
		  "\\xc2\\x9b31m" },
		{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "\xe2\x80\xae"
		  "row",
		  "\\xe2\\x80\\xaerow" },
		{ "\xff\xfe", "\\xff\\xfe" },
		{ "\xc0\xaf", "\\xc0\\xaf" },
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },
		{ "cut\xe2\x82", "cut\\xe2\\x82" },
		{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" },
	};
	char buf[128];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		log_escape(rows[i].in, buf, sizeof(buf));
		ROW_ASSERT(!strcmp(buf, rows[i].out), "row %zu gave '%s'", i, buf);
	}
}

static void short_buffers(void)
{
	char buf[8] = "zzzzzzz";

	CU_ASSERT_STRING_EQUAL(log_escape("abcdefghij", buf, sizeof(buf)), "abcdefg");
	CU_ASSERT_STRING_EQUAL(log_escape("abcd\033xyz", buf, sizeof(buf)), "abcd");
	CU_ASSERT_STRING_EQUAL(log_escape("abcdef\xe2\x82\xac", buf, sizeof(buf)), "abcdef");
	CU_ASSERT_STRING_EQUAL(log_escape("abc", buf, 1), "");
	buf[0] = 'q';
	log_escape("abc", buf, 0);
	CU_ASSERT_EQUAL(buf[0], 'q');
}

static const struct test_case cases[] = {
	{ "escapes", escapes },
	{ "short buffers", short_buffers },
};

TEST_MAIN("log", cases)
