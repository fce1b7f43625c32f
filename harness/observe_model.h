/* SPDX-License-Identifier: MIT */
/*
 * The inside of the model, shared by observe*.c, expect*.c and verdict*.c and by nobody else. All lists grow in
 * the order of the records; an index into one stays good for the model's life, a pointer only until the next record.
 */
#ifndef QD_OBSERVE_MODEL_H
#define QD_OBSERVE_MODEL_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "observe.h"
#include "packet.h"
#include "wrid.h"

#define M_NONE SIZE_MAX
/* More completions in one record that is no traffic's, or more messages in one payload, than any queue holds. */
#define M_RUN_MAX (1u << 20)
#define VEC(type)                                                                                                                  \
	struct {                                                                                                                   \
		type *v;                                                                                                           \
		size_t n, cap;                                                                                                     \
	}
/* A zeroed new last element, or NULL when memory is gone. */
#define VEC_PUSH(vec)                                                                                                              \
	({                                                                                                                         \
		void *room_ = vec_room((vec)->v, (vec)->n, &(vec)->cap, sizeof(*(vec)->v));                                        \
		room_ ? ((vec)->v = room_, &(vec)->v[(vec)->n++]) : NULL;                                                          \
	})
/* The same for a list of the model, which remembers that memory is gone. */
#define M_PUSH(m, vec)                                                                                                             \
	({                                                                                                                         \
		__auto_type pushed_ = VEC_PUSH(vec);                                                                               \
		if (!pushed_)                                                                                                      \
			(m)->err = -ENOMEM;                                                                                        \
		pushed_;                                                                                                           \
	})

/* Returns v, moved when it had to grow, with element n zeroed. On failure v is untouched. */
void *vec_room(void *v, size_t n, size_t *cap, size_t size);

/* Sequence numbers that have ended: disjoint ranges, ascending. */
struct seq_range {
	uint32_t first, last;
};
struct seq_set {
	VEC(struct seq_range) r;
};
/* Adds first..last; *ret_twice is how many of them were there already. */
int seq_set_add(struct seq_set *s, uint32_t first, uint32_t last, uint32_t *ret_twice);
uint32_t seq_set_count(const struct seq_set *s, uint32_t first, uint32_t last);
uint32_t seq_set_size(const struct seq_set *s);

/* One run of a step: `repeat` makes several of the same step. */
struct m_inst {
	int step;
	const char *iter;   /* "" outside of repeat */
	const json_t *plan; /* borrowed; NULL for 0 and -1 */
	uint64_t begin_t, end_t;
	size_t begin_rec, end_rec; /* M_NONE: not seen */
	const char *outcome;       /* "" until it ended */
	const char *text;
};

struct m_post {
	const char *as, *op, *by, *traffic, *obj;
	size_t queue; /* index; M_NONE for an unknown object */
	unsigned life;
	int64_t tag;
	uint32_t first, last; /* sequence; only when accepted */
	unsigned asked, accepted;
	int err, bad; /* bad: -1 when absent */
	bool signaled, kept_back;
	uint64_t size, t, t_last;
	size_t inst, rec;
};

/* One CQE, or a run of them that a traffic took. */
struct m_comp {
	size_t qp;    /* the QP that used it */
	size_t queue; /* M_NONE: its wr_id is of no queue */
	const char *obj, *status, *traffic, *cq;
	unsigned life;    /* of the wr_id */
	unsigned qp_life; /* of the QP that used it */
	uint32_t seq, count;
	bool success, recv, marker;
	uint32_t twice; /* how many of them came before */
	bool late;      /* its life was over */
	uint64_t t, t_last;
	size_t inst, rec;
	size_t taken;                    /* 1 + instance of the expectation that took it; 0: none */
	const json_t *deviation;         /* profile entry by which it was taken */
	const json_t *datagram;          /* its record, where it is of a message to a UD QP; else NULL */
	const char *opcode;              /* "" where it says none, as an error does */
	int64_t bytes, imm, invalidated; /* -1: it does not say */
};

struct m_state {
	size_t qp;
	unsigned life;
	const char *asked, *old, *new_, *by; /* asked "" for a query */
	json_t *queried;                     /* NULL when nothing was */
	int err;
	bool notify; /* SQ_DRAINED was asked for */
	uint64_t t;
	size_t inst, rec;
};

struct m_event {
	const char *obj, *event, *agent;
	const char *reason; /* of a connect that came to nothing, "" else */
	bool cm;
	unsigned life;
	uint64_t t;
	size_t inst, rec, taken;
};

struct m_verb {
	const char *verb, *obj;
	int err;
	size_t inst, rec;
	uint64_t t;
};

struct m_payload {
	const char *as, *op, *at, *obj, *indices; /* obj: the QP that posted */
	const char *unreachable;                  /* why nobody could look; "" */
	int64_t tag, of_step, index;              /* index: of a member of a list; -1: it is of all that was posted */
	unsigned total, intact, absent, partial, stale, torn, twice;
	unsigned succeeded; /* when the look began; UINT_MAX: not on record */
	uint64_t t;
	size_t inst, rec;
};

struct m_fault {
	const char *as, *name, *detection, *blast;
	int nth;          /* injection of that name, from 1; 0: not on record */
	const json_t *at; /* borrowed from rec_ref */
	json_t *rec_ref;  /* newest record */
	json_t *evidence; /* newest, NULL when none was given */
	const char *why;  /* it did not fire; NULL */
	bool injected, fired, not_fired, cleared;
	uint64_t inject_t, clear_t;
	size_t inst, rec, clear_rec;
};

struct m_recover {
	const char *pair, *path, *phase, *text;
	int attempt;
	uint64_t t;
	size_t inst, rec;
};

/* A packet that came by the wire, or a run of like ones with consecutive PSNs. */
struct m_packet {
	size_t qp;  /* that sent it; M_NONE: of no connection */
	bool known; /* of a connection: psn is relative to its requester's first */
	const char *pair, *from, *class_, *opcode, *fate;
	unsigned life; /* of the connection */
	int64_t size, psn, transmission, count, n, dest_qpn;
	int syndrome; /* -1: none */
	struct packet_outer outer;
	bool late;    /* no arrival: kept, copied or forged before */
	bool touched; /* by a rule */
	bool icrc_bad;
	const char *why; /* of a malformed one */
	uint64_t t, t_last;
	size_t inst, rec;
};

/* What the wire was told: a pair's ends, anew for each life. */
struct m_connection {
	const char *pair;
	unsigned life;
	struct m_connection_end {
		size_t qp;
		int64_t qpn;
		unsigned life; /* of the QP */
	} end[2];
	uint64_t t;
	size_t rec;
};

/* A record that is kept whole: traffic, klog, residue, blocked, lost, dump. */
struct m_kept {
	const char *kind;
	json_t *r;
	uint64_t t;
	size_t inst, rec;
};

/* How far an agent's clock is ahead of the controller's. */
struct m_clock {
	const char *of;
	int64_t offset_ns;
	uint64_t bound_ns;
};

struct m_life {
	unsigned life;
	uint32_t accepted, posted; /* posted: highest sequence + 1 */
	struct seq_set ended;
	uint32_t last_ended; /* highest sequence that ended */
	bool any_ended;
	bool over, open;
	size_t begin_rec;
	uint64_t begin_t, over_t;
	size_t over_rec, over_inst;
	const char *over_why, *open_why;
	uint32_t order_breaks;
	size_t order_rec;
	size_t first_error; /* index of a completion, M_NONE */
};

struct m_queue {
	const char *name;
	size_t qp; /* M_NONE for an SRQ */
	bool send, srq;
	bool numbered;
	unsigned number;
	const char *agent;
	VEC(struct m_life) lives;
	VEC(size_t) posts; /* that were accepted, by life and first sequence */
	VEC(size_t) tried; /* all posts, refused ones too, in order */
	VEC(size_t) comps; /* whose wr_id is its own */
	uint64_t last_t;   /* newest completion */
};

struct m_qp {
	const char *name, *agent, *pair, *peer, *type;
	const json_t *plan;
	unsigned life; /* 0: none yet */
	bool exists;
	const char *state; /* "" until known */
	uint64_t state_t, state_since;
	size_t state_rec;       /* M_NONE */
	json_t *queried;        /* newest; NULL */
	size_t send, recv, srq; /* queues; recv M_NONE with an SRQ */
	VEC(size_t) states;     /* its own in the list of all; so are its completions: what is asked of one QP does not take */
	VEC(size_t) comps;      /* longer for all the others that a case may have */
	VEC(size_t) traffics;   /* records of the traffics that run on it, in `kept` */
	size_t life_comps;      /* so many of them there were when its newest life began */
};

struct model {
	const json_t *plan;
	const struct profile *profile;
	VEC(const json_t *) entries_seen; /* of its entries, those that were seen on this kernel */
	int err;                          /* -ENOMEM: the model is not to be believed */
	size_t n_recs;
	uint64_t first_t, last_t, late_max_ns, clock_bound_ns;
	const char *kernel;
	const char *rdma_core; /* of the agents, NULL where they do not know it */
	bool ended;            /* the controller got beyond the last step */
	bool ends_told;        /* the controller said that there is a last one */
	bool has_no_end;       /* its last word is missing; records of before there was one are not held to it */
	unsigned odd;          /* records that contradict themselves; what they say was not used */
	json_t *touching;      /* names of the rules that packets were touched by */
	int64_t last_n;        /* number of the newest record */
	int64_t hole_n;        /* the first whose number is not the one that was due; 0: none */
	bool several_clocks;   /* records of different clock domains: times compare within one only */
	const char *clk;
	VEC(struct m_clock) clocks;
	VEC(struct m_inst) insts;
	size_t inst; /* current */
	VEC(struct m_qp) qps;
	VEC(struct m_queue) queues;
	VEC(struct m_post) posts;
	VEC(struct m_comp) comps;
	json_t *datagrams; /* records of messages to UD QPs */
	json_t *mw_keys;   /* {"win": the key of its newest bind} */
	VEC(struct m_state) states;
	VEC(struct m_event) events;
	VEC(struct m_verb) verbs;
	VEC(struct m_payload) payloads;
	VEC(struct m_fault) faults;
	VEC(struct m_recover) recovers;
	VEC(struct m_packet) packets;
	VEC(struct m_connection) connections;
	VEC(struct m_kept) kept;
	VEC(struct m_kept) bystander;       /* what is on record of the pair that looks on; no other list has it */
	VEC(size_t) allows;                 /* instances of `allow` steps that ran */
	json_t *values;                     /* object -> what verbs returned and queries said, caps flattened */
	json_t *counter_base, *counter_now; /* dev -> values */
	json_t *counter_rec;                /* dev -> record number */
	json_t *used;                       /* profile entry id -> {"deviated":n,"specified":n,"step":n} */
	struct strings *strings;
};

const char *m_intern(struct model *m, const char *text); /* never NULL; "" for NULL */
size_t m_qp_find(const struct model *m, const char *name, size_t len);
size_t m_queue_find(const struct model *m, const char *name);
struct m_life *m_life_get(struct model *m, size_t queue, unsigned life, bool make);
/* Where the completions of a life begin among those of its QP; of a life that is over that is not kept: 0. */
size_t m_comps_of_life(const struct m_qp *q, unsigned life);
const struct m_life *m_life_of(const struct model *m, size_t queue, unsigned life);
/* The newest run of this step, M_NONE when it never ran. */
size_t m_inst_latest(const struct model *m, int step);
const struct m_life *m_queue_life(const struct model *m, size_t queue); /* newest life, NULL */

/* How the WRs of a life of a queue stand. in_flight includes those of an open queue. */
struct m_account {
	uint32_t accepted, completed, retired, discarded, in_srq, in_flight;
	uint32_t awaited; /* of in_flight: a completion must come for them */
};
struct m_account m_account_life(const struct model *m, size_t queue, const struct m_life *l, bool traffic_too);
/* The same for one post. */
struct m_account m_account_post(const struct model *m, const struct m_post *p);
bool m_post_signaled(const struct model *m, const struct m_post *p);
/* Where the posts of a life begin among those of its queue. */
size_t m_posts_of_life(const struct model *m, size_t queue, unsigned life);

/* What a name in `at` means. */
enum m_side { M_SIDE_QP, M_SIDE_SEND, M_SIDE_RECV };
struct m_end {
	size_t qp; /* M_NONE: another object */
	enum m_side side;
	unsigned life;   /* 0: the current one */
	const char *obj; /* borrowed, without a `cq.` or `srq.` prefix */
};
struct m_end m_end_of(const struct model *m, const char *text);
/* Does an event on obj belong to this end: the QP, its CQs, its SRQ, its device? */
bool m_event_at(const struct model *m, const struct m_event *ev, const struct m_end *end);
/* A number, or a ref to what a device returned. -ENOENT when it is not known yet. */
int m_number(const struct model *m, const json_t *value, int64_t *ret);

/* The post of a completion: looked up anew, as its record may come after. NULL: none. */
const struct m_post *m_comp_post(const struct model *m, const struct m_comp *c);
/* Why a QP was in ERR in this life, as a phrase, or NULL. What a step asked counts when it ran no later than instance
 * `inst`; what the device said counts until a moment after t, as the two ends' records cross. */
const char *m_why_error(const struct model *m, size_t qp, unsigned life, size_t inst, uint64_t t);
/* An active fault that reaches this QP at a record; NULL when there is none. */
const struct m_fault *m_fault_on(const struct model *m, size_t qp, size_t rec);
/* A fault at the network device of `device` that was active at that record or until just before t: what is lost there is lost by
 * it. */
const struct m_fault *m_link_fault_on(const struct model *m, const char *device, size_t rec, uint64_t t);
bool m_fault_reaches(const struct model *m, const struct m_fault *f, size_t qp);
/* It acts on an agent's process: stopped, killed, left alone; ends: nothing of that process is left. */
bool m_fault_is_of_process(const struct m_fault *f, bool *ret_ends);

/* Events that need no word in the scenario: one table (observe_explained.c). */
bool m_event_explained(const struct model *m, const struct m_event *ev);
/* A step of the file has asked for it: to say that none comes is no contradiction, and then it is looked for all the same. */
bool m_event_asked_for(const struct model *m, const struct m_event *ev);
/* Whether the newest move of its QP into SQD has `asked` for SQ_DRAINED, which had been said before (`again`), or gone there
 * `unasked`. */
bool m_event_notify_is(const struct model *m, const struct m_event *ev, const char *notify);

struct m_record {
	const json_t *r;
	const char *src, *obj, *agent; /* agent "" unless src is agent/… */
	unsigned life;
	uint64_t t;
	size_t inst, rec;
};
/* One more run of a step. 0, the run of no step, when out of memory. */
size_t m_inst_new(struct model *m, int step, const char *iter);

/* observe_record.c: what each kind of record says; that of an unknown kind says nothing. */
void m_record_take(struct model *m, const char *kind, const struct m_record *r);
/* A record of the pair that looks on. */
void m_on_bystander(struct model *m, const struct m_record *r);

/* observe_queue.c: the record handlers that concern work queues. */
void m_on_post(struct model *m, const struct m_record *r);
void m_on_wc(struct model *m, const struct m_record *r);
void m_qp_new_life(struct model *m, size_t qp, unsigned life, const struct m_record *r, const char *why);
void m_qp_over(struct model *m, size_t qp, const struct m_record *r, const char *why);
void m_agent_gone(struct model *m, const char *agent, const struct m_record *r, const char *why);
void m_cq_broken(struct model *m, const char *cq, const struct m_record *r);

/* observe_packet.c */
void m_on_packet(struct model *m, const struct m_record *r);
void m_on_connection(struct model *m, const struct m_record *r);
bool m_has_wire(const struct model *m);
/* The newest life of a pair's connection; 0: none. */
unsigned m_connection_life(const struct model *m, const char *pair);
/* The connection that a QP's life was in; 0: none. */
unsigned m_connection_of(const struct model *m, size_t qp, unsigned qp_life);

/* What was queried of a QP while it was connected, before a record; else what was planned. */
const json_t *m_attr_at(const struct model *m, size_t qp, size_t rec);

/* Profile entries against what is at hand (profile_match.c). */
struct m_match {
	const char *spec;             /* the status that the specification wants, or NULL */
	const char *event;            /* the event, or that there is `none`; NULL */
	const char *state;            /* the QP state, or NULL */
	const char *returns;          /* what a verb returns, or NULL */
	const char *recovery;         /* that a recovery `fails`, or NULL */
	const char *path;             /* of that recovery */
	const char *payload;          /* what should lie where a request's bytes go, or NULL */
	const char *refused;          /* the errno of a post that was refused and completed all the same, or NULL */
	const char *completion_event; /* that one `comes`, or `none` does, while a `poll` waits; or NULL */
	const char *cq;               /* whose */
	size_t qp;
	unsigned life; /* 0: the current one */
	bool recv;
	const struct m_post *post;  /* NULL when unknown */
	const struct m_event *came; /* the event, where there should be `none`; or NULL */
	const struct m_state *move; /* of a modify, or NULL */
	const char *attr;           /* of a queried attribute, or NULL */
	const char *says;           /* of what a completion says beside its status, or NULL */
	const json_t *match;        /* of packets that should have come, or NULL */
	const json_t *step;         /* of the plan, where a verb's return is meant */
	size_t rec;
};
/* The entry by which `device` excuses the specification's value: seen ones first; *ret_seen tells. NULL: none. */
const json_t *m_profile_excuse(const struct model *m, const struct m_match *what, const char *device, bool *ret_seen);
/* The entry by which an event comes where the specification has none. */
const json_t *m_event_excuse(const struct model *m, const struct m_event *ev, bool *ret_seen);
/* A fault's arguments have all that an entry's `with` asks for: `KEY`, `KEY=VALUE`, `KEY.KEY=VALUE`; VALUE a text, a number, N..M.
 */
bool m_profile_has_arguments(const json_t *args, const json_t *with);
bool m_profile_applies(const struct model *m, const json_t *entry, const struct m_match *what);
/* An entry excused something, or the device did what the specification says where it applied. */
void m_profile_used(struct model *m, const json_t *entry, int step);
void m_profile_specified(struct model *m, const struct m_match *what, int step);
bool m_profile_waives(const json_t *entry, const char *check);

#endif
