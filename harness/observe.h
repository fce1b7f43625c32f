/* SPDX-License-Identifier: MIT */
/*
 * A model of what has been seen so far, built record by record. The controller feeds it live to know
 * when an expectation is settled; the verdict feeds it again from the file to judge. Pure: no I/O, no clock.
 */
#ifndef QD_OBSERVE_H
#define QD_OBSERVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "profile.h"

struct model;

enum expect_state {
	EXPECT_INVALID,
	EXPECT_PENDING,
	EXPECT_MET,    /* holds; for one with `for`: holds so far */
	EXPECT_BROKEN, /* can no longer hold */
	NUM_EXPECT_STATES,
};

/* plan and profile are borrowed for the model's life; profile may be NULL. */
int model_new(const json_t *plan, const struct profile *profile, struct model **ret);
void model_free(struct model *m);
void model_feed(struct model *m, const json_t *record);

/* How an `expect` (or `allow`) step stands now. now_ns: time of the newest record or of the asking. ret_why (may be
 * NULL): new reference, {"expected":"…","seen":"…","at":"…","deviations":[ids],"likely":[ids of entries that would
 * excuse it, had this kernel been seen]}. Does not take anything. Feed the step's `begin` record first: states, counters
 * and payload count only when a record after it says so. PENDING may turn into MET by time alone (an event that the profile
 * says never comes, a range in a pattern): ask again every 20 ms or so, and once at the deadline. */
enum expect_state model_expect(struct model *m, const json_t *step, uint64_t now_ns, json_t **ret_why);
/* The step is over: completions and events that it named are taken from those still unexplained. */
void model_settle(struct model *m, const json_t *step);
/* What a pending expectation needs next that only asking gives: any of these is true when the step speaks of it. */
struct model_needs {
	bool state; /* query the QPs in `at` */
	bool counter;
	bool payload; /* verify the named post or traffic */
	bool packets; /* have the wire hand over what it has seen */
	bool hits;    /* ask the named fault for its evidence */
};
struct model_needs model_expect_needs(const json_t *step);
/* WRs of a QP that have no end yet (both queues). */
unsigned model_in_flight(const struct model *m, const char *qp);
/* The wr_ids etc. of a named post are known to the model; how many of its WRs have completed, and how many accepted. */
void model_post_progress(const struct model *m, const char *as, unsigned *ret_accepted, unsigned *ret_completed);

#endif
