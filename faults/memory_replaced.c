/* SPDX-License-Identifier: MIT */
/* The pages under a live MR are replaced: the device goes on with the old ones. */
#include "fault_common.h"

#include "../harness/json.h"

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end whose memory is replaced" },
	{ .name = "mr", .type = FAULT_PARAM_NAME, .def = "QP.mem", .help = "under which MR" },
	{ .name = NULL },
};

static int inject(struct fault *f, struct error *e)
{
	const char *at = fault_arg(f, "at");
	char name[160];
	int rc;

	fault_mr(f, "mem", name, sizeof name);
	rc = f->env->request(f->env->ctl, fault_agent(f, at), json_pack("{s:s,s:s}", "op", "mem_replace", "mr", name), NULL, e);
	if (rc == 0)
		json_object_set_new(f->state, "mr", json_string(name));
	return rc;
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	const char *mr = json_str(f->state, "mr");

	(void)e;
	*ret = json_pack("{s:s}", "mr", mr ? mr : "");
	return mr != NULL;
}

const struct fault_ops fault_memory_replaced = {
	.name = "memory_replaced",
	.help = "other pages are put under a live MR; what the device writes is not seen",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "the agent mapped other pages at the MR's address",
	.detection = fault_detect_none,
	.inject = inject,
	.prove = prove,
};
