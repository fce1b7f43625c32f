/* SPDX-License-Identifier: MIT */
/* The destructors, one per type of object: what the verbs thread calls, and what the loop does around it. */
#ifndef QD_DESTROY_H
#define QD_DESTROY_H

#include "object.h"

struct destructor {
	const char *verb;
	/* Before: the loop lets go of it. */
	void (*begin)(struct agent *a, struct object *o);
	/* On the verbs thread. 0 or a positive errno. */
	int (*call)(struct object *o);
	/* After: it is gone, or it goes on living. */
	void (*end)(struct agent *a, struct object *o, bool gone);
};

extern const struct destructor destructors[NUM_OBJECT_TYPES];

#endif
