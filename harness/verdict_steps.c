/* SPDX-License-Identifier: MIT */
/* What the steps themselves owe: the verbs' return values, faults that fired, recoveries that were verified, iterations that
 * passed. */
#include "verdict_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "json.h"
#include "names.h"
#include "scenario.h"

static bool errno_wanted(const json_t *step, int err)
{
	const json_t *returns = json_object_get(step, "returns");
	char number[16];

	if (!json_array_size(returns))
		return err == 0;
	if (err == 0)
		return json_array_has(returns, "0");
	snprintf(number, sizeof(number), "%d", err);
	return json_array_has(returns, name_of(&names_errno, err)) || json_array_has(returns, number);
}

/* The entry by which this value stands for one that the step wants. */
static const json_t *return_excused(const struct judge *j, const json_t *step, struct m_match what, int err, bool *ret_seen)
{
	const json_t *want, *entry = NULL;
	size_t i;

	*ret_seen = false;
	json_array_foreach(json_object_get(step, "returns"), i, want) {
		what.returns = json_string_value(want);
		if (what.returns && !entry)
			entry = m_profile_excuse(j->m, &what, err ? name_of(&names_errno, err) : "0", ret_seen);
	}
	return entry;
}

/* what->qp: M_NONE where the call is no QP's. */
static void wrong_return_of(struct judge *j, size_t inst, struct m_match what, const char *at, const char *call, int err,
			    const char *more)
{
	const json_t *step = j->m->insts.v[inst].plan, *entry;
	size_t rec = what.rec;
	struct text wanted = { .len = 0 };
	struct finding *f;
	bool seen;

	what.step = step;
	if (json_array_size(json_object_get(step, "returns")))
		names_text(json_object_get(step, "returns"), &wanted);
	entry = return_excused(j, step, what, err, &seen);
	/* One value of several that would do says little of which cause it was. */
	if (!seen && json_array_size(json_object_get(step, "returns")) > 1)
		entry = NULL;
	if (entry && seen) {
		judge_deviation(j, entry, "expect", inst, rec, at, "%s: expected %s to return %s, seen %s: the profile's %s", at,
				call, wanted.b, err ? name_of(&names_errno, err) : "0", json_str(entry, "id"));
		return;
	}
	f = judge_find(j, SEVERITY_FAIL, "expect", inst, rec, at);
	if (!f)
		return;
	finding_set(f, f->expected, "%s to return %s", call, wanted.len ? wanted.b : "0");
	finding_set(f, f->seen, "%s%s", err ? name_of(&names_errno, err) : "0", more);
	finding_set(f, f->text, "%s: expected %s, seen %s", at, f->expected, f->seen);
	if (entry)
		finding_likely_entry(j, f, entry);
}

static void wrong_return(struct judge *j, size_t inst, size_t rec, size_t qp, const struct m_post *p, const char *at,
			 const char *call, int err, const char *more)
{
	struct m_match what = { .qp = qp, .post = p, .recv = p && !j->m->queues.v[p->queue].send, .rec = rec };

	wrong_return_of(j, inst, what, at, call, err, more);
}

/* Records of a member of `together` carry the number of the whole. */
bool judge_in_step(const struct judge *j, size_t inst, size_t rec_inst)
{
	const struct m_inst *own = &j->m->insts.v[inst], *other = &j->m->insts.v[rec_inst];
	const json_t *s;
	size_t i;

	if (rec_inst == inst)
		return true;
	if (strcmp(judge_do(j, rec_inst), "together") || strcmp(own->iter, other->iter))
		return false;
	json_array_foreach(json_object_get(other->plan, "steps"), i, s)
		if (s == own->plan)
			return true;
	return false;
}

/* The MR whose key of a former life a post uses, and that key's name in what ibv_reg_mr returned. */
static const char *old_key(const struct judge *j, const struct m_post *p, const json_t *step, char *mr, size_t size)
{
	const char *rkey = json_str(step, "rkey"), *lkey = json_str(step, "lkey"), *to;
	const struct m_qp *qp = j->m->queues.v[p->queue].qp == M_NONE ? NULL : &j->m->qps.v[j->m->queues.v[p->queue].qp];

	if (rkey && !strcmp(rkey, "old") && qp) {
		to = json_str(json_object_get(step, "to"), "mr") ? json_str(json_object_get(step, "to"), "mr")
								 : json_str(step, "to");
		snprintf(mr, size, "%s%s", to ? to : qp->peer, to ? "" : ".mem");
		return "rkey";
	}
	if (lkey && !strcmp(lkey, "old") && qp) {
		to = json_str(step, "mr");
		snprintf(mr, size, "%s%s", to ? to : qp->name, to ? "" : j->m->queues.v[p->queue].send ? ".tx" : ".rx");
		return "lkey";
	}
	return NULL;
}

/* Where the device gave out the same key again, an old key is no wrong key and nothing was shown. */
static void key_reused(struct judge *j, size_t inst, const struct m_post *p)
{
	char mr[256];
	const char *key = p->queue == M_NONE ? NULL : old_key(j, p, j->m->insts.v[inst].plan, mr, sizeof(mr));
	int64_t former = -1, now = -1;
	size_t i;

	for (i = 0; key && i < p->rec; i++) {
		const json_t *r = json_array_get(j->records, i), *ret = json_object_get(r, "ret");
		const char *obj = json_str(r, "obj"), *verb = json_str(r, "verb");

		if (!obj || !verb || strcmp(obj, mr) || strcmp(verb, "ibv_reg_mr") || !json_object_get(ret, key))
			continue;
		former = now;
		now = json_int(ret, key, -1);
	}
	if (key && former >= 0 && former == now)
		judge_say(j, SEVERITY_INCONCLUSIVE, "expect", inst, p->rec, p->obj,
			  "%s: the device gave out the same %s again for %s: the old key is not a wrong one", p->obj, key, mr);
}

static void right_return(struct judge *j, size_t inst, struct m_match what, int err)
{
	what.step = j->m->insts.v[inst].plan;
	what.returns = err ? name_of(&names_errno, err) : "0";
	m_profile_specified(j->m, &what, j->m->insts.v[inst].step);
}

static size_t post_qp(const struct judge *j, const struct m_post *p)
{
	return p->queue == M_NONE ? M_NONE : j->m->queues.v[p->queue].qp;
}

static void posts_of(struct judge *j, size_t inst, unsigned *refused)
{
	const json_t *step = j->m->insts.v[inst].plan;
	const char *as = json_str(step, "as");
	int64_t tag = json_int(step, "tag", 0);
	bool zero = errno_wanted(step, 0);

	for (size_t i = 0; i < j->m->posts.n; i++) {
		const struct m_post *p = &j->m->posts.v[i];
		char more[64] = "";

		if (!judge_in_step(j, inst, p->inst) || (*p->by && strcmp(p->by, "step")) ||
		    (p->inst != inst && tag >> 12 != p->tag >> 12) || (p->inst != inst && as && strcmp(as, p->as)))
			continue;
		*refused += p->err || p->accepted < p->asked;
		if (p->kept_back)
			continue;
		key_reused(j, inst, p);
		if (zero && !p->err && p->accepted < p->asked) {
			snprintf(more, sizeof(more), ", and %u of %u accepted", p->accepted, p->asked);
			wrong_return(j, inst, p->rec, post_qp(j, p), p->queue == M_NONE ? NULL : p, p->obj, "the post", p->err,
				     more);
		} else if (!errno_wanted(step, p->err)) {
			wrong_return(j, inst, p->rec, post_qp(j, p), p->queue == M_NONE ? NULL : p, p->obj, "the post", p->err, "");
		} else if (p->err && json_object_get(step, "bad_wr") && json_int(step, "bad_wr", 0) != p->bad) {
			snprintf(more, sizeof(more), " with bad_wr at request %d", p->bad);
			wrong_return(j, inst, p->rec, post_qp(j, p), p->queue == M_NONE ? NULL : p, p->obj, "the post", p->err,
				     more);
		} else if (p->queue != M_NONE) {
			right_return(
				j, inst,
				(struct m_match){
					.qp = post_qp(j, p), .post = p, .recv = !j->m->queues.v[p->queue].send, .rec = p->rec },
				p->err);
		}
	}
}

static void modifies_of(struct judge *j, size_t inst, unsigned *refused)
{
	const json_t *step = j->m->insts.v[inst].plan;

	for (size_t i = 0; i < j->m->states.n; i++) {
		const struct m_state *s = &j->m->states.v[i];
		struct m_match what;
		char call[64];

		if (!judge_in_step(j, inst, s->inst) || !*s->asked)
			continue;
		*refused += s->err != 0;
		snprintf(call, sizeof(call), "the move to %s", s->asked);
		what = (struct m_match){ .qp = s->qp, .life = s->life, .move = s, .rec = s->rec };
		if (!errno_wanted(step, s->err))
			wrong_return_of(j, inst, what, judge_qp(j, s->qp), call, s->err, "");
		else
			right_return(j, inst, what, s->err);
	}
	verdict_check_trials(j, inst);
}

/* What a created object stands on is created with it, and nobody asked for a refusal of that. */
static bool is_named(const json_t *step, const char *obj)
{
	static const char *const kinds[] = { "qp", "cq", "srq", "mr", "mw", "ah", "pd" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const json_t *names = json_object_get(step, kinds[i]);

		if (json_is_string(names) ? !strcmp(json_string_value(names), obj) : json_array_has(names, obj))
			return true;
	}
	return false;
}

static void verbs_of(struct judge *j, size_t inst, unsigned *refused)
{
	const json_t *step = j->m->insts.v[inst].plan;
	const char *what = judge_do(j, inst);

	for (size_t i = 0; i < j->m->verbs.n; i++) {
		const struct m_verb *v = &j->m->verbs.v[i];
		bool own = (!strcmp(what, "create") &&
			    (strstr(v->verb, "create") || strstr(v->verb, "reg_mr") || strstr(v->verb, "alloc"))) ||
			   (!strcmp(what, "destroy") &&
			    (strstr(v->verb, "destroy") || strstr(v->verb, "dereg") || strstr(v->verb, "dealloc"))) ||
			   (!strcmp(what, "modify") && (strstr(v->verb, "modify_srq") || strstr(v->verb, "resize_cq"))) ||
			   ((!strcmp(what, "attach") || !strcmp(what, "detach")) && strstr(v->verb, "tach_mcast"));

		if (!own || !judge_in_step(j, inst, v->inst))
			continue;
		*refused += v->err != 0;
		if (!strcmp(what, "create") && !v->err && !is_named(step, v->obj))
			continue;
		if (!errno_wanted(step, v->err))
			wrong_return(j, inst, v->rec, m_qp_find(j->m, v->obj, strlen(v->obj)), NULL, v->obj, v->verb, v->err, "");
	}
}

static void waits_of(struct judge *j, size_t inst, unsigned *refused)
{
	*refused += verdict_waited_of(j, inst);
}

/* What they have returned is looked at there. *refused: how many of them say that the call was refused. */
static const struct {
	const char *what;
	void (*records)(struct judge *j, size_t inst, unsigned *refused);
} returning[] = {
	{ "poll", waits_of },      { "post", posts_of },   { "post_recv", posts_of },
	{ "modify", modifies_of }, { "modify", verbs_of }, { "create", verbs_of },
	{ "destroy", verbs_of },   { "attach", verbs_of }, { "detach", verbs_of },
};

static bool refused_with(const struct judge *j, size_t inst, const char *reason)
{
	for (size_t i = 0; i < j->m->events.n; i++) {
		const struct m_event *ev = &j->m->events.v[i];

		if (ev->cm && ev->inst == inst && !strcmp(ev->reason, reason))
			return true;
	}
	return false;
}

static void not_refused(struct judge *j, size_t inst)
{
	const struct m_inst *in = &j->m->insts.v[inst];
	struct finding *f = judge_find(j, SEVERITY_FAIL, "expect", inst, in->end_rec, "");

	if (!f)
		return;
	finding_set(f, f->expected, "the connect to be refused with %s", json_str(in->plan, "refused"));
	finding_set(f, f->seen, "%s", *in->text ? in->text : strcmp(in->outcome, "done") ? in->outcome : "it connected");
	finding_set(f, f->text, "expected %s, seen %s", f->expected, f->seen);
}

static void outcome(struct judge *j, size_t inst, unsigned refused)
{
	const struct m_inst *in = &j->m->insts.v[inst];
	const char *what = judge_do(j, inst), *colon = *in->text ? ": " : "";
	bool refusal_meant = !strcmp(what, "connect") && json_object_get(in->plan, "refused");

	if (!strcmp(in->outcome, "error"))
		judge_say(j, SEVERITY_ERROR, "harness", inst, in->end_rec, "", "%s could not be carried out%s%s", what, colon,
			  in->text);
	else if (!strcmp(in->outcome, "skipped"))
		judge_say(j, SEVERITY_INCONCLUSIVE, "harness", inst, in->end_rec, "", "%s was not run%s%s", what, colon, in->text);
	else if (!strcmp(in->outcome, "refused") && !refused && !refusal_meant && strcmp(what, "recover"))
		judge_say(j, !strcmp(what, "fault") || !strcmp(what, "clear") ? SEVERITY_ERROR : SEVERITY_FAIL,
			  !strcmp(what, "traffic") ? "traffic" : "expect", inst, in->end_rec, "", "%s was refused%s%s", what, colon,
			  in->text);
	else if (!strcmp(in->outcome, "broken") && !strcmp(what, "traffic"))
		judge_say(j, SEVERITY_FAIL, "traffic", inst, in->end_rec, "", "traffic did not pass%s%s", colon, in->text);
	else if (!strcmp(in->outcome, "timeout") && !refusal_meant && json_has(in->plan, "by", "cm"))
		judge_say(j, SEVERITY_FAIL, "expect", inst, in->end_rec, "", "the connect did not come to its end%s%s", colon,
			  in->text);
	else if (refusal_meant && (strcmp(in->outcome, "refused") || !refused_with(j, inst, json_str(in->plan, "refused"))))
		not_refused(j, inst);
}

void verdict_check_returns(struct judge *j)
{
	for (size_t i = 0; i < j->m->insts.n; i++) {
		const struct m_inst *in = &j->m->insts.v[i];
		unsigned refused = 0;

		if (in->end_rec == M_NONE || !in->plan)
			continue;
		for (size_t k = 0; k < sizeof(returning) / sizeof(returning[0]); k++)
			if (!strcmp(returning[k].what, judge_do(j, i)))
				returning[k].records(j, i, &refused);
		/* A refusal that no record tells of came from whoever was asked: an agent that is dead, or frozen, or has lost its
		 * way. */
		outcome(j, i, refused);
	}
}

static const struct m_fault *fault_of(const struct judge *j, size_t inst)
{
	for (size_t i = 0; i < j->m->faults.n; i++)
		if (j->m->faults.v[i].inst == inst)
			return &j->m->faults.v[i];
	return NULL;
}

/* The sweep's packet, where this fault is for it: it did not occur, and is named. */
static char *swept_packet(const struct judge *j, size_t inst)
{
	const json_t *packet = json_object_get(j->plan, "packet");
	const json_t *match = json_object_get(json_object_get(j->m->insts.v[inst].plan, "args"), "match");

	if (!packet || !json_equal(json_object_get(match, "psn"), json_object_get(packet, "psn")) ||
	    !json_equal(json_object_get(match, "class"), json_object_get(packet, "class")))
		return NULL;
	return scenario_packet_name(packet);
}

/* What was expected of a packet that did not occur says nothing of the device. */
static void expect_nothing_of(struct judge *j, const struct m_fault *f)
{
	for (size_t i = 0; i < j->findings.n; i++) {
		struct finding *x = &j->findings.v[i];
		const json_t *step = j->m->insts.v[x->inst].plan;
		const char *fault = json_str(step, "fault");

		if (strcmp(judge_do(j, x->inst), "expect") || x->severity != SEVERITY_FAIL)
			continue;
		if ((fault && !strcmp(fault, f->as)) || json_object_get(step, "packets") || json_object_get(step, "counter"))
			x->severity = SEVERITY_WARNING;
	}
}

static void no_evidence(struct judge *j, size_t inst, const struct m_fault *f)
{
	char *name = swept_packet(j, inst);

	if (name)
		expect_nothing_of(j, f);

	judge_say(j, SEVERITY_INCONCLUSIVE, "fault", inst, f->cleared ? f->clear_rec : f->rec, "",
		  "%s%s%sfault %s (%s) left no evidence that it fired%s%s%s: what was seen proves nothing", name ? "packet " : "",
		  name ? name : "", name ? " did not occur: " : "", f->as, f->name, f->why ? " (" : "", f->why ? f->why : "",
		  f->why ? ")" : "");
	free(name);
}

/* What the wire counted has to be seen in the packets too, but for a hole in the link, which swallows what is no packet of theirs.
 */
static bool packets_agree(const struct judge *j, const struct m_fault *f)
{
	const json_t *args = json_object_get(j->m->insts.v[f->inst].plan, "args");
	const char *action = json_str(args, "action");

	if (strcmp(f->name, "wire") || !json_object_get(f->evidence, "hits"))
		return true;
	if (!json_int(f->evidence, "hits", 0) && !json_int(f->evidence, "invented", 0))
		return false;
	return json_object_get(j->m->touching, f->as) || (action && !strcmp(action, "blackhole"));
}

void verdict_check_faults(struct judge *j)
{
	for (size_t i = 0; i < j->m->insts.n; i++) {
		const struct m_inst *in = &j->m->insts.v[i];
		const struct m_fault *f = strcmp(judge_do(j, i), "fault") ? NULL : fault_of(j, i);
		const char *text;

		if (strcmp(judge_do(j, i), "fault") || in->end_rec == M_NONE)
			continue;
		if (!f) {
			if (!strcmp(in->outcome, "done"))
				judge_say(j, SEVERITY_INCONCLUSIVE, "fault", i, in->end_rec, "",
					  "no record says that the fault was injected");
			continue;
		}
		text = json_str(f->rec_ref, "text");
		if (!f->injected)
			judge_say(j, SEVERITY_ERROR, "fault", i, f->rec, "", "fault %s (%s) could not be injected%s%s", f->as,
				  f->name, text ? ": " : "", text ? text : "");
		else if ((!f->fired || !f->evidence || !packets_agree(j, f)) && !j->crashed && !j->cut &&
			 !(j->wire_gone && !strcmp(f->name, "wire")))
			no_evidence(j, i, f);
	}
}

static const struct m_recover *last_of_pair(const struct judge *j, size_t inst, const char *pair)
{
	for (size_t i = j->m->recovers.n; i-- > 0;)
		if (j->m->recovers.v[i].inst == inst && !strcmp(j->m->recovers.v[i].pair, pair))
			return &j->m->recovers.v[i];
	return NULL;
}

/* One of the pair's ends is as the profile has it. */
static bool recovery_excused(struct judge *j, size_t inst, const struct m_recover *last, bool fails)
{
	for (size_t qp = 0; qp < j->m->qps.n; qp++) {
		struct m_match what = { .qp = qp, .rec = last->rec, .recovery = fails ? "fails" : "verified", .path = last->path };
		const json_t *entry;
		bool seen;

		if (strcmp(j->m->qps.v[qp].pair, last->pair))
			continue;
		entry = m_profile_excuse(j->m, &what, fails ? "verified" : "fails", &seen);
		if (!entry || !seen)
			continue;
		judge_deviation(j, entry, "recover", inst, last->rec, last->pair,
				"pair %s: expected a recovery that %s, seen %s in attempt %d: the profile's %s", last->pair,
				fails ? "fails" : "is verified", last->phase, last->attempt, json_str(entry, "id"));
		return true;
	}
	return false;
}

static void one_recovery(struct judge *j, size_t inst, const struct m_recover *last, bool fails)
{
	bool verified = !strcmp(last->phase, "verified");
	struct finding *f;

	if (verified != fails || recovery_excused(j, inst, last, fails))
		return;
	f = judge_find(j, SEVERITY_FAIL, "recover", inst, last->rec, last->pair);
	if (!f)
		return;
	finding_set(f, f->expected, fails ? "no recovery: the scenario says it fails" : "traffic that passes after recovery by %s",
		    last->path);
	finding_set(f, f->seen, "%s in attempt %d", last->phase, last->attempt);
	finding_set(f, f->text, "pair %s: expected %s, seen %s%s%s", last->pair, f->expected, f->seen, *last->text ? ": " : "",
		    last->text);
}

void verdict_check_recover(struct judge *j)
{
	for (size_t i = 0; i < j->m->insts.n; i++) {
		const struct m_inst *in = &j->m->insts.v[i];
		const char *result = json_str(in->plan, "result");
		bool fails = result && !strcmp(result, "fails"), any = false;

		if (strcmp(judge_do(j, i), "recover") || in->end_rec == M_NONE || !strcmp(in->outcome, "error") ||
		    !strcmp(in->outcome, "skipped"))
			continue;
		for (size_t k = 0; k < j->m->recovers.n; k++) {
			const struct m_recover *r = &j->m->recovers.v[k];

			if (r->inst != i)
				continue;
			any = true;
			/* Once for each pair: at its last record. */
			if (last_of_pair(j, i, r->pair) == r)
				one_recovery(j, i, r, fails);
		}
		if (!any && !json_bool(in->plan, "if_needed", false))
			judge_say(j, SEVERITY_FAIL, "recover", i, in->end_rec, "", "no record of a recovery that was verified%s%s",
				  *in->text ? ": " : "", in->text);
	}
}

#define TURNS_MAX 1000000

static bool is_member(const json_t *steps, int n)
{
	const json_t *s;
	size_t i;

	json_array_foreach(steps, i, s)
		if (json_int(s, "n", -1) == n || is_member(json_object_get(s, "steps"), n))
			return true;
	return false;
}

/* Which turn of this repeat an instance belongs to; 0 for none. */
static unsigned turn_of(const struct judge *j, const struct m_inst *repeat, size_t inst)
{
	const struct m_inst *in = &j->m->insts.v[inst];
	size_t len = strlen(repeat->iter);
	const char *rest = in->iter;
	unsigned long turn;

	if (!is_member(json_object_get(repeat->plan, "steps"), in->step))
		return 0;
	if (len && (strncmp(rest, repeat->iter, len) || rest[len] != '.'))
		return 0;
	turn = strtoul(len ? rest + len + 1 : rest, NULL, 10);
	return turn > TURNS_MAX ? 0 : (unsigned)turn;
}

static bool counts_as_turn(const struct finding *f)
{
	static const char *const never[] = { "kernel", "residue", "harness", "hang", "resources" };

	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		if (!strcmp(f->check, never[i]))
			return false;
	return f->severity == SEVERITY_FAIL;
}

static void one_repeat(struct judge *j, size_t inst, const json_t *passes)
{
	const struct m_inst *repeat = &j->m->insts.v[inst];
	unsigned turns = 0, failed = 0;
	struct text want = { .len = 0 };
	bool *bad;

	for (size_t i = 0; i < j->m->insts.n; i++) {
		unsigned turn = turn_of(j, repeat, i);

		turns = turn > turns ? turn : turns;
	}
	bad = calloc(turns + 1, sizeof(*bad));
	if (!bad)
		return;
	for (size_t i = 0; i < j->findings.n; i++)
		if (counts_as_turn(&j->findings.v[i]))
			bad[turn_of(j, repeat, j->findings.v[i].inst)] = true;
	for (unsigned k = 1; k <= turns; k++)
		failed += bad[k];
	free(bad);
	cmp_text(j->m, passes, &want);
	if (cmp_holds(j->m, passes, turns - failed, NULL) != 1) {
		struct finding *f = judge_find(j, SEVERITY_FAIL, "expect", inst, repeat->end_rec, "");

		if (f) {
			finding_set(f, f->expected, "%s iterations that pass", want.b);
			finding_set(f, f->seen, "%u of %u", turns - failed, turns);
			finding_set(f, f->text, "expected %s, seen %s", f->expected, f->seen);
		}
		return;
	}
	for (size_t i = 0; i < j->findings.n; i++)
		if (counts_as_turn(&j->findings.v[i]) && turn_of(j, repeat, j->findings.v[i].inst))
			j->findings.v[i].severity = SEVERITY_NOTE;
	judge_say(j, SEVERITY_NOTE, "expect", inst, repeat->end_rec, "", "%u of %u iterations passed, as %s were to",
		  turns - failed, turns, want.b);
}

void verdict_check_repeat(struct judge *j)
{
	for (size_t i = 0; i < j->m->insts.n; i++) {
		const json_t *passes = json_object_get(j->m->insts.v[i].plan, "passes");

		if (passes && !strcmp(judge_do(j, i), "repeat") && j->m->insts.v[i].end_rec != M_NONE)
			one_repeat(j, i, passes);
	}
}

void verdict_check_stale(struct judge *j)
{
	const json_t *use;
	const char *id;

	json_object_foreach(j->m->used, id, use)
		if (json_int(use, "specified", 0) && !json_int(use, "deviated", 0)) {
			int step = (int)json_int(use, "step", 0);
			size_t inst = m_inst_latest(j->m, step);

			judge_say(j, SEVERITY_WARNING, "expect", inst == M_NONE ? 0 : inst,
				  inst == M_NONE ? 0 : j->m->insts.v[inst].end_rec, "",
				  "the profile's %s is stale: the device did what the specification says", id);
		}
}
