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
#include "fold.h"
#include "object.h"
#include "post.h"
#include "qp.h"

#define WAIT_NS (5 * NSEC_PER_SEC)

/* Of one QP, or of those of a fold. */
struct drain {
	struct agent *agent;
	struct request *req;
	struct fold fold; /* n 0: none */
	struct qp **qp;   /* NULL: the fold has an answer for it */
	size_t n, done;   /* those before have had no request left */
	struct qp *one;
	sd_event_source *timer;
	struct drain *next;
};

static uint64_t in_flight(const struct qp *qp)
{
	return qp->sq->in_flight + qp->rq->in_flight;
}

/* What there is to say of one that has some left, and the negative errno. */
static int left_error(const struct qp *qp, uint64_t left, struct error *e)
{
	return error_set(e, -ETIMEDOUT, "%s: %llu work requests have no end yet", qp->o.name, (unsigned long long)left);
}

static json_t *left_json(uint64_t left)
{
	return json_pack("{s:I}", "in_flight", (json_int_t)left);
}

static void answer_one(struct drain *d)
{
	uint64_t left = d->done ? 0 : in_flight(d->one);
	struct error e;

	if (left)
		request_fail_with(d->req, left_error(d->one, left, &e), left_json(left), "%s", e.text);
	else
		request_reply(d->req, left_json(0));
}

static void answer_fold(struct drain *d)
{
	static const uint64_t none = 0;
	static const struct column in_flight_column = { "in_flight", 0, sizeof(none), NULL, false };
	struct error e;

	for (size_t i = d->done; i < d->n; i++) {
		uint64_t left = d->qp[i] ? in_flight(d->qp[i]) : 0;

		if (left) {
			int rc = left_error(d->qp[i], left, &e);

			fold_fail(&d->fold, i, reply_failed(rc, left_json(left), e.text));
		}
	}
	fold_answer(&d->fold, &in_flight_column, 1, (struct rows){ &none, 0, d->n });
	fold_release(&d->fold);
	free(d->qp);
}

static void end(struct drain *d)
{
	LL_DELETE(d->agent->drains, d);
	sd_event_source_disable_unref(d->timer);
	for (size_t i = 0; i < d->n; i++) {
		if (!d->qp[i])
			continue;
		cq_unwatch(d->qp[i]->scq);
		cq_unwatch(d->qp[i]->rcq);
	}
	if (d->fold.n)
		answer_fold(d);
	else
		answer_one(d);
	free(d);
}

static bool is_done(struct drain *d)
{
	while (d->done < d->n && (!d->qp[d->done] || in_flight(d->qp[d->done]) == 0))
		d->done++;
	return d->done == d->n;
}

void drain_check(struct agent *a)
{
	struct drain *d = a->drains;

	while (d) {
		struct drain *next = d->next;

		if (is_done(d))
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

/* Polls what is there. */
static void arm(struct drain *d)
{
	const struct cq *seen[2] = { NULL };

	for (size_t i = 0; i < d->n; i++) {
		struct cq *const own[2] = { d->qp[i] ? d->qp[i]->scq : NULL, d->qp[i] ? d->qp[i]->rcq : NULL };

		for (unsigned k = 0; k < 2; k++) {
			if (!own[k] || own[k] == seen[0] || own[k] == seen[1])
				continue;
			cq_arm(d->agent, own[k]);
			seen[k] = own[k];
		}
	}
}

/* Its QPs are known. */
static void begin(struct drain *d, uint64_t deadline_ns)
{
	struct agent *a = d->agent;

	if (loop_timer(a->loop, now_ns() + deadline_ns, on_deadline, d, &d->timer) < 0)
		abort(); /* no memory */
	agent_fold(a, true);
	for (size_t i = 0; i < d->n; i++) {
		if (!d->qp[i])
			continue;
		post_marker(a, d->qp[i]);
		cq_watch(d->qp[i]->scq);
		cq_watch(d->qp[i]->rcq);
	}
	agent_fold(a, false);
	arm(d);
	/* Only now it may end. */
	LL_PREPEND(a->drains, d);
	drain_check(a);
}

static struct drain *drain_new(struct agent *a, struct request *r)
{
	struct drain *d = calloc(1, sizeof(*d));

	if (!d)
		abort();
	d->agent = a;
	d->req = r;
	return d;
}

void op_drain(struct agent *a, struct request *r)
{
	struct object *o = object_need(a, r, OBJECT_QP, "qp");
	struct drain *d;

	if (!o)
		return;
	d = drain_new(a, r);
	d->one = (struct qp *)o;
	d->qp = &d->one;
	d->n = 1;
	begin(d, json_u64(r->body, "deadline_ns", WAIT_NS));
}

bool many_drain(struct agent *a, struct request *r)
{
	static const char *const known[] = { "deadline_ns", NULL };
	struct drain *d;
	struct fold fold;

	/* All of them wait at the same time: none comes after one that fails. */
	if (json_bool(r->body, "stops", false) || json_object_size(json_object_get(r->body, "each")) != 1 ||
	    !fold_begin(&fold, a, r, "qp", known))
		return false;
	d = drain_new(a, r);
	d->fold = fold;
	d->n = fold.n;
	d->qp = calloc(d->n, sizeof(struct qp *));
	if (!d->qp)
		abort();
	for (size_t i = 0; i < d->n; i++) {
		struct object *o = NULL;
		struct error e;
		int rc = object_want(a, OBJECT_QP, "drain", fold_name(&d->fold, i), &o, &e);

		if (rc < 0)
			fold_fail(&d->fold, i, reply_failed(rc, NULL, e.text));
		d->qp[i] = (struct qp *)o;
	}
	begin(d, json_u64(d->fold.all, "deadline_ns", WAIT_NS));
	return true;
}
