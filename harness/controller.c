/* SPDX-License-Identifier: MIT */
#include "controller.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <utlist.h>

#include "capability.h"
#include "controller_step.h"
#include "json.h"
#include "log.h"
#include "names.h"
#include "units.h"

/* Libraries are loaded for it, by all agents of all lanes at once, from where a guest has its disk. */
#define OPEN_NS (30 * NSEC_PER_SEC)
/* How late a machine is tells nothing of a call that hangs: an agent that had no turn for seconds is waited for. */
#define LAST_NS (10 * NSEC_PER_SEC)
#define RECORDS_LAG_NS (20 * NSEC_PER_MSEC)

int controller_new(sd_event *loop, struct lab *lab, const struct lab_lane *lane, const struct controller_options *o,
		   struct controller **ret, struct error *e)
{
	struct controller *c = calloc(1, sizeof *c);

	if (!c)
		return error_set(e, -ENOMEM, "controller: out of memory");
	if (!o->agent_path || access(o->agent_path, X_OK) != 0) {
		free(c);
		return error_set(e, -ENOENT, "there is no agent to run: %s", o->agent_path ? o->agent_path : "(no path)");
	}
	c->loop = sd_event_ref(loop);
	c->lab = lab;
	c->lane = *lane;
	c->o = *o;
	c->kmsg_fd = -1;
	c->counted = json_object();
	c->device_caps = json_object();
	recorder_clock_domain(c->clk, sizeof c->clk);
	*ret = c;
	return 0;
}

const struct controller_complaints *controller_complaints(const struct controller *c)
{
	return &c->complaints;
}

bool controller_is_stuck(const struct controller *c)
{
	return c->stuck;
}

void controller_free(struct controller *c)
{
	if (!c)
		return;
	agents_free(c);
	wire_free(c);
	residue_forget(c);
	json_decref(c->counted);
	json_decref(c->device_caps);
	sd_event_source_disable_unref(c->kmsg_source);
	if (c->kmsg_fd >= 0)
		close(c->kmsg_fd);
	sd_event_unref(c->loop);
	free(c);
}

static void run_free(struct case_run *r)
{
	faults_free(r);
	posts_free(r);
	ctl_objects_free(r);
	model_free(r->model);
	sd_event_source_disable_unref(r->write);
	recorder_close(r->rec);
	json_decref(r->inbox);
	json_decref(r->unread);
	json_decref(r->remembered);
	json_decref(r->connections);
	json_decref(r->to_tell);
	json_decref(r->traffics);
	json_decref(r->counted_anew);
	json_decref(r->wc_counts);
	json_decref(r->traffic_posts);
	json_decref(r->link);
	json_decref(r->plan);
	r->c->run = NULL;
	free(r);
}

static int run_new(struct controller *c, const char *case_dir, struct case_run **ret, struct error *e)
{
	struct case_run *r = calloc(1, sizeof *r);
	char path[4096];
	int rc;

	if (!r)
		return error_set(e, -ENOMEM, "controller: out of memory");
	r->c = c;
	r->lane = &c->lane;
	r->inbox = json_array();
	r->remembered = json_object();
	r->connections = json_object();
	r->to_tell = json_array();
	r->dir = case_dir;
	r->traffics = json_object();
	r->wc_counts = json_object();
	r->traffic_posts = json_object();
	r->fault_env = case_fault_env;
	r->fault_env.ctl = r;
	snprintf(path, sizeof path, "%s/plan.json", case_dir);
	rc = json_load(path, &r->plan, e);
	if (rc)
		goto free_run;
	r->id = json_str(r->plan, "case") ? json_str(r->plan, "case") : case_dir;
	r->seed = json_u64(r->plan, "seed", 1);
	rc = ctl_objects_init(r, e);
	if (rc)
		goto free_run;
	rc = model_new(r->plan, c->o.profile, &r->model);
	if (rc) {
		error_set(e, rc, "%s: the model of expectations cannot be made: %s", r->id, strerror(-rc));
		goto free_run;
	}
	snprintf(path, sizeof path, "%s/observations.jsonl", case_dir);
	rc = recorder_open(
		&(struct recorder_options){
			.path = path, .clk = c->clk, .boot = c->lane.boot, .lane = c->lane.lane, .lag_ns = RECORDS_LAG_NS },
		&r->rec, e);
	if (rc)
		goto free_run;
	c->run = r;
	*ret = r;
	return 0;
free_run:
	run_free(r);
	return rc;
}

static void hello(struct case_run *r)
{
	struct utsname u;
	const struct lab *lab = r->c->lab;

	if (uname(&u) != 0)
		snprintf(u.release, sizeof u.release, "?");
	case_record(r, "controller",
		    json_pack("{s:s,s:s,s:s,s:s,s:o,s:i,s:i,s:b}", "kind", "hello", "case", r->id, "lab",
			      lab ? lab->ops->name : "none", "kernel", u.release, "seed", json_hex(r->seed), "protocol", 1, "pid",
			      (int)getpid(), "ends", 1));
}

/* What the agent said when it started, which may have been for another case. */
static void hello_of(struct case_run *r, const struct ctl_agent *a)
{
	json_t *rec = json_deep_copy(a->hello);
	char src[CTL_NAME_MAX + 8];

	snprintf(src, sizeof src, "agent/%s", a->name);
	json_object_set_new(rec, "kind", json_string("hello"));
	json_object_del(rec, "clk");
	case_note(r, src, json_str(a->hello, "clk"), rec);
}

static bool wants_ipv6(const struct case_run *r)
{
	return json_bool(json_object_get(r->plan, "link"), "ipv6", false);
}

/* A case before this one may have moved it. */
static int gid_index_of(const struct lab_device *d, bool ipv6)
{
	if (ipv6)
		return gid_find_link_local("/sys", d->rdma, d->port);

	int index = d->gid[0] ? gid_find("/sys", d->rdma, d->port, d->gid) : -ENOENT;

	return index >= 0 ? index : d->gid_index;
}

static void add_opens(struct case_run *r, const char *name, struct ops *ops)
{
	struct ctl_agent *a;

	for (a = r->c->agents; a; a = a->next) {
		json_t *req;

		if (!a->name[0] || (name && strcmp(a->name, name) != 0))
			continue;
		if (!plan_is_bystander(a->name))
			hello_of(r, a);
		ops_add(ops, a->name, json_pack("{s:s,s:o}", "op", "seed", "seed", json_hex(r->seed)));
		req = json_pack("{s:s,s:o,s:s,s:i}", "op", "device_open", "name", json_sprintf("dev.%s", a->name), "device",
				a->lab_device->rdma, "port", a->lab_device->port);
		json_object_set_new(req, "gid_index", json_integer(gid_index_of(a->lab_device, wants_ipv6(r))));
		json_object_set_new(req, "deadline_ns", json_integer((json_int_t)OPEN_NS));
		ops_add(ops, a->name, req);
	}
}

int agents_open(struct case_run *r, const char *name, struct error *e)
{
	struct ops ops = { .head = NULL };
	int rc;

	add_opens(r, name, &ops);
	rc = ops_run(r, &ops, OPEN_NS + NSEC_PER_SEC, e);
	ops_free(&ops);
	return rc;
}

static bool can_wire(const struct controller *c)
{
	return c->lab && c->lab->ops->lane_wire && c->o.wire_path;
}

/* The devices of this case. What is made for the wire stays for the cases after it. */
static int choose_lane(struct case_run *r, struct error *e)
{
	struct controller *c = r->c;
	int rc;

	if (!wire_wanted(r) || !can_wire(c))
		return 0;
	if (!c->has_wired) {
		rc = c->lab->ops->lane_wire(c->lab, c->lane.lane, &c->wired, e);
		if (rc)
			return error_prefix(e, rc, "the link for the wire");
		c->wired.boot = c->lane.boot;
		c->has_wired = true;
	}
	r->lane = &c->wired;
	return 0;
}

/* What all devices of the case can do, by what they were asked before; NULL where one was not. */
static json_t *common_caps(const struct case_run *r)
{
	const char *agent;
	json_t *all = NULL, *value;

	json_object_foreach(json_object_get(r->plan, "agents"), agent, value) {
		const json_t *caps = NULL;

		for (size_t i = 0; i < 2; i++)
			if (json_has(value, "device", r->lane->device[i].name))
				caps = json_object_get(r->c->device_caps, r->lane->device[i].rdma);
		if (!caps) {
			json_decref(all);
			return NULL;
		}
		if (!all)
			all = json_copy((json_t *)caps);
		for (size_t i = json_array_size(all); i-- > 0;)
			if (!json_array_has(caps, json_string_value(json_array_get(all, i))))
				json_array_remove(all, i);
	}
	return all;
}

/* A device stays what it is: each is asked once. */
static void ask_devices(struct case_run *r)
{
	struct ops ops = { .head = NULL };

	for (struct ctl_agent *a = r->c->agents; a; a = a->next) {
		struct op *op;

		if (!a->name[0] || !a->lab_device || plan_is_bystander(a->name) ||
		    json_object_get(r->c->device_caps, a->lab_device->rdma))
			continue;
		op = ops_add(&ops, a->name,
			     json_pack("{s:s,s:o,s:s,s:I}", "op", "device_caps", "name", json_sprintf("dev.%s", a->name), "device",
				       a->lab_device->rdma, "deadline_ns", (json_int_t)OPEN_NS));
		if (op)
			op->user = a;
	}
	ops_run(r, &ops, OPEN_NS + NSEC_PER_SEC, NULL);
	for (const struct op *op = ops.head; op; op = op->next)
		if (json_is_array(json_object_get(op->reply, "caps")))
			json_object_set(r->c->device_caps, ((const struct ctl_agent *)op->user)->lab_device->rdma,
					json_object_get(op->reply, "caps"));
	ops_free(&ops);
}

static bool requirements_hold(struct case_run *r, const json_t *env, const char *case_dir)
{
	char why[256] = "", path[4096];

	if (capability_check(json_object_get(r->plan, "requires"), env, why, sizeof why))
		return true;
	json_object_set_new(r->plan, "skip", json_string(why));
	snprintf(path, sizeof path, "%s/plan.json", case_dir);
	json_save(path, r->plan, NULL);
	return false;
}

/* What the cases before this one have found out of the devices: no agent need be started for it again. */
static bool devices_will_do(struct case_run *r, const char *case_dir)
{
	json_t *env = json_pack("{s:o*}", "device_caps", common_caps(r));
	bool ok = requirements_hold(r, env, case_dir);

	json_decref(env);
	return ok;
}

/* What only this machine knows: the kernel, the lab, what the agents and the devices can. */
static bool all_is_there(struct case_run *r, const char *case_dir)
{
	const struct lab *lab = r->c->lab;
	struct utsname u;
	json_t *env, *caps = NULL;
	struct ctl_agent *a;
	bool ok;

	for (a = r->c->agents; a; a = a->next)
		if (a->name[0] && !caps)
			caps = json_object_get(a->hello, "caps");
	if (uname(&u) != 0)
		return true;
	if (capability_asks_device(json_object_get(r->plan, "requires")))
		ask_devices(r);
	env = json_pack("{s:s,s:s,s:b,s:b,s:O?,s:o*}", "kernel", u.release, "lab", lab ? lab->ops->name : "none", "guest",
			getenv("QPDRILL_GUEST") != NULL, "wire", can_wire(r->c), "caps", caps, "device_caps", common_caps(r));
	ok = requirements_hold(r, env, case_dir);
	json_decref(env);
	return ok;
}

/* All that is asked for at the end, in one message to each agent where no fault has hold of anything any more. */
static void ask_last(struct case_run *r, const struct ends *all)
{
	struct ops ops = { .head = NULL };

	query_states_add(r, &ops, all, "query");
	payload_add(r, &ops, 0);
	if (faults_active(r)) {
		ops_run(r, &ops, LAST_NS, NULL);
		payload_take(r, &ops);
		ops_free(&ops);
		payload_settle(r, 0);
		payload_unended(r, NULL);
		faults_finish(r);
	}
	bystander_stop_add(r, &ops);
	counters_add(r, &ops, NULL);
	witness_add(r, &ops, false);
	ops_run(r, &ops, LAST_NS, NULL);
	witness_note(r);
	bystander_stopped(r);
	payload_take(r, &ops);
	counters_take(r, &ops);
	ops_free(&ops);
	payload_settle(r, 0);
	payload_unended(r, NULL);
	faults_finish(r);
}

/* The last look: states, payload, proof, counters; then everything is let go. */
static void case_finish(struct case_run *r, json_t *before)
{
	struct ends all = { NULL, 0 };
	struct error ignored = { "" };

	case_later(r, false);
	r->step = -1;
	r->iter[0] = 0;
	recorder_step(r->rec, -1, "");
	r->end_ns = 0;
	ends_of_pairs(r, NULL, &all, NULL);
	if (r->over)
		query_dump(r, NULL, "the case's time is used up");
	faults_thaw(r);
	traffics_stop(r);
	ask_last(r, &all);
	wire_close(r);
	clock_measure(r);
	if (r->c->o.keep) {
		ends_free(&all);
		json_decref(before);
		return;
	}
	if (cm_down(r, &all, &ignored) < 0)
		log_debug("%s: a connection's end is not forgotten: %s", r->id, ignored.text);
	ends_free(&all);
	agents_release(r);
	residue_check(r, before);
}

static void harness_failed(struct case_run *r, const struct error *e)
{
	struct step_result res = { .outcome = OUTCOME_ERROR, .text = *e };
	json_t *step = json_pack("{s:s,s:i}", "do", "setup", "line", 0);

	step_record(r, step, &res);
	json_decref(step);
}

/* What the file says of the link is how the case finds it, and no residue of it. After a case that wanted the same and left all as
 * it was, it is. */
static int link_as_planned(struct case_run *r, struct error *e)
{
	int64_t mtu = json_int(json_object_get(r->plan, "link"), "mtu", 0);
	struct lab *lab = r->c->lab;

	r->link = json_pack("{s:I,s:b,s:b}", "mtu", (json_int_t)mtu, "ipv6", wants_ipv6(r), "wire", r->lane == &r->c->wired);
	if (r->c->picture && json_equal(r->c->picture_of, r->link))
		return 0;
	residue_forget(r->c);

	int rc = lab && lab->ops->set_mtu && mtu ? lab->ops->set_mtu(lab, r->lane, (int)mtu, e) : 0;

	return !rc && lab && lab->ops->set_ipv6 ? lab->ops->set_ipv6(lab, r->lane, wants_ipv6(r), e) : rc;
}

/* What came to nothing of the first questions is no reason not to run. */
static int open_and_ask(struct case_run *r, struct error *e)
{
	struct ops opens = { .head = NULL }, asks = { .head = NULL };
	struct op *op;
	int rc;

	add_opens(r, NULL, &opens);
	witness_add(r, &asks, true);
	counters_add(r, &asks, NULL);
	op = asks.head;
	DL_CONCAT(opens.head, asks.head);
	rc = ops_run(r, &opens, OPEN_NS + NSEC_PER_SEC, e);
	for (struct op *o = opens.head; rc && o != op; o = o->next)
		if (o->rc < 0) {
			r->c->stuck |= o->rc == -ENODEV;
			goto free_ops;
		}
	rc = 0;
	/* Not before: what all lanes load when they open their devices at once is not what the case waits for. */
	witness_begin(r);
	clock_measure(r);
	counters_take(r, &opens);
free_ops:
	ops_free(&opens);
	return rc;
}

static int case_begin(struct case_run *r, struct error *e)
{
	int rc = wire_wanted(r) ? wire_open(r, e) : 0;

	if (!rc)
		rc = open_and_ask(r, e);
	return rc ? rc : bystander_start(r, e);
}

static void run_steps(struct case_run *r)
{
	const json_t *step;
	uint64_t budget = json_u64(r->plan, "budget_ns", 0);
	size_t i;

	r->end_ns = budget ? now_ns() + budget : 0;
	json_array_foreach(json_object_get(r->plan, "steps"), i, step)
		step_run(r, step);
}

int controller_run_case(struct controller *c, const char *case_dir, struct error *e)
{
	struct case_run *r = NULL;
	json_t *before = NULL;
	int rc = run_new(c, case_dir, &r, e);

	if (rc || !r)
		return rc ? rc : -ENOMEM;
	if (json_str(r->plan, "skip"))
		goto free_run;
	hello(r);
	rc = choose_lane(r, e);
	if (!rc && !devices_will_do(r, case_dir))
		goto release;
	if (!rc)
		rc = agents_start(r, e);
	if (!rc && !all_is_there(r, case_dir))
		goto release;
	if (!rc) {
		klog_begin(r);
		rc = link_as_planned(r, e);
		before = r->c->picture ? json_incref(r->c->picture) : residue_snapshot(r);
		if (!rc)
			rc = case_begin(r, e);
		if (!rc)
			run_steps(r);
		else
			harness_failed(r, e);
		case_finish(r, before);
		klog_end(r);
		goto written;
	}
	harness_failed(r, e);
release:
	agents_release(r);
written:
	case_record(r, "controller", json_pack("{s:s}", "kind", "end"));
	if (recorder_flush(r->rec) && !rc)
		rc = error_set(e, recorder_error(r->rec), "%s/observations.jsonl: %s", case_dir, strerror(-recorder_error(r->rec)));
free_run:
	run_free(r);
	return rc;
}
