/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../reports/report.h"
#include "log.h"

static const struct argp_option options[] = {
	{ "format", 'f', "FORMAT", 0, "text (the default), json or junit", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

struct input {
	const char *dir;
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
	case ARGP_KEY_ARG:
		if (in->dir)
			argp_error(state, "one run folder is wanted");
		in->dir = arg;
		break;
	case ARGP_KEY_END:
		if (!in->dir)
			argp_error(state, "which run folder? runs/latest is the newest");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int cmd_report(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "DIR",
		.doc = "Prints the report of a run from its folder.",
	};
	struct input in = { .format = report_find("text") };
	struct report_run run;
	struct error e = { "" };
	int rc;

	command_parse(&argp, argc, argv, &in);
	rc = report_load(in.dir, &run, &e);
	if (rc == -ENOENT || rc == -ENOTDIR) {
		log_error("%s is no run folder: %s", in.dir, e.text);
		return EXIT_USAGE;
	}
	if (!rc) {
		rc = in.format->write(&run, stdout, isatty(STDOUT_FILENO) && !getenv("NO_COLOR"), &e);
		report_release(&run);
	}
	if (!rc && (fflush(stdout) == EOF || ferror(stdout)))
		rc = error_set(&e, -EIO, "standard output: %s", strerror(errno));
	if (rc)
		log_error("%s", e.text);
	return rc ? EXIT_ERROR : 0;
}
