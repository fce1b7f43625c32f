/* SPDX-License-Identifier: MIT */
#include "wire_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "wire_path_internal.h"

void wire_path_flush(struct wire_path *w, unsigned port)
{
	struct out *o = &w->out[port];
	unsigned sent = o->n ? w->ports[port]->ops->send(w->ports[port], o->frames, o->n) : 0;

	w->account[!port].out += sent;
	w->account[!port].lost += o->n - sent;
	for (unsigned i = 0; i < o->n; i++)
		free(o->owned[i]);
	o->n = 0;
}

static void leave(struct wire_path *w, const struct wire_item *it, struct wire_parked *owner)
{
	unsigned port = !it->a.port;
	struct out *o = &w->out[port];

	if (o->n == OUT_MAX)
		wire_path_flush(w, port);
	o->owned[o->n] = owner;
	o->frames[o->n++] = (struct iovec){ .iov_base = it->a.frame, .iov_len = it->a.len };
}

/* ---- what is told of a packet ---- */

/* Of a connection that only looks on: no rule means it. */
static bool is_aside(const struct wire_item *it)
{
	return it->place.conn && it->place.conn->aside;
}

/* as_it_came: before a rule changed it. */
static void tell(struct wire_path *w, const struct wire_item *it, bool as_it_came, bool late, enum wire_fate fate, uint64_t n)
{
	const struct wire_place *place = as_it_came ? &w->came.place : &it->place;
	bool plain = fate == WIRE_PASSED && !it->n_touched && place->transmission <= 1 && !it->icrc_bad;

	if (!it->roce || is_aside(it) || !wire_report_wants(&w->report, plain))
		return;
	struct wire_sight s = {
		.t_ns = it->late ? w->now.mono_ns : it->a.t_ns,
		.n = n,
		.of = late && !it->late ? it->n : it->of,
		.port = it->a.port,
		.port_name = w->port_names[it->a.port],
		.frame = it->a.frame,
		.outer = as_it_came ? &w->came.outer : NULL,
		.p = as_it_came ? &w->came.p : &it->a.p,
		.place = place,
		.fate = fate,
		.late = late,
		.icrc_bad = it->icrc_bad,
		.n_touched = it->n_touched,
	};

	memcpy(s.touched, it->touched, sizeof s.touched);
	wire_report_packet(&w->report, &s);
}

static const char *comment_of(const struct wire_path *w, const struct wire_item *it, enum wire_fate fate, char *buf, size_t size)
{
	int at = snprintf(buf, size, "qpdrill: %s", wire_fate_names[fate]);

	for (unsigned i = 0; i < it->n_touched && at > 0 && (size_t)at < size; i++)
		at += snprintf(buf + at, size - (size_t)at, "%s%s", i ? ", " : " by ", wire_name_text(&w->names, it->touched[i]));
	if (it->of && it->late && at > 0 && (size_t)at < size)
		snprintf(buf + at, size - (size_t)at, "; came in as packet %llu", (unsigned long long)it->of);
	return buf;
}

/* A frame as it leaves, where that is not as it came in. */
static uint64_t capture_sent(struct wire_path *w, const struct wire_item *it, enum wire_fate fate)
{
	char comment[WIRE_CAPTURE_COMMENT_MAX];
	uint64_t n = w->capture ? wire_capture_begin(w->capture, !it->a.port, true, w->now.real_ns, it->a.frame, it->a.len) : 0;

	if (n)
		wire_capture_end(w->capture, comment_of(w, it, fate, comment, sizeof comment));
	return n;
}

/* An arrival is told as it came; what a rule made of it once more, as it left. */
static void tell_both(struct wire_path *w, const struct wire_item *it, enum wire_fate fate, uint64_t n)
{
	bool other = it->changed && !it->late;

	tell(w, it, other, it->late, fate, n);
	if (other && fate == WIRE_CHANGED)
		tell(w, it, false, true, fate, n);
}

/* The packet has come to its end here; owner is its memory when that is not the port's. */
static void finish(struct wire_path *w, struct wire_item *it, enum wire_fate fate, struct wire_parked *owner)
{
	struct wire_account *account = &w->account[it->a.port];
	char comment[WIRE_CAPTURE_COMMENT_MAX];
	uint64_t n = it->n;

	if (fate == WIRE_PASSED)
		fate = it->invented ? WIRE_INVENTED : it->late ? WIRE_RELEASED : it->changed ? WIRE_CHANGED : WIRE_PASSED;
	if (!it->late && it->n)
		wire_capture_end(w->capture, it->n_touched ? comment_of(w, it, fate, comment, sizeof comment) : NULL);
	if (fate == WIRE_EATEN || fate == WIRE_KEPT) {
		account->eaten += fate == WIRE_EATEN;
		tell_both(w, it, fate, n);
		free(owner);
		return;
	}
	if (it->late || it->changed) {
		uint64_t sent = capture_sent(w, it, fate);

		n = it->late ? sent : n;
	}
	leave(w, it, owner);
	tell_both(w, it, fate, n);
}

/* ---- rules ---- */

static void place_item(struct wire_item *it)
{
	const struct wire_place *pl = &it->place;

	it->a.known = pl->conn != NULL;
	if (!pl->conn)
		return;
	it->a.pair = pl->conn->pair;
	it->a.life = pl->conn->life;
	it->a.psn = pl->psn;
	it->a.zero_psn = pl->stream->start;
	it->a.from = (struct action_end){ pl->conn->end[pl->from].qpn, pl->conn->end[pl->from].stream.start };
	it->a.to = (struct action_end){ pl->conn->end[!pl->from].qpn, pl->conn->end[!pl->from].stream.start };
}

/* A changed packet is another one for the rules behind; a connection that it no longer fits stays its own. */
static void read_again(struct wire_path *w, struct wire_item *it)
{
	struct wire_place place;

	if (!it->changed && !it->late)
		w->came = (struct wire_came){ it->a.p, it->place, w->came.outer };
	it->changed = true;
	if (packet_decode(it->a.frame, it->a.len, &it->a.p) != PACKET_ROCE)
		return;
	wire_conns_look(&w->conns, it->a.frame, &it->a.p, &place);
	if (place.conn && place.conn == it->place.conn) {
		place.transmission = it->place.transmission;
		it->place = place;
		place_item(it);
	}
}

static struct wire_look look_at(const struct wire_path *w, const struct wire_item *it)
{
	const struct wire_conn *conn = it->place.conn;

	return (struct wire_look){
		.class = it->a.p.class,
		.opcode = it->a.p.opcode,
		.syndrome = it->a.p.syndrome,
		.aeth = it->a.p.ext[PACKET_AETH] != 0,
		.pair = conn ? conn->pair : 0,
		.agent = conn ? conn->end[it->place.from].agent : w->port_names[it->a.port],
		.size = it->a.p.payload_bytes,
		.psn = it->place.psn,
		.transmission = it->place.transmission ? it->place.transmission : it->place.has_psn,
	};
}

static void touch(struct wire_item *it, const struct wire_rule *r)
{
	if (it->n_touched < WIRE_TOUCHED_MAX)
		it->touched[it->n_touched++] = r->name;
}

static enum action_result hit(struct wire_item *it, struct wire_rule *r, enum action_result result)
{
	if (result == ACTION_MISS) {
		r->unfit++;
		return result;
	}
	wire_rule_hit(r, it->late ? it->of : it->n);
	touch(it, r);
	return result;
}

static enum action_result try_rule(struct wire_path *w, struct wire_item *it, struct wire_rule *r, const struct wire_look *look)
{
	struct action *a = &r->action;
	bool matched = false;

	if (!r->spent) {
		r->reached += it->roce;
		matched = it->roce ? wire_match_try(&r->match, look) == WIRE_MATCHED : r->anything;
	}
	if (matched) {
		if (it->roce && !it->changed && !it->late)
			w->came.outer = packet_outer(it->a.frame, &it->a.p);
		return hit(it, r, a->ops->apply(a, &it->a));
	}
	if (!a->watching || !a->ops->seen || (!it->roce && !a->ops->anything))
		return ACTION_PASS;
	enum action_result result = a->ops->seen(a, &it->a);

	if (result != ACTION_EAT)
		return result;
	return r->spent ? ACTION_PASS : hit(it, r, result);
}

/* Where the whole link has gone dark, what only looks on is lost as well; it is no hit of the rule. */
static void pass_aside(struct wire_path *w, struct wire_item *it, struct wire_parked *owner)
{
	for (unsigned i = 0; i < w->chain.n; i++) {
		struct wire_rule *r = w->chain.rules[i];
		struct action *a = &r->action;

		if (r->order <= it->after || r->spent || !a->watching || !a->ops->seen || a->ops->seen(a, &it->a) != ACTION_EAT)
			continue;
		touch(it, r);
		finish(w, it, WIRE_EATEN, owner);
		return;
	}
	finish(w, it, WIRE_PASSED, owner);
}

/* What follows from a rule's answer. True: the packet has come to its end. */
static bool settle(struct wire_path *w, struct wire_item *it, bool changed, enum action_result result, struct wire_look *look,
		   struct wire_parked *owner)
{
	if (changed)
		wire_chain_changed(&w->chain);
	switch (result) {
	case ACTION_EAT:
		finish(w, it, WIRE_EATEN, owner);
		return true;
	case ACTION_TAKE:
		finish(w, it, WIRE_KEPT, owner);
		return true;
	case ACTION_CHANGE:
		read_again(w, it);
		*look = look_at(w, it);
		return false;
	default:
		return false;
	}
}

static void ask_all(struct wire_path *w, struct wire_item *it, unsigned from, struct wire_look *look, struct wire_parked *owner)
{
	wire_chain_ask_all(&w->chain);
	for (unsigned i = from; i < w->chain.n; i++) {
		struct wire_rule *r = w->chain.rules[i];
		bool was_spent = r->spent;

		if (r->order <= it->after)
			continue;
		enum action_result result = try_rule(w, it, r, look);

		if (settle(w, it, r->spent != was_spent, result, look, owner))
			return;
	}
	finish(w, it, WIRE_PASSED, owner);
}

/* Only the rules that packets of its kind have to ask; once one of them has done something the packet is of no kind any more. */
static void ask_some(struct wire_path *w, struct wire_item *it, struct wire_kind *k, struct wire_look *look,
		     struct wire_parked *owner)
{
	for (unsigned n = 0; n < k->n_asked; n++) {
		unsigned at = k->asked[n];
		struct wire_rule *r = w->chain.rules[at];
		bool was_spent = r->spent;
		enum action_result result = try_rule(w, it, r, look);

		if (r->spent == was_spent && (result == ACTION_PASS || result == ACTION_MISS))
			continue;
		wire_chain_stopped(&w->chain, k, at);
		if (!settle(w, it, r->spent != was_spent, result, look, owner))
			ask_all(w, it, at + 1, look, owner);
		return;
	}
	wire_chain_passed(&w->chain, k);
	finish(w, it, WIRE_PASSED, owner);
}

static void run_chain(struct wire_path *w, struct wire_item *it, struct wire_parked *owner)
{
	struct wire_look look = { 0 };
	struct wire_kind *k = NULL;

	w->current = it;
	if (is_aside(it)) {
		pass_aside(w, it, owner);
		return;
	}
	if (it->roce)
		look = look_at(w, it);
	if (it->roce && !it->after)
		k = wire_chain_kind(&w->chain, &look);
	if (k)
		ask_some(w, it, k, &look, owner);
	else
		ask_all(w, it, 0, &look, owner);
}

void wire_path_run_ready(struct wire_path *w)
{
	while (w->ready) {
		struct wire_parked *p = w->ready;

		DL_DELETE(w->ready, p);
		w->account[p->item.a.port].kept--;
		run_chain(w, &p->item, p);
	}
}

/* ---- what actions ask for ---- */

static struct wire_rule *rule_of(struct action *a)
{
	return (struct wire_rule *)a;
}

static int park(struct wire_path *w, struct wire_rule *r, struct wire_parked *p, uint64_t after_ns)
{
	if (after_ns == ACTION_FOREVER) {
		DL_APPEND(r->held, p);
		r->n_held++;
	} else if (after_ns == 0) {
		DL_APPEND(w->ready, p);
	} else {
		p->due_ns = w->now.mono_ns + after_ns;
		if (wire_park_add(&w->park, p)) {
			free(p);
			return -ENOMEM;
		}
	}
	w->account[p->item.a.port].kept++;
	return 0;
}

/* A copy of the present packet, with what the action made of it. */
static int park_copy(struct wire_path *w, struct wire_rule *r, const struct action_packet *packet, uint64_t after_ns, bool invented)
{
	struct wire_item item = *w->current;

	item.a = *packet;
	item.after = r->order;
	item.of = w->current->late ? w->current->of : w->current->n;
	item.n = 0;
	item.late = true;
	item.invented |= invented;
	touch(&item, r);
	struct wire_parked *p = wire_parked_new(&item, packet->frame, packet->len);

	if (!p || park(w, r, p, after_ns))
		return -ENOMEM;
	if (invented) {
		r->invented++;
		w->account[item.a.port].invented++;
		packet_decode(p->data, p->item.a.len, &p->item.a.p);
	}
	return 0;
}

static int env_take(void *wire, struct action *a, const struct action_packet *packet, uint64_t after_ns)
{
	return park_copy(wire, rule_of(a), packet, after_ns, false);
}

static int env_copy(void *wire, struct action *a, const struct action_packet *packet, uint64_t after_ns)
{
	return park_copy(wire, rule_of(a), packet, after_ns, true);
}

static void env_let_go(void *wire, struct action *a, unsigned max)
{
	wire_path_let_go(wire, rule_of(a), max);
}

void wire_path_let_go(struct wire_path *w, struct wire_rule *r, unsigned max)
{
	for (; max && r->held; max--) {
		struct wire_parked *p = r->held;

		DL_DELETE(r->held, p);
		DL_APPEND(w->ready, p);
		r->n_held--;
	}
}

static int env_invent(void *wire, struct action *a, unsigned port, const uint8_t *frame, size_t len, uint64_t after_ns)
{
	struct wire_path *w = wire;
	struct wire_rule *r = rule_of(a);
	struct wire_item item = {
		.after = r->order, .of = w->current->late ? w->current->of : w->current->n, .late = true, .invented = true
	};

	item.a.port = port;
	item.a.t_ns = w->now.mono_ns;
	item.roce = packet_decode(frame, len, &item.a.p) == PACKET_ROCE;
	if (item.roce) {
		wire_conns_look(&w->conns, frame, &item.a.p, &item.place);
		place_item(&item);
	}
	touch(&item, r);
	struct wire_parked *p = wire_parked_new(&item, frame, len);

	if (!p || park(w, r, p, after_ns))
		return -ENOMEM;
	r->invented++;
	w->account[port].invented++;
	return 0;
}

/* ---- arrivals ---- */

static void tell_malformed(struct wire_path *w, const struct wire_item *it)
{
	json_t *rec = json_pack("{s:I, s:s, s:s, s:s, s:s, s:s, s:i, s:s}", "t", (json_int_t)it->a.t_ns, "kind", "packet", "obj",
				"?", "from", wire_name_text(&w->names, w->port_names[it->a.port]), "class", "malformed", "why",
				it->a.p.why, "count", 1, "fate", "passed");

	if (it->n)
		json_object_set_new(rec, "n", json_integer((json_int_t)it->n));
	if (w->report.mode == WIRE_REPORT_NONE)
		json_decref(rec);
	else
		w->report.record(w->report.user, rec);
}

static void arrive(struct wire_path *w, unsigned port, const struct wire_buf *buf)
{
	struct wire_account *account = &w->account[port];
	struct wire_item it;
	int64_t offset = (int64_t)(w->now.real_ns - w->now.mono_ns);

	memset(&it, 0, sizeof it);
	it.a.frame = buf->data;
	it.a.len = buf->len;
	it.a.port = port;
	it.real_ns = buf->real_ns ? buf->real_ns : w->now.real_ns;
	it.a.t_ns = (uint64_t)((int64_t)it.real_ns - offset);
	if (it.a.t_ns > w->now.mono_ns)
		it.a.t_ns = w->now.mono_ns;
	account->in++;
	it.roce = packet_decode(buf->data, buf->len, &it.a.p) == PACKET_ROCE;
	if (w->capture)
		it.n = it.a.n = wire_capture_begin(w->capture, port, false, it.real_ns, buf->data, buf->len);
	if (it.roce) {
		account->roce++;
		account->classes[it.a.p.class]++;
		wire_conns_place(&w->conns, buf->data, &it.a.p, &it.place);
		place_item(&it);
		if (w->check_icrc && packet_icrc_compute(buf->data, &it.a.p) != packet_icrc_carried(buf->data, &it.a.p)) {
			it.icrc_bad = true;
			account->icrc_bad++;
		}
	} else if (it.a.p.kind == PACKET_MALFORMED) {
		account->malformed++;
		tell_malformed(w, &it);
	}
	if (it.roce || w->n_anything)
		run_chain(w, &it, NULL);
	else
		finish(w, &it, WIRE_PASSED, NULL);
	if (w->ready)
		wire_path_run_ready(w);
}

unsigned wire_path_pump(struct wire_path *w, unsigned port, struct wire_clock now)
{
	struct wire_buf bufs[WIRE_BURST];
	struct wire_link *l = w->ports[port];

	w->now = now;
	unsigned n = l->ops->receive(l, bufs, WIRE_BURST);

	for (unsigned i = 0; i < n; i++)
		arrive(w, port, &bufs[i]);
	wire_path_flush(w, !port);
	wire_path_flush(w, port);
	l->ops->done(l);
	return n;
}

uint64_t wire_path_next(const struct wire_path *w)
{
	uint64_t next = wire_park_next(&w->park);

	return w->expires_ns < next ? w->expires_ns : next;
}

void wire_path_due(struct wire_path *w, struct wire_clock now)
{
	struct wire_parked *p;

	w->now = now;
	while ((p = wire_park_take(&w->park, now.mono_ns)))
		DL_APPEND(w->ready, p);
	for (unsigned i = 0; i < w->chain.n; i++) {
		struct wire_rule *r = w->chain.rules[i];

		if (r->expires_ns > now.mono_ns)
			continue;
		r->expires_ns = UINT64_MAX;
		r->spent = true;
		r->action.watching = false;
		wire_chain_changed(&w->chain);
		w->report.record(w->report.user, json_pack("{s:I, s:s, s:s, s:s}", "t", (json_int_t)now.mono_ns, "kind", "rule",
							   "as", wire_name_text(&w->names, r->name), "phase", "expired"));
		wire_path_let_go(w, r, UINT32_MAX);
	}
	wire_path_find_expiry(w);
	wire_path_run_ready(w);
	wire_path_flush(w, 0);
	wire_path_flush(w, 1);
}

const struct action_env wire_path_env = { .take = env_take, .copy = env_copy, .let_go = env_let_go, .invent = env_invent };
