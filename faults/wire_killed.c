/* SPDX-License-Identifier: MIT */
/* The wire's process dies or stands still: its link carries nothing in either direction, and neither end is told. */
#include "fault_common.h"

#include <signal.h>
#include <string.h>

#include "../harness/json.h"

static const char *const hows[] = { "kill", "stop", NULL };
static const struct fault_param params[] = {
	{ .name = "how",
	  .type = FAULT_PARAM_ENUM,
	  .values = hows,
	  .def = "kill",
	  .help = "killed: its rules go with it, and clear starts another one on the same devices; stopped: clear lets it run on, "
		  "and "
		  "what came in meanwhile goes its way then" },
	{ .name = NULL },
};
static const char *const needs[] = { "wire", NULL };

static bool is_stop(const struct fault *f)
{
	const char *how = fault_arg(f, "how");

	return how && strcmp(how, "stop") == 0;
}

static int inject(struct fault *f, struct error *e)
{
	char status[64] = "";
	int rc = f->env->wire_signal(f->env->ctl, is_stop(f) ? SIGSTOP : SIGKILL, status, sizeof status, e);

	if (rc == 0)
		json_object_set_new(f->state, "status", json_string(status));
	return rc;
}

static int clear(struct fault *f, struct error *e)
{
	return is_stop(f) ? f->env->wire_signal(f->env->ctl, SIGCONT, NULL, 0, e) : f->env->wire_restart(f->env->ctl, e);
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	const char *status = json_str(f->state, "status");

	(void)e;
	*ret = json_pack("{s:s}", "process", status ? status : "runs");
	return status && strcmp(status, is_stop(f) ? "stopped" : "killed by signal 9") == 0;
}

const struct fault_ops fault_wire_killed = {
	.name = "wire_killed",
	.help = "the wire's process is killed, or stopped: nothing gets through, either way",
	.layer = FAULT_PROCESS,
	.blast = FAULT_BLAST_LINK,
	.params = params,
	.needs = needs,
	.proof = "how the process ended, or that the kernel shows it as stopped",
	.detection = fault_detect_silent,
	.inject = inject,
	.clear = clear,
	.prove = prove,
};
