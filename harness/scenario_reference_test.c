/* SPDX-License-Identifier: MIT */
/* Schema, help and scenarios/README.md say what the grammar has; run from the top of the tree. */
#include "scenario.h"

#include <stdlib.h>

#include "../faults/fault.h"
#include "json.h"
#include "scenario_grammar.h"
#include "scenario_loader.h"
#include "scenario_rig.h"
#include "test.h"

static bool has_path(const json_t *schema, const char *const *path)
{
	for (; *path; path++)
		schema = json_object_get(schema, *path);
	return schema != NULL;
}

/* Every key of the grammar is in the schema: it is what the loader reads. */
static void the_schema_knows_every_key(void)
{
	json_t *schema = scenario_schema();
	const json_t *step = json_object_get(json_object_get(json_object_get(schema, "$defs"), "step"), "properties");

	MUST(schema != NULL);
	CU_ASSERT_STRING_EQUAL(json_str(schema, "$schema"), "https://json-schema.org/draft/2020-12/schema");
	for (const struct gkey *k = grammar_file.keys; k->name; k++) {
		ROW_ASSERT(has_path(schema, (const char *const[]){ "properties", k->name, "description", NULL }), "%s", k->name);
		ROW_ASSERT(json_has(schema, "required", k->name) == !!(k->flags & G_REQUIRED), "%s", k->name);
	}
	for (const struct gstep *s = grammar_steps; s->name; s++) {
		const json_t *one = json_object_get(step, s->name);

		ROW_ASSERT(one && json_str(one, "description"), "step %s", s->name);
		if (s->arg != GSTEP_MAP && s->arg != GSTEP_EXPECT)
			continue;
		one = json_array_get(json_object_get(one, "anyOf"), 0); /* or the sweep's */
		for (const struct gkey *k = s->map.keys; k && k->name; k++)
			ROW_ASSERT(has_path(one, (const char *const[]){ "properties", k->name, NULL }), "%s in %s", k->name,
				   s->name);
		for (const struct gkey *k = s->map.also; k && k->name; k++)
			ROW_ASSERT(has_path(one, (const char *const[]){ "properties", k->name, NULL }), "%s in %s", k->name,
				   s->name);
	}
	ROW_ASSERT(has_path(step, (const char *const[]){ "fault", "properties", "missing_receive", "properties", "at", NULL }),
		   "faults");
	CU_ASSERT_FALSE(json_bool(schema, "additionalProperties", true));
	json_decref(schema);
}

static void every_key_has_help(void)
{
	for (const struct gkey *k = grammar_file.keys; k->name; k++)
		ROW_ASSERT(k->help && k->help[0] && k->type > G_INVALID && k->type < NUM_GTYPES, "%s", k->name);
	for (const struct gstep *s = grammar_steps; s->name; s++) {
		ROW_ASSERT(s->help && s->help[0], "step %s", s->name);
		for (const struct gkey *k = s->map.keys; k && k->name; k++)
			ROW_ASSERT(k->help && k->help[0], "%s in %s", k->name, s->name);
	}
}

static void readme_names_keys(const char *readme, const struct gkey *keys, const char *where)
{
	for (; keys && keys->name; keys++)
		ROW_ASSERT(strstr(readme, keys->name), "the language reference does not speak of `%s` in %s", keys->name, where);
}

/* The reference names every step, key and fault, and its first example is a good file. */
static void the_reference_is_complete(void)
{
	char *readme = read_text("scenarios/README.md"), *begin, *end;
	struct scenario s = { 0 };
	struct diag d = { 0 };

	MUST(readme != NULL);
	readme_names_keys(readme, grammar_file.keys, "a file");
	readme_names_keys(readme, grammar_match, "a packet match");
	readme_names_keys(readme, grammar_transition, "a sweep over transitions");
	readme_names_keys(readme, grammar_expect.keys, "expect");
	for (const struct gstep *st = grammar_steps; st->name; st++) {
		ROW_ASSERT(strstr(readme, st->name), "the language reference does not speak of step `%s`", st->name);
		readme_names_keys(readme, st->map.keys, st->name);
		readme_names_keys(readme, st->map.also, st->name);
	}
	for (size_t i = 0; fault_table[i]; i++)
		if (fault_table[i]->inject)
			ROW_ASSERT(strstr(readme, fault_table[i]->name), "the language reference does not speak of fault `%s`",
				   fault_table[i]->name);
	begin = strstr(readme, "```yaml\n");
	MUST(begin != NULL);
	begin += strlen("```yaml\n");
	end = strstr(begin, "```");
	MUST(end != NULL);
	ROW_ASSERT(!scenario_load_text(begin, (size_t)(end - begin), "README.md", "readme", &s, &d), "%s", d.text);
	scenario_release(&s);
	diag_release(&d);
	free(readme);
}

static const struct test_case cases[] = {
	{ "the schema knows every key", the_schema_knows_every_key },
	{ "every key has help", every_key_has_help },
	{ "the reference is complete", the_reference_is_complete },
};

TEST_MAIN("scenario_reference", cases)
