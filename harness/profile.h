/* SPDX-License-Identifier: MIT */
/*
 * Documented deviations of a provider from the specification: scenarios/profiles/<provider>.yaml.
 * An entry excuses one value by one other value, and only where a run has `seen` it.
 *
 * Fields of an entry: id, provider, kernel {from, before}, rdma_core {from, before} (what the library does), seen [kernel
 * releases], when {spec, queue, event, at, op, detection, ... (profile.c: when_fields)}, device (a status, `none`, or an event),
 * waives [cause-first ...], source, note. Unknown keys are refused.
 */
#ifndef QD_PROFILE_H
#define QD_PROFILE_H

#include <jansson.h>
#include <stdbool.h>

#include "diag.h"
#include "error.h"

struct profile {
	char *provider;
	char *kernel;    /* uname -r of what ran */
	json_t *entries; /* array of entry objects, normalised; timing{} beside them */
	json_t *timing;  /* floors, granularity, adaptive schemes; may be NULL */
};

int profile_load(const char *path, const char *kernel, struct profile *ret, struct diag *d, struct error *e);
void profile_release(struct profile *p);
/* The kernel that ran is listed in `seen` (same series and flavour, see profile.c). */
bool profile_entry_seen(const struct profile *p, const json_t *entry);
/* The kernel is inside the entry's range. */
bool profile_entry_in_range(const struct profile *p, const json_t *entry);
/* It speaks of no library, or of this one ("44.0"; NULL: not known). */
bool profile_entry_of_library(const json_t *entry, const char *rdma_core);

#endif
