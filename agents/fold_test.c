/* SPDX-License-Identifier: MIT */
#include "fold.h"

#include <CUnit/Basic.h>

#include "many_rig.h"

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

/* The n-th receive of the i-th QP ends. */
static void flush_one(size_t i, size_t n)
{
	fake_complete(fake.cq, (struct ibv_wc){ .wr_id = made[i]->received[n],
						.status = IBV_WC_WR_FLUSH_ERR,
						.vendor_err = 3,
						.qp_num = made[i]->qp.qp_num });
}

/* Polls, whatever is there. */
static void poll_now(void)
{
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i}", "op", "drain", "qp", name_at(0), "deadline_ns", 1), -ETIMEDOUT);
}

/* Runs of many queues that end in one poll. */
static void flushed_as_single_ones(void)
{
	json_t *singles, *folded;
	size_t from;

	set_up();
	make_memory();
	ask_many("post_recv", "qp", json_pack("{s:i, s:i, s:s, s:i, s:s}", RECEIVES), QPS);
	from = json_array_size(rig.records);
	for (size_t i = 0; i < QPS; i++) {
		flush_one(i, 0);
		poll_now();
	}
	singles = records_from("wc", from);
	from = json_array_size(rig.records);
	for (size_t i = 0; i < QPS; i++)
		flush_one(i, 1);
	poll_now();
	CU_ASSERT_EQUAL(json_array_size(rig.records) - from, 2);
	folded = records_from("wc", from);
	CU_ASSERT_EQUAL_FATAL(json_array_size(folded), QPS);
	CU_ASSERT_EQUAL_FATAL(json_array_size(singles), QPS);
	for (size_t i = 0; i < QPS; i++) {
		json_t *record = json_array_get(folded, i), *before = json_array_get(singles, i);

		CU_ASSERT_EQUAL(json_u64(record, "first", 0), made[i]->received[1]);
		CU_ASSERT_EQUAL(json_u64(record, "last", 0), made[i]->received[1]);
		CU_ASSERT(json_int(record, "t_last", 0) >= json_int(record, "t", 1));
		for (size_t k = 0; k < 3; k++) {
			static const char *const own[] = { "first", "last", "t_last" };

			CU_ASSERT(json_object_get(record, own[k]) != NULL);
			json_object_del(record, own[k]);
			json_object_del(before, own[k]);
		}
	}
	compare(singles, folded, 0);
	json_decref(singles);
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
	{ "queries as single ones", as_single_queries },      { "a query fails", a_query_fails },
	{ "receives as single ones", as_single_receives },    { "receives are refused", receives_are_refused },
	{ "flushed as single ones", flushed_as_single_ones }, { "drains", drains },
};

TEST_MAIN("fold", cases)
