/* SPDX-License-Identifier: MIT */
/*
 * The field's own names: IBV_ names without prefix. Tables that code, tests, docs, schema and help
 * share. Values are those of <infiniband/verbs.h>; nothing here links libibverbs.
 */
#ifndef QD_NAMES_H
#define QD_NAMES_H

#include <stdbool.h>
#include <stddef.h>

struct name {
	const char *text; /* "RNR_RETRY_EXC_ERR" */
	int value;        /* IBV_WC_RNR_RETRY_EXC_ERR */
	const char *help; /* one line */
};

struct name_table {
	const char *what; /* "WC status" */
	const struct name *rows;
	size_t n;
};

extern const struct name_table names_status;  /* IBV_WC_* */
extern const struct name_table names_state;   /* IBV_QPS_* : RESET INIT RTR RTS SQD SQE ERR */
extern const struct name_table names_event;   /* IBV_EVENT_* : QP_ACCESS_ERR CQ_ERR SRQ_LIMIT_REACHED ... */
extern const struct name_table names_op;      /* IBV_WR_* : SEND SEND_WITH_IMM SEND_WITH_INV WRITE WRITE_WITH_IMM READ CMP_AND_SWP
						 FETCH_AND_ADD LOCAL_INV BIND_MW (WRITE is IBV_WR_RDMA_WRITE) */
extern const struct name_table names_access;  /* LOCAL_WRITE REMOTE_WRITE REMOTE_READ REMOTE_ATOMIC MW_BIND */
extern const struct name_table names_qp_type; /* RC UC UD XRC */
/* Each of its requests is answered, arrives once, and is sent again if it has to be. */
bool qp_type_is_reliable(const char *type);
extern const struct name_table names_cm_event; /* RDMA_CM_EVENT_* without prefix, rdmacm's order */
extern const struct name_table
	names_cm_reject;                    /* why a connect came to nothing: the reasons of a REJ by their numbers, then events */
extern const struct name_table names_errno; /* 0 EINVAL ENOMEM EBUSY ... those verbs return */
extern const struct name_table names_wc_opcode; /* IBV_WC_* opcodes: SEND RDMA_WRITE RECV ... */

/* NULL when there is none. */
const struct name *name_find(const struct name_table *table, const char *text);
const char *name_of(const struct name_table *table, int value); /* never NULL: "?" */
/* The nearest row by edit distance, for "did you mean"; NULL when nothing is near. */
const struct name *name_nearest(const struct name_table *table, const char *text);

/* Edit distance with case folded and '-' taken for '_'; NAME_DISTANCE_MAX when either is longer than that. */
#define NAME_DISTANCE_MAX 64
unsigned name_distance(const char *a, const char *b);
/* Near enough to be suggested for a misspelt word. */
bool name_is_near(const char *text, const char *candidate);

/* What an asynchronous event (IBV_EVENT_*) is about (ibv_get_async_event(3), its `element`). */
enum event_subject { EVENT_OF_DEV, EVENT_OF_PORT, EVENT_OF_QP, EVENT_OF_CQ, EVENT_OF_SRQ };
enum event_subject event_subject(int event);

#endif
