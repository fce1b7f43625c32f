/* SPDX-License-Identifier: MIT */
#include "utf8.h"

#include "test.h"

static void sequences(void)
{
	static const struct {
		const char *in;
		size_t max, len;
		uint32_t c;
	} rows[] = {
		{ "a", 1, 1, 'a' },
		{ "", 0, 0, 0 },
		{ "\0", 1, 1, 0 },
		{ "\xc2\x80", 2, 2, 0x80 },
		{ "\xdf\xbf", 2, 2, 0x7ff },
		{ "\xe0\xa0\x80", 3, 3, 0x800 },
		{ "\xef\xbf\xbf", 3, 3, 0xffff },
		{ "\xf0\x90\x80\x80", 4, 4, 0x10000 },
		{ "\xf4\x8f\xbf\xbf", 4, 4, 0x10ffff },
		{ "\xe2\x82\xac", 3, 3, 0x20ac },
		{ "\xe2\x82\xac", 2, 0, 0 },     /* cut */
		{ "\xe2\x28\xa1", 3, 0, 0 },     /* a second byte that is none */
		{ "\xf0\x9f\x98\x28", 4, 0, 0 }, /* a fourth */
		{ "\xc0\xaf", 2, 0, 0 },         /* overlong */
		{ "\xe0\x9f\xbf", 3, 0, 0 },
		{ "\xed\xa0\x80", 3, 0, 0 },     /* a surrogate */
		{ "\xf4\x90\x80\x80", 4, 0, 0 }, /* beyond */
		{ "\x80", 1, 0, 0 },
		{ "\xff", 1, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t c = 0;
		size_t len = utf8_decode(rows[i].in, rows[i].max, &c);

		ROW_ASSERT(len == rows[i].len && c == rows[i].c, "row %zu: %zu bytes, U+%04x", i, len, c);
	}
}

static void what_hides(void)
{
	static const struct {
		uint32_t c;
		bool hides;
	} rows[] = {
		{ '\t', true },   { ' ', false },    { '~', false },   { 0x7f, true },   { 0x9f, true },    { 0xa0, false },
		{ 0xe4, false },  { 0x200a, false }, { 0x200b, true }, { 0x200f, true }, { 0x2010, false }, { 0x2028, true },
		{ 0x202e, true }, { 0x202f, false }, { 0x2066, true }, { 0xfeff, true }, { 0x20ac, false }, { 0x1f600, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ROW_ASSERT(utf8_hides(rows[i].c) == rows[i].hides, "U+%04x", rows[i].c);
}

static const struct test_case tests[] = {
	{ "sequences", sequences },
	{ "what hides", what_hides },
};

int main(void)
{
	return test_run("utf8", tests, sizeof(tests) / sizeof(tests[0]));
}
