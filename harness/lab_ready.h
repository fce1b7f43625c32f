/* SPDX-License-Identifier: MIT */
/* Waits until the devices of a lane can be used: port ACTIVE, and the GID of its address in the table. */
#ifndef QD_LAB_READY_H
#define QD_LAB_READY_H

#include "error.h"
#include "lab.h"

/* A socket that wakes up when a link or an address changes; -1: none, then lab_ready_wait() looks at intervals alone. To be opened
 * before the links are made. */
int lab_ready_events(void);
/* want: the GIDs of both ends. Fills in gid and gid_index of both. */
int lab_ready_wait(struct lab_lane *l, const char want[2][64], int events, struct error *e);

#endif
