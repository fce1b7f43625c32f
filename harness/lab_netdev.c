/* SPDX-License-Identifier: MIT */
#include "lab_netdev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdint.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "units.h"

#define ADDRESS_NS (5 * NSEC_PER_SEC)

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

/* A veth's frames wait at the processor that sent them: a sender that moves overtakes itself. So one processor takes all that comes
 * to a device (Documentation/networking/scaling.rst, RPS), another one for another device. A kernel without RPS keeps its ways. */
int lab_netdev_order(const char *netdev, struct error *e)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN), sum = 0;
	char mask[24], path[96];

	for (const char *p = netdev; *p; p++)
		sum += (unsigned char)*p;
	snprintf(mask, sizeof mask, "%lx", 1L << sum % (processors < 1 ? 1 : processors > 32 ? 32 : processors));
	for (unsigned queue = 0;; queue++) {
		snprintf(path, sizeof path, "/sys/class/net/%s/queues/rx-%u/rps_cpus", netdev, queue);
		int fd = open(path, O_WRONLY | O_CLOEXEC);

		if (fd < 0 && errno == ENOENT)
			return 0;
		int rc = fd < 0 || write(fd, mask, strlen(mask)) < 0 ? -errno : 0;

		if (fd >= 0)
			close(fd);
		if (rc)
			return error_set(e, rc, "%s: %s", path, strerror(-rc));
	}
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

	if (rc == 0)
		rc = lab_netdev_order(netdev, e);
	return rc ? rc : set_sysctl("ipv6", netdev, "disable_ipv6", "1", e);
}

static bool has_ipv6(const char *netdev)
{
	char path[128], value = '1';

	snprintf(path, sizeof path, "/proc/sys/net/ipv6/conf/%s/disable_ipv6", netdev);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && read(fd, &value, 1) != 1)
		value = '1';
	if (fd >= 0)
		close(fd);
	return value == '0';
}

/* A link-local address that may be used (not tentative: 0x40). */
static bool has_link_local(const char *netdev)
{
	FILE *f = fopen("/proc/self/net/if_inet6", "re");
	char addr[33], flags[9], name[32];
	bool found = false;

	while (f && !found && fscanf(f, "%32s %*s %*s %*s %8s %31s", addr, flags, name) == 3)
		found = strcmp(name, netdev) == 0 && strncmp(addr, "fe80", 4) == 0 && !(strtoul(flags, NULL, 16) & 0x40);
	if (f)
		fclose(f);
	return found;
}

int lab_netdev_ipv6(const char *netdev, bool on, struct error *e)
{
	static const char *const keys[][2] = {
		{ "addr_gen_mode", "0" }, { "accept_dad", "0" }, { "router_solicitations", "0" }, { "disable_ipv6", "0" }
	};
	uint64_t end = now_ns() + ADDRESS_NS;
	int rc = 0;

	if (has_ipv6(netdev) == on)
		return 0;
	if (!on)
		return set_sysctl("ipv6", netdev, "disable_ipv6", "1", e);
	for (size_t i = 0; rc == 0 && i < sizeof keys / sizeof keys[0]; i++)
		rc = set_sysctl("ipv6", netdev, keys[i][0], keys[i][1], e);
	while (rc == 0 && !has_link_local(netdev)) {
		if (now_ns() >= end)
			return error_set(e, -ETIMEDOUT, "%s gets no link-local IPv6 address", netdev);
		poll(NULL, 0, 5);
	}
	return rc;
}

int lab_netdev_link_local(const char *netdev, char ret_mac[24], char ret_addr[48], struct error *e)
{
	struct ifreq ifr = { 0 };
	const unsigned char *m = (const unsigned char *)ifr.ifr_hwaddr.sa_data;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = fd < 0 ? -errno : 0;

	snprintf(ifr.ifr_name, sizeof ifr.ifr_name, "%s", netdev);
	if (rc == 0 && ioctl(fd, SIOCGIFHWADDR, &ifr) < 0)
		rc = -errno;
	if (fd >= 0)
		close(fd);
	if (rc)
		return error_set(e, rc, "%s: no MAC address: %s", netdev, strerror(-rc));
	snprintf(ret_mac, 24, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5]);
	snprintf(ret_addr, 48, "fe80::%02x%02x:%02xff:fe%02x:%02x%02x", m[0] ^ 2, m[1], m[2], m[3], m[4], m[5]);
	return 0;
}
