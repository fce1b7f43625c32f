/* SPDX-License-Identifier: MIT */
/* UD: address handles and their life, where requests go, and what came with a message. */
#include "datagram.h"

#include <CUnit/Basic.h>
#include <arpa/inet.h>

#include "../harness/test.h"
#include "../harness/pattern.h"
#include "agent_rig.h"
#include "fake_verbs.h"
#include "object.h"

#define RECEIVE 128

static int make_qp(const char *name, const char *type)
{
	int rc = rig_rc("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:{s:i}}", "op", "qp_create", "name", name, "pd", "pd", "type", type,
			"send_cq", "cq", "recv_cq", "cq", "rx", "rx", "cap", "max_recv_wr", 16);
	static const char *const states[] = { "INIT", "RTR", "RTS" };

	for (size_t i = 0; rc == 0 && i < 3; i++)
		rc = rig_rc("{s:s, s:s, s:s, s:{s:i, s:i}}", "op", "qp_modify", "name", name, "to", states[i], "set", "qkey",
			    0x1234, "sq_psn", 9);
	return rc;
}

static int make_ah(const char *name, int hop_limit)
{
	return rig_rc("{s:s, s:s, s:s, s:s, s:i}", "op", "ah_create", "name", name, "pd", "pd", "dest_gid", "::ffff:10.0.0.2",
		      "hop_limit", hop_limit);
}

static void *rx_at;

static void set_up(void)
{
	fake.post_room = FAKE_MAX;
	fake.fail_at = 0;
	rig_start();
	CU_ASSERT_EQUAL_FATAL(rig_rc("{s:s, s:s, s:s}", "op", "device_open", "name", "dev.a", "device", "fake0"), 0);
	CU_ASSERT_EQUAL_FATAL(rig_rc("{s:s, s:s, s:s}", "op", "pd_create", "name", "pd", "dev", "dev.a"), 0);
	CU_ASSERT_EQUAL_FATAL(rig_rc("{s:s, s:s, s:s, s:i}", "op", "cq_create", "name", "cq", "dev", "dev.a", "depth", 64), 0);
	CU_ASSERT_EQUAL_FATAL(rig_rc("{s:s, s:s, s:s, s:i, s:[s]}", "op", "mr_create", "name", "tx", "pd", "pd", "bytes", 4096,
				     "access", "LOCAL_WRITE"),
			      0);
	CU_ASSERT_EQUAL_FATAL(rig_rc("{s:s, s:s, s:s, s:i, s:[s]}", "op", "mr_create", "name", "rx", "pd", "pd", "bytes", 4096,
				     "access", "LOCAL_WRITE"),
			      0);
	rx_at = ((struct mr *)object_find(rig.agent, OBJECT_MR, "rx"))->addr;
	CU_ASSERT_PTR_NOT_NULL_FATAL(rx_at);
	CU_ASSERT_EQUAL_FATAL(make_qp("p.a", "UD"), 0);
	CU_ASSERT_EQUAL_FATAL(make_ah("p.a.ah", 7), 0);
}

static void tear_down(void)
{
	json_t *reply = rig_ask("{s:s}", "op", "release");

	CU_ASSERT_EQUAL(json_int(reply, "rc", -1), 0);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(reply, "left")), 0);
	CU_ASSERT_EQUAL(fake.live, 0);
	rig_stop();
}

static json_t *send_to(const char *ah)
{
	return rig_ask("{s:s, s:s, s:s, s:i, s:s, s:i, s:s, s:i, s:i}", "op", "post", "qp", "p.a", "wr", "SEND", "size", 64, "mr",
		       "tx", "tag", 3, "ah", ah, "remote_qpn", 0x77, "remote_qkey", 0x1234);
}

static void test_handle(void)
{
	struct in6_addr gid;

	set_up();
	CU_ASSERT_EQUAL(inet_pton(AF_INET6, "::ffff:10.0.0.2", &gid), 1);
	CU_ASSERT_EQUAL(memcmp(fake.ah_attr.grh.dgid.raw, &gid, sizeof(gid)), 0);
	CU_ASSERT_EQUAL(fake.ah_attr.grh.hop_limit, 7);
	CU_ASSERT_EQUAL(fake.ah_attr.is_global, 1);
	CU_ASSERT_EQUAL(make_ah("p.a.ah", 7), -EEXIST);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s}", "op", "ah_create", "name", "x", "pd", "pd", "dest_gid", "nowhere"), -EINVAL);
	CU_ASSERT_EQUAL(json_int(send_to("p.a.ah"), "rc", 1), 0);
	CU_ASSERT_EQUAL(fake.qp->sent[0].wr.ud.remote_qpn, 0x77);
	CU_ASSERT_EQUAL(fake.qp->sent[0].wr.ud.remote_qkey, 0x1234);
	CU_ASSERT_PTR_NOT_NULL(fake.qp->sent[0].wr.ud.ah);
	tear_down();
}

/* A handle that is gone is named in an answer, and never given to a library. */
static void test_handle_that_is_gone(void)
{
	const json_t *reply;

	set_up();
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "destroy", "type", "ah", "name", "p.a.ah"), 0);
	reply = send_to("p.a.ah");
	CU_ASSERT_EQUAL(json_int(reply, "rc", 0), -ENOENT);
	CU_ASSERT_STRING_EQUAL(json_str(reply, "error"), "post: p.a: there is no ah p.a.ah: it was destroyed");
	reply = send_to("other");
	CU_ASSERT_STRING_EQUAL(json_str(reply, "error"), "post: p.a: there is no ah other");
	reply = rig_ask("{s:s, s:s, s:s, s:i, s:s}", "op", "post", "qp", "p.a", "wr", "SEND", "size", 64, "mr", "tx");
	CU_ASSERT_STRING_EQUAL(json_str(reply, "error"), "post: p.a: p.a is a UD QP: no ah is named");
	CU_ASSERT_EQUAL(fake.qp->n_sent, 0);
	CU_ASSERT_EQUAL(make_ah("p.a.ah", 9), 0);
	CU_ASSERT_EQUAL(json_int(send_to("p.a.ah"), "rc", 1), 0);
	tear_down();
}

/* An IPv4 header in front of message 0 of a tag, as it would have come. */
static void put_message(unsigned slot, uint32_t tag, size_t size)
{
	static const uint8_t v4[20] = { 0x45, 0x20, 0, 0x38, 0, 0, 0x40, 0, 7, 17, 0x5f, 0x93, 10, 0, 0, 1, 10, 0, 0, 2 };
	char *at = (char *)rx_at + (size_t)slot * RECEIVE;

	memset(at, 0xa5, 20);
	memcpy(at + 20, v4, sizeof(v4));
	pattern_fill((struct pattern){ .tag = tag }, at + GRH_BYTES, size);
}

static void complete(unsigned i, uint32_t bytes, uint32_t src_qp)
{
	fake_complete(fake.cq, (struct ibv_wc){ .wr_id = fake.qp->received[i],
						.status = IBV_WC_SUCCESS,
						.opcode = IBV_WC_RECV,
						.byte_len = bytes,
						.qp_num = fake.qp->qp.qp_num,
						.src_qp = src_qp,
						.wc_flags = IBV_WC_GRH });
}

static void test_what_came(void)
{
	const json_t *wc, *reply;

	set_up();
	CU_ASSERT_EQUAL(
		rig_rc("{s:s, s:s, s:i, s:i, s:i}", "op", "post_recv", "qp", "p.a", "count", 3, "size", 104, "stride", RECEIVE), 0);
	put_message(0, 5, 64);
	put_message(1, 6, 64);
	complete(0, 104, 0x77);
	complete(1, 104, 0x77);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s}", "op", "poll", "cq", "cq"), 0);
	wc = rig_record("wc", "p.a.recv", 0);
	CU_ASSERT_EQUAL(json_int(wc, "count", 0), 2); /* alike: one run */
	CU_ASSERT_EQUAL(json_int(wc, "bytes", 0), 208);
	CU_ASSERT_EQUAL(json_int(wc, "src_qp", 0), 0x77);
	CU_ASSERT_STRING_EQUAL(json_str(json_object_get(wc, "grh"), "src"), "::ffff:10.0.0.1");
	CU_ASSERT_EQUAL(json_int(json_object_get(wc, "grh"), "traffic_class", 0), 0x20);
	/* The message begins behind its header. */
	reply = rig_ask("{s:s, s:s, s:i, s:i, s:i}", "op", "find", "qp", "p.a", "size", 64, "count", 1, "tag", 6);
	CU_ASSERT_STRING_EQUAL(json_str(reply, "indices"), "i");
	CU_ASSERT_EQUAL(json_int(reply, "twice", 0), 0);
	reply = rig_ask("{s:s, s:s, s:i, s:i, s:i}", "op", "find", "qp", "p.a", "size", 64, "count", 1, "tag", 7);
	CU_ASSERT_STRING_EQUAL(json_str(reply, "indices"), "a");
	/* A message that lies there a second time. */
	put_message(2, 6, 64);
	reply = rig_ask("{s:s, s:s, s:i, s:i, s:i}", "op", "find", "qp", "p.a", "size", 64, "count", 1, "tag", 6);
	CU_ASSERT_STRING_EQUAL(json_str(reply, "indices"), "i");
	CU_ASSERT_EQUAL(json_int(reply, "twice", 0), 1);
	/* Of what does not fit behind the header a beginning is all that can be there. */
	reply = rig_ask("{s:s, s:s, s:i, s:i, s:i}", "op", "find", "qp", "p.a", "size", 100, "count", 1, "tag", 6);
	CU_ASSERT_STRING_EQUAL(json_str(reply, "indices"), "p");
	reply = rig_ask("{s:s, s:s, s:i, s:i, s:i}", "op", "find", "qp", "p.a", "size", 100, "count", 1, "tag", 7);
	CU_ASSERT_STRING_EQUAL(json_str(reply, "indices"), "a");
	tear_down();
}

/* Another header, or another sender, ends a run. */
static void test_runs(void)
{
	set_up();
	CU_ASSERT_EQUAL(
		rig_rc("{s:s, s:s, s:i, s:i, s:i}", "op", "post_recv", "qp", "p.a", "count", 3, "size", 104, "stride", RECEIVE), 0);
	for (unsigned i = 0; i < 3; i++) {
		put_message(i, 5, 64);
		complete(i, 104, i == 2 ? 0x78 : 0x77);
	}
	memset((char *)rx_at + RECEIVE + 20, 0, 20); /* no header at all in front of the second */
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s}", "op", "poll", "cq", "cq"), 0);
	CU_ASSERT_EQUAL(json_int(rig_record("wc", "p.a.recv", 0), "src_qp", 0), 0x77);
	CU_ASSERT_EQUAL(json_int(json_object_get(rig_record("wc", "p.a.recv", 1), "grh"), "version", -1), 0);
	CU_ASSERT_EQUAL(json_int(rig_record("wc", "p.a.recv", 2), "src_qp", 0), 0x78);
	tear_down();
}

static int group(const char *op, const char *gid)
{
	return rig_rc("{s:s, s:s, s:s}", "op", op, "qp", "p.a", "group", gid);
}

/* What is released holds no membership; what leaves a group twice is told so. */
static void test_groups(void)
{
	set_up();
	CU_ASSERT_EQUAL(group("group_attach", "nowhere"), -EINVAL);
	CU_ASSERT_EQUAL(group("group_attach", "fe80::1"), -EINVAL);
	CU_ASSERT_EQUAL(group("group_attach", "ff02::1"), 0);
	CU_ASSERT_EQUAL(group("group_attach", "ff02::2"), 0);
	CU_ASSERT_EQUAL(fake.attached, 2);
	CU_ASSERT_EQUAL(group("group_detach", "ff02::1"), 0);
	CU_ASSERT_EQUAL(fake.attached, 1);
	tear_down();
	CU_ASSERT_EQUAL(fake.attached, 0);
}

/* A connected QP's requests and receives are as ever. */
static void test_connected(void)
{
	set_up();
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:{s:i}}", "op", "qp_create", "name", "p.b", "pd", "pd", "type",
			       "RC", "send_cq", "cq", "recv_cq", "cq", "rx", "rx", "cap", "max_recv_wr", 16),
			0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "qp_modify", "name", "p.b", "to", "INIT"), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i, s:i}", "op", "post_recv", "qp", "p.b", "count", 1, "size", 64), 0);
	complete(0, 64, 0x77);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s}", "op", "poll", "cq", "cq"), 0);
	CU_ASSERT_PTR_NOT_NULL(rig_record("wc", "p.b.recv", 0));
	CU_ASSERT_PTR_NULL(json_object_get(rig_record("wc", "p.b.recv", 0), "grh"));
	tear_down();
}

static const struct test_case cases[] = {
	{ "a handle, and where it leads", test_handle },
	{ "a handle that is gone", test_handle_that_is_gone },
	{ "what came with a message", test_what_came },
	{ "runs of messages that are alike", test_runs },
	{ "groups", test_groups },
	{ "connected QPs", test_connected },
};

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	return test_run("datagram", cases, sizeof(cases) / sizeof(cases[0]));
}
