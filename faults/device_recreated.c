/* SPDX-License-Identifier: MIT */
/*
 * The RDMA device under an end is taken away while it is in use, and clear makes it anew under its name. Its agents give up what
 * they have of it when it goes, as programs have to; their peers hear of nothing but silence.
 */
#include "link_common.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../harness/json.h"

static const char *agent(const struct fault *f)
{
	return fault_agent(f, fault_arg(f, "at"));
}

/* The kernel gives each device a number, and none of them twice. */
static int number(struct fault *f, int64_t *ret, struct error *e)
{
	const char *rdma = json_str(f->env->device(f->env->ctl, agent(f)), "rdma");
	json_t *shown = NULL;
	char args[96];
	int rc;

	if (!rdma)
		rdma = json_str(f->state, "rdma");
	if (!rdma)
		return error_set(e, -ENODEV, "device_recreated: %s has no RDMA device in this lab", fault_arg(f, "at"));
	json_object_set_new(f->state, "rdma", json_string(rdma));
	snprintf(args, sizeof args, "dev show %s", json_str(f->state, "rdma"));
	rc = f->env->lab(f->env->ctl, "rdma", args, &shown, e);
	if (rc >= 0 && !json_object_get(link_first(shown), "ifindex"))
		rc = error_set(e, -ENODEV, "%s: rdma shows no such device", json_str(f->state, "rdma"));
	if (rc >= 0)
		*ret = json_int(link_first(shown), "ifindex", -1);
	json_decref(shown);
	return rc < 0 ? rc : 0;
}

static int inject(struct fault *f, struct error *e)
{
	int64_t before = -1;
	int rc = number(f, &before, e);

	if (!rc)
		rc = f->env->device_remove(f->env->ctl, agent(f), e);
	if (!rc)
		json_object_set_new(f->state, "number_before", json_integer(before));
	return rc;
}

static int clear(struct fault *f, struct error *e)
{
	int64_t after = -1;
	int rc = f->env->device_make(f->env->ctl, agent(f), e);

	if (!rc)
		rc = number(f, &after, e);
	if (!rc)
		json_object_set_new(f->state, "number_after", json_integer(after));
	return rc;
}

/* That it is gone was waited for; what is there afterwards must be another one. */
static int prove(struct fault *f, json_t **ret, struct error *e)
{
	int64_t before = json_int(f->state, "number_before", -1), after = json_int(f->state, "number_after", -1);

	(void)e;
	*ret = json_pack("{s:s,s:I}", "device", json_str(f->state, "rdma") ? json_str(f->state, "rdma") : "", "number_before",
			 (json_int_t)before);
	if (!f->active && after >= 0)
		json_object_set_new(*ret, "number_after", json_integer(after));
	return before >= 0 && (f->active || (after >= 0 && after != before));
}

const struct fault_ops fault_device_recreated = {
	.name = "device_recreated",
	.help = "an end's RDMA device goes away under its agents, and clear makes it anew",
	.layer = FAULT_LINK,
	.blast = FAULT_BLAST_DEVICE,
	.params = link_end_params,
	.proof = "the device is gone, and the new one has another number in the kernel",
	.takes_device = true,
	.detection = fault_detect_silent,
	.inject = inject,
	.clear = clear,
	.prove = prove,
};
