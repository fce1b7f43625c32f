/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "../reports/compare.h"
#include "log.h"

static const struct argp_option options[] = {
	{ "json", 'j', NULL, 0, "print a JSON document", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

struct input {
	const char *dirs[2];
	unsigned n;
	bool json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct input *in = state->input;

	switch (key) {
	case 'j':
		in->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (in->n == 2)
			argp_error(state, "two runs are compared, the older one first");
		in->dirs[in->n++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (in->n < 2)
			argp_error(state, "which two run folders? The older one first");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print(const struct input *in, const json_t *doc)
{
	if (!in->json) {
		compare_text(doc, stdout, isatty(STDOUT_FILENO) && !getenv("NO_COLOR"));
		return;
	}
	json_dumpf(doc, stdout, JSON_INDENT(1) | JSON_SORT_KEYS);
	putchar('\n');
}

int cmd_compare(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "OLD NEW",
		.doc = "Holds the run in the folder NEW against the one in OLD: what became worse, what better, what else is "
		       "different. "
		       "Of a kernel or a firmware that is to be judged, run the same scenarios on both; with --repeat 10 or so the "
		       "times of recoveries are judged as well.\v"
		       "Exit status: 1 a regression, else 3 something that was judged in OLD could not be in NEW, 2 a folder that "
		       "cannot be read or holds none of the other's cases, else 0. Needs no RDMA.",
	};
	struct input in = { .n = 0 };
	struct report_run runs[2];
	struct error e = { "" };
	json_t *doc = NULL;
	unsigned n = 0;
	int rc = 0, status = EXIT_USAGE;

	command_parse(&argp, argc, argv, &in);
	while (!rc && n < 2) {
		rc = report_load(in.dirs[n], &runs[n], &e);
		n += !rc;
	}
	if (rc == -ENOENT || rc == -ENOTDIR)
		error_prefix(&e, rc, "%s is no run folder", in.dirs[n]);
	if (!rc)
		rc = compare_runs(&runs[0], &runs[1], &doc, &e);
	if (rc) {
		log_error("%s", e.text);
	} else {
		print(&in, doc);
		status = compare_exit_status(doc);
	}
	json_decref(doc);
	while (n)
		report_release(&runs[--n]);
	return status;
}
