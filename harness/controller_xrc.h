/* SPDX-License-Identifier: MIT */
/* Extended reliable connections, inside the controller. */
#ifndef QD_CONTROLLER_XRC_H
#define QD_CONTROLLER_XRC_H

#include "controller_case.h"

bool xrc_sends(const struct object *qp);    /* the end that sends, and receives nothing */
bool xrc_receives(const struct object *qp); /* the other */
/* The name of the SRQ at the other end that a request is for: what spec, a step or a member, says, else the first. NULL: none. */
const char *xrc_srq(struct case_run *r, const struct object *qp, const json_t *spec);
/* Adds `remote_srqn` to a request of the end that sends: by what it was told. */
void xrc_address(struct case_run *r, const struct object *qp, const json_t *spec, json_t *req);
/* Numbers of the SRQs of the end that receives, by name, as its peer is told them. New reference. */
json_t *xrc_srqns(struct case_run *r, const struct object *qp);
/* Calls on each SRQ that an end receives from: one, or those of an extended reliable connection. */
void srqs_each(struct case_run *r, const struct object *qp, struct ops *ops, const char *by,
	       void (*call)(struct case_run *r, struct ops *ops, struct object *srq, const char *by));

#endif
