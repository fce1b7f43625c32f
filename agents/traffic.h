/* SPDX-License-Identifier: MIT */
/*
 * Checked messages between a QP and its peer. The engine (traffic.c) posts, takes completions, checks and accounts; the requests
 * (traffic_ops.c) start, stop and ask. Layout and flow control: formats.md, "Traffic".
 */
#ifndef QD_TRAFFIC_H
#define QD_TRAFFIC_H

#include <infiniband/verbs.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "../harness/hist.h"
#include "../harness/pattern.h"
#include "datagram.h"

#define TRAFFIC_OPS_MAX 16u
#define TRAFFIC_READABLE (1ULL << 40) /* message number of what lies readable in slot 0 */

struct agent;
struct mr;
struct post_result;
struct qp;
struct queue;
struct request;
struct wr;

enum traffic_state { TRAFFIC_INVALID, TRAFFIC_PREPARED, TRAFFIC_RUNNING, TRAFFIC_ENDED, NUM_TRAFFIC_STATES };

/* Consecutive posts not yet reported. */
struct span {
	uint32_t first, n;
	unsigned life;
	uint64_t t_first_ns, t_last_ns;
};

/* A SEND of the peer that came before this end was told to start. */
struct early {
	uint32_t seq, byte_len;
	uint64_t t_ns;
};

/* A part of a traffic's time, by name: what it was when the part began, and what only a part has. */
struct traffic_phase {
	char *name;
	uint64_t sent, done, errors, bad_payload, bytes, received; /* before it */
	uint64_t gap_max_ns, progress_ns;
	struct hist latency;
	struct traffic_phase *next;
};

struct traffic {
	struct agent *agent;
	char *as;
	uint16_t number; /* of its name, in struct wr */
	enum traffic_state state;
	struct qp *qp;
	struct mr *mr;
	uint32_t tag, peer_tag, size;
	uint64_t stride, quarter, nslots;
	uint32_t *landed; /* of each READ landing slot: 1 + the peer's slot that it was last to bring; 0: none yet */

	int ops[TRAFFIC_OPS_MAX]; /* IBV_WR_* */
	unsigned n_ops;
	bool tx, rx, background, stopping, paused, lossy;
	bool told;         /* a background one has ended, and who stopped it knows */
	uint64_t messages; /* to send; 0: until stopped */
	uint64_t expect;   /* SENDs from the peer; UINT64_MAX: any number */
	unsigned depth, window;
	uint64_t raddr;
	uint32_t rkey, lkey, recv_lkey, srqn;
	struct datagram datagram;
	uint64_t interval_ns, due_ns;

	uint64_t next;  /* message to be posted */
	uint64_t sends; /* of them SENDs */
	uint64_t outstanding;
	uint64_t arrived; /* SENDs of the peer, intact or not */
	uint8_t *came;    /* lossy: a bit for each message of the peer that came; came_bytes of them are there */
	uint64_t came_bytes, newest, doubled, reordered; /* newest: 1 + the highest number that came */
	unsigned recv_due;                               /* receives taken and not yet replaced */
	struct span sent_span, recv_span;
	struct early *early;
	unsigned n_early;

	uint64_t done, errors, bad_payload, bytes, received, gap_max_ns, gap_t_ns, progress_ns;
	uint64_t gap_ns; /* a longer one is a record of its own; 0: none is */
	struct hist latency;
	struct traffic_phase *phases;
	json_t *first_error;

	struct request *req;    /* answered at the end */
	struct request *pauser; /* answered when what was sent has its end */
	sd_event_source *deadline, *pace;
	/* Kept when it is made anew. */
	struct traffic_links {
		struct traffic *all;   /* in agent->traffics */
		struct traffic *of_qp; /* in qp->traffics */
		struct traffic *touched, *due;
		bool is_touched, is_due; /* in agent->traffics_touched, traffics_due */
	} links;
};

/* The traffic named `as`, on this QP when one is given: without one, any that has it. */
struct traffic *traffic_find(struct agent *a, const char *as, const struct qp *qp);
/* Makes it, or an ended or prepared one anew; from now on it is the QP's, and what the peer SENDs is kept for it. */
struct traffic *traffic_make(struct agent *a, const char *as, struct qp *qp);
/* It will not start: it must be prepared anew. */
void traffic_drop(struct traffic *t);
void traffic_start(struct traffic *t);
/* No new messages; ends when its own sends are done. */
void traffic_wind_up(struct traffic *t);
/* Nothing more is sent until it is resumed; what was sent goes its way. */
void traffic_pause(struct traffic *t, struct request *r);
void traffic_resume(struct traffic *t);
/* rc of the answer; text (may be NULL) is why, for first_error when there is none yet. */
void traffic_end(struct traffic *t, int rc, const char *phase, const char *text);
json_t *traffic_json(const struct traffic *t);
/* (traffic_lossy.c) Takes a SEND of the peer by its content; false: it is none of the peer's messages. */
bool traffic_lossy_took(struct traffic *t, const void *at, uint32_t bytes);
/* The parts that run (traffic_phase.c): something was done, it took so long; none any more. */
void traffic_phases_progress(struct traffic *t, uint64_t now);
void traffic_phases_latency(struct traffic *t, uint64_t latency_ns);
void traffic_phases_forget(struct traffic *t);
/* The slot of message i in one of the four quarters. */
enum traffic_quarter { TRAFFIC_SOURCE, TRAFFIC_READABLE_HERE, TRAFFIC_WRITTEN, TRAFFIC_READ_LANDING };
uint64_t traffic_slot(const struct traffic *t, enum traffic_quarter q, uint64_t i);
char *traffic_at(const struct traffic *t, enum traffic_quarter q, uint64_t i);
struct pattern traffic_pattern(const struct traffic *t, uint32_t tag, uint64_t index);
/* (traffic_read.c) Message i is a READ, about to go out: where in the peer's memory it reads. Its landing slot then holds nothing
 * that could pass for what it brings: it is wiped only where the READ before it brought the same. */
uint64_t traffic_read_begins(struct traffic *t, uint64_t i);
bool traffic_read_is_there(const struct traffic *t, uint64_t i);

/* From completion queues. */
struct traffic *traffic_receiver(struct agent *a, struct queue *q, const struct ibv_wc *wc, uint16_t *ret_number);
void traffic_received(struct traffic *t, struct queue *q, uint32_t seq, const struct ibv_wc *wc, uint64_t t_ns);
void traffic_sent(struct agent *a, struct queue *q, const struct wr *wr, const struct ibv_wc *wc, uint64_t t_ns);
/* Something at its QP got its end: it has its turn in the next traffic_turn(). What was not touched costs nothing there, however
 * many traffics there are. NULL is fine. */
void traffic_touch(struct traffic *t);
/* Receives in place of those that were taken. */
void traffic_refill(struct agent *a);
/* After the completions of a queue: each that was touched posts what may be posted, or ends if it is done. */
void traffic_turn(struct agent *a);

/* It runs, and has that number: it reports its completions itself, at its end. */
bool traffic_runs(const struct traffic *t, uint16_t number);
/* Reports the posts, of traffics with that number, to the queue (or to its QP's other one) that are not yet reported. */
void traffic_report_posts(struct agent *a, const struct queue *q, uint16_t number);
/* (traffic_span.c) Those of t; res->accepted requests from seq on were posted. */
void traffic_report_own_posts(struct traffic *t);
void traffic_span_add(struct traffic *t, struct span *s, const struct queue *q, uint32_t seq, const struct post_result *res);
void traffic_qp_gone(struct agent *a, struct qp *qp);
void traffic_forget(struct agent *a);

#endif
