/* SPDX-License-Identifier: MIT */
/* Faults that change how objects are made and how ends find each other. */
#include "faults_rig.h"

#include "../harness/test.h"

static void srq_dry_holds_one_srq_for_all_it_feeds(void)
{
	struct world w;
	struct fault f;

	world_init(&w);
	json_object_set_new(w.plan, "srqs", json_pack("[{s:s,s:s}]", "name", "s", "agent", "b"));
	json_object_set_new(json_array_get(json_object_get(w.plan, "qps"), 1), "srq", json_string("s"));
	f = fault_of(&w, "srq_dry", parse("{'srq':'s'}"));
	CU_ASSERT_EQUAL(f.ops->inject(&f, NULL), 0);
	CU_ASSERT_TRUE(f.ops->holds_receives(&f, "s"));
	CU_ASSERT_FALSE(f.ops->holds_receives(&f, "p.b"));
	CU_ASSERT_EQUAL(prove(&f), 0);
	json_object_set_new(w.counters, "send_rnr_err", json_integer(6));
	CU_ASSERT_EQUAL(prove(&f), 1);
	json_object_set_new(w.counters, "send_rnr_err", json_integer(5));
	w.wc = 1;
	CU_ASSERT_EQUAL(prove(&f), 1);
	CU_ASSERT_EQUAL(f.ops->clear(&f, NULL), 0);
	CU_ASSERT_EQUAL(w.released, 1);
	fault_done(&f);
	f = fault_of(&w, "srq_dry", parse("{'srq':'moon'}"));
	CU_ASSERT_EQUAL(f.ops->inject(&f, NULL), -ENOENT);
	fault_done(&f);
	world_free(&w);
}

static void cq_too_small_is_made_with_what_was_asked(void)
{
	static const struct {
		const char *args, *cq;
		int depth, fired;
	} rows[] = {
		{ "{'at':'p.b','queue':'recv','depth':4}", "br", 4, 1 },  { "{'at':'p.b','queue':'send','depth':4}", "bs", 4, 1 },
		{ "{'at':'p.b','queue':'recv','depth':4}", "bs", 64, 0 }, { "{'at':'p.b','queue':'recv','depth':64}", "br", 64, 0 },
		{ "{'at':'p.a','queue':'send','depth':1}", "ac", 1, 1 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *req = json_pack("{s:i}", "depth", 64);
		struct world w;
		struct fault f;

		world_init(&w);
		f = fault_of(&w, "cq_too_small", parse(rows[i].args));
		CU_ASSERT_EQUAL(prove(&f), 0);
		f.ops->on_create(&f, rows[i].cq, req);
		ROW_ASSERT(json_int(req, "depth", 0) == rows[i].depth, "row %zu: depth %d", i, (int)json_int(req, "depth", 0));
		ROW_ASSERT(prove(&f) == rows[i].fired, "row %zu", i);
		fault_done(&f);
		json_decref(req);
		world_free(&w);
	}
}

static void cqs_change_places_where_there_are_two(void)
{
	static const struct {
		const char *made, *send, *recv, *sends, *receives;
		int fired;
	} rows[] = {
		{ "p.b", "bs", "br", "br", "bs", 1 },
		{ "p.a", "bs", "br", "bs", "br", 0 },
		{ "p.b", "bs", "bs", "bs", "bs", 0 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *req = json_pack("{s:s,s:s}", "send_cq", rows[i].send, "recv_cq", rows[i].recv);
		struct world w;
		struct fault f;

		world_init(&w);
		f = fault_of(&w, "cq_swapped", parse("{'at':'p.b'}"));
		f.ops->on_create(&f, rows[i].made, req);
		CU_ASSERT_STRING_EQUAL(json_str(req, "send_cq"), rows[i].sends);
		CU_ASSERT_STRING_EQUAL(json_str(req, "recv_cq"), rows[i].receives);
		ROW_ASSERT(prove(&f) == rows[i].fired, "row %zu", i);
		fault_done(&f);
		json_decref(req);
		world_free(&w);
	}
}

static void a_refusal_is_proven_by_its_own_reason(void)
{
	static const struct {
		const char *args, *asked, *reason;
		int fired;
	} rows[] = {
		{ "{'at':'p.b','how':'reject'}", "p.b", "CONSUMER_DEFINED", 1 },
		{ "{'at':'p.b','how':'reject'}", "p.b", "INVALID_SERVICE_ID", 0 },
		{ "{'at':'p.b','how':'reject'}", "p.a", "CONSUMER_DEFINED", 0 },
		{ "{'at':'p.b','how':'nobody'}", "p.b", "INVALID_SERVICE_ID", 1 },
		{ "{'at':'p.b','how':'nobody'}", "p.b", NULL, 0 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct world w;
		struct fault f;

		world_init(&w);
		f = fault_of(&w, "connection_refused", parse(rows[i].args));
		CU_ASSERT_STRING_EQUAL(f.ops->cm_refuses(&f, "p.b"), json_str(f.args, "how"));
		CU_ASSERT_PTR_NULL(f.ops->cm_refuses(&f, "p.a"));
		CU_ASSERT_EQUAL(prove(&f), 0);
		f.ops->cm_refused(&f, rows[i].asked, rows[i].reason);
		ROW_ASSERT(prove(&f) == rows[i].fired, "row %zu", i);
		fault_done(&f);
		world_free(&w);
	}
}

static void who_leaves_disconnects_and_hears_the_answer(void)
{
	struct world w;
	struct fault f;

	world_init(&w);
	f = fault_of(&w, "connection_left", parse("{'at':'p.b'}"));
	CU_ASSERT_EQUAL(prove(&f), 0);
	CU_ASSERT_EQUAL(f.ops->inject(&f, NULL), 0);
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(w.asked, 0), "op"), "cm_disconnect");
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(w.asked, 0), "name"), "p.b.cm");
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(w.asked, 1), "event"), "DISCONNECTED");
	CU_ASSERT_EQUAL(prove(&f), 1);
	fault_done(&f);
	w.rc = -ENOENT;
	f = fault_of(&w, "connection_left", parse("{'at':'p.b'}"));
	CU_ASSERT_EQUAL(f.ops->inject(&f, NULL), -ENOENT);
	CU_ASSERT_EQUAL(prove(&f), 0);
	fault_done(&f);
	world_free(&w);
}

static const struct test_case tests[] = {
	{ "srq_dry holds one SRQ for all it feeds", srq_dry_holds_one_srq_for_all_it_feeds },
	{ "cq_too_small is made with what was asked", cq_too_small_is_made_with_what_was_asked },
	{ "CQs change places where there are two", cqs_change_places_where_there_are_two },
	{ "a refusal is proven by its own reason", a_refusal_is_proven_by_its_own_reason },
	{ "who leaves disconnects and hears the answer", who_leaves_disconnects_and_hears_the_answer },
};

TEST_MAIN("faults_made", tests)
