/* SPDX-License-Identifier: MIT */
/* Counters of a device: hw_counters and counters of its port in sysfs, and what ibv_query_port has. */
#ifndef QD_COUNTERS_H
#define QD_COUNTERS_H

#include <jansson.h>

struct agent;
struct counters_port;
struct dev;

/* As sysfs has them now, which may be a cached picture of the last milliseconds. The files stay open: they are read again and
 * again, and opening takes longer than reading. */
json_t *counters_read(struct agent *a, struct dev *dev);
/* Closes them. */
void counters_forget(struct agent *a);

/* Requests that wait for fresh ones are answered with what there is. */
void counters_end_all(struct agent *a);

#endif
