/* SPDX-License-Identifier: MIT */
/* The agents' processes: started in parallel, kept between cases while they come back clean, ended by pidfd. */
#include "controller_case.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

#include "json.h"
#include "log.h"
#include "units.h"

#define HELLO_NS (20 * NSEC_PER_SEC) /* a launcher may be slow: ssh, srun, an emulated machine */
#define RELEASE_NS (10 * NSEC_PER_SEC)
#define EXIT_NS (2 * NSEC_PER_SEC)
#define PROTOCOL 1

static struct case_run *run_of(const struct ctl_agent *a)
{
	return a->name[0] ? a->c->run : NULL;
}

static const char *src_of(const struct ctl_agent *a, char *buf, size_t size)
{
	snprintf(buf, size, "agent/%s", a->name[0] ? a->name : "?");
	return buf;
}

static void answer(struct request *q, int rc, json_t *reply)
{
	q->done = true;
	q->rc = rc;
	q->reply = json_incref(reply);
}

static void on_reply(struct ctl_agent *a, json_t *value)
{
	int64_t id = json_int(value, "id", -1);
	struct request *q;

	for (q = a->pending; q; q = q->next) {
		if (q->id == id && !q->done) {
			answer(q, (int)json_int(value, "rc", 0), value);
			return;
		}
	}
	log_debug("agent %s: a late answer to request %lld", a->name, (long long)id);
}

/* What an agent says of a thing is written down as it stands. */
#define RECORD_HEAD "{\"rec\":"

static void on_record(struct ctl_agent *a, json_t *rec, bool alone)
{
	size_t len, head = sizeof RECORD_HEAD - 1;
	const char *text = line_text(a->line, &len);
	const char *kind = json_str(rec, "kind");
	struct case_run *r = run_of(a);
	char src[CTL_NAME_MAX + 8];

	if (!r || !kind) {
		log_debug("a record of an agent that no case uses: %s", kind ? kind : "without kind");
		return;
	}
	a->own_dumps += strcmp(kind, "dump") == 0;
	a->own_counters += strcmp(kind, "counter") == 0;
	alone = alone && strncmp(text, RECORD_HEAD, head) == 0;
	case_note_text(r, src_of(a, src, sizeof src), json_str(a->hello, "clk"), json_incref(rec), alone ? text + head : NULL,
		       alone ? len - head - 1 : 0);
}

/* Records of many that are for later. How many each is of stands in front. */
static bool on_line(void *user, const char *text, size_t len)
{
	static const char head[] = RECORD_HEAD "{\"kind\":\"many\",\"of\":", count_key[] = "\"count\":";
	struct ctl_agent *a = user;
	struct case_run *r = run_of(a);
	const char *count, *all;
	char src[CTL_NAME_MAX + 8];
	uint64_t n;

	if (!r || !r->later || strncmp(text, head, sizeof head - 1) != 0 || plan_is_bystander(a->name) || text[len - 1] != '}')
		return false;
	count = strstr(text, count_key);
	all = count ? strstr(count, "\"all\":") : NULL;
	n = all ? strtoull(count + sizeof count_key - 1, NULL, 10) : 0;
	if (!n)
		return false;
	case_note_unread(r, src_of(a, src, sizeof src), json_str(a->hello, "clk"), text + sizeof RECORD_HEAD - 1,
			 len - sizeof RECORD_HEAD, n);
	return true;
}

static void on_json(void *user, json_t *value)
{
	struct ctl_agent *a = user;
	json_t *part;

	if ((part = json_object_get(value, "rec")))
		on_record(a, part, json_object_size(value) == 1);
	else if ((part = json_object_get(value, "hello"))) {
		json_decref(a->hello);
		a->hello = json_incref(part);
	} else if (json_object_get(value, "id"))
		on_reply(a, value);
	else
		log_debug("agent %s: a line that is neither hello, reply nor record", a->name);
}

static void on_text(void *user, const char *text)
{
	struct ctl_agent *a = user;
	struct case_run *r = run_of(a);
	char shown[256];

	log_escape(text, shown, sizeof shown);
	if (!a->hello) {
		log_debug("launcher: %s", shown);
		return;
	}
	a->spoilt = true;
	log_warn("agent %s wrote a line that is no JSON: %s", a->name, shown);
	if (r)
		case_note(r, "controller", NULL,
			  json_pack("{s:s,s:o,s:i,s:b}", "kind", "lost", "what",
				    json_sprintf("agent %s wrote a line that is no JSON: %s", a->name, shown), "count", 1, "error",
				    1));
}

static void on_end(void *user, int err)
{
	struct ctl_agent *a = user;
	struct request *q;

	a->ended = a->spoilt = true;
	for (q = a->pending; q; q = q->next)
		if (!q->done)
			answer(q, -EPIPE, NULL);
	if (err)
		log_debug("agent %s: %s", a->name, strerror(-err));
}

static const struct line_ops agent_line_ops = { .on_line = on_line, .on_json = on_json, .on_text = on_text, .on_end = on_end };

/* argv is a borrowed view: launch prefix, then the agent. */
static int spawn(struct controller *c, struct ctl_agent *a, struct error *e)
{
	size_t n = 0;
	char **argv;
	int rc;

	while (c->o.launch && c->o.launch[n])
		n++;
	argv = calloc(n + 2, sizeof *argv);
	if (!argv)
		return error_set(e, -ENOMEM, "cannot start an agent: out of memory");
	for (size_t i = 0; i < n; i++)
		argv[i] = (char *)c->o.launch[i];
	argv[n] = (char *)c->o.agent_path;
	rc = proc_spawn_in(a->netns, &a->proc, argv, NULL, -1, e);
	free(argv);
	if (rc)
		return rc;
	rc = line_new(c->loop, a->proc.out, a->proc.in, &agent_line_ops, a, &a->line);
	if (rc) {
		proc_stop(&a->proc, SIGKILL, 0);
		return error_set(e, rc, "cannot speak with an agent: %s", strerror(-rc));
	}
	a->proc.in = a->proc.out = -1;
	return 0;
}

static int agent_new(struct controller *c, const char *netns, struct ctl_agent **ret, struct error *e)
{
	struct ctl_agent *a = calloc(1, sizeof *a);
	int rc;

	if (!a) {
		error_set(e, -ENOMEM, "cannot start an agent: out of memory");
		return -ENOMEM;
	}
	a->c = c;
	snprintf(a->netns, sizeof a->netns, "%s", netns);
	a->proc = (struct proc){ .pidfd = -1, .in = -1, .out = -1 };
	rc = spawn(c, a, e);
	if (rc) {
		free(a);
		return rc;
	}
	DL_APPEND(c->agents, a);
	*ret = a;
	return 0;
}

void agent_end(struct ctl_agent *a, uint64_t grace_ns)
{
	struct request *q;

	/* Closing its standard input tells it to leave; a stopped one would not hear that. */
	line_free(a->line);
	a->line = NULL;
	if (a->frozen)
		agent_signal(a, SIGKILL, NULL);
	proc_stop(&a->proc, a->frozen ? SIGKILL : SIGTERM, grace_ns);
	a->c->stuck |= !a->proc.ended;
	for (q = a->pending; q; q = q->next)
		if (!q->done)
			answer(q, -EPIPE, NULL);
	json_decref(a->hello);
	json_decref(a->device);
	DL_DELETE(a->c->agents, a);
	free(a);
}

void agents_free(struct controller *c)
{
	while (c->agents)
		agent_end(c->agents, EXIT_NS);
}

struct ctl_agent *agent_find(struct case_run *r, const char *name)
{
	struct ctl_agent *a;

	for (a = r->c->agents; a; a = a->next)
		if (a->name[0] && strcmp(a->name, name) == 0)
			return a;
	return NULL;
}

const char *agent_unreachable(const struct ctl_agent *a)
{
	if (!a || a->ended || !a->line)
		return "dead";
	return a->frozen ? "frozen" : NULL;
}

struct hello_wait {
	struct controller *c;
};

static bool hellos_are_here(void *user)
{
	struct hello_wait *w = user;
	struct ctl_agent *a;

	for (a = w->c->agents; a; a = a->next)
		if (a->name[0] && !a->hello && !a->ended)
			return false;
	return true;
}

/* One that has not said hello yet would, had it a turn. */
static bool someone_starts(struct case_run *r)
{
	const struct ctl_agent *a;

	for (a = r->c->agents; a; a = a->next)
		if (a->name[0] && !a->hello && !a->ended && proc_is_at_work(a->proc.pid))
			return true;
	return false;
}

static int take_agent(struct case_run *r, const char *name, const char *device, struct error *e)
{
	const struct lab_device *d = NULL;
	struct ctl_agent *a;
	int rc;

	for (size_t i = 0; i < 2; i++)
		if (strcmp(r->lane->device[i].name, device) == 0)
			d = &r->lane->device[i];
	if (!d)
		return error_set(e, -ENODEV, "agent %s wants device %s, which lane %d does not have (it has %s and %s)", name,
				 device, r->lane->lane, r->lane->device[0].name, r->lane->device[1].name);
	for (a = r->c->agents; a; a = a->next)
		if (!a->name[0] && !a->spoilt && !a->ended && strcmp(a->netns, d->netns) == 0)
			break;
	if (!a) {
		rc = agent_new(r->c, d->netns, &a, e);
		if (rc)
			return error_prefix(e, rc, "agent %s", name);
	}
	snprintf(a->name, sizeof a->name, "%s", name);
	a->end_noted = false;
	a->lab_device = d;
	return 0;
}

static int take_agents(struct case_run *r, const json_t *agents, struct error *e)
{
	const char *name;
	json_t *plan;

	json_object_foreach((json_t *)agents, name, plan) {
		const char *device = json_str(plan, "device");
		int rc = agent_find(r, name) ? 0 : take_agent(r, name, device ? device : name, e);

		if (rc)
			return rc;
	}
	return 0;
}

int agents_start(struct case_run *r, struct error *e)
{
	struct hello_wait w = { .c = r->c };
	struct ctl_agent *a;
	int rc = take_agents(r, json_object_get(r->plan, "agents"), e);

	if (!rc)
		rc = take_agents(r, json_object_get(json_object_get(r->plan, PLAN_BYSTANDER), "agents"), e);
	if (rc)
		return rc;
	rc = case_wait_idle(r, hellos_are_here, &w, someone_starts, HELLO_NS);
	for (a = r->c->agents; a; a = a->next) {
		if (!a->name[0])
			continue;
		if (!a->hello && a->ended) {
			char why[64];

			return error_set(e, -EPROTO, "agent %s ended before its hello: %s", a->name,
					 agent_end_text(a, why, sizeof why));
		}
		if (!a->hello)
			return error_set(e, rc ? rc : -ETIMEDOUT, "agent %s said nothing within %llu s (%s)", a->name,
					 HELLO_NS / NSEC_PER_SEC, r->c->o.agent_path);
		if (json_int(a->hello, "protocol", 0) != PROTOCOL)
			return error_set(e, -EPROTO, "agent %s speaks protocol %lld, expected %d", a->name,
					 (long long)json_int(a->hello, "protocol", 0), PROTOCOL);
	}
	return 0;
}

int agent_send(struct ctl_agent *a, json_t *req, struct request **ret)
{
	struct request *q;
	int rc;

	if (!a || !a->line || a->ended) {
		json_decref(req);
		return -EPIPE;
	}
	q = calloc(1, sizeof *q);
	if (!q || !req) {
		free(q);
		json_decref(req);
		return -ENOMEM;
	}
	q->id = ++a->last_id;
	json_object_set_new(req, "id", json_integer(q->id));
	rc = line_send(a->line, req);
	json_decref(req);
	if (rc) {
		free(q);
		return rc;
	}
	DL_APPEND(a->pending, q);
	*ret = q;
	return 0;
}

void ctl_request_free(struct ctl_agent *a, struct request *q)
{
	if (!q)
		return;
	DL_DELETE(a->pending, q);
	json_decref(q->reply);
	free(q);
}

/* The agent itself, not the launcher before it, when it runs under this kernel's eyes. */
static int open_pidfd(const struct ctl_agent *a)
{
	json_int_t pid = json_int(a->hello, "pid", 0);
	const char *clk = json_str(a->hello, "clk");
	bool here = clk && strncmp(clk, a->c->clk, strcspn(a->c->clk, "/")) == 0;

	if (pid <= 1 || !here)
		pid = a->proc.pid;
	return (int)syscall(SYS_pidfd_open, (pid_t)pid, 0u);
}

int agent_signal(struct ctl_agent *a, int sig, struct error *e)
{
	int fd = open_pidfd(a), rc = 0;

	if (fd < 0)
		return error_set(e, -errno, "agent %s: no handle of its process: %s", a->name, strerror(errno));
	if (syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0u) != 0)
		rc = error_set(e, -errno, "agent %s: signal %d: %s", a->name, sig, strerror(errno));
	close(fd);
	if (rc)
		return rc;
	if (sig == SIGSTOP)
		a->frozen = true;
	if (sig == SIGCONT)
		a->frozen = false;
	return 0;
}

char *agent_end_text(const struct ctl_agent *a, char *buf, size_t size)
{
	struct proc p = a->proc;

	/* End of file comes a moment before the process can be reaped. */
	if (!p.ended)
		snprintf(buf, size, "closed its output");
	else if (WIFSIGNALED(p.status))
		snprintf(buf, size, "killed by signal %d", WTERMSIG(p.status));
	else
		snprintf(buf, size, "exit status %d", WEXITSTATUS(p.status));
	return buf;
}

static void refuse_release(struct case_run *r, const struct ctl_agent *a, const char *why)
{
	case_record(r, "controller",
		    json_pack("{s:s,s:s,s:[],s:[o],s:b,s:s}", "kind", "residue", "what", "process", "before", "after",
			      json_sprintf("agent %s (pid %d): %s", a->name, (int)a->proc.pid, why), "ok", 0, "text",
			      "killed by its process id"));
}

/* True when the agent may serve another case. */
static bool judge_release(struct case_run *r, struct ctl_agent *a, const struct request *q)
{
	const json_t *left = q && q->reply ? json_object_get(q->reply, "left") : NULL;
	char *names;

	if (a->ended || !a->hello)
		return false;
	if (!q || !q->done) {
		refuse_release(r, a, "did not let go of its objects in time");
		return false;
	}
	if (q->rc == 0 && json_array_size(left) == 0)
		return !a->spoilt && !a->used_cm;
	names = json_array_size(left) ? json_dumps(left, JSON_COMPACT) : NULL;
	refuse_release(r, a, names ? names : json_str(q->reply, "error") ? json_str(q->reply, "error") : "refused to release");
	free(names);
	return false;
}

int agent_lets_go(struct case_run *r, const char *name, struct error *e)
{
	int rc = ask(r, name, json_pack("{s:s}", "op", "release"), RELEASE_NS, NULL, e);
	struct ctl_agent *a = agent_find(r, name);

	payload_lost(r, name);
	ctl_objects_lost(r, name);
	if (a) {
		json_decref(a->device);
		a->device = NULL;
	}
	return rc;
}

struct release_wait {
	struct request *q[CTL_NAME_MAX];
	size_t n;
};

static bool released(void *user)
{
	struct release_wait *w = user;

	for (size_t i = 0; i < w->n; i++)
		if (w->q[i] && !w->q[i]->done)
			return false;
	return true;
}

void agents_release(struct case_run *r)
{
	struct release_wait w = { .n = 0 };
	struct ctl_agent *a;
	struct ctl_agent *asked[CTL_NAME_MAX] = { NULL };

	for (a = r->c->agents; a; a = a->next) {
		if (!a->name[0] || w.n == CTL_NAME_MAX)
			continue;
		w.q[w.n] = NULL;
		asked[w.n] = a;
		if (!agent_unreachable(a) && a->hello)
			agent_send(a, json_pack("{s:s}", "op", "release"), &w.q[w.n]);
		w.n++;
	}
	case_wait(r, released, &w, now_ns() + RELEASE_NS);
	for (size_t i = 0; i < w.n; i++) {
		bool clean = asked[i] && judge_release(r, asked[i], w.q[i]);

		if (!asked[i])
			continue;
		ctl_request_free(asked[i], w.q[i]);
		json_decref(asked[i]->device);
		asked[i]->device = NULL;
		if (!clean)
			agent_end(asked[i], w.q[i] ? EXIT_NS : 0);
	}
	for (a = r->c->agents; a; a = a->next)
		a->name[0] = 0;
}
