/* SPDX-License-Identifier: MIT */
/* In network namespaces of its own, as its own root: this machine's links are not touched. */
#include "link_guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc.h"
#include "test.h"
#include "units.h"

static bool isolated;

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		printf("\n%s: %s\n", path, strerror(errno));
	close(fd);
}

static bool ip(const char *args)
{
	char line[256];
	char *argv[] = { (char *)"sh", (char *)"-c", line, NULL };
	struct error e = { "" };

	snprintf(line, sizeof line, "ip %s", args);
	return proc_run(argv, 10 * NSEC_PER_SEC, NULL, &e) == 0;
}

/* Three links: one by which the world is reached, one to a launcher's far end, and one of the lab. */
static bool set_up(void)
{
	static const char *const commands[] = {
		"link set lo up",
		"link add out type veth peer name outp",
		"link add far type veth peer name farp",
		"link add lab type veth peer name labp",
		"addr add 192.0.2.1/24 dev out",
		"addr add 198.51.100.1/24 dev far",
		"addr add 203.0.113.1/24 dev lab",
		"link set out up",
		"link set outp up",
		"link set far up",
		"link set farp up",
		"link set lab up",
		"link set labp up",
		"route add default via 192.0.2.2",
	};
	char map[32];
	unsigned uid = geteuid(), gid = getegid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return false;
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof map, "0 %u 1", uid);
	write_file("/proc/self/uid_map", map);
	snprintf(map, sizeof map, "0 %u 1", gid);
	write_file("/proc/self/gid_map", map);
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		if (!ip(commands[i]))
			return false;
	return true;
}

/* A connection whose one end is at this address; both are this machine's. */
static bool connect_at(const char *text, int ret_fds[3])
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof a;

	inet_pton(AF_INET, text, &a.sin_addr);
	ret_fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ret_fds[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(ret_fds[0], (struct sockaddr *)&a, sizeof a) || listen(ret_fds[0], 1) ||
	    getsockname(ret_fds[0], (struct sockaddr *)&a, &len) || connect(ret_fds[1], (struct sockaddr *)&a, len))
		return false;
	ret_fds[2] = accept(ret_fds[0], NULL, NULL);
	return ret_fds[2] >= 0;
}

static void refused(const char *netdev, const char *session, const pid_t *pids, size_t n, const char *why)
{
	struct error e = { "" };
	int rc = link_guard(netdev, session, pids, n, &e);

	ROW_ASSERT(rc == (why ? -EPERM : 0), "%s: %d %s", netdev, rc, e.text);
	ROW_ASSERT(!why || strstr(e.text, why), "%s: %s", netdev, e.text);
}

static bool skipped(const char *what)
{
	if (!isolated)
		printf("skip %s: needs user and network namespaces with veth\n", what);
	return !isolated;
}

static void default_routes_are_left_alone(void)
{
	if (skipped("default routes"))
		return;
	refused("out", NULL, NULL, 0, "default route");
	refused("lab", NULL, NULL, 0, NULL);
	CU_ASSERT(ip("route del default"));
	refused("out", NULL, NULL, 0, NULL);
	CU_ASSERT(ip("addr add fd00::1/64 dev out nodad") && ip("-6 route add default via fd00::2 dev out"));
	refused("out", NULL, NULL, 0, "default route");
	CU_ASSERT(ip("-6 route del default"));
	refused("out", NULL, NULL, 0, NULL);
}

static void the_login_is_left_alone(void)
{
	if (skipped("logins"))
		return;
	refused("far", "192.0.2.9 50000 198.51.100.1 22", NULL, 0, "login");
	refused("lab", "192.0.2.9 50000 198.51.100.1 22", NULL, 0, NULL);
	refused("far", "nonsense", NULL, 0, NULL);
}

static void a_launchers_connection_is_left_alone(void)
{
	const pid_t self = getpid(), nobody = 0x3fffffff;
	int fds[3];

	if (skipped("connections of launchers"))
		return;
	refused("far", NULL, &self, 1, NULL);
	MUST(connect_at("198.51.100.1", fds));
	refused("far", NULL, &self, 1, "by which an agent was launched (to ::ffff:198.51.100.1)");
	refused("lab", NULL, &self, 1, NULL);
	refused("far", NULL, &nobody, 1, NULL);
	for (size_t i = 0; i < 3; i++)
		close(fds[i]);
}

/* It is the launcher's child that holds it. */
static void a_connection_below_a_launcher_is_found(void)
{
	const pid_t self = getpid();
	int ready[2], fds[3], status;
	char c;

	if (skipped("connections below launchers"))
		return;
	MUST(pipe2(ready, O_CLOEXEC) == 0);
	pid_t child = fork();

	if (child == 0) {
		char done = connect_at("198.51.100.1", fds) ? 'y' : 'n';

		if (write(ready[1], &done, 1) == 1)
			pause();
		_exit(0);
	}
	CU_ASSERT(read(ready[0], &c, 1) == 1 && c == 'y');
	refused("far", NULL, &self, 1, "launched");
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	close(ready[0]);
	close(ready[1]);
}

static const struct test_case tests[] = {
	{ "default routes are left alone", default_routes_are_left_alone },
	{ "the login is left alone", the_login_is_left_alone },
	{ "a launcher's connection is left alone", a_launchers_connection_is_left_alone },
	{ "a connection below a launcher is found", a_connection_below_a_launcher_is_found },
};

/* Before anything else runs in this process: a user namespace is for one thread. */
__attribute__((constructor)) static void isolate(void)
{
	isolated = set_up();
}

TEST_MAIN("link_guard", tests)
