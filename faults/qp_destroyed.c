/* SPDX-License-Identifier: MIT */
/* An end's QP is destroyed under its peer. */
#include "fault_common.h"

#include "../harness/json.h"

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end whose QP goes away" },
	{ .name = NULL },
};

static int inject(struct fault *f, struct error *e)
{
	const char *at = fault_arg(f, "at");
	json_t *reply = NULL;
	int rc = f->env->request(f->env->ctl, fault_agent(f, at),
				 json_pack("{s:s,s:s,s:s}", "op", "destroy", "type", "qp", "name", at), &reply, e);

	if (rc == 0)
		json_object_set_new(f->state, "life", json_integer(json_int(reply, "life", 0)));
	json_decref(reply);
	return rc;
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	(void)e;
	*ret = json_pack("{s:I}", "life_that_went", (json_int_t)json_int(f->state, "life", 0));
	return json_object_get(f->state, "life") != NULL;
}

const struct fault_ops fault_qp_destroyed = {
	.name = "qp_destroyed",
	.help = "an end's QP is destroyed; connect or recover makes a new one",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "the destruction succeeded, and which life of the QP went",
	.detection = fault_detect_silent,
	.inject = inject,
	.clear = fault_clear_nothing,
	.prove = prove,
};
