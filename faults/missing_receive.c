/* SPDX-License-Identifier: MIT */
/* Keeps back every receive that the harness would post by itself at an end: SENDs to it find no receive. */
#include "fault_common.h"

#include <stdio.h>
#include <string.h>

#include "../harness/json.h"

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_ENDS, .required = true, .help = "the ends whose receives are kept back" },
	{ .name = NULL },
};

/* rxe counts at both ends; mlx5 and others call it rnr_nak_retry_err. */
static const char *const responder_counters[] = { "send_rnr_err", "out_of_buffer", NULL };
static const char *const requester_counters[] = { "rcvd_rnr_err", "retry_rnr_exceeded_err", "rnr_nak_retry_err", NULL };

static int inject(struct fault *f, struct error *e)
{
	(void)e;
	for (size_t i = 0; i < fault_names_n(f, "at"); i++) {
		const char *qp = fault_name_at(f, "at", i), *peer = f->env->peer(f->env->ctl, qp);
		char queue[128];

		fault_counters_keep(f, fault_agent(f, qp));
		if (!peer)
			continue;
		snprintf(queue, sizeof queue, "%s.send", peer);
		fault_counters_keep(f, fault_agent(f, peer));
		fault_wc_keep(f, queue, "RNR_RETRY_EXC_ERR");
		fault_wc_keep(f, queue, "SUCCESS");
	}
	return 0;
}

static bool holds_receives(struct fault *f, const char *qp)
{
	return fault_names(f, "at", qp);
}

static int clear(struct fault *f, struct error *e)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < fault_names_n(f, "at"); i++)
		rc = f->env->release_receives(f->env->ctl, fault_name_at(f, "at", i), e);
	return rc;
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	int64_t refused = 0, gave_up = 0, dropped = 0;

	(void)e;
	for (size_t i = 0; i < fault_names_n(f, "at"); i++) {
		const char *qp = fault_name_at(f, "at", i), *peer = f->env->peer(f->env->ctl, qp);
		char queue[128];

		refused += fault_counters_rise(f, fault_agent(f, qp), responder_counters);
		if (!peer)
			continue;
		snprintf(queue, sizeof queue, "%s.send", peer);
		refused += fault_counters_rise(f, fault_agent(f, peer), requester_counters);
		gave_up += fault_wc_rise(f, queue, "RNR_RETRY_EXC_ERR");
		dropped += fault_sent_unanswered(f, peer);
	}
	*ret = json_pack("{s:I,s:I}", "rnr_counters", (json_int_t)refused, "rnr_retry_exc_err", (json_int_t)gave_up);
	if (dropped)
		json_object_set_new(*ret, "sent_unanswered", json_integer(dropped));
	return refused > 0 || gave_up > 0 || dropped > 0;
}

const struct fault_ops fault_missing_receive = {
	.name = "missing_receive",
	.help = "no receive is posted at an end: what is sent to it is refused until the sender gives up",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "a device counted a receiver-not-ready NAK, or a sender gave up with RNR_RETRY_EXC_ERR; on UC and UD: a message "
		 "was "
		 "sent towards the end that has none",
	.detection = fault_detect_rnr,
	.inject = inject,
	.clear = clear,
	.prove = prove,
	.holds_receives = holds_receives,
};
