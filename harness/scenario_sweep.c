/* SPDX-License-Identifier: MIT */
#include "scenario_loader.h"

#include <ctype.h>
#include <errno.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A case's folder is named after its id. */
#define SUFFIX_MAX 160

static bool var_name_ok(const char *text)
{
	return *text && strlen(text) <= GRAMMAR_MAX_NAME && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(text) &&
	       !isdigit((unsigned char)text[0]);
}

static bool check_keys(struct loader *l, struct ynode *map)
{
	bool ok = true;

	if (map->n > SWEEP_MAX_KEYS) {
		complain(l, map, NULL, "more than %d swept names", SWEEP_MAX_KEYS);
		return false;
	}
	for (size_t i = 0; i < map->n; i++) {
		if (var_name_ok(map->kids[i]->key->text))
			continue;
		complain(l, map->kids[i]->key, "small letters, digits and _", "`%s` cannot be a swept name",
			 map->kids[i]->key->text);
		ok = false;
	}
	return ok;
}

static size_t count_map(struct loader *l, struct ynode *sweep)
{
	size_t count = 1;
	bool ok = check_keys(l, sweep);

	for (size_t i = 0; i < sweep->n; i++) {
		struct ynode *list = sweep->kids[i];

		if (list->kind == YNODE_MAP) {
			ok = packets_check(l, sweep, list) && ok;
		} else if (list->kind != YNODE_LIST || !list->n) {
			complain(l, list, "`size: [64, 4KiB]`; or `sweep` itself is a list of maps, one case per row",
				 "a swept name in a map has a list of values");
			ok = false;
		} else if (count > GRAMMAR_MAX_CASES / list->n) {
			complain(l, sweep->key, NULL, "more than %d cases", GRAMMAR_MAX_CASES);
			return 0;
		} else {
			count *= list->n;
		}
	}
	return ok ? count : 0;
}

static bool check_row(struct loader *l, struct ynode *first, struct ynode *row)
{
	bool ok = true;

	if (row->kind != YNODE_MAP || !row->n) {
		complain(l, row, NULL, "a row of `sweep` is a map");
		return false;
	}
	if (!check_keys(l, row) || first->kind != YNODE_MAP)
		return false;
	for (size_t i = 0; i < first->n; i++) {
		if (ynode_get(row, first->kids[i]->key->text))
			continue;
		complain(l, row, "each row has a value for each name of the first", "this row has no `%s`",
			 first->kids[i]->key->text);
		ok = false;
	}
	for (size_t i = 0; i < row->n; i++) {
		if (ynode_get(row->kids[i], "packets")) {
			complain(l, row->kids[i]->key, "`sweep: { packet: { packets: {} }, op: [SEND, WRITE] }`",
				 "a sweep over packets stands in a map of lists, not in a row");
			ok = false;
		}
		if (ynode_get(first, row->kids[i]->key->text))
			continue;
		complain(l, row->kids[i]->key, NULL, "the first row has no `%s`", row->kids[i]->key->text);
		ok = false;
	}
	return ok;
}

/* A value that names a value could name itself. */
static bool check_flat(struct loader *l, const struct ynode *n)
{
	bool ok = true;

	if (n->kind == YNODE_SCALAR && strstr(n->text, "${")) {
		complain(l, n, NULL, "`${}` cannot stand in the sweep itself");
		return false;
	}
	for (size_t i = 0; i < n->n; i++)
		ok = check_flat(l, n->kids[i]) && ok;
	return ok;
}

size_t sweep_count(struct loader *l, struct ynode *sweep)
{
	bool ok = true;

	if (!sweep)
		return 1;
	if (sweep->bad)
		return 0;
	if (sweep->kind == YNODE_SCALAR || !sweep->n) {
		complain(l, sweep, "`sweep: { size: [64, 4KiB] }` or `sweep: [ { to: ERR, wc: WR_FLUSH_ERR } ]`",
			 "`sweep` is a map of lists or a list of maps");
		return 0;
	}
	if (!check_flat(l, sweep))
		return 0;
	if (sweep->kind == YNODE_MAP)
		return count_map(l, sweep);
	if (sweep->n > GRAMMAR_MAX_CASES) {
		complain(l, sweep->key, NULL, "more than %d cases", GRAMMAR_MAX_CASES);
		return 0;
	}
	for (size_t i = 0; i < sweep->n; i++)
		if (!check_row(l, sweep->kids[0], sweep->kids[i]))
			ok = false;
	return ok ? sweep->n : 0;
}

struct ynode *sweep_packets(const struct ynode *sweep)
{
	for (size_t i = 0; sweep && sweep->kind == YNODE_MAP && i < sweep->n; i++)
		if (sweep->kids[i]->kind == YNODE_MAP)
			return sweep->kids[i];
	return NULL;
}

static void select_in_map(struct loader *l, struct sweep_var *v, struct ynode *values, size_t *row)
{
	if (values->kind == YNODE_MAP) {
		free(v->shown);
		v->shown = NULL;
		v->value = packets_value(l, values, &v->shown);
		return;
	}
	v->value = values->kids[*row % values->n];
	*row /= values->n;
}

void sweep_select(struct loader *l, struct ynode *sweep, size_t row)
{
	if (!sweep)
		return;
	struct ynode *names = sweep->kind == YNODE_MAP ? sweep : sweep->kids[0];

	l->n_vars = names->n;
	/* The last name of a map runs fastest. */
	for (size_t i = names->n; i-- > 0;) {
		struct sweep_var *v = &l->vars[i];

		v->key = names->kids[i]->key;
		if (sweep->kind == YNODE_MAP)
			select_in_map(l, v, names->kids[i], &row);
		else
			v->value = ynode_get(sweep->kids[row], v->key->text);
	}
}

static json_t *plain_json(const struct ynode *n)
{
	json_t *both;
	char *end;

	if (n->kind == YNODE_SCALAR) {
		if (n->plain && (!strcmp(n->text, "true") || !strcmp(n->text, "false")))
			return json_boolean(n->text[0] == 't');
		if (n->plain && *n->text && strlen(n->text) < 18 && strspn(n->text, "0123456789") == strlen(n->text))
			return json_integer(strtoll(n->text, &end, 10));
		return json_string(n->text);
	}
	both = n->kind == YNODE_MAP ? json_object() : json_array();
	for (size_t i = 0; i < n->n; i++) {
		if (n->kind == YNODE_MAP)
			json_object_set_new(both, n->kids[i]->key->text, plain_json(n->kids[i]));
		else
			json_array_append_new(both, plain_json(n->kids[i]));
	}
	return both;
}

static void put_text(FILE *out, const char *text)
{
	for (const char *p = text; *p; p++)
		fputc(isalnum((unsigned char)*p) || strchr("._+-", *p) ? *p : '_', out);
}

/* A map as `key=value`, so that rows that differ in a key only have names of their own. */
static void put_value(FILE *out, const struct ynode *n)
{
	if (n->kind == YNODE_SCALAR) {
		put_text(out, n->text);
		return;
	}
	for (size_t i = 0; i < n->n; i++) {
		if (i)
			fputc(',', out);
		if (n->kind == YNODE_MAP) {
			put_text(out, n->kids[i]->key->text);
			fputc('=', out);
		}
		put_value(out, n->kids[i]);
	}
}

int sweep_name(struct loader *l, json_t **ret_sweep, char **ret_suffix)
{
	char *suffix = NULL;
	size_t size;
	FILE *out;
	json_t *sweep;

	if (!l->n_vars) {
		*ret_sweep = NULL;
		*ret_suffix = strdup("");
		return *ret_suffix ? 0 : -ENOMEM;
	}
	out = open_memstream(&suffix, &size);
	if (!out)
		return -ENOMEM;
	sweep = json_object();
	for (size_t i = 0; i < l->n_vars; i++) {
		const struct sweep_var *v = &l->vars[i];

		fprintf(out, "~%s=", v->key->text);
		if (v->shown)
			put_text(out, v->shown);
		else
			put_value(out, v->value);
		json_object_set_new(sweep, v->key->text, v->shown ? json_string(v->shown) : plain_json(v->value));
	}
	fclose(out);
	if (size > SUFFIX_MAX) {
		char crc[16];

		snprintf(crc, sizeof(crc), "~%08x", libdeflate_crc32(0, suffix, size));
		memcpy(suffix + SUFFIX_MAX - strlen(crc), crc, strlen(crc) + 1);
	}
	*ret_sweep = sweep;
	*ret_suffix = suffix;
	return 0;
}

static struct sweep_var *var_find(struct loader *l, const struct ynode *n, const char *name, size_t off, size_t len)
{
	struct word_list w = { .n = 0 };
	char hint[HINT_SIZE];

	for (size_t i = 0; i < l->n_vars; i++)
		if (!strcmp(l->vars[i].key->text, name))
			return &l->vars[i];
	for (size_t i = 0; i < l->n_vars; i++)
		words_add(&w, l->vars[i].key->text);
	complain_part(l, n, off, len, w.n ? words_hint(&w, name, hint, sizeof(hint)) : "the file has no `sweep:`",
		      "`${%s}` is not swept", name);
	return NULL;
}

/* Text around `${}`: the values have to be scalars. */
static struct ynode *interpolate(struct loader *l, struct ynode *n)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct ynode *made = NULL;
	const char *p = n->text, *open;

	if (!out)
		return NULL;
	while ((open = strstr(p, "${"))) {
		const char *close = strchr(open, '}');
		size_t off = (size_t)(open - n->text), len;
		struct sweep_var *v;
		char name[GRAMMAR_MAX_NAME + 1];

		len = close ? (size_t)(close - open) + 1 : strlen(open);
		if (!close || len - 3 > GRAMMAR_MAX_NAME) {
			complain_part(l, n, off, len, "`${name}`", "`${` without its end");
			goto close_out;
		}
		snprintf(name, sizeof(name), "%.*s", (int)(len - 3), open + 2);
		v = var_find(l, n, name, off, len);
		if (!v)
			goto close_out;
		v->used = true;
		if (!v->value || v->value->kind != YNODE_SCALAR) {
			complain_part(l, n, off, len, NULL, "`${%s}` is no single value: it cannot be a part of a text", name);
			goto close_out;
		}
		fwrite(p, 1, (size_t)(open - p), out);
		fputs(v->value->text, out);
		p = close + 1;
	}
	fputs(p, out);
	fflush(out);
	made = ytree_scalar(&l->tree, n, text);
close_out:
	fclose(out);
	free(text);
	return made;
}

struct ynode *sweep_resolve(struct loader *l, struct ynode *n)
{
	const char *end;

	if (n->kind != YNODE_SCALAR || !strstr(n->text, "${"))
		return n;
	end = strchr(n->text, '}');
	if (!strncmp(n->text, "${", 2) && end && !end[1] && end - n->text - 2 <= GRAMMAR_MAX_NAME) {
		char name[GRAMMAR_MAX_NAME + 1];
		struct sweep_var *v;

		snprintf(name, sizeof(name), "%.*s", (int)(end - n->text - 2), n->text + 2);
		v = var_find(l, n, name, 0, strlen(n->text));
		if (!v)
			return NULL;
		v->used = true;
		l->touched |= v->shown != NULL;
		return !v->value || v->value->bad ? NULL : v->value;
	}
	return interpolate(l, n);
}
