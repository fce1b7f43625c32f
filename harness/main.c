/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "manual.h"

static int cmd_help(int argc, char **argv);

FILE *command_man;

const struct command command_table[] = {
	{ "run", cmd_run, "run scenarios and judge them" },
	{ "new", cmd_new, "write a scenario to begin with" },
	{ "check", cmd_check, "check scenario files, without a lab" },
	{ "plan", cmd_plan, "print what a scenario becomes: its plan as JSON" },
	{ "predict", cmd_predict, "say when the errors that a scenario expects must come" },
	{ "judge", cmd_judge, "judge a case or a run again, from its files" },
	{ "report", cmd_report, "print the report of a run: text, json, junit, html" },
	{ "compare", cmd_compare, "hold a run against an older one: what became worse, what better" },
	{ "explain", cmd_explain, "what a status, event, counter or verdict means, and what causes it" },
	{ "coverage", cmd_coverage, "what the scenarios assert, and what none does" },
	{ "list", cmd_list, "list faults, actions, steps, scenarios, profiles, statuses, events, capabilities ..." },
	{ "schema", cmd_schema, "print the JSON Schema of scenario files, for editors" },
	{ "guest", cmd_guest, "a shell or a command in the guest that scenarios run in" },
	{ "doctor", cmd_doctor, "what this machine can do, and what mends the rest" },
	{ "clean", cmd_clean, "undo what a killed run left on this machine" },
	{ "bench", cmd_bench, "measure what the harness costs: guests, agents, the suite, the wire" },
	{ "man", cmd_man, "print a manual page: qpdrill.1, qpdrill-scenario.5" },
	{ "help", cmd_help, "this text" },
	{ NULL, NULL, NULL },
};

static void print_help(FILE *out)
{
	fputs("qpdrill: a fire drill for RDMA queue pairs\n\nusage: qpdrill COMMAND [ARGUMENTS]\n\n", out);
	for (const struct command *c = command_table; c->name; c++)
		fprintf(out, "  %-8s %s\n", c->name, c->help);
	fputs("\n`qpdrill COMMAND --help` tells more.\nExit status: " EXIT_STATUS_HELP "\n", out);
}

static const struct command *find(const char *name)
{
	for (const struct command *c = command_table; c->name; c++)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

/* `help COMMAND` is `COMMAND --help`. */
static int cmd_help(int argc, char **argv)
{
	const struct command *c = argc > 1 && argv[1][0] != '-' ? find(argv[1]) : NULL;
	char option[] = "--help", *args[] = { argv[argc > 1], option, NULL };

	if (argc > 1 && argv[1][0] != '-' && !c) {
		log_error("there is no command '%s'", argv[1]);
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (c && c->fn != cmd_help)
		return c->fn(2, args);
	print_help(stdout);
	return 0;
}

void command_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	static char name[64];

	snprintf(name, sizeof(name), "qpdrill %s", argv[0]);
	if (command_man) {
		manual_argp(command_man, name, argp);
		_exit(fflush(command_man) == EOF ? EXIT_ERROR : 0);
	}
	argv[0] = name;
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(argp, argc, argv, 0, NULL, input);
}

/* With 0, 1 or 2 closed, the next file opened would become standard input, output or error. Nothing can be written to
 * this output, so that what should have gone there is an error as before; lost progress is none. */
static void hold_standard_files(void)
{
	static const int modes[] = { O_RDONLY, O_RDONLY, O_WRONLY };

	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) != fd)
			_exit(EXIT_ERROR);
}

/* What could not be printed is an error, whichever command it was. */
static int ended(int status)
{
	bool failed = fflush(stdout) == EOF || ferror(stdout);

	/* A reader that has seen enough is none. */
	if (failed && status == 0 && errno != EPIPE) {
		log_error("standard output: %s", strerror(errno));
		return EXIT_ERROR;
	}
	return status;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const struct command *c = find(name);

	hold_standard_files();
	log_init("qpdrill", false);
	/* An agent or a pager that goes away is an error of a write, not our end. */
	signal(SIGPIPE, SIG_IGN);
	if (!strcmp(name, "--version")) {
		puts("qpdrill " QPDRILL_VERSION);
		return ended(0);
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
		print_help(stdout);
		return ended(0);
	}
	if (c)
		return ended(c->fn(argc - 1, argv + 1));
	if (*name)
		log_error("there is no command '%s'", name);
	print_help(stderr);
	return EXIT_USAGE;
}
