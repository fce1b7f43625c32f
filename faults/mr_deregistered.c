/* SPDX-License-Identifier: MIT */
/* An MR goes away under a peer that holds its key. */
#include "fault_common.h"

#include <string.h>

#include "../harness/json.h"

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end whose MR goes away" },
	{ .name = "mr", .type = FAULT_PARAM_NAME, .def = "QP.mem", .help = "which MR" },
	{ .name = NULL },
};

static int inject(struct fault *f, struct error *e)
{
	const char *at = fault_arg(f, "at");
	char mr[160];
	json_t *reply = NULL;
	int rc = f->env->request(
		f->env->ctl, fault_agent(f, at),
		json_pack("{s:s,s:s,s:s}", "op", "destroy", "type", "mr", "name", fault_mr(f, "mem", mr, sizeof mr)), &reply, e);

	if (rc == 0)
		json_object_set_new(f->state, "life", json_integer(json_int(reply, "life", 0)));
	json_decref(reply);
	return rc;
}

static int clear(struct fault *f, struct error *e)
{
	char mr[160];
	int rc = f->env->mr_renew(f->env->ctl, fault_mr(f, "mem", mr, sizeof mr), NULL, e);

	return rc ? rc : f->env->exchange(f->env->ctl, fault_pair(f, fault_arg(f, "at")), e);
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	char mr[160];

	(void)e;
	*ret = json_pack("{s:s,s:I}", "mr", fault_mr(f, "mem", mr, sizeof mr), "life_that_went",
			 (json_int_t)json_int(f->state, "life", 0));
	return json_object_get(f->state, "life") != NULL;
}

static enum detection detection(const json_t *args)
{
	const char *mr = json_str(args, "mr");
	size_t len = mr ? strlen(mr) : 0;

	return len > 3 && strcmp(mr + len - 3, ".tx") == 0 ? DETECTION_LOCAL : DETECTION_NAK;
}

const struct fault_ops fault_mr_deregistered = {
	.name = "mr_deregistered",
	.help = "an MR is deregistered while the peer still holds its key; clear registers it anew",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "the deregistration succeeded, and which life of the MR went",
	.detection = detection,
	.inject = inject,
	.clear = clear,
	.prove = prove,
};
