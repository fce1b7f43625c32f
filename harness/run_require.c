/* SPDX-License-Identifier: MIT */
/* --require: a skip for want of a capability that somebody counts on is a failure. */
#include "run.h"

#include <stdio.h>
#include <string.h>

#include "capability.h"
#include "json.h"

/* "needs xrc, which ...", "fault wire needs wire: ...": the reason names it. */
static bool is_reason(const char *reason, const char *capability)
{
	size_t len = strlen(capability);

	for (const char *at = reason; (at = strstr(at, "needs ")); at += strlen("needs "))
		if (!strncmp(at + strlen("needs "), capability, len) && strchr(",: ", at[strlen("needs ") + len]))
			return true;
	return false;
}

static const char *wanted(const struct run_options *o, const json_t *plan, const char *reason)
{
	char why[160];

	for (size_t i = 0; i < o->n_require; i++)
		if (is_reason(reason, o->require[i]) || (json_array_has(json_object_get(plan, "requires"), o->require[i]) &&
							 capability_missing(o->require[i], why, sizeof(why))))
			return o->require[i];
	return NULL;
}

json_t *run_require(const struct run_options *o, const json_t *plan, const json_t *verdict)
{
	const char *name = json_str(verdict, "verdict"), *reason = json_str(verdict, "headline"), *capability;
	json_t *failed, *text;

	if (!name || strcmp(name, verdict_names[VERDICT_SKIP]) || !reason)
		return NULL;
	capability = wanted(o, plan, reason);
	if (!capability)
		return NULL;
	text = json_sprintf("--require %s: %s", capability, reason);
	failed = json_copy((json_t *)verdict);
	json_object_set_new(failed, "verdict", json_string(verdict_names[VERDICT_FAIL]));
	json_object_set(failed, "headline", text);
	json_object_set_new(failed, "findings",
			    json_pack("[{s:s,s:s,s:i,s:o}]", "severity", "fail", "check", "harness", "step", 0, "text", text));
	return failed;
}
