/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../faults/action.h"
#include "../faults/fault.h"
#include "attr.h"
#include "capability.h"
#include "controller_step.h"
#include "manual.h"
#include "roff.h"
#include "scenario_grammar.h"

#define MAPS_MAX 64

static const char example[] = "qpdrill: 1\n"
			      "title: A SEND that finds no receive fails when its RNR retries are spent\n"
			      "qp: { type: RC, timeout: 17, rnr_retry: 3 }\n"
			      "steps:\n"
			      "  - fault:   { missing_receive: { at: b }, as: dry }\n"
			      "  - connect:\n"
			      "  - post:    { at: a, op: SEND, size: 64, as: unheard }\n"
			      "  - expect:  { of: unheard, wc: RNR_RETRY_EXC_ERR }\n"
			      "  - clear:   dry\n"
			      "  - recover: { path: reset }\n";

/* What may stand under a key of this type. */
static const char *const types[NUM_GTYPES] = {
	[G_VERSION] = "the number 1",
	[G_BOOL] = "true or false",
	[G_NUMBER] = "a number",
	[G_SIZE] = "bytes, or 4KiB",
	[G_DURATION] = "a time, 20ms",
	[G_RANGE] = "a number or 2..5",
	[G_COMPARE] = "a number or a comparison, \">= 3\"",
	[G_MEASURE] = "a number or a comparison, \">= 3\"",
	[G_TEXT] = "text",
	[G_TITLE] = "a sentence",
	[G_REFS] = "a list",
	[G_REQUIRES] = "a list",
	[G_NAME] = "a name",
	[G_NAMES] = "a list of names",
	[G_WORD] = "a word",
	[G_WORDS] = "a list of words",
	[G_SOME] = "a word or a list of them",
	[G_AGENT] = "an agent",
	[G_DEVICE] = "a device",
	[G_END] = "an end",
	[G_ENDS] = "an end or a list of them",
	[G_PAIRS] = "a pair, a list of them, or \"*\"",
	[G_ENDS_OF] = "two agents",
	[G_LABEL] = "what an earlier step is called",
	[G_LABELS] = "what earlier steps are called",
	[G_OBJECT] = "a named object",
	[G_OBJECTS] = "named objects",
	[G_PLACE] = "a memory region or a place in it, pool + 4096",
	[G_WC] = "completions, in order: [A, B x 3, C | D, E x rest]",
	[G_EVENTS] = "none, an event or a list of them",
	[G_ERRNOS] = "EINVAL | ENOMEM",
	[G_ATTRS] = "attributes by name",
	[G_COUNTERS] = "counters by name, each a comparison",
	[G_MAP] = "a map",
	[G_MAPS] = "a list of maps",
	[G_MAP_OF] = "maps by name",
	[G_ANY_MAP] = "a map",
	[G_CHAIN] = "true, or a list of maps",
	[G_STEPS] = "a list of steps",
	[G_SWEEP] = "a map of lists, or a list of maps",
};

/* Maps that stand under a key are told once, behind the map that named them. */
struct told {
	const struct gmap *maps[MAPS_MAX];
	size_t n;
};

static bool is_new(struct told *told, const struct gmap *map)
{
	for (size_t i = 0; i < told->n; i++)
		if (told->maps[i] == map)
			return false;
	if (told->n < MAPS_MAX)
		told->maps[told->n++] = map;
	return true;
}

static void put_key(FILE *out, const struct gkey *k)
{
	char *text = NULL;
	size_t size;
	FILE *t = open_memstream(&text, &size);

	if (!t)
		return;
	fprintf(t, "%s", k->help ? k->help : "");
	fprintf(t, "%s(%s", k->help ? " " : "", types[k->type] ? types[k->type] : "?");
	for (size_t i = 0; k->words && k->words[i]; i++)
		fprintf(t, "%s`%s`", i ? " " : ": ", k->words[i]);
	if (k->names)
		fprintf(t, ": %s", k->names->what);
	if (k->min || k->max)
		fprintf(t, "; %lld to %lld", (long long)k->min, (long long)k->max);
	fprintf(t, "%s)", k->flags & G_REQUIRED ? "; required" : "");
	fclose(t);
	roff_item(out, k->name, text);
	free(text);
}

static void put_keys(FILE *out, const struct gkey *keys)
{
	for (; keys && keys->name; keys++)
		put_key(out, keys);
}

/* The maps below these keys, each in a subsection. */
static void put_below(FILE *out, const struct gkey *keys, struct told *told)
{
	for (; keys && keys->name; keys++) {
		if (!keys->map || !is_new(told, keys->map))
			continue;
		roff_subsection(out, keys->map->what);
		put_keys(out, keys->map->keys);
		put_below(out, keys->map->keys, told);
	}
}

static void put_steps(FILE *out, struct told *told)
{
	roff_section(out, "steps");
	roff_text(out, "`steps` is a list of maps with one key each.");
	for (const struct gstep *s = grammar_steps; s->name; s++) {
		roff_subsection(out, s->name);
		roff_text(out, s->help);
		if (s->arg == GSTEP_VALUE) {
			char value[160];

			snprintf(value, sizeof(value), "Takes %s.", types[s->value.type]);
			fputs(".PP\n", out);
			roff_text(out, value);
		}
		put_keys(out, s->map.keys);
		put_keys(out, s->map.also);
		put_below(out, s->map.keys, told);
	}
}

static void put_attributes(FILE *out)
{
	roff_section(out, "attributes");
	roff_text(out, "What `qp` holds, and `set` of a `modify`; `qpdrill list transitions` tells which move takes what.");
	for (size_t i = 0; i < attr_table_n; i++) {
		const struct attr *a = &attr_table[i];
		char text[256];
		int n = snprintf(text, sizeof(text), "%s (%lld to %lld%s%s", a->help, (long long)a->min, (long long)a->max,
				 *a->unit ? " " : "", a->unit);

		if (n > 0 && (size_t)n < sizeof(text) && a->def >= 0)
			n += snprintf(text + n, sizeof(text) - (size_t)n, "; default %lld", (long long)a->def);
		if (n > 0 && (size_t)n < sizeof(text))
			snprintf(text + n, sizeof(text) - (size_t)n, ")");
		roff_item(out, a->name, text);
	}
}

static void put_params(FILE *out, const struct fault_param *params)
{
	if (!params || !params->name)
		return;
	fputs(".RS\n", out);
	for (const struct fault_param *p = params; p->name; p++) {
		char text[1024];
		size_t n = (size_t)snprintf(text, sizeof(text), "%s", p->help ? p->help : "");

		for (size_t i = 0; p->values && p->values[i] && n < sizeof(text); i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s`%s`", i ? " " : "; one of ", p->values[i]);
		if (n < sizeof(text))
			snprintf(text + n, sizeof(text) - n, "%s%s%s", p->def ? "; default " : "", p->def ? p->def : "",
				 p->required ? "; required" : "");
		roff_item(out, p->name, text);
	}
	fputs(".RE\n", out);
}

static void put_faults(FILE *out)
{
	roff_section(out, "faults");
	roff_text(out,
		  "`fault: { NAME: { ... }, as: trouble }`. A fault that cannot show that it fired makes the case inconclusive.");
	for (const struct fault_ops *const *f = fault_table; *f; f++) {
		char text[1024];

		snprintf(text, sizeof(text), "%s (%s). Proven by: %s", (*f)->help, fault_layer_names[(*f)->layer], (*f)->proof);
		roff_item(out, (*f)->name, text);
		if (strcmp((*f)->name, "wire") != 0)
			put_params(out, (*f)->params);
		else
			roff_text(out,
				  "\nIts parameters are `match` (see a packet match), `action`, `times`, and those of the action:");
	}
	roff_section(out, "actions");
	roff_text(out, "What `fault: { wire: { match: { ... }, action: NAME } }` does to the packets that match.");
	for (const struct action_ops *const *a = action_table; *a; a++) {
		roff_item(out, (*a)->name, (*a)->help);
		put_params(out, (*a)->params);
	}
}

static void put_names(FILE *out, const char *title, const struct name_table *table)
{
	roff_section(out, title);
	for (size_t i = 0; i < table->n; i++)
		roff_item(out, table->rows[i].text, table->rows[i].help ? table->rows[i].help : "");
}

void manual_scenario(FILE *out)
{
	static const char *const pages[] = { "qpdrill(1)", "qpdrill-wire(1)", "qpdrill-agent(1)", NULL };
	struct told told = { .n = 0 };

	roff_section(out, "description");
	roff_text(out,
		  "One file shows one thing: what the specification demands when queue pairs are treated in one way. It is YAML, "
		  "lies at `scenarios/AREA/NAME.yaml`, and its path without suffix is its name. Whatever it does not expect or "
		  "allow is a failure.\n\n"
		  "`qpdrill new` writes one to begin with, `qpdrill check` says where a mistake is, `qpdrill plan` what a file "
		  "becomes, `qpdrill schema` prints a schema for editors. The whole language, with its reasons, is "
		  "scenarios/README.md.");
	roff_verbatim(out, example);
	roff_section(out, "the file");
	put_keys(out, grammar_file.keys);
	put_below(out, grammar_file.keys, &told);
	put_steps(out, &told);
	put_attributes(out);
	roff_section(out, "recovery paths");
	for (const struct recover_path *p = recover_table; p->name; p++)
		roff_item(out, p->name, p->help);
	put_faults(out);
	roff_section(out, "capabilities");
	roff_text(out, "What `requires` may name; `kernel >= 6.5` and `lab: rxe` stand there as well.");
	for (size_t i = 0; i < capability_table_n; i++)
		roff_item(out, capability_table[i].name, capability_table[i].help);
	put_names(out, "statuses", &names_status);
	put_names(out, "events", &names_event);
	put_names(out, "operations", &names_op);
	roff_see_also(out, pages);
}
