/* SPDX-License-Identifier: MIT */
#include "lab_driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "log.h"
#include "proc.h"
#include "units.h"

#define MODPROBE_TIMEOUT_NS (20 * NSEC_PER_SEC)

static bool has_driver(void)
{
	return access("/sys/module/rdma_rxe", F_OK) == 0;
}

/* Root of a user namespace, whose map is not the whole range at its own place, may not load modules or make RDMA devices. */
static bool is_real_root(void)
{
	char buf[64] = "", *p = buf;
	int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		ssize_t n = read(fd, buf, sizeof buf - 1);

		buf[n > 0 ? n : 0] = '\0';
		close(fd);
	}
	unsigned long inside = strtoul(p, &p, 10), outside = strtoul(p, &p, 10), count = strtoul(p, &p, 10);

	return geteuid() == 0 && inside == 0 && outside == 0 && count == UINT32_MAX;
}

int lab_driver_probe(struct error *e)
{
	struct utsname u;

	uname(&u);
	if (!is_real_root())
		return error_set(e, -EPERM, "lab rxe makes network links and RDMA devices in the running kernel, which needs root");
	if (has_driver())
		return 0;
	const char *const dry[] = { "modprobe", "-n", "-q", "rdma_rxe", NULL };
	struct error ignored;

	if (proc_run((char *const *)dry, MODPROBE_TIMEOUT_NS, NULL, &ignored) == 0)
		return 0;
	return error_set(e, -ENODEV, "the running kernel (%s) has no rdma_rxe; lab guest boots one that has", u.release);
}

/* The first program of a guest loads them beside the rest; end of file says that it is done. */
static void await_modules(void)
{
	const char *text = getenv("QD_MODULES_FD");
	int fd = text ? (int)strtol(text, NULL, 10) : -1;
	char drop[16];

	while (fd >= 0 && read(fd, drop, sizeof drop) > 0)
		;
	if (fd >= 0)
		close(fd);
	unsetenv("QD_MODULES_FD");
}

int lab_driver_load(struct error *e)
{
	const char *const load[] = { "modprobe", "-a", "rdma_rxe", "ib_uverbs", "veth", NULL };

	const char *const cm[] = { "modprobe", "-q", "rdma_ucm", NULL };
	struct error ignored;

	await_modules();
	if (!has_driver()) {
		int rc = proc_run((char *const *)load, MODPROBE_TIMEOUT_NS, NULL, e);

		if (rc != 0)
			return rc < 0 ? rc : error_set(e, -ENODEV, "modprobe rdma_rxe ib_uverbs veth: exit status %d", rc);
		log_info("loaded the kernel modules rdma_rxe, ib_uverbs and veth; they stay loaded");
	}
	/* Where there is none, agents say so, and what needs it is skipped. */
	if (access("/sys/module/rdma_ucm", F_OK) != 0)
		proc_run((char *const *)cm, MODPROBE_TIMEOUT_NS, NULL, &ignored);
	return 0;
}
