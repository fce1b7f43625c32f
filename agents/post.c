/* SPDX-License-Identifier: MIT */
#include "post.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/names.h"
#include "../harness/pattern.h"
#include "../harness/units.h"
#include "extended.h"
#include "window.h"
#include "xrc.h"

/* One message as it is asked for: the request itself, or a member of its chain over it. */
struct message {
	const struct name *op;
	int opcode; /* IBV_WR_* */
	struct mr *mr;
	uint32_t lkey, rkey, size, imm, inv_rkey;
	uint64_t base, off, stride, slots, raddr, rstride;
	uint64_t compare_add, swap;
	unsigned sge, flags;
	bool fill, signaled;
	uint32_t tag, srqn;
	struct datagram to;
	struct bind bind;
};

void post_split(struct ibv_sge *sge, unsigned n, uint64_t addr, uint32_t size, uint32_t lkey)
{
	uint32_t chunk = n ? size / n + (size % n != 0) : 0;

	for (unsigned i = 0; i < n; i++) {
		uint32_t len = size < chunk ? size : chunk;

		sge[i] = (struct ibv_sge){ .addr = addr, .length = len, .lkey = lkey };
		addr += len;
		size -= len;
	}
}

struct mr *post_mr(struct agent *a, const char *name, struct error *e)
{
	struct object *o = name ? object_find(a, OBJECT_MR, name) : NULL;

	if (!name || !*name)
		error_set(e, -EINVAL, "no mr is named");
	else if (!o || !o->life || !((struct mr *)o)->addr)
		error_set(e, -ENOENT, "there is no mr %s", name);
	else
		return (struct mr *)o;
	return NULL;
}

int post_lkey(const json_t *body, const struct mr *mr, uint32_t *ret, struct error *e)
{
	const char *which = json_str(body, "lkey");
	bool wrong = which && strcmp(which, "wrong") == 0, old = which && strcmp(which, "old") == 0;

	if (which && !wrong && !old)
		return error_set(e, -EINVAL, "lkey is \"%s\"; allowed: wrong old", which);
	if (old && !mr->has_old)
		return error_set(e, -ENOENT, "lkey: old: %s has no former life", mr->o.name);
	/* A deregistered MR's key is the one that a program would go on using. */
	if (old || !mr->mr)
		*ret = mr->old_lkey;
	else
		*ret = wrong ? ~mr->mr->lkey : mr->mr->lkey;
	return 0;
}

int post_check_room(uint64_t bytes, uint64_t off, uint64_t stride, uint64_t slots, uint64_t size, struct error *e)
{
	if (slots == 0 || stride > bytes || off > bytes || slots - 1 > (bytes - off) / (stride ? stride : 1) ||
	    (slots - 1) * stride + size > bytes - off)
		return error_set(e, -ERANGE, "%llu slots of %llu bytes, %llu apart, from %llu on do not lie in %llu bytes",
				 (unsigned long long)slots, (unsigned long long)size, (unsigned long long)stride,
				 (unsigned long long)off, (unsigned long long)bytes);
	return 0;
}

unsigned post_bad_index(const void *bad, const void *list, size_t stride, unsigned n)
{
	uintptr_t at = (uintptr_t)bad, from = (uintptr_t)list;

	if (at < from || (at - from) % stride || (at - from) / stride >= n)
		return 0;
	return (unsigned)((at - from) / stride);
}

void post_record(struct agent *a, const struct queue *q, const struct post_result *res, json_t *f)
{
	json_object_set_new(f, "count", json_integer(res->count));
	json_object_set_new(f, "accepted", json_integer(res->accepted));
	json_object_set_new(f, "errno", json_integer(res->err));
	json_object_set_new(f, "t_last", json_integer((json_int_t)res->t_last_ns));
	if (res->bad >= 0)
		json_object_set_new(f, "bad", json_integer(res->bad));
	if (res->accepted) {
		json_object_set_new(f, "first", json_hex(res->first));
		json_object_set_new(f, "last", json_hex(res->last));
	}
	if (json_object_size(res->rkeys))
		json_object_set(f, "rkeys", res->rkeys);
	agent_record(a, res->t_first_ns, "post", q->name, q->life, f);
}

json_t *post_reply(const struct post_result *res)
{
	json_t *f = json_pack("{s:i, s:i}", "accepted", (int)res->accepted, "errno", res->err);

	if (res->bad >= 0)
		json_object_set_new(f, "bad", json_integer(res->bad));
	if (json_object_size(res->rkeys))
		json_object_set(f, "rkeys", res->rkeys);
	return f;
}

static unsigned flag(const json_t *body, const char *key, unsigned bit)
{
	return json_bool(body, key, false) ? bit : 0;
}

static int message_parse(struct agent *a, const struct qp *qp, const json_t *body, unsigned count, struct message *m,
			 struct error *e)
{
	const char *op = json_str(body, "wr");
	int rc;

	m->op = op ? name_find(&names_op, op) : NULL;
	if (!m->op) {
		error_set(e, -EINVAL, "unknown operation \"%s\"", op ? op : "");
		return -EINVAL;
	}
	m->opcode = m->op->value;
	if (m->opcode == IBV_WR_BIND_MW) {
		rc = bind_parse(a, body, &m->bind, e);
		if (rc < 0)
			return rc;
	}
	m->mr = post_mr(a, json_str(body, "mr"), e);
	if (!m->mr)
		return -ENOENT;
	m->base = (uintptr_t)m->mr->addr;
	rc = post_lkey(body, m->mr, &m->lkey, e);
	if (rc < 0)
		return rc;
	rc = datagram_parse(a, body, qp, &m->to, e);
	if (rc < 0)
		return rc;
	m->srqn = xrc_parse(qp, body);
	m->size = (uint32_t)json_int(body, "size", 64);
	m->off = json_u64(body, "off", 0);
	m->stride = json_u64(body, "stride", (m->size + 63ULL) & ~63ULL);
	m->slots = json_u64(body, "slots", count ? count : 1);
	m->raddr = json_u64(body, "raddr", 0) + json_u64(body, "roff", 0);
	m->rstride = json_u64(body, "rstride", m->stride);
	m->rkey = (uint32_t)json_int(body, "rkey", 0);
	m->imm = (uint32_t)json_int(body, "imm", 0);
	m->inv_rkey = (uint32_t)json_int(body, "inv_rkey", 0);
	m->compare_add = json_u64(body, m->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? "add" : "compare", 0);
	m->swap = json_u64(body, "swap", 0);
	m->sge = (unsigned)json_int(body, "sge", 1);
	m->tag = (uint32_t)json_int(body, "tag", 0);
	m->fill = json_bool(body, "fill", true);
	m->signaled = json_bool(body, "signaled", true);
	m->flags = (m->signaled ? IBV_SEND_SIGNALED : 0) | flag(body, "inline", IBV_SEND_INLINE) |
		   flag(body, "fence", IBV_SEND_FENCE) | flag(body, "solicited", IBV_SEND_SOLICITED);
	if (m->slots == 0) {
		error_set(e, -EINVAL, "slots is 0");
		return -EINVAL;
	}
	if (m->sge > POST_SGE_MAX) {
		error_set(e, -EINVAL, "sge is %u, at most %u", m->sge, POST_SGE_MAX);
		return -EINVAL;
	}
	return 0;
}

/* Nothing of these lies in a buffer of this end. */
static bool no_data(const struct message *m)
{
	return m->opcode == IBV_WR_LOCAL_INV || m->opcode == IBV_WR_BIND_MW;
}

static uint64_t slot_of(const struct message *m, uint64_t index)
{
	return m->slots ? index % m->slots : 0;
}

/* A message may be posted beyond its MR on purpose; only what is written here must lie inside. */
static void message_fill(struct agent *a, const struct message *m, uint64_t index)
{
	uint64_t at = m->off + slot_of(m, index) * m->stride;
	bool lands_here =
		m->opcode == IBV_WR_RDMA_READ || m->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || m->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct pattern p = { .seed = a->seed, .tag = lands_here ? 0 : m->tag, .index = index };

	if (!m->fill || no_data(m) || at >= m->mr->bytes)
		return;
	pattern_fill(p, (char *)m->mr->addr + at, m->size < m->mr->bytes - at ? m->size : m->mr->bytes - at);
}

/* Inline data is the device's own once it is posted: what comes into the buffer after that must not be sent. */
static void message_spoil(struct agent *a, const struct message *m, uint64_t index)
{
	uint64_t at = m->off + slot_of(m, index) * m->stride;

	if (m->flags & IBV_SEND_INLINE && m->fill && at < m->mr->bytes)
		pattern_fill((struct pattern){ .seed = a->seed }, (char *)m->mr->addr + at,
			     m->size < m->mr->bytes - at ? m->size : m->mr->bytes - at);
}

static void message_build(const struct qp *qp, const struct message *m, uint64_t index, uint64_t wr_id, struct ibv_send_wr *wr,
			  struct ibv_sge *sge)
{
	uint64_t slot = slot_of(m, index), raddr = m->raddr + slot * m->rstride;

	post_split(sge, m->sge, m->base + m->off + slot * m->stride, m->size, m->lkey);
	*wr = (struct ibv_send_wr){ .wr_id = wr_id,
				    .sg_list = sge,
				    .num_sge = (int)m->sge,
				    .opcode = (enum ibv_wr_opcode)m->opcode,
				    .send_flags = m->flags };
	switch (m->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr->wr.atomic.remote_addr = raddr;
		wr->wr.atomic.rkey = m->rkey;
		wr->wr.atomic.compare_add = m->compare_add;
		wr->wr.atomic.swap = m->swap;
		break;
	case IBV_WR_RDMA_READ:
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		wr->wr.rdma.remote_addr = raddr;
		wr->wr.rdma.rkey = m->rkey;
		break;
	case IBV_WR_BIND_MW:
		bind_build(&m->bind, wr);
		break;
	case IBV_WR_LOCAL_INV:
		wr->num_sge = 0;
		break;
	default:
		break;
	}
	/* Of whatever operation: a library may look for the handle before it looks at the operation. */
	datagram_put(&m->to, wr);
	xrc_put(qp, m->srqn, wr);
	if (m->opcode == IBV_WR_SEND_WITH_INV || m->opcode == IBV_WR_LOCAL_INV)
		wr->invalidate_rkey = m->inv_rkey;
	else if (m->opcode == IBV_WR_SEND_WITH_IMM || m->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		wr->imm_data = htonl(m->imm);
}

static void accept_one(struct qp *qp, const struct message *m)
{
	queue_accept(qp->sq, 1, &(struct wr){ .kind = WRID_SEND, .signaled = m->signaled || qp->signal_all });
}

static void note_accepted(struct post_result *res, const struct message *m, const struct ibv_send_wr *wr)
{
	if (m->bind.mw)
		bind_accepted(&m->bind, wr, res->rkeys);
	if (res->accepted++ == 0)
		res->first = wr->wr_id;
	res->last = wr->wr_id;
}

static int send_one(struct qp *qp, const struct message *m, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;

	if (m->bind.mw && m->bind.mw->type == IBV_MW_TYPE_1)
		return bind_by_verb(&m->bind, qp->qp, wr);
	return qp_send(qp, wr, &bad);
}

static void post_each(struct agent *a, struct qp *qp, const struct message *m, uint64_t index0, struct post_result *res)
{
	struct ibv_sge sge[POST_SGE_MAX];
	struct ibv_send_wr wr;

	for (unsigned i = 0; i < res->count; i++) {
		uint64_t wr_id = queue_wr_id(qp->sq, WRID_SEND, 0);

		message_fill(a, m, index0 + i);
		message_build(qp, m, index0 + i, wr_id, &wr, sge);
		res->err = send_one(qp, m, &wr);
		res->t_last_ns = now_ns();
		if (res->err) {
			res->bad = (int)i;
			queue_refuse(qp->sq, 1);
			return;
		}
		message_spoil(a, m, index0 + i);
		accept_one(qp, m);
		note_accepted(res, m, &wr);
	}
}

/* messages: one for all (stride 0) or one each. */
static void post_chain(struct agent *a, struct qp *qp, const struct message *messages, size_t step, uint64_t index0,
		       struct post_result *res)
{
	struct ibv_send_wr *list = calloc(res->count, sizeof(*list)), *bad = NULL;
	struct ibv_sge *sges = calloc((size_t)res->count * POST_SGE_MAX, sizeof(*sges));
	unsigned accepted = res->count;

	if (!list || !sges)
		abort();
	for (unsigned i = 0; i < res->count; i++) {
		const struct message *m = messages + i * step;
		uint64_t index = index0 + i;

		message_fill(a, m, index);
		message_build(qp, m, index, queue_wr_id(qp->sq, WRID_SEND, i), &list[i], sges + (size_t)i * POST_SGE_MAX);
		if (i)
			list[i - 1].next = &list[i];
	}
	res->err = qp_send(qp, list, &bad);
	res->t_last_ns = now_ns();
	if (res->err) {
		accepted = post_bad_index(bad, list, sizeof(*list), res->count);
		res->bad = (int)accepted;
	}
	for (unsigned i = 0; i < accepted; i++) {
		message_spoil(a, messages + i * step, index0 + i);
		accept_one(qp, messages + i * step);
		note_accepted(res, messages + i * step, &list[i]);
	}
	queue_refuse(qp->sq, res->count - accepted);
	free(sges);
	free(list);
}

static int positive(int rc)
{
	return rc == -1 ? (errno ? errno : EIO) : rc < 0 ? -rc : rc;
}

static const char *op_text(const struct message *m)
{
	return m->op ? m->op->text : "?";
}

/* It gives a completion: because it asks for one, or because all do. */
static bool is_signaled(const struct qp *qp, const struct message *m)
{
	return m->signaled || qp->signal_all;
}

/* Fields that a record repeats from its request. */
static json_t *record_fields(const struct qp *qp, const json_t *body, const struct message *m)
{
	static const char *const same[] = { "as", "tag", "by", "imm", "mw", "remote_qpn", "remote_qkey", "remote_srqn" };
	json_t *f = json_pack("{s:s, s:I, s:b}", "op", op_text(m), "size", (json_int_t)m->size, "signaled", is_signaled(qp, m));

	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
		json_t *v = json_object_get(body, same[i]);

		if (v)
			json_object_set(f, same[i], v);
	}
	return f;
}

/* The members over the request: what a member does not say is as in the request. */
static int parse_members(struct agent *a, const struct qp *qp, const json_t *body, const json_t *members, struct message *m,
			 struct error *e)
{
	json_t *v;
	size_t i;

	json_array_foreach((json_t *)members, i, v) {
		json_t *both = json_copy((json_t *)body);
		int rc;

		json_object_del(both, "members");
		json_object_update(both, v);
		if (json_object_get(v, "op") && !json_object_get(v, "wr"))
			json_object_set(both, "wr", json_object_get(v, "op"));
		rc = message_parse(a, qp, both, (unsigned)json_array_size(members), &m[i], e);
		json_decref(both);
		if (rc < 0) {
			error_prefix(e, rc, "member %zu", i);
			return rc;
		}
	}
	return 0;
}

static void put_rkey(json_t *f, const struct message *m)
{
	if (m->rkey)
		json_object_set_new(f, "rkey", json_integer((json_int_t)m->rkey));
}

/* Every member may be another operation: the record names each. */
static json_t *members_json(const struct qp *qp, const struct message *m, unsigned n)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++) {
		json_t *member = json_pack("{s:s, s:I, s:b, s:I}", "op", op_text(&m[i]), "size", (json_int_t)m[i].size, "signaled",
					   is_signaled(qp, &m[i]), "tag", (json_int_t)m[i].tag);

		put_rkey(member, &m[i]);
		json_array_append_new(list, member);
	}
	return list;
}

static void do_post(struct agent *a, struct request *r, struct qp *qp, const struct message *m, bool members)
{
	struct post_result res = { .bad = -1, .t_first_ns = now_ns(), .rkeys = json_object() };
	uint64_t index0 = json_u64(r->body, "index", 0);
	json_t *f;

	res.count =
		(unsigned)(members ? json_array_size(json_object_get(r->body, "members")) : (size_t)json_int(r->body, "count", 1));
	if (members || json_bool(r->body, "chain", false))
		post_chain(a, qp, m, members ? 1 : 0, index0, &res);
	else
		post_each(a, qp, m, index0, &res);
	res.err = positive(res.err);
	f = record_fields(qp, r->body, m);
	if (members)
		json_object_set_new(f, "members", members_json(qp, m, res.count));
	else
		put_rkey(f, m);
	post_record(a, qp->sq, &res, f);
	if (res.err)
		request_fail_with(r, -res.err, post_reply(&res), "%s: %s: %s", qp->extended ? "ibv_wr_complete" : "ibv_post_send",
				  qp->o.name, strerror(res.err));
	else
		request_reply(r, post_reply(&res));
	json_decref(res.rkeys);
}

void op_post(struct agent *a, struct request *r)
{
	struct object *o = object_need(a, r, OBJECT_QP, "qp");
	const json_t *members = json_object_get(r->body, "members");
	size_t n = json_array_size(members);
	int64_t count = json_int(r->body, "count", 1);
	struct message *m;
	struct error e = { "" };
	int rc;

	if (!o)
		return;
	if (((struct qp *)o)->type == IBV_QPT_XRC_RECV) { /* a library would write into a queue that is not there */
		request_fail(r, -EINVAL, "post: %s is an XRC_RECV QP: it has no send queue", o->name);
		return;
	}
	if (count < 1 || count > POST_COUNT_MAX || n > POST_COUNT_MAX) {
		request_fail(r, -EINVAL, "post: count is %lld, must be 1 to %u", (long long)count, POST_COUNT_MAX);
		return;
	}
	m = calloc(n ? n : 1, sizeof(*m));
	if (!m)
		abort();
	if (n)
		rc = parse_members(a, (struct qp *)o, r->body, members, m, &e);
	else
		rc = message_parse(a, (struct qp *)o, r->body, (unsigned)count, m, &e);
	if (rc < 0)
		request_fail(r, rc, "post: %s: %s", o->name, e.text);
	else
		do_post(a, r, (struct qp *)o, m, n > 0);
	free(m);
}
