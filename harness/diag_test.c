/* SPDX-License-Identifier: MIT */
#include "diag.h"

#include <stdlib.h>

#include "error.h"
#include "test.h"

static void carets(void)
{
	static const struct {
		const char *source;
		unsigned line, col, span;
		const char *hint, *text;
	} rows[] = {
		{ "one\ntwo three\n", 2, 5, 5, "allowed: four",
		  "f:2:5: error: bad\n    2 | two three\n      |     ^~~~~\n        allowed: four\n" },
		{ "one", 1, 1, 1, NULL, "f:1:1: error: bad\n    1 | one\n      | ^\n" },
		{ "\xc3\xa4\xe2\x82\xacx", 1, 3, 1, NULL, "f:1:3: error: bad\n    1 | \xc3\xa4\xe2\x82\xacx\n      |   ^\n" },
		{ "\033x\ty", 1, 4, 1, NULL, "f:1:4: error: bad\n    1 | \\x1bx y\n      |       ^\n" },
		{ "one", 0, 0, 0, NULL, "f: error: bad\n" },
		{ "one", 7, 1, 1, NULL, "f:7:1: error: bad\n" },
		{ "ab", 1, 3, 9, NULL, "f:1:3: error: bad\n    1 | ab\n      |   ^\n" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct diag d = { 0 };
		struct diag_at at = { .path = "f",
				      .source = rows[i].source,
				      .source_len = strlen(rows[i].source),
				      .line = rows[i].line,
				      .col = rows[i].col,
				      .span = rows[i].span };

		diag_error(&d, &at, rows[i].hint, "bad");
		ROW_ASSERT(d.text && !strcmp(d.text, rows[i].text), "row %zu gave\n%s", i, d.text);
		ROW_ASSERT(d.errors == 1 && d.warnings == 0, "row %zu", i);
		diag_release(&d);
	}
}

static void long_lines_are_cut(void)
{
	char *source = malloc(100001);
	struct diag d = { 0 };

	memset(source, 'x', 100000);
	source[100000] = '\0';
	source[50000] = '!';
	struct diag_at at = { .path = "f", .source = source, .source_len = 100000, .line = 1, .col = 50001, .span = 1 };

	diag_warning(&d, &at, NULL, "odd");
	CU_ASSERT_EQUAL(d.warnings, 1);
	CU_ASSERT(d.len < 600);
	/* The caret stands under the '!'. */
	const char *mark = strchr(d.text, '!'), *caret = strchr(d.text, '^');

	CU_ASSERT_PTR_NOT_NULL_FATAL(mark);
	CU_ASSERT_PTR_NOT_NULL_FATAL(caret);
	const char *mark_line = strstr(d.text, "    1 | "), *caret_line = strstr(d.text, "\n      | ") + 1;

	CU_ASSERT_EQUAL(mark - mark_line, caret - caret_line);
	diag_release(&d);
	free(source);
}

static void messages_are_clean(void)
{
	struct diag d = { 0 };
	struct diag_at at = { .path = "f" };

	diag_error(&d, &at, "h\033", "x%sy", "\033[2J");
	CU_ASSERT_STRING_EQUAL(d.text, "f: error: x?[2Jy\n        h?\n");
	diag_release(&d);
	CU_ASSERT_PTR_NULL(d.text);
}

static void error_texts(void)
{
	struct error e;
	char big[3000];

	CU_ASSERT_EQUAL(error_set(&e, -22, "bad %s", "thing"), -22);
	CU_ASSERT_EQUAL(error_prefix(&e, -22, "step %d", 4), -22);
	CU_ASSERT_STRING_EQUAL(e.text, "step 4: bad thing");
	CU_ASSERT_EQUAL(error_set(NULL, -5, "unseen"), -5);
	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	error_set(&e, -1, "%s", big);
	CU_ASSERT_EQUAL(strlen(e.text), sizeof(e.text) - 1);
	error_prefix(&e, -1, "%s", "p");
	CU_ASSERT_EQUAL(strlen(e.text), sizeof(e.text) - 1);
	CU_ASSERT_EQUAL(strncmp(e.text, "p: xxx", 6), 0);
	error_prefix(&e, -1, "%s", big);
	CU_ASSERT_EQUAL(strlen(e.text), sizeof(e.text) - 1);
}

static const struct test_case cases[] = {
	{ "carets", carets },
	{ "long lines are cut", long_lines_are_cut },
	{ "messages are clean", messages_are_clean },
	{ "error texts", error_texts },
};

TEST_MAIN("diag", cases)
