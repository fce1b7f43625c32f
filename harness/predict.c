/* SPDX-License-Identifier: MIT */
#include "predict.h"

#include <inttypes.h>
#include <string.h>

#include "attr.h"
#include "json.h"
#include "plan.h"
#include "plan_timers.h"
#include "units.h"

struct oracle {
	const json_t *plan, *timing;
	json_t *active;      /* faults at this point: name -> step */
	json_t *posts;       /* what was posted under a name: name -> step */
	json_t *timers;      /* plan_timers.h, at this point */
	json_t *post_timers; /* and when something was posted under a name */
	json_t *steps;       /* result */
};

static const char *str(const json_t *o, const char *key)
{
	const char *s = json_str(o, key);

	return s ? s : "";
}

static json_t *bound(uint64_t ns)
{
	return ns == UINT64_MAX ? json_null() : json_integer((json_int_t)ns);
}

/* Whether the fault's ends are of this QP's pair; one without ends may reach any. */
static bool reaches(const struct oracle *o, const json_t *fault, const json_t *qp)
{
	const json_t *at = json_object_get(json_object_get(fault, "args"), "at"), *name;
	size_t i;

	if (json_is_string(at))
		return plan_qp(o->plan, json_string_value(at)) == NULL ||
		       !strcmp(str(plan_qp(o->plan, json_string_value(at)), "pair"), str(qp, "pair"));
	json_array_foreach(at, i, name) {
		const json_t *end = plan_qp(o->plan, json_string_value(name));

		if (!end || !strcmp(str(end, "pair"), str(qp, "pair")))
			return true;
	}
	return !json_array_size(at);
}

/* As the verdict has it: an active fault tells how, where that agrees with the status. */
static enum detection detection_of(const struct oracle *o, const char *status, const json_t *qp, const char **ret_fault)
{
	enum detection d = plan_detection(status);
	const char *as;
	const json_t *fault;

	*ret_fault = "";
	json_object_foreach(o->active, as, fault) {
		bool seq_nak = d == DETECTION_SILENT && !strcmp(str(fault, "detection"), detection_names[DETECTION_SEQ_NAK]);

		if (!reaches(o, fault, qp) || (!seq_nak && strcmp(str(fault, "detection"), detection_names[d])))
			continue;
		*ret_fault = as;
		if (seq_nak)
			return DETECTION_SEQ_NAK;
	}
	return d;
}

/* What the window follows from. */
static json_t *attributes(enum detection d, const json_t *attr, const json_t *peer_attr)
{
	json_t *by = json_object();

	if (d == DETECTION_SILENT || d == DETECTION_SEQ_NAK) {
		json_object_set(by, "timeout", json_object_get(attr, "timeout"));
		json_object_set(by, "retry_cnt", json_object_get(attr, "retry_cnt"));
	} else if (d == DETECTION_RNR) {
		json_object_set(by, "rnr_retry", json_object_get(attr, "rnr_retry"));
		json_object_set(by, "min_rnr_timer", json_object_get(peer_attr, "min_rnr_timer"));
	}
	return by;
}

/* The same may follow from several attributes. */
static void add_once(json_t *windows, json_t *one)
{
	json_t *have;
	size_t i;

	json_array_foreach(windows, i, have) {
		if (json_equal(have, one)) {
			json_decref(one);
			return;
		}
	}
	json_array_append_new(windows, one);
}

/* Who waits for an error: what it is asked for, and what else decides. */
struct asked {
	const json_t *qp, *peer;
	const char *of, *status;
};

static void add_window(const struct oracle *o, json_t *windows, const struct asked *x, const json_t *attr, const json_t *peer_attr)
{
	bool wire = json_bool(o->plan, "wire", false);
	struct window spec, w;
	enum detection d;
	const char *fault;
	json_t *one;

	d = detection_of(o, x->status, x->qp, &fault);
	spec = w = plan_window(d, attr, peer_attr, wire);
	plan_window_timing(&w, d, attr, peer_attr, o->timing);
	one = json_pack("{s:s,s:s,s:s,s:s,s:s,s:b,s:o}", "at", str(x->qp, "name"), "of", x->of, "status", x->status, "detection",
			detection_names[d], "fault", fault, "never", spec.never, "by", attributes(d, attr, peer_attr));
	json_object_set_new(one, "low_ns", bound(w.low_ns));
	json_object_set_new(one, "high_ns", bound(w.high_ns));
	json_object_set_new(one, "spec_low_ns", bound(spec.low_ns));
	json_object_set_new(one, "spec_high_ns", bound(spec.high_ns));
	add_once(windows, one);
}

static void add_windows_with(const struct oracle *o, json_t *windows, const struct asked *x, const json_t *timers)
{
	for (size_t i = 0; i < plan_timers_count(timers, x->qp); i++)
		for (size_t k = 0; k < plan_timers_count(timers, x->peer); k++)
			add_window(o, windows, x, plan_timers_at(timers, x->qp, i), plan_timers_at(timers, x->peer, k));
}

/* A post ends in the life that it was made in, also where another one has begun since. */
static void add_windows(const struct oracle *o, json_t *windows, const json_t *qp, const char *of, const char *status)
{
	struct asked x = { qp, plan_qp(o->plan, str(qp, "peer")), of, status };
	const json_t *then = json_object_get(o->post_timers, of);

	if (then)
		add_windows_with(o, windows, &x, then);
	if (!then || plan_timers_same_life(o->timers, qp, json_object_get(o->posts, of)))
		add_windows_with(o, windows, &x, o->timers);
}

/* The errors that a pattern names, each once: no SUCCESS, and no flush, which has no time of its own. */
static void add_statuses(const json_t *pattern, json_t *statuses)
{
	const json_t *lists[] = { json_object_get(pattern, "all"), json_object_get(pattern, "seq") }, *item;
	size_t i;

	json_array_foreach(lists[0], i, item) {
		const char *s = json_string_value(item);

		if (s && strcmp(s, "SUCCESS") && strcmp(s, "WR_FLUSH_ERR"))
			json_object_set_new(statuses, s, json_true());
	}
	json_array_foreach(lists[1], i, item) {
		json_t *any = json_pack("{s:O}", "all", json_object_get(item, "any"));

		add_statuses(any, statuses);
		json_decref(any);
	}
}

static void windows_of(const struct oracle *o, const json_t *x, json_t *windows)
{
	const char *of = str(x, "of"), *status;
	const json_t *at = json_object_get(x, "at"), *name;
	json_t *statuses = json_object(), *value;
	size_t i;

	if (!json_array_size(at) && *of)
		at = json_object_get(json_object_get(o->posts, of), "at");
	add_statuses(json_object_get(x, "wc"), statuses);
	json_object_foreach(statuses, status, value) {
		json_array_foreach(at, i, name) {
			const char *text = json_string_value(name);
			const json_t *qp = text ? plan_qp(o->plan, text) : NULL;

			if (qp)
				add_windows(o, windows, qp, of, status);
		}
	}
	json_decref(statuses);
}

static void take_step(struct oracle *o, const json_t *step);

static void take_steps(struct oracle *o, const json_t *steps)
{
	const json_t *step;
	size_t i;

	json_array_foreach(steps, i, step)
		take_step(o, step);
}

static void follow(struct oracle *o, const json_t *step)
{
	const char *what = str(step, "do");
	const json_t *names = json_object_get(step, "arg"), *name;
	size_t i;

	if (!strcmp(what, "fault"))
		json_object_set(o->active, str(step, "as"), (json_t *)step);
	if (!strcmp(what, "clear"))
		json_array_foreach(names, i, name)
			json_object_del(o->active, json_string_value(name));
	if (*str(step, "as"))
		json_object_set(o->posts, str(step, "as"), (json_t *)step);
	if (*str(step, "as") && !strcmp(what, "post"))
		json_object_set_new(o->post_timers, str(step, "as"), json_copy(o->timers));
	plan_timers_rounds(o->timers, o->plan, step);
	plan_timers_follow(o->timers, o->plan, step);
}

static void take_step(struct oracle *o, const json_t *step)
{
	json_t *windows = json_array();
	const json_t *x;
	size_t i;

	follow(o, step);
	if (!strcmp(str(step, "do"), "expect")) {
		windows_of(o, step, windows);
		json_array_foreach(json_object_get(step, "any"), i, x)
			windows_of(o, x, windows);
	}
	json_array_append_new(o->steps, json_pack("{s:i,s:s,s:i,s:I,s:o}", "n", (int)json_int(step, "n", 0), "do", str(step, "do"),
						  "line", (int)json_int(step, "line", 0), "deadline_ns",
						  (json_int_t)json_int(step, "deadline_ns", 0), "windows", windows));
	take_steps(o, json_object_get(step, "steps"));
}

json_t *predict_case(const json_t *plan, const json_t *timing)
{
	struct oracle o = { .plan = plan,
			    .timing = timing,
			    .active = json_object(),
			    .posts = json_object(),
			    .timers = json_object(),
			    .post_timers = json_object(),
			    .steps = json_array() };
	json_t *result;

	take_steps(&o, json_object_get(plan, "steps"));
	result = json_pack("{s:s,s:I,s:b,s:o}", "case", str(plan, "case"), "budget_ns", (json_int_t)json_int(plan, "budget_ns", 0),
			   "wire", json_bool(plan, "wire", false), "steps", o.steps);
	if (json_str(plan, "skip"))
		json_object_set(result, "skip", json_object_get(plan, "skip"));
	json_decref(o.active);
	json_decref(o.posts);
	json_decref(o.timers);
	json_decref(o.post_timers);
	return result;
}

static const char *until(const json_t *w, const char *key, char *buf, size_t size)
{
	const json_t *ns = json_object_get(w, key);

	return json_is_integer(ns) ? units_format_ns((uint64_t)json_integer_value(ns), buf, size) : "no bound";
}

static void put_reason(const json_t *w, FILE *out)
{
	const json_t *by = json_object_get(w, "by");
	unsigned code = (unsigned)json_int(by, "min_rnr_timer", 0);
	uint64_t t_ns = timer_ack_ns((unsigned)json_int(by, "timeout", 0));
	char t[32], low[32], high[32];

	if (json_object_get(by, "timeout"))
		fprintf(out, "; timeout %" PRId64 " (%s), retry_cnt %" PRId64, json_int(by, "timeout", 0),
			t_ns ? units_format_ns(t_ns, t, sizeof(t)) : "off", json_int(by, "retry_cnt", 0));
	if (json_object_get(by, "rnr_retry"))
		fprintf(out, "; rnr_retry %" PRId64 ", the responder's min_rnr_timer %u (%s)", json_int(by, "rnr_retry", 0), code,
			units_format_ns(timer_rnr_ns(code), t, sizeof(t)));
	if (!json_equal(json_object_get(w, "low_ns"), json_object_get(w, "spec_low_ns")) ||
	    !json_equal(json_object_get(w, "high_ns"), json_object_get(w, "spec_high_ns")))
		fprintf(out, "; without the provider's own timers %s to %s", until(w, "spec_low_ns", low, sizeof(low)),
			until(w, "spec_high_ns", high, sizeof(high)));
}

static void put_window(const json_t *w, FILE *out)
{
	char low[32], high[32];

	fprintf(out, "      %s%s%s %s, %s%s%s: ", str(w, "at"), *str(w, "of") ? ", of " : "", str(w, "of"), str(w, "status"),
		str(w, "detection"), *str(w, "fault") ? " by " : "", str(w, "fault"));
	if (json_bool(w, "never", false))
		fputs("it cannot come", out);
	else
		fprintf(out, "%s to %s", until(w, "low_ns", low, sizeof(low)), until(w, "high_ns", high, sizeof(high)));
	put_reason(w, out);
	fputc('\n', out);
}

void predict_text(const json_t *p, FILE *out)
{
	char ns[32];
	const json_t *step, *w;
	size_t i, k;

	fprintf(out, "%s  at most %s%s%s\n", str(p, "case"), units_format_ns(json_u64(p, "budget_ns", 0), ns, sizeof(ns)),
		json_str(p, "skip") ? ", but it will be skipped: " : "", str(p, "skip"));
	json_array_foreach(json_object_get(p, "steps"), i, step) {
		fprintf(out, "  %3" PRId64 " %-9s line %-3" PRId64 " at most %s\n", json_int(step, "n", 0), str(step, "do"),
			json_int(step, "line", 0), units_format_ns(json_u64(step, "deadline_ns", 0), ns, sizeof(ns)));
		json_array_foreach(json_object_get(step, "windows"), k, w)
			put_window(w, out);
	}
}
