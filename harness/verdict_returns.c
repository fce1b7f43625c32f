/* SPDX-License-Identifier: MIT */
/* What the steps' calls have returned, against what the file wants of them. */
#include "verdict_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "json.h"
#include "names.h"

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

/* One that is to be refused: by the first move, or the first object, that its device refuses. Any other refusal is outcome()'s. */
static void connects_of(struct judge *j, size_t inst, unsigned *refused)
{
	const struct m_inst *in = &j->m->insts.v[inst];
	struct m_match what = { .qp = M_NONE, .rec = in->end_rec };

	if (errno_wanted(in->plan, 0))
		return;
	for (size_t i = 0; i < j->m->states.n; i++) {
		const struct m_state *s = &j->m->states.v[i];

		if (!judge_in_step(j, inst, s->inst) || !*s->asked || !s->err)
			continue;
		++*refused;
		if (!errno_wanted(in->plan, s->err))
			wrong_return_of(j, inst, (struct m_match){ .qp = s->qp, .life = s->life, .move = s, .rec = s->rec },
					judge_qp(j, s->qp), "the connect", s->err, "");
	}
	for (size_t i = 0; i < j->m->verbs.n; i++) {
		const struct m_verb *v = &j->m->verbs.v[i];

		if (!judge_in_step(j, inst, v->inst) || !v->err)
			continue;
		++*refused;
		if (!errno_wanted(in->plan, v->err))
			wrong_return(j, inst, v->rec, m_qp_find(j->m, v->obj, strlen(v->obj)), NULL, v->obj, v->verb, v->err, "");
	}
	if (!*refused && !strcmp(in->outcome, "done"))
		wrong_return_of(j, inst, what, json_string_value(json_array_get(json_object_get(in->plan, "pairs"), 0)),
				"the connect", 0, "");
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
	{ "connect", connects_of }, { "poll", waits_of },   { "post", posts_of },   { "post_recv", posts_of },
	{ "modify", modifies_of },  { "modify", verbs_of }, { "create", verbs_of }, { "destroy", verbs_of },
	{ "attach", verbs_of },     { "detach", verbs_of },
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
