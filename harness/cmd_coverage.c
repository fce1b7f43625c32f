/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../reports/report.h"
#include "coverage.h"
#include "data.h"
#include "json.h"
#include "log.h"
#include "run.h"

enum key { KEY_RUN = 256 };

static const struct argp_option options[] = {
	{ "run", KEY_RUN, "DIR", 0, "what that run has shown, beside what the scenarios assert", 0 },
	{ "json", 'j', NULL, 0, "print a JSON document", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

#define PATHS_MAX 64

struct input {
	const char *paths[PATHS_MAX], *run;
	size_t n_paths;
	bool json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct input *in = state->input;

	switch (key) {
	case KEY_RUN:
		in->run = arg;
		return 0;
	case 'j':
		in->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (in->n_paths == PATHS_MAX)
			argp_error(state, "at most %d paths", PATHS_MAX);
		in->paths[in->n_paths++] = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int plans_on_disk(const struct input *in, json_t *plans, struct error *e)
{
	const struct plan_options o = { .seed = 1 };
	struct run_cases list = { 0 };
	struct diag d = { 0 };
	char *own = NULL;
	int rc = 0;

	if (!in->n_paths)
		rc = data_path("scenarios", &own, e);
	const char *const mine[] = { own };

	if (!rc)
		rc = run_cases_load(in->n_paths ? in->paths : mine, in->n_paths ? in->n_paths : 1, &list, &d, e);
	if (rc == -EINVAL && d.text)
		fputs(d.text, stderr);
	if (!rc)
		rc = run_cases_plan(&list, &o, e);
	for (size_t i = 0; !rc && i < list.n; i++)
		json_array_append(plans, list.cases[i].plan);
	run_cases_release(&list);
	diag_release(&d);
	free(own);
	return rc;
}

/* Verdicts by case. What followed from a first pass is in the run only: its plan counts too. */
static int take_run(const char *dir, json_t *plans, json_t *verdicts, struct error *e)
{
	json_t *known = json_object();
	struct report_run run;
	const json_t *one;
	size_t i;
	int rc = report_load(dir, &run, e);

	json_array_foreach(plans, i, one)
		json_object_set_new(known, json_str(one, "case") ?: "?", json_true());
	json_array_foreach(rc ? NULL : run.cases, i, one) {
		const char *id = json_str(one, "case");
		json_t *plan = json_object_get(one, "plan");

		if (!id)
			continue;
		json_object_set(verdicts, id, json_object_get(json_object_get(one, "verdict"), "verdict"));
		if (json_is_object(plan) && !json_object_get(known, id))
			json_array_append(plans, plan);
	}
	json_decref(known);
	if (!rc)
		report_release(&run);
	return rc;
}

int cmd_coverage(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[PATH...]",
		.doc = "Prints what the scenarios below PATH (default: the project's own) assert: transport x operation x fault x "
		       "status x recovery path, which demands of the specification and rows of the articles they name in "
		       "`refs`, and what none does.",
	};
	json_t *plans = json_array(), *verdicts = NULL, *coverage = NULL;
	struct input in = { .run = NULL };
	const struct refs *refs;
	struct error e = { "" };
	int rc;

	command_parse(&argp, argc, argv, &in);
	refs = refs_own(&e);
	rc = refs ? plans_on_disk(&in, plans, &e) : -ENOENT;
	if (!rc && in.run) {
		verdicts = json_object();
		rc = take_run(in.run, plans, verdicts, &e);
	}
	if (!rc)
		rc = coverage_make(plans, verdicts, refs, &coverage, &e);
	if (rc)
		log_error("%s", e.text);
	else if (in.json)
		json_dumpf(coverage, stdout, JSON_INDENT(1) | JSON_SORT_KEYS);
	else
		coverage_text(coverage, stdout);
	if (!rc && in.json)
		putchar('\n');
	json_decref(coverage);
	json_decref(verdicts);
	json_decref(plans);
	return rc ? EXIT_USAGE : 0;
}
