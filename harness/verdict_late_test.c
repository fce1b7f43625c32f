/* SPDX-License-Identifier: MIT */
/* A connection whose retries end after 67 ms (timeout 12, retry_cnt 3), on machines that were late by more and by less. */
#include "verdict_rig.h"

#define SUCCESS "{\"all\":[\"SUCCESS\"]}"
#define RETRY_EXC "{\"all\":[\"RETRY_EXC_ERR\"]}"
#define TURN "p.a: unexpected RETRY_EXC_ERR, but all retries may be over after 67.1 ms (timeout 12, retry_cnt 3)"
#define MS 1000000

static const struct row {
	const char *name;
	const char *wc;      /* that step 4 expects; NULL: it only waits */
	const char *payload; /* that it expects */
	int timeout;         /* of the QPs, as they were queried */
	int late_ms;         /* the witness timers */
	const char *warning; /* of the kernel, besides */
	const char *verdict, *text;
	bool cleared; /* the fault, before anything is posted */
} rows[] = {
	{ "an end of retries that is expected", RETRY_EXC, "absent", 12, 70, NULL, "pass", NULL, false },
	{ "one that is not, on a machine in time", SUCCESS, "intact", 12, 0, NULL, "fail", "seen RETRY_EXC_ERR", false },
	{ "late, but by less than the retries take", SUCCESS, "intact", 12, 67, NULL, "fail", "seen RETRY_EXC_ERR", false },
	{ "late by more", SUCCESS, "intact", 12, 68, NULL, "inconclusive", TURN, false },
	{ "retries that take longer", SUCCESS, "intact", 14, 68, NULL, "fail", "seen RETRY_EXC_ERR", false },
	{ "retries that never end", SUCCESS, "intact", 0, 68, NULL, "fail", "can never come", false },
	{ "a completion that no step speaks of", NULL, NULL, 12, 70, NULL, "inconclusive", TURN, false },
	{ "the same in time", NULL, NULL, 12, 20, NULL, "fail", "unexpected RETRY_EXC_ERR", false },
	{ "it is expected, and something else is not", RETRY_EXC, "intact", 12, 70, NULL, "fail", "payload", false },
	{ "late by less, and no fault acts any more", SUCCESS, "intact", 12, 66, NULL, "inconclusive", TURN, true },
	{ "the same on a machine that is less late", SUCCESS, "intact", 12, 16, NULL, "fail", "seen RETRY_EXC_ERR", true },
	{ "the kernel complains as well", SUCCESS, "intact", 12, 70, "WARNING: at rxe_comp.c", "fail", "WARNING: at rxe_comp.c",
	  false },
};

static void change_records(json_t *records, const struct row *row)
{
	json_t *r;
	size_t i;

	json_array_foreach(records, i, r) {
		json_t *queried = json_object_get(r, "queried");

		if (json_bool(r, "witness", false))
			json_object_set_new(r, "late_max_ns", json_integer((json_int_t)row->late_ms * MS));
		if (queried && json_int(queried, "timeout", 0) == 12)
			json_object_set_new(queried, "timeout", json_integer(row->timeout));
	}
	json_array_foreach(records, i, r)
		if (row->cleared && json_int(r, "step", 0) == 3)
			break;
	if (row->cleared)
		json_array_insert_new(records, i,
				      json_pack("{s:I,s:s,s:s,s:s,s:s,s:s,s:[s],s:s,s:s,s:s,s:{},s:i}", "t", (json_int_t)1001185000,
						"src", "controller", "clk", "boot/time", "kind", "fault", "as", "skewed", "name",
						"psn_mismatch", "at", "p.a", "phase", "clear", "detection", "silent", "blast",
						"pair", "evidence", "step", 2));
	if (row->warning)
		json_array_insert_new(records, json_array_size(records) - 1,
				      json_pack("{s:I,s:s,s:s,s:s,s:i,s:s,s:i}", "t", (json_int_t)1402000000, "src", "kernel",
						"clk", "boot/time", "kind", "klog", "level", 4, "text", row->warning, "step", -1));
	renumber(records);
}

/* What should have succeeded leaves both ends connected. */
static void change_plan(json_t *plan, const struct row *row)
{
	json_t *steps = json_object_get(plan, "steps"), *expect = json_array_get(steps, 3);

	json_object_del(expect, "payload");
	if (row->payload)
		json_object_set_new(expect, "payload", json_string(row->payload));
	if (row->wc) {
		json_object_set_new(expect, "wc", json_loads(row->wc, 0, NULL));
		if (!strcmp(row->wc, SUCCESS))
			json_object_set_new(json_array_get(steps, 4), "qp", json_string("RTS"));
	} else {
		json_object_del(expect, "of");
		json_object_del(expect, "wc");
		json_object_set_new(expect, "do", json_string("wait"));
	}
}

static bool says(const json_t *v, const char *severity, const char *text)
{
	const json_t *f;
	size_t i;

	json_array_foreach(json_object_get(v, "findings"), i, f)
		if (json_has(f, "severity", severity) && strstr(json_str(f, "text"), text))
			return true;
	return false;
}

static void test_spent_retries(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		struct input in;
		json_t *v;

		input_load("silent-late-on-a-busy-machine", &in);
		change_plan(in.plan, row);
		change_records(in.records, row);
		v = judge(&in, false);
		ROW_ASSERT(is_verdict(v, row->verdict), "%s: wanted %s, is %s: %s", row->name, row->verdict, json_str(v, "verdict"),
			   json_str(v, "headline"));
		ROW_ASSERT(!row->text || says(v, row->verdict, row->text), "%s: no finding says: %s (%s)", row->name, row->text,
			   json_str(v, "headline"));
		json_decref(v);
		input_release(&in);
	}
}

/* What comes after the end of the retries in the same case: it polled its first error at 1401.23 ms. */
static const struct after {
	const char *name;
	int late_ms;
	int flushed;        /* of the four receives of p.a that were posted at first */
	json_int_t more_ns; /* two more were posted to it at that time and have no end; 0: none */
	const char *status; /* of another completion of p.a */
	const char *wr_id;  /* its */
	bool peer;          /* p.b is flushed, and nothing says why */
	const char *verdict, *text;
} afters[] = {
	{ "nothing else", 70, 4, 0, NULL, NULL, false, "inconclusive", TURN },
	{ "receives posted in ERR stay", 70, 4, 1401285000, NULL, NULL, false, "inconclusive", TURN },
	{ "on a machine in time", 20, 4, 1401285000, NULL, NULL, false, "fail", "seen 2 of them without one at the end" },
	{ "they were posted before", 70, 4, 1401225000, NULL, NULL, false, "fail", "seen 2 of them without one at the end" },
	{ "of those posted before one stays too", 70, 3, 1401285000, NULL, NULL, false, "fail", "seen 1 of them without one" },
	{ "only one of those posted before", 70, 3, 0, NULL, NULL, false, "fail", "seen 1 of them without one at the end" },
	{ "another cause as well", 70, 4, 1401285000, "LOC_PROT_ERR", "0x10002200000004", false, "fail", "1 of them without one" },
	{ "a receive is flushed twice", 70, 4, 1401285000, "WR_FLUSH_ERR", "0x10002200000000", false, "fail", "a second one" },
	{ "an unknown wr_id", 70, 4, 0, "WR_FLUSH_ERR", "0x10002200000044", false, "fail", "an unknown wr_id" },
	{ "the peer is flushed without a cause", 70, 4, 0, NULL, NULL, true, "inconclusive", TURN },
	{ "the same in time", 20, 4, 0, NULL, NULL, true, "fail", "p.b: flush without explanation" },
};

/* The case ends in step 5, with its QPs as they are. */
static void end_early(struct input *in, const struct after *row)
{
	size_t i;

	json_array_remove(json_object_get(in->plan, "steps"), 5);
	for (i = json_array_size(in->records); i-- > 0;) {
		json_t *r = json_array_get(in->records, i);

		if (json_int(r, "step", 0) == 6) {
			json_array_remove(in->records, i);
			continue;
		}
		if (json_int(r, "life", 0) == 2)
			json_object_set_new(r, "life", json_integer(1));
		if (json_int(r, "step", 0) == -1 && json_has(r, "kind", "state") && (row->peer || json_has(r, "obj", "p.a")))
			json_object_set_new(r, "new", json_string("ERR"));
		if (json_has(r, "kind", "wc") && json_has(r, "obj", "p.a.recv"))
			json_object_update_new(r, json_pack("{s:i, s:o}", "count", row->flushed, "last",
							    json_sprintf("0x1000220000000%d", row->flushed - 1)));
	}
}

static json_t *record_of(json_int_t t_ns, const char *agent, const char *kind, const char *obj, const char *first, const char *last,
			 int count)
{
	return json_pack("{s:i, s:I, s:s, s:s, s:i, s:i, s:i, s:s, s:s, s:i, s:s, s:s, s:i, s:I}", "v", 1, "t", t_ns, "clk",
			 "boot/time", "src", agent, "boot", 1, "lane", 0, "step", 5, "kind", kind, "obj", obj, "life", 1, "first",
			 first, "last", last, "count", count, "t_last", t_ns);
}

static json_t *completion_of(json_int_t t_ns, const char *agent, const char *end, const char *status, const char *first,
			     const char *last, int count)
{
	char queue[32], cq[32];
	json_t *r;

	snprintf(queue, sizeof(queue), "%s.recv", end);
	snprintf(cq, sizeof(cq), "%s.rcq", end);
	r = record_of(t_ns, agent, "wc", queue, first, last, count);
	json_object_update_new(r, json_pack("{s:s, s:s, s:i, s:i}", "cq", cq, "status", status, "vendor_err", 0, "qpn", 17));
	return r;
}

/* Behind what step 5 has seen. */
static void add_records(json_t *records, const struct after *row)
{
	size_t at = 0;
	json_t *r;

	while (at < json_array_size(records) && json_int(json_array_get(records, at), "step", 0) != -1)
		at++;
	if (row->more_ns) {
		r = record_of(row->more_ns, "agent/a", "post", "p.a.recv", "0x10002200000004", "0x10002200000005", 2);
		json_object_update_new(r, json_pack("{s:s, s:i, s:b, s:i, s:i, s:s}", "op", "RECV", "size", 64, "signaled", 1,
						    "accepted", 2, "errno", 0, "by", "traffic"));
		json_array_insert_new(records, at++, r);
	}
	if (row->status)
		json_array_insert_new(records, at++,
				      completion_of(1401286000, "agent/a", "p.a", row->status, row->wr_id, row->wr_id, 1));
	if (row->peer)
		json_array_insert_new(
			records, at++,
			completion_of(1401287000, "agent/b", "p.b", "WR_FLUSH_ERR", "0x10002200000000", "0x10002200000003", 4));
}

static void test_what_follows(void)
{
	for (size_t i = 0; i < sizeof(afters) / sizeof(afters[0]); i++) {
		const struct after *row = &afters[i];
		const struct row base = { .wc = SUCCESS, .timeout = 12, .late_ms = row->late_ms };
		struct input in;
		json_t *v;

		input_load("silent-late-on-a-busy-machine", &in);
		change_plan(in.plan, &base);
		end_early(&in, row);
		add_records(in.records, row);
		change_records(in.records, &base);
		v = judge(&in, false);
		ROW_ASSERT(is_verdict(v, row->verdict), "%s: wanted %s, is %s: %s", row->name, row->verdict, json_str(v, "verdict"),
			   json_str(v, "headline"));
		ROW_ASSERT(says(v, row->verdict, row->text), "%s: no finding says: %s (%s)", row->name, row->text,
			   json_str(v, "headline"));
		json_decref(v);
		input_release(&in);
	}
}

/* The fault of that record is another one, which answers for the end of the retries however late the machine is; or does not. */
static const struct by_fault {
	const char *name, *fault, *at, *loss;
	bool behind_connect;    /* it is injected there, else before it */
	int for_ms, clear_step; /* clear_step: it is cleared as that one begins; 0: never */
	const char *verdict, *text;
} by_faults[] = {
	{ "a peer that was taken to ERR", "qp_error", "p.b", NULL, true, 0, 0, "fail", "seen RETRY_EXC_ERR" },
	{ "in a life before", "qp_error", "p.b", NULL, false, 0, 0, "inconclusive", TURN },
	{ "the end itself", "qp_error", "p.a", NULL, true, 0, 0, "inconclusive", TURN },
	{ "all packets are lost", "netem", "p.a", "100%", true, 0, 0, "fail", "seen RETRY_EXC_ERR" },
	{ "all answers", "netem", "p.b", "100%", true, 0, 5, "fail", "seen RETRY_EXC_ERR" },
	{ "some packets", "netem", "p.a", "50%", true, 0, 0, "inconclusive", TURN },
	{ "all of them for a while", "netem", "p.a", "100%", true, 50, 0, "inconclusive", TURN },
	{ "all of them until the expectation began", "netem", "p.a", "100%", true, 0, 4, "inconclusive", TURN },
	{ "no link", "link_down", "p.b", NULL, true, 0, 0, "fail", "seen RETRY_EXC_ERR" },
	{ "another silent fault", "neighbour", "p.a", NULL, true, 0, 0, "inconclusive", TURN },
};

static size_t first_of_step(const json_t *records, int step)
{
	size_t i = 0;

	while (i < json_array_size(records) && json_int(json_array_get(records, i), "step", 0) != step)
		i++;
	return i;
}

static void give_fault(struct input *in, const struct by_fault *row)
{
	const char *blast = strcmp(row->fault, "qp_error") ? "link" : "pair";
	json_t *step = json_array_get(json_object_get(in->plan, "steps"), 0), *r, *cleared = NULL;
	json_int_t t = 1001150000;

	json_object_update_new(step, json_pack("{s:s, s:s, s:{s:s, s:s?}}", "fault", row->fault, "blast", blast, "args", "at",
					       row->at, "loss", row->loss));
	if (row->for_ms)
		json_object_set_new(step, "for_ns", json_integer((json_int_t)row->for_ms * MS));
	for (size_t i = first_of_step(in->records, 1), n = 0; n < 4; n++) {
		r = json_array_get(in->records, row->behind_connect ? i : i + n);
		if (json_has(r, "kind", "fault"))
			json_object_update_new(r,
					       json_pack("{s:s, s:s, s:[s]}", "name", row->fault, "blast", blast, "at", row->at));
		if (!row->behind_connect)
			continue;
		json_incref(r);
		json_array_remove(in->records, i);
		json_object_set_new(r, "t", json_integer(t + (json_int_t)n * 10000));
		if (json_has(r, "kind", "fault"))
			cleared = r;
		json_array_insert_new(in->records, first_of_step(in->records, 3), r);
	}
	if (!row->clear_step || !cleared)
		return;
	cleared = json_deep_copy(cleared);
	json_object_set_new(cleared, "phase", json_string("clear"));
	r = json_array_get(in->records, first_of_step(in->records, row->clear_step));
	json_object_set(cleared, "t", json_object_get(r, "t"));
	json_array_insert_new(in->records, first_of_step(in->records, row->clear_step), cleared);
}

static void test_end_by_a_fault(void)
{
	const struct row base = { .wc = SUCCESS, .timeout = 12, .late_ms = 70 };

	for (size_t i = 0; i < sizeof(by_faults) / sizeof(by_faults[0]); i++) {
		const struct by_fault *row = &by_faults[i];
		struct input in;
		json_t *v;

		input_load("silent-late-on-a-busy-machine", &in);
		change_plan(in.plan, &base);
		give_fault(&in, row);
		change_records(in.records, &base);
		v = judge(&in, false);
		ROW_ASSERT(is_verdict(v, row->verdict), "%s: wanted %s, is %s: %s", row->name, row->verdict, json_str(v, "verdict"),
			   json_str(v, "headline"));
		ROW_ASSERT(says(v, row->verdict, row->text), "%s: no finding says: %s (%s)", row->name, row->text,
			   json_str(v, "headline"));
		json_decref(v);
		input_release(&in);
	}
}

static const struct test_case cases[] = {
	{ "retries that lateness may have spent", test_spent_retries },
	{ "what follows from their end, and what does not", test_what_follows },
	{ "a fault that answers for their end", test_end_by_a_fault },
};

TEST_MAIN("verdict_late", cases)
