/* SPDX-License-Identifier: MIT */
/*
 * Which connection a packet belongs to, and its place in it. The wire is told of each connection (both QPNs, addresses, first PSNs,
 * life); a pair has one connection per life, and former lives stay known, because their packets may still come.
 *
 * Names (of pairs, agents and ports) are numbered, so that matching compares numbers. Number 0 is no name.
 */
#ifndef QD_WIRE_CONN_H
#define QD_WIRE_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "../harness/packet.h"

/* Names in both directions. */
struct wire_names {
	char **text;
	unsigned n, room;
};
/* The number of a name, made when it is new; 0 when there is no memory. */
unsigned wire_name(struct wire_names *names, const char *text);
const char *wire_name_text(const struct wire_names *names, unsigned id); /* "" for 0 */
void wire_names_release(struct wire_names *names);

/* How often each of the last PSNs came by, per class. */
#define WIRE_WINDOW 2048
struct wire_window {
	struct {
		uint32_t psn;   /* relative, low half */
		uint16_t count; /* 0: empty */
	} slots[WIRE_WINDOW];
};

struct wire_run;

/* The requests of one end, and what answers them. */
struct wire_stream {
	uint32_t start; /* absolute PSN of relative 0 */
	int64_t high;   /* the highest relative PSN that a request had */
	struct wire_window *windows[NUM_PACKET_CLASSES];
};

struct wire_end {
	unsigned agent; /* name */
	uint8_t addr[16];
	uint32_t qpn;
	struct wire_stream stream;
	struct wire_run *run; /* of packets that this end sent (wire_report.h) */
};

struct wire_conn {
	unsigned pair; /* name */
	unsigned life;
	bool aside; /* no rule means its packets, and no record tells of them */
	struct wire_end end[2];
	struct wire_conn *next; /* all connections, newest first */
};

struct wire_conns {
	struct wire_conn *all;
	struct wire_target *targets;    /* by source, destination and QPN */
	struct wire_target *recent[16]; /* by the QPN's low bits: spares hashing */
};

/* Where a packet belongs. conn NULL: to no connection. */
struct wire_place {
	struct wire_conn *conn;
	unsigned from; /* index of the end that sent it */
	struct wire_stream *stream;
	int64_t psn; /* relative; 0 where has_psn is not set (a CNP) */
	bool has_psn;
	unsigned transmission; /* from 1; 2 also for one that is too old to be counted. 0 without a PSN */
};

/* Adds a connection (copied; streams' windows and runs empty). -EEXIST: this pair has this life already. */
int wire_conns_add(struct wire_conns *c, const struct wire_conn *conn, struct wire_conn **ret);
/* Forgets all lives of a pair; 0: all pairs. */
void wire_conns_remove(struct wire_conns *c, unsigned pair);
/* Finds the place of a RoCE packet and counts it there. */
void wire_conns_place(struct wire_conns *c, const uint8_t *frame, const struct packet *p, struct wire_place *ret);
/* The same without counting: transmission is 0, and nothing gets ahead. */
void wire_conns_look(struct wire_conns *c, const uint8_t *frame, const struct packet *p, struct wire_place *ret);
void wire_conns_release(struct wire_conns *c);

/* An address as IPv4, IPv6 or a GID that maps one: 16 bytes. 0 or -EINVAL. */
int wire_address(const char *text, uint8_t ret[16]);

#endif
