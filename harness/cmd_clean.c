/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <stdio.h>

#include "journal.h"
#include "log.h"

int cmd_clean(int argc, char **argv)
{
	static const struct argp argp = {
		.doc = "Undoes what killed runs left on this machine: guests, links, RDMA devices.\v"
		       "Each run does the same at its start. Runs that are still going on are left alone.",
	};
	struct error e = { "" };
	unsigned n = 0;

	command_parse(&argp, argc, argv, NULL);
	int rc = journal_clean(&n, true, &e);

	if (rc < 0)
		log_error("%s", e.text);
	printf("%u change%s undone\n", n, n == 1 ? "" : "s");
	return rc < 0 ? EXIT_ERROR : 0;
}
