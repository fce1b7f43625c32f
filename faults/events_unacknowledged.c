/* SPDX-License-Identifier: MIT */
/* Completion events are taken and not acknowledged: a CQ with such an event cannot be destroyed until it is. */
#include "fault_common.h"

#include "../harness/json.h"

static const struct fault_param params[] = {
	{ .name = "at",
	  .type = FAULT_PARAM_END,
	  .required = true,
	  .help = "the end whose CQs hold their events; clear acknowledges them" },
	{ .name = NULL },
};

/* ret_unacked: over both CQs of the end. */
static int each_cq(struct fault *f, const char *op, int64_t *ret_unacked, struct error *e)
{
	static const char *const queues[] = { "send_cq", "recv_cq" };
	const char *at = fault_arg(f, "at");
	const json_t *plan = plan_qp(f->env->plan(f->env->ctl), at);
	const char *done = NULL;
	int64_t unacked = 0;
	int rc = 0;

	for (size_t i = 0; i < 2 && !rc; i++) {
		const char *cq = json_str(plan, queues[i]);
		json_t *reply = NULL;

		if (!cq || (done && cq == done) ||
		    (i == 1 && json_equal(json_object_get(plan, queues[0]), json_object_get(plan, queues[1]))))
			continue;
		done = cq;
		rc = f->env->request(f->env->ctl, fault_agent(f, at), json_pack("{s:s,s:s}", "op", op, "cq", cq), &reply, e);
		unacked += json_int(reply, "unacked", 0);
		json_decref(reply);
	}
	if (!rc)
		*ret_unacked = unacked;
	return rc;
}

static int inject(struct fault *f, struct error *e)
{
	int64_t unacked;

	return each_cq(f, "cq_hold", &unacked, e);
}

static void keep_most(struct fault *f, int64_t unacked)
{
	if (unacked > json_int(f->state, "unacked", 0))
		json_object_set_new(f->state, "unacked", json_integer(unacked));
}

static int clear(struct fault *f, struct error *e)
{
	int64_t unacked = 0;
	int rc = each_cq(f, "cq_ack", &unacked, e);

	if (!rc)
		keep_most(f, unacked);
	return rc;
}

/* While active, holding once more tells how many are held; after clear, what clear found. */
static int prove(struct fault *f, json_t **ret, struct error *e)
{
	int64_t unacked = 0;

	if (f->active && each_cq(f, "cq_hold", &unacked, e) == 0)
		keep_most(f, unacked);
	unacked = json_int(f->state, "unacked", 0);
	*ret = json_pack("{s:I}", "unacknowledged", (json_int_t)unacked);
	return unacked > 0;
}

const struct fault_ops fault_events_unacknowledged = {
	.name = "events_unacknowledged",
	.help = "completion events of an end's CQs are taken but not acknowledged",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "how many events the agent holds unacknowledged",
	.detection = fault_detect_none,
	.inject = inject,
	.clear = clear,
	.prove = prove,
};
