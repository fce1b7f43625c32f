/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../faults/action.h"
#include "../harness/log.h"
#include "../harness/manual.h"
#include "../harness/roff.h"
#include "../harness/units.h"
#include "wire_serve.h"

/* The protocol moves away from stdin and stdout, as in every process of qpdrill: whatever prints does no harm. */
static int move_stdio(int *ret_rfd, int *ret_wfd)
{
	int rfd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), wfd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (rfd < 0 || wfd < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return -errno;
	close(null);
	*ret_rfd = rfd;
	*ret_wfd = wfd;
	return 0;
}

/* What the rules can do, from the table of the actions. */
static void put_actions(FILE *out)
{
	roff_section(out, "actions of a rule");
	for (const struct action_ops *const *a = action_table; *a; a++)
		roff_item(out, (*a)->name, (*a)->help);
}

static const char *const see_also[] = { "qpdrill(1)", "qpdrill-scenario(5)", "qpdrill-agent(1)", NULL };
static const struct manual_program manual = {
	.name = "qpdrill-wire",
	.what = "joins two network devices and does to chosen RoCEv2 packets what its rules say",
	.usage = "<REQUESTS >RECORDS",
	.text = "Joins two network devices, carries every frame, and does to chosen RoCEv2 packets what its rules say.\n"
		"JSON lines: requests on standard input, replies and records on standard output, until standard input ends. Needs "
		"CAP_NET_RAW.",
	.example =
		"(echo '{\"op\":\"open\",\"ports\":[{\"name\":\"a\",\"netdev\":\"eth1\"},{\"name\":\"b\",\"netdev\":\"eth2\"}]}'; "
		"cat) | qpdrill-wire",
	.document = "agents/wire.md",
	.request = wire_ops_row,
	.more = put_actions,
	.see_also = see_also,
};

int main(int argc, char **argv)
{
	struct wire_serve *serve = NULL;
	sd_event *loop = NULL;
	struct error e = { "" };
	int rfd = -1, wfd = -1, rc;

	rc = move_stdio(&rfd, &wfd);
	log_init("qpdrill-wire", false);
	if (rc < 0) {
		log_error("stdin and stdout cannot be moved away: %s", strerror(-rc));
		return 1;
	}
	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "--man")))
		return manual_program_tell(&manual, argv[1], wfd);
	if (argc > 1) {
		log_error("%s: takes no arguments; it speaks JSON lines on stdin and stdout (agents/wire.md)", argv[1]);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	rc = sd_event_new(&loop);
	if (rc < 0) {
		log_error("no event loop: %s", strerror(-rc));
		return 1;
	}
	rc = wire_serve_new(loop, rfd, wfd, &serve, &e);
	if (rc < 0) {
		log_error("%s", e.text);
		sd_event_unref(loop);
		return 1;
	}
	rc = wire_serve_run(serve);
	if (rc < 0)
		log_error("the event loop failed: %s", strerror(-rc));
	int broken = wire_serve_free(serve);

	if (broken)
		log_error("the capture could not be written to its end: %s", strerror(-broken));
	sd_event_unref(loop);
	return rc || broken ? 1 : 0;
}
