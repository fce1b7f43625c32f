/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "../faults/action.h"
#include "../faults/fault.h"
#include "attr.h"
#include "capability.h"
#include "controller_step.h"
#include "data.h"
#include "json.h"
#include "log.h"
#include "names.h"
#include "profile.h"
#include "run.h"
#include "scenario_grammar.h"

/* A column is no wider than this; what is longer is not cut. */
#define WIDTH_MAX 50

/* What one topic lists: rows for people and for programs alike. `columns` are keys of a row in the order in which they are printed,
 * the last one to the end of its line; a row's "params" follow it, indented. */
struct topic {
	const char *name;
	int (*rows)(const struct topic *t, const char *path, json_t *out, struct error *e);
	const char *const *columns;
	const struct name_table *names; /* of list_names */
	const char *help;
};

static const char *const named[] = { "name", "help", NULL };
static const char *const numbered[] = { "name", "value", "help", NULL };

static json_t *row(json_t *out, const char *name, const char *help)
{
	json_t *r = json_pack("{s:s,s:s}", "name", name, "help", help ? help : "");

	json_array_append_new(out, r);
	return r;
}

static void set_text(json_t *r, const char *key, const char *text)
{
	if (text)
		json_object_set_new(r, key, json_string(text));
}

static json_t *strings(const char *const *list)
{
	json_t *out = json_array();

	for (size_t i = 0; list && list[i]; i++)
		json_array_append_new(out, json_string(list[i]));
	return out;
}

static void put_params(json_t *r, const struct fault_param *params)
{
	json_t *list = json_array();

	for (const struct fault_param *p = params; p && p->name; p++) {
		json_t *param = row(list, p->name, p->help);

		json_object_set_new(param, "required", json_boolean(p->required));
		if (p->values)
			json_object_set_new(param, "values", strings(p->values));
		set_text(param, "default", p->def);
		set_text(param, "unit", p->unit);
		if (p->min || p->max) {
			json_object_set_new(param, "min", json_integer(p->min));
			json_object_set_new(param, "max", json_integer(p->max));
		}
	}
	json_object_set_new(r, "params", list);
}

static int list_faults(const struct topic *t, const char *path, json_t *out, struct error *e)
{
	(void)t;
	(void)path;
	(void)e;
	for (const struct fault_ops *const *f = fault_table; *f; f++) {
		json_t *r = row(out, (*f)->name, (*f)->help);

		set_text(r, "layer", fault_layer_names[(*f)->layer]);
		set_text(r, "blast", fault_blast_names[(*f)->blast]);
		set_text(r, "proof", (*f)->proof);
		json_object_set_new(r, "needs", strings((*f)->needs));
		put_params(r, (*f)->params);
	}
	return 0;
}

static int list_actions(const struct topic *t, const char *path, json_t *out, struct error *e)
{
	(void)t;
	(void)path;
	(void)e;
	for (const struct action_ops *const *a = action_table; *a; a++)
		put_params(row(out, (*a)->name, (*a)->help), (*a)->params);
	return 0;
}

static int list_names(const struct topic *t, const char *path, json_t *out, struct error *e)
{
	(void)path;
	(void)e;
	for (size_t i = 0; i < t->names->n; i++)
		json_object_set_new(row(out, t->names->rows[i].text, t->names->rows[i].help), "value",
				    json_integer(t->names->rows[i].value));
	return 0;
}

static int list_steps(const struct topic *t, const char *path, json_t *out, struct error *e)
{
	(void)t;
	(void)path;
	(void)e;
	for (const struct gstep *s = grammar_steps; s->name; s++)
		row(out, s->name, s->help);
	return 0;
}

static int list_recoveries(const struct topic *t, const char *path, json_t *out, struct error *e)
{
	(void)t;
	(void)path;
	(void)e;
	for (const struct recover_path *p = recover_table; p->name; p++)
		row(out, p->name, p->help);
	return 0;
}

static int add_profile(const char *file, json_t *out, struct error *e)
{
	struct profile profile;
	struct diag d = { 0 };
	int rc = profile_load(file, "", &profile, &d, e);
	size_t i;
	json_t *entry;

	if (rc) {
		fputs(d.text ? d.text : "", stderr);
		diag_release(&d);
		return error_prefix(e, rc, "%s", file);
	}
	json_array_foreach(profile.entries, i, entry) {
		const json_t *seen = json_object_get(entry, "seen");
		json_t *r = json_pack("{s:s,s:s?,s:O?,s:O?,s:s?}", "provider", profile.provider, "name", json_str(entry, "id"),
				      "when", json_object_get(entry, "when"), "seen", seen, "source", json_str(entry, "source"));

		/* Without a kernel that showed it, it excuses nothing. */
		json_object_set_new(r, "kernels",
				    json_array_size(seen) ? json_incref((json_t *)seen) : json_string("seen nowhere"));
		json_array_append_new(out, r);
	}
	profile_release(&profile);
	diag_release(&d);
	return 0;
}

/* path: a folder of profiles. */
static int list_profiles(const struct topic *t, const char *path, json_t *out, struct error *e)
{
	char *own = NULL, pattern[4096];
	int rc = path ? 0 : data_path("scenarios/profiles", &own, e);
	glob_t g;

	(void)t;
	snprintf(pattern, sizeof(pattern), "%s/*.yaml", path ? path : own ? own : "");
	if (!rc && glob(pattern, 0, NULL, &g)) {
		rc = error_set(e, -ENOENT, "there is no profile: %s", pattern);
	} else if (!rc) {
		for (size_t i = 0; i < g.gl_pathc && !rc; i++)
			rc = add_profile(g.gl_pathv[i], out, e);
		globfree(&g);
	}
	free(own);
	return rc;
}

static int list_attributes(const struct topic *t, const char *path, json_t *out, struct error *e)
{
	(void)t;
	(void)path;
	(void)e;
	for (size_t i = 0; i < attr_table_n; i++) {
		const struct attr *a = &attr_table[i];
		json_t *r = row(out, a->name, a->help);

		json_object_set_new(r, "min", json_integer(a->min));
		json_object_set_new(r, "max", json_integer(a->max));
		json_object_set_new(r, "default", a->def < 0 ? json_string("-") : json_integer(a->def));
		set_text(r, "unit", a->unit);
	}
	return 0;
}

static int list_capabilities(const struct topic *t, const char *path, json_t *out, struct error *e)
{
	(void)t;
	(void)path;
	(void)e;
	for (size_t i = 0; i < capability_table_n; i++)
		row(out, capability_table[i].name, capability_table[i].help);
	return 0;
}

static json_t *mask_names(int mask)
{
	json_t *out = json_array();

	for (size_t i = 0; i < names_attr_mask.n; i++)
		if (mask & names_attr_mask.rows[i].value)
			json_array_append_new(out, json_string(names_attr_mask.rows[i].text));
	return out;
}

/* Moves that TRANSITION_REF has; any other is refused. */
static int list_transitions(const struct topic *t, const char *path, json_t *out, struct error *e)
{
	(void)t;
	(void)path;
	(void)e;
	for (size_t i = 0; i < transition_table_n; i++) {
		const struct transition *move = &transition_table[i];

		json_array_append_new(out, json_pack("{s:s,s:s,s:s,s:o,s:o}", "type", name_of(&names_qp_type, move->type), "from",
						     name_of(&names_state, move->from), "to", name_of(&names_state, move->to),
						     "requires", mask_names(move->required), "takes", mask_names(move->optional)));
	}
	return 0;
}

static int list_mask(const struct topic *t, const char *path, json_t *out, struct error *e)
{
	(void)t;
	(void)path;
	(void)e;
	for (size_t i = 0; i < attr_bit_table_n; i++)
		set_text(row(out, name_of(&names_attr_mask, attr_bit_table[i].bit), attr_bit_table[i].help), "ref",
			 attr_bit_table[i].ref);
	return 0;
}

static int list_scenarios(const struct topic *t, const char *path, json_t *out, struct error *e)
{
	struct run_cases list = { 0 };
	struct diag d = { 0 };
	char *own = NULL;
	int rc = 0;

	(void)t;
	if (!path) {
		rc = data_path("scenarios", &own, e);
		path = own;
	}
	if (!rc)
		rc = run_cases_load(&path, 1, &list, &d, e);
	if (d.text)
		fputs(d.text, stderr);
	for (size_t i = 0; !rc && i < list.n; i++) {
		const json_t *doc = list.cases[i].source->doc, *tags = json_object_get(doc, "tags");
		json_t *r = row(out, list.cases[i].id, json_str(doc, "title"));

		json_object_set(r, "tags", (json_t *)tags);
		set_text(r, "file", list.cases[i].scenario->path);
	}
	run_cases_release(&list);
	diag_release(&d);
	free(own);
	return rc;
}

static const char *const of_faults[] = { "name", "layer", "help", NULL };
static const char *const of_profiles[] = { "provider", "name", "kernels", NULL };
static const char *const of_moves[] = { "type", "from", "to", "requires", "takes", NULL };
static const char *const of_bits[] = { "name", "ref", "help", NULL };
static const char *const of_attributes[] = { "name", "min", "max", "default", "help", NULL };
static const char *const of_capabilities[] = { "name", "help", NULL };

static const struct topic topics[] = {
	{ "faults", list_faults, of_faults, NULL, "what can be injected; --json: parameters, proof, needs" },
	{ "actions", list_actions, named, NULL, "what the fault `wire` can do to a packet, and its arguments" },
	{ "scenarios", list_scenarios, named, NULL, "cases below PATH, with their titles" },
	{ "steps", list_steps, named, NULL, "what a scenario may do" },
	{ "attributes", list_attributes, of_attributes, NULL, "of a QP: least, most, default" },
	{ "recoveries", list_recoveries, named, NULL, "paths that `recover` may take" },
	{ "statuses", list_names, numbered, &names_status, "statuses of work completions, numbered (IBTA 11.6.2)" },
	{ "events", list_names, numbered, &names_event, "async events, numbered (IBTA 11.6.3)" },
	{ "cm-events", list_names, numbered, &names_cm_event, "events of rdma_cm, numbered" },
	{ "operations", list_names, numbered, &names_op, "what `post` may post, numbered" },
	{ "states", list_names, numbered, &names_state, "states of a QP, numbered (IBTA 10.3.1)" },
	{ "transitions", list_transitions, of_moves, NULL, "moves of a QP: from, to, required, optional (" TRANSITION_REF ")" },
	{ "mask", list_mask, of_bits, NULL, "what the bits of such a move say, and where that is said" },
	{ "profiles", list_profiles, of_profiles, NULL, "deviations of providers, and the kernels that showed them" },
	{ "capabilities", list_capabilities, of_capabilities, NULL, "what `requires` may name" },
};

/* ---- for people ---- */

/* A value in a line: a list's items with spaces between them. */
static void put_value(FILE *out, const json_t *value)
{
	const json_t *item;
	size_t i;

	if (json_is_string(value))
		fputs(json_string_value(value), out);
	else if (json_is_integer(value))
		fprintf(out, "%lld", (long long)json_integer_value(value));
	else if (json_is_array(value) && !json_array_size(value))
		fputc('-', out);
	json_array_foreach((json_t *)value, i, item)
		fprintf(out, "%s%s", i ? " " : "", json_string_value(item));
}

static char *value_text(const json_t *value)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	put_value(out, value);
	fclose(out);
	return text;
}

static int width_of(const json_t *rows, const char *column)
{
	const json_t *r;
	size_t i;
	int width = 0;

	json_array_foreach((json_t *)rows, i, r) {
		char *text = value_text(json_object_get(r, column));
		int len = text ? (int)strlen(text) : 0;

		width = len > width ? len : width;
		free(text);
	}
	return width < WIDTH_MAX ? width : WIDTH_MAX;
}

static void print_param(const json_t *p)
{
	const json_t *values = json_object_get(p, "values");
	const char *def = json_str(p, "default");

	printf("    %-10s %s", json_str(p, "name"), json_str(p, "help"));
	if (json_array_size(values)) {
		fputs(" (", stdout);
		put_value(stdout, values);
		putchar(')');
	}
	printf("%s%s%s\n", def ? "; default " : "", def ? def : "", json_bool(p, "required", false) ? "; required" : "");
}

static void print_rows(const struct topic *t, const json_t *rows)
{
	int width[8] = { 0 };
	const json_t *r, *p;
	size_t i, k;

	for (size_t c = 0; t->columns[c]; c++)
		width[c] = width_of(rows, t->columns[c]);
	json_array_foreach((json_t *)rows, i, r) {
		for (size_t c = 0; t->columns[c]; c++) {
			char *text = value_text(json_object_get(r, t->columns[c]));
			bool more = t->columns[c + 1] && json_object_get(r, t->columns[c + 1]);

			printf("%*s%s", more ? -width[c] : 0, text ? text : "", more ? "  " : "");
			free(text);
		}
		putchar('\n');
		/* Of a fault too many for a list: `new --fault` writes them down. */
		if (!strcmp(t->name, "actions"))
			json_array_foreach(json_object_get(r, "params"), k, p)
				print_param(p);
	}
}

/* ---- the command ---- */

struct input {
	const struct topic *topic;
	const char *path;
	bool json;
};

static const struct argp_option options[] = {
	{ "json", 'j', NULL, 0, "print a JSON array of objects, with all that is known of each", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct input *in = state->input;

	switch (key) {
	case 'j':
		in->json = true;
		return 0;
	case ARGP_KEY_ARG:
		for (size_t i = 0; !in->topic && i < sizeof(topics) / sizeof(*topics); i++)
			if (!strcmp(topics[i].name, arg)) {
				in->topic = &topics[i];
				return 0;
			}
		if (!in->topic)
			argp_error(state, "there is nothing to list called '%s'", arg);
		if (in->path)
			argp_error(state, "one path at a time");
		in->path = arg;
		return 0;
	case ARGP_KEY_END:
		if (!in->topic)
			argp_error(state, "what is to be listed?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The topics are a table: what is told of them comes out of it. */
static char *help_filter(int key, const char *text, void *input)
{
	char *filled = NULL;
	size_t size;
	FILE *out;

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC || !(out = open_memstream(&filled, &size)))
		return (char *)text;
	fputs("Topics:\n", out);
	for (size_t i = 0; i < sizeof(topics) / sizeof(*topics); i++)
		fprintf(out, "  %-14s%s\n", topics[i].name, topics[i].help);
	fclose(out);
	return filled;
}

int cmd_list(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "TOPIC [PATH]",
		.doc = "Prints one of the tables that the program works by, a line for each row. PATH is for scenarios and "
		       "profiles; without it they are the project's own.\vTopics.",
		.help_filter = help_filter,
	};
	struct input in = { .topic = NULL };
	struct error e = { "" };
	json_t *rows = json_array();
	int rc;

	command_parse(&argp, argc, argv, &in);
	rc = in.topic->rows(in.topic, in.path, rows, &e);
	if (rc)
		log_error("%s", e.text);
	else if (in.json)
		json_dumpf(rows, stdout, JSON_INDENT(1));
	else
		print_rows(in.topic, rows);
	if (!rc && in.json)
		putchar('\n');
	json_decref(rows);
	return rc ? EXIT_USAGE : 0;
}
