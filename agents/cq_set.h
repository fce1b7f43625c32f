/* SPDX-License-Identifier: MIT */
/*
 * Completion channels are waited for in a set of their own, beside sd-event: where only completions come, the loop is not entered.
 * A set that does not run (cq_set_run) is one source of the loop like any other.
 *
 * Who changes a source of the loop while completions are taken (a timer, a deferred call) sets agent->turn: the loop would not
 * notice.
 */
#ifndef QD_CQ_SET_H
#define QD_CQ_SET_H

struct agent;
struct cq;
struct cq_set;

int cq_set_new(struct agent *a, struct cq_set **ret);
void cq_set_free(struct cq_set *w);
/* cq_ready() is called when its channel has an event, until it is removed. */
void cq_set_add(struct cq_set *w, struct cq *cq);
void cq_set_remove(struct cq_set *w, struct cq *cq);
/* Runs the agent's loop until it ends. Returns its exit code, or a negative errno. */
int cq_set_run(struct cq_set *w);

#endif
