/* SPDX-License-Identifier: MIT */
/* The controller without RDMA: its helpers, and whole cases against an agent that this program plays itself. */
#include "controller_case.h"

#include <CUnit/Basic.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include "json.h"
#include "log.h"
#include "units.h"
#include "wrid.h"

#define MODE "QD_FAKE_AGENT"

/* ---- an agent made of canned answers ---- */

static void say(json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT);

	printf("%s\n", text);
	fflush(stdout);
	free(text);
	json_decref(value);
}

static json_t *answer_op(const json_t *req, const char *mode)
{
	const char *op = json_str(req, "op"), *to = json_str(req, "to");

	if (strcmp(op, "device_open") == 0)
		return json_pack("{s:i,s:s,s:i,s:i}", "rc", 0, "gid", "::ffff:10.0.0.1", "gid_index", 1, "mtu", 1024);
	if (strcmp(op, "qp_create") == 0)
		return json_pack("{s:i,s:i,s:i,s:{s:i,s:i}}", "rc", 0, "life", 1, "qpn", 17, "cap", "max_send_wr", 63, "max_recv_wr", 64);
	if (strcmp(op, "mr_create") == 0)
		return json_pack("{s:i,s:i,s:i,s:i,s:s}", "rc", 0, "life", 1, "lkey", 5, "rkey", 6, "addr", "0x1000");
	if (strcmp(op, "cq_create") == 0)
		return json_pack("{s:i,s:i,s:i}", "rc", 0, "life", 1, "cqe", 255);
	if (strcmp(op, "qp_modify") == 0 && strcmp(mode, "refuse") == 0 && strcmp(to, "RTR") == 0)
		return json_pack("{s:i,s:s}", "rc", -EINVAL, "error", "ibv_modify_qp: Invalid argument");
	if (strcmp(op, "qp_modify") == 0)
		return json_pack("{s:i,s:s,s:i,s:{s:s}}", "rc", 0, "new", to, "life", 1, "queried", "state", to);
	if (strcmp(op, "release") == 0)
		return json_pack(strcmp(mode, "clings") == 0 ? "{s:i,s:[s]}" : "{s:i,s:[]}", "rc", 0, "left", "p.a");
	return json_pack("{s:i,s:i,s:i}", "rc", 0, "life", 1, "t", 0);
}

static json_t *answer_one(const json_t *req, const char *mode)
{
	const json_t *ops = json_object_get(req, "ops"), *op;
	json_t *replies;
	size_t i;

	if (!ops)
		return answer_op(req, mode);
	replies = json_array();
	json_array_foreach ((json_t *)(uintptr_t)ops, i, op)
		json_array_append_new(replies, answer_op(op, mode));
	return json_pack("{s:i,s:o}", "rc", 0, "replies", replies);
}

/* Modes: good, banner, refuse, garbage (a line that is no JSON), dies (at the first post), deaf (to `poll`), clings. */
static int fake_agent(const char *mode)
{
	static char line[1 << 20];

	if (strcmp(mode, "stillborn") == 0)
		return 3;
	say(json_pack("{s:{s:i,s:s,s:i,s:s,s:s,s:[s]}}", "hello", "protocol", strcmp(mode, "future") == 0 ? 9 : 1, "build", "fake", "pid", (int)getpid(),
	              "boot_id", "b", "clk", "b/1", "caps", "RC"));
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

static char dir[] = "/tmp/qdctlXXXXXX";

static json_t *plan_of(const char *steps, uint64_t budget_ns)
{
	static const char *const text =
		"{'schema':1,'case':'t/x','seed':'0x1','requires':[],'skip':null,'agents':{'a':{'device':'a'},'b':{'device':'b'}},"
		"'pds':[{'name':'a.pd','agent':'a'},{'name':'b.pd','agent':'b'}],"
		"'cqs':[{'name':'ac','agent':'a','depth':128,'poll':'auto'},{'name':'bc','agent':'b','depth':128,'poll':'auto'}],'srqs':[],"
		"'mrs':[{'name':'p.a.mem','agent':'a','pd':'a.pd','bytes':4096,'access':['LOCAL_WRITE'],'qp':'p.a','role':'mem'},"
		"{'name':'p.b.mem','agent':'b','pd':'b.pd','bytes':4096,'access':['LOCAL_WRITE'],'qp':'p.b','role':'mem'}],"
		"'qps':[{'name':'p.a','pair':'p','agent':'a','peer':'p.b','type':'RC','pd':'a.pd','send_cq':'ac','recv_cq':'ac','srq':null,"
		"'cap':{'max_send_wr':64,'max_recv_wr':64},'signal_all':false,'attr':{'timeout':14,'sq_psn':4660,'path_mtu':1024}},"
		"{'name':'p.b','pair':'p','agent':'b','peer':'p.a','type':'RC','pd':'b.pd','send_cq':'bc','recv_cq':'bc','srq':null,"
		"'cap':{'max_send_wr':64,'max_recv_wr':64},'signal_all':false,'attr':{'timeout':14,'sq_psn':22136,'path_mtu':1024}}],"
		"'msg_bytes':64}";
	json_t *plan, *list;
	char *buf = strdup(text), *more = strdup(steps);

	for (char *c = buf; *c; c++)
		if (*c == '\'')
			*c = '"';
	for (char *c = more; *c; c++)
		if (*c == '\'')
			*c = '"';
	plan = json_loads(buf, 0, NULL);
	list = json_loads(more, 0, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(plan);
	CU_ASSERT_PTR_NOT_NULL_FATAL(list);
	json_object_set_new(plan, "steps", list);
	json_object_set_new(plan, "budget_ns", json_integer((json_int_t)budget_ns));
	free(buf);
	free(more);
	return plan;
}

static struct controller *controller_of(const char *mode, const char *const *launch)
{
	static struct lab_lane lane = { .lane = 2, .boot = 1, .device = { { .name = "a", .rdma = "ra", .port = 1 }, { .name = "b", .rdma = "rb", .port = 1 } } };
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
	CU_ASSERT_EQUAL_FATAL(controller_new(loop, NULL, &lane, &o, &c, NULL), 0);
	/* Agents are started with the path only while it is on the stack: keep it. */
	c->o.agent_path = strdup(self);
	sd_event_unref(loop);
	return c;
}

static void controller_done(struct controller *c)
{
	char *path = (char *)(uintptr_t)c->o.agent_path;

	controller_free(c);
	free(path);
	unsetenv(MODE);
}

static int run(struct controller *c, json_t *plan, json_t **ret_records, struct error *e)
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

static const char *outcome_of(const json_t *records, int step)
{
	const json_t *r;
	size_t i;

	json_array_foreach ((json_t *)(uintptr_t)records, i, r) {
		const char *kind = json_str(r, "kind"), *phase = json_str(r, "phase");

		if (kind && strcmp(kind, "step") == 0 && phase && strcmp(phase, "end") == 0 && json_int(r, "step", 0) == step)
			return json_str(r, "outcome");
	}
	return "none";
}

static const json_t *find_kind(const json_t *records, const char *kind, const char *part)
{
	const json_t *r;
	size_t i;

	json_array_foreach ((json_t *)(uintptr_t)records, i, r) {
		char *text = json_dumps(r, 0);
		bool hit = json_str(r, "kind") && strcmp(json_str(r, "kind"), kind) == 0 && (!part || strstr(text, part));

		free(text);
		if (hit)
			return r;
	}
	return NULL;
}

#define CONNECT "{'n':1,'do':'connect','line':5,'pairs':['p']}"
#define POST "{'n':2,'do':'post','line':6,'at':['p.a'],'op':'SEND','size':64,'count':1,'tag':4096,'tx_off':0,'stride':64,'slots':1,'as':'w'}"

static void a_case_runs_to_its_end(void)
{
	struct controller *c = controller_of("good", NULL);
	struct error e = { "" };
	json_t *records;

	CU_ASSERT_EQUAL(run(c, plan_of("[" CONNECT "," POST ",{'n':3,'do':'wait','line':7,'for_ns':1000000}]", 20 * NSEC_PER_SEC), &records, &e), 0);
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 1), "done");
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 2), "done");
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 3), "done");
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "hello", "agent/a"));
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "hello", "\"case\": \"t/x\""));
	CU_ASSERT_PTR_NULL(find_kind(records, "residue", "process"));
	CU_ASSERT_PTR_NULL(find_kind(records, "blocked", NULL));
	json_decref(records);
	/* The same agents serve the next case. */
	CU_ASSERT_PTR_NOT_NULL_FATAL(c->agents);
	pid_t pid = c->agents->proc.pid;

	CU_ASSERT_EQUAL(run(c, plan_of("[" CONNECT "]", 20 * NSEC_PER_SEC), &records, &e), 0);
	CU_ASSERT_EQUAL(c->agents->proc.pid, pid);
	json_decref(records);
	controller_done(c);
}

static void a_banner_before_the_hello_is_chatter(void)
{
	const char *const launch[] = { "sh", "-c", "echo welcome; echo '{}x'; exec \"$@\"", "--", NULL };
	struct controller *c = controller_of("good", launch);
	struct error e = { "" };
	json_t *records;

	CU_ASSERT_EQUAL(run(c, plan_of("[" CONNECT "]", 20 * NSEC_PER_SEC), &records, &e), 0);
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 1), "done");
	CU_ASSERT_PTR_NULL(find_kind(records, "lost", "no JSON"));
	json_decref(records);
	controller_done(c);
}

static void garbage_after_the_hello_is_recorded(void)
{
	struct controller *c = controller_of("garbage", NULL);
	struct error e = { "" };
	json_t *records;

	CU_ASSERT_EQUAL(run(c, plan_of("[" CONNECT "," POST "]", 20 * NSEC_PER_SEC), &records, &e), 0);
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "lost", "librdma"));
	json_decref(records);
	controller_done(c);
}

static void a_refused_verb_is_an_outcome(void)
{
	struct controller *c = controller_of("refuse", NULL);
	struct error e = { "" };
	json_t *records;

	CU_ASSERT_EQUAL(run(c, plan_of("[" CONNECT "]", 20 * NSEC_PER_SEC), &records, &e), 0);
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 1), "refused");
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "step", "Invalid argument"));
	json_decref(records);
	controller_done(c);
}

static void an_agent_that_dies_is_recorded_and_the_case_goes_on(void)
{
	struct controller *c = controller_of("dies", NULL);
	struct error e = { "" };
	json_t *records;
	uint64_t begin = now_ns();

	CU_ASSERT_EQUAL(run(c, plan_of("[" CONNECT "," POST ",{'n':3,'do':'wait','line':7,'for_ns':1000000}]", 20 * NSEC_PER_SEC), &records, &e), 0);
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "lost", "agent/a"));
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 2), "error");
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 3), "done");
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "state", "unreachable: agent a is dead"));
	CU_ASSERT(now_ns() - begin < 10 * NSEC_PER_SEC);
	json_decref(records);
	/* The next case gets a new one. */
	setenv(MODE, "good", 1);
	CU_ASSERT_EQUAL(run(c, plan_of("[" CONNECT "]", 20 * NSEC_PER_SEC), &records, &e), 0);
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 1), "done");
	json_decref(records);
	controller_done(c);
}

static void silence_is_bounded_and_the_budget_ends_the_case(void)
{
	struct controller *c = controller_of("deaf", NULL);
	struct error e = { "" };
	json_t *records;
	uint64_t begin = now_ns();

	CU_ASSERT_EQUAL(run(c, plan_of("[{'n':1,'do':'poll','line':5,'cq':'ac','deadline_ns':200000000},{'n':2,'do':'wait','line':6,'for_ns':300000000},"
	                               "{'n':3,'do':'wait','line':7,'for_ns':1000}]", 400 * NSEC_PER_MSEC), &records, &e), 0);
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 1), "timeout");
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "blocked", "agent a"));
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 2), "timeout");
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 3), "skipped");
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "dump", NULL));
	CU_ASSERT(now_ns() - begin < 5 * NSEC_PER_SEC);
	json_decref(records);
	controller_done(c);
}

static void an_agent_that_clings_is_killed_and_recorded(void)
{
	struct controller *c = controller_of("clings", NULL);
	struct error e = { "" };
	json_t *records;

	CU_ASSERT_EQUAL(run(c, plan_of("[" CONNECT "]", 20 * NSEC_PER_SEC), &records, &e), 0);
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "residue", "p.a"));
	CU_ASSERT_PTR_NULL(c->agents);
	json_decref(records);
	controller_done(c);
}

static void agents_that_cannot_start_are_the_harness_s_error(void)
{
	static const struct {
		const char *mode, *text;
	} rows[] = { { "stillborn", "ended before its hello" }, { "future", "speaks protocol 9" } };

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct controller *c = controller_of(rows[i].mode, NULL);
		struct error e = { "" };
		json_t *records;

		CU_ASSERT(run(c, plan_of("[" CONNECT "]", 20 * NSEC_PER_SEC), &records, &e) < 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, rows[i].text));
		CU_ASSERT_PTR_NOT_NULL(find_kind(records, "step", "error"));
		json_decref(records);
		controller_done(c);
	}
}

static void a_requirement_that_fails_makes_a_skip(void)
{
	struct controller *c = controller_of("good", NULL);
	struct error e = { "" };
	json_t *records, *plan = plan_of("[" CONNECT "]", 20 * NSEC_PER_SEC), *after = NULL;
	char path[128];

	json_object_set_new(plan, "requires", json_pack("[s]", "kernel >= 99.0"));
	CU_ASSERT_EQUAL(run(c, plan, &records, &e), 0);
	snprintf(path, sizeof path, "%s/plan.json", dir);
	CU_ASSERT_EQUAL_FATAL(json_load(path, &after, NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(json_str(after, "skip"));
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 1), "none");
	json_decref(after);
	json_decref(records);
	controller_done(c);
}

static void repeat_and_together_keep_their_steps_apart(void)
{
	struct controller *c = controller_of("good", NULL);
	struct error e = { "" };
	json_t *records;
	const json_t *r;

	CU_ASSERT_EQUAL(run(c, plan_of("[{'n':1,'do':'repeat','line':5,'times':3,'passes':{'op':'>=','value':3},'steps':["
	                               "{'n':2,'do':'wait','line':6,'for_ns':1000}]},"
	                               "{'n':3,'do':'together','line':7,'steps':[{'n':4,'do':'poll','line':8,'cq':'ac'},{'n':5,'do':'poll','line':9,'cq':'bc'}]}]",
	                               20 * NSEC_PER_SEC), &records, &e), 0);
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 1), "met");
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 4), "done");
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 5), "done");
	r = find_kind(records, "step", "\"iter\": \"3\"");
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_EQUAL(json_int(r, "step", 0), 2);
	json_decref(records);
	controller_done(c);
}

/* ---- helpers ---- */

static void every_life_starts_far_from_the_last(void)
{
	uint32_t psn = 4660;

	for (unsigned life = 1; life <= 1000; life++) {
		uint32_t last = (psn + (life * 7919u) % 100000u) & CTL_PSN_MASK;
		uint32_t next = psn_away(psn, last, case_random(42, "p.a", life));
		uint32_t ahead = (next - last) & CTL_PSN_MASK, behind = (psn - next) & CTL_PSN_MASK;

		CU_ASSERT_FATAL(next <= CTL_PSN_MASK);
		CU_ASSERT_FATAL(ahead >= CTL_PSN_GAP && behind >= CTL_PSN_GAP);
		CU_ASSERT_EQUAL(next, psn_away(psn, last, case_random(42, "p.a", life)));
		psn = next;
	}
	CU_ASSERT_NOT_EQUAL(case_random(42, "p.a", 1), case_random(42, "p.b", 1));
	CU_ASSERT_NOT_EQUAL(case_random(42, "p.a", 1), case_random(43, "p.a", 1));
	/* A window that leaves no such place still gives the farthest one. */
	CU_ASSERT_EQUAL(psn_away(0, 0xf00000, 5), 0xf80000);
}

static void run_with_plan(struct case_run *r, struct controller *c)
{
	*c = (struct controller){ .kmsg_fd = -1 };
	*r = (struct case_run){ .c = c, .plan = plan_of("[]", 0), .seed = 1, .wc_counts = json_object(), .inbox = json_array(), .remembered = json_object(),
		                .traffics = json_object() };
	CU_ASSERT_EQUAL_FATAL(ctl_objects_init(r, NULL), 0);
}

static void run_done(struct case_run *r)
{
	posts_free(r);
	ctl_objects_free(r);
	json_decref(r->wc_counts);
	json_decref(r->inbox);
	json_decref(r->remembered);
	json_decref(r->traffics);
	json_decref(r->plan);
}

static void references_resolve_to_what_the_device_returned(void)
{
	static const struct {
		const char *ref;
		int add, rc;
		int64_t value;
	} rows[] = {
		{ "p.a.max_send_wr", 0, 0, 63 },      /* returned */
		{ "p.a.max_recv_wr", 1, 0, 65 },
		{ "a.max_send_wr", -3, 0, 60 },       /* an agent with one QP */
		{ "ac.cqe", 16, 0, 271 },
		{ "bc.depth", 0, 0, 128 },            /* not made: planned */
		{ "p.b.timeout", 0, 0, 14 },
		{ "ac.nothing", 0, -ENOENT, 0 },
		{ "zz.cqe", 0, -ENOENT, 0 },
		{ "cqe", 0, -ENOENT, 0 },
	};
	struct controller c;
	struct case_run r;
	struct object *o;

	run_with_plan(&r, &c);
	ctl_object_find(&r, "p.a")->ret = json_pack("{s:{s:i,s:i}}", "cap", "max_send_wr", 63, "max_recv_wr", 64);
	ctl_object_find(&r, "ac")->ret = json_pack("{s:i}", "cqe", 255);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *v = json_pack("{s:s,s:i}", "ref", rows[i].ref, "add", rows[i].add);
		struct error e = { "" };
		int64_t got = 0;

		CU_ASSERT_EQUAL(value_resolve(&r, v, -1, &got, &e), rows[i].rc);
		CU_ASSERT_EQUAL(got, rows[i].value);
		CU_ASSERT_EQUAL(e.text[0] != 0, rows[i].rc != 0);
		json_decref(v);
	}
	int64_t got = 0;

	CU_ASSERT_EQUAL(value_resolve(&r, NULL, 9, &got, NULL), 0);
	CU_ASSERT_EQUAL(got, 9);
	o = ctl_object_find(&r, "p.b");
	CU_ASSERT_STRING_EQUAL(o->peer, "p.a");
	run_done(&r);
}

static void ends_are_found_by_pair_life_and_queue(void)
{
	static const struct {
		const char *name;
		int rc;
	} rows[] = { { "p.a", 0 }, { "p.a@1", 0 }, { "p.b.recv", 0 }, { "ac", -ENOENT }, { "p.c", -ENOENT } };
	struct controller c;
	struct case_run r;
	struct ends ends = { NULL, 0 };

	run_with_plan(&r, &c);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *names = json_pack("[s]", rows[i].name);

		CU_ASSERT_EQUAL(ends_of_names(&r, names, &ends, NULL), rows[i].rc);
		CU_ASSERT_EQUAL(ends.n, rows[i].rc ? 0 : 1);
		ends_free(&ends);
		json_decref(names);
	}
	CU_ASSERT_EQUAL(ends_of_pairs(&r, NULL, &ends, NULL), 0);
	CU_ASSERT_EQUAL(ends.n, 2);
	ends_free(&ends);
	run_done(&r);
}

static void lives_and_keys_follow_the_replies(void)
{
	struct controller c;
	struct case_run r;
	struct object *qp, *mr;
	json_t *create = json_pack("{s:s,s:s}", "op", "qp_create", "name", "p.a"), *made = json_pack("{s:i,s:i,s:i}", "rc", 0, "life", 1, "qpn", 17);
	json_t *reset = json_pack("{s:s,s:s,s:s}", "op", "qp_modify", "name", "p.a", "to", "RESET");
	json_t *is_reset = json_pack("{s:i,s:i,s:{s:s}}", "rc", 0, "life", 2, "queried", "state", "RESET");
	json_t *reg = json_pack("{s:s,s:s}", "op", "mr_create", "name", "p.a.mem"), *key = json_pack("{s:i,s:i,s:i}", "rc", 0, "life", 1, "rkey", 6);
	json_t *refused = json_pack("{s:i}", "rc", -EINVAL);
	uint32_t first;

	run_with_plan(&r, &c);
	qp = ctl_object_find(&r, "p.a");
	mr = ctl_object_find(&r, "p.a.mem");
	first = qp->sq_psn;
	CU_ASSERT_EQUAL(first, 4660);
	effect_apply(&r, "a", create, refused);
	CU_ASSERT_FALSE(qp->exists);
	effect_apply(&r, "a", create, made);
	CU_ASSERT_TRUE(qp->exists);
	CU_ASSERT_EQUAL(qp->qpn, 17);
	CU_ASSERT_EQUAL(qp->sq_psn, first);
	qp->receives_posted = true;
	effect_apply(&r, "a", reset, is_reset);
	CU_ASSERT_FALSE(qp->receives_posted);
	CU_ASSERT_EQUAL(qp->life, 2);
	CU_ASSERT(((qp->sq_psn - first) & CTL_PSN_MASK) >= CTL_PSN_GAP && ((first - qp->sq_psn) & CTL_PSN_MASK) >= CTL_PSN_GAP);
	effect_apply(&r, "a", reg, key);
	CU_ASSERT_FALSE(mr->had_old);
	json_object_set_new(key, "rkey", json_integer(7));
	effect_apply(&r, "a", reg, key);
	CU_ASSERT_TRUE(mr->had_old);
	CU_ASSERT_EQUAL(mr->old_rkey, 6);
	CU_ASSERT_EQUAL(mr->rkey, 7);
	ctl_objects_lost(&r, "a");
	CU_ASSERT_FALSE(qp->exists);
	CU_ASSERT_FALSE(mr->exists);
	json_t *all[] = { create, made, reset, is_reset, reg, key, refused };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		json_decref(all[i]);
	run_done(&r);
}

static json_t *hex_id(unsigned life, uint32_t seq)
{
	return json_hex(wrid_encode((struct wrid){ .life = life, .queue = 3, .kind = WRID_SEND, .seq = seq }));
}

static void completions_are_counted_by_post(void)
{
	struct controller c;
	struct case_run r;
	struct post *p = calloc(1, sizeof *p);
	json_t *rec;

	run_with_plan(&r, &c);
	p->qp = ctl_object_find(&r, "p.a");
	p->tag = 4096;
	DL_APPEND(r.posts, p);
	rec = json_pack("{s:s,s:s,s:i,s:i,s:o,s:o}", "kind", "post", "obj", "p.a.send", "tag", 4096, "accepted", 4, "first", hex_id(1, 10), "last",
	                hex_id(1, 13));
	posts_note(&r, rec);
	json_decref(rec);
	CU_ASSERT_TRUE(p->has_ids);
	CU_ASSERT_EQUAL(p->accepted, 4);
	/* A run that begins before it, one of another life, and an error. */
	rec = json_pack("{s:s,s:s,s:s,s:i,s:o,s:o}", "kind", "wc", "obj", "p.a.send", "status", "SUCCESS", "count", 5, "first", hex_id(1, 7), "last",
	                hex_id(1, 11));
	posts_note(&r, rec);
	json_decref(rec);
	CU_ASSERT_EQUAL(p->succeeded, 2);
	rec = json_pack("{s:s,s:s,s:s,s:i,s:o,s:o}", "kind", "wc", "obj", "p.a.send", "status", "SUCCESS", "count", 2, "first", hex_id(2, 10), "last",
	                hex_id(2, 11));
	posts_note(&r, rec);
	json_decref(rec);
	CU_ASSERT_EQUAL(p->succeeded, 2);
	rec = json_pack("{s:s,s:s,s:s,s:i,s:o,s:o}", "kind", "wc", "obj", "p.a.send", "status", "WR_FLUSH_ERR", "count", 2, "first", hex_id(1, 12), "last",
	                hex_id(1, 13));
	posts_note(&r, rec);
	json_decref(rec);
	CU_ASSERT_EQUAL(p->failed, 2);
	CU_ASSERT_EQUAL(r.fault_env.wc_count == NULL, true);
	CU_ASSERT_EQUAL(json_int(r.wc_counts, "p.a.send WR_FLUSH_ERR", 0), 2);
	run_done(&r);
}

static void differences_are_what_only_one_side_has(void)
{
	json_t *a = json_pack("[{s:s},{s:s}]", "ifname", "lo", "ifname", "v0"), *b = json_pack("[{s:s},{s:s}]", "ifname", "v1", "ifname", "lo");
	json_t *gone = residue_difference(a, b), *new = residue_difference(b, a), *none = residue_difference(NULL, a);

	CU_ASSERT_EQUAL_FATAL(json_array_size(gone), 1);
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(gone, 0), "ifname"), "v0");
	CU_ASSERT_EQUAL_FATAL(json_array_size(new), 1);
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(new, 0), "ifname"), "v1");
	CU_ASSERT_EQUAL(json_array_size(none), 0);
	json_decref(a);
	json_decref(b);
	json_decref(gone);
	json_decref(new);
	json_decref(none);
}

static void comparisons_hold(void)
{
	static const struct {
		const char *op;
		int64_t value;
		bool holds;
	} rows[] = {
		{ ">=", 3, true }, { ">=", 4, false }, { "<=", 3, true }, { "<=", 2, false }, { ">", 2, true }, { ">", 3, false },
		{ "<", 4, true },  { "<", 3, false },  { "==", 3, true }, { "==", 2, false }, { "~", 3, false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *cmp = json_pack("{s:s,s:I}", "op", rows[i].op, "value", (json_int_t)rows[i].value);

		CU_ASSERT_EQUAL(compare_holds(cmp, 3), rows[i].holds);
		json_decref(cmp);
	}
	json_t *range = json_pack("{s:s,s:i,s:i}", "op", "range", "min", 2, "max", 3), *open = json_pack("{s:s,s:i}", "op", "range", "min", 4);

	CU_ASSERT_TRUE(compare_holds(range, 3));
	CU_ASSERT_FALSE(compare_holds(range, 4));
	CU_ASSERT_TRUE(compare_holds(open, 400));
	CU_ASSERT_FALSE(compare_holds(open, 3));
	json_decref(range);
	json_decref(open);
}

static void put(const char *base, const char *rel, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", base, rel);
	for (char *c = strchr(path + 1, '/'); c; c = strchr(c + 1, '/')) {
		*c = 0;
		mkdir(path, 0755);
		*c = '/';
	}
	f = fopen(path, "we");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fprintf(f, "%s\n", text);
	fclose(f);
}

static void a_gid_is_found_where_it_stands(void)
{
	static const char *const files[][2] = {
		{ "class/infiniband/r/ports/1/gids/0", "0000:0000:0000:0000:0000:0000:0000:0000" },
		{ "class/infiniband/r/ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0001" },
		{ "class/infiniband/r/ports/1/gids/2", "0000:0000:0000:0000:0000:ffff:0a00:0001" },
		{ "class/infiniband/r/ports/1/gid_attrs/types/1", "IB/RoCE v1" },
		{ "class/infiniband/r/ports/1/gid_attrs/types/2", "RoCE v2" },
	};
	char base[64];
	char *argv[] = { (char[]){ "rm" }, (char[]){ "-r" }, base, NULL };

	snprintf(base, sizeof base, "%s/sys", dir);
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		put(base, files[i][0], files[i][1]);
	CU_ASSERT_EQUAL(gid_find(base, "r", 1, "::ffff:10.0.0.1"), 2);
	CU_ASSERT_EQUAL(gid_find(base, "r", 1, "::ffff:10.0.0.2"), -ENOENT);
	CU_ASSERT_EQUAL(gid_find(base, "r", 2, "::ffff:10.0.0.1"), -ENOENT);
	CU_ASSERT_EQUAL(gid_find(base, "r", 1, "nonsense"), -EINVAL);
	CU_ASSERT_EQUAL(proc_run(argv, 5 * NSEC_PER_SEC, NULL, NULL), 0);
}

static void tables_are_complete(void)
{
	static const char *const steps[] = { "connect", "create", "destroy", "modify", "post", "post_recv", "poll", "traffic", "fault", "clear", "expect",
		                             "allow", "recover", "remember", "exchange", "repeat", "together", "wait" };
	static const char *const paths[] = { "reset", "recreate", "cm", "sq", "sqd", "reopen", "restart" };

	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		const struct step_ops *s = step_find(steps[i]);

		CU_ASSERT_PTR_NOT_NULL_FATAL(s);
		CU_ASSERT_TRUE((s->run == NULL) == (s->queue != NULL));
	}
	CU_ASSERT_PTR_NULL(step_find("dance"));
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
		CU_ASSERT_PTR_NOT_NULL(recover_find(paths[i]));
	CU_ASSERT_PTR_NOT_NULL(recover_find("reset")->run);
	CU_ASSERT_PTR_NOT_NULL(recover_find("recreate")->run);
	for (int i = 0; i < NUM_OUTCOMES; i++)
		CU_ASSERT_PTR_NOT_NULL(outcome_names[i]);
	for (int i = 0; i < NUM_OBJECT_TYPES; i++)
		CU_ASSERT_PTR_NOT_NULL(ctl_object_type_names[i]);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "every life starts far from the last", every_life_starts_far_from_the_last },
	{ "references resolve to what the device returned", references_resolve_to_what_the_device_returned },
	{ "ends are found by pair, life and queue", ends_are_found_by_pair_life_and_queue },
	{ "lives and keys follow the replies", lives_and_keys_follow_the_replies },
	{ "completions are counted by post", completions_are_counted_by_post },
	{ "differences are what only one side has", differences_are_what_only_one_side_has },
	{ "comparisons hold", comparisons_hold },
	{ "a GID is found where it stands", a_gid_is_found_where_it_stands },
	{ "tables are complete", tables_are_complete },
	{ "a case runs to its end", a_case_runs_to_its_end },
	{ "a banner before the hello is chatter", a_banner_before_the_hello_is_chatter },
	{ "garbage after the hello is recorded", garbage_after_the_hello_is_recorded },
	{ "a refused verb is an outcome", a_refused_verb_is_an_outcome },
	{ "an agent that dies is recorded and the case goes on", an_agent_that_dies_is_recorded_and_the_case_goes_on },
	{ "silence is bounded and the budget ends the case", silence_is_bounded_and_the_budget_ends_the_case },
	{ "an agent that clings is killed and recorded", an_agent_that_clings_is_killed_and_recorded },
	{ "agents that cannot start are the harness's error", agents_that_cannot_start_are_the_harness_s_error },
	{ "a requirement that fails makes a skip", a_requirement_that_fails_makes_a_skip },
	{ "repeat and together keep their steps apart", repeat_and_together_keep_their_steps_apart },
};

static void clean_up(void)
{
	char path[128];

	snprintf(path, sizeof path, "%s/plan.json", dir);
	unlink(path);
	snprintf(path, sizeof path, "%s/observations.jsonl", dir);
	unlink(path);
	rmdir(dir);
}

int main(void)
{
	CU_pSuite suite;
	unsigned failed;

	if (getenv(MODE))
		return fake_agent(getenv(MODE));
	signal(SIGPIPE, SIG_IGN);
	log_init("controller_test", false);
	if (!mkdtemp(dir) || CU_initialize_registry() != CUE_SUCCESS)
		return 2;
	suite = CU_add_suite("controller", NULL, NULL);
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
		CU_add_test(suite, tests[i].name, tests[i].run);
	CU_basic_set_mode(CU_BRM_NORMAL);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	clean_up();
	return failed ? 1 : 0;
}
