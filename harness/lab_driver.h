/* SPDX-License-Identifier: MIT */
/* The kernel's part of lab rxe: whether it is there, or can be had, and that it is loaded. */
#ifndef QD_LAB_DRIVER_H
#define QD_LAB_DRIVER_H

#include "error.h"

/* 0 when lab rxe can run in this kernel, as this user; else the reason. */
int lab_driver_probe(struct error *e);
/* Loads what is missing; in a guest whose first program is at it (guest_boot.h) waits for that to be done. */
int lab_driver_load(struct error *e);

#endif
