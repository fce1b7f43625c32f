/* SPDX-License-Identifier: MIT */
/* What the kernel, the lab and the harness itself have to say: kernel log, residue, hangs, losses, a record that ends too soon. */
#include "verdict_internal.h"

#include <stdio.h>

#include "json.h"
#include "kernel_words.h"
#include "units.h"

#define KLOG_FINDINGS 5
#define CONSOLE_LINES 8

void verdict_check_kernel(struct judge *j)
{
	unsigned n = 0;

	/* The console's last words are in the finding on the crash. */
	for (size_t i = 0; !j->crashed && i < j->m->kept.n; i++) {
		const struct m_kept *k = &j->m->kept.v[i];
		const char *text = json_str(k->r, "text");
		struct finding *f;

		if (strcmp(k->kind, "klog") || !kernel_complains(text) || n++ >= KLOG_FINDINGS)
			continue;
		f = judge_find(j, SEVERITY_FAIL, "kernel", k->inst, k->rec, "kernel");
		if (!f)
			return;
		finding_set(f, f->expected, "no complaint of the kernel");
		finding_set(f, f->seen, "%s", text);
		finding_set(f, f->text, "kernel: %s", text);
	}
}

/* Before anything was asked of the device it can have done nothing wrong, however long a call took. */
static enum severity of_a_case(const struct judge *j)
{
	return j->never_set_up ? SEVERITY_ERROR : SEVERITY_FAIL;
}

static bool late_turn(const struct judge *j, const struct m_kept *k);

/* One that did not come to its end, as one of its calls did not. */
static enum severity of_a_process(const struct judge *j)
{
	for (size_t i = 0; i < j->m->kept.n; i++)
		if (!strcmp(j->m->kept.v[i].kind, "blocked") && late_turn(j, &j->m->kept.v[i]))
			return SEVERITY_INCONCLUSIVE;
	return of_a_case(j);
}

void verdict_check_residue(struct judge *j)
{
	for (size_t i = 0; i < j->m->kept.n; i++) {
		const struct m_kept *k = &j->m->kept.v[i];
		const char *what = json_str(k->r, "what");
		struct finding *f;
		char *before, *after;

		if (strcmp(k->kind, "residue") || json_bool(k->r, "ok", false))
			continue;
		before = json_dumps(json_object_get(k->r, "before"), JSON_COMPACT | JSON_ENCODE_ANY);
		after = json_dumps(json_object_get(k->r, "after"), JSON_COMPACT | JSON_ENCODE_ANY);
		f = judge_find(j, what && !strcmp(what, "process") ? of_a_process(j) : SEVERITY_FAIL, "residue", k->inst, k->rec,
			       what);
		if (f) {
			finding_set(f, f->expected, "%s as before the case: %s", what ? what : "things",
				    before ? before : "nothing");
			finding_set(f, f->seen, "%s", after ? after : "nothing");
			finding_set(f, f->text, "residue: %s: before %s, after %s", what ? what : "?", before ? before : "nothing",
				    after ? after : "nothing");
		}
		free(before);
		free(after);
	}
}

/* The last word about a CQ's events before rec was that they stay unacknowledged. */
static bool left_unacknowledged(const struct judge *j, const char *cq, size_t rec)
{
	bool left = false;

	for (size_t i = 0; i < j->m->insts.n; i++) {
		const struct m_inst *in = &j->m->insts.v[i];
		const char *of = json_str(in->plan, "cq");

		if (in->end_rec != M_NONE && in->end_rec < rec && !strcmp(judge_do(j, i), "poll") && of && !strcmp(of, cq) &&
		    json_object_get(in->plan, "ack"))
			left = !json_bool(in->plan, "ack", true);
	}
	return left;
}

/* A CQ or QP whose events are held back on purpose: its destroy may block. */
static bool block_expected(const struct judge *j, const char *obj, size_t rec)
{
	if (left_unacknowledged(j, obj, rec))
		return true;
	for (size_t i = 0; i < j->m->faults.n; i++) {
		const struct m_fault *f = &j->m->faults.v[i];
		const json_t *at;
		size_t k;

		if (strcmp(f->name, "events_unacknowledged") || !f->injected || f->rec > rec || (f->cleared && f->clear_rec < rec))
			continue;
		if (!json_array_size(f->at))
			return true;
		json_array_foreach(f->at, k, at) {
			struct m_event as_event = { .obj = obj, .event = "" };
			struct m_end end = m_end_of(j->m, json_string_value(at) ? json_string_value(at) : "");

			if (m_event_at(j->m, &as_event, &end))
				return true;
		}
	}
	return false;
}

/* The controller's own record of a request without an answer names no object: those of its step count. */
static bool block_was_meant(const struct judge *j, const struct m_kept *k)
{
	static const char *const keys[] = { "cq", "qp", "srq", "mr", "pd" };
	const json_t *step = j->m->insts.v[k->inst].plan, *name;
	const char *obj = json_str(k->r, "obj");
	bool meant = false;
	size_t i;

	if (obj)
		return block_expected(j, obj, k->rec);
	for (size_t n = 0; n < sizeof(keys) / sizeof(keys[0]); n++)
		json_array_foreach(json_object_get(step, keys[n]), i, name)
			meant |= json_is_string(name) && block_expected(j, json_string_value(name), k->rec);
	return meant;
}

/* An agent that answers late may have had its turn late. So may a call of the device that has not returned, though that is a record
 * of the agent's own, made when it had one. */
static bool late_turn(const struct judge *j, const struct m_kept *k)
{
	return (json_str(k->r, "obj") ? LATE_CALLS : LATE_ONES) * j->m->late_max_ns >= json_u64(k->r, "waited_ns", 0);
}

static bool blocked_in(const struct judge *j, size_t inst, bool *ret_expected)
{
	bool any = false;

	*ret_expected = true;
	for (size_t i = 0; i < j->m->kept.n; i++) {
		const struct m_kept *k = &j->m->kept.v[i];

		if (strcmp(k->kind, "blocked") || k->inst != inst)
			continue;
		any = true;
		*ret_expected &= block_was_meant(j, k) || late_turn(j, k);
	}
	return any;
}

static void timed_out(struct judge *j, size_t inst)
{
	const struct m_inst *in = &j->m->insts.v[inst];
	bool expected, blocked = blocked_in(j, inst, &expected);
	struct finding *f;
	char took[64];

	if (blocked && expected)
		return;
	f = judge_find(j, SEVERITY_FAIL, "hang", inst, in->end_rec, "");
	if (!f)
		return;
	units_format_ns(in->end_t - in->begin_t, took, sizeof(took));
	finding_set(f, f->expected, "%s to end", judge_do(j, inst));
	finding_set(f, f->seen, "no end after %s", took);
	finding_set(f, f->text, "%s did not end within %s%s%s", judge_do(j, inst), took, *in->text ? ": " : "", in->text);
}

static void answer_late(struct judge *j, const struct m_kept *k)
{
	const char *who = json_str(k->r, "text"), *verb = json_str(k->r, "verb"), *obj = json_str(k->r, "obj");
	char waited[64], late[64], call[160];

	snprintf(call, sizeof(call), "%s: %s did not return", obj ? obj : "", verb ? verb : "a call");
	judge_say(j, SEVERITY_INCONCLUSIVE, "late", k->inst, k->rec, "",
		  "%s for %s, and timers of this machine were up to %s late: it may not have had its turn",
		  obj   ? call
		  : who ? who
			: "an agent did not answer",
		  units_format_ns(json_u64(k->r, "waited_ns", 0), waited, sizeof(waited)),
		  units_format_ns(j->m->late_max_ns, late, sizeof(late)));
}

void verdict_check_hang(struct judge *j)
{
	for (size_t i = 0; i < j->m->kept.n; i++) {
		const struct m_kept *k = &j->m->kept.v[i];
		const char *obj = json_str(k->r, "obj"), *verb = json_str(k->r, "verb"), *who = json_str(k->r, "text");
		struct finding *f;
		char waited[64];

		if (strcmp(k->kind, "blocked") || block_was_meant(j, k))
			continue;
		if (!j->never_set_up && late_turn(j, k)) {
			answer_late(j, k);
			continue;
		}
		f = judge_find(j, of_a_case(j), "hang", k->inst, k->rec, obj);
		if (!f)
			return;
		units_format_ns(json_u64(k->r, "waited_ns", 0), waited, sizeof(waited));
		finding_set(f, f->expected, "%s to return", verb ? verb : "a call");
		finding_set(f, f->seen, "blocked for %s", waited);
		finding_set(f, f->text, "%s: %s blocked for %s and had not returned",
			    obj   ? obj
			    : who ? who
				  : "harness",
			    verb ? verb : "a call", waited);
	}
	for (size_t i = 0; i < j->m->insts.n; i++)
		if (!strcmp(j->m->insts.v[i].outcome, "timeout") && strcmp(judge_do(j, i), "expect"))
			timed_out(j, i);
}

static bool death_was_meant(const struct judge *j, const char *agent, size_t rec)
{
	for (size_t i = 0; i < j->m->faults.n; i++) {
		const struct m_fault *f = &j->m->faults.v[i];
		const json_t *step = j->m->insts.v[f->inst].plan;
		const char *meant = json_str(json_object_get(step, "args"), "agent");

		if (!m_fault_is_of_process(f, NULL) || j->m->insts.v[f->inst].begin_rec > rec)
			continue;
		if ((meant && !strcmp(meant, agent)) || json_array_has(f->at, agent))
			return true;
	}
	return false;
}

/* What the kernel said when it died: from its complaint on, or else the last lines. */
static void console_tail(const struct judge *j, char *buf, size_t size)
{
	size_t len = 0, from = M_NONE, last[CONSOLE_LINES] = { 0 }, n = 0, shown = 0;

	*buf = 0;
	for (size_t i = 0; i < j->m->kept.n; i++) {
		const char *text = json_str(j->m->kept.v[i].r, "text");

		if (strcmp(j->m->kept.v[i].kind, "klog"))
			continue;
		last[n++ % CONSOLE_LINES] = i;
		if (from == M_NONE && kernel_complains(text))
			from = i;
	}
	if (!n)
		return;
	if (from == M_NONE)
		from = n < CONSOLE_LINES ? last[0] : last[n % CONSOLE_LINES];
	for (size_t i = from; i < j->m->kept.n && len < size && shown < CONSOLE_LINES; i++) {
		const char *text = json_str(j->m->kept.v[i].r, "text");

		if (strcmp(j->m->kept.v[i].kind, "klog") || !text)
			continue;
		len += (size_t)snprintf(buf + len, size - len, "%s%s", len ? " / " : "", text);
		shown++;
	}
}

const struct m_fault *verdict_loss_is_planned(const struct judge *j, const struct m_kept *k)
{
	const char *what = json_str(k->r, "what"), *port = json_str(k->r, "port"), *by = json_str(k->r, "by");

	if (!what || strcmp(what, "frames") || !port || !by || strcmp(by, "device"))
		return NULL;
	/* They are missed a while after they went astray. */
	uint64_t told = json_u64(k->r, "t", 0), since = json_u64(k->r, "since", told);

	return m_link_fault_on(j->m, port, k->rec, since < told ? k->t - (told - since) : k->t);
}

/* What the wire lost is an unplanned fault, except where the device itself has been told to lose; what only its own records lost
 * leaves gaps in what is known. */
static void lost_by_wire(struct judge *j, const struct m_kept *k, const char *what)
{
	bool harmless = !strcmp(what, "captures") || !strcmp(what, "checksums");
	const char *why = json_str(k->r, "why"), *port = json_str(k->r, "port");
	const struct m_fault *planned = verdict_loss_is_planned(j, k);

	if (planned) {
		judge_say(j, SEVERITY_NOTE, "harness", k->inst, k->rec, "",
			  "%lld frames were lost at port %s, where %s (%s) was active", (long long)json_int(k->r, "count", 1), port,
			  planned->as, planned->name);
		return;
	}
	judge_say(j, harmless ? SEVERITY_WARNING : SEVERITY_INCONCLUSIVE, "harness", k->inst, k->rec, "",
		  "the wire%s%s lost %lld %s: %s", port ? " at port " : "", port ? port : "", (long long)json_int(k->r, "count", 1),
		  what, why ? why : "no reason given");
}

static bool kernel_said_why(const struct judge *j)
{
	for (size_t i = 0; i < j->m->kept.n; i++)
		if (!strcmp(j->m->kept.v[i].kind, "klog") && kernel_complains(json_str(j->m->kept.v[i].r, "text")))
			return true;
	return false;
}

/* Of a case that fell silent the kernel's log tells whether the device is to blame; a machine without a turn leaves no word there.
 */
static void lane_lost(struct judge *j, const struct m_kept *k, const char *text)
{
	bool told = kernel_said_why(j);
	char tail[500];

	console_tail(j, tail, sizeof(tail));
	judge_say(j, told ? SEVERITY_FAIL : SEVERITY_ERROR, told ? "hang" : "harness", k->inst, k->rec, "",
		  "the case did not come to its end: %s%s; its console ended with: %s", text,
		  told ? "" : ", and the kernel does not say why", *tail ? tail : "nothing");
}

static void lost(struct judge *j, const struct m_kept *k)
{
	const char *what = json_str(k->r, "what"), *text = json_str(k->r, "text"), *src = json_str(k->r, "src");
	char tail[700];

	if (!what)
		return;
	if (src && !strcmp(src, "wire")) {
		lost_by_wire(j, k, what);
	} else if (!strcmp(what, "wire")) {
		j->wire_gone = true;
		judge_say(j, SEVERITY_ERROR, "harness", k->inst, k->rec, "", "%s", text ? text : "the wire is gone");
	} else if (!strncmp(what, "guest", 5) || !strcmp(what, "kernel")) {
		j->crashed = true;
		console_tail(j, tail, sizeof(tail));
		judge_say(j, SEVERITY_FAIL, "kernel", k->inst, k->rec, "kernel",
			  "the guest died while this case ran%s%s; its console ended with: %s", text ? ": " : "", text ? text : "",
			  *tail ? tail : "nothing");
	} else if (!strcmp(what, "lane")) {
		j->crashed = true;
		lane_lost(j, k, text ? text : "?");
	} else if (!strncmp(what, "agent/", 6)) {
		if (!death_was_meant(j, what + 6, k->rec))
			judge_say(j, SEVERITY_FAIL, "hang", k->inst, k->rec, what + 6,
				  "agent %s is gone and no fault explains it%s%s", what + 6, text ? ": " : "", text ? text : "");
	} else {
		judge_say(j, SEVERITY_ERROR, "harness", k->inst, k->rec, "", "%lld of %s lost%s%s",
			  (long long)json_int(k->r, "count", 1), what, text ? ": " : "", text ? text : "");
	}
}

/* The wire's last account has to say that nothing was lost, or a record what was. */
static void account_of_wire(struct judge *j)
{
	const struct m_kept *open = NULL;
	bool told = false;

	for (size_t i = 0; i < j->m->kept.n; i++) {
		const struct m_kept *k = &j->m->kept.v[i];
		const char *src = json_str(k->r, "src");

		told |= !strcmp(k->kind, "lost") && src && !strcmp(src, "wire");
		if (!strcmp(k->kind, "wire_stats") && !json_bool(k->r, "complete", true))
			open = k;
	}
	if (open && !told)
		judge_say(j, SEVERITY_INCONCLUSIVE, "harness", open->inst, open->rec, "",
			  "the wire's account is not complete, and no record says what it lost");
}

void verdict_check_lost(struct judge *j)
{
	for (size_t i = 0; i < j->m->kept.n; i++)
		if (!strcmp(j->m->kept.v[i].kind, "lost"))
			lost(j, &j->m->kept.v[i]);
	account_of_wire(j);
}

/* A lab or an agent that could not be had: nothing of the case was tried. */
static bool setup_failed(struct judge *j)
{
	for (size_t i = 0; i < j->m->insts.n; i++) {
		const struct m_inst *in = &j->m->insts.v[i];

		if (in->step != 0 || (strcmp(in->outcome, "error") && strcmp(in->outcome, "timeout")))
			continue;
		j->cut = j->never_set_up = true;
		judge_say(j, SEVERITY_ERROR, "harness", i, in->end_rec, "", "the case could not be set up: %s",
			  *in->text ? in->text : in->outcome);
		return true;
	}
	return false;
}

void verdict_check_complete(struct judge *j)
{
	size_t last = j->m->n_recs ? j->m->n_recs - 1 : 0, i;
	const json_t *step;

	if (j->crashed)
		return;
	j->cut = j->torn;
	if (j->m->odd)
		judge_say(j, SEVERITY_ERROR, "harness", j->m->inst, last, "",
			  "%u records contradict themselves: they were not used", j->m->odd);
	if (j->m->hole_n)
		judge_say(j, SEVERITY_ERROR, "harness", j->m->inst, last, "",
			  "observations.jsonl does not go on to record %lld: records are missing, or there twice",
			  (long long)j->m->hole_n);
	if (j->torn)
		judge_say(j, SEVERITY_ERROR, "harness", j->m->inst, last, "",
			  "observations.jsonl ends in the middle of a line: the controller was cut off");
	if (setup_failed(j))
		return;
	json_array_foreach(json_object_get(j->plan, "steps"), i, step) {
		int n = (int)json_int(step, "n", 0);
		size_t inst = m_inst_latest(j->m, n);

		if (inst != M_NONE && j->m->insts.v[inst].end_rec != M_NONE)
			continue;
		j->cut = true;
		judge_say(j, SEVERITY_ERROR, "harness", inst == M_NONE ? j->m->inst : inst, last, "",
			  "the record stops before step %d (%s, line %d) has %s: the controller did not reach the end", n,
			  json_str(step, "do") ? json_str(step, "do") : "?", (int)json_int(step, "line", 0),
			  inst == M_NONE ? "begun" : "ended");
		return;
	}
	if (j->torn || (j->m->ended && !j->m->has_no_end))
		return;
	j->cut = true;
	judge_say(j, SEVERITY_ERROR, "harness", j->m->inst, last, "", "the record has no end: %s",
		  j->m->ended ? "what comes after the last step is not all there" : "nothing was written after the last step");
}

/* What does not rest on something that may be among the records that are missing. */
static bool stands_alone(const struct judge *j, const char *check)
{
	static const struct {
		const char *check;
		bool in_a_hole; /* also when records are missing before it */
	} rows[] = {
		{ "kernel", true },  { "harness", true },  { "hang", false },    { "residue", false }, { "payload", false },
		{ "expect", false }, { "traffic", false }, { "recover", false }, { "phase", false },   { "resources", false }
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (!strcmp(rows[i].check, check))
			return rows[i].in_a_hole || !(j->m->hole_n || j->m->odd);
	return false;
}

void verdict_excuse_incomplete(struct judge *j)
{
	if (j->crashed || !(j->cut || j->m->hole_n || j->m->odd))
		return;
	for (size_t i = 0; i < j->findings.n; i++) {
		struct finding *f = &j->findings.v[i];

		if ((f->severity == SEVERITY_FAIL || f->severity == SEVERITY_DEVIATION) && !stands_alone(j, f->check))
			f->severity = SEVERITY_WARNING;
	}
}
