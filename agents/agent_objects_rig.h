/* SPDX-License-Identifier: MIT */
/* For tests: an agent with a device, a PD, a CQ, the MRs `tx` and `rx` and the RC QP `p.a`, which goes the usual way up. */
#ifndef QD_AGENT_OBJECTS_RIG_H
#define QD_AGENT_OBJECTS_RIG_H

#include <CUnit/Basic.h>

#include "agent_rig.h"
#include "fake_verbs.h"

#define REQ(op) "{s:s}", "op", op

static inline int set_up_objects(void)
{
	int rc = rig_rc("{s:s, s:s, s:s}", "op", "device_open", "name", "dev.a", "device", "fake0");

	if (rc == 0)
		rc = rig_rc("{s:s, s:s, s:s}", "op", "pd_create", "name", "pd", "dev", "dev.a");
	if (rc == 0)
		rc = rig_rc("{s:s, s:s, s:s, s:i}", "op", "cq_create", "name", "cq", "dev", "dev.a", "depth", 64);
	if (rc == 0)
		rc = rig_rc("{s:s, s:s, s:s, s:i, s:[s]}", "op", "mr_create", "name", "tx", "pd", "pd", "bytes", 4096, "access",
			    "LOCAL_WRITE");
	if (rc == 0)
		rc = rig_rc("{s:s, s:s, s:s, s:i, s:[s]}", "op", "mr_create", "name", "rx", "pd", "pd", "bytes", 4096, "access",
			    "LOCAL_WRITE");
	if (rc == 0)
		rc = rig_rc("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:{s:i}}", "op", "qp_create", "name", "p.a", "pd", "pd", "type",
			    "RC", "send_cq", "cq", "recv_cq", "cq", "rx", "rx", "cap", "max_recv_wr", 16);
	return rc;
}

static inline int move(const char *to)
{
	return rig_rc("{s:s, s:s, s:s, s:{s:i, s:s, s:[s], s:i, s:i, s:i}, s:s}", "op", "qp_modify", "name", "p.a", "to", to, "set",
		      "dest_qpn", 5, "dest_gid", "::ffff:10.0.0.2", "access", "REMOTE_WRITE", "rq_psn", 7, "sq_psn", 9, "path_mtu",
		      1024, "by", "connect");
}

static inline int to_rts(void)
{
	int rc = move("INIT");

	if (rc == 0)
		rc = move("RTR");
	return rc ? rc : move("RTS");
}

static inline void tear_down(void)
{
	json_t *reply = rig_ask(REQ("release"));

	CU_ASSERT_EQUAL(json_int(reply, "rc", -1), 0);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(reply, "left")), 0);
	CU_ASSERT_EQUAL(fake.live, 0);
	rig_stop();
}

static inline void set_up(void)
{
	fake.post_room = FAKE_MAX;
	fake.fail_at = 0;
	rig_start();
	CU_ASSERT_EQUAL_FATAL(set_up_objects(), 0);
}

static inline void complete(uint64_t wr_id, enum ibv_wc_status status)
{
	fake_complete(fake.cq,
		      (struct ibv_wc){ .wr_id = wr_id, .status = status, .qp_num = fake.qp->qp.qp_num, .opcode = IBV_WC_SEND });
}

#endif
