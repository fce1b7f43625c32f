/* SPDX-License-Identifier: MIT */
/* A periodic timer whose lateness tells how late this machine is at anything. */
#ifndef QD_WITNESS_H
#define QD_WITNESS_H

#include <jansson.h>

struct agent;
struct witness;

void witness_free(struct witness *w);
/* {"samples","late_max_ns","late_p99_ns","period_ns"}; NULL when none runs. */
json_t *witness_json(const struct witness *w);
/* Ends it, with what it has seen on record. NULL: there was none. */
json_t *witness_end(struct agent *a);

#endif
