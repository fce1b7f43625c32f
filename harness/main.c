/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

static int cmd_help(int argc, char **argv);

static const struct command {
	const char *name;
	int (*fn)(int argc, char **argv);
	const char *help; /* NULL: not for people */
} commands[] = {
	{ "run", cmd_run, "run scenarios and judge them" },
	{ "check", cmd_check, "check scenario files, without a lab" },
	{ "plan", cmd_plan, "print what a scenario becomes: its plan as JSON" },
	{ "judge", cmd_judge, "judge a case or a run again, from its files" },
	{ "report", cmd_report, "print the report of a run: text, json, junit" },
	{ "list", cmd_list, "list faults, scenarios, profiles, events, statuses, steps, capabilities" },
	{ "schema", cmd_schema, "print the JSON Schema of scenario files, for editors" },
	{ "guest", cmd_guest, "a shell or a command in the guest that scenarios run in" },
	{ "clean", cmd_clean, "undo what a killed run left on this machine" },
	{ "bench", cmd_bench, "measure boot, overhead and memory" },
	{ "inner", cmd_inner, NULL },
	{ "help", cmd_help, "this text" },
};

static void print_help(FILE *out)
{
	fputs("qpdrill: a fire drill for RDMA queue pairs\n\nusage: qpdrill COMMAND [ARGUMENTS]\n\n", out);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (commands[i].help)
			fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].help);
	fputs("\n`qpdrill COMMAND --help` tells more.\n"
	      "Exit status: 2 usage or a faulty scenario file, else 1 a failure, else 3 inconclusive or a harness error,\n"
	      "else 77 all skipped, else 0.\n",
	      out);
}

static int cmd_help(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	print_help(stdout);
	return 0;
}

void command_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	static char name[64];

	snprintf(name, sizeof(name), "qpdrill %s", argv[0]);
	argv[0] = name;
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(argp, argc, argv, 0, NULL, input);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	log_init("qpdrill", false);
	/* An agent or a pager that goes away is an error of a write, not our end. */
	signal(SIGPIPE, SIG_IGN);
	if (!strcmp(name, "--version")) {
		puts("qpdrill " QPDRILL_VERSION);
		return 0;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
		print_help(stdout);
		return 0;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(commands[i].name, name))
			return commands[i].fn(argc - 1, argv + 1);
	if (*name)
		log_error("there is no command '%s'", name);
	print_help(stderr);
	return EXIT_USAGE;
}
