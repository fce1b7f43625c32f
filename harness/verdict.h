/* SPDX-License-Identifier: MIT */
/*
 * From plan, observations and profile to a verdict. Pure: the same files give the same bytes. Shape:
 * formats.md, "verdict.json". The standing checks are a const table of operations (verdict_checks.c and one file per check).
 */
#ifndef QD_VERDICT_H
#define QD_VERDICT_H

#include <jansson.h>
#include <stdbool.h>

#include "error.h"
#include "profile.h"

enum verdict {
	VERDICT_INVALID,
	VERDICT_PASS,
	VERDICT_DEVIATION,
	VERDICT_FAIL,
	VERDICT_INCONCLUSIVE,
	VERDICT_SKIP,
	VERDICT_ERROR,
	NUM_VERDICTS,
};
extern const char *const verdict_names[NUM_VERDICTS];

struct verdict_options {
	bool strict; /* deviations are failures */
};

/* records: array of record objects in order. torn: the file ended in the middle of a line. */
int verdict_judge(const json_t *plan, const json_t *records, bool torn, const struct profile *profile,
		  const struct verdict_options *o, json_t **ret_verdict, struct error *e);
/* What a record says, as people read it, without its time and its object. Returns buf. */
char *verdict_words(const json_t *record, char *buf, size_t size);
/* Exit status of a run from the counts of its verdicts (index: enum verdict). A run of zero is an error (3). */
int verdict_exit_status(const unsigned counts[NUM_VERDICTS]);

#endif
