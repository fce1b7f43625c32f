/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/loop.h"
#include "../harness/names.h"
#include "../harness/pattern.h"
#include "../harness/units.h"
#include "object.h"
#include "payload.h"
#include "post.h"
#include "traffic.h"
#include "xrc.h"

#define STOP_NS (5 * NSEC_PER_SEC)

static int lay_out(struct agent *a, const json_t *body, struct traffic *t, struct error *e)
{
	t->size = (uint32_t)json_int(body, "size", 64);
	t->tag = (uint32_t)json_int(body, "tag", 0);
	t->mr = post_mr(a, json_str(body, "mr"), e);
	if (!t->mr)
		return -ENOENT;
	if (!t->mr->mr)
		return error_set(e, -ENOENT, "mr %s was deregistered", t->mr->o.name);
	if (t->size == 0 || t->tag == 0)
		return error_set(e, -EINVAL, "size and tag must not be 0");
	t->stride = (t->size + 63ULL) & ~63ULL;
	t->quarter = (t->mr->bytes / 4) & ~63ULL;
	t->nslots = t->quarter / t->stride;
	if (t->nslots == 0)
		return error_set(e, -ERANGE, "a quarter of mr %s (%zu bytes) does not hold a message of %u", t->mr->o.name,
				 t->mr->bytes, t->size);
	t->landed = calloc(t->nslots, sizeof(*t->landed));
	if (!t->landed)
		abort();
	return 0;
}

static void fill_quarters(struct agent *a, const struct traffic *t)
{
	char *base = t->mr->addr;

	pattern_fill((struct pattern){ .seed = a->seed }, base, t->mr->bytes);
	for (uint64_t i = 0; i < t->nslots; i++)
		pattern_fill((struct pattern){ .seed = a->seed, .tag = t->tag, .index = TRAFFIC_READABLE + i },
			     base + traffic_slot(t, TRAFFIC_READABLE_HERE, i), t->size);
}

/* Posts what is missing in the queue that feeds the QP. */
static int top_up(struct agent *a, const json_t *body, struct qp *qp, unsigned *ret_posted, struct error *e)
{
	static const struct rx_keys first = { "recv_mr", "recv_size", "recv_stride", "recv_slots" }, none = { "", "", "", "" };
	struct queue *q = qp_recv_queue(qp);
	struct post_result res = { .count = 0 };
	uint64_t fit = qp->srq ? qp->srq->depth : qp->cap.max_recv_wr, want;
	uint32_t lkey = 0;
	json_t *f;
	int rc;

	*ret_posted = 0;
	if (qp->type == IBV_QPT_XRC_SEND) /* it receives nothing */
		return 0;
	if (json_is_integer(json_object_get(body, "receives")) && json_int(body, "receives", 0) == 0)
		return 0;
	rc = rx_parse(a, body, q->rx.mr ? &none : &first, qp->rx_name, &q->rx, e);
	if (rc == 0)
		rc = rx_lkey(a, q, &lkey, e);
	if (rc < 0)
		return error_prefix(e, rc, "receives");
	if (fit > q->rx.slots)
		fit = q->rx.slots;
	want = json_u64(body, "receives", fit);
	if (want <= q->in_flight)
		return 0;
	res.count = (unsigned)(want - q->in_flight);
	recv_post_list(a, qp, qp->srq, q, lkey, &res);
	f = json_pack("{s:s, s:I, s:b, s:s}", "op", "RECV", "size", (json_int_t)q->rx.size, "signaled", 1, "by", "traffic");
	json_object_set(f, "traffic", json_object_get(body, "as"));
	post_record(a, q, &res, f);
	*ret_posted = res.accepted;
	return res.err ? error_set(e, -res.err, "receives: %s", strerror(res.err)) : 0;
}

void op_traffic_prepare(struct agent *a, struct request *r)
{
	struct object *o = object_need(a, r, OBJECT_QP, "qp");
	const char *as = json_str(r->body, "as");
	struct error e = { "" };
	struct traffic *t;
	unsigned posted = 0;
	int rc;

	if (!o)
		return;
	t = ((struct qp *)o)->traffic;
	if (!as || (t && t->state == TRAFFIC_RUNNING)) {
		request_fail(r, as ? -EBUSY : -EINVAL, "traffic_prepare: %s: %s%s", o->name,
			     as ? "there runs traffic " : "no name is given (as)", as ? t->as : "");
		return;
	}
	t = traffic_make(a, as, (struct qp *)o);
	rc = lay_out(a, r->body, t, &e);
	if (rc == 0) {
		fill_quarters(a, t);
		rc = top_up(a, r->body, t->qp, &posted, &e);
	}
	if (rc < 0) {
		traffic_drop(t);
		request_fail(r, rc, "traffic_prepare: %s: %s", o->name, e.text);
		return;
	}
	request_reply(r, json_pack("{s:i, s:I}", "posted", (int)posted, "receives", (json_int_t)qp_recv_queue(t->qp)->in_flight));
}

static int parse_ops(const json_t *body, struct traffic *t, struct error *e)
{
	const json_t *ops = json_object_get(body, "ops"), *v;
	size_t i;

	if (json_array_size(ops) == 0 || json_array_size(ops) > TRAFFIC_OPS_MAX)
		return error_set(e, -EINVAL, "ops must name 1 to %u operations", TRAFFIC_OPS_MAX);
	json_array_foreach(ops, i, v) {
		const char *text = json_string_value(v) ? json_string_value(v) : "";
		const struct name *op = name_find(&names_op, text);

		if (!op || (op->value != IBV_WR_SEND && op->value != IBV_WR_RDMA_WRITE && op->value != IBV_WR_RDMA_READ))
			return error_set(e, -EINVAL, "ops: \"%s\"; allowed: SEND WRITE READ", text);
		t->ops[t->n_ops++] = op->value;
	}
	return 0;
}

static uint64_t own_sends(const struct traffic *t)
{
	uint64_t n = 0;

	if (!t->messages)
		return UINT64_MAX;
	for (unsigned i = 0; i < t->n_ops; i++) {
		if (t->ops[i] == IBV_WR_SEND)
			n += t->messages / t->n_ops + (i < t->messages % t->n_ops);
	}
	return n;
}

static bool has_op(const struct traffic *t, int op)
{
	for (unsigned i = 0; i < t->n_ops; i++) {
		if (t->ops[i] == op)
			return true;
	}
	return false;
}

static int set_up(struct agent *a, const json_t *body, struct traffic *t, struct error *e)
{
	const char *role = json_str(body, "role");
	struct queue *q = qp_recv_queue(t->qp);
	uint64_t depth = json_u64(body, "depth", 16);
	int rc = parse_ops(body, t, e);

	if (rc < 0)
		return rc;
	if (!t->mr->mr)
		return error_set(e, -ENOENT, "mr %s was deregistered", t->mr->o.name);
	t->tx = !role || strcmp(role, "rx") != 0;
	t->rx = !role || strcmp(role, "tx") != 0;
	t->peer_tag = (uint32_t)json_int(body, "peer_tag", t->tag);
	t->messages = json_u64(body, "messages", 0);
	t->background = json_bool(body, "background", false);
	t->lossy = json_bool(body, "lossy", false);
	if (t->lossy && (t->n_ops > 1 || t->ops[0] != IBV_WR_SEND || !t->background))
		return error_set(e, -EINVAL, "a lossy traffic is of SENDs, and in the background");
	t->expect = !t->rx ? 0 : t->lossy ? UINT64_MAX : json_u64(body, "expect_messages", own_sends(t));
	t->interval_ns = json_u64(body, "interval_ns", 0);
	t->gap_ns = json_u64(body, "gap_ns", 0);
	t->raddr = json_u64(body, "raddr", 0);
	t->rkey = (uint32_t)json_int(body, "rkey", 0);
	t->lkey = t->mr->mr->lkey;
	t->srqn = xrc_parse(t->qp, body);
	rc = t->tx ? datagram_parse(a, body, t->qp, &t->datagram, e) : 0;
	if (rc < 0)
		return rc;
	if (t->datagram.ah && (has_op(t, IBV_WR_RDMA_WRITE) || has_op(t, IBV_WR_RDMA_READ)))
		return error_set(e, -EINVAL, "a UD QP takes SEND alone");
	t->depth = (unsigned)(depth < t->nslots ? depth : t->nslots);
	if (t->depth == 0)
		t->depth = 1;
	/* The same at both ends: what one concludes from a SEND of the other holds only then. */
	t->window = (unsigned)json_int(body, "peer_receives", (json_int_t)q->in_flight);
	if (t->window > q->in_flight)
		t->window = (unsigned)q->in_flight;
	t->window = t->window / 2 ? t->window / 2 : 1;
	if (json_bool(body, "answers", false))
		t->window = 0;
	if (t->rx && t->expect && has_op(t, IBV_WR_SEND)) {
		if (!q->rx.mr)
			return error_set(e, -EINVAL, "the peer is to SEND, but no receive was ever posted");
		if (q->rx.size < t->size + q->rx.head)
			return error_set(e, -EINVAL, "SENDs of %u bytes do not fit into receives of %u", t->size + q->rx.head,
					 q->rx.size);
		return rx_lkey(a, q, &t->recv_lkey, e);
	}
	return 0;
}

void op_traffic(struct agent *a, struct request *r)
{
	struct object *o = object_need(a, r, OBJECT_QP, "qp");
	const char *as = json_str(r->body, "as");
	struct error e = { "" };
	struct traffic *t;
	int rc;

	if (!o)
		return;
	t = as ? traffic_find(a, as, (struct qp *)o) : NULL;
	if (!t || t->state != TRAFFIC_PREPARED) {
		request_fail(r, -EINVAL, "traffic: %s: \"%s\" was not prepared (traffic_prepare)", o->name, as ? as : "");
		return;
	}
	if (t->qp->traffic != t) {
		request_fail(r, -EBUSY, "traffic: %s: traffic %s was prepared or started since", o->name,
			     t->qp->traffic ? t->qp->traffic->as : "(ended)");
		return;
	}
	rc = set_up(a, r->body, t, &e);
	if (rc < 0) {
		traffic_drop(t);
		request_fail(r, rc, "traffic: %s: %s", o->name, e.text);
		return;
	}
	t->req = r;
	traffic_start(t);
}

static int on_stop_deadline(sd_event_source *source, uint64_t usec, void *user)
{
	(void)source;
	(void)usec;
	traffic_end(user, -ETIMEDOUT, "stop", "its sends did not complete after the stop");
	return 0;
}

void op_traffic_stop(struct agent *a, struct request *r)
{
	const char *as = json_str(r->body, "as"), *qp_name = json_str(r->body, "qp");
	struct object *o = qp_name ? object_find(a, OBJECT_QP, qp_name) : NULL;
	struct traffic *t = as ? traffic_find(a, as, (struct qp *)o) : NULL;

	if (!t || t->state == TRAFFIC_PREPARED) {
		request_fail(r, -ENOENT, "traffic_stop: there is no traffic \"%s\"", as ? as : "");
		return;
	}
	if (t->state == TRAFFIC_ENDED) {
		t->told = true;
		request_reply(r, traffic_json(t));
		return;
	}
	if (t->req && t->background) {
		request_fail(r, -EALREADY, "traffic_stop: %s is being stopped", as);
		return;
	}
	t->deadline = sd_event_source_disable_unref(t->deadline);
	if (loop_timer(a->loop, now_ns() + json_u64(r->body, "deadline_ns", STOP_NS), on_stop_deadline, t, &t->deadline) < 0)
		abort(); /* no memory */
	if (t->req) {    /* whoever waits for its end learns it first */
		struct request *waiting = t->req;

		t->req = r;
		request_fail_with(waiting, -ECANCELED, traffic_json(t), "traffic %s of %s was stopped", as, t->qp->o.name);
	} else {
		t->req = r;
	}
	traffic_wind_up(t);
}

void op_traffic_pause(struct agent *a, struct request *r)
{
	const char *as = json_str(r->body, "as"), *qp_name = json_str(r->body, "qp");
	struct object *o = qp_name ? object_find(a, OBJECT_QP, qp_name) : NULL;
	struct traffic *t = as ? traffic_find(a, as, (struct qp *)o) : NULL;

	if (!t || t->state == TRAFFIC_PREPARED) {
		request_fail(r, -ENOENT, "traffic_pause: there is no traffic \"%s\"", as ? as : "");
	} else if (t->state != TRAFFIC_RUNNING || t->pauser) {
		request_fail(r, -EALREADY, "traffic_pause: %s %s", as, t->pauser ? "is being paused" : "has ended");
	} else if (json_bool(r->body, "on", true)) {
		traffic_pause(t, r);
	} else {
		traffic_resume(t);
		request_reply(r, NULL);
	}
}

/* The last of the peer's WRITEs into a slot, of `messages` messages; false when none was. */
static bool last_write(const struct traffic *t, uint64_t messages, uint64_t slot, uint64_t *ret_index)
{
	/* Slot and operation repeat together after n_ops rounds of the slots. */
	for (uint64_t round = 0; round < t->n_ops; round++) {
		uint64_t past = messages > slot ? (messages - slot - 1) / t->nslots : 0;
		uint64_t index;

		if (messages <= slot || past < round)
			return false;
		index = slot + (past - round) * t->nslots;
		if (t->ops[index % t->n_ops] == IBV_WR_RDMA_WRITE) {
			*ret_index = index;
			return true;
		}
	}
	return false;
}

void op_traffic_verify(struct agent *a, struct request *r)
{
	const char *as = json_str(r->body, "as"), *qp_name = json_str(r->body, "qp");
	struct object *o = qp_name ? object_find(a, OBJECT_QP, qp_name) : NULL;
	struct traffic *t = as ? traffic_find(a, as, (struct qp *)o) : NULL;
	uint64_t messages = json_u64(r->body, "messages", t ? t->messages : 0);
	struct tally tally = { .n_letters = 0 };

	if (!t || !t->n_ops) {
		request_fail(r, -ENOENT, "traffic_verify: there is no traffic \"%s\"", as ? as : "");
		return;
	}
	for (uint64_t slot = 0; slot < t->nslots; slot++) {
		const char *at = (const char *)t->mr->addr + traffic_slot(t, TRAFFIC_WRITTEN, slot);
		uint64_t index;

		if (last_write(t, messages, slot, &index))
			tally_add(&tally, pattern_check((struct pattern){ .seed = a->seed, .tag = t->peer_tag, .index = index }, at,
							t->size));
	}
	request_reply(r, tally_json(&tally));
}
