/* SPDX-License-Identifier: MIT */
/* An agent's process is killed and another one takes its place at once: its peers still have what the first one told them. */
#include "fault_common.h"

#include <signal.h>
#include <string.h>

#include "../harness/json.h"

static const struct fault_param params[] = {
	{ .name = "agent", .type = FAULT_PARAM_AGENT, .required = true, .help = "which agent; it has nothing but its device open" },
	{ .name = NULL },
};

static int inject(struct fault *f, struct error *e)
{
	const char *agent = fault_arg(f, "agent");
	char status[64] = "";
	int rc = f->env->signal(f->env->ctl, agent, SIGKILL, status, sizeof status, e);

	if (rc == 0)
		rc = f->env->restart(f->env->ctl, agent, e);
	if (rc < 0)
		return rc;
	json_object_set_new(f->state, "status", json_string(status));
	return 0;
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	const char *status = json_str(f->state, "status");
	const json_t *device = f->env->device(f->env->ctl, fault_arg(f, "agent"));

	(void)e;
	*ret = json_pack("{s:s,s:b}", "process", status ? status : "runs", "again", device != NULL);
	return status && strcmp(status, "killed by signal 9") == 0 && device;
}

const struct fault_ops fault_agent_restarted = {
	.name = "agent_restarted",
	.help = "an agent is killed and started again at once",
	.layer = FAULT_PROCESS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "how the first process ended, and that the next one has its device open",
	.detection = fault_detect_silent,
	.inject = inject,
	.clear = fault_clear_nothing,
	.prove = prove,
};
