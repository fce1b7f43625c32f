/* SPDX-License-Identifier: MIT */
#include "wire_device.h"

#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../harness/file_line.h"

static int ethtool(const char *name, int fd, void *command)
{
	struct ifreq ifr = { .ifr_data = command };

	snprintf(ifr.ifr_name, sizeof ifr.ifr_name, "%s", name);
	return ioctl(fd, SIOCETHTOOL, &ifr);
}

/* How many figures a veth has; 0: it is none. */
static unsigned veth_figures(const char *name, int fd)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };

	return ethtool(name, fd, &info) || strcmp(info.driver, "veth") != 0 ? 0 : info.n_stats;
}

/* The index of a veth's other end, in whatever namespace that is; 0: not known. */
static unsigned peer_index(const char *name, int fd)
{
	unsigned n = veth_figures(name, fd), index = 0;
	struct ethtool_gstrings *names = calloc(1, sizeof *names + (size_t)n * ETH_GSTRING_LEN);
	struct ethtool_stats *figures = calloc(1, sizeof *figures + n * sizeof figures->data[0]);

	if (!names || !figures)
		goto free_figures;
	*names = (struct ethtool_gstrings){ .cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_STATS, .len = n };
	*figures = (struct ethtool_stats){ .cmd = ETHTOOL_GSTATS, .n_stats = n };
	if (ethtool(name, fd, names) || ethtool(name, fd, figures))
		goto free_figures;
	for (unsigned i = 0; i < n; i++)
		if (!strncmp((const char *)names->data + (size_t)i * ETH_GSTRING_LEN, "peer_ifindex", ETH_GSTRING_LEN))
			index = (unsigned)figures->data[i];
free_figures:
	free(figures);
	free(names);
	return index;
}

/* Whether /sys/class/net/NAME is the device that this process calls so: sysfs may have been mounted in another namespace. */
static bool sysfs_has(const char *name, int fd)
{
	struct ifreq ifr = { 0 };
	char path[96], index[16], address[32], own[32];
	const unsigned char *mac = (const unsigned char *)ifr.ifr_hwaddr.sa_data;

	snprintf(path, sizeof path, "/sys/class/net/%s/ifindex", name);
	if (!file_line(path, index, sizeof index) || strtoul(index, NULL, 10) != if_nametoindex(name))
		return false;
	snprintf(path, sizeof path, "/sys/class/net/%s/address", name);
	snprintf(ifr.ifr_name, sizeof ifr.ifr_name, "%s", name);
	if (!file_line(path, address, sizeof address) || ioctl(fd, SIOCGIFHWADDR, &ifr))
		return false;
	snprintf(own, sizeof own, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	return strcmp(address, own) == 0;
}

static int open_figure(const char *name, const char *file)
{
	char path[96];

	snprintf(path, sizeof path, "/sys/class/net/%s/statistics/%s", name, file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void open_figures(struct wire_device *d, int fd)
{
	static const char *const files[NUM_WIRE_FIGURES] = {
		[WIRE_FIGURE_IN] = "rx_packets",
		[WIRE_FIGURE_OUT] = "tx_packets",
		[WIRE_FIGURE_OUT_DROPPED] = "tx_dropped",
		[WIRE_FIGURE_PEER_DROPPED] = "tx_dropped",
	};

	if (!sysfs_has(d->name, fd) || (d->peer[0] && !sysfs_has(d->peer, fd)))
		return;
	for (int i = 0; i < NUM_WIRE_FIGURES; i++) {
		const char *of = i == WIRE_FIGURE_PEER_DROPPED ? d->peer : d->name;

		if (!of[0])
			continue;
		d->figure[i] = open_figure(of, files[i]);
		if (d->figure[i] < 0) {
			wire_device_release(d);
			return;
		}
	}
}

void wire_device_init(struct wire_device *d, const char *name, int fd)
{
	unsigned peer;

	memset(d, 0, sizeof *d);
	memset(d->figure, 0xff, sizeof d->figure);
	snprintf(d->name, sizeof d->name, "%s", name);
	d->exact = veth_figures(name, fd) > 0;
	peer = d->exact ? peer_index(name, fd) : 0;
	/* in another namespace that number would be another device, or none */
	if (peer && if_indextoname(peer, d->peer) && peer_index(d->peer, fd) != if_nametoindex(name))
		d->peer[0] = 0;
	open_figures(d, fd);
}

void wire_device_release(struct wire_device *d)
{
	for (int i = 0; i < NUM_WIRE_FIGURES; i++) {
		if (d->figure[i] >= 0)
			close(d->figure[i]);
		d->figure[i] = -1;
	}
}

/* The columns of /proc/net/dev that are of use. It belongs to the namespace of the reader, sysfs to that of whoever mounted it. */
static bool read_line(const char *line, const char *name, struct wire_device_counters *ret)
{
	const char *at = line + strspn(line, " ");
	size_t len = strlen(name);
	unsigned long long fields[12]; /* bytes, packets, errors, dropped and four more of what came in, then of what went out */

	if (!len || strncmp(at, name, len) || at[len] != ':')
		return false;
	at += len + 1;
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		char *end;

		fields[i] = strtoull(at, &end, 10);
		if (end == at)
			return false;
		at = end;
	}
	*ret = (struct wire_device_counters){ .in = fields[1], .out = fields[9], .out_dropped = fields[11] };
	return true;
}

static uint64_t read_figure(int fd)
{
	char text[32];
	ssize_t n = fd >= 0 ? pread(fd, text, sizeof text - 1, 0) : -1;

	text[n > 0 ? n : 0] = '\0';
	return strtoull(text, NULL, 10);
}

void wire_device_read(const struct wire_device *d, struct wire_device_counters *ret)
{
	struct wire_device_counters own = { 0 }, peer = { 0 };
	char line[512];

	if (d->figure[WIRE_FIGURE_IN] >= 0) {
		*ret = (struct wire_device_counters){ .in = read_figure(d->figure[WIRE_FIGURE_IN]),
						      .out = read_figure(d->figure[WIRE_FIGURE_OUT]),
						      .out_dropped = read_figure(d->figure[WIRE_FIGURE_OUT_DROPPED]),
						      .peer_dropped = read_figure(d->figure[WIRE_FIGURE_PEER_DROPPED]) };
		return;
	}
	FILE *f = fopen("/proc/self/net/dev", "re");

	while (f && fgets(line, sizeof line, f))
		if (!read_line(line, d->name, &own))
			read_line(line, d->peer, &peer);
	if (f)
		fclose(f);
	own.peer_dropped = peer.out_dropped;
	*ret = own;
}
