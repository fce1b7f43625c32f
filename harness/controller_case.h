/* SPDX-License-Identifier: MIT */
/*
 * Inside the controller: the case that runs, its agents, its objects. Nothing outside controller*.c, step*.c and recover*.c
 * includes this, but for what lists recovery paths and steps (controller_step.h).
 *
 * Callbacks of the loop only note what came (controller_agent.c, controller_klog.c); case_wait() writes it down and is the only
 * place that waits.
 */
#ifndef QD_CONTROLLER_CASE_H
#define QD_CONTROLLER_CASE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>
#include <uthash.h>

#include "../faults/fault.h"
#include "controller.h"
#include "error.h"
#include "lab.h"
#include "line.h"
#include "observe.h"
#include "proc.h"
#include "record.h"

#define CTL_NAME_MAX 64
#define CTL_PSN_MASK 0xffffffu
#define CTL_PSN_GAP (1u << 22) /* a new life's PSN is at least this far from the old window */

/* What an agent request may take, beyond the deadline that it carries itself. */
#define CTL_REQUEST_NS (8 * 1000000000ULL)
#define CTL_TURN_NS (60 * 1000000000ULL) /* one that has no turn is waited for so long, whatever it was asked */
/* More for each further one in the same message. */
#define CTL_REQUEST_EACH_NS (100 * 1000000ULL)

/* ---- agents (controller_agent.c) ---- */

struct case_run;
struct controller;
struct ctl_wire;

struct request {
	struct request *prev, *next;
	int64_t id;
	bool done;
	int rc;        /* the reply's, or -EPIPE when the agent ended, -ETIMEDOUT when the deadline passed */
	json_t *reply; /* owned; NULL without one */
};

struct ctl_agent {
	struct ctl_agent *prev, *next;
	struct controller *c;
	struct proc proc;
	struct line *line;
	struct request *pending;
	int64_t last_id;
	char name[CTL_NAME_MAX]; /* the scenario's agent; "" while in the pool */
	json_t *hello;
	json_t *device; /* device_open's reply with netdev, rdma; NULL before */
	const struct lab_device *lab_device;
	char netns[sizeof((struct lab_device *)0)->netns]; /* the path of the network namespace that it runs in; "" */
	unsigned own_dumps, own_counters;                  /* records of these kinds that it sent by itself */
	bool ended;                                        /* end of file or a broken line */
	bool end_noted;                                    /* its end is on record, or was wanted */
	bool used_cm;                                      /* librdmacm keeps devices open as long as its process lives */
	bool gid_changed;                                  /* the device has said so since its GID was last looked up */
	bool frozen;
	bool spoilt; /* not to be used for another case */
};

/* Starts agents for all names of the plan that have none, in parallel, and waits for their hellos. */
int agents_start(struct case_run *r, struct error *e);
/* Gives the seed and opens the device: of one agent, or of all (NULL). */
int agents_open(struct case_run *r, const char *name, struct error *e);
struct ctl_agent *agent_find(struct case_run *r, const char *name);
/* NULL when it can be asked, else why not. */
const char *agent_unreachable(const struct ctl_agent *a);
/* Sends; the request is the caller's until ctl_request_free(). req is stolen and gets its id. */
int agent_send(struct ctl_agent *a, json_t *req, struct request **ret);
void ctl_request_free(struct ctl_agent *a, struct request *q);
/* Ends the process by pidfd and forgets it. */
void agent_end(struct ctl_agent *a, uint64_t grace_ns);
/* Signals the agent's own process (SIGSTOP, SIGCONT, SIGKILL). */
int agent_signal(struct ctl_agent *a, int sig, struct error *e);
/* Text of a wait status: "killed by signal 9", "exit status 3". Returns buf. */
char *agent_end_text(const struct ctl_agent *a, char *buf, size_t size);
/* One is asked to let go of all it has, its device too; its objects are gone then. */
int agent_lets_go(struct case_run *r, const char *name, struct error *e);
/* Asks all agents of the case to let go; those that come back clean return to the pool. */
void agents_release(struct case_run *r);
void agents_free(struct controller *c);

/* ---- the case (controller.c, controller_wait.c) ---- */

struct controller {
	sd_event *loop;
	struct lab *lab;
	struct lab_lane lane;
	struct controller_options o;
	struct ctl_agent *agents; /* of the case and of the pool */
	struct ctl_wire *wire;    /* NULL until a case needs it */
	struct lab_lane wired;    /* the lane's devices with the wire between; valid once has_wired */
	bool has_wired;
	struct case_run *run; /* NULL between cases */
	char clk[128];
	int kmsg_fd;
	sd_event_source *kmsg_source;
	struct controller_complaints complaints;
	json_t *picture, *picture_of; /* how the last case left the lab, when that is how it found it, and its `link`; NULL */
	json_t *counted;              /* rdma device -> when its counters were read last by anyone of this lane (ns) */
	json_t *device_caps;          /* rdma device -> what its flags say that it can do, once a case wanted to know */
	bool stuck;                   /* controller_is_stuck() */
};

struct fault_run;
struct post;

struct case_run {
	struct controller *c;
	json_t *link;                /* what the case wants of it */
	const struct lab_lane *lane; /* the devices of this case: those of the lane, or those with the wire between */
	json_t *plan;
	const char *id;
	const char *dir; /* the case's folder */
	struct recorder *rec;
	sd_event_source *write; /* when records that wait are written */
	uint64_t write_ns;      /* what that was set to last */
	struct model *model;
	json_t *inbox;  /* what callbacks noted: {"src","clk","rec","text"}; without rec it was not read, and is of "count" */
	json_t *unread; /* what is on disk and was not taken in yet; NULL: nothing */
	bool later;     /* case_later() */
	struct object *objects; /* uthash by name */
	struct object *keyed;   /* the first MR or window that is no QP's own */
	unsigned n_objects, marks;
	struct post *posts;
	struct fault_run *faults;   /* in order of injection */
	struct fault_env fault_env; /* case_fault_env with ctl set to this case */
	json_t *remembered;         /* name -> handover */
	json_t *counted_anew;       /* agents whose device is another one since their counters were read; NULL: none */
	json_t *wc_counts;          /* "p.a.send RETRY_EXC_ERR" -> how many */
	json_t *connections;        /* pair -> {"life","ends"}: what the wire was told */
	json_t *to_tell;            /* all that a wire is told of connections, in order; another one is told the same */
	size_t told;                /* so many of them it has been */
	unsigned wires;             /* started or taken over for this case */
	json_t *traffic_posts;      /* "p.a.send" -> ns when a traffic last had something accepted there */
	json_t *traffics;           /* running background traffic: as -> [{"agent","qp"}] */
	uint64_t seed;
	uint64_t end_ns; /* of the budget */
	uint64_t news;   /* records that may change an expectation */
	int step;
	char iter[64];
	unsigned traffics_run; /* tells the messages of one traffic from those of another */
	unsigned iterations;   /* of all repeats so far: tells the messages of one from those of another */
	unsigned attempt;      /* of the recovery that runs */
	bool over;             /* the budget is spent */
	bool paused;           /* it has been */
	bool in_due;           /* a timed action runs: no second one inside */
	bool broken;           /* an expecting step of this iteration did not hold */
	bool witnessed;        /* it counts how late this kernel's timers are */
	struct {
		bool runs, ended; /* connected; something ended its traffic */
		unsigned quiet;   /* faults that want silence */
	} bystander;
};

/* Writes what the callbacks noted, runs timed fault actions that are due, and waits until done(user) is true (0), at_ns passes or
 * the budget ends (-ETIMEDOUT), or the loop fails. done NULL: until at_ns. */
int case_wait(struct case_run *r, bool (*done)(void *user), void *user, uint64_t at_ns);
/* The same until those that are waited for have done nothing for idle_ns. While one of them is at work, or wants its turn
 * (at_work), it is waited for CTL_TURN_NS longer at most. */
int case_wait_idle(struct case_run *r, bool (*done)(void *user), void *user, bool (*at_work)(struct case_run *r), uint64_t idle_ns);
/* Writes down what has come so far. */
void case_drain(struct case_run *r);
/* A record of the controller's (or lab's, kernel's): written and fed to the model. rec is stolen. */
void case_record(struct case_run *r, const char *src, json_t *rec);
/* A note from a callback: becomes a record at the next drain. rec is stolen. */
void case_note(struct case_run *r, const char *src, const char *clk, json_t *rec);
/* The same for one that came as this text, `{...}`, which is copied. */
void case_note_text(struct case_run *r, const char *src, const char *clk, json_t *rec, const char *text, size_t len);
/* The same for one of `count` records that came as this text, and was not read: what it tells is for later. */
void case_note_unread(struct case_run *r, const char *src, const char *clk, const char *text, size_t len, uint64_t count);
/* From now on records are written down at once and read when it is over: while nothing waits for what they tell, and there is
 * nothing that they could tell of but the ends that are moved. Off: all that there are are read. */
void case_later(struct case_run *r, bool on);
void case_catch_up(struct case_run *r);
__attribute__((format(printf, 3, 4))) void case_lost(struct case_run *r, unsigned count, const char *fmt, ...);

/* Stops before this step, where the plan has it so (controller_pause.c). */
void case_pause(struct case_run *r, const json_t *step);

/* ---- the wire (controller_wire.c) ---- */

struct object;
struct ops;

/* The plan needs it. */
bool wire_wanted(const struct case_run *r);
/* Starts it if it does not run, opens its ports, and a capture in the case's folder (wire.pcapng; of the second one in a case
 * wire-2.pcapng). r->lane has its far ends. */
int wire_open(struct case_run *r, struct error *e);
/* Tells it of a connection before the first packet: both ends' addresses, QPNs and PSNs, if they are new. Nothing without a wire.
 */
int wire_connect(struct case_run *r, struct object *qp, struct error *e);
/* One request; req is stolen. -EPIPE without a wire, and when it hangs: then it is ended, and so is the case. */
int wire_ask(struct case_run *r, json_t *req, json_t **ret_reply, struct error *e);
/* Returns when all that it has seen so far is on record. */
void wire_sync(struct case_run *r);
/* Ends the capture and lets go of the ports; the account is on record. */
void wire_close(struct case_run *r);
/* Notes its death. */
void wire_note_end(struct case_run *r);
/* A fault of the case: the process is killed and waited for, and that is no surprise. ret_status: "killed by signal 9". */
int wire_kill(struct case_run *r, char *ret_status, size_t size, struct error *e);
/* The same, stopped (*ret_pid: which process) or let go on. While it is stopped, nobody asks it anything. */
int wire_stop(struct case_run *r, bool stop, pid_t *ret_pid, struct error *e);
/* Its process; 0 without one. */
pid_t wire_pid(const struct case_run *r);
bool wire_is_stopped(const struct case_run *r);
/* Another one in the place of one that was killed, told of all connections of the case. */
int wire_restart(struct case_run *r, struct error *e);
void wire_free(struct controller *c);

/* ---- the pair that looks on (controller_bystander.c) ---- */

/* A record of it, and whether it tells more than that all is well. */
bool bystander_record(const char *src, const json_t *rec, bool *ret_tells);
/* Connects its agents, which run already, and lets the first message go. Nothing where the plan has none. */
int bystander_start(struct case_run *r, struct error *e);
/* Adds the requests after which its statistics and states are on record; then that is told. */
void bystander_stop_add(struct case_run *r, struct ops *ops);
void bystander_stopped(struct case_run *r);
/* Its own statistics of that time where the fault reaches it; silence where the fault's proof counts whatever is on the link. After
 * a fault of the link that ended it, it is connected anew. */
void bystander_fault_begins(struct case_run *r, const struct fault *f);
void bystander_fault_ends(struct case_run *r, const struct fault *f);

/* ---- kernel log and residue (controller_klog.c, controller_residue.c) ---- */

void klog_begin(struct case_run *r);
void klog_end(struct case_run *r);
json_t *residue_snapshot(struct case_run *r);
/* Compares with before (stolen, may be NULL), waiting a little for what goes by itself. */
void residue_check(struct case_run *r, json_t *before);
/* The next case makes a picture of its own. */
void residue_forget(struct controller *c);
/* Entries of a that b does not have. New reference. Both may be NULL. */
json_t *residue_difference(const json_t *a, const json_t *b);

/* ---- what is held (controller_resources.c) ---- */

/* Of a repeat whose resources are to be flat, round by round. */
struct resources_watch {
	struct case_run *r;
	int64_t rounds;
	json_t *base; /* after the warm-up; NULL before */
};

/* After a round: a `resources` record where one is due. */
void resources_round(struct resources_watch *w, int64_t round);
void resources_free(struct resources_watch *w);

/* ---- clocks (controller_clock.c) ---- */

/* Times of the agent compare with the controller's as they are. */
bool clock_is_shared(const struct ctl_agent *a);
void clock_measure(struct case_run *r);

/* ---- objects (controller_object.c) ---- */

enum object_type {
	OBJECT_INVALID,
	OBJECT_PD,
	OBJECT_CQ,
	OBJECT_SRQ,
	OBJECT_MR,
	OBJECT_MW,
	OBJECT_AH,
	OBJECT_XRCD,
	OBJECT_QP,
	NUM_OBJECT_TYPES
};
extern const char *const ctl_object_type_names[NUM_OBJECT_TYPES]; /* "pd" "cq" ... as `destroy` has them */

struct object {
	const char *name; /* of the plan */
	json_t *named;    /* the same, as it stands there; borrowed */
	enum object_type type;
	const json_t *plan;
	const char *agent;
	bool exists;
	bool leaving; /* its destruction has not returned yet */
	unsigned life;
	json_t *ret; /* creation's reply, kept after destroy for values like cqe */
	/* MR */
	uint32_t rkey, old_rkey;
	bool had_old;
	bool is_rx;  /* its QP's receives use it */
	json_t *key; /* as it is handed over, with this rkey and of this life; NULL: nobody was told of it yet */
	uint32_t key_rkey;
	unsigned key_life;
	/* QP */
	const char *peer, *pair;
	const char *state; /* static; as last seen */
	uint32_t qpn, sq_psn;
	unsigned psn_lives;    /* PSNs chosen so far */
	bool receives_posted;  /* by the harness, in this life */
	unsigned receives_own; /* by steps of the file, in this life, before that */
	unsigned kept_back;    /* receives that a fault holds */
	const char *wanted;    /* how far connect wants it: "RTS" */
	json_t *told;          /* what this end was told of its peer */
	json_t *queried;       /* newest answer of the device */
	json_t *rtr, *rts;     /* the answers right after those transitions */
	json_t *override_attr; /* attributes that a recover changed */
	json_t *view;          /* for fault_env->qp */
	bool has_cm;           /* its agent has an end of a connection for it (controller_cm.c) */
	struct object *keyed;  /* the first MR of its own; of an MR: the next one */
	struct post *posts;    /* of it, newest first */
	unsigned number;       /* in the plan */
	unsigned alike;        /* many_classes(); 0: like no other */
	uint32_t seen_psn;     /* the next one of its send queue when it was last asked; valid when has_seen_psn */
	bool has_seen_psn;
	unsigned marked; /* see ends_add() */
	UT_hash_handle hh;
};

int ctl_objects_init(struct case_run *r, struct error *e);
void ctl_objects_free(struct case_run *r);
struct object *ctl_object_find(struct case_run *r, const char *name);
/* The objects of an agent that died are gone. */
void ctl_objects_lost(struct case_run *r, const char *agent);
/* A planned integer, a reference to what a device returned, or def when NULL. -ENOENT when the reference names nothing known. */
int value_resolve(struct case_run *r, const json_t *value, int64_t def, int64_t *ret, struct error *e);
/* The value of an attribute of this end: what a recover set, else the plan's. Borrowed, may be NULL. */
const json_t *qp_attr(const struct object *qp, const char *name);
const json_t *qp_cap(const struct object *qp, const char *name); /* the same of what is fixed at its creation */

/* ---- requests in bundles (controller_ops.c) ---- */

#define CTL_COLUMNS_MAX 4

struct op {
	struct op *prev, *next;
	char agent[CTL_NAME_MAX];
	json_t *req;
	json_t *reply; /* NULL without one */
	int rc;
	char text[512]; /* why rc is negative */
	void *user;
	unsigned part, member; /* of the message: in which of its parts it is, and which of those folded there */
	const char *of;        /* it is one for many objects (controller_many.c): what is asked of each; NULL: of one */
	unsigned alike;
	const char *to, *gid; /* a move: what is asked of all, where RTR of all leads; borrowed of req */
	struct object **obj;  /* n_obj of them */
	size_t n_obj, room;
	struct {
		const char *path;
		json_t *values; /* borrowed of req */
	} column[CTL_COLUMNS_MAX];
	unsigned n_columns;
	UT_hash_handle hh; /* in `made` */
};

struct ops {
	struct op *head;
	struct op *made;               /* those that make an object, or fill an SRQ, by its name: each once */
	bool stops;                    /* an agent does nothing of it after what fails there; the rest has rc -ECANCELED */
	void (*meanwhile)(void *user); /* called once, when all messages are sent, if there is one: time for what needs no answer */
	void *user;
};

/* req is stolen. Returns the op so that the caller can look at its reply after ops_run(); NULL when out of memory (ops_run fails
 * then). */
struct op *ops_add(struct ops *ops, const char *agent, json_t *req);
/* One message to each agent, those that ask for the same one after the other folded (many.h), then waits for all, for timeout_ns
 * (0: CTL_REQUEST_NS) and CTL_REQUEST_EACH_NS more for each request beyond an agent's first. What the replies say about objects is
 * applied. 0 or the rc of the first op that failed. */
int ops_run(struct case_run *r, struct ops *ops, uint64_t timeout_ns, struct error *e);
/* The same; watch is called whenever an agent has answered, so that it can act while others have not. */
int ops_run_watched(struct case_run *r, struct ops *ops, uint64_t timeout_ns,
		    void (*watch)(struct case_run *r, struct ops *ops, void *user), void *user, struct error *e);
void ops_free(struct ops *ops);
/* One request. ret_reply may be NULL. */
int ask(struct case_run *r, const char *agent, json_t *req, uint64_t timeout_ns, json_t **ret_reply, struct error *e);
/* What a move did: `to` as asked, `now` as it is (a row of names_state; NULL: not known). */
void effect_moved(struct case_run *r, struct object *qp, const char *to, const char *now, unsigned life);
/* Applies what a successful request did to the table of objects (controller_effect.c). */
void effect_apply(struct case_run *r, const char *agent, const json_t *req, const json_t *reply);

struct ends {
	struct object **qp;
	size_t n;
};

/* ---- one request for many (controller_many.c) ---- */

#define CTL_CROWD_MIN 32 /* fewer ends are asked one by one */

/* These ends are many, and no fault changes what any of them is asked for or told. */
bool many_may(struct case_run *r, const struct ends *ends);
/* Gives QPs of an agent whose requests differ in nothing but what they are told the same number (object.alike). */
void many_classes(struct case_run *r);
/* The request that this one may join as a member: the newest of its agent, of the same kind and class (0: all are). NULL: none. */
struct op *many_find(struct ops *ops, const struct object *o, const char *of, unsigned alike);
/* A new one without members. all, what is asked of each of them, is stolen. */
struct op *many_begin(struct ops *ops, const struct object *o, const char *of, unsigned alike, json_t *all);
/* One more member: its name stands in that column. value is borrowed, and NULL where it has none; path lives as long as the op. */
void many_join(struct op *op, struct object *o, const char *key);
void many_column(struct op *op, const char *path, json_t *value);
/* Adds a move that needs nothing but its name; many: as a member of one for all of its agent. */
void many_move(struct ops *ops, struct object *qp, const char *to, const char *by, bool many);
/* Before it is sent. */
void many_complete(struct op *op, bool stops);
/* What a reply says of an op for many: its rc and text, and the effect on the objects. */
void many_take(struct case_run *r, struct op *op);
/* The text of one that has failed for all of them; why NULL: what its rc says. */
void many_failed(struct op *op, const char *why);

/* ---- connections (controller_create.c, controller_link.c, controller_handover.c) ---- */

/* Both ends of each pair named. -ENOENT with a sentence for one that is not there. */
int ends_of_pairs(struct case_run *r, const json_t *pairs, struct ends *ret, struct error *e);
/* The ends named, canonical ("p.a"; a former life "p.a@1" counts as "p.a"). */
int ends_of_names(struct case_run *r, const json_t *names, struct ends *ret, struct error *e);
void ends_free(struct ends *ends);
bool ends_have(const struct ends *ends, const struct object *qp);

/* Adds the requests that make an object and what it stands on, if it does not exist. */
void link_create(struct case_run *r, struct ops *ops, struct object *o);
/* Creates what is missing and takes the ends as far as `wanted` ("INIT" "RTR" "RTS"), each as far as no fault holds it; receives
 * before RTR, keys handed over between. */
int link_up(struct case_run *r, const struct ends *ends, const char *wanted, const char *by, struct error *e);
/* Adds RESET of those that exist. */
void link_reset(struct case_run *r, struct ops *ops, const struct ends *ends, const char *by);
/* RESET first, then as link_up to RTS. */
int link_renew(struct case_run *r, const struct ends *ends, const char *by, struct error *e);
/* The attributes that a transition needs, with what this end was told. New reference. */
json_t *link_attrs(struct case_run *r, struct object *qp, const char *to);
/* The MR that a QP's receives use: its own of role rx. NULL: it has none. */
const struct object *link_receive_mr(const struct object *qp);
/* Adds the receives for the whole RQ (or the SRQ), or notes them as kept back. */
void link_receives(struct case_run *r, struct ops *ops, struct object *qp, const char *by);
/* q: a QP, or an SRQ. */
int link_release_receives(struct case_run *r, struct object *q, struct error *e);
/* As link_up to RTS, by rdma_cm: the end at agent `from` (NULL: the first of each pair) asks the other. -ECONNREFUSED and the like
 * when it came to nothing; *ret_reason (static, a row of names_cm_reject) then says why, where the CM did. */
int cm_up(struct case_run *r, const struct ends *ends, const char *from, const char *by, const char **ret_reason, struct error *e);
/* The first end of each pair that can takes leave, and the agents forget the connections. A peer that is gone hears nothing of it:
 * that is no failure. Nothing where there is no connection. */
int cm_down(struct case_run *r, const struct ends *ends, struct error *e);
/* A PSN at least CTL_PSN_GAP away from the window [first, last], from random bits. */
uint32_t psn_away(uint32_t first, uint32_t last, uint64_t random);
/* Random bits that follow from the seed, a name and a count alone. */
uint64_t case_random(uint64_t seed, const char *name, unsigned count);
/* What qp would tell its peer now. New reference. */
json_t *handover_make(struct case_run *r, const struct object *qp);
/* The part of it that is the key of one region, which exists. New reference. */
json_t *handover_region(struct object *mr);
/* Tells `to` what its peer is, past the faults that change things on their way. keys_only: QPN, PSN and GID stay as they were told.
 */
int handover_tell(struct case_run *r, struct object *to, bool keys_only, struct error *e);
/* The key of one region as it is now, or that there is none: all else stays as it was told. */
int handover_tell_key(struct case_run *r, struct object *to, const char *region, struct error *e);

/* ---- datagrams (controller_datagram.c) ---- */

/* A UD QP: it is connected to nobody, and each of its requests says where it goes. */
bool is_datagram(const struct object *qp);
/* The request that makes an address handle; what it stands on is added to ops. */
json_t *datagram_create_ah(struct case_run *r, struct ops *ops, const struct object *ah);
/* Adds the requests that make the handles of a QP and those of its agent, where they do not exist. */
void datagram_handles(struct case_run *r, struct ops *ops, const struct object *qp);
/* Handles that lead elsewhere than these ends were told, or are gone, are made anew. */
int datagram_readdress(struct case_run *r, const struct ends *ends, struct error *e);
/* Adds `ah`, `remote_qpn` and `remote_qkey` to a request of a UD QP; spec: a step or a member with `ah`, `qkey`, `qpn`. */
void datagram_address(struct case_run *r, const struct object *qp, const json_t *spec, json_t *req);

/* Index of a RoCE v2 GID in a port's table under this sysfs; -ENOENT, -EINVAL. */
int gid_find(const char *sysfs, const char *rdma, int port, const char *gid);
/* That of the first link-local one. */
int gid_find_link_local(const char *sysfs, const char *rdma, int port);
/* After a GID_CHANGE: looks the agent's GID up again. */
void gid_refresh(struct ctl_agent *a);

/* ---- payload (controller_payload.c) ---- */

struct post {
	struct post *prev, *next;
	struct post *older; /* at the same QP */
	struct post *list;  /* it is a member of that list, which was posted as one; NULL: of none */
	unsigned index;     /* which of its members */
	char as[CTL_NAME_MAX];
	char op[32];
	struct object *qp;
	char mr_agent[CTL_NAME_MAX], mr[CTL_NAME_MAX]; /* where the bytes end up, unless find */
	bool find;                                     /* a SEND: looked for in the peer's receive slots */
	bool data;                                     /* it moves something that can be looked at */
	bool passes_on;                                /* sends what a READ of that name fetches, as it lies there by then */
	bool atomic;                                   /* words, not a pattern: */
	uint64_t before, after;                        /* what is there until it is done, and once it is done once */
	uint64_t land_off;                             /* where its answers end up, in the QP's own tx */
	const char *srq;                               /* that it is for, where it says one; of the plan */
	int step;
	uint32_t tag;
	uint64_t size, off, stride, slots;
	unsigned count, accepted, succeeded, failed;
	uint64_t first, last; /* wr_ids */
	uint64_t t_ns;        /* when it was posted */
	bool has_ids, verified;
	bool out_of_reach;    /* when it was last looked for */
	unsigned verified_at; /* how many had ended when it was verified */
	unsigned asked_at;    /* and when it was asked for */
	unsigned asked_succeeded;
	int64_t process; /* whose memory its bytes end up in: gone with it, whatever has its name later */
};

void posts_add(struct case_run *r, struct post *p);     /* p is the case's */
void posts_note(struct case_run *r, const json_t *rec); /* post and wc records */
void posts_free(struct case_run *r);
/* The process that can look at what it has posted; 0 for none. */
int64_t payload_process(struct case_run *r, const struct post *p);
/* What lies in an agent's memory so far can be looked at no more: it has given that up. */
void payload_lost(struct case_run *r, const char *agent);
/* Verifies one post now; a payload record. */
void payload_verify(struct case_run *r, struct post *p);
/* Verifies what had completions and was not verified since: before anything overwrites. tag 0: all. */
void payload_settle(struct case_run *r, uint32_t tag);
/* What never came to an end of its own: what of it has landed by now. ends NULL: wherever it was posted. */
void payload_unended(struct case_run *r, const struct ends *ends);
/* The same as a part of more, as far as it goes with one question each; what is left is settled after it. */
void payload_add(struct case_run *r, struct ops *ops, uint32_t tag);
void payload_take(struct case_run *r, const struct ops *ops);
/* Those named `as`, whatever became of them. */
void payload_of(struct case_run *r, const char *as);
/* Posts at this QP (NULL: all). */
void payload_at(struct case_run *r, const struct object *qp);

/* ---- faults (controller_fault.c, controller_fault_env.c) ---- */

struct fault_run {
	struct fault_run *prev, *next;
	struct fault f;
	char as[CTL_NAME_MAX];
	unsigned nth; /* of those of that name, from 1 */
	struct case_run *r;
	json_t *args;
	uint64_t timer_ns; /* when ops->on_timer is due; 0: not */
	uint64_t clear_ns; /* when `for` ends; 0: not */
	bool proven, done; /* fired is on record; cleared */
};

/* The operations with ctl still empty; a case has its own copy. */
extern const struct fault_env case_fault_env;

int fault_inject(struct case_run *r, const json_t *step, struct error *e);
int fault_clear(struct case_run *r, const char *as, struct error *e);
bool fault_is_active(struct case_run *r, const char *as);
/* Any of the case, timed ones that wait for their time too. */
bool faults_active(struct case_run *r);
/* Records what a fault that is active has done so far, if it has done anything. */
void fault_look(struct case_run *r, const char *as);
/* At the end: proof of all that have none, clear of all that are active. */
void faults_finish(struct case_run *r);
/* The wire was killed, and the rules with it. */
void faults_wire_gone(struct case_run *r);
/* Lets frozen agents and a stopped wire run on, so that they can be asked at the end. */
void faults_thaw(struct case_run *r);
void faults_free(struct case_run *r);
/* The next timed action, UINT64_MAX for none; and doing those that are due. */
uint64_t faults_next(const struct case_run *r);
void faults_due(struct case_run *r);
/* Hooks over all active faults. */
void faults_on_handover(struct case_run *r, const char *to_qp, json_t *handover);
bool faults_hold_receives(struct case_run *r, const char *qp);
const char *faults_hold_state(struct case_run *r, const char *qp);
void faults_on_modify(struct case_run *r, const char *qp, const char *to, json_t *set);
/* How the end refuses whoever asks it by rdma_cm: "reject" "nobody"; NULL: it accepts. */
const char *faults_cm_refuses(struct case_run *r, const char *qp);
/* A connect by rdma_cm to that end came to nothing, for this reason (may be NULL). */
void faults_cm_refused(struct case_run *r, const char *qp, const char *reason);
void faults_on_create(struct case_run *r, const char *name, json_t *req);
void faults_on_post(struct case_run *r, const char *qp);

#endif
