/* SPDX-License-Identifier: MIT */
/* What the lab's network devices are told beside ip and tc: sysctls and offloading of theirs alone. */
#ifndef QD_LAB_NETDEV_H
#define QD_LAB_NETDEV_H

#include <stdbool.h>

#include "error.h"

/* What comes to it is taken in the order in which it was sent. Before it moves to another network namespace. */
int lab_netdev_order(const char *netdev, struct error *e);
/* An end of a link: takes packets from this machine's own addresses, and says nothing by itself. In its network namespace. */
int lab_netdev_end(const char *netdev, struct error *e);
/* Checksums and segments are not left to it, and it says nothing by itself: frames are on it as they are on a wire, in order too.
 */
int lab_netdev_plain(const char *netdev, struct error *e);
/* A link-local IPv6 address that follows from the MAC, as the device's first GID does, usable when this returns; or no IPv6. Writes
 * nothing where it is so already. */
int lab_netdev_ipv6(const char *netdev, bool on, struct error *e);
/* A device's MAC, and the link-local address that follows from it. */
int lab_netdev_link_local(const char *netdev, char ret_mac[24], char ret_addr[48], struct error *e);

#endif
