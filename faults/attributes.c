/* SPDX-License-Identifier: MIT */
/* Ends that disagree about an attribute: the value is changed on its way into ibv_modify_qp. */
#include "fault_common.h"

#include <string.h>

#include "../harness/json.h"

/* What one of these faults changes, in which transition. */
struct change {
	const char *to;
	const char *attr; /* of the modify, and of the device's answer */
	const char *param;
};

static const struct change changes[] = {
	{ "RTR", "path_mtu", "mtu" },
	{ "INIT", "pkey_index", "index" },
	{ "RTR", "max_dest_rd_atomic", "max_dest_rd_atomic" },
};

static const struct change *change_of(const struct fault *f)
{
	for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
		if (json_object_get(f->args, changes[i].param))
			return &changes[i];
	return &changes[0];
}

static int inject(struct fault *f, struct error *e)
{
	(void)f;
	(void)e;
	return 0;
}

static void on_modify(struct fault *f, const char *qp, const char *to, json_t *set)
{
	const struct change *c = change_of(f);

	if (!fault_names(f, "at", qp) || strcmp(to, c->to) != 0)
		return;
	if (json_object_get(set, c->attr))
		json_object_set(f->state, "planned", json_object_get(set, c->attr));
	json_object_set(set, c->attr, json_object_get(f->args, c->param));
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	const struct change *c = change_of(f);
	const json_t *planned = json_object_get(f->state, "planned"), *asked = json_object_get(f->args, c->param);
	json_t *queried = planned ? fault_query(f, fault_arg(f, "at")) : NULL;
	const json_t *seen = json_object_get(queried, c->attr);
	/* A device may round up; that it is no longer the planned value is what counts. */
	bool fired = seen && planned && !json_equal((json_t *)seen, (json_t *)planned);

	(void)e;
	*ret = json_pack("{s:s,s:O?,s:O?,s:O?}", "attr", c->attr, "planned", planned, "asked", asked, "queried", seen);
	json_decref(queried);
	if (fired)
		json_object_set_new(f->state, "fired", json_true());
	return fired || json_object_get(f->state, "fired") != NULL;
}

static const struct fault_param mtu_params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end that has another path_mtu" },
	{ .name = "mtu",
	  .type = FAULT_PARAM_INT,
	  .required = true,
	  .min = 256,
	  .max = 4096,
	  .unit = "bytes",
	  .help = "256, 512, 1024, 2048 or 4096" },
	{ .name = NULL },
};
static const struct fault_param pkey_params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end that uses another P_Key" },
	{ .name = "index",
	  .type = FAULT_PARAM_INT,
	  .required = true,
	  .min = 0,
	  .max = 65535,
	  .help = "into the port's P_Key table" },
	{ .name = NULL },
};
static const struct fault_param rd_params[] = {
	{ .name = "at",
	  .type = FAULT_PARAM_END,
	  .required = true,
	  .help = "the end that serves fewer READs and atomics at a time" },
	{ .name = "max_dest_rd_atomic",
	  .type = FAULT_PARAM_INT,
	  .required = true,
	  .min = 0,
	  .max = 255,
	  .help = "than its peer may send" },
	{ .name = NULL },
};

#define ATTRIBUTE(id, n, text, par, found)                                                                                         \
	const struct fault_ops id = { .name = n,                                                                                   \
				      .help = text,                                                                                \
				      .layer = FAULT_VERBS,                                                                        \
				      .blast = FAULT_BLAST_PAIR,                                                                   \
				      .params = par,                                                                               \
				      .proof = "the device's own answer for the attribute differs from the planned value",         \
				      .detection = found,                                                                          \
				      .inject = inject,                                                                            \
				      .prove = prove,                                                                              \
				      .on_modify = on_modify }

ATTRIBUTE(fault_mtu_mismatch, "mtu_mismatch", "an end is connected with another path_mtu than its peer", mtu_params,
	  fault_detect_nak);
ATTRIBUTE(fault_pkey_index, "pkey_index", "an end uses another entry of the P_Key table", pkey_params, fault_detect_silent);
ATTRIBUTE(fault_rd_atomic_mismatch, "rd_atomic_mismatch", "an end serves fewer READs and atomics than its peer may send", rd_params,
	  fault_detect_nak);
