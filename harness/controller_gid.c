/* SPDX-License-Identifier: MIT */
/* Where a GID stands in a port's table now: after an address went and came back it may have another index. */
#include "controller_case.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "file_line.h"
#include "json.h"

#define GID_TABLE_MAX 1024

static bool is_roce_v2(const char *base, int index)
{
	char path[512], type[64];

	snprintf(path, sizeof path, "%s/gid_attrs/types/%d", base, index);
	return file_line(path, type, sizeof type) && strcmp(type, "RoCE v2") == 0;
}

/* wanted NULL: a link-local one. */
static int find(const char *sysfs, const char *rdma, int port, const struct in6_addr *wanted)
{
	struct in6_addr seen;
	char base[256], path[512], text[64];

	snprintf(base, sizeof base, "%s/class/infiniband/%s/ports/%d", sysfs, rdma, port);
	for (int i = 0; i < GID_TABLE_MAX; i++) {
		snprintf(path, sizeof path, "%s/gids/%d", base, i);
		if (!file_line(path, text, sizeof text))
			return -ENOENT;
		if (inet_pton(AF_INET6, text, &seen) != 1 || !is_roce_v2(base, i))
			continue;
		if (wanted ? memcmp(&seen, wanted, sizeof seen) == 0 : IN6_IS_ADDR_LINKLOCAL(&seen))
			return i;
	}
	return -ENOENT;
}

int gid_find(const char *sysfs, const char *rdma, int port, const char *gid)
{
	struct in6_addr wanted;

	return inet_pton(AF_INET6, gid, &wanted) == 1 ? find(sysfs, rdma, port, &wanted) : -EINVAL;
}

int gid_find_link_local(const char *sysfs, const char *rdma, int port)
{
	return find(sysfs, rdma, port, NULL);
}

void gid_refresh(struct ctl_agent *a)
{
	const char *gid = json_str(a->device, "gid");
	int index;

	if (!a->gid_changed || !gid || !a->lab_device)
		return;
	a->gid_changed = false;
	index = gid_find("/sys", a->lab_device->rdma, a->lab_device->port, gid);
	if (index >= 0)
		json_object_set_new(a->device, "gid_index", json_integer(index));
}
