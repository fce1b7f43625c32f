/* SPDX-License-Identifier: MIT */
#include "wire_report.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

const char *const wire_fate_names[NUM_WIRE_FATES] = {
	[WIRE_FATE_INVALID] = "invalid", [WIRE_PASSED] = "passed", [WIRE_CHANGED] = "changed",
	[WIRE_EATEN] = "eaten",          [WIRE_KEPT] = "kept",     [WIRE_RELEASED] = "released",
	[WIRE_INVENTED] = "invented",
};
const char *const wire_report_mode_names[NUM_WIRE_REPORT_MODES] = { "all", "touched", "none" };

static void set_int(json_t *rec, const char *key, int64_t v)
{
	json_object_set_new_nocheck(rec, key, json_integer(v));
}

static void set_text(json_t *rec, const char *key, const char *text)
{
	json_object_set_new_nocheck(rec, key, json_string(text));
}

static void set_address(json_t *rec, const char *key, const uint8_t addr[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	char text[INET6_ADDRSTRLEN] = "";

	if (!memcmp(addr, mapped, sizeof mapped))
		inet_ntop(AF_INET, addr + 12, text, sizeof text);
	else
		inet_ntop(AF_INET6, addr, text, sizeof text);
	set_text(rec, key, text);
}

/* What nobody asked for is left out: most packets go the plain way. */
static void add_outer(const struct packet_outer *outer, json_t *rec)
{
	for (int i = 0; i < NUM_PACKET_OUTER; i++)
		if (outer->v[i] != packet_outer_rows[i].usual)
			set_int(rec, packet_outer_rows[i].name, outer->v[i]);
}

/* Who sent it, and to whom when that is no connection's end. */
static json_t *new_record(const struct wire_names *names, const struct wire_run *run)
{
	json_t *rec = json_object();

	set_int(rec, "t", (int64_t)run->t_first_ns);
	set_text(rec, "kind", "packet");
	if (run->conn) {
		char obj[256];

		snprintf(obj, sizeof obj, "%s.%s", wire_name_text(names, run->conn->pair),
			 wire_name_text(names, run->conn->end[run->from].agent));
		set_text(rec, "obj", obj);
		set_int(rec, "life", run->conn->life);
		set_text(rec, "pair", wire_name_text(names, run->conn->pair));
		set_text(rec, "from", wire_name_text(names, run->conn->end[run->from].agent));
		if (run->class != PACKET_CLASS_CNP)
			set_int(rec, "psn", run->psn);
	} else {
		set_text(rec, "obj", "?");
		set_text(rec, "from", wire_name_text(names, run->port_name));
		set_int(rec, "dest_qpn", run->dest_qp);
		set_address(rec, "src", run->src);
		set_address(rec, "dst", run->dst);
		set_int(rec, "psn_raw", run->psn);
	}
	set_text(rec, "class", packet_class_names[run->class]);
	if (run->op)
		set_text(rec, "opcode", run->op->name);
	else
		set_int(rec, "opcode", run->opcode);
	set_int(rec, "size", run->size);
	if (run->op && run->op->headers & 1u << PACKET_AETH)
		set_int(rec, "syndrome", run->syndrome);
	if (run->ack_req)
		json_object_set_new_nocheck(rec, "ack_req", json_true());
	add_outer(&run->outer, rec);
	if (run->n_first)
		set_int(rec, "n", (int64_t)run->n_first);
	return rec;
}

/* What happened to it, or to all of a run alike. */
static void add_fate(const struct wire_names *names, const struct wire_run *run, json_t *rec)
{
	if (run->transmission)
		set_int(rec, "transmission", run->transmission);
	set_text(rec, "fate", wire_fate_names[run->fate]);
	set_int(rec, "count", (int64_t)run->count);
	if (run->icrc_bad)
		set_text(rec, "icrc", "bad");
	if (!run->n_touched)
		return;
	json_t *rules = json_array();

	for (unsigned i = 0; i < run->n_touched; i++)
		json_array_append_new(rules, json_string(wire_name_text(names, run->touched[i])));
	json_object_set_new_nocheck(rec, "rules", rules);
}

static void end_run(struct wire_report *r, struct wire_run *run)
{
	if (!run->open)
		return;
	json_t *rec = new_record(r->names, run);

	add_fate(r->names, run, rec);
	if (run->count > 1) {
		set_int(rec, "t_last", (int64_t)run->t_last_ns);
		if (run->n_last)
			set_int(rec, "n_last", (int64_t)run->n_last);
	}
	run->open = false;
	DL_DELETE(r->open, run);
	r->record(r->user, rec);
}

static void fill_run(struct wire_run *run, const struct wire_sight *s)
{
	const struct packet *p = s->p;

	run->conn = s->place->conn;
	run->from = s->place->from;
	run->port_name = s->port_name;
	run->op = p->op;
	run->class = p->class;
	run->opcode = p->opcode;
	run->syndrome = p->syndrome;
	run->size = p->payload_bytes;
	run->ack_req = p->ack_req;
	run->outer = s->outer ? *s->outer : packet_outer(s->frame, p);
	run->dest_qp = p->dest_qp;
	run->psn = s->place->conn ? s->place->psn : p->psn;
	run->count = 1;
	run->transmission = s->place->transmission;
	run->fate = s->fate;
	run->icrc_bad = s->icrc_bad;
	run->n_touched = s->n_touched;
	memcpy(run->touched, s->touched, s->n_touched * sizeof *s->touched);
	run->n_first = run->n_last = s->n;
	run->t_first_ns = run->t_last_ns = s->t_ns;
	if (!run->conn)
		packet_addresses(s->frame, p, run->src, run->dst);
}

static bool continues(const struct wire_run *run, const struct wire_sight *s)
{
	const struct packet *p = s->p;
	int64_t psn = s->place->conn ? s->place->psn : p->psn;
	struct packet_outer outer = s->outer ? *s->outer : packet_outer(s->frame, p);

	return run->open && run->conn == s->place->conn && run->conn && run->op == p->op && run->opcode == p->opcode &&
	       run->class == p->class && run->syndrome == p->syndrome && run->size == p->payload_bytes &&
	       run->ack_req == p->ack_req && !memcmp(&run->outer, &outer, sizeof outer) &&
	       run->transmission == s->place->transmission && run->fate == s->fate && run->icrc_bad == s->icrc_bad &&
	       run->n_touched == s->n_touched && !memcmp(run->touched, s->touched, s->n_touched * sizeof *s->touched) &&
	       (psn == run->psn + (int64_t)run->count || p->class == PACKET_CLASS_CNP);
}

/* A copy, a forged packet, or what was kept and goes on: each is told by itself. */
static void single(struct wire_report *r, const struct wire_sight *s)
{
	struct wire_run run = { 0 };

	fill_run(&run, s);
	json_t *rec = new_record(r->names, &run);

	add_fate(r->names, &run, rec);
	if (s->late)
		json_object_set_new_nocheck(rec, "late", json_true());
	if (s->of)
		set_int(rec, "of", (int64_t)s->of);
	r->record(r->user, rec);
}

static struct wire_run *run_of(struct wire_report *r, const struct wire_sight *s)
{
	if (!s->place->conn)
		return &r->stranger[s->port];
	struct wire_end *end = &s->place->conn->end[s->place->from];

	if (!end->run)
		end->run = calloc(1, sizeof *end->run);
	return end->run;
}

void wire_report_packet(struct wire_report *r, const struct wire_sight *s)
{
	bool plain = s->fate == WIRE_PASSED && !s->n_touched && s->place->transmission <= 1 && !s->icrc_bad;

	if (!wire_report_wants(r, plain))
		return;
	struct wire_run *run = run_of(r, s);

	if (run && !s->late && continues(run, s)) {
		run->count++;
		run->n_last = s->n;
		run->t_last_ns = s->t_ns;
		return;
	}
	if (run)
		end_run(r, run);
	if (!run || s->late) {
		single(r, s);
		return;
	}
	fill_run(run, s);
	run->open = true;
	DL_APPEND(r->open, run);
}

void wire_report_flush(struct wire_report *r, uint64_t t_ns)
{
	struct wire_run *run, *next;

	DL_FOREACH_SAFE(r->open, run, next)
	if (run->t_first_ns <= t_ns)
		end_run(r, run);
}
