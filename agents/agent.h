/* SPDX-License-Identifier: MIT */
/*
 * qpdrill-agent: a verbs endpoint that does what it is asked and reports what it sees. It asserts nothing and listens on nothing.
 * Contract: harness/formats.md, "Agent protocol".
 *
 * Threading: everything runs on the main thread's event loop, but for the calls that may block (verbs_thread.h).
 */
#ifndef QD_AGENT_H
#define QD_AGENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "../harness/error.h"
#include "../harness/line.h"

#define AGENT_PROTOCOL 1
#define AGENT_DEADLINE_NS 5000000000ULL /* of a verbs call when the request names none */
#define AGENT_PENDING_MAX 4096u         /* requests not yet answered */
#define AGENT_EVENTS_KEPT 32u           /* for a dump */

struct counters_port;
struct counters_wait;
struct cq_set;
struct drain;
struct each;
struct object;
struct qp;
struct queue;
struct traffic;
struct verbs_thread;
struct witness;

struct agent {
	sd_event *loop;
	struct line *line;
	struct verbs_thread *verbs;
	struct cq_set *cq_set;
	bool turn; /* something of the loop's was changed outside of it (cq_set.h) */
	struct witness *witness;
	uint64_t seed;

	struct object *objects; /* by type and name; those of this case, alive or not */
	struct queue **queues;  /* by the number in their wr_ids; 0 is nobody's */
	unsigned n_queues;
	char **traffic_names; /* by the number in struct wr; 0 is none */
	unsigned n_traffic_names;
	struct traffic *traffics;
	struct traffic *traffics_touched, *traffics_due; /* (traffic.h) */
	struct qp *qps_by_number;                        /* alive, by their numbers */
	struct drain *drains;
	struct counters_wait *counters_waits;
	struct counters_port *counters_ports; /* those whose files are open */
	json_t *events;                       /* the last AGENT_EVENTS_KEPT event records */
	char described[64];                   /* the device of which everything is on record */

	unsigned folding; /* how many want it */
	json_t *folded;   /* records of one kind that are sent together; NULL: none */
	unsigned pending;
	bool leaving; /* end of file on stdin: nothing more is said */
};

/* One request; its handler, or what the handler started, answers it exactly once. It can be read until the handler returns,
 * answered or not; later only until it is answered. */
struct request {
	struct agent *agent;
	json_t *body;        /* owned */
	struct batch *batch; /* of which it is a member, or NULL */
	size_t index;        /* which */
	unsigned refs;
};

/* Takes over rfd and wfd. Sends the hello. */
int agent_new(sd_event *loop, int rfd, int wfd, struct agent **ret, struct error *e);
/* The descriptors are not closed by what releases the verbs objects: agent_release() first. */
void agent_free(struct agent *a);

/* {"rec":{t, kind, obj, life, ...fields}}. fields is stolen and may be NULL; life 0 is left out. */
void agent_record(struct agent *a, uint64_t t_ns, const char *kind, const char *obj, unsigned life, json_t *fields);
/* Between the two, records of one kind that follow each other are sent as one (many.h). Not while anything is waited for. */
void agent_fold(struct agent *a, bool on);

/* A record of n of a kind, folded already: `obj`, `life` and `t` of each are in it. all is stolen, each released. */
void agent_record_many(struct agent *a, const char *kind, uint64_t t_ns, size_t n, json_t *all, struct each *each);

/* An answer. fields is stolen and may be NULL. */
void request_reply(struct request *r, json_t *fields);
__attribute__((format(printf, 3, 4))) void request_fail(struct request *r, int rc, const char *fmt, ...);
/* As request_fail, with more fields. */
__attribute__((format(printf, 4, 5))) void request_fail_with(struct request *r, int rc, json_t *fields, const char *fmt, ...);
/* The answer to a `many`: a reply for each, with its `rc`. replies is stolen. */
void request_reply_each(struct request *r, json_t *replies);
/* The same where none has failed; all and each are stolen. */
void request_reply_fold(struct request *r, size_t n, json_t *all, json_t *each);
/* The reply of a member that has failed, or was not begun because one before it did; fields is stolen and may be NULL. */
json_t *reply_failed(int rc, json_t *fields, const char *text);
json_t *reply_not_done(void);
/* What arrived on stdin; value is borrowed. */
void request_take(struct agent *a, json_t *value);

struct request_op {
	const char *op;
	void (*fn)(struct agent *a, struct request *r);
	const char *help;
	/* A `many` of it (harness/many.h) whose columns are as long as it says, answered without taking it apart. False, and
	 * nothing was done: there is something in it that only fn can do, one after the other. NULL: so it is always. */
	bool (*fold)(struct agent *a, struct request *r);
};

extern const struct request_op request_table[]; /* ends with a row without op */

/* Folds. */
bool many_qp_modify(struct agent *a, struct request *r);
bool many_qp_query(struct agent *a, struct request *r);
bool many_post_recv(struct agent *a, struct request *r);
bool many_drain(struct agent *a, struct request *r);

void op_many(struct agent *a, struct request *r);
void op_clock(struct agent *a, struct request *r);
void op_witness(struct agent *a, struct request *r);
void op_seed(struct agent *a, struct request *r);
void op_device_caps(struct agent *a, struct request *r);
void op_device_open(struct agent *a, struct request *r);
void op_pd_create(struct agent *a, struct request *r);
void op_mr_create(struct agent *a, struct request *r);
void op_ah_create(struct agent *a, struct request *r);
void op_mw_create(struct agent *a, struct request *r);
void op_group_attach(struct agent *a, struct request *r);
void op_group_detach(struct agent *a, struct request *r);
void op_mem_replace(struct agent *a, struct request *r);
void op_cq_create(struct agent *a, struct request *r);
void op_cq_hold(struct agent *a, struct request *r);
void op_cq_ack(struct agent *a, struct request *r);
void op_cq_arm(struct agent *a, struct request *r);
void op_cq_wait(struct agent *a, struct request *r);
void op_cq_resize(struct agent *a, struct request *r);
void op_poll(struct agent *a, struct request *r);
void op_xrcd_open(struct agent *a, struct request *r);
void op_srq_create(struct agent *a, struct request *r);
void op_srq_modify(struct agent *a, struct request *r);
void op_qp_create(struct agent *a, struct request *r);
void op_qp_modify(struct agent *a, struct request *r);
void op_qp_query(struct agent *a, struct request *r);
void op_destroy(struct agent *a, struct request *r);
void op_post(struct agent *a, struct request *r);
void op_post_recv(struct agent *a, struct request *r);
void op_fill(struct agent *a, struct request *r);
void op_verify(struct agent *a, struct request *r);
void op_find(struct agent *a, struct request *r);
void op_drain(struct agent *a, struct request *r);
void op_traffic_prepare(struct agent *a, struct request *r);
void op_traffic_phase(struct agent *a, struct request *r);
void op_traffic(struct agent *a, struct request *r);
void op_traffic_stop(struct agent *a, struct request *r);
void op_traffic_pause(struct agent *a, struct request *r);
void op_traffic_verify(struct agent *a, struct request *r);
void op_cm_listen(struct agent *a, struct request *r);
void op_cm_connect(struct agent *a, struct request *r);
void op_cm_wait(struct agent *a, struct request *r);
void op_cm_accept(struct agent *a, struct request *r);
void op_cm_reject(struct agent *a, struct request *r);
void op_cm_establish(struct agent *a, struct request *r);
void op_cm_disconnect(struct agent *a, struct request *r);
void op_counters(struct agent *a, struct request *r);
void op_usage(struct agent *a, struct request *r);
void op_events(struct agent *a, struct request *r);
void op_ledger(struct agent *a, struct request *r);
void op_dump(struct agent *a, struct request *r);
void op_release(struct agent *a, struct request *r);

#endif
