/* SPDX-License-Identifier: MIT */
/* What faults of the link share: the network device under the end that `at` names, and ip about it. */
#ifndef QD_LINK_COMMON_H
#define QD_LINK_COMMON_H

#include "fault_common.h"

extern const struct fault_param link_end_params[]; /* `at` alone */

/* NULL: this lab has none. */
const char *link_netdev(const struct fault *f);
/* One command of ip about the end's device, whose name goes between before and after. What a device is, is asked with `addr show`:
 * after a `link show` an ip that is kept open for many commands leaves the addresses out of its later answers. */
int link_ip(struct fault *f, const char *before, const char *after, json_t **ret_out, struct error *e);
/* The first item of ip's answer that is one. */
const json_t *link_first(const json_t *list);
/* A device that goes down, or loses its address, forgets its permanent neighbours: kept in the fault's state, and put back. */
int link_neighbours_keep(struct fault *f, struct error *e);
int link_neighbours_restore(struct fault *f, struct error *e);

#endif
