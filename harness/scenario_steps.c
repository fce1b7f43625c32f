/* SPDX-License-Identifier: MIT */
#include "scenario_loader.h"

#include <stdio.h>
#include <string.h>

#include "../faults/fault.h"
#include "json.h"

static void complain_step(struct loader *l, const struct ynode *key)
{
	struct word_list w = { .n = 0 };
	char hint[HINT_SIZE];

	for (const struct gstep *s = grammar_steps; s->name; s++)
		words_add(&w, s->name);
	complain(l, key, words_hint(&w, key->text, hint, sizeof(hint)), "there is no step `%s`", key->text);
}

static void add_label(struct loader *l, struct ynode *arg, const struct gstep *s, const json_t *out, unsigned line)
{
	const char *name = json_str(out, "as");
	const json_t *other = name ? json_object_get(l->labels, name) : NULL;

	if (!name)
		return;
	if (other) {
		complain(l, ynode_get(arg, "as"), "each `as:` gives a name of its own",
			 "`%s` is the name of an earlier step (line %d)", name, (int)json_int(other, "line", 0));
		return;
	}
	json_object_set_new(l->labels, name,
			    json_pack("{s:I,s:s,s:i,s:O?}", "kind", (json_int_t)s->label, "do", s->name, "line", (int)line, "at",
				      json_object_get(out, "at")));
}

static bool is_fault_modifier(const char *key)
{
	for (const struct gkey *k = grammar_fault; k->name; k++)
		if (!strcmp(k->name, key))
			return true;
	return false;
}

static void complain_fault(struct loader *l, const struct ynode *key)
{
	struct word_list w = { .n = 0 };
	char hint[HINT_SIZE];

	for (size_t i = 0; fault_table[i]; i++)
		words_add(&w, fault_table[i]->name);
	complain(l, key, words_hint(&w, key->text, hint, sizeof(hint)), "there is no fault `%s`", key->text);
}

static json_t *fault_parse(struct loader *l, struct ynode *n)
{
	const struct fault_ops *ops = NULL;
	struct ynode *named = NULL;
	json_t *out, *value;

	if (n->kind != YNODE_MAP) {
		complain(l, ynode_place(n), "`- fault: { missing_receive: { at: b }, as: dry }`",
			 "`fault` wants the name of a fault and its parameters");
		return NULL;
	}
	for (size_t i = 0; i < n->n; i++) {
		struct ynode *kid = n->kids[i];

		if (is_fault_modifier(kid->key->text))
			continue;
		if (named) {
			complain(l, kid->key, "one step injects one fault: write another step",
				 "two faults in one step: `%s` and `%s`", named->key->text, kid->key->text);
			continue;
		}
		named = kid;
		ops = fault_find(kid->key->text);
		if (!ops && !kid->bad)
			complain_fault(l, kid->key);
	}
	if (!named)
		complain(l, ynode_place(n), "`- fault: { missing_receive: { at: b }, as: dry }`", "a `fault` step without a fault");
	out = json_object();
	for (const struct gkey *k = grammar_fault; k->name; k++) {
		struct ynode *kid = ynode_get(n, k->name);

		value = kid ? value_parse(l, kid, k) : NULL;
		if (value)
			json_object_set_new(out, k->name, value);
	}
	if (!ops || named->bad)
		return out;
	named = sweep_resolve(l, named);
	json_object_set_new(out, "fault", json_string(ops->name));
	value = named ? fault_args_parse(l, named, ops) : NULL;
	if (value)
		json_object_set_new(out, "args", value);
	return out;
}

static json_t *together_parse(struct loader *l, struct ynode *n)
{
	static const char *const refused[] = { "repeat", "together", "wait", "expect", "allow" };
	json_t *steps;

	if (n->kind != YNODE_LIST || n->n < 2) {
		complain(l, ynode_place(n), "`- together: [ { post: {...} }, { post: {...} } ]`",
			 "`together` is a list of at least two steps");
		return NULL;
	}
	for (size_t i = 0; i < n->n; i++)
		for (size_t k = 0; k < sizeof(refused) / sizeof(refused[0]); k++) {
			struct ynode *kid = ynode_get(n->kids[i], refused[k]);

			if (kid)
				complain(l, kid->key, "only steps that act", "`%s` cannot stand in `together`", refused[k]);
		}
	steps = parse_steps(l, n, NULL);
	return steps ? json_pack("{s:o}", "steps", steps) : NULL;
}

/* { any: [...], within, as }: the alternatives hold everything else. */
static json_t *any_parse(struct loader *l, struct ynode *n, const struct gstep *s)
{
	const struct gkey *keys = s->map.also;
	static const struct gkey within[] = { { .name = "within", .type = G_DURATION, .help = "" }, { .name = NULL } };
	struct gmap any = { .what = "`expect: { any: }`", .keys = within, .also = keys };

	return map_parse(l, n, &any);
}

static json_t *argument_parse(struct loader *l, struct ynode *n, const struct gstep *s)
{
	json_t *value;

	if (n->bad)
		return NULL;
	switch (s->arg) {
	case GSTEP_MAYBE:
		if (!node_is_null(n))
			return map_parse(l, n, &s->map);
		value = json_object();
		if (s->map.check)
			s->map.check(l, n, value);
		return value;
	case GSTEP_VALUE:
		value = value_parse(l, n, &s->value);
		return value ? json_pack("{s:o}", "arg", value) : NULL;
	case GSTEP_FAULT:
		return fault_parse(l, n);
	case GSTEP_TOGETHER:
		return together_parse(l, n);
	case GSTEP_EXPECT:
		if (n->kind == YNODE_MAP && ynode_get(n, "any"))
			return any_parse(l, n, s);
		return map_parse(l, n, &s->map);
	default:
		return map_parse(l, n, &s->map);
	}
}

static json_t *step_parse(struct loader *l, struct ynode *n)
{
	struct ynode *arg, *body;
	const struct gstep *s;
	json_t *out;
	bool around;

	if (n->kind != YNODE_MAP || !n->n) {
		char shown[80];

		complain(l, n, "`- post: { at: a, op: SEND }`", "a step is a map with one key, found %s",
			 node_shown(n, shown, sizeof(shown)));
		return NULL;
	}
	for (size_t i = 1; i < n->n; i++)
		complain(l, n->kids[i]->key,
			 "a step has one key; is `- ` missing, or are these the step's own keys, one level too high?",
			 "a second key `%s` in one step, beside `%s`", n->kids[i]->key->text, n->kids[0]->key->text);
	arg = n->kids[0];
	s = grammar_step(arg->key->text);
	if (!s) {
		if (!arg->bad)
			complain_step(l, arg->key);
		return NULL;
	}
	if (++l->n_steps > GRAMMAR_MAX_STEPS) {
		if (l->n_steps == GRAMMAR_MAX_STEPS + 1)
			complain(l, arg->key, "`repeat: { times: N, steps: [...] }`", "more than %d steps", GRAMMAR_MAX_STEPS);
		return NULL;
	}
	around = l->touched;
	l->touched = false;
	body = sweep_resolve(l, arg);
	out = body ? argument_parse(l, body, s) : NULL;
	if (!out) {
		l->touched = around;
		return NULL;
	}
	json_object_set_new(out, "do", json_string(s->name));
	json_object_set_new(out, "line", json_integer(arg->key->line));
	json_object_set_new(out, "col", json_integer(arg->key->col));
	if (body->kind == YNODE_MAP)
		add_label(l, body, s, out, arg->key->line);
	if (l->mode == SWEEP_FIRST_PASS)
		out = packets_step(l, out);
	l->touched = around;
	return out;
}

json_t *parse_steps(struct loader *l, struct ynode *n, const struct gkey *k)
{
	char shown[80];
	json_t *out;

	(void)k;
	if (n->kind != YNODE_LIST || !n->n) {
		complain(l, n->kind == YNODE_SCALAR ? ynode_place(n) : n, "`steps:` and below it `  - connect:`",
			 "steps are a list of at least one, found %s",
			 n->kind == YNODE_LIST ? "an empty one" : node_shown(n, shown, sizeof(shown)));
		return NULL;
	}
	if (++l->nesting > GRAMMAR_MAX_NESTING) {
		complain(l, ynode_place(n), NULL, "steps are nested deeper than %d levels", GRAMMAR_MAX_NESTING);
		l->nesting--;
		return NULL;
	}
	out = json_array();
	for (size_t i = 0; i < n->n && l->n_mistakes < MISTAKES_MAX; i++) {
		json_t *step = n->kids[i]->bad ? NULL : step_parse(l, n->kids[i]);

		if (step)
			json_array_append_new(out, step);
	}
	l->nesting--;
	return out;
}
