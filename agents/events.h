/* SPDX-License-Identifier: MIT */
/* Async events of devices: `event` records, each acknowledged at once; the last ones are kept for a dump. */
#ifndef QD_EVENTS_H
#define QD_EVENTS_H

struct agent;
struct dev;

void events_watch(struct agent *a, struct dev *dev);

#endif
