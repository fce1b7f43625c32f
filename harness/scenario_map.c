/* SPDX-License-Identifier: MIT */
#include "scenario_loader.h"

#include "plan.h"

#include <stdio.h>
#include <string.h>

static void complain_unknown(struct loader *l, const struct ynode *key, const struct gmap *m)
{
	struct word_list w = { .n = 0 };
	char hint[HINT_SIZE];

	for (const struct gkey *k = m->keys; k && k->name; k++)
		words_add(&w, k->name);
	for (const struct gkey *k = m->also; k && k->name; k++)
		words_add(&w, k->name);
	complain(l, key, words_hint(&w, key->text, hint, sizeof(hint)), "unknown key `%s` in %s", key->text, m->what);
}

static const struct gkey *key_find(const struct gkey *keys, const char *name)
{
	for (; keys && keys->name; keys++)
		if (!strcmp(keys->name, name))
			return keys;
	return NULL;
}

/* Table order, not file order: later rows may speak of what earlier ones have named. */
static void read_keys(struct loader *l, struct ynode *n, const struct gkey *keys, const struct gmap *m, json_t *out)
{
	for (const struct gkey *k = keys; k && k->name; k++) {
		struct ynode *kid = ynode_get(n, k->name);
		json_t *value;

		if (!kid) {
			if (k->flags & G_REQUIRED)
				complain(l, ynode_place(n), NULL, "%s wants `%s:` (%s)", m->what, k->name, k->help);
			continue;
		}
		value = value_parse(l, kid, k);
		if (value)
			json_object_set_new(out, k->name, value);
	}
}

json_t *map_parse(struct loader *l, struct ynode *n, const struct gmap *m)
{
	size_t before = l->n_errors;
	char shown[80];
	json_t *out;

	if (n->kind != YNODE_MAP) {
		complain(l, n, NULL, "%s is a map of keys, found %s", m->what, node_shown(n, shown, sizeof(shown)));
		return NULL;
	}
	for (size_t i = 0; i < n->n && l->n_mistakes < MISTAKES_MAX; i++) {
		struct ynode *key = n->kids[i]->key;

		if (!n->kids[i]->bad && !key_find(m->keys, key->text) && !key_find(m->also, key->text))
			complain_unknown(l, key, m);
	}
	out = json_object();
	read_keys(l, n, m->keys, m, out);
	read_keys(l, n, m->also, m, out);
	/* What is half read would only be complained about twice. */
	if (m->check && l->n_errors == before)
		m->check(l, n, out);
	return out;
}

/* Names that would be taken for something else where an end or an attribute may stand. */
static bool name_clash(struct loader *l, const struct ynode *key, const struct gkey *k)
{
	static const char *const words[] = { "srq", "cq", "dev", "send", "recv", NULL };
	bool plain = strspn(key->text, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(key->text);

	if (plan_is_bystander(key->text)) {
		complain(l, key, "choose another name", "names that begin with `%s` belong to the pair that looks on",
			 PLAN_BYSTANDER);
		return true;
	}
	if (strcmp(k->name, "agents") && strcmp(k->name, "pairs"))
		return false;
	for (size_t i = 0; words[i]; i++) {
		if (strcmp(words[i], key->text))
			continue;
		complain(l, key, "choose another name", "`%s` has a meaning of its own in ends", key->text);
		return true;
	}
	if (!plain) {
		complain(l, key, "small letters, digits and _", "`%s` cannot be part of an end's name", key->text);
		return true;
	}
	if (!strcmp(k->name, "pairs") && json_object_get(l->agents, key->text)) {
		complain(l, key, "choose another name", "`%s` is an agent already", key->text);
		return true;
	}
	return false;
}

static bool name_taken(struct loader *l, const struct ynode *key, const struct gkey *k)
{
	const json_t *other = json_object_get(l->objects, key->text);

	if (!other || !strcmp(k->name, "agents") || !strcmp(k->name, "pairs"))
		return false;
	complain(l, key, "every named object has a name of its own", "`%s` is a %s already", key->text,
		 json_string_value(json_object_get(other, "kind")));
	return true;
}

/* What the steps refer to by name. */
static void remember(struct loader *l, const struct gkey *k, const char *name, json_t *value)
{
	if (!strcmp(k->name, "agents")) {
		const char *device = json_string_value(json_object_get(value, "device"));

		json_object_set_new(l->agents, name, json_pack("{s:s}", "device", device ? device : name));
	} else if (!strcmp(k->name, "pairs")) {
		json_object_set(l->pairs, name, value);
	} else {
		json_object_set_new(l->objects, name, json_pack("{s:s,s:O?}", "kind", k->name, "at", json_object_get(value, "at")));
	}
}

json_t *parse_map_of(struct loader *l, struct ynode *n, const struct gkey *k)
{
	char shown[80];
	json_t *out;

	if (n->kind != YNODE_MAP || !n->n) {
		complain(l, n, NULL, "`%s` is a map of names, found %s", k->name,
			 n->kind == YNODE_MAP ? "an empty one" : node_shown(n, shown, sizeof(shown)));
		return NULL;
	}
	/* The defaults go when the file has its own. */
	if (!strcmp(k->name, "agents"))
		json_object_clear(l->agents);
	if (!strcmp(k->name, "pairs"))
		json_object_clear(l->pairs);
	out = json_object();
	for (size_t i = 0; i < n->n; i++) {
		struct ynode *kid = n->kids[i], *value_node = kid->bad ? NULL : sweep_resolve(l, kid);
		json_t *value = NULL;

		if (!value_node || !name_check(l, kid->key, kid->key->text) || name_clash(l, kid->key, k) ||
		    name_taken(l, kid->key, k))
			continue;
		/* `a:` alone is an agent with everything at its default. */
		value = node_is_null(value_node) && !strcmp(k->name, "agents") ? json_object() : map_parse(l, value_node, k->map);
		if (!value)
			continue;
		if (!strcmp(k->name, "agents") && !json_object_get(value, "device") && strcmp(kid->key->text, "a") &&
		    strcmp(kid->key->text, "b"))
			complain(l, kid->key, "`device: a`", "on which device is agent `%s`? only `a` and `b` have a default",
				 kid->key->text);
		json_object_set_new(out, kid->key->text, value);
		remember(l, k, kid->key->text, value);
	}
	return out;
}

json_t *parse_maps(struct loader *l, struct ynode *n, const struct gkey *k)
{
	char shown[80];
	json_t *out;

	if (n->kind != YNODE_LIST || (int64_t)n->n < k->min) {
		complain(l, n, NULL, "`%s` is a list of at least %d maps, found %s", k->name, (int)k->min,
			 node_shown(n, shown, sizeof(shown)));
		return NULL;
	}
	out = json_array();
	for (size_t i = 0; i < n->n; i++) {
		struct ynode *kid = n->kids[i]->bad ? NULL : sweep_resolve(l, n->kids[i]);
		json_t *value = kid ? map_parse(l, kid, k->map) : NULL;

		if (value)
			json_array_append_new(out, value);
	}
	return out;
}

json_t *parse_chain(struct loader *l, struct ynode *n, const struct gkey *k)
{
	if (n->kind == YNODE_SCALAR)
		return value_parse(l, n, &(struct gkey){ .name = k->name, .type = G_BOOL });
	return parse_maps(l, n, &(struct gkey){ .name = k->name, .type = G_MAPS, .min = 1, .map = k->map });
}

/* Numbers and booleans become what they are, all else stays text. */
static json_t *any_value(struct loader *l, struct ynode *n, unsigned depth)
{
	json_t *out;

	n = n->bad ? NULL : sweep_resolve(l, n);
	if (!n)
		return NULL;
	if (n->kind == YNODE_SCALAR) {
		bool digits = *n->text && strlen(n->text) < 18 && strspn(n->text, "0123456789") == strlen(n->text);

		if (node_is_null(n))
			return json_null();
		if (n->plain && (!strcmp(n->text, "true") || !strcmp(n->text, "false")))
			return json_boolean(n->text[0] == 't');
		if (n->plain && (digits || !strncmp(n->text, "0x", 2)))
			return value_parse(l, n,
					   &(struct gkey){ .name = n->key ? n->key->text : "value",
							   .type = G_NUMBER,
							   .flags = G_HEX | G_NO_REF });
		return json_string(n->text);
	}
	out = n->kind == YNODE_MAP ? json_object() : json_array();
	for (size_t i = 0; i < n->n && depth; i++) {
		json_t *value = any_value(l, n->kids[i], depth - 1);

		if (value && n->kind == YNODE_MAP)
			json_object_set_new(out, n->kids[i]->key->text, value);
		else if (value)
			json_array_append_new(out, value);
	}
	return out;
}

json_t *parse_any_map(struct loader *l, struct ynode *n, const struct gkey *k)
{
	char shown[80];

	if (n->kind == YNODE_MAP)
		return any_value(l, n, YTREE_MAX_DEPTH);
	complain(l, n, NULL, "`%s` is a map, found %s", k->name, node_shown(n, shown, sizeof(shown)));
	return NULL;
}
