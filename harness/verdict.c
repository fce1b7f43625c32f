/* SPDX-License-Identifier: MIT */
#include "verdict.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "json.h"
#include "verdict_hint.h"
#include "verdict_internal.h"

#define LAST_RECORDS 6

const char *const verdict_names[NUM_VERDICTS] = {
	[VERDICT_INVALID] = "invalid",
	[VERDICT_PASS] = "pass",
	[VERDICT_DEVIATION] = "deviation",
	[VERDICT_FAIL] = "fail",
	[VERDICT_INCONCLUSIVE] = "inconclusive",
	[VERDICT_SKIP] = "skip",
	[VERDICT_ERROR] = "error",
};

static const char *const severity_names[] = {
	[SEVERITY_NOTE] = "note",           [SEVERITY_WARNING] = "warning",
	[SEVERITY_DEVIATION] = "deviation", [SEVERITY_INCONCLUSIVE] = "inconclusive",
	[SEVERITY_ERROR] = "error",         [SEVERITY_FAIL] = "fail",
};

struct finding *judge_find(struct judge *j, enum severity severity, const char *check, size_t inst, size_t rec, const char *at)
{
	struct finding *f = M_PUSH(j->m, &j->findings);

	if (!f)
		return NULL;
	f->severity = severity;
	f->check = check;
	f->inst = inst;
	f->rec = rec;
	f->at = m_intern(j->m, at);
	return f;
}

void finding_set(struct finding *f, char *field, const char *fmt, ...)
{
	size_t size = field == f->text ? sizeof(f->text) : sizeof(f->expected);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(field, size, fmt, ap);
	va_end(ap);
}

struct finding *judge_say(struct judge *j, enum severity severity, const char *check, size_t inst, size_t rec, const char *at,
			  const char *fmt, ...)
{
	struct finding *f = judge_find(j, severity, check, inst, rec, at);
	va_list ap;

	if (!f)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
	return f;
}

void judge_deviation(struct judge *j, const json_t *entry, const char *check, size_t inst, size_t rec, const char *at,
		     const char *fmt, ...)
{
	struct finding *f = judge_find(j, SEVERITY_DEVIATION, check, inst, rec, at);
	va_list ap;

	if (!f)
		return;
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
	f->deviation = json_pack("[s]", json_str(entry, "id") ? json_str(entry, "id") : "?");
	m_profile_used(j->m, entry, j->m->insts.v[inst].step);
}

static const json_t *entry_by_id(const struct judge *j, const char *id)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(j->profile ? j->profile->entries : NULL, i, entry)
		if (json_str(entry, "id") && !strcmp(json_str(entry, "id"), id))
			return entry;
	return NULL;
}

void finding_likely(struct judge *j, struct finding *f, const json_t *ids)
{
	const json_t *id;
	size_t i, len;

	if (json_array_size(ids) && !f->likely)
		f->likely = json_array();
	json_array_extend(f->likely, (json_t *)ids);
	json_array_foreach(ids, i, id) {
		const json_t *entry = entry_by_id(j, json_string_value(id));
		const char *note = json_str(entry, "note");

		len = strlen(f->text);
		snprintf(f->text + len, sizeof(f->text) - len,
			 "; likely the profile's %s%s%s%s, which no run has shown on this kernel (%s, %s)", json_string_value(id),
			 note ? " (" : "", note ? note : "", note ? ")" : "",
			 j->profile->kernel && *j->profile->kernel ? j->profile->kernel : "unknown",
			 entry && profile_entry_in_range(j->profile, entry) ? "inside its range" : "outside its range");
	}
}

void finding_likely_entry(struct judge *j, struct finding *f, const json_t *entry)
{
	json_t *ids = json_pack("[s]", json_str(entry, "id"));

	finding_likely(j, f, ids);
	json_decref(ids);
}

const char *judge_qp(const struct judge *j, size_t qp)
{
	return qp == M_NONE ? "" : j->m->qps.v[qp].name;
}

const char *judge_do(const struct judge *j, size_t inst)
{
	const char *what = json_str(j->m->insts.v[inst].plan, "do");

	return what ? what : "";
}

bool judge_is_release(const struct judge *j, size_t inst)
{
	return j->m->insts.v[inst].step == -1;
}

static bool map_says(const struct judge *j, size_t inst, const json_t *x, size_t qp, const char *key,
		     bool (*fits)(const json_t *value, const void *user), const void *user)
{
	const json_t *value = json_object_get(x, key);
	struct eval v = { .m = j->m, .inst = inst };
	struct ends ends;
	bool says = false;

	if (!value || !fits(value, user) || expect_ends(&v, x, &ends))
		return false;
	for (size_t i = 0; i < ends.e.n; i++)
		says |= ends.e.v[i].qp == qp;
	free(ends.e.v);
	return says;
}

bool judge_scenario_says(const struct judge *j, size_t qp, const char *key, bool (*fits)(const json_t *value, const void *user),
			 const void *user)
{
	for (size_t i = 0; i < j->m->insts.n; i++) {
		const json_t *step = j->m->insts.v[i].plan, *x;
		const char *what = judge_do(j, i);
		size_t k;

		if (strcmp(what, "expect") && strcmp(what, "allow"))
			continue;
		if (map_says(j, i, step, qp, key, fits, user))
			return true;
		json_array_foreach(json_object_get(step, "any"), k, x)
			if (map_says(j, i, x, qp, key, fits, user))
				return true;
	}
	return false;
}

/* A responder answers a refused request by NAK and tells itself by an event; these are the pairs. */
static const struct {
	const char *cause, *event;
} refusals[] = {
	{ "REM_ACCESS_ERR", "QP_ACCESS_ERR" },
	{ "REM_INV_REQ_ERR", "QP_REQ_ERR" },
	{ "REM_INV_REQ_ERR", "QP_ACCESS_ERR" },
};

const json_t *judge_missing_event(const struct judge *j, size_t qp, unsigned life, uint64_t t, const char *check, bool *ret_seen)
{
	const struct model *m = j->m;
	size_t peer = m_qp_find(m, m->qps.v[qp].peer, strlen(m->qps.v[qp].peer));
	const uint64_t near_ns = 1000000000 + m->late_max_ns;
	const json_t *likely = NULL, *entry;

	*ret_seen = false;
	for (size_t i = 0; i < m->comps.n; i++) {
		const struct m_comp *c = &m->comps.v[i];

		if (c->qp != peer || c->recv || c->success || c->t > t + near_ns || c->t + near_ns < t)
			continue;
		for (size_t k = 0; k < sizeof(refusals) / sizeof(refusals[0]); k++) {
			struct m_match what = { .qp = qp, .life = life, .event = refusals[k].event, .rec = c->rec };

			if (strcmp(c->status, refusals[k].cause))
				continue;
			entry = m_profile_excuse(m, &what, "none", ret_seen);
			if (!entry || !m_profile_waives(entry, check))
				continue;
			if (*ret_seen)
				return entry;
			likely = entry;
		}
	}
	*ret_seen = false;
	return likely;
}

static int by_record(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (x->rec != y->rec)
		return x->rec < y->rec ? -1 : 1;
	return (y->severity > x->severity) - (y->severity < x->severity);
}

static json_t *finding_json(const struct judge *j, const struct finding *f)
{
	const struct m_inst *in = &j->m->insts.v[f->inst];
	json_t *o = json_pack("{s:s, s:s, s:i, s:s, s:i, s:s, s:s, s:s, s:s, s:o}", "severity", severity_names[f->severity],
			      "check", f->check, "step", in->step, "iter", in->iter, "line", (int)json_int(in->plan, "line", 0),
			      "at", f->at, "expected", f->expected, "seen", f->seen, "text", f->text, "last",
			      f->severity >= SEVERITY_INCONCLUSIVE ? record_lines(j, f->at, f->rec, LAST_RECORDS) : json_array());

	json_object_set_new(o, "deviation", json_string(f->deviation ? json_string_value(json_array_get(f->deviation, 0)) : ""));
	if (f->likely)
		json_object_set(o, "likely", f->likely);
	return o;
}

static enum verdict verdict_of(const struct judge *j, const struct finding **ret_first)
{
	static const enum verdict verdicts[] = {
		[SEVERITY_NOTE] = VERDICT_PASS,           [SEVERITY_WARNING] = VERDICT_PASS,
		[SEVERITY_DEVIATION] = VERDICT_DEVIATION, [SEVERITY_INCONCLUSIVE] = VERDICT_INCONCLUSIVE,
		[SEVERITY_ERROR] = VERDICT_ERROR,         [SEVERITY_FAIL] = VERDICT_FAIL,
	};
	static const int rank[] = {
		[SEVERITY_NOTE] = 0,         [SEVERITY_WARNING] = 0, [SEVERITY_DEVIATION] = 1,
		[SEVERITY_INCONCLUSIVE] = 2, [SEVERITY_ERROR] = 2,   [SEVERITY_FAIL] = 3,
	};
	const struct finding *first = NULL;

	for (size_t i = 0; i < j->findings.n; i++) {
		const struct finding *f = &j->findings.v[i];

		if (rank[f->severity] && (!first || rank[f->severity] > rank[first->severity]))
			first = f;
	}
	*ret_first = first;
	return first ? verdicts[first->severity] : VERDICT_PASS;
}

/* A fault before it that did not fire is the likelier cause than the device. */
static const struct finding *idle_fault(const struct judge *j, const struct finding *failed)
{
	for (size_t i = 0; failed->severity == SEVERITY_FAIL && i < j->findings.n; i++) {
		const struct finding *f = &j->findings.v[i];

		if (f->severity == SEVERITY_INCONCLUSIVE && !strcmp(f->check, "fault") && f->inst < failed->inst)
			return f;
	}
	return NULL;
}

static char *headline(const struct judge *j, const struct finding *f, char *buf, size_t size)
{
	const struct m_inst *in = &j->m->insts.v[f->inst];
	const char *file = json_str(j->plan, "file");
	int line = (int)json_int(in->plan, "line", 0);
	const struct finding *idle = idle_fault(j, f);
	size_t len;

	if (in->step > 0)
		snprintf(buf, size, "%s:%d: step %d%s%s (%s): %s", file ? file : "?", line, in->step,
			 *in->iter ? " iteration " : "", in->iter, judge_do(j, f->inst), f->text);
	else
		snprintf(buf, size, "%s", f->text);
	len = strlen(buf);
	if (idle)
		snprintf(buf + len, size - len, "; and %s", idle->text);
	return buf;
}

static json_t *faults_json(const struct judge *j)
{
	json_t *list = json_array();

	for (size_t i = 0; i < j->m->faults.n; i++) {
		const struct m_fault *f = &j->m->faults.v[i];
		char evidence[EVIDENCE_MAX];

		json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:s}", "as", f->as, "name", f->name, "fired",
						      f->fired && f->evidence, "evidence",
						      evidence_text(f->evidence, evidence, sizeof(evidence))));
	}
	return list;
}

static json_t *ledger_json(const struct judge *j)
{
	json_t *ledger = json_object();

	for (size_t i = 0; i < j->m->queues.n; i++) {
		const struct m_queue *q = &j->m->queues.v[i];
		struct m_account sum = { 0 }, a;

		for (size_t k = 0; k < q->lives.n; k++) {
			a = m_account_life(j->m, i, &q->lives.v[k], true);
			sum.accepted += a.accepted;
			sum.completed += a.completed;
			sum.retired += a.retired;
			sum.discarded += a.discarded;
			sum.in_srq += a.in_srq;
			sum.in_flight += a.in_flight;
		}
		if (sum.accepted)
			json_object_set_new(ledger, q->name,
					    json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "posted", (int)sum.accepted, "completed",
						      (int)sum.completed, "retired", (int)sum.retired, "discarded",
						      (int)sum.discarded, "in_srq", (int)sum.in_srq, "in_flight",
						      (int)sum.in_flight));
	}
	return ledger;
}

static json_t *counters_json(const struct judge *j)
{
	const json_t *now, *value;
	json_t *all = json_object();
	const char *dev, *name;

	json_object_foreach(j->m->counter_now, dev, now) {
		const json_t *base = json_object_get(j->m->counter_base, dev);
		json_t *moved = json_object();

		json_object_foreach((json_t *)now, name, value) {
			int64_t delta = json_integer_value(value) - json_int(base, name, 0);

			if (json_is_integer(value) && delta)
				json_object_set_new(moved, name, json_integer(delta));
		}
		json_object_set_new(all, dev, moved);
	}
	return all;
}

static json_t *deviations_json(const struct judge *j, json_t *stale)
{
	json_t *list = json_array();
	const json_t *use;
	const char *id;

	json_object_foreach(j->m->used, id, use) {
		const json_t *entry = entry_by_id(j, id);

		if (json_int(use, "deviated", 0))
			json_array_append_new(list, json_pack("{s:s, s:b, s:i}", "id", id, "in_seen",
							      entry && profile_entry_seen(j->profile, entry), "step",
							      (int)json_int(use, "step", 0)));
		else if (json_int(use, "specified", 0))
			json_array_append_new(stale, json_string(id));
	}
	return list;
}

static json_t *verdict_json(struct judge *j, json_t *packets)
{
	const struct finding *first;
	enum verdict verdict;
	json_t *findings = json_array(), *stale = json_array(), *deviations, *delivered, *v;
	char seen[512], *head;
	const char *id = json_str(j->plan, "case");

	if (j->findings.n)
		qsort(j->findings.v, j->findings.n, sizeof(*j->findings.v), by_record);
	for (size_t i = 0; j->o && j->o->strict && i < j->findings.n; i++)
		if (j->findings.v[i].severity == SEVERITY_DEVIATION)
			j->findings.v[i].severity = SEVERITY_FAIL;
	verdict = verdict_of(j, &first);
	for (size_t i = 0; i < j->findings.n; i++)
		json_array_append_new(findings, finding_json(j, &j->findings.v[i]));
	deviations = deviations_json(j, stale);
	head = malloc(2048);
	if (!head) {
		j->m->err = -ENOMEM;
		return NULL;
	}
	*head = 0;
	if (first)
		headline(j, first, head, 2048);
	v = json_pack("{s:i, s:s, s:s, s:s, s:s, s:I, s:o, s:O, s:o, s:o, s:o, s:o, s:o}", "schema", 1, "case", id ? id : "",
		      "verdict", verdict_names[verdict], "headline", head, "seen", verdict_seen(j, seen, sizeof(seen)),
		      "duration_ns", (json_int_t)(j->m->last_t - j->m->first_t), "findings", findings, "windows", j->windows,
		      "faults", faults_json(j), "deviations", deviations, "stale", stale, "ledger", ledger_json(j), "counters",
		      counters_json(j));
	if (j->bystander)
		json_object_set(v, "bystander", j->bystander);
	verdict_add_phases(j, v);
	verdict_add_resources(j, v);
	delivered = verdict_delivered(j);
	if (json_array_size(delivered))
		json_object_set(v, "delivered", delivered);
	json_decref(delivered);
	if (first && first->severity > SEVERITY_DEVIATION) {
		json_object_set_new(v, "ends", verdict_ends(j, first));
		json_object_set_new(v, "causes", verdict_causes(j, first));
	}
	free(head);
	if (packets) {
		json_object_set(v, "packets", packets);
		json_object_set_new(
			v, "seen",
			json_sprintf("%zu packet%s found", json_array_size(packets), json_array_size(packets) == 1 ? "" : "s"));
	}
	verdict_add_pauses(j, v);
	return v;
}

static json_t *verdict_skipped(const json_t *plan)
{
	const char *id = json_str(plan, "case");

	return json_pack("{s:i, s:s, s:s, s:s, s:s, s:i, s:[], s:[], s:[], s:[], s:[], s:{}, s:{}}", "schema", 1, "case",
			 id ? id : "", "verdict", verdict_names[VERDICT_SKIP], "headline", json_str(plan, "skip"), "seen", "",
			 "duration_ns", 0, "findings", "windows", "faults", "deviations", "stale", "ledger", "counters");
}

static const struct {
	const char *name;
	void (*check)(struct judge *j);
	bool first_pass; /* also of a first pass: it is about the harness, the lab and the kernel */
} checks[] = {
	{ "lost", verdict_check_lost, true },
	{ "complete", verdict_check_complete, true },
	{ "returns", verdict_check_returns, false },
	{ "ledger", verdict_check_ledger, false },
	{ "cause", verdict_check_cause, false },
	{ "state", verdict_check_state, false },
	{ "payload", verdict_check_payload, false },
	{ "delivered", verdict_check_delivered, false },
	{ "unexpected", verdict_check_unexpected, false },
	{ "counted", verdict_check_counted, false },
	{ "packets", verdict_check_packets, false },
	{ "unanswered", verdict_check_unanswered, false },
	{ "datagrams", verdict_check_datagrams, false },
	{ "time", verdict_check_time, false },
	{ "kernel", verdict_check_kernel, true },
	{ "residue", verdict_check_residue, true },
	{ "hang", verdict_check_hang, true },
	{ "faults", verdict_check_faults, false },
	{ "recover", verdict_check_recover, false },
	{ "stale", verdict_check_stale, false },
	{ "phases", verdict_check_phases, false },
	{ "repeat", verdict_check_repeat, false },
	{ "resources", verdict_check_resources, false },
	{ "bystander", verdict_check_bystander, false },
};

/* Without the wire there was no link: what the ends made of that is no finding about them. The kernel is another matter. */
static void excuse_without_wire(struct judge *j)
{
	for (size_t i = 0; j->wire_gone && i < j->findings.n; i++) {
		struct finding *f = &j->findings.v[i];

		if ((f->severity == SEVERITY_FAIL || f->severity == SEVERITY_DEVIATION || f->severity == SEVERITY_INCONCLUSIVE) &&
		    strcmp(f->check, "kernel") && strcmp(f->check, "residue"))
			f->severity = SEVERITY_NOTE;
	}
}

int verdict_judge(const json_t *plan, const json_t *records, bool torn, const struct profile *profile,
		  const struct verdict_options *o, json_t **ret_verdict, struct error *e)
{
	struct judge j = { .plan = plan, .records = records, .torn = torn, .profile = profile, .o = o, .windows = json_array() };
	json_t *verdict = NULL, *packets = NULL;
	bool first_pass;
	int rc;

	if (!json_is_object(plan) || !json_is_array(records)) {
		json_decref(j.windows);
		return error_set(e, -EINVAL, "a verdict needs a plan and a list of records");
	}
	if (!json_str(plan, "skip") && !json_is_array(json_object_get(plan, "steps"))) {
		json_decref(j.windows);
		return error_set(e, -EINVAL, "this is no plan of a case: it has no steps");
	}
	if (json_str(plan, "skip")) {
		json_decref(j.windows);
		*ret_verdict = verdict_skipped(plan);
		return *ret_verdict ? 0 : error_set(e, -ENOMEM, "out of memory");
	}
	rc = model_new(plan, profile, &j.m);
	if (rc) {
		json_decref(j.windows);
		return error_set(e, rc, "cannot build a model of the case: %s", strerror(-rc));
	}
	first_pass = verdict_is_first_pass(plan);
	verdict_replay(&j);
	if (first_pass)
		j.findings.n = 0;
	for (size_t i = 0; !j.m->err && i < sizeof(checks) / sizeof(checks[0]); i++)
		if (!first_pass || checks[i].first_pass)
			checks[i].check(&j);
	excuse_without_wire(&j);
	verdict_excuse_incomplete(&j);
	verdict_excuse_late(&j);
	verdict_excuse_paused(&j);
	if (first_pass)
		packets = verdict_found_packets(&j);
	if (first_pass)
		verdict_check_first_pass(&j, packets);
	rc = j.m->err;
	if (!rc)
		verdict = verdict_json(&j, packets);
	json_decref(packets);
	if (!rc && !verdict)
		rc = -ENOMEM;
	for (size_t i = 0; i < j.findings.n; i++) {
		json_decref(j.findings.v[i].deviation);
		json_decref(j.findings.v[i].likely);
	}
	free(j.findings.v);
	json_decref(j.windows);
	json_decref(j.bystander);
	model_free(j.m);
	if (rc)
		return error_set(e, rc, "cannot judge: %s", strerror(-rc));
	*ret_verdict = verdict;
	return 0;
}

int verdict_exit_status(const unsigned counts[NUM_VERDICTS])
{
	unsigned total = 0;

	for (int i = 0; i < NUM_VERDICTS; i++)
		total += counts[i];
	if (counts[VERDICT_FAIL])
		return 1;
	if (!total || counts[VERDICT_INCONCLUSIVE] || counts[VERDICT_ERROR] || counts[VERDICT_INVALID])
		return 3;
	return counts[VERDICT_SKIP] == total ? 77 : 0;
}
