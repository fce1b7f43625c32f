/* SPDX-License-Identifier: MIT */
#include "columns.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const void *rows_at(struct rows rows, size_t i)
{
	return (const char *)rows.first + i * rows.stride;
}

static json_int_t integer(const struct column *c, const void *row)
{
	const char *at = (const char *)row + c->offset;
	union {
		uint8_t u8;
		uint16_t u16;
		uint32_t u32;
		uint64_t u64;
	} v = { .u64 = 0 };

	memcpy(&v, at, c->bytes);
	switch (c->bytes) {
	case 1:
		return v.u8;
	case 2:
		return v.u16;
	case 4:
		return c->shown ? c->shown((int)v.u32) : (json_int_t)v.u32;
	case 8:
		return (json_int_t)v.u64;
	default:
		abort(); /* no integer */
	}
}

static const char *text(const struct column *c, const void *row)
{
	const char *value;

	memcpy(&value, (const char *)row + c->offset, sizeof(value));
	return value;
}

json_t *column_value(const struct column *c, const void *row)
{
	return c->bytes ? json_integer(integer(c, row)) : json_string(text(c, row));
}

json_t *column_values(const struct column *c, struct rows rows)
{
	json_t *values = json_array();

	for (size_t i = 0; i < rows.n; i++)
		json_array_append_new(values, column_value(c, rows_at(rows, i)));
	return values;
}

bool column_is_alike(const struct column *c, struct rows rows)
{
	for (size_t i = 1; i < rows.n; i++) {
		const char *one = rows_at(rows, i);

		if (c->bytes ? memcmp(one + c->offset, (const char *)rows.first + c->offset, c->bytes) != 0
			     : strcmp(text(c, one), text(c, rows.first)) != 0)
			return false;
	}
	return true;
}

void column_put(const struct column *c, struct rows rows, json_t *all, json_t *each)
{
	if (column_is_alike(c, rows))
		json_object_set_new(all, c->name, column_value(c, rows.first));
	else
		json_object_set_new(each, c->name, column_values(c, rows));
}
