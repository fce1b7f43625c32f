/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"
#include "manual.h"
#include "roff.h"

static const struct {
	const char *name, *help;
} environment[] = {
	{ "QPDRILL_CACHE", "the folder of kernels and saved guests (else $XDG_CACHE_HOME/qpdrill, else ~/.cache/qpdrill)" },
	{ "QPDRILL_DATA", "where scenarios, profiles and scripts are looked for first" },
	{ "QPDRILL_STATE", "where is noted what a run changes on this machine (else $XDG_RUNTIME_DIR/qpdrill, or below HOME)" },
	{ "QPDRILL_SKIP_SETUP", "`make setup` does not look for packages" },
	{ "NO_COLOR", "no colours in the report" },
	{ "TMPDIR", "for what is needed for a moment" },
};

/* A command parses its options in its own way, and ends where help is asked for: a process for each, which prints its part there.
 */
static int put_command(const struct command *c)
{
	char name[64], *argv[] = { name, NULL };
	int status = 0;
	pid_t pid;

	snprintf(name, sizeof(name), "%s", c->name);
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		command_man = stdout;
		c->fn(1, argv);
		_exit(EXIT_ERROR);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status ? -EIO : 0;
}

static int put_qpdrill(void)
{
	static const char *const pages[] = { "qpdrill-scenario(5)", "qpdrill-agent(1)",
					     "qpdrill-wire(1)",     "rdma(8)",
					     "tc-netem(8)",         NULL };
	int rc = 0;

	roff_page(stdout, "qpdrill", 1, "a fire drill for RDMA queue pairs");
	roff_section(stdout, "synopsis");
	roff_text(stdout, "`qpdrill` COMMAND [ARGUMENTS]");
	roff_section(stdout, "description");
	roff_text(stdout,
		  "Builds real queue pairs, injects faults into them and into the link, checks the work completions that must "
		  "follow at both ends, recovers the pair, and proves with verified traffic that it works again. Where this "
		  "kernel has no RDMA it boots a small guest that has it.");
	roff_section(stdout, "commands");
	for (const struct command *c = command_table; c->name && !rc; c++) {
		/* Its options are those of the others. */
		if (!strcmp(c->name, "help")) {
			roff_subsection(stdout, "qpdrill help");
			roff_text(stdout, "`qpdrill help` [COMMAND]\n\nWhat there is, or what COMMAND --help says.");
		} else {
			rc = put_command(c);
		}
	}
	roff_section(stdout, "exit status");
	roff_text(stdout, EXIT_STATUS_HELP);
	roff_section(stdout, "environment");
	for (size_t i = 0; i < sizeof(environment) / sizeof(*environment); i++)
		roff_item(stdout, environment[i].name, environment[i].help);
	roff_section(stdout, "files");
	roff_item(stdout, "scenarios/AREA/NAME.yaml", "scenarios, see `qpdrill-scenario`(5)");
	roff_item(stdout, "scenarios/profiles/PROVIDER.yaml",
		  "where a device differs from the specification, and the kernels that showed it");
	roff_item(stdout, "runs/ID/", "everything about a run; `runs/latest` is the newest");
	roff_see_also(stdout, pages);
	return rc;
}

static int put_scenario(void)
{
	roff_page(stdout, "qpdrill-scenario", 5, "scenario files of qpdrill");
	manual_scenario(stdout);
	return 0;
}

static const struct {
	const char *name;
	int (*put)(void);
} pages[] = {
	{ "qpdrill.1", put_qpdrill },
	{ "qpdrill-scenario.5", put_scenario },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const char **page = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (*page)
			argp_error(state, "one page at a time");
		*page = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_man(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "[PAGE]",
		.doc = "Prints a manual page as roff: qpdrill.1 (the default) or qpdrill-scenario.5. `qpdrill man | man -l -` "
		       "shows it; "
		       "`make install` puts it where man finds it. It is made from the tables that the program works by.",
	};
	const char *page = NULL;

	command_parse(&argp, argc, argv, &page);
	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
		if (!strcmp(page ? page : pages[0].name, pages[i].name)) {
			int rc = pages[i].put();

			if (rc)
				log_error("%s: %s", pages[i].name, strerror(-rc));
			return rc ? EXIT_ERROR : 0;
		}
	log_error(
		"there is no page '%s': qpdrill.1 or qpdrill-scenario.5 (qpdrill-agent --man and qpdrill-wire --man print theirs)",
		page);
	return EXIT_USAGE;
}
