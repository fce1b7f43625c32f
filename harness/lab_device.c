/* SPDX-License-Identifier: MIT */
#include "lab_device.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"

int lab_device_del(const char *rdma, struct proc *ret_by, struct error *e)
{
	const char *const argv[] = { "rdma", "link", "del", rdma, NULL };

	return proc_spawn(ret_by, (char *const *)argv, NULL, -1, e);
}

int lab_device_gone(const char *rdma, struct proc *by, struct error *e)
{
	int status;

	if (by->pidfd < 0)
		return error_set(e, -EINVAL, "nobody takes %s away", rdma);
	if (!proc_poll(by))
		return 0;
	status = by->status;
	proc_stop(by, SIGKILL, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 1;
	return error_set(e, -EIO, "rdma link del %s: status %d", rdma, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

void lab_device_uncache(const char *rdma)
{
	char path[128];

	snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/1/hw_counters/lifespan", rdma);
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "0", 1) < 0)
		log_debug("%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}
