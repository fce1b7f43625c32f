/* SPDX-License-Identifier: MIT */
/*
 * What the wire does to a packet. An action is one file in this folder with one `const struct action_ops`, listed in
 * action_table.c. It decides about one packet at a time and never calls the wire: what it needs of it comes through struct
 * action_env. Loader, help, wire and docs read the same table.
 *
 * A rule of the wire is a match and an action. For each packet the rules run in the order in which they were added; one that
 * matches hands the packet to its action, and what the action lets through goes on to the next rule, changed as it is. Copies and
 * inventions enter the chain behind the rule that made them.
 *
 * Times are ns of CLOCK_MONOTONIC. Everything runs in the wire's one thread.
 */
#ifndef QD_ACTION_H
#define QD_ACTION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../harness/error.h"
#include "../harness/packet.h"
#include "fault.h"

#define ACTION_FOREVER UINT64_MAX

enum action_result {
	ACTION_INVALID,
	ACTION_MISS,   /* it could not be done to this packet (no such header): no hit, the packet goes on */
	ACTION_PASS,   /* goes on as it is */
	ACTION_CHANGE, /* goes on, changed */
	ACTION_EAT,    /* gone */
	ACTION_TAKE,   /* env->take() has it */
	NUM_ACTION_RESULTS,
};

/* One end of a connection. */
struct action_end {
	uint32_t qpn;
	uint32_t psn; /* first PSN of its requests */
};

/* A packet on its way. The frame may be changed in place, up to len; len may shrink. */
struct action_packet {
	uint8_t *frame;
	size_t len;
	struct packet p;     /* kind OTHER only for actions with `anything` */
	unsigned port;       /* 0 or 1: where it came in; it leaves at the other */
	uint64_t t_ns;       /* when it came in */
	uint64_t n;          /* its number in the capture, 0 without one */
	bool known;          /* belongs to a connection that the wire was told of; else everything below is 0 */
	unsigned pair, life; /* the pair's number here and the life of the connection */
	int64_t psn;         /* relative to the first PSN of the requester */
	uint32_t zero_psn;   /* the absolute PSN of relative 0 */
	struct action_end from, to;
};

struct action;

struct action_env {
	void *wire;
	/* Keeps the packet (copied) for so long, or until let_go (ACTION_FOREVER). 0 or -ENOMEM. */
	int (*take)(void *wire, struct action *a, const struct action_packet *p, uint64_t after_ns);
	/* The same with a copy, while the packet itself goes on. */
	int (*copy)(void *wire, struct action *a, const struct action_packet *p, uint64_t after_ns);
	/* Sends on up to max of those that wait for it, oldest first, behind the packet that is being looked at. */
	void (*let_go)(void *wire, struct action *a, unsigned max);
	/* A frame that never was, leaving at the port that is not `port`, as if it had come in there; copied. */
	int (*invent)(void *wire, struct action *a, unsigned port, const uint8_t *frame, size_t len, uint64_t after_ns);
};

struct action_ops {
	const char *name;
	const char *help;                 /* one line */
	const struct fault_param *params; /* beside match, times and for; ends with a row without a name */
	bool anything;                    /* with an empty match it also sees what is not RoCEv2 */
	/* Reads args into a->state. A sentence in e, -EINVAL. May be NULL. */
	int (*prepare)(struct action *a, const json_t *args, struct error *e);
	/* A packet that matched. */
	enum action_result (*apply)(struct action *a, struct action_packet *p);
	/* Any other packet that comes to the rule while a->watching; EAT counts as a hit. NULL when it never watches. */
	enum action_result (*seen)(struct action *a, struct action_packet *p);
};

struct action {
	const struct action_ops *ops;
	const struct action_env *env;
	const json_t *match; /* as given; may be NULL. Borrowed */
	bool watching;
	void *state; /* allocated by prepare, freed with free() by its owner */
};

extern const struct action_ops *const action_table[]; /* NULL-terminated, sorted by name */
const struct action_ops *action_find(const char *name);
/* Refuses unknown keys of args, missing ones, wrong types and values out of range. */
int action_check(const struct action_ops *ops, const json_t *args, struct error *e);

/* Arguments that have passed action_check(), with their defaults: numbers; durations in ns (an integer or "5ms"); sizes in bytes.
 */
int64_t action_int(const struct action_ops *ops, const json_t *args, const char *name);
const char *action_text(const struct action_ops *ops, const json_t *args, const char *name);

/*
 * New values for named fields of a packet (packet.h): {"pkey": 32767, "psn": "-1", "rkey": "^1"}. An integer or "0x..." is the new
 * value, "+n" and "-n" change the present one, "^n" flips bits. A PSN given as a number is relative to the connection.
 */
#define ACTION_FIELDS_MAX 16
struct action_fields {
	unsigned n;
	struct action_field {
		const struct packet_field *field;
		char how; /* '=' '+' '-' '^' */
		uint64_t value;
	} rows[ACTION_FIELDS_MAX];
};
int action_fields_parse(const json_t *map, struct action_fields *ret, struct error *e);
/* Changes the packet and mends its ICRC. False: one of the fields is not there, or the PSN of an unknown connection; nothing is
 * changed. */
bool action_fields_apply(const struct action_fields *fields, struct action_packet *p);

#endif
