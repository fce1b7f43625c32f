/* SPDX-License-Identifier: MIT */
/* Comparisons as plans hold them: a number, {"op":">=","value":3}, {"op":"range","min":5,"max":9}. */
#ifndef QD_CMP_H
#define QD_CMP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* 1: it holds, 0: it does not, -EINVAL: there is no such operator. */
int cmp_op(const char *op, int64_t value, int64_t want);
/* One whose numbers are all known (observe.h has those that devices say). */
bool compare_holds(const json_t *cmp, int64_t value);

#endif
