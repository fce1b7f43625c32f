/* SPDX-License-Identifier: MIT */
/*
 * Which packets a rule means:
 * {"from":["a"|"p.a",…],"pair":["p",…],"class":…,"opcode":…,"syndrome":…,"size":…,"psn":…,"transmission":…,"nth":…,"every":n}. Each
 * may be left out. A name may stand alone or in a list (a syndrome may be a number, too); a range is an integer or
 * {"op":"range","min":2,"max":5} (max may be left out), or
 * {"op":">=","value":2}. `nth` and `every` count the packets for which all the rest holds.
 *
 * A match counts what it refused and why, so that a rule that never matched can say what it saw instead.
 */
#ifndef QD_WIRE_MATCH_H
#define QD_WIRE_MATCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "../harness/error.h"
#include "wire_conn.h"

enum wire_refusal {
	WIRE_MATCHED,
	WIRE_WRONG_CLASS,
	WIRE_WRONG_FROM,
	WIRE_WRONG_PAIR,
	WIRE_WRONG_OPCODE,
	WIRE_WRONG_SYNDROME, /* or it has none */
	WIRE_WRONG_SIZE,
	WIRE_UNKNOWN_CONNECTION, /* psn or transmission asked of a packet of no connection */
	WIRE_WRONG_PSN,
	WIRE_WRONG_TRANSMISSION,
	WIRE_WRONG_NTH,
	NUM_WIRE_REFUSALS,
};
extern const char *const wire_refusal_names[NUM_WIRE_REFUSALS]; /* the key: "class", "unknown_connection" */
extern const char *const wire_refusal_texts[NUM_WIRE_REFUSALS]; /* "of another class" */

struct wire_range {
	bool set;
	int64_t min, max;
};

#define WIRE_NAMES_MAX 64

/* What is looked at for each packet stands first. */
struct wire_match {
	uint32_t classes; /* bits; all when it was left out */
	unsigned n_from, n_pairs;
	bool opcodes_set, syndromes_set;
	struct wire_from {
		unsigned pair, agent; /* pair 0: any */
	} first_from;                 /* from[0] once more */
	struct wire_range psn, transmission, size, nth;
	uint64_t every;
	uint64_t count; /* packets for which all but nth and every held */
	uint64_t refused[NUM_WIRE_REFUSALS];
	uint32_t opcodes[8], syndromes[8]; /* a bit for each */
	struct wire_from from[WIRE_NAMES_MAX];
	unsigned pairs[WIRE_NAMES_MAX];
};

/* What a match asks of a packet. */
struct wire_look {
	enum packet_class class;
	uint8_t opcode, syndrome;
	bool aeth;            /* it has a syndrome */
	unsigned pair, agent; /* names; pair 0: of no connection, and agent is then the port's */
	unsigned size;
	int64_t psn;
	unsigned transmission; /* 0: no relative PSN */
};

/* match may be NULL (all). A sentence in e, -EINVAL. */
int wire_match_parse(const json_t *match, struct wire_names *names, struct wire_match *ret, struct error *e);
/* Whether the sender, its pair, class, opcode and syndrome are those that are meant: the same for all packets that agree in them.
 */
enum wire_refusal wire_match_sender(const struct wire_match *m, const struct wire_look *look);
/* How many packets `nth` and `every` refuse before one could match. */
uint64_t wire_match_misses(const struct wire_match *m);
/* Counts. */
enum wire_refusal wire_match_try(struct wire_match *m, const struct wire_look *look);
/* True when the match names nothing. */
bool wire_match_is_empty(const struct wire_match *m);

#endif
