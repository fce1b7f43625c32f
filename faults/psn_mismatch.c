/* SPDX-License-Identifier: MIT */
/* The starting PSN that an end's peer is told is changed on its way. */
#include "fault_common.h"

#include <errno.h>
#include <string.h>

#include "../harness/json.h"

#define PSN_MASK 0xffffff

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end whose sends are ahead or behind" },
	{ .name = "ahead",
	  .type = FAULT_PARAM_INT,
	  .min = 1,
	  .max = PSN_MASK,
	  .unit = "packets",
	  .help = "of what its peer expects" },
	{ .name = "behind",
	  .type = FAULT_PARAM_INT,
	  .min = 1,
	  .max = PSN_MASK,
	  .unit = "packets",
	  .help = "what its peer expects" },
	{ .name = NULL },
};

static int check(const json_t *args, struct error *e)
{
	if (!json_object_get(args, "ahead") == !json_object_get(args, "behind"))
		return error_set(e, -EINVAL, "psn_mismatch wants exactly one of ahead and behind");
	return 0;
}

/* How far the end's PSN is ahead of the expected one, modulo 2^24. */
static int64_t distance(const json_t *args)
{
	int64_t n = json_object_get(args, "ahead") ? json_int(args, "ahead", 0) : -json_int(args, "behind", 0);

	return n & PSN_MASK;
}

static int inject(struct fault *f, struct error *e)
{
	(void)f;
	(void)e;
	return 0;
}

static void on_handover(struct fault *f, const char *to_qp, json_t *handover)
{
	const char *peer = f->env->peer(f->env->ctl, fault_arg(f, "at"));

	if (!peer || strcmp(peer, to_qp) != 0)
		return;
	json_object_set_new(handover, "psn", json_integer((json_int(handover, "psn", 0) - distance(f->args)) & PSN_MASK));
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	const char *at = fault_arg(f, "at"), *peer = f->env->peer(f->env->ctl, at);
	int64_t sends = json_int(json_object_get(f->env->qp(f->env->ctl, at), "rts"), "sq_psn", -1);
	unsigned posted = f->env->posts_since(f->env->ctl, f, at);
	int64_t expects = peer ? json_int(json_object_get(f->env->qp(f->env->ctl, peer), "rtr"), "rq_psn", -1) : -1;

	(void)e;
	*ret = json_pack("{s:I,s:I,s:I,s:i}", "sq_psn", (json_int_t)sends, "peer_rq_psn", (json_int_t)expects, "asked_distance",
			 (json_int_t)distance(f->args), "posted", (int)posted);
	return posted && sends >= 0 && expects >= 0 && ((sends - expects) & PSN_MASK) == distance(f->args);
}

static enum detection detection(const json_t *args)
{
	return json_object_get(args, "ahead") ? DETECTION_SEQ_NAK : DETECTION_SILENT;
}

const struct fault_ops fault_psn_mismatch = {
	.name = "psn_mismatch",
	.help = "an end starts ahead of, or behind, the PSN that its peer expects",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "the sq_psn that the device answers for the end and the rq_psn for its peer are that far apart, and the end has "
		 "sent something",
	.detection = detection,
	.check = check,
	.inject = inject,
	.clear = fault_clear_nothing,
	.prove = prove,
	.on_handover = on_handover,
};
