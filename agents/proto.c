/* SPDX-License-Identifier: MIT */
#include "agent.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/log.h"
#include "../harness/many.h"
#include "../harness/units.h"

struct batch {
	struct request *request;
	json_t *replies; /* null where none has come */
	size_t next, answered, n;
	const struct request_op *row; /* all members ask for that, and are folded; NULL: each is there as it is */
	bool running, stops;
	sd_event_source *turn;
};

const struct request_op request_table[] = {
	{ "many", op_many, "the same of many, in one request with one answer", NULL },
	{ "clock", op_clock, "the time here", NULL },
	{ "witness", op_witness, "a timer whose lateness tells how busy the machine is", NULL },
	{ "seed", op_seed, "the seed of all payload", NULL },
	{ "device_caps", op_device_caps, "what a device's flags say that it can do", NULL },
	{ "device_open", op_device_open, "opens a device", NULL },
	{ "pd_create", op_pd_create, "makes a protection domain", NULL },
	{ "xrcd_open", op_xrcd_open, "opens a domain of extended reliable connections", NULL },
	{ "mr_create", op_mr_create, "makes memory and registers it", NULL },
	{ "ah_create", op_ah_create, "makes an address handle", NULL },
	{ "mw_create", op_mw_create, "makes a memory window", NULL },
	{ "group_attach", op_group_attach, "attaches a queue pair to a multicast group", NULL },
	{ "group_detach", op_group_detach, "detaches it", NULL },
	{ "mem_replace", op_mem_replace, "other pages under a live MR", NULL },
	{ "cq_create", op_cq_create, "makes a completion queue", NULL },
	{ "cq_hold", op_cq_hold, "completion events are taken but not acknowledged", NULL },
	{ "cq_ack", op_cq_ack, "acknowledges what was held", NULL },
	{ "cq_arm", op_cq_arm, "asks for an event of the next completion", NULL },
	{ "cq_wait", op_cq_wait, "answered when so many events have come, or the time is over", NULL },
	{ "cq_resize", op_cq_resize, "changes a completion queue's depth", NULL },
	{ "poll", op_poll, "polls a manual completion queue", NULL },
	{ "srq_create", op_srq_create, "makes a shared receive queue", NULL },
	{ "srq_modify", op_srq_modify, "changes a shared receive queue's limit or depth", NULL },
	{ "qp_create", op_qp_create, "makes a queue pair", NULL },
	{ "qp_modify", op_qp_modify, "moves a queue pair to a state", many_qp_modify },
	{ "qp_query", op_qp_query, "asks the device for a queue pair's attributes", many_qp_query },
	{ "destroy", op_destroy, "destroys an object", NULL },
	{ "post", op_post, "posts sends", NULL },
	{ "post_recv", op_post_recv, "posts receives", many_post_recv },
	{ "fill", op_fill, "writes a pattern into memory", NULL },
	{ "verify", op_verify, "looks for a pattern in memory", NULL },
	{ "find", op_find, "looks for messages in the receive slots", NULL },
	{ "drain", op_drain, "waits until every work request has its end", many_drain },
	{ "traffic_prepare", op_traffic_prepare, "readies memory and receives for traffic", NULL },
	{ "traffic_phase", op_traffic_phase, "statistics of a part of a traffic's time", NULL },
	{ "traffic", op_traffic, "checked messages to and from the peer", NULL },
	{ "traffic_stop", op_traffic_stop, "ends a traffic", NULL },
	{ "traffic_pause", op_traffic_pause, "nothing more is sent; or again", NULL },
	{ "traffic_verify", op_traffic_verify, "looks at what the peer's WRITEs left", NULL },
	{ "cm_listen", op_cm_listen, "waits for a peer that asks for a connection", NULL },
	{ "cm_connect", op_cm_connect, "resolves a peer's address and asks it for a connection", NULL },
	{ "cm_wait", op_cm_wait, "answered when an event of a connection has come", NULL },
	{ "cm_accept", op_cm_accept, "accepts what a peer asked for", NULL },
	{ "cm_reject", op_cm_reject, "refuses what a peer asked for", NULL },
	{ "cm_establish", op_cm_establish, "says that the peer's answer has come", NULL },
	{ "cm_disconnect", op_cm_disconnect, "ends a connection", NULL },
	{ "counters", op_counters, "counters of a device", NULL },
	{ "usage", op_usage, "what this process holds: open files, memory", NULL },
	{ "events", op_events, "async events not yet reported", NULL },
	{ "ledger", op_ledger, "accounts of a queue pair's queues", NULL },
	{ "dump", op_dump, "everything", NULL },
	{ "release", op_release, "destroys everything", NULL },
	{ NULL, NULL, NULL, NULL },
};

static struct request *request_new(struct agent *a, json_t *body, struct batch *b)
{
	struct request *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	/* One reference for the answer, one for the handler. */
	*r = (struct request){ .agent = a, .body = json_incref(body), .batch = b, .refs = 2 };
	return r;
}

static void request_unref(struct request *r)
{
	if (--r->refs)
		return;
	json_decref(r->body);
	free(r);
}

/* reply has everything but the id. */
static void answer(struct request *r, json_t *reply)
{
	struct agent *a = r->agent;
	struct batch *b = r->batch;

	a->turn = true;
	if (b) {
		json_array_set_new(b->replies, r->index, reply);
		b->answered++;
		request_unref(r);
		/* The next member starts from the loop, not from inside whatever answered this one. */
		if (!b->running)
			sd_event_source_set_enabled(b->turn, SD_EVENT_ONESHOT);
		return;
	}
	a->pending--;
	json_object_set(reply, "id", json_object_get(r->body, "id"));
	request_unref(r);
	if (!a->leaving) {
		int rc = line_send(a->line, reply);

		if (rc < 0 && rc != -EPIPE) {
			log_error("a reply cannot be sent: %s (%zu bytes are waiting)", strerror(-rc), line_pending(a->line));
			sd_event_exit(a->loop, 1);
		}
	}
	json_decref(reply);
}

void request_reply(struct request *r, json_t *fields)
{
	json_t *reply = fields ? fields : json_object();

	json_object_set_new(reply, "rc", json_integer(0));
	answer(r, reply);
}

json_t *reply_failed(int rc, json_t *fields, const char *text)
{
	json_t *reply = fields ? fields : json_object();

	json_object_set_new(reply, "rc", json_integer(rc));
	json_object_set_new(reply, "error", json_string(text));
	return reply;
}

json_t *reply_not_done(void)
{
	return reply_failed(-ECANCELED, NULL, "not done: a request before it in its batch failed");
}

static void fail(struct request *r, int rc, json_t *fields, const char *text)
{
	answer(r, reply_failed(rc, fields, text));
}

void request_fail(struct request *r, int rc, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fail(r, rc, NULL, text);
}

void request_fail_with(struct request *r, int rc, json_t *fields, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fail(r, rc, fields, text);
}

/* New reference. */
static json_t *member_body(const struct batch *b, size_t i)
{
	json_t *body;

	if (!b->row)
		return json_incref(json_array_get(json_object_get(b->request->body, "ops"), i));
	body = many_member(b->request->body, i);
	json_object_set_new(body, "op", json_string(b->row->op));
	return body;
}

static const struct request_op *row_of(const char *op)
{
	const struct request_op *row = request_table;

	while (row->op && (!op || strcmp(row->op, op) != 0))
		row++;
	return row->op ? row : NULL;
}

static struct request *member_new(struct batch *b, size_t i)
{
	json_t *body = member_body(b, i);
	struct request *member = request_new(b->request->agent, body, b);

	member->index = i;
	json_decref(body);
	return member;
}

static void run_member(struct batch *b)
{
	struct request *member = member_new(b, b->next++);
	const char *op = json_str(member->body, "op");
	const struct request_op *row = b->row ? b->row : row_of(op);

	if (row)
		row->fn(member->agent, member);
	else
		request_fail(member, -EINVAL, "unknown op \"%s\" in a batch", op ? op : "");
	request_unref(member);
}

static bool one_has_failed(const json_t *reply)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(reply, "replies"), i, one)
		if (json_int(one, "rc", 0) < 0)
			return true;
	return json_int(reply, "rc", 0) < 0 || json_int(reply, "failed", 0) > 0;
}

void request_reply_fold(struct request *r, size_t n, json_t *all, json_t *each)
{
	json_object_set_new(all, "rc", json_integer(0));
	request_reply(r, json_pack("{s:I, s:o, s:o, s:i}", "count", (json_int_t)n, "all", all, "each", each, "failed", 0));
}

void request_reply_each(struct request *r, json_t *replies)
{
	json_t *fold = many_fold(replies), *reply;
	size_t i;
	int failed = 0;

	if (!fold) {
		request_reply(r, json_pack("{s:o}", "replies", replies));
		return;
	}
	json_array_foreach(replies, i, reply)
		failed += json_int(reply, "rc", 0) < 0;
	json_object_set_new(fold, "failed", json_integer(failed));
	json_decref(replies);
	request_reply(r, fold);
}

static void batch_end(struct batch *b)
{
	struct line *line = b->request->agent->line;

	if (b->row)
		request_reply_each(b->request, b->replies);
	else
		request_reply(b->request, json_pack("{s:o}", "replies", b->replies));
	line_uncork(line);
	sd_event_source_disable_unref(b->turn);
	free(b);
}

/* Until one is not answered at once. */
static void batch_step(struct batch *b)
{
	struct agent *a = b->request->agent;

	b->running = true;
	if (b->row)
		agent_fold(a, true);
	while (b->next < b->n && b->next == b->answered) {
		if (b->stops && b->next && one_has_failed(json_array_get(b->replies, b->next - 1))) {
			json_array_set_new(b->replies, b->next++, reply_not_done());
			b->answered++;
		} else {
			run_member(b);
		}
	}
	if (b->row)
		agent_fold(a, false);
	b->running = false;
	if (b->answered == b->n)
		batch_end(b);
}

static int on_turn(sd_event_source *source, void *user)
{
	(void)source;
	batch_step(user);
	return 0;
}

/* of: what all of them ask for; NULL: each says it. */
static void start_batch(struct request *r, const struct request_op *of, size_t n)
{
	struct batch *b = calloc(1, sizeof(*b));

	if (!b)
		abort();
	*b = (struct batch){
		.request = r, .replies = json_array(), .n = n, .row = of, .stops = json_bool(r->body, "stops", false)
	};
	for (size_t i = 0; i < n; i++)
		json_array_append_new(b->replies, json_null());
	if (sd_event_add_defer(r->agent->loop, &b->turn, on_turn, b) < 0)
		abort(); /* no memory */
	sd_event_source_set_enabled(b->turn, SD_EVENT_OFF);
	line_cork(r->agent->line);
	batch_step(b);
}

static void op_batch(struct agent *a, struct request *r)
{
	const json_t *ops = json_object_get(r->body, "ops");

	(void)a;
	if (json_is_array(ops))
		start_batch(r, NULL, json_array_size(ops));
	else
		request_fail(r, -EINVAL, "batch: ops is no array");
}

void op_many(struct agent *a, struct request *r)
{
	const struct request_op *of = row_of(json_str(r->body, "of"));
	size_t n = many_count(r->body);

	if (!of || !n || of->fn == op_many)
		request_fail(r, -EINVAL, "many: no fold of requests");
	else if (!of->fold || !of->fold(a, r))
		start_batch(r, of, n);
}

static void dispatch(struct agent *a, struct request *r)
{
	const char *op = json_str(r->body, "op");

	if (!json_is_integer(json_object_get(r->body, "id"))) {
		request_fail(r, -EINVAL, "a request without an integer id");
		return;
	}
	if (!op) {
		request_fail(r, -EINVAL, "a request without op");
		return;
	}
	if (a->pending > AGENT_PENDING_MAX) {
		request_fail(r, -EBUSY, "%s: %u requests wait for their answer already", op, AGENT_PENDING_MAX);
		return;
	}
	if (strcmp(op, "batch") == 0) {
		op_batch(a, r);
		return;
	}
	const struct request_op *row = row_of(op);

	if (row)
		row->fn(a, r);
	else
		request_fail(r, -EINVAL, "unknown op \"%s\"", op);
}

void request_take(struct agent *a, json_t *value)
{
	struct request *r = request_new(a, value, NULL);

	a->pending++;
	dispatch(a, r);
	request_unref(r);
}

void op_clock(struct agent *a, struct request *r)
{
	(void)a;
	request_reply(r, json_pack("{s:I}", "t", (json_int_t)now_ns()));
}

void op_seed(struct agent *a, struct request *r)
{
	a->seed = json_u64(r->body, "seed", 0);
	request_reply(r, NULL);
}
