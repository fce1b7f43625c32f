/* SPDX-License-Identifier: MIT */
/*
 * Two runs of the same scenarios, an older and a newer one: what became worse, what better, what else is different. This is how a
 * kernel or a firmware is judged. Pure over two run folders.
 *
 * What counts, case by case (repetitions of a case are one):
 *   regression    it fails where it did not; or it deviates from the specification where it did not, excused by the profile or not
 *   untold        it was judged, and now cannot be: inconclusive, a harness error, or the run ended before it
 *   unheld        it fails, and the older run says nothing about it: the case is new, was skipped, or could not be judged
 *   improvement   the reverse of a regression
 *   other         anything else that differs: another way to fail, another deviation in place of one, another status where the
 *                 scenario allows both, skipped now, the same deviation where the profile has not heard of this kernel yet
 *   incomparable  it ended otherwise, but was not the same test: its scenario, or --set, is another one
 *   alike
 * Times of the phases of recoveries: see compare_times().
 */
#ifndef QD_COMPARE_H
#define QD_COMPARE_H

#include "report.h"

/* The document that `qpdrill compare --json` prints (formats.md). -ENODATA: they have no case in common, and e says what each
 * has. */
int compare_runs(const struct report_run *older, const struct report_run *newer, json_t **ret, struct error *e);
/* For people: what it comes to, what differs about the runs, regressions at length, then the rest. */
void compare_text(const json_t *doc, FILE *out, bool colour);
/* 1: a regression; 3: none, but something that was judged could not be any more; else 0. */
int compare_exit_status(const json_t *doc);

#endif
