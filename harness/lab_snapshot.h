/* SPDX-License-Identifier: MIT */
/*
 * A picture of what a case might leave behind, made comparable: only objects of this run, no counters, no ages, no kernel objects.
 */
#ifndef QD_LAB_SNAPSHOT_H
#define QD_LAB_SNAPSHOT_H

#include <jansson.h>

#include "error.h"

typedef int lab_command_fn(void *user, const char *tool, const char *args, json_t **ret_out, struct error *e);

/* Objects of one lane: `suffix` is what the names of this run end in ("-3f9c"). Shape: lab.h. */
int lab_snapshot(lab_command_fn *command, void *user, int lane, const char *suffix, json_t **ret, struct error *e);

#endif
