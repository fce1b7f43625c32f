/* SPDX-License-Identifier: MIT */
/* The controller of an agent is gone: the agent hears the end of its input, and is to let go of everything and leave by itself. */
#include "fault_common.h"

#include <string.h>

#include "../harness/json.h"

static const struct fault_param params[] = {
	{ .name = "agent",
	  .type = FAULT_PARAM_AGENT,
	  .required = true,
	  .help = "whose controller; clear gives that agent's name to a new process, with nothing but its device" },
	{ .name = NULL },
};

static int inject(struct fault *f, struct error *e)
{
	char status[64] = "";
	int rc = f->env->abandon(f->env->ctl, fault_arg(f, "agent"), status, sizeof status, e);

	if (rc == 0)
		json_object_set_new(f->state, "status", json_string(status));
	return rc;
}

/* One that was killed, or complained that it could not let go, has not noticed. */
static int prove(struct fault *f, json_t **ret, struct error *e)
{
	const char *status = json_str(f->state, "status");

	(void)e;
	*ret = json_pack("{s:s}", "process", status ? status : "runs");
	return status && strcmp(status, "exit status 0") == 0;
}

const struct fault_ops fault_controller_killed = {
	.name = "controller_killed",
	.help = "an agent's controller is gone: it lets go of everything and leaves",
	.layer = FAULT_PROCESS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "the agent has left by itself, with exit status 0",
	.detection = fault_detect_silent,
	.inject = inject,
	.clear = fault_clear_restart,
	.prove = prove,
};
