/* SPDX-License-Identifier: MIT */
#include "lab_netdev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int set_sysctl(const char *family, const char *netdev, const char *key, const char *value, struct error *e)
{
	char path[128];

	snprintf(path, sizeof path, "/proc/sys/net/%s/conf/%s/%s", family, netdev, key);
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	/* A kernel without IPv6 has nothing to switch off. */
	if (fd < 0 && errno == ENOENT && strcmp(family, "ipv6") == 0)
		return 0;
	int rc = fd < 0 || write(fd, value, strlen(value)) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return rc ? error_set(e, rc, "%s: %s", path, strerror(-rc)) : 0;
}

/* Only these interfaces: accept packets whose source is an address of this machine, from the other end. rp_filter 2 (loose) is
 * what lets them pass even where net.ipv4.conf.all.rp_filter is 1, as the larger of the two counts. */
int lab_netdev_end(const char *netdev, struct error *e)
{
	static const struct {
		const char *family, *key, *value;
	} rows[] = {
		{ "ipv6", "disable_ipv6", "1" },
		{ "ipv4", "accept_local", "1" },
		{ "ipv4", "rp_filter", "2" },
		{ "ipv4", "arp_ignore", "1" },
	};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof rows / sizeof rows[0]; i++)
		rc = set_sysctl(rows[i].family, netdev, rows[i].key, rows[i].value, e);
	return rc;
}

static int offload_off(const char *netdev, struct error *e)
{
	static const uint32_t commands[] = {
		ETHTOOL_STXCSUM, ETHTOOL_SRXCSUM, ETHTOOL_SSG, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO
	};
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

int lab_netdev_plain(const char *netdev, struct error *e)
{
	int rc = offload_off(netdev, e);

	return rc ? rc : set_sysctl("ipv6", netdev, "disable_ipv6", "1", e);
}
