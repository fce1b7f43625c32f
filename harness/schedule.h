/* SPDX-License-Identifier: MIT */
/*
 * Which case runs next. Cases are numbers here, in the order of the files; no lab, no clock.
 *
 * One lane takes them in order. Several take the longest first, so that no long one is left for the end; those that want the lab
 * for themselves follow when nothing else runs, and last those that are to run again alone.
 */
#ifndef QD_SCHEDULE_H
#define QD_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct schedule;

enum schedule_answer {
	SCHEDULE_CASE, /* run this one */
	SCHEDULE_WAIT, /* nothing now: ask again when one that runs has ended */
	SCHEDULE_END,  /* nothing any more */
};

int schedule_new(unsigned lanes, struct schedule **ret);
void schedule_free(struct schedule *s);
/* The next number. expect_ns: how long it is thought to take. */
int schedule_add(struct schedule *s, uint64_t expect_ns, bool exclusive);
/* A lane is free. *ret_fresh: in a boot that has run nothing. */
enum schedule_answer schedule_next(struct schedule *s, size_t *ret_number, bool *ret_fresh);
/* It has ended, and what it leads to has been added. */
void schedule_done(struct schedule *s, size_t number);
enum schedule_again {
	SCHEDULE_BESIDE, /* others */
	SCHEDULE_ALONE,
	SCHEDULE_FRESH, /* alone, in a boot that has run nothing */
};
/* It has ended, and is to run again. */
void schedule_again(struct schedule *s, size_t number, enum schedule_again how);
/* Nothing more is handed out. */
void schedule_stop(struct schedule *s);

#endif
