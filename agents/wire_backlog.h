/* SPDX-License-Identifier: MIT */
/*
 * What the kernel has in hand of the frames that devices have counted. A veth counts a frame when its peer sends it; it comes to
 * who listens when the receiving processor has its turn, which on a busy machine may be long after. /proc/net/softnet_stat says for
 * each processor how many frames it has taken up and how many wait there (net/core/net-procfs.c, softnet_seq_show; the second since
 * Linux 5.10).
 */
#ifndef QD_WIRE_BACKLOG_H
#define QD_WIRE_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>

#define WIRE_CPUS_MAX 256

struct wire_backlog {
	unsigned n;                  /* processors */
	uint32_t due[WIRE_CPUS_MAX]; /* what each will have taken up when all that waited is; it wraps */
};

/* text: the file's. False, and *ret untouched, where it does not say what waits. */
bool wire_backlog_read(const char *text, struct wire_backlog *ret);
/* The same of the kernel as it is now. */
bool wire_backlog_look(struct wire_backlog *ret);
/* Has everything that waited `then` been taken up? now: a later text; a processor that is not in it any more has nothing in hand.
 */
bool wire_backlog_is_done(const struct wire_backlog *then, const char *now);
bool wire_backlog_is_done_now(const struct wire_backlog *then);

#endif
