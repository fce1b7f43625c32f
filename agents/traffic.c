/* SPDX-License-Identifier: MIT */
#include "traffic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../harness/json.h"
#include "../harness/loop.h"
#include "../harness/names.h"
#include "../harness/units.h"
#include "cq.h"
#include "extended.h"
#include "object.h"
#include "post.h"
#include "xrc.h"

#define CHAIN_MAX 32u /* requests in one call */
#define DEEP 16u
#define LONG_BYTES 4096u /* to post one of so many costs little beside what it moves */

static void pump(struct traffic *t);
static void refill(struct traffic *t);

uint64_t traffic_slot(const struct traffic *t, enum traffic_quarter q, uint64_t i)
{
	return (uint64_t)q * t->quarter + i % t->nslots * t->stride;
}

char *traffic_at(const struct traffic *t, enum traffic_quarter q, uint64_t i)
{
	return (char *)t->mr->addr + traffic_slot(t, q, i);
}

struct pattern traffic_pattern(const struct traffic *t, uint32_t tag, uint64_t index)
{
	return (struct pattern){ .seed = t->agent->seed, .tag = tag, .index = index };
}

bool traffic_runs(const struct traffic *t, uint16_t number)
{
	return t && t->number == number && t->state == TRAFFIC_RUNNING;
}

/* "SEND 12: RETRY_EXC_ERR": the first thing that went wrong. */
static void note_error(struct traffic *t, const char *op, uint64_t index, const char *what)
{
	if (!t->first_error)
		t->first_error = op ? json_sprintf("%s %llu: %s", op, (unsigned long long)index, what) : json_string(what);
}

json_t *traffic_json(const struct traffic *t)
{
	json_t *f =
		json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "as", t->as, "from", t->qp->o.name,
			  "sent", (json_int_t)t->next, "done", (json_int_t)t->done, "received", (json_int_t)t->received, "errors",
			  (json_int_t)t->errors, "bad_payload", (json_int_t)t->bad_payload, "bytes", (json_int_t)t->bytes,
			  "gap_max_ns", (json_int_t)t->gap_max_ns, "gap_t_ns", (json_int_t)t->gap_t_ns, "p50_ns",
			  (json_int_t)hist_quantile(&t->latency, 500), "p99_ns", (json_int_t)hist_quantile(&t->latency, 990));

	if (t->lossy)
		json_object_update_new(
			f, json_pack("{s:I, s:I}", "doubled", (json_int_t)t->doubled, "reordered", (json_int_t)t->reordered));
	if (t->first_error)
		json_object_set(f, "first_error", t->first_error);
	return f;
}

static void pause_is_reached(struct traffic *t)
{
	struct request *r = t->pauser;

	if (!r || (t->state == TRAFFIC_RUNNING && t->outstanding))
		return;
	t->pauser = NULL;
	request_reply(r, json_pack("{s:I}", "done", (json_int_t)t->done));
}

/* What is missing has been waited for as well. */
static void tell_gap(struct traffic *t, uint64_t now)
{
	uint64_t gap = now > t->progress_ns ? now - t->progress_ns : 0;

	if (gap > t->gap_max_ns) {
		t->gap_max_ns = gap;
		t->gap_t_ns = now;
	}
	if (t->gap_ns && gap > t->gap_ns)
		agent_record(t->agent, now, "traffic", t->qp->o.name, t->qp->o.life,
			     json_pack("{s:s, s:s, s:s, s:I}", "as", t->as, "from", t->qp->o.name, "phase", "gap", "gap_ns",
				       (json_int_t)gap));
}

void traffic_end(struct traffic *t, int rc, const char *phase, const char *text)
{
	struct request *req = t->req;
	struct agent *a = t->agent;
	json_t *f;

	if (t->state != TRAFFIC_RUNNING)
		return;
	if (t->gap_ns)
		tell_gap(t, now_ns());
	refill(t);
	t->state = TRAFFIC_ENDED;
	t->told = req && t->background;
	t->req = NULL;
	t->qp->traffic = NULL;
	pause_is_reached(t);
	t->deadline = sd_event_source_disable_unref(t->deadline);
	t->pace = sd_event_source_disable_unref(t->pace);
	cq_unwatch(t->qp->scq);
	cq_unwatch(t->qp->rcq);
	if (text)
		note_error(t, NULL, 0, text);
	traffic_report_own_posts(t);
	run_flush(a, t->qp->sq);
	run_flush(a, qp_recv_queue(t->qp));
	f = traffic_json(t);
	json_object_set_new(f, "phase", json_string(phase));
	agent_record(a, now_ns(), "traffic", t->qp->o.name, t->qp->o.life, f);
	if (!req)
		return;
	if (rc < 0)
		request_fail_with(req, rc, traffic_json(t), "traffic %s of %s: %s", t->as, t->qp->o.name,
				  text             ? text
				  : t->first_error ? json_string_value(t->first_error)
						   : strerror(-rc));
	else
		request_reply(req, traffic_json(t));
}

static void progress(struct traffic *t, uint64_t now)
{
	tell_gap(t, now);
	t->progress_ns = now;
	traffic_phases_progress(t, now);
}

static void settle(struct traffic *t)
{
	bool all_sent = !t->tx || t->stopping || (t->messages && t->done == t->messages);

	if (t->state != TRAFFIC_RUNNING)
		return;
	if (t->stopping ? t->outstanding == 0 : all_sent && t->arrived >= t->expect)
		traffic_end(t, 0, t->stopping ? "stop" : "end", NULL);
}

void traffic_wind_up(struct traffic *t)
{
	t->stopping = true;
	settle(t);
}

static int op_of(const struct traffic *t, uint64_t index)
{
	return t->ops[index % t->n_ops];
}

/* The message number of the peer's n-th SEND: both ends take the same operations in turn. */
static uint64_t index_of_send(const struct traffic *t, uint64_t n)
{
	unsigned per_turn = 0, left;

	for (unsigned i = 0; i < t->n_ops; i++)
		per_turn += t->ops[i] == IBV_WR_SEND;
	if (!per_turn)
		return n;
	left = (unsigned)(n % per_turn);
	for (unsigned i = 0; i < t->n_ops; i++) {
		if (t->ops[i] == IBV_WR_SEND && left-- == 0)
			return n / per_turn * t->n_ops + i;
	}
	return n;
}

/* The peer's n-th SEND shows that it had taken ours up to n - window: no more than two windows are ever without a receive. */
static bool send_may_go(const struct traffic *t, unsigned more)
{
	return !t->rx || t->lossy || t->arrived >= t->expect || t->sends + more < t->arrived + t->window;
}

static int on_pace(sd_event_source *source, uint64_t usec, void *user)
{
	(void)source;
	(void)usec;
	pump(user);
	return 0;
}

static bool paced(struct traffic *t)
{
	uint64_t now;

	if (!t->interval_ns)
		return true;
	now = now_ns();
	if (now >= t->due_ns) {
		t->due_ns = t->due_ns + t->interval_ns > now ? t->due_ns + t->interval_ns : now + t->interval_ns;
		return true;
	}
	t->agent->turn = true;
	if (t->pace) {
		sd_event_source_set_time(t->pace, t->due_ns / NSEC_PER_USEC + 1);
		sd_event_source_set_enabled(t->pace, SD_EVENT_ONESHOT);
	} else if (loop_timer(t->agent->loop, t->due_ns, on_pace, t, &t->pace) < 0) {
		abort(); /* no memory */
	}
	return false;
}

/* What is about to go out in one call. */
struct chain {
	struct ibv_send_wr wr[CHAIN_MAX];
	struct ibv_sge sge[CHAIN_MAX];
	unsigned n, sends;
};

/* One more, after those of c. */
static bool may_post(const struct traffic *t, const struct chain *c)
{
	uint64_t index = t->next + c->n;

	if (t->state != TRAFFIC_RUNNING || !t->tx || t->stopping || t->paused || t->outstanding + c->n >= t->depth || t->qp->dying)
		return false;
	if (t->messages && index >= t->messages)
		return false;
	return c->n < CHAIN_MAX && (op_of(t, index) != IBV_WR_SEND || send_may_go(t, c->sends));
}

static void chain_add(struct traffic *t, struct chain *c)
{
	struct ibv_send_wr *wr = &c->wr[c->n];
	struct ibv_sge *sge = &c->sge[c->n];
	uint64_t index = t->next + c->n;
	int op = op_of(t, index);
	enum traffic_quarter local = op == IBV_WR_RDMA_READ ? TRAFFIC_READ_LANDING : TRAFFIC_SOURCE;
	char *at = traffic_at(t, local, index);

	*sge = (struct ibv_sge){ .addr = (uintptr_t)at, .length = t->size, .lkey = t->lkey };
	*wr = (struct ibv_send_wr){ .wr_id = queue_wr_id(t->qp->sq, WRID_TRAFFIC, c->n),
				    .sg_list = sge,
				    .num_sge = 1,
				    .opcode = (enum ibv_wr_opcode)op,
				    .send_flags = IBV_SEND_SIGNALED };
	if (op != IBV_WR_RDMA_READ)
		pattern_fill(traffic_pattern(t, t->tag, index), at, t->size);
	if (c->n)
		c->wr[c->n - 1].next = wr;
	c->n++;
	xrc_put(t->qp, t->srqn, wr);
	if (op == IBV_WR_SEND) {
		datagram_put(&t->datagram, wr);
		c->sends++;
		return;
	}
	wr->wr.rdma.rkey = t->rkey;
	wr->wr.rdma.remote_addr =
		t->raddr + (op == IBV_WR_RDMA_READ ? traffic_read_begins(t, index) : traffic_slot(t, TRAFFIC_WRITTEN, index));
}

/* 0 when all of it went out. */
static int chain_post(struct traffic *t, struct chain *c)
{
	struct queue *q = t->qp->sq;
	struct post_result res = { .count = c->n, .accepted = c->n, .t_first_ns = now_ns() };
	struct ibv_send_wr *bad = NULL;
	uint32_t seq = q->next;
	int err = qp_send(t->qp, c->wr, &bad);

	res.t_last_ns = now_ns();
	if (err) {
		res.err = err < 0 ? (errno ? errno : EIO) : err;
		res.accepted = post_bad_index(bad, c->wr, sizeof(*c->wr), c->n);
	}
	traffic_span_add(t, &t->sent_span, q, seq, &res);
	for (unsigned i = 0; i < res.accepted; i++, t->next++) {
		t->sends += op_of(t, t->next) == IBV_WR_SEND;
		queue_accept(q, 1,
			     &(struct wr){ .index = t->next,
					   .t_ns = res.t_first_ns,
					   .traffic = t->number,
					   .kind = WRID_TRAFFIC,
					   .signaled = true });
	}
	t->outstanding += res.accepted;
	return res.err;
}

static void pump(struct traffic *t)
{
	struct chain c;

	/* A deep queue of short messages is filled up again by halves: a call for each completion costs more than it brings. */
	if (t->depth >= DEEP && t->size < LONG_BYTES && !t->interval_ns && t->outstanding > t->depth / 2)
		return;
	do {
		int err;

		c.n = c.sends = 0;
		if (!datagram_goes(&t->datagram)) {
			traffic_end(t, -ENOENT, "end", "its address handle was destroyed");
			return;
		}
		while (may_post(t, &c) && paced(t))
			chain_add(t, &c);
		err = c.n ? chain_post(t, &c) : 0;
		if (err == ENOMEM && t->outstanding) /* others use the queue as well: the next completion makes room */
			return;
		if (!err)
			continue;
		t->errors++;
		note_error(t, name_of(&names_op, op_of(t, t->next)), t->next, strerror(err));
		traffic_end(t, -err, "end", NULL);
		return;
	} while (c.n == CHAIN_MAX);
}

void traffic_turn(struct agent *a)
{
	struct traffic *t;

	traffic_refill(a);
	while ((t = a->traffics_touched)) {
		a->traffics_touched = t->links.touched;
		t->links.is_touched = false;
		settle(t);
		pause_is_reached(t);
		pump(t);
	}
}

void traffic_pause(struct traffic *t, struct request *r)
{
	t->paused = true;
	t->pauser = r;
	pause_is_reached(t);
}

void traffic_resume(struct traffic *t)
{
	t->paused = false;
	t->due_ns = now_ns();
	pump(t);
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *user)
{
	(void)source;
	(void)usec;
	traffic_end(user, -ETIMEDOUT, "end", "its deadline passed");
	return 0;
}

static void take_early(struct traffic *t)
{
	for (unsigned i = 0; i < t->n_early && t->rx; i++) {
		struct ibv_wc wc = { .status = IBV_WC_SUCCESS, .opcode = IBV_WC_RECV, .byte_len = t->early[i].byte_len };

		traffic_received(t, qp_recv_queue(t->qp), t->early[i].seq, &wc, t->early[i].t_ns);
	}
	t->n_early = 0;
}

void traffic_drop(struct traffic *t)
{
	t->state = TRAFFIC_ENDED;
	t->n_ops = 0;
	t->n_early = 0;
	if (t->qp->traffic == t)
		t->qp->traffic = NULL;
}

void traffic_start(struct traffic *t)
{
	uint64_t deadline_ns = json_u64(t->req->body, "deadline_ns", t->background ? 0 : 30 * NSEC_PER_SEC);

	t->state = TRAFFIC_RUNNING;
	t->progress_ns = t->due_ns = now_ns();
	if (deadline_ns && loop_timer(t->agent->loop, t->progress_ns + deadline_ns, on_deadline, t, &t->deadline) < 0)
		abort(); /* no memory */
	if (t->background) {
		struct request *req = t->req;

		t->req = NULL;
		request_reply(req, json_pack("{s:b}", "started", 1));
	}
	cq_watch(t->qp->scq);
	cq_watch(t->qp->rcq);
	take_early(t);
	refill(t);
	pump(t);
	cq_arm(t->agent, t->qp->scq);
	cq_arm(t->agent, t->qp->rcq);
	settle(t);
}

static void completion_error(struct traffic *t, const char *op, uint64_t index, const struct ibv_wc *wc)
{
	t->errors++;
	note_error(t, op, index, name_of(&names_status, (int)wc->status));
	traffic_end(t, -EIO, "end", NULL);
}

void traffic_sent(struct agent *a, struct queue *q, const struct wr *wr, const struct ibv_wc *wc, uint64_t t_ns)
{
	struct traffic *t = q->qp->traffic;
	int op;

	(void)a;
	if (!t || t->state != TRAFFIC_RUNNING || t->number != wr->traffic) /* it has ended; the record tells whose it was */
		return;
	op = op_of(t, wr->index);
	t->outstanding--;
	if (wc->status != IBV_WC_SUCCESS) {
		completion_error(t, name_of(&names_op, op), wr->index, wc);
		return;
	}
	t->done++;
	t->bytes += t->size;
	hist_add(&t->latency, t_ns - wr->t_ns);
	traffic_phases_latency(t, t_ns - wr->t_ns);
	progress(t, t_ns);
	if (op == IBV_WR_RDMA_READ && !traffic_read_is_there(t, wr->index)) {
		t->bad_payload++;
		note_error(t, "READ", wr->index, "payload is not the peer's");
	}
}

struct traffic *traffic_receiver(struct agent *a, struct queue *q, const struct ibv_wc *wc, uint16_t *ret_number)
{
	struct qp *qp = q->qp ? q->qp : qp_by_qpn(a, wc->qp_num);
	struct traffic *t = qp ? qp->traffic : NULL;

	if (!t || (t->state == TRAFFIC_RUNNING && !t->rx))
		return NULL;
	if (wc->status != IBV_WC_SUCCESS)
		return t->state == TRAFFIC_RUNNING ? t : NULL;
	if (wc->opcode != IBV_WC_RECV) /* a WRITE_WITH_IMM of somebody else */
		return NULL;
	*ret_number = t->number;
	return t;
}

static void keep_early(struct traffic *t, uint32_t seq, const struct ibv_wc *wc, uint64_t t_ns)
{
	struct early *grown = realloc(t->early, (t->n_early + 1) * sizeof(*grown));

	if (!grown)
		abort();
	t->early = grown;
	t->early[t->n_early++] = (struct early){ .seq = seq, .byte_len = wc->byte_len, .t_ns = t_ns };
}

void traffic_received(struct traffic *t, struct queue *q, uint32_t seq, const struct ibv_wc *wc, uint64_t t_ns)
{
	const struct rx *rx = &q->rx;
	uint64_t index = t->n_ops ? index_of_send(t, t->arrived) : 0;
	const char *at = (const char *)rx->mr->addr + rx->off + (uint64_t)(seq % rx->slots) * rx->stride + rx->head;

	if (t->state == TRAFFIC_PREPARED)
		keep_early(t, seq, wc, t_ns);
	if (t->state != TRAFFIC_RUNNING)
		return;
	if (wc->status != IBV_WC_SUCCESS) {
		completion_error(t, "RECV", index, wc);
		return;
	}
	t->arrived++;
	if (t->lossy ? traffic_lossy_took(t, at, wc->byte_len - rx->head)
		     : wc->byte_len == t->size + rx->head &&
			       pattern_check(traffic_pattern(t, t->peer_tag, index), at, t->size) == PATTERN_INTACT) {
		t->received += !t->lossy; /* which counts by itself */
		if (!t->tx)
			progress(t, t_ns);
	} else {
		t->bad_payload++;
		note_error(t, "RECV", index, "payload is not the peer's");
	}
	t->recv_due++;
	if (!t->links.is_due) {
		t->links.is_due = true;
		LL_PREPEND2(t->agent->traffics_due, t, links.due);
	}
}

/* In place of the receives that were taken, as many new ones. */
static void refill(struct traffic *t)
{
	struct queue *q = qp_recv_queue(t->qp);
	struct post_result res = { .count = t->recv_due };
	uint32_t seq = q->next;

	t->recv_due = 0;
	if (res.count == 0 || t->qp->dying || t->state != TRAFFIC_RUNNING)
		return;
	recv_post_list(t->agent, t->qp, t->qp->srq, q, t->recv_lkey, &res);
	traffic_span_add(t, &t->recv_span, q, seq, &res);
	if (res.err)
		note_error(t, "RECV", t->n_ops ? index_of_send(t, t->arrived) : 0, strerror(res.err));
}

void traffic_refill(struct agent *a)
{
	struct traffic *t;

	while ((t = a->traffics_due)) {
		a->traffics_due = t->links.due;
		t->links.is_due = false;
		refill(t);
	}
}

void traffic_qp_gone(struct agent *a, struct qp *qp)
{
	(void)a;
	if (qp->traffic && qp->traffic->state == TRAFFIC_RUNNING)
		traffic_end(qp->traffic, -ECANCELED, "end", "its QP was reset or destroyed");
	if (qp->traffic) /* prepared for what is no more */
		qp->traffic->n_early = 0;
}
