/* SPDX-License-Identifier: MIT */
#include "many.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

#define PATH_BYTES 128
#define COUNT_MAX 1000000

/* ---- folding ---- */

/* Each has an object there, with the same fields, and none of their names has a dot. */
static bool may_be_taken_apart(const json_t *members, const char *key, const json_t *first)
{
	const char *child;
	json_t *value;
	const json_t *m;
	size_t i;

	if (!json_is_object(first))
		return false;
	json_object_foreach((json_t *)first, child, value)
		if (strchr(child, '.'))
			return false;
	json_array_foreach((json_t *)members, i, m) {
		const json_t *other = json_object_get(m, key);

		if (!json_is_object(other) || json_object_size(other) != json_object_size(first))
			return false;
		json_object_foreach((json_t *)first, child, value)
			if (!json_object_get(other, child))
				return false;
	}
	return true;
}

static json_t *field(const json_t *member, const char *parent, const char *key)
{
	return json_object_get(parent ? json_object_get(member, parent) : member, key);
}

static bool all_equal(const json_t *members, const char *parent, const char *key, const json_t *first)
{
	const json_t *m;
	size_t i;

	json_array_foreach((json_t *)members, i, m) {
		const json_t *other = field(m, parent, key);

		if (other != first && !json_equal(other, first))
			return false;
	}
	return true;
}

static void put_column(json_t *each, const json_t *members, const char *parent, const char *key)
{
	json_t *column = json_array();
	char path[PATH_BYTES];
	const json_t *m;
	size_t i;

	json_array_foreach((json_t *)members, i, m) {
		json_t *value = field(m, parent, key);

		if (value)
			json_array_append(column, value);
		else
			json_array_append_new(column, json_null());
	}
	snprintf(path, sizeof path, "%s%s%s", parent ? parent : "", parent ? "." : "", key);
	json_object_set_new(each, path, column);
}

static void fold_field(const json_t *members, const char *key, json_t *first, json_t *all, json_t *each)
{
	const char *child;
	json_t *value, *common;

	if (all_equal(members, NULL, key, first)) {
		json_object_set(all, key, first);
		return;
	}
	if (!may_be_taken_apart(members, key, first)) {
		put_column(each, members, NULL, key);
		return;
	}
	common = json_object();
	json_object_foreach(first, child, value) {
		if (all_equal(members, key, child, value))
			json_object_set(common, child, value);
		else
			put_column(each, members, key, child);
	}
	json_object_set_new(all, key, common);
}

/* Those that the first one does not have. */
static void fold_other_fields(const json_t *members, json_t *each)
{
	const json_t *first = json_array_get(members, 0), *m;
	const char *key;
	json_t *value;
	size_t i;

	json_array_foreach((json_t *)members, i, m)
		json_object_foreach((json_t *)m, key, value)
			if (!json_object_get(first, key) && !json_object_get(each, key))
				put_column(each, members, NULL, key);
}

/* A dot in a column's name is what it is taken apart at. */
static bool has_dots(const json_t *members)
{
	const json_t *m;
	const char *key;
	json_t *value;
	size_t i;

	json_array_foreach((json_t *)members, i, m)
		json_object_foreach((json_t *)m, key, value)
			if (strchr(key, '.'))
				return true;
	return false;
}

json_t *many_fold(const json_t *members)
{
	json_t *all, *each, *value;
	const char *key;

	if (has_dots(members))
		return NULL;
	all = json_object();
	each = json_object();
	json_object_foreach(json_array_get(members, 0), key, value)
		fold_field(members, key, value, all, each);
	fold_other_fields(members, each);
	return json_pack("{s:I,s:o,s:o}", "count", (json_int_t)json_array_size(members), "all", all, "each", each);
}

/* ---- unfolding ---- */

size_t many_count(const json_t *fold)
{
	const json_t *all = json_object_get(fold, "all"), *each = json_object_get(fold, "each");
	int64_t count = json_int(fold, "count", 0);
	const char *key;
	json_t *column;

	if (count <= 0 || count > COUNT_MAX || !json_is_object(all) || !json_is_object(each))
		return 0;
	json_object_foreach((json_t *)each, key, column)
		if (!json_is_array(column) || json_array_size(column) != (size_t)count)
			return 0;
	return (size_t)count;
}

/* The member's own object of that name, which `all` may have for all of them. */
static json_t *own_object(json_t *member, const json_t *all, const char *key)
{
	json_t *common = json_object_get(all, key), *own = json_object_get(member, key);

	if (own && own != common)
		return own;
	own = json_is_object(common) ? json_copy(common) : json_object();
	json_object_set_new(member, key, own);
	return own;
}

static void unfold_into(json_t *member, const json_t *fold, size_t i)
{
	const json_t *all = json_object_get(fold, "all");
	const char *path;
	json_t *column;

	json_object_update(member, (json_t *)all);
	json_object_foreach(json_object_get(fold, "each"), path, column) {
		const char *dot = strchr(path, '.');
		json_t *value = json_array_get(column, i);
		char parent[PATH_BYTES];

		if (json_is_null(value))
			continue;
		if (!dot) {
			json_object_set(member, path, value);
			continue;
		}
		snprintf(parent, sizeof parent, "%.*s", (int)(dot - path), path);
		json_object_set(own_object(member, all, parent), dot + 1, value);
	}
}

json_t *many_member(const json_t *fold, size_t i)
{
	json_t *member = json_object();

	unfold_into(member, fold, i);
	return member;
}

struct many_column many_column_at(const json_t *fold, const char *path)
{
	const json_t *all = json_object_get(fold, "all");
	struct many_column c = { json_object_get(all, path), json_object_get(json_object_get(fold, "each"), path) };
	const char *dot = strchr(path, '.');
	char parent[PATH_BYTES];

	if (c.common || c.column || !dot)
		return c;
	snprintf(parent, sizeof parent, "%.*s", (int)(dot - path), path);
	c.common = json_object_get(json_object_get(all, parent), dot + 1);
	return c;
}

json_t *many_value(const struct many_column *c, size_t i)
{
	json_t *value = c->column ? json_array_get(c->column, i) : c->common;

	return c->column && json_is_null(value) ? NULL : value;
}

json_t *many_field(const json_t *fold, size_t i, const char *path)
{
	struct many_column c = many_column_at(fold, path);

	return many_value(&c, i);
}

/* ---- records ---- */

bool many_is_record(const json_t *record)
{
	const char *kind = json_str(record, "kind");

	return kind && strcmp(kind, "many") == 0;
}

json_t *many_record(const json_t *record, size_t i)
{
	json_t *own = json_object(), *value;
	const char *key;

	json_object_foreach((json_t *)record, key, value)
		if (strcmp(key, "all") != 0 && strcmp(key, "each") != 0 && strcmp(key, "count") != 0 && strcmp(key, "of") != 0)
			json_object_set(own, key, value);
	if (json_object_get(record, "of"))
		json_object_set(own, "kind", json_object_get(record, "of"));
	if (json_object_get(record, "n"))
		json_object_set_new(own, "n", json_integer(json_int(record, "n", 0) + (json_int_t)i));
	unfold_into(own, record, i);
	return own;
}

int many_load_records(const char *path, json_t **ret_array, bool *ret_torn, struct error *e)
{
	json_t *lines = NULL, *records, *line;
	bool torn;
	size_t i;
	int rc = json_load_lines(path, &lines, &torn, e);

	if (rc)
		return rc;
	records = json_array();
	json_array_foreach(lines, i, line) {
		size_t n = many_is_record(line) ? many_count(line) : 0;

		if (many_is_record(line) && !n) {
			rc = error_set(e, -EINVAL, "%s:%zu: a record of many whose columns are not as long as it says", path,
				       i + 1);
			break;
		}
		for (size_t k = 0; k < n; k++)
			json_array_append_new(records, many_record(line, k));
		if (!n)
			json_array_append(records, line);
	}
	json_decref(lines);
	if (rc) {
		json_decref(records);
		return rc;
	}
	*ret_array = records;
	*ret_torn = torn;
	return 0;
}
