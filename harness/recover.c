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

/* One run of a step. */
struct course {
	const struct recover_path *path;
	struct ends ends, pair_ends; /* who acts; between whom traffic is to pass */
	uint64_t begin_ns, end_ns;
	bool late; /* it was not over by then */
};

static bool is_to_fail(const json_t *step)
{
	return json_has(step, "result", "fails");
}

/* How long the traffic may take. Where none is to pass it may say so by silence: what was waited in vain is within the time. */
static uint64_t time_to_check(const struct course *c, const json_t *step)
{
	uint64_t now = now_ns(), left = c->end_ns > now ? c->end_ns - now : 0;

	if (is_to_fail(step))
		left -= left / 4;
	return left < PLAN_CHECK_NS ? left : PLAN_CHECK_NS;
}

static int check_traffic(struct case_run *r, const struct course *c, const json_t *step, unsigned attempt, struct error *e)
{
	const json_t *check = json_object_get(step, "check");
	json_t *ops = json_is_array(json_object_get(check, "ops")) ? json_incref(json_object_get(check, "ops"))
								   : json_pack("[s,s,s]", "SEND", "WRITE", "READ");
	struct traffic_spec spec = { .ops = ops, .tag = (uint32_t)json_int(check, "tag", 0), .by = "recover" };
	uint64_t left = time_to_check(c, step);
	char as[CTL_NAME_MAX];
	int rc = left ? 0 : error_set(e, -ETIMEDOUT, "no time is left for traffic");

	snprintf(as, sizeof as, "recover-%d.%u%s%.30s", (int)json_int(step, "n", 0), attempt, r->iter[0] ? "." : "", r->iter);
	spec.as = as;
	if (!rc)
		rc = value_resolve(r, json_object_get(check, "size"), 1024, &spec.size, e);
	if (!rc)
		rc = value_resolve(r, json_object_get(check, "depth"), 8, &spec.depth, e);
	if (!rc)
		rc = value_resolve(r, json_object_get(check, "messages"), 24, &spec.messages, e);
	if (!rc)
		rc = ctl_traffic_run(r, &c->pair_ends, &spec, left, e);
	json_decref(ops);
	return rc;
}

/* That it recovered too late is no recovery; where none is wanted it is one. */
static int in_time(struct course *c, const json_t *step, int rc, struct error *e)
{
	uint64_t now = now_ns();
	char took[32], had[32];

	if (now < c->end_ns || (!rc && is_to_fail(step)))
		return rc;
	c->late = true;
	units_format_ns(now - c->begin_ns, took, sizeof took);
	units_format_ns(c->end_ns - c->begin_ns, had, sizeof had);
	if (!rc)
		return error_set(e, -ETIMEDOUT, "it recovered, but that took %s, and it had %s", took, had);
	return error_prefix(e, rc, "no recovery after %s, and it had %s", took, had);
}

static int attempt_once(struct case_run *r, const json_t *step, struct course *c, unsigned attempt, struct error *e)
{
	int rc;

	case_later(r, c->path->moves && many_may(r, &c->ends));
	recover_phase(r, step, "begin", attempt, NULL);
	r->attempt = attempt;
	rc = c->path->run(r, &c->ends, step, e);
	if (!rc)
		recover_phase(r, step, "rts", attempt, NULL);
	case_later(r, false);
	if (!rc)
		rc = check_traffic(r, c, step, attempt, e);
	rc = in_time(c, step, rc, e);
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

static int attempts(struct case_run *r, const json_t *step, struct course *c, struct error *e)
{
	int64_t n = 1;
	uint64_t backoff = json_u64(step, "backoff", 0);
	int rc = value_resolve(r, json_object_get(step, "attempts"), 1, &n, e);

	for (int64_t i = 1; !rc && i <= n; i++) {
		rc = attempt_once(r, step, c, (unsigned)i, e);
		if (rc == 0 || i == n || c->late)
			return rc;
		if (backoff)
			case_wait(r, NULL, NULL, now_ns() + backoff < c->end_ns ? now_ns() + backoff : c->end_ns);
		rc = now_ns() < c->end_ns ? 0 : in_time(c, step, rc, e);
	}
	return rc;
}

static void conclude(struct case_run *r, const json_t *step, struct step_result *res, int rc, bool late, const struct error *e)
{
	res->text = *e;
	if (rc == -EPROTO || rc == -EPIPE)
		res->outcome = OUTCOME_ERROR;
	else if (!late && (rc != 0) == is_to_fail(step))
		res->outcome = OUTCOME_DONE;
	else {
		res->outcome = late ? OUTCOME_TIMEOUT : OUTCOME_BROKEN;
		r->broken = true;
		if (!rc)
			error_set(&res->text, 0, "it recovered, and was expected not to");
	}
}

/* Who acts, and between whom traffic is to pass. */
static int find_ends(struct case_run *r, const json_t *step, struct course *c, struct error *e)
{
	int rc = ends_of_pairs(r, json_object_get(step, "pairs"), &c->pair_ends, e);

	if (rc)
		return rc;
	if (json_object_get(step, "ends"))
		return ends_of_names(r, json_object_get(step, "ends"), &c->ends, e);
	return ends_of_pairs(r, json_object_get(step, "pairs"), &c->ends, e);
}

static bool is_needless(struct case_run *r, const json_t *step, const struct course *c)
{
	if (!json_bool(step, "if_needed", false))
		return false;
	query_states(r, &c->pair_ends, "recover");
	return all_rts(r, &c->pair_ends);
}

void step_recover(struct case_run *r, const json_t *step, struct step_result *res)
{
	struct course c = { .path = recover_find(json_str(step, "path")), .begin_ns = now_ns() };
	struct error e = { "" };
	int rc;

	if (!c.path || !c.path->run) {
		res->outcome = OUTCOME_ERROR;
		error_set(&res->text, 0, "recovery path %s is not in this build", json_str(step, "path"));
		return;
	}
	rc = find_ends(r, step, &c, &e);
	if (!rc && is_needless(r, step, &c)) {
		res->outcome = OUTCOME_DONE;
		error_set(&res->text, 0, "not needed: all ends are in RTS");
	} else {
		c.end_ns = step_deadline(r, step, c.begin_ns, 60 * NSEC_PER_SEC);
		set_overrides(&c.ends, step);
		rc = rc ? rc : attempts(r, step, &c, &e);
		conclude(r, step, res, rc, c.late, &e);
	}
	ends_free(&c.ends);
	ends_free(&c.pair_ends);
}
