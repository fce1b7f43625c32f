/* SPDX-License-Identifier: MIT */
/* Records as people read them: one line each, and the whole case in half a line. */
#include "verdict_internal.h"

#include <stdarg.h>
#include <stdio.h>

#include "json.h"
#include "names.h"
#include "units.h"

#define LINES_MAX 64

struct line_buf {
	char *b;
	size_t size, len;
};

__attribute__((format(printf, 2, 3))) static void put(struct line_buf *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (l->len + 1 >= l->size)
		return;
	va_start(ap, fmt);
	n = vsnprintf(l->b + l->len, l->size - l->len, fmt, ap);
	va_end(ap);
	l->len += n > 0 ? (size_t)n : 0;
	if (l->len >= l->size)
		l->len = l->size - 1;
}

static const char *str(const json_t *r, const char *key)
{
	const char *s = json_str(r, key);

	return s ? s : "?";
}

static void put_errno(struct line_buf *l, const json_t *r)
{
	int err = (int)json_int(r, "errno", 0);

	if (err)
		put(l, " -> %s", name_of(&names_errno, err));
}

static void line_wc(struct line_buf *l, const json_t *r)
{
	put(l, "%s", str(r, "status"));
	if (json_int(r, "count", 1) > 1)
		put(l, " x %lld", (long long)json_int(r, "count", 1));
	put(l, " (request %u)", wrid_decode(json_u64(r, "first", 0)).seq);
}

static void line_post(struct line_buf *l, const json_t *r)
{
	put(l, "post %s x %lld", str(r, "op"), (long long)json_int(r, "count", 1));
	if (json_str(r, "as"))
		put(l, " as %s", str(r, "as"));
	put(l, ", %lld accepted", (long long)json_int(r, "accepted", 0));
	put_errno(l, r);
}

static void line_state(struct line_buf *l, const json_t *r)
{
	if (json_str(r, "asked"))
		put(l, "asked into %s: %s -> %s", str(r, "asked"), str(r, "old"), str(r, "new"));
	else
		put(l, "is in %s", json_str(r, "new") ? str(r, "new") : str(json_object_get(r, "queried"), "state"));
	put_errno(l, r);
}

static void line_event(struct line_buf *l, const json_t *r)
{
	put(l, "event %s", str(r, "event"));
}

/* `hits 3, packets 2 4 6, refused (class 12, psn 3)`: what is 0, false or empty is left out. */
static void put_value(struct line_buf *l, const json_t *v)
{
	const char *key, *sep = "";
	const json_t *member;
	size_t i;

	if (json_is_string(v))
		put(l, "%s", json_string_value(v));
	else if (json_is_integer(v))
		put(l, "%lld", (long long)json_integer_value(v));
	else if (json_is_true(v))
		put(l, "yes");
	json_array_foreach(v, i, member) {
		put(l, "%s", i ? " " : "");
		put_value(l, member);
	}
	json_object_foreach((json_t *)v, key, member) {
		if (!strcmp(key, "as") || json_is_false(member) || json_is_null(member) ||
		    (json_is_integer(member) && !json_integer_value(member)) ||
		    ((json_is_array(member) || json_is_object(member)) && !json_object_size(member) && !json_array_size(member)))
			continue;
		put(l, json_is_object(member) ? "%s%s (" : "%s%s ", sep, key);
		put_value(l, member);
		put(l, "%s", json_is_object(member) ? ")" : "");
		sep = ", ";
	}
}

char *evidence_text(const json_t *evidence, char *buf, size_t size)
{
	struct line_buf l = { buf, size, 0 };

	*buf = 0;
	put_value(&l, evidence);
	return buf;
}

static void line_fault(struct line_buf *l, const json_t *r)
{
	const json_t *evidence = json_object_get(r, "evidence");

	put(l, "fault %s (%s) %s", str(r, "as"), str(r, "name"), str(r, "phase"));
	if (!json_object_size(evidence))
		return;
	put(l, ": ");
	put_value(l, evidence);
}

static void line_payload(struct line_buf *l, const json_t *r)
{
	put(l, "payload of %s at %s: %lld intact, %lld absent, %lld partial, %lld stale of %lld", str(r, "as"), str(r, "at"),
	    (long long)json_int(r, "intact", 0), (long long)json_int(r, "absent", 0), (long long)json_int(r, "partial", 0),
	    (long long)json_int(r, "stale", 0), (long long)json_int(r, "total", 0));
}

static void line_verb(struct line_buf *l, const json_t *r)
{
	put(l, "%s", str(r, "verb"));
	put_errno(l, r);
}

static void line_step(struct line_buf *l, const json_t *r)
{
	put(l, "step %lld (%s) %s%s%s", (long long)json_int(r, "step", 0), str(r, "do"), str(r, "phase"),
	    json_str(r, "outcome") ? ": " : "", json_str(r, "outcome") ? str(r, "outcome") : "");
	if (json_str(r, "text"))
		put(l, ", %s", str(r, "text"));
}

static void line_recover(struct line_buf *l, const json_t *r)
{
	put(l, "recover %s by %s, attempt %lld: %s", str(r, "pair"), str(r, "path"), (long long)json_int(r, "attempt", 1),
	    str(r, "phase"));
	if (json_str(r, "text"))
		put(l, ", %s", str(r, "text"));
}

static void line_traffic(struct line_buf *l, const json_t *r)
{
	put(l, "traffic %s %s: %lld of %lld done, %lld errors, %lld bad", str(r, "as"), str(r, "phase"),
	    (long long)json_int(r, "done", 0), (long long)json_int(r, "sent", 0), (long long)json_int(r, "errors", 0),
	    (long long)json_int(r, "bad_payload", 0));
}

static void line_klog(struct line_buf *l, const json_t *r)
{
	put(l, "%s", str(r, "text"));
}

static void line_blocked(struct line_buf *l, const json_t *r)
{
	char waited[64];

	put(l, "%s blocked for %s", str(r, "verb"), units_format_ns(json_u64(r, "waited_ns", 0), waited, sizeof(waited)));
}

static void line_lost(struct line_buf *l, const json_t *r)
{
	put(l, "lost: %s", str(r, "what"));
}

static void line_dump(struct line_buf *l, const json_t *r)
{
	put(l, "dump: %s", str(r, "why"));
}

/* `from` stands in front of it already. */
static void line_packet(struct line_buf *l, const json_t *r)
{
	const json_t *rules = json_object_get(r, "rules"), *rule;
	const char *fate = str(r, "fate");
	int64_t count = json_int(r, "count", 1), psn = json_int(r, "psn", 0), again = json_int(r, "transmission", 1);
	size_t i;

	if (json_str(r, "opcode") || !json_object_get(r, "opcode"))
		put(l, "%s", json_str(r, "opcode") ? str(r, "opcode") : str(r, "class"));
	else
		put(l, "opcode 0x%02llx", (unsigned long long)json_int(r, "opcode", 0));
	if (json_object_get(r, "psn"))
		put(l, count > 1 ? " PSN %lld..%lld" : " PSN %lld", (long long)psn, (long long)(psn + count - 1));
	if (json_object_get(r, "syndrome"))
		put(l, " syndrome 0x%02llx", (unsigned long long)json_int(r, "syndrome", 0));
	if (again > 1)
		put(l, ", transmission %lld", (long long)again);
	if (json_str(r, "icrc"))
		put(l, ", ICRC %s", str(r, "icrc"));
	if (strcmp(fate, "passed"))
		put(l, ", %s%s", fate, json_bool(r, "late", false) && !strcmp(fate, "changed") ? " to this" : "");
	json_array_foreach(rules, i, rule)
		put(l, "%s%s", i ? ", " : " by ", json_string_value(rule) ? json_string_value(rule) : "?");
	if (json_object_get(r, "packet"))
		put(l, " (packet %lld)", (long long)json_int(r, "packet", 0));
}

static const struct {
	const char *kind;
	void (*line)(struct line_buf *l, const json_t *r);
} lines[] = {
	{ "wc", line_wc },           { "post", line_post },       { "state", line_state },     { "event", line_event },
	{ "cm", line_event },        { "fault", line_fault },     { "verb", line_verb },       { "payload", line_payload },
	{ "step", line_step },       { "recover", line_recover }, { "traffic", line_traffic }, { "klog", line_klog },
	{ "blocked", line_blocked }, { "lost", line_lost },       { "dump", line_dump },       { "packet", line_packet },
};

static void put_words(struct line_buf *l, const json_t *record)
{
	const char *kind = json_str(record, "kind");

	for (size_t i = 0; kind && i < sizeof(lines) / sizeof(lines[0]); i++)
		if (!strcmp(lines[i].kind, kind)) {
			lines[i].line(l, record);
			return;
		}
	put(l, "%s", kind ? kind : "?");
}

char *verdict_words(const json_t *record, char *buf, size_t size)
{
	struct line_buf l = { buf, size, 0 };

	*buf = 0;
	put_words(&l, record);
	return buf;
}

char *record_line(const json_t *record, uint64_t first_t, char *buf, size_t size)
{
	struct line_buf l = { buf, size, 0 };
	const char *obj = json_str(record, "obj");
	uint64_t t = json_u64(record, "t", 0);

	*buf = 0;
	put(&l, "%.3f ms %s", t > first_t ? (double)(t - first_t) / 1e6 : 0.0, json_str(record, "src") ? str(record, "src") : "?");
	put(&l, "%s%s: ", obj ? " " : "", obj ? obj : "");
	put_words(&l, record);
	return buf;
}

static bool starts_with(const char *text, const char *head, size_t len)
{
	return !strncmp(text, head, len) && (!text[len] || text[len] == '.');
}

/* Does a record say something about this end or its peer? */
static bool is_about(const struct judge *j, const json_t *r, const char *at)
{
	const char *kind = json_str(r, "kind"), *obj = json_str(r, "obj");
	struct m_end end = m_end_of(j->m, at);

	if (!kind || !strcmp(kind, "clock") || !strcmp(kind, "counter") || !strcmp(kind, "hello") || !strcmp(kind, "lab") ||
	    !strcmp(kind, "verb") || !strcmp(kind, "end"))
		return false;
	if (!strcmp(kind, "step") || !strcmp(kind, "fault") || !strcmp(kind, "payload") || !strcmp(kind, "recover") ||
	    !strcmp(kind, "klog") || !strcmp(kind, "lost") || !*at)
		return true;
	if (!obj)
		return false;
	if (end.qp == M_NONE)
		return starts_with(obj, at, strlen(at));
	return starts_with(obj, j->m->qps.v[end.qp].name, strlen(j->m->qps.v[end.qp].name)) ||
	       starts_with(obj, j->m->qps.v[end.qp].peer, strlen(j->m->qps.v[end.qp].peer));
}

/* A begin has nothing to say but that it began. */
static bool is_worth_a_line(const json_t *r)
{
	const char *kind = json_str(r, "kind"), *phase = json_str(r, "phase");

	return !(kind && phase && !strcmp(kind, "step") && !strcmp(phase, "begin"));
}

json_t *record_lines(const struct judge *j, const char *at, size_t rec, size_t max)
{
	const json_t *found[LINES_MAX];
	json_t *list = json_array();
	size_t n = 0;
	char line[256];

	if (rec == M_NONE || rec >= json_array_size(j->records))
		rec = json_array_size(j->records) ? json_array_size(j->records) - 1 : 0;
	for (size_t i = rec + 1; i-- > 0 && n < max && n < LINES_MAX;) {
		const json_t *r = json_array_get(j->records, i);
		size_t k = n;

		if (!r || !is_worth_a_line(r) || !is_about(j, r, at))
			continue;
		/* Records come in batches: people read them by their times, where one clock stamped them. */
		for (; k > 0 && !j->m->several_clocks && json_u64(found[k - 1], "t", 0) < json_u64(r, "t", 0); k--)
			found[k] = found[k - 1];
		found[k] = r;
		n++;
	}
	while (n-- > 0)
		json_array_append_new(list, json_string(record_line(found[n], j->m->first_t, line, sizeof(line))));
	return list;
}

static const struct m_comp *first_cause(const struct judge *j, size_t qp, bool recv, bool flush)
{
	for (size_t i = 0; i < j->m->comps.n; i++) {
		const struct m_comp *c = &j->m->comps.v[i];

		if (c->qp == qp && c->recv == recv && !c->success && !c->marker && !strcmp(c->status, "WR_FLUSH_ERR") == flush &&
		    strcmp(judge_do(j, c->inst), "recover"))
			return c;
	}
	return NULL;
}

/* The state before the first recovery, or else the last one that was seen. */
static const char *state_shown(const struct judge *j, size_t qp)
{
	const char *state = "?";
	size_t rec = 0;

	for (size_t i = 0; i < j->m->states.n; i++) {
		const struct m_state *s = &j->m->states.v[i];

		if (s->qp != qp || !*s->new_ || judge_is_release(j, s->inst))
			continue;
		if (!strcmp(judge_do(j, s->inst), "recover"))
			break;
		state = s->new_;
		rec = s->rec;
	}
	for (size_t i = 0; i < j->m->verbs.n; i++) {
		const struct m_verb *v = &j->m->verbs.v[i];

		if (v->rec > rec && !v->err && !strcmp(v->obj, judge_qp(j, qp)) && !strcmp(v->verb, "ibv_destroy_qp") &&
		    !judge_is_release(j, v->inst) && strcmp(judge_do(j, v->inst), "recover"))
			return "destroyed";
	}
	return state;
}

static bool has_success(const struct judge *j, size_t qp)
{
	for (size_t i = 0; i < j->m->comps.n; i++) {
		const struct m_comp *c = &j->m->comps.v[i];

		if (c->qp == qp && !c->recv && c->success && !*c->traffic && !c->marker)
			return true;
	}
	return false;
}

static const char *first_event(const struct judge *j, size_t qp)
{
	struct m_end end = { .qp = qp };

	for (size_t i = 0; i < j->m->events.n; i++)
		if (m_event_at(j->m, &j->m->events.v[i], &end) && !m_event_explained(j->m, &j->m->events.v[i]) &&
		    !verdict_cm_routine(j, &j->m->events.v[i]))
			return j->m->events.v[i].event;
	return NULL;
}

static void put_end(const struct judge *j, struct line_buf *l, size_t qp, bool alone)
{
	const struct m_comp *c = first_cause(j, qp, false, false);
	const struct m_post *p = c ? m_comp_post(j->m, c) : NULL;
	const char *event = first_event(j, qp);
	char took[64];

	put(l, "%s ", alone ? j->m->qps.v[qp].agent : j->m->qps.v[qp].name);
	if (!c)
		c = first_cause(j, qp, true, false);
	if (c) {
		put(l, "%s", c->status);
		if (p && c->t > p->t)
			put(l, " %s", units_format_ns(c->t - p->t, took, sizeof(took)));
	} else if (event) {
		put(l, "%s", event);
	} else if (has_success(j, qp) && !first_cause(j, qp, false, true)) {
		put(l, "SUCCESS");
	} else if (first_cause(j, qp, false, true) || first_cause(j, qp, true, true)) {
		put(l, "WR_FLUSH_ERR, %s", state_shown(j, qp));
	} else {
		put(l, "%s", state_shown(j, qp));
	}
}

char *verdict_seen(const struct judge *j, char *buf, size_t size)
{
	struct line_buf l = { buf, size, 0 };
	const char *pair = NULL;
	size_t first = M_NONE;
	bool alone = true;

	*buf = 0;
	for (size_t i = 0; i < j->m->qps.n; i++) {
		alone &= !strcmp(j->m->qps.v[i].pair, j->m->qps.v[0].pair);
		for (size_t k = 0; k < j->m->comps.n && first == M_NONE; k++)
			if (j->m->comps.v[k].qp == i && !j->m->comps.v[k].success &&
			    strcmp(j->m->comps.v[k].status, "WR_FLUSH_ERR"))
				first = i;
	}
	if (!j->m->qps.n)
		return buf;
	pair = j->m->qps.v[first == M_NONE ? 0 : first].pair;
	for (size_t i = 0; i < j->m->qps.n; i++) {
		if (strcmp(j->m->qps.v[i].pair, pair))
			continue;
		if (l.len)
			put(&l, ", ");
		put_end(j, &l, i, alone);
	}
	return buf;
}
