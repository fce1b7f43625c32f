/* SPDX-License-Identifier: MIT */
/* What faults may ask of the world (faults/fault.h), by the case's own means. */
#include "controller_step.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "json.h"
#include "units.h"

#define KILL_NS (2 * NSEC_PER_SEC)
#define LEAVE_NS (10 * NSEC_PER_SEC)
#define GID_NS (5 * NSEC_PER_SEC)
#define REMOVE_NS (20 * NSEC_PER_SEC)
#define LOOK_NS (2 * NSEC_PER_MSEC)

static int env_request(void *ctl, const char *agent, json_t *req, json_t **ret_reply, struct error *e)
{
	return ask(ctl, agent, req, 0, ret_reply, e);
}

static int env_lab(void *ctl, const char *tool, const char *args, json_t **ret_out, struct error *e)
{
	struct case_run *r = ctl;
	struct lab *lab = r->c->lab;
	json_t *out = NULL;
	int rc = lab && lab->ops->command ? lab->ops->command(lab, tool, args, &out, e)
					  : error_set(e, -ENOTSUP, "this lab runs no commands");

	case_record(r, "lab",
		    json_pack("{s:s,s:o,s:i,s:O?}", "kind", "lab", "cmd", json_sprintf("%s %s", tool, args), "rc", rc, "out", out));
	if (ret_out && rc >= 0)
		*ret_out = out;
	else
		json_decref(out);
	return rc;
}

static const json_t *env_device(void *ctl, const char *agent)
{
	const struct ctl_agent *a = agent_find(ctl, agent);

	return a ? a->device : NULL;
}

static const json_t *env_plan(void *ctl)
{
	return ((struct case_run *)ctl)->plan;
}

static const char *env_peer(void *ctl, const char *qp)
{
	const struct object *o = ctl_object_find(ctl, qp);

	return o ? o->peer : NULL;
}

static const json_t *env_qp(void *ctl, const char *qp)
{
	struct object *o = ctl_object_find(ctl, qp);

	if (!o || o->type != OBJECT_QP)
		return NULL;
	json_decref(o->view);
	o->view = json_pack("{s:b,s:I,s:i,s:s,s:I,s:i,s:s,s:O?,s:O?,s:O?,s:O?}", "exists", (int)o->exists, "qpn",
			    (json_int_t)o->qpn, "life", (int)o->life, "state", o->state ? o->state : "", "sq_psn",
			    (json_int_t)o->sq_psn, "kept_back", (int)o->kept_back, "agent", o->agent, "queried", o->queried, "rtr",
			    o->rtr, "rts", o->rts, "told", o->told);
	return o->view;
}

static const json_t *env_remembered(void *ctl, const char *name)
{
	return json_object_get(((struct case_run *)ctl)->remembered, name);
}

static json_t *env_counters(void *ctl, const char *agent)
{
	const struct ctl_agent *a = agent_find(ctl, agent);

	if (!a || !a->lab_device)
		return NULL;
	query_counted(ctl, a);
	return lab_counters(a->lab_device->rdma, a->lab_device->port);
}

static int env_release_receives(void *ctl, const char *qp, struct error *e)
{
	struct object *o = ctl_object_find(ctl, qp);

	return o ? link_release_receives(ctl, o, e) : error_set(e, -ENOENT, "there is no QP or SRQ %s", qp);
}

static int env_resume_connect(void *ctl, const char *qp, struct error *e)
{
	struct object *o = ctl_object_find(ctl, qp);
	struct ends ends = { .qp = &o, .n = 1 };

	if (!o)
		return error_set(e, -ENOENT, "there is no QP %s", qp);
	/* Nothing held it back: no connect came by, or what it left is past that (ERR). */
	if (!o->exists || !o->wanted)
		return 0;
	return link_up(ctl, &ends, o->wanted, "connect", e);
}

static int env_exchange(void *ctl, const char *pair, struct error *e)
{
	json_t *pairs = json_pack("[s]", pair);
	struct ends ends;
	int rc = ends_of_pairs(ctl, pairs, &ends, e);

	json_decref(pairs);
	if (rc)
		return rc;
	for (size_t i = 0; !rc && i < ends.n; i++)
		rc = handover_tell(ctl, ends.qp[i], true, e);
	ends_free(&ends);
	return rc;
}

static int env_timer(void *ctl, struct fault *f, uint64_t after_ns)
{
	struct case_run *r = ctl;
	struct fault_run *run;

	for (run = r->faults; run; run = run->next) {
		if (&run->f != f)
			continue;
		run->timer_ns = now_ns() + after_ns;
		return 0;
	}
	return -ENOENT;
}

static unsigned env_wc_count(void *ctl, const char *queue, const char *status)
{
	char key[2 * CTL_NAME_MAX];

	snprintf(key, sizeof key, "%s %s", queue, status);
	return (unsigned)json_int(((struct case_run *)ctl)->wc_counts, key, 0);
}

static unsigned env_posts_since(void *ctl, const struct fault *f, const char *qp)
{
	struct case_run *r = ctl;
	const struct post *p;
	char queue[2 * CTL_NAME_MAX];
	unsigned n;

	snprintf(queue, sizeof queue, "%s.send", qp);
	n = json_u64(r->traffic_posts, queue, 0) > f->injected_ns;
	for (p = r->posts; p; p = p->next)
		if (p->t_ns >= f->injected_ns && strcmp(p->qp->name, qp) == 0)
			n += p->accepted;
	return n;
}

/* The state letter of /proc/PID/stat: it stands after the last ')'. */
static char process_state(pid_t pid)
{
	char path[64], line[512] = "";
	const char *p;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return '?';
	if (!fgets(line, sizeof line, f))
		line[0] = 0;
	fclose(f);
	p = strrchr(line, ')');
	return p && p[1] ? p[2] : '?';
}

/* A stop takes effect when each thread next comes by; that is soon, and bounded. */
static void wait_stopped(struct case_run *r, pid_t pid, char *ret_status, size_t size)
{
	uint64_t end = now_ns() + KILL_NS;

	while (process_state(pid) != 'T' && now_ns() < end)
		case_wait(r, NULL, NULL, now_ns() + NSEC_PER_MSEC);
	if (ret_status)
		snprintf(ret_status, size, "%s", process_state(pid) == 'T' ? "stopped" : "not stopped");
}

static bool agent_has_ended(void *user)
{
	return ((struct ctl_agent *)user)->ended;
}

static int env_signal(void *ctl, const char *agent, int sig, char *ret_status, size_t size, struct error *e)
{
	struct case_run *r = ctl;
	struct ctl_agent *a = agent_find(r, agent);
	int rc;

	if (!a || a->ended)
		return error_set(e, -ESRCH, "agent %s does not run", agent);
	if (sig == SIGKILL)
		a->end_noted = true;
	rc = agent_signal(a, sig, e);
	if (!rc && sig == SIGSTOP)
		wait_stopped(r, (pid_t)json_int(a->hello, "pid", a->proc.pid), ret_status, size);
	if (rc || sig != SIGKILL)
		return rc;
	rc = case_wait(r, agent_has_ended, a, now_ns() + KILL_NS);
	/* Closed pipes come before the process is gone: its devices are open until then. */
	proc_stop(&a->proc, SIGKILL, KILL_NS);
	a->ended = a->spoilt = true;
	a->frozen = false;
	ctl_objects_lost(r, agent);
	if (rc || !a->proc.ended)
		return error_set(e, -ETIMEDOUT, "agent %s (pid %d) does not go away", agent, (int)a->proc.pid);
	if (ret_status)
		agent_end_text(a, ret_status, size);
	return 0;
}

static int env_abandon(void *ctl, const char *agent, char *ret_status, size_t size, struct error *e)
{
	struct case_run *r = ctl;
	struct ctl_agent *a = agent_find(r, agent);
	uint64_t end = now_ns() + LEAVE_NS;

	if (!a || a->ended)
		return error_set(e, -ESRCH, "agent %s does not run", agent);
	case_drain(r);
	a->end_noted = a->ended = a->spoilt = true;
	line_free(a->line);
	a->line = NULL;
	while (!proc_wait(&a->proc, 0) && now_ns() < end)
		case_wait(r, NULL, NULL, now_ns() + NSEC_PER_MSEC);
	ctl_objects_lost(r, agent);
	if (!a->proc.ended)
		return error_set(e, -ETIMEDOUT, "agent %s (pid %d) stays for more than %llu s without a controller", agent,
				 (int)a->proc.pid, LEAVE_NS / NSEC_PER_SEC);
	agent_end_text(a, ret_status, size);
	return 0;
}

static int env_restart(void *ctl, const char *agent, struct error *e)
{
	struct case_run *r = ctl;
	struct ctl_agent *a = agent_find(r, agent);
	int rc;

	if (a && !a->ended)
		return error_set(e, -EBUSY, "agent %s still runs", agent);
	if (a)
		agent_end(a, 0);
	rc = agents_start(r, e);
	return rc ? rc : agents_open(r, agent, e);
}

static int env_wire(void *ctl, json_t *req, json_t **ret_reply, struct error *e)
{
	return wire_ask(ctl, req, ret_reply, e);
}

static int env_wire_signal(void *ctl, int sig, char *ret_status, size_t size, struct error *e)
{
	struct case_run *r = ctl;
	pid_t pid = 0;
	int rc = sig == SIGKILL ? wire_kill(r, ret_status, size, e) : wire_stop(r, sig == SIGSTOP, &pid, e);

	if (!rc && sig == SIGKILL)
		faults_wire_gone(r);
	if (!rc && sig == SIGSTOP)
		wait_stopped(r, pid, ret_status, size);
	return rc;
}

static int env_wire_restart(void *ctl, struct error *e)
{
	return wire_restart(ctl, e);
}

static int env_mr_renew(void *ctl, const char *mr, const json_t *access, struct error *e)
{
	struct case_run *r = ctl;
	struct object *o = ctl_object_find(r, mr);
	struct ops ops = { .head = NULL };
	struct op *op;
	int rc;

	if (!o || o->type != OBJECT_MR)
		return error_set(e, -ENOENT, "there is no MR %s", mr);
	if (o->exists) {
		ops_add(&ops, o->agent, json_pack("{s:s,s:s,s:s}", "op", "destroy", "type", "mr", "name", o->name));
		rc = ops_run(r, &ops, 0, e);
		ops_free(&ops);
		if (rc)
			return rc;
	}
	link_create(r, &ops, o);
	for (op = ops.head; op; op = op->next)
		if (access && strcmp(json_str(op->req, "name"), o->name) == 0)
			json_object_set(op->req, "access", (json_t *)access);
	rc = ops_run(r, &ops, 0, e);
	ops_free(&ops);
	return rc;
}

static int env_gid_index(void *ctl, const char *agent, int but_not, struct error *e)
{
	struct case_run *r = ctl;
	const struct ctl_agent *a = agent_find(r, agent);
	const char *gid = a ? json_str(a->device, "gid") : NULL;
	uint64_t end = now_ns() + GID_NS;
	int index = -ENOENT;

	if (!gid || !a->lab_device)
		return error_set(e, -ENODEV, "agent %s has no device open in this lab", agent);
	for (;;) {
		index = gid_find("/sys", a->lab_device->rdma, a->lab_device->port, gid);
		if (index >= 0 && index != but_not)
			return index;
		if (now_ns() >= end)
			return error_set(e, -ETIMEDOUT, "%s: GID %s stands at no index%s after %llu s", a->lab_device->rdma, gid,
					 but_not >= 0 ? " but its old one" : "", GID_NS / NSEC_PER_SEC);
		case_wait(r, NULL, NULL, now_ns() + LOOK_NS);
	}
}

/* What an agent has of a device that goes; its records tell what became of it. */
static int give_up(struct case_run *r, const struct lab_device *device, struct error *e)
{
	struct ctl_agent *a;
	int rc = 0;

	for (a = r->c->agents; a; a = a->next) {
		struct error one = { "" };
		int got;

		if (!a->name[0] || a->lab_device != device || agent_unreachable(a))
			continue;
		got = agent_lets_go(r, a->name, &one);
		if (got < 0 && !rc)
			rc = error_set(e, got, "agent %s does not let go of %s: %s", a->name, device->rdma, one.text);
	}
	return rc;
}

static int lab_device_of(struct case_run *r, const char *agent, const struct lab_device **ret, struct error *e)
{
	const struct ctl_agent *a = agent_find(r, agent);

	if (!a || !a->lab_device || !r->c->lab || !r->c->lab->ops->device_del)
		return error_set(e, -ENOTSUP, "this lab cannot take the device of agent %s away", agent);
	*ret = a->lab_device;
	return 0;
}

/* Whoever has met rdma_cm keeps every device open, its own and the others, and nothing but its end changes that. */
static int kept_by_cm(const struct case_run *r, const struct lab_device *device, struct error *e)
{
	for (const struct ctl_agent *a = r->c->agents; a; a = a->next)
		if (a->used_cm && !a->ended)
			return error_set(
				e, -EBUSY,
				"%s cannot go: agent %s has connected by rdma_cm, and librdmacm keeps every device open until its "
				"process ends (`recover: { path: restart }` before it lets go)",
				device->rdma, a->name[0] ? a->name : "of an earlier case");
	return 0;
}

static int env_device_remove(void *ctl, const char *agent, struct error *e)
{
	struct case_run *r = ctl;
	const struct lab_device *device = NULL;
	uint64_t end = now_ns() + REMOVE_NS;
	int rc = lab_device_of(r, agent, &device, e);

	if (!rc)
		rc = kept_by_cm(r, device, e);
	/* What it has counted goes with it. */
	if (!rc)
		query_counters(r, NULL);
	if (!rc)
		rc = r->c->lab->ops->device_del(r->c->lab, device->rdma, e);
	if (!rc)
		rc = give_up(r, device, e);
	while (!rc && !(rc = r->c->lab->ops->device_gone(r->c->lab, device->rdma, e))) {
		if (now_ns() >= end) {
			r->c->stuck = true;
			return error_set(e, -ETIMEDOUT, "%s is still there after %llu s: somebody has it open", device->rdma,
					 REMOVE_NS / NSEC_PER_SEC);
		}
		case_wait(r, NULL, NULL, now_ns() + LOOK_NS);
	}
	return rc < 0 ? rc : 0;
}

static int env_device_make(void *ctl, const char *agent, struct error *e)
{
	struct case_run *r = ctl;
	const struct lab_device *device = NULL;
	int rc = lab_device_of(r, agent, &device, e);

	if (!rc)
		rc = r->c->lab->ops->device_add(r->c->lab, device->rdma, e);
	if (!rc)
		query_counters_anew(r, device);
	for (struct ctl_agent *a = r->c->agents; !rc && a; a = a->next)
		if (a->name[0] && a->lab_device == device && !agent_unreachable(a))
			rc = agents_open(r, a->name, e);
	return rc;
}

const struct fault_env case_fault_env = {
	.request = env_request,
	.lab = env_lab,
	.device = env_device,
	.plan = env_plan,
	.peer = env_peer,
	.qp = env_qp,
	.remembered = env_remembered,
	.counters = env_counters,
	.release_receives = env_release_receives,
	.resume_connect = env_resume_connect,
	.exchange = env_exchange,
	.timer = env_timer,
	.wc_count = env_wc_count,
	.posts_since = env_posts_since,
	.signal = env_signal,
	.restart = env_restart,
	.abandon = env_abandon,
	.wire = env_wire,
	.wire_signal = env_wire_signal,
	.wire_restart = env_wire_restart,
	.mr_renew = env_mr_renew,
	.gid_index = env_gid_index,
	.device_remove = env_device_remove,
	.device_make = env_device_make,
};
