/* SPDX-License-Identifier: MIT */
/*
 * Writes observations.jsonl: fills in what every record carries (v n t clk src boot lane step iter) and writes whole lines, several
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
	/* So long a record may wait for others: the file can be on another machine's disk, where a write is dear. 0: none waits.
	 * Its owner calls recorder_flush() when recorder_due() has come, and before anything that may not return. */
	uint64_t lag_ns;
};

/* Truncates path. The strings are copied. */
int recorder_open(const struct recorder_options *o, struct recorder **ret, struct error *e);
void recorder_close(struct recorder *r); /* NULL is fine */

/* From now on records belong to this step (0 before the first, -1 after the last); iter "" outside repeat. */
void recorder_step(struct recorder *r, int step, const char *iter);
/* Completes rec in place and writes it, or keeps it up to lag_ns. A `t` that is there stays; clk NULL is the controller's own; src
 * as formats.md has it. Returns 0 or the errno of the first write that failed (it stays: a file with a hole must not be judged as
 * whole). */
int recorder_write(struct recorder *r, const char *src, const char *clk, json_t *rec);
/* The same for a record that came as text, `{...}`, and was not changed since: to put it together again costs more than the rest.
 */
int recorder_write_text(struct recorder *r, const char *src, const char *clk, json_t *rec, const char *text, size_t len);
/* The same for one of `count` records (many.h) that nobody has read yet. *ret_more: what the recorder has put to it, a new
 * reference.
 */
int recorder_write_unread(struct recorder *r, const char *src, const char *clk, const char *text, size_t len, uint64_t count,
			  json_t **ret_more);
/* Writes what waits. Returns as recorder_write(). */
int recorder_flush(struct recorder *r);
/* When what waits is to be written; UINT64_MAX: nothing waits. */
uint64_t recorder_due(const struct recorder *r);
/* 0 or the first error. */
int recorder_error(const struct recorder *r);
/* How many records were written. */
uint64_t recorder_count(const struct recorder *r);

/* Clock domain of this process: boot id plus time namespace ("BOOTID/TIMENS"). Returns buf. */
char *recorder_clock_domain(char *buf, size_t size);

#endif
