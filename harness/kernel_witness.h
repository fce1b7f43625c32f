/* SPDX-License-Identifier: MIT */
/*
 * How late timers are in this kernel, seen in one place for all lanes: two threads of the process that has the lanes tick, and the
 * lanes' processes read what they saw. A timer in each agent would see no more, and cost each lane hundreds of wake-ups a second,
 * for as long as a case waits.
 *
 * What they saw stands in memory that the processes share. An agent elsewhere has a timer of its own (agents/witness.h).
 */
#ifndef QD_KERNEL_WITNESS_H
#define QD_KERNEL_WITNESS_H

#include <jansson.h>
#include <stdint.h>

#include "error.h"
#include "hist.h"

struct kernel_witness;

/* For so many lanes. Before the lanes' processes are forked, and started after that: a thread is nothing to fork with. */
int kernel_witness_new(unsigned lanes, struct kernel_witness **ret, struct error *e);
int kernel_witness_start(struct kernel_witness *w, struct error *e);
/* Ends the threads that this process has started. */
void kernel_witness_free(struct kernel_witness *w);
/* What a tick of one of the two (0 and 1) does; by itself in tests. */
void kernel_witness_saw(struct kernel_witness *w, unsigned watch, uint64_t late_ns);

/* In the lane's process: a case begins; what was seen since then, lateness of ticks that are still to come included (new
 * reference). */
void kernel_witness_begin(struct kernel_witness *w, unsigned lane);
json_t *kernel_witness_json(const struct kernel_witness *w, unsigned lane);

/* {"witness":true,"samples","late_max_ns","late_p99_ns","period_ns"}, as in formats.md. New reference. */
json_t *witness_record(const struct hist *late, uint64_t period_ns);

#endif
