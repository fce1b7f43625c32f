/* SPDX-License-Identifier: MIT */
#include "attr.h"

#include <infiniband/verbs.h>
#include <string.h>

#include "names.h"

#define PSN_MAX 0xffffff
#define U32_MAX 0xffffffffLL

const struct attr attr_table[] = {
	{ "type", ATTR_CREATE, 0, 0, 0, IBV_QPT_RC, "", "RC, UC, UD, or XRC, XRC_SEND, XRC_RECV" },
	{ "signal_all", ATTR_CREATE, 0, 0, 1, 0, "", "every send gives a completion, asked for or not" },
	{ "max_send_wr", ATTR_CAP, 0, 0, U32_MAX, 64, "requests", "depth of the send queue" },
	{ "max_recv_wr", ATTR_CAP, 0, 0, U32_MAX, 64, "requests", "depth of the receive queue" },
	{ "max_send_sge", ATTR_CAP, 0, 0, U32_MAX, 1, "segments", "segments per send" },
	{ "max_recv_sge", ATTR_CAP, 0, 0, U32_MAX, 1, "segments", "segments per receive" },
	{ "max_inline_data", ATTR_CAP, 0, 0, U32_MAX, 0, "bytes", "bytes that a send may carry in its request" },
	{ "timeout", ATTR_MODIFY, IBV_QP_TIMEOUT, 0, 31, 14, "4.096 us x 2^n", "ACK timeout; 0 waits for ever" },
	{ "retry_cnt", ATTR_MODIFY, IBV_QP_RETRY_CNT, 0, 7, 5, "repetitions", "how often an unanswered request is sent again" },
	{ "rnr_retry", ATTR_MODIFY, IBV_QP_RNR_RETRY, 0, 7, 5, "repetitions",
	  "how often a request is sent again after RNR; 7 is for ever" },
	{ "min_rnr_timer", ATTR_MODIFY, IBV_QP_MIN_RNR_TIMER, 0, 31, 12, "code",
	  "the wait that this end asks for in its RNR NAKs: 12 is 0.64 ms, 0 is 655.36 ms" },
	{ "path_mtu", ATTR_MODIFY, IBV_QP_PATH_MTU, 256, 4096, 1024, "bytes", "256, 512, 1024, 2048 or 4096" },
	{ "sq_psn", ATTR_MODIFY, IBV_QP_SQ_PSN, 0, PSN_MAX, -1, "", "first PSN that this end sends" },
	{ "rq_psn", ATTR_MODIFY, IBV_QP_RQ_PSN, 0, PSN_MAX, -1, "", "first PSN that this end expects" },
	{ "max_rd_atomic", ATTR_MODIFY, IBV_QP_MAX_QP_RD_ATOMIC, 0, 255, 4, "requests",
	  "READs and atomics under way as requester" },
	{ "max_dest_rd_atomic", ATTR_MODIFY, IBV_QP_MAX_DEST_RD_ATOMIC, 0, 255, 4, "requests",
	  "READs and atomics under way as responder" },
	{ "access", ATTR_MODIFY, IBV_QP_ACCESS_FLAGS, 0, 0, -1, "",
	  "what the peer may do: REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC" },
	{ "pkey_index", ATTR_MODIFY, IBV_QP_PKEY_INDEX, 0, 65535, 0, "", "index into the P_Key table" },
	{ "port", ATTR_MODIFY, IBV_QP_PORT, 0, 255, -1, "", "port of the device" },
	{ "qkey", ATTR_MODIFY, IBV_QP_QKEY, 0, U32_MAX, 0x11111111, "", "Q_Key of a UD QP" },
	{ "gid_index", ATTR_MODIFY, IBV_QP_AV, 0, 255, -1, "", "index into the GID table" },
	{ "dest_gid", ATTR_MODIFY, IBV_QP_AV, 0, 0, -1, "", "GID of the peer" },
	{ "grh", ATTR_MODIFY, IBV_QP_AV, 0, 1, 1, "", "whether the path has a global route header; RoCE knows no other" },
	{ "hop_limit", ATTR_MODIFY, IBV_QP_AV, 0, 255, 64, "hops", "hop limit or TTL" },
	{ "traffic_class", ATTR_MODIFY, IBV_QP_AV, 0, 255, 0, "", "traffic class or TOS byte" },
	{ "sl", ATTR_MODIFY, IBV_QP_AV, 0, 15, 0, "", "service level" },
	{ "flow_label", ATTR_MODIFY, IBV_QP_AV, 0, 0xfffff, 0, "", "flow label; chooses the UDP source port" },
	{ "dest_qpn", ATTR_MODIFY, IBV_QP_DEST_QPN, 0, PSN_MAX, -1, "", "QP number of the peer" },
	{ "cur_state", ATTR_MODIFY, IBV_QP_CUR_STATE, 0, 0, -1, "", "the state that the caller believes the QP to be in" },
	{ "en_sqd_async_notify", ATTR_MODIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY, 0, 1, 0, "",
	  "ask for SQ_DRAINED when the queue is drained" },
};
const size_t attr_table_n = sizeof(attr_table) / sizeof(attr_table[0]);

const struct attr *attr_find(const char *name)
{
	for (size_t i = 0; i < attr_table_n; i++)
		if (!strcmp(attr_table[i].name, name))
			return &attr_table[i];
	return NULL;
}

static const struct name mask_rows[] = {
	{ "STATE", IBV_QP_STATE, "" },
	{ "CUR_STATE", IBV_QP_CUR_STATE, "" },
	{ "EN_SQD_ASYNC_NOTIFY", IBV_QP_EN_SQD_ASYNC_NOTIFY, "" },
	{ "ACCESS_FLAGS", IBV_QP_ACCESS_FLAGS, "" },
	{ "PKEY_INDEX", IBV_QP_PKEY_INDEX, "" },
	{ "PORT", IBV_QP_PORT, "" },
	{ "QKEY", IBV_QP_QKEY, "" },
	{ "AV", IBV_QP_AV, "" },
	{ "PATH_MTU", IBV_QP_PATH_MTU, "" },
	{ "TIMEOUT", IBV_QP_TIMEOUT, "" },
	{ "RETRY_CNT", IBV_QP_RETRY_CNT, "" },
	{ "RNR_RETRY", IBV_QP_RNR_RETRY, "" },
	{ "RQ_PSN", IBV_QP_RQ_PSN, "" },
	{ "MAX_QP_RD_ATOMIC", IBV_QP_MAX_QP_RD_ATOMIC, "" },
	{ "ALT_PATH", IBV_QP_ALT_PATH, "" },
	{ "MIN_RNR_TIMER", IBV_QP_MIN_RNR_TIMER, "" },
	{ "SQ_PSN", IBV_QP_SQ_PSN, "" },
	{ "MAX_DEST_RD_ATOMIC", IBV_QP_MAX_DEST_RD_ATOMIC, "" },
	{ "PATH_MIG_STATE", IBV_QP_PATH_MIG_STATE, "" },
	{ "CAP", IBV_QP_CAP, "" },
	{ "DEST_QPN", IBV_QP_DEST_QPN, "" },
};
const struct name_table names_attr_mask = {
	.what = "attribute mask bit",
	.rows = mask_rows,
	.n = sizeof(mask_rows) / sizeof(mask_rows[0]),
};

uint64_t timer_ack_ns(unsigned timeout)
{
	if (timeout == 0)
		return 0;
	return 4096ULL << (timeout & 31);
}

uint64_t timer_rnr_ns(unsigned code)
{
	/* In units of 10 us. */
	static const unsigned steps[32] = {
		65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
		256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return steps[code & 31] * 10000ULL;
}

static const struct {
	int bytes;
	enum ibv_mtu value;
} mtus[] = {
	{ 256, IBV_MTU_256 }, { 512, IBV_MTU_512 }, { 1024, IBV_MTU_1024 }, { 2048, IBV_MTU_2048 }, { 4096, IBV_MTU_4096 },
};

int mtu_to_enum(int64_t bytes)
{
	for (size_t i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++)
		if (mtus[i].bytes == bytes)
			return (int)mtus[i].value;
	return 0;
}

int mtu_from_enum(int value)
{
	for (size_t i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++)
		if ((int)mtus[i].value == value)
			return mtus[i].bytes;
	return 0;
}
