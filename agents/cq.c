/* SPDX-License-Identifier: MIT */
#include "cq.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/log.h"
#include "../harness/loop.h"
#include "../harness/names.h"
#include "../harness/units.h"
#include "cq_set.h"
#include "drain.h"
#include "extended.h"
#include "object.h"
#include "traffic.h"
#include "verbs_thread.h"
#include "window.h"

#define BATCH 32
#define TURN_MAX 2048u /* completions before others get their turn */

static void report_unknown(struct agent *a, const struct cq *cq, const struct ibv_wc *wc, uint64_t t)
{
	agent_record(a, t, "wc", "?", 0,
		     json_pack("{s:s, s:o, s:o, s:i, s:s, s:i, s:I, s:I}", "cq", cq->o.name, "first", json_hex(wc->wr_id), "last",
			       json_hex(wc->wr_id), "count", 1, "status", name_of(&names_status, (int)wc->status), "vendor_err",
			       (int)wc->vendor_err, "qpn", (json_int_t)wc->qp_num, "t_last", (json_int_t)t));
}

/* Queues whose runs are reported when the poll ends, in the order of their first completions. */
struct dirty {
	struct queue *first, **last;
};

static void mark_dirty(struct dirty *dirty, struct queue *q)
{
	if (q->dirty)
		return;
	q->dirty = true;
	q->dirty_next = NULL;
	*dirty->last = q;
	dirty->last = &q->dirty_next;
}

static void take(struct agent *a, struct cq *cq, const struct ibv_wc *wc, uint64_t t, struct dirty *dirty)
{
	struct wrid id = wrid_decode(wc->wr_id);
	struct queue *q = queue_find(a, id.queue);
	struct wr wr = { 0 };
	enum queue_taken taken = q ? queue_complete(q, id, &wr) : QUEUE_UNKNOWN;
	struct traffic *receiver = NULL, *own = q && q->qp ? q->qp->traffic : NULL;
	uint16_t traffic = wr.traffic;

	if (taken == QUEUE_UNKNOWN) {
		report_unknown(a, cq, wc, t);
		return;
	}
	if (taken == QUEUE_TAKEN && !q->send)
		receiver = traffic_receiver(a, q, wc, &traffic);
	run_add(a, q, id, wc, cq->o.name, t, traffic, taken);
	if (!traffic || !traffic_runs(receiver ? receiver : own, traffic))
		mark_dirty(dirty, q);
	traffic_touch(receiver ? receiver : own);
	if (taken == QUEUE_TAKEN && q->send && wc->status != IBV_WC_SUCCESS)
		bind_failed(a, wc->wr_id);
	if (taken == QUEUE_TAKEN && q->send && wr.traffic)
		traffic_sent(a, q, &wr, wc, t);
	else if (receiver)
		traffic_received(receiver, q, id.seq, wc, t);
}

unsigned cq_poll(struct agent *a, struct cq *cq, unsigned max)
{
	struct dirty dirty = { NULL, &dirty.first };
	unsigned total = 0;

	while (!max || total < max) {
		unsigned want = max && max - total < BATCH ? max - total : BATCH;
		struct ibv_wc wc[BATCH];
		int n = cq_take(cq, (int)want, wc);
		uint64_t t = now_ns();

		if (n < 0) {
			agent_record(a, t, "verb", cq->o.name, cq->o.life,
				     json_pack("{s:s, s:i}", "verb", cq->extended ? "ibv_start_poll" : "ibv_poll_cq", "errno",
					       n == -1 ? EIO : -n));
			break;
		}
		for (int i = 0; i < n; i++)
			take(a, cq, &wc[i], t, &dirty);
		/* Not only at the end: the peer goes on sending. */
		traffic_refill(a);
		total += (unsigned)n;
		if (n < (int)want)
			break;
	}
	for (struct queue *q = dirty.first; q; q = q->dirty_next)
		q->dirty = false;
	runs_flush(a, dirty.first);
	if (total) {
		traffic_turn(a);
		drain_check(a);
	}
	return total;
}

static bool automatic(const struct cq *cq)
{
	return !cq->manual || cq->watchers;
}

void cq_catch_up(struct agent *a, struct cq *cq)
{
	if (cq->o.alive && !cq->o.busy && automatic(cq))
		cq_poll(a, cq, 0);
}

static void arm(struct cq *cq)
{
	if (ibv_req_notify_cq(cq->cq, 0) != 0)
		log_warn("%s: ibv_req_notify_cq failed", cq->o.name);
}

/* A request that waits for completion events of a manual CQ. */
struct cq_wait {
	struct agent *agent;
	struct request *req;
	unsigned want; /* 0: for the whole time, and none should come */
	bool ack;
	sd_event_source *timer;
};

static void wait_end(struct cq *cq)
{
	struct cq_wait *w = cq->waiting;
	json_t *ret = json_pack("{s:i}", "events", (int)cq->events);

	cq->waiting = NULL;
	sd_event_source_disable_unref(w->timer);
	cq->kept = !w->ack;
	if (!cq->hold && !cq->kept)
		cq_acknowledge(cq);
	json_object_set_new(ret, "unacked", json_integer(cq->unacked));
	agent_record(w->agent, now_ns(), "verb", cq->o.name, cq->o.life,
		     json_pack("{s:s, s:i, s:{s:i, s:b}, s:O}", "verb", "ibv_get_cq_event", "errno", 0, "args", "events",
			       (int)w->want, "ack", w->ack, "ret", ret));
	request_reply(w->req, ret);
	free(w);
}

static void wait_check(struct cq *cq)
{
	if (cq->waiting && cq->waiting->want && cq->events >= cq->waiting->want)
		wait_end(cq);
}

static int on_waited(sd_event_source *source, uint64_t usec, void *user)
{
	(void)source;
	(void)usec;
	wait_end(user);
	return 0;
}

/* Completions are taken before their event: what they ask for goes out first, the rest is done while it is under way. An event that
 * is left alone brings the loop back, after others had their turn. */
void cq_ready(struct agent *a, struct cq *cq)
{
	struct ibv_cq *got;
	void *context;

	if (automatic(cq) && cq_poll(a, cq, TURN_MAX) == TURN_MAX)
		return;
	if (ibv_get_cq_event(cq->channel, &got, &context) != 0) {
		if (errno != EAGAIN) /* the device is gone: nothing will come */
			cq_set_remove(a->cq_set, cq);
		return;
	}
	cq->unacked++;
	cq->events++;
	if (!cq->hold && !cq->asked)
		cq_acknowledge(cq);
	if (!automatic(cq)) {
		wait_check(cq);
		return;
	}
	arm(cq);
	/* No more than it holds came before it was armed, without an event. */
	cq_poll(a, cq, (unsigned)cq->cq->cqe);
}

unsigned cq_acknowledge(struct cq *cq)
{
	unsigned n = cq->unacked;

	if (n)
		ibv_ack_cq_events(cq->cq, n);
	cq->unacked = 0;
	return n;
}

void cq_watch(struct cq *cq)
{
	cq->watchers++;
}

void cq_arm(struct agent *a, struct cq *cq)
{
	if (!cq->o.alive || cq->o.busy)
		return;
	if (cq->manual)
		arm(cq);
	cq_poll(a, cq, 0);
}

void cq_unwatch(struct cq *cq)
{
	cq->watchers--;
}

void cq_park(struct agent *a, struct cq *cq, bool parked)
{
	if (parked)
		cq_set_remove(a->cq_set, cq);
	else
		cq_set_add(a->cq_set, cq);
}

struct cq_call {
	struct verbs_call call;
	struct cq *cq;
	struct ibv_context *ctx;
	int depth;
	struct ibv_comp_channel *channel;
	struct ibv_cq *made;
};

static void run_create(struct verbs_call *call)
{
	struct cq_call *c = (struct cq_call *)call;
	int flags;

	errno = 0;
	c->channel = ibv_create_comp_channel(c->ctx);
	if (!c->channel) {
		call->err = errno ? errno : EIO;
		return;
	}
	flags = fcntl(c->channel->fd, F_GETFL);
	if (flags >= 0 && fcntl(c->channel->fd, F_SETFL, flags | O_NONBLOCK) == 0)
		c->made = c->cq->extended ? extended_create_cq(c->ctx, c->depth, c->cq, c->channel)
					  : ibv_create_cq(c->ctx, c->depth, c->cq, c->channel, 0);
	if (!c->made) {
		call->err = errno ? errno : EIO;
		ibv_destroy_comp_channel(c->channel);
	}
}

static void finish_create(struct agent *a, struct verbs_call *call)
{
	struct cq_call *c = (struct cq_call *)call;
	struct cq *cq = c->cq;
	json_t *ret = c->made ? json_pack("{s:i, s:i}", "life", (int)cq->o.life, "cqe", c->made->cqe) : NULL;

	if (!call->cancelled)
		verbs_record(a, call, json_incref(ret));
	object_settle(&cq->o, c->made != NULL);
	if (c->made) {
		cq->cq = c->made;
		cq->channel = c->channel;
		cq->unacked = 0;
		cq->hold = cq->asked = cq->kept = false;
		cq->events = 0;
		cq_set_add(a->cq_set, cq);
		if (!cq->manual)
			arm(cq);
	} else {
		cq->dev->o.users--;
	}
	verbs_end(call, ret);
}

void op_cq_create(struct agent *a, struct request *r)
{
	struct object *dev = object_need(a, r, OBJECT_DEV, "dev"), *o;
	const char *poll = json_str(r->body, "poll"), *api = json_str(r->body, "api");
	struct cq_call *c;
	struct cq *cq;

	if (!dev)
		return;
	o = object_claim(a, r, OBJECT_CQ);
	if (!o)
		return;
	cq = (struct cq *)o;
	cq->dev = (struct dev *)dev;
	cq->manual = poll && poll[0] == 'm';
	cq->extended = api && strcmp(api, "extended") == 0;
	dev->users++;
	c = verbs_call_new(sizeof(*c));
	*c = (struct cq_call){ .call = { .verb = cq->extended ? "ibv_create_cq_ex" : "ibv_create_cq",
					 .obj = o,
					 .req = r,
					 .run = run_create,
					 .finish = finish_create,
					 .args = json_pack("{s:s, s:I}", "dev", dev->name, "depth",
							   json_int(r->body, "depth", 1)) },
			       .cq = cq,
			       .ctx = cq->dev->ctx,
			       .depth = (int)json_int(r->body, "depth", 1) };
	verbs_submit(a, &c->call, json_u64(r->body, "deadline_ns", 0));
}

/* A CQ whose destruction waits for the acknowledgement is busy, and takes it all the same. */
static struct cq *need_held(struct agent *a, struct request *r)
{
	const char *name = json_str(r->body, "cq");
	struct object *o = name ? object_find(a, OBJECT_CQ, name) : NULL;

	if (o && o->alive)
		return (struct cq *)o;
	request_fail(r, -ENOENT, "%s: there is no cq %s", json_str(r->body, "op"), name ? name : "(none named)");
	return NULL;
}

void op_cq_hold(struct agent *a, struct request *r)
{
	struct cq *cq = need_held(a, r);

	if (!cq)
		return;
	cq->hold = true;
	request_reply(r, json_pack("{s:i}", "unacked", (int)cq->unacked));
}

void op_cq_ack(struct agent *a, struct request *r)
{
	struct cq *cq = need_held(a, r);
	unsigned n;

	if (!cq)
		return;
	n = cq_acknowledge(cq);
	cq->hold = cq->kept = false;
	request_reply(r, json_pack("{s:i, s:i}", "unacked", 0, "acked", (int)n));
}

/* Completions that lie there already raise nothing: who asks has to look once more. */
void op_cq_arm(struct agent *a, struct request *r)
{
	struct object *o = object_need(a, r, OBJECT_CQ, "cq");
	struct cq *cq = (struct cq *)o;
	bool solicited = json_bool(r->body, "solicited", false);
	int err;

	if (!o)
		return;
	if (!cq->hold && !cq->kept)
		cq_acknowledge(cq);
	cq->asked = true;
	cq->events = 0;
	err = ibv_req_notify_cq(cq->cq, solicited);
	agent_record(a, now_ns(), "verb", o->name, o->life,
		     json_pack("{s:s, s:i, s:{s:b}}", "verb", "ibv_req_notify_cq", "errno", err, "args", "solicited", solicited));
	if (err)
		request_fail(r, -err, "ibv_req_notify_cq: %s: %s", o->name, strerror(err));
	else
		request_reply(r, NULL);
}

void op_cq_wait(struct agent *a, struct request *r)
{
	struct object *o = object_need(a, r, OBJECT_CQ, "cq");
	struct cq *cq = (struct cq *)o;

	if (!o)
		return;
	if (cq->waiting) {
		request_fail(r, -EBUSY, "cq_wait: %s: another request waits for its events", o->name);
		return;
	}
	cq->waiting = calloc(1, sizeof(*cq->waiting));
	if (!cq->waiting)
		abort();
	*cq->waiting = (struct cq_wait){
		.agent = a, .req = r, .want = (unsigned)json_int(r->body, "events", 1), .ack = json_bool(r->body, "ack", true)
	};
	if (loop_timer(a->loop, now_ns() + json_u64(r->body, "wait_ns", 0), on_waited, cq, &cq->waiting->timer) < 0)
		abort(); /* no memory */
	wait_check(cq);
}

void cq_end_waits(struct agent *a)
{
	for (struct object *o = a->objects; o; o = o->hh.next)
		if (o->type == OBJECT_CQ && ((struct cq *)o)->waiting)
			wait_end((struct cq *)o);
}

struct resize_call {
	struct verbs_call call;
	struct cq *cq;
	int depth;
};

static void run_resize(struct verbs_call *call)
{
	struct resize_call *c = (struct resize_call *)call;

	call->err = ibv_resize_cq(c->cq->cq, c->depth);
	if (call->err < 0)
		call->err = errno ? errno : EIO;
}

static void finish_resize(struct agent *a, struct verbs_call *call)
{
	struct resize_call *c = (struct resize_call *)call;
	json_t *ret = json_pack("{s:i}", "cqe", c->cq->cq ? c->cq->cq->cqe : 0);

	if (!call->cancelled)
		verbs_record(a, call, json_incref(ret));
	call->obj->busy = false;
	verbs_end(call, ret);
}

void op_cq_resize(struct agent *a, struct request *r)
{
	struct object *o = object_need(a, r, OBJECT_CQ, "name");
	struct resize_call *c;

	if (!o)
		return;
	c = verbs_call_new(sizeof(*c));
	*c = (struct resize_call){ .call = { .verb = "ibv_resize_cq",
					     .obj = o,
					     .req = r,
					     .run = run_resize,
					     .finish = finish_resize,
					     .args = json_pack("{s:I}", "depth", json_int(r->body, "depth", 1)) },
				   .cq = (struct cq *)o,
				   .depth = (int)json_int(r->body, "depth", 1) };
	o->busy = true;
	verbs_submit(a, &c->call, json_u64(r->body, "deadline_ns", 0));
}

void op_poll(struct agent *a, struct request *r)
{
	struct object *o = object_need(a, r, OBJECT_CQ, "cq");

	if (o)
		request_reply(r,
			      json_pack("{s:i}", "polled", (int)cq_poll(a, (struct cq *)o, (unsigned)json_int(r->body, "max", 0))));
}
