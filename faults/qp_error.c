/* SPDX-License-Identifier: MIT */
/* An end's QP is moved to ERR by its owner. */
#include "fault_common.h"

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end whose QP goes to ERR" },
	{ .name = NULL },
};

static int inject(struct fault *f, struct error *e)
{
	return fault_modify(f, fault_arg(f, "at"), "ERR", NULL, e);
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	(void)e;
	return fault_modify_prove(f, "ERR", ret);
}

const struct fault_ops fault_qp_error = {
	.name = "qp_error",
	.help = "an end's QP is moved to ERR",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "the device answers ERR for it",
	.detection = fault_detect_local,
	.inject = inject,
	.clear = fault_clear_nothing,
	.prove = prove,
};
