/* SPDX-License-Identifier: MIT */
/* What the parts of a comparison share. */
#ifndef QD_COMPARE_INTERNAL_H
#define QD_COMPARE_INTERNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "report.h"

/* A case in one run, with all its repetitions. */
struct compare_case {
	const json_t *entries; /* of report_run.cases; borrowed */
	unsigned n, pass, deviates, fails, untold, unrun, skipped;
	json_t *met;         /* {"id": in how many}: deviations */
	json_t *unseen;      /* the same of those that no run has shown on this kernel, and that are failures for that alone */
	json_t *statuses;    /* {"p.a.send RETRY_EXC_ERR": in how many}: other than SUCCESS */
	uint64_t late_ns;    /* of its witness timers, at most; UINT64_MAX: not known */
	const json_t *shown; /* the entry that says most: the first that fails, else deviates, else could not be told, else any */
};

/* How a case or a time changed; the word of `change` in the document. */
enum change {
	CHANGE_ALIKE,
	CHANGE_REGRESSION,
	CHANGE_UNTOLD,
	CHANGE_UNHELD,
	CHANGE_IMPROVEMENT,
	CHANGE_OTHER,
	CHANGE_INCOMPARABLE,
	NUM_CHANGES,
};
extern const char *const change_names[NUM_CHANGES];

struct change_why {
	enum change change;
	char text[512];
};

/* id and entries as report_groups() has them. */
void compare_case_init(struct compare_case *c, const struct report_run *run, const json_t *entries);
void compare_case_release(struct compare_case *c);
/* How many times it was judged. */
unsigned compare_told(const struct compare_case *c);
/* "pass", "18 pass, 2 fail". Returns buf. */
char *compare_ends(const struct compare_case *c, char *buf, size_t size);
/* What became of a case that both runs have; profile_differs: excuses may be others. */
struct change_why compare_change(const struct compare_case *older, const struct compare_case *newer, bool profile_differs);
/* The finding that shows best what changed: of deviations one that is not among the known ({"id":...}; NULL: none is). NULL: none
 * does. Borrowed. */
const json_t *compare_finding(const struct compare_case *c, const json_t *known);

/* How likely it is at most that two things that fail equally often show failures as unevenly as a of m and b of n, or more so
 * (Fisher's exact test, one-sided: b of n is too many). */
double compare_chance(unsigned a, unsigned m, unsigned b, unsigned n);

/* A phase of one recovery in one case. */
struct compare_times;
struct compare_times *compare_times_new(void);
void compare_times_free(struct compare_times *t);
/* The phases of a case that both runs have. */
void compare_times_add(struct compare_times *t, const char *id, const struct compare_case *older, const struct compare_case *newer);
/*
 * `times` of the document. A phase is slower or faster where all its times in one run lie beyond all of those in the other, and
 * the medians differ by more than half; and that even after what says nothing about the device is taken off: the ratio by which
 * most phases differ (the machine), the timers' granularity, and how late this machine was in that case, as its witness timers
 * tell: once where both runs repeated the case often, else as often as a recovery waits. Only what both repeated often, on one
 * host and as many lanes, is a regression.
 * why: what makes the runs' times no matter to compare ("accel tcg, then kvm"); NULL: nothing. same: the hosts and lanes are.
 */
json_t *compare_times_judge(struct compare_times *t, uint64_t granularity_ns, bool same, const char *why);

#define COMPARE_OFTEN 8 /* repetitions: that all of 8 lie beyond all of 8 is chance once in 12870 */
#define COMPARE_WAITS 8 /* of a recovery, each of which may have been late */

#endif
