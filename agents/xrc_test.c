/* SPDX-License-Identifier: MIT */
#include "xrc.h"

#include <CUnit/Basic.h>
#include <arpa/inet.h>

#include "../harness/test.h"
#include "agent_rig.h"
#include "fake_xrc.h"
#include "object.h"

static int make_mr(const char *name)
{
	return rig_rc("{s:s, s:s, s:s, s:i, s:[s]}", "op", "mr_create", "name", name, "pd", "pd", "bytes", 4096, "access",
		      "LOCAL_WRITE");
}

static json_t *make_srq(const char *name)
{
	return rig_ask("{s:s, s:s, s:s, s:s, s:s, s:i}", "op", "srq_create", "name", name, "pd", "pd", "xrcd", "dom", "cq", "cq",
		       "depth", 16);
}

static int make_qp(const char *name, const char *type)
{
	return rig_rc("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:{s:i, s:i}}", "op", "qp_create", "name", name, "pd", "pd", "type",
		      type, strcmp(type, "XRC_SEND") == 0 ? "send_cq" : "recv_cq", "cq", "xrcd", "dom", "srq", "s", "cap",
		      "max_send_wr", 8, "max_recv_wr", 16);
}

static int move(const char *name, const char *to)
{
	return rig_rc("{s:s, s:s, s:s, s:{s:i, s:s, s:[s], s:i, s:i, s:i}, s:s}", "op", "qp_modify", "name", name, "to", to, "set",
		      "dest_qpn", 5, "dest_gid", "::ffff:10.0.0.2", "access", "REMOTE_WRITE", "rq_psn", 7, "sq_psn", 9, "path_mtu",
		      1024, "by", "connect");
}

static void set_up(void)
{
	fake.post_room = FAKE_MAX;
	fake.fail_at = 0;
	fake_xrc();
	rig_start();
	rig_objects();
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "xrcd_open", "name", "dom", "dev", "dev"), 0);
	CU_ASSERT_EQUAL(make_mr("tx") + make_mr("rx"), 0);
	CU_ASSERT_EQUAL_FATAL(json_int(make_srq("s"), "rc", -1), 0);
}

/* All goes in an order in which nothing refuses: a domain after what is in it. */
static void tear_down(void)
{
	json_t *reply = rig_ask("{s:s}", "op", "release");

	CU_ASSERT_EQUAL(json_int(reply, "rc", -1), 0);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(reply, "left")), 0);
	CU_ASSERT_EQUAL(fake.live, 0);
	rig_stop();
}

static void what_each_end_is_made_with(void)
{
	struct fake_qp *sender;
	json_t *srq, *made;

	set_up();
	srq = make_srq("t");
	CU_ASSERT_EQUAL(json_int(srq, "srqn", 0), fake.srq->number);
	CU_ASSERT(fake.srq->number != 0);
	CU_ASSERT_PTR_EQUAL(fake.srq->cq, &fake.cq->cq);
	CU_ASSERT_EQUAL(make_qp("p.a", "XRC_SEND"), 0);
	sender = fake.qp;
	CU_ASSERT_EQUAL(sender->qp.qp_type, IBV_QPT_XRC_SEND);
	CU_ASSERT_PTR_EQUAL(sender->qp.send_cq, &fake.cq->cq);
	CU_ASSERT_EQUAL(sender->cap.max_send_wr, 8);
	CU_ASSERT_EQUAL(sender->cap.max_recv_wr, 0);
	CU_ASSERT_EQUAL(make_qp("p.b", "XRC_RECV"), 0);
	CU_ASSERT_EQUAL(fake.qp->qp.qp_type, IBV_QPT_XRC_RECV);
	CU_ASSERT_EQUAL(fake.qp->xrcd->users, 3);
	made = rig_record("verb", "p.b", 0);
	CU_ASSERT_STRING_EQUAL(json_str(made, "verb"), "ibv_create_qp_ex");
	tear_down();
}

/* What a request lacks is said; what is refused leaves nothing behind. */
static void what_is_refused(void)
{
	static const struct {
		const char *fmt, *op, *key[6], *error;
	} rows[] = {
		{ "{s:s, s:s, s:s, s:s}", "srq_create", { "name", "u", "pd", "pd", "xrcd", "none" }, "there is no xrcd none" },
		{ "{s:s, s:s, s:s, s:s}", "srq_create", { "name", "u", "pd", "pd", "xrcd", "dom" }, "no cq is named" },
		{ "{s:s, s:s, s:s, s:s}", "qp_create", { "name", "q", "pd", "pd", "type", "XRC_SEND" }, "no send_cq is named" },
		{ "{s:s, s:s, s:s, s:s}", "qp_create", { "name", "q", "pd", "pd", "type", "XRC_RECV" }, "no recv_cq is named" },
	};

	set_up();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		json_t *reply = rig_ask(rows[i].fmt, "op", rows[i].op, rows[i].key[0], rows[i].key[1], rows[i].key[2],
					rows[i].key[3], rows[i].key[4], rows[i].key[5]);

		ROW_ASSERT(strstr(json_str(reply, "error") ? json_str(reply, "error") : "", rows[i].error), "row %zu: %s", i,
			   json_str(reply, "error"));
	}
	CU_ASSERT_EQUAL(make_qp("p.b", "XRC_RECV"), 0);
	/* In use: the domain, and the CQ of an SRQ, count who uses them. */
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "destroy", "type", "xrcd", "name", "dom"), -EBUSY);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s}", "op", "post", "qp", "p.b", "wr", "SEND", "mr", "tx"), -EINVAL);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "post_recv", "qp", "p.b", "mr", "rx"), -EINVAL);
	CU_ASSERT_EQUAL(fake.qp->n_sent + fake.qp->n_received, 0);
	tear_down();
}

static void each_call_may_fail(void)
{
	static const struct {
		const char *what;
		unsigned calls;
	} rows[] = { { "xrcd", 1 }, { "srq", 2 }, { "qp", 1 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (unsigned n = 1; n <= rows[i].calls; n++) {
			int live, rc;

			set_up();
			live = fake.live;
			fake.calls = 0;
			fake.fail_at = n;
			if (i == 0)
				rc = rig_rc("{s:s, s:s, s:s}", "op", "xrcd_open", "name", "dom2", "dev", "dev");
			else
				rc = i == 1 ? (int)json_int(make_srq("t"), "rc", 0) : make_qp("p.b", "XRC_RECV");
			ROW_ASSERT(rc == -ENOMEM, "%s, call %u: %d", rows[i].what, n, rc);
			ROW_ASSERT(fake.live == live, "%s, call %u: %d objects live, before it %d", rows[i].what, n, fake.live,
				   live);
			fake.fail_at = 0;
			tear_down();
		}
}

static void requests_name_the_srq(void)
{
	static const char *const states[] = { "INIT", "RTR", "RTS" };
	struct fake_qp *sender;

	set_up();
	CU_ASSERT_EQUAL(make_qp("p.a", "XRC_SEND"), 0);
	sender = fake.qp;
	for (size_t i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(move("p.a", states[i]), 0);
	CU_ASSERT_EQUAL(sender->last_mask & (IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RNR_RETRY),
			IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RNR_RETRY);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s, s:i, s:i, s:b}", "op", "post", "qp", "p.a", "wr", "SEND", "mr", "tx", "count",
			       2, "remote_srqn", 77, "chain", 1),
			0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s, s:i, s:i}", "op", "post", "qp", "p.a", "wr", "WRITE", "mr", "tx", "rkey", 9,
			       "remote_srqn", 78),
			0);
	CU_ASSERT_EQUAL_FATAL(sender->n_sent, 3);
	CU_ASSERT_EQUAL(sender->sent[0].qp_type.xrc.remote_srqn, 77);
	CU_ASSERT_EQUAL(sender->sent[1].qp_type.xrc.remote_srqn, 77);
	CU_ASSERT_EQUAL(sender->sent[2].qp_type.xrc.remote_srqn, 78);
	CU_ASSERT_EQUAL(sender->sent[2].wr.rdma.rkey, 9);
	CU_ASSERT_EQUAL(json_int(rig_record("post", "p.a.send", 0), "remote_srqn", 0), 77);
	tear_down();
}

/* All of a traffic's, and the end that sends has no receives to prepare. */
static void a_traffic_names_the_srq(void)
{
	static const char *const states[] = { "INIT", "RTR", "RTS" };
	struct fake_qp *sender;
	json_t *prepared;

	set_up();
	CU_ASSERT_EQUAL(make_qp("p.a", "XRC_SEND"), 0);
	sender = fake.qp;
	for (size_t i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(move("p.a", states[i]), 0);
	prepared = rig_ask("{s:s, s:s, s:s, s:i, s:i, s:s}", "op", "traffic_prepare", "as", "t", "qp", "p.a", "size", 64, "tag",
			   4096, "mr", "tx");
	CU_ASSERT_EQUAL(json_int(prepared, "rc", -1), 0);
	CU_ASSERT_EQUAL(json_int(prepared, "posted", -1), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:[s, s, s], s:i, s:i, s:i, s:s, s:i, s:s, s:i, s:b}", "op", "traffic", "as", "t",
			       "qp", "p.a", "ops", "SEND", "WRITE", "READ", "size", 64, "depth", 3, "messages", 3, "mr", "tx",
			       "tag", 4096, "role", "tx", "remote_srqn", 79, "background", 1),
			0);
	CU_ASSERT_EQUAL_FATAL(sender->n_sent, 3);
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(sender->sent[i].qp_type.xrc.remote_srqn, 79);
	CU_ASSERT_EQUAL(sender->n_received, 0);
	tear_down();
}

/* A receive's end is in the CQ of its SRQ, by the number of the QP that it came by. */
static void receives_end_in_the_srqs_cq(void)
{
	static const char *const states[] = { "INIT", "RTR", "RTS" };
	struct fake_srq *srq;
	json_t *wc;

	set_up();
	srq = fake.srq;
	CU_ASSERT_EQUAL(make_qp("p.b", "XRC_RECV"), 0);
	for (size_t i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(move("p.b", states[i]), 0);
	CU_ASSERT_EQUAL(fake.qp->last_mask, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN | IBV_QP_ACCESS_FLAGS);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i}", "op", "post_recv", "srq", "s", "mr", "rx", "count", 4), 0);
	CU_ASSERT_EQUAL_FATAL(srq->n_received, 4);
	fake_complete(fake.cq, (struct ibv_wc){ .wr_id = srq->received[0],
						.status = IBV_WC_SUCCESS,
						.opcode = IBV_WC_RECV,
						.byte_len = 64,
						.qp_num = fake.qp->qp.qp_num });
	/* To the end of its turn: a QP that goes to RESET catches up with what is in its CQ. */
	CU_ASSERT_EQUAL(move("p.b", "RESET"), 0);
	wc = rig_record("wc", "s", 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(wc);
	CU_ASSERT_EQUAL(json_int(wc, "qpn", 0), fake.qp->qp.qp_num);
	CU_ASSERT_STRING_EQUAL(json_str(wc, "cq"), "cq");
	CU_ASSERT_PTR_NULL(rig_record("wc", "p.b.recv", 0));
	tear_down();
}

static const struct test_case cases[] = {
	{ "what each end is made with", what_each_end_is_made_with },
	{ "what is refused", what_is_refused },
	{ "each call may fail", each_call_may_fail },
	{ "requests name the SRQ", requests_name_the_srq },
	{ "a traffic names the SRQ", a_traffic_names_the_srq },
	{ "receives end in the SRQ's CQ", receives_end_in_the_srqs_cq },
};

TEST_MAIN("xrc", cases)
