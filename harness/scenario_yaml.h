/* SPDX-License-Identifier: MIT */
/*
 * A YAML file as a tree that remembers where each token stands. Only what the scenario language uses: one document,
 * maps with scalar keys, lists, scalars. Anchors, aliases, tags and several documents are mistakes.
 *
 * Scalars keep their text; whether `20` is a number is the grammar's business (YAML 1.2: only true and false are
 * booleans). The tree owns everything; nodes are borrowed.
 */
#ifndef QD_SCENARIO_YAML_H
#define QD_SCENARIO_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

enum ynode_kind {
	YNODE_INVALID,
	YNODE_SCALAR,
	YNODE_MAP,
	YNODE_LIST,
	NUM_YNODE_KINDS,
};

struct ynode {
	enum ynode_kind kind;
	struct ynode *key; /* of a member of a map: its key, a scalar */
	char *text;        /* SCALAR: unescaped, "" for null */
	bool plain;        /* SCALAR: written without quotes and not as a block */
	bool exact;        /* SCALAR: the text stands in the source as it is, so that offsets in it are offsets there */
	bool flow;         /* MAP, LIST: written with a bracket */
	bool bad;          /* already complained about: skip it */
	bool qp_tried;     /* a key: some QP has this attribute in a case that was read, one of type qp_type... */
	bool qp_taken;     /* ...and some QP is of a type that takes it */
	int qp_type;
	size_t pos;         /* of the first character, in bytes */
	size_t span;        /* bytes; for a map or list: of its first token */
	unsigned line, col; /* of pos, from 1; 0 for a value that is not there */
	struct ynode **kids;
	size_t n, cap;
	struct ynode *next; /* of all nodes of the tree */
};

struct ytree {
	struct ynode *root; /* NULL for an empty file */
	struct ynode *all;
	size_t n_nodes;
};

#define YTREE_MAX_BYTES (1u << 20)
#define YTREE_MAX_DEPTH 32

/* What went wrong and where; ytree_parse stops at the first: what follows a broken bracket means nothing. */
struct ytree_error {
	size_t pos, span;
	char text[256];
	char hint[256];
};

/* 0, or -EINVAL with *ret_error filled; -ENOMEM. */
int ytree_parse(const char *source, size_t len, struct ytree *ret, struct ytree_error *ret_error);
void ytree_release(struct ytree *t);

/* A new scalar that belongs to the tree; key, place and span are those of `like`. NULL when out of memory. */
struct ynode *ytree_scalar(struct ytree *t, const struct ynode *like, const char *text);
/* The same for an empty map or list, and a member for it; NULL or false when out of memory. */
struct ynode *ytree_map(struct ytree *t, const struct ynode *like);
struct ynode *ytree_list(struct ytree *t, const struct ynode *like);
bool ytree_append(struct ynode *list, struct ynode *item);
bool ytree_put(struct ytree *t, struct ynode *map, const char *key, const char *text);
/* The member of a map, NULL when absent. */
struct ynode *ynode_get(const struct ynode *map, const char *key);
/* Where a complaint about a whole value points: its key, or the value itself where it has none (a list's member, a swept one). */
const struct ynode *ynode_place(const struct ynode *n);

/* Line and column (in characters), both from 1, of a byte in the source. */
void source_place(const char *source, size_t len, size_t pos, unsigned *ret_line, unsigned *ret_col);

#endif
