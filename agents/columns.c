/* SPDX-License-Identifier: MIT */
#include "columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"

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
	if (!c->bytes)
		return json_string(text(c, row));
	return c->hex ? json_hex((uint64_t)integer(c, row)) : json_integer(integer(c, row));
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

/* ---- as text ---- */

static char *room_for(struct each *e, size_t more)
{
	if (e->len + more > e->room) {
		size_t room = e->room ? e->room : 4096;
		char *grown;

		while (room < e->len + more)
			room *= 2;
		grown = realloc(e->text, room);
		if (!grown)
			abort();
		e->text = grown;
		e->room = room;
	}
	return e->text + e->len;
}

static void put(struct each *e, const char *bytes, size_t n)
{
	memcpy(room_for(e, n), bytes, n);
	e->len += n;
}

static int put_chunk(const char *bytes, size_t n, void *user)
{
	put(user, bytes, n);
	return 0;
}

/* What follows the other values of its column. */
static void next_value(struct each *e)
{
	if (e->text[e->len - 1] != '[')
		put(e, ",", 1);
}

void each_release(struct each *e)
{
	free(e->text);
	*e = (struct each){ .text = NULL };
}

void each_begin(struct each *e, const char *name)
{
	if (e->len)
		put(e, ",", 1);
	put(e, "\"", 1);
	put(e, name, strlen(name));
	put(e, "\":[", 3);
}

void each_end(struct each *e)
{
	put(e, "]", 1);
}

static void each_integer(struct each *e, json_int_t value)
{
	char digits[24], *at = digits + sizeof(digits);
	unsigned long long left = value < 0 ? -(unsigned long long)value : (unsigned long long)value;

	next_value(e);
	do {
		*--at = (char)('0' + left % 10);
		left /= 10;
	} while (left);
	if (value < 0)
		*--at = '-';
	put(e, at, (size_t)(digits + sizeof(digits) - at));
}

static void each_hex(struct each *e, uint64_t value)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "\"0x%llx\"", (unsigned long long)value);

	next_value(e);
	put(e, text, (size_t)n);
}

void each_value(struct each *e, const json_t *value)
{
	if (json_is_integer(value)) {
		each_integer(e, json_integer_value(value));
		return;
	}
	next_value(e);
	if (json_dump_callback(value, put_chunk, e, JSON_COMPACT | JSON_ENCODE_ANY) < 0)
		abort(); /* no value of a request that was read */
}

static bool needs_escapes(const char *s)
{
	while (*s && *s != '"' && *s != '\\' && *s >= ' ' && *s <= '~')
		s++;
	return *s != 0;
}

static void each_string(struct each *e, const char *s)
{
	if (needs_escapes(s)) {
		json_t *value = json_string(s);

		each_value(e, value);
		json_decref(value);
		return;
	}
	next_value(e);
	put(e, "\"", 1);
	put(e, s, strlen(s));
	put(e, "\"", 1);
}

void each_column(struct each *e, const char *name, const struct column *c, struct rows rows)
{
	each_begin(e, name);
	for (size_t i = 0; i < rows.n; i++) {
		const void *row = rows_at(rows, i);

		if (!c->bytes)
			each_string(e, text(c, row));
		else if (c->hex)
			each_hex(e, (uint64_t)integer(c, row));
		else
			each_integer(e, integer(c, row));
	}
	each_end(e);
}

void column_write(const struct column *c, struct rows rows, json_t *all, struct each *e)
{
	if (column_is_alike(c, rows))
		json_object_set_new(all, c->name, column_value(c, rows.first));
	else
		each_column(e, c->name, c, rows);
}
