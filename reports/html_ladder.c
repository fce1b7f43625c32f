/* SPDX-License-Identifier: MIT */
/*
 * Draws a ladder as SVG: time runs down, the two ends are the lines at the left and at the right, the wire is between them. An
 * arrow carries data-n, the number of packets that it stands for; one that begins at the wire (a copy, a forged or a released
 * packet) carries data-late in its place. data-did is what was done to it.
 */
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/units.h"
#include "html.h"
#include "ladder.h"

#define WIDTH 1120
#define LEFT 360
#define WIRE 560
#define RIGHT 760
#define TEXT_LEFT 48 /* characters that there is room for */
#define TEXT_RIGHT 54
#define HEAD 34
#define GAP_NS (10 * NSEC_PER_MSEC) /* a longer time in which nothing is on record is shown as one */
#define ROWS_PROBLEM 360
#define ROWS_PASS 64
#define WORDS_MAX 10

static const int heights[NUM_LADDER_KINDS] = {
	[LADDER_STEP] = 22, [LADDER_PACKET] = 26, [LADDER_END] = 19, [LADDER_LINK] = 21, [LADDER_CUT] = 26,
};
#define GAP_HEIGHT 16

static const char *const tones[] = {
	[LADDER_PLAIN] = "", [LADDER_BAD] = " bad", [LADDER_TOUCHED] = " hit", [LADDER_QUIET] = " dim"
};

static bool has_gap(const struct ladder *l, size_t i)
{
	return i && !l->several_clks && l->rows[i].t > l->rows[i - 1].t_last && l->rows[i].t - l->rows[i - 1].t_last >= GAP_NS;
}

/* At most max characters; the whole of it is in a title then. */
static void put_cut(struct xml *x, const char *text, int max)
{
	int n = 0;
	const char *at = text;

	for (; *at && n < max; at++)
		n += ((unsigned char)at[1] & 0xc0) != 0x80;
	if (!*at) {
		xml_text(x, text);
		return;
	}
	xml_textf(x, "%.*s\xe2\x80\xa6", (int)(at - text), text);
	xml_element(x, "title", NULL, text);
}

static void put_label(struct xml *x, const char *class, const char *tone, int at, int y, const char *text, int max)
{
	xml_start(x, "text");
	xml_attrf(x, "class", "%s%s", class, tone);
	xml_attrf(x, "x", "%d", at);
	xml_attrf(x, "y", "%d", y);
	put_cut(x, text ? text : "", max);
	xml_end(x);
}

static void put_time(struct xml *x, const struct ladder *l, const struct ladder_row *r, int y)
{
	char text[32];

	snprintf(text, sizeof(text), "%.3f ms", r->t > l->first_t ? (double)(r->t - l->first_t) / 1e6 : 0.0);
	put_label(x, "t", "", 74, y, text, 32);
}

static void put_packet(struct xml *x, const struct ladder_row *r, int y)
{
	int begin = r->right ? RIGHT : LEFT, end = r->right ? LEFT : RIGHT, way = r->right ? -1 : 1;
	bool half = r->reach != LADDER_WHOLE;
	char path[160];

	if (r->reach == LADDER_FROM_WIRE || r->reach == LADDER_AT_WIRE)
		begin = WIRE;
	if (r->reach == LADDER_TO_WIRE || r->reach == LADDER_AT_WIRE)
		end = WIRE - way * 6;
	if (r->lost)
		snprintf(path, sizeof(path), "M%d %dH%dM%d %dl12 12m0-12l-12 12", begin, y, end, WIRE - 6, y - 6);
	else
		snprintf(path, sizeof(path), "M%d %dH%dm%d-4l%d 4l%d 4", begin, y, end, -way * 8, way * 8, -way * 8);
	xml_start(x, "path");
	xml_attrf(x, "class", "p %s%s%s%s", r->right ? "r" : "l", r->lost ? " lost" : "", r->arrival ? "" : " late",
		  tones[r->tone]);
	xml_attrf(x, r->arrival ? "data-n" : "data-late", "%u", r->count);
	if (r->mark)
		xml_attr(x, "data-did", r->mark);
	xml_attr(x, "d", path);
	xml_end(x);
	if (r->mark && !r->lost) {
		xml_start_class(x, "circle", "hit");
		xml_attrf(x, "cx", "%d", WIRE);
		xml_attrf(x, "cy", "%d", y);
		xml_attr(x, "r", "4");
		xml_end(x);
	}
	if (!half) {
		put_label(x, "c", tones[r->tone], WIRE, y - 5, r->text, 64);
		if (r->mark)
			put_label(x, "c", " hit", WIRE, y + 9, r->mark, 64);
	} else if (r->reach == LADDER_TO_WIRE) {
		put_label(x, r->right ? "e" : "s", tones[r->tone], r->right ? RIGHT - 6 : LEFT + 6, y - 5, r->text, 33);
		put_label(x, r->right ? "e" : "s", tones[r->lost ? LADDER_BAD : LADDER_TOUCHED], r->right ? WIRE - 12 : WIRE + 12,
			  y + 4, r->mark, 31);
	} else {
		put_label(x, r->right ? "s" : "e", tones[r->tone], r->right ? LEFT + 14 : RIGHT - 14, y - 5, r->text, 31);
		put_label(x, r->right ? "s" : "e", tones[r->lost ? LADDER_BAD : LADDER_TOUCHED], r->right ? WIRE + 12 : WIRE - 12,
			  y + 4, r->mark, 31);
	}
}

static void put_row(struct xml *x, const struct ladder *l, const struct ladder_row *r, int y)
{
	int base = y + heights[r->kind] - 7;

	switch (r->kind) {
	case LADDER_STEP:
		xml_start_class(x, "path", "step");
		xml_attrf(x, "d", "M80 %dH%d", base + 4, WIDTH);
		xml_end(x);
		put_label(x, "s dim", "", 80, base, r->text, TEXT_LEFT);
		break;
	case LADDER_PACKET:
		put_packet(x, r, base);
		break;
	case LADDER_END:
		xml_start(x, "circle");
		xml_attrf(x, "class", "d%s", tones[r->tone]);
		xml_attrf(x, "cx", "%d", r->right ? RIGHT : LEFT);
		xml_attrf(x, "cy", "%d", base - 4);
		xml_attr(x, "r", "3.5");
		xml_end(x);
		put_label(x, r->right ? "s" : "e", tones[r->tone], r->right ? RIGHT + 9 : LEFT - 9, base, r->text,
			  r->right ? TEXT_RIGHT : TEXT_LEFT - 4);
		break;
	case LADDER_CUT:
		xml_start(x, "path");
		xml_attr(x, "class", "cut");
		xml_attrf(x, "data-n", "%u", r->packets);
		xml_attrf(x, "data-lost", "%u", r->losses);
		xml_attrf(x, "d", "M80 %dH%d", base - 12, WIDTH);
		xml_end(x);
		put_label(x, "c b", "", WIRE, base, r->text, 100);
		return;
	default:
		put_label(x, "c b", tones[r->tone], WIRE, base, r->text, 100);
	}
	put_time(x, l, r, base);
}

/* y of the first row that is not before t; the end where there is none. */
static int y_of(const struct ladder *l, const int *ys, uint64_t t)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->rows[i].t >= t)
			return ys[i];
	return ys[l->n];
}

static void put_bands(struct xml *x, const struct ladder *l, const int *ys)
{
	for (size_t i = 0; !l->several_clks && i < l->n_bands; i++) {
		const struct ladder_band *b = &l->bands[i];
		int top = y_of(l, ys, b->begin), end = y_of(l, ys, b->end);

		xml_start_class(x, "rect", b->recovery ? "recovery" : "fault");
		xml_attrf(x, "x", "%d", LEFT);
		xml_attrf(x, "y", "%d", top);
		xml_attrf(x, "width", "%d", RIGHT - LEFT);
		xml_attrf(x, "height", "%d", end > top ? end - top + 4 : 4);
		xml_start(x, "title");
		xml_textf(x, "%s%s", b->text, b->open ? ", to the end" : "");
		xml_end(x);
		xml_end(x);
	}
}

static void put_columns(struct xml *x, const struct ladder *l, int bottom)
{
	const struct {
		int x;
		const char *what, *name, *class;
	} columns[] = { { LEFT, "agent ", l->left, "life" },
			{ WIRE, l->wire ? "wire" : "no wire: packets were not seen", "", "wire" },
			{ RIGHT, "agent ", l->right, "life" } };

	for (size_t i = 0; i < 3; i++) {
		char text[96];

		xml_start_class(x, "path", columns[i].class);
		xml_attrf(x, "d", "M%d %dV%d", columns[i].x, HEAD - 8, bottom);
		xml_end(x);
		snprintf(text, sizeof(text), "%s%s", columns[i].what, columns[i].name);
		put_label(x, "c h", "", columns[i].x, 16, text, 60);
	}
}

/* What a picture says to those who do not see it. */
static void put_description(struct xml *x, const struct ladder *l)
{
	unsigned said = 0;

	xml_textf(x, "Agent %s at the left, agent %s at the right. ", l->left, l->right);
	if (l->wire)
		xml_textf(x, "%u packets from the left, %u lost, %u touched; %u from the right, %u lost, %u touched. ",
			  l->packets[0], l->lost[0], l->touched[0], l->packets[1], l->lost[1], l->touched[1]);
	else
		xml_text(x, "Packets were not seen. ");
	for (size_t i = 0; i < l->n && said < WORDS_MAX; i++) {
		const struct ladder_row *r = &l->rows[i];

		if (r->kind == LADDER_CUT || r->kind == LADDER_STEP || (r->tone != LADDER_BAD && !r->mark))
			continue;
		xml_textf(x, "%.3f ms: %s%s%s. ", r->t > l->first_t ? (double)(r->t - l->first_t) / 1e6 : 0.0,
			  r->text ? r->text : "", r->mark ? ", " : "", r->mark ? r->mark : "");
		said++;
	}
}

static void put_svg(struct xml *x, const struct ladder *l, const char *title, size_t n, int *ys)
{
	int y = HEAD;

	for (size_t i = 0; i < l->n; i++) {
		y += has_gap(l, i) ? GAP_HEIGHT : 0;
		ys[i] = y;
		y += heights[l->rows[i].kind];
	}
	ys[l->n] = y;
	xml_start_class(x, "svg", "ladder");
	xml_attr(x, "xmlns", "http://www.w3.org/2000/svg");
	xml_attrf(x, "viewBox", "0 0 %d %d", WIDTH, y + 10);
	xml_attr(x, "role", "img");
	xml_attr(x, "paint-order", "stroke");
	xml_attrf(x, "aria-label", "What happened in %s", title);
	xml_attrf(x, "aria-describedby", "d%zu", n);
	xml_start(x, "desc");
	xml_attrf(x, "id", "d%zu", n);
	put_description(x, l);
	xml_end(x);
	put_bands(x, l, ys);
	put_columns(x, l, y + 6);
	for (size_t i = 0; i < l->n; i++) {
		char gap[64], later[96];

		if (has_gap(l, i)) {
			snprintf(later, sizeof(later), "\xe2\x8b\xae %s",
				 units_format_ns(l->rows[i].t - l->rows[i - 1].t_last, gap, sizeof(gap)));
			put_label(x, "t dim", "", 74, ys[i] - 3, later, 40);
		}
		put_row(x, l, &l->rows[i], ys[i]);
	}
	xml_end(x);
}

void html_ladder(struct xml *x, const json_t *plan, const json_t *records, const char *title, bool problem, size_t n)
{
	struct ladder l;
	int *ys;

	if (ladder_make(plan, records, problem ? ROWS_PROBLEM : ROWS_PASS, &l))
		return;
	ys = calloc(l.n + 1, sizeof(*ys));
	if (ys && l.n) {
		xml_start_class(x, "div", "scroll");
		xml_attr(x, "tabindex", "0");
		xml_attr(x, "role", "group");
		xml_attrf(x, "aria-label", "ladder of %s", title);
		put_svg(x, &l, title, n, ys);
		xml_end(x);
		if (l.several_clks)
			xml_element(x, "p", "note",
				    "The ends' clocks do not compare: the order is that in which the controller heard of it.");
	}
	free(ys);
	ladder_release(&l);
}
