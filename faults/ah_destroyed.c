/* SPDX-License-Identifier: MIT */
/* An address handle is destroyed while sends that name it have no end yet. */
#include "fault_common.h"

#include <stdio.h>

#include "../harness/json.h"

static const char *const needs[] = { "ud", NULL };

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end whose handle goes away" },
	{ .name = "ah", .type = FAULT_PARAM_NAME, .def = "QP.ah", .help = "which handle" },
	{ .name = NULL },
};

static int64_t sends_without_end(struct fault *f, const char *at)
{
	json_t *reply = NULL;
	int64_t n = 0;

	if (f->env->request(f->env->ctl, fault_agent(f, at), json_pack("{s:s,s:s}", "op", "ledger", "qp", at), &reply, NULL) == 0)
		n = json_int(json_object_get(reply, "send"), "in_flight", 0);
	json_decref(reply);
	return n;
}

static int inject(struct fault *f, struct error *e)
{
	const char *at = fault_arg(f, "at"), *ah = fault_arg(f, "ah");
	char own[128];
	int rc;

	snprintf(own, sizeof own, "%s.ah", at);
	json_object_set_new(f->state, "under", json_integer(sends_without_end(f, at)));
	rc = f->env->request(f->env->ctl, fault_agent(f, at),
			     json_pack("{s:s,s:s,s:s}", "op", "destroy", "type", "ah", "name", ah ? ah : own), NULL, e);
	if (rc == 0)
		json_object_set_new(f->state, "gone", json_true());
	return rc;
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	int64_t under = json_int(f->state, "under", 0);

	if (json_bool(f->state, "gone", false) && under <= 0)
		error_set(
			e, 0,
			"all sends of that end had their completions before the handle went; post more of them, or hold them back");
	*ret = json_pack("{s:b,s:I}", "destroyed", json_bool(f->state, "gone", false), "sends_without_end", (json_int_t)under);
	return json_bool(f->state, "gone", false) && under > 0;
}

const struct fault_ops fault_ah_destroyed = {
	.name = "ah_destroyed",
	.help = "an address handle goes away under posted sends; create, connect or recover makes another",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.needs = needs,
	.proof = "the destruction succeeded, and sends of that end had no completion yet",
	.detection = fault_detect_local,
	.inject = inject,
	.clear = fault_clear_nothing,
	.prove = prove,
};
