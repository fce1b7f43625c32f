/* SPDX-License-Identifier: MIT */
/*
 * What the timers of QPs follow from, step by step: a plan has it of the first life, `recover: qp:` and `modify: set:` change it.
 * Kept is what differs from the plan: QP -> {"now":[attributes],"base":[attributes],"born":n}. `base` is what a next life begins
 * with, `born` the step that began this one. Where a step may have acted or not there are several attributes.
 */
#include "plan_timers.h"

#include <string.h>

#include "attr.h"
#include "json.h"

#define VARIANTS_MAX 64
#define ROUNDS_MAX 4

static const char *const timer_keys[] = { "timeout", "retry_cnt", "rnr_retry", "min_rnr_timer" };
#define NUM_KEYS (sizeof(timer_keys) / sizeof(*timer_keys))

json_t *plan_own_attr(const json_t *block, const char *agent)
{
	json_t *own = json_object(), *value;
	const char *key;

	json_object_foreach((json_t *)block, key, value)
		if (!json_is_object(value) || json_object_get(value, "ref"))
			json_object_set(own, key, value);
	value = json_object_get(block, agent);
	if (json_is_object(value) && !json_object_get(value, "ref"))
		json_object_update(own, value);
	return own;
}

/* Of what is set, what timers follow from. A value that no device takes changes nothing. */
static json_t *timers_in(const json_t *set)
{
	json_t *timers = json_object();

	for (size_t i = 0; i < NUM_KEYS; i++) {
		const struct attr *a = attr_find(timer_keys[i]);
		json_t *value = json_object_get(set, timer_keys[i]);

		if (json_is_integer(value) && json_integer_value(value) >= a->min && json_integer_value(value) <= a->max)
			json_object_set(timers, timer_keys[i], value);
	}
	return timers;
}

static bool block_has_timers(const json_t *block)
{
	const char *key;
	json_t *value;

	for (size_t i = 0; i < NUM_KEYS; i++)
		if (json_object_get(block, timer_keys[i]))
			return true;
	json_object_foreach((json_t *)block, key, value)
		if (json_is_object(value) && block_has_timers(value))
			return true;
	return false;
}

static void add_variants(json_t *list, const json_t *more)
{
	size_t i, k;
	json_t *one, *have;

	json_array_foreach(more, i, one) {
		bool known = json_array_size(list) >= VARIANTS_MAX;

		json_array_foreach(list, k, have)
			known = known || json_equal(one, have);
		if (!known)
			json_array_append(list, one);
	}
}

/* Lists are not changed once they are in place: a copy of the whole may hold them too. */
static json_t *joined(const json_t *a, const json_t *b)
{
	json_t *list = json_array();

	add_variants(list, a);
	add_variants(list, b);
	return list;
}

static json_t *merged(const json_t *list, const json_t *set)
{
	json_t *out = json_array(), *one, *changed;
	size_t i;

	json_array_foreach(list, i, one) {
		changed = json_pack("[o]", json_copy(one));
		json_object_update(json_array_get(changed, 0), (json_t *)set);
		add_variants(out, changed);
		json_decref(changed);
	}
	return out;
}

static json_t *entry_of(json_t *timers, const json_t *qp)
{
	const char *name = json_str(qp, "name");
	json_t *entry = json_object_get(timers, name), *list;

	if (entry)
		return entry;
	list = json_pack("[o]", timers_in(json_object_get(qp, "attr")));
	entry = json_pack("{s:O,s:o,s:i}", "now", list, "base", list, "born", 0);
	json_object_set_new(timers, name, entry);
	return entry;
}

/* An entry is replaced and not changed, as its lists are. Takes now and base; NULL: as before. */
static void put_entry(json_t *timers, const json_t *qp, json_t *now, json_t *base, int64_t born)
{
	json_t *entry = json_copy(entry_of(timers, qp));

	if (now)
		json_object_set_new(entry, "now", now);
	if (base)
		json_object_set_new(entry, "base", base);
	if (born)
		json_object_set_new(entry, "born", json_integer(born));
	json_object_set_new(timers, json_str(qp, "name"), entry);
}

static void recover_one(json_t *timers, const json_t *qp, const json_t *step)
{
	const json_t *entry = entry_of(timers, qp), *old_now = json_object_get(entry, "now"),
		     *old_base = json_object_get(entry, "base");
	json_t *own = plan_own_attr(json_object_get(step, "qp"), json_str(qp, "agent")), *set = timers_in(own), *now, *base, *both;
	bool sqd = json_has(step, "path", "sqd"), keeps = sqd || json_has(step, "path", "sq");
	bool skipped = json_bool(step, "if_needed", false), fails = json_has(step, "result", "fails");

	base = merged(old_base, set);
	if (sqd)
		now = merged(old_now, set);
	else
		now = joined(keeps ? old_now : base, NULL);
	if (skipped || fails) {
		both = joined(old_now, now);
		json_decref(now);
		now = both;
	}
	if (skipped) {
		both = joined(old_base, base);
		json_decref(base);
		base = both;
	}
	put_entry(timers, qp, now, base, keeps ? 0 : json_int(step, "n", 0));
	json_decref(own);
	json_decref(set);
}

static json_t *set_of(const json_t *names)
{
	json_t *set = json_object(), *name;
	size_t i;

	json_array_foreach(names, i, name)
		if (json_is_string(name))
			json_object_set_new(set, json_string_value(name), json_true());
	return set;
}

static void recovered(json_t *timers, const json_t *plan, const json_t *step)
{
	const char *key = json_object_get(step, "ends") ? "name" : "pair";
	json_t *names = set_of(json_object_get(step, json_object_get(step, "ends") ? "ends" : "pairs")), *qp;
	bool changes = block_has_timers(json_object_get(step, "qp"));
	size_t i;

	json_array_foreach(json_object_get(plan, "qps"), i, qp)
		if (json_object_get(names, json_str(qp, key)) && (changes || json_object_get(timers, json_str(qp, "name"))))
			recover_one(timers, qp, step);
	json_decref(names);
}

static void born_anew(json_t *timers, const json_t *qp, const json_t *step, bool surely)
{
	const json_t *entry = json_object_get(timers, json_str(qp, "name"));

	if (!entry)
		return;
	put_entry(timers, qp, joined(json_object_get(entry, "base"), surely ? NULL : json_object_get(entry, "now")), NULL,
		  json_int(step, "n", 0));
}

static void modified(json_t *timers, const json_t *plan, const json_t *step)
{
	json_t *set = timers_in(json_object_get(step, "set")), *names = set_of(json_object_get(step, "at")), *qp, *now, *both;
	const json_t *returns = json_object_get(step, "returns");
	bool refused = returns && !json_array_has(returns, "0"), surely = json_array_size(returns) <= 1;
	size_t i;

	json_array_foreach(json_object_get(plan, "qps"), i, qp) {
		if (refused || json_str(step, "mask") || !json_object_get(names, json_str(qp, "name")))
			continue;
		if (json_has(step, "to", "RESET")) {
			born_anew(timers, qp, step, surely);
		} else if (json_object_size(set)) {
			now = merged(json_object_get(entry_of(timers, qp), "now"), set);
			both = joined(now, surely ? NULL : json_object_get(entry_of(timers, qp), "now"));
			put_entry(timers, qp, both, NULL, 0);
			json_decref(now);
		}
	}
	json_decref(names);
	json_decref(set);
}

/* A connect that finds an end in RESET, by whatever fault, leads it up from what a life begins with. */
static void connected(json_t *timers, const json_t *plan, const json_t *step)
{
	json_t *pairs = set_of(json_object_get(step, "pairs")), *qp;
	size_t i;

	json_array_foreach(json_object_get(plan, "qps"), i, qp)
		if (json_object_get(pairs, json_str(qp, "pair")))
			born_anew(timers, qp, NULL, false);
	json_decref(pairs);
}

static void made_or_unmade(json_t *timers, const json_t *plan, const json_t *step)
{
	json_t *names = set_of(json_object_get(step, "qp")), *qp;
	size_t i;

	json_array_foreach(json_object_get(plan, "qps"), i, qp)
		if (json_object_get(names, json_str(qp, "name")))
			born_anew(timers, qp, step,
				  !json_object_get(step, "returns") || json_array_size(json_object_get(step, "returns")) == 1);
	json_decref(names);
}

void plan_timers_follow(json_t *timers, const json_t *plan, const json_t *step)
{
	static const struct {
		const char *name;
		void (*follow)(json_t *timers, const json_t *plan, const json_t *step);
	} steps[] = {
		{ "recover", recovered },     { "modify", modified },        { "connect", connected },
		{ "create", made_or_unmade }, { "destroy", made_or_unmade },
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		if (json_has(step, "do", steps[i].name))
			steps[i].follow(timers, plan, step);
}

static void follow_all(json_t *timers, const json_t *plan, const json_t *steps)
{
	json_t *step;
	size_t i;

	json_array_foreach(steps, i, step) {
		plan_timers_follow(timers, plan, step);
		follow_all(timers, plan, json_object_get(step, "steps"));
	}
}

/* What may be before a round, where that of `before` was there before another one. True: that is more. */
static bool add_round(json_t *timers, const json_t *plan, json_t *before)
{
	const char *name;
	json_t *entry, *old, *now, *base;
	bool more = false;

	json_object_foreach(timers, name, entry) {
		const json_t *qp = plan_qp(plan, name);

		old = entry_of(before, qp);
		now = joined(json_object_get(old, "now"), json_object_get(entry, "now"));
		base = joined(json_object_get(old, "base"), json_object_get(entry, "base"));
		more |= json_array_size(now) > json_array_size(json_object_get(old, "now")) ||
			json_array_size(base) > json_array_size(json_object_get(old, "base"));
		put_entry(before, qp, now, base, 0);
	}
	return more;
}

void plan_timers_rounds(json_t *timers, const json_t *plan, const json_t *step)
{
	bool more = json_int(step, "times", 1) > 1;

	for (int i = 0; more && i < ROUNDS_MAX; i++) {
		json_t *after = json_copy(timers);

		follow_all(after, plan, json_object_get(step, "steps"));
		more = add_round(after, plan, timers);
		json_decref(after);
	}
}

size_t plan_timers_count(const json_t *timers, const json_t *qp)
{
	const json_t *entry = json_object_get(timers, json_str(qp, "name"));

	return entry ? json_array_size(json_object_get(entry, "now")) : 1;
}

const json_t *plan_timers_at(const json_t *timers, const json_t *qp, size_t i)
{
	const json_t *entry = json_object_get(timers, json_str(qp, "name"));

	return entry ? json_array_get(json_object_get(entry, "now"), i) : json_object_get(qp, "attr");
}

bool plan_timers_same_life(const json_t *timers, const json_t *qp, const json_t *step)
{
	return json_int(json_object_get(timers, json_str(qp, "name")), "born", 0) <= json_int(step, "n", 0);
}
