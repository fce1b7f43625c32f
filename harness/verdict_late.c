/* SPDX-License-Identifier: MIT */
/* Retries that this machine's own lateness may have spent: the peer answered in time by its own clock, and got its turn too late.
 */
#include "verdict_internal.h"

#include <stdio.h>

#include "attr.h"
#include "json.h"
#include "lateness.h"
#include "units.h"

/* The shortest time in which all of its retries may end; 0: they never do. */
static uint64_t retries_ns(const json_t *attr)
{
	unsigned timeout = (unsigned)json_int(attr, "timeout", 0);

	return timeout ? ((uint64_t)json_int(attr, "retry_cnt", 0) + 1) * timer_ack_ns(timeout) : 0;
}

/* A step that names the status expects it: what it complains of is something else. */
static bool names(const struct judge *j, size_t inst, const char *status)
{
	const json_t *step = j->m->insts.v[inst].plan, *x;
	size_t i;

	if (verdict_pattern_has(json_object_get(step, "wc"), status))
		return true;
	json_array_foreach(json_object_get(step, "any"), i, x)
		if (verdict_pattern_has(json_object_get(x, "wc"), status))
			return true;
	return false;
}

/* The finding that is about this completion itself. */
static bool is_about(const struct judge *j, const struct finding *f, const struct m_comp *c)
{
	if (f->severity != SEVERITY_FAIL || !lateness_is_end_of_retries(f->check))
		return false;
	if (f->rec == c->rec && !strcmp(f->check, "unexpected"))
		return true;
	if (f->inst == c->inst && (!strcmp(f->check, "recover") || !strcmp(f->check, "traffic")))
		return true;
	return c->taken && f->inst == c->taken - 1 && !strcmp(f->check, "expect") && !names(j, f->inst, c->status);
}

static bool is_of_pair(const struct judge *j, const struct finding *f, size_t qp)
{
	const char *pair = j->m->qps.v[qp].pair;
	size_t len = strlen(pair);

	return !*f->at || (!strncmp(f->at, pair, len) && (!f->at[len] || f->at[len] == '.'));
}

/* What follows from it at both ends is worth a note; that it happened leaves the case open. */
static void excuse(struct judge *j, const struct m_comp *c, size_t inst, const json_t *attr)
{
	char late[64], all[64];

	for (size_t i = 0; i < j->findings.n; i++) {
		struct finding *f = &j->findings.v[i];

		if (f->severity == SEVERITY_FAIL && lateness_is_end_of_retries(f->check) && is_of_pair(j, f, c->qp) &&
		    (f->rec >= c->rec || is_about(j, f, c)))
			f->severity = SEVERITY_NOTE;
	}
	judge_say(j, SEVERITY_INCONCLUSIVE, "late", inst, c->rec, judge_qp(j, c->qp),
		  "%s: unexpected %s, but all retries may be over after %s (timeout %lld, retry_cnt %lld), and timers of this "
		  "machine "
		  "were up to %s late: the peer may not have had its turn",
		  judge_qp(j, c->qp), c->status, units_format_ns(retries_ns(attr), all, sizeof(all)),
		  (long long)json_int(attr, "timeout", 0), (long long)json_int(attr, "retry_cnt", 0),
		  units_format_ns(j->m->late_max_ns, late, sizeof(late)));
}

void verdict_excuse_late(struct judge *j)
{
	for (size_t i = 0; i < j->m->comps.n; i++) {
		const struct m_comp *c = &j->m->comps.v[i];
		const json_t *attr = judge_attr_at(j, c->qp, c->rec);
		uint64_t all_ns = retries_ns(attr);

		if (c->recv || c->marker || c->twice || strcmp(c->status, "RETRY_EXC_ERR") || !all_ns || all_ns > j->m->late_max_ns)
			continue;
		for (size_t k = 0; k < j->findings.n; k++)
			if (is_about(j, &j->findings.v[k], c)) {
				excuse(j, c, j->findings.v[k].inst, attr);
				break;
			}
	}
}
