/* SPDX-License-Identifier: MIT */
/* An end is told a GID that is not its peer's. */
#include "fault_common.h"

#include <errno.h>
#include <string.h>

#include "../harness/json.h"

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end that is told a wrong GID" },
	{ .name = "gid", .type = FAULT_PARAM_STRING, .help = "the GID; default: its own, so that its packets come back to itself" },
	{ .name = NULL },
};

static int inject(struct fault *f, struct error *e)
{
	(void)f;
	(void)e;
	return 0;
}

static void on_handover(struct fault *f, const char *to_qp, json_t *handover)
{
	const char *gid = fault_arg(f, "gid");

	if (!fault_names(f, "at", to_qp))
		return;
	if (!gid)
		gid = json_str(f->env->device(f->env->ctl, fault_agent(f, to_qp)), "gid");
	if (!gid)
		return;
	json_object_set(f->state, "true", json_object_get(handover, "gid"));
	json_object_set_new(f->state, "told", json_string(gid));
	json_object_set_new(handover, "gid", json_string(gid));
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	const char *truth = json_str(f->state, "true"), *told = json_str(f->state, "told");
	const json_t *rtr = json_object_get(f->env->qp(f->env->ctl, fault_arg(f, "at")), "rtr");

	(void)e;
	*ret = json_pack("{s:s,s:s,s:b}", "told", told ? told : "", "peer", truth ? truth : "", "connected", rtr != NULL);
	return told && truth && rtr && strcmp(told, truth) != 0;
}

const struct fault_ops fault_wrong_gid = {
	.name = "wrong_gid",
	.help = "an end is connected to a GID that is not its peer's",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "the GID handed over differs from the peer's, and the device took it",
	.detection = fault_detect_silent,
	.inject = inject,
	.prove = prove,
	.on_handover = on_handover,
};
