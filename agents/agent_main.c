/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "../harness/log.h"
#include "../harness/manual.h"
#include "../harness/units.h"
#include "agent.h"
#include "cq_set.h"

#define LAST_WORDS_NS (NSEC_PER_SEC)

/* Providers print to stdout, and read from stdin nobody knows what: the protocol moves away from both. */
static int move_stdio(int *ret_rfd, int *ret_wfd)
{
	int rfd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), wfd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), null;

	if (rfd < 0 || wfd < 0)
		return -errno;
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return -errno;
	close(null);
	/* What a library printed before main may have no end of line: it is not to swallow the hello. */
	if (write(wfd, "\n", 1) != 1)
		return -errno;
	*ret_rfd = rfd;
	*ret_wfd = wfd;
	return 0;
}

static void request_row(size_t i, const char **ret_name, const char **ret_help)
{
	*ret_name = request_table[i].op;
	*ret_help = request_table[i].help;
}

static const char *const see_also[] = { "qpdrill(1)", "qpdrill-scenario(5)", "qpdrill-wire(1)", NULL };
static const struct manual_program manual = {
	.name = "qpdrill-agent",
	.what = "holds the queue pairs of one application, as a controller asks it",
	.usage = "<REQUESTS >RECORDS",
	.text = "Stands for one application: opens RDMA devices, makes queue pairs and what they need, posts, polls, and tells all "
		"that it sees.\n"
		"JSON lines: requests on standard input, replies and records on standard output. It asserts nothing and listens on "
		"nothing; at the end of its standard input it lets go of everything and leaves.\n",
	.example = "(echo '{\"id\":1,\"op\":\"device_open\",\"name\":\"dev.a\",\"device\":\"rxe0\"}'; cat) | qpdrill-agent",
	.document = "harness/formats.md",
	.request = request_row,
	.see_also = see_also,
};

int main(int argc, char **argv)
{
	sd_event *loop = NULL;
	struct agent *agent;
	struct error e;
	int rfd = -1, wfd = -1, rc;

	signal(SIGPIPE, SIG_IGN);
	rc = move_stdio(&rfd, &wfd);
	log_init("qpdrill-agent", false);
	if (rc < 0) {
		log_error("stdin and stdout cannot be moved away: %s", strerror(-rc));
		return 1;
	}
	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "--man")))
		return manual_program_tell(&manual, argv[1], wfd);
	if (argc > 1) {
		log_error("%s: takes no arguments; it speaks JSON lines on stdin and stdout (harness/formats.md)", argv[1]);
		return 2;
	}
	rc = sd_event_new(&loop);
	if (rc < 0) {
		log_error("no event loop: %s", strerror(-rc));
		return 1;
	}
	rc = agent_new(loop, rfd, wfd, &agent, &e);
	if (rc < 0) {
		log_error("%s", e.text);
		return 1;
	}
	rc = cq_set_run(agent->cq_set);
	if (rc < 0)
		log_error("the event loop failed: %s", strerror(-rc));
	line_flush(agent->line, LAST_WORDS_NS);
	/* A thread may still sit in a call that does not return: no destructor waits for it. */
	_exit(rc == 0 ? 0 : 1);
}
