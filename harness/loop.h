/* SPDX-License-Identifier: MIT */
/*
 * Straight-line code over an event loop: callbacks only note what came; the one that waits runs the
 * loop until its condition holds or its deadline passes. Timers have accuracy 1 us.
 */
#ifndef QD_LOOP_H
#define QD_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

/* Runs the loop until done(user) is true (returns 0), deadline_ns (absolute, CLOCK_MONOTONIC) passes
 * (-ETIMEDOUT) or the loop fails. done is asked once before the first wait. Not to be called from a
 * callback of the same loop. */
int loop_wait(sd_event *loop, bool (*done)(void *user), void *user, uint64_t deadline_ns);

/* A one-shot timer at an absolute time; cb as sd-event has it. The source is the caller's. */
int loop_timer(sd_event *loop, uint64_t at_ns, sd_event_time_handler_t cb, void *user, sd_event_source **ret);

#endif
