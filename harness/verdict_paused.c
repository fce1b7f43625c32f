/* SPDX-License-Identifier: MIT */
/* A case that somebody stopped before a step: the protocol's timers ran on meanwhile, so that what failed after it tells nothing.
 */
#include "verdict_internal.h"

#include <stdio.h>
#include <string.h>

#include "json.h"
#include "units.h"

static const json_t *next_pause(const struct judge *j, size_t *i)
{
	for (; *i < json_array_size(j->records); (*i)++) {
		const json_t *r = json_array_get(j->records, *i);

		if (json_has(r, "kind", "pause") && json_has(r, "phase", "begin"))
			return r;
	}
	return NULL;
}

/* How long it lasted; of one that the record ends in, as long as it could be. */
static uint64_t length_of(const struct judge *j, size_t begin)
{
	for (size_t i = begin + 1; i < json_array_size(j->records); i++)
		if (json_has(json_array_get(j->records, i), "kind", "pause"))
			return json_u64(json_array_get(j->records, i), "paused_ns", 0);
	return json_u64(json_array_get(j->records, begin), "max_ns", 0);
}

/* What the kernel said, and what is left behind, does not depend on time. */
static bool depends_on_time(const struct finding *f)
{
	return strcmp(f->check, "kernel") && strcmp(f->check, "residue");
}

void verdict_excuse_paused(struct judge *j)
{
	size_t begin = 0;
	const json_t *pause = next_pause(j, &begin);
	char length[32];

	if (!pause)
		return;
	units_format_ns(length_of(j, begin), length, sizeof(length));
	for (size_t i = 0; i < j->findings.n; i++) {
		struct finding *f = &j->findings.v[i];
		size_t len = strlen(f->text);

		if (f->severity != SEVERITY_FAIL || (f->rec != M_NONE && f->rec <= begin) || !depends_on_time(f))
			continue;
		f->severity = SEVERITY_INCONCLUSIVE;
		snprintf(f->text + len, sizeof(f->text) - len,
			 "; not judged: the case stood still for %s before step %d, and timers of the protocol ran on", length,
			 (int)json_int(pause, "before", 0));
	}
}

void verdict_add_pauses(const struct judge *j, json_t *verdict)
{
	json_t *list = json_array();
	char length[32];

	for (size_t i = 0; next_pause(j, &i); i++) {
		int before = (int)json_int(json_array_get(j->records, i), "before", 0);
		uint64_t ns = length_of(j, i);

		json_array_append_new(list, json_pack("{s:i,s:I}", "before", before, "ns", (json_int_t)ns));
		json_object_set_new(verdict, "seen",
				    json_sprintf("%s; stood still for %s before step %d", json_str(verdict, "seen"),
						 units_format_ns(ns, length, sizeof(length)), before));
	}
	if (json_array_size(list))
		json_object_set(verdict, "pauses", list);
	json_decref(list);
}
