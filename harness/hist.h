/* SPDX-License-Identifier: MIT */
/*
 * Durations in logarithmic buckets, 1/16 of an octave-step wide at most: quantiles good to 7 %.
 *
 * One thread adds; others, also in other processes, may read meanwhile, and see each number as it was at one time.
 */
#ifndef QD_HIST_H
#define QD_HIST_H

#include <stdint.h>

#define HIST_SUB 16u
#define HIST_BUCKETS (64u * HIST_SUB)

struct hist {
	uint64_t count, max;
	uint32_t n[HIST_BUCKETS];
};

void hist_add(struct hist *h, uint64_t value);
/* The value that a share of permille / 1000 does not exceed; never above the maximum. 0 when empty. */
uint64_t hist_quantile(const struct hist *h, unsigned permille);
/* Adds what came to now since before was copied from it. The maximum is that of all of now. */
void hist_add_since(struct hist *sum, const struct hist *now, const struct hist *before);

#endif
