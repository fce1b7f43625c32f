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

/* What decides quickly that a rule does not mean a packet, one cache line for each rule, side by side. */
struct wire_quick {
	uint64_t order;
	uint32_t classes;
	uint32_t agent, pair; /* agent 0: `from` does not decide */
	bool careful;         /* everything goes to the rule itself */
	bool psn_decides;
	int64_t psn_min, psn_max;
	uint64_t wrong_class, wrong_from, wrong_psn; /* refused here */
};
_Static_assert(sizeof(struct wire_quick) == 64, "one cache line");

struct wire_rule {
	struct action action; /* first, so that an action leads to its rule */
	uint64_t order;       /* 1, 2, …: rules run in this order */
	uint64_t reached;
	bool anything; /* empty match and an action that takes what is not RoCEv2 */
	bool spent;
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
void wire_rule_quick(const struct wire_rule *r, struct wire_quick *ret);
/* Has to be asked again after each packet that the rule itself looked at. */
static inline bool wire_rule_careful(const struct wire_rule *r)
{
	return r->spent || r->action.watching;
}
/* Its held packets must be gone. */
void wire_rule_free(struct wire_rule *r);
void wire_rule_hit(struct wire_rule *r, uint64_t n);
json_t *wire_rule_report(const struct wire_rule *r, const struct wire_quick *q, const struct wire_names *names);

#endif
