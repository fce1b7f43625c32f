/* SPDX-License-Identifier: MIT */
/*
 * Objects by name and life. An object stays in the table after its destruction until everything is released: its next life goes on
 * from there, and nothing that names it ever points nowhere.
 *
 * Busy: a call that makes, changes or destroys it is under way on the verbs thread; the loop leaves its verbs object alone.
 */
#ifndef QD_OBJECT_H
#define QD_OBJECT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>
#include <uthash.h>

#include "agent.h"
#include "queue.h"

enum object_type {
	OBJECT_INVALID,
	OBJECT_DEV,
	OBJECT_PD,
	OBJECT_MR,
	OBJECT_MW,
	OBJECT_AH,
	OBJECT_CQ,
	OBJECT_SRQ,
	OBJECT_QP,
	OBJECT_CM,
	OBJECT_XRCD,
	NUM_OBJECT_TYPES,
};
extern const char *const object_type_names[NUM_OBJECT_TYPES]; /* "dev" "pd" "mr" "mw" "ah" "cq" "srq" "qp" "cm" "xrcd" */

struct object {
	char *key;        /* type digit and name */
	const char *name; /* inside key */
	enum object_type type;
	unsigned life; /* of the one that lives or lived last; 0: none yet */
	bool alive, busy;
	unsigned users; /* living objects that were made with it */
	UT_hash_handle hh;
};

struct dev {
	struct object o;
	struct ibv_context *ctx;
	char rdma[64]; /* "qd0a" */
	int port, gid_index;
	union ibv_gid gid;
	struct ibv_device_attr attr;
	struct ibv_port_attr port_attr;
	uint64_t counted_ns; /* when its counters were read here last */
	sd_event_source *async;
};

struct pd {
	struct object o;
	struct dev *dev;
	struct ibv_pd *pd;
};

/* A domain of extended reliable connections. */
struct xrcd {
	struct object o;
	struct dev *dev;
	struct ibv_xrcd *xrcd;
};

struct mr {
	struct object o;
	struct pd *pd;
	struct ibv_mr *mr;
	void *addr; /* stays mapped after deregistration: it can still be looked at */
	size_t bytes;
	size_t mapped; /* at least bytes; never less than before */
	unsigned access;
	uint32_t old_lkey, old_rkey; /* of the former life */
	bool has_old;
};

struct mw {
	struct object o;
	struct pd *pd;
	struct ibv_mw *mw;
	enum ibv_mw_type type;
	uint64_t bound_by;    /* wr_id of the newest bind, 0: none that may still fail */
	uint32_t former_rkey; /* from before it */
};

struct ah {
	struct object o;
	struct pd *pd;
	struct ibv_ah *ah;
};

struct cq {
	struct object o;
	struct dev *dev;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	bool manual, hold;
	bool extended;     /* made and polled by the extended interface */
	unsigned watchers; /* traffics and drains that need a manual CQ polled */
	unsigned unacked;
	bool asked;              /* armed by request: whoever waits then acknowledges */
	bool kept;               /* who waited wanted it not acknowledged */
	unsigned events;         /* since it was armed so */
	struct cq_wait *waiting; /* for events */
};

struct srq {
	struct object o;
	struct pd *pd;
	struct ibv_srq *srq;
	struct queue *rq;
	uint32_t max_sge, depth;
	struct xrcd *xrcd; /* NULL: it is of no extended reliable connections, and what follows of no meaning */
	struct cq *cq;
	uint32_t number;
};

struct qp {
	struct object o;
	struct pd *pd;
	struct ibv_qp *qp;
	enum ibv_qp_type type;
	struct cq *scq, *rcq;
	struct srq *srq;       /* of an XRC_RECV QP: one of those that it may deliver to */
	struct xrcd *xrcd;     /* of an XRC_RECV QP, which has the CQ of its SRQ for both of its own; NULL: of any other */
	struct queue *sq, *rq; /* with an SRQ, rq is its own, and empty */
	struct ibv_qp_cap cap;
	struct group *groups; /* that it is attached to */
	bool signal_all;
	bool extended;            /* made and posted to by the extended interface */
	bool dying;               /* its destruction is under way: nothing is posted any more */
	enum ibv_qp_state state;  /* as last seen */
	struct traffic *traffic;  /* that runs on it */
	struct traffic *traffics; /* those on it that are still known */
	char rx_name[256];        /* the MR that its receives use, found when they are posted */
	uint32_t number;          /* key of by_number */
	UT_hash_handle by_number; /* in agent->qps_by_number, while it is alive */
};

/* An end of a connection as rdma_cm has it, beside the QP that it is for (cm.h). */
struct cm {
	struct object o;
	char qp_name[256];
	unsigned qp_life;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id, *listener;
	sd_event_source *source; /* of the channel */
	struct cm_wait *waits;
	unsigned seen;     /* events that came, one bit for each */
	json_t *asked;     /* what the peer's request or answer told; owned */
	json_t *failed;    /* the event or call that ended it; owned */
	json_t *param;     /* of a connect that resolves its address first; owned */
	bool taking_leave; /* this end asked for the end */
};

/* Borrowed; NULL when there never was one. */
struct object *object_find(struct agent *a, enum object_type type, const char *name);
/* The living, idle object of that name; else -ENOENT or -EBUSY with what `op` lacks. */
int object_want(struct agent *a, enum object_type type, const char *op, const char *name, struct object **ret, struct error *e);
/* The living, idle object that body names at key; else fails the request with what is missing and returns NULL. */
struct object *object_need(struct agent *a, struct request *r, enum object_type type, const char *key);
/* The object to be made under body's `name`: busy, life one more. NULL when it lives already (the request is failed). */
struct object *object_claim(struct agent *a, struct request *r, enum object_type type);
/* What object_claim began: it lives, or it was refused. */
void object_settle(struct object *o, bool lives);

/* A living QP has its number from its making on, until it is gone. */
void qp_number_add(struct agent *a, struct qp *qp);
void qp_number_del(struct agent *a, struct qp *qp);
struct qp *qp_by_qpn(struct agent *a, uint32_t qpn);
/* The receive queue that feeds a QP. */
struct queue *qp_recv_queue(struct qp *qp);
uint64_t request_deadline_ns(const struct request *r);

/* Frees objects, queues and names; the verbs objects are gone or abandoned. */
void agent_forget(struct agent *a);

/* Calls a destructor's epilogue: accounts of a QP's work requests when it went to RESET or was destroyed. */
void qp_discard(struct agent *a, struct qp *qp);

#endif
