/* SPDX-License-Identifier: MIT */
/* An end is told of its peer what was true in a former life: an old handshake reply. */
#include "fault_common.h"

#include <errno.h>
#include <string.h>

#include "../harness/json.h"

static const char *const whats[] = { "all", "qpn", "psn", "gid", "keys", NULL };

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end that is told the old values" },
	{ .name = "use", .type = FAULT_PARAM_NAME, .required = true, .help = "what `remember` kept, by its name" },
	{ .name = "what", .type = FAULT_PARAM_ENUM, .values = whats, .def = "all", .help = "which of the values are old" },
	{ .name = NULL },
};

static bool wants(const struct fault *f, const char *what)
{
	const char *asked = fault_arg(f, "what");

	return !asked || strcmp(asked, "all") == 0 || strcmp(asked, what) == 0;
}

static int inject(struct fault *f, struct error *e)
{
	const char *use = fault_arg(f, "use");

	if (!f->env->remembered(f->env->ctl, use))
		return error_set(e, -ENOENT, "stale_peer: nothing was remembered as %s", use ? use : "?");
	return 0;
}

/* Of one region alone its key is kept: the other keys are those of now. */
static void make_old(json_t *handover, const json_t *old, const char *what)
{
	json_t *value = json_deep_copy(json_object_get(old, what));

	if (!strcmp(what, "keys") && !json_object_get(old, "qpn"))
		json_object_update_missing(value, json_object_get(handover, what));
	json_object_set_new(handover, what, value);
}

static void on_handover(struct fault *f, const char *to_qp, json_t *handover)
{
	const json_t *old = f->env->remembered(f->env->ctl, fault_arg(f, "use"));

	int64_t life = json_int(f->env->qp(f->env->ctl, to_qp), "life", 0);

	if (!old || !fault_names(f, "at", to_qp))
		return;
	/* An old answer comes once: in its next life the end asks again, and is told the truth. */
	if (json_int(f->state, "life", life) != life)
		return;
	json_object_set_new(f->state, "life", json_integer((json_int_t)life));
	/* What the peer really has now, for the proof. */
	json_object_set_new(f->state, "true", json_deep_copy(handover));
	for (size_t i = 1; whats[i]; i++)
		if (wants(f, whats[i]) && json_object_get(old, whats[i]))
			make_old(handover, old, whats[i]);
	json_object_set_new(f->state, "told", json_deep_copy(handover));
}

static int prove(struct fault *f, json_t **ret, struct error *e);

/* While the old values are in force: a later life knows them no more. */
static void on_post(struct fault *f, const char *qp)
{
	const char *at = fault_arg(f, "at"), *peer = f->env->peer(f->env->ctl, at);
	json_t *evidence = NULL;

	if ((strcmp(qp, at) == 0 || (peer && strcmp(qp, peer) == 0)) && prove(f, &evidence, NULL) == 1)
		json_object_set(f->state, "evidence", evidence);
	json_decref(evidence);
}

/* The device's own answer counts, not what was put into the call. */
static bool device_has(const json_t *queried, const char *key, int64_t value)
{
	return json_int(queried, key, -1) == value;
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	const json_t *shown = json_object_get(f->state, "evidence");
	const json_t *truth = json_object_get(f->state, "true"), *told = json_object_get(f->state, "told");
	const json_t *rtr = json_object_get(f->env->qp(f->env->ctl, fault_arg(f, "at")), "rtr");
	unsigned posted = fault_pair_posted(f, fault_arg(f, "at"));
	bool fired = false;

	(void)e;
	if (shown) {
		*ret = json_deep_copy(shown);
		return 1;
	}
	if (wants(f, "qpn") && json_int(truth, "qpn", 0) != json_int(told, "qpn", 0))
		fired = fired || device_has(rtr, "dest_qpn", json_int(told, "qpn", 0));
	if (wants(f, "psn") && json_int(truth, "psn", 0) != json_int(told, "psn", 0))
		fired = fired || device_has(rtr, "rq_psn", json_int(told, "psn", 0));
	if (wants(f, "gid") && json_object_get(truth, "gid") &&
	    !json_equal(json_object_get(truth, "gid"), json_object_get(told, "gid")))
		fired = true;
	if (wants(f, "keys") && told && !json_equal(json_object_get(truth, "keys"), json_object_get(told, "keys")))
		fired = true;
	*ret = json_pack("{s:I,s:I,s:I,s:I,s:I,s:i}", "told_qpn", (json_int_t)json_int(told, "qpn", -1), "peer_qpn",
			 (json_int_t)json_int(truth, "qpn", -1), "device_dest_qpn", (json_int_t)json_int(rtr, "dest_qpn", -1),
			 "told_psn", (json_int_t)json_int(told, "psn", -1), "peer_psn", (json_int_t)json_int(truth, "psn", -1),
			 "posted", (int)posted);
	return fired && posted;
}

static enum detection detection(const json_t *args)
{
	const char *what = json_str(args, "what");

	return what && strcmp(what, "keys") == 0 ? DETECTION_NAK : DETECTION_SILENT;
}

const struct fault_ops fault_stale_peer = {
	.name = "stale_peer",
	.help = "an end is handed what its peer was in a former life",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "the values handed over differ from the peer's own, the device took them, and something was sent by them",
	.detection = detection,
	.inject = inject,
	.clear = fault_clear_nothing,
	.prove = prove,
	.on_handover = on_handover,
	.on_post = on_post,
};
