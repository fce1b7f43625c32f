/* SPDX-License-Identifier: MIT */
/* Recovery: a path that takes ends from whatever they are to RTS, then verified traffic, or it did not recover. */
#include "controller_step.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "many.h"
#include "plan_timers.h"
#include "units.h"

#define DRAIN_NS (2 * NSEC_PER_SEC)
#define CHECK_NS (15 * NSEC_PER_SEC)

const struct recover_path recover_table[] = {
	{ "reset", "drain, ERR, RESET, then connect both ends anew with new PSNs and keys", recover_reset, true },
	{ "recreate", "drain, destroy and create the QPs, then connect them", recover_recreate, false },
	{ "cm", "rdma_cm disconnect, then new QPs and connect: the CM keeps the old QPNs for a while", recover_cm, false },
	{ "sq", "SQE to RTS, for UD and UC", recover_sq, false },
	{ "sqd", "drain the send queue, change the path, go on", recover_sqd, false },
	{ "reopen", "agents whose device is gone wait for it, or else all close theirs; opened again, new QPs, connect",
	  recover_reopen, false },
	{ "restart", "agents whose process is gone are started anew, or else all; then new QPs and connect", recover_restart,
	  false },
	{ NULL, NULL, NULL, false },
};

const struct recover_path *recover_find(const char *name)
{
	for (const struct recover_path *p = recover_table; p->name; p++)
		if (name && strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

void recover_phase(struct case_run *r, const json_t *step, const char *phase, unsigned attempt, const char *text)
{
	json_t *pairs = json_object_get(step, "pairs"), *pair;
	const char *path = json_str(step, "path");
	size_t i;

	if (json_array_size(pairs) >= CTL_CROWD_MIN) {
		case_record(r, "controller",
			    json_pack("{s:s,s:s,s:I,s:{s:s,s:i,s:s,s:s*},s:{s:O}}", "kind", "many", "of", "recover", "count",
				      (json_int_t)json_array_size(pairs), "all", "path", path ? path : "?", "attempt", (int)attempt,
				      "phase", phase, "text", text && text[0] ? text : NULL, "each", "pair", pairs));
		return;
	}
	json_array_foreach(pairs, i, pair) {
		json_t *rec = json_pack("{s:s,s:O,s:s,s:i,s:s}", "kind", "recover", "pair", pair, "path", path ? path : "?",
					"attempt", (int)attempt, "phase", phase);

		if (text && text[0])
			json_object_set_new(rec, "text", json_string(text));
		case_record(r, "controller", rec);
	}
}

static void add_drain(struct ops *ops, struct object *qp, bool many)
{
	struct op *op;

	if (!many) {
		ops_add(ops, qp->agent,
			json_pack("{s:s,s:s,s:I}", "op", "drain", "qp", qp->name, "deadline_ns", (json_int_t)DRAIN_NS));
		return;
	}
	op = many_find(ops, qp, "drain", 0);
	if (!op)
		op = many_begin(ops, qp, "drain", 0, json_pack("{s:I}", "deadline_ns", (json_int_t)DRAIN_NS));
	many_join(op, qp, "qp");
}

static int64_t left_in_flight(const struct op *op)
{
	int64_t left = 0;

	if (!op->of)
		return json_int(op->reply, "in_flight", 0);
	for (size_t i = 0; i < op->n_obj; i++)
		left += json_integer_value(many_field(op->reply, i, "in_flight"));
	return left;
}

static void to_err(struct case_run *r, const struct ends *ends)
{
	struct ops ops = { .head = NULL };
	bool many = many_may(r, ends);

	/* From RESET there is no way to ERR, and nothing outstanding either. */
	for (size_t i = 0; i < ends->n; i++) {
		struct object *qp = ends->qp[i];

		if (qp->exists && qp->state && strcmp(qp->state, "ERR") != 0 && strcmp(qp->state, "RESET") != 0)
			many_move(&ops, qp, "ERR", "recover", many);
	}
	ops_run(r, &ops, 0, NULL);
	ops_free(&ops);
}

int recover_drain(struct case_run *r, const struct ends *ends, struct error *e)
{
	struct ops ops = { .head = NULL };
	int64_t left = 0;
	int rc;

	payload_settle(r, 0);
	query_states(r, ends, "recover");
	to_err(r, ends);
	for (size_t i = 0; i < ends->n; i++)
		if (ends->qp[i]->exists && ends->qp[i]->state && strcmp(ends->qp[i]->state, "RESET") != 0)
			add_drain(&ops, ends->qp[i], many_may(r, ends));
	rc = ops_run(r, &ops, DRAIN_NS + 2 * NSEC_PER_SEC, e);
	for (struct op *op = ops.head; op; op = op->next)
		left += left_in_flight(op);
	ops_free(&ops);
	payload_unended(r, ends);
	if (left)
		return error_set(e, -EBUSY, "%lld work requests have no end after %llu ms in ERR", (long long)left,
				 DRAIN_NS / NSEC_PER_MSEC);
	payload_settle(r, 0);
	return rc;
}

static void set_overrides(const struct ends *ends, const json_t *step)
{
	for (size_t i = 0; i < ends->n; i++) {
		json_t *own = plan_own_attr(json_object_get(step, "qp"), ends->qp[i]->agent);

		json_object_update(ends->qp[i]->override_attr, own);
		json_decref(own);
	}
}

static int check_traffic(struct case_run *r, const struct ends *ends, const json_t *step, unsigned attempt, uint64_t end_ns,
			 struct error *e)
{
	const json_t *check = json_object_get(step, "check");
	json_t *ops = json_is_array(json_object_get(check, "ops")) ? json_incref(json_object_get(check, "ops"))
								   : json_pack("[s,s,s]", "SEND", "WRITE", "READ");
	struct traffic_spec spec = { .ops = ops, .tag = (uint32_t)json_int(check, "tag", 0), .by = "recover" };
	uint64_t now = now_ns(), ns = end_ns > now && end_ns - now < CHECK_NS ? end_ns - now : CHECK_NS;
	char as[CTL_NAME_MAX];
	int rc;

	snprintf(as, sizeof as, "recover-%d.%u%s%.30s", (int)json_int(step, "n", 0), attempt, r->iter[0] ? "." : "", r->iter);
	spec.as = as;
	rc = value_resolve(r, json_object_get(check, "size"), 1024, &spec.size, e);
	if (!rc)
		rc = value_resolve(r, json_object_get(check, "depth"), 8, &spec.depth, e);
	if (!rc)
		rc = value_resolve(r, json_object_get(check, "messages"), 24, &spec.messages, e);
	if (!rc)
		rc = ctl_traffic_run(r, ends, &spec, ns, e);
	json_decref(ops);
	return rc;
}

static int attempt_once(struct case_run *r, const json_t *step, const struct recover_path *path, const struct ends *ends,
			const struct ends *pair_ends, unsigned attempt, uint64_t end_ns, struct error *e)
{
	int rc;

	case_later(r, path->moves && many_may(r, ends));
	recover_phase(r, step, "begin", attempt, NULL);
	r->attempt = attempt;
	rc = path->run(r, ends, step, e);
	if (!rc)
		recover_phase(r, step, "rts", attempt, NULL);
	case_later(r, false);
	if (!rc) {
		rc = check_traffic(r, pair_ends, step, attempt, end_ns, e);
	}
	recover_phase(r, step, rc ? "failed" : "verified", attempt, rc ? e->text : NULL);
	return rc;
}

/* What an agent that answers nobody was seen in last says nothing. */
static bool all_rts(struct case_run *r, const struct ends *ends)
{
	for (size_t i = 0; i < ends->n; i++)
		if (agent_unreachable(agent_find(r, ends->qp[i]->agent)) || !ends->qp[i]->exists || !ends->qp[i]->state ||
		    strcmp(ends->qp[i]->state, "RTS") != 0)
			return false;
	return true;
}

static int attempts(struct case_run *r, const json_t *step, const struct recover_path *path, const struct ends *ends,
		    const struct ends *pair_ends, struct error *e)
{
	int64_t n = 1;
	uint64_t backoff = json_u64(step, "backoff", 0), end = step_deadline(r, step, now_ns(), 60 * NSEC_PER_SEC);
	int rc = value_resolve(r, json_object_get(step, "attempts"), 1, &n, e);

	for (int64_t i = 1; !rc && i <= n; i++) {
		rc = attempt_once(r, step, path, ends, pair_ends, (unsigned)i, end, e);
		if (rc == 0 || i == n || now_ns() >= end)
			return rc;
		rc = 0;
		if (backoff)
			case_wait(r, NULL, NULL, now_ns() + backoff);
	}
	return rc;
}

static void conclude(struct case_run *r, const json_t *step, struct step_result *res, int rc, const struct error *e)
{
	const char *wanted = json_str(step, "result");
	bool fails = wanted && strcmp(wanted, "fails") == 0;

	res->text = *e;
	if (rc == -EPROTO || rc == -EPIPE)
		res->outcome = OUTCOME_ERROR;
	else if ((rc != 0) == fails)
		res->outcome = OUTCOME_DONE;
	else {
		res->outcome = OUTCOME_BROKEN;
		r->broken = true;
		if (!rc)
			error_set(&res->text, 0, "it recovered, and was expected not to");
	}
}

void step_recover(struct case_run *r, const json_t *step, struct step_result *res)
{
	const struct recover_path *path = recover_find(json_str(step, "path"));
	struct ends pair_ends = { NULL, 0 }, ends = { NULL, 0 };
	struct error e = { "" };
	int rc;

	if (!path || !path->run) {
		res->outcome = OUTCOME_ERROR;
		error_set(&res->text, 0, "recovery path %s is not in this build", json_str(step, "path"));
		return;
	}
	rc = ends_of_pairs(r, json_object_get(step, "pairs"), &pair_ends, &e);
	if (!rc && json_object_get(step, "ends"))
		rc = ends_of_names(r, json_object_get(step, "ends"), &ends, &e);
	else if (!rc)
		rc = ends_of_pairs(r, json_object_get(step, "pairs"), &ends, &e);
	if (rc)
		goto conclude;
	if (json_bool(step, "if_needed", false)) {
		query_states(r, &pair_ends, "recover");
		if (all_rts(r, &pair_ends)) {
			res->outcome = OUTCOME_DONE;
			error_set(&res->text, 0, "not needed: all ends are in RTS");
			goto free_ends;
		}
	}
	set_overrides(&ends, step);
	rc = attempts(r, step, path, &ends, &pair_ends, &e);
conclude:
	conclude(r, step, res, rc, &e);
free_ends:
	ends_free(&ends);
	ends_free(&pair_ends);
}
