/* SPDX-License-Identifier: MIT */
#include "agent.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/log.h"
#include "../harness/units.h"

struct batch {
	struct request *request;
	json_t *replies;
	size_t next;
	bool running, stops;
	sd_event_source *turn;
};

const struct request_op request_table[] = {
	{ "clock", op_clock, "the time here" },
	{ "witness", op_witness, "a timer whose lateness tells how busy the machine is" },
	{ "seed", op_seed, "the seed of all payload" },
	{ "device_caps", op_device_caps, "what a device's flags say that it can do" },
	{ "device_open", op_device_open, "opens a device" },
	{ "pd_create", op_pd_create, "makes a protection domain" },
	{ "xrcd_open", op_xrcd_open, "opens a domain of extended reliable connections" },
	{ "mr_create", op_mr_create, "makes memory and registers it" },
	{ "ah_create", op_ah_create, "makes an address handle" },
	{ "mw_create", op_mw_create, "makes a memory window" },
	{ "group_attach", op_group_attach, "attaches a queue pair to a multicast group" },
	{ "group_detach", op_group_detach, "detaches it" },
	{ "mem_replace", op_mem_replace, "other pages under a live MR" },
	{ "cq_create", op_cq_create, "makes a completion queue" },
	{ "cq_hold", op_cq_hold, "completion events are taken but not acknowledged" },
	{ "cq_ack", op_cq_ack, "acknowledges what was held" },
	{ "cq_arm", op_cq_arm, "asks for an event of the next completion" },
	{ "cq_wait", op_cq_wait, "answered when so many events have come, or the time is over" },
	{ "cq_resize", op_cq_resize, "changes a completion queue's depth" },
	{ "poll", op_poll, "polls a manual completion queue" },
	{ "srq_create", op_srq_create, "makes a shared receive queue" },
	{ "srq_modify", op_srq_modify, "changes a shared receive queue's limit or depth" },
	{ "qp_create", op_qp_create, "makes a queue pair" },
	{ "qp_modify", op_qp_modify, "moves a queue pair to a state" },
	{ "qp_query", op_qp_query, "asks the device for a queue pair's attributes" },
	{ "destroy", op_destroy, "destroys an object" },
	{ "post", op_post, "posts sends" },
	{ "post_recv", op_post_recv, "posts receives" },
	{ "fill", op_fill, "writes a pattern into memory" },
	{ "verify", op_verify, "looks for a pattern in memory" },
	{ "find", op_find, "looks for messages in the receive slots" },
	{ "drain", op_drain, "waits until every work request has its end" },
	{ "traffic_prepare", op_traffic_prepare, "readies memory and receives for traffic" },
	{ "traffic_phase", op_traffic_phase, "statistics of a part of a traffic's time" },
	{ "traffic", op_traffic, "checked messages to and from the peer" },
	{ "traffic_stop", op_traffic_stop, "ends a traffic" },
	{ "traffic_pause", op_traffic_pause, "nothing more is sent; or again" },
	{ "traffic_verify", op_traffic_verify, "looks at what the peer's WRITEs left" },
	{ "cm_listen", op_cm_listen, "waits for a peer that asks for a connection" },
	{ "cm_connect", op_cm_connect, "resolves a peer's address and asks it for a connection" },
	{ "cm_wait", op_cm_wait, "answered when an event of a connection has come" },
	{ "cm_accept", op_cm_accept, "accepts what a peer asked for" },
	{ "cm_reject", op_cm_reject, "refuses what a peer asked for" },
	{ "cm_establish", op_cm_establish, "says that the peer's answer has come" },
	{ "cm_disconnect", op_cm_disconnect, "ends a connection" },
	{ "counters", op_counters, "counters of a device" },
	{ "usage", op_usage, "what this process holds: open files, memory" },
	{ "events", op_events, "async events not yet reported" },
	{ "ledger", op_ledger, "accounts of a queue pair's queues" },
	{ "dump", op_dump, "everything" },
	{ "release", op_release, "destroys everything" },
	{ NULL, NULL, NULL },
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
		json_array_append_new(b->replies, reply);
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

static void fail(struct request *r, int rc, json_t *fields, const char *text)
{
	json_t *reply = fields ? fields : json_object();

	json_object_set_new(reply, "rc", json_integer(rc));
	json_object_set_new(reply, "error", json_string(text));
	answer(r, reply);
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

static void batch_step(struct batch *b)
{
	const json_t *ops = json_object_get(b->request->body, "ops");
	size_t n = json_array_size(ops);

	b->running = true;
	while (b->next < n && b->next == json_array_size(b->replies)) {
		if (b->stops && b->next && json_int(json_array_get(b->replies, b->next - 1), "rc", 0) < 0) {
			b->next++;
			json_array_append_new(b->replies, json_pack("{s:i, s:s}", "rc", -ECANCELED, "error",
								    "not done: a request before it in its batch failed"));
			continue;
		}
		json_t *body = json_array_get(ops, b->next++);
		struct request *member = request_new(b->request->agent, body, b);
		const char *op = json_str(body, "op");
		const struct request_op *row = request_table;

		while (row->op && (!op || strcmp(row->op, op) != 0))
			row++;
		if (row->op)
			row->fn(member->agent, member);
		else
			request_fail(member, -EINVAL, "unknown op \"%s\" in a batch", op ? op : "");
		request_unref(member);
	}
	b->running = false;
	if (json_array_size(b->replies) == n) {
		struct line *line = b->request->agent->line;

		request_reply(b->request, json_pack("{s:o}", "replies", b->replies));
		line_uncork(line);
		sd_event_source_disable_unref(b->turn);
		free(b);
	}
}

static int on_turn(sd_event_source *source, void *user)
{
	(void)source;
	batch_step(user);
	return 0;
}

static void start_batch(struct request *r)
{
	struct batch *b;

	if (!json_is_array(json_object_get(r->body, "ops"))) {
		request_fail(r, -EINVAL, "batch: ops is no array");
		return;
	}
	b = calloc(1, sizeof(*b));
	if (!b)
		abort();
	*b = (struct batch){ .request = r, .replies = json_array(), .stops = json_bool(r->body, "stops", false) };
	if (sd_event_add_defer(r->agent->loop, &b->turn, on_turn, b) < 0)
		abort(); /* no memory */
	sd_event_source_set_enabled(b->turn, SD_EVENT_OFF);
	line_cork(r->agent->line);
	batch_step(b);
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
		start_batch(r);
		return;
	}
	for (const struct request_op *row = request_table; row->op; row++) {
		if (strcmp(row->op, op) == 0) {
			row->fn(a, r);
			return;
		}
	}
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
