/* SPDX-License-Identifier: MIT */
/* Keeps back every receive that the harness would post to an SRQ: whoever sends to one of its QPs finds none. */
#include "fault_common.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../harness/json.h"

static const struct fault_param params[] = {
	{ .name = "srq", .type = FAULT_PARAM_NAME, .required = true, .help = "the SRQ that stays empty; clear fills it" },
	{ .name = NULL },
};

static const char *const responder_counters[] = { "send_rnr_err", "out_of_buffer", NULL };

/* Calls fn for each QP of the plan that the SRQ feeds. */
static void each_fed(struct fault *f, void (*fn)(struct fault *f, const char *qp, void *user), void *user)
{
	const json_t *qp;
	size_t i;

	json_array_foreach(json_object_get(f->env->plan(f->env->ctl), "qps"), i, qp)
		if (json_str(qp, "srq") && strcmp(json_str(qp, "srq"), fault_arg(f, "srq")) == 0)
			fn(f, json_str(qp, "name"), user);
}

static void peer_queue(struct fault *f, const char *qp, char *buf, size_t size)
{
	const char *peer = f->env->peer(f->env->ctl, qp);

	snprintf(buf, size, "%s.send", peer ? peer : "?");
}

static void keep(struct fault *f, const char *qp, void *user)
{
	char queue[128];

	(void)user;
	peer_queue(f, qp, queue, sizeof queue);
	fault_counters_keep(f, fault_agent(f, qp));
	fault_wc_keep(f, queue, "RNR_RETRY_EXC_ERR");
	fault_wc_keep(f, queue, "SUCCESS");
}

static int inject(struct fault *f, struct error *e)
{
	if (!plan_find(f->env->plan(f->env->ctl), "srqs", fault_arg(f, "srq")))
		return error_set(e, -ENOENT, "srq_dry: there is no SRQ %s in the plan", fault_arg(f, "srq"));
	each_fed(f, keep, NULL);
	return 0;
}

static bool holds_receives(struct fault *f, const char *queue)
{
	return strcmp(fault_arg(f, "srq"), queue) == 0;
}

static int clear(struct fault *f, struct error *e)
{
	return f->env->release_receives(f->env->ctl, fault_arg(f, "srq"), e);
}

static void count(struct fault *f, const char *qp, void *user)
{
	int64_t *seen = user;
	int64_t rise = fault_counters_rise(f, fault_agent(f, qp), responder_counters);
	char queue[128];

	peer_queue(f, qp, queue, sizeof queue);
	seen[0] = rise > seen[0] ? rise : seen[0]; /* of the device, not of one QP */
	seen[1] += fault_wc_rise(f, queue, "RNR_RETRY_EXC_ERR");
	if (f->env->peer(f->env->ctl, qp))
		seen[2] += fault_sent_unanswered(f, f->env->peer(f->env->ctl, qp));
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	int64_t seen[3] = { 0, 0, 0 };

	(void)e;
	each_fed(f, count, seen);
	*ret = json_pack("{s:I,s:I}", "rnr_counters", (json_int_t)seen[0], "rnr_retry_exc_err", (json_int_t)seen[1]);
	if (seen[2])
		json_object_set_new(*ret, "sent_unanswered", json_integer(seen[2]));
	return seen[0] > 0 || seen[1] > 0 || seen[2] > 0;
}

const struct fault_ops fault_srq_dry = {
	.name = "srq_dry",
	.help = "no receive is posted to an SRQ: what is sent to its QPs is refused until the senders give up",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.needs = (const char *const[]){ "srq", NULL },
	.proof = "the device counted a receiver-not-ready NAK, or a sender gave up with RNR_RETRY_EXC_ERR; on UC and UD: a message "
		 "was sent towards a QP that it feeds",
	.detection = fault_detect_rnr,
	.inject = inject,
	.clear = clear,
	.prove = prove,
	.holds_receives = holds_receives,
};
