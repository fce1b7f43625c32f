/* SPDX-License-Identifier: MIT */
/* Whole cases without RDMA: an agent that the test program plays itself when it is started with MODE in its environment. */
#ifndef QD_CONTROLLER_FAKE_H
#define QD_CONTROLLER_FAKE_H

#include <CUnit/Basic.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller_case.h"
#include "controller_rig.h"
#include "json.h"
#include "many.h"
#include "units.h"

#define MODE "QD_FAKE_AGENT"

/* ---- an agent made of canned answers ---- */

static inline void say(json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT);

	if (!text)
		abort();
	printf("%s\n", text);
	fflush(stdout);
	free(text);
	json_decref(value);
}

/* A test's own answers, where it has any; NULL: as to anybody. */
static json_t *(*fake_special)(const json_t *req);

static inline json_t *answer_op(const json_t *req, const char *mode)
{
	const char *op = json_str(req, "op"), *to = json_str(req, "to");
	json_t *special = fake_special ? fake_special(req) : NULL;

	if (special)
		return special;
	if (strcmp(op, "device_open") == 0)
		return json_pack("{s:i,s:s,s:i,s:i}", "rc", 0, "gid", "::ffff:10.0.0.1", "gid_index", 1, "mtu", 1024);
	if (strcmp(op, "qp_create") == 0)
		return json_pack("{s:i,s:i,s:i,s:{s:i,s:i}}", "rc", 0, "life", 1, "qpn", 17, "cap", "max_send_wr", 63,
				 "max_recv_wr", 64);
	if (strcmp(op, "mr_create") == 0)
		return json_pack("{s:i,s:i,s:i,s:i,s:s}", "rc", 0, "life", 1, "lkey", 5, "rkey", 6, "addr", "0x1000");
	if (strcmp(op, "cq_create") == 0)
		return json_pack("{s:i,s:i,s:i}", "rc", 0, "life", 1, "cqe", 255);
	if (strcmp(op, "qp_modify") == 0 && strcmp(mode, "refuse") == 0 && strcmp(to, "RTR") == 0)
		return json_pack("{s:i,s:s}", "rc", -EINVAL, "error", "ibv_modify_qp: Invalid argument");
	if (strcmp(op, "qp_modify") == 0)
		return json_pack("{s:i,s:s,s:i,s:{s:s}}", "rc", 0, "new", to, "life", 1, "queried", "state", to);
	if (strcmp(op, "release") == 0 && strcmp(mode, "cannot let go") == 0)
		return json_pack("{s:i,s:s}", "rc", -ETIMEDOUT, "error", "ibv_dereg_mr of p.a.mem has not returned");
	if (strcmp(op, "release") == 0)
		return json_pack(strcmp(mode, "clings") == 0 ? "{s:i,s:[s]}" : "{s:i,s:[]}", "rc", 0, "left", "p.a");
	return json_pack("{s:i,s:i,s:i}", "rc", 0, "life", 1, "t", 0);
}

/* Those of one that is asked of many are said with its last, as one where they are enough. */
static json_t *fake_records;

static inline void say_record(json_t *rec)
{
	if (fake_records)
		json_array_append_new(fake_records, rec);
	else
		say(json_pack("{s:o}", "rec", rec));
}

/* All of one kind. */
static inline json_t *fake_fold(json_t *records)
{
	const json_t *first = json_array_get(records, 0), *fold;
	json_t *whole = json_pack("{s:s,s:O,s:O,s:I}", "kind", "many", "of", json_object_get(first, "kind"), "t",
				  json_object_get(first, "t"), "count", (json_int_t)json_array_size(records));

	fold = many_fold(records);
	json_object_set(whole, "all", json_object_get(fold, "all"));
	json_object_set(whole, "each", json_object_get(fold, "each"));
	json_object_del(json_object_get(whole, "all"), "kind");
	json_decref((json_t *)fold);
	return whole;
}

static inline void say_records(void)
{
	json_t *records = fake_records, *rec;
	size_t i;

	fake_records = NULL;
	if (json_array_size(records) >= MANY_MIN)
		say_record(fake_fold(records));
	else
		json_array_foreach(records, i, rec)
			say_record(json_incref(rec));
	json_decref(records);
}

static inline json_t *answer_many(const json_t *req, const char *mode)
{
	size_t n = many_count(req);
	json_t *replies = json_array(), *fold;
	bool cut = strcmp(mode, "short") == 0 && json_has(json_object_get(req, "all"), "to", "ERR");
	int failed = 0;

	fake_records = json_array();
	for (size_t i = 0; i + cut < n; i++) {
		json_t *one = many_member(req, i), *reply;

		json_object_set(one, "op", json_object_get(req, "of"));
		reply = failed && json_bool(req, "stops", false) ? json_pack("{s:i}", "rc", -ECANCELED) : answer_op(one, mode);
		failed += json_int(reply, "rc", 0) < 0;
		json_array_append_new(replies, reply);
		json_decref(one);
	}
	say_records();
	fold = n ? many_fold(replies) : json_pack("{s:i,s:s}", "rc", -EINVAL, "error", "many: no fold of requests");
	json_object_set_new(fold, "failed", json_integer(failed));
	json_decref(replies);
	return fold;
}

static inline json_t *answer_part(const json_t *req, const char *mode)
{
	return strcmp(json_str(req, "op"), "many") == 0 ? answer_many(req, mode) : answer_op(req, mode);
}

static inline json_t *answer_one(const json_t *req, const char *mode)
{
	const json_t *ops = json_object_get(req, "ops"), *op;
	bool failed = false;
	json_t *replies;
	size_t i;

	if (strcmp(json_str(req, "op"), "batch") != 0)
		return answer_part(req, mode);
	replies = json_array();
	json_array_foreach((json_t *)ops, i, op) {
		json_t *reply =
			failed && json_bool(req, "stops", false) ? json_pack("{s:i}", "rc", -ECANCELED) : answer_part(op, mode);

		failed |= json_int(reply, "rc", 0) < 0 || json_int(reply, "failed", 0) > 0;
		json_array_append_new(replies, reply);
	}
	return json_pack("{s:i,s:o}", "rc", 0, "replies", replies);
}

/* Modes: good, banner, refuse, garbage (a line that is no JSON), dies (at the first post), deaf (to `poll`), clings, short (in its
 * answers to a move of many to ERR). */
static inline int fake_agent(const char *mode)
{
	static char line[1 << 20];

	if (!mode || strcmp(mode, "stillborn") == 0)
		return 3;
	say(json_pack("{s:{s:i,s:s,s:i,s:s,s:s,s:[s]}}", "hello", "protocol", strcmp(mode, "future") == 0 ? 9 : 1, "build", "fake",
		      "pid", (int)getpid(), "boot_id", "b", "clk", "b/1", "caps", "RC"));
	while (fgets(line, sizeof line, stdin)) {
		json_t *req = json_loads(line, 0, NULL), *reply;
		bool post = req && strstr(line, "\"post\""), poll = req && strstr(line, "\"poll\"");

		if (!req)
			return 4;
		if (post && strcmp(mode, "dies") == 0) {
			json_decref(req);
			return 7;
		}
		if (post && strcmp(mode, "garbage") == 0) {
			printf("librdma: something to say\n");
			fflush(stdout);
		}
		reply = answer_one(req, mode);
		json_object_set(reply, "id", json_object_get(req, "id"));
		if (poll && strcmp(mode, "deaf") == 0)
			json_decref(reply);
		else
			say(reply);
		json_decref(req);
	}
	return 0;
}

/* ---- cases against it ---- */

static struct lab_lane fake_lane = {
	.lane = 2, .boot = 1, .device = { { .name = "a", .rdma = "ra", .port = 1 }, { .name = "b", .rdma = "rb", .port = 1 } }
};

static inline struct controller *controller_of(const char *mode, const char *const *launch)
{
	struct controller_options o = { .agent_path = "/proc/self/exe", .launch = launch };
	struct controller *c = NULL;
	sd_event *loop = NULL;
	char self[512];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	CU_ASSERT_FATAL(n > 0);
	self[n] = 0;
	o.agent_path = self;
	setenv(MODE, mode, 1);
	CU_ASSERT_FATAL(sd_event_default(&loop) >= 0);
	CU_ASSERT_EQUAL_FATAL(controller_new(loop, NULL, &fake_lane, &o, &c, NULL), 0);
	/* Agents are started with the path only while it is on the stack: keep it. */
	c->o.agent_path = strdup(self);
	sd_event_unref(loop);
	return c;
}

static inline void controller_done(struct controller *c)
{
	char *path = (char *)c->o.agent_path;

	controller_free(c);
	free(path);
	unsetenv(MODE);
}

static inline int run_plan(struct controller *c, json_t *plan, json_t **ret_records, struct error *e)
{
	char path[128];
	int rc;

	snprintf(path, sizeof path, "%s/plan.json", dir);
	CU_ASSERT_EQUAL_FATAL(json_save(path, plan, NULL), 0);
	json_decref(plan);
	rc = controller_run_case(c, dir, e);
	snprintf(path, sizeof path, "%s/observations.jsonl", dir);
	CU_ASSERT_EQUAL_FATAL(json_load_lines(path, ret_records, &(bool){ false }, NULL), 0);
	return rc;
}

static inline const char *outcome_of(const json_t *records, int step)
{
	const json_t *r;
	size_t i;

	json_array_foreach((json_t *)records, i, r) {
		const char *kind = json_str(r, "kind"), *phase = json_str(r, "phase");

		if (kind && strcmp(kind, "step") == 0 && phase && strcmp(phase, "end") == 0 && json_int(r, "step", 0) == step)
			return json_str(r, "outcome");
	}
	return "none";
}

static inline const json_t *find_kind(const json_t *records, const char *kind, const char *part)
{
	const json_t *r;
	size_t i;

	json_array_foreach((json_t *)records, i, r) {
		char *text = json_dumps(r, 0);
		bool hit = json_str(r, "kind") && strcmp(json_str(r, "kind"), kind) == 0 && (!part || strstr(text, part));

		free(text);
		if (hit)
			return r;
	}
	return NULL;
}

#define CONNECT "{'n':1,'do':'connect','line':5,'pairs':['p']}"

#endif
