/* SPDX-License-Identifier: MIT */
#include "scenario.h"

#include <stdio.h>
#include <string.h>

#include "../faults/fault.h"
#include "attr.h"
#include "scenario_loader.h"

#define PATTERN_VAR "^\\$\\{[a-z_][a-z0-9_]*\\}$"
#define PATTERN_REF "^[a-z][a-z0-9_.*\\[\\]-]*( [+-] [0-9]+)?$"
#define PATTERN_NAME "^[a-z][a-z0-9_-]*$"
#define PATTERN_END "^(\\*|[a-z][a-z0-9_-]*(\\[(\\*|[0-9]+)\\])?)(\\.[a-z][a-z0-9_-]*){0,2}(@[0-9]+)?$"

static json_t *map_schema(const struct gmap *m);

static json_t *with_help(json_t *schema, const char *help)
{
	if (help && *help)
		json_object_set_new(schema, "description", json_string(help));
	return schema;
}

static json_t *pattern(const char *text)
{
	return json_pack("{s:s,s:s}", "type", "string", "pattern", text);
}

/* Anything may come from the sweep. */
static json_t *or_var(json_t *schema)
{
	return json_pack("{s:[o,o]}", "anyOf", schema, pattern(PATTERN_VAR));
}

static json_t *or_list(json_t *item)
{
	json_t *list = json_pack("{s:s,s:O,s:i}", "type", "array", "items", item, "minItems", 1);

	return json_pack("{s:[o,o]}", "anyOf", item, list);
}

static json_t *integer(const struct gkey *k)
{
	json_t *s = json_pack("{s:s,s:I}", "type", "integer", "minimum", (json_int_t)k->min);

	if (k->max)
		json_object_set_new(s, "maximum", json_integer(k->max));
	return s;
}

static json_t *number_schema(const struct gkey *k, bool size)
{
	json_t *any = json_pack("[o,o]", integer(k), pattern("^0x[0-9a-fA-F]+$|" PATTERN_VAR));

	if (size)
		json_array_append_new(any, pattern("^[0-9]+(KiB|MiB|GiB)$"));
	if (!(k->flags & G_NO_REF))
		json_array_append_new(any, pattern(PATTERN_REF));
	return json_pack("{s:o}", "anyOf", any);
}

static json_t *words_schema(const struct gkey *k)
{
	json_t *words = json_array();

	for (size_t i = 0; k->names && i < k->names->n; i++)
		json_array_append_new(words, json_string(k->names->rows[i].text));
	for (const char *const *w = k->words; w && *w; w++) {
		json_array_append_new(words, json_string(*w));
		/* A word of digits is an integer for YAML. */
		if (strspn(*w, "0123456789") == strlen(*w))
			json_array_append_new(words, json_integer(**w - '0'));
	}
	return or_var(json_pack("{s:o}", "enum", words));
}

static json_t *compare_schema(void)
{
	return json_pack("{s:[{s:s,s:i},o]}", "anyOf", "type", "integer", "minimum", 0,
			 pattern("^(<|<=|>|>=|==) ?[a-z0-9].*$|^[0-9][0-9a-z%]*\\.\\.[0-9a-z%]*$|" PATTERN_REF "|" PATTERN_VAR));
}

static char *names_pattern(const struct name_table *t, const char *format)
{
	char *alternatives = NULL, *out = NULL;
	size_t size;
	FILE *f = open_memstream(&alternatives, &size);

	if (!f)
		return NULL;
	for (size_t i = 0; i < t->n; i++)
		fprintf(f, "%s%s", i ? "|" : "", t->rows[i].text);
	fclose(f);
	f = open_memstream(&out, &size);
	if (f) {
		/* format has one @ for each place of the alternatives. */
		for (const char *p = format; *p; p++) {
			if (*p == '@')
				fprintf(f, "(%s)", alternatives);
			else
				fputc(*p, f);
		}
		fclose(f);
	}
	free(alternatives);
	return out;
}

static json_t *wc_schema(const struct gkey *k)
{
	char *item =
		names_pattern(k->names, "^@( *\\| *@)*( x ([0-9]+(\\.\\.[0-9]*)?|rest|[a-z][a-z0-9_.\\[\\]-]*( [+-] [0-9]+)?))?$");
	json_t *schema =
		json_pack("{s:[{s:s},o,o,{s:s,s:o,s:i}]}", "anyOf", "const", "none", pattern(PATTERN_VAR), pattern(item), "type",
			  "array", "items", json_pack("{s:[o,o]}", "anyOf", pattern(item), pattern(PATTERN_VAR)), "minItems", 1);

	free(item);
	return schema;
}

static json_t *errnos_schema(const struct gkey *k)
{
	char *text = names_pattern(k->names, "^@( *\\| *@)*$|" PATTERN_VAR);
	json_t *schema = json_pack("{s:[o,{s:i}]}", "anyOf", or_list(pattern(text)), "const", 0);

	free(text);
	return schema;
}

static json_t *events_schema(const struct gkey *k)
{
	return json_pack("{s:[{s:s},o]}", "anyOf", "const", "none", or_list(words_schema(k)));
}

static json_t *attr_schema(const struct attr *a, unsigned flags)
{
	struct gkey k = { .name = a->name, .flags = flags & G_UNBOUNDED ? 0 : G_NO_REF };

	if (!(flags & G_UNBOUNDED)) {
		k.min = a->min;
		k.max = a->max;
	}
	if (!strcmp(a->name, "type")) {
		k.names = &names_qp_type;
		return words_schema(&k);
	}
	if (!strcmp(a->name, "cur_state")) {
		k.names = &names_state;
		return words_schema(&k);
	}
	if (!strcmp(a->name, "access")) {
		k.names = &names_access;
		return json_pack("{s:[o,{s:s,s:i}]}", "anyOf", or_list(words_schema(&k)), "type", "array", "maxItems", 0);
	}
	if (!strcmp(a->name, "signal_all"))
		return or_var(json_pack("{s:s}", "type", "boolean"));
	if (!strcmp(a->name, "dest_gid"))
		return json_pack("{s:s}", "type", "string");
	if (flags & G_EXPECTED)
		return compare_schema();
	return number_schema(&k, !strcmp(a->unit, "bytes"));
}

/* With G_AGENTS any further key is an agent, which holds attributes again. */
static json_t *attrs_schema(const struct gkey *k)
{
	json_t *properties = json_object(), *schema;

	for (size_t i = 0; i < attr_table_n; i++)
		json_object_set_new(properties, attr_table[i].name,
				    with_help(attr_schema(&attr_table[i], k->flags), attr_table[i].help));
	if (!(k->flags & G_UNBOUNDED))
		json_object_set_new(properties, "api", json_pack("{s:[s,s]}", "enum", "classic", "extended"));
	if (k->flags & G_UNBOUNDED && !(k->flags & G_EXPECTED)) {
		json_object_set_new(properties, "limit", json_pack("{s:s}", "type", "integer"));
		json_object_set_new(properties, "max_wr", json_pack("{s:s}", "type", "integer"));
		json_object_set_new(properties, "depth", json_pack("{s:s}", "type", "integer"));
	}
	schema = json_pack("{s:s,s:o,s:b}", "type", "object", "properties", properties, "additionalProperties", 0);
	if (k->flags & G_AGENTS) {
		struct gkey inner = { .name = k->name, .flags = k->flags & ~(unsigned)G_AGENTS };

		json_object_set_new(schema, "additionalProperties", attrs_schema(&inner));
	}
	return schema;
}

static json_t *sweep_schema(void)
{
	static const struct gmap match = { .what = "", .keys = grammar_match };
	json_t *list = json_pack("{s:s,s:i}", "type", "array", "minItems", 1);
	json_t *packets = json_pack("{s:s,s:{s:o},s:[s],s:b}", "type", "object", "properties", "packets", map_schema(&match),
				    "required", "packets", "additionalProperties", 0);

	static const struct gmap transition = { .what = "", .keys = grammar_transition };

	return json_pack("{s:[{s:s,s:{s:o},s:{s:[o,o]}},{s:s,s:{s:s},s:i}]}", "anyOf", "type", "object", "properties", "transition",
			 map_schema(&transition), "additionalProperties", "anyOf", list, packets, "type", "array", "items", "type",
			 "object", "minItems", 1);
}

static json_t *steps_ref(int least)
{
	return json_pack("{s:s,s:{s:s},s:i}", "type", "array", "items", "$ref", "#/$defs/step", "minItems", least);
}

static json_t *maps_schema(const struct gkey *k, int least)
{
	return json_pack("{s:s,s:o,s:i}", "type", "array", "items", map_schema(k->map), "minItems", least);
}

static json_t *type_schema(const struct gkey *k)
{
	switch (k->type) {
	case G_VERSION:
		return json_pack("{s:i}", "const", 1);
	case G_BOOL:
		return or_var(json_pack("{s:s}", "type", "boolean"));
	case G_NUMBER:
		return number_schema(k, false);
	case G_SIZE:
		return number_schema(k, true);
	case G_DURATION:
		return pattern("^[0-9]+(ns|us|ms|s)$|" PATTERN_VAR);
	case G_RANGE:
		return json_pack("{s:[o,o]}", "anyOf", integer(k), pattern("^[0-9]+\\.\\.[0-9]*$|" PATTERN_VAR));
	case G_COMPARE:
	case G_MEASURE:
		return compare_schema();
	case G_COUNTERS:
		return json_pack("{s:s,s:o,s:i}", "type", "object", "additionalProperties", compare_schema(), "minProperties", 1);
	case G_TITLE:
		return json_pack("{s:s,s:i}", "type", "string", "maxLength", 140);
	case G_REFS:
	case G_REQUIRES:
		return json_pack("{s:[{s:s},{s:s,s:{s:s}}]}", "anyOf", "type", "string", "type", "array", "items", "type",
				 "string");
	case G_NAME:
	case G_AGENT:
	case G_DEVICE:
	case G_LABEL:
		return pattern(PATTERN_NAME "|" PATTERN_VAR);
	case G_NAMES:
	case G_LABELS:
		return or_list(pattern(PATTERN_NAME "|" PATTERN_VAR));
	case G_WORD:
		return words_schema(k);
	case G_WORDS:
		return or_list(words_schema(k));
	case G_SOME:
		return or_list(k->max ? json_pack("{s:[o,o]}", "anyOf", integer(k), words_schema(k)) : words_schema(k));
	case G_END:
		return pattern(PATTERN_END "|" PATTERN_VAR);
	case G_ENDS:
		return or_list(pattern(PATTERN_END "|" PATTERN_VAR));
	case G_PAIRS:
		return or_list(pattern("^(\\*|[a-z][a-z0-9_-]*(\\[(\\*|[0-9]+)\\])?)$|" PATTERN_VAR));
	case G_ENDS_OF:
		return json_pack("{s:s,s:o,s:i,s:i}", "type", "array", "items", pattern(PATTERN_NAME), "minItems", 2, "maxItems",
				 2);
	case G_OBJECT:
		return pattern("^[a-z][a-z0-9_.\\[\\]-]*$|" PATTERN_VAR);
	case G_OBJECTS:
		return or_list(pattern("^[a-z][a-z0-9_.\\[\\]-]*$|" PATTERN_VAR));
	case G_PLACE:
		return pattern("^[a-z][a-z0-9_.\\[\\]-]*( \\+ [0-9]+)?$|" PATTERN_VAR);
	case G_WC:
		return wc_schema(k);
	case G_EVENTS:
		return events_schema(k);
	case G_ERRNOS:
		return errnos_schema(k);
	case G_ATTRS:
		return attrs_schema(k);
	case G_MAP:
		/* A packet may come from the sweep. */
		return k->map->keys == grammar_match ? or_var(map_schema(k->map)) : map_schema(k->map);
	case G_MAPS:
		return maps_schema(k, (int)k->min);
	case G_CHAIN:
		return json_pack("{s:[{s:s},o]}", "anyOf", "type", "boolean", maps_schema(k, 1));
	case G_MAP_OF:
		return json_pack("{s:s,s:o,s:i,s:o}", "type", "object", "additionalProperties", map_schema(k->map), "minProperties",
				 1, "propertyNames", pattern(PATTERN_NAME));
	case G_STEPS:
		return steps_ref(1);
	case G_SWEEP:
		return sweep_schema();
	case G_ANY_MAP:
		return json_pack("{s:s}", "type", "object");
	default:
		return json_pack("{s:s}", "type", "string");
	}
}

static void add_keys(json_t *properties, json_t *required, const struct gkey *keys)
{
	for (const struct gkey *k = keys; k && k->name; k++) {
		json_object_set_new(properties, k->name, with_help(type_schema(k), k->help));
		if (k->flags & G_REQUIRED)
			json_array_append_new(required, json_string(k->name));
	}
}

static json_t *map_schema(const struct gmap *m)
{
	json_t *properties = json_object(), *required = json_array();
	json_t *schema = json_pack("{s:s,s:o,s:o,s:b}", "type", "object", "properties", properties, "required", required,
				   "additionalProperties", 0);

	add_keys(properties, required, m->keys);
	add_keys(properties, required, m->also);
	return schema;
}

static json_t *or_null(json_t *schema)
{
	return json_pack("{s:[{s:s},o]}", "anyOf", "type", "null", schema);
}

static json_t *fault_param_schema(const struct fault_param *p)
{
	static const struct gmap match = { .what = "", .keys = grammar_match };
	static const enum gtype types[NUM_FAULT_PARAM_TYPES] = {
		[FAULT_PARAM_END] = G_END,       [FAULT_PARAM_ENDS] = G_ENDS,    [FAULT_PARAM_AGENT] = G_AGENT,
		[FAULT_PARAM_DEVICE] = G_DEVICE, [FAULT_PARAM_INT] = G_NUMBER,   [FAULT_PARAM_DURATION] = G_DURATION,
		[FAULT_PARAM_SIZE] = G_SIZE,     [FAULT_PARAM_ENUM] = G_WORD,    [FAULT_PARAM_STRING] = G_TEXT,
		[FAULT_PARAM_MAP] = G_ANY_MAP,   [FAULT_PARAM_PERCENT] = G_TEXT, [FAULT_PARAM_NAME] = G_OBJECT,
	};
	struct gkey k = {
		.name = p->name, .type = types[p->type], .flags = G_NO_REF, .min = p->min, .max = p->max, .words = p->values
	};

	if (p->type == FAULT_PARAM_PERCENT)
		return pattern("^[0-9]+(\\.[0-9]+)?%$|" PATTERN_VAR);
	if (p->type == FAULT_PARAM_MAP && !strcmp(p->name, "match"))
		return or_var(map_schema(&match));
	return type_schema(&k);
}

static json_t *fault_ops_schema(const struct fault_ops *ops)
{
	json_t *properties = json_object(), *required = json_array(), *schema;

	for (const struct fault_param *p = ops->params; p && p->name; p++) {
		json_object_set_new(properties, p->name, with_help(fault_param_schema(p), p->help));
		if (p->required)
			json_array_append_new(required, json_string(p->name));
	}
	schema = json_pack("{s:s,s:o,s:o,s:b}", "type", "object", "properties", properties, "required", required,
			   "additionalProperties", 0);
	return json_array_size(required) ? schema : or_null(schema);
}

/* Exactly one fault beside as, within and for. */
static json_t *fault_schema(void)
{
	json_t *properties = json_object(), *none = json_array(), *one_of = json_array(), *schema;

	for (size_t i = 0; fault_table[i]; i++) {
		json_object_set_new(properties, fault_table[i]->name,
				    with_help(fault_ops_schema(fault_table[i]), fault_table[i]->help));
		json_array_append_new(one_of, json_pack("{s:[s]}", "required", fault_table[i]->name));
	}
	add_keys(properties, none, grammar_fault);
	schema = json_pack("{s:s,s:o,s:b,s:o}", "type", "object", "properties", properties, "additionalProperties", 0, "oneOf",
			   one_of);
	json_decref(none);
	return schema;
}

static json_t *step_schema(const struct gstep *s)
{
	switch (s->arg) {
	case GSTEP_MAYBE:
		return or_null(map_schema(&s->map));
	case GSTEP_VALUE:
		return type_schema(&s->value);
	case GSTEP_FAULT:
		return fault_schema();
	case GSTEP_TOGETHER:
		return steps_ref(2);
	default:
		return or_var(map_schema(&s->map));
	}
}

static json_t *steps_schema(void)
{
	json_t *properties = json_object();

	for (const struct gstep *s = grammar_steps; s->name; s++)
		json_object_set_new(properties, s->name, with_help(step_schema(s), s->help));
	return json_pack("{s:s,s:i,s:i,s:b,s:o}", "type", "object", "minProperties", 1, "maxProperties", 1, "additionalProperties",
			 0, "properties", properties);
}

json_t *scenario_schema(void)
{
	json_t *schema = map_schema(&grammar_file);

	json_object_set_new(schema, "$schema", json_string("https://json-schema.org/draft/2020-12/schema"));
	json_object_set_new(schema, "title", json_string("qpdrill scenario"));
	json_object_set_new(schema, "$defs", json_pack("{s:o}", "step", steps_schema()));
	return schema;
}
