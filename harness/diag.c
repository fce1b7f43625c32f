/* SPDX-License-Identifier: MIT */
#include "diag.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

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
	for (char *p = text; *p;) {
		uint32_t c;
		size_t n = utf8_decode(p, UTF8_MAX, &c);

		if (n && utf8_hides(c))
			memset(p, '?', n);
		p += n ? n : 1;
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

/* Renders one character of the source, of n bytes, and says how wide it is shown. */
static size_t put_char(struct diag *d, const char *p, size_t n, bool plain)
{
	char esc[8];

	if (plain) {
		put_bytes(d, *p == '\t' ? " " : p, n);
		return 1;
	}
	for (size_t i = 0; i < n; i++) {
		snprintf(esc, sizeof(esc), "\\x%02x", (unsigned char)p[i]);
		put(d, esc);
	}
	return 4 * n;
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
		uint32_t c;
		size_t n = utf8_decode(p, (size_t)(end - p), &c);
		bool plain = n && (c == '\t' || !utf8_hides(c));

		n = n ? n : 1;
		if (column + SHOWN_BEFORE >= col) {
			size_t shown = put_char(d, p, n, plain);

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
