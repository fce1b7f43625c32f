/* SPDX-License-Identifier: MIT */
/* A CQ is made with less room than its queue has work: it overflows when nobody takes its completions in time. */
#include "fault_common.h"

#include <string.h>

#include "../harness/json.h"

static const char *const queues[] = { "send", "recv", NULL };

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end whose CQ it is; made anew it has its room" },
	{ .name = "queue", .type = FAULT_PARAM_ENUM, .values = queues, .def = "recv", .help = "of which of its queues" },
	{ .name = "depth",
	  .type = FAULT_PARAM_INT,
	  .min = 1,
	  .max = 1 << 20,
	  .unit = "entries",
	  .def = "1",
	  .help = "what it has room for; a device may make more of it" },
	{ .name = NULL },
};

static int inject(struct fault *f, struct error *e)
{
	(void)f;
	(void)e;
	return 0;
}

static const char *cq_of(const struct fault *f)
{
	const json_t *qp = plan_qp(f->env->plan(f->env->ctl), fault_arg(f, "at"));

	return json_str(qp, strcmp(fault_arg(f, "queue"), "send") == 0 ? "send_cq" : "recv_cq");
}

static void on_create(struct fault *f, const char *name, json_t *req)
{
	const char *cq = cq_of(f);

	if (!cq || strcmp(cq, name) != 0)
		return;
	json_object_set(f->state, "planned", json_object_get(req, "depth"));
	json_object_set(req, "depth", json_object_get(f->args, "depth"));
}

/* That it overflowed is what the scenario has to expect; this is what it was made with. */
static int prove(struct fault *f, json_t **ret, struct error *e)
{
	int64_t planned = json_int(f->state, "planned", 0), depth = json_int(f->args, "depth", 0);

	(void)e;
	*ret = json_pack("{s:I,s:I}", "planned", (json_int_t)planned, "asked", (json_int_t)depth);
	return planned > depth;
}

const struct fault_ops fault_cq_too_small = {
	.name = "cq_too_small",
	.help = "a CQ is made with less room than its queue needs",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "the CQ was made with fewer entries than planned",
	.detection = fault_detect_local,
	.inject = inject,
	.clear = fault_clear_nothing,
	.prove = prove,
	.on_create = on_create,
};
