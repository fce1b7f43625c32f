/* SPDX-License-Identifier: MIT */
#include "wire_device.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

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

void wire_device_init(struct wire_device *d, const char *name, int fd)
{
	unsigned peer;

	memset(d, 0, sizeof *d);
	snprintf(d->name, sizeof d->name, "%s", name);
	d->exact = veth_figures(name, fd) > 0;
	peer = d->exact ? peer_index(name, fd) : 0;
	/* in another namespace that number would be another device, or none */
	if (peer && if_indextoname(peer, d->peer) && peer_index(d->peer, fd) != if_nametoindex(name))
		d->peer[0] = 0;
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

void wire_device_read(const struct wire_device *d, struct wire_device_counters *ret)
{
	struct wire_device_counters own = { 0 }, peer = { 0 };
	FILE *f = fopen("/proc/self/net/dev", "re");
	char line[512];

	while (f && fgets(line, sizeof line, f))
		if (!read_line(line, d->name, &own))
			read_line(line, d->peer, &peer);
	if (f)
		fclose(f);
	own.peer_dropped = peer.out_dropped;
	*ret = own;
}
