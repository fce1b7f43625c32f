/* SPDX-License-Identifier: MIT */
#include "scenario_loader.h"

#include <stdio.h>
#include <string.h>

#include "json.h"

bool node_is_null(const struct ynode *n)
{
	return n->kind == YNODE_SCALAR && n->plain && (!*n->text || !strcmp(n->text, "~") || !strcmp(n->text, "null"));
}

const char *node_shown(const struct ynode *n, char *buf, size_t size)
{
	if (n->kind == YNODE_MAP)
		snprintf(buf, size, "a map");
	else if (n->kind == YNODE_LIST)
		snprintf(buf, size, "a list");
	else if (node_is_null(n))
		snprintf(buf, size, "nothing");
	else if (n->plain && (!strcmp(n->text, "true") || !strcmp(n->text, "false")))
		snprintf(buf, size, "the boolean `%s`", n->text);
	else
		snprintf(buf, size, "%s`%.60s`", n->plain ? "" : "the text ", n->text);
	return buf;
}

const char *scalar_text(struct loader *l, struct ynode *n, const char *what)
{
	char shown[80];

	if (n->kind == YNODE_SCALAR && !node_is_null(n))
		return n->text;
	complain(l, n, NULL, "%s is wanted, found %s", what, node_shown(n, shown, sizeof(shown)));
	return NULL;
}

json_t *parse_list(struct loader *l, struct ynode *n, const struct gkey *k, const char *what,
		   json_t *(*one)(struct loader *, struct ynode *, const struct gkey *))
{
	char shown[80];
	json_t *array, *value;

	if (n->kind == YNODE_MAP || node_is_null(n) || (n->kind == YNODE_LIST && !n->n)) {
		complain(l, n, NULL, "%s or a list of them is wanted, found %s", what,
			 n->kind == YNODE_LIST ? "an empty list" : node_shown(n, shown, sizeof(shown)));
		return NULL;
	}
	array = json_array();
	if (n->kind == YNODE_SCALAR) {
		value = one(l, n, k);
		if (value)
			json_array_append_new(array, value);
		return array;
	}
	for (size_t i = 0; i < n->n; i++) {
		struct ynode *kid = n->kids[i]->bad ? NULL : sweep_resolve(l, n->kids[i]);

		value = kid ? one(l, kid, k) : NULL;
		if (!value)
			continue;
		if (json_is_string(value) && json_array_has(array, json_string_value(value)))
			complain(l, n->kids[i], NULL, "`%s` is there twice", json_string_value(value));
		json_array_append_new(array, value);
	}
	return array;
}

static json_t *parse_version(struct loader *l, struct ynode *n, const struct gkey *k)
{
	char shown[80];

	(void)k;
	if (n->kind == YNODE_SCALAR && n->plain && !strcmp(n->text, "1"))
		return json_integer(1);
	complain(l, n, "`qpdrill: 1`", "version %s of the language is not known here", node_shown(n, shown, sizeof(shown)));
	return NULL;
}

static json_t *parse_bool(struct loader *l, struct ynode *n, const struct gkey *k)
{
	char shown[80];

	(void)k;
	if (n->kind == YNODE_SCALAR && n->plain && (!strcmp(n->text, "true") || !strcmp(n->text, "false")))
		return json_boolean(n->text[0] == 't');
	complain(l, n, "allowed: true, false", "true or false is wanted, found %s", node_shown(n, shown, sizeof(shown)));
	return NULL;
}

static json_t *parse_names(struct loader *l, struct ynode *n, const struct gkey *k)
{
	return parse_list(l, n, k, "a name", parse_name);
}

static json_t *parse_words(struct loader *l, struct ynode *n, const struct gkey *k)
{
	return parse_list(l, n, k, "a name", parse_word);
}

static json_t *some_word(struct loader *l, struct ynode *n, const struct gkey *k)
{
	if (k->max && n->kind == YNODE_SCALAR && n->plain && (n->text[0] == '-' || (n->text[0] >= '0' && n->text[0] <= '9')))
		return parse_number(l, n, k);
	return parse_word(l, n, k);
}

static json_t *parse_some(struct loader *l, struct ynode *n, const struct gkey *k)
{
	return n->kind == YNODE_LIST ? parse_list(l, n, k, "a name", some_word) : some_word(l, n, k);
}

static json_t *parse_map(struct loader *l, struct ynode *n, const struct gkey *k)
{
	return map_parse(l, n, k->map);
}

static json_t *parse_ends_of(struct loader *l, struct ynode *n, const struct gkey *k)
{
	json_t *ends;

	if (n->kind != YNODE_LIST || n->n != 2) {
		complain(l, n, "`ends: [a, b]`", "a pair has two ends");
		return NULL;
	}
	ends = parse_list(l, n, k, "an agent", parse_agent);
	if (json_array_size(ends) == 2 && json_equal(json_array_get(ends, 0), json_array_get(ends, 1))) {
		json_decref(ends);
		return NULL;
	}
	return ends;
}

typedef json_t *value_reader(struct loader *l, struct ynode *n, const struct gkey *k);

static value_reader *const readers[NUM_GTYPES] = {
	[G_VERSION] = parse_version,   [G_BOOL] = parse_bool,       [G_NUMBER] = parse_number,   [G_SIZE] = parse_number,
	[G_DURATION] = parse_duration, [G_RANGE] = parse_range,     [G_COMPARE] = parse_compare, [G_MEASURE] = parse_measure,
	[G_TEXT] = parse_text,         [G_TITLE] = parse_title,     [G_REFS] = parse_refs,       [G_REQUIRES] = parse_requires,
	[G_NAME] = parse_name,         [G_NAMES] = parse_names,     [G_WORD] = parse_word,       [G_WORDS] = parse_words,
	[G_AGENT] = parse_agent,       [G_DEVICE] = parse_device,   [G_END] = parse_end,         [G_ENDS] = parse_ends,
	[G_PAIRS] = parse_pairs,       [G_ENDS_OF] = parse_ends_of, [G_LABEL] = parse_label,     [G_LABELS] = parse_labels,
	[G_OBJECT] = parse_object,     [G_OBJECTS] = parse_objects, [G_PLACE] = parse_place,     [G_WC] = parse_wc,
	[G_EVENTS] = parse_events,     [G_ERRNOS] = parse_errnos,   [G_ATTRS] = parse_attrs,     [G_COUNTERS] = parse_counters,
	[G_MAP] = parse_map,           [G_MAPS] = parse_maps,       [G_MAP_OF] = parse_map_of,   [G_ANY_MAP] = parse_any_map,
	[G_SOME] = parse_some,         [G_CHAIN] = parse_chain,     [G_STEPS] = parse_steps,
};

json_t *value_parse(struct loader *l, struct ynode *n, const struct gkey *k)
{
	/* A file with very many mistakes is not read to its end. */
	if (n->bad || l->n_mistakes >= MISTAKES_MAX)
		return NULL;
	n = sweep_resolve(l, n);
	if (!n || n->bad || !readers[k->type])
		return NULL;
	return readers[k->type](l, n, k);
}
