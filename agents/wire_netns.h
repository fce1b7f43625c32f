/* SPDX-License-Identifier: MIT */
/* A network namespace of our own, for the tests and the benchmark of the wire. */
#ifndef QD_WIRE_NETNS_H
#define QD_WIRE_NETNS_H

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline int run(const char *command)
{
	return system(command) == 0 ? 0 : -1;
}

static inline int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)strlen(text) ? 0 : -1;
}

/* Root in namespaces of our own. */
static inline int enter_namespace(void)
{
	char map[64];
	unsigned uid = getuid(), gid = getgid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return geteuid() == 0 ? unshare(CLONE_NEWNET) : -1;
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof map, "0 %u 1", uid);
	if (write_file("/proc/self/uid_map", map))
		return -1;
	snprintf(map, sizeof map, "0 %u 1", gid);
	return write_file("/proc/self/gid_map", map);
}

#endif
