/* SPDX-License-Identifier: MIT */
/* QEMU's control socket (QMP): what saving, restoring and looking into a guest need of it. Blocks the caller, up to the deadline.
 */
#ifndef QD_GUEST_QMP_H
#define QD_GUEST_QMP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "error.h"

struct guest_qmp {
	int fd; /* -1: none */
	char *buf;
	size_t len;
	bool greeted;
};

/* One command, after the greeting where that has not been; args (stolen) may be NULL. ret (may be NULL): what it returned, new
 * reference. pass_fd: a descriptor that goes with it, -1: none. A refusal is -EREMOTEIO with QEMU's words. */
int guest_qmp_run(struct guest_qmp *q, const char *command, json_t *args, int pass_fd, uint64_t end_ns, json_t **ret,
		  struct error *e);
/* Waits until `command` ("query-migrate") answers with this status ("completed", "running"); "failed" is an error. */
int guest_qmp_await(struct guest_qmp *q, const char *command, const char *status, uint64_t end_ns, struct error *e);
void guest_qmp_close(struct guest_qmp *q);

#endif
