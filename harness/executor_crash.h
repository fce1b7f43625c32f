/* SPDX-License-Identifier: MIT */
/* A guest that died or hangs is a finding of the case it ran: written into that case's observations. */
#ifndef QD_EXECUTOR_CRASH_H
#define QD_EXECUTOR_CRASH_H

#include "error.h"

/* Appends to case_dir/observations.jsonl: the last 40 lines of the console (NULL: there is none) as klog records, then a `lost`
 * record with `what` ("guest": all of it is gone; "lane": that of the case) and `text` as its reason. A line that the end tore is
 * cut off before. Steps, clock and numbers go on from the last whole record. */
int executor_crash_record(const char *case_dir, const char *console, int boot, const char *what, const char *text, struct error *e);

#endif
