/* SPDX-License-Identifier: MIT */
/* Completion queues: events, polling in batches, and who is told of each completion. */
#ifndef QD_CQ_H
#define QD_CQ_H

#include <stdbool.h>

struct agent;
struct cq;

/* Polls until empty or max (0: no bound), reports runs. Returns how many completions. */
unsigned cq_poll(struct agent *a, struct cq *cq, unsigned max);
/* What an automatic or watched CQ holds now, before its completions lose their meaning (reset, destroy). A manual one is left
 * alone. */
void cq_catch_up(struct agent *a, struct cq *cq);
/* A manual CQ is polled like an automatic one while anybody watches it. cq_arm() after cq_watch(): asks for events, polls what is
 * there. */
void cq_watch(struct cq *cq);
void cq_arm(struct agent *a, struct cq *cq);
void cq_unwatch(struct cq *cq);
/* Its channel has an event. */
void cq_ready(struct agent *a, struct cq *cq);
/* Acknowledges held completion events. Returns how many. */
unsigned cq_acknowledge(struct cq *cq);
/* All that wait for completion events are answered with what has come. */
void cq_end_waits(struct agent *a);
/* The loop stops or resumes looking at it. */
void cq_park(struct agent *a, struct cq *cq, bool parked);

#endif
