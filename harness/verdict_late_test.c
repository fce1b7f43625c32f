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
} rows[] = {
	{ "an end of retries that is expected", RETRY_EXC, "absent", 12, 70, NULL, "pass", NULL },
	{ "one that is not, on a machine in time", SUCCESS, "intact", 12, 0, NULL, "fail", "seen RETRY_EXC_ERR" },
	{ "late, but by less than the retries take", SUCCESS, "intact", 12, 67, NULL, "fail", "seen RETRY_EXC_ERR" },
	{ "late by more", SUCCESS, "intact", 12, 68, NULL, "inconclusive", TURN },
	{ "retries that take longer", SUCCESS, "intact", 14, 68, NULL, "fail", "seen RETRY_EXC_ERR" },
	{ "retries that never end", SUCCESS, "intact", 0, 68, NULL, "fail", "can never come" },
	{ "a completion that no step speaks of", NULL, NULL, 12, 70, NULL, "inconclusive", TURN },
	{ "the same in time", NULL, NULL, 12, 20, NULL, "fail", "unexpected RETRY_EXC_ERR" },
	{ "it is expected, and something else is not", RETRY_EXC, "intact", 12, 70, NULL, "fail", "payload" },
	{ "the kernel complains as well", SUCCESS, "intact", 12, 70, "WARNING: at rxe_comp.c", "fail", "WARNING: at rxe_comp.c" },
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

static const struct test_case cases[] = {
	{ "retries that lateness may have spent", test_spent_retries },
};

TEST_MAIN("verdict_late", cases)
