/* SPDX-License-Identifier: MIT */
#include "attr.h"

#include <infiniband/verbs.h>

#define INIT_CONNECTED (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define INIT_DATAGRAM (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define RTR_PATH (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTR_OPTIONAL (IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define RTS_OPTIONAL_UC (IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE)
#define RTS_OPTIONAL_RC (RTS_OPTIONAL_UC | IBV_QP_MIN_RNR_TIMER)
#define RTS_OPTIONAL_UD (IBV_QP_CUR_STATE | IBV_QP_QKEY)
#define SQD_OPTIONAL_UC (IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE)
#define SQD_OPTIONAL_RC                                                                                                            \
	(SQD_OPTIONAL_UC | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |          \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

#define ROW(type_, from_, to_, required_, optional_)                                                                               \
	{                                                                                                                          \
		IBV_QPT_##type_, IBV_QPS_##from_, IBV_QPS_##to_, (required_), (optional_)                                          \
	}
#define TO_RESET(type_, from_) ROW(type_, from_, RESET, 0, 0)
#define TO_ERR(type_, from_) ROW(type_, from_, ERR, 0, 0)
/* The moves that every type has and that take no attributes. */
#define PLAIN(type_)                                                                                                               \
	TO_RESET(type_, RESET), TO_RESET(type_, INIT), TO_RESET(type_, RTR), TO_RESET(type_, RTS), TO_RESET(type_, SQD),           \
		TO_RESET(type_, ERR), TO_ERR(type_, INIT), TO_ERR(type_, RTR), TO_ERR(type_, RTS), TO_ERR(type_, SQD),             \
		TO_ERR(type_, ERR), ROW(type_, RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY)

const struct transition transition_table[] = {
	PLAIN(RC),
	ROW(RC, RESET, INIT, INIT_CONNECTED, 0),
	ROW(RC, INIT, INIT, 0, INIT_CONNECTED),
	ROW(RC, INIT, RTR, RTR_PATH | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER, RTR_OPTIONAL),
	ROW(RC, RTR, RTS, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
	    RTS_OPTIONAL_RC),
	ROW(RC, RTS, RTS, 0, RTS_OPTIONAL_RC),
	ROW(RC, SQD, RTS, 0, RTS_OPTIONAL_RC),
	ROW(RC, SQD, SQD, 0, SQD_OPTIONAL_RC),

	PLAIN(UC),
	TO_RESET(UC, SQE),
	TO_ERR(UC, SQE),
	ROW(UC, RESET, INIT, INIT_CONNECTED, 0),
	ROW(UC, INIT, INIT, 0, INIT_CONNECTED),
	ROW(UC, INIT, RTR, RTR_PATH, RTR_OPTIONAL),
	ROW(UC, RTR, RTS, IBV_QP_SQ_PSN, RTS_OPTIONAL_UC),
	ROW(UC, RTS, RTS, 0, RTS_OPTIONAL_UC),
	ROW(UC, SQD, RTS, 0, RTS_OPTIONAL_UC),
	ROW(UC, SQD, SQD, 0, SQD_OPTIONAL_UC),
	ROW(UC, SQE, RTS, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS),

	PLAIN(UD),
	TO_RESET(UD, SQE),
	TO_ERR(UD, SQE),
	ROW(UD, RESET, INIT, INIT_DATAGRAM, 0),
	ROW(UD, INIT, INIT, 0, INIT_DATAGRAM),
	ROW(UD, INIT, RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY),
	ROW(UD, RTR, RTS, IBV_QP_SQ_PSN, RTS_OPTIONAL_UD),
	ROW(UD, RTS, RTS, 0, RTS_OPTIONAL_UD),
	ROW(UD, SQD, RTS, 0, RTS_OPTIONAL_UD),
	ROW(UD, SQD, SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY),
	ROW(UD, SQE, RTS, 0, RTS_OPTIONAL_UD),
};
const size_t transition_table_n = sizeof(transition_table) / sizeof(transition_table[0]);

const struct transition *transition_find(int type, int from, int to)
{
	for (size_t i = 0; i < transition_table_n; i++)
		if (transition_table[i].type == type && transition_table[i].from == from && transition_table[i].to == to)
			return &transition_table[i];
	return NULL;
}
