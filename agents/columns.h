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

/* A field of the struct. */
struct column {
	const char *name;
	size_t offset;
	size_t bytes;            /* of an unsigned integer; 0: a const char * */
	int (*shown)(int value); /* NULL: the integer is shown as it is */
};
#define COLUMN(type, field, label)                                                                                                 \
	{                                                                                                                          \
		label, offsetof(type, field), sizeof(((type *)0)->field), NULL                                                     \
	}
#define COLUMN_TEXT(type, field, label)                                                                                            \
	{                                                                                                                          \
		label, offsetof(type, field), 0, NULL                                                                              \
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

#endif
