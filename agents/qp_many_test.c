/* SPDX-License-Identifier: MIT */
#include "agent.h"

#include <CUnit/Basic.h>

#include "many_rig.h"

/* ---- moves ---- */

static const char *const round_trip[] = { "INIT", "RTR", "RTS", "ERR", "RESET" };

static json_t *set_of(const char *to)
{
	if (strcmp(to, "INIT") == 0)
		return json_pack("{s:[s], s:i}", "access", "REMOTE_WRITE", "pkey_index", 0);
	if (strcmp(to, "RTR") == 0)
		return json_pack("{s:s, s:i, s:n}", "dest_gid", "::ffff:10.0.0.2", "path_mtu", 1024, "gid_index");
	return strcmp(to, "RTS") == 0 ? json_pack("{s:i, s:i}", "timeout", 14, "rnr_retry", 7) : NULL;
}

/* What each has for itself. */
static json_int_t own_value(const char *key, size_t i)
{
	return (json_int_t)(strcmp(key, "dest_qpn") == 0 ? 100 + i : 7 * i);
}

static const char *const *own_keys(const char *to)
{
	static const char *const rtr[] = { "dest_qpn", "rq_psn", NULL }, *const rts[] = { "sq_psn", NULL },
				 *const none[] = { NULL };

	return strcmp(to, "RTR") == 0 ? rtr : strcmp(to, "RTS") == 0 ? rts : none;
}

static json_t *single_move(const char *to, size_t i)
{
	json_t *set = set_of(to);

	for (const char *const *key = own_keys(to); set && *key; key++)
		json_object_set_new(set, *key, json_integer(own_value(*key, i)));
	return rig_ask("{s:s, s:s, s:s, s:o*, s:s, s:b}", "op", "qp_modify", "name", name_at(i), "to", to, "set", set, "by",
		       "recover", "brief", 1);
}

static uint64_t deadline_ns = RIG_WAIT_NS; /* of moves */

/* set and each are stolen. */
static int send_moves(const char *to, json_t *set, json_t *each, size_t n, bool stops)
{
	return rig_send("{s:s, s:s, s:I, s:b, s:{s:s, s:s, s:b, s:o*, s:I}, s:o}", "op", "many", "of", "qp_modify", "count",
			(json_int_t)n, "stops", stops, "all", "to", to, "by", "recover", "brief", 1, "set", set, "deadline_ns",
			(json_int_t)deadline_ns, "each", each);
}

static int send_many(const char *to, size_t n, bool stops)
{
	json_t *each = json_pack("{s:o}", "name", names_of(n));

	for (const char *const *key = own_keys(to); *key; key++) {
		json_t *column = json_array();
		char path[32];

		snprintf(path, sizeof(path), "set.%s", *key);
		for (size_t i = 0; i < n; i++)
			json_array_append_new(column, json_integer(own_value(*key, i)));
		json_object_set_new(each, path, column);
	}
	return send_moves(to, set_of(to), each, n, stops);
}

/* Each field of each record and reply is that of the same move by itself. */
static void as_single_moves(void)
{
	json_t *replies[sizeof(round_trip) / sizeof(*round_trip)][QPS];
	size_t from, lines;

	set_up();
	from = json_array_size(rig.records);
	for (size_t k = 0; k < sizeof(round_trip) / sizeof(*round_trip); k++)
		for (size_t i = 0; i < QPS; i++)
			replies[k][i] = single_move(round_trip[k], i);
	json_t *singles = records_from("state", from);

	from = json_array_size(rig.records);
	for (size_t k = 0; k < sizeof(round_trip) / sizeof(*round_trip); k++) {
		json_t *reply = rig_wait(send_many(round_trip[k], QPS, true));

		CU_ASSERT_EQUAL(json_int(reply, "rc", -1), 0);
		CU_ASSERT_EQUAL(json_int(reply, "failed", -1), 0);
		CU_ASSERT_EQUAL_FATAL(many_count(reply), QPS);
		for (size_t i = 0; i < QPS; i++) {
			json_t *one = many_member(reply, i);

			json_object_del(replies[k][i], "id");
			json_object_set_new(one, "life", json_integer(json_int(one, "life", 0) - 1));
			CU_ASSERT(json_equal(one, replies[k][i]));
			json_decref(one);
		}
	}
	lines = json_array_size(rig.records) - from;
	CU_ASSERT_EQUAL(lines, 2 * sizeof(round_trip) / sizeof(*round_trip));
	json_t *folded = records_from("state", from);

	compare(singles, folded, 1);
	json_decref(singles);
	json_decref(folded);
	tear_down();
}

/* A member that fails says what it says by itself; the others are moved, unless it stops them. */
static void one_fails(void)
{
	static const struct {
		bool stops, missing;
		int rc;
		const char *error;
	} rows[] = {
		{ false, false, -ENOMEM, "p[70].a from RESET to INIT: Cannot allocate memory" },
		{ true, false, -ENOMEM, "p[70].a from RESET to INIT: Cannot allocate memory" },
		{ false, true, -ENOENT, "qp_modify: there is no qp p[70].a: it was destroyed" },
		{ true, true, -ENOENT, "qp_modify: there is no qp p[70].a: it was destroyed" },
	};

	for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++) {
		unsigned moved = 0;

		set_up();
		if (rows[k].missing) {
			CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "destroy", "type", "qp", "name", name_at(70)), 0);
		} else {
			fake.refused = made[70];
		}
		json_t *reply = rig_wait(send_many("INIT", QPS, rows[k].stops));

		ROW_ASSERT(json_int(reply, "failed", 0) == (rows[k].stops ? 30 : 1), "row %zu", k);
		for (size_t i = 0; i < QPS; i++) {
			json_t *one = reply_of(reply, i);
			int want = i == 70 ? rows[k].rc : i > 70 && rows[k].stops ? -ECANCELED : 0;

			ROW_ASSERT(json_int(one, "rc", 1) == want, "row %zu, %zu: %lld", k, i, (long long)json_int(one, "rc", 1));
			if (i == 70)
				CU_ASSERT_STRING_EQUAL(json_str(one, "error"), rows[k].error);
			if (i != 70 || !rows[k].missing)
				moved += made[i]->attr.qp_state == IBV_QPS_INIT;
			json_decref(one);
		}
		CU_ASSERT_EQUAL(moved, rows[k].stops ? 70 : 99);
		tear_down();
	}
}

/* The reply to moves of all of them, of which the tenth does not return. Its deadline is as long as the machine needs to come
 * there. */
static json_t *moves_that_hang(void)
{
	for (uint64_t ns = 50 * NSEC_PER_MSEC;; ns *= 2) {
		json_t *reply, *blocked;

		set_up();
		fake_stick(made[10]);
		deadline_ns = ns;
		reply = rig_wait(send_many("INIT", QPS, false));
		deadline_ns = RIG_WAIT_NS;
		blocked = rig_record("blocked", NULL, 0);
		CU_ASSERT_PTR_NOT_NULL_FATAL(blocked);
		if (!json_object_get(blocked, "begun") && strcmp(json_str(blocked, "obj"), "p[10].a") == 0)
			return reply;
		CU_ASSERT_FATAL(ns < RIG_WAIT_NS);
		fake_stick(NULL);
		tear_down();
	}
}

/* What has returned is answered as it went, what hangs is named, and what was not begun is never made. */
static void one_hangs(void)
{
	json_t *reply = moves_that_hang(), *late;

	CU_ASSERT_EQUAL(json_int(reply, "failed", 0), 90);
	for (size_t i = 0; i < QPS; i++) {
		json_t *one = reply_of(reply, i);

		ROW_ASSERT(json_int(one, "rc", 1) == (i < 10 ? 0 : -ETIMEDOUT), "%zu", i);
		CU_ASSERT_EQUAL(json_bool(one, "blocked", false), i >= 10);
		json_decref(one);
	}
	CU_ASSERT_STRING_EQUAL(json_str(rig_record("blocked", NULL, 0), "verb"), "ibv_modify_qp");
	CU_ASSERT_PTR_NULL(rig_record("blocked", NULL, 1));
	/* It alone is still under way. */
	CU_ASSERT_EQUAL(json_int(single_move("ERR", 10), "rc", 0), -EBUSY);
	fake_stick(NULL);
	CU_ASSERT_EQUAL(json_int(single_move("INIT", 11), "rc", -1), 0);
	late = rig_record("state", "p[10].a", 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(late);
	CU_ASSERT(json_bool(late, "late", false));
	CU_ASSERT_STRING_EQUAL(json_str(late, "new"), "INIT");
	CU_ASSERT_STRING_EQUAL(json_str(rig_record("verb", "p[10].a", 1), "verb"), "ibv_modify_qp");
	CU_ASSERT_EQUAL(made[12]->attr.qp_state, IBV_QPS_RESET);
	CU_ASSERT_EQUAL(made[99]->attr.qp_state, IBV_QPS_RESET);
	tear_down();
}

/* Its second move comes after its first. */
static void one_is_there_twice(void)
{
	json_t *names, *reply, *one;

	set_up();
	names = names_of(20);
	json_array_set_new(names, 15, json_string("p[3].a"));
	reply = rig_wait(send_moves("INIT", set_of("INIT"), json_pack("{s:o}", "name", names), 20, false));
	CU_ASSERT_EQUAL(json_int(reply, "failed", -1), 0);
	one = reply_of(reply, 15);
	CU_ASSERT_STRING_EQUAL(json_str(one, "old"), "INIT");
	json_decref(one);
	one = reply_of(reply, 3);
	CU_ASSERT_STRING_EQUAL(json_str(one, "old"), "RESET");
	json_decref(one);
	CU_ASSERT_EQUAL(made[19]->attr.qp_state, IBV_QPS_INIT);
	CU_ASSERT_EQUAL(made[15]->attr.qp_state, IBV_QPS_RESET);
	tear_down();
}

/* Nothing is done of what is no fold; what only a single request can do is done by single requests. */
static void what_is_not_native(void)
{
	static const struct {
		const char *request;
		int rc, failed;
		const char *replied; /* by each where it was done */
	} rows[] = {
		{ "{\"count\":9,\"all\":{\"to\":\"INIT\",\"brief\":true},\"each\":{\"name\":[\"a\",\"b\"]}}", -EINVAL, 0, NULL },
		{ "{\"count\":1,\"all\":{\"to\":\"INIT\",\"brief\":true},\"each\":{\"name\":[\"a\",\"b\"]}}", -EINVAL, 0, NULL },
		{ "{\"count\":2,\"all\":{\"to\":\"INIT\"},\"each\":{\"name\":[\"p[0].a\",\"p[1].a\"]}}", 0, 0, "queried" },
		{ "{\"count\":2,\"all\":{\"to\":\"INIT\",\"brief\":true,\"leave_out\":[\"PORT\"]},\"each\":{\"name\":[\"p[0].a\","
		  "\"p[1].a\"]}}",
		  0, 2, "error" },
		{ "{\"count\":2,\"all\":{\"brief\":true},\"each\":{\"name\":[\"p[0].a\",\"p[1].a\"],\"to\":[\"INIT\",\"ERR\"]}}", 0,
		  1, "old" },
		{ "{\"count\":2,\"all\":{\"to\":\"INIT\",\"brief\":true},\"each\":{\"name\":[\"p[0].a\",\"p[1].a\"],"
		  "\"set.qkey\":[5,null]}}",
		  0, 0, "old" },
		{ "{\"count\":2,\"all\":{\"to\":\"INIT\",\"brief\":true},\"each\":{\"name\":[\"p[0].a\",\"p[1].a\"],"
		  "\"set.timeout\":[\"x\",\"y\"]}}",
		  0, 2, "error" },
		{ "{\"count\":2,\"all\":{\"to\":\"UP\",\"brief\":true},\"each\":{\"name\":[\"p[0].a\",\"p[1].a\"]}}", 0, 2,
		  "error" },
		{ "{\"count\":2,\"all\":{\"to\":\"INIT\",\"brief\":true},\"each\":{\"name\":[\"p[0].a\",7]}}", 0, 1, "rc" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		json_t *request = json_loads(rows[i].request, 0, NULL), *reply;

		CU_ASSERT_PTR_NOT_NULL_FATAL(request);
		set_up();
		reply = rig_ask("{s:s, s:s, s:o, s:o, s:o}", "op", "many", "of", "qp_modify", "count",
				json_incref(json_object_get(request, "count")), "all", json_incref(json_object_get(request, "all")),
				"each", json_incref(json_object_get(request, "each")));
		ROW_ASSERT(json_int(reply, "rc", 1) == rows[i].rc, "row %zu: %s", i, json_dumps(reply, 0));
		ROW_ASSERT(json_int(reply, "failed", 0) == rows[i].failed, "row %zu: %s", i, json_dumps(reply, 0));
		for (size_t k = 0; rows[i].replied && k < 2; k++) {
			json_t *one = reply_of(reply, k);

			ROW_ASSERT(json_object_get(one, rows[i].replied), "row %zu: %s", i, json_dumps(reply, 0));
			json_decref(one);
		}
		if (rows[i].rc < 0)
			CU_ASSERT_EQUAL(made[0]->attr.qp_state, IBV_QPS_RESET);
		json_decref(request);
		tear_down();
	}
}

static const struct test_case cases[] = {
	{ "moves as single ones", as_single_moves },
	{ "one fails", one_fails },
	{ "one hangs", one_hangs },
	{ "one is there twice", one_is_there_twice },
	{ "what is not native", what_is_not_native },
};

TEST_MAIN("qp_many", cases)
