/* SPDX-License-Identifier: MIT */
#include "roff.h"

#include "test.h"

static void text(FILE *out, const char *value)
{
	roff_text(out, value);
}

static void term(FILE *out, const char *value)
{
	roff_item(out, value, "");
}

static const struct {
	void (*put)(FILE *out, const char *value);
	const char *value, *page;
} rows[] = {
	{ text, "plain", "plain\n" },
	{ text, "--lab and -q", "\\-\\-lab and \\-q\n" },
	{ text, ".TH is no macro", "\\&.TH is no macro\n" },
	{ text, "'quoted'", "\\&\\(aqquoted\\(aq\n" },
	{ text, "a\\fBb", "a\\efBb\n" },
	{ text, "run `qpdrill list` now", "run \\fBqpdrill list\\fR now\n" },
	{ text, "left `open", "left \\fBopen\\fR\n" },
	{ text, "~r1 2^n", "\\(tir1 2\\(han\n" },
	{ text, "one\ntwo", "one\ntwo\n" },
	{ text, "one\n\ntwo", "one\n.PP\ntwo\n" },
	{ text, "Topics:\n  a  b\n  c  d\n", "Topics:\n.br\na  b\n.br\nc  d\n" },
	{ text, "one\n.two", "one\n\\&.two\n" },
	{ text, "", "" },
	{ term, "-q, --quiet", ".TP\n\\fB\\-q, \\-\\-quiet\\fR\n\\&\n" },
	{ roff_section, "exit \"status\"", ".SH \"EXIT STATUS\"\n" },
	{ roff_subsection, "`link`", ".SS \"link\"\n" },
	{ roff_verbatim, "a: -1\n.b\n", ".PP\n.RS 4\n.nf\na: \\-1\n\\&.b\n.fi\n.RE\n" },
};

static void test_escapes(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char *page = NULL;
		size_t size;
		FILE *out = open_memstream(&page, &size);

		MUST(out);
		rows[i].put(out, rows[i].value);
		fclose(out);
		ROW_ASSERT(!strcmp(page, rows[i].page), "row %zu: %s", i, page);
		free(page);
	}
}

static const struct test_case cases[] = {
	{ "text that no macro is made of", test_escapes },
};

TEST_MAIN("roff", cases)
