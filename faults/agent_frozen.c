/* SPDX-License-Identifier: MIT */
/* An agent's process stands still: its device goes on answering, nobody polls or posts. */
#include "fault_common.h"

#include <signal.h>
#include <string.h>

#include "../harness/json.h"

static const struct fault_param params[] = {
	{ .name = "agent", .type = FAULT_PARAM_AGENT, .required = true, .help = "which agent; clear lets it run on" },
	{ .name = NULL },
};

static int inject(struct fault *f, struct error *e)
{
	char status[64] = "";
	int rc = f->env->signal(f->env->ctl, fault_arg(f, "agent"), SIGSTOP, status, sizeof status, e);

	if (rc == 0)
		json_object_set_new(f->state, "status", json_string(status));
	return rc;
}

static int clear(struct fault *f, struct error *e)
{
	return f->env->signal(f->env->ctl, fault_arg(f, "agent"), SIGCONT, NULL, 0, e);
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	const char *status = json_str(f->state, "status");

	(void)e;
	*ret = json_pack("{s:s}", "process", status ? status : "?");
	return status && strcmp(status, "stopped") == 0;
}

const struct fault_ops fault_agent_frozen = {
	.name = "agent_frozen",
	.help = "an agent's process is stopped; its device goes on",
	.layer = FAULT_PROCESS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "the kernel shows the process as stopped",
	.detection = fault_detect_rnr,
	.inject = inject,
	.clear = clear,
	.prove = prove,
};
