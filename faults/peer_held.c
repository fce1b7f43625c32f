/* SPDX-License-Identifier: MIT */
/* One end stays behind while the other is connected: RESET and INIT answer nothing, RTR receives but does not send. */
#include "fault_common.h"

#include <string.h>

#include "../harness/json.h"

static const char *const states[] = { "RESET", "INIT", "RTR", NULL };

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end that stays behind" },
	{ .name = "in",
	  .type = FAULT_PARAM_ENUM,
	  .required = true,
	  .values = states,
	  .help = "the state it is held in; clear lets it go on" },
	{ .name = NULL },
};

static int inject(struct fault *f, struct error *e)
{
	(void)f;
	(void)e;
	return 0;
}

static const char *holds_state(struct fault *f, const char *qp)
{
	return fault_names(f, "at", qp) ? fault_arg(f, "in") : NULL;
}

static int clear(struct fault *f, struct error *e)
{
	return f->env->resume_connect(f->env->ctl, fault_arg(f, "at"), e);
}

/* Asked while it is held (and only then can it say yes): is the device's QP there, with its peer gone further? */
static int prove(struct fault *f, json_t **ret, struct error *e)
{
	const char *qp = fault_arg(f, "at"), *peer = f->env->peer(f->env->ctl, qp), *in = fault_arg(f, "in");
	const char *other = peer ? json_str(f->env->qp(f->env->ctl, peer), "state") : NULL;
	json_t *queried = fault_query(f, qp);
	const char *seen = json_str(queried, "state");
	bool held = seen && strcmp(seen, in) == 0 && other && (strcmp(other, "RTS") == 0 || strcmp(other, "ERR") == 0);

	(void)e;
	*ret = json_pack("{s:s,s:s}", "held", seen ? seen : "?", "peer", other ? other : "?");
	json_decref(queried);
	return held;
}

static enum detection detection(const json_t *args)
{
	const char *in = json_str(args, "in");

	return in && strcmp(in, "RTR") == 0 ? DETECTION_NONE : DETECTION_SILENT;
}

const struct fault_ops fault_peer_held = {
	.name = "peer_held",
	.help = "one end is held in RESET, INIT or RTR while its peer is connected to it",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "the device answers the held state for one end while its peer is beyond it",
	.detection = detection,
	.inject = inject,
	.clear = clear,
	.prove = prove,
	.holds_state = holds_state,
};
