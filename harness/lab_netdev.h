/* SPDX-License-Identifier: MIT */
/* What the lab's network devices are told beside ip and tc: sysctls and offloading of theirs alone. */
#ifndef QD_LAB_NETDEV_H
#define QD_LAB_NETDEV_H

#include "error.h"

/* An end of a link: takes packets from this machine's own addresses, and says nothing by itself. */
int lab_netdev_end(const char *netdev, struct error *e);
/* Checksums and segments are not left to it, and it says nothing by itself: frames are on it as they are on a wire. */
int lab_netdev_plain(const char *netdev, struct error *e);

#endif
