/* SPDX-License-Identifier: MIT */
/* Faults of the packets themselves: one rule of the wire each. Its parameters are those of all actions together (action_table.c).
 */
#include "fault_common.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "action.h"

#define MAX_PARAMS 40
#define MAX_ACTIONS 32

static const char *actions[MAX_ACTIONS + 1];
static struct fault_param params[MAX_PARAMS + 1] = {
	{ .name = "match",
	  .type = FAULT_PARAM_MAP,
	  .help = "which packets: from, pair, class, opcode, syndrome, size, psn, nth, transmission, every; without it all of "
		  "them" },
	{ .name = "action", .type = FAULT_PARAM_ENUM, .required = true, .values = actions, .help = "what is done to them" },
	{ .name = "times", .type = FAULT_PARAM_INT, .min = 1, .max = 1000000, .unit = "packets", .help = "how many at most" },
};
#define OWN_PARAMS 3

static const char *const needs[] = { "wire", NULL };

/* Two actions may have a parameter of one name: here it takes what either takes, and check() knows which it is. */
static void add_param(const struct fault_param *of)
{
	size_t i = 0;

	while (i < MAX_PARAMS && params[i].name && strcmp(params[i].name, of->name) != 0)
		i++;
	if (i == MAX_PARAMS)
		abort();
	if (!params[i].name) {
		params[i] = *of;
		params[i].required = false;
		params[i].def = NULL;
		return;
	}
	params[i].min = of->min < params[i].min ? of->min : params[i].min;
	params[i].max = of->max > params[i].max ? of->max : params[i].max;
}

__attribute__((constructor)) static void collect_params(void)
{
	size_t n = 0;

	for (const struct action_ops *const *ops = action_table; *ops && n < MAX_ACTIONS; ops++) {
		actions[n++] = (*ops)->name;
		for (const struct fault_param *p = (*ops)->params; p && p->name; p++)
			add_param(p);
	}
}

/* What is the action's own: without the keys that every rule has. New reference. */
static json_t *action_args(const json_t *args)
{
	json_t *own = json_copy((json_t *)args);

	for (size_t i = 0; i < OWN_PARAMS; i++)
		json_object_del(own, params[i].name);
	return own;
}

static int check(const json_t *args, struct error *e)
{
	const char *name = json_str(args, "action");
	struct action a = { .ops = name ? action_find(name) : NULL };
	json_t *own;
	int rc;

	if (!a.ops)
		return error_set(e, -EINVAL, "there is no action `%s`", name ? name : "");
	own = action_args(args);
	rc = action_check(a.ops, own, e);
	if (!rc && a.ops->prepare)
		rc = a.ops->prepare(&a, own, e);
	free(a.state);
	json_decref(own);
	return rc;
}

static enum detection detection(const json_t *args)
{
	const char *action = json_str(args, "action"), *kind = json_str(json_object_get(args, "forge"), "kind");

	if (!action || strcmp(action, "forge") != 0 || !kind)
		return DETECTION_SILENT;
	if (strcmp(kind, "RNR_NAK") == 0)
		return DETECTION_RNR;
	if (strcmp(kind, "NAK_PSN") == 0)
		return DETECTION_SEQ_NAK;
	return strncmp(kind, "NAK_", 4) == 0 ? DETECTION_NAK : DETECTION_SILENT;
}

/* A hole without a pair swallows whatever comes. */
static enum fault_blast blast_of(const json_t *args)
{
	const char *action = json_str(args, "action");
	bool link = action && strcmp(action, "blackhole") == 0 && !json_object_get(json_object_get(args, "match"), "pair");

	return link ? FAULT_BLAST_LINK : FAULT_BLAST_PAIR;
}

static int inject(struct fault *f, struct error *e)
{
	json_t *req = json_copy((json_t *)f->args), *lasts = json_object_get(f->state, "for_ns");

	json_object_set_new(req, "op", json_string("rule"));
	json_object_set_new(req, "as", json_string(f->as));
	if (lasts)
		json_object_set(req, "for", lasts);
	return f->env->wire(f->env->ctl, req, NULL, e);
}

static int clear(struct fault *f, struct error *e)
{
	json_t *reply = NULL;
	int rc = f->env->wire(f->env->ctl, json_pack("{s:s,s:s}", "op", "clear", "as", f->as), &reply, e);

	if (!rc)
		json_object_set(f->state, "report", json_object_get(reply, "rule"));
	json_decref(reply);
	return rc;
}

static bool for_next_life(const struct fault *f)
{
	const char *action = fault_arg(f, "action"), *into = fault_arg(f, "into");

	return action && into && strcmp(action, "replay") == 0 && strcmp(into, "next_life") == 0;
}

/* A copy into the next life and a packet that nobody sent have to have been made; all else has to have hit. */
static int64_t proof_of(const struct fault *f, const json_t *report)
{
	const char *action = fault_arg(f, "action");
	bool made = for_next_life(f) || (action && strcmp(action, "forge") == 0);

	return json_int(report, made ? "invented" : "hits", 0);
}

static const char *why_not(const struct fault *f, const json_t *report)
{
	if (json_str(report, "why"))
		return json_str(report, "why");
	return for_next_life(f) ? "it kept a packet, and no next life of its sender has sent one behind which it could go"
				: "it was met, and nothing came of it";
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	json_t *reply = NULL, *report = json_incref(json_object_get(f->state, "report"));
	int rc = 0;

	if (!report) {
		rc = f->env->wire(f->env->ctl, json_pack("{s:s,s:s}", "op", "report", "as", f->as), &reply, e);
		report = json_incref(json_object_get(reply, "rule"));
		json_decref(reply);
	}
	if (rc || !report) {
		json_decref(report);
		return rc;
	}
	rc = proof_of(f, report) > 0;
	if (!rc)
		error_set(e, 0, "%s", why_not(f, report));
	*ret = report;
	return rc;
}

const struct fault_ops fault_wire = {
	.name = "wire",
	.help = "exactly the chosen packets are dropped, held, delayed, doubled, changed or forged between the ends",
	.layer = FAULT_WIRE,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.needs = needs,
	.proof = "the wire's own count of packets that it did this to",
	.undo_in_injector = true,
	.detection = detection,
	.blast_of = blast_of,
	.check = check,
	.inject = inject,
	.clear = clear,
	.prove = prove,
};
