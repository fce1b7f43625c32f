/* SPDX-License-Identifier: MIT */
/*
 * What always holds of UC and UD: a case that passed, changed in one place, must not pass and must say why. datagrams-recorded:
 * three messages to an end without receives, then one that arrives, then traffic.
 */
#include "verdict_rig.h"

static json_t *find(json_t *records, const char *kind, const char *obj, const char *with)
{
	json_t *r;
	size_t i;

	json_array_foreach(records, i, r)
		if (!strcmp(json_str(r, "kind"), kind) && json_str(r, "obj") && !strcmp(json_str(r, "obj"), obj) &&
		    (!with || json_object_get(r, with)))
			return r;
	CU_FAIL_FATAL("the record to change is not there");
	return NULL;
}

static json_t *message(json_t *rs)
{
	return find(rs, "wc", "p.b.recv", "grh");
}

static void nothing(json_t *rs)
{
	CU_ASSERT_EQUAL(json_int(json_object_get(message(rs), "grh"), "version", 0), 4);
}

static void sent_again(json_t *rs)
{
	json_object_set_new(find(rs, "packet", "p.a", NULL), "transmission", json_integer(2));
}

static void acknowledged(json_t *rs)
{
	json_t *r = find(rs, "packet", "p.b", NULL);

	json_object_set_new(r, "class", json_string("ack"));
	json_object_set_new(r, "opcode", json_string("RC_ACKNOWLEDGE"));
}

static void from_elsewhere(json_t *rs)
{
	json_object_set_new(message(rs), "src_qp", json_integer(0x4711));
}

static void without_flag(json_t *rs)
{
	json_object_set_new(message(rs), "grh", json_null());
}

static void without_header(json_t *rs)
{
	json_object_set_new(message(rs), "grh", json_pack("{s:i}", "version", 0));
}

static void to_nobody(json_t *rs)
{
	json_t *r = find(rs, "packet", "p.a", NULL);

	json_object_del(r, "pair");
	json_object_set_new(r, "obj", json_string("?"));
	json_object_set_new(r, "dest_qpn", json_integer(99));
}

static const struct {
	const char *what;
	void (*change)(json_t *records);
	const char *text; /* NULL: nothing is found */
	bool nobody;      /* the post asks for a QP number that is nobody's */
} rows[] = {
	{ "nothing", nothing, NULL, false },
	{ "a packet sent again", sent_again, "p.a: a UD QP sends nothing again: UD_SEND_ONLY, PSN 0, sent 2 times", false },
	{ "an acknowledgement", acknowledged, "p.b: a UD QP acknowledges nothing, but it sent RC_ACKNOWLEDGE", false },
	{ "another source", from_elsewhere, "p.b: a message says that it came from QP 18193, its peer is QP ", false },
	{ "no IBV_WC_GRH", without_flag, "came with a completion without IBV_WC_GRH", false },
	{ "no header", without_header, "p.b: a message over RoCE came with no IP header", false },
	{ "a packet to nobody", to_nobody, "a packet of no connection came by the wire: UD_SEND_ONLY", false },
	{ "a packet to nobody, as was asked", to_nobody, NULL, true },
};

static void ask_for_nobody(json_t *plan)
{
	json_t *step;
	size_t i;

	json_array_foreach(json_object_get(plan, "steps"), i, step)
		if (!strcmp(json_str(step, "do"), "post"))
			json_object_set_new(step, "qpn", json_string("wrong"));
}

static bool says(const json_t *v, const char *text)
{
	const json_t *f;
	size_t i;

	json_array_foreach(json_object_get(v, "findings"), i, f)
		if (strstr(json_str(f, "text"), text))
			return true;
	return false;
}

static void test_changes(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct input in;
		json_t *v;

		input_load("datagrams-recorded", &in);
		rows[i].change(in.records);
		if (rows[i].nobody)
			ask_for_nobody(in.plan);
		v = judge(&in, false);
		if (rows[i].text)
			ROW_ASSERT(is_verdict(v, "fail") && says(v, rows[i].text), "%s: %s, %s", rows[i].what,
				   json_str(v, "verdict"), json_str(v, "headline"));
		else
			ROW_ASSERT(is_verdict(v, "pass"), "%s: %s, %s", rows[i].what, json_str(v, "verdict"),
				   json_str(v, "headline"));
		json_decref(v);
		input_release(&in);
	}
}

static const struct test_case cases[] = {
	{ "one record changed", test_changes },
};

TEST_MAIN("verdict_unanswered", cases)
