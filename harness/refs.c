/* SPDX-License-Identifier: MIT */
#include "refs.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "json.h"
#include "names.h"
#include "scenario_yaml.h"

#define CORRECTED ", corrected"
#define REF_MAX 128

static const struct {
	const char *file, *key, *prefix;
} tables[NUM_REF_TABLES] = {
	[REF_DEMANDS] = { "scenarios/refs/demands.yaml", "demands", "IBTA " },
	[REF_SEEDS] = { "scenarios/refs/seeds.yaml", "seeds", "seed " },
	[REF_UNREACHED] = { "scenarios/refs/unreached.yaml", "unreached", "unreached " },
	[REF_FIELD] = { "scenarios/refs/field.yaml", "field", "field " },
};

static int wrong(const struct ynode *n, enum ref_table t, struct error *e, const char *what)
{
	return error_set(e, -EINVAL, "%s:%u:%u: %s", tables[t].file, n ? n->line : 0, n ? n->col : 0, what);
}

/* One way to write a row. The head is what stands before the slash, and an article's name alone. */
static int add_name(struct refs *r, enum ref_table t, const char *id, json_t *row)
{
	char name[REF_MAX], head[REF_MAX];

	if (snprintf(name, sizeof(name), "%s%s", tables[t].prefix, id) >= (int)sizeof(name) || json_object_get(r->index, name))
		return -EEXIST;
	json_object_set(r->index, name, row);
	snprintf(head, sizeof(head), "%.*s", (int)strcspn(name, "/"), name);
	json_object_set_new(r->heads, head, json_true());
	snprintf(head, sizeof(head), "%s%.*s", tables[t].prefix, (int)strcspn(id, " /"), id);
	json_object_set_new(r->heads, head, json_true());
	return 0;
}

static int read_row(struct refs *r, enum ref_table t, const struct ynode *n, struct error *e)
{
	static const char *const keys[] = { "id", "says", "part", "never", "source" };
	const struct ynode *also = n->kind == YNODE_MAP ? ynode_get(n, "also") : NULL, *value;
	json_t *row = json_object();
	size_t known = also ? 1 : 0;
	int rc = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && n->kind == YNODE_MAP; i++) {
		value = ynode_get(n, keys[i]);
		if (!value || value->kind != YNODE_SCALAR || !*value->text)
			continue;
		json_object_set_new(row, keys[i], json_string(value->text));
		known++;
	}
	if (n->kind != YNODE_MAP || known != n->n || !json_str(row, "id") || !json_str(row, "says"))
		rc = wrong(n, t, e, "a row has `id` and `says`, perhaps `also` and `source`, and one of `part` and `never`");
	else if (add_name(r, t, json_str(row, "id"), row))
		rc = wrong(n, t, e, "this id is there twice, or too long");
	for (size_t i = 0; !rc && also && i < also->n; i++)
		if (also->kids[i]->kind != YNODE_SCALAR || add_name(r, t, also->kids[i]->text, row))
			rc = wrong(also->kids[i], t, e, "this id is there twice, or no id");
	if (!rc)
		json_array_append(r->rows[t], row);
	json_decref(row);
	return rc;
}

static int read_table(struct refs *r, enum ref_table t, const char *text, struct error *e)
{
	struct ytree_error at = { 0 };
	struct ytree tree;
	const struct ynode *list;
	int rc = ytree_parse(text, strlen(text), &tree, &at);

	if (rc)
		return error_set(e, rc, "%s: %s", tables[t].file, at.text);
	list = tree.root && tree.root->kind == YNODE_MAP ? ynode_get(tree.root, tables[t].key) : NULL;
	if (!list || list->kind != YNODE_LIST)
		rc = wrong(tree.root, t, e, "a list of rows is wanted");
	for (size_t i = 0; !rc && list && i < list->n; i++)
		rc = read_row(r, t, list->kids[i], e);
	ytree_release(&tree);
	return rc;
}

int refs_load_text(const char *const texts[NUM_REF_TABLES], struct refs *ret, struct error *e)
{
	struct refs r = { .index = json_object(), .heads = json_object() };
	int rc = 0;

	for (int t = 0; t < NUM_REF_TABLES; t++)
		r.rows[t] = json_array();
	for (int t = 0; t < NUM_REF_TABLES && !rc; t++)
		rc = read_table(&r, (enum ref_table)t, texts[t], e);
	if (rc)
		refs_release(&r);
	else
		*ret = r;
	return rc;
}

static int read_text(enum ref_table t, char **ret, struct error *e)
{
	char *path = NULL;
	int rc = data_path(tables[t].file, &path, e);
	FILE *f = rc ? NULL : fopen(path, "re");
	size_t size = YTREE_MAX_BYTES, len;
	char *text = f ? malloc(size + 1) : NULL;

	if (!rc && !text)
		rc = error_set(e, f ? -ENOMEM : -errno, "cannot read %s", path);
	if (!rc) {
		len = fread(text, 1, size, f);
		text[len] = '\0';
		*ret = text;
	}
	if (f)
		fclose(f);
	free(path);
	return rc;
}

int refs_load(struct refs *ret, struct error *e)
{
	char *texts[NUM_REF_TABLES] = { NULL };
	int rc = 0;

	for (int t = 0; t < NUM_REF_TABLES && !rc; t++)
		rc = read_text((enum ref_table)t, &texts[t], e);
	if (!rc)
		rc = refs_load_text((const char *const *)texts, ret, e);
	for (int t = 0; t < NUM_REF_TABLES; t++)
		free(texts[t]);
	return rc;
}

void refs_release(struct refs *r)
{
	for (int t = 0; t < NUM_REF_TABLES; t++)
		json_decref(r->rows[t]);
	json_decref(r->index);
	json_decref(r->heads);
	*r = (struct refs){ 0 };
}

const struct refs *refs_own(struct error *e)
{
	static struct refs own;
	static bool loaded;

	if (!loaded && refs_load(&own, e))
		return NULL;
	loaded = true;
	return &own;
}

/* Any section may be cited: digits and dots, an annex's with A before them. */
static bool is_section(const char *text)
{
	text += *text == 'A' && isdigit((unsigned char)text[1]);
	return isdigit((unsigned char)*text) && !text[strspn(text, "0123456789.")];
}

enum ref_kind refs_find(const struct refs *r, const char *text, const json_t **ret_row)
{
	size_t len = strlen(text), tail = strlen(CORRECTED);
	char name[REF_MAX];
	const json_t *row;
	int t = 0;

	while (t < NUM_REF_TABLES && strncmp(text, tables[t].prefix, strlen(tables[t].prefix)) != 0)
		t++;
	if (t == NUM_REF_TABLES)
		return REF_FREE;
	if (len > tail && !strcmp(text + len - tail, CORRECTED))
		len -= tail;
	if (len >= sizeof(name))
		return REF_UNKNOWN;
	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	row = json_object_get(r->index, name);
	if (row && ret_row)
		*ret_row = row;
	if (row)
		return REF_ROW;
	return json_object_get(r->heads, name) || (t == REF_DEMANDS && is_section(name + strlen(tables[t].prefix))) ? REF_GENERAL
														    : REF_UNKNOWN;
}

static void look(json_t *names, const char *text, const char **best, unsigned *distance)
{
	const char *name;
	json_t *value;

	json_object_foreach(names, name, value) {
		unsigned d = name_distance(text, name);

		if (d < *distance) {
			*distance = d;
			*best = name;
		}
	}
}

const char *refs_nearest(const struct refs *r, const char *text)
{
	unsigned distance = NAME_DISTANCE_MAX;
	const char *best = NULL;

	look(r->index, text, &best, &distance);
	look(r->heads, text, &best, &distance);
	return best;
}
