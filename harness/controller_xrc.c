/* SPDX-License-Identifier: MIT */
/* Extended reliable connections: which SRQ a request is for, and by what number its sender knows it. */
#include "controller_xrc.h"

#include <string.h>

#include "json.h"

#define SRQN_MASK 0xffffffu

static bool is_a(const struct object *qp, const char *type)
{
	const char *t = json_str(qp->plan, "type");

	return t && strcmp(t, type) == 0;
}

bool xrc_sends(const struct object *qp)
{
	return is_a(qp, "XRC_SEND");
}

bool xrc_receives(const struct object *qp)
{
	return is_a(qp, "XRC_RECV");
}

const char *xrc_srq(struct case_run *r, const struct object *qp, const json_t *spec)
{
	const struct object *peer = ctl_object_find(r, qp->peer);

	return json_str(spec, "srq") ? json_str(spec, "srq") : json_str(peer ? peer->plan : NULL, "srq");
}

void xrc_address(struct case_run *r, const struct object *qp, const json_t *spec, json_t *req)
{
	const char *srq = xrc_srq(r, qp, spec), *which = json_str(spec, "srqn");
	uint32_t number;

	if (!xrc_sends(qp))
		return;
	number = (uint32_t)json_int(json_object_get(qp->told, "srqns"), srq ? srq : "", 0);
	if (which && strcmp(which, "wrong") == 0)
		number = ~number & SRQN_MASK;
	json_object_set_new(req, "remote_srqn", json_integer(number));
}

json_t *xrc_srqns(struct case_run *r, const struct object *qp)
{
	json_t *all = json_object(), *name;
	size_t i;

	json_array_foreach(json_object_get(qp->plan, "srqs"), i, name) {
		const struct object *srq = ctl_object_find(r, json_string_value(name));

		if (srq && srq->exists)
			json_object_set(all, srq->name, json_object_get(srq->ret, "srqn"));
	}
	return all;
}

void srqs_each(struct case_run *r, const struct object *qp, struct ops *ops, const char *by,
	       void (*call)(struct case_run *r, struct ops *ops, struct object *srq, const char *by))
{
	const json_t *all = json_object_get(qp->plan, "srqs"), *name;
	struct object *one = all ? NULL : ctl_object_find(r, json_str(qp->plan, "srq"));
	size_t i;

	if (one)
		call(r, ops, one, by);
	json_array_foreach(all, i, name) {
		struct object *srq = ctl_object_find(r, json_string_value(name));

		if (srq)
			call(r, ops, srq, by);
	}
}
