/* SPDX-License-Identifier: MIT */
#include "link_guard.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TCP_ESTABLISHED_STATE "01"
#define SOCKET_PREFIX "socket:["

/* An address as IPv6 has it, or mapped. */
struct addr {
	struct in6_addr in6;
};

static bool parse(const char *text, struct addr *ret)
{
	struct in_addr v4;

	if (inet_pton(AF_INET6, text, &ret->in6) == 1)
		return true;
	if (inet_pton(AF_INET, text, &v4) != 1)
		return false;
	memset(&ret->in6, 0, 10);
	ret->in6.s6_addr[10] = ret->in6.s6_addr[11] = 0xff;
	memcpy(&ret->in6.s6_addr[12], &v4, sizeof v4);
	return true;
}

static bool is_on(const char *netdev, const struct addr *a)
{
	struct ifaddrs *all = NULL;
	bool found = false;

	if (getifaddrs(&all))
		return false;
	for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
		char text[INET6_ADDRSTRLEN] = "";
		struct addr seen;

		if (!i->ifa_addr || strcmp(i->ifa_name, netdev) != 0)
			continue;
		if (i->ifa_addr->sa_family == AF_INET)
			inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr, text, sizeof text);
		else if (i->ifa_addr->sa_family == AF_INET6)
			inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr, text,
				  sizeof text);
		found = parse(text, &seen) && memcmp(&seen, a, sizeof seen) == 0;
	}
	freeifaddrs(all);
	return found;
}

/* ---- default routes ---- */

static bool has_default_route(const char *netdev)
{
	char line[512], name[32], to[40], mask[40], length[4];
	bool found = false;
	FILE *f = fopen("/proc/self/net/route", "re");

	while (f && !found && fgets(line, sizeof line, f))
		found = sscanf(line, "%31s %8s %*s %*s %*s %*s %*s %8s", name, to, mask) == 3 && strcmp(name, netdev) == 0 &&
			strcmp(to, "00000000") == 0 && strcmp(mask, "00000000") == 0;
	if (f)
		fclose(f);
	f = fopen("/proc/self/net/ipv6_route", "re");
	while (f && !found && fgets(line, sizeof line, f))
		found = sscanf(line, "%32s %3s %*s %*s %*s %*s %*s %*s %*s %31s", to, length, name) == 3 &&
			strcmp(name, netdev) == 0 && strcmp(length, "00") == 0 && strspn(to, "0") == 32;
	if (f)
		fclose(f);
	return found;
}

/* ---- connections ---- */

struct inodes {
	unsigned long *inode;
	size_t n, room;
};

static void inode_add(struct inodes *s, unsigned long inode)
{
	if (s->n == s->room) {
		size_t room = s->room ? 2 * s->room : 64;
		unsigned long *grown = reallocarray(s->inode, room, sizeof *grown);

		if (!grown)
			return;
		s->inode = grown;
		s->room = room;
	}
	s->inode[s->n++] = inode;
}

static void sockets_of(struct inodes *s, pid_t pid)
{
	char path[64], target[64];
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	for (const struct dirent *d; dir && (d = readdir(dir));) {
		ssize_t n = readlinkat(dirfd(dir), d->d_name, target, sizeof target - 1);

		if (n <= 0)
			continue;
		target[n] = '\0';
		if (strncmp(target, SOCKET_PREFIX, strlen(SOCKET_PREFIX)) == 0)
			inode_add(s, strtoul(target + strlen(SOCKET_PREFIX), NULL, 10));
	}
	if (dir)
		closedir(dir);
}

/* The kernel prints an address as words of 32 bits in this machine's order. */
static bool unhex(const char *hex, struct addr *ret)
{
	size_t words = strlen(hex) / 8;
	char text[INET_ADDRSTRLEN];
	uint32_t word[4];

	for (size_t i = 0; i < words && i < 4; i++) {
		char one[9];

		snprintf(one, sizeof one, "%.8s", hex + 8 * i);
		word[i] = (uint32_t)strtoul(one, NULL, 16);
	}
	if (words == 4) {
		memcpy(&ret->in6, word, sizeof ret->in6);
		return true;
	}
	return words == 1 && inet_ntop(AF_INET, word, text, sizeof text) && parse(text, ret);
}

static bool is_among(const struct inodes *s, unsigned long inode)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->inode[i] == inode)
			return true;
	return false;
}

static bool connected_by(const char *netdev, const char *table, const struct inodes *s, char *ret_text, size_t size)
{
	char line[512], local[40], remote[40], state[4], inode[24];
	bool found = false;
	struct addr a;
	FILE *f = fopen(table, "re");

	while (f && !found && fgets(line, sizeof line, f)) {
		if (sscanf(line, " %*d: %32[0-9A-F]:%*x %32[0-9A-F]:%*x %3s %*s %*s %*s %*d %*d %20s", local, remote, state,
			   inode) != 4 ||
		    strcmp(state, TCP_ESTABLISHED_STATE) != 0 || !is_among(s, strtoul(inode, NULL, 10)) || !unhex(local, &a))
			continue;
		found = is_on(netdev, &a);
		if (found && unhex(remote, &a))
			inet_ntop(AF_INET6, &a.in6, ret_text, (socklen_t)size);
	}
	if (f)
		fclose(f);
	return found;
}

/* A launcher may leave the connection to a process that it has started. */
static pid_t parent_of(pid_t pid)
{
	char path[64], line[512] = "";
	char parent[16];
	const char *p;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f && !fgets(line, sizeof line, f))
		line[0] = '\0';
	if (f)
		fclose(f);
	p = strrchr(line, ')');
	return p && sscanf(p + 1, " %*c %15s", parent) == 1 ? (pid_t)strtol(parent, NULL, 10) : 0;
}

static void sockets_below(struct inodes *s, const pid_t *pids, size_t n)
{
	DIR *proc = n ? opendir("/proc") : NULL;

	for (const struct dirent *d; proc && (d = readdir(proc));) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10), up = pid;
		bool below = false;

		for (unsigned depth = 0; up > 1 && depth < 16 && !below; depth++, up = parent_of(up))
			for (size_t i = 0; i < n; i++)
				below |= up == pids[i];
		if (below)
			sockets_of(s, pid);
	}
	if (proc)
		closedir(proc);
}

int link_guard(const char *netdev, const char *session, const pid_t *pids, size_t n, struct error *e)
{
	static const char *const tables[] = { "/proc/self/net/tcp", "/proc/self/net/tcp6" };
	char text[64] = "", server[64];
	struct inodes s = { .inode = NULL };
	struct addr a;
	int rc = 0;

	if (has_default_route(netdev))
		return error_set(e, -EPERM, "%s carries this machine's default route", netdev);
	if (session && sscanf(session, "%*s %*s %63s %*s", server) == 1 && parse(server, &a) && is_on(netdev, &a))
		return error_set(e, -EPERM, "%s carries the login that this run was started from (to %s)", netdev, server);
	sockets_below(&s, pids, n);
	for (size_t i = 0; !rc && i < sizeof tables / sizeof tables[0]; i++)
		if (connected_by(netdev, tables[i], &s, text, sizeof text))
			rc = error_set(e, -EPERM, "%s carries the connection by which an agent was launched (to %s)", netdev, text);
	free(s.inode);
	return rc;
}
