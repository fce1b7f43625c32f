/* SPDX-License-Identifier: MIT */
/* The kernel that the case runs in dies. Only in a guest: a dead kernel must be the finding of its case, and this tests that. */
#include "fault_common.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const struct fault_param params[] = {
	{ .name = NULL },
};
static const char *const needs[] = { "guest", NULL };

static int inject(struct fault *f, struct error *e)
{
	int fd = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);
	int rc = 0;

	(void)f;
	if (fd < 0)
		return error_set(e, -errno, "kernel_panic: /proc/sysrq-trigger: %s", strerror(errno));
	if (write(fd, "c", 1) != 1)
		rc = error_set(e, -errno, "kernel_panic: /proc/sysrq-trigger: %s", strerror(errno));
	close(fd);
	return rc;
}

/* Whoever can still ask has seen no panic. */
static int prove(struct fault *f, json_t **ret, struct error *e)
{
	(void)f;
	(void)e;
	*ret = json_pack("{s:s}", "kernel", "runs on");
	return 0;
}

const struct fault_ops fault_kernel_panic = {
	.name = "kernel_panic",
	.help = "the guest's kernel panics",
	.layer = FAULT_PROCESS,
	.blast = FAULT_BLAST_LINK,
	.params = params,
	.needs = needs,
	.proof = "the panic on the guest's console: nothing inside can tell",
	.detection = fault_detect_none,
	.inject = inject,
	.clear = fault_clear_nothing,
	.prove = prove,
};
