/* SPDX-License-Identifier: MIT */
#include "scenario_loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../faults/fault.h"
#include "json.h"
#include "packet.h"

static json_t *parse_percent(struct loader *l, struct ynode *n, const struct fault_param *p)
{
	const char *text = scalar_text(l, n, "a percentage");
	char *end;
	double value;

	if (!text)
		return NULL;
	value = strtod(text, &end);
	if (end > text && !strcmp(end, "%") && strspn(text, "0123456789.%") == strlen(text) && value <= 100)
		return json_string(text);
	complain(l, n, "`5%`, `0.1%`", "a percentage from 0%% to 100%% is wanted for `%s`, found `%.40s`", p->name, text);
	return NULL;
}

/* A label or an object: the fault knows which it can use. */
static json_t *parse_any_name(struct loader *l, struct ynode *n, const struct fault_param *p)
{
	const char *text = scalar_text(l, n, "a name");
	struct word_list w = { .n = 0 };
	char hint[HINT_SIZE];

	if (!text)
		return NULL;
	if (json_object_get(l->labels, text) || (strcmp(p->name, "use") && json_object_get(l->objects, text))) {
		l->touched |= json_bool(json_object_get(l->labels, text), "gone", false);
		return json_string(text);
	}
	if (!strcmp(p->name, "use"))
		return parse_label(l, n, &(struct gkey){ .name = p->name, .flags = G_OF_REMEMBER });
	if (strchr(text, '.'))
		return parse_object(l, n, &(struct gkey){ .name = p->name, .flags = G_OBJ_ANY });
	words_add_object(&w, l->labels);
	words_add_object(&w, l->objects);
	complain(l, n, words_hint(&w, text, hint, sizeof(hint)), "nothing is named `%s`", text);
	return NULL;
}

static size_t words_count(const char *const *words)
{
	size_t n = 0;

	while (words && words[n])
		n++;
	return n;
}

void match_is_present(struct loader *l, const struct ynode *map, void *out)
{
	const json_t *item;
	size_t i;

	for (i = 0; i < NUM_PACKET_OUTER; i++)
		if (json_object_get(out, packet_outer_rows[i].name))
			complain(l, ynode_get(map, packet_outer_rows[i].name)->key, NULL,
				 "only `packets` of an `expect` looks at `%s`", packet_outer_rows[i].name);
	json_array_foreach(json_object_get(out, "from"), i, item) {
		if (strchr(json_string_value(item), '@'))
			complain(l, ynode_get(map, "from"), "`packets` of an `expect` speaks of former lives",
				 "`%s`: an earlier life cannot act any more", json_string_value(item));
	}
}

static json_t *param_parse(struct loader *l, struct ynode *n, const struct fault_param *p)
{
	struct gkey k = { .name = p->name, .min = p->min, .max = p->max, .words = p->values, .help = p->help };
	static const struct gmap match = { .what = "`match`", .keys = grammar_match, .check = match_is_present };

	switch (p->type) {
	case FAULT_PARAM_END:
		k.type = G_END;
		break;
	case FAULT_PARAM_ENDS:
		k.type = G_ENDS;
		break;
	case FAULT_PARAM_AGENT:
		k.type = G_AGENT;
		break;
	case FAULT_PARAM_DEVICE:
		k.type = G_DEVICE;
		break;
	case FAULT_PARAM_INT:
		k.type = G_NUMBER;
		k.flags = G_NO_REF;
		break;
	case FAULT_PARAM_DURATION:
		k.type = G_DURATION;
		break;
	case FAULT_PARAM_SIZE:
		k.type = G_SIZE;
		k.flags = G_NO_REF;
		break;
	case FAULT_PARAM_ENUM:
		k.type = words_count(p->values) ? G_WORD : G_TEXT;
		break;
	case FAULT_PARAM_MAP:
		k.type = strcmp(p->name, "match") ? G_ANY_MAP : G_MAP;
		k.map = &match;
		break;
	case FAULT_PARAM_PERCENT:
		n = sweep_resolve(l, n);
		return n ? parse_percent(l, n, p) : NULL;
	case FAULT_PARAM_NAME:
		n = sweep_resolve(l, n);
		return n ? parse_any_name(l, n, p) : NULL;
	default:
		k.type = G_TEXT;
		break;
	}
	if (k.type == G_MAP) {
		bool around = l->touched;
		json_t *value;

		l->touched = false;
		value = value_parse(l, n, &k);
		l->matched |= l->touched;
		l->touched |= around;
		return value;
	}
	return value_parse(l, n, &k);
}

static void complain_param(struct loader *l, const struct ynode *key, const struct fault_ops *ops)
{
	struct word_list w = { .n = 0 };
	char hint[HINT_SIZE];

	for (const struct fault_param *p = ops->params; p && p->name; p++)
		words_add(&w, p->name);
	complain(l, key, w.n ? words_hint(&w, key->text, hint, sizeof(hint)) : "it takes no parameters",
		 "unknown parameter `%s` of fault `%s`", key->text, ops->name);
}

static bool is_param(const struct fault_ops *ops, const char *name)
{
	for (const struct fault_param *p = ops->params; p && p->name; p++)
		if (!strcmp(p->name, name))
			return true;
	return false;
}

json_t *fault_args_parse(struct loader *l, struct ynode *n, const struct fault_ops *ops)
{
	static const struct ynode nothing = { .kind = YNODE_MAP };
	const struct ynode *map = node_is_null(n) ? &nothing : n;
	size_t before = l->n_errors;
	struct error e = { "" };
	char shown[80];
	json_t *args;

	if (map->kind != YNODE_MAP) {
		complain(l, n, ops->help, "fault `%s` takes its parameters as a map, found %s", ops->name,
			 node_shown(n, shown, sizeof(shown)));
		return NULL;
	}
	for (size_t i = 0; i < map->n; i++)
		if (!map->kids[i]->bad && !is_param(ops, map->kids[i]->key->text))
			complain_param(l, map->kids[i]->key, ops);
	args = json_object();
	for (const struct fault_param *p = ops->params; p && p->name; p++) {
		struct ynode *kid = ynode_get(map, p->name);
		json_t *value;

		if (!kid) {
			if (p->required)
				complain(l, ynode_place(n), NULL, "fault `%s` wants `%s:` (%s)", ops->name, p->name,
					 p->help ? p->help : "required");
			continue;
		}
		value = kid->bad ? NULL : param_parse(l, kid, p);
		if (value)
			json_object_set_new(args, p->name, value);
	}
	if (ops->takes_device && !json_object_get(l->doc, "bystander"))
		complain(l, ynode_place(n), "`bystander: none` at the top of the file",
			 "fault `%s` takes the device from everybody: a second pair on it would be lost", ops->name);
	if (ops->takes_device && l->cm_keeps)
		complain(l, ynode_place(n), "`recover: { path: restart }` before it",
			 "fault `%s` cannot take a device after a connect by rdma_cm: librdmacm keeps every device open until its "
			 "process "
			 "ends",
			 ops->name);
	if (ops->check && l->n_errors == before && ops->check(args, &e))
		complain(l, ynode_place(n), NULL, "fault `%s`: %s", ops->name, e.text);
	return args;
}
