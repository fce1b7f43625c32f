/* SPDX-License-Identifier: MIT */
/*
 * `run --pause-at STEP`: a case stops before one of its steps, so that somebody can look at what it has made, and goes on when it
 * is told to, or by itself after some time. What is to be done stands in the case's plan.json ("pause"); what was done is recorded
 * (kind `pause`). The case's own deadlines do not count the time, but the protocol's timers run on in the kernel: what fails after
 * a pause is no finding about the device (verdict_paused.c).
 */
#ifndef QD_PAUSE_H
#define QD_PAUSE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "error.h"

#define PAUSE_MAX_NS (600 * 1000000000ULL) /* without --pause-max */

/* Writes {"step":N,"max_ns":…} into the plan. text names a step: its number, its `as`, its line in the file (FILE:LINE or :LINE),
 * or what it does, where there is one such step. -ENOENT, or -EINVAL for a step that cannot be stopped before; a sentence in e. */
int pause_plan(json_t *plan, const char *text, uint64_t max_ns, struct error *e);
/* How long the plan lets the case stand at most; 0 for none. */
uint64_t pause_max_ns(const json_t *plan);

/* ---- who waits (run_pause.c) ---- */

/* Of a run: what is printed, and the word to go on (a line on standard input). */
struct run_pause {
	sd_event *loop;
	bool *go_on; /* becomes true */
	sd_event_source *input;
	char until[32]; /* how long at most, for people */
};

/* where: what the controller said, {"state":"paused","step":5,"what":"recover","line":14,"ends":[…],…}, or "resumed". look: a
 * command that enters where it runs, or NULL: it is this kernel. */
void run_pause_told(struct run_pause *p, const json_t *plan, const json_t *where, const char *look);
void run_pause_end(struct run_pause *p);

#endif
