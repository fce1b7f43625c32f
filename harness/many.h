/* SPDX-License-Identifier: MIT */
/*
 * Many alike: requests, replies or records that differ in a few fields, as one object (formats.md, "Many"):
 *
 *	{"count": 3, "all": {"to": "RTR", "set": {"path_mtu": 1024}}, "each": {"name": ["p.a", "q.a", "r.a"], "set.rq_psn": [7, 8,
 *9]}}
 *
 * `all` is what each of them has; a column of `each` is one field, of an object in `all` where its name has a dot, and null at
 *those that do not have it. To write and read a thousand objects of thirty fields costs more than what they tell.
 */
#ifndef QD_MANY_H
#define QD_MANY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "error.h"

/* Fewer are better off one by one. */
#define MANY_MIN 8

/* All objects of an array in one. New reference; NULL when one has a field with a dot in its name. */
json_t *many_fold(const json_t *members);
/* How many there are; 0 when that is no fold, or a broken one. */
size_t many_count(const json_t *fold);
/* One of them, i < many_count(). New reference; what it shares with the others is shared, and not to be changed. */
json_t *many_member(const json_t *fold, size_t i);

/* A field of one of them. Borrowed; NULL where it does not have it. */
json_t *many_field(const json_t *fold, size_t i, const char *path);
/* The same of one after the other: where it stands is looked up once. */
struct many_column {
	json_t *common, *column;
};
struct many_column many_column_at(const json_t *fold, const char *path);
json_t *many_value(const struct many_column *c, size_t i);

/* A record of many, `kind` "many": what kind they are is `of`. */
bool many_is_record(const json_t *record);
/* One of its records, with what the recorder has given to all of them, and a number of its own. New reference. */
json_t *many_record(const json_t *record, size_t i);
/* Reads observations.jsonl, each record by itself; otherwise json_load_lines(). -EINVAL with its line for a broken fold. */
int many_load_records(const char *path, json_t **ret_array, bool *ret_torn, struct error *e);

#endif
