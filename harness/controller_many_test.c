/* SPDX-License-Identifier: MIT */
/* Forty pairs that are asked by a request for many, against a device that this program plays itself. */
#include "controller_case.h"

#include <CUnit/Basic.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller_fake.h"
#include "controller_many_rig.h"
#include "json.h"
#include "many.h"
#include "plan.h"
#include "units.h"

/* ---- the device ---- */

static json_t *fake_qps; /* name -> {"state","life","sq_psn","dest_qpn","rq_psn"} */
static int64_t fake_now = 1000;

/* The same for the same name, however many there are. */
static int qpn_of(const char *name)
{
	return 100 + 2 * (int)strtol(name + 2, NULL, 10) + (strstr(name, ".b") != NULL);
}

static json_t *fake_qp(const char *name)
{
	if (!fake_qps)
		fake_qps = json_object();
	if (!json_object_get(fake_qps, name))
		json_object_set_new(fake_qps, name, json_pack("{s:s,s:i}", "state", "RESET", "life", 1));
	return json_object_get(fake_qps, name);
}

static json_t *state_record(const char *name, const json_t *qp, const json_t *req)
{
	json_t *rec = json_pack("{s:I,s:s,s:s,s:O,s:O,s:O?}", "t", (json_int_t)fake_now++, "kind", "state", "obj", name, "life",
				json_object_get(qp, "life"), "new", json_object_get(qp, "state"), "by", json_object_get(req, "by"));

	if (json_str(req, "to"))
		json_object_set_new(rec, "asked", json_string(json_str(req, "to")));
	json_object_set_new(rec, "queried", json_deep_copy(qp));
	return rec;
}

/* "refuses INIT": each time, "refuses INIT 2": the second time, of one QP. */
static bool refuses(const char *mode, const char *name, const char *to)
{
	static const char word[] = "refuses ";
	static unsigned asked;
	const char *rest = mode + strlen(word);

	if (strncmp(mode, word, strlen(word)) != 0 || strncmp(rest, to, strlen(to)) != 0 || strcmp(name, "p[7].a") != 0)
		return false;
	asked++;
	return !rest[strlen(to)] || asked == strtoul(rest + strlen(to), NULL, 10);
}

static json_t *device_modify(const json_t *req, const char *mode)
{
	const char *name = json_str(req, "name"), *to = json_str(req, "to");
	json_t *qp = fake_qp(name), *set = json_object_get(req, "set"), *value;
	const char *key;

	if (refuses(mode, name, to))
		return json_pack("{s:i,s:s}", "rc", -EINVAL, "error", "ibv_modify_qp: Invalid argument");
	json_object_foreach(set, key, value)
		json_object_set(qp, key, value);
	json_object_set_new(qp, "state", json_string(to));
	if (!strcmp(to, "RESET"))
		json_object_set_new(qp, "life", json_integer(json_int(qp, "life", 0) + 1));
	say_record(state_record(name, qp, req));
	return json_pack("{s:i,s:s,s:O}", "rc", 0, "new", to, "life", json_object_get(qp, "life"));
}

static json_t *device_query(const json_t *req)
{
	json_t *qp = fake_qp(json_str(req, "name"));

	say_record(state_record(json_str(req, "name"), qp, req));
	return json_pack("{s:i,s:O,s:O,s:O?}", "rc", 0, "life", json_object_get(qp, "life"), "state", json_object_get(qp, "state"),
			 "sq_psn", json_object_get(qp, "sq_psn"));
}

static json_t *device_receives(const json_t *req)
{
	const char *name = json_str(req, "qp");
	json_t *life = name ? json_object_get(fake_qp(name), "life") : NULL;

	say_record(json_pack("{s:I,s:s,s:o,s:i,s:s,s:i,s:O,s:O,s:O}", "t", (json_int_t)fake_now++, "kind", "post", "obj",
			     name ? json_sprintf("%s.recv", name) : json_incref(json_object_get(req, "srq")), "life",
			     life ? (int)json_integer_value(life) : 1, "op", "RECV", "size", 64, "count",
			     json_object_get(req, "count"), "accepted", json_object_get(req, "count"), "by",
			     json_object_get(req, "by")));
	return json_pack("{s:i,s:O}", "rc", 0, "accepted", json_object_get(req, "count"));
}

static json_t *device_answers(const json_t *req)
{
	const char *op = json_str(req, "op"), *mode = getenv(MODE);

	if (mode && !strcmp(mode, "dies of drain") && !strcmp(op, "drain") && !strcmp(json_str(req, "qp"), "p[7].b"))
		exit(7);
	if (mode && !strcmp(mode, "dies of RESET") && json_has(req, "to", "RESET") && !strcmp(json_str(req, "name"), "p[7].a"))
		exit(7);
	/* Its columns are too short. */
	if (mode && !strcmp(mode, "broken") && !strcmp(op, "drain") && !strcmp(json_str(req, "qp"), "p[7].a"))
		say(json_pack("{s:{s:s,s:s,s:i,s:i,s:{},s:{s:[s]}}}", "rec", "kind", "many", "of", "state", "t", 1, "count", 40,
			      "all", "each", "obj", "p[0].a"));
	if (!strcmp(op, "qp_create"))
		return json_pack("{s:i,s:i,s:i,s:{s:i,s:i}}", "rc", 0, "life", 1, "qpn", qpn_of(json_str(req, "name")), "cap",
				 "max_send_wr", 64, "max_recv_wr", 64);
	if (!strcmp(op, "qp_modify"))
		return device_modify(req, mode ? mode : "");
	if (!strcmp(op, "qp_query"))
		return device_query(req);
	if (!strcmp(op, "post_recv"))
		return device_receives(req);
	if (!strcmp(op, "drain"))
		return json_pack("{s:i,s:i}", "rc", 0, "in_flight", 0);
	return NULL;
}

/* ---- cases ---- */

#define CONNECT_ALL "{'n':1,'do':'connect','line':5}"
#define ERR_ALL "{'n':2,'do':'modify','line':6,'to':'ERR'}"
#define RESET_ALL "{'n':2,'do':'modify','line':6,'to':'RESET'}"
#define RECOVER_ALL                                                                                                                \
	"{'n':3,'do':'recover','line':7,'path':'reset','check':{'ops':['WRITE'],'size':64,'depth':1,'messages':1,'tag':8192}}"

#define UPTO_INIT "{'n':1,'do':'connect','line':5,'upto':'INIT'}"
#define RECOVER_TWICE                                                                                                              \
	"{'n':3,'do':'recover','line':7,'path':'reset','attempts':2,"                                                              \
	"'check':{'ops':['WRITE'],'size':64,'depth':1,'messages':1,'tag':8192}}"
#define OWN_RECEIVES "{'n':2,'do':'post_recv','line':9,'at':['p[1].a'],'size':64,'count':5,'as':'r','stride':64,'slots':64}"

#define POST_ONE                                                                                                                   \
	"{'n':9,'do':'post','line':9,'at':['p[3].a'],'op':'SEND','size':64,'count':1,'tag':4096,'tx_off':0,'stride':64,'slots':1," \
	"'as':'w'}"

/* Each record by itself. plan: stolen. */
static json_t *run_records(const char *mode, json_t *plan, json_t **ret_lines)
{
	struct controller *c = controller_of(mode, NULL);
	struct error e = { "" };
	json_t *records = NULL;
	char path[128];
	bool torn;

	CU_ASSERT_EQUAL(run_plan(c, plan, ret_lines, &e), 0);
	snprintf(path, sizeof path, "%s/observations.jsonl", dir);
	ROW_ASSERT(many_load_records(path, &records, &torn, &e) == 0, "%s: %s", mode, e.text);
	controller_done(c);
	return records;
}

static json_t *run_many(const char *mode, const char *steps, unsigned pairs, json_t **ret_lines)
{
	return run_records(mode, plan_of_pairs(steps, pairs), ret_lines);
}

static void numbers_have_no_holes(const json_t *records)
{
	const json_t *r;
	size_t i;

	json_array_foreach((json_t *)records, i, r)
		if (json_int(r, "n", -1) != (json_int_t)i + 1) {
			ROW_ASSERT(false, "record %zu has number %lld", i + 1, (long long)json_int(r, "n", -1));
			return;
		}
}

/* What the device has said of that QP and its receives, without when. */
static json_t *story_of(const json_t *records, const char *name)
{
	json_t *story = json_array();
	const json_t *r;
	char queue[64];
	size_t i;

	snprintf(queue, sizeof queue, "%s.recv", name);
	json_array_foreach((json_t *)records, i, r)
		if (json_has(r, "kind", "post") && json_has(r, "obj", queue))
			json_array_append_new(story, json_pack("{s:O,s:O,s:O}", "life", json_object_get(r, "life"), "count",
							       json_object_get(r, "count"), "step", json_object_get(r, "step")));
		else if (json_has(r, "kind", "state") && json_has(r, "obj", name))
			json_array_append_new(story,
					      json_pack("{s:O,s:O,s:O,s:O,s:O?,s:O?}", "life", json_object_get(r, "life"), "new",
							json_object_get(r, "new"), "queried", json_object_get(r, "queried"), "step",
							json_object_get(r, "step"), "by", json_object_get(r, "by"), "asked",
							json_object_get(r, "asked")));
	return story;
}

static bool ends_in(const json_t *story, const char *state)
{
	const json_t *last = NULL, *r;
	size_t i;

	json_array_foreach((json_t *)story, i, r)
		if (json_object_get(r, "new"))
			last = r;
	return last && json_has(last, "new", state);
}

static unsigned lines_of(const json_t *lines, const char *kind, const char *of)
{
	const json_t *r;
	unsigned n = 0;
	size_t i;

	json_array_foreach((json_t *)lines, i, r)
		n += json_has(r, "kind", kind) && (!of || json_has(r, "of", of));
	return n;
}

/* Of a pair among three, which are asked one by one, and among forty: the same moves with the same attributes, new PSNs too. */
static void many_are_told_what_a_few_are(void)
{
	static const char steps[] = "[" CONNECT_ALL "," ERR_ALL "," RECOVER_ALL "]";
	json_t *few_lines, *lines, *few = run_many("device", steps, 3, &few_lines), *many = run_many("device", steps, 40, &lines);
	char name[32];

	for (unsigned i = 0; i < 6; i++) {
		snprintf(name, sizeof name, "p[%u].%c", i / 2, "ab"[i % 2]);
		json_t *a = story_of(few, name), *b = story_of(many, name);

		ROW_ASSERT(json_array_size(a) == 12, "%s has %zu moves and posts", name, json_array_size(a));
		ROW_ASSERT(json_equal(a, b), "%s: among three %s, among forty %s", name, json_dumps(a, 0), json_dumps(b, 0));
		json_decref(a);
		json_decref(b);
	}
	for (int step = 1; step <= 3; step++)
		ROW_ASSERT(!strcmp(outcome_of(few, step), outcome_of(many, step)), "step %d: %s", step, outcome_of(many, step));
	CU_ASSERT_STRING_EQUAL(outcome_of(many, 1), "done");
	CU_ASSERT_STRING_EQUAL(outcome_of(many, 2), "done");
	/* Of each agent for all: three moves up, one to ERR; a question, one to RESET, three up; a question in the end. */
	CU_ASSERT_EQUAL(lines_of(lines, "state", NULL), 0);
	CU_ASSERT_EQUAL(lines_of(few_lines, "many", NULL), 0);
	CU_ASSERT(lines_of(lines, "many", "state") <= 2 * 12);
	numbers_have_no_holes(few);
	numbers_have_no_holes(many);
	json_decref(few);
	json_decref(many);
	json_decref(few_lines);
	json_decref(lines);
}

/* The same of what is posted, and where they do not all begin in RTS. */
static void whatever_the_course(void)
{
	static const char *const courses[] = {
		"[" CONNECT_ALL "," ERR_ALL "," RECOVER_TWICE "," RECOVER_TWICE "]",
		"[" UPTO_INIT "," RECOVER_ALL "]",
		"[" UPTO_INIT "," OWN_RECEIVES "," RECOVER_ALL "]",
		"[" RECOVER_ALL "]",
	};
	char name[32];

	for (size_t i = 0; i < sizeof courses / sizeof courses[0]; i++) {
		json_t *few_lines, *lines, *few = run_many("device", courses[i], 3, &few_lines),
					   *many = run_many("device", courses[i], 40, &lines);

		for (unsigned k = 0; k < 6; k++) {
			snprintf(name, sizeof name, "p[%u].%c", k / 2, "ab"[k % 2]);
			json_t *a = story_of(few, name), *b = story_of(many, name);

			ROW_ASSERT(json_equal(a, b), "row %zu, %s: among three %s, among forty %s", i, name, json_dumps(a, 0),
				   json_dumps(b, 0));
			ROW_ASSERT(json_array_size(b) && ends_in(b, "RTS"), "row %zu, %s: %s", i, name, json_dumps(b, 0));
			json_decref(a);
			json_decref(b);
		}
		json_decref(few);
		json_decref(many);
		json_decref(few_lines);
		json_decref(lines);
	}
}

static const json_t *end_of(const json_t *records, int step)
{
	const json_t *r, *end = NULL;
	size_t i;

	json_array_foreach((json_t *)records, i, r)
		if (json_has(r, "kind", "step") && json_has(r, "phase", "end") && json_int(r, "step", 0) == step)
			end = r;
	return end;
}

static unsigned count_of(const json_t *records, const char *kind, const char *key, const char *value, const char *number, int n)
{
	const json_t *r;
	unsigned found = 0;
	size_t i;

	json_array_foreach((json_t *)records, i, r)
		found += json_has(r, "kind", kind) && json_has(r, key, value) && json_int(r, number, 0) == n;
	return found;
}

/* How many were taken to that state in that step. */
static unsigned moved_in(const json_t *records, int step, const char *to)
{
	return count_of(records, "state", "asked", to, "step", step);
}

static unsigned posts_at(const json_t *records, const char *queue, int life)
{
	return count_of(records, "post", "obj", queue, "life", life);
}

static unsigned receives_of(const json_t *records, const char *name, int life)
{
	char queue[64];

	snprintf(queue, sizeof queue, "%s.recv", name);
	return posts_at(records, queue, life);
}

/* Also where it takes two attempts: nobody lacks its receives then, and nobody has them twice. */
static void each_life_has_its_receives_once(void)
{
	static const struct {
		const char *mode, *steps;
		unsigned pairs;
		int lives;
	} rows[] = {
		{ "device", "[" CONNECT_ALL "," ERR_ALL "," RECOVER_ALL "]", 3, 2 },
		{ "device", "[" CONNECT_ALL "," ERR_ALL "," RECOVER_ALL "]", 40, 2 },
		{ "refuses INIT 1", "[" CONNECT_ALL "," CONNECT_ALL "]", 10, 1 },
		{ "refuses INIT 1", "[" CONNECT_ALL "," CONNECT_ALL "]", 40, 1 },
		{ "refuses INIT 2", "[" CONNECT_ALL "," ERR_ALL "," RESET_ALL "," CONNECT_ALL "," CONNECT_ALL "]", 10, 2 },
		{ "refuses INIT 2", "[" CONNECT_ALL "," ERR_ALL "," RESET_ALL "," CONNECT_ALL "," CONNECT_ALL "]", 40, 2 },
	};
	char name[32];

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *lines, *records = run_many(rows[i].mode, rows[i].steps, rows[i].pairs, &lines);

		for (unsigned k = 0; k < 2 * rows[i].pairs; k++) {
			snprintf(name, sizeof name, "p[%u].%c", k / 2, "ab"[k % 2]);
			for (int life = 1; life <= rows[i].lives; life++)
				ROW_ASSERT(receives_of(records, name, life) == 1, "row %zu: %s has %u in life %d", i, name,
					   receives_of(records, name, life), life);
		}
		json_decref(records);
		json_decref(lines);
	}
}

/* The queue that all QPs of an agent share. */
static void an_srq_is_filled_once(void)
{
	static const struct {
		const char *mode, *steps;
		unsigned pairs;
	} rows[] = {
		{ "device", "[" CONNECT_ALL "]", 40 },
		{ "refuses INIT 1", "[" CONNECT_ALL "," CONNECT_ALL "]", 10 },
		{ "refuses INIT 1", "[" CONNECT_ALL "," CONNECT_ALL "]", 40 },
		{ "refuses RESET 1", "[" UPTO_INIT "," RECOVER_TWICE "]", 10 },
		{ "refuses RESET 1", "[" UPTO_INIT "," RECOVER_TWICE "]", 40 },
		{ "refuses INIT 2", "[" UPTO_INIT "," RECOVER_TWICE "]", 10 },
		{ "refuses INIT 2", "[" UPTO_INIT "," RECOVER_TWICE "]", 40 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *plan = plan_of_pairs(rows[i].steps, rows[i].pairs), *lines, *records, *qp;
		size_t k;

		json_object_set_new(plan, "srqs",
				    quoted_json("[{'name':'a.s','agent':'a','pd':'a.pd','depth':16,'max_sge':1},"
						"{'name':'b.s','agent':'b','pd':'b.pd','depth':16,'max_sge':1}]"));
		json_array_foreach(json_object_get(plan, "qps"), k, qp)
			json_object_set_new(qp, "srq", json_sprintf("%s.s", json_str(qp, "agent")));
		records = run_records(rows[i].mode, plan, &lines);
		for (k = 0; k < 2; k++) {
			unsigned n = posts_at(records, k ? "b.s" : "a.s", 1);

			ROW_ASSERT(n == 1, "row %zu: %u times at %c", i, n, "ab"[k]);
		}
		json_decref(records);
		json_decref(lines);
	}
}

static void what_goes_wrong_has_a_name(void)
{
	static const struct {
		const char *mode, *steps;
		int step, pairs;
		const char *outcome, *text, *to;
		unsigned moved; /* so many to that state in that step */
	} rows[] = {
		/* Each of them is tried. */
		{ "refuses ERR", "[" CONNECT_ALL "," ERR_ALL "]", 2, 40, "refused",
		  "agent a, qp_modify p[7].a: ibv_modify_qp: Invalid", "ERR", 79 },
		/* In a hurry nothing follows what was refused. */
		{ "refuses RTR", "[" CONNECT_ALL "]", 1, 40, "refused", "agent a, qp_modify p[7].a: ibv_modify_qp: Invalid", "RTS",
		  40 },
		{ "refuses RTR", "[" CONNECT_ALL "]", 1, 40, "refused", "agent a, qp_modify p[7].a: ibv_modify_qp: Invalid", "RTR",
		  40 + 7 },
		{ "refuses RESET", "[" CONNECT_ALL "," ERR_ALL "," RECOVER_ALL "]", 3, 40, "broken",
		  "agent a, qp_modify p[7].a: ", "RESET", 79 },
		/* What was put together while they were asked is not sent then. */
		{ "refuses RESET", "[" CONNECT_ALL "," ERR_ALL "," RECOVER_ALL "]", 3, 40, "broken",
		  "agent a, qp_modify p[7].a: ", "INIT", 0 },
		{ "refuses INIT 2", "[" CONNECT_ALL "," ERR_ALL "," RECOVER_ALL "]", 3, 40, "broken",
		  "agent a, qp_modify p[7].a: ibv_modify_qp: Invalid", "INIT", 40 + 7 },
		{ "refuses INIT 2", "[" CONNECT_ALL "," ERR_ALL "," RECOVER_ALL "]", 3, 40, "broken",
		  "agent a, qp_modify p[7].a: ibv_modify_qp: Invalid", "RTR", 0 },
		{ "refuses RTR 2", "[" CONNECT_ALL "," ERR_ALL "," RECOVER_ALL "]", 3, 40, "broken",
		  "agent a, qp_modify p[7].a: ibv_modify_qp: Invalid", "RTS", 40 },
		{ "dies of drain", "[" CONNECT_ALL "," ERR_ALL "," RECOVER_ALL "]", 3, 40, "error",
		  "agent b, drain p[0].b and 39 more: the agent died", "RESET", 0 },
		/* Fewer are made one by one, and folded in the message. */
		{ "refuses ERR", "[" CONNECT_ALL "," ERR_ALL "]", 2, 10, "refused",
		  "agent a, qp_modify p[7].a: ibv_modify_qp: Invalid", "ERR", 19 },
		{ "refuses RTR", "[" CONNECT_ALL "]", 1, 10, "refused", "agent a, qp_modify p[7].a: ibv_modify_qp: Invalid", "RTS",
		  10 },
		{ "refuses RTR", "[" CONNECT_ALL "]", 1, 10, "refused", "agent a, qp_modify p[7].a: ibv_modify_qp: Invalid", "RTR",
		  10 + 7 },
		{ "dies of drain", "[" CONNECT_ALL "," ERR_ALL "," RECOVER_ALL "]", 3, 10, "error",
		  "agent b, drain p[0].b: the agent died", "RESET", 0 },
		{ "short", "[" CONNECT_ALL "," ERR_ALL "]", 2, 40, "error",
		  "agent a, qp_modify p[0].a and 39 more: the answer is not for as many", "ERR", 78 },
		{ "short", "[" CONNECT_ALL "," ERR_ALL "]", 2, 10, "error",
		  "agent a, qp_modify p[9].a: the answer to a batch is too short", "ERR", 18 },
		/* The other one's are moved all the same. */
		{ "dies of RESET", "[" CONNECT_ALL "," ERR_ALL "," RECOVER_ALL "]", 3, 40, "error",
		  "agent a, qp_modify p[0].a and 39 more: the agent died", "RESET", 40 },
		{ "dies of RESET", "[" CONNECT_ALL "," ERR_ALL "," RECOVER_ALL "]", 3, 40, "error",
		  "agent a, qp_modify p[0].a and 39 more: the agent died", "INIT", 0 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *lines, *records = run_many(rows[i].mode, rows[i].steps, rows[i].pairs, &lines);
		const json_t *end = end_of(records, rows[i].step);
		const char *text = json_str(end, "text");

		ROW_ASSERT(json_has(end, "outcome", rows[i].outcome), "row %zu: %s", i, json_str(end, "outcome"));
		ROW_ASSERT(text && strstr(text, rows[i].text), "row %zu: %s", i, text);
		ROW_ASSERT(moved_in(records, rows[i].step, rows[i].to) == rows[i].moved, "row %zu: %u are moved to %s", i,
			   moved_in(records, rows[i].step, rows[i].to), rows[i].to);
		numbers_have_no_holes(records);
		json_decref(records);
		json_decref(lines);
	}
}

/* Where records are put off it is on disk before anybody looks, and the file says where; else it is left out. */
static void a_broken_record_is_a_loss_and_no_more(void)
{
	static const struct {
		const char *steps;
		bool put_off;
	} rows[] = {
		{ "[" CONNECT_ALL "," ERR_ALL "," RECOVER_ALL "]", true },
		{ "[" CONNECT_ALL "," POST_ONE "," ERR_ALL "," RECOVER_ALL "]", false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct controller *c = controller_of("broken", NULL);
		json_t *text = NULL, *records = NULL;
		struct error e = { "" };
		char path[128];
		bool torn;
		int rc;

		CU_ASSERT_EQUAL(run_plan(c, plan_of_pairs(rows[i].steps, 40), &text, &e), 0);
		snprintf(path, sizeof path, "%s/observations.jsonl", dir);
		rc = many_load_records(path, &records, &torn, &e);
		ROW_ASSERT((rc == -EINVAL) == rows[i].put_off, "row %zu: %d", i, rc);
		ROW_ASSERT(!rows[i].put_off || strstr(e.text, "columns are not as long as it says"), "row %zu: %s", i, e.text);
		ROW_ASSERT(find_kind(text, "lost", "record of many"), "row %zu: no loss", i);
		/* The moves behind it are on record. */
		ROW_ASSERT(!strcmp(outcome_of(text, 3), "done") || !strcmp(outcome_of(text, 3), "broken"), "row %zu: %s", i,
			   outcome_of(text, 3));
		ROW_ASSERT(find_kind(text, "step", "p[0]") || lines_of(text, "many", "recover") >= 4, "row %zu: no recovery", i);
		json_decref(records);
		json_decref(text);
		controller_done(c);
	}
}

/* A message of several steps has the requests for many as they are. */
static void together_they_are_many_too(void)
{
	static const char steps[] =
		"[" CONNECT_ALL ",{'n':2,'do':'together','line':6,'steps':[{'n':3,'do':'modify','line':7,'to':'ERR'},"
		"{'n':4,'do':'modify','line':8,'to':'RESET'}]}]";
	json_t *lines, *records = run_many("device", steps, 40, &lines);

	CU_ASSERT_STRING_EQUAL(outcome_of(records, 3), "done");
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 4), "done");
	CU_ASSERT_EQUAL(moved_in(records, 2, "ERR") + moved_in(records, 3, "ERR") + moved_in(records, 4, "ERR"), 80);
	CU_ASSERT_EQUAL(moved_in(records, 2, "RESET") + moved_in(records, 3, "RESET") + moved_in(records, 4, "RESET"), 80);
	json_decref(records);
	json_decref(lines);
}

/* ---- which are alike ---- */

static void only_what_is_alike_is_asked_as_one(void)
{
	static const struct {
		const char *what; /* of p[1].a is changed, ' for " */
		bool alike;       /* with p[0].a */
	} rows[] = {
		{ "{}", true },
		{ "{'attr':{'timeout':14,'sq_psn':77,'path_mtu':1024}}", true },
		{ "{'attr':{'timeout':15,'sq_psn':77,'path_mtu':1024}}", false },
		{ "{'attr':{'timeout':14,'sq_psn':77,'path_mtu':1024,'sl':1}}", false },
		{ "{'attr':{'timeout':14,'sq_psn':77}}", false },
		{ "{'attr':{'timeout':14,'path_mtu':1024,'sl':1}}", false },
		{ "{'attr':{'timeout':14,'sq_psn':77,'path_mtu':1024,'rq_psn':5}}", false },
		{ "{'attr':{'timeout':14,'sq_psn':77,'path_mtu':1024,'rq_psn':null}}", false },
		{ "{'attr':{'timeout':{'ref':'p[0].a.timeout'},'sq_psn':77,'path_mtu':1024}}", false },
		{ "{'cap':{'max_send_wr':64,'max_recv_wr':{'ref':'p[0].a.max_recv_wr'}}}", false },
		{ "{'cap':{'max_send_wr':64,'max_recv_wr':32}}", false },
		{ "{'type':'UC'}", false },
		{ "{'type':'UD'}", false },
		{ "{'srq':'s'}", false },
		{ "{'msg_bytes':128}", false },
		{ "{'head_bytes':40}", false },
		/* It is connected to another device. */
		{ "{'peer':'p[0].a'}", false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *plan = plan_of_pairs("[]", 3), *what = quoted_json(rows[i].what);
		struct controller c;
		struct case_run r;
		const struct object *a, *b;

		json_object_update((json_t *)plan_qp(plan, "p[1].a"), what);
		bare_run(&r, &c, plan);
		a = ctl_object_find(&r, "p[0].a");
		b = ctl_object_find(&r, "p[1].a");
		ROW_ASSERT(a->alike, "row %zu: p[0].a is like no other", i);
		ROW_ASSERT((a->alike == b->alike) == rows[i].alike, "row %zu: %s", i, rows[i].what);
		/* Ends of another agent are asked by another message. */
		ROW_ASSERT(ctl_object_find(&r, "p[0].b")->alike != a->alike, "row %zu: other agents' ends", i);
		ROW_ASSERT(ctl_object_find(&r, "p[0].b")->alike == ctl_object_find(&r, "p[2].b")->alike, "row %zu: p[2].b", i);
		bare_run_done(&r);
		json_decref(what);
	}
}

static const struct test_case tests[] = {
	{ "many are told what a few are", many_are_told_what_a_few_are },
	{ "whatever the course", whatever_the_course },
	{ "each life has its receives once", each_life_has_its_receives_once },
	{ "an SRQ is filled once", an_srq_is_filled_once },
	{ "what goes wrong has a name", what_goes_wrong_has_a_name },
	{ "a broken record is a loss and no more", a_broken_record_is_a_loss_and_no_more },
	{ "together they are many too", together_they_are_many_too },
	{ "only what is alike is asked as one", only_what_is_alike_is_asked_as_one },
};

int main(void)
{
	fake_special = device_answers;
	if (getenv(MODE))
		return fake_agent(getenv(MODE));
	return run_in_dir("controller_many", tests, sizeof tests / sizeof tests[0]);
}
