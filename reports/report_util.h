/* SPDX-License-Identifier: MIT */
/* What the formats share. */
#ifndef QD_REPORT_UTIL_H
#define QD_REPORT_UTIL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct report_counts {
	unsigned pass, deviation, fail, inconclusive, skip, error;
};

struct report_run;

struct report_counts report_count(const struct report_run *run);
/* What passes, what does not: a deviation passes, inconclusive and error do not. */
unsigned report_passed(const struct report_counts *c);
unsigned report_failed(const struct report_counts *c);
/* How long a case took: its verdict's own, else what the runner measured. */
uint64_t report_duration(const json_t *entry);
/* The command that runs just this case again. Returns buf. */
char *report_repeat(const json_t *run, const char *id, char *buf, size_t size);
/* One "    name      text" line, escaped; nothing when there is no text. Newlines in it become further lines. */
__attribute__((format(printf, 3, 4))) void report_line(FILE *out, const char *name, const char *fmt, ...);
/* Where a finding is: "scenarios/x.yaml:12: step 4, expect, round 7: payload at p.b". Returns buf. */
char *report_where(const json_t *plan, const json_t *finding, char *buf, size_t size);
/* What report_text_failure() says, without colour: the text that every format gives. Caller frees; NULL when out of memory. */
char *report_failure(const json_t *run, const json_t *entry);
/* "" where json_str gives NULL. */
const char *report_str(const json_t *obj, const char *key);

/* How much of an id is the case's own, without the ~rN of a repetition. */
size_t report_base_length(const char *id);
/* {"case": [entries of run->cases]}, the repetitions of a case together, in the order of the run. New reference. */
json_t *report_groups(const struct report_run *run);
/* False where the run ended before it. */
bool report_ran(const json_t *entry);
/* [{"case","repeat","ran","flaky","verdicts":{"pass":18,"fail":2},"duration":{spread},"phases":{"error":{spread}}}] of what was
 * repeated, in the order of the run (report_repeat.c); spreads as phases.h has them. New reference. */
json_t *report_repeats(const struct report_run *run);
/* "18 pass, 2 fail". Returns buf. */
char *report_verdicts(const json_t *repeat, char *buf, size_t size);

/* An entry of `phases` of a verdict in one line. Returns buf. */
char *report_phases(const json_t *phases, char *buf, size_t size);

#endif
