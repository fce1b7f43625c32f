/* SPDX-License-Identifier: MIT */
/* Records that are not all there: neither that all was well is known then, nor that something was not. */
#include "verdict_rig.h"

#include <CUnit/Basic.h>

static const char *const whole[] = { "packets-recorded", "datagrams-recorded", "wire-pass", "psn-pass", "rnr-pass", "rkey-pass" };

/* As the controller writes it: its first record says that there is a last one. */
static void with_an_end(json_t *records)
{
	json_t *r;
	size_t i;

	json_array_foreach(records, i, r)
		if (json_has(r, "kind", "hello") && json_has(r, "src", "controller"))
			json_object_set_new(r, "ends", json_true());
	json_array_append_new(records, json_pack("{s:s,s:s,s:i}", "kind", "end", "src", "controller", "step", -1));
	renumber(records);
}

/* The verdict on what change leaves of the records at i; "": it is no verdict on the device. */
static const char *told(const struct input *in, void (*change)(json_t *records, size_t i), size_t i)
{
	static char text[16];
	struct input some = *in;
	json_t *v;

	some.records = json_copy(in->records);
	change(some.records, i);
	v = judge(&some, false);
	snprintf(text, sizeof(text), "%s", is_verdict(v, "error") || is_verdict(v, "inconclusive") ? "" : json_str(v, "verdict"));
	json_decref(v);
	json_decref(some.records);
	return text;
}

static void ends_before(json_t *records, size_t i)
{
	while (json_array_size(records) > i)
		json_array_remove(records, json_array_size(records) - 1);
}

static void is_missing(json_t *records, size_t i)
{
	json_array_remove(records, i);
}

static void is_there_twice(json_t *records, size_t i)
{
	json_array_insert(records, i, json_array_get(records, i));
}

static void whatever_is_missing_it_is_no_verdict(void)
{
	static const struct {
		const char *what;
		void (*change)(json_t *records, size_t i);
	} rows[] = { { "ends before", ends_before }, { "is without", is_missing }, { "has twice", is_there_twice } };

	for (size_t k = 0; k < sizeof(whole) / sizeof(*whole); k++) {
		struct input in;
		json_t *v;

		input_load(whole[k], &in);
		with_an_end(in.records);
		v = judge(&in, false);
		ROW_ASSERT(is_verdict(v, "pass") || is_verdict(v, "deviation"), "%s, whole: %s", whole[k], json_str(v, "verdict"));
		json_decref(v);
		for (size_t row = 0; row < sizeof(rows) / sizeof(*rows); row++)
			for (size_t i = 0; i < json_array_size(in.records); i++) {
				const char *text = told(&in, rows[row].change, i);

				ROW_ASSERT(!*text, "%s %s record %zu: %s", whole[k], rows[row].what, i + 1, text);
			}
		input_release(&in);
	}
}

/* Those that were written before there was a last record. */
static void records_without_that_word_are_not_held_to_it(void)
{
	for (size_t k = 0; k < sizeof(whole) / sizeof(*whole); k++) {
		struct input in;
		json_t *v;

		input_load(whole[k], &in);
		v = judge(&in, false);
		ROW_ASSERT(is_verdict(v, "pass") || is_verdict(v, "deviation"), "%s: %s", whole[k], json_str(v, "verdict"));
		json_decref(v);
		input_release(&in);
	}
}

static const struct test_case cases[] = {
	{ "whatever is missing, it is no verdict", whatever_is_missing_it_is_no_verdict },
	{ "records without that word are not held to it", records_without_that_word_are_not_held_to_it },
};

int main(void)
{
	return test_run("verdict_incomplete", cases, sizeof(cases) / sizeof(cases[0]));
}
