/* SPDX-License-Identifier: MIT */
#include "diag.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file may be one line of a mebibyte: show so many characters around the caret. */
#define SHOWN_BEFORE 90
#define SHOWN_AFTER 60
#define DIAG_MAX_BYTES (1u << 20)

static void put_bytes(struct diag *d, const char *bytes, size_t n)
{
	char *grown;

	if (d->len + n > DIAG_MAX_BYTES)
		return;
	grown = realloc(d->text, d->len + n + 1);
	if (!grown)
		return;
	memcpy(grown + d->len, bytes, n);
	d->text = grown;
	d->len += n;
	d->text[d->len] = '\0';
}

static void put(struct diag *d, const char *text)
{
	put_bytes(d, text, strlen(text));
}

static void put_repeat(struct diag *d, char c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put_bytes(d, &c, 1);
}

/* Text of the program's own message: control characters that came in through %s are made harmless, in place. */
static void put_clean(struct diag *d, char *text)
{
	for (unsigned char *p = (unsigned char *)text; *p; p++) {
		if (*p < 0x20 || *p == 0x7f)
			*p = '?';
		else if (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0)
			*p = p[1] = '?';
	}
	put(d, text);
}

static bool source_line(const struct diag_at *at, const char **ret, size_t *ret_len)
{
	const char *p = at->source, *end = at->source ? at->source + at->source_len : NULL;
	const char *nl;

	if (!p || !at->line)
		return false;
	for (unsigned i = 1; i < at->line; i++) {
		nl = memchr(p, '\n', (size_t)(end - p));
		if (!nl)
			return false;
		p = nl + 1;
	}
	nl = memchr(p, '\n', (size_t)(end - p));
	*ret = p;
	*ret_len = (size_t)((nl ? nl : end) - p);
	if (*ret_len && p[*ret_len - 1] == '\r')
		--*ret_len;
	return true;
}

/* Renders one character of the source and says how wide it is shown. */
static size_t put_char(struct diag *d, const char *p, size_t n)
{
	unsigned char c = (unsigned char)*p;
	char esc[8];

	if (c == '\t') {
		put(d, " ");
		return 1;
	}
	if (n == 1 && c >= 0x20 && c < 0x7f) {
		put_bytes(d, p, 1);
		return 1;
	}
	if (n > 1 && !(n == 2 && c == 0xc2 && (unsigned char)p[1] < 0xa0)) {
		put_bytes(d, p, n);
		return 1;
	}
	size_t width = 0;

	for (size_t i = 0; i < n; i++) {
		snprintf(esc, sizeof(esc), "\\x%02x", (unsigned char)p[i]);
		put(d, esc);
		width += 4;
	}
	return width;
}

/* Bytes of the character at p: continuation bytes belong to a lead byte when there are as many as it says. */
static size_t char_len(const char *p, const char *end)
{
	unsigned char c = (unsigned char)*p;
	size_t want = c >= 0xf0 && c < 0xf5 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 1;

	if (c >= 0xf5 || (size_t)(end - p) < want)
		return 1;
	for (size_t i = 1; i < want; i++)
		if (((unsigned char)p[i] & 0xc0) != 0x80)
			return 1;
	return want;
}

static void put_source(struct diag *d, const struct diag_at *at)
{
	const char *p, *end;
	size_t len, column = 1, indent = 0, under = 0;
	unsigned col = at->col ? at->col : 1;
	char gutter[32];
	int width;

	if (!source_line(at, &p, &len))
		return;
	end = p + len;
	width = snprintf(gutter, sizeof(gutter), "%5u", at->line);
	put(d, gutter);
	put(d, " | ");
	if (col > SHOWN_BEFORE + 1) {
		put(d, "...");
		indent = 3;
	}
	for (; p < end && column < col + SHOWN_AFTER; column++) {
		size_t n = char_len(p, end);

		if (column + SHOWN_BEFORE >= col) {
			size_t shown = put_char(d, p, n);

			if (column < col)
				indent += shown;
			else if (column < col + (at->span ? at->span : 1))
				under += shown;
		}
		p += n;
	}
	put(d, p < end ? "...\n" : "\n");
	if (!at->col)
		return;
	put_repeat(d, ' ', (size_t)width);
	put(d, " | ");
	put_repeat(d, ' ', indent);
	put(d, "^");
	put_repeat(d, '~', under > 1 ? under - 1 : 0);
	put(d, "\n");
}

__attribute__((format(printf, 5, 0))) static void report(struct diag *d, const struct diag_at *at, const char *level,
							 const char *hint, const char *fmt, va_list ap)
{
	char where[64] = ": ";
	char *text, *copy;

	if (at->line && at->col)
		snprintf(where, sizeof(where), ":%u:%u: ", at->line, at->col);
	else if (at->line)
		snprintf(where, sizeof(where), ":%u: ", at->line);
	copy = strdup(at->path ? at->path : "?");
	if (!copy)
		return;
	put_clean(d, copy);
	free(copy);
	put(d, where);
	put(d, level);
	if (vasprintf(&text, fmt, ap) < 0)
		return;
	put_clean(d, text);
	free(text);
	put(d, "\n");
	put_source(d, at);
	if (hint && (text = strdup(hint))) {
		put(d, "        ");
		put_clean(d, text);
		put(d, "\n");
		free(text);
	}
}

void diag_error(struct diag *d, const struct diag_at *at, const char *hint, const char *fmt, ...)
{
	va_list ap;

	d->errors++;
	va_start(ap, fmt);
	report(d, at, "error: ", hint, fmt, ap);
	va_end(ap);
}

void diag_warning(struct diag *d, const struct diag_at *at, const char *hint, const char *fmt, ...)
{
	va_list ap;

	d->warnings++;
	va_start(ap, fmt);
	report(d, at, "warning: ", hint, fmt, ap);
	va_end(ap);
}

void diag_release(struct diag *d)
{
	free(d->text);
	*d = (struct diag){ 0 };
}
