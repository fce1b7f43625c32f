/* SPDX-License-Identifier: MIT */
#include "scenario_loader.h"

#include <stdio.h>
#include <string.h>

#include "attr.h"

/* What only `modify: set:` and `expect: attr:` speak of: the controller hands these over or chooses them. */
static const char *const set_only[] = { "dest_qpn", "dest_gid", "grh", "port", "cur_state", "en_sqd_async_notify", NULL };
static const char *const at_creation[] = { "type", "signal_all", NULL };
static const char *const of_srq_or_cq[] = { "limit", "max_wr", "depth", NULL };
static const char *const apis[] = { "classic", "extended", NULL };

static bool listed(const char *const *words, const char *text)
{
	for (; *words; words++)
		if (!strcmp(*words, text))
			return true;
	return false;
}

/* Whether this attribute may stand here: k says where we are. */
static bool fits(const struct gkey *k, const char *name)
{
	if (k->flags & G_UNBOUNDED)
		return !listed(at_creation, name);
	return !listed(set_only, name);
}

static void complain_key(struct loader *l, const struct ynode *key, const struct gkey *k)
{
	struct word_list w = { .n = 0 };
	char hint[HINT_SIZE];

	for (size_t i = 0; i < attr_table_n; i++)
		if (fits(k, attr_table[i].name))
			words_add(&w, attr_table[i].name);
	if (!(k->flags & G_UNBOUNDED))
		words_add(&w, "api");
	if (k->flags & G_AGENTS)
		words_add_object(&w, l->agents);
	words_hint(&w, key->text, hint, sizeof(hint));
	if (attr_find(key->text) && k->flags & G_UNBOUNDED)
		complain(l, key, "it is set under the top level `qp:`", "`%s` is fixed when a QP is created", key->text);
	else if (attr_find(key->text))
		complain(l, key, "only `modify: { set: }` and `expect: { attr: }` speak of it",
			 "`%s` is handed over when the ends connect", key->text);
	else
		complain(l, key, hint, "unknown attribute `%s`%s", key->text, k->flags & G_AGENTS ? ", and no agent" : "");
}

static json_t *number_value(struct loader *l, struct ynode *n, const struct gkey *k, const struct attr *a)
{
	bool bytes = !strcmp(a->unit, "bytes"), mtu = !strcmp(a->name, "path_mtu");
	struct gkey key = { .name = a->name, .type = bytes ? G_SIZE : G_NUMBER, .flags = k->flags & G_UNBOUNDED ? 0 : G_NO_REF };
	size_t before = l->n_errors;
	json_t *value;

	if (!(k->flags & G_UNBOUNDED)) {
		key.min = a->min;
		key.max = a->max;
	}
	if (k->flags & G_EXPECTED)
		key.type = G_MEASURE;
	value = value_parse(l, n, &key);
	if (mtu && json_is_integer(value) && !(k->flags & G_UNBOUNDED) && !mtu_to_enum(json_integer_value(value)))
		complain(l, n, "allowed: 256, 512, 1024, 2048, 4096", "there is no path_mtu of %lld",
			 (long long)json_integer_value(value));
	if (l->n_errors == before)
		return value;
	json_decref(value);
	return NULL;
}

static json_t *attr_value(struct loader *l, struct ynode *n, const struct gkey *k, const struct attr *a)
{
	static const struct {
		const char *name;
		struct gkey key;
	} special[] = {
		{ "type", { .name = "type", .type = G_WORD, .names = &names_qp_type } },
		{ "signal_all", { .name = "signal_all", .type = G_BOOL } },
		{ "access", { .name = "access", .type = G_WORDS, .names = &names_access } },
		{ "cur_state", { .name = "cur_state", .type = G_WORD, .names = &names_state } },
		{ "dest_gid", { .name = "dest_gid", .type = G_TEXT } },
	};

	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
		if (strcmp(special[i].name, a->name))
			continue;
		/* No rights at all is a choice; an empty list says it. */
		if (special[i].key.type == G_WORDS && n->kind == YNODE_LIST && !n->n)
			return json_array();
		return value_parse(l, n, &special[i].key);
	}
	return number_value(l, n, k, a);
}

static json_t *one_member(struct loader *l, struct ynode *n, const struct gkey *k)
{
	static const struct gkey api = { .name = "api", .type = G_WORD, .words = apis };
	const char *name = n->key->text;
	const struct attr *a = attr_find(name);

	if (k->flags & G_AGENTS && json_object_get(l->agents, name))
		return value_parse(l, n, &(struct gkey){ .name = name, .type = G_ATTRS, .flags = k->flags & ~(unsigned)G_AGENTS });
	if (!strcmp(name, "api") && !(k->flags & G_UNBOUNDED))
		return value_parse(l, n, &api);
	if (listed(of_srq_or_cq, name) && k->flags & G_UNBOUNDED && !(k->flags & G_EXPECTED))
		return value_parse(l, n, &(struct gkey){ .name = name, .type = G_NUMBER });
	if (a && fits(k, name))
		return attr_value(l, n, k, a);
	complain_key(l, n->key, k);
	return NULL;
}

json_t *parse_attrs(struct loader *l, struct ynode *n, const struct gkey *k)
{
	char shown[80];
	json_t *out, *value;

	if (n->kind != YNODE_MAP) {
		complain(l, n, "`{ timeout: 14, retry_cnt: 3 }`", "attributes by name are wanted, found %s",
			 node_shown(n, shown, sizeof(shown)));
		return NULL;
	}
	out = json_object();
	for (size_t i = 0; i < n->n; i++) {
		if (n->kids[i]->bad)
			continue;
		value = one_member(l, n->kids[i], k);
		if (value)
			json_object_set_new(out, n->kids[i]->key->text, value);
	}
	return out;
}
