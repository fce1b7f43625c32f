/* SPDX-License-Identifier: MIT */
/* A QP is made with its two CQs in each other's place: sends complete where receives are looked for. */
#include "fault_common.h"

#include "../harness/json.h"

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end whose QP it is" },
	{ .name = NULL },
};

static int inject(struct fault *f, struct error *e)
{
	(void)f;
	(void)e;
	return 0;
}

static void on_create(struct fault *f, const char *name, json_t *req)
{
	json_t *send = json_object_get(req, "send_cq"), *recv = json_object_get(req, "recv_cq");

	if (!fault_names(f, "at", name) || !send || json_equal(send, recv))
		return;
	json_incref(send);
	json_object_set(req, "send_cq", recv);
	json_object_set_new(req, "recv_cq", send);
	json_object_set(f->state, "sends", recv);
	json_object_set(f->state, "receives", send);
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	const char *sends = json_str(f->state, "sends"), *receives = json_str(f->state, "receives");

	(void)e;
	*ret = json_pack("{s:s,s:s}", "sends_complete_to", sends ? sends : "their own", "receives_complete_to",
			 receives ? receives : "their own");
	return sends != NULL;
}

const struct fault_ops fault_cq_swapped = {
	.name = "cq_swapped",
	.help = "a QP's queues complete into each other's CQ",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "the QP was made with its CQs in each other's place, and they are two",
	.detection = fault_detect_none,
	.inject = inject,
	.clear = fault_clear_nothing,
	.prove = prove,
	.on_create = on_create,
};
