/* SPDX-License-Identifier: MIT */
#ifndef QD_LAB_OFFLOAD_H
#define QD_LAB_OFFLOAD_H

#include "error.h"

/* Checksums and segments are no longer left to this network device: frames are on it as they are on a wire. */
int lab_offload_off(const char *netdev, struct error *e);

#endif
