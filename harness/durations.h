/* SPDX-License-Identifier: MIT */
/*
 * How long each case took when it last ran, remembered in the cache folder: the longest are begun first. Only the order depends on
 * it, so that a file that is missing, damaged or written by two runs at once does no harm.
 */
#ifndef QD_DURATIONS_H
#define QD_DURATIONS_H

#include <jansson.h>
#include <stdint.h>

/* New reference; empty when there is nothing to remember. */
json_t *durations_load(void);
/* What a case is thought to take; one that has never run is thought to take long, in the measure of its budget. Repetitions (~rN)
 * of a case are one. */
uint64_t durations_expect(const json_t *d, const char *case_id, uint64_t budget_ns);
void durations_note(json_t *d, const char *case_id, uint64_t ns);
void durations_save(const json_t *d);

#endif
