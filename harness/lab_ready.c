/* SPDX-License-Identifier: MIT */
#include "lab_ready.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "file_line.h"
#include "units.h"

#define ACTIVE_TIMEOUT_NS (5 * NSEC_PER_SEC)
#define RECHECK_MS 10

/* Port ACTIVE and the RoCE v2 GID of the IPv4 address there: fills gid and gid_index. */
static bool port_ready(struct lab_device *d, const char *want)
{
	char path[192], buf[80];

	snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%d/state", d->rdma, d->port);
	if (!file_line(path, buf, sizeof buf) || !strstr(buf, "ACTIVE"))
		return false;
	for (int i = 0; i < 32; i++) {
		snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%d/gids/%d", d->rdma, d->port, i);
		if (!file_line(path, d->gid, sizeof d->gid))
			return false;
		snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d", d->rdma, d->port, i);
		if (strcmp(d->gid, want) == 0 && file_line(path, buf, sizeof buf) && strcmp(buf, "RoCE v2") == 0) {
			d->gid_index = i;
			return true;
		}
	}
	return false;
}

int lab_ready_events(void)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&addr, sizeof addr) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* sysfs does not announce a port's state: it is looked at after every link event and, as it follows them, at a short interval. */
int lab_ready_wait(struct lab_lane *l, const char want[2][64], int events, struct error *e)
{
	uint64_t end = now_ns() + ACTIVE_TIMEOUT_NS;

	for (int i = 0; i < 2; i++) {
		while (!port_ready(&l->device[i], want[i])) {
			struct pollfd p = { .fd = events, .events = POLLIN };
			char drop[8192];

			if (now_ns() >= end)
				return error_set(e, -ETIMEDOUT, "RDMA device %s: port 1 not ACTIVE with GID %s after %d s",
						 l->device[i].rdma, want[i], (int)(ACTIVE_TIMEOUT_NS / NSEC_PER_SEC));
			if (poll(&p, 1, RECHECK_MS) > 0)
				while (recv(events, drop, sizeof drop, 0) > 0)
					;
		}
	}
	return 0;
}
