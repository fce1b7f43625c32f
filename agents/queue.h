/* SPDX-License-Identifier: MIT */
/*
 * One work queue (send, receive, shared receive): numbers its work requests, keeps their account, and merges completions into runs.
 */
#ifndef QD_QUEUE_H
#define QD_QUEUE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../harness/wrid.h"
#include "datagram.h"

struct agent;
struct mr;
struct object;
struct qp;

enum wr_state { WR_NONE, WR_OUT, WR_COMPLETED, WR_RETIRED, WR_DISCARDED, WR_REFUSED, NUM_WR_STATES };

struct wr {
	uint64_t index;   /* a traffic's message */
	uint64_t t_ns;    /* when it was posted, for traffic */
	uint16_t traffic; /* number of its name, 0: none */
	uint8_t state;
	uint8_t kind; /* enum wrid_kind */
	bool signaled;
};

/* Consecutive completions of equal status. */
struct run {
	uint32_t first, last;
	unsigned life;
	enum wrid_kind kind;
	uint64_t count;
	uint64_t t_first_ns, t_last_ns;
	uint64_t bytes;
	struct ibv_wc wc; /* of the first */
	struct datagram_seen datagram;
	uint16_t traffic;
	bool doubled, former, mixed;
	const char *cq;
};

/* Where receives lie: receive seq at slot seq modulo slots. The message begins head bytes into it, and size counts those. */
struct rx {
	struct mr *mr;
	uint64_t off;
	uint32_t stride, slots, size, sge, head;
};

struct queue {
	unsigned number;
	char *name;    /* "p.a.send", "s" */
	struct qp *qp; /* NULL for a shared receive queue */
	bool send;
	unsigned life;
	uint32_t next;   /* seq of the next post */
	uint32_t oldest; /* nothing before it is outstanding */
	struct wr *ring;
	uint32_t cap; /* power of two */
	uint64_t in_flight;
	uint64_t posted, completed, retired, discarded, doubled, former; /* over all lives */
	struct rx rx;
	struct run run; /* count 0: none open */
	bool dirty;     /* its run is to be reported at the end of the poll batch */
	struct queue *dirty_next;
};

struct queue *queue_new(struct agent *a, const char *name, struct qp *qp, bool send);
void queue_free(struct queue *q);
struct queue *queue_find(struct agent *a, unsigned number);
/* A new life: numbering begins at 0. What was outstanding has been discarded. */
void queue_begin(struct queue *q, unsigned life);

/* The wr_id of the i-th request from now, of this kind. */
uint64_t queue_wr_id(const struct queue *q, enum wrid_kind kind, uint32_t i);
/* The next n requests were accepted; tmpl is copied for each. */
void queue_accept(struct queue *q, uint32_t n, const struct wr *tmpl);
/* The device refused the next n requests. Their numbers are not given again: a device that carries one out all the same would
 * otherwise answer in the name of another request. A completion of one is QUEUE_UNKNOWN. */
void queue_refuse(struct queue *q, uint32_t n);
/* A slot of the ring, or NULL when seq was not posted in this life or is too long ago. */
struct wr *queue_wr(struct queue *q, uint32_t seq);

enum queue_taken {
	QUEUE_TAKEN_INVALID,
	QUEUE_TAKEN,   /* it had no end before; a copy is in *ret */
	QUEUE_DOUBLE,  /* it had one */
	QUEUE_FORMER,  /* of a former life */
	QUEUE_UNKNOWN, /* never posted */
	NUM_QUEUE_TAKEN,
};
/* A completion; earlier unsignaled sends are thereby retired. */
enum queue_taken queue_complete(struct queue *q, struct wrid id, struct wr *ret);
/* Everything outstanding is discarded. Returns how many. */
uint64_t queue_discard(struct queue *q);

/* Takes a completion into the queue's run, reporting the run before it when it does not continue. */
void run_add(struct agent *a, struct queue *q, struct wrid id, const struct ibv_wc *wc, const char *cq, uint64_t t_ns,
	     uint16_t traffic, enum queue_taken taken);
void run_flush(struct agent *a, struct queue *q);
/* Those of a list by dirty_next. */
void runs_flush(struct agent *a, struct queue *first);

#endif
