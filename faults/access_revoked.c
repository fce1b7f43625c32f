/* SPDX-License-Identifier: MIT */
/* A QP or an MR without a right that its peer relies on: from the start, or taken away later. */
#include "fault_common.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../harness/json.h"

static const char *const ofs[] = { "qp", "mr", NULL };
static const char *const rights[] = { "REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC", "LOCAL_WRITE", NULL };

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end whose QP or MR lacks the right" },
	{ .name = "of",
	  .type = FAULT_PARAM_ENUM,
	  .required = true,
	  .values = ofs,
	  .help = "the QP's access flags, or those of an MR" },
	{ .name = "right", .type = FAULT_PARAM_ENUM, .required = true, .values = rights, .help = "the right that is missing" },
	{ .name = "mr", .type = FAULT_PARAM_NAME, .def = "QP.mem", .help = "which MR; for LOCAL_WRITE the default is QP.rx" },
	{ .name = NULL },
};

static bool of_qp(const struct fault *f)
{
	return strcmp(fault_arg(f, "of"), "qp") == 0;
}

static int check(const json_t *args, struct error *e)
{
	const char *of = json_str(args, "of"), *right = json_str(args, "right");

	if (of && right && strcmp(of, "qp") == 0 && strcmp(right, "LOCAL_WRITE") == 0)
		return error_set(e, -EINVAL,
				 "access_revoked: a QP that cannot write its own memory is not what receives obey: say of: mr");
	if (of && strcmp(of, "qp") == 0 && json_object_get(args, "mr"))
		return error_set(e, -EINVAL, "access_revoked: mr: goes with of: mr");
	return 0;
}

static const char *mr_name(const struct fault *f, char *buf, size_t size)
{
	return fault_mr(f, strcmp(fault_arg(f, "right"), "LOCAL_WRITE") == 0 ? "rx" : "mem", buf, size);
}

/* The access without the right. Remote writers and atomics need LOCAL_WRITE: they go with it. New reference. */
static json_t *without(const json_t *access, const char *right)
{
	bool local = strcmp(right, "LOCAL_WRITE") == 0;
	json_t *rest = json_array(), *item;
	size_t i;

	json_array_foreach((json_t *)access, i, item) {
		const char *name = json_string_value(item);

		if (strcmp(name, right) == 0 ||
		    (local && (strcmp(name, "REMOTE_WRITE") == 0 || strcmp(name, "REMOTE_ATOMIC") == 0)))
			continue;
		json_array_append(rest, item);
	}
	return rest;
}

static const json_t *planned_access(const struct fault *f, const char *mr)
{
	const json_t *plan = f->env->plan(f->env->ctl);

	if (mr)
		return json_object_get(plan_find(plan, "mrs", mr), "access");
	return json_object_get(json_object_get(plan_qp(plan, fault_arg(f, "at")), "attr"), "access");
}

static bool exists(const struct fault *f)
{
	return json_bool(f->env->qp(f->env->ctl, fault_arg(f, "at")), "exists", false);
}

static bool in_state(const struct fault *f, const char *state)
{
	const char *seen = json_str(f->env->qp(f->env->ctl, fault_arg(f, "at")), "state");

	return seen && strcmp(seen, state) == 0;
}

static int inject(struct fault *f, struct error *e)
{
	char mr[160];
	json_t *rest;
	int rc;

	if (!exists(f))
		return 0;
	if (of_qp(f)) {
		if (!in_state(f, "RTS"))
			return 0;
		rest = without(planned_access(f, NULL), fault_arg(f, "right"));
		return fault_modify(f, fault_arg(f, "at"), "RTS", json_pack("{s:o}", "access", rest), e);
	}
	mr_name(f, mr, sizeof mr);
	rest = without(planned_access(f, mr), fault_arg(f, "right"));
	rc = f->env->mr_renew(f->env->ctl, mr, rest, e);
	json_decref(rest);
	if (rc)
		return rc;
	json_object_set_new(f->state, "created_without", json_true());
	return f->env->exchange(f->env->ctl, fault_pair(f, fault_arg(f, "at")), e);
}

static void on_modify(struct fault *f, const char *qp, const char *to, json_t *set)
{
	const json_t *access = json_object_get(set, "access");

	(void)to;
	if (of_qp(f) && access && fault_names(f, "at", qp))
		json_object_set_new(set, "access", without(access, fault_arg(f, "right")));
}

static void on_create(struct fault *f, const char *mr, json_t *req)
{
	char wanted[160];

	if (of_qp(f) || strcmp(mr_name(f, wanted, sizeof wanted), mr) != 0)
		return;
	json_object_set_new(req, "access", without(json_object_get(req, "access"), fault_arg(f, "right")));
	json_object_set_new(f->state, "created_without", json_true());
}

static int clear(struct fault *f, struct error *e)
{
	char mr[160];
	int rc;

	if (!exists(f))
		return 0;
	if (of_qp(f)) {
		/* In ERR nothing can be given back; the next life has the planned flags. */
		if (!in_state(f, "RTS"))
			return 0;
		return fault_modify(f, fault_arg(f, "at"), "RTS", json_pack("{s:O}", "access", planned_access(f, NULL)), e);
	}
	if (!json_object_get(f->state, "created_without"))
		return 0;
	rc = f->env->mr_renew(f->env->ctl, mr_name(f, mr, sizeof mr), NULL, e);
	return rc ? rc : f->env->exchange(f->env->ctl, fault_pair(f, fault_arg(f, "at")), e);
}

/* An MR cannot be asked for its rights; that it was registered without is what can be said. */
static int prove(struct fault *f, json_t **ret, struct error *e)
{
	const char *right = fault_arg(f, "right");
	unsigned posted = fault_pair_posted(f, fault_arg(f, "at"));
	char mr[160];
	json_t *queried;
	bool lacks;

	(void)e;
	/* A right that is gone while nobody posts anything breaks nothing. */
	if (!of_qp(f)) {
		lacks = json_object_get(f->state, "created_without") != NULL;
		*ret = json_pack("{s:s,s:b,s:i}", "mr", mr_name(f, mr, sizeof mr), "registered_without", (int)lacks, "posted",
				 (int)posted);
		return lacks && posted;
	}
	if (json_bool(f->state, "lacked", false)) {
		*ret = json_pack("{s:b,s:i}", "queried_without", 1, "posted", (int)posted);
		return posted > 0;
	}
	queried = fault_query(f, fault_arg(f, "at"));
	lacks = queried && json_is_array(json_object_get(queried, "access")) && !json_has(queried, "access", right);
	if (lacks)
		json_object_set_new(f->state, "lacked", json_true());
	*ret = json_pack("{s:b,s:i,s:O?}", "queried_without", (int)lacks, "posted", (int)posted, "access",
			 queried ? json_object_get(queried, "access") : NULL);
	json_decref(queried);
	return lacks && posted;
}

static enum detection detection(const json_t *args)
{
	const char *mr = json_str(args, "mr");
	size_t len = mr ? strlen(mr) : 0;

	/* The landing of a READ is the requester's own affair. */
	return len > 3 && strcmp(mr + len - 3, ".tx") == 0 ? DETECTION_LOCAL : DETECTION_NAK;
}

const struct fault_ops fault_access_revoked = {
	.name = "access_revoked",
	.help = "a QP or an MR lacks a right that its peer uses, from the start or from now on",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof =
		"the device answers the QP's flags without the right, or registered the MR without it, and an end has posted since",
	.detection = detection,
	.check = check,
	.inject = inject,
	.clear = clear,
	.prove = prove,
	.on_modify = on_modify,
	.on_create = on_create,
};
