/* SPDX-License-Identifier: MIT */
#include "qp_attr.h"

#include <errno.h>
#include <string.h>

#include "../harness/attr.h"
#include "../harness/json.h"
#include "../harness/test.h"

#define INIT_RC (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR_UC (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTR_RC (RTR_UC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_RC (IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)

static void test_masks(void)
{
	static const struct {
		int type, from, to, given, leave_out, add, want;
	} rows[] = {
		{ IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, 0, 0, 0, INIT_RC },
		{ IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, 0, 0, 0, INIT_RC },
		{ IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, 0, 0, 0, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY },
		{ IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, 0, 0, 0, RTR_RC },
		{ IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, 0, 0, 0, RTR_UC },
		{ IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, 0, 0, IBV_QP_STATE },
		{ IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, 0, 0, 0, RTS_RC },
		{ IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, 0, 0, 0, IBV_QP_STATE | IBV_QP_SQ_PSN },
		{ IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_ERR, IBV_QP_TIMEOUT, 0, 0, IBV_QP_STATE },
		{ IBV_QPT_RC, IBV_QPS_ERR, IBV_QPS_RESET, 0, 0, 0, IBV_QP_STATE },
		{ IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY, 0, 0,
		  IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY },
		/* optional bits only when given; what belongs to another move is left alone */
		{ IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_ACCESS_FLAGS | IBV_QP_SQ_PSN, 0, 0, RTR_RC | IBV_QP_ACCESS_FLAGS },
		{ IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_MIN_RNR_TIMER | IBV_QP_RQ_PSN, 0, 0, RTS_RC | IBV_QP_MIN_RNR_TIMER },
		/* on purpose */
		{ IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, 0, IBV_QP_PORT, 0, INIT_RC & ~IBV_QP_PORT },
		{ IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, 0, 0, IBV_QP_TIMEOUT, INIT_RC | IBV_QP_TIMEOUT },
		{ IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_TIMEOUT, 0, 0, IBV_QP_STATE | IBV_QP_TIMEOUT },
		/* moves that there are none */
		{ IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_RTS, IBV_QP_SQ_PSN, 0, 0, IBV_QP_STATE | IBV_QP_SQ_PSN },
		{ IBV_QPT_RC, IBV_QPS_ERR, IBV_QPS_RTS, 0, 0, 0, IBV_QP_STATE },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CU_ASSERT_EQUAL(
			qp_mask_choose(rows[i].type, rows[i].from, rows[i].to, rows[i].given, rows[i].leave_out, rows[i].add),
			rows[i].want);
}

static void test_parse(void)
{
	static const struct qp_defaults d = { .port = 1, .gid_index = 5 };
	json_t *set = json_pack("{s:i, s:i, s:s, s:i, s:i, s:[s,s], s:n, s:i, s:s, s:i}", "timeout", 18, "path_mtu", 4096,
				"dest_gid", "::ffff:10.0.0.2", "dest_qpn", 0x123456, "traffic_class", 104, "access", "REMOTE_READ",
				"REMOTE_WRITE", "gid_index", "rq_psn", 0xffffff, "cur_state", "SQD", "sl", 3);
	struct ibv_qp_attr attr;
	struct error e = { "" };
	int given = 0;

	CU_ASSERT_EQUAL(qp_attr_parse(set, &d, &attr, &given, &e), 0);
	CU_ASSERT_EQUAL(attr.timeout, 18);
	CU_ASSERT_EQUAL(attr.path_mtu, IBV_MTU_4096);
	CU_ASSERT_EQUAL(attr.dest_qp_num, 0x123456);
	CU_ASSERT_EQUAL(attr.rq_psn, 0xffffff);
	CU_ASSERT_EQUAL(attr.cur_qp_state, IBV_QPS_SQD);
	CU_ASSERT_EQUAL(attr.qp_access_flags, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	CU_ASSERT_EQUAL(attr.ah_attr.is_global, 1);
	CU_ASSERT_EQUAL(attr.ah_attr.grh.sgid_index, 5);
	CU_ASSERT_EQUAL(attr.ah_attr.grh.traffic_class, 104);
	CU_ASSERT_EQUAL(attr.ah_attr.grh.dgid.raw[15], 2);
	CU_ASSERT_EQUAL(attr.ah_attr.grh.dgid.raw[11], 0xff);
	CU_ASSERT_EQUAL(attr.ah_attr.sl, 3);
	CU_ASSERT_EQUAL(attr.ah_attr.port_num, 1);
	CU_ASSERT_EQUAL(given, IBV_QP_TIMEOUT | IBV_QP_PATH_MTU | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_ACCESS_FLAGS |
				       IBV_QP_RQ_PSN | IBV_QP_CUR_STATE);
	json_decref(set);
}

/* What the device is to refuse has to get there. */
static void test_no_mtu(void)
{
	static const int lengths[] = { 0, 1, 3, 17, 1500, 4097, 65536 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		json_t *set = json_pack("{s:i}", "path_mtu", lengths[i]);
		struct qp_defaults d = { 1, 0 };
		struct ibv_qp_attr attr;
		struct error e = { "" };
		int given = 0;

		CU_ASSERT_EQUAL(qp_attr_parse(set, &d, &attr, &given, &e), 0);
		CU_ASSERT_EQUAL(given, IBV_QP_PATH_MTU);
		ROW_ASSERT(!mtu_from_enum((int)attr.path_mtu), "%d", lengths[i]);
		json_decref(set);
	}
}

static void test_refused(void)
{
	static const struct {
		const char *json, *error;
	} rows[] = {
		{ "{\"colour\":1}", "unknown attribute \"colour\"" },
		{ "{\"timeout\":\"14\"}", "timeout: not an integer" },
		{ "{\"path_mtu\":\"1024\"}", "path_mtu: not an integer" },
		{ "{\"dest_gid\":\"10.0.0.2\"}", "dest_gid: \"10.0.0.2\" is no GID" },
		{ "{\"dest_gid\":7}", "dest_gid: \"\" is no GID" },
		{ "{\"access\":[\"REMOTE\"]}", "access: unknown flag \"REMOTE\"" },
		{ "{\"cur_state\":\"READY\"}", "cur_state: unknown state \"READY\"" },
		{ "{\"max_send_wr\":8}", "unknown attribute \"max_send_wr\"" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		json_t *set = json_loads(rows[i].json, 0, NULL);
		struct qp_defaults d = { 1, 0 };
		struct ibv_qp_attr attr;
		struct error e = { "" };
		int given = -7;

		CU_ASSERT_EQUAL(qp_attr_parse(set, &d, &attr, &given, &e), -EINVAL);
		CU_ASSERT_STRING_EQUAL(e.text, rows[i].error);
		CU_ASSERT_EQUAL(given, -7);
		json_decref(set);
	}
}

static void test_mask_names(void)
{
	json_t *names = json_pack("[s,s]", "PORT", "TIMEOUT"), *wrong = json_pack("[s]", "PORTS"), *back;
	struct error e = { "" };
	int mask = 0;

	CU_ASSERT_EQUAL(qp_mask_parse(names, &mask, &e), 0);
	CU_ASSERT_EQUAL(mask, IBV_QP_PORT | IBV_QP_TIMEOUT);
	back = qp_mask_json(mask);
	CU_ASSERT(json_equal(names, back));
	CU_ASSERT_EQUAL(qp_mask_parse(wrong, &mask, &e), -EINVAL);
	CU_ASSERT_EQUAL(qp_mask_parse(NULL, &mask, &e), 0);
	CU_ASSERT_EQUAL(mask, 0);
	json_decref(names);
	json_decref(wrong);
	json_decref(back);
}

static void test_queried(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS,
				    .timeout = 14,
				    .path_mtu = IBV_MTU_1024,
				    .sq_psn = 77,
				    .qp_access_flags = IBV_ACCESS_REMOTE_READ };
	struct ibv_qp_cap cap = { .max_send_wr = 64 };
	json_t *q = qp_attr_json(&attr, &cap, 17);

	CU_ASSERT_PTR_NOT_NULL_FATAL(q);
	CU_ASSERT_STRING_EQUAL(json_str(q, "state"), "RTS");
	CU_ASSERT_EQUAL(json_int(q, "timeout", 0), 14);
	CU_ASSERT_EQUAL(json_int(q, "path_mtu", 0), 1024);
	CU_ASSERT_EQUAL(json_int(q, "sq_psn", 0), 77);
	CU_ASSERT_EQUAL(json_int(q, "qpn", 0), 17);
	CU_ASSERT(json_has(q, "access", "REMOTE_READ") && !json_has(q, "access", "REMOTE_WRITE"));
	CU_ASSERT_EQUAL(json_int(json_object_get(q, "cap"), "max_send_wr", 0), 64);
	json_decref(q);
}

static const struct test_case cases[] = {
	{ "masks", test_masks },
	{ "parse", test_parse },
	{ "a path MTU that is none goes to the device", test_no_mtu },
	{ "refused", test_refused },
	{ "mask names", test_mask_names },
	{ "queried", test_queried },
};

TEST_MAIN("qp_attr", cases)
