/* SPDX-License-Identifier: MIT */
#include "resources.h"

#include <stdlib.h>
#include <string.h>

/* A page here and there comes and goes; of the heap what waits to be written does. */
#define ANON_STEP_BYTES (32 * 1024)
#define HEAP_STEP_BYTES (2 * 1024)
#define QUARTERS 4

int64_t resources_warm_up(int64_t rounds)
{
	return rounds / 10 > 2 ? rounds / 10 : 2;
}

/* The last of the rounds that fall into the same of LOOKS_MAX equal parts. */
bool resources_is_due(int64_t rounds, int64_t round)
{
	int64_t first = resources_warm_up(rounds), looks = rounds - first;

	if (looks > RESOURCES_LOOKS_MAX)
		looks = RESOURCES_LOOKS_MAX;
	if (round <= first || round > rounds || looks <= 0)
		return round == first;
	return (round - first) * looks / (rounds - first) != (round - 1 - first) * looks / (rounds - first);
}

bool resources_is_memory(const char *what)
{
	size_t len = strlen(what);

	return len > 6 && !strcmp(what + len - 6, "_bytes");
}

int64_t resources_step_bytes(const char *what)
{
	return strcmp(what, "heap_bytes") ? ANON_STEP_BYTES : HEAP_STEP_BYTES;
}

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int64_t median(const int64_t *values, size_t n)
{
	int64_t sorted[RESOURCES_LOOKS_MAX + 1];

	n = n < sizeof(sorted) / sizeof(*sorted) ? n : sizeof(sorted) / sizeof(*sorted);
	memcpy(sorted, values, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_value);
	return sorted[n / 2];
}

static struct resources_trend memory_trend(const char *what, const int64_t *rounds, const int64_t *values, size_t n)
{
	struct resources_trend t = { .grew = true };
	size_t begin[QUARTERS + 1];
	int64_t step = resources_step_bytes(what), before = 0;
	double apart;

	for (size_t q = 0; q <= QUARTERS; q++)
		begin[q] = n * q / QUARTERS;
	for (size_t q = 0; q < QUARTERS; q++) {
		int64_t now = median(values + begin[q], begin[q + 1] - begin[q]);

		t.grew = t.grew && (!q || now - before > step);
		t.from = q ? t.from : now;
		t.to = before = now;
	}
	apart = (double)(median(rounds + begin[QUARTERS - 1], n - begin[QUARTERS - 1]) - median(rounds, begin[1]));
	t.per_round = apart > 0 ? (double)(t.to - t.from) / apart : 0;
	return t;
}

struct resources_trend resources_trend(const char *what, const int64_t *rounds, const int64_t *values, size_t n)
{
	struct resources_trend t = { .from = values[0], .to = values[n - 1] };
	int64_t apart = rounds[n - 1] - rounds[0];

	if (resources_is_memory(what) && n >= QUARTERS)
		return memory_trend(what, rounds, values, n);
	t.per_round = apart > 0 ? (double)(t.to - t.from) / (double)apart : 0;
	t.grew = !resources_is_memory(what) && t.to > t.from;
	return t;
}
