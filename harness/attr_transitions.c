/* SPDX-License-Identifier: MIT */
#include "attr.h"

#include <infiniband/verbs.h>
#include <stddef.h>

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

/* Of an extended reliable connection the end that sends answers nothing, and the end that receives asks nothing (IBTA A14). */
#define SQD_OPTIONAL_XRC_SEND                                                                                                      \
	(SQD_OPTIONAL_UC | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
#define SQD_OPTIONAL_XRC_RECV (SQD_OPTIONAL_UC | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

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

	PLAIN(XRC_SEND),
	ROW(XRC_SEND, RESET, INIT, INIT_CONNECTED, 0),
	ROW(XRC_SEND, INIT, INIT, 0, INIT_CONNECTED),
	ROW(XRC_SEND, INIT, RTR, RTR_PATH, RTR_OPTIONAL),
	ROW(XRC_SEND, RTR, RTS, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
	    RTS_OPTIONAL_UC),
	ROW(XRC_SEND, RTS, RTS, 0, RTS_OPTIONAL_UC),
	ROW(XRC_SEND, SQD, RTS, 0, RTS_OPTIONAL_UC),
	ROW(XRC_SEND, SQD, SQD, 0, SQD_OPTIONAL_XRC_SEND),

	PLAIN(XRC_RECV),
	ROW(XRC_RECV, RESET, INIT, INIT_CONNECTED, 0),
	ROW(XRC_RECV, INIT, INIT, 0, INIT_CONNECTED),
	ROW(XRC_RECV, INIT, RTR, RTR_PATH | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER, RTR_OPTIONAL),
	ROW(XRC_RECV, RTR, RTS, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN, RTS_OPTIONAL_RC),
	ROW(XRC_RECV, RTS, RTS, 0, RTS_OPTIONAL_RC),
	ROW(XRC_RECV, SQD, RTS, 0, RTS_OPTIONAL_RC),
	ROW(XRC_RECV, SQD, SQD, 0, SQD_OPTIONAL_XRC_RECV),

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

/* Figures of the state machine draw Error as reachable from any state; Linux, and other readings, need Init first. */
const char *transition_contested(int from, int to)
{
	if (from == IBV_QPS_RESET && to == IBV_QPS_ERR)
		return "the state diagram lets Error be reached from any state, the list of transitions does not";
	return NULL;
}

int transition_required_into(int type, int to)
{
	int required = 0;

	for (size_t i = 0; i < transition_table_n; i++)
		if (transition_table[i].type == type && transition_table[i].to == to)
			required |= transition_table[i].required;
	return required;
}

const struct attr_bit attr_bit_table[] = {
	{ IBV_QP_STATE, "IBTA 10.3.1", "the state to move to" },
	{ IBV_QP_CUR_STATE, "IBTA 11.2.5.2", "the state that the caller takes the QP to be in" },
	{ IBV_QP_EN_SQD_ASYNC_NOTIFY, "IBTA 10.3.1", "SQ_DRAINED is wanted" },
	{ IBV_QP_ACCESS_FLAGS, "IBTA C9-168", "what the peer may do" },
	{ IBV_QP_PKEY_INDEX, "IBTA 9.6.1.1", "the P_Key that goes out and has to come in" },
	{ IBV_QP_PORT, "IBTA 11.2.5.2", "the port" },
	{ IBV_QP_QKEY, "IBTA 9.6.1.4", "the Q_Key that has to come in" },
	{ IBV_QP_AV, "IBTA CA17-11", "the path to the peer" },
	{ IBV_QP_PATH_MTU, "IBTA C9-92", "the longest payload of a packet" },
	{ IBV_QP_TIMEOUT, "IBTA C9-140", "how long an ACK is waited for" },
	{ IBV_QP_RETRY_CNT, "IBTA C9-142", "how often a request is sent again" },
	{ IBV_QP_RNR_RETRY, "IBTA 9.7.5.2.8", "how often after an RNR NAK" },
	{ IBV_QP_RQ_PSN, "IBTA 9.7.1", "the first PSN that is expected" },
	{ IBV_QP_MAX_QP_RD_ATOMIC, "IBTA 9.7.3", "READs and atomics under way as requester" },
	{ IBV_QP_ALT_PATH, "IBTA 9.7.6.1.3", "the path to migrate to" },
	{ IBV_QP_MIN_RNR_TIMER, "IBTA C9-130", "the wait that RNR NAKs ask for" },
	{ IBV_QP_SQ_PSN, "IBTA 9.7.1", "the first PSN that is sent" },
	{ IBV_QP_MAX_DEST_RD_ATOMIC, "IBTA 9.7.4.1.4", "READs and atomics under way as responder" },
	{ IBV_QP_PATH_MIG_STATE, "IBTA 9.7.6.1.3", "whether the path migrates" },
	{ IBV_QP_CAP, "IBTA 11.2.5.2", "the depths of the queues" },
	{ IBV_QP_DEST_QPN, "IBTA 9.6.1.1", "the QP at the other end" },
};
const size_t attr_bit_table_n = sizeof(attr_bit_table) / sizeof(attr_bit_table[0]);

static const struct name mask_trial_rows[] = {
	{ "exact", MASK_EXACT, "what the move requires, and nothing else" },
	{ "missing", MASK_MISSING, "once for each bit that the move requires: without that one" },
	{ "forbidden", MASK_FORBIDDEN, "once for each bit that the move does not take: with that one" },
};
const struct name_table names_mask_trial = {
	.what = "kind of mask",
	.rows = mask_trial_rows,
	.n = sizeof(mask_trial_rows) / sizeof(mask_trial_rows[0]),
};

int mask_trial_bits(enum mask_trial trial, int type, int from, int to)
{
	const struct transition *t = transition_find(type, from, to);
	int all = 0;

	if (!t || trial == MASK_EXACT)
		return 0;
	if (trial == MASK_MISSING)
		return t->required;
	for (size_t i = 0; i < attr_bit_table_n; i++)
		all |= attr_bit_table[i].bit;
	return all & ~(IBV_QP_STATE | t->required | t->optional);
}
