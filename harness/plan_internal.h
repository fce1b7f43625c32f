/* SPDX-License-Identifier: MIT */
/* What the files of the plan share. Nobody else includes this. */
#ifndef QD_PLAN_INTERNAL_H
#define QD_PLAN_INTERNAL_H

#include "plan.h"

#define PLAN_AGENT_BYTES_MAX (256ULL << 20)
/* How much one post may take for messages that each have a place of their own. */
#define PLAN_POST_BYTES_MAX (16ULL << 20)
#define PLAN_MSG_BYTES_MIN 64
/* The low bits of a tag are left to iterations, attempts and the like. */
#define PLAN_TAG_STEP 4096
#define PLAN_POST_BYTES 64
#define PLAN_TRAFFIC_BYTES 1024
#define PLAN_TRAFFIC_DEPTH 8

struct planner {
	const json_t *doc;
	const struct plan_options *o;
	struct error *e;
	json_t *plan;
	json_t *agents, *pds, *cqs, *srqs, *mrs, *qps; /* inside plan */
	json_t *pairs;                                 /* "p[3]" -> {"of":"p","index":3,"ends":["a","b"]}, in file order */
	json_t *posts;                                 /* name of a post -> its planned step */
	json_t *room;                                  /* MR -> bytes allotted so far */
	json_t *traffic;                               /* QP -> bytes of a quarter of its QP.trf */
	uint64_t msg_bytes;
	uint64_t fault_ns;   /* what the faults so far may add to a wait */
	json_t *timers;      /* plan_timers.h, of the steps so far */
	json_t *post_timers; /* name of a post -> those of then */
	int steps, tags;
	char skip[256]; /* "": nothing forbids it yet */
};

/* plan_ends.c */
enum ends_how {
	ENDS_QPS,     /* QPs only */
	ENDS_SRQS,    /* QPs and SRQs */
	ENDS_RESIZED, /* QPs, SRQs and CQs */
	ENDS_USED,    /* QPs and queues; an agent stands for all of its QPs */
	ENDS_ANY,     /* also CQs, SRQs, MRs and agents' devices */
};
/* list: what the file says (array of strings). A new array of canonical names without repetitions. */
int plan_ends(struct planner *p, const json_t *list, enum ends_how how, json_t **ret);
/* QPs and queues of a `used_by`. */
int plan_used_by(struct planner *p, const json_t *object, json_t **ret);
/* Pairs: NULL means all. A new array of names. */
int plan_pairs(struct planner *p, const json_t *list, json_t **ret);
/* "a.mem" -> "p.a.mem"; a name in the file stays. New reference or NULL with the error set. */
json_t *plan_object_name(struct planner *p, const char *name);
/* Makes every {"ref":...} inside value speak of canonical names. */
int plan_refs(struct planner *p, json_t *value);
/* No device makes more of it than this. */
uint64_t plan_ref_bound(struct planner *p, const json_t *value);
uint64_t plan_rounded_up(uint64_t n); /* the next power of two above it */

/* plan_attr.c: attributes of one end, --set on top. Fills "attr", "cap", "type", "signal_all" of qp. */
int plan_attributes(struct planner *p, json_t *qp, const json_t *pair_qp);
/* The same without what the file says. */
void plan_attributes_default(struct planner *p, json_t *qp);
int plan_set_check(struct planner *p);
int plan_link(struct planner *p);

/* plan_objects.c */
int plan_objects(struct planner *p);
int plan_memory(struct planner *p); /* after the steps: MRs of the QPs and SRQs */

/* plan_datagram.c: address handles ("ahs", where there are any), and `head_bytes` of what receives datagrams. */
int plan_datagrams(struct planner *p);

/* plan_xrc.c */
bool plan_is_xrc(const json_t *qp);
/* `type: XRC` of a pair: its first end sends, the other receives. */
void plan_xrc_end(json_t *qp, bool first);
int plan_xrc_pair(struct planner *p, const json_t *one, const json_t *other);
void plan_xrc_cqs(json_t *qp);
/* qp receives from srq: of one that is of an extended reliable connection that is noted here; false: it is of none. */
bool plan_xrc_feed(struct planner *p, json_t *qp, json_t *srq);
void plan_xrc_domains(struct planner *p); /* "xrcds", where there are any */
bool plan_any_xrc(const struct planner *p, const json_t *pairs);
/* No more SENDs than there are receives: nothing comes back that would tell of new ones. */
int plan_xrc_traffic(struct planner *p, const json_t *traffic, const json_t *pairs);

/* plan_bystander.c: the second pair, or false. New reference. */
json_t *plan_bystander(struct planner *p);

/* plan_layout.c: places of messages. */
int plan_place(struct planner *p, json_t *step);
/* Memory for a traffic or a recovery's check between these pairs. */
void plan_traffic_room(struct planner *p, const json_t *pairs, const json_t *traffic);
/* What a receive must hold. */
uint64_t plan_longest_message(const json_t *doc, const json_t *steps);
bool plan_op_is_remote(const char *op); /* speaks of the peer's memory */
bool plan_op_is_atomic(const char *op);
bool plan_op_has_data(const char *op); /* has bytes of its own, or brings some */

/* plan_steps.c */
int plan_steps(struct planner *p, const json_t *in, json_t *out);
/* Makes ends and pairs of a packet match canonical. */
int plan_match(struct planner *p, json_t *match);

/* plan_deadline.c: what follows from all the steps before; puts `deadline_ns` into each of them. */
void plan_deadlines(struct planner *p, const json_t *steps);
uint64_t plan_budget(const json_t *steps);

/* plan_skip.c: fills p->skip. */
void plan_skip(struct planner *p);

#endif
