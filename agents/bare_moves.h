/* SPDX-License-Identifier: MIT */
/*
 * What a recovery of n pairs asks of the devices, and nothing else: one process, one thread, no records and no questions between.
 * All of n queue pairs on each device go to ERR, which breaks one end and ends the other, then RESET, INIT, RTR and RTS, each
 * connected to its peer on the other device: ten moves a pair.
 */
#ifndef QD_BARE_MOVES_H
#define QD_BARE_MOVES_H

#include <stdbool.h>

#include "../harness/error.h"

/* *ret_us: microseconds a pair, of the moves alone: making the queue pairs and connecting them the first time is not timed. whole:
 * their receive queues are full, are flushed and polled empty, and filled up again on the way, as those of a case are; 32767
 * receives go. */
int bare_moves(const char *device_a, const char *device_b, unsigned pairs, bool whole, double *ret_us, struct error *e);

#endif
