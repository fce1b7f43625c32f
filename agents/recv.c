/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/pattern.h"
#include "../harness/units.h"
#include "post.h"
#include "xrc.h"

#define CHAIN_MAX 32u /* receives in one call */

int rx_lkey(struct agent *a, const struct queue *q, uint32_t *ret, struct error *e)
{
	(void)a;
	return post_lkey(NULL, q->rx.mr, ret, e);
}

/* The first time in a life that a slot is used it is wiped: what an earlier life left there is no message of this one. Later rounds
 * leave it, for somebody may still want to look at what lies there. */
static void wipe(struct agent *a, const struct queue *q, uint32_t seq, uint64_t at)
{
	const struct rx *rx = &q->rx;

	if (seq < rx->slots && at < rx->mr->bytes)
		pattern_fill((struct pattern){ .seed = a->seed }, (char *)rx->mr->addr + at,
			     rx->size < rx->mr->bytes - at ? rx->size : rx->mr->bytes - at);
}

/* Posts n receives, CHAIN_MAX at most, in one call. Returns how many were accepted. */
static unsigned post_chain(struct agent *a, struct qp *qp, struct srq *srq, struct queue *q, uint32_t lkey, unsigned n,
			   int *ret_err)
{
	const struct rx *rx = &q->rx;
	struct ibv_sge sge[CHAIN_MAX][POST_SGE_MAX];
	struct ibv_recv_wr wr[CHAIN_MAX], *bad = NULL;
	int err;

	for (unsigned i = 0; i < n; i++) {
		uint64_t at = rx->off + (uint64_t)((q->next + i) % rx->slots) * rx->stride;

		wipe(a, q, q->next + i, at);
		post_split(sge[i], rx->sge, (uintptr_t)rx->mr->addr + at, rx->size, lkey);
		wr[i] = (struct ibv_recv_wr){ .wr_id = queue_wr_id(q, WRID_RECV, i),
					      .sg_list = sge[i],
					      .num_sge = (int)rx->sge,
					      .next = i + 1 < n ? &wr[i + 1] : NULL };
	}
	err = srq ? ibv_post_srq_recv(srq->srq, wr, &bad) : ibv_post_recv(qp->qp, wr, &bad);
	if (err < 0)
		err = err == -1 && errno ? errno : -err;
	if (err)
		n = post_bad_index(bad, wr, sizeof(*wr), n);
	queue_accept(q, n, &(struct wr){ .kind = WRID_RECV, .signaled = true });
	*ret_err = err;
	return n;
}

void recv_post_list(struct agent *a, struct qp *qp, struct srq *srq, struct queue *q, uint32_t lkey, struct post_result *res)
{
	res->t_first_ns = res->t_last_ns = now_ns();
	res->bad = -1;
	res->first = queue_wr_id(q, WRID_RECV, 0);
	while (res->accepted < res->count && !res->err) {
		unsigned left = res->count - res->accepted;

		res->accepted += post_chain(a, qp, srq, q, lkey, left < CHAIN_MAX ? left : CHAIN_MAX, &res->err);
	}
	res->t_last_ns = now_ns();
	if (res->err)
		res->bad = (int)res->accepted;
	if (res->accepted)
		res->last = queue_wr_id(q, WRID_RECV, UINT32_MAX);
}

int rx_parse(struct agent *a, const json_t *body, const struct rx_keys *k, const char *def_mr, struct rx *ret, struct error *e)
{
	const char *name = json_str(body, k->mr);
	struct rx rx = *ret;
	bool changed =
		name || json_object_get(body, k->size) || json_object_get(body, k->stride) || json_object_get(body, k->slots);
	int rc;

	rx.sge = (unsigned)json_int(body, "sge", 1);
	if (rx.sge > POST_SGE_MAX)
		return error_set(e, -EINVAL, "sge is %u, at most %u", rx.sge, POST_SGE_MAX);
	if (rx.mr && !changed && rx.mr->mr) { /* its MR may be a smaller one since */
		ret->sge = rx.sge;
		return post_check_room(rx.mr->bytes, rx.off, rx.stride, rx.slots, rx.size, e);
	}
	rx.mr = post_mr(a, name ? name : rx.mr ? rx.mr->o.name : def_mr, e);
	if (!rx.mr)
		return -ENOENT;
	rx.size = (uint32_t)json_int(body, k->size, rx.size ? (int64_t)rx.size : 64);
	rx.stride = (uint32_t)json_int(body, k->stride, (rx.size + 63) & ~63);
	if (rx.stride == 0)
		rx.stride = 64;
	rx.off = json_u64(body, "off", 0);
	rx.head = (uint32_t)json_int(body, "head", rx.head);
	rx.slots = (uint32_t)json_int(body, k->slots, (int64_t)((rx.mr->bytes - rx.off) / rx.stride));
	rc = post_check_room(rx.mr->bytes, rx.off, rx.stride, rx.slots, rx.size, e);
	if (rc < 0)
		return error_prefix(e, rc, "%s", rx.mr->o.name);
	*ret = rx;
	return 0;
}

static const struct rx_keys keys = { "mr", "size", "stride", "slots" };

/* The whole queue is what the device made of its depth, as far as there are slots for it. */
static unsigned rounded_up_by(const struct qp *qp, uint64_t depth, unsigned count)
{
	uint64_t more = qp->cap.max_recv_wr > depth ? qp->cap.max_recv_wr - depth : 0, taken = qp->rq->in_flight + count;
	uint64_t room = qp->rq->rx.slots > taken ? qp->rq->rx.slots - taken : 0;

	return (unsigned)(more < room ? more : room);
}

void op_post_recv(struct agent *a, struct request *r)
{
	bool shared = json_str(r->body, "srq") != NULL;
	struct object *o = object_need(a, r, shared ? OBJECT_SRQ : OBJECT_QP, shared ? "srq" : "qp");
	int64_t count = json_int(r->body, "count", 1);
	struct post_result res = { .count = (unsigned)count };
	struct qp *qp = shared ? NULL : (struct qp *)o;
	struct srq *srq = shared ? (struct srq *)o : NULL;
	struct error e = { "" };
	struct queue *q;
	struct rx before;
	uint32_t lkey;
	json_t *f;

	if (!o)
		return;
	if (!shared && xrc_is(qp->type)) {
		request_fail(r, -EINVAL, "post_recv: %s is of an extended reliable connection: it has no receive queue", o->name);
		return;
	}
	q = shared ? srq->rq : qp->rq;
	before = q->rx;
	if (!shared && qp->type == IBV_QPT_UD)
		q->rx.head = GRH_BYTES;
	if (count < 1 || count > POST_COUNT_MAX) {
		request_fail(r, -EINVAL, "post_recv: count is %lld, must be 1 to %u", (long long)count, POST_COUNT_MAX);
		return;
	}
	if (rx_parse(a, r->body, &keys, shared ? NULL : qp->rx_name, &q->rx, &e) < 0 ||
	    post_lkey(r->body, q->rx.mr, &lkey, &e) < 0) {
		request_fail(r, -EINVAL, "post_recv: %s: %s", o->name, e.text);
		return;
	}
	if (!shared && json_object_get(r->body, "depth"))
		res.count += rounded_up_by(qp, json_u64(r->body, "depth", 0), res.count);
	recv_post_list(a, qp, srq, q, lkey, &res);
	f = json_pack("{s:s, s:I, s:b}", "op", "RECV", "size", (json_int_t)q->rx.size, "signaled", 1);
	json_object_set(f, "as", json_object_get(r->body, "as"));
	json_object_set(f, "by", json_object_get(r->body, "by"));
	post_record(a, q, &res, f);
	if (res.accepted == 0) /* receives of this kind there are none */
		q->rx = before;
	if (res.err)
		request_fail_with(r, -res.err, post_reply(&res), "%s: %s: %s", shared ? "ibv_post_srq_recv" : "ibv_post_recv",
				  o->name, strerror(res.err));
	else
		request_reply(r, post_reply(&res));
}
