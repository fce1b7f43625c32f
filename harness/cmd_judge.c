/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../reports/report.h"
#include "json.h"
#include "log.h"
#include "run.h"
#include "verdict.h"
#include "many.h"

struct judge_args {
	const char *dir;
	bool strict, json;
};

static const struct argp_option options[] = {
	{ "strict", 's', NULL, 0, "deviations are failures (as they are anyway where the run had --strict)", 0 },
	{ "json", 'j', NULL, 0, "print the verdicts as JSON", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct judge_args *a = state->input;

	switch (key) {
	case 's':
		a->strict = true;
		return 0;
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->dir)
			argp_error(state, "one folder at a time");
		a->dir = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->dir)
			argp_error(state, "which folder? a run's (runs/ID) or a case's (runs/ID/cases/CASE)");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "DIR",
	.doc = "Judges again what a run has recorded: a case folder, or all cases of a run folder. Writes verdict.json beside the "
	       "observations; what the run did not come to, or skipped, stays as it is. Needs no RDMA.",
};

/* The kernel that ran: of the run, else what the controller's hello says. */
static char *kernel_of(const json_t *run, const char *case_dir)
{
	const char *kernel = json_str(run, "kernel");
	json_t *records = NULL, *r;
	char path[4096], *found = NULL;
	struct error e;
	bool torn;
	size_t i;

	if (kernel && *kernel)
		return strdup(kernel);
	snprintf(path, sizeof(path), "%s/observations.jsonl", case_dir);
	if (many_load_records(path, &records, &torn, &e))
		return NULL;
	json_array_foreach(records, i, r)
		if (!found && json_str(r, "kernel"))
			found = strdup(json_str(r, "kernel"));
	json_decref(records);
	return found;
}

static enum verdict verdict_named(const json_t *verdict)
{
	const char *name = json_str(verdict, "verdict");

	for (int i = 1; name && i < NUM_VERDICTS; i++)
		if (!strcmp(verdict_names[i], name))
			return (enum verdict)i;
	return VERDICT_ERROR;
}

/* What the run itself said of a case of which it recorded nothing, or to which it did not come: no record says it better. NULL: no
 * such case. New reference. */
static json_t *told_by_run(const char *dir)
{
	char path[4096];
	struct error ignored;
	json_t *verdict = NULL;

	snprintf(path, sizeof(path), "%s/verdict.json", dir);
	if (json_load(path, &verdict, &ignored))
		return NULL;
	snprintf(path, sizeof(path), "%s/observations.jsonl", dir);
	if (json_str(verdict, "verdict") && (json_bool(verdict, "unrun", false) || access(path, F_OK) < 0))
		return verdict;
	json_decref(verdict);
	return NULL;
}

/* As --require of the run had it. */
static int require_again(const json_t *run, const char *dir, const json_t *plan, json_t **verdict, struct error *e)
{
	const json_t *list = json_object_get(run, "require"), *item;
	const char **names = calloc(json_array_size(list) + 1, sizeof(*names));
	struct run_options o = { .require = names };
	char path[4096];
	json_t *failed;
	size_t i;
	int rc = 0;

	if (!names)
		return error_set(e, -ENOMEM, "out of memory");
	json_array_foreach(list, i, item)
		if (json_is_string(item))
			names[o.n_require++] = json_string_value(item);
	failed = run_require(&o, plan, *verdict);
	free(names);
	if (failed) {
		json_decref(*verdict);
		*verdict = failed;
		snprintf(path, sizeof(path), "%s/verdict.json", dir);
		rc = json_save(path, failed, e);
	}
	return rc;
}

static int judge_recorded(const struct judge_args *a, const json_t *run, const char *dir, const json_t *plan, json_t **ret_verdict,
			  struct error *e)
{
	char *kernel = kernel_of(run, dir);
	int rc = run_judge(dir, kernel, a->strict || json_bool(run, "strict", false), ret_verdict, e);

	free(kernel);
	if (rc)
		return rc;
	rc = require_again(run, dir, plan, ret_verdict, e);
	if (rc)
		json_decref(*ret_verdict);
	return rc;
}

static int judge_case(const struct judge_args *a, const json_t *run, const char *dir, json_t **ret_plan, json_t **ret_verdict)
{
	struct error e = { "" };
	char path[4096];
	int rc;

	snprintf(path, sizeof(path), "%s/plan.json", dir);
	rc = json_load(path, ret_plan, &e);
	if (!rc) {
		*ret_verdict = told_by_run(dir);
		rc = *ret_verdict ? 0 : judge_recorded(a, run, dir, *ret_plan, ret_verdict, &e);
		if (rc)
			json_decref(*ret_plan);
	}
	if (rc)
		log_error("%s: %s", dir, e.text);
	return rc;
}

static void show(const struct judge_args *a, const json_t *run, const json_t *plan, const json_t *verdict)
{
	enum verdict v = verdict_named(verdict);

	if (a->json) {
		json_dumpf(verdict, stdout, JSON_INDENT(1) | JSON_SORT_KEYS);
		putchar('\n');
		return;
	}
	report_text_case(stdout, verdict, isatty(1));
	if (v != VERDICT_PASS && v != VERDICT_SKIP)
		report_text_failure(stdout, plan, verdict, run, isatty(1));
}

static int one(const struct judge_args *a, const json_t *run, const char *dir, unsigned counts[NUM_VERDICTS])
{
	json_t *plan = NULL, *verdict = NULL;

	if (judge_case(a, run, dir, &plan, &verdict)) {
		counts[VERDICT_ERROR]++;
		return -1;
	}
	counts[verdict_named(verdict)]++;
	show(a, run, plan, verdict);
	json_decref(plan);
	json_decref(verdict);
	return 0;
}

/* A case folder lies a few levels below its run's. */
static json_t *run_above(const char *dir)
{
	char path[4096], up[32] = "";
	struct error e = { "" };
	json_t *run = NULL;

	for (int i = 0; i < 8; i++) {
		strncat(up, "../", sizeof(up) - strlen(up) - 1);
		snprintf(path, sizeof(path), "%s/%srun.json", dir, up);
		if (access(path, F_OK))
			continue;
		if (json_load(path, &run, &e))
			log_warn("%s", e.text);
		return run;
	}
	return NULL;
}

/* run.json lists the cases in the order of the files: {"case","dir"} each. */
static void all(const struct judge_args *a, const json_t *run, unsigned counts[NUM_VERDICTS])
{
	const json_t *c;
	size_t i;

	json_array_foreach(json_object_get(run, "cases"), i, c) {
		const char *id = json_is_string(c) ? json_string_value(c) : json_str(c, "case");
		const char *given = json_str(c, "dir");
		char *name = given || !id ? NULL : run_case_dir(id), dir[4096];

		if (given)
			snprintf(dir, sizeof(dir), "%s/%s", a->dir, given);
		else
			snprintf(dir, sizeof(dir), "%s/cases/%s", a->dir, name ? name : "?");
		one(a, run, dir, counts);
		free(name);
	}
}

int cmd_judge(int argc, char **argv)
{
	struct judge_args a = { .dir = NULL };
	unsigned counts[NUM_VERDICTS] = { 0 };
	json_t *run = NULL;
	struct error e = { "" };
	char path[4096];

	command_parse(&argp, argc, argv, &a);
	snprintf(path, sizeof(path), "%s/plan.json", a.dir);
	if (!access(path, F_OK)) {
		run = run_above(a.dir);
		one(&a, run, a.dir, counts);
	} else {
		snprintf(path, sizeof(path), "%s/run.json", a.dir);
		if (json_load(path, &run, &e)) {
			log_error("%s is neither a case folder nor a run folder: %s", a.dir, e.text);
			return EXIT_USAGE;
		}
		all(&a, run, counts);
	}
	json_decref(run);
	return verdict_exit_status(counts);
}
