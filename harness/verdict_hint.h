/* SPDX-License-Identifier: MIT */
/*
 * Why did it fail: from what is on record of the two ends to the likely causes. What a scenario did on purpose (its faults) is not
 * looked at: the causes are those that somebody would find who has the symptoms alone.
 */
#ifndef QD_VERDICT_HINT_H
#define QD_VERDICT_HINT_H

#include "verdict_internal.h"

/* The pair that the first problem is about. */
struct scene {
	const struct judge *j;
	size_t qp, peer;             /* the end that asked, and the one that should have answered; peer may be M_NONE */
	const struct m_comp *c;      /* its first error that is no flush; NULL: none came */
	const struct m_comp *peer_c; /* the same of its peer */
	const struct m_post *post;   /* what c is the end of, or what has none; NULL: not known */
	const json_t *step;          /* of the plan, that posted it; NULL */
	const char *status; /* of c; "WR_FLUSH_ERR" where there are only flushes, "SUCCESS" where nothing failed, "" where nothing
			       came */
	const char *check;  /* of the finding */
	uint64_t t;         /* when it had failed */
};

/* A row of the table. The rows of a status stand in the order in which they are likely; one whose symptoms are on record comes
 * before those that have none to show (`shows` NULL). */
struct hint {
	const char *status; /* NULL: any */
	const char *cause;
	/* Writes what shows it; false: nothing does. */
	bool (*shows)(const struct scene *s, char *why, size_t size);
};
extern const struct hint verdict_hints[]; /* up to one without a cause */

/* False: the finding is about no queue pair. */
bool scene_set(struct scene *s, const struct judge *j, const struct finding *f);
/* What this end was connected with: the attribute that its newest transition of this life gave, else what was queried; def. */
int64_t scene_asked(const struct scene *s, size_t qp, const char *key, int64_t def);
const char *scene_asked_text(const struct scene *s, size_t qp, const char *key); /* NULL: none */
/* The operation that failed; "". The right that an operation needs of its target; NULL: none. */
const char *scene_op(const struct scene *s);
const char *scene_right(const char *op);
bool scene_takes_receive(const char *op);
const char *scene_name(const struct scene *s, size_t qp);
/* The region or window that the post was aimed at. buf is for a name that has to be made. */
const char *scene_target(const struct scene *s, char *buf, size_t size);
/* Not so of UC and UD, where a SUCCESS says that a message was sent. */
bool scene_is_answered(const struct scene *s);
/* UD: each message says where it goes, and nobody counts PSNs. */
bool scene_is_datagram(const struct scene *s);
/* What the record of the post says that it went out with; def. */
int64_t scene_sent(const struct scene *s, const char *key, int64_t def);
/* Whose device it is: "rxe"; "" where no profile is known. */
const char *scene_provider(const struct scene *s);
/* The GID that an end's device had when it was opened; NULL: not on record. */
const char *scene_gid(const struct scene *s, size_t qp);
/* The MTU that its port had then; 0: not on record. */
int64_t scene_mtu(const struct scene *s, size_t qp);
/* By how much the first of these counters that moved at an end's device did; 0. names ends with NULL. */
int64_t scene_moved(const struct scene *s, size_t qp, const char *const *names, const char **ret_name);
/* The newest record of a verb on an object that did not fail, before the failure; NULL. */
const json_t *scene_verb(const struct scene *s, const char *verb, const char *obj);

/* "causes": [{"cause","why"}] and "ends": one object for each of the two. New references, or NULL: nothing to say. */
json_t *verdict_causes(const struct judge *j, const struct finding *first);
json_t *verdict_ends(const struct judge *j, const struct finding *first);

#endif
