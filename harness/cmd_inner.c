/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <stdio.h>

#include "executor.h"
#include "log.h"

int cmd_inner(int argc, char **argv)
{
	struct error e = { "" };
	int rc;

	if (argc != 3) {
		fputs("usage: qpdrill inner RUNDIR CHANNEL\n", stderr);
		return EXIT_USAGE;
	}
	rc = executor_inner(argv[1], argv[2], &e);
	if (rc)
		log_error("%s", e.text);
	return rc ? EXIT_ERROR : 0;
}
