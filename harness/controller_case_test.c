/* SPDX-License-Identifier: MIT */
/* Whole cases without RDMA, against an agent that this program plays itself. */
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

#include "controller_rig.h"
#include "json.h"
#include "log.h"
#include "units.h"
#include "wrid.h"

#define MODE "QD_FAKE_AGENT"

/* ---- an agent made of canned answers ---- */

static void say(json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT);

	if (!text)
		abort();
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
	if (strcmp(op, "release") == 0)
		return json_pack(strcmp(mode, "clings") == 0 ? "{s:i,s:[s]}" : "{s:i,s:[]}", "rc", 0, "left", "p.a");
	return json_pack("{s:i,s:i,s:i}", "rc", 0, "life", 1, "t", 0);
}

static json_t *answer_one(const json_t *req, const char *mode)
{
	const json_t *ops = json_object_get(req, "ops"), *op;
	json_t *replies;
	size_t i;

	if (strcmp(json_str(req, "op"), "batch") != 0)
		return answer_op(req, mode);
	replies = json_array();
	json_array_foreach((json_t *)ops, i, op)
		json_array_append_new(replies, answer_op(op, mode));
	return json_pack("{s:i,s:o}", "rc", 0, "replies", replies);
}

/* Modes: good, banner, refuse, garbage (a line that is no JSON), dies (at the first post), deaf (to `poll`), clings. */
static int fake_agent(const char *mode)
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

static struct controller *controller_of(const char *mode, const char *const *launch)
{
	static struct lab_lane lane = { .lane = 2,
					.boot = 1,
					.device = { { .name = "a", .rdma = "ra", .port = 1 },
						    { .name = "b", .rdma = "rb", .port = 1 } } };
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
	char *path = (char *)c->o.agent_path;

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

	json_array_foreach((json_t *)records, i, r) {
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
#define POST                                                                                                                       \
	"{'n':2,'do':'post','line':6,'at':['p.a'],'op':'SEND','size':64,'count':1,'tag':4096,'tx_off':0,'stride':64,'slots':1,'"   \
	"as':'w'}"

static void a_case_runs_to_its_end(void)
{
	struct controller *c = controller_of("good", NULL);
	struct error e = { "" };
	json_t *records;

	CU_ASSERT_EQUAL(run(c, plan_of("[" CONNECT "," POST ",{'n':3,'do':'wait','line':7,'for_ns':1000000}]", 20 * NSEC_PER_SEC),
			    &records, &e),
			0);
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

/* The plan of a case with the pair that every file has beside its own. */
static json_t *plan_with_bystander(const char *steps)
{
	json_t *doc = json_pack("{s:[{s:s,s:i,s:i}]}", "steps", "do", "connect", "line", 1, "col", 1), *made = NULL,
	       *plan = plan_of(steps, 20 * NSEC_PER_SEC);
	struct scenario_case c = { .id = (char *)"t/x", .doc = doc };
	struct error e = { "" };

	CU_ASSERT_EQUAL_FATAL(plan_make(&c, &(struct plan_options){ .seed = 1 }, &made, &e), 0);
	CU_ASSERT_FATAL(json_is_object(json_object_get(made, "bystander")));
	json_object_set(plan, "bystander", json_object_get(made, "bystander"));
	json_decref(made);
	json_decref(doc);
	return plan;
}

static void the_bystander_comes_and_goes(void)
{
	struct controller *c = controller_of("good", NULL);
	struct error e = { "" };
	struct ctl_agent *a;
	unsigned agents = 0;
	json_t *records;

	CU_ASSERT_EQUAL(run(c, plan_with_bystander("[" CONNECT "," POST "]"), &records, &e), 0);
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 1), "done");
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "bystander", "\"start\""));
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "bystander", "\"stop\""));
	CU_ASSERT_EQUAL(json_int(find_kind(records, "bystander", "\"start\""), "step", -9), 0);
	CU_ASSERT_EQUAL(json_int(find_kind(records, "bystander", "\"stop\""), "step", -9), -1);
	/* That all is well with it fills no file. */
	CU_ASSERT_PTR_NULL(find_kind(records, "hello", "bystander"));
	CU_ASSERT_PTR_NULL(find_kind(records, "counter", "bystander"));
	json_decref(records);
	for (a = c->agents; a; a = a->next)
		agents++;
	CU_ASSERT_EQUAL(agents, 4);
	controller_done(c);
}

static void a_bystander_that_cannot_be_is_an_error_of_the_setup(void)
{
	struct controller *c = controller_of("refuse", NULL);
	struct error e = { "" };
	json_t *records;
	const json_t *step;

	CU_ASSERT(run(c, plan_with_bystander("[" CONNECT "]"), &records, &e) < 0);
	step = find_kind(records, "step", "setup");
	CU_ASSERT_PTR_NOT_NULL_FATAL(step);
	CU_ASSERT_STRING_EQUAL(json_str(step, "outcome"), "error");
	CU_ASSERT_PTR_NOT_NULL(strstr(json_str(step, "text"), "the bystander cannot be set up"));
	CU_ASSERT_PTR_NOT_NULL(strstr(json_str(step, "text"), "Invalid argument"));
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 1), "none");
	json_decref(records);
	controller_done(c);
}

static int lab_mtu = 1500;

static int set_lab_mtu(struct lab *lab, const struct lab_lane *lane, int mtu, struct error *e)
{
	(void)lab;
	(void)lane;
	(void)e;
	lab_mtu = mtu;
	return 0;
}

static int lab_picture(struct lab *lab, int lane, json_t **ret, struct error *e)
{
	(void)lane;
	(void)lab;
	(void)e;
	*ret = json_pack("{s:[], s:[i], s:[], s:[]}", "rdma", "link", lab_mtu, "qdisc", "rule");
	return 0;
}

static void the_links_mtu_is_no_residue(void)
{
	static const struct lab_ops ops = { .name = "fake", .set_mtu = set_lab_mtu, .snapshot = lab_picture };
	struct lab lab = { .ops = &ops };
	struct controller *c = controller_of("good", NULL);
	json_t *plan = plan_of("[" CONNECT "]", 20 * NSEC_PER_SEC), *records;
	struct error e = { "" };

	c->lab = &lab;
	json_object_set_new(plan, "link", json_pack("{s:i}", "mtu", 4200));
	CU_ASSERT_EQUAL(run(c, plan, &records, &e), 0);
	CU_ASSERT_EQUAL(lab_mtu, 4200);
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "residue", "\"link\""));
	CU_ASSERT_PTR_NULL(find_kind(records, "residue", "\"ok\": false"));
	json_decref(records);
	c->lab = NULL;
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

/* Then nothing of the case was tried: no finding on an agent that died, none on what it left. */
static void an_agent_that_never_comes_is_an_error_of_the_setup(void)
{
	const char *const launch[] = { "sh", "-c", "echo no such host; exit 3", "--", NULL };
	struct controller *c = controller_of("good", launch);
	struct error e = { "" };
	json_t *records;

	CU_ASSERT_NOT_EQUAL(run(c, plan_of("[" CONNECT "]", 20 * NSEC_PER_SEC), &records, &e), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "ended before its hello: exit status 3"));
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 0), "error");
	CU_ASSERT_PTR_NULL(find_kind(records, "lost", "agent"));
	CU_ASSERT_PTR_NULL(find_kind(records, "residue", "agent"));
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

	CU_ASSERT_EQUAL(run(c, plan_of("[" CONNECT "," POST ",{'n':3,'do':'wait','line':7,'for_ns':1000000}]", 20 * NSEC_PER_SEC),
			    &records, &e),
			0);
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "lost", "agent/a"));
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 2), "error");
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 3), "done");
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "state", "unreachable: agent a is dead"));
	CU_ASSERT(now_ns() - begin < 60 * NSEC_PER_SEC);
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

	CU_ASSERT_EQUAL(run(c,
			    plan_of("[{'n':1,'do':'poll','line':5,'cq':'ac','deadline_ns':500000000},{'n':2,'do':'wait','line':6,'"
				    "for_ns':3000000000},"
				    "{'n':3,'do':'wait','line':7,'for_ns':1000}]",
				    2500 * NSEC_PER_MSEC),
			    &records, &e),
			0);
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 1), "timeout");
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "blocked", "agent a"));
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 2), "timeout");
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 3), "skipped");
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "dump", NULL));
	CU_ASSERT(now_ns() - begin < 60 * NSEC_PER_SEC);
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

	CU_ASSERT_EQUAL(run(c,
			    plan_of("[{'n':1,'do':'repeat','line':5,'times':3,'passes':{'op':'>=','value':3},'steps':["
				    "{'n':2,'do':'wait','line':6,'for_ns':1000}]},"
				    "{'n':3,'do':'together','line':7,'steps':[{'n':4,'do':'poll','line':8,'cq':'ac'},{'n':5,'do':'"
				    "poll','line':9,'cq':'bc'}]}]",
				    20 * NSEC_PER_SEC),
			    &records, &e),
			0);
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 1), "met");
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 4), "done");
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 5), "done");
	r = find_kind(records, "step", "\"iter\": \"3\"");
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_EQUAL(json_int(r, "step", 0), 2);
	json_decref(records);
	controller_done(c);
}

static const struct test_case tests[] = {
	{ "a case runs to its end", a_case_runs_to_its_end },
	{ "the bystander comes and goes", the_bystander_comes_and_goes },
	{ "a bystander that cannot be is an error of the setup", a_bystander_that_cannot_be_is_an_error_of_the_setup },
	{ "the link's MTU is no residue", the_links_mtu_is_no_residue },
	{ "a banner before the hello is chatter", a_banner_before_the_hello_is_chatter },
	{ "an agent that never comes is an error of the setup", an_agent_that_never_comes_is_an_error_of_the_setup },
	{ "garbage after the hello is recorded", garbage_after_the_hello_is_recorded },
	{ "a refused verb is an outcome", a_refused_verb_is_an_outcome },
	{ "an agent that dies is recorded and the case goes on", an_agent_that_dies_is_recorded_and_the_case_goes_on },
	{ "silence is bounded and the budget ends the case", silence_is_bounded_and_the_budget_ends_the_case },
	{ "an agent that clings is killed and recorded", an_agent_that_clings_is_killed_and_recorded },
	{ "agents that cannot start are the harness's error", agents_that_cannot_start_are_the_harness_s_error },
	{ "a requirement that fails makes a skip", a_requirement_that_fails_makes_a_skip },
	{ "repeat and together keep their steps apart", repeat_and_together_keep_their_steps_apart },
};

int main(void)
{
	if (getenv(MODE))
		return fake_agent(getenv(MODE));
	return run_in_dir("controller_case", tests, sizeof tests / sizeof tests[0]);
}
