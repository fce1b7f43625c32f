/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/many.h"
#include "../harness/pattern.h"
#include "../harness/units.h"
#include "fold.h"
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

/* One request: where the receives went, and how. */
struct receives {
	struct object *o; /* whose they are */
	struct queue *q;
	const char *name; /* of the queue */
	uint32_t life, size;
	struct post_result res;
};

/* Negative, with e filled: the request asks for something that is not to be had. */
static int post_receives(struct agent *a, const json_t *body, struct object *o, struct receives *ret, struct error *e)
{
	bool shared = o->type == OBJECT_SRQ;
	struct qp *qp = shared ? NULL : (struct qp *)o;
	struct srq *srq = shared ? (struct srq *)o : NULL;
	int64_t count = json_int(body, "count", 1);
	struct post_result *res = &ret->res;
	struct queue *q = shared ? srq->rq : qp->rq;
	struct rx before;
	uint32_t lkey;

	if (!shared && xrc_is(qp->type))
		return error_set(e, -EINVAL, "post_recv: %s is of an extended reliable connection: it has no receive queue",
				 o->name);
	before = q->rx;
	if (!shared && qp->type == IBV_QPT_UD)
		q->rx.head = GRH_BYTES;
	if (count < 1 || count > POST_COUNT_MAX)
		return error_set(e, -EINVAL, "post_recv: count is %lld, must be 1 to %u", (long long)count, POST_COUNT_MAX);
	if (rx_parse(a, body, &keys, shared ? NULL : qp->rx_name, &q->rx, e) < 0 || post_lkey(body, q->rx.mr, &lkey, e) < 0)
		return error_prefix(e, -EINVAL, "post_recv: %s", o->name);
	*ret = (struct receives){
		.o = o, .q = q, .name = q->name, .life = q->life, .size = q->rx.size, .res = { .count = (unsigned)count }
	};
	if (!shared && json_object_get(body, "depth"))
		res->count += rounded_up_by(qp, json_u64(body, "depth", 0), res->count);
	recv_post_list(a, qp, srq, q, lkey, res);
	if (res->accepted == 0) /* receives of this kind there are none */
		q->rx = before;
	return 0;
}

static json_t *receives_fields(const struct receives *posted, const json_t *body)
{
	json_t *f = json_pack("{s:s, s:I, s:b}", "op", "RECV", "size", (json_int_t)posted->size, "signaled", 1);

	json_object_set(f, "as", json_object_get(body, "as"));
	json_object_set(f, "by", json_object_get(body, "by"));
	return f;
}

/* What there is to say of those that were refused, and the negative errno. */
static int receives_error(const struct receives *posted, struct error *e)
{
	return error_set(e, -posted->res.err, "%s: %s: %s", posted->o->type == OBJECT_SRQ ? "ibv_post_srq_recv" : "ibv_post_recv",
			 posted->o->name, strerror(posted->res.err));
}

void op_post_recv(struct agent *a, struct request *r)
{
	bool shared = json_str(r->body, "srq") != NULL;
	struct object *o = object_need(a, r, shared ? OBJECT_SRQ : OBJECT_QP, shared ? "srq" : "qp");
	struct receives posted;
	struct error e = { "" };
	int rc;

	if (!o)
		return;
	rc = post_receives(a, r->body, o, &posted, &e);
	if (rc < 0) {
		request_fail(r, rc, "%s", e.text);
		return;
	}
	post_record(a, posted.q, &posted.res, receives_fields(&posted, r->body));
	if (posted.res.err)
		request_fail_with(r, receives_error(&posted, &e), post_reply(&posted.res), "%s", e.text);
	else
		request_reply(r, post_reply(&posted.res));
}

/* ---- many ---- */

static bool are_alike(const struct receives *x, const struct receives *y)
{
	return x->o && y->o && !x->res.err && !y->res.err && x->size == y->size;
}

/* Of n that are alike, and all accepted. */
static void record_many(struct agent *a, const struct receives *posted, size_t n, const json_t *body)
{
	static const struct column columns[] = {
		COLUMN_TEXT(struct receives, name, "obj"),       COLUMN(struct receives, life, "life"),
		COLUMN(struct receives, res.t_first_ns, "t"),    COLUMN(struct receives, res.t_last_ns, "t_last"),
		COLUMN(struct receives, res.count, "count"),     COLUMN(struct receives, res.accepted, "accepted"),
		COLUMN_HEX(struct receives, res.first, "first"), COLUMN_HEX(struct receives, res.last, "last"),
	};
	json_t *all = receives_fields(posted, body);
	struct each each = { .text = NULL };

	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		column_write(&columns[i], (struct rows){ posted, sizeof(*posted), n }, all, &each);
	json_object_set_new(all, "errno", json_integer(0));
	agent_record_many(a, "post", posted->res.t_first_ns, n, all, &each);
}

static void record_each(struct agent *a, const struct receives *posted, size_t n, const json_t *body)
{
	agent_fold(a, true);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && are_alike(&posted[from], &posted[to]);)
			to++;
		if (to - from >= MANY_MIN) {
			record_many(a, &posted[from], to - from, body);
			continue;
		}
		for (size_t i = from; i < to; i++)
			if (posted[i].o)
				post_record(a, posted[i].q, &posted[i].res, receives_fields(&posted[i], body));
	}
	agent_fold(a, false);
}

/* What a member asks for, in one object for all of them. */
static void set_columns(json_t *body, const struct fold *f, size_t i)
{
	const char *key;
	json_t *column;

	json_object_foreach((json_t *)f->each, key, column) {
		json_t *value = json_array_get(column, i);

		if (json_is_null(value))
			value = json_object_get(f->all, key);
		if (value)
			json_object_set(body, key, value);
		else
			json_object_del(body, key);
	}
}

static void post_member(struct fold *f, const json_t *body, size_t i, struct receives *posted)
{
	struct object *o;
	struct error e = { "" };
	int rc = object_want(f->agent, OBJECT_QP, "post_recv", fold_name(f, i), &o, &e);

	if (rc == 0)
		rc = post_receives(f->agent, body, o, posted, &e);
	if (rc < 0) {
		fold_fail(f, i, reply_failed(rc, NULL, e.text));
	} else if (posted->res.err) {
		rc = receives_error(posted, &e);
		fold_fail(f, i, reply_failed(rc, post_reply(&posted->res), e.text));
	}
}

bool many_post_recv(struct agent *a, struct request *r)
{
	static const char *const known[] = { "count", "size", "stride", "sge", "slots", "depth", "by", "as", "head", "mr", NULL };
	static const struct column columns[] = { COLUMN(struct receives, res.accepted, "accepted"),
						 COLUMN(struct receives, res.err, "errno") };
	const json_t *each = json_object_get(r->body, "each");
	struct receives *posted;
	struct fold f;
	json_t *body;

	/* Those of shared queues are not a QP's, and their records differ in what has no column. */
	if (json_object_get(each, "srq") || json_object_get(each, "as") || json_object_get(each, "by") ||
	    !fold_begin(&f, a, r, "qp", known))
		return false;
	posted = calloc(f.n, sizeof(*posted));
	if (!posted)
		abort();
	line_cork(a->line);
	body = json_copy((json_t *)f.all);
	for (size_t i = 0; i < f.n; i++) {
		if (f.stops && f.failed) {
			fold_stop(&f, i);
			break;
		}
		set_columns(body, &f, i);
		post_member(&f, body, i, &posted[i]);
	}
	record_each(a, posted, f.n, f.all);
	fold_answer(&f, columns, sizeof(columns) / sizeof(*columns), (struct rows){ posted, sizeof(*posted), f.n });
	line_uncork(a->line);
	fold_release(&f);
	json_decref(body);
	free(posted);
	return true;
}
