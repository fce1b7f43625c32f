/* SPDX-License-Identifier: MIT */
/* Destroys everything, in an order in which nothing refuses; afterwards the agent is as new. */
#ifndef QD_RELEASE_H
#define QD_RELEASE_H

#include <stdint.h>

struct agent;

/* For the end of the process: releases within deadline_ns, then leaves the loop. */
void release_and_exit(struct agent *a, uint64_t deadline_ns);

#endif
