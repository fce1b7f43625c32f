/* SPDX-License-Identifier: MIT */
/* Waits until the model says that an expectation holds or can no longer hold; asks for what only asking gives. */
#include "controller_step.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "json.h"
#include "units.h"

#define ASK_FIRST_NS (10 * NSEC_PER_MSEC)
#define ASK_LAST_NS (50 * NSEC_PER_MSEC)
/* A long window is looked at so many times and a few more: what has come is seen at its end as well, and what happens is told. */
#define LOOKS_OF_A_WINDOW 16
#define EXPECT_DEFAULT_NS (10 * NSEC_PER_SEC)

/* The step itself, or each of its `any` choices. */
static size_t choices(const json_t *step)
{
	const json_t *any = json_object_get(step, "any");

	return json_is_array(any) ? json_array_size(any) : 1;
}

static const json_t *choice(const json_t *step, size_t i)
{
	const json_t *any = json_object_get(step, "any");

	return json_is_array(any) ? json_array_get(any, i) : step;
}

static void ask_payload(struct case_run *r, const json_t *one)
{
	const char *of = json_str(one, "of");
	struct ends at = { NULL, 0 };

	if (of) {
		payload_of(r, of);
		return;
	}
	if (ends_of_names(r, json_object_get(one, "at"), &at, NULL))
		return;
	for (size_t i = 0; i < at.n; i++)
		payload_at(r, at.qp[i]);
	ends_free(&at);
}

static void ask_counters(struct case_run *r, const json_t *one)
{
	const json_t *at = json_object_get(one, "at"), *name;
	size_t i;

	if (!json_array_size(at))
		query_counters(r, NULL);
	json_array_foreach(at, i, name) {
		const char *text = json_string_value(name);
		const struct object *o = text ? ctl_object_find(r, text) : NULL;

		if (o)
			query_counters(r, o->agent);
		else if (text && strncmp(text, "dev.", 4) == 0)
			query_counters(r, text + 4);
	}
}

static bool is_of_running_traffic(struct case_run *r, const json_t *one)
{
	const char *of = json_str(one, "of");

	return of && json_object_get(r->traffics, of);
}

static void ask_traffic(struct case_run *r, const json_t *one)
{
	const char *during = json_str(one, "during");
	char phase[CTL_NAME_MAX + 16] = "now";

	if (!is_of_running_traffic(r, one))
		return;
	if (during)
		snprintf(phase, sizeof phase, "during:%s", during);
	if (!during || fault_is_active(r, during))
		traffics_phase(r, json_str(one, "of"), phase, "look");
}

/* Returns true when the states of the ends involved were asked for. */
static bool ask_needs(struct case_run *r, const json_t *step, const struct ends *ends)
{
	bool states = false;

	for (size_t i = 0; i < choices(step); i++) {
		const json_t *one = choice(step, i);
		struct model_needs needs = model_expect_needs(one);

		states = states || needs.state;
		if (needs.counter)
			ask_counters(r, one);
		if (needs.payload)
			ask_payload(r, one);
		if (needs.packets)
			wire_sync(r);
		if (needs.hits && (json_str(one, "fault") || json_str(one, "of")))
			fault_look(r, json_str(one, "fault") ? json_str(one, "fault") : json_str(one, "of"));
		ask_traffic(r, one);
	}
	if (states)
		query_states(r, ends, "query");
	return states;
}

struct news_wait {
	struct case_run *r;
	uint64_t seen;
};

static bool has_news(void *user)
{
	const struct news_wait *w = user;

	return w->r->news != w->seen;
}

static bool wants_asking(struct case_run *r, const json_t *step)
{
	for (size_t i = 0; i < choices(step); i++) {
		struct model_needs n = model_expect_needs(choice(step, i));

		if (is_of_running_traffic(r, choice(step, i)) || n.state || n.counter || n.payload || n.packets || n.hits)
			return true;
	}
	return false;
}

static void why_text(struct step_result *res, const json_t *why)
{
	const char *at = json_str(why, "at"), *expected = json_str(why, "expected"), *seen = json_str(why, "seen");

	error_set(&res->text, 0, "%s%sexpected %s, seen %s", at ? at : "", at && at[0] ? ": " : "", expected ? expected : "?",
		  seen ? seen : "nothing");
}

/* Until when: `for` is observed to its end, otherwise the deadline bounds it. */
static uint64_t end_of(const struct case_run *r, const json_t *step, uint64_t begin)
{
	uint64_t for_ns = json_u64(step, "for_ns", 0);

	if (!for_ns)
		return step_deadline(r, step, begin, EXPECT_DEFAULT_NS);
	return r->end_ns && begin + for_ns > r->end_ns ? r->end_ns : begin + for_ns;
}

static uint64_t last_pause(const json_t *step)
{
	uint64_t part = json_u64(step, "for_ns", 0) / LOOKS_OF_A_WINDOW;

	return part > ASK_LAST_NS ? part : ASK_LAST_NS;
}

static enum expect_state watch(struct case_run *r, const json_t *step, const struct ends *ends, json_t **ret_why, bool *ret_asked)
{
	uint64_t begin = now_ns(), end = end_of(r, step, begin), pause = ASK_FIRST_NS, most = last_pause(step);
	bool whole = json_u64(step, "for_ns", 0) != 0, asks = wants_asking(r, step);
	enum expect_state state;

	for (;;) {
		struct news_wait w = { .r = r };
		uint64_t now, until;

		case_drain(r);
		w.seen = r->news;
		if (asks)
			*ret_asked = ask_needs(r, step, ends);
		now = now_ns();
		json_decref(*ret_why);
		*ret_why = NULL;
		state = model_expect(r->model, step, now, ret_why);
		if (state == EXPECT_BROKEN || (state == EXPECT_MET && (!whole || now >= end)) || now >= end)
			return state;
		until = asks && now + pause < end ? now + pause : end;
		pause = pause * 2 < most ? pause * 2 : most;
		case_wait(r, has_news, &w, until);
	}
}

void step_expect(struct case_run *r, const json_t *step, struct step_result *res)
{
	struct ends ends = { NULL, 0 };
	json_t *why = NULL;
	enum expect_state state;
	bool asked = false;

	ends_involved(r, step, &ends, NULL);
	state = watch(r, step, &ends, &why, &asked);
	if (state == EXPECT_MET) {
		res->outcome = OUTCOME_MET;
	} else {
		res->outcome = state == EXPECT_BROKEN ? OUTCOME_BROKEN : OUTCOME_TIMEOUT;
		why_text(res, why);
		r->broken = true;
		if (state != EXPECT_BROKEN)
			query_dump(r, &ends, res->text.text);
	}
	/* The standing checks want both ends' states at each expecting step. */
	if (!asked)
		query_states(r, &ends, "query");
	model_settle(r->model, step);
	json_decref(why);
	ends_free(&ends);
}

void step_allow(struct case_run *r, const json_t *step, struct step_result *res)
{
	(void)r;
	(void)step;
	res->outcome = OUTCOME_DONE;
}
