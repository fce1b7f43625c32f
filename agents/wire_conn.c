/* SPDX-License-Identifier: MIT */
#include "wire_conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A request this far ahead of all others is a wrong PSN and no progress. */
#define PROGRESS_MAX (1 << 22)

struct target_key {
	uint8_t src[16], dst[16];
	uint32_t qpn;
};

/* One direction of all lives that share addresses and QPN, newest first. */
struct wire_target {
	struct target_key key;
	struct direction {
		struct wire_conn *conn;
		unsigned from;
		struct direction *next;
	} * first;
	UT_hash_handle hh;
};

unsigned wire_name(struct wire_names *names, const char *text)
{
	for (unsigned i = 0; i < names->n; i++)
		if (!strcmp(names->text[i], text))
			return i + 1;
	if (names->n == names->room) {
		unsigned room = names->room ? names->room * 2 : 16;
		char **grown = reallocarray(names->text, room, sizeof *grown);

		if (!grown)
			return 0;
		names->text = grown;
		names->room = room;
	}
	names->text[names->n] = strdup(text);
	return names->text[names->n] ? ++names->n : 0;
}

const char *wire_name_text(const struct wire_names *names, unsigned id)
{
	return id && id <= names->n ? names->text[id - 1] : "";
}

void wire_names_release(struct wire_names *names)
{
	for (unsigned i = 0; i < names->n; i++)
		free(names->text[i]);
	free(names->text);
	memset(names, 0, sizeof *names);
}

int wire_address(const char *text, uint8_t ret[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint8_t addr[16];

	if (inet_pton(AF_INET6, text, addr) == 1) {
		memcpy(ret, addr, 16);
		return 0;
	}
	if (inet_pton(AF_INET, text, addr) != 1)
		return -EINVAL;
	memcpy(ret, mapped, sizeof mapped);
	memcpy(ret + 12, addr, 4);
	return 0;
}

static int add_direction(struct wire_conns *c, struct wire_conn *conn, unsigned from)
{
	struct target_key key = { .qpn = conn->end[!from].qpn };
	struct wire_target *t = NULL;
	struct direction *d = malloc(sizeof *d);

	if (!d)
		return -ENOMEM;
	memcpy(key.src, conn->end[from].addr, 16);
	memcpy(key.dst, conn->end[!from].addr, 16);
	HASH_FIND(hh, c->targets, &key, sizeof key, t);
	if (!t) {
		t = calloc(1, sizeof *t);
		if (!t) {
			free(d);
			return -ENOMEM;
		}
		t->key = key;
		HASH_ADD(hh, c->targets, key, sizeof key, t);
	}
	*d = (struct direction){ .conn = conn, .from = from, .next = t->first };
	t->first = d;
	return 0;
}

/* Takes this connection's directions out of a target. */
static void remove_from(struct wire_target *t, const struct wire_conn *conn)
{
	struct direction **at = &t->first;

	while (*at) {
		struct direction *d = *at;

		if (d->conn != conn) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		free(d);
	}
}

static void remove_directions(struct wire_conns *c, const struct wire_conn *conn)
{
	struct wire_target *next, *t = c->targets;

	memset(c->recent, 0, sizeof c->recent);
	for (; t; t = next) {
		next = t->hh.next;
		remove_from(t, conn);
		if (t->first)
			continue;
		HASH_DEL(c->targets, t);
		free(t);
	}
}

static void free_conn(struct wire_conn *conn)
{
	for (unsigned e = 0; e < 2; e++) {
		for (int k = 0; k < NUM_PACKET_CLASSES; k++)
			free(conn->end[e].stream.windows[k]);
		free(conn->end[e].run);
	}
	free(conn);
}

int wire_conns_add(struct wire_conns *c, const struct wire_conn *conn, struct wire_conn **ret)
{
	for (const struct wire_conn *old = c->all; old; old = old->next)
		if (old->pair == conn->pair && old->life == conn->life)
			return -EEXIST;
	struct wire_conn *copy = malloc(sizeof *copy);

	if (!copy)
		return -ENOMEM;
	*copy = *conn;
	for (unsigned e = 0; e < 2; e++) {
		copy->end[e].run = NULL;
		copy->end[e].stream = (struct wire_stream){ .start = conn->end[e].stream.start & PACKET_PSN_MASK };
	}
	if (add_direction(c, copy, 0) || add_direction(c, copy, 1)) {
		remove_directions(c, copy);
		free_conn(copy);
		return -ENOMEM;
	}
	copy->next = c->all;
	c->all = copy;
	*ret = copy;
	return 0;
}

void wire_conns_remove(struct wire_conns *c, unsigned pair)
{
	for (struct wire_conn **at = &c->all; *at;) {
		struct wire_conn *conn = *at;

		if (pair && conn->pair != pair) {
			at = &conn->next;
			continue;
		}
		*at = conn->next;
		remove_directions(c, conn);
		free_conn(conn);
	}
}

void wire_conns_release(struct wire_conns *c)
{
	wire_conns_remove(c, 0);
}

static int64_t relative(const struct wire_stream *s, uint32_t psn)
{
	return s->high + packet_psn_diff(psn, (uint32_t)(s->start + s->high) & PACKET_PSN_MASK);
}

static struct wire_stream *stream_of(const struct direction *d, const struct packet *p)
{
	bool request = p->class == PACKET_CLASS_REQUEST || p->class == PACKET_CLASS_UNKNOWN;

	return &d->conn->end[request ? d->from : !d->from].stream;
}

static struct direction *find_direction(struct wire_conns *c, const uint8_t *frame, const struct packet *p)
{
	struct target_key key = { .qpn = p->dest_qp };
	struct wire_target *t = NULL;

	struct wire_target **recent = &c->recent[p->dest_qp % (sizeof c->recent / sizeof *c->recent)];

	packet_addresses(frame, p, key.src, key.dst);
	t = *recent;
	if (!t || memcmp(&t->key, &key, sizeof key))
		HASH_FIND(hh, c->targets, &key, sizeof key, t);
	if (!t)
		return NULL;
	*recent = t;
	struct direction *best = t->first;

	/* a QP that went through RESET has one number in several lives: the PSN tells which one a packet is of */
	for (struct direction *d = best->next; d && p->class != PACKET_CLASS_CNP; d = d->next) {
		const struct wire_stream *s = stream_of(d, p), *b = stream_of(best, p);

		if (llabs(relative(s, p->psn) - s->high) < llabs(relative(b, p->psn) - b->high))
			best = d;
	}
	return best;
}

static unsigned count_transmission(struct wire_stream *s, const struct packet *p, int64_t psn)
{
	struct wire_window **w = &s->windows[p->class];

	if (!*w)
		*w = calloc(1, sizeof **w);
	if (!*w)
		return 1;
	uint32_t low = (uint32_t)psn;
	unsigned i = low % WIRE_WINDOW;

	if ((*w)->slots[i].count && (*w)->slots[i].psn == low) {
		if ((*w)->slots[i].count < UINT16_MAX)
			(*w)->slots[i].count++;
		return (*w)->slots[i].count;
	}
	if ((*w)->slots[i].count && (int32_t)((*w)->slots[i].psn - low) > 0)
		return 2;
	(*w)->slots[i].psn = low;
	(*w)->slots[i].count = 1;
	return 1;
}

void wire_conns_look(struct wire_conns *c, const uint8_t *frame, const struct packet *p, struct wire_place *ret)
{
	const struct direction *d = c->targets ? find_direction(c, frame, p) : NULL;

	*ret = (struct wire_place){ 0 };
	if (!d)
		return;
	ret->conn = d->conn;
	ret->from = d->from;
	ret->stream = stream_of(d, p);
	ret->has_psn = p->class != PACKET_CLASS_CNP;
	ret->psn = ret->has_psn ? relative(ret->stream, p->psn) : 0;
}

void wire_conns_place(struct wire_conns *c, const uint8_t *frame, const struct packet *p, struct wire_place *ret)
{
	wire_conns_look(c, frame, p, ret);
	if (!ret->has_psn)
		return;
	ret->transmission = count_transmission(ret->stream, p, ret->psn);
	if (p->class == PACKET_CLASS_REQUEST && ret->psn > ret->stream->high && ret->psn - ret->stream->high < PROGRESS_MAX)
		ret->stream->high = ret->psn;
}
