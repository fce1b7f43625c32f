/* SPDX-License-Identifier: MIT */
#include "names.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#define TABLE(what_, rows_)                                                                                                        \
	{                                                                                                                          \
		.what = (what_), .rows = (rows_), .n = sizeof(rows_) / sizeof((rows_)[0])                                          \
	}

static const struct name status_rows[] = {
	{ "SUCCESS", IBV_WC_SUCCESS, "the request ended well" },
	{ "LOC_LEN_ERR", IBV_WC_LOC_LEN_ERR,
	  "a length does not fit: a message longer than its receive, or than the device can send" },
	{ "LOC_QP_OP_ERR", IBV_WC_LOC_QP_OP_ERR, "the local QP cannot execute this request" },
	{ "LOC_EEC_OP_ERR", IBV_WC_LOC_EEC_OP_ERR, "reliable datagram only: the local EE context failed" },
	{ "LOC_PROT_ERR", IBV_WC_LOC_PROT_ERR, "a local buffer is not in a memory region with the right it needs" },
	{ "WR_FLUSH_ERR", IBV_WC_WR_FLUSH_ERR, "not executed: the QP was in the error state" },
	{ "MW_BIND_ERR", IBV_WC_MW_BIND_ERR, "a memory window could not be bound" },
	{ "BAD_RESP_ERR", IBV_WC_BAD_RESP_ERR, "the responder answered with an opcode that does not fit" },
	{ "LOC_ACCESS_ERR", IBV_WC_LOC_ACCESS_ERR, "responder: a remote write with immediate hit memory that is protected" },
	{ "REM_INV_REQ_ERR", IBV_WC_REM_INV_REQ_ERR, "the responder called the request invalid" },
	{ "REM_ACCESS_ERR", IBV_WC_REM_ACCESS_ERR, "the responder denied access: key, range or right" },
	{ "REM_OP_ERR", IBV_WC_REM_OP_ERR, "the responder could not complete the operation" },
	{ "RETRY_EXC_ERR", IBV_WC_RETRY_EXC_ERR, "no answer after retry_cnt repetitions" },
	{ "RNR_RETRY_EXC_ERR", IBV_WC_RNR_RETRY_EXC_ERR, "the responder had no receive after rnr_retry repetitions" },
	{ "LOC_RDD_VIOL_ERR", IBV_WC_LOC_RDD_VIOL_ERR, "reliable datagram only: domains differ" },
	{ "REM_INV_RD_REQ_ERR", IBV_WC_REM_INV_RD_REQ_ERR, "reliable datagram only: invalid request" },
	{ "REM_ABORT_ERR", IBV_WC_REM_ABORT_ERR, "the operation was aborted" },
	{ "INV_EECN_ERR", IBV_WC_INV_EECN_ERR, "reliable datagram only: no such EE context" },
	{ "INV_EEC_STATE_ERR", IBV_WC_INV_EEC_STATE_ERR, "reliable datagram only: EE context in a wrong state" },
	{ "FATAL_ERR", IBV_WC_FATAL_ERR, "a fatal error of the device" },
	{ "RESP_TIMEOUT_ERR", IBV_WC_RESP_TIMEOUT_ERR, "no response in time" },
	{ "GENERAL_ERR", IBV_WC_GENERAL_ERR, "an error of another kind" },
	{ "TM_ERR", IBV_WC_TM_ERR, "tag matching failed" },
	{ "TM_RNDV_INCOMPLETE", IBV_WC_TM_RNDV_INCOMPLETE, "tag matching: a rendezvous has to be finished by software" },
};
const struct name_table names_status = TABLE("WC status", status_rows);

static const struct name state_rows[] = {
	{ "RESET", IBV_QPS_RESET, "just made, or taken back to the beginning" },
	{ "INIT", IBV_QPS_INIT, "receives may be posted; packets are dropped" },
	{ "RTR", IBV_QPS_RTR, "ready to receive: answers, does not send" },
	{ "RTS", IBV_QPS_RTS, "ready to send" },
	{ "SQD", IBV_QPS_SQD, "send queue drained or draining" },
	{ "SQE", IBV_QPS_SQE, "send queue in error (UC, UD); receives go on" },
	{ "ERR", IBV_QPS_ERR, "everything is flushed" },
};
const struct name_table names_state = TABLE("QP state", state_rows);

static const struct name event_rows[] = {
	{ "CQ_ERR", IBV_EVENT_CQ_ERR, "a completion queue overflowed or failed" },
	{ "QP_FATAL", IBV_EVENT_QP_FATAL, "an error keeps this QP from reporting by completions" },
	{ "QP_REQ_ERR", IBV_EVENT_QP_REQ_ERR, "this QP refused an invalid request" },
	{ "QP_ACCESS_ERR", IBV_EVENT_QP_ACCESS_ERR, "this QP refused a request for lack of a right" },
	{ "COMM_EST", IBV_EVENT_COMM_EST, "a first message arrived in RTR" },
	{ "SQ_DRAINED", IBV_EVENT_SQ_DRAINED, "the send queue is drained (SQD)" },
	{ "PATH_MIG", IBV_EVENT_PATH_MIG, "the alternate path is in use" },
	{ "PATH_MIG_ERR", IBV_EVENT_PATH_MIG_ERR, "migration to the alternate path failed" },
	{ "DEVICE_FATAL", IBV_EVENT_DEVICE_FATAL, "the device failed" },
	{ "PORT_ACTIVE", IBV_EVENT_PORT_ACTIVE, "the port is up" },
	{ "PORT_ERR", IBV_EVENT_PORT_ERR, "the port went down" },
	{ "LID_CHANGE", IBV_EVENT_LID_CHANGE, "the LID changed" },
	{ "PKEY_CHANGE", IBV_EVENT_PKEY_CHANGE, "the P_Key table changed" },
	{ "SM_CHANGE", IBV_EVENT_SM_CHANGE, "another subnet manager took over" },
	{ "SRQ_ERR", IBV_EVENT_SRQ_ERR, "a shared receive queue failed" },
	{ "SRQ_LIMIT_REACHED", IBV_EVENT_SRQ_LIMIT_REACHED, "fewer receives than the SRQ's limit are left" },
	{ "QP_LAST_WQE_REACHED", IBV_EVENT_QP_LAST_WQE_REACHED, "a QP with an SRQ has used its last receive" },
	{ "CLIENT_REREGISTER", IBV_EVENT_CLIENT_REREGISTER, "the subnet manager asks clients to register again" },
	{ "GID_CHANGE", IBV_EVENT_GID_CHANGE, "the GID table changed" },
	{ "WQ_FATAL", IBV_EVENT_WQ_FATAL, "a work queue failed" },
};
const struct name_table names_event = TABLE("async event", event_rows);

static const struct name op_rows[] = {
	{ "SEND", IBV_WR_SEND, "a message into a receive" },
	{ "SEND_WITH_IMM", IBV_WR_SEND_WITH_IMM, "a message with immediate data" },
	{ "SEND_WITH_INV", IBV_WR_SEND_WITH_INV, "a message that invalidates a key of the peer" },
	{ "WRITE", IBV_WR_RDMA_WRITE, "into the peer's memory" },
	{ "WRITE_WITH_IMM", IBV_WR_RDMA_WRITE_WITH_IMM, "into the peer's memory, uses a receive" },
	{ "READ", IBV_WR_RDMA_READ, "from the peer's memory" },
	{ "CMP_AND_SWP", IBV_WR_ATOMIC_CMP_AND_SWP, "atomic compare and swap, 8 bytes" },
	{ "FETCH_AND_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, "atomic add, 8 bytes" },
	{ "LOCAL_INV", IBV_WR_LOCAL_INV, "invalidates a local key" },
	{ "BIND_MW", IBV_WR_BIND_MW, "binds a memory window" },
};
const struct name_table names_op = TABLE("operation", op_rows);

static const struct name access_rows[] = {
	{ "LOCAL_WRITE", IBV_ACCESS_LOCAL_WRITE, "the device may write here for its own side" },
	{ "REMOTE_WRITE", IBV_ACCESS_REMOTE_WRITE, "the peer may write" },
	{ "REMOTE_READ", IBV_ACCESS_REMOTE_READ, "the peer may read" },
	{ "REMOTE_ATOMIC", IBV_ACCESS_REMOTE_ATOMIC, "the peer may use atomics" },
	{ "MW_BIND", IBV_ACCESS_MW_BIND, "windows may be bound here" },
};
const struct name_table names_access = TABLE("access right", access_rows);

static const struct name qp_type_rows[] = {
	{ "RC", IBV_QPT_RC, "reliable connection" },
	{ "UC", IBV_QPT_UC, "unreliable connection" },
	{ "UD", IBV_QPT_UD, "unreliable datagram" },
	{ "XRC_SEND", IBV_QPT_XRC_SEND, "the end of an extended reliable connection that sends" },
	{ "XRC_RECV", IBV_QPT_XRC_RECV, "the end of one that receives, by SRQs alone" },
	{ "XRC", IBV_QPT_XRC_SEND, "extended reliable connection: of a pair the first end sends, the other receives" },
};
const struct name_table names_qp_type = TABLE("QP type", qp_type_rows);

static const struct name cm_event_rows[] = {
	{ "ADDR_RESOLVED", RDMA_CM_EVENT_ADDR_RESOLVED, "address resolved" },
	{ "ADDR_ERROR", RDMA_CM_EVENT_ADDR_ERROR, "address not resolved" },
	{ "ROUTE_RESOLVED", RDMA_CM_EVENT_ROUTE_RESOLVED, "route resolved" },
	{ "ROUTE_ERROR", RDMA_CM_EVENT_ROUTE_ERROR, "route not resolved" },
	{ "CONNECT_REQUEST", RDMA_CM_EVENT_CONNECT_REQUEST, "a peer asks for a connection" },
	{ "CONNECT_RESPONSE", RDMA_CM_EVENT_CONNECT_RESPONSE, "the peer accepted, no QP bound" },
	{ "CONNECT_ERROR", RDMA_CM_EVENT_CONNECT_ERROR, "connecting failed" },
	{ "UNREACHABLE", RDMA_CM_EVENT_UNREACHABLE, "the peer does not answer, or its neighbour changed" },
	{ "REJECTED", RDMA_CM_EVENT_REJECTED, "the peer refused" },
	{ "ESTABLISHED", RDMA_CM_EVENT_ESTABLISHED, "connected" },
	{ "DISCONNECTED", RDMA_CM_EVENT_DISCONNECTED, "disconnected" },
	{ "DEVICE_REMOVAL", RDMA_CM_EVENT_DEVICE_REMOVAL, "the device goes away" },
	{ "MULTICAST_JOIN", RDMA_CM_EVENT_MULTICAST_JOIN, "joined a multicast group" },
	{ "MULTICAST_ERROR", RDMA_CM_EVENT_MULTICAST_ERROR, "multicast join failed" },
	{ "ADDR_CHANGE", RDMA_CM_EVENT_ADDR_CHANGE, "the address moved to another device" },
	{ "TIMEWAIT_EXIT", RDMA_CM_EVENT_TIMEWAIT_EXIT, "the QPN may be used again" },
};

bool qp_type_is_reliable(const char *type)
{
	return !strcmp(type, "RC") || !strncmp(type, "XRC", 3);
}
const struct name_table names_cm_event = TABLE("CM event", cm_event_rows);

/* Numbers of the REJ message; behind them, apart, the events that end a connect without one. */
#define NO_REJECT 1000
static const struct name cm_reject_rows[] = {
	{ "NO_QP", 1, "no QP is left" },
	{ "NO_EEC", 2, "no end-to-end context is left" },
	{ "NO_RESOURCES", 3, "something else is used up" },
	{ "TIMEOUT", 4, "the answer came too late" },
	{ "UNSUPPORTED", 5, "not supported" },
	{ "INVALID_COMM_ID", 6, "no such communication" },
	{ "INVALID_COMM_INSTANCE", 7, "another instance of it" },
	{ "INVALID_SERVICE_ID", 8, "nobody listens there" },
	{ "INVALID_TRANSPORT_TYPE", 9, "another transport service" },
	{ "STALE_CONN", 10, "the peer knows this QPN from a connection that it has not ended" },
	{ "RDC_NOT_EXIST", 11, "no such reliable datagram channel" },
	{ "INVALID_GID", 12, "the path's GID cannot be" },
	{ "INVALID_LID", 13, "the path's LID cannot be" },
	{ "INVALID_SL", 14, "the path's service level cannot be" },
	{ "INVALID_TRAFFIC_CLASS", 15, "the path's traffic class cannot be" },
	{ "INVALID_HOP_LIMIT", 16, "the path's hop limit cannot be" },
	{ "INVALID_PACKET_RATE", 17, "the path's packet rate cannot be" },
	{ "INVALID_ALT_GID", 18, "the alternate path's GID cannot be" },
	{ "INVALID_ALT_LID", 19, "the alternate path's LID cannot be" },
	{ "INVALID_ALT_SL", 20, "the alternate path's service level cannot be" },
	{ "INVALID_ALT_TRAFFIC_CLASS", 21, "the alternate path's traffic class cannot be" },
	{ "INVALID_ALT_HOP_LIMIT", 22, "the alternate path's hop limit cannot be" },
	{ "INVALID_ALT_PACKET_RATE", 23, "the alternate path's packet rate cannot be" },
	{ "PORT_CM_REDIRECT", 24, "another port does that" },
	{ "PORT_REDIRECT", 25, "another port does that" },
	{ "INVALID_MTU", 26, "the path MTU cannot be" },
	{ "INSUFFICIENT_RESP_RESOURCES", 27, "fewer READs and atomics than asked for" },
	{ "CONSUMER_DEFINED", 28, "the peer's program said no" },
	{ "INVALID_RNR_RETRY", 29, "the RNR retry count cannot be" },
	{ "DUPLICATE_LOCAL_COMM_ID", 30, "the communication ID is in use" },
	{ "INVALID_CLASS_VERSION", 31, "another version of the CM" },
	{ "INVALID_FLOW_LABEL", 32, "the path's flow label cannot be" },
	{ "INVALID_ALT_FLOW_LABEL", 33, "the alternate path's flow label cannot be" },
	{ "ADDR_ERROR", NO_REJECT + RDMA_CM_EVENT_ADDR_ERROR, "no rejection: the peer's address leads nowhere" },
	{ "ROUTE_ERROR", NO_REJECT + RDMA_CM_EVENT_ROUTE_ERROR, "no rejection: there is no route" },
	{ "UNREACHABLE", NO_REJECT + RDMA_CM_EVENT_UNREACHABLE, "no rejection: nobody has answered" },
};
const struct name_table names_cm_reject = TABLE("reason to refuse", cm_reject_rows);

static const struct name errno_rows[] = {
	{ "0", 0, "success" },
	{ "EPERM", EPERM, "not permitted" },
	{ "ENOENT", ENOENT, "no such object" },
	{ "EIO", EIO, "input/output error" },
	{ "EAGAIN", EAGAIN, "try again" },
	{ "ENOMEM", ENOMEM, "no memory, or the queue is full" },
	{ "EACCES", EACCES, "no access" },
	{ "EFAULT", EFAULT, "bad address" },
	{ "EBUSY", EBUSY, "still in use" },
	{ "EEXIST", EEXIST, "exists already" },
	{ "ENODEV", ENODEV, "no such device" },
	{ "EINVAL", EINVAL, "invalid argument" },
	{ "ENOSPC", ENOSPC, "no space" },
	{ "ERANGE", ERANGE, "out of range" },
	{ "ENOSYS", ENOSYS, "not implemented" },
	{ "ENODATA", ENODATA, "no data" },
	{ "EPROTO", EPROTO, "protocol error" },
	{ "EMSGSIZE", EMSGSIZE, "message too long" },
	{ "EPROTONOSUPPORT", EPROTONOSUPPORT, "protocol not supported" },
	{ "EOPNOTSUPP", EOPNOTSUPP, "operation not supported" },
	{ "EADDRNOTAVAIL", EADDRNOTAVAIL, "address not available" },
	{ "ENETDOWN", ENETDOWN, "network is down" },
	{ "ENETUNREACH", ENETUNREACH, "network is unreachable" },
	{ "ECONNRESET", ECONNRESET, "connection reset" },
	{ "EISCONN", EISCONN, "already connected" },
	{ "ENOTCONN", ENOTCONN, "not connected" },
	{ "ETIMEDOUT", ETIMEDOUT, "timed out" },
	{ "ECONNREFUSED", ECONNREFUSED, "connection refused" },
	{ "EHOSTUNREACH", EHOSTUNREACH, "host is unreachable" },
	{ "ECANCELED", ECANCELED, "cancelled" },
};
const struct name_table names_errno = TABLE("errno", errno_rows);

static const struct name wc_opcode_rows[] = {
	{ "SEND", IBV_WC_SEND, "a send" },
	{ "RDMA_WRITE", IBV_WC_RDMA_WRITE, "a write" },
	{ "RDMA_READ", IBV_WC_RDMA_READ, "a read" },
	{ "COMP_SWAP", IBV_WC_COMP_SWAP, "a compare and swap" },
	{ "FETCH_ADD", IBV_WC_FETCH_ADD, "an atomic add" },
	{ "BIND_MW", IBV_WC_BIND_MW, "a window bind" },
	{ "LOCAL_INV", IBV_WC_LOCAL_INV, "a local invalidate" },
	{ "TSO", IBV_WC_TSO, "a segmented send" },
	{ "ATOMIC_WRITE", IBV_WC_ATOMIC_WRITE, "an atomic write" },
	{ "RECV", IBV_WC_RECV, "a receive" },
	{ "RECV_RDMA_WITH_IMM", IBV_WC_RECV_RDMA_WITH_IMM, "a receive used by a write with immediate" },
};
const struct name_table names_wc_opcode = TABLE("WC opcode", wc_opcode_rows);

const struct name *name_find(const struct name_table *table, const char *text)
{
	for (size_t i = 0; i < table->n; i++)
		if (!strcmp(table->rows[i].text, text))
			return &table->rows[i];
	return NULL;
}

const char *name_of(const struct name_table *table, int value)
{
	for (size_t i = 0; i < table->n; i++)
		if (table->rows[i].value == value)
			return table->rows[i].text;
	return "?";
}

static char fold(char c)
{
	if (c >= 'a' && c <= 'z')
		return (char)(c - 'a' + 'A');
	return c == '-' ? '_' : c;
}

unsigned name_distance(const char *a, const char *b)
{
	unsigned row[NAME_DISTANCE_MAX + 1];
	size_t na = strlen(a), nb = strlen(b);

	if (na > NAME_DISTANCE_MAX || nb > NAME_DISTANCE_MAX)
		return NAME_DISTANCE_MAX;
	for (size_t j = 0; j <= nb; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned best = diagonal + (fold(a[i - 1]) != fold(b[j - 1]));

			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[nb];
}

bool name_is_near(const char *text, const char *candidate)
{
	size_t n = strlen(candidate);
	/* In a word of one or two letters any change makes another word. */
	unsigned limit = n <= 2 ? 0 : n <= 3 ? 1 : n <= 6 ? 2 : (unsigned)(n / 3);

	return name_distance(text, candidate) <= limit;
}

const struct name *name_nearest(const struct name_table *table, const char *text)
{
	const struct name *best = NULL;
	unsigned best_distance = NAME_DISTANCE_MAX;

	for (size_t i = 0; i < table->n; i++) {
		unsigned d = name_distance(text, table->rows[i].text);

		if (d < best_distance && name_is_near(text, table->rows[i].text)) {
			best = &table->rows[i];
			best_distance = d;
		}
	}
	return best;
}

enum event_subject event_subject(int event)
{
	switch (event) {
	case IBV_EVENT_CQ_ERR:
		return EVENT_OF_CQ;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return EVENT_OF_SRQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
	case IBV_EVENT_WQ_FATAL:
		return EVENT_OF_QP;
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
		return EVENT_OF_PORT;
	default:
		return EVENT_OF_DEV;
	}
}
