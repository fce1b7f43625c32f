/* SPDX-License-Identifier: MIT */
/*
 * What a machine that is late may make of a case, by the check that finds it: the one place that says so. That the kernel
 * complained, that a payload is damaged or that something was left behind no lateness makes.
 */
#ifndef QD_LATENESS_H
#define QD_LATENESS_H

#include <stdbool.h>

enum lateness {
	LATENESS_MAY_MAKE,   /* it */
	LATENESS_MAY_FOLLOW, /* it never makes it, but it may follow from something else that went wrong for that reason */
	LATENESS_NEVER,
};

enum lateness lateness_of(const char *check);
/* A connection whose retries were spent while its peer had no turn: what the ends report of that alone. */
bool lateness_is_end_of_retries(const char *check);

#endif
