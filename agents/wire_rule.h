/* SPDX-License-Identifier: MIT */
/* One rule of the wire: a match, an action, how long it lasts, and what it has done. */
#ifndef QD_WIRE_RULE_H
#define QD_WIRE_RULE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "../faults/action.h"
#include "wire_match.h"
#include "wire_park.h"

#define WIRE_HITS_MAX 256

struct wire_rule {
	struct action action; /* first, so that an action leads to its rule */
	uint64_t order;       /* 1, 2, …: rules run in this order */
	uint64_t reached;
	bool anything; /* empty match and an action that takes what is not RoCEv2 */
	bool spent;
	bool counted; /* packets are counted for it without asking (wire_chain.h) */
	struct wire_match match;
	json_t *json; /* as given */
	unsigned name;
	uint64_t times;                  /* 0: no bound */
	uint64_t expires_ns;             /* UINT64_MAX: never */
	uint64_t hits, invented, unfit;  /* unfit: matched, but the action could not be done to it */
	uint64_t packets[WIRE_HITS_MAX]; /* numbers in the capture of the first hits that have one */
	unsigned n_packets;
	struct wire_parked *held; /* in order */
	uint64_t n_held;
};

/* Shape: wire_path_rule(). env is borrowed. */
int wire_rule_new(const json_t *rule, struct wire_names *names, const struct action_env *env, uint64_t order, uint64_t now_ns,
		  struct wire_rule **ret, struct error *e);
/* Its held packets must be gone. */
void wire_rule_free(struct wire_rule *r);
void wire_rule_hit(struct wire_rule *r, uint64_t n);
json_t *wire_rule_report(const struct wire_rule *r, const struct wire_names *names);

#endif
