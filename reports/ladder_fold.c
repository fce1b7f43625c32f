/* SPDX-License-Identifier: MIT */
#include "ladder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "report_util.h"

/* So many packets in a row, in which nothing happened but what should, are one row a direction. */
#define QUIET_MIN 7
/* So many like ones, each sent again and again, are one. */
#define AGAIN_MIN 8
#define KINDS_MAX 8

static const char *what(const struct ladder_row *r)
{
	const char *opcode = report_str(r->record, "opcode"), *class = report_str(r->record, "class");

	if (!*opcode || strstr(class, "nak") || !strcmp(class, "ack"))
		return class;
	return strncmp(opcode, "RC_", 3) ? opcode : opcode + 3;
}

/* Everything is as it should be: it came, and went, for the first time. */
static bool is_quiet(const struct ladder_row *r)
{
	return r->kind == LADDER_PACKET && r->tone == LADDER_PLAIN && r->arrival && r->reach == LADDER_WHOLE && !r->mark &&
	       json_int(r->record, "transmission", 1) == 1 && json_str(r->record, "pair");
}

static bool are_like(const struct ladder_row *a, const struct ladder_row *b)
{
	return b->kind == LADDER_PACKET && a->right == b->right && a->reach == b->reach && a->lost == b->lost &&
	       a->arrival == b->arrival && a->tone == b->tone && !strcmp(a->mark ? a->mark : "", b->mark ? b->mark : "") &&
	       !strcmp(what(a), what(b));
}

struct span {
	int64_t low, high;
};

static void widen(struct span *s, const struct ladder_row *r)
{
	int64_t psn = json_int(r->record, "psn", 0), last = psn + json_int(r->record, "count", 1) - 1;

	if (!json_object_get(r->record, "psn"))
		return;
	s->low = psn < s->low ? psn : s->low;
	s->high = last > s->high ? last : s->high;
}

static void put_span(char *text, size_t size, const struct span *s)
{
	size_t len = strlen(text);

	if (s->low == s->high)
		snprintf(text + len, size - len, " PSN %lld", (long long)s->low);
	else if (s->low < s->high)
		snprintf(text + len, size - len, " PSN %lld..%lld", (long long)s->low, (long long)s->high);
}

/* Rows first..last (like ones) become their first; the others are emptied. */
static void merge_like(struct ladder *l, size_t first, size_t last)
{
	struct ladder_row *r = &l->rows[first];
	struct span span = { INT64_MAX, INT64_MIN };
	char text[256], *fresh;

	for (size_t i = first; i <= last; i++) {
		widen(&span, &l->rows[i]);
		if (i == first)
			continue;
		r->count += l->rows[i].count;
		r->t_last = l->rows[i].t_last > r->t_last ? l->rows[i].t_last : r->t_last;
		l->rows[i].kind = LADDER_INVALID;
	}
	snprintf(text, sizeof(text), "%s", what(r));
	put_span(text, sizeof(text), &span);
	snprintf(text + strlen(text), sizeof(text) - strlen(text), " \xc3\x97 %u", r->count);
	fresh = strdup(text);
	if (!fresh)
		return;
	free(r->text);
	r->text = fresh;
}

static void fold_like(struct ladder *l)
{
	for (size_t i = 0, end; i < l->n; i = end) {
		bool again = false;

		end = i + 1;
		if (l->rows[i].kind != LADDER_PACKET)
			continue;
		for (; end < l->n && are_like(&l->rows[i], &l->rows[end]); end++)
			again = again ||
				json_int(l->rows[end].record, "transmission", 1) != json_int(l->rows[i].record, "transmission", 1);
		if (end - i > 1 && (!again || end - i >= AGAIN_MIN))
			merge_like(l, i, end - 1);
	}
}

/* One direction of a quiet exchange: its first row says it all. */
static void merge_direction(struct ladder *l, size_t first, size_t last, bool right)
{
	struct ladder_row *into = NULL;
	struct {
		const char *what;
		unsigned n;
	} kinds[KINDS_MAX];
	struct span span = { INT64_MAX, INT64_MIN };
	size_t n_kinds = 0, k;
	char text[512] = "", *fresh;

	for (size_t i = first; i <= last; i++) {
		struct ladder_row *r = &l->rows[i];

		if (r->right != right)
			continue;
		widen(&span, r);
		for (k = 0; k < n_kinds && strcmp(kinds[k].what, what(r)); k++)
			;
		if (k == n_kinds && n_kinds < KINDS_MAX)
			n_kinds++, kinds[k].what = what(r), kinds[k].n = 0;
		if (k < KINDS_MAX)
			kinds[k].n += r->count;
		if (!into) {
			into = r;
			continue;
		}
		into->count += r->count;
		into->t_last = r->t_last > into->t_last ? r->t_last : into->t_last;
		r->kind = LADDER_INVALID;
	}
	if (!into)
		return;
	for (k = 0; k < n_kinds; k++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u %s", k ? ", " : "", kinds[k].n, kinds[k].what);
	put_span(text, sizeof(text), &span);
	fresh = strdup(text);
	if (!fresh)
		return;
	free(into->text);
	into->text = fresh;
}

static void fold_quiet(struct ladder *l)
{
	for (size_t i = 0, end; i < l->n; i = end) {
		end = i + 1;
		if (!is_quiet(&l->rows[i]))
			continue;
		while (end < l->n && is_quiet(&l->rows[end]))
			end++;
		if (end - i < QUIET_MIN)
			continue;
		merge_direction(l, i, end - 1, false);
		merge_direction(l, i, end - 1, true);
	}
}

/* A step in which nothing is drawn is not drawn either. */
static void drop_empty_steps(struct ladder *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->n; i++) {
		struct ladder_row *r = &l->rows[i];
		bool empty = r->kind == LADDER_STEP && (i + 1 == l->n || l->rows[i + 1].kind == LADDER_STEP) &&
			     json_str(r->record, "do") && strcmp(json_str(r->record, "do"), "wait");

		if (empty)
			ladder_row_release(r);
		else
			l->rows[kept++] = *r;
	}
	l->n = kept;
}

static void compact(struct ladder *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (l->rows[i].kind == LADDER_INVALID)
			ladder_row_release(&l->rows[i]);
		else
			l->rows[kept++] = l->rows[i];
	}
	l->n = kept;
}

/* Two thirds from the beginning, the rest from the end; what is between is counted. */
static void cut(struct ladder *l, size_t rows_max)
{
	size_t first = 2 * rows_max / 3, last = l->n - (rows_max - first);
	struct ladder_row hole = { .kind = LADDER_CUT, .t = l->rows[first].t, .t_last = l->rows[last - 1].t_last };
	char text[160];

	for (size_t i = first; i < last; i++) {
		struct ladder_row *r = &l->rows[i];

		hole.count++;
		if (r->kind == LADDER_PACKET && r->arrival) {
			hole.packets += r->count;
			hole.losses += r->lost ? r->count : 0;
		}
		ladder_row_release(r);
	}
	snprintf(text, sizeof(text), "%u rows are not shown: %u packets in them, %u lost", hole.count, hole.packets, hole.losses);
	hole.text = strdup(text);
	l->rows[first] = hole;
	memmove(&l->rows[first + 1], &l->rows[last], (l->n - last) * sizeof(*l->rows));
	l->n = first + 1 + l->n - last;
}

void ladder_fold(struct ladder *l, size_t rows_max)
{
	if (!l->several_clks) {
		fold_quiet(l);
		compact(l);
	}
	fold_like(l);
	compact(l);
	drop_empty_steps(l);
	if (l->n > rows_max && rows_max > 2)
		cut(l, rows_max);
}
