/* SPDX-License-Identifier: MIT */
/* How long a step may take. Bounds, not predictions: nothing is judged by them except that a step must end. */
#include "plan_internal.h"

#include <string.h>

#include "../faults/fault.h"
#include "json.h"
#include "plan_timers.h"
#include "units.h"

/* Emulation is slow, and so is a machine that compiles something else meanwhile. */
#define SLACK_NS (5 * NSEC_PER_SEC)
#define SETUP_NS (10 * NSEC_PER_SEC)
#define SETUP_PER_QP_NS (100 * NSEC_PER_MSEC)
/* Waits that the attributes do not bound: timeout 0, rnr_retry 7. */
#define UNBOUNDED_NS (10 * NSEC_PER_SEC)
#define MESSAGE_NS (10 * NSEC_PER_MSEC)
#define BYTE_NS 1000
#define PROCESS_NS (20 * NSEC_PER_SEC) /* another process, and its device open */
#define BUDGET_MIN_NS (10 * NSEC_PER_SEC)

/* Whatever a file asks for: nobody waits longer, and sums over many cases still fit. */
#define LONGEST_NS (366ULL * 24 * 3600 * NSEC_PER_SEC)

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) || sum > LONGEST_NS ? LONGEST_NS : sum;
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) || product > LONGEST_NS ? LONGEST_NS : product;
}

static uint64_t bounded(struct window w)
{
	return w.never || w.high_ns == UINT64_MAX ? UNBOUNDED_NS : w.high_ns;
}

/* The longest that this QP's own timers may need to report an error. */
static uint64_t timers_of(const struct planner *p, const json_t *attrs, const json_t *qp)
{
	const json_t *peer = plan_qp(p->plan, json_str(qp, "peer")), *attr, *peer_attr;
	uint64_t ns = 0;

	for (size_t i = 0; i < plan_timers_count(attrs, qp); i++) {
		for (size_t k = 0; k < plan_timers_count(attrs, peer); k++) {
			attr = plan_timers_at(attrs, qp, i);
			peer_attr = plan_timers_at(attrs, peer, k);
			ns = max_u64(ns, bounded(plan_window(DETECTION_SILENT, attr, peer_attr, true)));
			ns = max_u64(ns, bounded(plan_window(DETECTION_RNR, attr, peer_attr, true)));
		}
	}
	return ns;
}

static bool names_qp(const json_t *names, const json_t *qp)
{
	const char *name = json_str(qp, "name"), *peer = json_str(qp, "peer");
	size_t i;
	json_t *item;

	json_array_foreach(names, i, item) {
		const char *text = json_string_value(item);
		size_t len = strlen(name), peer_len = strlen(peer);

		/* "p.a", "p.a.send", "p.a@1", and the other end, whose timers decide what this one sees. */
		if ((!strncmp(text, name, len) && strchr(".@", text[len])) ||
		    (!strncmp(text, peer, peer_len) && strchr(".@", text[peer_len])))
			return true;
	}
	return false;
}

/* The timers of the QPs that names speak of, with these attributes; of all when they speak of none. */
static uint64_t timers_with(const struct planner *p, const json_t *attrs, const json_t *names)
{
	uint64_t longest = 0, of_all = 0;
	size_t i;
	json_t *qp;

	json_array_foreach(p->qps, i, qp) {
		uint64_t ns = timers_of(p, attrs, qp);

		of_all = max_u64(of_all, ns);
		if (names_qp(names, qp))
			longest = max_u64(longest, ns);
	}
	return longest ? longest : of_all;
}

static uint64_t timers(const struct planner *p, const json_t *names)
{
	return timers_with(p, p->timers, names);
}

/* What was posted before a recovery has ended in the life that it was posted in. */
static uint64_t timers_of_post(const struct planner *p, const char *as)
{
	const json_t *post = json_object_get(p->posts, as), *then = json_object_get(p->post_timers, as);

	if (!post)
		return 0;
	if (json_equal(then, p->timers))
		return timers(p, json_object_get(post, "at"));
	return max_u64(timers(p, json_object_get(post, "at")), timers_with(p, then, json_object_get(post, "at")));
}

static uint64_t message_time(const json_t *traffic, uint64_t ends)
{
	uint64_t messages = (uint64_t)json_int(traffic, "messages", 0);

	return times(ends, times(messages, add(MESSAGE_NS, times((uint64_t)json_int(traffic, "size", 0), BYTE_NS))));
}

static uint64_t for_pairs(const json_t *step)
{
	return SETUP_NS + 2 * json_array_size(json_object_get(step, "pairs")) * SETUP_PER_QP_NS;
}

static uint64_t expect_time(struct planner *p, const json_t *step)
{
	uint64_t ns = max_u64(timers(p, json_object_get(step, "at")),
			      timers_of_post(p, json_str(step, "of") ? json_str(step, "of") : ""));
	size_t i;
	json_t *choice;

	ns = add(add(ns, SLACK_NS), add(p->fault_ns, json_u64(step, "for_ns", 0)));
	json_array_foreach(json_object_get(step, "any"), i, choice)
		ns = max_u64(ns, expect_time(p, choice));
	return ns;
}

static uint64_t traffic_time(struct planner *p, const json_t *step)
{
	uint64_t ends = 2 * json_array_size(json_object_get(step, "pairs"));
	uint64_t recovery = add(timers(p, NULL) + SETUP_NS, p->fault_ns);

	return json_bool(step, "background", false) ? SETUP_NS : add(recovery, message_time(step, ends));
}

static uint64_t recover_time(struct planner *p, const json_t *step)
{
	uint64_t ends = 2 * json_array_size(json_object_get(step, "pairs"));
	uint64_t check = message_time(json_object_get(step, "check"), ends);
	uint64_t attempt = add(SLACK_NS + for_pairs(step) + timers(p, NULL), max_u64(check, PLAN_CHECK_NS));
	uint64_t attempts = max_u64(json_u64(step, "attempts", 1), 1);
	const char *path = json_str(step, "path");

	if (path && (!strcmp(path, "restart") || !strcmp(path, "reopen")))
		attempt = add(attempt, PROCESS_NS);
	/* One pair after the other. */
	if (path && !strcmp(path, "cm"))
		attempt = add(attempt, times(json_array_size(json_object_get(step, "pairs")), PLAN_LEAVE_NS));
	return add(add(times(attempts, attempt), times(attempts - 1, json_u64(step, "backoff", 0))), p->fault_ns);
}

static uint64_t members_time(const json_t *step)
{
	uint64_t ns = 0;
	size_t i;
	json_t *member;

	json_array_foreach(json_object_get(step, "steps"), i, member)
		ns = add(ns, json_u64(member, "deadline_ns", 0));
	return times(ns, max_u64(json_u64(step, "times", 1), 1));
}

static uint64_t post_time(struct planner *p, const json_t *step)
{
	uint64_t count = plan_ref_bound(p, json_object_get(step, "count"));

	return add(SLACK_NS, times(times(json_array_size(json_object_get(step, "at")), count),
				   add(times(json_u64(step, "size", 0), BYTE_NS / 10), 1000)));
}

static uint64_t one_call_time(struct planner *p, const json_t *step)
{
	(void)p;
	(void)step;
	return SETUP_NS;
}

static uint64_t connect_time(struct planner *p, const json_t *step)
{
	return add(for_pairs(step), p->fault_ns);
}

static uint64_t wait_time(struct planner *p, const json_t *step)
{
	(void)p;
	return add(json_u64(step, "for_ns", 0), SLACK_NS);
}

static uint64_t group_time(struct planner *p, const json_t *step)
{
	(void)p;
	return members_time(step);
}

static const struct step_time {
	const char *name;
	uint64_t (*time)(struct planner *p, const json_t *step);
} step_times[] = {
	{ "attach", one_call_time }, { "detach", one_call_time }, { "allow", one_call_time },   { "clear", one_call_time },
	{ "connect", connect_time }, { "create", one_call_time }, { "destroy", one_call_time }, { "exchange", one_call_time },
	{ "expect", expect_time },   { "fault", one_call_time },  { "modify", one_call_time },  { "poll", one_call_time },
	{ "post", post_time },       { "post_recv", post_time },  { "recover", recover_time },  { "remember", one_call_time },
	{ "repeat", group_time },    { "together", group_time },  { "traffic", traffic_time },  { "wait", wait_time },
};

static uint64_t deadline(struct planner *p, const json_t *step)
{
	const char *what = json_str(step, "do");
	uint64_t ns = SETUP_NS;

	for (size_t i = 0; i < sizeof(step_times) / sizeof(*step_times); i++)
		if (!strcmp(step_times[i].name, what))
			ns = step_times[i].time(p, step);
	return add(json_u64(step, "within", ns), 0);
}

/* What a fault may add to the waits behind it. */
static uint64_t fault_time(const json_t *step)
{
	const char *name = json_str(step, "fault");
	const struct fault_ops *ops = name && json_has(step, "do", "fault") ? fault_find(name) : NULL;
	uint64_t ns = json_has(step, "do", "fault") ? (uint64_t)json_int(step, "for", 0) : 0;

	for (const struct fault_param *param = ops ? ops->params : NULL; param && param->name; param++)
		if (param->type == FAULT_PARAM_DURATION)
			ns = add(ns, json_u64(json_object_get(step, "args"), param->name, 0));
	return ns;
}

static void take_step(struct planner *p, json_t *step)
{
	const char *as = json_str(step, "as");
	uint64_t ns;

	plan_timers_rounds(p->timers, p->plan, step);
	p->fault_ns = add(p->fault_ns, fault_time(step));
	plan_deadlines(p, json_object_get(step, "steps"));
	ns = deadline(p, step);
	if (as && json_has(step, "do", "post"))
		json_object_set_new(p->post_timers, as, json_copy(p->timers));
	/* It begins with what was, and may end with what it makes of it. */
	plan_timers_follow(p->timers, p->plan, step);
	if (json_object_size(p->timers))
		ns = max_u64(ns, deadline(p, step));
	json_object_set_new(step, "deadline_ns", json_integer((json_int_t)ns));
}

void plan_deadlines(struct planner *p, const json_t *steps)
{
	size_t i;
	json_t *step;

	json_array_foreach(steps, i, step)
		take_step(p, step);
}

uint64_t plan_budget(const json_t *steps)
{
	uint64_t ns = 0;
	size_t i;
	json_t *step;

	json_array_foreach(steps, i, step)
		ns = add(ns, json_u64(step, "deadline_ns", 0));
	return max_u64(ns, BUDGET_MIN_NS);
}
