/* SPDX-License-Identifier: MIT */
/* The wire of a case: started when the first case needs one, opened and let go by each, told of every connection before it speaks.
 */
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

#define HELLO_NS (20 * NSEC_PER_SEC)
#define ANSWER_NS (5 * NSEC_PER_SEC)
#define EXIT_NS (2 * NSEC_PER_SEC)
#define REAP_NS (200 * NSEC_PER_MSEC)
#define PROTOCOL 1

struct ctl_wire {
	struct controller *c;
	struct proc proc;
	struct line *line;
	struct request *pending;
	int64_t last_id;
	json_t *hello;
	bool open;      /* its ports are, for this case */
	bool stopped;   /* by a fault */
	bool ended;     /* end of file or a broken line */
	bool end_noted; /* that is on record, or was wanted */
};

bool wire_wanted(const struct case_run *r)
{
	return json_bool(r->plan, "wire", false);
}

static void on_reply(struct ctl_wire *w, json_t *value)
{
	int64_t id = json_int(value, "id", -1);
	struct request *q = NULL;

	DL_FOREACH(w->pending, q) {
		if (q->id != id || q->done)
			continue;
		q->done = true;
		q->rc = (int)json_int(value, "rc", 0);
		q->reply = json_incref(value);
		return;
	}
	log_debug("wire: a late answer to request %lld", (long long)id);
}

/* `n` numbers a case's records: a packet's number in the capture is kept beside it. */
static void note_record(struct case_run *r, const struct ctl_wire *w, json_t *rec)
{
	json_t *n = json_object_get(rec, "n");

	if (n)
		json_object_set(rec, "packet", n);
	case_note(r, "wire", json_str(w->hello, "clk"), json_incref(rec));
}

static void on_json(void *user, json_t *value)
{
	struct ctl_wire *w = user;
	struct case_run *r = w->c->run;
	json_t *part, *rec;
	size_t i;

	if ((part = json_object_get(value, "recs"))) {
		json_array_foreach(part, i, rec)
			if (r)
				note_record(r, w, rec);
	} else if ((part = json_object_get(value, "hello"))) {
		json_decref(w->hello);
		w->hello = json_incref(part);
	} else if (json_object_get(value, "id")) {
		on_reply(w, value);
	}
}

static void on_text(void *user, const char *text)
{
	char shown[256];

	(void)user;
	log_escape(text, shown, sizeof shown);
	log_warn("the wire wrote a line that is no JSON: %s", shown);
}

static void on_end(void *user, int err)
{
	struct ctl_wire *w = user;
	struct request *q = NULL;

	w->ended = true;
	DL_FOREACH(w->pending, q) {
		if (q->done)
			continue;
		q->done = true;
		q->rc = -EPIPE;
	}
	if (err)
		log_debug("wire: %s", strerror(-err));
}

static const struct line_ops wire_line_ops = { .on_json = on_json, .on_text = on_text, .on_end = on_end };

static int spawn(struct controller *c, struct error *e)
{
	char *argv[] = { (char *)c->o.wire_path, NULL };
	struct ctl_wire *w = calloc(1, sizeof *w);
	int rc;

	if (!w) {
		error_set(e, -ENOMEM, "cannot start the wire: out of memory");
		return -ENOMEM;
	}
	w->c = c;
	w->proc = (struct proc){ .pidfd = -1, .in = -1, .out = -1 };
	rc = proc_spawn(&w->proc, argv, NULL, -1, e);
	if (rc) {
		free(w);
		return rc;
	}
	rc = line_new(c->loop, w->proc.out, w->proc.in, &wire_line_ops, w, &w->line);
	if (rc) {
		proc_stop(&w->proc, SIGKILL, 0);
		free(w);
		return error_set(e, rc, "cannot speak with the wire: %s", strerror(-rc));
	}
	w->proc.in = w->proc.out = -1;
	c->wire = w;
	return 0;
}

static void wire_end(struct controller *c, int sig, uint64_t grace_ns)
{
	struct ctl_wire *w = c->wire;

	if (!w)
		return;
	c->wire = NULL;
	line_free(w->line);
	proc_stop(&w->proc, sig, grace_ns);
	json_decref(w->hello);
	free(w);
}

void wire_free(struct controller *c)
{
	wire_end(c, SIGTERM, EXIT_NS);
}

static bool has_ended(void *user)
{
	return ((const struct ctl_wire *)user)->ended;
}

static void end_text(const struct ctl_wire *w, char *buf, size_t size)
{
	if (!w->proc.ended)
		snprintf(buf, size, "it closed its output");
	else if (WIFSIGNALED(w->proc.status))
		snprintf(buf, size, "killed by signal %d", WTERMSIG(w->proc.status));
	else
		snprintf(buf, size, "exit status %d", WEXITSTATUS(w->proc.status));
}

/* Without the wire there is no link: what is left of the case would only wait for its deadlines. */
static void give_up(struct case_run *r, const char *text)
{
	json_t *rec = json_pack("{s:s,s:s,s:i,s:s}", "kind", "lost", "what", "wire", "count", 1, "text", text);

	r->end_ns = now_ns();
	if (rec)
		case_note(r, "controller", NULL, rec);
}

void wire_note_end(struct case_run *r)
{
	struct ctl_wire *w = r->c->wire;
	char why[64], text[160];

	if (!w || !w->ended || w->end_noted)
		return;
	w->end_noted = true;
	/* End of file comes a moment before it can be reaped. */
	proc_stop(&w->proc, 0, REAP_NS);
	end_text(w, why, sizeof why);
	snprintf(text, sizeof text, "the wire died: %s", why);
	give_up(r, text);
}

static bool is_answered(void *user)
{
	return ((struct request *)user)->done;
}

static int wire_send(struct ctl_wire *w, struct request *q, json_t *req)
{
	int rc;

	q->id = ++w->last_id;
	json_object_set_new(req, "id", json_integer(q->id));
	rc = line_send(w->line, req);
	if (!rc)
		DL_APPEND(w->pending, q);
	return rc;
}

static bool is_at_work(struct case_run *r)
{
	return proc_is_at_work(r->c->wire->proc.pid);
}

/* Stopped, or stuck: it is not asked again, and nothing waits for it any more. */
static int hangs(struct case_run *r, const char *op, uint64_t waited_ns, struct error *e)
{
	struct ctl_wire *w = r->c->wire;
	char text[160], waited[64];

	snprintf(text, sizeof text, "the wire did not answer `%s` within %s", op,
		 units_format_ns(waited_ns, waited, sizeof waited));
	if (w && !w->end_noted) {
		w->ended = w->end_noted = true;
		proc_stop(&w->proc, SIGKILL, 0);
		give_up(r, text);
	}
	/* Not -ETIMEDOUT: it is the harness that hung, and not what is tested. */
	return error_set(e, -EPIPE, "%s", text);
}

int wire_ask(struct case_run *r, json_t *req, json_t **ret_reply, struct error *e)
{
	struct ctl_wire *w = r->c->wire;
	struct request q = { .rc = 0 };
	uint64_t begin_ns;
	char op[32];
	int rc;

	snprintf(op, sizeof op, "%s", json_str(req, "op") ? json_str(req, "op") : "?");
	if (!w || w->ended || w->stopped) {
		json_decref(req);
		return error_set(e, -EPIPE, "wire %s: %s", op,
				 !w         ? "this case has no wire"
				 : w->ended ? "the wire is gone"
					    : "the wire is stopped by a fault");
	}
	rc = wire_send(w, &q, req);
	json_decref(req);
	if (rc)
		return error_set(e, rc, "wire %s: %s", op, strerror(-rc));
	/* The end of the case's time does not cut this off: it is short, and bounded. */
	begin_ns = now_ns();
	rc = case_wait_idle(r, is_answered, &q, is_at_work, ANSWER_NS);
	DL_DELETE(w->pending, &q);
	if (!q.done)
		return rc == -ETIMEDOUT ? hangs(r, op, now_ns() - begin_ns, e) : error_set(e, rc, "wire %s: %s", op, strerror(-rc));
	if (q.rc < 0) {
		const char *text = json_str(q.reply, "error");

		error_set(e, q.rc, "wire %s: %s", op, text ? text : strerror(-q.rc));
	}
	if (ret_reply && q.reply)
		*ret_reply = json_incref(q.reply);
	json_decref(q.reply);
	return q.rc;
}

static bool hello_is_here(void *user)
{
	const struct ctl_wire *w = user;

	return w->hello || w->ended;
}

/* The wire of the case before may have died or stuck since, and that is nothing of this one. */
static void end_unless_well(struct case_run *r)
{
	struct ctl_wire *w = r->c->wire;
	struct request q = { .rc = 0 };
	json_t *req = json_pack("{s:s}", "op", "clock");

	w->end_noted = true;
	if (!w->ended && !proc_poll(&w->proc) && !wire_send(w, &q, req)) {
		case_wait_idle(r, is_answered, &q, is_at_work, ANSWER_NS);
		DL_DELETE(w->pending, &q);
	}
	json_decref(req);
	json_decref(q.reply);
	if (q.done && !q.rc) {
		w->end_noted = false;
		return;
	}
	log_debug("the wire of the case before is gone: another one is started");
	wire_end(r->c, SIGKILL, 0);
}

static int start(struct case_run *r, struct error *e)
{
	struct controller *c = r->c;
	char why[64];
	int rc;

	if (c->wire)
		end_unless_well(r);
	if (!c->wire) {
		rc = spawn(c, e);
		if (rc)
			return rc;
	}
	case_wait_idle(r, hello_is_here, c->wire, is_at_work, HELLO_NS);
	if (c->wire->hello && json_int(c->wire->hello, "protocol", 0) == PROTOCOL)
		return 0;
	c->wire->end_noted = true;
	if (c->wire->ended)
		proc_stop(&c->wire->proc, 0, REAP_NS);
	end_text(c->wire, why, sizeof why);
	rc = c->wire->hello ? error_set(e, -EPROTO, "the wire speaks protocol %lld, expected %d",
					(long long)json_int(c->wire->hello, "protocol", 0), PROTOCOL)
			    : error_set(e, -EPROTO, "the wire (%s) said no hello: %s", c->o.wire_path,
					c->wire->ended ? why : "nothing came");
	wire_end(c, SIGKILL, 0);
	return rc;
}

static void note_hello(struct case_run *r)
{
	json_t *rec = json_deep_copy(r->c->wire->hello);

	json_object_set_new(rec, "kind", json_string("hello"));
	json_object_del(rec, "clk");
	case_note(r, "wire", json_str(r->c->wire->hello, "clk"), rec);
}

/* Numbers of packets begin anew with each wire, and so does the file. */
static json_t *capture_path(const struct case_run *r)
{
	return r->wires > 1 ? json_sprintf("%s/wire-%u.pcapng", r->dir, r->wires) : json_sprintf("%s/wire.pcapng", r->dir);
}

/* Several requests in one message: no packet is looked at between them. Stolen. */
static int ask_batch(struct case_run *r, json_t *ops, struct error *e)
{
	json_t *reply = NULL, *one;
	int rc = wire_ask(r, json_pack("{s:s,s:O}", "op", "batch", "ops", ops), &reply, e);
	size_t i;

	if (!rc && json_array_size(json_object_get(reply, "replies")) != json_array_size(ops))
		rc = error_set(e, -EPROTO, "the wire left a request of a batch unanswered");
	json_array_foreach(json_object_get(reply, "replies"), i, one) {
		const char *text = json_str(one, "error");

		if (!rc && json_int(one, "rc", 0) < 0)
			rc = error_set(e, (int)json_int(one, "rc", 0), "wire %s: %s", json_str(json_array_get(ops, i), "op"),
				       text ? text : "refused");
	}
	json_decref(reply);
	json_decref(ops);
	return rc;
}

int wire_open(struct case_run *r, struct error *e)
{
	const struct lab_lane *l = r->lane;
	json_t *ops, *told;
	size_t i;
	int rc = start(r, e);

	if (rc)
		return rc;
	note_hello(r);
	r->wires++;
	ops = json_pack("[{s:s,s:[{s:s,s:s},{s:s,s:s}]},{s:s,s:s},{s:s,s:o}]", "op", "open", "ports", "name", l->device[0].name,
			"netdev", l->far[0], "name", l->device[1].name, "netdev", l->far[1], "op", "records", "packets", "all",
			"op", "capture", "path", capture_path(r));
	json_array_foreach(r->to_tell, i, told)
		json_array_append(ops, told);
	r->told = json_array_size(r->to_tell);
	r->c->wire->open = true;
	rc = ask_batch(r, ops, e);
	if (rc && r->c->wire)
		r->c->wire->open = false;
	return rc;
}

void wire_close(struct case_run *r)
{
	struct ctl_wire *w = r->c->wire;
	struct error e = { "" };
	json_t *stats = NULL;

	if (!w || !w->open || w->ended)
		return;
	w->open = false;
	if (wire_ask(r, json_pack("{s:s}", "op", "capture_stop"), NULL, &e))
		log_warn("%s: %s", r->id, e.text);
	/* Records come before the reply: what was lost is on record with it. */
	if (wire_ask(r, json_pack("{s:s,s:b}", "op", "release", "keep", 1), &stats, &e)) {
		log_warn("%s: %s", r->id, e.text);
		return;
	}
	case_record(r, "wire",
		    json_pack("{s:s,s:O*,s:O*}", "kind", "wire_stats", "directions", json_object_get(stats, "directions"),
			      "complete", json_object_get(stats, "complete")));
	json_decref(stats);
}

void wire_sync(struct case_run *r)
{
	if (r->c->wire && r->c->wire->open && !r->c->wire->stopped)
		wire_ask(r, json_pack("{s:s}", "op", "clock"), NULL, NULL);
}

static json_t *end_json(struct case_run *r, const struct object *qp)
{
	const struct ctl_agent *a = agent_find(r, qp->agent);
	const char *gid = json_str(a ? a->device : NULL, "gid");

	return json_pack("{s:s,s:s,s:s,s:I,s:I,s:i}", "qp", qp->name, "agent", qp->agent, "addr", gid ? gid : "", "qpn",
			 (json_int_t)qp->qpn, "psn", (json_int_t)qp->sq_psn, "life", (int)qp->life);
}

/* What it has not been told yet. While it is down that waits: no packet gets through either. */
static int tell_all(struct case_run *r, struct error *e)
{
	const struct ctl_wire *w = r->c->wire;
	int rc = 0;

	while (!rc && w && w->open && !w->stopped && r->told < json_array_size(r->to_tell))
		rc = wire_ask(r, json_copy(json_array_get(r->to_tell, r->told++)), NULL, e);
	return rc;
}

int wire_connect(struct case_run *r, struct object *qp, struct error *e)
{
	struct object *peer = ctl_object_find(r, qp->peer), *first = qp;
	json_t *ends, *known, *rec, *req;
	unsigned life;

	if (!r->wires || !peer || !peer->exists || !qp->exists)
		return 0;
	if (strcmp(peer->name, qp->name) < 0) {
		first = peer;
		peer = qp;
	}
	ends = json_pack("[o,o]", end_json(r, first), end_json(r, peer));
	known = json_object_get(r->connections, first->pair);
	if (!ends || (known && json_equal(json_object_get(known, "ends"), ends))) {
		json_decref(ends);
		return 0;
	}
	/* The connection's life, not a QP's: one end alone may begin anew. */
	life = (unsigned)json_int(known, "life", 0) + 1;
	rec = json_pack("{s:s,s:s,s:i,s:O}", "kind", "connection", "pair", first->pair, "life", (int)life, "ends", ends);
	json_object_set_new(r->connections, first->pair, json_pack("{s:i,s:O}", "life", (int)life, "ends", ends));
	req = json_pack("{s:s,s:s,s:i,s:o,s:b}", "op", "connect", "pair", first->pair, "life", (int)life, "ends", ends, "aside",
			plan_is_bystander(first->pair));
	json_array_append_new(r->to_tell, req);
	case_record(r, "controller", rec);
	return tell_all(r, e);
}

static int signal_wire(struct ctl_wire *w, int sig, struct error *e)
{
	if (!w || !w->open || w->ended)
		return error_set(e, -ESRCH, "the wire does not run");
	if (syscall(SYS_pidfd_send_signal, w->proc.pidfd, sig, NULL, 0u) != 0)
		return error_set(e, -errno, "the wire: signal %d: %s", sig, strerror(errno));
	return 0;
}

int wire_kill(struct case_run *r, char *ret_status, size_t size, struct error *e)
{
	struct ctl_wire *w = r->c->wire;
	int rc = signal_wire(w, SIGKILL, e);

	if (rc)
		return rc;
	w->end_noted = true;
	case_wait(r, has_ended, w, now_ns() + EXIT_NS);
	/* The line ends a moment before the process does, and its sockets with it. */
	proc_stop(&w->proc, SIGKILL, EXIT_NS);
	w->ended = true;
	w->open = w->stopped = false;
	if (!w->proc.ended)
		return error_set(e, -ETIMEDOUT, "the wire (pid %d) does not go away", (int)w->proc.pid);
	end_text(w, ret_status, size);
	return 0;
}

int wire_stop(struct case_run *r, bool stop, pid_t *ret_pid, struct error *e)
{
	struct ctl_wire *w = r->c->wire;
	int rc = signal_wire(w, stop ? SIGSTOP : SIGCONT, e);

	if (rc)
		return rc;
	w->stopped = stop;
	*ret_pid = w->proc.pid;
	return stop ? 0 : tell_all(r, e);
}

bool wire_is_stopped(const struct case_run *r)
{
	return r->c->wire && r->c->wire->stopped;
}

pid_t wire_pid(const struct case_run *r)
{
	return r->c->wire && r->lane == &r->c->wired ? r->c->wire->proc.pid : 0;
}

int wire_restart(struct case_run *r, struct error *e)
{
	if (r->c->wire && !r->c->wire->ended)
		return error_set(e, -EBUSY, "the wire still runs");
	return wire_open(r, e);
}
