/* SPDX-License-Identifier: MIT */
#include "cm.h"

#include <CUnit/Basic.h>

#include "agent_rig.h"
#include "fake_cm.h"
#include "fake_verbs.h"
#include "../harness/test.h"

static int to_rts(void)
{
	static const char *const states[] = { "INIT", "RTR", "RTS" };
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(states) / sizeof(*states); i++)
		rc = rig_rc("{s:s, s:s, s:s, s:{s:i, s:s}}", "op", "qp_modify", "name", "p.a", "to", states[i], "set", "dest_qpn",
			    77, "dest_gid", "::ffff:10.0.0.2");
	return rc;
}

static void set_up(void)
{
	fake.post_room = FAKE_MAX;
	fake.fail_at = 0;
	fake_cm.fail = NULL;
	fake_cm.made = fake_cm.acked = fake_cm.disconnects = fake_cm.rejects = 0;
	fake_cm.first = fake_cm.last = 0;
	rig_start();
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "device_open", "name", "dev.a", "device", "fake0"), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "pd_create", "name", "pd", "dev", "dev.a"), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i}", "op", "cq_create", "name", "cq", "dev", "dev.a", "depth", 64), 0);
	CU_ASSERT_EQUAL(
		rig_rc("{s:s, s:s, s:s, s:s, s:s}", "op", "qp_create", "name", "p.a", "pd", "pd", "send_cq", "cq", "recv_cq", "cq"),
		0);
}

/* Everything is gone, and every event was acknowledged. */
static void tear_down(void)
{
	json_t *reply = rig_ask("{s:s}", "op", "release");

	CU_ASSERT_EQUAL(json_int(reply, "rc", -1), 0);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(reply, "left")), 0);
	CU_ASSERT_EQUAL(fake.live, 0);
	CU_ASSERT_EQUAL(fake_cm.live, 0);
	CU_ASSERT_EQUAL(fake_cm.acked, fake_cm.made);
	rig_stop();
}

static int ask_peer(void)
{
	return rig_rc("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:s, s:i}", "op", "cm_connect", "name", "p.a.cm", "qp", "p.a", "addr",
		      "::ffff:10.0.0.1", "peer", "::ffff:10.0.0.2", "port", 4711, "timeout", 14, "private", "hello", "retry_count",
		      3);
}

static int wait_for(const char *event)
{
	return rig_send("{s:s, s:s, s:s}", "op", "cm_wait", "name", "p.a.cm", "event", event);
}

/* What was done by then is on record, and no call is under way. */
static bool has_returned(const char *call)
{
	const json_t *verb;

	for (unsigned n = 0; (verb = rig_record("verb", "p.a.cm", n)); n++)
		if (strcmp(json_str(verb, "verb"), call) == 0)
			return true;
	return false;
}

static bool has_connected(void *user)
{
	(void)user;
	return has_returned("rdma_connect");
}

static void the_asking_end_resolves_and_asks_by_itself(void)
{
	json_t *reply;
	int waits;

	set_up();
	CU_ASSERT_EQUAL(ask_peer(), 0);
	waits = wait_for("CONNECT_RESPONSE");
	CU_ASSERT_EQUAL(loop_wait(rig.loop, has_connected, NULL, now_ns() + RIG_WAIT_NS), 0);
	CU_ASSERT_EQUAL(fake_cm.param.qp_num, fake.qp->qp.qp_num);
	CU_ASSERT_EQUAL(fake_cm.param.retry_count, 3);
	CU_ASSERT_EQUAL(fake_cm.param.private_data_len, 5);
	fake_cm_event(fake_cm.id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, "there", 77);
	reply = rig_wait(waits);
	CU_ASSERT_EQUAL(json_int(reply, "rc", -1), 0);
	CU_ASSERT_EQUAL(json_int(reply, "qpn", 0), 77);
	CU_ASSERT_STRING_EQUAL(json_str(reply, "private"), "there");
	CU_ASSERT_EQUAL(json_int(json_object_get(reply, "rtr"), "rq_psn", 0), 0x111);
	CU_ASSERT_EQUAL(json_int(json_object_get(reply, "rts"), "sq_psn", 0), 0x222);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s}", "op", "cm_establish", "name", "p.a.cm"), 0);
	CU_ASSERT_STRING_EQUAL(json_str(rig_record("cm", "p.a", 0), "event"), "ADDR_RESOLVED");
	CU_ASSERT_STRING_EQUAL(json_str(rig_record("cm", "p.a", 1), "event"), "ROUTE_RESOLVED");
	CU_ASSERT_STRING_EQUAL(json_str(rig_record("cm", "p.a", 2), "event"), "CONNECT_RESPONSE");
	tear_down();
}

static void what_ends_a_connect_is_told_with_its_reason(void)
{
	static const struct {
		enum rdma_cm_event_type event;
		int status, rc;
		const char *reason;
	} rows[] = {
		{ RDMA_CM_EVENT_REJECTED, 28, -ECONNREFUSED, "CONSUMER_DEFINED" },
		{ RDMA_CM_EVENT_REJECTED, 10, -ECONNREFUSED, "STALE_CONN" },
		{ RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, -ETIMEDOUT, "UNREACHABLE" },
		{ RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, -ENODEV, "ADDR_ERROR" },
		{ RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, -EINVAL, NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const json_t *reply;
		const char *reason;
		int waits;

		set_up();
		CU_ASSERT_EQUAL(ask_peer(), 0);
		waits = wait_for("CONNECT_RESPONSE");
		CU_ASSERT_EQUAL(loop_wait(rig.loop, has_connected, NULL, now_ns() + RIG_WAIT_NS), 0);
		fake_cm_event(fake_cm.id, rows[i].event, rows[i].status, NULL, 0);
		reply = rig_wait(waits);
		reason = json_str(reply, "reason");
		ROW_ASSERT(json_int(reply, "rc", 0) == rows[i].rc, "row %zu: rc %d", i, (int)json_int(reply, "rc", 0));
		ROW_ASSERT(rows[i].reason ? reason && !strcmp(reason, rows[i].reason) : !reason, "row %zu: %s", i,
			   reason ? reason : "none");
		tear_down();
	}
}

static void a_call_that_fails_leaves_nothing(void)
{
	static const struct {
		const char *call;
		bool at_once; /* the request itself fails; else what waits is told */
	} rows[] = {
		{ "rdma_create_event_channel", true }, { "rdma_create_id", true },      { "rdma_set_option", true },
		{ "rdma_resolve_addr", true },         { "rdma_resolve_route", false }, { "rdma_connect", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int rc;

		set_up();
		fake_cm.fail = rows[i].call;
		rc = ask_peer();
		ROW_ASSERT(rc == (rows[i].at_once ? -EIO : 0), "%s: rc %d", rows[i].call, rc);
		if (!rows[i].at_once)
			ROW_ASSERT(json_int(rig_wait(wait_for("CONNECT_RESPONSE")), "rc", 0) == -EIO, "%s", rows[i].call);
		fake_cm.fail = NULL;
		if (rows[i].at_once) {
			ROW_ASSERT(ask_peer() == 0, "%s: not again", rows[i].call);
			CU_ASSERT_EQUAL(loop_wait(rig.loop, has_connected, NULL, now_ns() + RIG_WAIT_NS), 0);
		}
		tear_down();
	}
}

static struct rdma_cm_id *listen_and_ask(void)
{
	struct rdma_cm_id *asked = NULL;
	json_t *reply =
		rig_ask("{s:s, s:s, s:s, s:s}", "op", "cm_listen", "name", "p.a.cm", "qp", "p.a", "addr", "::ffff:10.0.0.1");
	int waits;

	CU_ASSERT_EQUAL(json_int(reply, "port", 0), 4711);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s}", "op", "cm_accept", "name", "p.a.cm"), -ENOTCONN);
	CU_ASSERT_EQUAL(rdma_create_id(fake_cm.id->channel, &asked, NULL, RDMA_PS_TCP), 0);
	waits = wait_for("CONNECT_REQUEST");
	fake_cm_event(asked, RDMA_CM_EVENT_CONNECT_REQUEST, 0, "hello", 77);
	CU_ASSERT_EQUAL(json_int(rig_wait(waits), "rc", -1), 0);
	return asked;
}

static void the_asked_end_takes_one_and_refuses_the_next(void)
{
	struct rdma_cm_id *asked, *second = NULL;
	int live;

	set_up();
	asked = listen_and_ask();
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i}", "op", "cm_accept", "name", "p.a.cm", "rnr_retry_count", 1), 0);
	CU_ASSERT_EQUAL(fake_cm.param.rnr_retry_count, 1);
	live = fake_cm.live;
	CU_ASSERT_EQUAL(rdma_create_id(asked->channel, &second, NULL, RDMA_PS_TCP), 0);
	fake_cm_event(second, RDMA_CM_EVENT_CONNECT_REQUEST, 0, NULL, 78);
	fake_cm_event(asked, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
	CU_ASSERT_EQUAL(json_int(rig_wait(wait_for("ESTABLISHED")), "rc", -1), 0);
	CU_ASSERT_EQUAL(fake_cm.live, live);
	tear_down();
}

static bool has_left(void *user)
{
	(void)user;
	return has_returned("rdma_disconnect");
}

/* What was flushed by it has this for a cause. */
static bool move_to_err_is_on_record(void)
{
	const json_t *state;

	for (unsigned n = 0; (state = rig_record("state", "p.a", n)); n++)
		if (json_has(state, "by", "cm") && json_has(state, "asked", "ERR") && json_has(state, "new", "ERR") &&
		    json_is_integer(json_object_get(state, "errno")))
			return true;
	return false;
}

static void the_peers_leave_is_answered_in_err(void)
{
	struct rdma_cm_id *asked;

	set_up();
	asked = listen_and_ask();
	CU_ASSERT_EQUAL(to_rts(), 0);
	fake_cm_event(asked, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
	CU_ASSERT_EQUAL(loop_wait(rig.loop, has_left, NULL, now_ns() + RIG_WAIT_NS), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s}", "op", "qp_query", "name", "p.a"), 0);
	CU_ASSERT_TRUE(move_to_err_is_on_record());
	CU_ASSERT_EQUAL(fake_cm.disconnects, 1);
	tear_down();
}

static void who_leaves_goes_to_err_first(void)
{
	struct rdma_cm_id *asked;

	set_up();
	asked = listen_and_ask();
	CU_ASSERT_EQUAL(to_rts(), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s}", "op", "cm_disconnect", "name", "p.a.cm"), 0);
	CU_ASSERT_EQUAL(fake.qp->attr.qp_state, IBV_QPS_ERR);
	CU_ASSERT_TRUE(move_to_err_is_on_record());
	fake_cm_event(asked, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
	CU_ASSERT_EQUAL(json_int(rig_wait(wait_for("DISCONNECTED")), "rc", -1), 0);
	CU_ASSERT_EQUAL(fake_cm.disconnects, 1); /* it has said so already */
	tear_down();
}

static void who_waits_in_vain_is_told(void)
{
	int waits;

	set_up();
	CU_ASSERT_EQUAL(ask_peer(), 0);
	CU_ASSERT_EQUAL(
		rig_rc("{s:s, s:s, s:s, s:i}", "op", "cm_wait", "name", "p.a.cm", "event", "ESTABLISHED", "deadline_ns", 1000000),
		-ETIMEDOUT);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "cm_wait", "name", "p.a.cm", "event", "MOONRISE"), -EINVAL);
	CU_ASSERT_EQUAL(loop_wait(rig.loop, has_connected, NULL, now_ns() + RIG_WAIT_NS), 0);
	waits = wait_for("ESTABLISHED");
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "destroy", "type", "cm", "name", "p.a.cm"), 0);
	CU_ASSERT_EQUAL(json_int(rig_wait(waits), "rc", 0), -ECANCELED);
	tear_down();
}

static const struct test_case tests[] = {
	{ "the asking end resolves and asks by itself", the_asking_end_resolves_and_asks_by_itself },
	{ "what ends a connect is told with its reason", what_ends_a_connect_is_told_with_its_reason },
	{ "a call that fails leaves nothing", a_call_that_fails_leaves_nothing },
	{ "the asked end takes one and refuses the next", the_asked_end_takes_one_and_refuses_the_next },
	{ "the peer's leave is answered in ERR", the_peers_leave_is_answered_in_err },
	{ "who leaves goes to ERR first", who_leaves_goes_to_err_first },
	{ "who waits in vain is told", who_waits_in_vain_is_told },
};

TEST_MAIN("cm", tests)
