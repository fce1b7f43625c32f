/* SPDX-License-Identifier: MIT */
#include "pause.h"

#include "verdict_rig.h"

static json_t *plan_of(void)
{
	return json_loads("{\"case\":\"t/x\",\"file\":\"scenarios/t/x.yaml\",\"steps\":["
			  "{\"n\":1,\"do\":\"connect\",\"line\":6},"
			  "{\"n\":2,\"do\":\"post\",\"line\":7,\"as\":\"first\"},"
			  "{\"n\":3,\"do\":\"post\",\"line\":8,\"as\":\"recover\"},"
			  "{\"n\":4,\"do\":\"together\",\"line\":9,\"steps\":[{\"n\":5,\"do\":\"modify\",\"line\":10}]},"
			  "{\"n\":6,\"do\":\"repeat\",\"line\":11,\"steps\":[{\"n\":7,\"do\":\"wait\",\"line\":12}]},"
			  "{\"n\":8,\"do\":\"recover\",\"line\":13}]}",
			  0, NULL);
}

static const struct {
	const char *text;
	int step; /* 0: refused */
	const char *why;
} names[] = {
	{ "1", 1, NULL },
	{ "connect", 1, NULL },
	{ "first", 2, NULL },
	/* A name goes before what a step does. */
	{ "recover", 3, NULL },
	{ "8", 8, NULL },
	{ "together", 4, NULL },
	{ "wait", 7, NULL },
	{ ":13", 8, NULL },
	{ "x.yaml:7", 2, NULL },
	{ "t/x.yaml:7", 2, NULL },
	{ "scenarios/t/x.yaml:7", 2, NULL },
	{ "/t/x.yaml:7", 0, "no step" },
	{ "y.yaml:7", 0, "no step" },
	{ "xx.yaml:7", 0, "no step" },
	{ "x.yaml:99", 0, "no step" },
	{ "post", 0, "2 steps" },
	{ "5", 0, "step 4 is the first" },
	{ "9", 0, "no step" },
	{ "0", 0, "no step" },
	{ "-1", 0, "no step" },
	{ "", 0, "no step" },
	{ "nope", 0, "no step" },
};

static void test_steps_by_name(void)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		json_t *plan = plan_of();
		struct error e = { "" };
		int rc = pause_plan(plan, names[i].text, 7, &e);

		ROW_ASSERT((rc == 0) == (names[i].step > 0), "'%s': %d %s", names[i].text, rc, e.text);
		ROW_ASSERT(json_int(json_object_get(plan, "pause"), "step", 0) == names[i].step, "'%s'", names[i].text);
		ROW_ASSERT(pause_max_ns(plan) == (rc ? 0 : 7), "'%s'", names[i].text);
		ROW_ASSERT(!names[i].why || strstr(e.text, names[i].why), "'%s': %s", names[i].text, e.text);
		json_decref(plan);
	}
}

/* A case whose step 4 wants another completion than comes, or has it later than its window, where the machine was in time. */
static const struct {
	const char *name;
	int before; /* a pause before this step; 0: none */
	bool fails, too_late, complains;
	const char *verdict;
} rows[] = {
	{ "no pause", 0, true, true, false, "fail" },
	{ "a pause, and then it failed", 3, true, true, false, "inconclusive" },
	{ "it had failed before", 6, true, true, false, "fail" },
	{ "a window that is missed", 0, false, true, false, "fail" },
	{ "one that spans a pause", 3, false, true, false, "inconclusive" },
	{ "the kernel complained after it", 3, true, true, true, "fail" },
	{ "nothing failed", 3, false, false, false, "pass" },
	{ "nothing failed but the kernel", 3, false, false, true, "fail" },
};

static void add_pause(json_t *records, int before)
{
	const json_t *r;
	size_t i;

	json_array_foreach(records, i, r)
		if (json_has(r, "kind", "step") && json_has(r, "phase", "begin") && json_int(r, "step", 0) == before)
			break;
	for (int end = 1; end >= 0; end--) {
		json_t *pause = json_pack("{s:s,s:s,s:i,s:I,s:I,s:b,s:s,s:s,s:i}", "kind", "pause", "phase", end ? "end" : "begin",
					  "before", before, "max_ns", (json_int_t)9000000000, "paused_ns", (json_int_t)2000000000,
					  "asked", true, "src", "controller", "clk", "boot/time", "v", 1);

		MUST(pause && i < json_array_size(records));
		json_object_set(pause, "t", json_object_get(json_array_get(records, i), "t"));
		json_object_set_new(pause, "step", json_integer(before - 1));
		json_array_insert_new(records, i, pause);
	}
}

static void change(struct input *in, bool fails, bool too_late, bool complains)
{
	json_t *expect = json_array_get(json_object_get(in->plan, "steps"), 3), *r;
	size_t i;

	if (fails)
		json_object_set_new(expect, "wc", json_loads("{\"all\":[\"SUCCESS\"]}", 0, NULL));
	json_array_foreach(in->records, i, r)
		if (too_late && json_bool(r, "witness", false))
			json_object_set_new(r, "late_max_ns", json_integer(0));
	if (complains)
		json_array_insert_new(in->records, json_array_size(in->records) - 1,
				      json_pack("{s:I,s:s,s:s,s:s,s:i,s:s,s:i}", "t", (json_int_t)1402000000, "src", "kernel",
						"clk", "boot/time", "kind", "klog", "level", 4, "text", "WARNING: at rxe_comp.c",
						"step", -1));
}

static void test_verdicts(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct input in;
		const char *seen;
		json_t *v;

		input_load("silent-late-on-a-busy-machine", &in);
		change(&in, rows[i].fails, rows[i].too_late, rows[i].complains);
		if (rows[i].before)
			add_pause(in.records, rows[i].before);
		renumber(in.records);
		v = judge(&in, false);
		seen = json_str(v, "seen");
		ROW_ASSERT(is_verdict(v, rows[i].verdict), "%s: is %s: %s", rows[i].name, json_str(v, "verdict"),
			   json_str(v, "headline"));
		ROW_ASSERT(!rows[i].before == !(seen && strstr(seen, "stood still for 2.00 s before step")), "%s: %s", rows[i].name,
			   seen);
		ROW_ASSERT(json_array_size(json_object_get(v, "pauses")) == (rows[i].before > 0), "%s", rows[i].name);
		json_decref(v);
		input_release(&in);
	}
}

static const struct test_case cases[] = {
	{ "a step by its number, name, line or deed", test_steps_by_name },
	{ "what fails after a pause is inconclusive", test_verdicts },
};

TEST_MAIN("pause", cases)
