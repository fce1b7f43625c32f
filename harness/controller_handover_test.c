/* SPDX-License-Identifier: MIT */
/* What an end is told of its peer: the keys that are valid now, and when the same may be told again. */
#include "controller_case.h"

#include <CUnit/Basic.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "controller_rig.h"
#include "controller_step.h"
#include "json.h"

struct bench {
	struct controller c;
	struct case_run r;
	struct ctl_agent b;
	struct object *to, *peer, *mr, *pool;
};

/* p.b and its memory are there, p.b is like others; of its agent's there is the region `pool` to come. */
static void set_up(struct bench *h)
{
	json_t *plan = plan_of("[]", 0);

	json_array_append_new(json_object_get(plan, "mrs"), json_pack("{s:s,s:s,s:s,s:i,s:[s]}", "name", "pool", "agent", "b", "pd",
								      "b.pd", "bytes", 4096, "access", "REMOTE_WRITE"));
	bare_run(&h->r, &h->c, plan);
	h->b = (struct ctl_agent){ .name = "b", .c = &h->c };
	h->b.device = json_pack("{s:s,s:i}", "gid", "::ffff:10.0.0.2", "mtu", 1024);
	h->c.agents = &h->b;
	h->to = ctl_object_find(&h->r, "p.a");
	h->peer = ctl_object_find(&h->r, "p.b");
	h->mr = ctl_object_find(&h->r, "p.b.mem");
	h->peer->exists = h->mr->exists = true;
	h->peer->life = h->mr->life = 1;
	h->peer->qpn = 18;
	h->peer->sq_psn = 22136;
	h->peer->alike = 1;
	h->mr->rkey = 6;
	h->mr->ret = json_pack("{s:s}", "addr", "0x1000");
	h->pool = ctl_object_find(&h->r, "pool");
	h->pool->life = 1;
	h->pool->rkey = 40;
	h->pool->ret = json_pack("{s:s}", "addr", "0x9000");
}

static void tear_down(struct bench *h)
{
	h->c.agents = NULL;
	json_decref((json_t *)h->b.device);
	bare_run_done(&h->r);
}

static const json_t *key_told(const struct bench *h)
{
	return json_object_get(json_object_get(h->to->told, "keys"), "p.b.mem");
}

static void tell(struct bench *h)
{
	struct error e = { "" };

	CU_ASSERT_EQUAL(handover_tell(&h->r, h->to, false, &e), 0);
	CU_ASSERT_STRING_EQUAL(e.text, "");
}

static void nobody_is_told_of_what_is_not_there(void)
{
	struct bench h;
	struct error e = { "" };

	set_up(&h);
	h.peer->exists = false;
	CU_ASSERT_EQUAL(handover_tell(&h.r, h.to, false, &e), -ENOTCONN);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "p.b, which does not exist"));
	CU_ASSERT_PTR_NULL(h.to->told);
	/* Its keys are there without it. */
	CU_ASSERT_EQUAL(handover_tell(&h.r, h.to, true, &e), 0);
	CU_ASSERT_EQUAL(json_int(key_told(&h), "rkey", -1), 6);
	h.to->peer = NULL;
	CU_ASSERT_EQUAL(handover_tell(&h.r, h.to, false, &e), -ENOENT);
	tear_down(&h);
}

/* rows: what is another one when it is told for the second time. */
static void keys_are_those_of_now(void)
{
	static const struct {
		const char *what;
		uint32_t rkey;
		unsigned life;
		bool exists, same;
	} rows[] = {
		{ "the same region", 6, 1, true, true },
		{ "registered anew", 7, 2, true, false },
		{ "another key in the same life", 7, 1, true, false },
		{ "the same key in another life", 6, 2, true, false },
		{ "gone", 6, 1, false, false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct bench h;
		const json_t *first;

		set_up(&h);
		tell(&h);
		first = key_told(&h);
		CU_ASSERT_EQUAL(json_int(first, "rkey", -1), 6);
		CU_ASSERT_STRING_EQUAL(json_str(first, "addr"), "0x1000");
		h.mr->rkey = rows[i].rkey;
		h.mr->life = rows[i].life;
		h.mr->exists = rows[i].exists;
		tell(&h);
		ROW_ASSERT(!rows[i].same || key_told(&h) == first, "%s", rows[i].what);
		ROW_ASSERT(json_int(key_told(&h), "rkey", -1) == (rows[i].exists ? (int64_t)rows[i].rkey : -1), "%s", rows[i].what);
		ROW_ASSERT(json_int(key_told(&h), "life", -1) == (rows[i].exists ? (int64_t)rows[i].life : -1), "%s", rows[i].what);
		tear_down(&h);
	}
}

enum change { NOTHING, LIKE_NO_OTHER, ITS_QPN, ITS_GID, HELD_BY_OTHERS };

/* Told again is the same object with a PSN and a life of now; whatever else there is to tell is told anew. */
static void what_was_told_is_told_again_where_it_is_the_same(void)
{
	static const struct {
		const char *what;
		enum change change;
	} rows[] = { { "the next life of the same QP", NOTHING },
		     { "a QP that is like no other", LIKE_NO_OTHER },
		     { "another QP number", ITS_QPN },
		     { "another GID", ITS_GID },
		     { "somebody keeps what was told", HELD_BY_OTHERS } };

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct bench h;
		json_t *first, *kept;

		set_up(&h);
		tell(&h);
		first = h.to->told;
		/* Its address is not used again while this is kept; kept among the keys it is not told's own count. */
		kept = json_incref(json_object_get(first, "keys"));
		h.peer->sq_psn = 99;
		h.peer->life = 2;
		if (rows[i].change == LIKE_NO_OTHER)
			h.peer->alike = 0;
		if (rows[i].change == ITS_QPN)
			h.peer->qpn = 19;
		if (rows[i].change == ITS_GID)
			json_object_set_new((json_t *)h.b.device, "gid", json_string("::ffff:10.0.0.9"));
		if (rows[i].change == HELD_BY_OTHERS)
			json_incref(first);
		tell(&h);
		ROW_ASSERT((json_object_get(h.to->told, "keys") == kept) == (rows[i].change == NOTHING), "%s", rows[i].what);
		ROW_ASSERT(json_int(h.to->told, "psn", -1) == 99 && json_int(h.to->told, "life", -1) == 2, "%s", rows[i].what);
		ROW_ASSERT(json_int(h.to->told, "qpn", -1) == h.peer->qpn, "%s", rows[i].what);
		ROW_ASSERT(!strcmp(json_str(h.to->told, "gid"), json_str(h.b.device, "gid")), "%s", rows[i].what);
		ROW_ASSERT(json_int(key_told(&h), "rkey", -1) == 6, "%s", rows[i].what);
		if (rows[i].change == HELD_BY_OTHERS) {
			ROW_ASSERT(json_int(first, "psn", -1) == 22136, "%s: theirs has changed", rows[i].what);
			json_decref(first);
		}
		json_decref(kept);
		tear_down(&h);
	}
}

/* exchange: { mr: pool }: rows say what the region is by then. */
static void one_region_is_told_and_no_other(void)
{
	static const struct {
		const char *what, *region;
		bool gone;
		int64_t pool, mem;
	} rows[] = {
		{ "one of two", "pool", false, 41, 6 },
		{ "the other one", "p.b.mem", false, 40, 7 },
		{ "gone", "pool", true, -1, 6 },
		{ "one that is not this peer's", "p.a.mem", false, 40, 6 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct bench h;
		struct step_result res = { .outcome = OUTCOME_INVALID };
		json_t *step = json_pack("{s:[s],s:s}", "pairs", "p", "mr", rows[i].region);
		const json_t *keys;

		set_up(&h);
		h.pool->exists = true;
		tell(&h);
		h.mr->rkey = 7;
		h.pool->rkey = 41;
		h.pool->exists = !rows[i].gone;
		h.peer->qpn = 99;
		step_exchange(&h.r, step, &res);
		json_decref(step);
		CU_ASSERT_EQUAL(res.outcome, OUTCOME_DONE);
		keys = json_object_get(h.to->told, "keys");
		ROW_ASSERT(json_int(json_object_get(keys, "pool"), "rkey", -1) == rows[i].pool, "%s", rows[i].what);
		ROW_ASSERT(json_int(key_told(&h), "rkey", -1) == rows[i].mem, "%s", rows[i].what);
		ROW_ASSERT(json_int(h.to->told, "qpn", -1) == 18, "%s", rows[i].what);
		tear_down(&h);
	}
}

/* Before anything was told there is nothing to keep. */
static void one_region_alone(void)
{
	struct bench h;
	struct error e = { "" };

	set_up(&h);
	h.pool->exists = true;
	CU_ASSERT_EQUAL(handover_tell_key(&h.r, h.to, "pool", &e), 0);
	CU_ASSERT_PTR_NULL(key_told(&h));
	CU_ASSERT_EQUAL(json_int(json_object_get(json_object_get(h.to->told, "keys"), "pool"), "rkey", -1), 40);
	tear_down(&h);
}

/* rows: what is kept under a name, of an end or of one region. */
static void what_was_told_is_remembered(void)
{
	static const struct {
		const char *what, *key, *name;
		bool gone;
		enum outcome outcome;
		int64_t qpn, pool, mem;
		const char *text;
	} rows[] = {
		{ "an end", "end", "p.b", false, OUTCOME_DONE, 18, 40, 6, "" },
		{ "a region", "mr", "pool", false, OUTCOME_DONE, -1, 40, -1, "" },
		{ "another region", "mr", "p.b.mem", false, OUTCOME_DONE, -1, -1, 6, "" },
		{ "a region that is gone", "mr", "pool", true, OUTCOME_REFUSED, -1, -1, -1, "pool does not exist" },
		{ "a region of no plan", "mr", "moat", false, OUTCOME_ERROR, -1, -1, -1, "there is no moat in the plan" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *step = json_pack("{s:s,s:s}", "as", "old", rows[i].key, rows[i].name);
		struct step_result res = { .outcome = OUTCOME_INVALID };
		const json_t *old, *keys;
		struct bench h;

		set_up(&h);
		h.pool->exists = !rows[i].gone;
		step_remember(&h.r, step, &res);
		json_decref(step);
		/* Made anew since: what is kept is as it was. */
		h.pool->rkey = 41;
		old = json_object_get(h.r.remembered, "old");
		keys = json_object_get(old, "keys");
		ROW_ASSERT(res.outcome == rows[i].outcome, "%s: %d", rows[i].what, res.outcome);
		ROW_ASSERT(strstr(res.text.text, rows[i].text), "%s: %s", rows[i].what, res.text.text);
		ROW_ASSERT(json_int(old, "qpn", -1) == rows[i].qpn, "%s", rows[i].what);
		ROW_ASSERT(json_int(json_object_get(keys, "pool"), "rkey", -1) == rows[i].pool, "%s", rows[i].what);
		ROW_ASSERT(json_int(json_object_get(keys, "p.b.mem"), "rkey", -1) == rows[i].mem, "%s", rows[i].what);
		tear_down(&h);
	}
}

static const struct test_case tests[] = {
	{ "nobody is told of what is not there", nobody_is_told_of_what_is_not_there },
	{ "keys are those of now", keys_are_those_of_now },
	{ "what was told is told again where it is the same", what_was_told_is_told_again_where_it_is_the_same },
	{ "one region is told and no other", one_region_is_told_and_no_other },
	{ "one region alone", one_region_alone },
	{ "what was told is remembered", what_was_told_is_remembered },
};

int main(void)
{
	return run_in_dir("controller_handover", tests, sizeof tests / sizeof tests[0]);
}
