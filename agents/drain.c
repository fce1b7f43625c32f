/* SPDX-License-Identifier: MIT */
#include "drain.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "../harness/json.h"
#include "../harness/loop.h"
#include "../harness/names.h"
#include "../harness/units.h"
#include "cq.h"
#include "extended.h"
#include "object.h"
#include "post.h"
#include "qp.h"

#define WAIT_NS (5 * NSEC_PER_SEC)

struct drain {
	struct agent *agent;
	struct qp *qp;
	struct request *req;
	sd_event_source *timer;
	struct drain *next;
};

static uint64_t in_flight(const struct qp *qp)
{
	return qp->sq->in_flight + qp->rq->in_flight;
}

static void end(struct drain *d)
{
	struct agent *a = d->agent;
	uint64_t left = in_flight(d->qp);
	struct request *req = d->req;
	const char *name = d->qp->o.name;

	LL_DELETE(a->drains, d);
	sd_event_source_disable_unref(d->timer);
	cq_unwatch(d->qp->scq);
	cq_unwatch(d->qp->rcq);
	free(d);
	if (left)
		request_fail_with(req, -ETIMEDOUT, json_pack("{s:I}", "in_flight", (json_int_t)left),
				  "%s: %llu work requests have no end yet", name, (unsigned long long)left);
	else
		request_reply(req, json_pack("{s:i}", "in_flight", 0));
}

void drain_check(struct agent *a)
{
	struct drain *d = a->drains;

	while (d) {
		struct drain *next = d->next;

		if (in_flight(d->qp) == 0)
			end(d);
		d = next;
	}
}

void drain_end_all(struct agent *a)
{
	while (a->drains)
		end(a->drains);
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *user)
{
	struct drain *d = user;

	(void)source;
	(void)usec;
	end(d);
	return 0;
}

static bool unsignaled_tail(struct queue *q)
{
	for (uint32_t s = q->oldest; s != q->next; s++) {
		const struct wr *wr = queue_wr(q, s);

		if (wr && wr->state == WR_OUT && !wr->signaled)
			return true;
	}
	return false;
}

/* Unsignaled sends that had succeeded before the error say nothing; a flushed marker behind them does. */
static void post_marker(struct agent *a, struct qp *qp)
{
	struct post_result res = { .count = 1, .bad = -1, .t_first_ns = now_ns() };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad = NULL;
	json_t *queried;

	if (!unsignaled_tail(qp->sq) || qp_query(qp, &queried) < 0)
		return;
	json_decref(queried);
	if (qp->state != IBV_QPS_ERR)
		return;
	wr.wr_id = res.first = res.last = queue_wr_id(qp->sq, WRID_MARKER, 0);
	res.err = qp_send(qp, &wr, &bad);
	res.t_last_ns = now_ns();
	res.accepted = res.err == 0;
	res.bad = res.err ? 0 : -1;
	if (!res.err)
		queue_accept(qp->sq, 1, &(struct wr){ .kind = WRID_MARKER, .signaled = true });
	post_record(a, qp->sq, &res,
		    json_pack("{s:s, s:i, s:b, s:s, s:b}", "op", "SEND", "size", 0, "signaled", 1, "by", "harness", "marker", 1));
}

void op_drain(struct agent *a, struct request *r)
{
	struct object *o = object_need(a, r, OBJECT_QP, "qp");
	uint64_t deadline_ns = json_u64(r->body, "deadline_ns", WAIT_NS);
	struct qp *qp = (struct qp *)o;
	struct drain *d;

	if (!o)
		return;
	d = calloc(1, sizeof(*d));
	if (!d)
		abort();
	*d = (struct drain){ .agent = a, .qp = qp, .req = r };
	if (loop_timer(a->loop, now_ns() + deadline_ns, on_deadline, d, &d->timer) < 0)
		abort(); /* no memory */
	post_marker(a, qp);
	LL_PREPEND(a->drains, d);
	cq_watch(qp->scq);
	cq_watch(qp->rcq);
	/* These poll what is there, which may end this drain. */
	cq_arm(a, qp->scq);
	cq_arm(a, qp->rcq);
	drain_check(a);
}
