/* SPDX-License-Identifier: MIT */
/*
 * One function per subcommand, in cmd_NAME.c, listed in main.c. argv[0] is the subcommand's name; the return value is the exit
 * status: 0, 1 a failure, 2 usage or a faulty scenario file, 3 inconclusive or a harness error, 77 all skipped.
 *
 * Options are parsed with argp; command_parse() gives all subcommands the same manners.
 */
#ifndef QD_COMMANDS_H
#define QD_COMMANDS_H

#include <argp.h>
#include <stdio.h>

#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define EXIT_ERROR 3
#define EXIT_SKIPPED 77

#define EXIT_STATUS_HELP                                                                                                           \
	"2 usage or a faulty scenario file, else 1 a failure, else 3 inconclusive or a harness error,\nelse 77 all skipped, else " \
	"0."

struct command {
	const char *name;
	int (*fn)(int argc, char **argv);
	const char *help;
};

extern const struct command command_table[]; /* ends with a row without a name */

int cmd_bench(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_coverage(int argc, char **argv);
int cmd_clean(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_guest(int argc, char **argv);
int cmd_judge(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_man(int argc, char **argv);
int cmd_new(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_predict(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_schema(int argc, char **argv);

/* argp_parse with usage errors on stderr and exit status 2; "qpdrill NAME" in messages. Does not return on --help or a usage
 * error; nor when command_man is set: then it prints the command's part of the manual page there, and ends the process. */
extern FILE *command_man;
void command_parse(const struct argp *argp, int argc, char **argv, void *input);

#define QPDRILL_VERSION "0.1.0"

#endif
