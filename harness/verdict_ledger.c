/* SPDX-License-Identifier: MIT */
/* Every accepted request has exactly one end, and in the order in which it was posted. */
#include "verdict_internal.h"

#include <stdio.h>

#include "json.h"
#include "names.h"
#include "units.h"

/* CQEs that lay in a polled CQ when their QP went to RESET are picked up within this. */
#define LEFTOVER_NS (100 * NSEC_PER_MSEC)
/* A QP in ERR has flushed its queues by then. */
#define FLUSH_NS (50 * NSEC_PER_MSEC)

static const char *queue_name(const struct judge *j, size_t queue)
{
	return queue == M_NONE ? "" : j->m->queues.v[queue].name;
}

static bool is_manual(const struct judge *j, const char *cq)
{
	const json_t *o;
	size_t i;

	json_array_foreach(json_object_get(j->plan, "cqs"), i, o)
		if (json_str(o, "name") && !strcmp(json_str(o, "name"), cq))
			return json_str(o, "poll") && !strcmp(json_str(o, "poll"), "manual");
	return false;
}

/* A CQ is a queue: once something of the new life has come, nothing of the old one may follow. */
static bool new_life_spoke(const struct judge *j, size_t index)
{
	const struct m_comp *c = &j->m->comps.v[index];

	for (size_t i = 0; i < index; i++)
		if (j->m->comps.v[i].queue == c->queue && j->m->comps.v[i].life > c->life)
			return true;
	return false;
}

static void late_completion(struct judge *j, size_t index)
{
	const struct m_comp *c = &j->m->comps.v[index];
	const struct m_life *l = m_life_of(j->m, c->queue, c->life);
	bool leftover = is_manual(j, c->cq) || c->t <= l->over_t + LEFTOVER_NS + j->m->late_max_ns;
	struct finding *f;
	char late[64];

	if (leftover && !new_life_spoke(j, index))
		return;
	f = judge_find(j, SEVERITY_FAIL, "ledger", c->inst, c->rec, queue_name(j, c->queue));
	if (!f)
		return;
	units_format_ns(c->t > l->over_t ? c->t - l->over_t : 0, late, sizeof(late));
	finding_set(f, f->expected, "no completion of life %u after %s", c->life, l->over_why);
	finding_set(f, f->seen, "%s for request %u of life %u, %s later", c->status, c->seq, c->life, late);
	finding_set(f, f->text, "%s: expected %s, seen %s", queue_name(j, c->queue), f->expected, f->seen);
}

/* A post that was refused on this QP before: the likeliest source of a completion that nobody asked for. */
static const struct m_post *refused_before(const struct judge *j, const struct m_comp *c)
{
	for (size_t i = j->m->posts.n; i-- > 0;) {
		const struct m_post *p = &j->m->posts.v[i];

		if (p->err && p->rec < c->rec && p->queue != M_NONE && c->qp != M_NONE && j->m->queues.v[p->queue].qp == c->qp)
			return p;
	}
	return NULL;
}

/* A refused post that the device carries out all the same, and says so in its profile. */
static bool refused_excused(struct judge *j, const struct m_comp *c, const struct m_post *p, const char *at)
{
	struct m_match what = { .qp = c->qp,
				.post = p,
				.recv = !j->m->queues.v[p->queue].send,
				.rec = c->rec,
				.refused = name_of(&names_errno, p->err) };
	bool seen = false;
	const json_t *entry = m_profile_excuse(j->m, &what, c->status, &seen);

	if (!entry || !seen)
		return false;
	judge_deviation(j, entry, "ledger", c->inst, c->rec, at,
			"%s: expected no completion of `%s`, whose post was refused (%s), seen %s: the profile's %s", at,
			*p->as ? p->as : p->op, what.refused, c->status, json_str(entry, "id"));
	return true;
}

static void unknown_completion(struct judge *j, const struct m_comp *c)
{
	const char *at = c->queue != M_NONE ? queue_name(j, c->queue) : c->qp != M_NONE ? judge_qp(j, c->qp) : c->obj;
	const struct m_post *p = refused_before(j, c);
	struct finding *f;
	char step[32] = "";

	if (p)
		snprintf(step, sizeof(step), "a request of step %d", j->m->insts.v[p->inst].step);
	if (p && refused_excused(j, c, p, at))
		return;
	f = judge_find(j, SEVERITY_FAIL, "ledger", c->inst, c->rec, at);
	if (!f)
		return;
	finding_set(f, f->expected, "completions of accepted requests only");
	finding_set(f, f->seen, "%s with an unknown wr_id (life %u, request %u)", c->status, c->life, c->seq);
	if (p)
		finding_set(f, f->text, "%s: expected %s, seen %s: perhaps of %s%s%s, whose post was refused (%s)", at, f->expected,
			    f->seen, *p->as ? "`" : "", *p->as ? p->as : step, *p->as ? "`" : "", name_of(&names_errno, p->err));
	else
		finding_set(f, f->text, "%s: expected %s, seen %s", at, f->expected, f->seen);
}

static void one_completion(struct judge *j, size_t index)
{
	const struct m_comp *c = &j->m->comps.v[index];
	const struct m_post *p = c->queue == M_NONE ? NULL : m_comp_post(j->m, c);
	const char *name = queue_name(j, c->queue);

	if (c->marker && !p)
		return;
	if (c->queue == M_NONE || !p) {
		unknown_completion(j, c);
		return;
	}
	if (c->twice) {
		struct finding *f = judge_find(j, SEVERITY_FAIL, "ledger", c->inst, c->rec, name);

		if (!f)
			return;
		finding_set(f, f->expected, "one completion for each request");
		finding_set(f, f->seen, "a second one (%s) for request %u of life %u", c->status, c->seq, c->life);
		finding_set(f, f->text, "%s: expected %s, seen %s", name, f->expected, f->seen);
	} else if (c->late) {
		late_completion(j, index);
	}
}

static bool wants_open(const json_t *value, const void *user)
{
	const char *side = json_str(value, user);

	return side && !strcmp(side, "open");
}

static bool process_fault(const struct judge *j, size_t qp)
{
	for (size_t i = 0; i < j->m->faults.n; i++) {
		const struct m_fault *f = &j->m->faults.v[i];

		if (f->injected && (m_fault_is_of_process(f, NULL) || !strcmp(f->name, "device_recreated")) &&
		    m_fault_reaches(j->m, f, qp))
			return true;
	}
	return false;
}

static void open_life(struct judge *j, const struct m_queue *q, const struct m_life *l)
{
	struct finding *f;

	if (q->qp == M_NONE || process_fault(j, q->qp) ||
	    judge_scenario_says(j, q->qp, "ledger", wants_open, q->send ? "send" : "recv"))
		return;
	f = judge_find(j, SEVERITY_FAIL, "ledger", j->m->inst, j->m->n_recs ? j->m->n_recs - 1 : 0, q->name);
	if (!f)
		return;
	finding_set(f, f->expected, "an account that closes");
	finding_set(f, f->seen, "an open one: %s", l->open_why);
	finding_set(f, f->text, "%s: its ledger is open (%s) and the scenario does not say `ledger: { %s: open }`", q->name,
		    l->open_why, q->send ? "send" : "recv");
}

static bool wants_none(const json_t *value, const void *user)
{
	(void)user;
	return json_bool(value, "none", false);
}

static bool speaks_of_flight(const json_t *value, const void *user)
{
	const json_t *n = json_object_get(value, "in_flight");

	(void)user;
	return n && !(json_is_integer(n) && !json_integer_value(n)) &&
	       !(json_str(n, "op") && !strcmp(json_str(n, "op"), "==") && !json_int(n, "value", 0));
}

/* Was it the scenario's own word that these stay in flight? */
static bool said_to_stay(const struct judge *j, const struct m_queue *q, const struct m_post *p)
{
	if (q->qp == M_NONE)
		return false;
	for (size_t i = 0; *p->as && i < j->m->insts.n; i++) {
		const json_t *step = j->m->insts.v[i].plan;
		const char *of = json_str(step, "of");

		if (of && !strcmp(of, p->as) && wants_none(json_object_get(step, q->send ? "wc" : "recv_wc"), NULL))
			return true;
	}
	return judge_scenario_says(j, q->qp, "ledger", speaks_of_flight, NULL);
}

/* The state that a QP was left in by the scenario: what the release did after it does not count. */
static const char *last_state(const struct judge *j, size_t qp)
{
	const struct m_qp *of = &j->m->qps.v[qp];

	for (size_t i = of->states.n; i-- > 0;) {
		const struct m_state *s = &j->m->states.v[of->states.v[i]];

		if (*s->new_ && !(*s->asked && judge_is_release(j, s->inst)))
			return s->new_;
	}
	return "";
}

/* The profile says that what is posted in ERR is never flushed. */
static bool stays_in_error(struct judge *j, const struct m_queue *q, const struct m_life *l, const struct m_post *p)
{
	struct m_match what = { .qp = q->qp, .life = l->life, .post = p, .recv = !q->send, .spec = "WR_FLUSH_ERR", .rec = p->rec };
	bool seen = false;
	const json_t *entry = q->qp == M_NONE ? NULL : m_profile_excuse(j->m, &what, "none", &seen);

	if (!entry || !seen)
		return false;
	judge_deviation(j, entry, "ledger", p->inst, p->rec, q->name,
			"%s: expected %s to be flushed, seen no end: the profile's %s", q->name, *p->as ? p->as : p->op,
			json_str(entry, "id"));
	return true;
}

static void left_over(struct judge *j, size_t queue, const struct m_life *l)
{
	const struct m_queue *q = &j->m->queues.v[queue];
	bool error = q->qp != M_NONE && !strcmp(last_state(j, q->qp), "ERR");

	for (size_t i = m_posts_of_life(j->m, queue, l->life); i < q->posts.n; i++) {
		const struct m_post *p = &j->m->posts.v[q->posts.v[i]];
		struct m_account a;
		uint32_t left;
		struct finding *f;

		if (p->life != l->life)
			return;
		a = m_account_post(j->m, p);
		left = a.in_flight + a.discarded;
		/* Receives stand ready as long as their QP lives; a request that was not signaled may have succeeded in silence. */
		if (!left || (!q->send && !error) || (!m_post_signaled(j->m, p) && !error) || said_to_stay(j, q, p) ||
		    (error && stays_in_error(j, q, l, p)))
			continue;
		f = judge_find(j, SEVERITY_FAIL, "ledger", p->inst, j->m->n_recs ? j->m->n_recs - 1 : p->rec, q->name);
		if (!f)
			return;
		f->post = p;
		finding_set(f, f->expected, "an end for each of the %u requests that were accepted", a.accepted);
		finding_set(f, f->seen, "%u of them without one at the end of the case", left);
		finding_set(f, f->text, "%s: %s%s%s: expected %s, seen %s%s", q->name, p->op, *p->as ? " " : "", p->as, f->expected,
			    f->seen, error ? ", though the QP is in ERR" : "");
		return;
	}
}

/* A later one has completed, so this one was passed over. */
static void passed_over(struct judge *j, size_t queue, const struct m_life *l)
{
	const struct m_queue *q = &j->m->queues.v[queue];

	for (size_t i = m_posts_of_life(j->m, queue, l->life); l->any_ended && i < q->posts.n; i++) {
		const struct m_post *p = &j->m->posts.v[q->posts.v[i]];
		uint32_t upto = l->last_ended < p->last ? l->last_ended : p->last, missing;
		struct finding *f;

		if (p->life != l->life || p->first > l->last_ended)
			return;
		if (!m_post_signaled(j->m, p))
			continue;
		missing = upto - p->first + 1 - seq_set_count(&l->ended, p->first, upto);
		if (!missing)
			continue;
		f = judge_find(j, SEVERITY_FAIL, "ledger", p->inst, j->m->n_recs ? j->m->n_recs - 1 : p->rec, q->name);
		if (!f)
			return;
		finding_set(f, f->expected, "a completion for each request up to the newest that completed (%u)", l->last_ended);
		finding_set(f, f->seen, "%u of %s%s%s without one", missing, p->op, *p->as ? " " : "", p->as);
		finding_set(f, f->text, "%s: expected %s, seen %s", q->name, f->expected, f->seen);
		return;
	}
}

/* Since when the QP was known to be in ERR in this life; 0: never. */
static uint64_t in_error_since(const struct judge *j, size_t qp, unsigned life)
{
	uint64_t since = 0;

	for (size_t i = 0; i < j->m->qps.v[qp].states.n; i++) {
		const struct m_state *s = &j->m->states.v[j->m->qps.v[qp].states.v[i]];

		if (s->life == life && !strcmp(s->new_, "ERR") && (!since || s->t < since))
			since = s->t;
	}
	return since;
}

/* The entry that says of every request that is still out that it is never flushed; NULL when one of them has none. */
static const json_t *stays_by_profile(struct judge *j, size_t queue, const struct m_life *l)
{
	const struct m_queue *q = &j->m->queues.v[queue];
	const json_t *entry = NULL;

	for (size_t i = 0; i < j->m->posts.n; i++) {
		const struct m_post *p = &j->m->posts.v[i];
		struct m_match what = {
			.qp = q->qp, .life = l->life, .post = p, .recv = !q->send, .spec = "WR_FLUSH_ERR", .rec = l->over_rec
		};
		bool seen;

		if (p->queue != queue || p->life != l->life || !p->accepted ||
		    seq_set_count(&l->ended, p->first, p->last) == p->accepted)
			continue;
		entry = m_profile_excuse(j->m, &what, "none", &seen);
		if (!entry || !seen)
			return NULL;
	}
	return entry;
}

/* In ERR every request comes back flushed, and soon; one that is still out when its QP goes to RESET never did. */
static void never_flushed(struct judge *j, size_t queue, const struct m_life *l)
{
	const struct m_queue *q = &j->m->queues.v[queue];
	struct m_account a = m_account_life(j->m, queue, l, true);
	uint64_t since = in_error_since(j, q->qp, l->life), waited = l->over_t - since;
	const char *cq = json_str(j->m->qps.v[q->qp].plan, q->send ? "send_cq" : "recv_cq");
	const json_t *entry;
	struct finding *f;
	char time[64];

	if (!a.discarded || !since || l->over_t < since || waited < FLUSH_NS + j->m->late_max_ns || (cq && is_manual(j, cq)) ||
	    (!q->send && j->m->qps.v[q->qp].srq != M_NONE))
		return;
	units_format_ns(waited, time, sizeof(time));
	entry = stays_by_profile(j, queue, l);
	if (entry) {
		judge_deviation(j, entry, "ledger", l->over_inst, l->over_rec, q->name,
				"%s: expected every request flushed while the QP was in ERR, seen %u of %u still out after %s: the "
				"profile's %s",
				q->name, a.discarded, a.accepted, time, json_str(entry, "id"));
		return;
	}
	f = judge_find(j, SEVERITY_FAIL, "ledger", l->over_inst, l->over_rec, q->name);
	if (!f)
		return;
	finding_set(f, f->expected, "every request flushed while the QP was in ERR");
	finding_set(f, f->seen, "%u of %u still out after %s", a.discarded, a.accepted, time);
	finding_set(f, f->text, "%s: expected %s, seen %s", q->name, f->expected, f->seen);
}

static void one_life(struct judge *j, size_t queue, const struct m_life *l)
{
	const struct m_queue *q = &j->m->queues.v[queue];
	bool to_the_end = !l->over || judge_is_release(j, l->over_inst);
	struct finding *f;

	if (l->order_breaks) {
		f = judge_find(j, SEVERITY_FAIL, "ledger", j->m->inst, l->order_rec, q->name);
		if (f) {
			finding_set(f, f->expected, "completions in posting order");
			finding_set(f, f->seen, "%u out of order", l->order_breaks);
			finding_set(f, f->text, "%s: expected %s, seen %s", q->name, f->expected, f->seen);
		}
	}
	if (l->open) {
		open_life(j, q, l);
		return;
	}
	if (q->srq || j->crashed || j->cut)
		return;
	passed_over(j, queue, l);
	if (to_the_end)
		left_over(j, queue, l);
	else
		never_flushed(j, queue, l);
}

void verdict_check_ledger(struct judge *j)
{
	for (size_t i = 0; i < j->m->comps.n; i++)
		one_completion(j, i);
	for (size_t i = 0; i < j->m->queues.n; i++)
		for (size_t k = 0; k < j->m->queues.v[i].lives.n; k++)
			one_life(j, i, &j->m->queues.v[i].lives.v[k]);
}
