/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "error.h"
#include "scenario.h"

struct check_args {
	char **paths;
	size_t n_paths;
	bool json, quiet;
};

struct check_result {
	json_t *files; /* for --json */
	unsigned faulty, good;
	size_t cases;
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct check_args *a = state->input;

	(void)arg;
	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case 'q':
		a->quiet = true;
		return 0;
	case ARGP_KEY_ARGS:
		a->paths = state->argv + state->next;
		a->n_paths = (size_t)(state->argc - state->next);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which files or folders?");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
	{ "json", 'j', NULL, 0, "print a JSON document instead of a line per file", 0 },
	{ "quiet", 'q', NULL, 0, "print mistakes only", 0 },
	{ 0 },
};

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc = "PATH...",
	.doc = "Checks scenario files and says where each mistake is, what it is and what would have been right. A folder stands "
	       "for all files below it, - for standard input.",
};

static void add_json(struct check_result *r, const struct scenario_path *p, const struct scenario *s, const struct diag *d)
{
	json_t *cases = json_array();

	for (size_t i = 0; s && i < s->n_cases; i++)
		json_array_append_new(cases, json_string(s->cases[i].id));
	json_array_append_new(r->files,
			      json_pack("{s:s,s:b,s:i,s:i,s:s,s:o}", "file", p->path, "ok", s != NULL, "errors", (int)d->errors,
					"warnings", (int)d->warnings, "text", d->text ? d->text : "", "cases", cases));
}

static void check_file(const struct check_args *a, const struct scenario_path *p, struct check_result *r)
{
	struct scenario s = { 0 };
	struct diag d = { 0 };
	struct error e = { "" };
	int rc = scenario_load(p->path, p->id, &s, &d, &e);

	if (d.text && !a->json)
		fputs(d.text, stderr);
	if (rc && !d.errors)
		fprintf(stderr, "%s\n", e.text);
	if (rc)
		r->faulty++;
	else
		r->good++;
	r->cases += s.n_cases;
	if (a->json)
		add_json(r, p, rc ? NULL : &s, &d);
	else if (!rc && !a->quiet)
		printf("ok      %s  %zu case%s%s%s\n", p->path, s.n_cases, s.n_cases == 1 ? "" : "s",
		       s.n_cases && s.cases[0].first_pass ? ", and one for each packet that they find" : "",
		       d.warnings ? "  (warnings)" : "");
	else if (rc && !a->quiet)
		printf("FAULTY  %s  %u mistake%s\n", p->path, d.errors, d.errors == 1 ? "" : "s");
	if (!rc)
		scenario_release(&s);
	diag_release(&d);
}

int cmd_check(int argc, char **argv)
{
	struct check_args a = { .paths = NULL };
	struct check_result r = { .files = json_array() };
	int status = 0;

	command_parse(&argp, argc, argv, &a);
	for (size_t i = 0; i < a.n_paths; i++) {
		struct scenario_path *paths;
		struct error e = { "" };
		size_t n;

		if (scenario_find(a.paths[i], &paths, &n, &e)) {
			fprintf(stderr, "%s\n", e.text);
			status = EXIT_USAGE;
			continue;
		}
		if (!n) {
			fprintf(stderr, "%s: no scenario files (*.yaml) here\n", a.paths[i]);
			status = EXIT_USAGE;
		}
		for (size_t k = 0; k < n; k++)
			check_file(&a, &paths[k], &r);
		scenario_paths_free(paths, n);
	}
	if (a.json) {
		json_dumpf(r.files, stdout, JSON_INDENT(1) | JSON_SORT_KEYS);
		putchar('\n');
	} else if (!a.quiet && r.good + r.faulty > 1) {
		printf("%u file%s ok, %u faulty, %zu cases\n", r.good, r.good == 1 ? "" : "s", r.faulty, r.cases);
	}
	json_decref(r.files);
	return r.faulty ? EXIT_USAGE : status;
}
