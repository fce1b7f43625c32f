/* SPDX-License-Identifier: MIT */
#include "scenario_loader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void mistake_free(struct mistake *m)
{
	free(m->text);
	free(m->hint);
}

static bool known(const struct loader *l, const struct mistake *m)
{
	for (size_t i = 0; i < l->n_mistakes; i++)
		if (l->mistakes[i].pos == m->pos && !strcmp(l->mistakes[i].text, m->text))
			return true;
	return false;
}

__attribute__((format(printf, 6, 0))) static void add(struct loader *l, size_t pos, size_t span, bool warning, const char *hint,
						      const char *fmt, va_list ap)
{
	struct mistake m = { .pos = pos, .span = span ? span : 1, .warning = warning };
	struct mistake *grown;

	if (!warning)
		l->n_errors++;
	if (l->n_mistakes >= MISTAKES_MAX)
		return;
	if (vasprintf(&m.text, fmt, ap) < 0)
		return;
	if (hint)
		m.hint = strdup(hint);
	if (known(l, &m)) {
		mistake_free(&m);
		return;
	}
	grown = realloc(l->mistakes, (l->n_mistakes + 1) * sizeof(*grown));
	if (!grown) {
		mistake_free(&m);
		return;
	}
	l->mistakes = grown;
	l->mistakes[l->n_mistakes++] = m;
}

void complain(struct loader *l, const struct ynode *n, const char *hint, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(l, n->pos, n->span, false, hint, fmt, ap);
	va_end(ap);
}

static void part(const struct ynode *n, size_t off, size_t len, size_t *ret_pos, size_t *ret_span)
{
	*ret_pos = n->exact ? n->pos + off : n->pos;
	*ret_span = n->exact ? len : n->span;
}

void complain_part(struct loader *l, const struct ynode *n, size_t off, size_t len, const char *hint, const char *fmt, ...)
{
	size_t pos, span;
	va_list ap;

	part(n, off, len, &pos, &span);
	va_start(ap, fmt);
	add(l, pos, span, false, hint, fmt, ap);
	va_end(ap);
}

void warn_part(struct loader *l, const struct ynode *n, size_t off, size_t len, const char *hint, const char *fmt, ...)
{
	size_t pos, span;
	va_list ap;

	part(n, off, len, &pos, &span);
	va_start(ap, fmt);
	add(l, pos, span, true, hint, fmt, ap);
	va_end(ap);
}

static int by_place(const void *a, const void *b)
{
	const struct mistake *x = a, *y = b;

	return (x->pos > y->pos) - (x->pos < y->pos);
}

/* Characters, not bytes, and not beyond the end of the line. */
static unsigned span_chars(const struct loader *l, const struct mistake *m)
{
	unsigned chars = 0;

	for (size_t i = m->pos; i < l->len && i < m->pos + m->span && l->source[i] != '\n'; i++)
		chars += ((unsigned char)l->source[i] & 0xc0) != 0x80;
	return chars ? chars : 1;
}

void mistakes_render(struct loader *l, struct diag *d)
{
	if (l->n_mistakes)
		qsort(l->mistakes, l->n_mistakes, sizeof(*l->mistakes), by_place);
	for (size_t i = 0; i < l->n_mistakes; i++) {
		const struct mistake *m = &l->mistakes[i];
		struct diag_at at = { .path = l->path, .source = l->source, .source_len = l->len, .span = span_chars(l, m) };

		source_place(l->source, l->len, m->pos, &at.line, &at.col);
		if (m->warning)
			diag_warning(d, &at, m->hint, "%s", m->text);
		else
			diag_error(d, &at, m->hint, "%s", m->text);
	}
	if (l->n_mistakes >= MISTAKES_MAX) {
		struct diag_at at = { .path = l->path };

		diag_error(d, &at, NULL, "more mistakes than the %d that are shown", MISTAKES_MAX);
	}
}

void mistakes_release(struct loader *l)
{
	for (size_t i = 0; i < l->n_mistakes; i++)
		mistake_free(&l->mistakes[i]);
	free(l->mistakes);
	l->mistakes = NULL;
	l->n_mistakes = 0;
}

void words_add(struct word_list *w, const char *word)
{
	if (word && w->n < sizeof(w->word) / sizeof(w->word[0]))
		w->word[w->n++] = word;
}

void words_add_all(struct word_list *w, const char *const *words)
{
	for (; *words; words++)
		words_add(w, *words);
}

void words_add_table(struct word_list *w, const struct name_table *table)
{
	for (size_t i = 0; i < table->n; i++)
		words_add(w, table->rows[i].text);
}

void words_add_object(struct word_list *w, const json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value)
		words_add(w, key);
}

static const char *nearest(const struct word_list *w, const char *text)
{
	const char *best = NULL;
	unsigned best_distance = NAME_DISTANCE_MAX;

	for (size_t i = 0; i < w->n; i++) {
		unsigned d = name_distance(text, w->word[i]);

		if (d < best_distance && name_is_near(text, w->word[i])) {
			best = w->word[i];
			best_distance = d;
		}
	}
	return best;
}

const char *words_hint(const struct word_list *w, const char *text, char *buf, size_t size)
{
	const char *near = text ? nearest(w, text) : NULL;
	size_t used = 0;

	if (!w->n)
		return NULL;
	if (near)
		used = (size_t)snprintf(buf, size, "did you mean `%s`? ", near);
	for (size_t i = 0; i < w->n && w->word[i] && used < size; i++) {
		/* Room for the ellipsis is kept: a list that is cut says so. */
		if (used + strlen(w->word[i]) + 8 > size) {
			snprintf(buf + used, size - used, ", ...");
			break;
		}
		used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ", " : "allowed: ", w->word[i]);
	}
	return buf;
}
