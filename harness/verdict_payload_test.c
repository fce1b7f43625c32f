/* SPDX-License-Identifier: MIT */
/* A message whose completion says SUCCESS, and that was not there when it was looked at first, and was when it was looked at again.
 */
#include "verdict_rig.h"

static void set_all(json_t *records, const char *kind, const char *key, const char *value)
{
	json_t *r;
	size_t i;

	json_array_foreach(records, i, r)
		if (!strcmp(json_str(r, "kind"), kind) && json_str(r, "as") && !strcmp(json_str(r, "as"), "ghost"))
			json_object_set_new(r, key, json_string(value));
}

/* The second look comes right after the first, in the same step. */
static void bring_together(json_t *records)
{
	size_t first = SIZE_MAX, second = SIZE_MAX, i;
	json_t *r;

	json_array_foreach(records, i, r)
		if (!strcmp(json_str(r, "kind"), "payload") && first == SIZE_MAX)
			first = i;
		else if (!strcmp(json_str(r, "kind"), "payload") && second == SIZE_MAX)
			second = i;
	CU_ASSERT_FATAL(first != SIZE_MAX && second != SIZE_MAX);
	r = json_incref(json_array_get(records, second));
	json_object_set(r, "step", json_object_get(json_array_get(records, first), "step"));
	json_object_set(r, "t", json_object_get(json_array_get(records, first), "t"));
	json_array_remove(records, second);
	json_array_insert_new(records, first + 1, r);
	renumber(records);
}

static bool says_false_success(const json_t *verdict)
{
	const json_t *f;
	size_t i;

	json_array_foreach(json_object_get(verdict, "findings"), i, f)
		if (json_has(f, "check", "payload") && json_str(f, "text") && strstr(json_str(f, "text"), "SUCCESS for `ghost`"))
			return true;
	return false;
}

static void which_look_counts(void)
{
	static const struct {
		const char *op;
		bool together, found;
	} rows[] = {
		{ "SEND", false, true }, { "READ", false, true }, /* a step later it is another question */
		{ "SEND", true, false }, { "WRITE", true, false }, { "READ", true, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct input in;
		json_t *v;

		input_load("payload-looked-at-and-not-there", &in);
		set_all(in.records, "post", "op", rows[i].op);
		set_all(in.records, "payload", "op", rows[i].op);
		if (rows[i].together)
			bring_together(in.records);
		v = judge(&in, false);
		CU_ASSERT(!rows[i].found || is_verdict(v, "fail"));
		ROW_ASSERT(says_false_success(v) == rows[i].found, "%s, %s", rows[i].op,
			   rows[i].together ? "in one step" : "in two");
		json_decref(v);
		input_release(&in);
	}
}

static const struct test_case tests[] = {
	{ "which look counts", which_look_counts },
};

int main(void)
{
	return test_run("verdict_payload", tests, sizeof(tests) / sizeof(tests[0]));
}
