/* SPDX-License-Identifier: MIT */
/*
 * The phases of a recovery, from what broke the connection to traffic as it was before, by what is on record. Pure: a function of
 * plan and records.
 *
 * All times are on the controller's clock. What an agent of another clock has said is known within the bound of its offset alone,
 * and that bound goes with the time.
 */
#ifndef QD_PHASES_H
#define QD_PHASES_H

#include "observe_model.h"

enum phase {
	PHASE_SYMPTOM,  /* the wire saw something that an undisturbed transfer has not */
	PHASE_ERROR,    /* the first completion that is no SUCCESS, but for what the recovery itself has flushed */
	PHASE_DRAINED,  /* nothing is in flight */
	PHASE_TOLD,     /* the peer knows */
	PHASE_RTS,      /* all ends are in RTS */
	PHASE_GOOD,     /* the first SUCCESS after it */
	PHASE_VERIFIED, /* traffic has gone both ways and was intact */
	PHASE_FULL,     /* traffic like one before it was at 90 % of that one's rate */
	NUM_PHASES,
};
extern const char *const phase_names[NUM_PHASES]; /* as `expect: { phase: {} }` has them */

struct phase_time {
	bool reached;
	uint64_t t, bound_ns;
};

/* One run of a `recover` step. Of several attempts the last one's. */
struct phases {
	size_t inst;
	const char *path, *pair; /* the first of them */
	unsigned pairs;
	int attempts;
	const char *since; /* what start is: "fault" "post" "modify" "error" "recovery" */
	const char *fault; /* its name; "" */
	struct phase_time start, begin, at[NUM_PHASES];
};

/* False when no recovery began in that run of a step. */
bool phases_of(const struct model *m, size_t inst, struct phases *ret);
/* How long a phase took: the first two from `start`, the others from the beginning of the recovery. False: it was not reached. */
bool phases_took(const struct phases *p, enum phase phase, uint64_t *ret_ns, uint64_t *ret_bound_ns);
/* The newest recovery before a run of a step, of the steps with that name where one is given; M_NONE. */
size_t phases_before(const struct model *m, const char *as, size_t inst);

/* What verdict.json has: `phases` (an array, at most PHASES_MAX) and `phase_times` (of all). New references; NULL: no recovery ran.
 */
#define PHASES_MAX 32
void phases_json(const struct model *m, json_t **ret_phases, json_t **ret_times);

/* {"n","min_ns","median_ns","p99_ns","max_ns"} of a distribution; sorts v. n is at least 1. */
json_t *phases_spread(uint64_t *v, size_t n);

#endif
