/* SPDX-License-Identifier: MIT */
/*
 * The path of a packet through the wire: in at one port, through the rules in order, out at the other; with accounts that must add
 * up: in + invented = out + eaten + kept + lost, for each direction (0: came in at port 0).
 *
 * It has no clock and no loop: its owner says when a port is readable and what time it is. One thread.
 */
#ifndef QD_WIRE_PATH_H
#define QD_WIRE_PATH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "../faults/action.h"
#include "../harness/error.h"
#include "wire_capture.h"
#include "wire_conn.h"
#include "wire_link.h"
#include "wire_report.h"

struct wire_path;

struct wire_clock {
	uint64_t mono_ns; /* now */
	uint64_t real_ns;
};

struct wire_account {
	uint64_t in, out, eaten, invented, lost;
	uint64_t kept; /* now */
	uint64_t roce, malformed, icrc_bad;
	uint64_t classes[NUM_PACKET_CLASSES];
};

/* Ports are borrowed. record gets packet records (stolen). */
int wire_path_new(struct wire_link *const ports[2], const char *const names[2], void (*record)(void *user, json_t *rec), void *user,
		  struct wire_path **ret);
/* What is kept is lost with it. NULL is fine. */
void wire_path_free(struct wire_path *w);

/* Carries up to one burst that came in at this port. Returns how many came in. */
unsigned wire_path_pump(struct wire_path *w, unsigned port, struct wire_clock now);
/* When wire_path_due() has something to do next; UINT64_MAX: never. */
uint64_t wire_path_next(const struct wire_path *w);
void wire_path_due(struct wire_path *w, struct wire_clock now);

int wire_path_connect(struct wire_path *w, const struct wire_conn *conn, struct error *e);
void wire_path_disconnect(struct wire_path *w, const char *pair); /* NULL: all */

/*
 * Adds a rule behind all others: {"as","match"{},"action", its arguments, "times"n,"for"ns}. times: so many hits, then it is spent;
 * for: so long, from now. -EEXIST: `as` is taken; -EINVAL with a sentence.
 */
int wire_path_rule(struct wire_path *w, const json_t *rule, struct wire_clock now, struct error *e);
/* Takes a rule away and sends on what it held. *ret: its report. -ENOENT. */
int wire_path_clear(struct wire_path *w, const char *as, struct wire_clock now, json_t **ret);
/* {"as","action","active","hits","packets":[n…],"reached","invented","kept","refused"{},"why"}: why only without a hit. New
 * reference; NULL: no such rule. */
json_t *wire_path_rule_report(struct wire_path *w, const char *as);
json_t *wire_path_rules(struct wire_path *w); /* all of them, in order */

/* From now on packets go into this capture; NULL: none. Borrowed. */
void wire_path_capture(struct wire_path *w, struct wire_capture *c);
void wire_path_check_icrc(struct wire_path *w, bool check);
struct wire_report *wire_path_report(struct wire_path *w);
struct wire_names *wire_path_names(struct wire_path *w);
const struct wire_account *wire_path_account(const struct wire_path *w, unsigned direction);
/* 0 when in + invented - out - eaten - kept - lost is 0. */
int64_t wire_path_unaccounted(const struct wire_path *w, unsigned direction);

#endif
