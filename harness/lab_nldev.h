/* SPDX-License-Identifier: MIT */
/* How many objects each RDMA device holds: one question to the kernel for all devices, without a program. */
#ifndef QD_LAB_NLDEV_H
#define QD_LAB_NLDEV_H

#include <stdint.h>

#include "error.h"

/* Told of every number of every device ("qp" "cq" "mr" "pd" "srq" "cm_id" "ctx"). */
typedef void lab_nldev_fn(void *user, const char *rdma, const char *type, uint64_t count);

int lab_nldev_counts(lab_nldev_fn *told, void *user, struct error *e);

#endif
