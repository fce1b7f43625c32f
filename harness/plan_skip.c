/* SPDX-License-Identifier: MIT */
/* What the plan already knows that nothing here can run. What depends on kernel, lab or device stays in `requires`. */
#include "plan_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "../faults/fault.h"
#include "capability.h"
#include "json.h"

__attribute__((format(printf, 2, 3))) static void skip(struct planner *p, const char *fmt, ...)
{
	va_list args;

	if (p->skip[0])
		return;
	va_start(args, fmt);
	vsnprintf(p->skip, sizeof(p->skip), fmt, args);
	va_end(args);
}

static void need(struct planner *p, const char *capability, const char *who)
{
	char reason[160];
	json_t *requires = json_object_get(p->plan, "requires");

	if (capability_missing(capability, reason, sizeof(reason))) {
		if (who)
			skip(p, "%s %s", who, reason);
		else
			skip(p, "%s", reason);
	} else if (!json_array_has(requires, capability)) {
		json_array_append_new(requires, json_string(capability));
	}
	if (!strcmp(capability, "wire"))
		json_object_set_new(p->plan, "wire", json_true());
}

static void skip_fault(struct planner *p, const json_t *step)
{
	const char *name = json_str(step, "fault");
	const struct fault_ops *ops = fault_find(name);
	char who[96];

	snprintf(who, sizeof(who), "fault %s", name);
	if (!strcmp(name, "wire"))
		need(p, "wire", who);
	else if (!ops || !ops->inject)
		skip(p, "fault %s is not in this build", name);
	for (const char *const *c = ops ? ops->needs : NULL; c && *c; c++)
		need(p, *c, who);
}

static void skip_expect(struct planner *p, const json_t *step)
{
	size_t i;
	json_t *choice;

	if (json_object_get(step, "packets"))
		need(p, "wire", "packets");
	if (json_object_get(json_object_get(step, "phase"), "symptom"))
		need(p, "wire", "phase symptom");
	if (json_object_get(step, "cm"))
		need(p, "cm", "cm events");
	json_array_foreach(json_object_get(step, "any"), i, choice)
		skip_expect(p, choice);
}

static bool wants_extended(const json_t *block)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)block, key, value)
		if (json_is_object(value) && wants_extended(value))
			return true;
	return json_has(block, "api", "extended");
}

static void skip_recover(struct planner *p, const json_t *step)
{
	const char *path = json_str(step, "path");

	if (path && !strcmp(path, "cm"))
		need(p, "cm", "recovery by cm");
	if (wants_extended(json_object_get(step, "qp")))
		need(p, "extended", NULL);
}

/* A group of IPv4 is a mapped address. */
static const char *capability_of(const char *group)
{
	return !strncasecmp(group, "::ffff:", strlen("::ffff:")) ? "multicast_ipv4" : "multicast";
}

static void skip_steps(struct planner *p, const json_t *steps)
{
	size_t i;
	json_t *step;

	json_array_foreach(steps, i, step) {
		const char *what = json_str(step, "do");

		if (!strcmp(what, "connect") && json_str(step, "by") && !strcmp(json_str(step, "by"), "cm"))
			need(p, "cm", "connect by cm");
		else if (!strcmp(what, "fault"))
			skip_fault(p, step);
		else if (!strcmp(what, "expect") || !strcmp(what, "allow"))
			skip_expect(p, step);
		else if (!strcmp(what, "recover"))
			skip_recover(p, step);
		else if ((!strcmp(what, "create") || !strcmp(what, "destroy")) && json_object_get(step, "mw"))
			need(p, "mw", what);
		else if (!strcmp(what, "attach") || !strcmp(what, "detach"))
			need(p, capability_of(json_str(step, "group")), what);
		skip_steps(p, json_object_get(step, "steps"));
	}
}

/* That a device refuses to make it, or its peer, is what the file is about. */
static bool made_to_be_refused(const struct planner *p, const json_t *qp)
{
	size_t i;
	json_t *step;

	json_array_foreach(json_object_get(p->plan, "steps"), i, step) {
		const json_t *made = strcmp(json_str(step, "do"), "create") ? NULL : json_object_get(step, "qp");

		if ((json_array_has(made, json_str(qp, "name")) || json_array_has(made, json_str(qp, "peer"))) &&
		    !json_array_has(json_object_get(step, "returns"), "0"))
			return true;
	}
	return false;
}

static void skip_objects(struct planner *p)
{
	size_t i;
	const char *name;
	json_t *qp, *cq, *ah;

	json_object_foreach(json_object_get(p->doc, "cq"), name, cq)
		if (json_str(cq, "api") && !strcmp(json_str(cq, "api"), "extended"))
			need(p, "extended", NULL);

	json_array_foreach(p->qps, i, qp) {
		const char *type = json_str(qp, "type"), *api = json_str(qp, "api");

		if (api && !strcmp(api, "extended"))
			need(p, "extended", NULL);
		if (!strcmp(type, "UC"))
			need(p, "uc", NULL);
		else if (!strcmp(type, "UD"))
			need(p, "ud", NULL);
		else if (!strncmp(type, "XRC", 3) && !made_to_be_refused(p, qp))
			need(p, "xrc", NULL);
	}
	if (json_array_size(p->srqs))
		need(p, "srq", NULL);
	if (json_object_get(p->doc, "mw"))
		need(p, "mw", NULL);
	json_object_foreach(json_object_get(p->doc, "ah"), name, ah)
		if (json_str(ah, "group"))
			need(p, capability_of(json_str(ah, "group")), name);
}

void plan_skip(struct planner *p)
{
	size_t i;
	json_t *item;

	json_array_foreach(json_object_get(p->doc, "requires"), i, item)
		need(p, json_string_value(item), NULL);
	skip_objects(p);
	skip_steps(p, json_object_get(p->plan, "steps"));
}
