/* SPDX-License-Identifier: MIT */
/* Faults of the case: injected, timed, cleared, and asked for their proof. */
#include "controller_step.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "json.h"
#include "link_guard.h"
#include "units.h"

static json_t *ends_of_args(const struct fault_run *f)
{
	static const char *const keys[] = { "at", "agent", "device" };
	json_t *at = json_array();

	for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
		const json_t *v = json_object_get(f->args, keys[k]), *item;
		size_t i;

		if (json_is_string(v))
			json_array_append_new(at, json_string(json_string_value(v)));
		json_array_foreach(v, i, item)
			json_array_append_new(at, json_string(json_string_value(item)));
	}
	return at;
}

static void fault_record(struct fault_run *f, const char *phase, json_t *evidence, int rc, const char *text)
{
	const struct fault_ops *ops = f->f.ops;
	json_t *rec = json_pack("{s:s,s:s,s:i,s:s,s:o,s:s,s:s,s:s,s:o}", "kind", "fault", "as", f->as, "nth", (int)f->nth, "name",
				ops->name, "at", ends_of_args(f), "phase", phase, "detection",
				detection_names[ops->detection ? ops->detection(f->args) : DETECTION_NONE], "blast",
				fault_blast_names[fault_blast_of(ops, f->args)], "evidence", evidence ? evidence : json_object());

	if (text && text[0])
		json_object_set_new(rec, "text", json_string(text));
	if (rc < 0)
		json_object_set_new(rec, "errno", json_integer(-rc));
	case_record(f->r, "controller", rec);
}

static struct fault_run *fault_newest(struct case_run *r, const char *as)
{
	struct fault_run *f, *found = NULL;

	for (f = r->faults; f; f = f->next)
		if (strcmp(f->as, as) == 0)
			found = f;
	return found;
}

/* Traffic in the background has statistics for before a fault and during it. */
static void traffics_told(struct fault_run *f, bool begins)
{
	char phase[CTL_NAME_MAX + 16];

	if (begins) {
		snprintf(phase, sizeof phase, "before:%s", f->as);
		traffics_phase(f->r, NULL, phase, "look");
	}
	snprintf(phase, sizeof phase, "during:%s", f->as);
	traffics_phase(f->r, NULL, phase, begins ? "begin" : "end");
}

/* What was answered while it was being injected belongs to neither; what failed then is its doing. */
static void traffics_settled(struct fault_run *f)
{
	char phase[CTL_NAME_MAX + 16];

	snprintf(phase, sizeof phase, "during:%s", f->as);
	traffics_phase(f->r, NULL, phase, "settled");
}

/* The network device under an end that the fault names. NULL: of another lab, or none. */
static const char *netdev_of(struct case_run *r, const char *end)
{
	const struct object *qp = ctl_object_find(r, end);
	const struct ctl_agent *a = qp ? agent_find(r, qp->agent) : NULL;

	return a && a->lab_device ? a->lab_device->netdev : NULL;
}

static int leave_alone(struct case_run *r, const struct fault_run *f, struct error *e)
{
	json_t *ends = ends_of_args(f), *end;
	pid_t pids[CTL_NAME_MAX];
	size_t i, n = 0;
	int rc = 0;

	for (const struct ctl_agent *a = r->c->agents; a && r->c->o.launch && n < CTL_NAME_MAX; a = a->next)
		pids[n++] = a->proc.pid;
	json_array_foreach(ends, i, end) {
		const char *netdev = netdev_of(r, json_string_value(end));

		if (!rc && netdev)
			rc = link_guard(netdev, getenv("SSH_CONNECTION"), pids, n, e);
	}
	json_decref(ends);
	return rc ? error_set(e, rc, "%s: %s; --allow-any-link does it all the same", f->f.ops->name, e->text) : 0;
}

static int fault_end(struct fault_run *f, struct error *e);

/* What is injected while it is active is another one: the first is over, with a proof of its own or none. */
static int end_former(struct case_run *r, const char *as, unsigned *ret_nth, struct error *e)
{
	struct fault_run *f = fault_newest(r, as);

	*ret_nth = f ? f->nth + 1 : 1;
	return f && !f->done ? fault_end(f, e) : 0;
}

int fault_inject(struct case_run *r, const json_t *step, struct error *e)
{
	const char *name = json_str(step, "fault"), *as = json_str(step, "as");
	const struct fault_ops *ops = name ? fault_find(name) : NULL;
	uint64_t for_ns = json_u64(step, "for_ns", json_u64(step, "for", 0));
	struct fault_run *f;
	unsigned nth;
	int rc;

	if (!ops || !ops->inject)
		return error_set(e, -ENOTSUP, "fault %s is not in this build", name ? name : "?");
	rc = end_former(r, as ? as : name, &nth, e);
	if (rc)
		return error_prefix(e, rc, "fault %s, still active from before", as ? as : name);
	f = calloc(1, sizeof *f);
	if (!f)
		return error_set(e, -ENOMEM, "out of memory");
	f->r = r;
	f->nth = nth;
	snprintf(f->as, sizeof f->as, "%s", as ? as : name);
	f->args = json_is_object(json_object_get(step, "args")) ? json_deep_copy(json_object_get(step, "args")) : json_object();
	f->f = (struct fault){ .ops = ops,
			       .env = &r->fault_env,
			       .as = f->as,
			       .args = f->args,
			       .state = json_object(),
			       .injected_ns = now_ns(),
			       .active = true };
	if (for_ns)
		json_object_set_new(f->f.state, "for_ns", json_integer((json_int_t)for_ns));
	DL_APPEND(r->faults, f);
	/* What arrived before is looked at while it can be. */
	payload_settle(r, 0);
	traffics_told(f, true);
	bystander_fault_begins(r, &f->f);
	fault_record(f, "inject", NULL, 0, NULL);
	recorder_flush(r->rec);
	if (ops->counts_link)
		traffics_pause(r, true);
	rc = ops->layer == FAULT_LINK && !r->c->o.any_link ? leave_alone(r, f, e) : 0;
	if (!rc)
		rc = ops->inject(&f->f, e);
	if (ops->counts_link)
		traffics_pause(r, false);
	traffics_settled(f);
	if (rc < 0) {
		f->f.active = false;
		f->done = f->proven = true;
		fault_record(f, "not_fired", NULL, rc, e->text);
		bystander_fault_ends(r, &f->f);
		return rc;
	}
	if (for_ns && !ops->undo_in_injector)
		f->clear_ns = now_ns() + for_ns;
	return 0;
}

/* last: it had every chance; without proof now it did not fire. */
static void fault_prove(struct fault_run *f, bool last)
{
	json_t *evidence = NULL;
	struct error e = { "" };
	int rc;

	if (f->proven)
		return;
	rc = f->f.ops->prove ? f->f.ops->prove(&f->f, &evidence, &e) : 0;
	if (rc == 1) {
		f->proven = true;
		fault_record(f, "fired", evidence, 0, NULL);
	} else if (last) {
		f->proven = true;
		fault_record(f, "not_fired", evidence, rc < 0 ? rc : 0, e.text);
	} else
		json_decref(evidence);
}

bool fault_is_active(struct case_run *r, const char *as)
{
	const struct fault_run *f = fault_newest(r, as);

	return f && !f->done;
}

void fault_look(struct case_run *r, const char *as)
{
	struct fault_run *f = fault_newest(r, as);
	json_t *evidence = NULL;
	struct error e = { "" };
	int rc;

	if (!f || f->done || !f->f.ops->prove)
		return;
	rc = f->f.ops->prove(&f->f, &evidence, &e);
	if (rc == 1) {
		f->proven = true;
		fault_record(f, "fired", evidence, 0, NULL);
	} else if (rc == 0 && f->f.ops->layer == FAULT_WIRE) {
		fault_record(f, "report", evidence, 0, NULL);
	} else {
		json_decref(evidence);
	}
}

/* Hits that came between the proof and the end count too. */
static json_t *last_report(struct fault_run *f)
{
	struct error e = { "" };
	json_t *evidence = NULL;

	if (f->f.ops->layer == FAULT_WIRE)
		f->f.ops->prove(&f->f, &evidence, &e);
	return evidence;
}

/* Its clear found nobody: the process that it acted on has ended, and there is nothing left to undo. */
static bool went_with_its_process(struct fault_run *f, int rc)
{
	const char *agent = json_str(f->args, "agent"), *at = json_str(f->args, "at");
	const struct object *qp = at ? ctl_object_find(f->r, at) : NULL;
	const char *why;

	if (rc != -EHOSTDOWN && rc != -ESRCH)
		return false;
	agent = qp ? qp->agent : agent;
	why = agent && agent_find(f->r, agent) ? agent_unreachable(agent_find(f->r, agent)) : NULL;
	return why && strcmp(why, "dead") == 0;
}

static int fault_end(struct fault_run *f, struct error *e)
{
	const char *text = NULL;
	int rc = 0;

	/* Undoing it may wipe what was written under it. */
	payload_settle(f->r, 0);
	traffics_told(f, false);
	fault_prove(f, false);
	f->clear_ns = f->timer_ns = 0;
	f->done = true;
	f->f.active = false;
	recorder_flush(f->r->rec);
	if (f->f.ops->counts_link)
		traffics_pause(f->r, true);
	if (f->f.ops->clear)
		rc = f->f.ops->clear(&f->f, e);
	if (f->f.ops->counts_link)
		traffics_pause(f->r, false);
	fault_prove(f, false);
	if (went_with_its_process(f, rc)) {
		rc = 0;
		text = "what it acted on went with its process";
	}
	fault_record(f, "clear", last_report(f), rc, rc < 0 ? e->text : text);
	bystander_fault_ends(f->r, &f->f);
	return rc < 0 ? rc : 0;
}

int fault_clear(struct case_run *r, const char *as, struct error *e)
{
	struct fault_run *f = fault_newest(r, as);

	if (!f)
		return error_set(e, -ENOENT, "there is no fault called %s", as);
	return f->done ? 0 : fault_end(f, e);
}

void faults_wire_gone(struct case_run *r)
{
	struct fault_run *f;

	for (f = r->faults; f; f = f->next) {
		if (f->f.ops->layer != FAULT_WIRE || f->done)
			continue;
		f->clear_ns = f->timer_ns = 0;
		f->done = true;
		f->f.active = false;
		fault_record(f, "clear", NULL, 0, "its rule went with the wire");
	}
}

static bool stands_still(struct case_run *r, const struct fault_run *f)
{
	const char *agent = json_str(f->args, "agent");
	const struct ctl_agent *a = agent ? agent_find(r, agent) : NULL;

	if (f->done || f->f.ops->layer != FAULT_PROCESS)
		return false;
	return a ? a->frozen : !agent && wire_is_stopped(r);
}

void faults_thaw(struct case_run *r)
{
	struct fault_run *f;

	for (f = r->faults; f; f = f->next) {
		struct error e = { "" };

		if (stands_still(r, f) && !(r->c->o.keep && r->broken))
			fault_end(f, &e);
	}
}

/* What acts on objects goes with them; what acts on the link must be undone. */
static bool outlives_the_agents(const struct fault_run *f)
{
	return f->f.ops->layer == FAULT_LINK || f->f.ops->layer == FAULT_WIRE;
}

void faults_finish(struct case_run *r)
{
	struct fault_run *f;

	for (f = r->faults; f; f = f->next)
		fault_prove(f, true);
	for (f = r->faults; f; f = f->next) {
		struct error e = { "" };

		if (!f->done && outlives_the_agents(f) && !(r->c->o.keep && r->broken))
			fault_end(f, &e);
	}
}

void faults_free(struct case_run *r)
{
	struct fault_run *f;

	while (r->faults) {
		f = r->faults;
		DL_DELETE(r->faults, f);
		json_decref(f->args);
		json_decref(f->f.state);
		free(f);
	}
}

uint64_t faults_next(const struct case_run *r)
{
	uint64_t next = UINT64_MAX;
	const struct fault_run *f;

	for (f = r->faults; f; f = f->next) {
		if (f->timer_ns && f->timer_ns < next)
			next = f->timer_ns;
		if (f->clear_ns && f->clear_ns < next)
			next = f->clear_ns;
	}
	return next;
}

void faults_due(struct case_run *r)
{
	struct fault_run *f;
	uint64_t now = now_ns();

	for (f = r->faults; f; f = f->next) {
		struct error e = { "" };

		if (f->timer_ns && f->timer_ns <= now) {
			f->timer_ns = 0;
			if (f->f.ops->on_timer)
				f->f.ops->on_timer(&f->f);
		}
		if (f->clear_ns && f->clear_ns <= now)
			fault_end(f, &e);
	}
}

/* A row of the table that has the hook, and is injected. */
#define EACH_ACTIVE(r, f, hook)                                                                                                    \
	for (f = (r)->faults; f; f = f->next)                                                                                      \
		if ((f)->f.active && (f)->f.ops->hook)

bool faults_active(struct case_run *r)
{
	for (const struct fault_run *f = r->faults; f; f = f->next)
		if (!f->done)
			return true;
	return false;
}

void faults_on_handover(struct case_run *r, const char *to_qp, json_t *handover)
{
	struct fault_run *f;

	EACH_ACTIVE(r, f, on_handover)
	f->f.ops->on_handover(&f->f, to_qp, handover);
}

bool faults_hold_receives(struct case_run *r, const char *qp)
{
	struct fault_run *f;

	EACH_ACTIVE(r, f, holds_receives)
	if (f->f.ops->holds_receives(&f->f, qp))
		return true;
	return false;
}

const char *faults_hold_state(struct case_run *r, const char *qp)
{
	struct fault_run *f;

	EACH_ACTIVE(r, f, holds_state)
	{
		const char *state = f->f.ops->holds_state(&f->f, qp);

		if (state)
			return state;
	}
	return NULL;
}

void faults_on_modify(struct case_run *r, const char *qp, const char *to, json_t *set)
{
	struct fault_run *f;

	EACH_ACTIVE(r, f, on_modify)
	f->f.ops->on_modify(&f->f, qp, to, set);
}

const char *faults_cm_refuses(struct case_run *r, const char *qp)
{
	struct fault_run *f;

	EACH_ACTIVE(r, f, cm_refuses)
	{
		const char *how = f->f.ops->cm_refuses(&f->f, qp);

		if (how)
			return how;
	}
	return NULL;
}

void faults_cm_refused(struct case_run *r, const char *qp, const char *reason)
{
	struct fault_run *f;

	EACH_ACTIVE(r, f, cm_refused)
	f->f.ops->cm_refused(&f->f, qp, reason);
}

void faults_on_create(struct case_run *r, const char *name, json_t *req)
{
	struct fault_run *f;

	EACH_ACTIVE(r, f, on_create)
	f->f.ops->on_create(&f->f, name, req);
}

void faults_on_post(struct case_run *r, const char *qp)
{
	struct fault_run *f;

	EACH_ACTIVE(r, f, on_post)
	f->f.ops->on_post(&f->f, qp);
}

void step_fault(struct case_run *r, const json_t *step, struct step_result *res)
{
	struct error e = { "" };
	int rc = fault_inject(r, step, &e);

	/* A fault that cannot be injected is no finding about the device. */
	step_from_rc(res, rc, &e);
}

void step_clear(struct case_run *r, const json_t *step, struct step_result *res)
{
	const json_t *arg = json_object_get(step, "arg"), *as;
	struct error e = { "" };
	size_t i;
	int rc = 0;

	if (json_is_string(arg))
		rc = fault_clear(r, json_string_value(arg), &e);
	json_array_foreach(arg, i, as) {
		struct error one = { "" };
		int got = fault_clear(r, json_string_value(as), &one);

		if (got && !rc) {
			rc = got;
			e = one;
		}
	}
	step_from_rc(res, rc, &e);
}
