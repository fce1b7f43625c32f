/* SPDX-License-Identifier: MIT */
/*
 * How late timers are in this kernel, seen in one place for all lanes: two threads of the process that has the lanes tick, and the
 * lanes' processes read what they saw, in memory that they share. A timer in each agent costs each lane hundreds of wake-ups a
 * second, for as long as a case waits; where processors are emulated that is felt.
 *
 * It sees what a timer in each agent does where there is a watch for each processor, and agents have the same right to run as the
 * watches: elsewhere (more processors, another kernel, a launcher that may bind or throttle) agents have timers of their own
 * (agents/witness.h). Either sees a processor that stood still for less than its period only by chance.
 */
#ifndef QD_KERNEL_WITNESS_H
#define QD_KERNEL_WITNESS_H

#include <jansson.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "error.h"
#include "hist.h"

struct kernel_witness;

/* Whether there is a watch for each of these processors. */
bool kernel_witness_sees(const cpu_set_t *cpus);
/* The same of those that this process may use. */
bool kernel_witness_sees_all(void);
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
