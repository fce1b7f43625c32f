/* SPDX-License-Identifier: MIT */
/* What wire_path.c (packets) and wire_path_rules.c (what the owner says) share. */
#ifndef QD_WIRE_PATH_INTERNAL_H
#define QD_WIRE_PATH_INTERNAL_H

#include "wire_chain.h"
#include "wire_park.h"
#include "wire_path.h"

#define OUT_MAX (2 * WIRE_BURST)

struct out {
	struct iovec frames[OUT_MAX];
	struct wire_parked *owned[OUT_MAX];
	unsigned n;
};

struct wire_came {
	struct packet p;
	struct wire_place place;
	struct packet_outer outer;
};

struct wire_path {
	struct wire_link *ports[2];
	unsigned port_names[2];
	struct wire_names names;
	struct wire_conns conns;
	struct wire_report report;
	struct wire_capture *capture;
	struct action_env env;
	struct wire_chain chain;
	unsigned n_anything; /* rules that may mean what is not RoCEv2 */
	uint64_t order;
	uint64_t expires_ns; /* of the rule that expires first */
	bool check_icrc;
	struct wire_park park;
	struct wire_parked *ready; /* to go on as soon as the present packet is through */
	struct wire_item *current;
	struct wire_came came; /* the present arrival, before the first rule that changed it */
	struct wire_clock now;
	struct out out[2]; /* by the port where they leave */
	struct wire_account account[2];
};

extern const struct action_env wire_path_env; /* without its `wire` */
/* Sends what has been put out at this port. */
void wire_path_flush(struct wire_path *w, unsigned port);
/* Runs those whose turn came while another packet was looked at. */
void wire_path_run_ready(struct wire_path *w);
/* After a rule was added, cleared or has expired. */
void wire_path_find_expiry(struct wire_path *w);
/* Makes up to max of what a rule holds ready. */
void wire_path_let_go(struct wire_path *w, struct wire_rule *r, unsigned max);

#endif
