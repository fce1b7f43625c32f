/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "lateness.h"
#include "units.h"

/* Timers that are later than this say that the lanes asked too much of the machine: what went wrong then may be that. */
#define LATE_NS (10 * NSEC_PER_MSEC)

static char *key_of(int boot, char buf[16])
{
	snprintf(buf, 16, "%d", boot);
	return buf;
}

void run_trouble_note(json_t *troubles, struct run_case *c, const struct executor_end *end)
{
	char key[16];
	json_t *trouble = json_object_get(troubles, key_of(end->boot, key));

	if (!trouble) {
		trouble = json_pack("{s:s,s:[],s:b}", "why", end->why ? end->why : "?", "cases", "found", 0);
		json_object_set_new(troubles, key, trouble);
	}
	json_array_append_new(json_object_get(trouble, "cases"), json_string(c->id));
	c->trouble = end->boot;
}

void run_trouble_look(json_t *troubles, const struct run_case *c, const json_t *verdict)
{
	static const char *const checks[] = { "kernel", "hang" };
	const json_t *finding;
	char key[16];
	size_t i;

	json_array_foreach(json_object_get(verdict, "findings"), i, finding)
		for (size_t k = 0; k < sizeof(checks) / sizeof(*checks); k++)
			if (json_has(finding, "severity", "fail") && json_has(finding, "check", checks[k]))
				json_object_set_new(json_object_get(troubles, key_of(c->trouble, key)), "found", json_true());
}

bool run_trouble_left(const json_t *troubles, struct error *e)
{
	const char *boot;
	json_t *trouble;

	json_object_foreach((json_t *)troubles, boot, trouble) {
		char *cases;

		if (json_bool(trouble, "found", false))
			continue;
		cases = json_dumps(json_object_get(trouble, "cases"), 0);
		error_set(e, -EIO, "boot %s: %s. None of the cases that ran side by side then does it alone: %s", boot,
			  json_str(trouble, "why"), cases ? cases : "?");
		free(cases);
		return true;
	}
	return false;
}

static bool stands(const json_t *verdict)
{
	bool follows = false, other = false;
	const json_t *finding;
	size_t i;

	json_array_foreach(json_object_get(verdict, "findings"), i, finding) {
		enum lateness how = lateness_of(json_str(finding, "check") ?: "");

		if (!json_has(finding, "severity", "fail"))
			continue;
		if (how == LATENESS_NEVER)
			return true;
		follows |= how == LATENESS_MAY_FOLLOW;
		other |= how == LATENESS_MAY_MAKE;
	}
	return follows && !other;
}

bool run_void(const json_t *verdict, const char *case_dir, char *why, size_t size)
{
	bool judged = !json_has(verdict, "verdict", "inconclusive");
	uint64_t ns = stands(verdict) ? 0 : run_lateness(case_dir);
	char late[96] = ", where nothing was measured";

	/* What could not be judged among others may be judged alone, however punctual the machine was. */
	if (ns <= LATE_NS && judged)
		return false;
	if (ns <= LATE_NS)
		late[0] = '\0';
	else if (ns != UINT64_MAX)
		snprintf(late, sizeof(late), ", where timers were up to %llu ms late", (unsigned long long)(ns / NSEC_PER_MSEC));
	snprintf(why, size, "%s beside others%s: %s", json_str(verdict, "verdict"), late,
		 json_str(verdict, "headline") ? json_str(verdict, "headline") : "");
	return true;
}
