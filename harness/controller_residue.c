/* SPDX-License-Identifier: MIT */
/* What a case might leave behind: the lab's picture before and after, only the differences. */
#include "controller_case.h"

#include <string.h>

#include "json.h"
#include "log.h"
#include "units.h"

#define SETTLE_NS (3 * NSEC_PER_SEC)
#define LOOK_NS (20 * NSEC_PER_MSEC)

static const char *const kinds[] = { "rdma", "link", "qdisc", "rule" };

json_t *residue_snapshot(struct case_run *r)
{
	struct lab *lab = r->c->lab;
	uint64_t end = now_ns() + SETTLE_NS;
	struct error e = { "" };
	json_t *picture = NULL;

	if (!lab || !lab->ops->snapshot)
		return NULL;
	/* The kernel breaks its list off where a device goes meanwhile, that of another lane too. */
	while (lab->ops->snapshot(lab, r->lane->lane, &picture, &e) < 0) {
		if (now_ns() >= end) {
			case_lost(r, 1, "residue: no picture of the lab: %s", e.text);
			return NULL;
		}
		case_wait(r, NULL, NULL, now_ns() + LOOK_NS);
	}
	return picture;
}

json_t *residue_difference(const json_t *a, const json_t *b)
{
	json_t *rest = json_array();
	size_t i, j;
	const json_t *x, *y;

	json_array_foreach((json_t *)a, i, x) {
		bool found = false;

		json_array_foreach((json_t *)b, j, y)
			found = found || json_equal((json_t *)x, (json_t *)y);
		if (!found)
			json_array_append(rest, (json_t *)x);
	}
	return rest;
}

static bool same(const json_t *before, const json_t *after)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		json_t *gone = residue_difference(json_object_get(before, kinds[i]), json_object_get(after, kinds[i]));
		json_t *new = residue_difference(json_object_get(after, kinds[i]), json_object_get(before, kinds[i]));
		bool equal = json_array_size(gone) == 0 && json_array_size(new) == 0;

		json_decref(gone);
		json_decref(new);
		if (!equal)
			return false;
	}
	return true;
}

void residue_forget(struct controller *c)
{
	json_decref(c->picture);
	json_decref(c->picture_of);
	c->picture = c->picture_of = NULL;
}

void residue_check(struct case_run *r, json_t *before)
{
	uint64_t end = now_ns() + SETTLE_NS, pause = LOOK_NS;
	json_t *after = before ? residue_snapshot(r) : NULL;

	/* The kernel takes a killed process's objects away a moment after the process is gone. */
	while (before && after && !same(before, after) && now_ns() < end) {
		case_wait(r, NULL, NULL, now_ns() + pause);
		pause *= 2;
		json_decref(after);
		after = residue_snapshot(r);
	}
	for (size_t i = 0; before && after && i < sizeof kinds / sizeof kinds[0]; i++) {
		json_t *gone = residue_difference(json_object_get(before, kinds[i]), json_object_get(after, kinds[i]));
		json_t *new = residue_difference(json_object_get(after, kinds[i]), json_object_get(before, kinds[i]));

		case_record(r, "controller",
			    json_pack("{s:s,s:s,s:b,s:o,s:o}", "kind", "residue", "what", kinds[i], "ok",
				      json_array_size(gone) == 0 && json_array_size(new) == 0, "before", gone, "after", new));
	}
	residue_forget(r->c);
	if (before && after && same(before, after)) {
		r->c->picture = json_incref(after);
		r->c->picture_of = json_incref(r->link);
	} else if (before) {
		r->c->stuck = true;
	}
	json_decref(after);
	json_decref(before);
}
