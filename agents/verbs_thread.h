/* SPDX-License-Identifier: MIT */
/*
 * The one extra thread: verbs calls that may block. A call goes to it through a queue and comes back to the loop by an eventfd.
 * Past its deadline a call that runs is reported as `blocked` and its request answered; when it returns later, finish() is called
 * all the same, with late set. A call that has not begun by its deadline is never made: finish() is called with cancelled set.
 */
#ifndef QD_VERBS_THREAD_H
#define QD_VERBS_THREAD_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "../harness/error.h"

struct agent;
struct object;
struct request;
struct verbs_thread;

/* Embedded first in what verbs_call_new() gives; finish() ends with verbs_end(). */
struct verbs_call {
	const char *verb; /* "ibv_destroy_cq" */
	struct object *obj;
	struct request *req;                  /* NULL once answered, or when nobody asked */
	json_t *args;                         /* for the verb record; owned */
	void (*run)(struct verbs_call *call); /* on the thread: touches only what finish() will free or what is busy */
	void (*finish)(struct agent *a, struct verbs_call *call); /* on the loop */

	/* Of a call that is several in a row, both or none: what it is at; and what is done past its deadline, when it runs:
	 * nothing further is begun, what has returned and what was not begun is answered, and verbs_overdue() tells of what hangs.
	 */
	struct object *(*at)(const struct verbs_call *call);
	void (*overdue)(struct agent *a, struct verbs_call *call, uint64_t waited_ns);

	int err; /* 0 or a positive errno, set by run() */
	bool cancelled, late;
	uint64_t started_ns, ended_ns; /* run() may narrow them down to the verb itself */

	/* verbs_thread.c's own */
	enum verbs_call_state {
		VERBS_CALL_INVALID,
		VERBS_CALL_QUEUED,
		VERBS_CALL_RUNNING,
		VERBS_CALL_RETURNED,
		NUM_VERBS_CALL_STATES
	} state;
	struct verbs_thread *thread;
	sd_event_source *deadline;
	uint64_t submitted_ns;
	struct verbs_call *next;
};

/* Zeroed; never NULL. */
void *verbs_call_new(size_t bytes);

int verbs_thread_new(struct agent *a, struct verbs_thread **ret);
/* Calls that are under way or queued are abandoned with it: only when the process ends, or when there are none. */
void verbs_thread_free(struct verbs_thread *t);
/* deadline_ns from now; 0 means AGENT_DEADLINE_NS. */
void verbs_submit(struct agent *a, struct verbs_call *call, uint64_t deadline_ns);
/* A call has not returned in time: the `blocked` record. Returns -ETIMEDOUT with e filled, for whoever asked. */
int verbs_overdue(struct agent *a, const char *verb, const struct object *obj, uint64_t waited_ns, struct error *e);
/* What it is about at this moment. */
const struct object *verbs_call_at(const struct verbs_call *call);
/* The call that runs now, or NULL. */
const struct verbs_call *verbs_running(const struct verbs_thread *t);

/* The `verb` record of a call. ret is stolen and may be NULL. */
void verbs_record(struct agent *a, const struct verbs_call *call, json_t *ret);
/* Answers its request, if there still is one: with fields (stolen) when err is 0, else with -err and "verb: name: text". */
void verbs_reply(struct verbs_call *call, json_t *fields);
/* The same, and the call is freed. */
void verbs_end(struct verbs_call *call, json_t *fields);

#endif
