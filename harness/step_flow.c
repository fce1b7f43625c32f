/* SPDX-License-Identifier: MIT */
/* Steps that order other steps or let time pass: repeat, together, wait; and what ends tell each other: remember, exchange. */
#include "controller_step.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "cmp.h"
#include "json.h"
#include "units.h"

static void set_step(struct case_run *r, const json_t *step)
{
	r->step = (int)json_int(step, "n", 0);
	recorder_step(r->rec, r->step, r->iter);
}

static void judge_passes(struct step_result *res, const json_t *passes, unsigned passed, unsigned ran)
{
	error_set(&res->text, 0, "%u of %u iterations passed", passed, ran);
	if (!passes)
		res->outcome = OUTCOME_DONE;
	else
		res->outcome = compare_holds(passes, passed) ? OUTCOME_MET : OUTCOME_BROKEN;
}

void step_repeat(struct case_run *r, const json_t *step, struct step_result *res)
{
	const json_t *steps = json_object_get(step, "steps"), *member;
	struct resources_watch watch = { .r = r };
	bool outer_broken = r->broken;
	int64_t times = 1;
	unsigned passed = 0, ran = 0;
	char outer[sizeof r->iter];
	size_t i;
	int rc = value_resolve(r, json_object_get(step, "times"), 1, &times, &res->text);

	if (rc) {
		res->outcome = OUTCOME_ERROR;
		return;
	}
	snprintf(outer, sizeof outer, "%s", r->iter);
	watch.rounds = json_str(step, "resources") ? times : 0;
	for (int64_t n = 1; n <= times && !r->over; n++) {
		snprintf(r->iter, sizeof r->iter, "%.40s%s%lld", outer, outer[0] ? "." : "", (long long)n);
		r->iterations++;
		r->broken = false;
		json_array_foreach(steps, i, member)
			step_run(r, member);
		ran++;
		passed += !r->broken && !r->over;
		if (watch.rounds && !r->over) {
			snprintf(r->iter, sizeof r->iter, "%s", outer);
			set_step(r, step);
			resources_round(&watch, n);
		}
	}
	resources_free(&watch);
	snprintf(r->iter, sizeof r->iter, "%s", outer);
	judge_passes(res, json_object_get(step, "passes"), passed, ran);
	/* With `passes` the iterations answer for themselves. */
	r->broken = outer_broken || (json_object_get(step, "passes") ? res->outcome == OUTCOME_BROKEN : passed < ran);
}

struct member {
	const json_t *step;
	const struct step_ops *ops;
	struct ops list;
	size_t n_ops;
	struct step_result res;
};

/* The requests of all members go out as one list; each member has its own back afterwards, with what became of them. */
static void send_together(struct case_run *r, struct member *m, size_t n, uint64_t timeout_ns)
{
	struct ops all = { .head = NULL };
	struct error e = { "" };
	struct op *op, *next;

	for (size_t i = 0; i < n; i++) {
		DL_FOREACH_SAFE(m[i].list.head, op, next)
		{
			DL_DELETE(m[i].list.head, op);
			DL_APPEND(all.head, op);
			m[i].n_ops++;
		}
	}
	ops_run(r, &all, timeout_ns, &e);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < m[i].n_ops; k++) {
			op = all.head;
			DL_DELETE(all.head, op);
			DL_APPEND(m[i].list.head, op);
		}
	}
}

static void member_outcome(struct member *m)
{
	struct error e = { "" };
	int rc = 0;

	if (m->res.outcome != OUTCOME_INVALID)
		return;
	for (struct op *op = m->list.head; op && !rc; op = op->next)
		if (op->rc < 0)
			rc = error_set(&e, op->rc, "%s", op->text);
	step_from_rc(&m->res, rc, &e);
}

static bool is_message(const struct member *m)
{
	return m->ops && m->ops->queue;
}

static void send_members(struct case_run *r, const json_t *step, struct member *m, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		set_step(r, m[i].step);
		step_record(r, m[i].step, NULL);
		if (m[i].ops->queue(r, m[i].step, &m[i].list, &m[i].res.text))
			m[i].res.outcome = OUTCOME_ERROR;
	}
	set_step(r, step);
	/* What else happens there is not put off. */
	case_later(r, false);
	send_together(r, m, n, CTL_REQUEST_NS);
	for (size_t i = 0; i < n; i++) {
		member_outcome(&m[i]);
		set_step(r, m[i].step);
		if (m[i].ops->finish)
			m[i].ops->finish(r, m[i].step, &m[i].list);
		step_record(r, m[i].step, &m[i].res);
		ops_free(&m[i].list);
	}
}

void step_together(struct case_run *r, const json_t *step, struct step_result *res)
{
	const json_t *steps = json_object_get(step, "steps"), *s;
	size_t n = json_array_size(steps), i, end;
	struct member *m = calloc(n ? n : 1, sizeof *m);

	if (!m) {
		res->outcome = OUTCOME_ERROR;
		return;
	}
	json_array_foreach(steps, i, s)
		m[i] = (struct member){ .step = s, .ops = step_find(json_str(s, "do")) };
	for (i = 0; i < n; i = end) {
		for (end = i; end < n && is_message(&m[end]); end++) {
		}
		if (end > i)
			send_members(r, step, m + i, end - i);
		else
			step_run(r, m[end++].step);
	}
	free(m);
	res->outcome = OUTCOME_DONE;
}

/* While a step waits its case may end: the wire's death does that. */
static bool is_over(void *user)
{
	const struct case_run *r = user;

	return r->end_ns && now_ns() >= r->end_ns;
}

void step_wait(struct case_run *r, const json_t *step, struct step_result *res)
{
	uint64_t begin = now_ns(), ns = json_u64(step, "for_ns", json_u64(step, "arg", 0)), end = begin + ns;

	if (r->end_ns && end > r->end_ns)
		end = r->end_ns;
	case_wait(r, is_over, r, end);
	res->outcome = now_ns() >= begin + ns ? OUTCOME_DONE : OUTCOME_TIMEOUT;
}

static json_t *told_by(struct case_run *r, struct object *o)
{
	return o->type == OBJECT_MR ? handover_region(o) : handover_make(r, o);
}

void step_remember(struct case_run *r, const json_t *step, struct step_result *res)
{
	const json_t *end = json_object_get(step, "end");
	const char *as = json_str(step, "as"), *name = json_str(step, "mr");
	struct object *o;

	if (!name)
		name = json_string_value(json_is_array(end) ? json_array_get(end, 0) : end);
	o = ctl_object_find(r, name);
	if (!o || !as) {
		res->outcome = OUTCOME_ERROR;
		error_set(&res->text, 0, "there is no %s in the plan", name ? name : "end");
	} else if (o->exists) {
		json_object_set_new(r->remembered, as, told_by(r, o));
		res->outcome = OUTCOME_DONE;
	} else {
		res->outcome = OUTCOME_REFUSED;
		error_set(&res->text, 0, "%s does not exist: there is nothing that %s told", name,
			  o->type == OBJECT_MR ? "its agent" : "it");
	}
}

void step_exchange(struct case_run *r, const json_t *step, struct step_result *res)
{
	const char *region = json_str(step, "mr");
	struct ends ends = { NULL, 0 };
	struct error e = { "" };
	int rc = ends_of_pairs(r, json_object_get(step, "pairs"), &ends, &e);

	for (size_t i = 0; !rc && i < ends.n; i++)
		rc = region ? handover_tell_key(r, ends.qp[i], region, &e) : handover_tell(r, ends.qp[i], true, &e);
	ends_free(&ends);
	step_from_rc(res, rc, &e);
}
