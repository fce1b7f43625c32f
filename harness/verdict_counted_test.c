/* SPDX-License-Identifier: MIT */
/* A pattern that counts flushes, and more of them than it names: three of seven receives in `flushes-counted-too-few`. */
#include "verdict_rig.h"

#include <stdio.h>

/* The index of the first record of that kind with that value, in that step (0: in any). */
static size_t find(const json_t *records, const char *kind, const char *key, const char *value, int step)
{
	const json_t *r;
	size_t i;

	json_array_foreach((json_t *)records, i, r)
		if (json_has(r, "kind", kind) && json_has(r, key, value) && (!step || json_int(r, "step", 0) == step))
			return i;
	CU_FAIL_FATAL("no such record");
	return 0;
}

static void cut(json_t *r, unsigned from, unsigned to)
{
	char id[32];

	snprintf(id, sizeof(id), "0x100022%08x", from);
	json_object_set_new(r, "first", json_string(id));
	snprintf(id, sizeof(id), "0x100022%08x", to);
	json_object_set_new(r, "last", json_string(id));
	json_object_set_new(r, "count", json_integer(to - from + 1));
	if (json_object_get(r, "accepted"))
		json_object_set_new(r, "accepted", json_integer(to - from + 1));
}

/* The record is of its first n only; what is left, as another one. */
static json_t *split(json_t *records, const char *kind, unsigned n)
{
	json_t *r = json_array_get(records, find(records, kind, "obj", "p.b.recv", 0)), *rest = json_deep_copy(r);

	cut(r, 0, n - 1);
	cut(rest, n, 6);
	return rest;
}

static void insert_after(json_t *records, size_t at, json_t *r)
{
	json_object_set(r, "t", json_object_get(json_array_get(records, at), "t"));
	json_object_set(r, "t_last", json_object_get(r, "t"));
	json_array_insert_new(records, at + 1, r);
}

static json_t *expectation(const struct input *in)
{
	return json_array_get(json_object_get(in->plan, "steps"), 2);
}

static json_t *item(const struct input *in)
{
	return json_array_get(json_object_get(json_object_get(expectation(in), "recv_wc"), "seq"), 0);
}

/* Two of them come when the expectation is over. */
static void late(struct input *in)
{
	json_t *rest = split(in->records, "wc", 5);

	insert_after(in->records, find(in->records, "step", "phase", "end", 3), rest);
}

static void no_upper_bound(struct input *in)
{
	late(in);
	json_object_del(item(in), "max");
}

static void the_rest(struct input *in)
{
	late(in);
	json_object_del(item(in), "max");
	json_object_set_new(item(in), "min", json_integer(0));
	json_object_set_new(item(in), "rest", json_true());
}

static void another_error_first(struct input *in)
{
	json_t *rest = split(in->records, "wc", 1);
	size_t at = find(in->records, "wc", "obj", "p.b.recv", 0);

	json_object_set_new(json_array_get(in->records, at), "status", json_string("LOC_LEN_ERR"));
	insert_after(in->records, at, rest);
	json_object_set_new(item(in), "any", json_pack("[s]", "LOC_LEN_ERR"));
	json_object_set_new(item(in), "min", json_integer(1));
	json_object_set_new(item(in), "max", json_integer(1));
}

/* Two are posted, and flushed, when the expectation is over. */
static void posted_afterwards(struct input *in)
{
	json_t *posted = split(in->records, "post", 5);

	late(in);
	insert_after(in->records, find(in->records, "step", "phase", "end", 3), posted);
}

static void allowed_before(struct input *in)
{
	size_t at = find(in->records, "step", "phase", "begin", 2);
	json_t *begin = json_deep_copy(json_array_get(in->records, at));

	json_array_append_new(json_object_get(in->plan, "steps"),
			      json_pack("{s:[s],s:s,s:i,s:i,s:{s:[s]}}", "at", "p.b", "do", "allow", "line", 7, "n", 4, "recv_wc",
					"all", "WR_FLUSH_ERR"));
	json_object_set_new(begin, "step", json_integer(4));
	json_object_set_new(begin, "do", json_string("allow"));
	insert_after(in->records, at - 1, begin);
}

static void one_of_several(struct input *in)
{
	json_t *x = expectation(in);

	json_object_set_new(x, "any",
			    json_pack("[{s:O,s:O},{s:O,s:s}]", "at", json_object_get(x, "at"), "recv_wc",
				      json_object_get(x, "recv_wc"), "at", json_object_get(x, "at"), "qp", "SQE"));
	json_object_del(x, "recv_wc");
	json_object_del(x, "at");
	json_object_del(x, "qp");
}

static void of_a_post(struct input *in)
{
	json_t *x = expectation(in);

	json_object_set_new(json_array_get(in->records, find(in->records, "post", "obj", "p.b.recv", 0)), "as", json_string("r"));
	json_object_set_new(x, "of", json_string("r"));
	json_object_del(x, "at");
	json_object_del(x, "qp");
}

/* Of another post, which it does not speak of, are two. */
static void of_one_post(struct input *in)
{
	json_t *other = split(in->records, "post", 5);

	of_a_post(in);
	json_object_set_new(other, "as", json_string("q"));
	insert_after(in->records, find(in->records, "post", "obj", "p.b.recv", 0), other);
}

/* What a later step takes is not left over. */
static void named_later(struct input *in)
{
	json_t *x = json_deep_copy(expectation(in)), *end;
	size_t at = find(in->records, "step", "phase", "end", 3);
	static const char *const phases[] = { "begin", "end" };

	json_object_set_new(x, "n", json_integer(4));
	json_array_append_new(json_object_get(in->plan, "steps"), x);
	for (size_t i = 0; i < 2; i++) {
		end = json_deep_copy(json_array_get(in->records, at));
		json_object_set_new(end, "step", json_integer(4));
		json_object_set_new(end, "phase", json_string(phases[i]));
		insert_after(in->records, at + i, end);
	}
}

static const char *warning(const json_t *verdict, unsigned *ret_n)
{
	const char *text = NULL;
	const json_t *f;
	size_t i;

	*ret_n = 0;
	json_array_foreach(json_object_get(verdict, "findings"), i, f)
		if (json_has(f, "severity", "warning") && strstr(json_str(f, "text"), "but those that the pattern names")) {
			text = json_str(f, "text");
			++*ret_n;
		}
	return text ? text : "";
}

static void what_is_left_over_is_told(void)
{
	static const struct {
		const char *name;
		void (*change)(struct input *in);
		const char *seen; /* NULL: nothing */
	} rows[] = {
		{ "as it is", NULL,
		  "p.b: expected no WR_FLUSH_ERR on the receive queue but those that the pattern names, seen 4 more" },
		{ "late", late, "seen 4 more" },
		{ "no upper bound", no_upper_bound, NULL },
		{ "the rest", the_rest, NULL },
		{ "another error first", another_error_first, NULL },
		{ "posted afterwards", posted_afterwards, "seen 2 more" },
		{ "allowed before", allowed_before, NULL },
		{ "one of several", one_of_several, "seen 4 more" },
		{ "of a post", of_a_post, "seen 4 more" },
		{ "of one post", of_one_post, "seen 2 more" },
		{ "named later", named_later, "seen 1 more" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct input in;
		const char *text;
		json_t *v;
		unsigned n;

		input_load("flushes-counted-too-few", &in);
		if (rows[i].change)
			rows[i].change(&in);
		renumber(in.records);
		v = judge(&in, false);
		CU_ASSERT(rows[i].change || is_verdict(v, "pass"));
		text = warning(v, &n);
		ROW_ASSERT(n == (rows[i].seen != NULL), "%s: %u warnings", rows[i].name, n);
		ROW_ASSERT(!rows[i].seen || strstr(text, rows[i].seen), "%s: %s", rows[i].name, text);
		json_decref(v);
		input_release(&in);
	}
}

static const struct test_case tests[] = {
	{ "what is left over is told", what_is_left_over_is_told },
};

int main(void)
{
	return test_run("verdict_counted", tests, sizeof(tests) / sizeof(tests[0]));
}
