/* SPDX-License-Identifier: MIT */
/* What landed of what failed: a case whose one SEND failed and did not arrive, changed in one place. */
#include "verdict_rig.h"

static json_t *find(json_t *records, const char *kind, const char *as)
{
	json_t *r;
	size_t i;

	json_array_foreach(records, i, r)
		if (!strcmp(json_str(r, "kind"), kind) && (!as || (json_str(r, "as") && !strcmp(json_str(r, "as"), as))))
			return r;
	CU_FAIL_FATAL("the record to change is not there");
	return NULL;
}

static void set(json_t *r, const char *key, const char *value)
{
	json_object_set_new(r, key, json_string(value));
}

static void looks(json_t *records, const char *indices, const char *count)
{
	json_t *r = find(records, "payload", "ghost");

	set(r, "indices", indices);
	json_object_set_new(r, "absent", json_integer(0));
	json_object_set_new(r, count, json_integer(1));
}

static void twice(struct input *in)
{
	looks(in->records, "i", "intact");
	json_object_set_new(find(in->records, "payload", "ghost"), "twice", json_integer(1));
}

static void unreliable(struct input *in)
{
	json_t *qp;
	size_t i;

	json_array_foreach(json_object_get(in->plan, "qps"), i, qp)
		set(qp, "type", "UC");
}

static void twice_in_datagrams(struct input *in)
{
	twice(in);
	unreliable(in);
}

static void atomic_twice(struct input *in)
{
	looks(in->records, "s", "stale");
	json_object_set_new(find(in->records, "payload", "ghost"), "twice", json_integer(1));
	set(find(in->records, "payload", "ghost"), "op", "FETCH_AND_ADD");
	set(find(in->records, "post", "ghost"), "op", "FETCH_AND_ADD");
}

static void in_part(struct input *in)
{
	looks(in->records, "p", "partial");
}

static void no_look(struct input *in)
{
	json_t *r = find(in->records, "payload", "ghost");

	json_object_set_new(r, "absent", json_integer(0));
	json_object_del(r, "indices");
}

static void as_it_was(struct input *in)
{
	CU_ASSERT_STRING_EQUAL(json_str(find(in->records, "payload", "ghost"), "indices"), "a");
}

/* It is the only member of a list, and looked at by itself. */
static void member(struct input *in)
{
	json_object_set_new(find(in->records, "payload", "ghost"), "index", json_integer(0));
}

static void member_in_part(struct input *in)
{
	looks(in->records, "p", "partial");
	member(in);
}

/* A look at another member later is no look at this one. */
static void member_twice(struct input *in)
{
	json_t *r, *other;
	size_t i, at = 0;

	twice(in);
	member(in);
	json_array_foreach(in->records, i, r)
		if (r == find(in->records, "payload", "ghost"))
			at = i;
	other = json_deep_copy(find(in->records, "payload", "ghost"));
	json_object_set_new(other, "index", json_integer(1));
	json_object_del(other, "twice");
	json_array_insert_new(in->records, at + 1, other);
	renumber(in->records);
}

/* The request went out by a key of nothing. */
static void key_of_nothing(struct input *in)
{
	json_t *post = find(in->records, "post", "ghost"), *key, *r;
	size_t i, at = 0;

	json_array_foreach(in->records, i, r)
		if (r == post)
			at = i;
	key = json_pack("{s:i,s:I,s:s,s:s,s:i,s:s,s:s,s:s,s:I,s:s,s:s}", "v", 1, "t", json_int(post, "t", 0), "clk", "boot/time",
			"src", "controller", "step", 3, "kind", "key", "obj", "p.a", "as", "ghost", "tag", (json_int_t)4096, "mr",
			"p.b.mem", "rkey", "0x17");
	json_array_insert_new(in->records, at, key);
	renumber(in->records);
}

static void key_of_nothing_opens(struct input *in)
{
	key_of_nothing(in);
	set(find(in->records, "post", "ghost"), "op", "WRITE");
	looks(in->records, "p", "partial");
}

static void key_of_nothing_succeeds(struct input *in)
{
	json_t *r;
	size_t i;

	key_of_nothing(in);
	json_array_foreach(in->records, i, r)
		if (!strcmp(json_str(r, "kind"), "wc") && !strcmp(json_str(r, "status"), "RETRY_EXC_ERR"))
			set(r, "status", "SUCCESS");
}

static void key_of_nothing_is_sent(struct input *in)
{
	key_of_nothing_succeeds(in);
	unreliable(in);
}

static const struct {
	const char *what;
	void (*change)(struct input *in);
	const char *finding;           /* NULL: none of this check */
	const char *fate, *how, *most; /* what the account says of it; fate NULL: it is not in it */
} rows[] = {
	{ "as it was", as_it_was, NULL, "failed", "none", NULL },
	{ "in part", in_part, NULL, "failed", "part", NULL },
	{ "nobody could look", no_look, NULL, "failed", "unknown", NULL },
	{ "a message twice", twice, "p.a: expected each message delivered at most once, seen 1 of the 1 of `ghost` twice at p.b",
	  "failed", "all", "1" },
	{ "a message twice, unreliably", twice_in_datagrams, NULL, "failed", "all", "1" },
	{ "an atomic twice", atomic_twice, "p.a: expected each atomic applied at most once, seen 1 of the 1 of `ghost` twice",
	  "failed", "other", "1" },
	{ "a member of a list", member, NULL, "failed", "none", NULL },
	{ "a member of a list in part", member_in_part, NULL, "failed", "part", NULL },
	{ "a member of a list twice", member_twice,
	  "p.a: expected each message delivered at most once, seen 1 of the 1 of `ghost` twice at p.b", "failed", "all", "1" },
	{ "a key of nothing, refused", key_of_nothing, NULL, "failed", "none", NULL },
	{ "a key of nothing, and bytes", key_of_nothing_opens, "seen a part of its bytes at p.b.mem", "failed", "part", NULL },
	{ "a key of nothing, and SUCCESS", key_of_nothing_succeeds,
	  "p.a: expected nothing accepted by 0x17, no key of anything there when `ghost` was posted, seen SUCCESS at p.b.mem", NULL,
	  NULL, NULL },
	{ "a key of nothing, and an unreliable SUCCESS", key_of_nothing_is_sent, NULL, NULL, NULL, NULL },
};

static const char *finding_of(const json_t *verdict)
{
	const json_t *f;
	size_t i;

	json_array_foreach(json_object_get(verdict, "findings"), i, f)
		if (!strcmp(json_str(f, "check"), "delivered"))
			return json_str(f, "text");
	return NULL;
}

static void each_is_told_by_name(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct input in;
		json_t *v, *account;
		const char *text;

		input_load("psn-pass", &in);
		rows[i].change(&in);
		v = judge(&in, false);
		text = finding_of(v);
		ROW_ASSERT((text != NULL) == (rows[i].finding != NULL), "%s: %s", rows[i].what, text ? text : "no finding");
		ROW_ASSERT(!text || !rows[i].finding || strstr(text, rows[i].finding), "%s: %s", rows[i].what, text ? text : "");
		ROW_ASSERT(is_verdict(v, "fail") || !rows[i].finding, "%s", rows[i].what);
		account = json_array_get(json_object_get(v, "delivered"), 0);
		ROW_ASSERT((account != NULL) == (rows[i].fate != NULL), "%s: in the account or not", rows[i].what);
		if (account && rows[i].fate) {
			ROW_ASSERT(json_int(json_object_get(account, rows[i].fate), rows[i].how, 0) == 1, "%s", rows[i].what);
			ROW_ASSERT(json_int(account, "twice", 0) == (rows[i].most != NULL), "%s", rows[i].what);
		}
		json_decref(v);
		input_release(&in);
	}
}

static const struct test_case tests[] = {
	{ "each is told by name", each_is_told_by_name },
};

TEST_MAIN("delivered", tests)
