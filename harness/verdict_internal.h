/* SPDX-License-Identifier: MIT */
/* What the standing checks share: one file per check or group, each a row of the table in verdict_checks.c. */
#ifndef QD_VERDICT_INTERNAL_H
#define QD_VERDICT_INTERNAL_H

#include "expect_internal.h"
#include "observe_model.h"
#include "verdict.h"

enum severity { SEVERITY_NOTE, SEVERITY_WARNING, SEVERITY_DEVIATION, SEVERITY_INCONCLUSIVE, SEVERITY_ERROR, SEVERITY_FAIL };

struct finding {
	enum severity severity;
	const char *check;          /* literal */
	size_t inst, rec;           /* where it happened; rec orders the findings */
	const char *at;             /* interned; "" for none */
	json_t *deviation;          /* ids of profile entries, or NULL */
	json_t *likely;             /* ids of those that would explain it, had a run shown them on this kernel; or NULL */
	const struct m_post *post;  /* it is about its missing end; else NULL */
	const struct m_comp *flush; /* it is about a flush that nothing explains; else NULL */
	char expected[512], seen[512], text[1200];
};

/* Whose turn may be late between a question and its answer, or between two messages: sender, receiver, the wire, the kernel. */
#define LATE_ONES 4
#define LATE_CALLS 2 /* a call that has not returned after so much of it may have had no turn */

struct judge {
	const json_t *plan, *records;
	bool torn;
	const struct profile *profile;
	const struct verdict_options *o;
	struct model *m;
	VEC(struct finding) findings;
	json_t *windows;
	json_t *bystander; /* what it was like; NULL: there was none */
	bool crashed;      /* the guest is gone: what is missing is missing for that reason */
	bool wire_gone;    /* so are its proofs */
	bool cut;          /* the record is not whole: so is what it lacks */
	bool never_set_up; /* no step has run: nothing that was seen is about the device */
};

/* A new finding; expected, seen and text are empty. NULL when memory is gone (the model's err says so). */
struct finding *judge_find(struct judge *j, enum severity severity, const char *check, size_t inst, size_t rec, const char *at);
__attribute__((format(printf, 3, 4))) void finding_set(struct finding *f, char *field, const char *fmt, ...);
/* A finding whose text says everything. */
__attribute__((format(printf, 7, 8))) struct finding *judge_say(struct judge *j, enum severity severity, const char *check,
								size_t inst, size_t rec, const char *at, const char *fmt, ...);
/* A finding that a seen profile entry makes a deviation. Notes the use. */
__attribute__((format(printf, 7, 8))) void judge_deviation(struct judge *j, const json_t *entry, const char *check, size_t inst,
							   size_t rec, const char *at, const char *fmt, ...);
/* "; likely profile entry x, not seen on this kernel" */
void finding_likely(struct judge *j, struct finding *f, const json_t *ids);
void finding_likely_entry(struct judge *j, struct finding *f, const json_t *entry);

const char *judge_qp(const struct judge *j, size_t qp);
/* A record of that instance belongs to this step: records of a member of `together` carry the number of the whole. */
bool judge_in_step(const struct judge *j, size_t inst, size_t rec_inst);
/* The plan's `do` of the step an instance ran, "" for none. */
const char *judge_do(const struct judge *j, size_t inst);
/* Does an `expect` or `allow` that ran no earlier than not at all speak of this? key: "qp", "ledger", …; the callback sees each
 * map that has the key at this end. */
bool judge_scenario_says(const struct judge *j, size_t qp, const char *key, bool (*fits)(const json_t *value, const void *user),
			 const void *user);
/* The run of the case is over: nothing a scenario did came after. */
bool judge_is_release(const struct judge *j, size_t inst);
/* Completion events that a `poll` has waited for: as many as the file says, no more. How many such waits there were. */
unsigned verdict_waited_of(struct judge *j, size_t inst);
/* The CM takes leave where a step has it so, or says why a connect comes to nothing that is to be refused just so. */
bool verdict_cm_routine(const struct judge *j, const struct m_event *ev);

/* The event that the specification wants where a responder refused what its peer's cause names, and the device has none: the entry
 * that waives `check` for it. NULL: none. *ret_seen. */
const json_t *judge_missing_event(const struct judge *j, size_t qp, unsigned life, uint64_t t, const char *check, bool *ret_seen);

/* What was queried of a QP while it was connected, before a record; else what was planned. */
const json_t *judge_attr_at(const struct judge *j, size_t qp, size_t rec);

/* What failed after a pause (pause.h) is inconclusive; and a verdict says that there was one. */
void verdict_excuse_paused(struct judge *j);
void verdict_add_pauses(const struct judge *j, json_t *verdict);

/* Replays the records: expectations judged at the end of their steps. */
void verdict_replay(struct judge *j);

void verdict_check_ledger(struct judge *j);
void verdict_check_cause(struct judge *j);
void verdict_check_state(struct judge *j);
void verdict_check_payload(struct judge *j);
void verdict_check_delivered(struct judge *j);
/* Of every post of which not all has succeeded: how many succeeded, failed, or have no end, and what landed of them. New reference.
 */
json_t *verdict_delivered(const struct judge *j);
void verdict_check_unexpected(struct judge *j);
void verdict_check_counted(struct judge *j);
/* Does an `allow` name this error, as it is or by the profile? */
bool verdict_allowed(const struct judge *j, const struct m_comp *c);
void verdict_check_time(struct judge *j);
void verdict_check_packets(struct judge *j);
void verdict_check_unanswered(struct judge *j);
void verdict_check_datagrams(struct judge *j);
void verdict_check_kernel(struct judge *j);
void verdict_check_bystander(struct judge *j);
void verdict_check_residue(struct judge *j);
void verdict_check_hang(struct judge *j);
void verdict_check_lost(struct judge *j);
/* The link fault at whose device the wire says frames were lost; NULL: nobody asked for it. */
const struct m_fault *verdict_loss_is_planned(const struct judge *j, const struct m_kept *k);
void verdict_check_faults(struct judge *j);
void verdict_check_returns(struct judge *j);
/* Of a modify with `mask:`: attempts that were never made show nothing. */
void verdict_check_trials(struct judge *j, size_t inst);
void verdict_check_recover(struct judge *j);
void verdict_check_complete(struct judge *j);
/* With records missing: what they might explain is no failure. Before lateness is looked at. */
void verdict_excuse_incomplete(struct judge *j);
void verdict_check_repeat(struct judge *j);
void verdict_check_phases(struct judge *j);
/* `phases` and `phase_times`, where something was to recover. */
void verdict_add_phases(const struct judge *j, json_t *verdict);
void verdict_check_stale(struct judge *j);
/* Of a repeat with `resources: flat`: what its ends and devices held after the warm-up and in the end. */
void verdict_check_resources(struct judge *j);
/* `resources`, where there is such a repeat. */
void verdict_add_resources(const struct judge *j, json_t *verdict);

/* verdict_first_pass.c: the case is one that only finds packets; those, in a stable order (new reference); what it may lack. */
bool verdict_is_first_pass(const json_t *plan);
json_t *verdict_found_packets(struct judge *j);
void verdict_check_first_pass(struct judge *j, const json_t *packets);

/* Does a pattern of completions name this status? NULL names none. */
bool verdict_pattern_has(const json_t *pattern, const char *status);
/* After all checks: an unexpected end of the retries that the measured lateness may have made leaves the case open. */
void verdict_excuse_late(struct judge *j);

/* One line about a record, for people. */
/* What a fault showed of itself, as people read it. */
#define EVIDENCE_MAX 1024
char *evidence_text(const json_t *evidence, char *buf, size_t size);
char *record_line(const json_t *record, uint64_t first_t, char *buf, size_t size);
/* The last records that say something about an end, up to rec, oldest first. New reference. */
json_t *record_lines(const struct judge *j, const char *at, size_t rec, size_t max);
/* Short summary of both ends. Returns buf. */
char *verdict_seen(const struct judge *j, char *buf, size_t size);

#endif
