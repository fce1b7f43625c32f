/* SPDX-License-Identifier: MIT */
/* An end ends its connection by rdma_cm: its QP goes to ERR, and its peer hears of it. */
#include "fault_common.h"

#include "../harness/json.h"
#include "../harness/units.h"

#define HEARD_NS (5 * NSEC_PER_SEC)

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end that takes leave" },
	{ .name = NULL },
};

static int ask_cm(struct fault *f, const char *op, json_t *more, struct error *e)
{
	const char *at = fault_arg(f, "at");

	json_object_update_new(more, json_pack("{s:s,s:o}", "op", op, "name", json_sprintf("%s.cm", at)));
	return f->env->request(f->env->ctl, fault_agent(f, at), more, NULL, e);
}

/* It has ended when the peer's answer is back. That none comes is no failure: then the fault has not fired. */
static int inject(struct fault *f, struct error *e)
{
	struct error ignored;
	int rc = ask_cm(f, "cm_disconnect", json_object(), e);

	if (!rc)
		json_object_set_new(
			f->state, "answered",
			json_boolean(ask_cm(f, "cm_wait",
					    json_pack("{s:s,s:I}", "event", "DISCONNECTED", "deadline_ns", (json_int_t)HEARD_NS),
					    &ignored) == 0));
	return rc;
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	(void)e;
	*ret = json_pack("{s:b}", "answered", json_bool(f->state, "answered", false));
	return json_bool(f->state, "answered", false);
}

const struct fault_ops fault_connection_left = {
	.name = "connection_left",
	.help = "an end disconnects by rdma_cm",
	.layer = FAULT_PROCESS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.needs = (const char *const[]){ "cm", NULL },
	.proof = "the event with which the CM tells that both ends know",
	.detection = fault_detect_local,
	.inject = inject,
	.clear = fault_clear_nothing,
	.prove = prove,
};
