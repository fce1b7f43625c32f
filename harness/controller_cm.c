/* SPDX-License-Identifier: MIT */
/*
 * Connections by rdma_cm: the agents ask and answer each other, the QPs are moved as ever, with what the CM has settled: PSNs, the
 * peer's QPN, path, retry counts, READs and atomics. What it has no word for (min_rnr_timer, access) and the timeout are the
 * file's.
 */
#include "controller_case.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "names.h"
#include "units.h"

/* From the request to the answer: longer than addresses and routes take to be given up. */
#define ANSWER_NS (6 * NSEC_PER_SEC)

struct meeting {
	struct case_run *r;
	struct object *active, *passive;
	const char *by;
	struct request *asked, *answered; /* what the passive, and the active end wait for */
	const char *reason;
};

static json_t *cm_request(const char *op, const struct object *qp)
{
	return json_pack("{s:s,s:o}", "op", op, "name", json_sprintf("%s.cm", qp->name));
}

static int64_t attr_of(struct case_run *r, const struct object *qp, const char *name)
{
	int64_t n = 0;

	value_resolve(r, qp_attr(qp, name), 0, &n, NULL);
	return n;
}

/* Who asks, in which life: it has to arrive as it was sent. */
static void say(const struct object *qp, char *buf, size_t size)
{
	snprintf(buf, size, "%.40s, life %u", qp->name, qp->life);
}

static void address(struct case_run *r, const struct object *qp, json_t *req, const char *key)
{
	struct ctl_agent *a = agent_find(r, qp->agent);

	if (a)
		gid_refresh(a);
	json_object_set_new(req, key, json_string(a && json_str(a->device, "gid") ? json_str(a->device, "gid") : ""));
	if (a && a->lab_device && strcmp(key, "addr") == 0)
		json_object_set_new(req, "netdev", json_string(a->lab_device->netdev));
}

static void conn_param(struct case_run *r, const struct object *qp, json_t *req)
{
	char text[56];

	say(qp, text, sizeof text);
	json_object_update_new(req, json_pack("{s:s,s:I,s:I,s:I,s:I}", "private", text, "responder_resources",
					      (json_int_t)attr_of(r, qp, "max_dest_rd_atomic"), "initiator_depth",
					      (json_int_t)attr_of(r, qp, "max_rd_atomic"), "retry_count",
					      (json_int_t)attr_of(r, qp, "retry_cnt"), "rnr_retry_count",
					      (json_int_t)attr_of(r, qp, "rnr_retry")));
}

static int forget(struct case_run *r, struct object *qp, struct error *e)
{
	json_t *req;

	if (!qp->has_cm)
		return 0;
	qp->has_cm = false;
	req = cm_request("destroy", qp);
	json_object_set_new(req, "type", json_string("cm"));
	return ask(r, qp->agent, req, 0, NULL, e);
}

static int listen_at(struct case_run *r, struct object *qp, int64_t *ret_port, struct error *e)
{
	json_t *req = cm_request("cm_listen", qp), *reply = NULL;
	int rc;

	json_object_set_new(req, "qp", json_string(qp->name));
	address(r, qp, req, "addr");
	rc = ask(r, qp->agent, req, 0, &reply, e);
	if (!rc) {
		qp->has_cm = true;
		*ret_port = json_int(reply, "port", 0);
	}
	json_decref(reply);
	return rc;
}

static int begin(struct case_run *r, struct object *qp, const struct object *peer, int64_t port, struct error *e)
{
	json_t *req = cm_request("cm_connect", qp);
	int rc;

	json_object_set_new(req, "qp", json_string(qp->name));
	address(r, qp, req, "addr");
	address(r, peer, req, "peer");
	json_object_set_new(req, "port", json_integer(port));
	json_object_set_new(req, "timeout", json_integer(attr_of(r, qp, "timeout")));
	conn_param(r, qp, req);
	rc = ask(r, qp->agent, req, 0, NULL, e);
	if (!rc)
		qp->has_cm = true;
	return rc;
}

static int wait_for(struct case_run *r, const struct object *qp, const char *event, struct request **ret)
{
	json_t *req = cm_request("cm_wait", qp);

	json_object_update_new(req, json_pack("{s:s,s:I}", "event", event, "deadline_ns", (json_int_t)ANSWER_NS));
	return agent_send(agent_find(r, qp->agent), req, ret);
}

static bool either(void *user)
{
	const struct meeting *m = user;

	return m->asked->done || m->answered->done;
}

static bool answered(void *user)
{
	return ((struct meeting *)user)->answered->done;
}

static int not_met(struct meeting *m, const struct object *qp, const struct request *q, struct error *e)
{
	const char *why = q->reply ? json_str(q->reply, "error") : NULL, *reason = q->reply ? json_str(q->reply, "reason") : NULL;
	const struct name *row = reason ? name_find(&names_cm_reject, reason) : NULL;
	int rc = q->done ? q->rc : -ETIMEDOUT;

	if (row)
		m->reason = row->text;
	return error_set(e, rc ? rc : -EPROTO, "%s: %s", qp->name, why ? why : "no answer");
}

/* What the CM told an end of the other one has to be so. */
static int check_told(const struct object *qp, const struct object *peer, const json_t *told, struct error *e)
{
	const char *private = json_str(told, "private");
	char wanted[56];

	say(peer, wanted, sizeof wanted);
	if ((uint32_t)json_int(told, "qpn", -1) != peer->qpn)
		return error_set(e, -EBADMSG, "%s was told by the CM that %s has QPN %lld, and it has %u", qp->name, peer->name,
				 (long long)json_int(told, "qpn", -1), peer->qpn);
	if (!private || strcmp(private, wanted) != 0)
		return error_set(e, -EBADMSG, "%s sent the private data \"%s\", at %s arrived \"%s\"", peer->name, wanted, qp->name,
				 private ? private : "");
	return 0;
}

/* Of two numbers of READs and atomics the smaller one holds. */
static void at_most(json_t *set, const char *key, const json_t *by_cm, const char *as)
{
	json_int_t own = json_int(set, key, 0), other = json_int(by_cm, as, own);

	json_object_set_new(set, key, json_integer(own < other ? own : other));
}

static json_t *attrs_by_cm(struct case_run *r, struct object *qp, const char *to, const json_t *told)
{
	static const char *const rtr_keys[] = { "path_mtu", "hop_limit" }, *const rts_keys[] = { "retry_cnt", "rnr_retry" };
	bool rtr = strcmp(to, "RTR") == 0;
	const json_t *by_cm = json_object_get(told, rtr ? "rtr" : "rts");
	json_t *set = link_attrs(r, qp, to);
	const char *key;

	for (size_t i = 0; i < 2; i++) {
		key = rtr ? rtr_keys[i] : rts_keys[i];
		if (json_object_get(by_cm, key))
			json_object_set(set, key, json_object_get(by_cm, key));
	}
	key = rtr ? "max_dest_rd_atomic" : "max_rd_atomic";
	at_most(set, key, by_cm, key);
	faults_on_modify(r, qp->name, to, set);
	return set;
}

static int move(struct meeting *m, struct object *qp, const json_t *told, struct error *e)
{
	static const char *const states[] = { "RTR", "RTS" };
	int rc = 0;

	for (size_t i = 0; !rc && i < 2; i++)
		rc = ask(m->r, qp->agent,
			 json_pack("{s:s,s:s,s:s,s:o,s:s}", "op", "qp_modify", "name", qp->name, "to", states[i], "set",
				   attrs_by_cm(m->r, qp, states[i], told), "by", m->by),
			 0, NULL, e);
	return rc;
}

/* The PSNs are the CM's, and known from here on. */
static int tell(struct meeting *m, const json_t *told, struct error *e)
{
	int rc;

	m->active->sq_psn = (uint32_t)json_int(json_object_get(told, "rtr"), "rq_psn", 0) & CTL_PSN_MASK;
	m->passive->sq_psn = (uint32_t)json_int(json_object_get(told, "rts"), "sq_psn", 0) & CTL_PSN_MASK;
	rc = handover_tell(m->r, m->passive, false, e);
	return rc ? rc : handover_tell(m->r, m->active, false, e);
}

static int refuse_it(struct meeting *m, struct error *e)
{
	json_t *req = cm_request("cm_reject", m->passive);
	char text[56];

	say(m->passive, text, sizeof text);
	json_object_set_new(req, "private", json_string(text));
	return ask(m->r, m->passive->agent, req, 0, NULL, e);
}

static int accept_it(struct meeting *m, struct error *e)
{
	const json_t *told = m->asked->reply;
	json_t *req = cm_request("cm_accept", m->passive);
	int rc = check_told(m->passive, m->active, told, e);

	conn_param(m->r, m->passive, req);
	at_most(req, "responder_resources", json_object_get(told, "rtr"), "max_dest_rd_atomic");
	at_most(req, "initiator_depth", json_object_get(told, "rts"), "max_rd_atomic");
	if (!rc)
		rc = tell(m, told, e);
	if (!rc)
		rc = move(m, m->passive, told, e);
	if (!rc)
		return ask(m->r, m->passive->agent, req, 0, NULL, e);
	json_decref(req);
	return rc;
}

/* The passive end's answer, unless the active end has come to its end before anybody was asked. */
static int answer(struct meeting *m, const char *how, struct error *e)
{
	case_wait(m->r, either, m, now_ns() + ANSWER_NS + CTL_REQUEST_NS);
	if (m->answered->done)
		return m->answered->rc ? not_met(m, m->active, m->answered, e) : 0;
	if (!m->asked->done || m->asked->rc)
		return not_met(m, m->passive, m->asked, e);
	return how ? refuse_it(m, e) : accept_it(m, e);
}

static int conclude(struct meeting *m, struct error *e)
{
	json_t *req;
	int rc;

	case_wait(m->r, answered, m, now_ns() + ANSWER_NS + CTL_REQUEST_NS);
	if (!m->answered->done || m->answered->rc)
		return not_met(m, m->active, m->answered, e);
	rc = check_told(m->active, m->passive, m->answered->reply, e);
	if (!rc)
		rc = move(m, m->active, m->answered->reply, e);
	if (!rc)
		rc = ask(m->r, m->active->agent, cm_request("cm_establish", m->active), 0, NULL, e);
	if (rc)
		return rc;
	req = cm_request("cm_wait", m->passive);
	json_object_update_new(req, json_pack("{s:s,s:I}", "event", "ESTABLISHED", "deadline_ns", (json_int_t)ANSWER_NS));
	return ask(m->r, m->passive->agent, req, ANSWER_NS + CTL_REQUEST_NS, NULL, e);
}

static int meet(struct meeting *m, const char *how, struct error *e)
{
	int rc = wait_for(m->r, m->passive, "CONNECT_REQUEST", &m->asked);

	if (!rc)
		rc = wait_for(m->r, m->active, "CONNECT_RESPONSE", &m->answered);
	if (rc)
		error_set(e, rc, "%s: its agent cannot be asked", m->active->name);
	if (!rc)
		rc = answer(m, how, e);
	if (!rc)
		rc = conclude(m, e);
	ctl_request_free(agent_find(m->r, m->passive->agent), m->asked);
	ctl_request_free(agent_find(m->r, m->active->agent), m->answered);
	return rc;
}

/* Whoever is asked refuses, since nobody listens: only the active end has something to wait for. */
static int meet_nobody(struct meeting *m, struct error *e)
{
	int rc = wait_for(m->r, m->active, "CONNECT_RESPONSE", &m->answered);

	if (rc)
		return error_set(e, rc, "%s: its agent cannot be asked", m->active->name);
	case_wait(m->r, answered, m, now_ns() + ANSWER_NS + CTL_REQUEST_NS);
	rc = not_met(m, m->active, m->answered, e);
	ctl_request_free(agent_find(m->r, m->active->agent), m->answered);
	return rc;
}

static int connect_one(struct meeting *m, struct error *e)
{
	const char *how = faults_cm_refuses(m->r, m->passive->name);
	struct error ignored;
	int64_t port = 0;
	int rc = forget(m->r, m->active, e);

	if (!rc)
		rc = forget(m->r, m->passive, e);
	if (!rc)
		rc = listen_at(m->r, m->passive, &port, e);
	if (!rc && how && strcmp(how, "nobody") == 0)
		rc = forget(m->r, m->passive, e);
	if (!rc)
		rc = begin(m->r, m->active, m->passive, port, e);
	if (!rc && m->passive->has_cm)
		rc = meet(m, how, e);
	else if (!rc)
		rc = meet_nobody(m, e);
	if (!rc)
		return 0;
	faults_cm_refused(m->r, m->passive->name, m->reason);
	forget(m->r, m->active, &ignored);
	forget(m->r, m->passive, &ignored);
	return rc;
}

static bool asks(const struct ends *ends, size_t i, const char *from)
{
	if (from)
		return strcmp(ends->qp[i]->agent, from) == 0;
	for (size_t k = 0; k < i; k++)
		if (strcmp(ends->qp[k]->pair, ends->qp[i]->pair) == 0)
			return false;
	return true;
}

static int ready(struct case_run *r, const struct ends *ends, const char *by, struct error *e)
{
	struct ops ops = { .head = NULL };
	int rc = link_up(r, ends, "INIT", by, e);

	for (size_t i = 0; !rc && i < ends->n; i++)
		link_receives(r, &ops, ends->qp[i], by);
	if (!rc)
		rc = ops_run(r, &ops, 0, e);
	ops_free(&ops);
	return rc;
}

int cm_up(struct case_run *r, const struct ends *ends, const char *from, const char *by, const char **ret_reason, struct error *e)
{
	int rc = ready(r, ends, by, e);

	for (size_t i = 0; !rc && i < ends->n; i++) {
		struct meeting m = { .r = r, .active = ends->qp[i], .passive = ctl_object_find(r, ends->qp[i]->peer), .by = by };

		if (!asks(ends, i, from))
			continue;
		if (!m.passive)
			return error_set(e, -ENOENT, "%s has no peer in the plan", m.active->name);
		rc = connect_one(&m, e);
		if (rc && ret_reason)
			*ret_reason = m.reason;
	}
	return rc;
}

/* Both ends hear of it when both are there. */
static void take_leave(struct case_run *r, struct object *qp)
{
	struct object *peer = ctl_object_find(r, qp->peer);
	struct ops ops = { .head = NULL };
	struct error ignored;

	if (!qp->has_cm || agent_unreachable(agent_find(r, qp->agent)) ||
	    ask(r, qp->agent, cm_request("cm_disconnect", qp), 0, NULL, &ignored) != 0)
		return;
	for (int i = 0; i < 2; i++) {
		struct object *end = i ? peer : qp;
		json_t *req;

		if (!end || !end->has_cm || agent_unreachable(agent_find(r, end->agent)))
			continue;
		req = cm_request("cm_wait", end);
		json_object_update_new(req,
				       json_pack("{s:s,s:I}", "event", "DISCONNECTED", "deadline_ns", (json_int_t)PLAN_LEAVE_NS));
		ops_add(&ops, end->agent, req);
	}
	ops_run(r, &ops, PLAN_LEAVE_NS + CTL_REQUEST_NS, &ignored);
	ops_free(&ops);
}

int cm_down(struct case_run *r, const struct ends *ends, struct error *e)
{
	int rc = 0;

	for (size_t i = 0; i < ends->n; i++)
		if (asks(ends, i, NULL))
			take_leave(r, ends->qp[i]);
	for (size_t i = 0; i < ends->n; i++) {
		int got = forget(r, ends->qp[i], rc ? NULL : e);

		rc = rc ? rc : got;
	}
	return rc;
}
