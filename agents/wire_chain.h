/* SPDX-License-Identifier: MIT */
/*
 * The rules of the wire in their order, and what spares most packets most of them. Packets of one kind (same sender, class,
 * opcode and, where a rule asks for it, syndrome; PSN, size and transmission within the same bounds) get the same answer from every
 * rule but the few that have to be asked: those that mean them, and those that watch or are about to match by their count. Which
 * these are is found out once for each kind; for the others only the packets are counted, and wire_chain_count() tells them how
 * many they have refused. What is decided and what is counted is the same as if every rule were asked about every packet.
 */
#ifndef QD_WIRE_CHAIN_H
#define QD_WIRE_CHAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "wire_match.h"
#include "wire_rule.h"

struct wire_kind {
	struct wire_kind *next;
	struct wire_range psn, size, transmission;
	uint64_t passed;  /* since the last count */
	bool counts;      /* some rule counts its packets without being asked */
	unsigned n_asked; /* rules that have to be asked */
	unsigned *asked;  /* their places, ascending */
	uint8_t *why;     /* for each rule the refusal (enum wire_refusal); WIRE_MATCHED: it is asked, or over */
};

/* The kinds that have sender, class and opcode in common. */
struct wire_kinds {
	uint64_t key;
	struct wire_kind *first; /* the one that was seen last */
	unsigned n;
	UT_hash_handle hh;
};

#define WIRE_KINDS_RECENT 64

struct wire_chain {
	struct wire_rule **rules;
	unsigned n, room;
	bool syndromes; /* some rule looks at them */
	bool plain;     /* every rule is asked about every packet: for comparison */
	uint64_t fuse;  /* so many packets may come before a rule that is not asked, because of its count, might match */
	struct wire_kinds *kinds, *recent[WIRE_KINDS_RECENT];
};

/* Behind all others; its owner from now on. 0 or -ENOMEM. */
int wire_chain_add(struct wire_chain *c, struct wire_rule *r);
/* The caller's again. */
struct wire_rule *wire_chain_remove(struct wire_chain *c, unsigned at);
/* Frees the rules too. */
void wire_chain_release(struct wire_chain *c);

/* Brings what the rules have counted up to date. */
void wire_chain_count(struct wire_chain *c);
/* A rule is spent, or no longer what it was. */
void wire_chain_changed(struct wire_chain *c);

/* What a packet has to ask; NULL: all rules, after wire_chain_ask_all(). Valid until the chain is changed or asked again. */
struct wire_kind *wire_chain_kind(struct wire_chain *c, const struct wire_look *look);
void wire_chain_ask_all(struct wire_chain *c);
/* The packet has come past all rules, or only to the one at `end`. */
void wire_chain_passed(struct wire_chain *c, struct wire_kind *k);
void wire_chain_stopped(struct wire_chain *c, const struct wire_kind *k, unsigned end);

#endif
