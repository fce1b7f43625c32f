/* SPDX-License-Identifier: MIT */
/* The wire as a process between two veth pairs (va-wa, vb-wb), in a network namespace of its own: for the tests that need packets
 * of a kernel. */
#ifndef QD_WIRE_NATIVE_RIG_H
#define QD_WIRE_NATIVE_RIG_H

#include <errno.h>
#include <jansson.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../harness/units.h"
#include "wire_link.h"
#include "wire_netns.h"
#include "wire_serve.h"
#include "wire_test.h"

#define DEADLINE_NS (60 * NSEC_PER_SEC)

static struct {
	pid_t pid;
	int to, from;
	FILE *lines;
	unsigned id;
	json_t *records, *late; /* late: replies that came while another was waited for */
} wire;

/* What checksums and segments are left to the device would cross the wire unfinished. */
static inline int offload_off(const char *netdev)
{
	static const uint32_t commands[] = {
		ETHTOOL_STXCSUM, ETHTOOL_SRXCSUM, ETHTOOL_SSG, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO
	};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;

	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		struct ethtool_value v = { .cmd = commands[i] };
		struct ifreq ifr = { .ifr_data = (void *)&v };

		snprintf(ifr.ifr_name, sizeof ifr.ifr_name, "%s", netdev);
		if (ioctl(fd, SIOCETHTOOL, &ifr) && i == 0)
			rc = -1;
	}
	close(fd);
	return rc;
}

static inline int make_links(void)
{
	static const char *const devices[] = { "va", "wa", "vb", "wb" };

	if (run("ip link add va type veth peer name wa 2>/dev/null && ip link add vb type veth peer name wb"))
		return -1;
	for (size_t i = 0; i < 4; i++) {
		char command[256];

		snprintf(command, sizeof command, "echo 1 > /proc/sys/net/ipv6/conf/%s/disable_ipv6; ip link set %s mtu 4200 up",
			 devices[i], devices[i]);
		if (run(command) || offload_off(devices[i]))
			return -1;
	}
	return 0;
}

static inline void serve(int rfd, int wfd)
{
	struct wire_serve *s = NULL;
	sd_event *loop = NULL;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	if (sd_event_new(&loop) < 0 || wire_serve_new(loop, rfd, wfd, &s, NULL))
		_exit(1);
	int rc = wire_serve_run(s);

	_exit(rc || wire_serve_free(s));
}

static inline int start_wire(void)
{
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		return -1;
	wire.pid = fork();
	if (wire.pid == 0) {
		close(to[1]);
		close(from[0]);
		serve(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	wire.to = to[1];
	wire.lines = fdopen(from[0], "r");
	wire.records = json_array();
	wire.late = json_array();
	return wire.pid < 0 ? -1 : 0;
}

/* Sends a request; returns its id. */
static inline unsigned tell(const char *request)
{
	dprintf(wire.to, "{\"id\":%u,%s}\n", ++wire.id, request);
	return wire.id;
}

/* The reply to that request; other replies and records on the way are kept. NULL: the wire has ended. */
static inline json_t *await(unsigned id)
{
	char *line = NULL;
	size_t room = 0, i;
	json_t *reply = NULL, *j;

	json_array_foreach(wire.late, i, j) {
		if (json_integer_value(json_object_get(j, "id")) != id)
			continue;
		reply = json_incref(j);
		json_array_remove(wire.late, i);
		return reply;
	}
	while (!reply && getline(&line, &room, wire.lines) > 0) {
		j = json_loads(line, 0, NULL);
		if (json_integer_value(json_object_get(j, "id")) == id)
			reply = json_incref(j);
		else if (json_object_get(j, "id"))
			json_array_append(wire.late, j);
		json_array_extend(wire.records, json_object_get(j, "recs"));
		json_decref(j);
	}
	free(line);
	return reply;
}

static inline json_t *ask(const char *request)
{
	return await(tell(request));
}

static inline int64_t ask_rc(const char *request)
{
	json_t *reply = ask(request);
	int64_t rc = reply ? json_integer_value(json_object_get(reply, "rc")) : -EPIPE;

	if (rc)
		fprintf(stderr, "    %s: %s\n", request, json_string_value(json_object_get(reply, "error")));
	json_decref(reply);
	return rc;
}

static inline bool receive_one(struct wire_link *l, struct wire_buf *ret, uint64_t deadline_ns)
{
	while (now_ns() < deadline_ns) {
		struct pollfd pfd = { .fd = l->ops->fd(l), .events = POLLIN };

		l->ops->done(l);
		if (l->ops->receive(l, ret, 1) == 1)
			return true;
		poll(&pfd, 1, 50);
	}
	return false;
}

static inline int child_status(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* The wire's end of file, and its exit status. */
static inline int end_wire(void)
{
	if (wire.to >= 0)
		close(wire.to);
	int status = child_status(wire.pid);

	fclose(wire.lines);
	json_decref(wire.records);
	json_decref(wire.late);
	return status;
}

/* 0, or what the program is to end with: 77 where namespaces or veth pairs cannot be made. */
static inline int rig_start(void)
{
	if (enter_namespace()) {
		printf("skipped: namespaces cannot be made here: %s\n", strerror(errno));
		return 77;
	}
	if (make_links()) {
		printf("skipped: veth pairs cannot be made here\n");
		return 77;
	}
	if (start_wire()) {
		printf("the wire does not start: %s\n", strerror(errno));
		return 1;
	}
	return 0;
}

#endif
