/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../reports/report.h"
#include "log.h"

static const struct argp_option options[] = {
	{ "format", 'f', "FORMAT", 0, "text (the default), json, junit or html", 0 },
	{ "table", 't', NULL, 0, "one table with a column for each kernel, in Markdown; of several runs it is that anyway", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

#define DIRS_MAX 256

struct input {
	const char *dirs[DIRS_MAX];
	size_t n;
	bool table;
	const struct report_ops *format;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct input *in = state->input;

	switch (key) {
	case 'f':
		in->format = report_find(arg);
		if (!in->format)
			argp_error(state, "--format: there is no '%s'", arg);
		break;
	case 't':
		in->table = true;
		break;
	case ARGP_KEY_ARG:
		if (in->n == DIRS_MAX)
			argp_error(state, "at most %d run folders", DIRS_MAX);
		in->dirs[in->n++] = arg;
		break;
	case ARGP_KEY_END:
		if (!in->n)
			argp_error(state, "which run folder? runs/latest is the newest");
		in->table = in->table || in->n > 1;
		if (in->table && in->format)
			argp_error(state, "a table has no --format");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static int print(const struct input *in, struct report_run *runs, struct error *e)
{
	int rc = 0;

	if (in->table)
		report_matrix(runs, in->n, stdout);
	else
		rc = (in->format ?: report_find("text"))->write(runs, stdout, isatty(STDOUT_FILENO) && !getenv("NO_COLOR"), e);
	if (!rc && (fflush(stdout) == EOF || ferror(stdout)))
		rc = error_set(e, -EIO, "standard output: %s", strerror(errno));
	return rc;
}

int cmd_report(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "DIR...",
		.doc = "Prints the report of a run from its folder; of several runs, a table of where they differ, with a column for each kernel (two, where the runs share a case).",
	};
	struct input in = { .format = NULL };
	struct report_run runs[DIRS_MAX];
	struct error e = { "" };
	size_t n = 0;
	int rc = 0;

	command_parse(&argp, argc, argv, &in);
	while (!rc && n < in.n) {
		rc = report_load(in.dirs[n], &runs[n], &e);
		n += !rc;
	}
	if (rc == -ENOENT || rc == -ENOTDIR)
		log_error("%s is no run folder: %s", in.dirs[n], e.text);
	else if (rc || (rc = print(&in, runs, &e)))
		log_error("%s", e.text);
	for (size_t i = 0; i < n; i++)
		report_release(&runs[i]);
	return !rc ? 0 : rc == -ENOENT || rc == -ENOTDIR ? EXIT_USAGE : EXIT_ERROR;
}
