/* SPDX-License-Identifier: MIT */
/*
 * Connections by rdma_cm, between the agents themselves. A QP is an object like any other and is moved by qp_modify: the CM is told
 * its number, and says what its transitions need (`rtr`, `rts` in what cm_wait answers). Events are records as they come.
 *
 * What an agent does by itself, as any program must: it goes on from the address to the route and to the request, and it answers
 * the peer's leave, its own QP in ERR.
 */
#ifndef QD_CM_H
#define QD_CM_H

#include <stdbool.h>
#include <stdint.h>

struct agent;
struct cm;
struct object;

/* The device that connections go through can be opened here. */
bool cm_is_there(void);

/* ---- calls (cm.c) ---- */

/* The next call of a connect that resolves; of the verbs thread, nobody asked. */
void cm_resolve_route(struct agent *a, struct cm *cm);
void cm_ask_peer(struct agent *a, struct cm *cm);
/* Answers the peer's leave: its own QP goes to ERR, the peer hears of it. */
void cm_take_leave(struct agent *a, struct cm *cm);

/* ---- events (cm_event.c) ---- */

void cm_watch(struct agent *a, struct cm *cm);
/* A call of the connection failed: it goes no further. err is a positive errno. */
void cm_fail(struct agent *a, struct cm *cm, const char *verb, int err);
/* What waits for an event that came, or cannot come any more, is answered. */
void cm_answer(struct agent *a, struct cm *cm);
/* All that wait, of one connection or of all (NULL), are told why they wait in vain. */
void cm_end_waits(struct agent *a, struct cm *cm, const char *why);

/* ---- for destroy.c ---- */

void cm_begin_destroy(struct agent *a, struct object *o);
int cm_call_destroy(struct object *o);
void cm_end_destroy(struct agent *a, struct object *o, bool gone);

#endif
