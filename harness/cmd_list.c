/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "../faults/action.h"
#include "../faults/fault.h"
#include "attr.h"
#include "capability.h"
#include "data.h"
#include "json.h"
#include "log.h"
#include "names.h"
#include "profile.h"
#include "run.h"
#include "scenario_grammar.h"

static void print_table(const struct name_table *table)
{
	for (size_t i = 0; i < table->n; i++)
		printf("%-24s %s\n", table->rows[i].text, table->rows[i].help);
}

static int list_faults(const char *path)
{
	(void)path;
	for (const struct fault_ops *const *f = fault_table; *f; f++)
		printf("%-22s %-8s %s%s\n", (*f)->name, fault_layer_names[(*f)->layer], (*f)->help,
		       (*f)->inject ? "" : " (not in this build)");
	return 0;
}

static void print_param(const struct fault_param *p)
{
	printf("    %-10s %s", p->name, p->help ? p->help : "");
	for (size_t i = 0; p->values && p->values[i]; i++)
		printf("%s%s", i ? " " : " (", p->values[i]);
	printf("%s%s%s%s\n", p->values && p->values[0] ? ")" : "", p->def ? "; default " : "", p->def ? p->def : "",
	       p->required ? "; required" : "");
}

static int list_actions(const char *path)
{
	(void)path;
	for (const struct action_ops *const *a = action_table; *a; a++) {
		printf("%-12s %s\n", (*a)->name, (*a)->help);
		for (const struct fault_param *p = (*a)->params; p && p->name; p++)
			print_param(p);
	}
	return 0;
}

static int list_events(const char *path)
{
	(void)path;
	print_table(&names_event);
	return 0;
}

static int list_statuses(const char *path)
{
	(void)path;
	print_table(&names_status);
	return 0;
}

static int list_steps(const char *path)
{
	(void)path;
	for (const struct gstep *s = grammar_steps; s->name; s++)
		printf("%-10s %s\n", s->name, s->help);
	return 0;
}

static int print_profile(const char *file)
{
	struct profile profile;
	struct diag d = { 0 };
	struct error e = { "" };
	int rc = profile_load(file, "", &profile, &d, &e);
	size_t i;
	json_t *entry;

	if (rc) {
		fputs(d.text ? d.text : "", stderr);
		log_error("%s: %s", file, e.text);
		diag_release(&d);
		return EXIT_USAGE;
	}
	json_array_foreach(profile.entries, i, entry) {
		char *seen = json_dumps(json_object_get(entry, "seen"), JSON_ENCODE_ANY);

		printf("%-8s %-32s seen %s\n", profile.provider, json_str(entry, "id") ? json_str(entry, "id") : "?",
		       seen ? seen : "nowhere");
		free(seen);
	}
	profile_release(&profile);
	diag_release(&d);
	return 0;
}

/* path: a folder of profiles. */
static int list_profiles(const char *path)
{
	struct error e = { "" };
	char *own = NULL, pattern[4096];
	int status = 0;
	glob_t g;

	if (!path && data_path("scenarios/profiles", &own, &e)) {
		log_error("%s", e.text);
		return EXIT_ERROR;
	}
	snprintf(pattern, sizeof(pattern), "%s/*.yaml", path ? path : own);
	if (!glob(pattern, 0, NULL, &g)) {
		for (size_t i = 0; i < g.gl_pathc && !status; i++)
			status = print_profile(g.gl_pathv[i]);
		globfree(&g);
	}
	free(own);
	return status;
}

static int list_capabilities(const char *path)
{
	(void)path;
	for (size_t i = 0; i < capability_table_n; i++)
		printf("%-10s %s%s%s%s\n", capability_table[i].name, capability_table[i].help,
		       capability_table[i].missing ? " (" : "", capability_table[i].missing ? capability_table[i].missing : "",
		       capability_table[i].missing ? ")" : "");
	return 0;
}

static void print_mask(int mask)
{
	if (!mask)
		fputs(" -", stdout);
	for (size_t i = 0; i < names_attr_mask.n; i++)
		if (mask & names_attr_mask.rows[i].value)
			printf(" %s", names_attr_mask.rows[i].text);
}

static int list_transitions(const char *path)
{
	(void)path;
	printf("Moves that " TRANSITION_REF " has; any other is refused.\n%-5s%-7s%-7s%s\n", "type", "from", "to",
	       "required ( optional )");
	for (size_t i = 0; i < transition_table_n; i++) {
		const struct transition *t = &transition_table[i];

		printf("%-5s%-7s%-6s", name_of(&names_qp_type, t->type), name_of(&names_state, t->from),
		       name_of(&names_state, t->to));
		print_mask(t->required);
		if (t->optional) {
			fputs(" (", stdout);
			print_mask(t->optional);
			fputs(" )", stdout);
		}
		putchar('\n');
	}
	putchar('\n');
	for (size_t i = 0; i < attr_bit_table_n; i++)
		printf("%-20s %-16s %s\n", name_of(&names_attr_mask, attr_bit_table[i].bit), attr_bit_table[i].ref,
		       attr_bit_table[i].help);
	return 0;
}

static int list_scenarios(const char *path)
{
	struct run_cases list = { 0 };
	struct diag d = { 0 };
	struct error e = { "" };
	char *own = NULL;
	int rc = 0;

	if (!path) {
		rc = data_path("scenarios", &own, &e);
		path = own;
	}
	if (!rc)
		rc = run_cases_load(&path, 1, &list, &d, &e);
	if (d.text)
		fputs(d.text, stderr);
	for (size_t i = 0; !rc && i < list.n; i++) {
		const json_t *title = json_object_get(list.cases[i].source->doc, "title");

		printf("%-50s %s\n", list.cases[i].id, json_is_string(title) ? json_string_value(title) : "");
	}
	if (rc)
		log_error("%s", e.text);
	run_cases_release(&list);
	diag_release(&d);
	free(own);
	return rc ? EXIT_USAGE : 0;
}

static const struct topic {
	const char *name;
	int (*print)(const char *path);
	const char *help;
} topics[] = {
	{ "faults", list_faults, "what can be injected" },
	{ "actions", list_actions, "what the fault `wire` can do to a packet, and its arguments" },
	{ "scenarios", list_scenarios, "cases below PATH (default: the project's own)" },
	{ "events", list_events, "async events" },
	{ "statuses", list_statuses, "statuses of work completions" },
	{ "steps", list_steps, "what a scenario may do" },
	{ "transitions", list_transitions, "moves between the states of a QP, what each requires and takes, and where it is said" },
	{ "profiles", list_profiles, "documented deviations of providers, below PATH (default: the project's own)" },
	{ "capabilities", list_capabilities, "what `requires` may name" },
};

static int usage(FILE *out)
{
	fputs("usage: qpdrill list TOPIC [PATH]\n\n", out);
	for (size_t i = 0; i < sizeof(topics) / sizeof(*topics); i++)
		fprintf(out, "  %-14s %s\n", topics[i].name, topics[i].help);
	return out == stdout ? 0 : EXIT_USAGE;
}

int cmd_list(int argc, char **argv)
{
	if (argc < 2 || argc > 3)
		return usage(stderr);
	if (!strcmp(argv[1], "--help"))
		return usage(stdout);
	for (size_t i = 0; i < sizeof(topics) / sizeof(*topics); i++)
		if (!strcmp(topics[i].name, argv[1]))
			return topics[i].print(argc == 3 ? argv[2] : NULL);
	log_error("there is nothing to list called '%s'", argv[1]);
	return usage(stderr);
}
