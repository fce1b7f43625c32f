/* SPDX-License-Identifier: MIT */
#include "lab_netns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "proc.h"
#include "units.h"

#define COMMAND_NS (30 * NSEC_PER_SEC)

static int ip_netns(const char *verb, const char *name, struct error *e)
{
	const char *const argv[] = { "ip", "netns", verb, name, NULL };
	int rc = proc_run((char *const *)argv, COMMAND_NS, NULL, e);

	return rc > 0 ? error_set(e, -EIO, "ip netns %s %s: exit status %d", verb, name, rc) : rc;
}

int lab_netns_add(const char *name, struct error *e)
{
	return ip_netns("add", name, e);
}

int lab_netns_del(const char *name, struct error *e)
{
	char path[sizeof LAB_NETNS_FOLDER + LAB_NETNS_NAME_MAX];

	snprintf(path, sizeof path, LAB_NETNS_FOLDER "%s", name);
	return access(path, F_OK) != 0 && errno == ENOENT ? 0 : ip_netns("del", name, e);
}

int lab_netns_enter(const char *path, int *ret_back, struct error *e)
{
	int back, to, rc = 0;

	if (!path[0]) {
		*ret_back = -1;
		return 0;
	}
	back = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	to = open(path, O_RDONLY | O_CLOEXEC);
	if (back < 0 || to < 0 || setns(to, CLONE_NEWNET) < 0)
		rc = error_set(e, -errno, "network namespace %s: %s", path, strerror(errno));
	if (to >= 0)
		close(to);
	if (rc < 0 && back >= 0)
		close(back);
	if (rc == 0)
		*ret_back = back;
	return rc;
}

void lab_netns_leave(int back)
{
	if (back < 0)
		return;
	if (setns(back, CLONE_NEWNET) < 0) {
		log_error("there is no way back to the network namespace that this process came from: %s", strerror(errno));
		_exit(3);
	}
	close(back);
}

bool lab_netns_has_udp(unsigned wanted)
{
	FILE *f = fopen("/proc/self/net/udp", "re");
	char line[512], port[8], text[8];
	bool found = false;

	snprintf(text, sizeof text, "%04X", wanted);
	while (f && !found && fgets(line, sizeof line, f))
		found = sscanf(line, " %*d: %*8[0-9A-F]:%4s", port) == 1 && strcmp(port, text) == 0;
	if (f)
		fclose(f);
	return found;
}
