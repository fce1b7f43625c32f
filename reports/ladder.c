/* SPDX-License-Identifier: MIT */
#include "ladder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/plan.h"
#include "../harness/verdict.h"
#include "report_util.h"

struct maker {
	struct ladder *l;
	const json_t *plan, *actions; /* rule -> what it did */
	json_t *states;               /* QP -> the state that it was last seen in; "payload of x" -> what was last told of it */
	size_t cap, cap_bands;
	bool failed;
};

void ladder_row_release(struct ladder_row *r)
{
	free(r->text);
	free(r->mark);
}

static struct ladder_row *add(struct maker *m, const json_t *record, size_t rec, enum ladder_kind kind)
{
	struct ladder *l = m->l;
	struct ladder_row *r;

	if (l->n == m->cap) {
		size_t cap = m->cap ? 2 * m->cap : 64;
		struct ladder_row *rows = realloc(l->rows, cap * sizeof(*rows));

		if (!rows) {
			m->failed = true;
			return NULL;
		}
		l->rows = rows;
		m->cap = cap;
	}
	r = &l->rows[l->n++];
	*r = (struct ladder_row){ .kind = kind,
				  .record = record,
				  .rec = rec,
				  .t = json_u64(record, "t", 0),
				  .step = (int)json_int(record, "step", 0),
				  .count = 1 };
	r->t_last = json_u64(record, "t_last", r->t);
	return r;
}

__attribute__((format(printf, 3, 4))) static void say(struct maker *m, char **field, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (vasprintf(field, fmt, args) < 0) {
		*field = NULL;
		m->failed = true;
	}
	va_end(args);
}

/* The right side is the device of the second agent of the plan's first pair, and whoever shares it. */
static bool is_right(const struct maker *m, const char *agent)
{
	const json_t *agents = json_object_get(m->plan, "agents"), *own = json_object_get(agents, agent),
		     *left = json_object_get(agents, m->l->left);

	if (!own)
		return !strcmp(agent, m->l->right);
	return strcmp(report_str(own, "device"), report_str(left, "device")) != 0;
}

static const char *agent_of(const json_t *record)
{
	const char *src = report_str(record, "src");

	return strncmp(src, "agent/", 6) ? "" : src + 6;
}

static void name_sides(struct ladder *l, const json_t *plan)
{
	const json_t *qps = json_object_get(plan, "qps"), *first = json_array_get(qps, 0), *peer;
	const char *name;
	json_t *agent;
	size_t n = 0;

	peer = plan_qp(plan, report_str(first, "peer"));
	snprintf(l->left, sizeof(l->left), "%s", report_str(first, "agent"));
	snprintf(l->right, sizeof(l->right), "%s", report_str(peer, "agent"));
	json_object_foreach(json_object_get(plan, "agents"), name, agent) {
		char *side = n++ ? l->right : l->left;

		if (!*side)
			snprintf(side, sizeof(l->left), "%s", name);
	}
}

static struct ladder_row *add_words(struct maker *m, const json_t *record, size_t rec, enum ladder_kind kind)
{
	struct ladder_row *r = add(m, record, rec, kind);
	const char *obj = report_str(record, "obj");
	char words[512];

	if (!r)
		return NULL;
	r->right = is_right(m, agent_of(record));
	verdict_words(record, words, sizeof(words));
	if (kind == LADDER_END && *obj)
		say(m, &r->text, "%s: %s", obj, words);
	else
		say(m, &r->text, "%s", words);
	return r;
}

static void on_step(struct maker *m, const json_t *record, size_t rec)
{
	const char *phase = report_str(record, "phase"), *outcome = report_str(record, "outcome"),
		   *iter = report_str(record, "iter");
	struct ladder_row *r;

	if (!strcmp(phase, "begin")) {
		r = add(m, record, rec, LADDER_STEP);
		if (r)
			say(m, &r->text, "step %d%s%s: %s, line %lld", r->step, *iter ? ", round " : "", iter,
			    report_str(record, "do"), (long long)json_int(record, "line", 0));
	} else if (*outcome && strcmp(outcome, "done") && strcmp(outcome, "met")) {
		r = add_words(m, record, rec, LADDER_LINK);
		if (r)
			r->tone = LADDER_BAD;
	}
}

static void on_wc(struct maker *m, const json_t *record, size_t rec)
{
	bool success = !strcmp(report_str(record, "status"), "SUCCESS");
	struct ladder_row *r;

	/* What a traffic did well is told by its own record. */
	if (success && json_str(record, "traffic"))
		return;
	r = add_words(m, record, rec, LADDER_END);
	if (r)
		r->tone = success ? LADDER_PLAIN : LADDER_BAD;
}

static void on_post(struct maker *m, const json_t *record, size_t rec)
{
	struct ladder_row *r;
	bool refused = json_int(record, "errno", 0) != 0;

	if (!refused && (json_str(record, "traffic") || !strcmp(report_str(record, "op"), "RECV")) &&
	    strcmp(report_str(record, "by"), "step"))
		return;
	r = add_words(m, record, rec, LADDER_END);
	if (r && refused)
		r->tone = LADDER_BAD;
}

static void on_state(struct maker *m, const json_t *record, size_t rec)
{
	const char *obj = report_str(record, "obj"), *now = report_str(record, "new"), *asked = report_str(record, "asked");
	const char *was = report_str(m->states, obj);
	bool refused = json_int(record, "errno", 0) != 0;
	struct ladder_row *r;
	char *longer;

	if (!refused && !strcmp(was, now))
		return;
	if (*now)
		json_object_set_new(m->states, obj, json_string(now));
	/* A walk through the states is one row. */
	for (size_t i = m->l->n; i-- > 0 && i + 8 > m->l->n && *asked && !refused;) {
		struct ladder_row *last = &m->l->rows[i];

		if (last->step != (int)json_int(record, "step", 0) || last->kind == LADDER_STEP)
			break;
		if (strcmp(report_str(last->record, "kind"), "state") || strcmp(report_str(last->record, "obj"), obj) ||
		    last->tone == LADDER_BAD || !json_str(last->record, "asked") || strcmp(asked, now))
			continue;
		say(m, &longer, "%s \xe2\x86\x92 %s", last->text, now);
		free(last->text);
		last->text = longer;
		return;
	}
	r = add(m, record, rec, LADDER_END);
	if (!r)
		return;
	r->right = is_right(m, agent_of(record));
	if (refused || (*asked && strcmp(asked, now))) {
		char words[512];

		say(m, &r->text, "%s: %s", obj, verdict_words(record, words, sizeof(words)));
		r->tone = LADDER_BAD;
	} else if (*asked) {
		say(m, &r->text, "%s: %s \xe2\x86\x92 %s", obj, report_str(record, "old"), now);
	} else {
		say(m, &r->text, "%s: is in %s", obj, now);
		r->tone = !strcmp(now, "ERR") || !strcmp(now, "SQE") ? LADDER_BAD : LADDER_PLAIN;
	}
}

static void band_begin(struct maker *m, bool recovery, uint64_t t, const char *what, const char *name)
{
	struct ladder *l = m->l;
	struct ladder_band *bands = realloc(l->bands, (l->n_bands + 1) * sizeof(*bands));

	if (!bands) {
		m->failed = true;
		return;
	}
	l->bands = bands;
	bands[l->n_bands] = (struct ladder_band){ .recovery = recovery, .open = true, .begin = t, .end = UINT64_MAX };
	say(m, &bands[l->n_bands].text, "%s%s%s", what, *name ? " " : "", name);
	l->n_bands++;
}

/* Ends those that say this; the newest of them alone where several are open. */
static void band_end(struct ladder *l, bool recovery, uint64_t t, const char *what, const char *name)
{
	char text[512];

	snprintf(text, sizeof(text), "%s%s%s", what, *name ? " " : "", name);
	for (size_t i = l->n_bands; i-- > 0;) {
		struct ladder_band *b = &l->bands[i];

		if (!b->open || b->recovery != recovery || !b->text || strcmp(b->text, text))
			continue;
		b->open = false;
		b->end = t;
		return;
	}
}

static void on_fault(struct maker *m, const json_t *record, size_t rec)
{
	const char *phase = report_str(record, "phase"), *name = report_str(record, "name"), *as = report_str(record, "as");
	struct ladder_row *r;

	if (!strcmp(phase, "inject"))
		band_begin(m, false, json_u64(record, "t", 0), name, as);
	else if (!strcmp(phase, "clear"))
		band_end(m->l, false, json_u64(record, "t", 0), name, as);
	r = add(m, record, rec, LADDER_LINK);
	if (!r)
		return;
	if (!strcmp(phase, "not_fired"))
		r->tone = LADDER_BAD;
	say(m, &r->text, "fault %s (%s): %s", as, name,
	    !strcmp(phase, "inject")  ? "injected"
	    : !strcmp(phase, "clear") ? "cleared"
	    : !strcmp(phase, "fired") ? "fired"
				      : "did not fire");
}

static void on_recover(struct maker *m, const json_t *record, size_t rec)
{
	const char *phase = report_str(record, "phase"), *pair = report_str(record, "pair");
	struct ladder_row *r = add_words(m, record, rec, LADDER_LINK);
	char what[128];

	snprintf(what, sizeof(what), "recovery by %s, attempt %lld, of", report_str(record, "path"),
		 (long long)json_int(record, "attempt", 1));
	if (!strcmp(phase, "begin"))
		band_begin(m, true, json_u64(record, "t", 0), what, pair);
	else if (!strcmp(phase, "verified") || !strcmp(phase, "failed"))
		band_end(m->l, true, json_u64(record, "t", 0), what, pair);
	if (r)
		r->tone = !strcmp(phase, "failed") ? LADDER_BAD : LADDER_QUIET;
}

static void on_traffic(struct maker *m, const json_t *record, size_t rec)
{
	struct ladder_row *r;

	if (!strcmp(report_str(record, "phase"), "start"))
		return;
	r = add_words(m, record, rec, LADDER_END);
	if (r)
		r->tone = json_int(record, "errors", 0) || json_int(record, "bad_payload", 0) ? LADDER_BAD : LADDER_PLAIN;
}

/* It is looked at again and again while an expectation waits: told when it is another than before. */
static void on_payload(struct maker *m, const json_t *record, size_t rec)
{
	static const char *const ways[] = { "intact", "absent", "partial", "stale" };
	const char *as = report_str(record, "as"), *sep = "";
	char text[160] = "", key[160];
	struct ladder_row *r;

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (json_int(record, ways[i], 0)) {
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%lld %s", sep,
				 (long long)json_int(record, ways[i], 0), ways[i]);
			sep = ", ";
		}
	snprintf(key, sizeof(key), "payload of %s", as);
	if (!strcmp(report_str(m->states, key), text))
		return;
	json_object_set_new(m->states, key, json_string(text));
	r = add(m, record, rec, LADDER_END);
	if (!r)
		return;
	r->right = is_right(m, report_str(plan_qp(m->plan, report_str(record, "at")), "agent"));
	r->tone = LADDER_QUIET;
	say(m, &r->text, "payload of %s: %s", as, *text ? text : report_str(record, "unreachable"));
}

static void on_end(struct maker *m, const json_t *record, size_t rec)
{
	add_words(m, record, rec, LADDER_END);
}

static void on_bad(struct maker *m, const json_t *record, size_t rec)
{
	struct ladder_row *r = add_words(m, record, rec, LADDER_LINK);

	if (r)
		r->tone = LADDER_BAD;
}

/* What happened to a packet, in the words of the rule's action. */
static const struct {
	const char *action, *done;
} deeds[] = {
	{ "drop", "dropped" },      { "hold", "held" },         { "delay", "delayed" },       { "duplicate", "duplicated" },
	{ "reorder", "held back" }, { "corrupt", "corrupted" }, { "truncate", "truncated" },  { "rewrite", "rewritten" },
	{ "replay", "replayed" },   { "forge", "forged" },      { "blackhole", "swallowed" },
};

static const char *deed(const struct maker *m, const char *rule, const char *fate, bool late)
{
	const char *action = report_str(m->actions, rule);

	if (late && !strcmp(fate, "released"))
		return "goes on, held";
	if (late && !strcmp(fate, "changed"))
		return "as changed";
	for (size_t i = 0; i < sizeof(deeds) / sizeof(*deeds); i++)
		if (!strcmp(deeds[i].action, action))
			return deeds[i].done;
	return fate;
}

static void mark_packet(struct maker *m, struct ladder_row *r, const char *fate)
{
	const json_t *rules = json_object_get(r->record, "rules"), *rule;
	char text[256] = "";
	size_t i;

	json_array_foreach(rules, i, rule) {
		const char *name = json_string_value(rule) ? json_string_value(rule) : "?";

		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s by %s", i ? ", " : "",
			 deed(m, name, fate, !r->arrival), name);
	}
	if (!*text && strcmp(fate, "passed"))
		snprintf(text, sizeof(text), "%s", fate);
	if (!strcmp(report_str(r->record, "icrc"), "bad"))
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%sICRC bad", *text ? ", " : "");
	if (*text)
		say(m, &r->mark, "%s", text);
}

static void text_packet(struct maker *m, struct ladder_row *r)
{
	const char *opcode = report_str(r->record, "opcode"), *class = report_str(r->record, "class");
	long long psn = json_int(r->record, "psn", 0), again = json_int(r->record, "transmission", 1);
	char times[96] = "", which[64] = "", number[32];

	if (!*opcode && json_is_integer(json_object_get(r->record, "opcode"))) {
		snprintf(number, sizeof(number), "opcode 0x%02llx", (unsigned long long)json_int(r->record, "opcode", 0));
		opcode = number;
	}
	if (!strncmp(opcode, "RC_", 3))
		opcode += 3;
	if (!*opcode || !strcmp(class, "nak") || !strcmp(class, "rnr_nak") || !strcmp(class, "ack"))
		opcode = class;
	if (json_object_get(r->record, "psn") && r->count > 1)
		snprintf(which, sizeof(which), " PSN %lld..%lld", psn, psn + r->count - 1);
	else if (json_object_get(r->record, "psn"))
		snprintf(which, sizeof(which), " PSN %lld", psn);
	if (!strcmp(class, "nak"))
		snprintf(times, sizeof(times), " syndrome 0x%02llx", (unsigned long long)json_int(r->record, "syndrome", 0));
	if (r->count > 1)
		snprintf(times + strlen(times), sizeof(times) - strlen(times), " \xc3\x97 %u", r->count);
	if (again > 1)
		snprintf(times + strlen(times), sizeof(times) - strlen(times), ", transmission %lld", again);
	say(m, &r->text, "%s%s%s", opcode, which, times);
}

static void on_packet(struct maker *m, const json_t *record, size_t rec)
{
	const char *fate = report_str(record, "fate"), *class = report_str(record, "class"), *from = report_str(record, "from");
	struct ladder_row *r = add(m, record, rec, LADDER_PACKET);
	bool goes_on, touched;

	if (!r)
		return;
	m->l->wire = true;
	r->count = (unsigned)json_int(record, "count", 1);
	r->arrival = !json_bool(record, "late", false);
	/* `from` is an agent, or the port that stands for one. */
	r->right = is_right(m, from);
	touched = json_array_size(json_object_get(record, "rules")) > 0;
	goes_on = strcmp(fate, "eaten") && strcmp(fate, "kept");
	r->lost = !strcmp(fate, "eaten");
	if (!r->arrival)
		r->reach = goes_on ? LADDER_FROM_WIRE : LADDER_AT_WIRE;
	else
		/* What was changed leaves as a packet of its own. */
		r->reach = !goes_on || !strcmp(fate, "changed") ? LADDER_TO_WIRE : LADDER_WHOLE;
	if (!strcmp(class, "nak") || !strcmp(class, "rnr_nak") || r->lost)
		r->tone = LADDER_BAD;
	else if (touched || !strcmp(report_str(record, "icrc"), "bad"))
		r->tone = LADDER_TOUCHED;
	text_packet(m, r);
	mark_packet(m, r, fate);
	if (r->arrival) {
		m->l->packets[r->right] += r->count;
		m->l->lost[r->right] += r->lost ? r->count : 0;
		m->l->touched[r->right] += touched ? r->count : 0;
	}
}

static const struct {
	const char *kind;
	void (*on)(struct maker *m, const json_t *record, size_t rec);
} kinds[] = {
	{ "step", on_step },   { "wc", on_wc },           { "post", on_post },       { "state", on_state },
	{ "fault", on_fault }, { "recover", on_recover }, { "traffic", on_traffic }, { "payload", on_payload },
	{ "event", on_end },   { "cm", on_end },          { "blocked", on_bad },     { "lost", on_bad },
	{ "klog", on_bad },    { "packet", on_packet },
};

static int by_time(const void *a, const void *b)
{
	const struct ladder_row *x = a, *y = b;

	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	return x->rec < y->rec ? -1 : x->rec > y->rec;
}

/* What each rule of the wire does: its fault's step says, and so does the proof. */
static json_t *actions_of(const json_t *records)
{
	json_t *actions = json_object();
	const json_t *record;
	size_t i;

	json_array_foreach(records, i, record) {
		const json_t *evidence = json_object_get(record, "evidence");

		if (!strcmp(report_str(record, "kind"), "fault") && json_str(evidence, "action"))
			json_object_set_new(actions, report_str(record, "as"), json_string(json_str(evidence, "action")));
	}
	return actions;
}

static bool is_of_bystander(const json_t *record)
{
	return plan_is_bystander(json_str(record, "src")) || plan_is_bystander(json_str(record, "obj")) ||
	       plan_is_bystander(json_str(record, "pair"));
}

int ladder_make(const json_t *plan, const json_t *records, size_t rows_max, struct ladder *ret)
{
	struct ladder l = { 0 };
	struct maker m = { .l = &l, .plan = plan, .states = json_object() };
	const char *clk = NULL;
	const json_t *record;
	json_t *actions = actions_of(records);
	size_t i, k;

	m.actions = actions;
	name_sides(&l, plan);
	json_array_foreach(records, i, record) {
		const char *kind = report_str(record, "kind");

		if (!l.first_t)
			l.first_t = json_u64(record, "t", 0);
		if (json_str(record, "clk") && clk && strcmp(clk, json_str(record, "clk")))
			l.several_clks = true;
		clk = json_str(record, "clk") ? json_str(record, "clk") : clk;
		for (k = 0; k < sizeof(kinds) / sizeof(*kinds) && !is_of_bystander(record); k++)
			if (!strcmp(kinds[k].kind, kind))
				kinds[k].on(&m, record, i);
	}
	json_decref(actions);
	json_decref(m.states);
	if (m.failed) {
		ladder_release(&l);
		return -ENOMEM;
	}
	if (!l.several_clks && l.n)
		qsort(l.rows, l.n, sizeof(*l.rows), by_time);
	ladder_fold(&l, rows_max);
	*ret = l;
	return 0;
}

void ladder_release(struct ladder *l)
{
	for (size_t i = 0; i < l->n; i++)
		ladder_row_release(&l->rows[i]);
	for (size_t i = 0; i < l->n_bands; i++)
		free(l->bands[i].text);
	free(l->rows);
	free(l->bands);
	*l = (struct ladder){ 0 };
}
