/* SPDX-License-Identifier: MIT */
#include "controller_step.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "json.h"
#include "units.h"

const char *const outcome_names[NUM_OUTCOMES] = {
	[OUTCOME_INVALID] = "?",       [OUTCOME_DONE] = "done",       [OUTCOME_MET] = "met",     [OUTCOME_BROKEN] = "broken",
	[OUTCOME_TIMEOUT] = "timeout", [OUTCOME_REFUSED] = "refused", [OUTCOME_ERROR] = "error", [OUTCOME_SKIPPED] = "skipped",
};

static const struct step_ops step_table[] = {
	{ .name = "allow", .run = step_allow, .looks = true },
	{ .name = "attach", .queue = step_attach_queue },
	{ .name = "clear", .run = step_clear },
	{ .name = "connect", .run = step_connect },
	{ .name = "create", .queue = step_create_queue },
	{ .name = "destroy", .queue = step_destroy_queue },
	{ .name = "detach", .queue = step_attach_queue },
	{ .name = "exchange", .run = step_exchange },
	{ .name = "expect", .run = step_expect, .looks = true },
	{ .name = "fault", .run = step_fault },
	{ .name = "modify", .queue = step_modify_queue, .moves = true },
	{ .name = "poll", .queue = step_poll_queue },
	{ .name = "post", .queue = step_post_queue, .finish = step_post_finish },
	{ .name = "post_recv", .queue = step_post_recv_queue },
	{ .name = "recover", .run = step_recover, .moves = true },
	{ .name = "remember", .run = step_remember, .looks = true },
	{ .name = "repeat", .run = step_repeat },
	{ .name = "together", .run = step_together },
	{ .name = "traffic", .run = step_traffic },
	{ .name = "wait", .run = step_wait, .looks = true },
};

const struct step_ops *step_find(const char *name)
{
	for (size_t i = 0; name && i < sizeof step_table / sizeof step_table[0]; i++)
		if (strcmp(step_table[i].name, name) == 0)
			return &step_table[i];
	return NULL;
}

void step_from_rc(struct step_result *res, int rc, const struct error *e)
{
	res->text = *e;
	if (rc == 0)
		res->outcome = OUTCOME_DONE;
	else if (rc == -ETIMEDOUT)
		res->outcome = OUTCOME_TIMEOUT;
	else if (rc == -EPROTO || rc == -EPIPE || rc == -ENOBUFS || rc == -EMSGSIZE)
		res->outcome = OUTCOME_ERROR;
	else
		res->outcome = OUTCOME_REFUSED;
}

uint64_t step_deadline(const struct case_run *r, const json_t *step, uint64_t begin_ns, uint64_t def_ns)
{
	uint64_t ns = json_u64(step, "deadline_ns", 0), end = begin_ns + (ns ? ns : def_ns);

	return r->end_ns && end > r->end_ns ? r->end_ns : end;
}

void step_record(struct case_run *r, const json_t *step, const struct step_result *res)
{
	json_t *rec = json_pack("{s:s,s:s,s:s,s:I}", "kind", "step", "phase", res ? "end" : "begin", "do", json_str(step, "do"),
				"line", (json_int_t)json_int(step, "line", 0));

	if (rec && res) {
		json_object_set_new(rec, "outcome", json_string(outcome_names[res->outcome]));
		if (res->text.text[0])
			json_object_set_new(rec, "text", json_string(res->text.text));
	}
	case_record(r, "controller", rec);
}

/* `within` is for the verb: its agent says that it blocks before the controller gives up on the agent. */
static void give_deadlines(const json_t *step, struct ops *list)
{
	int64_t within = json_int(step, "within", 0);
	struct op *op;

	if (within <= 0)
		return;
	for (op = list->head; op; op = op->next) {
		json_t *each = op->of ? json_object_get(op->req, "all") : op->req;

		if (!json_object_get(each, "deadline_ns"))
			json_object_set_new(each, "deadline_ns", json_integer(within / 2));
	}
}

static void run_queued(struct case_run *r, const json_t *step, const struct step_ops *ops, struct step_result *res)
{
	struct ops list = { .head = NULL };
	struct error e = { "" };
	uint64_t begin = now_ns(), end = step_deadline(r, step, begin, CTL_REQUEST_NS);
	int rc = ops->queue(r, step, &list, &e);

	give_deadlines(step, &list);
	if (!rc)
		rc = ops_run(r, &list, end > begin ? end - begin : 1, &e);
	if (ops->finish)
		ops->finish(r, step, &list);
	ops_free(&list);
	step_from_rc(res, rc, &e);
}

static void run_one(struct case_run *r, const json_t *step, struct step_result *res)
{
	const struct step_ops *ops = step_find(json_str(step, "do"));

	if (!ops) {
		res->outcome = OUTCOME_ERROR;
		error_set(&res->text, 0, "step '%s' is not known to the controller", json_str(step, "do"));
	} else if (ops->run)
		ops->run(r, step, res);
	else
		run_queued(r, step, ops, res);
}

void step_run(struct case_run *r, const json_t *step)
{
	struct step_result res = { .outcome = OUTCOME_INVALID };
	const struct controller_options *o = &r->c->o;
	const struct step_ops *ops = step_find(json_str(step, "do"));

	if (r->end_ns && now_ns() >= r->end_ns)
		r->over = true;
	if (!ops || !ops->moves)
		case_later(r, false);
	case_drain(r);
	if (!r->over)
		case_pause(r, step);
	r->step = (int)json_int(step, "n", 0);
	recorder_step(r->rec, r->step, r->iter);
	if (o->on_step)
		o->on_step(o->user, r->id, r->step, json_str(step, "do"));
	step_record(r, step, NULL);
	/* Should the kernel not survive this step, it is known which one it was. */
	if (!ops || !ops->looks)
		recorder_flush(r->rec);
	if (r->over) {
		res.outcome = OUTCOME_SKIPPED;
		error_set(&res.text, 0, "the case's time (%llu ms) is used up",
			  (unsigned long long)(json_u64(r->plan, "budget_ns", 0) / NSEC_PER_MSEC));
	} else
		run_one(r, step, &res);
	case_drain(r);
	/* A step that ran others inside (repeat, together) is the current one again. */
	r->step = (int)json_int(step, "n", 0);
	recorder_step(r->rec, r->step, r->iter);
	step_record(r, step, &res);
}
