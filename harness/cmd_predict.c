/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "predict.h"
#include "profile.h"
#include "run.h"

#define SETS_MAX 64

enum key { KEY_CASE = 256, KEY_SET, KEY_PROVIDER, KEY_JSON };

static const struct argp_option options[] = {
	{ "case", KEY_CASE, "ID", 0, "only these cases (a glob)", 0 },
	{ "set", KEY_SET, "K=V", 0, "override an attribute: qp.timeout=18; may be repeated", 0 },
	{ "provider", KEY_PROVIDER, "NAME", 0, "whose timers count (default: rxe; none: the specification's alone)", 0 },
	{ "json", KEY_JSON, NULL, 0, "an array, an element for each case", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

struct input {
	const char **paths, *id, *provider, *set[SETS_MAX + 1];
	size_t n_paths, n_set;
	bool json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct input *in = state->input;

	switch (key) {
	case KEY_CASE:
		in->id = arg;
		return 0;
	case KEY_SET:
		if (in->n_set == SETS_MAX)
			argp_error(state, "--set: at most %d", SETS_MAX);
		in->set[in->n_set++] = arg;
		return 0;
	case KEY_PROVIDER:
		if (!*arg || strchr(arg, '/'))
			argp_error(state, "--provider: '%s' is no name of a profile", arg);
		in->provider = arg;
		return 0;
	case KEY_JSON:
		in->json = true;
		return 0;
	case ARGP_KEY_ARGS:
		in->paths = (const char **)state->argv + state->next;
		in->n_paths = (size_t)(state->argc - state->next);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which scenario files?");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Its timers; the deviations do not matter. NULL where there is no profile of that name. */
static int timing_of(const struct input *in, const char *scenario, json_t **ret, struct error *e)
{
	char *path = strcmp(in->provider, "none") ? run_profile_find(scenario, in->provider) : NULL;
	struct profile profile = { 0 };
	struct diag d = { 0 };
	int rc = path ? profile_load(path, "", &profile, &d, e) : 0;

	if (d.text)
		fputs(d.text, stderr);
	diag_release(&d);
	if (path && !rc) {
		*ret = json_incref(profile.timing);
		profile_release(&profile);
	}
	if (!path && strcmp(in->provider, "none"))
		rc = error_set(e, -ENOENT, "there is no profile of %s for %s", in->provider, scenario);
	free(path);
	return rc;
}

static int predict_all(const struct input *in, struct run_cases *list, json_t **ret, struct error *e)
{
	struct plan_options o = { .seed = 1, .set = in->set };
	json_t *all = json_array(), *timing = NULL;
	int rc = run_cases_plan(list, &o, e);

	for (size_t i = 0; i < list->n && !rc; i++) {
		if (!timing)
			rc = timing_of(in, list->cases[i].scenario->path, &timing, e);
		if (!rc && run_case_selected(list, &list->cases[i]))
			json_array_append_new(all, predict_case(list->cases[i].plan, timing));
	}
	json_decref(timing);
	if (rc)
		json_decref(all);
	else
		*ret = all;
	return rc;
}

int cmd_predict(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "PATH...",
		.doc = "Says when the errors that scenarios (- for one on standard input) expect must come, how long each step may "
		       "take at most, and from which "
		       "attributes that follows. Needs no lab. How late the machine is that runs them is added by the verdict.",
	};
	struct input in = { .provider = "rxe" };
	struct run_cases list = { 0 };
	struct diag d = { 0 };
	struct error e = { "" };
	json_t *all = NULL, *one;
	size_t i;
	int rc;

	command_parse(&argp, argc, argv, &in);
	rc = run_cases_load(in.paths, in.n_paths, &list, &d, &e);
	if (d.text)
		fputs(d.text, stderr);
	if (!rc && in.id)
		run_cases_select(&list, &in.id, 1);
	if (!rc && !list.n)
		rc = error_set(&e, -ENOENT, "there is no case%s%s", in.id ? " " : "", in.id ? in.id : "");
	if (!rc)
		rc = predict_all(&in, &list, &all, &e);
	if (rc)
		log_error("%s", e.text);
	else if (in.json) {
		json_dumpf(all, stdout, JSON_INDENT(1) | JSON_SORT_KEYS);
		putchar('\n');
	} else {
		json_array_foreach(all, i, one)
			predict_text(one, stdout);
	}
	json_decref(all);
	run_cases_release(&list);
	diag_release(&d);
	return rc ? EXIT_USAGE : 0;
}
