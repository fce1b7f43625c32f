/* SPDX-License-Identifier: MIT */
/* Receives come some time after the first message was sent to them. */
#include "fault_common.h"

#include <stdio.h>
#include <string.h>

#include "../harness/json.h"

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end whose receives come late" },
	{ .name = "by",
	  .type = FAULT_PARAM_DURATION,
	  .required = true,
	  .min = 1000,
	  .max = 60000000000LL,
	  .unit = "duration",
	  .help = "how long after its peer's first post" },
	{ .name = NULL },
};

static const char *const responder_counters[] = { "send_rnr_err", "out_of_buffer", NULL };

static void peer_queue(const struct fault *f, char *buf, size_t size)
{
	const char *peer = f->env->peer(f->env->ctl, fault_arg(f, "at"));

	snprintf(buf, size, "%s.send", peer ? peer : "?");
}

static int inject(struct fault *f, struct error *e)
{
	char queue[128];

	(void)e;
	peer_queue(f, queue, sizeof queue);
	fault_counters_keep(f, fault_agent(f, fault_arg(f, "at")));
	fault_wc_keep(f, queue, "SUCCESS");
	return 0;
}

static bool holds_receives(struct fault *f, const char *qp)
{
	return !json_object_get(f->state, "released") && fault_names(f, "at", qp);
}

static void on_post(struct fault *f, const char *qp)
{
	const char *peer = f->env->peer(f->env->ctl, fault_arg(f, "at"));

	if (!peer || strcmp(peer, qp) != 0 || json_object_get(f->state, "armed"))
		return;
	json_object_set_new(f->state, "armed", json_true());
	f->env->timer(f->env->ctl, f, json_u64(f->args, "by", 0));
}

/* What had completed until now had no receive of ours: nothing must have. */
static int release(struct fault *f, struct error *e)
{
	const char *peer = f->env->peer(f->env->ctl, fault_arg(f, "at"));
	char queue[128];

	if (json_object_get(f->state, "released"))
		return 0;
	peer_queue(f, queue, sizeof queue);
	json_object_set_new(f->state, "posted", json_integer(peer ? f->env->posts_since(f->env->ctl, f, peer) : 0));
	json_object_set_new(f->state, "early", json_integer(fault_wc_rise(f, queue, "SUCCESS")));
	json_object_set_new(f->state, "dropped", json_integer(peer ? fault_sent_unanswered(f, peer) : 0));
	json_object_set_new(f->state, "released", json_true());
	return f->env->release_receives(f->env->ctl, fault_arg(f, "at"), e);
}

static void on_timer(struct fault *f)
{
	struct error e = { "" };

	if (release(f, &e) < 0)
		json_object_set_new(f->state, "failed", json_string(e.text));
}

static int clear(struct fault *f, struct error *e)
{
	return release(f, e);
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	int64_t naks = fault_counters_rise(f, fault_agent(f, fault_arg(f, "at")), responder_counters);
	int64_t posted = json_int(f->state, "posted", 0), early = json_int(f->state, "early", 0);

	if (json_str(f->state, "failed"))
		return error_set(e, -5, "%s", json_str(f->state, "failed"));
	*ret = json_pack("{s:I,s:I,s:I}", "rnr_counters", (json_int_t)naks, "waiting_when_released", (json_int_t)posted,
			 "completed_before", (json_int_t)early);
	return naks > 0 ||
	       (json_object_get(f->state, "released") && posted > 0 && (early == 0 || json_int(f->state, "dropped", 0) > 0));
}

const struct fault_ops fault_late_receive = {
	.name = "late_receive",
	.help = "receives are posted only some time after the first message was sent to them",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "messages were waiting and none had completed when the receives came, or a receiver-not-ready NAK was counted; on "
		 "UC and UD: some had been sent",
	.detection = fault_detect_rnr,
	.inject = inject,
	.clear = clear,
	.prove = prove,
	.holds_receives = holds_receives,
	.on_post = on_post,
	.on_timer = on_timer,
};
