/* SPDX-License-Identifier: MIT */
/* What a QP stands on, and the QP itself: the requests that make what is not there. */
#include "controller_case.h"

#include <string.h>

#include "controller_xrc.h"
#include "json.h"
#include "units.h"

#define GONE_NS NSEC_PER_SEC

static void copy(json_t *to, const json_t *from, const char *key)
{
	json_t *v = json_object_get(from, key);

	if (v && !json_is_null(v))
		json_object_set(to, key, v);
}

/* What is fixed at its creation: what a recovery said of it, else the plan's. */
static void copy_made(json_t *to, const struct object *qp, const char *key)
{
	copy(to, json_object_get(qp->override_attr, key) ? qp->override_attr : qp->plan, key);
}

static json_t *create_pd_cq(struct case_run *r, const struct object *o)
{
	json_t *req = json_pack("{s:s,s:s,s:o}", "op", o->type == OBJECT_PD ? "pd_create" : "cq_create", "name", o->name, "dev",
				json_sprintf("dev.%s", o->agent));

	copy(req, o->plan, "depth");
	copy(req, o->plan, "poll");
	copy(req, o->plan, "api");
	faults_on_create(r, o->name, req);
	return req;
}

/* What lives in a protection domain, which is there before it; keys of the plan that go along, ends with NULL. */
static json_t *create_in_pd(struct case_run *r, struct ops *ops, const struct object *o, const char *op, const char *const keys[])
{
	json_t *req = json_pack("{s:s,s:s}", "op", op, "name", o->name);

	link_create(r, ops, ctl_object_find(r, json_str(o->plan, "pd")));
	copy(req, o->plan, "pd");
	for (size_t i = 0; keys[i]; i++)
		copy(req, o->plan, keys[i]);
	return req;
}

static json_t *create_xrcd(const struct object *o)
{
	return json_pack("{s:s,s:s,s:o}", "op", "xrcd_open", "name", o->name, "dev", json_sprintf("dev.%s", o->agent));
}

static json_t *create_srq(struct case_run *r, struct ops *ops, const struct object *o)
{
	link_create(r, ops, ctl_object_find(r, json_str(o->plan, "xrcd")));
	link_create(r, ops, ctl_object_find(r, json_str(o->plan, "cq")));
	return create_in_pd(r, ops, o, "srq_create", (const char *const[]){ "depth", "max_sge", "limit", "xrcd", "cq", NULL });
}

static void create_one_srq(struct case_run *r, struct ops *ops, struct object *srq, const char *by)
{
	(void)by;
	link_create(r, ops, srq);
}

static json_t *create_mr(struct case_run *r, struct ops *ops, const struct object *o)
{
	json_t *req = create_in_pd(r, ops, o, "mr_create", (const char *const[]){ "bytes", NULL });

	json_object_set_new(req, "access", json_deep_copy(json_object_get(o->plan, "access")));
	faults_on_create(r, o->name, req);
	return req;
}

static json_t *create_mw(struct case_run *r, struct ops *ops, const struct object *o)
{
	return create_in_pd(r, ops, o, "mw_create", (const char *const[]){ "type", NULL });
}

const struct object *link_receive_mr(const struct object *qp)
{
	for (const struct object *o = qp->keyed; o; o = o->keyed)
		if (o->is_rx)
			return o;
	return NULL;
}

static void create_keyed(struct case_run *r, struct ops *ops, const struct object *qp, enum object_type type, struct object *first)
{
	for (struct object *o = first; o; o = o->keyed)
		if (o->type == type && strcmp(o->agent, qp->agent) == 0)
			link_create(r, ops, o);
}

static json_t *create_qp(struct case_run *r, struct ops *ops, const struct object *qp)
{
	static const char *const stands_on[] = { "pd", "send_cq", "recv_cq", "srq", "xrcd" };
	json_t *req = json_pack("{s:s,s:s}", "op", "qp_create", "name", qp->name), *cap;
	const char *key;
	json_t *value;

	for (size_t i = 0; i < sizeof stands_on / sizeof stands_on[0]; i++) {
		link_create(r, ops, ctl_object_find(r, json_str(qp->plan, stands_on[i])));
		copy(req, qp->plan, stands_on[i]);
	}
	srqs_each(r, qp, ops, NULL, create_one_srq);
	/* MRs that no single QP owns come with the first QP of their agent. */
	create_keyed(r, ops, qp, OBJECT_MR, r->keyed);
	create_keyed(r, ops, qp, OBJECT_MR, qp->keyed);
	create_keyed(r, ops, qp, OBJECT_MW, r->keyed);
	if (is_datagram(qp))
		datagram_handles(r, ops, qp);
	copy(req, qp->plan, "type");
	copy_made(req, qp, "signal_all");
	copy_made(req, qp, "api");
	cap = json_object();
	json_object_foreach(json_object_get(qp->plan, "cap"), key, value) {
		int64_t n;

		if (value_resolve(r, qp_cap(qp, key), 0, &n, NULL) == 0)
			json_object_set_new(cap, key, json_integer(n));
	}
	json_object_set_new(req, "cap", cap);
	if (link_receive_mr(qp))
		json_object_set_new(req, "rx", json_string(link_receive_mr(qp)->name));
	faults_on_create(r, qp->name, req);
	return req;
}

static bool queued(const struct ops *ops, const struct object *o)
{
	const struct op *op;

	HASH_FIND_STR(ops->made, o->name, op);
	return op != NULL;
}

static bool has_gone(void *user)
{
	return !((struct object *)user)->leaving;
}

void link_create(struct case_run *r, struct ops *ops, struct object *o)
{
	json_t *req = NULL;
	struct op *op;

	/* What blocked its destruction may be out of the way by now: a new life waits a little for the old one's end. */
	if (o && o->leaving)
		case_wait(r, has_gone, o, now_ns() + GONE_NS);
	if (!o || o->exists || queued(ops, o))
		return;
	switch (o->type) {
	case OBJECT_PD:
	case OBJECT_CQ:
		req = create_pd_cq(r, o);
		break;
	case OBJECT_SRQ:
		req = create_srq(r, ops, o);
		break;
	case OBJECT_XRCD:
		req = create_xrcd(o);
		break;
	case OBJECT_MR:
		req = create_mr(r, ops, o);
		break;
	case OBJECT_MW:
		req = create_mw(r, ops, o);
		break;
	case OBJECT_AH:
		req = datagram_create_ah(r, ops, o);
		break;
	case OBJECT_QP:
		req = create_qp(r, ops, o);
		break;
	default:
		return;
	}
	/* An agent that was started anew has not counted the lives before it. */
	if (o->life)
		json_object_set_new(req, "life", json_integer(o->life + 1));
	op = ops_add(ops, o->agent, req);
	if (op)
		HASH_ADD_KEYPTR(hh, ops->made, o->name, strlen(o->name), op);
}
