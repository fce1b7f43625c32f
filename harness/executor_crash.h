/* SPDX-License-Identifier: MIT */
/* A guest that died or hangs is a finding of the case it ran: written into that case's observations. */
#ifndef QD_EXECUTOR_CRASH_H
#define QD_EXECUTOR_CRASH_H

#include "error.h"

/* Appends to case_dir/observations.jsonl: the console's last 40 lines as klog records, then a `lost` record with what "guest" and
 * `text` as its reason. A line that the end tore is cut off before. Steps, clock and numbers go on from the last whole record. */
int executor_crash_record(const char *case_dir, const char *console, int boot, const char *text, struct error *e);

#endif
