/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>

#include "executor.h"
#include "log.h"

int main(int argc, char **argv)
{
	struct error e = { "" };

	log_init("qpdrill-inner", false);
	signal(SIGPIPE, SIG_IGN);
	if (argc != 3) {
		fputs("usage: qpdrill-inner RUNDIR CHANNEL\nThe part of qpdrill that runs cases inside its guest; not meant to be started by hand.\n", stderr);
		return 2;
	}
	int rc = executor_inner(argv[1], argv[2], &e);

	if (rc < 0)
		log_error("%s", e.text);
	return rc < 0 ? 3 : 0;
}
