/* SPDX-License-Identifier: MIT */
/* An end's QP is taken straight to RESET, without waiting for its work: what was outstanding is gone without a completion. */
#include "fault_common.h"

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end whose QP is reset" },
	{ .name = NULL },
};

static int inject(struct fault *f, struct error *e)
{
	return fault_modify(f, fault_arg(f, "at"), "RESET", NULL, e);
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	(void)e;
	return fault_modify_prove(f, "RESET", ret);
}

const struct fault_ops fault_qp_reset = {
	.name = "qp_reset",
	.help = "an end's QP is taken to RESET without a drain; its outstanding work vanishes",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "the device answers RESET for it",
	.detection = fault_detect_silent,
	.inject = inject,
	.clear = fault_clear_nothing,
	.prove = prove,
};
