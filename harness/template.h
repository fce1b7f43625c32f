/* SPDX-License-Identifier: MIT */
/*
 * Scenario files to begin with (`qpdrill new`): a scene for each fault in which it does something, written out with the fault's
 * parameters as its own table has them. What a scene expects is what the specification says of it.
 *
 * A new fault works without a scene: it gets the one that its detection asks for. A row in template_scenes.c makes it better.
 */
#ifndef QD_TEMPLATE_H
#define QD_TEMPLATE_H

#include <stdbool.h>
#include <stdio.h>

#include "error.h"

/* What template_write() takes without a fault's name. */
#define TEMPLATE_FAULT "missing_receive"
#define TEMPLATE_ACTION "drop"

/* Steps are lines of YAML, each with its end of line; NULL: none. */
struct scene {
	const char *name; /* of the fault, or of the wire's action; NULL ends a table */
	const char *title;
	const char *top;    /* further keys of the file, as lines */
	const char *qp;     /* the value of `qp` */
	const char *before; /* steps before the fault */
	const char *args;   /* "right=REMOTE_WRITE mr=p.a.tx": of the fault's parameters those that have no default, or another */
	bool connects;      /* the fault is there before both ends connect, which they do then */
	const char *after;  /* what shows it, and the way back */
};

extern const struct scene scene_table[];   /* sorted as fault_table is */
extern const struct scene scene_actions[]; /* of the fault `wire`; sorted as action_table is */

/* Writes a scenario with this fault (NULL: TEMPLATE_FAULT), of the wire with this action (NULL: TEMPLATE_ACTION). -ENOENT when
 * there is none of that name, -EINVAL for an action of another fault. */
int template_write(FILE *out, const char *id, const char *fault, const char *action, struct error *e);

/* "area/name", as an id of a file below `scenarios` has to be: small letters, digits and hyphens, two parts. -EINVAL, why in e. */
int template_check_id(const char *id, struct error *e);

#endif
