/* SPDX-License-Identifier: MIT */
/*
 * Which network devices a fault of the link must leave alone unless told: the ones that this machine, or whoever drives it, is
 * reached by. Looks at the network namespace of the calling process.
 */
#ifndef QD_LINK_GUARD_H
#define QD_LINK_GUARD_H

#include <stddef.h>
#include <sys/types.h>

#include "error.h"

/* 0: nobody depends on it. -EPERM with the reason: a default route goes out there, the login that `session` tells of
 * ($SSH_CONNECTION, may be NULL) came in by it, or one of these processes (launchers of agents, and what they have started) has a
 * TCP connection from an address of it. */
int link_guard(const char *netdev, const char *session, const pid_t *pids, size_t n, struct error *e);

#endif
