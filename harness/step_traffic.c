/* SPDX-License-Identifier: MIT */
/* Verified traffic between the ends of pairs: prepared at both ends before either starts, checked at both when both are done. */
#include "controller_step.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller_xrc.h"
#include "json.h"
#include "units.h"

#define TRAFFIC_DEFAULT_NS (20 * NSEC_PER_SEC)
#define TAG_ITERATIONS 4096
#define PAUSE_NS (500 * NSEC_PER_MSEC) /* what was sent may need its retransmissions on a link that a fault has hold of */
#define PHASE_NS (3 * NSEC_PER_SEC)
#define LAND_NS (20 * NSEC_PER_MSEC) /* between two looks */

/* Where the receives of a queue go that has not had any: one with `fill: none`, for example. */
static void name_receives(struct case_run *r, const struct object *qp, json_t *req)
{
	const struct object *srq = ctl_object_find(r, json_str(qp->plan, "srq"));
	int64_t bytes = json_int(srq ? srq->plan : NULL, "bytes", json_int(r->plan, "msg_bytes", 64)) +
			json_int(srq ? srq->plan : NULL, "head_bytes", 0);
	const char *mr = srq ? json_str(srq->plan, "mr") : NULL;

	if (!mr)
		return;
	json_object_set_new(req, "recv_mr", json_string(mr));
	json_object_set_new(req, "recv_size", json_integer(bytes));
	json_object_set_new(req, "recv_stride", json_integer((bytes + 63) / 64 * 64));
}

static json_t *prepare_request(struct case_run *r, const struct object *qp, const struct traffic_spec *spec, uint32_t tag)
{
	json_t *req = json_pack("{s:s,s:s,s:s,s:I,s:I,s:o}", "op", "traffic_prepare", "as", spec->as, "qp", qp->name, "size",
				(json_int_t)spec->size, "tag", (json_int_t)tag, "mr", json_sprintf("%s.trf", qp->name));
	const char *srq = json_str(qp->plan, "srq");

	if (faults_hold_receives(r, qp->name) || (srq && faults_hold_receives(r, srq)))
		json_object_set_new(req, "receives", json_integer(0));
	name_receives(r, qp, req);
	return req;
}

/* Over an extended reliable connection all goes one way. */
static const char *role_of(const struct object *qp)
{
	return xrc_sends(qp) ? "tx" : xrc_receives(qp) ? "rx" : "both";
}

static json_t *traffic_request(struct case_run *r, const struct object *qp, const struct traffic_spec *spec, uint32_t tag,
			       uint64_t deadline_ns, const json_t *receives)
{
	char peer_mr[2 * CTL_NAME_MAX];
	const json_t *key;
	json_t *req;

	snprintf(peer_mr, sizeof peer_mr, "%s.trf", qp->peer);
	key = json_object_get(json_object_get(qp->told, "keys"), peer_mr);
	req = json_pack("{s:s,s:s,s:s,s:O,s:I,s:I,s:I,s:I,s:o,s:s,s:I,s:s}", "op", "traffic", "as", spec->as, "qp", qp->name, "ops",
			spec->ops, "size", (json_int_t)spec->size, "depth", (json_int_t)spec->depth, "messages",
			(json_int_t)spec->messages, "tag", (json_int_t)tag, "mr", json_sprintf("%s.trf", qp->name), "role",
			role_of(qp), "deadline_ns", (json_int_t)deadline_ns, "by", spec->by);
	json_object_set_new(req, "rkey", json_integer(json_int(key, "rkey", 0)));
	if (json_object_get(key, "addr"))
		json_object_set(req, "raddr", json_object_get(key, "addr"));
	datagram_address(r, qp, NULL, req);
	xrc_address(r, qp, NULL, req);
	if (spec->background)
		json_object_set_new(req, "background", json_true());
	if (spec->lossy)
		json_object_set_new(req, "lossy", json_true());
	/* How far SENDs may run ahead is a matter of the other end's receives. */
	if (json_object_get(receives, qp->peer))
		json_object_set(req, "peer_receives", json_object_get(receives, qp->peer));
	return req;
}

/* The requests by the number of the QP that each is for. The caller frees. */
static const struct op **by_number(const struct case_run *r, const struct ops *ops)
{
	const struct op **all =
		calloc(r->n_objects + 1, sizeof *all); /* NOLINT(bugprone-sizeof-expression): an array of pointers */

	for (const struct op *op = ops->head; all && op; op = op->next)
		if (op->user)
			all[((const struct object *)op->user)->number] = op;
	return all;
}

/* 0 when this end has seen only what it should. */
static int judge_end(const struct object *qp, const json_t *stats, const struct traffic_spec *spec, struct error *e)
{
	int64_t done = json_int(stats, "done", 0), errors = json_int(stats, "errors", 0), bad = json_int(stats, "bad_payload", 0);
	const char *first = json_str(stats, "first_error");

	if (errors)
		return error_set(e, -EIO, "%s: %lld of %lld messages failed, the first with %s", qp->name, (long long)errors,
				 (long long)spec->messages, first ? first : "?");
	if (bad)
		return error_set(e, -EBADMSG, "%s: %lld messages arrived damaged or from before", qp->name, (long long)bad);
	if (done < spec->messages && !xrc_receives(qp))
		return error_set(e, -ETIME, "%s: %lld of %lld messages were done in time", qp->name, (long long)done,
				 (long long)spec->messages);
	return 0;
}

static int verify_landed(struct case_run *r, const struct ends *ends, const struct traffic_spec *spec, const struct ops *ran,
			 struct error *e)
{
	const struct op **all = by_number(r, ran);
	struct ops ops = { .head = NULL };
	int rc;

	if (!all)
		return error_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < ends->n; i++) {
		const struct object *qp = ends->qp[i], *peer = ctl_object_find(r, qp->peer);
		const struct op *of_peer = peer ? all[peer->number] : NULL;
		struct op *op = ops_add(&ops, qp->agent,
					json_pack("{s:s,s:s,s:s,s:I}", "op", "traffic_verify", "as", spec->as, "qp", qp->name,
						  "messages", (json_int_t)json_int(of_peer ? of_peer->reply : NULL, "done", 0)));

		if (op)
			op->user = ends->qp[i];
	}
	free(all);
	rc = ops_run(r, &ops, 0, e);
	for (struct op *op = ops.head; op && !rc; op = op->next) {
		int64_t wrong =
			json_int(op->reply, "absent", 0) + json_int(op->reply, "partial", 0) + json_int(op->reply, "stale", 0);
		const struct object *qp = op->user;

		if (wrong)
			rc = error_set(e, -EBADMSG, "%s: %lld WRITEs of its peer were completed and are not there", qp->name,
				       (long long)wrong);
	}
	ops_free(&ops);
	return rc;
}

/* How many receives each end has is written to `receives`, by its QP's name. */
static int prepare(struct case_run *r, const struct ends *ends, const struct traffic_spec *spec, uint32_t tag, json_t *receives,
		   struct error *e)
{
	struct ops ops = { .head = NULL };
	int rc;

	for (size_t i = 0; i < ends->n; i++) {
		struct op *op = ops_add(&ops, ends->qp[i]->agent, prepare_request(r, ends->qp[i], spec, tag));

		if (op)
			op->user = ends->qp[i];
	}
	rc = ops_run(r, &ops, 0, e);
	for (const struct op *op = ops.head; op && !rc; op = op->next) {
		const struct object *qp = op->user;

		if (json_object_get(op->reply, "receives"))
			json_object_set(receives, qp->name, json_object_get(op->reply, "receives"));
	}
	ops_free(&ops);
	return rc;
}

static bool writes(const json_t *ops)
{
	const json_t *op;
	size_t i;

	json_array_foreach(ops, i, op)
		if (strncmp(json_string_value(op), "WRITE", 5) == 0)
			return true;
	return false;
}

static bool has_failed(const struct op *op)
{
	return op->rc < 0 || (op->reply && (json_int(op->reply, "errors", 0) || json_int(op->reply, "bad_payload", 0)));
}

struct watcher {
	const char *as;
	bool stopped;
};

/* The other end of one that failed waits for messages that will not come. */
static void stop_the_others(struct case_run *r, struct ops *ops, void *user)
{
	struct watcher *w = user;
	struct ops stops = { .head = NULL };
	const struct op *failed = NULL;

	for (const struct op *op = ops->head; op && !failed; op = op->next)
		failed = has_failed(op) ? op : NULL;
	if (!failed || w->stopped)
		return;
	w->stopped = true;
	for (const struct op *op = ops->head; op; op = op->next) {
		const struct object *qp = op->user;

		if (op->rc == 0 && !op->reply)
			ops_add(&stops, op->agent, json_pack("{s:s,s:s,s:s}", "op", "traffic_stop", "as", w->as, "qp", qp->name));
	}
	ops_run(r, &stops, 0, NULL);
	ops_free(&stops);
}

/* What was only stopped is not what went wrong. */
static int first_cause(const struct ops *ops, int rc, struct error *e)
{
	for (const struct op *op = ops->head; op && rc; op = op->next)
		if (op->rc < 0 && op->rc != -ECANCELED)
			return error_set(e, op->rc, "%s", op->text);
	return rc;
}

/* On an unreliable connection a WRITE is complete when it was sent: it may land a little later. */
static bool may_land_later(const struct ends *ends)
{
	for (size_t i = 0; i < ends->n; i++) {
		const char *type = json_str(ends->qp[i]->plan, "type");

		if (type && strcmp(type, "UC") == 0)
			return true;
	}
	return false;
}

static int verify_until(struct case_run *r, const struct ends *ends, const struct traffic_spec *spec, const struct ops *ran,
			uint64_t end_ns, struct error *e)
{
	int rc = verify_landed(r, ends, spec, ran, e);

	while (rc == -EBADMSG && may_land_later(ends) && now_ns() < end_ns) {
		case_wait(r, NULL, NULL, now_ns() + LAND_NS);
		rc = verify_landed(r, ends, spec, ran, e);
	}
	return rc;
}

int ctl_traffic_run(struct case_run *r, const struct ends *ends, const struct traffic_spec *spec, uint64_t timeout_ns,
		    struct error *e)
{
	uint32_t tag = spec->tag + r->traffics_run++ % TAG_ITERATIONS;
	uint64_t end_ns = now_ns() + timeout_ns;
	struct ops ops = { .head = NULL };
	struct watcher w = { .as = spec->as };
	json_t *receives = json_object();
	int rc = prepare(r, ends, spec, tag, receives, e);

	if (rc) {
		json_decref(receives);
		return rc;
	}
	for (size_t i = 0; i < ends->n; i++) {
		struct op *op = ops_add(&ops, ends->qp[i]->agent, traffic_request(r, ends->qp[i], spec, tag, timeout_ns, receives));

		if (op)
			op->user = ends->qp[i];
	}
	json_decref(receives);
	rc = ops_run_watched(r, &ops, spec->background ? 0 : timeout_ns + 2 * NSEC_PER_SEC,
			     spec->background ? NULL : stop_the_others, &w, e);
	rc = first_cause(&ops, rc, e);
	/* Its messages are posts as any: a fault in force now may be in force no more when it is asked for its proof. */
	for (const struct op *op = ops.head; op; op = op->next)
		faults_on_post(r, ((const struct object *)op->user)->name);
	for (struct op *op = ops.head; op && (!rc || rc == -ECANCELED) && !spec->background; op = op->next) {
		int judged = op->rc == 0 ? judge_end(op->user, op->reply, spec, e) : 0;

		rc = judged ? judged : rc;
	}
	if (!rc && !spec->background && writes(spec->ops))
		rc = verify_until(r, ends, spec, &ops, end_ns, e);
	ops_free(&ops);
	return rc;
}

static void phase_of(struct case_run *r, const char *as, const json_t *list, const char *phase, const char *what, struct ops *ops)
{
	const json_t *name;
	size_t i;

	json_array_foreach((json_t *)list, i, name) {
		const struct object *qp = ctl_object_find(r, json_string_value(name));

		if (qp && !agent_unreachable(agent_find(r, qp->agent)))
			ops_add(ops, qp->agent,
				json_pack("{s:s,s:s,s:s,s:s,s:s}", "op", "traffic_phase", "as", as, "qp", qp->name, "phase", phase,
					  "what", what));
	}
}

void traffics_phase(struct case_run *r, const char *as, const char *phase, const char *what)
{
	struct ops ops = { .head = NULL };
	const char *name;
	json_t *list;

	json_object_foreach(r->traffics, name, list)
		if (!as || strcmp(as, name) == 0)
			phase_of(r, name, list, phase, what, &ops);
	if (ops.head)
		ops_run(r, &ops, PHASE_NS, NULL);
	ops_free(&ops);
}

void traffics_pause(struct case_run *r, bool on)
{
	struct ops ops = { .head = NULL };
	const char *as;
	json_t *list, *name;
	size_t i;

	json_object_foreach(r->traffics, as, list)
		json_array_foreach(list, i, name) {
			const struct object *qp = ctl_object_find(r, json_string_value(name));

			if (qp && !agent_unreachable(agent_find(r, qp->agent)))
				ops_add(&ops, qp->agent,
					json_pack("{s:s,s:s,s:s,s:b}", "op", "traffic_pause", "as", as, "qp", qp->name, "on", on));
		}
	if (ops.head)
		ops_run(r, &ops, PAUSE_NS, NULL);
	ops_free(&ops);
}

static int stop_background(struct case_run *r, const char *as, struct error *e)
{
	json_t *list = json_object_get(r->traffics, as), *name;
	struct ops ops = { .head = NULL };
	size_t i;
	int rc;

	if (!list)
		return error_set(e, -ENOENT, "no traffic called %s runs", as);
	json_array_foreach(list, i, name) {
		const struct object *qp = ctl_object_find(r, json_string_value(name));

		if (qp)
			ops_add(&ops, qp->agent, json_pack("{s:s,s:s,s:s}", "op", "traffic_stop", "as", as, "qp", qp->name));
	}
	rc = ops_run(r, &ops, 0, e);
	ops_free(&ops);
	json_object_del(r->traffics, as);
	return rc;
}

void traffics_lost(struct case_run *r, const char *agent)
{
	const char *as;
	json_t *list;

	json_object_foreach(r->traffics, as, list)
		for (size_t i = json_array_size(list); i-- > 0;) {
			const struct object *qp = ctl_object_find(r, json_string_value(json_array_get(list, i)));

			if (qp && strcmp(qp->agent, agent) == 0)
				json_array_remove(list, i);
		}
}

void traffics_stop(struct case_run *r)
{
	const char *as;
	json_t *list;
	void *next;

	json_object_foreach_safe(r->traffics, next, as, list)
	{
		char name[CTL_NAME_MAX];

		snprintf(name, sizeof name, "%s", as);
		stop_background(r, name, NULL);
	}
}

static void remember_background(struct case_run *r, const char *as, const struct ends *ends)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ends->n; i++)
		json_array_append_new(list, json_string(ends->qp[i]->name));
	json_object_set_new(r->traffics, as, list);
}

void step_traffic(struct case_run *r, const json_t *step, struct step_result *res)
{
	const char *stop = json_str(step, "stop"), *as = json_str(step, "as");
	uint64_t begin = now_ns(), end = step_deadline(r, step, begin, TRAFFIC_DEFAULT_NS);
	struct traffic_spec spec = { .ops = json_object_get(step, "ops"),
				     .tag = (uint32_t)json_int(step, "tag", 0),
				     .by = "step",
				     .background = json_bool(step, "background", as != NULL),
				     .lossy = json_bool(step, "lossy", false) };
	struct ends ends = { NULL, 0 };
	struct error e = { "" };
	char name[CTL_NAME_MAX];
	int rc;

	if (stop) {
		step_from_rc(res, stop_background(r, stop, &e), &e);
		return;
	}
	snprintf(name, sizeof name, "traffic-%d", (int)json_int(step, "n", 0));
	spec.as = as ? as : name;
	payload_settle(r, 0);
	rc = ends_of_pairs(r, json_object_get(step, "pairs"), &ends, &e);
	if (!rc)
		rc = value_resolve(r, json_object_get(step, "size"), 1024, &spec.size, &e);
	if (!rc)
		rc = value_resolve(r, json_object_get(step, "depth"), 8, &spec.depth, &e);
	if (!rc)
		rc = value_resolve(r, json_object_get(step, "messages"), spec.background ? 0 : 64, &spec.messages, &e);
	/* The step has begun it, the case has it until it is stopped. */
	if (spec.background && r->end_ns > end)
		end = r->end_ns;
	if (!rc)
		rc = ctl_traffic_run(r, &ends, &spec, end > begin ? end - begin : 1, &e);
	if (!rc && spec.background)
		remember_background(r, spec.as, &ends);
	ends_free(&ends);
	step_from_rc(res, rc, &e);
	/* What went wrong in it is a finding about the traffic, not a call that was refused. */
	if (rc == -EIO || rc == -EBADMSG || rc == -ETIME || rc == -ETIMEDOUT || rc == -ECANCELED) {
		res->outcome = OUTCOME_BROKEN;
		r->broken = true;
	}
}
