/* SPDX-License-Identifier: MIT */
/*
 * From an array of structs to `all` and `each` of a fold (harness/many.h), without an object for each of them: a field that all
 * have alike is written once, one that differs becomes a column.
 */
#ifndef QD_COLUMNS_H
#define QD_COLUMNS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A field of the struct. */
struct column {
	const char *name;
	size_t offset;
	size_t bytes;            /* of an unsigned integer; 0: a const char * */
	int (*shown)(int value); /* NULL: the integer is shown as it is */
	bool hex;                /* as text: "0x..." */
};
#define COLUMN(type, field, label)                                                                                                 \
	{                                                                                                                          \
		label, offsetof(type, field), sizeof(((type *)0)->field), NULL, false                                              \
	}
#define COLUMN_HEX(type, field, label)                                                                                             \
	{                                                                                                                          \
		label, offsetof(type, field), sizeof(((type *)0)->field), NULL, true                                               \
	}
#define COLUMN_TEXT(type, field, label)                                                                                            \
	{                                                                                                                          \
		label, offsetof(type, field), 0, NULL, false                                                                       \
	}

struct rows {
	const void *first;
	size_t stride, n;
};
const void *rows_at(struct rows rows, size_t i);

/* New references. */
json_t *column_value(const struct column *c, const void *row);
json_t *column_values(const struct column *c, struct rows rows);
bool column_is_alike(const struct column *c, struct rows rows);
/* Into `all`, or into `each`. */
void column_put(const struct column *c, struct rows rows, json_t *all, json_t *each);

/* The same as text, of what is only to be sent: a thousand numbers as objects cost more than what they tell. Zeroed at first. */
struct each {
	char *text; /* the members of `each`, without its braces */
	size_t len, room;
};
void each_release(struct each *e);
/* A column is begun, has values, and is ended. */
void each_begin(struct each *e, const char *name);
void each_value(struct each *e, const json_t *value);
void each_end(struct each *e);
/* All of a column, under a name of its own. */
void each_column(struct each *e, const char *name, const struct column *c, struct rows rows);
/* Into `all`, or into that. */
void column_write(const struct column *c, struct rows rows, json_t *all, struct each *e);

#endif
