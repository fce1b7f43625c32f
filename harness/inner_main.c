/* SPDX-License-Identifier: MIT */
/*
 * The programs inside a guest:
 *   qpdrill-inner RUNDIR CHANNEL      runs cases for the controller outside (executor.h)
 *   qpdrill-inner --lane COMMAND...   runs a command while two linked rxe devices are up
 *   qpdrill-inner --keep-lanes N FILE brings lanes up, writes down for another process what they are, and leaves them
 * (guest_saved.h)
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor.h"
#include "journal.h"
#include "lab.h"
#include "log.h"

static int run_command(char **argv, struct error *e)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		signal(SIGPIPE, SIG_DFL);
		execvp(argv[0], argv);
		fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	if (pid < 0)
		return error_set(e, -errno, "fork: %s", strerror(errno));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return error_set(e, -errno, "waitpid: %s", strerror(errno));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int with_lane(char **argv, struct error *e)
{
	struct journal *journal = NULL;
	struct lab *lab = NULL;
	struct lab_lane lane;
	int rc = journal_open(&journal, e);

	if (rc < 0)
		return rc;
	rc = lab_rxe.open(NULL, journal, &lab, e);
	if (rc == 0)
		rc = lab->ops->lane_up(lab, 0, &lane, e);
	if (rc == 0)
		rc = run_command(argv, e);
	if (lab)
		lab->ops->close(lab);
	journal_close(journal);
	return rc;
}

static int keep_lanes(int n, const char *path, struct error *e)
{
	struct journal *journal = NULL;
	struct lab *lab = NULL;
	struct lab_lane lanes[EXECUTOR_LANES_MAX];
	int rc = n <= EXECUTOR_LANES_MAX ? journal_open(&journal, e) : error_set(e, -EINVAL, "%d lanes are too many", n);

	if (rc == 0)
		rc = lab_rxe.open(NULL, journal, &lab, e);
	if (rc == 0)
		rc = lab->ops->lanes_up(lab, n, true, lanes, e);
	return rc ? rc : lab->ops->keep(lab, n, path, e);
}

int main(int argc, char **argv)
{
	struct error e = { "" };
	int rc;

	log_init("qpdrill-inner", false);
	signal(SIGPIPE, SIG_IGN);
	if (argc > 2 && strcmp(argv[1], "--lane") == 0) {
		rc = with_lane(argv + 2, &e);
	} else if (argc == 4 && strcmp(argv[1], "--keep-lanes") == 0) {
		rc = keep_lanes((int)strtol(argv[2], NULL, 10), argv[3], &e);
	} else if (argc == 3) {
		rc = executor_inner(argv[1], argv[2], &e);
	} else {
		fputs("usage: qpdrill-inner RUNDIR CHANNEL\n       qpdrill-inner --lane COMMAND...\n"
		      "       qpdrill-inner --keep-lanes N FILE\n"
		      "The part of qpdrill that works inside its guest; not meant to be started by hand.\n",
		      stderr);
		return 2;
	}
	if (rc < 0)
		log_error("%s", e.text);
	return rc < 0 ? 3 : rc;
}
