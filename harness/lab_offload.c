/* SPDX-License-Identifier: MIT */
#include "lab_offload.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

int lab_offload_off(const char *netdev, struct error *e)
{
	static const uint32_t commands[] = { ETHTOOL_STXCSUM, ETHTOOL_SRXCSUM, ETHTOOL_SSG, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = fd < 0 ? -errno : 0;

	for (size_t i = 0; rc == 0 && i < sizeof commands / sizeof *commands; i++) {
		struct ethtool_value v = { .cmd = commands[i] };
		struct ifreq ifr = { .ifr_data = (void *)&v };

		snprintf(ifr.ifr_name, sizeof ifr.ifr_name, "%s", netdev);
		/* The others follow the first, or are not there at all. */
		if (ioctl(fd, SIOCETHTOOL, &ifr) < 0 && i == 0)
			rc = -errno;
	}
	if (fd >= 0)
		close(fd);
	return rc ? error_set(e, rc, "%s: offloading of checksums cannot be switched off: %s", netdev, strerror(-rc)) : 0;
}
