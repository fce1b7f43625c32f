/* SPDX-License-Identifier: MIT */
/* The owner writes into memory that its peer may be reading: a buffer that is used before it is free. */
#include "fault_common.h"

#include "../harness/json.h"

#define TAG_OF_THE_OWNER 0x7ffff000 /* no message of a plan has it */

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end whose memory is written to" },
	{ .name = "mr", .type = FAULT_PARAM_NAME, .def = "QP.mem", .help = "which MR" },
	{ .name = NULL },
};

static int inject(struct fault *f, struct error *e)
{
	const char *at = fault_arg(f, "at");
	char name[160];
	json_int_t bytes;
	int rc;

	fault_mr(f, "mem", name, sizeof name);
	bytes = (json_int_t)json_int(plan_find(f->env->plan(f->env->ctl), "mrs", name), "bytes", 0);
	rc = f->env->request(f->env->ctl, fault_agent(f, at),
			     json_pack("{s:s,s:s,s:i,s:I,s:i,s:i}", "op", "fill", "mr", name, "off", 0, "size", bytes, "count", 1,
				       "tag", TAG_OF_THE_OWNER),
			     NULL, e);
	if (rc == 0) {
		json_object_set_new(f->state, "mr", json_string(name));
		json_object_set_new(f->state, "bytes", json_integer(bytes));
	}
	return rc;
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	const char *mr = json_str(f->state, "mr");

	(void)e;
	*ret = json_pack("{s:s,s:I}", "mr", mr ? mr : "", "bytes", (json_int_t)json_int(f->state, "bytes", 0));
	return mr != NULL;
}

const struct fault_ops fault_memory_rewritten = {
	.name = "memory_rewritten",
	.help = "the owner writes other bytes into an MR, whatever its peer is doing with it",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "the agent has written all of the MR",
	.detection = fault_detect_none,
	.inject = inject,
	.prove = prove,
};
