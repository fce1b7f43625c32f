/* SPDX-License-Identifier: MIT */
/* An MR is registered anew and shorter, as by somebody who counts its bytes in another way than its peer. */
#include "fault_common.h"

#include <string.h>

#include "../harness/json.h"

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end whose MR is shorter" },
	{ .name = "mr", .type = FAULT_PARAM_NAME, .def = "QP.mem", .help = "which MR" },
	{ .name = "size",
	  .type = FAULT_PARAM_SIZE,
	  .required = true,
	  .min = 1,
	  .max = 1LL << 31,
	  .unit = "bytes",
	  .help = "what is left of it" },
	{ .name = NULL },
};

static int renew(struct fault *f, struct error *e)
{
	char mr[160];
	int rc = f->env->mr_renew(f->env->ctl, fault_mr(f, "mem", mr, sizeof mr), NULL, e);

	return rc ? rc : f->env->exchange(f->env->ctl, fault_pair(f, fault_arg(f, "at")), e);
}

/* Before the connect it is made short, after it made anew. */
static int inject(struct fault *f, struct error *e)
{
	if (!json_bool(f->env->qp(f->env->ctl, fault_arg(f, "at")), "exists", false))
		return 0;
	return renew(f, e);
}

static void on_create(struct fault *f, const char *mr, json_t *req)
{
	json_int_t size = (json_int_t)json_int(f->args, "size", 0);
	char wanted[160];

	if (json_bool(f->state, "cleared", false) || strcmp(fault_mr(f, "mem", wanted, sizeof wanted), mr) != 0 ||
	    size >= json_int(req, "bytes", 0))
		return;
	json_object_set_new(f->state, "was", json_integer((json_int_t)json_int(req, "bytes", 0)));
	json_object_set_new(req, "bytes", json_integer(size));
}

static int clear(struct fault *f, struct error *e)
{
	json_object_set_new(f->state, "cleared", json_true());
	return json_object_get(f->state, "was") ? renew(f, e) : 0;
}

/* An MR cannot be asked for its length; that it was registered so short is what can be said. */
static int prove(struct fault *f, json_t **ret, struct error *e)
{
	int64_t was = json_int(f->state, "was", 0);
	char mr[160];

	(void)e;
	*ret = json_pack("{s:s,s:I,s:I,s:i}", "mr", fault_mr(f, "mem", mr, sizeof mr), "was", (json_int_t)was, "registered",
			 (json_int_t)json_int(f->args, "size", 0), "posted", (int)fault_pair_posted(f, fault_arg(f, "at")));
	return was > 0 && fault_pair_posted(f, fault_arg(f, "at"));
}

const struct fault_ops fault_mr_shrunk = {
	.name = "mr_shrunk",
	.help = "an MR is registered anew, shorter than its peer believes; clear registers all of it",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "the MR was registered with fewer bytes than planned, and an end has posted since",
	.detection = fault_detect_nak,
	.inject = inject,
	.clear = clear,
	.prove = prove,
	.on_create = on_create,
};
