/* SPDX-License-Identifier: MIT */
#include "queue.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/many.h"
#include "../harness/names.h"
#include "agent.h"
#include "columns.h"
#include "traffic.h"

#define RING_MIN 64u
#define ROWS_MAX 64u
#define RUN_MAX (1u << 20) /* even a long run is reported now and then */

struct queue *queue_new(struct agent *a, const char *name, struct qp *qp, bool send)
{
	struct queue *q = calloc(1, sizeof(*q));
	struct queue **grown;

	if (!q)
		abort();
	*q = (struct queue){ .number = a->n_queues ? a->n_queues : 1, .qp = qp, .send = send };
	q->name = strdup(name);
	q->cap = RING_MIN;
	q->ring = calloc(q->cap, sizeof(*q->ring));
	grown = realloc(a->queues, (q->number + 1) * sizeof(struct queue *));
	if (!q->name || !q->ring || !grown)
		abort();
	grown[0] = NULL;
	grown[q->number] = q;
	a->queues = grown;
	a->n_queues = q->number + 1;
	return q;
}

void queue_free(struct queue *q)
{
	if (!q)
		return;
	free(q->ring);
	free(q->name);
	free(q);
}

struct queue *queue_find(struct agent *a, unsigned number)
{
	return number < a->n_queues ? a->queues[number] : NULL;
}

void queue_begin(struct queue *q, unsigned life)
{
	q->life = life;
	q->next = q->oldest = 0;
	q->in_flight = 0;
	memset(q->ring, 0, q->cap * sizeof(*q->ring));
}

uint64_t queue_wr_id(const struct queue *q, enum wrid_kind kind, uint32_t i)
{
	return wrid_encode((struct wrid){ .life = q->life, .queue = q->number, .kind = kind, .seq = q->next + i });
}

static void grow(struct queue *q, uint32_t need)
{
	uint32_t cap = q->cap;
	struct wr *ring;

	while (cap < need)
		cap *= 2;
	if (cap == q->cap)
		return;
	ring = calloc(cap, sizeof(*ring));
	if (!ring)
		abort();
	for (uint32_t seq = q->next - q->cap; seq != q->next; seq++) /* wraps below 0 harmlessly: those slots are empty */
		ring[seq & (cap - 1)] = q->ring[seq & (q->cap - 1)];
	free(q->ring);
	q->ring = ring;
	q->cap = cap;
}

void queue_accept(struct queue *q, uint32_t n, const struct wr *tmpl)
{
	grow(q, q->next - q->oldest + n);
	for (uint32_t i = 0; i < n; i++) {
		struct wr *wr = &q->ring[q->next++ & (q->cap - 1)];

		*wr = *tmpl;
		wr->state = WR_OUT;
	}
	q->posted += n;
	q->in_flight += n;
}

void queue_refuse(struct queue *q, uint32_t n)
{
	grow(q, q->next - q->oldest + n);
	for (uint32_t i = 0; i < n; i++)
		q->ring[q->next++ & (q->cap - 1)] = (struct wr){ .state = WR_REFUSED };
}

struct wr *queue_wr(struct queue *q, uint32_t seq)
{
	struct wr *wr = &q->ring[seq & (q->cap - 1)];

	if (seq >= q->next || q->next - seq > q->cap || wr->state == WR_NONE)
		return NULL;
	return wr;
}

static void settle(struct queue *q, struct wr *wr, enum wr_state state)
{
	wr->state = (uint8_t)state;
	q->in_flight--;
}

static void advance(struct queue *q)
{
	while (q->oldest != q->next && q->ring[q->oldest & (q->cap - 1)].state != WR_OUT)
		q->oldest++;
}

static void retire_before(struct queue *q, uint32_t seq)
{
	for (uint32_t s = q->oldest; s != seq; s++) {
		struct wr *wr = &q->ring[s & (q->cap - 1)];

		if (wr->state == WR_OUT && !wr->signaled) {
			settle(q, wr, WR_RETIRED);
			q->retired++;
		}
	}
}

enum queue_taken queue_complete(struct queue *q, struct wrid id, struct wr *ret)
{
	unsigned ago = (q->life - id.life) & 0xfff;
	struct wr *wr;

	if (ago) {
		if (ago >= q->life)
			return QUEUE_UNKNOWN;
		q->former++;
		return QUEUE_FORMER;
	}
	if (id.seq >= q->next)
		return QUEUE_UNKNOWN;
	wr = queue_wr(q, id.seq);
	if (!wr) { /* so long ago that its slot serves another: it had an end */
		q->doubled++;
		return QUEUE_DOUBLE;
	}
	if (wr->state == WR_REFUSED || wr->kind != id.kind)
		return QUEUE_UNKNOWN;
	if (wr->state == WR_DISCARDED) { /* it lay in the CQ when its QP was reset or destroyed */
		wr->state = WR_COMPLETED;
		q->discarded--;
		q->completed++;
		*ret = *wr;
		return QUEUE_TAKEN;
	}
	if (wr->state != WR_OUT) {
		q->doubled++;
		return QUEUE_DOUBLE;
	}
	*ret = *wr;
	settle(q, wr, WR_COMPLETED);
	q->completed++;
	if (q->send)
		retire_before(q, id.seq);
	advance(q);
	return QUEUE_TAKEN;
}

uint64_t queue_discard(struct queue *q)
{
	uint64_t n = 0;

	for (uint32_t s = q->oldest; s != q->next; s++) {
		struct wr *wr = &q->ring[s & (q->cap - 1)];

		if (wr->state != WR_OUT)
			continue;
		settle(q, wr, WR_DISCARDED);
		n++;
	}
	q->discarded += n;
	q->oldest = q->next;
	return n;
}

static bool continues(const struct run *run, struct wrid id, const struct ibv_wc *wc, const struct datagram_seen *datagram,
		      uint16_t traffic, enum queue_taken taken)
{
	if (run->count == 0 || run->count >= RUN_MAX || taken != QUEUE_TAKEN || run->doubled || run->former)
		return false;
	if (id.seq != run->last + 1 || id.kind != run->kind || wc->status != run->wc.status || traffic != run->traffic)
		return false;
	if (wc->vendor_err != run->wc.vendor_err || wc->qp_num != run->wc.qp_num)
		return false;
	if (wc->status != IBV_WC_SUCCESS)
		return true;
	if (traffic) /* of a traffic's messages the account is wanted, not each kind's */
		return true;
	if (wc->opcode != run->wc.opcode || wc->byte_len != run->wc.byte_len || wc->wc_flags != run->wc.wc_flags)
		return false;
	if (memcmp(datagram, &run->datagram, sizeof(*datagram)) != 0)
		return false;
	return !(wc->wc_flags & IBV_WC_WITH_IMM) || wc->imm_data == run->wc.imm_data;
}

void run_add(struct agent *a, struct queue *q, struct wrid id, const struct ibv_wc *wc, const char *cq, uint64_t t_ns,
	     uint16_t traffic, enum queue_taken taken)
{
	struct datagram_seen datagram;
	struct run *run = &q->run;

	datagram_look(a, q, id.seq, wc, &datagram);
	if (!continues(run, id, wc, &datagram, traffic, taken)) {
		run_flush(a, q);
		*run = (struct run){ .first = id.seq,
				     .life = q->life - ((q->life - id.life) & 0xfff),
				     .kind = id.kind,
				     .t_first_ns = t_ns,
				     .wc = *wc,
				     .traffic = traffic,
				     .doubled = taken == QUEUE_DOUBLE,
				     .former = taken == QUEUE_FORMER,
				     .cq = cq };
		memcpy(&run->datagram, &datagram, sizeof(datagram));
	}
	run->mixed |= wc->opcode != run->wc.opcode;
	run->last = id.seq;
	run->t_last_ns = t_ns;
	run->count++;
	if (wc->status == IBV_WC_SUCCESS)
		run->bytes += wc->byte_len;
}

static uint64_t run_id(const struct queue *q, uint32_t seq)
{
	const struct run *run = &q->run;

	return wrid_encode((struct wrid){ .life = run->life, .queue = q->number, .kind = run->kind, .seq = seq });
}

/* byte_len says something of what arrived: a receive, a READ or an atomic. */
static bool has_bytes(const struct ibv_wc *wc)
{
	return wc->opcode & IBV_WC_RECV || wc->opcode == IBV_WC_RDMA_READ || wc->opcode == IBV_WC_COMP_SWAP ||
	       wc->opcode == IBV_WC_FETCH_ADD;
}

void run_flush(struct agent *a, struct queue *q)
{
	struct run run = q->run;
	json_t *f;

	if (run.count == 0)
		return;
	q->run.count = 0;
	if (run.traffic)
		traffic_report_posts(a, q, run.traffic);
	f = json_pack("{s:s, s:o, s:o, s:I, s:s, s:i, s:I, s:I}", "cq", run.cq, "first", json_hex(run_id(q, run.first)), "last",
		      json_hex(run_id(q, run.last)), "count", (json_int_t)run.count, "status",
		      name_of(&names_status, (int)run.wc.status), "vendor_err", (int)run.wc.vendor_err, "qpn",
		      (json_int_t)run.wc.qp_num, "t_last", (json_int_t)run.t_last_ns);
	if (run.wc.status == IBV_WC_SUCCESS && !run.mixed) {
		json_object_set_new(f, "opcode", json_string(name_of(&names_wc_opcode, (int)run.wc.opcode)));
		if (has_bytes(&run.wc))
			json_object_set_new(f, "bytes", json_integer((json_int_t)run.bytes));
		if (run.wc.wc_flags & IBV_WC_WITH_IMM)
			json_object_set_new(f, "imm", json_integer((json_int_t)ntohl(run.wc.imm_data)));
		if (run.wc.wc_flags & IBV_WC_WITH_INV)
			json_object_set_new(f, "invalidated", json_integer((json_int_t)run.wc.invalidated_rkey));
		if (!run.traffic)
			datagram_tell(&run.datagram, f);
	}
	if (run.traffic)
		json_object_set_new(f, "traffic", json_string(a->traffic_names[run.traffic]));
	if (run.doubled)
		json_object_set_new(f, "double", json_true());
	agent_record(a, run.t_first_ns, "wc", q->name, run.life, f);
}

/* ---- many at once ---- */

/* The record of a run that failed says nothing else. */
struct run_row {
	const char *obj, *cq;
	uint32_t life, vendor_err, qpn;
	uint64_t t_ns, t_last_ns, count, first, last;
};

static bool is_plain(const struct run *run)
{
	return run->count && run->wc.status != IBV_WC_SUCCESS && !run->traffic && !run->doubled;
}

static bool continue_rows(const struct queue *q, const struct queue *first)
{
	return is_plain(&q->run) && q->run.wc.status == first->run.wc.status;
}

static struct run_row row_of(const struct queue *q)
{
	const struct run *run = &q->run;

	return (struct run_row){ .obj = q->name,
				 .cq = run->cq,
				 .life = run->life,
				 .vendor_err = run->wc.vendor_err,
				 .qpn = run->wc.qp_num,
				 .t_ns = run->t_first_ns,
				 .t_last_ns = run->t_last_ns,
				 .count = run->count,
				 .first = run_id(q, run->first),
				 .last = run_id(q, run->last) };
}

static void record_rows(struct agent *a, const struct run_row *row, size_t n, const char *status)
{
	static const struct column columns[] = {
		COLUMN_TEXT(struct run_row, obj, "obj"),     COLUMN_TEXT(struct run_row, cq, "cq"),
		COLUMN(struct run_row, life, "life"),        COLUMN(struct run_row, vendor_err, "vendor_err"),
		COLUMN(struct run_row, qpn, "qpn"),          COLUMN(struct run_row, t_ns, "t"),
		COLUMN(struct run_row, t_last_ns, "t_last"), COLUMN(struct run_row, count, "count"),
		COLUMN_HEX(struct run_row, first, "first"),  COLUMN_HEX(struct run_row, last, "last"),
	};
	json_t *all = json_pack("{s:s}", "status", status);
	struct each each = { .text = NULL };

	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		column_write(&columns[i], (struct rows){ row, sizeof(*row), n }, all, &each);
	agent_record_many(a, "wc", row->t_ns, n, all, &each);
}

/* Those of the list that can be one record, up to ROWS_MAX. Returns the queue after them. */
static struct queue *flush_some(struct agent *a, struct queue *first)
{
	struct run_row row[ROWS_MAX];
	struct queue *q = first;
	size_t n = 0;

	for (; q && n < ROWS_MAX && continue_rows(q, first); q = q->dirty_next)
		row[n++] = row_of(q);
	if (n < MANY_MIN) {
		run_flush(a, first);
		return first->dirty_next;
	}
	for (struct queue *done = first; done != q; done = done->dirty_next)
		done->run.count = 0;
	record_rows(a, row, n, name_of(&names_status, (int)first->run.wc.status));
	return q;
}

void runs_flush(struct agent *a, struct queue *first)
{
	agent_fold(a, true);
	while (first)
		first = flush_some(a, first);
	agent_fold(a, false);
}
