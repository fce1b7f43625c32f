/* SPDX-License-Identifier: MIT */
/* The pair that looks on: one end sends a small checked message each period, the other waits for it. */
#include "controller_case.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "units.h"

#define SENDER PLAN_BYSTANDER "." PLAN_BYSTANDER "_a"
#define WATCHER PLAN_BYSTANDER "." PLAN_BYSTANDER "_b"
#define TAG 0x0b57a1de
#define SILENCE_NS (500 * NSEC_PER_MSEC)
#define ANSWER_NS (5 * NSEC_PER_SEC)
#define STOP_NS (300 * NSEC_PER_MSEC)

static const json_t *planned(const struct case_run *r)
{
	const json_t *b = json_object_get(r->plan, PLAN_BYSTANDER);

	return json_is_object(b) ? b : NULL;
}

static bool is_well(const json_t *rec, const char *kind)
{
	const char *status = json_str(rec, "status"), *by = json_str(rec, "by");

	if (strcmp(kind, "wc") == 0)
		return status && strcmp(status, "SUCCESS") == 0;
	if (strcmp(kind, "state") == 0)
		return !json_int(rec, "errno", 0) && by && strcmp(by, "query") != 0;
	if (strcmp(kind, "verb") == 0 || strcmp(kind, "post") == 0)
		return !json_int(rec, "errno", 0) && !json_bool(rec, "late", false);
	return strcmp(kind, "hello") == 0;
}

bool bystander_record(const char *src, const json_t *rec, bool *ret_tells)
{
	const char *kind = json_str(rec, "kind");

	if (!plan_is_bystander(src) && !plan_is_bystander(json_str(rec, "obj")) && !plan_is_bystander(json_str(rec, "pair")) &&
	    !plan_is_bystander(json_str(rec, "what")))
		return false;
	*ret_tells = kind && !is_well(rec, kind);
	return true;
}

/* All lanes of a guest share its processors, which may be emulated. */
static json_int_t period_ns(const struct case_run *r)
{
	return json_int(planned(r), getenv("QPDRILL_GUEST") ? "guest_period_ns" : "period_ns", 0);
}

static void tell(struct case_run *r, const char *phase, const char *text)
{
	case_record(r, "controller",
		    json_pack("{s:s,s:s,s:s,s:I,s:s*}", "kind", PLAN_BYSTANDER, "obj", PLAN_BYSTANDER, "phase", phase, "period_ns",
			      period_ns(r), "text", text));
}

static void add_move(struct case_run *r, struct ops *ops, struct object *qp, const char *to)
{
	ops_add(ops, qp->agent,
		json_pack("{s:s,s:s,s:s,s:o,s:s,s:b}", "op", "qp_modify", "name", qp->name, "to", to, "set", link_attrs(r, qp, to),
			  "by", PLAN_BYSTANDER, "brief", 1));
}

static void add_traffic(struct case_run *r, struct ops *ops, const struct object *qp, bool prepare)
{
	const json_t *b = planned(r);
	bool sends = strcmp(qp->name, SENDER) == 0;
	json_int_t size = json_int(b, "size", 64);

	if (prepare)
		ops_add(ops, qp->agent,
			json_pack("{s:s,s:s,s:s,s:I,s:i,s:o,s:i}", "op", "traffic_prepare", "as", PLAN_BYSTANDER, "qp", qp->name,
				  "size", size, "tag", TAG, "mr", json_sprintf("%s.%s", qp->name, sends ? "trf" : "rx"), "receives",
				  0));
	else
		ops_add(ops, qp->agent,
			json_pack("{s:s,s:s,s:s,s:[s],s:I,s:i,s:i,s:i,s:o,s:s,s:b,s:I,s:I}", "op", "traffic", "as", PLAN_BYSTANDER,
				  "qp", qp->name, "ops", "SEND", "size", size, "tag", TAG, "depth", 8, "messages", 0, "mr",
				  json_sprintf("%s.%s", qp->name, sends ? "trf" : "rx"), "role", sends ? "tx" : "rx", "background",
				  1, "interval_ns", (json_int_t)(sends ? period_ns(r) : 0), "gap_ns",
				  (json_int_t)(sends ? 0 : json_int(b, "gap_ns", 0))));
}

static int both_ends(struct case_run *r, struct object *ends[2], struct error *e)
{
	ends[0] = ctl_object_find(r, WATCHER);
	ends[1] = ctl_object_find(r, SENDER);
	return ends[0] && ends[1] ? 0 : error_set(e, -ENOENT, "the plan has no %s and %s", SENDER, WATCHER);
}

/* From RESET, or from nothing. As few messages as there can be: the receiver listens before the sender starts. */
static int set_up(struct case_run *r, struct object *ends[2], struct error *e)
{
	struct ops made = { .head = NULL }, connected = { .head = NULL }, started = { .head = NULL };
	int rc;

	for (int i = 0; i < 2; i++) {
		link_create(r, &made, ends[i]);
		add_move(r, &made, ends[i], "INIT");
	}
	link_receives(r, &made, ends[0], PLAN_BYSTANDER);
	rc = ops_run(r, &made, 0, e);
	for (int i = 0; i < 2 && !rc; i++) {
		rc = handover_tell(r, ends[i], false, e);
		add_move(r, &connected, ends[i], "RTR");
		add_move(r, &connected, ends[i], "RTS");
		add_traffic(r, &connected, ends[i], true);
	}
	add_traffic(r, &connected, ends[0], false);
	add_traffic(r, &started, ends[1], false);
	if (!rc)
		rc = ops_run(r, &connected, 0, e);
	if (!rc)
		rc = ops_run(r, &started, 0, e);
	ops_free(&made);
	ops_free(&connected);
	ops_free(&started);
	return rc;
}

int bystander_start(struct case_run *r, struct error *e)
{
	struct object *ends[2];
	int rc;

	if (!planned(r))
		return 0;
	rc = both_ends(r, ends, e);
	if (!rc)
		rc = set_up(r, ends, e);
	if (rc)
		return error_prefix(e, rc, "the bystander cannot be set up (`bystander: none` does without)");
	r->bystander.runs = true;
	tell(r, "start", NULL);
	return 0;
}

static void add_to_both(struct ops *ops, struct object *const ends[2], const json_t *req)
{
	for (int i = 0; i < 2; i++) {
		json_t *one = json_deep_copy(req);

		json_object_set_new(one, strcmp(json_str(req, "op"), "qp_query") == 0 ? "name" : "qp", json_string(ends[i]->name));
		ops_add(ops, ends[i]->agent, one);
	}
}

static json_t *stop_request(void)
{
	return json_pack("{s:s,s:s,s:I}", "op", "traffic_stop", "as", PLAN_BYSTANDER, "deadline_ns", (json_int_t)STOP_NS);
}

void bystander_stop_add(struct case_run *r, struct ops *ops)
{
	struct object *ends[2];
	json_t *stop, *query;

	if (!r->bystander.runs || both_ends(r, ends, NULL))
		return;
	stop = stop_request();
	query = json_pack("{s:s,s:s}", "op", "qp_query", "by", "query");
	add_to_both(ops, ends, stop);
	add_to_both(ops, ends, query);
	json_decref(stop);
	json_decref(query);
}

void bystander_stopped(struct case_run *r)
{
	if (r->bystander.runs)
		tell(r, "stop", NULL);
	r->bystander.runs = false;
}

static bool reaches(const struct fault *f)
{
	return fault_blast_of(f->ops, f->args) != FAULT_BLAST_PAIR;
}

/* Nobody waits for the answer: the record of the statistics comes by itself. */
static void mark(struct case_run *r, const struct fault *f, const char *what)
{
	struct object *ends[2];
	char phase[CTL_NAME_MAX + 16];

	if (both_ends(r, ends, NULL))
		return;
	snprintf(phase, sizeof phase, "during:%s", f->as);
	for (int i = 0; i < 2; i++) {
		struct ctl_agent *a = agent_find(r, ends[i]->agent);
		struct request *q = NULL;

		if (!agent_unreachable(a) &&
		    agent_send(a,
			       json_pack("{s:s,s:s,s:s,s:s,s:s}", "op", "traffic_phase", "as", PLAN_BYSTANDER, "qp", ends[i]->name,
					 "phase", phase, "what", what),
			       &q) == 0)
			ctl_request_free(a, q);
	}
}

static bool is_answered(void *user)
{
	return ((struct request *)user)->done;
}

/* What was sent may need its retransmissions on a link that another fault has hold of: that is not waited for. */
static void silence(struct case_run *r, bool on)
{
	const struct object *sender = ctl_object_find(r, SENDER);
	struct ctl_agent *a = sender ? agent_find(r, sender->agent) : NULL;
	struct request *q = NULL;

	if (!a || agent_unreachable(a) ||
	    agent_send(a, json_pack("{s:s,s:s,s:s,s:b}", "op", "traffic_pause", "as", PLAN_BYSTANDER, "qp", sender->name, "on", on),
		       &q))
		return;
	case_wait(r, is_answered, q, now_ns() + SILENCE_NS);
	ctl_request_free(a, q);
}

void bystander_fault_begins(struct case_run *r, const struct fault *f)
{
	if (!r->bystander.runs)
		return;
	if (reaches(f))
		mark(r, f, "begin");
	if (f->ops->counts_link && !r->bystander.quiet++)
		silence(r, true);
}

/* Its traffic is stopped first, so that what it has seen so far is on record. */
static void revive(struct case_run *r)
{
	struct object *ends[2];
	struct ops ops = { .head = NULL };
	struct error e = { "" };
	int rc = both_ends(r, ends, &e);
	json_t *stop;

	if (rc)
		return;
	stop = stop_request();
	add_to_both(&ops, ends, stop);
	json_decref(stop);
	ops_run(r, &ops, ANSWER_NS, NULL);
	ops_free(&ops);
	for (int i = 0; i < 2; i++)
		add_move(r, &ops, ends[i], "RESET");
	rc = ops_run(r, &ops, 0, &e);
	ops_free(&ops);
	r->bystander.ended = false;
	if (!rc)
		rc = set_up(r, ends, &e);
	if (rc)
		r->bystander.runs = false;
	tell(r, rc ? "gone" : "again", rc ? e.text : NULL);
}

void bystander_fault_ends(struct case_run *r, const struct fault *f)
{
	if (!r->bystander.runs)
		return;
	if (reaches(f))
		mark(r, f, "end");
	if (f->ops->counts_link && !--r->bystander.quiet && !r->bystander.ended)
		silence(r, false);
	if (r->bystander.ended && reaches(f) && r->step > 0)
		revive(r);
}
