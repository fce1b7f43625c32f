/* SPDX-License-Identifier: MIT */
/*
 * When what is held does not grow with the rounds of a repeat. The first rounds are a warm-up: pools are filled, files opened once.
 * After it, looks are taken at rounds spread evenly, the last round among them.
 *
 * What is counted (RDMA objects of each agent and of each device, open files) is after the last round no more than after the
 * warm-up. Memory moves by itself: it has grown when each quarter of the looks has a median above that of the quarter before by
 * more than one step; a burst lifts one of them.
 */
#ifndef QD_RESOURCES_H
#define QD_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESOURCES_ROUNDS_MIN 10
#define RESOURCES_LOOKS_MAX 32

/* The round after which the first look is taken. */
int64_t resources_warm_up(int64_t rounds);
/* A look is taken after this round (from 1). */
bool resources_is_due(int64_t rounds, int64_t round);
/* `what` is memory: "heap_bytes", "anon_bytes". */
bool resources_is_memory(const char *what);
/* By how much more from quarter to quarter memory has grown. */
int64_t resources_step_bytes(const char *what);

struct resources_trend {
	int64_t from, to; /* the first look's and the last look's; of memory the medians of the first and the last quarter */
	double per_round; /* what that is, each round */
	bool grew;
};

/* values[i] is what was held after round[i]. n >= 1; memory with less than 4 looks has not grown. */
struct resources_trend resources_trend(const char *what, const int64_t *rounds, const int64_t *values, size_t n);

#endif
