/* SPDX-License-Identifier: MIT */
#include "queue.h"

#include <CUnit/Basic.h>

#include "agent_rig.h"
#include "../harness/test.h"

static struct queue *send_queue, *recv_queue;

static void set_up(void)
{
	rig_start();
	send_queue = queue_new(rig.agent, "q.send", NULL, true);
	recv_queue = queue_new(rig.agent, "q.recv", NULL, false);
	queue_begin(send_queue, 1);
	queue_begin(recv_queue, 1);
}

static void post(struct queue *q, uint32_t n, bool signaled)
{
	queue_accept(q, n, &(struct wr){ .kind = q->send ? WRID_SEND : WRID_RECV, .signaled = signaled });
}

static struct wrid id_of(const struct queue *q, unsigned life, uint32_t seq)
{
	return (struct wrid){ .life = life, .queue = q->number, .kind = q->send ? WRID_SEND : WRID_RECV, .seq = seq };
}

static enum queue_taken complete(struct queue *q, uint32_t seq)
{
	struct wr wr;

	return queue_complete(q, id_of(q, q->life, seq), &wr);
}

static void check_account(const struct queue *q)
{
	CU_ASSERT_EQUAL(q->posted, q->completed + q->retired + q->discarded + q->in_flight);
}

static void test_numbers(void)
{
	set_up();
	CU_ASSERT_NOT_EQUAL(send_queue->number, 0);
	CU_ASSERT_NOT_EQUAL(send_queue->number, recv_queue->number);
	CU_ASSERT_PTR_EQUAL(queue_find(rig.agent, recv_queue->number), recv_queue);
	CU_ASSERT_PTR_NULL(queue_find(rig.agent, 0));
	CU_ASSERT_PTR_NULL(queue_find(rig.agent, 65535));
	post(send_queue, 3, true);
	CU_ASSERT_EQUAL(queue_wr_id(send_queue, WRID_SEND, 2), 1ULL << 52 | (uint64_t)send_queue->number << 36 | 1ULL << 32 | 5);
	rig_stop();
}

/* A signaled send that completes takes the quiet ones before it along; receives are never taken along. */
static void test_retire(void)
{
	set_up();
	post(send_queue, 3, false);
	post(send_queue, 1, true);
	post(send_queue, 2, false);
	CU_ASSERT_EQUAL(complete(send_queue, 3), QUEUE_TAKEN);
	CU_ASSERT_EQUAL(send_queue->retired, 3);
	CU_ASSERT_EQUAL(send_queue->in_flight, 2);
	CU_ASSERT_EQUAL(send_queue->oldest, 4);
	check_account(send_queue);
	post(recv_queue, 3, true);
	CU_ASSERT_EQUAL(complete(recv_queue, 2), QUEUE_TAKEN);
	CU_ASSERT_EQUAL(recv_queue->retired, 0);
	CU_ASSERT_EQUAL(recv_queue->in_flight, 2);
	CU_ASSERT_EQUAL(recv_queue->oldest, 0);
	CU_ASSERT_EQUAL(complete(recv_queue, 0), QUEUE_TAKEN);
	CU_ASSERT_EQUAL(complete(recv_queue, 1), QUEUE_TAKEN);
	CU_ASSERT_EQUAL(recv_queue->oldest, 3);
	check_account(recv_queue);
	rig_stop();
}

/* A signaled one that has not completed is missing, and stays so when a later one completes. */
static void test_missing(void)
{
	set_up();
	post(send_queue, 3, true);
	CU_ASSERT_EQUAL(complete(send_queue, 2), QUEUE_TAKEN);
	CU_ASSERT_EQUAL(send_queue->in_flight, 2);
	CU_ASSERT_EQUAL(send_queue->oldest, 0);
	check_account(send_queue);
	rig_stop();
}

static void test_wrong_completions(void)
{
	struct wr wr;

	set_up();
	post(send_queue, 2, true);
	CU_ASSERT_EQUAL(complete(send_queue, 0), QUEUE_TAKEN);
	CU_ASSERT_EQUAL(complete(send_queue, 0), QUEUE_DOUBLE);
	CU_ASSERT_EQUAL(complete(send_queue, 2), QUEUE_UNKNOWN);
	CU_ASSERT_EQUAL(queue_complete(send_queue,
				       (struct wrid){ .life = 1, .queue = send_queue->number, .kind = WRID_RECV, .seq = 1 }, &wr),
			QUEUE_UNKNOWN);
	CU_ASSERT_EQUAL(queue_complete(send_queue, id_of(send_queue, 2, 1), &wr), QUEUE_UNKNOWN);
	CU_ASSERT_EQUAL(queue_discard(send_queue), 1);
	queue_begin(send_queue, 2);
	CU_ASSERT_EQUAL(queue_complete(send_queue, id_of(send_queue, 1, 1), &wr), QUEUE_FORMER);
	CU_ASSERT_EQUAL(complete(send_queue, 0), QUEUE_UNKNOWN);
	CU_ASSERT_EQUAL(send_queue->doubled, 1);
	check_account(send_queue);
	rig_stop();
}

/* Destroyed, not yet made anew: what lay in the CQ still belongs to it. */
static void test_discarded_then_seen(void)
{
	set_up();
	post(send_queue, 4, true);
	CU_ASSERT_EQUAL(complete(send_queue, 0), QUEUE_TAKEN);
	CU_ASSERT_EQUAL(queue_discard(send_queue), 3);
	check_account(send_queue);
	CU_ASSERT_EQUAL(complete(send_queue, 1), QUEUE_TAKEN);
	CU_ASSERT_EQUAL(complete(send_queue, 1), QUEUE_DOUBLE);
	CU_ASSERT_EQUAL(send_queue->discarded, 2);
	CU_ASSERT_EQUAL(send_queue->completed, 2);
	check_account(send_queue);
	rig_stop();
}

static void test_life_wraps(void)
{
	struct wr wr;

	set_up();
	queue_begin(send_queue, 4097);
	post(send_queue, 1, true);
	CU_ASSERT_EQUAL(queue_complete(send_queue, id_of(send_queue, 4096, 0), &wr), QUEUE_FORMER);
	CU_ASSERT_EQUAL(queue_complete(send_queue, id_of(send_queue, 1, 0), &wr), QUEUE_TAKEN); /* 4097 modulo 4096 */
	rig_stop();
}

/* The ring grows while requests are outstanding, and shrinks nobody's memory of them. */
static void test_growth(void)
{
	set_up();
	for (uint32_t round = 0; round < 50; round++) {
		post(send_queue, 97, true);
		for (uint32_t i = 0; i < 31; i++)
			CU_ASSERT_EQUAL(complete(send_queue, round * 31 + i), QUEUE_TAKEN);
	}
	CU_ASSERT_EQUAL(send_queue->in_flight, 50 * (97 - 31));
	for (uint32_t seq = 50 * 31; seq < 50 * 97; seq++)
		CU_ASSERT_EQUAL(complete(send_queue, seq), QUEUE_TAKEN);
	CU_ASSERT_EQUAL(send_queue->in_flight, 0);
	CU_ASSERT_EQUAL(complete(send_queue, 0), QUEUE_DOUBLE);
	check_account(send_queue);
	rig_stop();
}

struct completion {
	uint32_t seq;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	uint32_t byte_len, vendor_err;
	uint16_t traffic;
	enum queue_taken taken;
};

struct expected_run {
	uint32_t first, last;
	const char *status;
	int64_t bytes; /* -1: none */
};

static unsigned run_count(void)
{
	unsigned n = 0;

	CU_ASSERT_EQUAL(rig_rc("{s:s}", "op", "clock"), 0);
	while (rig_record("wc", NULL, n))
		n++;
	return n;
}

static void test_runs(void)
{
	static const struct {
		struct completion in[6];
		unsigned n;
		struct expected_run out[6];
		unsigned n_out;
	} rows[] = {
		/* equal and consecutive */
		{ { { 0, .opcode = IBV_WC_RECV, .byte_len = 10 },
		    { 1, .opcode = IBV_WC_RECV, .byte_len = 10 },
		    { 2, .opcode = IBV_WC_RECV, .byte_len = 10 } },
		  3,
		  { { 0, 2, "SUCCESS", 30 } },
		  1 },
		/* an order break */
		{ { { 0, .opcode = IBV_WC_RECV }, { 2, .opcode = IBV_WC_RECV }, { 1, .opcode = IBV_WC_RECV } },
		  3,
		  { { 0, 0, "SUCCESS", 0 }, { 2, 2, "SUCCESS", 0 }, { 1, 1, "SUCCESS", 0 } },
		  3 },
		/* the cause, then the flushes; nothing but the status of an error is compared */
		{ { { 0, .opcode = IBV_WC_SEND },
		    { 1, IBV_WC_RNR_RETRY_EXC_ERR, .opcode = IBV_WC_RECV },
		    { 2, IBV_WC_WR_FLUSH_ERR, .byte_len = 3 },
		    { 3, IBV_WC_WR_FLUSH_ERR, .byte_len = 4, .opcode = IBV_WC_RECV },
		    { 4, IBV_WC_WR_FLUSH_ERR, .vendor_err = 7 } },
		  5,
		  { { 0, 0, "SUCCESS", -1 },
		    { 1, 1, "RNR_RETRY_EXC_ERR", -1 },
		    { 2, 3, "WR_FLUSH_ERR", -1 },
		    { 4, 4, "WR_FLUSH_ERR", -1 } },
		  4 },
		/* another length or operation is another run, but not for a traffic */
		{ { { 0, .opcode = IBV_WC_RECV, .byte_len = 10 }, { 1, .opcode = IBV_WC_RECV, .byte_len = 11 } },
		  2,
		  { { 0, 0, "SUCCESS", 10 }, { 1, 1, "SUCCESS", 11 } },
		  2 },
		{ { { 0, .opcode = IBV_WC_SEND, .traffic = 1 }, { 1, .opcode = IBV_WC_RDMA_READ, .byte_len = 11, .traffic = 1 } },
		  2,
		  { { 0, 1, "SUCCESS", -1 } },
		  1 },
		{ { { 0, .opcode = IBV_WC_SEND }, { 1, .opcode = IBV_WC_SEND, .traffic = 1 } },
		  2,
		  { { 0, 0, "SUCCESS", -1 }, { 1, 1, "SUCCESS", -1 } },
		  2 },
		/* a second completion stands alone */
		{ { { 0, .opcode = IBV_WC_SEND },
		    { 1, .opcode = IBV_WC_SEND, .taken = QUEUE_DOUBLE },
		    { 2, .opcode = IBV_WC_SEND } },
		  3,
		  { { 0, 0, "SUCCESS", -1 }, { 1, 1, "SUCCESS", -1 }, { 2, 2, "SUCCESS", -1 } },
		  3 },
	};

	for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
		static char name[] = "t";
		static char *names[] = { NULL, name };

		set_up();
		rig.agent->traffic_names = names;
		for (unsigned i = 0; i < rows[r].n; i++) {
			const struct completion *c = &rows[r].in[i];
			struct ibv_wc wc = {
				.status = c->status, .opcode = c->opcode, .byte_len = c->byte_len, .vendor_err = c->vendor_err
			};

			run_add(rig.agent, send_queue, id_of(send_queue, 1, c->seq), &wc, "cq", 1000 + i, c->traffic,
				c->taken ? c->taken : QUEUE_TAKEN);
		}
		run_flush(rig.agent, send_queue);
		run_flush(rig.agent, send_queue); /* nothing twice */
		CU_ASSERT_EQUAL(run_count(), rows[r].n_out);
		for (unsigned i = 0; i < rows[r].n_out; i++) {
			const struct expected_run *want = &rows[r].out[i];
			json_t *wc = rig_record("wc", "q.send", i);

			CU_ASSERT_PTR_NOT_NULL_FATAL(wc);
			CU_ASSERT_EQUAL((uint32_t)json_u64(wc, "first", 0), want->first);
			CU_ASSERT_EQUAL((uint32_t)json_u64(wc, "last", 0), want->last);
			CU_ASSERT_EQUAL(json_int(wc, "count", 0), (int64_t)want->last - want->first + 1);
			CU_ASSERT_STRING_EQUAL(json_str(wc, "status"), want->status);
			CU_ASSERT_EQUAL(json_int(wc, "bytes", -1), want->bytes);
			CU_ASSERT_EQUAL(json_object_get(wc, "opcode") != NULL,
					strcmp(want->status, "SUCCESS") == 0 && rows[r].in[0].traffic == 0);
		}
		rig.agent->traffic_names = NULL;
		rig_stop();
	}
}

static const struct test_case cases[] = {
	{ "numbers", test_numbers },
	{ "retire", test_retire },
	{ "missing", test_missing },
	{ "wrong completions", test_wrong_completions },
	{ "discarded, then seen", test_discarded_then_seen },
	{ "lives wrap", test_life_wraps },
	{ "growth", test_growth },
	{ "runs", test_runs },
};

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	return test_run("queue", cases, sizeof(cases) / sizeof(cases[0]));
}
