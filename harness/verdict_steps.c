/* SPDX-License-Identifier: MIT */
/* What the steps themselves owe: faults that fired, recoveries that were verified, iterations that passed. */
#include "verdict_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "json.h"
#include "names.h"
#include "scenario.h"

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

/* From the inner ones to the outer: what an inner one has forgiven is no failure of the round that it is in. */
void verdict_check_repeat(struct judge *j)
{
	for (size_t i = j->m->insts.n; i-- > 0;) {
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

			judge_say(j, SEVERITY_WARNING, "stale", inst == M_NONE ? 0 : inst,
				  inst == M_NONE ? 0 : j->m->insts.v[inst].end_rec, "",
				  "the profile's %s is stale: the device did what the specification says", id);
		}
}
