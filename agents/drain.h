/* SPDX-License-Identifier: MIT */
/* Waits for the ledger of a QP to be zero. */
#ifndef QD_DRAIN_H
#define QD_DRAIN_H

struct agent;

/* Something got its end: drains that are done answer. */
void drain_check(struct agent *a);
/* Answers all that still wait, as if their deadline had passed. */
void drain_end_all(struct agent *a);

#endif
