/* SPDX-License-Identifier: MIT */
/* What several faults share. Everything goes through the fault's env. */
#ifndef QD_FAULT_COMMON_H
#define QD_FAULT_COMMON_H

#include "fault.h"

/* The string argument, or NULL. */
const char *fault_arg(const struct fault *f, const char *key);
/* The argument is this name, or a list that has it. */
bool fault_names(const struct fault *f, const char *key, const char *name);
/* How many names the argument has, and the i-th. */
size_t fault_names_n(const struct fault *f, const char *key);
const char *fault_name_at(const struct fault *f, const char *key, size_t i);
/* The agent of a QP of the plan; never NULL ("?"). */
const char *fault_agent(const struct fault *f, const char *qp);
/* The MR that the argument `mr` names, else the one of the end `at` in that role (mem, rx). Returns buf. */
const char *fault_mr(const struct fault *f, const char *role, char *buf, size_t size);
/* The pair of a QP of the plan. */
const char *fault_pair(const struct fault *f, const char *qp);
/* The device's answer for a QP, {"state":...}. New reference, NULL when it cannot be asked. */
json_t *fault_query(const struct fault *f, const char *qp);
/* Remembers the counters of an agent's device; how much those named have risen together since. names ends with NULL. */
void fault_counters_keep(struct fault *f, const char *agent);
int64_t fault_counters_rise(const struct fault *f, const char *agent, const char *const *names);
/* Remembers how many completions of a status a queue had; how many came since. */
void fault_wc_keep(struct fault *f, const char *queue, const char *status);
unsigned fault_wc_rise(const struct fault *f, const char *queue, const char *status);
/* Of what is neither acknowledged nor refused: so much has a QP of type UC or UD sent since its SUCCESSes were kept; 0 of others.
 */
unsigned fault_sent_unanswered(const struct fault *f, const char *qp);
/* What an end and its peer have sent since the fault was injected. */
unsigned fault_pair_posted(const struct fault *f, const char *qp);

enum detection fault_detect_local(const json_t *args);
enum detection fault_detect_nak(const json_t *args);
enum detection fault_detect_rnr(const json_t *args);
enum detection fault_detect_silent(const json_t *args);
enum detection fault_detect_none(const json_t *args);

/* For what nobody can undo, or what the steps that follow undo. */
int fault_clear_nothing(struct fault *f, struct error *e);
/* The agent of `agent` is a new process, with nothing but its device. */
int fault_clear_restart(struct fault *f, struct error *e);

/* A request that the device must not refuse; the reply's queried state in *ret_state (static). */
int fault_modify(struct fault *f, const char *qp, const char *to, json_t *set, struct error *e);
/* What the device answered then as evidence: 1 when it was `to`, else 0. */
int fault_modify_prove(const struct fault *f, const char *to, json_t **ret);

#endif
