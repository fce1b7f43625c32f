/* SPDX-License-Identifier: MIT */
/*
 * What happened in a case, in the order in which it did, as rows between the two ends: made from the records of its folder, drawn
 * by html_ladder.c. Pure.
 */
#ifndef QD_LADDER_H
#define QD_LADDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ladder_kind {
	LADDER_INVALID,
	LADDER_STEP,   /* a step began */
	LADDER_PACKET, /* an arrow, or a part of one */
	LADDER_END,    /* something at one of the two ends: completion, event, state, post */
	LADDER_LINK,   /* something that belongs to neither: faults, recovery, the kernel, losses */
	LADDER_CUT,    /* rows that are not shown */
	NUM_LADDER_KINDS,
};

/* Where an arrow begins and ends; the wire is between the ends. */
enum ladder_reach { LADDER_WHOLE, LADDER_TO_WIRE, LADDER_FROM_WIRE, LADDER_AT_WIRE };

enum ladder_tone { LADDER_PLAIN, LADDER_BAD, LADDER_TOUCHED, LADDER_QUIET };

struct ladder_row {
	enum ladder_kind kind;
	enum ladder_tone tone;
	bool right; /* at the right end; of an arrow: it begins there */
	uint64_t t, t_last;
	size_t rec; /* of its record: orders what has one time */
	int step;
	const json_t *record; /* borrowed; NULL for LADDER_CUT */
	/* Arrows. */
	enum ladder_reach reach;
	bool lost;                /* it ends where it is: dropped, held */
	bool arrival;             /* of a packet that was sent; not a copy, a forged or a released one */
	unsigned count;           /* packets in it; of LADDER_CUT: rows */
	unsigned packets, losses; /* of LADDER_CUT: arrivals not shown, lost ones among them */
	char *text, *mark;        /* what it says; what was done to it (NULL: nothing) */
};

/* A stretch of time in which a fault was active, or a recovery went on. */
struct ladder_band {
	bool recovery, open; /* open: it has no end on record */
	uint64_t begin, end;
	char *text;
};

struct ladder {
	struct ladder_row *rows;
	size_t n;
	struct ladder_band *bands;
	size_t n_bands;
	uint64_t first_t;
	bool wire;         /* packets were seen */
	bool several_clks; /* the two ends' times do not compare: rows are in the order of the records */
	char left[64], right[64];
	/* Arrivals in each direction, [0] from the left; lost ones; touched by a rule. */
	unsigned packets[2], lost[2], touched[2];
};

/* Folds what is alike, and shows at most rows_max rows. 0 or -ENOMEM. */
int ladder_make(const json_t *plan, const json_t *records, size_t rows_max, struct ladder *ret);
void ladder_release(struct ladder *l);

/* ladder_fold.c: runs of like packets, and exchanges in which nothing was lost or touched, become one row a direction. */
void ladder_fold(struct ladder *l, size_t rows_max);
void ladder_row_release(struct ladder_row *r);

#endif
