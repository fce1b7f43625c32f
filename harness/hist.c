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
	uint32_t *n = &h->n[bucket_of(value)];

	__atomic_store_n(n, *n + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&h->count, h->count + 1, __ATOMIC_RELAXED);
	if (value > h->max)
		__atomic_store_n(&h->max, value, __ATOMIC_RELAXED);
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

void hist_add_since(struct hist *sum, const struct hist *now, const struct hist *before)
{
	uint64_t max = __atomic_load_n(&now->max, __ATOMIC_RELAXED);

	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		uint32_t n = __atomic_load_n(&now->n[i], __ATOMIC_RELAXED) - before->n[i];

		sum->n[i] += n;
		sum->count += n;
	}
	if (max > sum->max)
		sum->max = max;
}
