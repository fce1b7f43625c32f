/* SPDX-License-Identifier: MIT */
/*
 * Network namespaces with a name, as `ip netns` has them. What a process does in one here is done with sockets and /proc/sys/net
 * alone: /sys stays the one that was mounted before, in which every RDMA device has its counters and no network device of the
 * namespace is to be seen.
 */
#ifndef QD_LAB_NETNS_H
#define QD_LAB_NETNS_H

#include <stdbool.h>
#include <stddef.h>

#include "error.h"

#define LAB_NETNS_NAME_MAX 16
#define LAB_NETNS_FOLDER "/run/netns/"

int lab_netns_add(const char *name, struct error *e);
/* One that is not there is gone. */
int lab_netns_del(const char *name, struct error *e);
/* This process goes into the one at path, or stays where it is for ""; ret_back is for the way back, which does not fail: a process
 * that were left in another one would do what it does next in the wrong place, and ends instead. */
int lab_netns_enter(const char *path, int *ret_back, struct error *e);
void lab_netns_leave(int back);
/* Somebody in this process's namespace takes what comes to that UDP port. */
bool lab_netns_has_udp(unsigned port);

#endif
