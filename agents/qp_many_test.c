/* SPDX-License-Identifier: MIT */
#include "agent.h"

#include <CUnit/Basic.h>

#include "../harness/many.h"
#include "../harness/test.h"
#include "agent_rig.h"
#include "fake_verbs.h"
#include "object.h"

#define QPS 100 /* more than the verbs thread takes at once */

static struct fake_qp *made[QPS];

static const char *name_at(size_t i)
{
	static char name[16];

	snprintf(name, sizeof(name), "p[%zu].a", i);
	return name;
}

static void set_up(void)
{
	fake.post_room = FAKE_MAX;
	fake.fail_at = 0;
	fake.refused = NULL;
	rig_start();
	rig_objects();
	for (size_t i = 0; i < QPS; i++) {
		CU_ASSERT_EQUAL_FATAL(rig_rc("{s:s, s:s, s:s, s:s, s:s, s:s}", "op", "qp_create", "name", name_at(i), "pd", "pd",
					     "type", "RC", "send_cq", "cq", "recv_cq", "cq"),
				      0);
		made[i] = fake.qp;
	}
}

static void tear_down(void)
{
	CU_ASSERT_EQUAL(json_array_size(json_object_get(rig_ask("{s:s}", "op", "release"), "left")), 0);
	CU_ASSERT_EQUAL(fake.live, 0);
	rig_stop();
}

/* The records of a kind from the n-th line on, one by one. New reference. */
static json_t *records_from(const char *kind, size_t from)
{
	json_t *found = json_array();

	for (; from < json_array_size(rig.records); from++) {
		json_t *line = json_array_get(rig.records, from);
		size_t n = many_is_record(line) ? many_count(line) : 1;

		CU_ASSERT(n > 0);
		for (size_t i = 0; i < n; i++) {
			json_t *one = many_is_record(line) ? many_record(line, i) : json_deep_copy(line);

			if (strcmp(json_str(one, "kind"), kind) == 0)
				json_array_append(found, one);
			json_decref(one);
		}
	}
	return found;
}

static json_t *reply_of(const json_t *reply, size_t i)
{
	return many_count(reply) ? many_member(reply, i) : json_incref(json_array_get(json_object_get(reply, "replies"), i));
}

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

static json_t *names_of(size_t n)
{
	json_t *names = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(names, json_string(name_at(i)));
	return names;
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

/* Nothing of it depends on when it was. */
static void without_time(json_t *record)
{
	json_object_del(record, "t");
	json_object_del(record, "dur_ns");
}

static void compare(const json_t *singles, json_t *folded, unsigned lives)
{
	json_t *record;
	size_t i;

	CU_ASSERT_EQUAL_FATAL(json_array_size(singles), json_array_size(folded));
	json_array_foreach(folded, i, record) {
		json_t *other = json_array_get(singles, i);

		CU_ASSERT(json_int(record, "t", 0) > 0 && (!lives || json_object_get(record, "dur_ns")));
		without_time(record);
		without_time(other);
		json_object_set_new(record, "life", json_integer(json_int(record, "life", 0) - lives));
		ROW_ASSERT(json_equal(record, other), "record %zu: %s instead of %s", i, json_dumps(record, 0),
			   json_dumps(other, 0));
	}
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

/* ---- queries, receives, drains ---- */

static json_t *ask_many(const char *of, const char *key, json_t *all, size_t n)
{
	return rig_ask("{s:s, s:s, s:I, s:b, s:o, s:{s:o}}", "op", "many", "of", of, "count", (json_int_t)n, "stops", 0, "all", all,
		       "each", key, names_of(n));
}

/* Each has a column of its own: which reply it is that of a single request. */
static void same_replies(const json_t *reply, json_t *const *singles, size_t n)
{
	CU_ASSERT_EQUAL(json_int(reply, "failed", -1), 0);
	CU_ASSERT_EQUAL_FATAL(many_count(reply), n);
	for (size_t i = 0; i < n; i++) {
		json_t *one = many_member(reply, i);

		json_object_del(singles[i], "id");
		ROW_ASSERT(json_equal(one, singles[i]), "%zu: %s instead of %s", i, json_dumps(one, 0), json_dumps(singles[i], 0));
		json_decref(one);
	}
}

static void as_single_queries(void)
{
	json_t *singles[QPS], *records, *folded;
	size_t from;

	set_up();
	for (size_t i = 0; i < QPS; i++) {
		made[i]->attr.sq_psn = (uint32_t)(3 * i);
		made[i]->attr.qp_state = i < 50 ? IBV_QPS_ERR : IBV_QPS_RTS;
	}
	from = json_array_size(rig.records);
	for (unsigned twice = 0; twice < 2; twice++) /* the second time nothing is new to the agent */
		for (size_t i = 0; i < QPS; i++)
			singles[i] =
				rig_ask("{s:s, s:s, s:s, s:b}", "op", "qp_query", "name", name_at(i), "by", "test", "brief", 1);
	CU_ASSERT_STRING_EQUAL(json_str(singles[0], "state"), "ERR");
	CU_ASSERT_EQUAL(json_int(singles[7], "sq_psn", 0), 21);
	for (size_t i = 0; i < QPS; i++)
		json_array_remove(rig.records, from);
	records = records_from("state", from);
	from = json_array_size(rig.records);
	same_replies(ask_many("qp_query", "name", json_pack("{s:s, s:b}", "by", "test", "brief", 1), QPS), singles, QPS);
	CU_ASSERT_EQUAL(json_array_size(rig.records) - from, 2);
	folded = records_from("state", from);
	compare(records, folded, 0);
	json_decref(records);
	json_decref(folded);
	tear_down();
}

/* One that is gone is missed by name, and has no record. */
static void a_query_fails(void)
{
	json_t *reply, *one;
	size_t from;

	set_up();
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "destroy", "type", "qp", "name", name_at(4)), 0);
	from = json_array_size(rig.records);
	reply = ask_many("qp_query", "name", json_pack("{s:b}", "brief", 1), QPS);
	CU_ASSERT_EQUAL(json_int(reply, "failed", 0), 1);
	one = reply_of(reply, 4);
	CU_ASSERT_EQUAL(json_int(one, "rc", 0), -ENOENT);
	CU_ASSERT_STRING_EQUAL(json_str(one, "error"), "qp_query: there is no qp p[4].a: it was destroyed");
	json_decref(one);
	one = reply_of(reply, 5);
	CU_ASSERT_EQUAL(json_int(one, "rc", -1), 0);
	CU_ASSERT_STRING_EQUAL(json_str(one, "state"), "RESET");
	json_decref(one);
	one = records_from("state", from);
	CU_ASSERT_EQUAL(json_array_size(one), QPS - 1);
	json_decref(one);
	tear_down();
}

static void make_memory(void)
{
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i, s:[s]}", "op", "mr_create", "name", "rx", "pd", "pd", "bytes", 4096, "access",
			       "LOCAL_WRITE"),
			0);
}

#define RECEIVES "count", 3, "size", 64, "mr", "rx", "slots", 8, "by", "connect"

static void as_single_receives(void)
{
	json_t *singles[QPS], *records, *folded;
	size_t from;

	set_up();
	make_memory();
	from = json_array_size(rig.records);
	for (size_t i = 0; i < QPS; i++)
		singles[i] = rig_ask("{s:s, s:s, s:i, s:i, s:s, s:i, s:s}", "op", "post_recv", "qp", name_at(i), RECEIVES);
	records = records_from("post", from);
	from = json_array_size(rig.records);
	same_replies(ask_many("post_recv", "qp", json_pack("{s:i, s:i, s:s, s:i, s:s}", RECEIVES), QPS), singles, QPS);
	CU_ASSERT_EQUAL(json_array_size(rig.records) - from, 1);
	folded = records_from("post", from);
	/* They go on where those before them ended. */
	CU_ASSERT_EQUAL_FATAL(json_array_size(folded), QPS);
	for (size_t i = 0; i < QPS; i++) {
		json_t *record = json_array_get(folded, i), *before = json_array_get(records, i);

		CU_ASSERT_EQUAL(json_u64(record, "first", 0), json_u64(before, "first", 0) + 3);
		CU_ASSERT_EQUAL(json_u64(record, "last", 0), json_u64(before, "last", 0) + 3);
		CU_ASSERT(json_int(record, "t_last", 0) >= json_int(record, "t", 1));
		for (size_t k = 0; k < 3; k++) {
			static const char *const own[] = { "first", "last", "t_last" };

			json_object_del(record, own[k]);
			json_object_del(before, own[k]);
		}
		CU_ASSERT_EQUAL(made[i]->n_received, 6);
	}
	compare(records, folded, 0);
	json_decref(records);
	json_decref(folded);
	tear_down();
}

/* The queue of one is full: it says so, with what it took. */
static void receives_are_refused(void)
{
	json_t *reply, *one;

	set_up();
	make_memory();
	made[60]->cap.max_recv_wr = 2;
	reply = ask_many("post_recv", "qp", json_pack("{s:i, s:i, s:s, s:i, s:s}", RECEIVES), QPS);
	CU_ASSERT_EQUAL(json_int(reply, "failed", 0), 1);
	one = reply_of(reply, 60);
	CU_ASSERT_EQUAL(json_int(one, "rc", 0), -ENOMEM);
	CU_ASSERT_EQUAL(json_int(one, "accepted", 0), 2);
	CU_ASSERT_EQUAL(json_int(one, "bad", 0), 2);
	CU_ASSERT_STRING_EQUAL(json_str(one, "error"), "ibv_post_recv: p[60].a: Cannot allocate memory");
	json_decref(one);
	CU_ASSERT_EQUAL(made[61]->n_received, 3);
	tear_down();
}

/* Answered when the last of them has its end, or with what is left when the time is over. */
static void drains(void)
{
	json_t *reply, *one;
	int id;

	set_up();
	make_memory();
	reply = ask_many("drain", "qp", json_object(), QPS);
	CU_ASSERT_EQUAL(json_int(reply, "failed", -1), 0);
	CU_ASSERT_EQUAL(json_int(json_object_get(reply, "all"), "in_flight", -1), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i, s:i, s:s, s:i, s:s}", "op", "post_recv", "qp", name_at(40), "count", 1, "size", 64,
			       "mr", "rx", "slots", 8, "by", "test"),
			0);
	reply = ask_many("drain", "qp", json_pack("{s:i}", "deadline_ns", 1000000), QPS);
	CU_ASSERT_EQUAL(json_int(reply, "failed", 0), 1);
	one = reply_of(reply, 40);
	CU_ASSERT_EQUAL(json_int(one, "rc", 0), -ETIMEDOUT);
	CU_ASSERT_EQUAL(json_int(one, "in_flight", 0), 1);
	CU_ASSERT_STRING_EQUAL(json_str(one, "error"), "p[40].a: 1 work requests have no end yet");
	json_decref(one);
	id = rig_send("{s:s, s:s, s:I, s:{}, s:{s:o}}", "op", "many", "of", "drain", "count", (json_int_t)QPS, "all", "each", "qp",
		      names_of(QPS));
	CU_ASSERT_EQUAL(rig_rc("{s:s}", "op", "clock"), 0);
	CU_ASSERT_PTR_NULL(rig_reply(id));
	fake_complete(fake.cq, (struct ibv_wc){ .wr_id = made[40]->received[0], .status = IBV_WC_WR_FLUSH_ERR });
	CU_ASSERT_EQUAL(json_int(rig_wait(id), "failed", -1), 0);
	tear_down();
}

static const struct test_case cases[] = {
	{ "moves as single ones", as_single_moves },
	{ "one fails", one_fails },
	{ "one hangs", one_hangs },
	{ "one is there twice", one_is_there_twice },
	{ "what is not native", what_is_not_native },
	{ "queries as single ones", as_single_queries },
	{ "a query fails", a_query_fails },
	{ "receives as single ones", as_single_receives },
	{ "receives are refused", receives_are_refused },
	{ "drains", drains },
};

TEST_MAIN("qp_many", cases)
