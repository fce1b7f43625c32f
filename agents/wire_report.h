/* SPDX-License-Identifier: MIT */
/*
 * Packets as records (formats: wire.md, "packet"). Packets that follow each other in one direction of a connection, alike, with
 * consecutive PSNs, sent for the first time and touched by no rule, become one record, as completions do.
 */
#ifndef QD_WIRE_REPORT_H
#define QD_WIRE_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "../harness/packet.h"
#include "wire_conn.h"

#define WIRE_TOUCHED_MAX 8

enum wire_fate {
	WIRE_FATE_INVALID,
	WIRE_PASSED,
	WIRE_CHANGED,
	WIRE_EATEN,
	WIRE_KEPT,     /* taken out of the stream; `released` follows */
	WIRE_RELEASED, /* what was kept goes on */
	WIRE_INVENTED, /* leaves, and never came in */
	NUM_WIRE_FATES,
};
extern const char *const wire_fate_names[NUM_WIRE_FATES];

enum wire_report_mode { WIRE_REPORT_ALL, WIRE_REPORT_TOUCHED, WIRE_REPORT_NONE, NUM_WIRE_REPORT_MODES };
extern const char *const wire_report_mode_names[NUM_WIRE_REPORT_MODES];

/* What is told of one packet. */
struct wire_sight {
	uint64_t t_ns;
	uint64_t n, of; /* number in the capture; of: that of the arrival of what is released or a copy; 0: none */
	unsigned port;  /* where it came in */
	unsigned port_name;
	const uint8_t *frame;
	const struct packet_outer *outer; /* as it came, where the frame is no longer; else NULL */
	const struct packet *p;
	const struct wire_place *place;
	enum wire_fate fate;
	bool late; /* no arrival: released, copied or forged */
	bool icrc_bad;
	unsigned touched[WIRE_TOUCHED_MAX], n_touched; /* names of rules */
};

struct wire_run {
	struct wire_run *prev, *next;
	bool open;
	const struct wire_conn *conn; /* NULL: of no connection */
	unsigned from, port_name;
	const struct packet_opcode *op;
	enum packet_class class;
	uint8_t opcode, syndrome;
	unsigned size;
	bool ack_req;
	struct packet_outer outer;
	uint32_t dest_qp;
	uint8_t src[16], dst[16];
	int64_t psn; /* of the first; absolute without a connection */
	uint64_t count, n_first, n_last, t_first_ns, t_last_ns;
	unsigned transmission;
	enum wire_fate fate;
	bool icrc_bad;
	unsigned touched[WIRE_TOUCHED_MAX], n_touched;
};

struct wire_report {
	const struct wire_names *names;
	enum wire_report_mode mode;
	void (*record)(void *user, json_t *rec); /* steals rec */
	void *user;
	struct wire_run *open;
	struct wire_run stranger[2]; /* of packets of no connection, per port */
};

/* plain: passed as it came, touched by nothing, for the first time. */
static inline bool wire_report_wants(const struct wire_report *r, bool plain)
{
	return r->mode == WIRE_REPORT_ALL || (r->mode == WIRE_REPORT_TOUCHED && !plain);
}
void wire_report_packet(struct wire_report *r, const struct wire_sight *s);
/* Ends the runs that were open before t_ns (UINT64_MAX: all). */
void wire_report_flush(struct wire_report *r, uint64_t t_ns);

#endif
