/* SPDX-License-Identifier: MIT */
/* From what there is to connected: INIT, receives, handover, RTR, RTS; each end as far as it is wanted and no fault holds it. */
#include "controller_case.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "controller_xrc.h"
#include "json.h"

/* An attribute may be a reference to what a device returned. */
static void set_attr(struct case_run *r, json_t *set, const struct object *qp, const char *name)
{
	const json_t *v = qp_attr(qp, name);
	int64_t n;

	if (!v || json_is_null(v))
		return;
	if (json_is_object(v)) {
		if (value_resolve(r, v, 0, &n, NULL) == 0)
			json_object_set_new(set, name, json_integer(n));
		return;
	}
	json_object_set(set, name, (json_t *)v);
}

static bool is_rc(const struct object *qp)
{
	const char *t = json_str(qp->plan, "type");

	return t && strcmp(t, "RC") == 0;
}

/* It asks for answers, and waits for them. */
static bool is_asking(const struct object *qp)
{
	return is_rc(qp) || xrc_sends(qp);
}

/* It gives answers to who waits for them. */
static bool is_answering(const struct object *qp)
{
	return is_rc(qp) || xrc_receives(qp);
}

static void attrs_init(struct case_run *r, struct object *qp, json_t *set)
{
	const struct ctl_agent *a = agent_find(r, qp->agent);

	set_attr(r, set, qp, "pkey_index");
	if (a && a->lab_device)
		json_object_set_new(set, "port", json_integer(a->lab_device->port));
	set_attr(r, set, qp, is_datagram(qp) ? "qkey" : "access");
}

static void attrs_rtr(struct case_run *r, struct object *qp, json_t *set)
{
	static const char *const common[] = { "path_mtu", "hop_limit", "traffic_class", "sl", "flow_label", "gid_index" };
	struct ctl_agent *a = agent_find(r, qp->agent);

	if (is_datagram(qp))
		return;
	for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
		set_attr(r, set, qp, common[i]);
	if (a)
		gid_refresh(a);
	if (!json_object_get(set, "gid_index") && json_object_get(a ? a->device : NULL, "gid_index"))
		json_object_set(set, "gid_index", json_object_get(a->device, "gid_index"));
	if (a && a->lab_device)
		json_object_set_new(set, "port", json_integer(a->lab_device->port));
	if (qp->told) {
		json_object_set(set, "dest_qpn", json_object_get(qp->told, "qpn"));
		json_object_set(set, "dest_gid", json_object_get(qp->told, "gid"));
		json_object_set(set, "rq_psn", json_object_get(qp->told, "psn"));
	}
	set_attr(r, set, qp, "rq_psn");
	if (is_answering(qp)) {
		set_attr(r, set, qp, "max_dest_rd_atomic");
		set_attr(r, set, qp, "min_rnr_timer");
	}
}

static void attrs_rts(struct case_run *r, struct object *qp, json_t *set)
{
	static const char *const waiting[] = { "timeout", "retry_cnt", "rnr_retry", "max_rd_atomic" };

	json_object_set_new(set, "sq_psn", json_integer(qp->sq_psn));
	for (size_t i = 0; is_asking(qp) && i < sizeof waiting / sizeof waiting[0]; i++)
		set_attr(r, set, qp, waiting[i]);
	if (xrc_receives(qp))
		set_attr(r, set, qp, "timeout");
}

json_t *link_attrs(struct case_run *r, struct object *qp, const char *to)
{
	json_t *set = json_object();

	if (strcmp(to, "INIT") == 0)
		attrs_init(r, qp, set);
	if (strcmp(to, "RTR") == 0)
		attrs_rtr(r, qp, set);
	if (strcmp(to, "RTS") == 0)
		attrs_rts(r, qp, set);
	return set;
}

static int rank_of(const char *state)
{
	static const char *const order[] = { "RESET", "INIT", "RTR", "RTS" };

	for (int i = 0; state && i < 4; i++)
		if (strcmp(order[i], state) == 0)
			return i;
	return -1;
}

/* What may be taken for known of ends that a request is for. */
enum known {
	SEEN,  /* where they were seen to be */
	HURRY, /* and that their creation is under way by then, and RTR before RTS */
	AHEAD  /* and that they all exist, and whatever comes before is under way */
};

/* Where it is when its turn for `to` comes. */
static int rank_by_then(const struct object *qp, const char *to, enum known known)
{
	if (known == AHEAD)
		return rank_of(to) - 1;
	if (!qp->exists)
		return known == HURRY ? 0 : -1;
	return rank_of(qp->state) + (known == HURRY && strcmp(to, "RTS") == 0);
}

/* May this end take the step to `to`, which is one beyond where it will be? */
static bool may_move(struct case_run *r, const struct object *qp, const char *to, enum known known)
{
	const char *hold = faults_hold_state(r, qp->name);

	if (rank_by_then(qp, to, known) != rank_of(to) - 1)
		return false;
	if (qp->wanted && rank_of(to) > rank_of(qp->wanted))
		return false;
	return !hold || rank_of(to) <= rank_of(hold);
}

/* What differs between ends that are alike: what each is told, and where it begins to count. */
static const struct {
	const char *to, *attr, *column, *told; /* told: its name there; NULL: its own */
} own_attrs[] = {
	{ "RTR", "dest_qpn", "set.dest_qpn", "qpn" },
	{ "RTR", "rq_psn", "set.rq_psn", "psn" },
	{ "RTS", "sq_psn", "set.sq_psn", NULL },
};

/* What all of them are asked for is what this one is to be asked for. */
static bool may_join_move(const struct op *op, const struct object *qp, const char *to)
{
	const char *gid = op->gid ? json_str(qp->told, "gid") : NULL;

	return op->to && strcmp(op->to, to) == 0 && (!op->gid || (gid && strcmp(op->gid, gid) == 0));
}

static void add_move_of_many(struct case_run *r, struct ops *ops, struct object *qp, const char *to, const char *by)
{
	struct op *op = many_find(ops, qp, "qp_modify", qp->alike);

	if (!op || !may_join_move(op, qp, to)) {
		json_t *set = link_attrs(r, qp, to);

		for (size_t i = 0; i < sizeof own_attrs / sizeof own_attrs[0]; i++)
			json_object_del(set, own_attrs[i].attr);
		op = many_begin(ops, qp, "qp_modify", qp->alike,
				json_pack("{s:s,s:o,s:s,s:b}", "to", to, "set", set, "by", by, "brief", 1));
		op->to = json_str(json_object_get(op->req, "all"), "to");
		op->gid = json_str(set, "dest_gid");
	}
	many_join(op, qp, "name");
	for (size_t i = 0; i < sizeof own_attrs / sizeof own_attrs[0]; i++) {
		if (strcmp(own_attrs[i].to, to) != 0)
			continue;
		json_t *own =
			own_attrs[i].told ? json_incref(json_object_get(qp->told, own_attrs[i].told)) : json_integer(qp->sq_psn);

		many_column(op, own_attrs[i].column, own);
		json_decref(own);
	}
}

static void add_move(struct case_run *r, struct ops *ops, struct object *qp, const char *to, const char *by)
{
	json_t *set = link_attrs(r, qp, to);

	faults_on_modify(r, qp->name, to, set);
	ops_add(ops, qp->agent,
		json_pack("{s:s,s:s,s:s,s:o,s:s,s:b}", "op", "qp_modify", "name", qp->name, "to", to, "set", set, "by", by, "brief",
			  1));
}

/* q: the QP whose receive queue it is, or the SRQ. */
static void note_kept_back(struct case_run *r, struct object *q, unsigned count, const char *by)
{
	json_t *obj = q->type == OBJECT_SRQ ? json_string(q->name) : json_sprintf("%s.recv", q->name);

	q->kept_back = count;
	case_record(r, "controller",
		    json_pack("{s:s,s:o,s:i,s:s,s:I,s:i,s:i,s:i,s:s}", "kind", "post", "obj", obj, "life", (int)q->life, "op",
			      "RECV", "size", (json_int_t)json_int(r->plan, "msg_bytes", 0), "count", (int)count, "accepted", 0,
			      "kept_back", (int)count, "by", by));
}

static json_t *receive_request(struct case_run *r, const struct object *qp, int64_t count, const char *by)
{
	int64_t bytes = json_int(qp->plan, "msg_bytes", json_int(r->plan, "msg_bytes", 64)) + json_int(qp->plan, "head_bytes", 0);
	int64_t stride = (bytes + 63) / 64 * 64;
	const struct object *mr = link_receive_mr(qp);
	json_t *req;

	if (stride < 64)
		stride = 64;
	req = json_pack("{s:s,s:s,s:I,s:I,s:I,s:s}", "op", "post_recv", "qp", qp->name, "count", (json_int_t)count, "size",
			(json_int_t)bytes, "stride", (json_int_t)stride, "by", by);
	if (mr) {
		json_object_set_new(req, "mr", json_string(mr->name));
		json_object_set_new(req, "slots", json_integer(json_int(mr->plan, "bytes", 0) / stride));
	}
	return req;
}

static json_t *srq_receive_request(struct case_run *r, const struct object *srq, int64_t count, const char *by)
{
	int64_t head = json_int(srq->plan, "head_bytes", 0);
	int64_t bytes = json_int(srq->plan, "bytes", json_int(r->plan, "msg_bytes", 64)) + head;
	const char *mr = json_str(srq->plan, "mr");
	json_t *req = json_pack("{s:s,s:s,s:I,s:I,s:s}", "op", "post_recv", "srq", srq->name, "count", (json_int_t)count, "size",
				(json_int_t)bytes, "by", by);

	json_object_set_new(req, "stride", json_integer((bytes + 63) / 64 * 64));
	if (head)
		json_object_set_new(req, "head", json_integer(head));
	if (mr)
		json_object_set_new(req, "mr", json_string(mr));
	return req;
}

static void fill_srq(struct case_run *r, struct ops *ops, struct object *srq, const char *by)
{
	int64_t depth = json_int(srq->plan, "depth", 1);
	struct op *op;

	HASH_FIND_STR(ops->made, srq->name, op);
	if (op || !srq->exists || srq->receives_posted || !json_bool(srq->plan, "fill", true))
		return;
	if (faults_hold_receives(r, srq->name)) {
		srq->receives_posted = true;
		note_kept_back(r, srq, (unsigned)depth, by);
		return;
	}
	op = ops_add(ops, srq->agent, srq_receive_request(r, srq, depth, by));
	if (op)
		HASH_ADD_KEYPTR(hh, ops->made, srq->name, strlen(srq->name), op);
}

static void receives_of_many(struct case_run *r, struct ops *ops, struct object *qp, int64_t count, const char *by)
{
	struct op *op = many_find(ops, qp, "post_recv", qp->alike);
	const struct object *mr = link_receive_mr(qp);

	if (!op) {
		json_t *all = receive_request(r, qp, count, by);

		json_object_set_new(all, "depth", json_integer(count));
		json_object_del(all, "op");
		json_object_del(all, "qp");
		json_object_del(all, "mr");
		op = many_begin(ops, qp, "post_recv", qp->alike, all);
	}
	many_join(op, qp, "qp");
	if (mr)
		many_column(op, "mr", mr->named);
}

/* renewed: it will have none of its own then, whatever it has now. */
static void receives_of(struct case_run *r, struct ops *ops, struct object *qp, const char *by, bool many, bool renewed)
{
	int64_t count = 0, depth, own = renewed ? 0 : qp->receives_own;

	srqs_each(r, qp, ops, by, fill_srq);
	if (json_str(qp->plan, "srq") || xrc_sends(qp) || (qp->receives_posted && !renewed))
		return;
	if (value_resolve(r, qp_cap(qp, "max_recv_wr"), 0, &count, NULL) || count <= 0)
		return;
	depth = count;
	/* What the file has posted by itself has its place in the queue, and comes first. */
	count -= own;
	if (count <= 0)
		return;
	if (faults_hold_receives(r, qp->name)) {
		qp->receives_posted = true;
		note_kept_back(r, qp, (unsigned)count, by);
		return;
	}
	if (many && qp->alike && !own && !json_object_size(qp->override_attr)) {
		receives_of_many(r, ops, qp, count, by);
		return;
	}
	json_t *req = receive_request(r, qp, count, by);

	json_object_set_new(req, "depth", json_integer(depth));
	ops_add(ops, qp->agent, req);
}

void link_receives(struct case_run *r, struct ops *ops, struct object *qp, const char *by)
{
	receives_of(r, ops, qp, by, false, false);
}

int link_release_receives(struct case_run *r, struct object *q, struct error *e)
{
	unsigned count = q->kept_back;
	json_t *req;
	int rc;

	if (!count || !q->exists)
		return 0;
	q->kept_back = 0;
	req = q->type == OBJECT_SRQ ? srq_receive_request(r, q, count, "fault") : receive_request(r, q, count, "fault");
	rc = ask(r, q->agent, req, 0, NULL, e);
	return rc < 0 ? rc : 0;
}

static int add_moves(struct case_run *r, struct ops *ops, const struct ends *ends, const char *to, const char *by, enum known known,
		     struct error *e)
{
	bool many = many_may(r, ends);

	for (size_t i = 0; i < ends->n; i++) {
		struct object *qp = ends->qp[i];
		int rc = 0;

		if (!may_move(r, qp, to, known))
			continue;
		if (strcmp(to, "RTR") == 0)
			rc = handover_tell(r, qp, false, e);
		if (rc)
			return rc;
		if (many && qp->alike && !json_object_size(qp->override_attr))
			add_move_of_many(r, ops, qp, to, by);
		else
			add_move(r, ops, qp, to, by);
	}
	/* With `upto: INIT` the file may still post receives of its own before these. */
	for (size_t i = 0; strcmp(to, "INIT") == 0 && i < ends->n; i++)
		if (rank_of(ends->qp[i]->wanted) >= 2 && may_move(r, ends->qp[i], to, known))
			receives_of(r, ops, ends->qp[i], by, many, known == AHEAD);
	return 0;
}

/* Ends that a step left in INIT by hand may still lack their receives. */
static int receives_all(struct case_run *r, const struct ends *ends, const char *by, struct error *e)
{
	struct ops ops = { .head = NULL };
	int rc;

	for (size_t i = 0; i < ends->n; i++)
		if (ends->qp[i]->exists && rank_of(ends->qp[i]->state) == 1)
			link_receives(r, &ops, ends->qp[i], by);
	rc = ops_run(r, &ops, 0, e);
	ops_free(&ops);
	return rc;
}

/* New keys and lives of an end whose peer is connected already: told again where both exist. */
static void tell_connected(struct case_run *r, const struct ends *ends)
{
	for (size_t i = 0; i < ends->n; i++)
		if (rank_of(ends->qp[i]->state) >= 2)
			handover_tell(r, ends->qp[i], true, NULL);
}

static int send_off(struct case_run *r, struct ops *ops, struct error *e)
{
	int rc = ops_run(r, ops, 0, e);

	ops_free(ops);
	return rc;
}

/* Nothing stands in the way of ends that all begin anew: then what follows from no answer goes in one message with what is before
 * it. Otherwise each end is where it is seen to be before the next step is thought of. */
static bool may_hurry(struct case_run *r, const struct ends *ends)
{
	for (size_t i = 0; i < ends->n; i++)
		if (is_datagram(ends->qp[i]) || (ends->qp[i]->exists && rank_of(ends->qp[i]->state) != 0))
			return false;
	return !faults_active(r);
}

static int to_ready(struct case_run *r, const struct ends *ends, const char *wanted, const char *by, enum known known,
		    struct error *e)
{
	struct ops ops = { .stops = known == HURRY };
	int rc = add_moves(r, &ops, ends, "RTR", by, known, e);

	if (!rc && known == SEEN)
		rc = send_off(r, &ops, e);
	if (!rc && known == SEEN)
		rc = datagram_readdress(r, ends, e);
	if (!rc && rank_of(wanted) >= 3)
		rc = add_moves(r, &ops, ends, "RTS", by, known, e);
	if (!rc)
		rc = send_off(r, &ops, e);
	ops_free(&ops);
	return rc;
}

int link_up(struct case_run *r, const struct ends *ends, const char *wanted, const char *by, struct error *e)
{
	enum known known = may_hurry(r, ends) ? HURRY : SEEN;
	struct ops ops = { .stops = known == HURRY };
	int rc = 0;

	for (size_t i = 0; i < ends->n; i++) {
		ends->qp[i]->wanted = wanted;
		link_create(r, &ops, ends->qp[i]);
	}
	if (known == SEEN)
		rc = send_off(r, &ops, e);
	if (!rc)
		tell_connected(r, ends);
	if (!rc)
		rc = add_moves(r, &ops, ends, "INIT", by, known, e);
	if (!rc)
		rc = send_off(r, &ops, e);
	ops_free(&ops);
	if (rc || rank_of(wanted) < 2)
		return rc;
	rc = receives_all(r, ends, by, e);
	return rc ? rc : to_ready(r, ends, wanted, by, known, e);
}

/* ---- from RESET on ---- */

/* Requests that are put together while the agents do what comes before. */
struct ahead {
	struct case_run *r;
	const struct ends *ends;
	const char *to, *then, *by; /* then: NULL for one move only */
	struct ops ops;
	struct error *e;
	int rc;
};

static void look_ahead(void *user)
{
	struct ahead *a = user;

	a->rc = add_moves(a->r, &a->ops, a->ends, a->to, a->by, AHEAD, a->e);
	if (!a->rc && a->then)
		a->rc = add_moves(a->r, &a->ops, a->ends, a->then, a->by, AHEAD, a->e);
}

static int send_and_look_ahead(struct ops *ops, struct ahead *next)
{
	int rc;

	ops->meanwhile = look_ahead;
	ops->user = next;
	rc = send_off(next->r, ops, next->e);
	return rc ? rc : next->rc;
}

/* What is to be told to whom is known before they are there, and nothing else is to be asked in between. */
static bool may_look_ahead(struct case_run *r, const struct ends *ends)
{
	for (size_t i = 0; i < ends->n; i++)
		if (is_datagram(ends->qp[i]) || !ends->qp[i]->exists)
			return false;
	return many_may(r, ends) && !wire_wanted(r);
}

static int up_ahead(struct ops *reset, struct ahead *init, struct ahead *ready)
{
	int rc = send_and_look_ahead(reset, init);

	if (!rc)
		rc = send_and_look_ahead(&init->ops, ready);
	if (!rc)
		rc = receives_all(init->r, init->ends, init->by, init->e);
	if (!rc)
		rc = send_off(init->r, &ready->ops, init->e);
	ops_free(&init->ops);
	ops_free(&ready->ops);
	return rc;
}

void link_reset(struct case_run *r, struct ops *ops, const struct ends *ends, const char *by)
{
	for (size_t i = 0; i < ends->n; i++)
		if (ends->qp[i]->exists)
			many_move(ops, ends->qp[i], "RESET", by, many_may(r, ends));
}

int link_renew(struct case_run *r, const struct ends *ends, const char *by, struct error *e)
{
	struct ops reset = { .head = NULL };
	int rc;

	link_reset(r, &reset, ends, by);
	if (may_look_ahead(r, ends)) {
		struct ahead init = { .r = r, .ends = ends, .to = "INIT", .by = by, .ops = { .stops = true }, .e = e };
		struct ahead ready = {
			.r = r, .ends = ends, .to = "RTR", .then = "RTS", .by = by, .ops = { .stops = true }, .e = e
		};

		for (size_t i = 0; i < ends->n; i++)
			ends->qp[i]->wanted = "RTS";
		return up_ahead(&reset, &init, &ready);
	}
	rc = send_off(r, &reset, e);
	return rc ? rc : link_up(r, ends, "RTS", by, e);
}
