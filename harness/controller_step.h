/* SPDX-License-Identifier: MIT */
/* What the steps of a case, traffic and recovery share. */
#ifndef QD_CONTROLLER_STEP_H
#define QD_CONTROLLER_STEP_H

#include "controller_case.h"

enum outcome {
	OUTCOME_INVALID,
	OUTCOME_DONE,
	OUTCOME_MET,
	OUTCOME_BROKEN,
	OUTCOME_TIMEOUT,
	OUTCOME_REFUSED,
	OUTCOME_ERROR,
	OUTCOME_SKIPPED,
	NUM_OUTCOMES,
};
extern const char *const outcome_names[NUM_OUTCOMES];

struct step_result {
	enum outcome outcome;
	struct error text;
};

struct step_ops {
	const char *name;
	void (*run)(struct case_run *r, const json_t *step, struct step_result *res);
	/* Steps that `together` can send in one message: requests in, outcome after they ran. NULL: run alone. */
	int (*queue)(struct case_run *r, const json_t *step, struct ops *ops, struct error *e);
	void (*finish)(struct case_run *r, const json_t *step, struct ops *ops);
	bool moves; /* it moves ends, and asks for nothing that records tell of others */
	bool looks; /* it does nothing to anybody: should the kernel die now, it is of what was done before */
};

const struct step_ops *step_find(const char *name);
/* Runs one step with its begin and end records. */
void step_run(struct case_run *r, const json_t *step);
void step_record(struct case_run *r, const json_t *step, const struct step_result *res); /* res NULL: begin */
/* The outcome of bundled requests: refused by the verb, or the harness's own error. */
void step_from_rc(struct step_result *res, int rc, const struct error *e);
/* Until when this step may take. */
uint64_t step_deadline(const struct case_run *r, const json_t *step, uint64_t begin_ns, uint64_t def_ns);

void step_connect(struct case_run *r, const json_t *step, struct step_result *res);
int step_create_queue(struct case_run *r, const json_t *step, struct ops *ops, struct error *e);
int step_destroy_queue(struct case_run *r, const json_t *step, struct ops *ops, struct error *e);
int step_modify_queue(struct case_run *r, const json_t *step, struct ops *ops, struct error *e);
int step_post_queue(struct case_run *r, const json_t *step, struct ops *ops, struct error *e);
void step_post_finish(struct case_run *r, const json_t *step, struct ops *ops);
int step_post_recv_queue(struct case_run *r, const json_t *step, struct ops *ops, struct error *e);
int step_attach_queue(struct case_run *r, const json_t *step, struct ops *ops, struct error *e);
int step_poll_queue(struct case_run *r, const json_t *step, struct ops *ops, struct error *e);
void step_traffic(struct case_run *r, const json_t *step, struct step_result *res);
void step_fault(struct case_run *r, const json_t *step, struct step_result *res);
void step_clear(struct case_run *r, const json_t *step, struct step_result *res);
void step_expect(struct case_run *r, const json_t *step, struct step_result *res);
void step_allow(struct case_run *r, const json_t *step, struct step_result *res);
void step_recover(struct case_run *r, const json_t *step, struct step_result *res);
void step_remember(struct case_run *r, const json_t *step, struct step_result *res);
void step_exchange(struct case_run *r, const json_t *step, struct step_result *res);
void step_repeat(struct case_run *r, const json_t *step, struct step_result *res);
void step_together(struct case_run *r, const json_t *step, struct step_result *res);
void step_wait(struct case_run *r, const json_t *step, struct step_result *res);

/* Queries of ends: state records "by": "query". Dead ends get one that says so. */
void query_states(struct case_run *r, const struct ends *ends, const char *by);
void query_states_add(struct case_run *r, struct ops *ops, const struct ends *ends, const char *by);
void query_counters(struct case_run *r, const char *agent); /* NULL: all */
/* The device was made anew: the next record of its counters says so. */
void query_counters_anew(struct case_run *r, const struct lab_device *device);
/* The same as a part of more: adds the requests, and writes down what was answered. */
void counters_add(struct case_run *r, struct ops *ops, const char *agent);
void counters_take(struct case_run *r, const struct ops *ops);
/* Starts the witness timers of agents that have their own, or asks what they have seen and ends them. */
void witness_add(struct case_run *r, struct ops *ops, bool on);
/* From here on it counts how late the timers of this kernel are; at the end that is on record, of a case that came so far. */
void witness_begin(struct case_run *r);
void witness_note(struct case_run *r);
/* Somebody has read the counters of this agent's device: what the kernel shows for a moment after is that picture. */
void query_counted(struct case_run *r, const struct ctl_agent *a);
void query_dump(struct case_run *r, const struct ends *ends, const char *why); /* ends NULL: all agents */
/* Every QP of the pairs that a step speaks of; all when it names none. */
int ends_involved(struct case_run *r, const json_t *step, struct ends *ret, struct error *e);

/* ---- traffic and recovery (step_traffic.c, recover*.c) ---- */

struct traffic_spec {
	const char *as;
	const json_t *ops; /* array of names */
	int64_t size, depth, messages;
	uint32_t tag;
	const char *by;
	bool background, lossy;
};

/* Verified traffic between both ends of each pair, in both directions. 0 when every message arrived intact. */
int ctl_traffic_run(struct case_run *r, const struct ends *ends, const struct traffic_spec *spec, uint64_t timeout_ns,
		    struct error *e);

/* The agent is gone, and with it its half of each: the other one is still asked. */
void traffics_lost(struct case_run *r, const char *agent);
/* Background traffic that nobody stopped. */
void traffics_stop(struct case_run *r);
/* Begins, looks at or ends a part of the time of a background traffic (NULL: of each). */
void traffics_phase(struct case_run *r, const char *as, const char *phase, const char *what);
/* Nothing new is sent, and what was sent has had time to end; false: it goes on. For what exchanges a queue of the network device:
 * while it does the device refuses packets, which is more than a loss to some. */
void traffics_pause(struct case_run *r, bool on);

struct recover_path {
	const char *name;
	const char *help;
	/* NULL: the name is known, the path is not there yet. Takes the ends from whatever they are to RTS. */
	int (*run)(struct case_run *r, const struct ends *ends, const json_t *step, struct error *e);
	bool moves; /* it asks for nothing that records tell */
};

extern const struct recover_path recover_table[]; /* ends with a row without a name */
const struct recover_path *recover_find(const char *name);
void recover_phase(struct case_run *r, const json_t *step, const char *phase, unsigned attempt, const char *text);
/* To ERR, then until every work request has its end; payload that arrived is verified first. */
int recover_drain(struct case_run *r, const struct ends *ends, struct error *e);
/* QPs that exist are destroyed, and what `replace` names is made anew, CQs too; the QPs are not. */
int recover_remake(struct case_run *r, const struct ends *ends, const json_t *step, struct error *e);
int recover_reset(struct case_run *r, const struct ends *ends, const json_t *step, struct error *e);
int recover_cm(struct case_run *r, const struct ends *ends, const json_t *step, struct error *e);
int recover_recreate(struct case_run *r, const struct ends *ends, const json_t *step, struct error *e);
int recover_reopen(struct case_run *r, const struct ends *ends, const json_t *step, struct error *e);
int recover_restart(struct case_run *r, const struct ends *ends, const json_t *step, struct error *e);
int recover_sqd(struct case_run *r, const struct ends *ends, const json_t *step, struct error *e);
int recover_sq(struct case_run *r, const struct ends *ends, const json_t *step, struct error *e);

#endif
