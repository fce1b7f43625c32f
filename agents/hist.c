/* SPDX-License-Identifier: MIT */
#include "hist.h"

static unsigned bucket_of(uint64_t value)
{
	unsigned octave;

	if (value < HIST_SUB)
		return (unsigned)value;
	octave = 63u - (unsigned)__builtin_clzll(value); /* at least 4 */
	return (octave - 3) * HIST_SUB + (unsigned)(value >> (octave - 4)) % HIST_SUB;
}

static uint64_t bucket_top(unsigned bucket)
{
	unsigned octave = bucket / HIST_SUB + 3;

	if (bucket < HIST_SUB)
		return bucket;
	return (1ULL << octave) + (((uint64_t)(bucket % HIST_SUB) + 1) << (octave - 4)) - 1;
}

void hist_add(struct hist *h, uint64_t value)
{
	h->n[bucket_of(value)]++;
	h->count++;
	if (value > h->max)
		h->max = value;
}

uint64_t hist_quantile(const struct hist *h, unsigned permille)
{
	uint64_t want = (h->count * permille + 999) / 1000, sum = 0;

	for (unsigned i = 0; i < HIST_BUCKETS && h->count; i++) {
		sum += h->n[i];
		if (sum >= want && sum)
			return bucket_top(i) < h->max ? bucket_top(i) : h->max;
	}
	return h->max;
}
