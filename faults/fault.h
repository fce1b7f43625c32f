/* SPDX-License-Identifier: MIT */
/*
 * A fault is one file in this folder with one `const struct fault_ops`, listed in fault_table.c. It never calls the
 * controller: what it needs of the world comes through struct fault_env. Loader, schema, help and docs read the same table.
 *
 * Proof: a fault that cannot show that it fired makes the case inconclusive. `prove` is asked when the fault is cleared and
 * at the end of the case.
 */
#ifndef QD_FAULT_H
#define QD_FAULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../harness/error.h"
#include "../harness/plan.h"

enum fault_layer { FAULT_LAYER_INVALID, FAULT_VERBS, FAULT_LINK, FAULT_WIRE, FAULT_PROCESS, NUM_FAULT_LAYERS };
enum fault_blast { FAULT_BLAST_INVALID, FAULT_BLAST_PAIR, FAULT_BLAST_DEVICE, FAULT_BLAST_LINK, NUM_FAULT_BLASTS };

enum fault_param_type {
	FAULT_PARAM_INVALID,
	FAULT_PARAM_END,  /* one end: "b" */
	FAULT_PARAM_ENDS, /* one or several */
	FAULT_PARAM_AGENT,
	FAULT_PARAM_DEVICE,
	FAULT_PARAM_INT,
	FAULT_PARAM_DURATION, /* ns in the document */
	FAULT_PARAM_SIZE,
	FAULT_PARAM_PERCENT, /* string "5%" */
	FAULT_PARAM_ENUM,    /* one of `values` */
	FAULT_PARAM_NAME,    /* something named by `as:` or an object's name */
	FAULT_PARAM_STRING,
	FAULT_PARAM_MAP, /* checked by the fault itself (wire's match, rewrite, forge) */
	NUM_FAULT_PARAM_TYPES,
};

struct fault_param {
	const char *name;
	enum fault_param_type type;
	bool required;
	int64_t min, max;          /* INT, DURATION (ns), SIZE; both 0: any */
	const char *const *values; /* ENUM: NULL-terminated */
	const char *unit;
	const char *def; /* as it would be written, or NULL */
	const char *help;
};

struct fault;

/* What a fault may ask of the world; implemented by the controller. QP names are canonical ("p.b"). */
struct fault_env {
	void *ctl;
	/* One agent request, waited for (deadline inside). req is stolen. Returns the reply's rc (0 or negative errno) or a
	 * negative errno of the channel; *ret_reply may be NULL. */
	int (*request)(void *ctl, const char *agent, json_t *req, json_t **ret_reply, struct error *e);
	/* One ip/tc/rdma command in the lab. */
	int (*lab)(void *ctl, const char *tool, const char *args, json_t **ret_out, struct error *e);
	/* {"netdev":"…","rdma":"…","gid":"…"} of the device that an agent uses. Borrowed. */
	const json_t *(*device)(void *ctl, const char *agent);
	const json_t *(*plan)(void *ctl); /* plan.json; plan_qp() etc. work on it */
	const char *(*peer)(void *ctl, const char *qp);
	/* {"qpn":…,"life":…,"state":"…","recv_outstanding":…} as last seen. Borrowed. */
	const json_t *(*qp)(void *ctl, const char *qp);
	/* At which index the GID of an agent's device stands in its port's table, waited for until that is another one than
	 * `but_not` (-1: any). A negative errno when it does not come to that. */
	int (*gid_index)(void *ctl, const char *agent, int but_not, struct error *e);
	/* The RDMA device of an agent goes: its removal begins, all agents give up what they have of it, and it is gone when this
	 * returns. */
	int (*device_remove)(void *ctl, const char *agent, struct error *e);
	/* It is made anew under its name, on its network device; those agents have it open when this returns, and nothing else. */
	int (*device_make)(void *ctl, const char *agent, struct error *e);
	/* What an end was told of its peer at `remember` ("late_reply"). Borrowed, NULL when there is none. */
	const json_t *(*remembered)(void *ctl, const char *name);
	/* Fresh counters of the device an agent uses. New reference. */
	json_t *(*counters)(void *ctl, const char *agent);
	/* Posts the receives that were kept back at this end, or SRQ. */
	int (*release_receives)(void *ctl, const char *qp, struct error *e);
	/* Goes on with a connect that a fault held (peer_held). */
	int (*resume_connect)(void *ctl, const char *qp, struct error *e);
	/* New keys of an end's MRs are handed to its peer. */
	int (*exchange)(void *ctl, const char *pair, struct error *e);
	/* Calls ops->on_timer of this fault after so many ns. */
	int (*timer)(void *ctl, struct fault *f, uint64_t after_ns);
	/* First and count of WC statuses seen so far at a QP's send or recv queue: for proofs. */
	unsigned (*wc_count)(void *ctl, const char *queue, const char *status);
	/* Sends that a QP has had accepted since the fault was injected; those of traffics, if any, count as one. */
	unsigned (*posts_since)(void *ctl, const struct fault *f, const char *qp);
	/* Signals an agent's own process. After SIGKILL it is waited for, its end is no surprise, and ret_status (may be NULL)
	 * tells how: "killed by signal 9". */
	int (*signal)(void *ctl, const char *agent, int sig, char *ret_status, size_t size, struct error *e);
	/* The agent's channel ends, as it does when its controller is gone: it is to let go of everything and leave. Waited for;
	 * ret_status tells how it left: "exit status 0". */
	int (*abandon)(void *ctl, const char *agent, char *ret_status, size_t size, struct error *e);
	/* Starts an agent that was killed anew, with its device open and nothing else. */
	int (*restart)(void *ctl, const char *agent, struct error *e);
	/* One request of the wire (agents/wire.md). req is stolen; the reply's rc, or a negative errno of the channel. */
	int (*wire)(void *ctl, json_t *req, json_t **ret_reply, struct error *e);
	/* Signals its process; as `signal` does. With SIGKILL its rules are gone: what they have done is proven now or never. */
	int (*wire_signal)(void *ctl, int sig, char *ret_status, size_t size, struct error *e);
	/* Another wire in the place of one that was killed: same devices, told of all connections. */
	int (*wire_restart)(void *ctl, struct error *e);
	/* The requests that make an MR of the plan anew, with this access ([..]; NULL: the planned one): destroy, create. */
	int (*mr_renew)(void *ctl, const char *mr, const json_t *access, struct error *e);
};

struct fault_ops {
	const char *name;
	const char *help; /* one line */
	enum fault_layer layer;
	enum fault_blast blast;
	const struct fault_param *params; /* ends with a row without a name */
	const char *const *needs;         /* capabilities ("wire", "guest"), NULL-terminated, may be NULL */
	const char *proof;                /* one line: what shows that it fired */
	bool counts_link;                 /* the proof counts all packets of the link: nobody else sends while it is active */
	bool undo_in_injector;            /* `for:` is timed there, not by the controller */
	bool takes_device;                /* from everybody who has it open: nobody looks on (`bystander: none`) */
	/* The finding of the device, given the normalised arguments. */
	enum detection (*detection)(const json_t *args);
	/* Where the arguments widen the blast; NULL: it is `blast`. */
	enum fault_blast (*blast_of)(const json_t *args);
	/* Checks what the table cannot say (exactly one of two). A sentence in e, -EINVAL. May be NULL. */
	int (*check)(const json_t *args, struct error *e);
	int (*inject)(struct fault *f, struct error *e);
	int (*clear)(struct fault *f, struct error *e);
	/* Evidence into *ret (new reference). 1 fired, 0 not, negative errno. */
	int (*prove)(struct fault *f, json_t **ret, struct error *e);
	/* Hooks, NULL when the fault does not care. */
	void (*on_handover)(struct fault *f, const char *to_qp, json_t *handover); /* may change what an end is told of its peer */
	bool (*holds_receives)(struct fault *f, const char *qp);     /* harness-posted receives of a QP or SRQ are kept back */
	const char *(*holds_state)(struct fault *f, const char *qp); /* connect stops there: "INIT"; NULL: no */
	void (*on_modify)(struct fault *f, const char *qp, const char *to, json_t *set); /* may change attributes on their way */
	const char *(*cm_refuses)(struct fault *f, const char *qp); /* how it answers who asks by rdma_cm; NULL: it accepts */
	void (*cm_refused)(struct fault *f, const char *qp, const char *reason); /* such a connect came to nothing */
	void (*on_create)(struct fault *f, const char *name, json_t *req);       /* may change how an MR, CQ or QP is made */
	void (*on_post)(struct fault *f, const char *qp);                        /* after a post was accepted there */
	void (*on_timer)(struct fault *f);
};

/* One injected fault. args: normalised, its ends resolved to canonical QP names (always arrays for ENDS, a string for END). */
struct fault {
	const struct fault_ops *ops;
	const struct fault_env *env;
	const char *as;
	const json_t *args;
	json_t *state; /* the fault's own, freed by its owner */
	uint64_t injected_ns;
	bool active;
};

extern const struct fault_ops *const fault_table[]; /* NULL-terminated, sorted by name */
const struct fault_ops *fault_find(const char *name);
enum fault_blast fault_blast_of(const struct fault_ops *ops, const json_t *args);
extern const char *const fault_layer_names[NUM_FAULT_LAYERS];
extern const char *const fault_blast_names[NUM_FAULT_BLASTS];

#endif
