/* SPDX-License-Identifier: MIT */
#include "wire_chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_MAX 1024
#define KINDS_MAX 64 /* of one key: they are tried one after the other */
#define NAMES_BITS 20
#define NEAR 64 /* a rule that may match within so many packets is asked */

int wire_chain_add(struct wire_chain *c, struct wire_rule *r)
{
	if (c->n == c->room) {
		unsigned room = c->room ? c->room * 2 : 16;
		struct wire_rule **grown =
			reallocarray(c->rules, room, sizeof *grown); /* NOLINT(bugprone-sizeof-expression): an array of pointers */

		if (!grown)
			return -ENOMEM;
		c->rules = grown;
		c->room = room;
	}
	wire_chain_changed(c);
	c->rules[c->n++] = r;
	wire_chain_changed(c);
	return 0;
}

struct wire_rule *wire_chain_remove(struct wire_chain *c, unsigned at)
{
	struct wire_rule *r = c->rules[at];

	wire_chain_changed(c);
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers */
	memmove(c->rules + at, c->rules + at + 1, (--c->n - at) * sizeof *c->rules);
	wire_chain_changed(c);
	return r;
}

void wire_chain_release(struct wire_chain *c)
{
	wire_chain_changed(c);
	for (unsigned i = 0; i < c->n; i++)
		wire_rule_free(c->rules[i]);
	free(c->rules);
	memset(c, 0, sizeof *c);
}

static void refuse(struct wire_rule *r, enum wire_refusal why, uint64_t packets)
{
	r->reached += packets;
	r->match.refused[why] += packets;
	if (why == WIRE_WRONG_NTH)
		r->match.count += packets;
}

static void count(struct wire_chain *c, struct wire_kinds *ks)
{
	for (struct wire_kind *k = ks->first; k; k = k->next) {
		for (unsigned i = 0; k->passed && i < c->n; i++)
			if (k->why[i] != WIRE_MATCHED)
				refuse(c->rules[i], (enum wire_refusal)k->why[i], k->passed);
		k->passed = 0;
	}
}

void wire_chain_count(struct wire_chain *c)
{
	for (struct wire_kinds *ks = c->kinds; ks; ks = ks->hh.next)
		count(c, ks);
}

static void forget(struct wire_chain *c, struct wire_kinds *ks)
{
	struct wire_kind *k, *next;

	count(c, ks);
	for (k = ks->first; k; k = next) {
		next = k->next;
		free(k);
	}
	ks->first = NULL;
	ks->n = 0;
}

void wire_chain_changed(struct wire_chain *c)
{
	struct wire_kinds *next, *ks = c->kinds;

	HASH_CLEAR(hh, c->kinds);
	for (; ks; ks = next) {
		next = ks->hh.next;
		forget(c, ks);
		free(ks);
	}
	memset(c->recent, 0, sizeof c->recent);
	c->fuse = UINT64_MAX;
	c->syndromes = false;
	for (unsigned i = 0; i < c->n; i++) {
		struct wire_rule *r = c->rules[i];
		const struct wire_match *m = &r->match;
		uint64_t misses = wire_match_misses(m);

		c->syndromes = c->syndromes || m->syndromes_set;
		r->counted = !r->spent && !r->action.ops->seen && misses >= NEAR;
		if (r->counted && misses < c->fuse)
			c->fuse = misses;
	}
}

/* ---- kinds ---- */

/* Whether v is meant; whatever else is of its kind gets the same answer. */
static bool decide(const struct wire_range *meant, int64_t v, struct wire_range *kind)
{
	int64_t min = kind->min, max = kind->max;

	if (!meant->set)
		return true;
	if (v < meant->min)
		max = meant->min - 1;
	else if (v > meant->max)
		min = meant->max + 1;
	else
		min = meant->min, max = meant->max;
	kind->min = min > kind->min ? min : kind->min;
	kind->max = max < kind->max ? max : kind->max;
	return v >= meant->min && v <= meant->max;
}

/* Why a rule refuses this packet and all of its kind; WIRE_MATCHED: it has to be asked. */
static enum wire_refusal refusal_of(const struct wire_rule *r, const struct wire_look *look, struct wire_kind *k)
{
	const struct wire_match *m = &r->match;
	enum wire_refusal sender = wire_match_sender(m, look);

	if (r->spent || r->action.ops->seen)
		return WIRE_MATCHED;
	if (sender != WIRE_MATCHED)
		return sender;
	if (!decide(&m->size, look->size, &k->size))
		return WIRE_WRONG_SIZE;
	if ((m->psn.set || m->transmission.set) && !look->transmission)
		return WIRE_UNKNOWN_CONNECTION;
	if (!decide(&m->psn, look->psn, &k->psn))
		return WIRE_WRONG_PSN;
	if (!decide(&m->transmission, look->transmission, &k->transmission))
		return WIRE_WRONG_TRANSMISSION;
	return r->counted ? WIRE_WRONG_NTH : WIRE_MATCHED;
}

static struct wire_kind *new_kind(struct wire_chain *c, struct wire_kinds *ks, const struct wire_look *look)
{
	static const struct wire_range all = { .min = INT64_MIN, .max = INT64_MAX };
	struct wire_kind *k = calloc(1, sizeof *k + c->n * (sizeof *k->asked + sizeof *k->why));

	if (!k)
		return NULL;
	k->psn = k->size = k->transmission = all;
	k->asked = (unsigned *)(k + 1);
	k->why = (uint8_t *)(k->asked + c->n);
	for (unsigned i = 0; i < c->n; i++) {
		const struct wire_rule *r = c->rules[i];

		if (r->spent && !r->action.watching)
			continue;
		enum wire_refusal why = refusal_of(r, look, k);

		k->why[i] = (uint8_t)why;
		k->counts = k->counts || why == WIRE_WRONG_NTH;
		if (why == WIRE_MATCHED)
			k->asked[k->n_asked++] = i;
	}
	k->next = ks->first;
	ks->first = k;
	ks->n++;
	return k;
}

static bool within(const struct wire_range *r, int64_t v)
{
	return v >= r->min && v <= r->max;
}

static bool is_of(const struct wire_kind *k, const struct wire_look *look)
{
	return within(&k->psn, look->psn) && within(&k->size, look->size) && within(&k->transmission, look->transmission);
}

static struct wire_kind *find_kind(struct wire_chain *c, struct wire_kinds *ks, const struct wire_look *look)
{
	for (struct wire_kind **at = &ks->first; *at; at = &(*at)->next) {
		struct wire_kind *k = *at;

		if (!is_of(k, look))
			continue;
		*at = k->next;
		k->next = ks->first;
		ks->first = k;
		return k;
	}
	if (ks->n >= KINDS_MAX)
		forget(c, ks);
	return new_kind(c, ks, look);
}

/* pair and agent are known to be short enough */
static uint64_t key_of(const struct wire_chain *c, const struct wire_look *look)
{
	return (uint64_t)(c->syndromes ? look->syndrome : 0) << 56 | (uint64_t)look->pair << (NAMES_BITS + 16) |
	       (uint64_t)look->agent << 16 | (unsigned)look->opcode << 8 | (unsigned)look->class << 1 | !!look->transmission;
}

static struct wire_kinds *find_kinds(struct wire_chain *c, uint64_t key)
{
	struct wire_kinds **recent = &c->recent[key * 0x9e3779b97f4a7c15u >> 58], *ks = *recent;

	if (ks && ks->key == key)
		return ks;
	HASH_FIND(hh, c->kinds, &key, sizeof key, ks);
	if (!ks) {
		if (HASH_COUNT(c->kinds) >= KEYS_MAX)
			wire_chain_changed(c);
		ks = calloc(1, sizeof *ks);
		if (!ks)
			return NULL;
		ks->key = key;
		HASH_ADD(hh, c->kinds, key, sizeof ks->key, ks);
	}
	return *recent = ks;
}

struct wire_kind *wire_chain_kind(struct wire_chain *c, const struct wire_look *look)
{
	if (c->plain || (look->pair | look->agent) >> NAMES_BITS)
		return NULL;
	if (!c->fuse)
		wire_chain_changed(c);
	struct wire_kinds *ks = find_kinds(c, key_of(c, look));

	if (!ks)
		return NULL;
	return ks->first && is_of(ks->first, look) ? ks->first : find_kind(c, ks, look);
}

void wire_chain_ask_all(struct wire_chain *c)
{
	if (!c->fuse)
		wire_chain_changed(c);
	c->fuse--;
}

void wire_chain_passed(struct wire_chain *c, struct wire_kind *k)
{
	k->passed++;
	c->fuse -= k->counts;
}

void wire_chain_stopped(struct wire_chain *c, const struct wire_kind *k, unsigned end)
{
	for (unsigned i = 0; i < end; i++)
		if (k->why[i] != WIRE_MATCHED)
			refuse(c->rules[i], (enum wire_refusal)k->why[i], 1);
	c->fuse -= k->counts;
}
