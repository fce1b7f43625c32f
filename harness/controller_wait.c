/* SPDX-License-Identifier: MIT */
/* The one place that waits: what callbacks noted is written down, timed fault actions run, then the condition is asked. */
#include "controller_case.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "json.h"
#include "log.h"
#include "loop.h"
#include "many.h"
#include "names.h"
#include "units.h"

#define REAP_NS (200 * NSEC_PER_MSEC)
#define LOOK_NS (250 * NSEC_PER_MSEC)

void case_note_text(struct case_run *r, const char *src, const char *clk, json_t *rec, const char *text, size_t len)
{
	json_t *note = json_pack("{s:s,s:s*,s:o,s:o*}", "src", src, "clk", clk, "rec", rec, "text",
				 text ? json_stringn_nocheck(text, len) : NULL);

	if (note)
		json_array_append_new(r->inbox, note);
	else
		json_decref(rec);
}

void case_note_unread(struct case_run *r, const char *src, const char *clk, const char *text, size_t len, uint64_t count)
{
	json_array_append_new(r->inbox, json_pack("{s:s,s:s*,s:o,s:I}", "src", src, "clk", clk, "text",
						  json_stringn_nocheck(text, len), "count", (json_int_t)count));
}

void case_later(struct case_run *r, bool on)
{
	r->later = on && !r->posts && !json_object_size(r->traffics) && !faults_active(r) && !wire_wanted(r);
	case_drain(r);
}

void case_note(struct case_run *r, const char *src, const char *clk, json_t *rec)
{
	case_note_text(r, src, clk, rec, NULL, 0);
}

/* A destruction that returned late, when nobody waited for its reply any more. */
static void follow_verb(struct case_run *r, const json_t *rec)
{
	static const char *const destroys[] = { "ibv_destroy_", "ibv_dereg_mr", "ibv_dealloc_" };
	const char *verb = json_str(rec, "verb"), *name = json_str(rec, "obj");
	struct object *o = name ? ctl_object_find(r, name) : NULL;

	if (!o || !verb || !json_bool(rec, "late", false) || json_int(rec, "errno", 0))
		return;
	for (size_t i = 0; i < sizeof destroys / sizeof destroys[0]; i++)
		if (strncmp(verb, destroys[i], strlen(destroys[i])) == 0)
			o->exists = o->leaving = false;
}

static void follow_event(struct case_run *r, const json_t *rec)
{
	const char *event = json_str(rec, "event"), *obj = json_str(rec, "obj");
	struct ctl_agent *a;

	if (!event || strcmp(event, "GID_CHANGE") != 0 || !obj || strncmp(obj, "dev.", 4) != 0)
		return;
	a = agent_find(r, obj + 4);
	if (a)
		a->gid_changed = true;
}

/* The device's answer right after a move. */
static void follow_move(struct object *o, const json_t *rec)
{
	const char *asked = json_str(rec, "asked");

	if (!asked || json_int(rec, "errno", 0))
		return;
	if (strcmp(asked, "RTR") == 0) {
		json_decref(o->rtr);
		o->rtr = json_incref(o->queried);
	}
	if (strcmp(asked, "RTS") == 0 && !o->rts)
		o->rts = json_incref(o->queried);
}

/* What an agent says of its objects keeps the controller's view of them fresh. */
static void follow(struct case_run *r, const json_t *rec)
{
	const char *kind = json_str(rec, "kind"), *name = json_str(rec, "obj");
	struct object *o = name ? ctl_object_find(r, name) : NULL;
	const json_t *queried = json_object_get(rec, "queried");
	const char *state;

	if (kind && strcmp(kind, "verb") == 0)
		follow_verb(r, rec);
	if (kind && strcmp(kind, "event") == 0)
		follow_event(r, rec);
	if (!kind || strcmp(kind, "state") != 0 || !o || o->type != OBJECT_QP)
		return;
	state = json_str(queried, "state");
	if (!state)
		state = json_int(rec, "errno", 0) == 0 ? json_str(rec, "new") : NULL;
	if (state && name_find(&names_state, state))
		o->state = name_find(&names_state, state)->text;
	if (!json_object_size(queried))
		return;
	json_decref(o->queried);
	o->queried = json_incref((json_t *)queried);
	o->has_seen_psn = false;
	follow_move(o, rec);
}

/* Answers to the controller's own questions do not make it ask again. */
static bool is_news(const json_t *rec)
{
	static const char *const quiet[] = { "clock", "counter", "payload",    "dump",    "step", "hello",
					     "lab",   "packet",  "connection", "release", NULL };
	const char *kind = json_str(rec, "kind"), *by = json_str(rec, "by");

	for (size_t i = 0; quiet[i]; i++)
		if (kind && strcmp(kind, quiet[i]) == 0)
			return false;
	return !(kind && strcmp(kind, "state") == 0 && by && strcmp(by, "query") == 0);
}

/* text: as it came; NULL: it did not. */
static void write_line(struct case_run *r, const char *src, const char *clk, json_t *rec, const json_t *text)
{
	if (text)
		recorder_write_text(r->rec, src, clk, rec, json_string_value(text), json_string_length(text));
	else
		recorder_write(r->rec, src, clk, rec);
}

static void take_in(struct case_run *r, const json_t *rec)
{
	follow(r, rec);
	posts_note(r, rec);
	model_feed(r->model, rec);
	if (is_news(rec))
		r->news++;
}

static void take_in_all(struct case_run *r, const json_t *rec)
{
	size_t n = many_is_record(rec) ? many_count(rec) : 0;

	if (!n)
		take_in(r, rec);
	for (size_t i = 0; i < n; i++) {
		json_t *one = many_record(rec, i);

		take_in(r, one);
		json_decref(one);
	}
}

void case_catch_up(struct case_run *r)
{
	json_t *unread = r->unread, *one;
	size_t i;

	r->unread = NULL;
	json_array_foreach(unread, i, one) {
		const json_t *text = json_object_get(one, "text");
		json_t *rec = text ? json_loadb(json_string_value(text), json_string_length(text), JSON_REJECT_DUPLICATES, NULL)
				   : json_incref(json_object_get(one, "rec"));

		if (text && rec)
			json_object_update(rec, json_object_get(one, "more"));
		if (!rec || (many_is_record(rec) && !many_count(rec)))
			case_lost(r, 1, "a record of many that is none");
		else
			take_in_all(r, rec);
		json_decref(rec);
	}
	json_decref(unread);
}

/* It is on disk; it is taken in when its turn comes. */
static void take_in_order(struct case_run *r, json_t *rec)
{
	if (!r->later && !r->unread) {
		take_in_all(r, rec);
		return;
	}
	/* An address that has moved is looked up before the next connection. */
	if (json_has(rec, "kind", "event"))
		follow_event(r, rec);
	if (!r->unread)
		r->unread = json_array();
	json_array_append_new(r->unread, json_pack("{s:O}", "rec", rec));
}

static void write_down_unread(struct case_run *r, const json_t *note)
{
	const json_t *text = json_object_get(note, "text");
	json_t *more = NULL;

	recorder_write_unread(r->rec, json_str(note, "src"), json_str(note, "clk"), json_string_value(text),
			      json_string_length(text), json_u64(note, "count", 1), &more);
	if (!r->unread)
		r->unread = json_array();
	json_array_append_new(r->unread, json_pack("{s:O,s:o}", "text", text, "more", more));
}

static void write_down(struct case_run *r, const char *src, const char *clk, json_t *rec, const json_t *text);

/* The bystander's are looked at one by one, and most are not kept. */
static void write_down_each(struct case_run *r, const char *src, const char *clk, const json_t *rec)
{
	size_t n = many_count(rec);

	for (size_t i = 0; i < n; i++) {
		json_t *one = many_record(rec, i);

		write_down(r, src, clk, one, NULL);
		json_decref(one);
	}
}

static void write_down(struct case_run *r, const char *src, const char *clk, json_t *rec, const json_t *text)
{
	const char *kind = json_str(rec, "kind"), *phase = json_str(rec, "phase");
	bool tells;

	if (many_is_record(rec) && !many_count(rec)) {
		case_lost(r, 1, "%s: a record of many whose columns are not as long as it says", src);
		return;
	}
	if (many_is_record(rec) && plan_is_bystander(src)) {
		write_down_each(r, src, clk, rec);
		return;
	}
	if (bystander_record(src, rec, &tells)) {
		follow(r, rec);
		r->bystander.ended |= kind && phase && strcmp(kind, "traffic") == 0 && strcmp(phase, "end") == 0;
		if (tells) {
			write_line(r, src, clk, rec, text);
			case_catch_up(r);
			model_feed(r->model, rec);
		}
		return;
	}
	write_line(r, src, clk, rec, text);
	take_in_order(r, rec);
}

static void note_death(struct case_run *r, const char *agent, const char *why)
{
	json_t *rec = json_pack("{s:s,s:o,s:i,s:o}", "kind", "lost", "what", json_sprintf("agent/%s", agent), "count", 1, "text",
				json_sprintf("agent %s died: %s", agent, why));

	if (!rec)
		return;
	write_down(r, "controller", NULL, rec, NULL);
	json_decref(rec);
}

static void note_ends(struct case_run *r)
{
	struct ctl_agent *a;
	char why[64];

	for (a = r->c->agents; a; a = a->next) {
		if (!a->name[0] || !a->ended || a->end_noted)
			continue;
		/* End of file comes a moment before the process can be reaped: its status is worth a short wait. */
		proc_wait(&a->proc, REAP_NS);
		a->end_noted = true;
		/* Before its hello it took no part in the case: whoever waits for the hello has an error to tell. */
		if (!a->hello)
			continue;
		/* What it said before is older: its objects had those states, and have none now. */
		case_catch_up(r);
		ctl_objects_lost(r, a->name);
		note_death(r, a->name, agent_end_text(a, why, sizeof why));
	}
}

void case_drain(struct case_run *r)
{
	while (json_array_size(r->inbox)) {
		json_t *all = r->inbox, *note;
		size_t i;

		r->inbox = json_array();
		json_array_foreach(all, i, note) {
			if (json_object_get(note, "rec"))
				write_down(r, json_str(note, "src"), json_str(note, "clk"), json_object_get(note, "rec"),
					   json_object_get(note, "text"));
			else
				write_down_unread(r, note);
		}
		json_decref(all);
	}
	if (!r->later)
		case_catch_up(r);
	note_ends(r);
	wire_note_end(r);
}

void case_record(struct case_run *r, const char *src, json_t *rec)
{
	if (!rec) {
		log_error("%s: a record could not be made", r->id);
		return;
	}
	case_drain(r);
	write_down(r, src, NULL, rec, NULL);
	json_decref(rec);
}

void case_lost(struct case_run *r, unsigned count, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	json_t *rec;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	rec = json_pack("{s:s,s:s,s:i}", "kind", "lost", "what", text, "count", (int)count);
	if (!rec)
		return;
	write_down(r, "controller", NULL, rec, NULL);
	json_decref(rec);
}

struct wait_for {
	struct case_run *r;
	bool (*done)(void *user);
	void *user;
};

static int on_write(sd_event_source *source, uint64_t usec, void *user)
{
	struct case_run *r = user;

	(void)source;
	(void)usec;
	recorder_flush(r->rec);
	return 0;
}

/* What waits to be written is written when its time has come, also where nothing else happens. */
static void arm_write(struct case_run *r)
{
	uint64_t due = recorder_due(r->rec);

	if (due == r->write_ns || due == UINT64_MAX)
		return;
	r->write_ns = due;
	if (!r->write) {
		if (loop_timer(r->c->loop, due, on_write, r, &r->write) < 0)
			recorder_flush(r->rec);
		return;
	}
	sd_event_source_set_time(r->write, due / NSEC_PER_USEC + 1);
	sd_event_source_set_enabled(r->write, SD_EVENT_ONESHOT);
}

static bool something_to_do(void *user)
{
	struct wait_for *w = user;

	case_drain(w->r);
	arm_write(w->r);
	return w->done && w->done(w->user);
}

int case_wait(struct case_run *r, bool (*done)(void *user), void *user, uint64_t at_ns)
{
	struct wait_for w = { .r = r, .done = done, .user = user };

	for (;;) {
		uint64_t until = at_ns, due = r->in_due ? UINT64_MAX : faults_next(r);
		int rc;

		if (due < until)
			until = due;
		rc = loop_wait(r->c->loop, something_to_do, &w, until);
		case_drain(r);
		if (rc != -ETIMEDOUT)
			return rc;
		if (due <= now_ns()) {
			r->in_due = true;
			faults_due(r);
			r->in_due = false;
		}
		if (done && done(user))
			return 0;
		if (at_ns <= now_ns())
			return -ETIMEDOUT;
	}
}

int case_wait_idle(struct case_run *r, bool (*done)(void *user), void *user, bool (*at_work)(struct case_run *r), uint64_t idle_ns)
{
	uint64_t end_ns = now_ns() + idle_ns + CTL_TURN_NS, idle = 0;
	int rc = -ETIMEDOUT;

	while (rc == -ETIMEDOUT && idle < idle_ns && now_ns() < end_ns) {
		rc = case_wait(r, done, user, now_ns() + LOOK_NS);
		if (rc == -ETIMEDOUT && !at_work(r))
			idle += LOOK_NS;
	}
	return rc;
}
