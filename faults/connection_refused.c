/* SPDX-License-Identifier: MIT */
/* An end that rdma_cm asks for a connection gives none: it says no, or it does not listen. */
#include "fault_common.h"

#include <string.h>

#include "../harness/json.h"

static const char *const ways[] = { "reject", "nobody", NULL };

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end that is asked" },
	{ .name = "how",
	  .type = FAULT_PARAM_ENUM,
	  .values = ways,
	  .def = "reject",
	  .help = "it says no, with private data; nobody listens where it should; it does not answer, and the asking end gives "
		  "up" },
	{ .name = NULL },
};

static int inject(struct fault *f, struct error *e)
{
	(void)f;
	(void)e;
	return 0;
}

static const char *cm_refuses(struct fault *f, const char *qp)
{
	return fault_names(f, "at", qp) ? fault_arg(f, "how") : NULL;
}

static void cm_refused(struct fault *f, const char *qp, const char *reason)
{
	if (fault_names(f, "at", qp))
		json_object_set_new(f->state, "refused", json_string(reason ? reason : "no answer"));
}

/* The peer was told exactly that. */
static int prove(struct fault *f, json_t **ret, struct error *e)
{
	static const char *const told[] = { "CONSUMER_DEFINED", "INVALID_SERVICE_ID" };
	const char *how = fault_arg(f, "how"), *refused = json_str(f->state, "refused");
	int fired = 0;

	(void)e;
	for (size_t i = 0; refused && ways[i]; i++)
		fired |= strcmp(how, ways[i]) == 0 && strcmp(refused, told[i]) == 0;
	*ret = json_pack("{s:s}", "told", refused ? refused : "nothing: nobody asked");
	return fired;
}

const struct fault_ops fault_connection_refused = {
	.name = "connection_refused",
	.help = "an end gives no connection to whoever asks by rdma_cm",
	.layer = FAULT_PROCESS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.needs = (const char *const[]){ "cm", NULL },
	.proof = "the reason that the CM has told",
	.detection = fault_detect_none,
	.inject = inject,
	.clear = fault_clear_nothing,
	.prove = prove,
	.cm_refuses = cm_refuses,
	.cm_refused = cm_refused,
};
