/* SPDX-License-Identifier: MIT */
/* A `many` request (harness/many.h) that is answered without taking it apart: what it asks for, and what became of its members. */
#ifndef QD_FOLD_H
#define QD_FOLD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "columns.h"

struct agent;
struct request;

struct fold {
	struct agent *agent;
	struct request *req; /* NULL once answered */
	json_t *body;        /* owned: it outlives the answer */
	const json_t *all, *each;
	const json_t *names; /* of the objects, strings */
	size_t n;
	bool stops;  /* nothing is begun after one that failed */
	bool failed; /* any */
	json_t **own;
};

/* key: the column with the names. False, and nothing was begun: `all` has anything that is not known (ends with NULL), or there is
 * no such column, or one of names that are none. */
bool fold_begin(struct fold *f, struct agent *a, struct request *r, const char *key, const char *const known[]);
const char *fold_name(const struct fold *f, size_t i);
/* A member's reply, because it failed; stolen. */
void fold_fail(struct fold *f, size_t i, json_t *reply);
/* Those from i on are not done. */
void fold_stop(struct fold *f, size_t i);
/* Answers. Of those that did not fail the columns of rows are the reply. */
void fold_answer(struct fold *f, const struct column *columns, size_t n_columns, struct rows rows);
void fold_release(struct fold *f);

#endif
