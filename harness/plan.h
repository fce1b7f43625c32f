/* SPDX-License-Identifier: MIT */
/*
 * From a case document to plan.json: defaults filled in, ends resolved, objects laid out, PSNs chosen
 * from the seed, deadlines and budget computed. Pure: same input, same bytes. Shape: formats.md.
 */
#ifndef QD_PLAN_H
#define QD_PLAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "error.h"
#include "scenario.h"
#include "units.h"

/* The pair that looks on, and what its agents' names begin with: no file has such names. */
#define PLAN_BYSTANDER "bystander"

/* How long the traffic that verifies a recovery may take. */
#define PLAN_CHECK_NS (15 * NSEC_PER_SEC)
/* How long an end waits to hear that a connection of rdma_cm is closed. */
#define PLAN_LEAVE_NS (2 * NSEC_PER_SEC)

struct plan_options {
	uint64_t seed;
	const char *const *set; /* "qp.timeout=18" strings, NULL-terminated, or NULL */
	const char *file;       /* recorded as is */
};

int plan_make(const struct scenario_case *c, const struct plan_options *o, json_t **ret_plan, struct error *e);

/* The objects of a plan by name; borrowed, NULL when absent. */
const json_t *plan_qp(const json_t *plan, const char *name);
const json_t *plan_find(const json_t *plan, const char *array, const char *name);
/* The bystander's own name, or that of one of its agents, ends, devices ("dev.") or sources ("agent/"). NULL is not. */
bool plan_is_bystander(const char *name);
/* The step with this number, members of repeat and together included. */
const json_t *plan_step(const json_t *plan, int n);

/* How the device finds out, and the window of the first error WC that follows (design "Time"). */
enum detection {
	DETECTION_INVALID,
	DETECTION_LOCAL,
	DETECTION_NAK,
	DETECTION_SEQ_NAK,
	DETECTION_RNR,
	DETECTION_SILENT,
	DETECTION_NONE,
	NUM_DETECTIONS,
};
extern const char *const detection_names[NUM_DETECTIONS]; /* "local" "nak" "seq-nak" "rnr" "silent" "none" */

/* "At once" (local, nak, a first RNR NAK that is fatal): one round trip and a completion's way up, generous for emulation. */
#define WINDOW_AT_ONCE_NS 250000000ULL

struct window {
	uint64_t low_ns;  /* not earlier than this */
	uint64_t high_ns; /* not later; UINT64_MAX: no bound */
	bool high_warns;  /* beyond high is a warning only (rnr) */
	bool never;       /* timeout 0, rnr_retry 7: it cannot come */
};

/* attr: the requester's queried or planned attributes (timeout, retry_cnt, rnr_retry), peer_attr the responder's
 * (min_rnr_timer). seen_start: something shows when the timer last started (a wire); without it the lower bound of
 * `silent` is retry_cnt x T. What is given is the specification's: measured lateness and a profile's timer granularity are
 * added by the caller. Sources: IBTA C9-140 to C9-143, 9.7.5.2.8. */
struct window plan_window(enum detection d, const json_t *attr, const json_t *peer_attr, bool seen_start);
/* What a profile's `timing` makes of it: the grid that the provider's timers are on, the least that they can do, and that it has a
 * scheme of its own. How many waits the window is made of; 0: none. */
unsigned plan_window_timing(struct window *w, enum detection d, const json_t *attr, const json_t *peer_attr, const json_t *timing);
/* How a device finds out what it tells by this status, where no fault says otherwise. */
enum detection plan_detection(const char *status);

#endif
