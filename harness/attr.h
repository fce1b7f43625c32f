/* SPDX-License-Identifier: MIT */
/*
 * QP attributes and the transitions that take them: one table for loader, plan, agent, docs.
 * Masks: IBTA volume 1, 11.2.5.2 (Modify QP), as in the qp_state_table of the kernel's
 * drivers/infiniband/core/verbs.c.
 */
#ifndef QD_ATTR_H
#define QD_ATTR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "names.h"

enum attr_kind {
	ATTR_INVALID,
	ATTR_MODIFY, /* goes into ibv_modify_qp */
	ATTR_CAP,    /* goes into ibv_create_qp's cap */
	ATTR_CREATE, /* another argument of ibv_create_qp: type, signal_all */
	NUM_ATTR_KINDS,
};

struct attr {
	const char *name; /* "timeout" */
	enum attr_kind kind;
	int mask;         /* IBV_QP_* bit(s), 0 unless ATTR_MODIFY; traffic_class, hop_limit, sl,
			     flow_label, gid_index and dest_gid share IBV_QP_AV */
	int64_t min, max; /* what the field can hold; beyond it a file is refused */
	int64_t def;      /* what the plan fills in; -1: nothing of its own (chosen from the seed, by the lab, or by the peer) */
	const char *unit; /* "4.096 us x 2^n", "bytes", "" */
	const char *help;
};

extern const struct attr attr_table[];
extern const size_t attr_table_n;
const struct attr *attr_find(const char *name);

/* One bit of an attribute mask and its name as `leave_out`, `add` and state records write it:
 * STATE CUR_STATE EN_SQD_ASYNC_NOTIFY ACCESS_FLAGS PKEY_INDEX PORT QKEY AV PATH_MTU TIMEOUT RETRY_CNT
 * RNR_RETRY RQ_PSN MAX_QP_RD_ATOMIC ALT_PATH MIN_RNR_TIMER SQ_PSN MAX_DEST_RD_ATOMIC PATH_MIG_STATE
 * CAP DEST_QPN */
extern const struct name_table names_attr_mask;

struct transition {
	int type;     /* IBV_QPT_* */
	int from, to; /* IBV_QPS_* */
	int required; /* without IBV_QP_STATE */
	int optional;
};

extern const struct transition transition_table[];
extern const size_t transition_table_n;
/* NULL when the specification has no such move. */
const struct transition *transition_find(int type, int from, int to);
/* A move that this table does not have, and of which the specification's readers say both: NULL, or what they say. */
const char *transition_contested(int from, int to);
/* What a move to `to` requires, whatever the state that it comes from. */
int transition_required_into(int type, int to);

/* What a bit of the mask is about, beside the section that lists which move takes it. */
struct attr_bit {
	int bit;
	const char *ref; /* "IBTA C9-140" */
	const char *help;
};
extern const struct attr_bit attr_bit_table[];
extern const size_t attr_bit_table_n;
#define TRANSITION_REF "IBTA 11.2.5.2"

/* The masks that `modify: { mask: }` tries: those bits of which each makes one attempt. */
enum mask_trial {
	MASK_INVALID,
	MASK_EXACT,     /* one attempt, with what the move requires and nothing else */
	MASK_MISSING,   /* one for each bit that it requires, without that one */
	MASK_FORBIDDEN, /* one for each bit that it neither requires nor takes, with that one */
	NUM_MASK_TRIALS,
};
extern const struct name_table names_mask_trial;
/* 0 for MASK_EXACT, and for a move that the specification does not have. */
int mask_trial_bits(enum mask_trial trial, int type, int from, int to);

/* T = 4.096 us x 2^timeout in ns; 0 for timeout 0 (no timer). IBTA C9-140. */
uint64_t timer_ack_ns(unsigned timeout);
/* The wait that an RNR NAK code names, in ns. IBTA 9.7.5.2.8, table 45. */
uint64_t timer_rnr_ns(unsigned code);
/* path_mtu in bytes <-> IBV_MTU_*; 0 when there is none. */
int mtu_to_enum(int64_t bytes);
int mtu_from_enum(int value);

#endif
