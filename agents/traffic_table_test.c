/* SPDX-License-Identifier: MIT */
/* Many QPs on one CQ: what is of one costs the others nothing, and is found among them. */
#include <CUnit/Basic.h>

#include "../harness/test.h"
#include "agent_rig.h"
#include "fake_verbs.h"
#include "object.h"
#include "traffic.h"

#define QPS 3
#define SIZE 64

static struct fake_qp *qps[QPS];

static void create(unsigned i)
{
	static const char *const moves[] = { "INIT", "RTR", "RTS" };
	char name[16];

	snprintf(name, sizeof(name), "q%u", i);
	CU_ASSERT_EQUAL(
		rig_rc("{s:s, s:s, s:s, s:s, s:s}", "op", "qp_create", "name", name, "pd", "pd", "send_cq", "cq", "recv_cq", "cq"),
		0);
	for (size_t k = 0; k < 3; k++)
		CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "qp_modify", "name", name, "to", moves[k]), 0);
	qps[i] = fake.qp;
}

static void set_up(void)
{
	fake.post_room = FAKE_MAX;
	rig_start();
	rig_objects();
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i}", "op", "mr_create", "name", "trf", "pd", "pd", "bytes", 16384), 0);
	for (unsigned i = 0; i < QPS; i++)
		create(i);
}

static void tear_down(void)
{
	CU_ASSERT_EQUAL(json_array_size(json_object_get(rig_ask("{s:s}", "op", "release"), "left")), 0);
	CU_ASSERT_EQUAL(fake.live, 0);
	CU_ASSERT_PTR_NULL(rig.agent->qps_by_number);
	CU_ASSERT_PTR_NULL(rig.agent->traffics_touched);
	rig_stop();
}

static struct qp *qp_of(unsigned i)
{
	char name[16];

	snprintf(name, sizeof(name), "q%u", i);
	return (struct qp *)object_find(rig.agent, OBJECT_QP, name);
}

/* Lets the agent see what there is. */
static void settle(void)
{
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(rig_rc("{s:s}", "op", "clock"), 0);
}

/* WRITEs, all under one name. */
static void start(unsigned i)
{
	const char *qp = qp_of(i)->o.name;

	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i, s:i, s:s, s:i}", "op", "traffic_prepare", "as", "t", "qp", qp, "size", SIZE,
			       "tag", (int)(16 * (i + 1)), "mr", "trf", "receives", 0),
			0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:[s], s:i, s:i, s:s, s:b}", "op", "traffic", "as", "t", "qp", qp, "ops", "WRITE",
			       "depth", 2, "tag", (int)(16 * (i + 1)), "role", "tx", "background", 1),
			0);
}

static void done(unsigned i, unsigned n, enum ibv_wc_status status)
{
	fake_complete(fake.cq, (struct ibv_wc){ .wr_id = qps[i]->sent[n].wr_id,
						.status = status,
						.opcode = IBV_WC_RDMA_WRITE,
						.qp_num = qps[i]->qp.qp_num });
}

static void test_numbers(void)
{
	uint32_t gone;

	set_up();
	for (unsigned i = 0; i < QPS; i++)
		CU_ASSERT_PTR_EQUAL(qp_by_qpn(rig.agent, qps[i]->qp.qp_num), qp_of(i));
	gone = qps[1]->qp.qp_num;
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "destroy", "type", "qp", "name", "q1"), 0);
	CU_ASSERT_PTR_NULL(qp_by_qpn(rig.agent, gone));
	create(1);
	CU_ASSERT_NOT_EQUAL(qps[1]->qp.qp_num, gone);
	CU_ASSERT_PTR_EQUAL(qp_by_qpn(rig.agent, qps[1]->qp.qp_num), qp_of(1));
	CU_ASSERT_PTR_NULL(qp_by_qpn(rig.agent, gone));
	tear_down();
}

static void test_found(void)
{
	struct traffic *t[QPS];
	int id;

	set_up();
	for (unsigned i = 0; i < QPS; i++)
		start(i);
	for (unsigned i = 0; i < QPS; i++) {
		t[i] = traffic_find(rig.agent, "t", qp_of(i));
		CU_ASSERT(t[i] && t[i]->qp == qp_of(i) && traffic_runs(t[i], t[i]->number));
		CU_ASSERT_PTR_NULL(traffic_find(rig.agent, "u", qp_of(i)));
	}
	CU_ASSERT_PTR_NOT_NULL(traffic_find(rig.agent, "t", NULL));
	CU_ASSERT_PTR_NULL(traffic_find(rig.agent, "u", NULL));
	/* Made anew it is the same one, and no second. */
	done(1, 0, IBV_WC_SUCCESS);
	done(1, 1, IBV_WC_SUCCESS);
	settle();
	id = rig_send("{s:s, s:s, s:s}", "op", "traffic_stop", "as", "t", "qp", "q1");
	settle();
	done(1, 2, IBV_WC_SUCCESS);
	done(1, 3, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(json_int(rig_wait(id), "rc", -1), 0);
	start(1);
	CU_ASSERT(traffic_find(rig.agent, "t", qp_of(1)) == t[1]);
	CU_ASSERT_PTR_NULL(qp_of(1)->traffics->links.of_qp);
	tear_down();
}

/* One goes on, the others have no part in that. */
static void test_own_turn(void)
{
	set_up();
	for (unsigned i = 0; i < QPS; i++)
		start(i);
	for (unsigned i = 0; i < QPS; i++)
		CU_ASSERT_EQUAL(qps[i]->n_sent, 2);
	done(1, 0, IBV_WC_SUCCESS);
	settle();
	CU_ASSERT_EQUAL(qps[0]->n_sent, 2);
	CU_ASSERT_EQUAL(qps[1]->n_sent, 3);
	CU_ASSERT_EQUAL(qps[2]->n_sent, 2);
	/* Several in one poll: each has its turn. */
	done(0, 0, IBV_WC_SUCCESS);
	done(2, 0, IBV_WC_SUCCESS);
	done(0, 1, IBV_WC_SUCCESS);
	settle();
	CU_ASSERT_EQUAL(qps[0]->n_sent, 4);
	CU_ASSERT_EQUAL(qps[1]->n_sent, 3);
	CU_ASSERT_EQUAL(qps[2]->n_sent, 3);
	CU_ASSERT_PTR_NULL(rig.agent->traffics_touched);
	tear_down();
}

/* Where one has ended, what comes for it is told at once, though others of its name still run; its posts were told before. */
static void test_an_error_of_one(void)
{
	set_up();
	for (unsigned i = 0; i < QPS; i++)
		start(i);
	done(1, 0, IBV_WC_REM_ACCESS_ERR);
	settle();
	CU_ASSERT_EQUAL(traffic_find(rig.agent, "t", qp_of(1))->state, TRAFFIC_ENDED);
	CU_ASSERT_EQUAL(traffic_find(rig.agent, "t", qp_of(0))->state, TRAFFIC_RUNNING);
	CU_ASSERT_EQUAL(json_int(rig_record("post", "q1.send", 0), "accepted", 0), 2);
	CU_ASSERT_STRING_EQUAL(json_str(rig_record("wc", "q1.send", 0), "status"), "REM_ACCESS_ERR");
	CU_ASSERT_PTR_NULL(rig_record("wc", "q1.send", 1));
	CU_ASSERT_PTR_NULL(rig_record("post", "q0.send", 0));
	done(1, 1, IBV_WC_WR_FLUSH_ERR);
	settle();
	CU_ASSERT_PTR_NOT_NULL_FATAL(rig_record("wc", "q1.send", 1));
	CU_ASSERT_STRING_EQUAL(json_str(rig_record("wc", "q1.send", 1), "status"), "WR_FLUSH_ERR");
	CU_ASSERT_STRING_EQUAL(json_str(rig_record("wc", "q1.send", 1), "traffic"), "t");
	done(0, 0, IBV_WC_SUCCESS);
	settle();
	CU_ASSERT_EQUAL(qps[0]->n_sent, 3);
	tear_down();
}

static const struct test_case tests[] = {
	{ "a QP by its number", test_numbers },
	{ "a traffic by name and QP", test_found },
	{ "each has its own turn", test_own_turn },
	{ "an error of one", test_an_error_of_one },
};

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	return test_run("traffic table", tests, sizeof(tests) / sizeof(*tests));
}
