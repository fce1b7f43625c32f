/* SPDX-License-Identifier: MIT */
#include "roff.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "commands.h"

/* One character; a point or a quote at the beginning of a line would be a request. */
static void put_char(FILE *out, char c, bool at_start)
{
	if (at_start && (c == '.' || c == '\''))
		fputs("\\&", out);
	if (c == '\\')
		fputs("\\e", out);
	else if (c == '-')
		fputs("\\-", out);
	else if (c == '\'')
		fputs("\\(aq", out);
	else if (c == '^')
		fputs("\\(ha", out);
	else if (c == '~')
		fputs("\\(ti", out);
	else
		fputc(c, out);
}

/* A line without its end. */
static void put_line(FILE *out, const char *text, size_t len)
{
	bool bold = false;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '`') {
			bold = !bold;
			fputs(bold ? "\\fB" : "\\fR", out);
		} else {
			put_char(out, text[i], i == 0);
		}
	}
	fputs(bold ? "\\fR\n" : "\n", out);
}

void roff_page(FILE *out, const char *name, int section, const char *what)
{
	fputs(".TH \"", out);
	for (const char *c = name; *c; c++)
		put_char(out, (char)toupper((unsigned char)*c), false);
	fprintf(out, "\" \"%d\" \"\" \"qpdrill %s\" \"qpdrill\"\n", section, QPDRILL_VERSION);
	/* No hyphens in names that are to be copied, and no text stretched to the margin. */
	fputs(".nh\n.ad l\n.SH NAME\n", out);
	for (const char *c = name; *c; c++)
		put_char(out, *c, false);
	fputs(" \\- ", out);
	put_line(out, what, strlen(what));
}

static void put_title(FILE *out, const char *macro, const char *title, bool capitals)
{
	fprintf(out, ".%s \"", macro);
	for (const char *c = title; *c; c++)
		if (*c != '"' && *c != '`')
			put_char(out, capitals ? (char)toupper((unsigned char)*c) : *c, false);
	fputs("\"\n", out);
}

void roff_section(FILE *out, const char *title)
{
	put_title(out, "SH", title, true);
}

void roff_subsection(FILE *out, const char *title)
{
	put_title(out, "SS", title, false);
}

void roff_text(FILE *out, const char *text)
{
	bool begun = false;

	while (*text) {
		size_t len = strcspn(text, "\n");
		bool alone = *text == ' ' && len > 1;

		if (!len && begun && text[1])
			fputs(".PP\n", out);
		if (alone) {
			fputs(begun ? ".br\n" : "", out);
			text += strspn(text, " ");
			len = strcspn(text, "\n");
		}
		if (len)
			put_line(out, text, len);
		begun |= len > 0;
		text += len;
		text += *text == '\n';
	}
}

void roff_item(FILE *out, const char *term, const char *text)
{
	fputs(".TP\n\\fB", out);
	for (const char *c = term; *c; c++)
		if (*c != '`')
			put_char(out, *c, false);
	fputs("\\fR\n", out);
	if (*text)
		roff_text(out, text);
	else
		fputs("\\&\n", out);
}

void roff_verbatim(FILE *out, const char *text)
{
	fputs(".PP\n.RS 4\n.nf\n", out);
	while (*text) {
		size_t len = strcspn(text, "\n");

		for (size_t i = 0; i < len; i++)
			put_char(out, text[i], i == 0);
		fputc('\n', out);
		text += len;
		text += *text == '\n';
	}
	fputs(".fi\n.RE\n", out);
}

void roff_see_also(FILE *out, const char *const *pages)
{
	roff_section(out, "see also");
	for (size_t i = 0; pages[i]; i++) {
		const char *open = strchr(pages[i], '(');

		fputs(".BR ", out);
		for (const char *c = pages[i]; c < open; c++)
			put_char(out, *c, false);
		fprintf(out, " %s%s\n", open, pages[i + 1] ? "," : "");
	}
}
