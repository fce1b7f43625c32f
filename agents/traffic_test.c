/* SPDX-License-Identifier: MIT */
#include "traffic.h"

#include <CUnit/Basic.h>

#include "../harness/pattern.h"
#include "agent_rig.h"
#include "fake_verbs.h"
#include "object.h"
#include "../harness/test.h"

#define SIZE 128
#define TAG 5
#define PEER_TAG 6
#define SEED 9

static void set_up(void)
{
	static const char *const moves[] = { "INIT", "RTR", "RTS" };

	fake.post_room = FAKE_MAX;
	rig_start();
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:i}", "op", "seed", "seed", SEED), 0);
	rig_objects();
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i}", "op", "mr_create", "name", "rx", "pd", "pd", "bytes", 4096), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i}", "op", "mr_create", "name", "trf", "pd", "pd", "bytes", 16384), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s, s:s, s:{s:i}}", "op", "qp_create", "name", "q", "pd", "pd", "send_cq", "cq",
			       "recv_cq", "cq", "cap", "max_recv_wr", 64),
			0);
	for (size_t i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "qp_modify", "name", "q", "to", moves[i]), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i, s:s, s:i, s:i}", "op", "post_recv", "qp", "q", "count", 2, "mr", "rx", "size", 256,
			       "stride", 256),
			0);
}

static void tear_down(void)
{
	json_t *reply = rig_ask("{s:s}", "op", "release");

	CU_ASSERT_EQUAL(json_array_size(json_object_get(reply, "left")), 0);
	CU_ASSERT_EQUAL(fake.live, 0);
	rig_stop();
}

static void prepare(void)
{
	json_t *reply = rig_ask("{s:s, s:s, s:s, s:i, s:i, s:s}", "op", "traffic_prepare", "as", "t", "qp", "q", "size", SIZE,
				"tag", TAG, "mr", "trf");

	CU_ASSERT_EQUAL(json_int(reply, "rc", -1), 0);
	CU_ASSERT_EQUAL(json_int(reply, "posted", -1), 14); /* rx has 16 slots, two of them had a receive */
	CU_ASSERT_EQUAL(json_int(reply, "receives", -1), 16);
}

static int start(int messages, const char *role, int expect)
{
	return rig_send("{s:s, s:s, s:s, s:[s,s,s], s:i, s:i, s:i, s:i, s:s, s:i, s:i}", "op", "traffic", "as", "t", "qp", "q",
			"ops", "SEND", "WRITE", "READ", "messages", messages, "depth", 4, "tag", TAG, "peer_tag", PEER_TAG, "role",
			role, "expect_messages", expect, "raddr", 0x10000);
}

/* Lets the agent see what there is. */
static void settle(void)
{
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(rig_rc("{s:s}", "op", "clock"), 0);
}

static char *memory(const char *mr)
{
	return ((struct mr *)object_find(rig.agent, OBJECT_MR, mr))->addr;
}

static void peer_sends(unsigned slot, uint32_t tag, uint64_t index)
{
	pattern_fill((struct pattern){ .seed = SEED, .tag = tag, .index = index }, memory("rx") + slot * 256, SIZE);
	fake_complete(fake.cq, (struct ibv_wc){ .wr_id = fake.qp->received[slot],
						.opcode = IBV_WC_RECV,
						.byte_len = SIZE,
						.qp_num = fake.qp->qp.qp_num });
}

/* The n-th send of the agent, a READ, brings what the peer would have. */
static void read_lands(unsigned n, uint32_t tag, uint32_t size)
{
	uint64_t slot = (fake.qp->sent[n].wr.rdma.remote_addr - 0x10000 - 4096) / size;

	pattern_fill((struct pattern){ .seed = SEED, .tag = tag, .index = TRAFFIC_READABLE + slot },
		     memory("trf") + (fake.qp->first_sge[n].addr - (uintptr_t)memory("trf")), size);
}

/* It is done; a READ has brought something. */
static void send_done(unsigned n, enum ibv_wc_status status, bool good)
{
	const struct ibv_send_wr *wr = &fake.qp->sent[n];
	enum ibv_wc_opcode opcode = wr->opcode == IBV_WR_SEND        ? IBV_WC_SEND
				    : wr->opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ
								     : IBV_WC_RDMA_WRITE;

	if (wr->opcode == IBV_WR_RDMA_READ)
		read_lands(n, good ? PEER_TAG : TAG, SIZE);
	fake_complete(fake.cq,
		      (struct ibv_wc){ .wr_id = wr->wr_id, .status = status, .opcode = opcode, .qp_num = fake.qp->qp.qp_num });
}

static void test_to_the_end(void)
{
	json_t *stats, *wc, *post;
	int id;

	set_up();
	prepare();
	/* The peer was told first: its first SEND is here before this end knows the start. */
	peer_sends(0, PEER_TAG, 0);
	settle();
	id = start(6, "both", 2);
	settle();
	CU_ASSERT_EQUAL(fake.qp->n_sent, 4);
	CU_ASSERT_EQUAL(fake.qp->n_received, 17);
	for (unsigned i = 0; i < 6; i++) {
		send_done(i, IBV_WC_SUCCESS, true);
		settle();
	}
	CU_ASSERT_PTR_NULL(rig_reply(id));
	peer_sends(1, PEER_TAG, 3); /* its second SEND is its message 3 */
	stats = rig_wait(id);
	CU_ASSERT_EQUAL(json_int(stats, "rc", -1), 0);
	CU_ASSERT_EQUAL(json_int(stats, "done", -1), 6);
	CU_ASSERT_EQUAL(json_int(stats, "received", -1), 2);
	CU_ASSERT_EQUAL(json_int(stats, "bad_payload", -1), 0);
	CU_ASSERT_PTR_NULL(json_object_get(stats, "first_error"));
	post = rig_record("post", "q.send", 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(post);
	CU_ASSERT_EQUAL(json_int(post, "accepted", 0), 6);
	wc = rig_record("wc", "q.send", 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(wc);
	CU_ASSERT_EQUAL(json_int(wc, "count", 0), 6);
	CU_ASSERT_STRING_EQUAL(json_str(wc, "traffic"), "t");
	CU_ASSERT_EQUAL(json_int(rig_record("traffic", "q", 0), "done", 0), 6);
	tear_down();
}

static json_t *phase(const char *what, const char *name)
{
	return rig_ask("{s:s, s:s, s:s, s:s, s:s}", "op", "traffic_phase", "as", "t", "qp", "q", "phase", name, "what", what);
}

/* A part of a traffic's time has statistics of its own, beside those of the whole; a wait that is not over yet counts. */
static void test_phases(void)
{
	json_t *stats;

	set_up();
	CU_ASSERT_EQUAL(json_int(phase("look", "before"), "rc", 0), -ENOENT);
	prepare();
	CU_ASSERT_EQUAL(json_int(phase("begin", "during"), "rc", 0), -ENOENT); /* it does not run yet */
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:[s], s:i, s:i, s:i, s:s, s:b}", "op", "traffic", "as", "t", "qp", "q", "ops",
			       "WRITE", "depth", 4, "tag", TAG, "peer_tag", PEER_TAG, "role", "tx", "background", 1),
			0);
	send_done(0, IBV_WC_SUCCESS, true);
	settle();
	CU_ASSERT_EQUAL(json_int(phase("look", "before:f"), "done", -1), 1);
	CU_ASSERT_EQUAL(json_int(phase("begin", "during:f"), "rc", -1), 0);
	send_done(1, IBV_WC_SUCCESS, true);
	send_done(2, IBV_WC_SUCCESS, true);
	settle();
	stats = phase("look", "during:f");
	CU_ASSERT_EQUAL(json_int(stats, "done", -1), 2);
	CU_ASSERT_EQUAL(json_int(stats, "errors", -1), 0);
	CU_ASSERT(json_int(stats, "gap_max_ns", 0) > 0);
	CU_ASSERT(json_int(stats, "p50_ns", 0) > 0);
	CU_ASSERT_EQUAL(json_int(phase("settled", "during:f"), "rc", -1), 0);
	stats = phase("end", "during:f");
	CU_ASSERT_PTR_NULL(json_object_get(stats, "p50_ns"));
	CU_ASSERT_EQUAL(json_int(stats, "done", -1), 2);
	CU_ASSERT_STRING_EQUAL(json_str(rig_record("traffic", "q", 2), "phase"), "during:f");
	CU_ASSERT_EQUAL(json_int(phase("look", "now"), "done", -1), 3);
	tear_down();
}

/* One end waits only: a gap ends with an intact message, and a long one is a record of its own. */
static void test_gaps(void)
{
	const json_t *gap, *stop;

	set_up();
	prepare();
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:[s], s:i, s:i, s:i, s:s, s:b, s:i}", "op", "traffic", "as", "t", "qp", "q", "ops",
			       "SEND", "messages", 0, "tag", TAG, "peer_tag", PEER_TAG, "role", "rx", "background", 1, "gap_ns", 1),
			0);
	peer_sends(0, PEER_TAG, 0);
	settle();
	gap = rig_record("traffic", "q", 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(gap);
	CU_ASSERT_STRING_EQUAL(json_str(gap, "phase"), "gap");
	CU_ASSERT(json_int(gap, "gap_ns", 0) > 0);
	peer_sends(1, TAG, 1);
	settle();
	CU_ASSERT_PTR_NULL(rig_record("traffic", "q", 1)); /* what arrived damaged ends no gap */
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s}", "op", "traffic_stop", "as", "t"), 0);
	CU_ASSERT_STRING_EQUAL(json_str(rig_record("traffic", "q", 1), "phase"),
			       "gap"); /* what did not come any more was waited for */
	stop = rig_record("traffic", "q", 2);
	CU_ASSERT_PTR_NOT_NULL_FATAL(stop);
	CU_ASSERT_EQUAL(json_int(stop, "received", -1), 1);
	CU_ASSERT_EQUAL(json_int(stop, "bad_payload", -1), 1);
	CU_ASSERT(json_int(stop, "gap_max_ns", 0) >= json_int(gap, "gap_ns", 0) && json_int(stop, "gap_t_ns", 0) > 0);
	tear_down();
}

static void test_pause(void)
{
	int id;

	set_up();
	prepare();
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:[s], s:i, s:i, s:i, s:s, s:b}", "op", "traffic", "as", "t", "qp", "q", "ops",
			       "SEND", "messages", 0, "depth", 2, "tag", TAG, "role", "tx", "background", 1),
			0);
	settle();
	CU_ASSERT_EQUAL(fake.qp->n_sent, 2);
	id = rig_send("{s:s, s:s, s:s}", "op", "traffic_pause", "as", "t", "qp", "q");
	settle();
	CU_ASSERT_PTR_NULL(rig_reply(id));
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "traffic_pause", "as", "t", "qp", "q"), -EALREADY);
	send_done(0, IBV_WC_SUCCESS, true);
	send_done(1, IBV_WC_SUCCESS, true);
	CU_ASSERT_EQUAL(json_int(rig_wait(id), "done", -1), 2);
	settle();
	CU_ASSERT_EQUAL(fake.qp->n_sent, 2);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:b}", "op", "traffic_pause", "as", "t", "qp", "q", "on", 0), 0);
	CU_ASSERT_EQUAL(fake.qp->n_sent, 4);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "traffic_pause", "as", "other", "qp", "q"), -ENOENT);
	id = rig_send("{s:s, s:s, s:s}", "op", "traffic_pause", "as", "t", "qp", "q");
	send_done(2, IBV_WC_RETRY_EXC_ERR, true);
	/* Its end answers as well. */
	CU_ASSERT_PTR_NOT_NULL(rig_wait(id));
	tear_down();
}

static void test_bad_payload(void)
{
	json_t *stats;
	int id;

	set_up();
	prepare();
	id = start(3, "both", 2);
	settle();
	peer_sends(0, PEER_TAG - 1, 0); /* from an earlier traffic */
	peer_sends(1, PEER_TAG, 0);     /* its first message once more: not the next one */
	for (unsigned i = 0; i < 3; i++)
		send_done(i, IBV_WC_SUCCESS, false);
	stats = rig_wait(id);
	CU_ASSERT_EQUAL(json_int(stats, "bad_payload", -1), 3);
	CU_ASSERT_EQUAL(json_int(stats, "received", -1), 0);
	CU_ASSERT_STRING_EQUAL(json_str(stats, "first_error"), "RECV 0: payload is not the peer's");
	tear_down();
}

static void test_error_ends_it(void)
{
	json_t *stats, *wc;
	int id;

	set_up();
	prepare();
	id = start(100, "both", 10);
	settle();
	send_done(0, IBV_WC_SUCCESS, true);
	send_done(1, IBV_WC_RETRY_EXC_ERR, true);
	send_done(2, IBV_WC_WR_FLUSH_ERR, true);
	stats = rig_wait(id);
	CU_ASSERT_EQUAL(json_int(stats, "rc", 0), -EIO);
	CU_ASSERT_EQUAL(json_int(stats, "done", -1), 1);
	CU_ASSERT_EQUAL(json_int(stats, "errors", -1), 1);
	CU_ASSERT_STRING_EQUAL(json_str(stats, "first_error"), "WRITE 1: RETRY_EXC_ERR");
	CU_ASSERT_PTR_NOT_NULL(strstr(json_str(stats, "error"), "WRITE 1: RETRY_EXC_ERR"));
	settle();
	wc = rig_record("wc", "q.send", 2);
	CU_ASSERT_PTR_NOT_NULL_FATAL(wc);
	CU_ASSERT_STRING_EQUAL(json_str(wc, "status"), "WR_FLUSH_ERR");
	CU_ASSERT_STRING_EQUAL(json_str(wc, "traffic"), "t");
	tear_down();
}

/* No more than half the receives ahead of the peer; a peer that sends nothing is no reason to wait. */
static void test_window(void)
{
	int id;

	set_up();
	prepare();
	id = rig_send("{s:s, s:s, s:s, s:[s], s:i, s:i, s:i, s:i, s:i}", "op", "traffic", "as", "t", "qp", "q", "ops", "SEND",
		      "messages", 100, "depth", 60, "tag", TAG, "peer_tag", PEER_TAG, "expect_messages", 100);
	settle();
	CU_ASSERT_EQUAL(fake.qp->n_sent, 8);
	peer_sends(0, PEER_TAG, 0);
	settle();
	CU_ASSERT_EQUAL(fake.qp->n_sent, 9);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i}", "op", "traffic_stop", "as", "t", "deadline_ns", 1000000), -ETIMEDOUT);
	CU_ASSERT_EQUAL(json_int(rig_wait(id), "rc", 0), -ECANCELED);
	tear_down();
	/* The queue that may run dry is the peer's. */
	set_up();
	prepare();
	id = rig_send("{s:s, s:s, s:s, s:[s], s:i, s:i, s:i, s:i, s:i}", "op", "traffic", "as", "t", "qp", "q", "ops", "SEND",
		      "messages", 100, "depth", 60, "tag", TAG, "peer_tag", PEER_TAG, "peer_receives", 4);
	settle();
	CU_ASSERT_EQUAL(fake.qp->n_sent, 2);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i}", "op", "traffic_stop", "as", "t", "deadline_ns", 1000000), -ETIMEDOUT);
	CU_ASSERT_EQUAL(json_int(rig_wait(id), "rc", 0), -ECANCELED);
	tear_down();
	set_up();
	prepare();
	id = rig_send("{s:s, s:s, s:s, s:[s], s:i, s:i, s:i, s:s}", "op", "traffic", "as", "t", "qp", "q", "ops", "SEND",
		      "messages", 20, "depth", 32, "tag", TAG, "role", "tx");
	settle();
	CU_ASSERT_EQUAL(fake.qp->n_sent, 20);
	(void)id;
	tear_down();
}

static void test_deadline_and_gone(void)
{
	json_t *stats;
	int id;

	set_up();
	prepare();
	stats = rig_ask("{s:s, s:s, s:s, s:[s], s:i, s:i, s:i}", "op", "traffic", "as", "t", "qp", "q", "ops", "WRITE", "messages",
			2, "tag", TAG, "deadline_ns", 1000000);
	CU_ASSERT_EQUAL(json_int(stats, "rc", 0), -ETIMEDOUT);
	CU_ASSERT_EQUAL(json_int(stats, "sent", 0), 2);
	CU_ASSERT_STRING_EQUAL(json_str(stats, "first_error"), "its deadline passed");
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:[s]}", "op", "traffic", "as", "t", "qp", "q", "ops", "WRITE"), -EINVAL);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i, s:i, s:s}", "op", "traffic_prepare", "as", "t", "qp", "q", "size", SIZE, "tag",
			       TAG, "mr", "trf"),
			0);
	id = start(6, "both", 2);
	settle();
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i, s:i, s:s}", "op", "traffic_prepare", "as", "u", "qp", "q", "size", SIZE, "tag",
			       9, "mr", "trf"),
			-EBUSY);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "destroy", "type", "qp", "name", "q"), 0);
	CU_ASSERT_EQUAL(json_int(rig_wait(id), "rc", 0), -ECANCELED);
	tear_down();
}

static int prepare_size(int size)
{
	return rig_rc("{s:s, s:s, s:s, s:i, s:i, s:s}", "op", "traffic_prepare", "as", "t", "qp", "q", "size", size, "tag", TAG,
		      "mr", "trf");
}

static int start_op(const char *op)
{
	return rig_rc("{s:s, s:s, s:s, s:[s], s:i}", "op", "traffic", "as", "t", "qp", "q", "ops", op, "messages", 1);
}

static void test_refused(void)
{
	set_up();
	CU_ASSERT_EQUAL(prepare_size(8192), -ERANGE);
	CU_ASSERT_EQUAL(start_op("WRITE"), -EINVAL); /* prepared in vain */
	CU_ASSERT_EQUAL(prepare_size(0), -EINVAL);
	CU_ASSERT_EQUAL(prepare_size(512), 0);
	CU_ASSERT_EQUAL(start_op("SEND"), -EINVAL); /* receives of 256 hold no SENDs of 512 */
	CU_ASSERT_EQUAL(prepare_size(512), 0);
	CU_ASSERT_EQUAL(start_op("FETCH_AND_ADD"), -EINVAL);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s}", "op", "traffic_stop", "as", "nobody"), -ENOENT);
	/* A receive in three parts is one receive, not a habit. */
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i, s:i}", "op", "post_recv", "qp", "q", "count", 1, "sge", 3), 0);
	CU_ASSERT_EQUAL(fake.qp->recv_sge, 3);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i}", "op", "post_recv", "qp", "q", "count", 1), 0);
	CU_ASSERT_EQUAL(fake.qp->recv_sge, 1);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i, s:i}", "op", "post_recv", "qp", "q", "count", 1, "sge", 65), -EINVAL);
	/* One that was refused leaves no trace: the next is as long as those before. */
	fake.qp->cap.max_recv_wr = fake.qp->n_received;
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i, s:i}", "op", "post_recv", "qp", "q", "count", 1, "size", 16), -ENOMEM);
	fake.qp->cap.max_recv_wr = 64;
	CU_ASSERT_EQUAL(prepare_size(256), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:[s], s:i, s:i, s:i, s:b}", "op", "traffic", "as", "t", "qp", "q", "ops", "SEND",
			       "messages", 1, "tag", TAG, "peer_tag", PEER_TAG, "background", 1),
			0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i}", "op", "traffic_stop", "as", "t", "deadline_ns", 1000000), -ETIMEDOUT);
	/* Its memory goes away between the two, and comes back smaller. */
	CU_ASSERT_EQUAL(prepare_size(512), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "destroy", "type", "mr", "name", "trf"), 0);
	CU_ASSERT_EQUAL(start_op("WRITE"), -ENOENT);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "destroy", "type", "mr", "name", "rx"), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i}", "op", "mr_create", "name", "rx", "pd", "pd", "bytes", 512), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i}", "op", "post_recv", "qp", "q", "count", 1), -EINVAL);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i, s:i}", "op", "post_recv", "qp", "q", "count", 1, "slots", 2), 0);
	tear_down();
}

/* With three operations in turn and eight slots, the last WRITE into each slot is what must lie there. */
static void test_verify(void)
{
	uint64_t last[32] = { 0 };
	bool written[32] = { false };
	json_t *v;
	char *base;
	int id;

	set_up();
	prepare();
	id = start(1, "both", 1);
	settle();
	send_done(0, IBV_WC_SUCCESS, true);
	peer_sends(0, PEER_TAG, 0);
	CU_ASSERT_EQUAL(json_int(rig_wait(id), "rc", -1), 0);
	base = memory("trf") + 2 * 4096;
	for (uint64_t i = 0; i < 100; i++) {
		if (i % 3 != 1)
			continue;
		last[i % 32] = i;
		written[i % 32] = true;
	}
	for (unsigned slot = 0; slot < 32; slot++) {
		if (written[slot])
			pattern_fill((struct pattern){ .seed = SEED, .tag = PEER_TAG, .index = last[slot] }, base + slot * SIZE,
				     SIZE);
	}
	v = rig_ask("{s:s, s:s, s:i}", "op", "traffic_verify", "as", "t", "messages", 100);
	CU_ASSERT_EQUAL(json_int(v, "total", 0), 32);
	CU_ASSERT_EQUAL(json_int(v, "intact", 0), 32);
	base[5 * SIZE + 64] ^= 1;
	v = rig_ask("{s:s, s:s, s:i}", "op", "traffic_verify", "as", "t", "messages", 100);
	CU_ASSERT_EQUAL(json_int(v, "intact", 0), 31);
	CU_ASSERT_EQUAL(json_int(v, "partial", 0), 1);
	v = rig_ask("{s:s, s:s, s:i}", "op", "traffic_verify", "as", "t", "messages", 1);
	CU_ASSERT_EQUAL(json_int(v, "total", -1), 0);
	tear_down();
}

/* A deep queue is filled to its depth, and again when half of it is done. */
static void test_deep_queue_by_halves(void)
{
	int id;

	set_up();
	prepare();
	id = rig_send("{s:s, s:s, s:s, s:[s], s:i, s:i, s:i, s:i, s:s, s:i}", "op", "traffic", "as", "t", "qp", "q", "ops", "WRITE",
		      "messages", 30, "depth", 16, "tag", TAG, "peer_tag", PEER_TAG, "role", "tx", "raddr", 0x10000);
	settle();
	CU_ASSERT_EQUAL(fake.qp->n_sent, 16);
	for (unsigned i = 0; i < 7; i++)
		send_done(i, IBV_WC_SUCCESS, true);
	settle();
	CU_ASSERT_EQUAL(fake.qp->n_sent, 16);
	send_done(7, IBV_WC_SUCCESS, true);
	settle();
	CU_ASSERT_EQUAL(fake.qp->n_sent, 24);
	for (unsigned i = 8; i < 30; i++) {
		send_done(i, IBV_WC_SUCCESS, true);
		settle();
	}
	CU_ASSERT_EQUAL(fake.qp->n_sent, 30);
	CU_ASSERT_EQUAL(json_int(rig_wait(id), "done", -1), 30);
	tear_down();
}

/* One of long messages with each completion. */
static void test_long_messages_one_by_one(void)
{
	int id;

	set_up();
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i}", "op", "mr_create", "name", "big", "pd", "pd", "bytes", 4 * 16 * 4096), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i, s:i, s:s, s:i}", "op", "traffic_prepare", "as", "t", "qp", "q", "size", 4096,
			       "tag", TAG, "mr", "big", "receives", 0),
			0);
	id = rig_send("{s:s, s:s, s:s, s:[s], s:i, s:i, s:i, s:i, s:s, s:i, s:s}", "op", "traffic", "as", "t", "qp", "q", "ops",
		      "WRITE", "messages", 20, "depth", 16, "tag", TAG, "peer_tag", PEER_TAG, "role", "tx", "raddr", 0x10000, "mr",
		      "big");
	settle();
	CU_ASSERT_EQUAL(fake.qp->n_sent, 16);
	for (unsigned i = 0; i < 20; i++) {
		send_done(i, IBV_WC_SUCCESS, true);
		settle();
		CU_ASSERT_EQUAL(fake.qp->n_sent, i < 4 ? 17 + i : 20);
	}
	CU_ASSERT_EQUAL(json_int(rig_wait(id), "done", -1), 20);
	tear_down();
}

/* The other half of a ping-pong sends only what it was sent first. */
static void test_answers(void)
{
	int id;

	set_up();
	prepare();
	id = rig_send("{s:s, s:s, s:s, s:[s], s:i, s:i, s:i, s:i, s:i, s:b}", "op", "traffic", "as", "t", "qp", "q", "ops", "SEND",
		      "messages", 2, "expect_messages", 2, "depth", 4, "tag", TAG, "peer_tag", PEER_TAG, "answers", 1);
	settle();
	for (unsigned i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(fake.qp->n_sent, i);
		peer_sends(i, PEER_TAG, i);
		settle();
		CU_ASSERT_EQUAL(fake.qp->n_sent, i + 1);
		send_done(i, IBV_WC_SUCCESS, true);
	}
	CU_ASSERT_EQUAL(json_int(rig_wait(id), "received", -1), 2);
	tear_down();
}

/* A READ that says SUCCESS and brings nothing finds what the one before it into the same slot has left: that is not what it was to
 * bring, however many slots there are. */
static void test_reads_that_bring_nothing(void)
{
	static const struct {
		uint32_t size;
		unsigned rounds, slots;
	} rows[] = { { 128, 3, 32 }, { 2048, 20, 2 }, { 4096, 20, 1 } };

	for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
		unsigned all = rows[row].rounds * rows[row].slots, lost = rows[row].slots + 1;
		json_t *stats;
		int id;

		set_up();
		CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i, s:i, s:s, s:i}", "op", "traffic_prepare", "as", "t", "qp", "q", "size",
				       rows[row].size, "tag", TAG, "mr", "trf", "receives", 0),
				0);
		id = rig_send("{s:s, s:s, s:s, s:[s], s:i, s:i, s:i, s:i, s:s, s:i}", "op", "traffic", "as", "t", "qp", "q", "ops",
			      "READ", "messages", all, "depth", 4, "tag", TAG, "peer_tag", PEER_TAG, "role", "tx", "raddr",
			      0x10000);
		settle();
		for (unsigned i = 0; i < all; i++) {
			const struct ibv_send_wr *wr = &fake.qp->sent[i];

			CU_ASSERT_FATAL(i < fake.qp->n_sent);
			if (i != lost)
				read_lands(i, PEER_TAG, rows[row].size);
			fake_complete(fake.cq, (struct ibv_wc){ .wr_id = wr->wr_id,
								.status = IBV_WC_SUCCESS,
								.opcode = IBV_WC_RDMA_READ,
								.qp_num = fake.qp->qp.qp_num });
			settle();
		}
		stats = rig_wait(id);
		CU_ASSERT_EQUAL(json_int(stats, "done", -1), all);
		CU_ASSERT_EQUAL(json_int(stats, "bad_payload", -1), 1);
		tear_down();
	}
}

static const struct test_case cases[] = {
	{ "gaps", test_gaps },
	{ "pause", test_pause },
	{ "to the end", test_to_the_end },
	{ "parts of its time", test_phases },
	{ "bad payload", test_bad_payload },
	{ "an error ends it", test_error_ends_it },
	{ "window", test_window },
	{ "deadline, destroyed QP", test_deadline_and_gone },
	{ "refused", test_refused },
	{ "verify", test_verify },
	{ "a deep queue is filled by halves", test_deep_queue_by_halves },
	{ "long messages go one by one", test_long_messages_one_by_one },
	{ "it answers", test_answers },
	{ "READs that bring nothing", test_reads_that_bring_nothing },
};

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	return test_run("traffic", cases, sizeof(cases) / sizeof(cases[0]));
}
