/* SPDX-License-Identifier: MIT */
#include "fold.h"

#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "agent.h"

static bool is_known(const char *key, const char *const known[])
{
	while (*known && strcmp(key, *known) != 0)
		known++;
	return *known != NULL;
}

static bool are_names(const json_t *column)
{
	const json_t *name;
	size_t i;

	json_array_foreach((json_t *)column, i, name)
		if (!json_is_string(name))
			return false;
	return column != NULL;
}

bool fold_begin(struct fold *f, struct agent *a, struct request *r, const char *key, const char *const known[])
{
	const json_t *all = json_object_get(r->body, "all"), *each = json_object_get(r->body, "each");
	const json_t *names = json_object_get(each, key);
	const char *other;
	json_t *value;

	if (!are_names(names))
		return false;
	json_object_foreach((json_t *)all, other, value)
		if (!is_known(other, known))
			return false;
	*f = (struct fold){ .agent = a,
			    .req = r,
			    .body = json_incref(r->body),
			    .all = all,
			    .each = each,
			    .names = names,
			    .n = json_array_size(names),
			    .stops = json_bool(r->body, "stops", false) };
	f->own = calloc(f->n, sizeof(json_t *));
	if (!f->own)
		abort();
	return true;
}

const char *fold_name(const struct fold *f, size_t i)
{
	return json_string_value(json_array_get(f->names, i));
}

void fold_fail(struct fold *f, size_t i, json_t *reply)
{
	f->own[i] = reply;
	f->failed = true;
}

void fold_stop(struct fold *f, size_t i)
{
	for (; i < f->n; i++)
		fold_fail(f, i, reply_not_done());
}

static json_t *reply_of(const struct column *columns, size_t n_columns, const void *row)
{
	json_t *reply = json_pack("{s:i}", "rc", 0);

	for (size_t k = 0; k < n_columns; k++)
		json_object_set_new(reply, columns[k].name, column_value(&columns[k], row));
	return reply;
}

static void answer_each(struct fold *f, const struct column *columns, size_t n_columns, struct rows rows)
{
	json_t *replies = json_array();

	for (size_t i = 0; i < f->n; i++) {
		json_array_append_new(replies, f->own[i] ? f->own[i] : reply_of(columns, n_columns, rows_at(rows, i)));
		f->own[i] = NULL;
	}
	request_reply_each(f->req, replies);
}

void fold_answer(struct fold *f, const struct column *columns, size_t n_columns, struct rows rows)
{
	if (f->failed) {
		answer_each(f, columns, n_columns, rows);
	} else {
		json_t *all = json_object(), *each = json_object();

		for (size_t k = 0; k < n_columns; k++)
			column_put(&columns[k], rows, all, each);
		request_reply_fold(f->req, f->n, all, each);
	}
	f->req = NULL;
}

void fold_release(struct fold *f)
{
	for (size_t i = 0; i < f->n; i++)
		json_decref(f->own[i]);
	free(f->own);
	json_decref(f->body);
}
