/* SPDX-License-Identifier: MIT */
/*
 * Writes observations.jsonl: fills in what every record carries (v n t clk src boot lane step iter) and writes each line at once,
 * with one write(), so that what a killed controller or a dead kernel leaves behind is whole lines and at most one torn end.
 */
#ifndef QD_RECORD_H
#define QD_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "error.h"

struct recorder;

struct recorder_options {
	const char *path;
	const char *clk; /* the controller's clock domain */
	int boot, lane;
};

/* Truncates path. The strings are copied. */
int recorder_open(const struct recorder_options *o, struct recorder **ret, struct error *e);
void recorder_close(struct recorder *r); /* NULL is fine */

/* From now on records belong to this step (0 before the first, -1 after the last); iter "" outside repeat. */
void recorder_step(struct recorder *r, int step, const char *iter);
/* Completes rec in place and writes it. A `t` that is there stays; clk NULL is the controller's own; src as formats.md has it.
 * Returns 0 or the errno of the first write that failed (it stays: a file with a hole must not be judged as whole). */
int recorder_write(struct recorder *r, const char *src, const char *clk, json_t *rec);
/* While held, records are kept in memory; letting go writes them in one piece. Nothing may wait in between. */
void recorder_hold(struct recorder *r, bool on);
/* 0 or the first error. */
int recorder_error(const struct recorder *r);
/* How many records were written. */
uint64_t recorder_count(const struct recorder *r);

/* Clock domain of this process: boot id plus time namespace ("BOOTID/TIMENS"). Returns buf. */
char *recorder_clock_domain(char *buf, size_t size);

#endif
