/* SPDX-License-Identifier: MIT */
/* One RDMA device of the lab: taken away while the programs that have it open may be slow to close it, and its counters made fresh.
 */
#ifndef QD_LAB_DEVICE_H
#define QD_LAB_DEVICE_H

#include <stdbool.h>

#include "error.h"
#include "proc.h"

/* Begins it, by a program of its own, which does not come back before all have closed the device. */
int lab_device_del(const char *rdma, struct proc *ret_by, struct error *e);
/* 1 when it is gone, 0 not yet, a negative errno when it was refused. */
int lab_device_gone(const char *rdma, struct proc *by, struct error *e);
/* Counters are cached for 10 ms unless told otherwise; a proof wants the present value. */
void lab_device_uncache(const char *rdma);

#endif
