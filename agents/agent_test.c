/* SPDX-License-Identifier: MIT */
#include "agent.h"

#include <CUnit/Basic.h>

#include "agent_objects_rig.h"
#include "object.h"
#include "../harness/test.h"

static void test_protocol(void)
{
	static const struct {
		const char *line;
		int rc;
		const char *error;
	} rows[] = {
		{ "{\"id\":1,\"op\":\"nonsense\"}\n", -EINVAL, "unknown op \"nonsense\"" },
		{ "{\"id\":2}\n", -EINVAL, "a request without op" },
		{ "{\"op\":\"clock\"}\n", -EINVAL, "a request without an integer id" },
		{ "{\"id\":4,\"op\":\"qp_modify\"}\n", -EINVAL, "qp_modify: no name is named" },
		{ "{\"id\":5,\"op\":\"qp_modify\",\"name\":\"p.z\"}\n", -ENOENT, "qp_modify: there is no qp p.z" },
		{ "{\"id\":6,\"op\":\"destroy\",\"type\":\"link\",\"name\":\"x\"}\n", -EINVAL,
		  "destroy: unknown type \"link\"; allowed: cm qp cq srq xrcd mr mw ah pd dev" },
		{ "{\"id\":7,\"op\":\"batch\"}\n", -EINVAL, "batch: ops is no array" },
		{ "{\"id\":8,\"op\":\n", -EBADMSG, "no JSON object: {\"id\":8,\"op\":" },
		{ "\x1b[1mhello\n", -EBADMSG, NULL },
		{ "{\"id\":9,\"op\":\"mr_create\",\"name\":\"m\",\"pd\":\"pd\",\"bytes\":0}\n", -EINVAL, NULL },
		{ "{\"id\":10,\"op\":\"pd_create\",\"name\":\"pd\",\"dev\":\"dev.a\"}\n", -EEXIST,
		  "pd_create: pd pd lives already" },
		{ "{\"id\":11,\"op\":\"device_open\",\"name\":\"d\",\"device\":\"nope\"}\n", -ENODEV, NULL },
		{ "{\"id\":12,\"op\":\"post\",\"qp\":\"p.a\",\"wr\":\"SENT\",\"mr\":\"tx\"}\n", -EINVAL, NULL },
		{ "{\"id\":13,\"op\":\"traffic\",\"qp\":\"p.a\",\"as\":\"t\"}\n", -EINVAL, NULL },
	};

	set_up();
	rig.next_id = 100; /* the rows have ids of their own */
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t before = json_array_size(rig.replies);
		json_t *reply;

		CU_ASSERT_EQUAL(write(rig.raw_fd, rows[i].line, strlen(rows[i].line)), (ssize_t)strlen(rows[i].line));
		for (int turns = 0; turns < 1000 && json_array_size(rig.replies) == before; turns++)
			sd_event_run(rig.loop, 10000);
		reply = json_array_get(rig.replies, before);
		CU_ASSERT_PTR_NOT_NULL_FATAL(reply);
		CU_ASSERT_EQUAL(json_int(reply, "rc", 0), rows[i].rc);
		if (rows[i].error)
			CU_ASSERT_STRING_EQUAL(json_str(reply, "error"), rows[i].error);
		CU_ASSERT_PTR_NULL(strchr(json_str(reply, "error"), '\x1b'));
	}
	tear_down();
}

static void test_batch(void)
{
	json_t *reply, *replies;

	set_up();
	reply = rig_ask("{s:s, s:[{s:s}, {s:s, s:s}, {s:s}, {s:s, s:s, s:s}, {s:s, s:s, s:s}, {s:s}]}", "op", "batch", "ops", "op",
			"clock", "op", "qp_query", "name", "p.z", "op", "what", "op", "qp_modify", "name", "p.a", "to", "ERR", "op",
			"pd_create", "name", "pd2", "dev", "dev.a", "op", "batch");
	replies = json_object_get(reply, "replies");
	CU_ASSERT_EQUAL(json_int(reply, "rc", -1), 0);
	CU_ASSERT_EQUAL_FATAL(json_array_size(replies), 6);
	CU_ASSERT(json_int(json_array_get(replies, 0), "t", 0) > 0);
	CU_ASSERT_EQUAL(json_int(json_array_get(replies, 1), "rc", 0), -ENOENT);
	CU_ASSERT_EQUAL(json_int(json_array_get(replies, 2), "rc", 0), -EINVAL);
	CU_ASSERT_EQUAL(json_int(json_array_get(replies, 3), "rc", 0), -EINVAL); /* RESET -> ERR: the device refuses */
	CU_ASSERT_EQUAL(json_int(json_array_get(replies, 4), "life", 0), 1);
	CU_ASSERT_EQUAL(json_int(json_array_get(replies, 5), "rc", 0), -EINVAL);
	CU_ASSERT_PTR_NULL(json_object_get(json_array_get(replies, 0), "id"));
	/* One that stops: all is answered, and nothing is done behind what failed, whether it fails at once or in a call. */
	reply = rig_ask("{s:s, s:b, s:[{s:s, s:s, s:s}, {s:s, s:s, s:s}, {s:s, s:s, s:s}, {s:s}]}", "op", "batch", "stops", 1,
			"ops", "op", "pd_create", "name", "pd3", "dev", "dev.a", "op", "pd_create", "name", "pd4", "dev", "none",
			"op", "pd_create", "name", "pd5", "dev", "dev.a", "op", "clock");
	replies = json_object_get(reply, "replies");
	CU_ASSERT_EQUAL_FATAL(json_array_size(replies), 4);
	CU_ASSERT_EQUAL(json_int(json_array_get(replies, 0), "life", 0), 1);
	CU_ASSERT_EQUAL(json_int(json_array_get(replies, 1), "rc", 0), -ENOENT);
	CU_ASSERT_EQUAL(json_int(json_array_get(replies, 2), "rc", 0), -ECANCELED);
	CU_ASSERT_EQUAL(json_int(json_array_get(replies, 3), "rc", 0), -ECANCELED);
	CU_ASSERT_PTR_NULL(object_find(rig.agent, OBJECT_PD, "pd5"));
	fake.calls = 0;
	fake.fail_at = 1;
	reply = rig_ask("{s:s, s:b, s:[{s:s, s:s, s:s}, {s:s, s:s, s:s}]}", "op", "batch", "stops", 1, "ops", "op", "pd_create",
			"name", "pd6", "dev", "dev.a", "op", "pd_create", "name", "pd7", "dev", "dev.a");
	fake.fail_at = 0;
	replies = json_object_get(reply, "replies");
	CU_ASSERT_EQUAL_FATAL(json_array_size(replies), 2);
	CU_ASSERT_EQUAL(json_int(json_array_get(replies, 0), "rc", 0), -ENOMEM);
	CU_ASSERT_EQUAL(json_int(json_array_get(replies, 1), "rc", 0), -ECANCELED);
	tear_down();
}

/* Whatever call fails: an answer comes, and everything that was made can be released. */
static void test_every_call_fails_once(void)
{
	unsigned n = 0, failures = 0;
	int rc;

	do {
		rig_start();
		fake.calls = 0;
		fake.fail_at = ++n;
		rc = set_up_objects();
		if (rc == 0)
			rc = to_rts();
		failures += rc == -ENOMEM;
		CU_ASSERT(rc == 0 || rc == -ENOMEM);
		fake.fail_at = 0;
		tear_down();
	} while (rc && n < 100);
	CU_ASSERT_EQUAL(rc, 0);
	CU_ASSERT(failures >= 12);
}

static void test_modify(void)
{
	json_t *state, *reply;

	set_up();
	CU_ASSERT_EQUAL(to_rts(), 0);
	CU_ASSERT_EQUAL(fake.qp->attr.ah_attr.is_global, 1);
	state = rig_record("state", "p.a", 1);
	CU_ASSERT_STRING_EQUAL(json_str(state, "old"), "INIT");
	CU_ASSERT_STRING_EQUAL(json_str(state, "new"), "RTR");
	CU_ASSERT_EQUAL(json_int(json_object_get(state, "attrs"), "gid_index", -1), 3);
	CU_ASSERT(json_has(state, "mask", "AV") && json_has(state, "mask", "ACCESS_FLAGS") && !json_has(state, "mask", "SQ_PSN"));
	CU_ASSERT_EQUAL(fake.qp->attr.qp_state, IBV_QPS_RTS);
	/* What is left out is missing in the call, and the refusal is reported. */
	reply = rig_ask("{s:s, s:s, s:s, s:{s:i}, s:s}", "op", "qp_modify", "name", "p.a", "to", "RTS", "set", "timeout", 3, "by",
			"step");
	CU_ASSERT_EQUAL(json_int(reply, "rc", 0), -EINVAL);
	CU_ASSERT(fake.qp->last_mask == (IBV_QP_STATE | IBV_QP_TIMEOUT));
	state = rig_record("state", "p.a", 3);
	CU_ASSERT_EQUAL(json_int(state, "errno", 0), EINVAL);
	CU_ASSERT_STRING_EQUAL(json_str(state, "by"), "step");
	CU_ASSERT_EQUAL(json_int(state, "life", 0), 1);
	CU_ASSERT_EQUAL(move("ERR"), 0);
	reply = rig_ask("{s:s, s:s, s:s}", "op", "qp_modify", "name", "p.a", "to", "RESET");
	CU_ASSERT_EQUAL(json_int(reply, "life", 0), 2);
	reply = rig_ask("{s:s, s:s, s:s, s:[s], s:{s:i}}", "op", "qp_modify", "name", "p.a", "to", "INIT", "leave_out", "PORT",
			"set", "pkey_index", 0);
	CU_ASSERT_EQUAL(json_int(reply, "rc", 0), -EINVAL);
	CU_ASSERT(!(fake.qp->last_mask & IBV_QP_PORT) && fake.qp->last_mask & IBV_QP_PKEY_INDEX);
	reply = rig_ask("{s:s, s:s, s:s, s:{s:i}}", "op", "qp_modify", "name", "p.a", "to", "INIT", "set", "colour", 3);
	CU_ASSERT_STRING_EQUAL(json_str(reply, "error"), "qp_modify: p.a: unknown attribute \"colour\"");
	tear_down();
}

/* A list of five of which the queue takes two: two are accepted, bad is 2, and their wr_ids are named. */
static void test_bad_wr_in_the_middle(void)
{
	json_t *reply, *post, *ledger;

	set_up();
	CU_ASSERT_EQUAL(to_rts(), 0);
	fake.post_room = 2;
	reply = rig_ask("{s:s, s:s, s:s, s:s, s:i, s:i, s:b, s:i}", "op", "post", "qp", "p.a", "wr", "SEND", "mr", "tx", "count", 5,
			"size", 100, "chain", 1, "tag", 3);
	CU_ASSERT_EQUAL(json_int(reply, "rc", 0), -ENOMEM);
	CU_ASSERT_EQUAL(json_int(reply, "accepted", -1), 2);
	CU_ASSERT_EQUAL(json_int(reply, "bad", -1), 2);
	post = rig_record("post", "p.a.send", 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(post);
	CU_ASSERT_EQUAL(json_int(post, "count", 0), 5);
	CU_ASSERT_EQUAL(json_u64(post, "first", 0), fake.qp->sent[0].wr_id);
	CU_ASSERT_EQUAL(json_u64(post, "last", 0), fake.qp->sent[1].wr_id);
	/* The next post goes on after them: the number of a refused request (three of this chain) is not given again. */
	fake.post_room = 1;
	reply = rig_ask("{s:s, s:s, s:s, s:s, s:i}", "op", "post", "qp", "p.a", "wr", "SEND", "mr", "tx", "count", 3);
	CU_ASSERT_EQUAL(json_int(reply, "accepted", -1), 1);
	CU_ASSERT_EQUAL(json_int(reply, "bad", -1), 1);
	CU_ASSERT_EQUAL(fake.qp->sent[2].wr_id, fake.qp->sent[1].wr_id + 4);
	/* Nothing accepted: no wr_ids. */
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s}", "op", "post", "qp", "p.a", "wr", "SEND", "mr", "tx"), -ENOMEM);
	post = rig_record("post", "p.a.send", 2);
	CU_ASSERT_PTR_NOT_NULL_FATAL(post);
	CU_ASSERT_PTR_NULL(json_object_get(post, "first"));
	ledger = rig_ask("{s:s, s:s}", "op", "ledger", "qp", "p.a");
	CU_ASSERT_EQUAL(json_int(json_object_get(ledger, "send"), "in_flight", -1), 3);
	tear_down();
}

/* A request that asks for no completion gives one where all do, and its record says so. */
static void test_signal_all(void)
{
	set_up();
	CU_ASSERT_EQUAL_FATAL(rig_rc("{s:s, s:s, s:s}", "op", "destroy", "type", "qp", "name", "p.a"), 0);
	CU_ASSERT_EQUAL_FATAL(rig_rc("{s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "op", "qp_create", "name", "p.a", "pd", "pd", "type",
				     "RC", "send_cq", "cq", "recv_cq", "cq", "signal_all", 1),
			      0);
	CU_ASSERT_EQUAL(to_rts(), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s, s:b}", "op", "post", "qp", "p.a", "wr", "SEND", "mr", "tx", "signaled", 0), 0);
	CU_ASSERT(json_bool(rig_record("post", "p.a.send", 0), "signaled", false));
	tear_down();
}

/* Completions by event; what nobody posted has the object "?". */
static void test_completions(void)
{
	json_t *wc;

	set_up();
	CU_ASSERT_EQUAL(to_rts(), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s, s:i}", "op", "post", "qp", "p.a", "wr", "SEND", "mr", "tx", "count", 4), 0);
	for (int i = 0; i < 3; i++)
		complete(fake.qp->sent[i].wr_id, IBV_WC_SUCCESS);
	complete(fake.qp->sent[3].wr_id, IBV_WC_RETRY_EXC_ERR);
	complete(0xdeadbeef12345678, IBV_WC_SUCCESS);
	complete(fake.qp->sent[0].wr_id, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(rig_rc(REQ("clock")), 0);
	wc = rig_record("wc", "p.a.send", 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(wc);
	CU_ASSERT_EQUAL(json_int(wc, "count", 0), 3);
	CU_ASSERT_STRING_EQUAL(json_str(wc, "opcode"), "SEND");
	wc = rig_record("wc", "p.a.send", 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(wc);
	CU_ASSERT_STRING_EQUAL(json_str(wc, "status"), "RETRY_EXC_ERR");
	CU_ASSERT_PTR_NULL(json_object_get(wc, "opcode"));
	wc = rig_record("wc", "p.a.send", 2);
	CU_ASSERT_PTR_NOT_NULL_FATAL(wc);
	CU_ASSERT(json_bool(wc, "double", false));
	wc = rig_record("wc", "?", 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(wc);
	CU_ASSERT_STRING_EQUAL(json_str(wc, "first"), "0xdeadbeef12345678");
	tear_down();
}

static void test_discard_at_reset(void)
{
	json_t *ledger, *wc;
	uint64_t old;

	set_up();
	CU_ASSERT_EQUAL(to_rts(), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i, s:i, s:i}", "op", "post_recv", "qp", "p.a", "count", 5, "size", 64, "stride", 64),
			0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s, s:i}", "op", "post", "qp", "p.a", "wr", "SEND", "mr", "tx", "count", 3), 0);
	old = fake.qp->sent[2].wr_id;
	complete(fake.qp->sent[0].wr_id, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(move("ERR"), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "qp_modify", "name", "p.a", "to", "RESET"), 0);
	ledger = rig_ask("{s:s, s:s}", "op", "ledger", "qp", "p.a");
	CU_ASSERT_EQUAL(json_int(json_object_get(ledger, "send"), "completed", -1), 1);
	CU_ASSERT_EQUAL(json_int(json_object_get(ledger, "send"), "discarded", -1), 2);
	CU_ASSERT_EQUAL(json_int(json_object_get(ledger, "recv"), "discarded", -1), 5);
	CU_ASSERT_EQUAL(json_int(json_object_get(ledger, "recv"), "in_flight", -1), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s}", "op", "drain", "qp", "p.a"), 0);
	/* It lay in the CQ: its own life and queue are named. */
	complete(old, IBV_WC_WR_FLUSH_ERR);
	CU_ASSERT_EQUAL(rig_rc(REQ("clock")), 0);
	wc = rig_record("wc", "p.a.send", 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(wc);
	CU_ASSERT_EQUAL(json_int(wc, "life", 0), 1);
	tear_down();
}

/* A device makes more of a depth than was asked for: the whole queue is filled, as far as there are slots. */
static void test_whole_receive_queue(void)
{
	static const struct {
		int count, slots;
		unsigned posted;
	} rows[] = {
		{ 14, 64, 29 }, /* two of the sixteen are for somebody else to post */
		{ 16, 20, 20 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		set_up();
		fake.qp->cap.max_recv_wr = 31;
		CU_ASSERT_EQUAL(to_rts(), 0);
		CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i, s:i, s:i, s:i, s:i}", "op", "post_recv", "qp", "p.a", "count",
				       rows[i].count, "depth", 16, "size", 64, "stride", 64, "slots", rows[i].slots),
				0);
		CU_ASSERT_EQUAL((unsigned)fake.qp->n_received, rows[i].posted);
		tear_down();
	}
}

static void test_srq_modify(void)
{
	const json_t *verb;

	set_up();
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i}", "op", "srq_create", "name", "s", "pd", "pd", "depth", 16), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:{s:i}}", "op", "srq_modify", "name", "s", "set", "limit", 14), 0);
	CU_ASSERT_EQUAL(fake.srq->attr.srq_limit, 14);
	CU_ASSERT_EQUAL(fake.srq->attr.max_wr, 16);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:{s:i}}", "op", "srq_modify", "name", "s", "set", "limit", 17), -EINVAL);
	verb = rig_record("verb", "s", 2);
	CU_ASSERT_STRING_EQUAL(json_str(verb, "verb"), "ibv_modify_srq");
	CU_ASSERT_EQUAL(json_int(verb, "errno", 0), EINVAL);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:{s:i}}", "op", "srq_modify", "name", "nobody", "set", "limit", 1), -ENOENT);
	tear_down();
}

/* Sends that succeeded quietly before the error are accounted for by a marker behind them. */
static void test_drain(void)
{
	json_t *reply;
	int id;

	set_up();
	CU_ASSERT_EQUAL(to_rts(), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s, s:i, s:b}", "op", "post", "qp", "p.a", "wr", "SEND", "mr", "tx", "count", 2,
			       "signaled", 0),
			0);
	reply = rig_ask("{s:s, s:s, s:i}", "op", "drain", "qp", "p.a", "deadline_ns", 1000000);
	CU_ASSERT_EQUAL(json_int(reply, "rc", 0), -ETIMEDOUT);
	CU_ASSERT_EQUAL(json_int(reply, "in_flight", 0), 2);
	CU_ASSERT_EQUAL(move("ERR"), 0);
	id = rig_send("{s:s, s:s}", "op", "drain", "qp", "p.a");
	CU_ASSERT_EQUAL(rig_rc(REQ("clock")), 0);
	CU_ASSERT_EQUAL_FATAL(fake.qp->n_sent, 3);
	complete(fake.qp->sent[2].wr_id, IBV_WC_WR_FLUSH_ERR);
	CU_ASSERT_EQUAL(json_int(rig_wait(id), "in_flight", -1), 0);
	reply = rig_ask("{s:s, s:s}", "op", "ledger", "qp", "p.a");
	CU_ASSERT_EQUAL(json_int(json_object_get(reply, "send"), "retired", -1), 2);
	tear_down();
}

static void test_blocked(void)
{
	json_t *reply, *late;

	set_up();
	CU_ASSERT_EQUAL(to_rts(), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s}", "op", "cq_hold", "cq", "cq"), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s}", "op", "post", "qp", "p.a", "wr", "SEND", "mr", "tx"), 0);
	complete(fake.qp->sent[0].wr_id, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(rig_rc(REQ("clock")), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "destroy", "type", "qp", "name", "p.a"), 0);
	reply = rig_ask("{s:s, s:s, s:s, s:i}", "op", "destroy", "type", "cq", "name", "cq", "deadline_ns", 20000000);
	CU_ASSERT_EQUAL(json_int(reply, "rc", 0), -ETIMEDOUT);
	CU_ASSERT(json_bool(reply, "blocked", false));
	CU_ASSERT_STRING_EQUAL(json_str(rig_record("blocked", "cq", 0), "verb"), "ibv_destroy_cq");
	CU_ASSERT(json_int(rig_record("blocked", "cq", 0), "waited_ns", 0) >= 20000000);
	/* Others wait behind it and are told so; the call is not made later. */
	reply = rig_ask("{s:s, s:s, s:s, s:i}", "op", "pd_create", "name", "pd2", "dev", "dev.a", "deadline_ns", 1000000);
	CU_ASSERT_EQUAL(json_int(reply, "rc", 0), -ETIMEDOUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(json_str(reply, "error"), "ibv_destroy_cq of cq has not returned"));
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "destroy", "type", "cq", "name", "cq"), -EBUSY);
	reply = rig_ask("{s:s, s:s}", "op", "cq_ack", "cq", "cq");
	CU_ASSERT_EQUAL(json_int(reply, "acked", 0), 1);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i}", "op", "cq_create", "name", "cq2", "dev", "dev.a", "depth", 4), 0);
	late = rig_record("verb", "cq", 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(late);
	CU_ASSERT(json_bool(late, "late", false));
	CU_ASSERT_EQUAL(json_int(late, "errno", -1), 0);
	CU_ASSERT_PTR_NULL(rig_record("verb", "pd2", 0));
	tear_down();
}

static void test_release_acknowledges(void)
{
	set_up();
	CU_ASSERT_EQUAL(to_rts(), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s}", "op", "cq_hold", "cq", "cq"), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s}", "op", "post", "qp", "p.a", "wr", "SEND", "mr", "tx"), 0);
	complete(fake.qp->sent[0].wr_id, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(rig_rc(REQ("clock")), 0);
	CU_ASSERT_EQUAL(rig_rc(REQ("release")), 0);
	/* Lives begin again. */
	CU_ASSERT_EQUAL(set_up_objects(), 0);
	CU_ASSERT_EQUAL(json_int(rig_ask("{s:s, s:s}", "op", "ledger", "qp", "p.a"), "life", 0), 1);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i}", "op", "pd_create", "name", "late", "dev", "dev.a", "life", 7), 0);
	CU_ASSERT_EQUAL(json_int(rig_record("verb", "late", 0), "life", 0), 7);
	tear_down();
}

static const struct test_case cases[] = {
	{ "protocol", test_protocol },
	{ "batch", test_batch },
	{ "every call fails once", test_every_call_fails_once },
	{ "modify", test_modify },
	{ "bad_wr in the middle", test_bad_wr_in_the_middle },
	{ "signal_all", test_signal_all },
	{ "completions", test_completions },
	{ "discard at RESET", test_discard_at_reset },
	{ "the whole receive queue", test_whole_receive_queue },
	{ "SRQ modify", test_srq_modify },
	{ "drain", test_drain },
	{ "blocked", test_blocked },
	{ "release acknowledges", test_release_acknowledges },
};

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	return test_run("agent", cases, sizeof(cases) / sizeof(cases[0]));
}
