/* SPDX-License-Identifier: MIT */
/*
 * What `requires:` and a fault's `needs` may name. Some of it this build has or lacks for good; the rest depends on the kernel, the
 * lab and the device, and is known only once something runs.
 */
#ifndef QD_CAPABILITY_H
#define QD_CAPABILITY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct capability {
	const char *name; /* "wire" */
	const char *help; /* one line */
	const char
		*env; /* how it is found out at run time: "caps" (an agent's hello has it), "device" (its flags), "guest", "wire" */
};

extern const struct capability capability_table[];
extern const size_t capability_table_n;
const struct capability *capability_find(const char *name);

/* True when nothing here can ever fulfil `requirement` ("wire"); the reason goes to buf. Unknown names count as missing,
 * comparisons ("kernel >= 6.5", "lab: rxe") do not. */
bool capability_missing(const char *requirement, char *buf, size_t size);

/* Whether any of these is known only once the devices of a case were asked. */
bool capability_asks_device(const json_t *requires);

/* Checks an array of requirements against what is known: env
 * {"kernel":"6.1.0-56-amd64","lab":"rxe","guest":true,"wire":true,"caps":["RC","srq"],"device_caps":["xrc"]}. What env does not say
 * is not decided and counts as there. True when all are there; else the first reason, a sentence for a `skip`, is in buf. */
bool capability_check(const json_t *requires, const json_t *env, char *buf, size_t size);

#endif
