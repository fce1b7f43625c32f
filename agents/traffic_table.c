/* SPDX-License-Identifier: MIT */
/* Which traffics there are: by name and QP, and those that something happened to. */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "object.h"
#include "traffic.h"

#define ENDED_KEPT 1u

struct traffic *traffic_find(struct agent *a, const char *as, const struct qp *qp)
{
	struct traffic *t = qp ? qp->traffics : a->traffics;

	while (t && strcmp(t->as, as) != 0)
		t = qp ? t->links.of_qp : t->links.all;
	return t;
}

static uint16_t name_number(struct agent *a, const char *as)
{
	unsigned n = a->n_traffic_names ? a->n_traffic_names : 1;
	char **grown;

	for (unsigned i = 1; i < a->n_traffic_names; i++) {
		if (a->traffic_names[i] && strcmp(a->traffic_names[i], as) == 0)
			return (uint16_t)i;
		if (!a->traffic_names[i])
			n = i;
	}
	if (n < a->n_traffic_names) {
		a->traffic_names[n] = strdup(as);
		return (uint16_t)n;
	}
	grown = realloc(a->traffic_names, (n + 1) * sizeof(*grown));
	if (!grown || n > UINT16_MAX)
		abort();
	grown[0] = NULL;
	grown[n] = strdup(as);
	a->traffic_names = grown;
	a->n_traffic_names = n + 1;
	return (uint16_t)n;
}

/* What was allocated for it, but for its name. */
static void release_kept(struct traffic *t)
{
	json_decref(t->first_error);
	free(t->early);
	free(t->landed);
	free(t->came);
	traffic_phases_forget(t);
}

/* Its name is nobody's any more: another one may have the number. */
static void drop_name(struct agent *a, uint16_t number)
{
	for (const struct traffic *t = a->traffics; t; t = t->links.all)
		if (t->number == number)
			return;
	free(a->traffic_names[number]);
	a->traffic_names[number] = NULL;
}

static bool is_asked_for(const struct traffic *t)
{
	return t->state == TRAFFIC_RUNNING || (t->background && !t->told) || t->qp->traffic == t || t->links.is_touched ||
	       t->links.is_due;
}

/* Of those at this QP that have ended or will not start, and that nobody will ask for, only the newest are kept: their statistics
 * are on record. */
static void drop_old(struct agent *a, struct qp *qp)
{
	struct traffic *next;
	unsigned kept = 0;

	for (struct traffic *t = qp->traffics; t; t = next) {
		uint16_t number = t->number;

		next = t->links.of_qp;
		if (is_asked_for(t) || kept++ < ENDED_KEPT)
			continue;
		/* NOLINTBEGIN(clang-analyzer-unix.Malloc): one that was freed is in neither list */
		LL_DELETE2(qp->traffics, t, links.of_qp);
		LL_DELETE2(a->traffics, t, links.all);
		/* NOLINTEND(clang-analyzer-unix.Malloc) */
		release_kept(t);
		free(t->as);
		free(t);
		drop_name(a, number);
	}
}

struct traffic *traffic_make(struct agent *a, const char *as, struct qp *qp)
{
	struct traffic *t = traffic_find(a, as, qp);
	struct traffic_links links;
	char *name = t ? t->as : strdup(as);

	if (t) {
		release_kept(t);
	} else {
		drop_old(a, qp);
		t = calloc(1, sizeof(*t));
		if (!t || !name)
			abort();
		LL_PREPEND2(a->traffics, t, links.all);
		LL_PREPEND2(qp->traffics, t, links.of_qp);
	}
	links = t->links;
	*t = (struct traffic){
		.agent = a, .as = name, .number = name_number(a, as), .state = TRAFFIC_PREPARED, .qp = qp, .links = links
	};
	qp->traffic = t;
	return t;
}

void traffic_touch(struct traffic *t)
{
	if (!t || t->links.is_touched)
		return;
	t->links.is_touched = true;
	LL_PREPEND2(t->agent->traffics_touched, t, links.touched);
}

void traffic_forget(struct agent *a)
{
	struct traffic *t = a->traffics;

	while (t) {
		struct traffic *next = t->links.all;

		sd_event_source_disable_unref(t->deadline);
		sd_event_source_disable_unref(t->pace);
		release_kept(t);
		free(t->as);
		free(t);
		t = next;
	}
	a->traffics = a->traffics_touched = a->traffics_due = NULL;
}
