/* SPDX-License-Identifier: MIT */
#include "lab_news.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER_BYTES (1 << 20)
#define MESSAGES_BYTES_MAX 65536

int lab_news_open(void)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK,
				    .nl_groups = RTMGRP_LINK | RTMGRP_NEIGH | RTMGRP_TC | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR |
						 RTMGRP_IPV4_RULE };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE), bytes = BUFFER_BYTES, rc;

	if (fd < 0)
		return -errno;
	/* Without it there is less room, and sooner something is missed. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
	if (bind(fd, (struct sockaddr *)&addr, sizeof addr) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* The device that a message is about; 0: none in particular. */
static unsigned device_of(const struct nlmsghdr *h, const char *body, size_t len)
{
	union {
		struct ifinfomsg link;
		struct ifaddrmsg addr;
		struct ndmsg neigh;
		struct tcmsg tc;
	} m = { .link = { 0 } };

	memcpy(&m, body, len < sizeof m ? len : sizeof m);
	switch (h->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		return (unsigned)m.link.ifi_index;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		return m.addr.ifa_index;
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		return (unsigned)m.neigh.ndm_ifindex;
	case RTM_NEWQDISC:
	case RTM_DELQDISC:
	case RTM_NEWTCLASS:
	case RTM_DELTCLASS:
	case RTM_NEWTFILTER:
	case RTM_DELTFILTER:
		return (unsigned)m.tc.tcm_ifindex;
	default:
		return 0;
	}
}

static bool concerns(const char *buf, size_t len, const unsigned *ifindex, unsigned n)
{
	while (len >= sizeof(struct nlmsghdr)) {
		struct nlmsghdr h;
		bool ours = false;
		unsigned device;

		memcpy(&h, buf, sizeof h);
		if (h.nlmsg_len < NLMSG_HDRLEN || h.nlmsg_len > len)
			return true;
		device = device_of(&h, buf + NLMSG_HDRLEN, h.nlmsg_len - NLMSG_HDRLEN);
		for (unsigned i = 0; i < n; i++)
			ours = ours || ifindex[i] == device;
		if (ours || !device)
			return true;
		size_t step = NLMSG_ALIGN(h.nlmsg_len);

		if (step >= len)
			break;
		buf += step;
		len -= step;
	}
	return false;
}

bool lab_news_take(int fd, const unsigned *ifindex, unsigned n)
{
	static char buf[MESSAGES_BYTES_MAX];
	bool any = false;

	for (;;) {
		ssize_t got = recv(fd, buf, sizeof buf, MSG_TRUNC);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			return any;
		/* ENOBUFS: what did not fit is gone, and with it the right to say that nothing has changed. */
		if (got <= 0 && errno != ENOBUFS)
			return true;
		any = any || got <= 0 || (size_t)got > sizeof buf || concerns(buf, (size_t)got, ifindex, n);
	}
}
