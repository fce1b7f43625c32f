/* SPDX-License-Identifier: MIT */
/* An agent's process is killed: the kernel takes its objects away, its peers are told nothing. */
#include "fault_common.h"

#include <signal.h>

#include "../harness/json.h"

static const struct fault_param params[] = {
	{ .name = "agent",
	  .type = FAULT_PARAM_AGENT,
	  .required = true,
	  .help = "which agent; clear starts it again, with nothing but its device" },
	{ .name = NULL },
};

static int inject(struct fault *f, struct error *e)
{
	char status[64] = "";
	int rc = f->env->signal(f->env->ctl, fault_arg(f, "agent"), SIGKILL, status, sizeof status, e);

	if (rc == 0)
		json_object_set_new(f->state, "status", json_string(status));
	return rc;
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	const char *status = json_str(f->state, "status");

	(void)e;
	*ret = json_pack("{s:s}", "process", status ? status : "runs");
	return status != NULL;
}

const struct fault_ops fault_agent_killed = {
	.name = "agent_killed",
	.help = "an agent's process is killed",
	.layer = FAULT_PROCESS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "the process is gone, and how it ended",
	.detection = fault_detect_silent,
	.inject = inject,
	.clear = fault_clear_restart,
	.prove = prove,
};
