/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "run.h"

enum key { KEY_CASE = 256, KEY_SEED, KEY_SET };

static const struct argp_option options[] = {
	{ "case", KEY_CASE, "ID", 0, "only this case of a swept scenario (a glob)", 0 },
	{ "seed", KEY_SEED, "N", 0, "choose PSNs and payload (default: 1)", 0 },
	{ "set", KEY_SET, "K=V", 0, "override an attribute: qp.timeout=18; may be repeated", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

#define SETS_MAX 64

struct input {
	const char *path, *id;
	const char *set[SETS_MAX + 1];
	size_t n_set;
	uint64_t seed;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct input *in = state->input;
	char *end;

	switch (key) {
	case KEY_CASE:
		in->id = arg;
		break;
	case KEY_SEED:
		errno = 0;
		in->seed = strtoull(arg, &end, 0);
		if (errno || !*arg || *end || *arg == '-')
			argp_error(state, "--seed: '%s' is no number", arg);
		break;
	case KEY_SET:
		if (in->n_set == SETS_MAX)
			argp_error(state, "--set: at most %d", SETS_MAX);
		in->set[in->n_set++] = arg;
		break;
	case ARGP_KEY_ARG:
		if (in->path)
			argp_error(state, "one file is wanted");
		in->path = arg;
		break;
	case ARGP_KEY_END:
		if (!in->path)
			argp_error(state, "which scenario file?");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* What follows from a first pass is known when it has run, but for a case that is asked for by its whole name. */
static int add_followers(struct run_cases *list, const struct plan_options *o, struct error *e)
{
	size_t n = list->n;
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		size_t before = list->n;

		if (!list->cases[i].source->first_pass)
			continue;
		rc = run_cases_follow(list, i, NULL, o, e);
		if (!rc && list->n == before)
			log_info("%s: a run of it finds packets, and for each there will be a case beside this one",
				 list->cases[i].id);
	}
	return rc;
}

/* One case is printed as it is, several as an array. */
static void print(const struct run_cases *list)
{
	json_t *plans = json_array(), *out;

	for (size_t i = 0; i < list->n; i++)
		if (run_case_selected(list, &list->cases[i]) || list->n == 1)
			json_array_append(plans, list->cases[i].plan);
	out = json_array_size(plans) == 1 ? json_array_get(plans, 0) : plans;
	json_dumpf(out, stdout, JSON_INDENT(2) | JSON_SORT_KEYS);
	json_decref(plans);
	putchar('\n');
}

int cmd_plan(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "FILE",
		.doc = "Prints what a scenario (- for one on standard input) becomes before it runs: defaults filled in, ends "
		       "resolved, deadlines computed. An "
		       "array, where the file has "
		       "several cases.",
	};
	struct input in = { .seed = 1 };
	struct run_cases list = { 0 };
	struct plan_options o;
	struct diag d = { 0 };
	struct error e = { "" };
	int rc, status = EXIT_USAGE;

	command_parse(&argp, argc, argv, &in);
	o = (struct plan_options){ .seed = in.seed, .set = in.set };
	rc = run_cases_load(&in.path, 1, &list, &d, &e);
	if (d.text)
		fputs(d.text, stderr);
	if (!rc && in.id)
		run_cases_select(&list, &in.id, 1);
	if (!rc && !list.n)
		rc = error_set(&e, -ENOENT, "%s has no case%s%s", in.path, in.id ? " " : "", in.id ? in.id : "");
	if (!rc)
		rc = run_cases_plan(&list, &o, &e);
	if (!rc)
		rc = add_followers(&list, &o, &e);
	if (rc)
		log_error("%s", e.text);
	else {
		print(&list);
		status = 0;
	}
	run_cases_release(&list);
	diag_release(&d);
	return status;
}
