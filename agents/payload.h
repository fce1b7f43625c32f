/* SPDX-License-Identifier: MIT */
/* What lies in memory, by pattern. */
#ifndef QD_PAYLOAD_H
#define QD_PAYLOAD_H

#include <jansson.h>
#include <stdint.h>

#include "../harness/pattern.h"

#define PAYLOAD_LETTERS_MAX 256u

struct tally {
	uint64_t seen[NUM_PATTERN_SEEN];
	char letters[PAYLOAD_LETTERS_MAX + 1]; /* i a p s, one per message */
	unsigned n_letters;
	uint64_t twice; /* that are there once more than they should */
};

void tally_add(struct tally *t, enum pattern_seen seen);
/* {total intact absent partial stale indices}, and twice where there are any */
json_t *tally_json(const struct tally *t);

#endif
