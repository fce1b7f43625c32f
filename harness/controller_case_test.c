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

#include "controller_fake.h"
#include "controller_step.h"
#include "json.h"
#include "run.h"
#include "units.h"

#define POST                                                                                                                       \
	"{'n':2,'do':'post','line':6,'at':['p.a'],'op':'SEND','size':64,'count':1,'tag':4096,'tx_off':0,'stride':64,'slots':1,'"   \
	"as':'w'}"

static void a_case_runs_to_its_end(void)
{
	struct controller *c = controller_of("good", NULL);
	struct error e = { "" };
	json_t *records;

	CU_ASSERT_EQUAL(run_plan(c,
				 plan_of("[" CONNECT "," POST ",{'n':3,'do':'wait','line':7,'for_ns':1000000}]", 20 * NSEC_PER_SEC),
				 &records, &e),
			0);
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 1), "done");
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 2), "done");
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 3), "done");
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "hello", "agent/a"));
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "hello", "\"case\": \"t/x\""));
	CU_ASSERT_PTR_NULL(find_kind(records, "residue", "process"));
	CU_ASSERT_PTR_NULL(find_kind(records, "blocked", NULL));
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "hello", "\"ends\": true"));
	CU_ASSERT(json_has(json_array_get(records, json_array_size(records) - 1), "kind", "end"));
	json_decref(records);
	/* The same agents serve the next case. */
	CU_ASSERT_PTR_NOT_NULL_FATAL(c->agents);
	pid_t pid = c->agents->proc.pid;

	CU_ASSERT_EQUAL(run_plan(c, plan_of("[" CONNECT "]", 20 * NSEC_PER_SEC), &records, &e), 0);
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

	CU_ASSERT_EQUAL(run_plan(c, plan_with_bystander("[" CONNECT "," POST "]"), &records, &e), 0);
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

	CU_ASSERT(run_plan(c, plan_with_bystander("[" CONNECT "]"), &records, &e) < 0);
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
	CU_ASSERT_EQUAL(run_plan(c, plan, &records, &e), 0);
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

	CU_ASSERT_EQUAL(run_plan(c, plan_of("[" CONNECT "]", 20 * NSEC_PER_SEC), &records, &e), 0);
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

	CU_ASSERT_NOT_EQUAL(run_plan(c, plan_of("[" CONNECT "]", 20 * NSEC_PER_SEC), &records, &e), 0);
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

	CU_ASSERT_EQUAL(run_plan(c, plan_of("[" CONNECT "," POST "]", 20 * NSEC_PER_SEC), &records, &e), 0);
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "lost", "librdma"));
	json_decref(records);
	controller_done(c);
}

static void a_refused_verb_is_an_outcome(void)
{
	struct controller *c = controller_of("refuse", NULL);
	struct error e = { "" };
	json_t *records;

	CU_ASSERT_EQUAL(run_plan(c, plan_of("[" CONNECT "]", 20 * NSEC_PER_SEC), &records, &e), 0);
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

	CU_ASSERT_EQUAL(run_plan(c,
				 plan_of("[" CONNECT "," POST ",{'n':3,'do':'wait','line':7,'for_ns':1000000}]", 20 * NSEC_PER_SEC),
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
	CU_ASSERT_EQUAL(run_plan(c, plan_of("[" CONNECT "]", 20 * NSEC_PER_SEC), &records, &e), 0);
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

	CU_ASSERT_EQUAL(
		run_plan(c,
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
	static const struct {
		const char *mode, *text;
	} rows[] = { { "clings", "[\\\"p.a\\\"]" }, { "cannot let go", "ibv_dereg_mr of p.a.mem has not returned" } };

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct controller *c = controller_of(rows[i].mode, NULL);
		struct error e = { "" };
		json_t *records;

		CU_ASSERT_EQUAL(run_plan(c, plan_of("[" CONNECT "]", 20 * NSEC_PER_SEC), &records, &e), 0);
		ROW_ASSERT(find_kind(records, "residue", rows[i].text) != NULL, "%s", rows[i].mode);
		CU_ASSERT_PTR_NULL(c->agents);
		json_decref(records);
		controller_done(c);
	}
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

		CU_ASSERT(run_plan(c, plan_of("[" CONNECT "]", 20 * NSEC_PER_SEC), &records, &e) < 0);
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
	CU_ASSERT_EQUAL(run_plan(c, plan, &records, &e), 0);
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

	CU_ASSERT_EQUAL(
		run_plan(c,
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

/* What is no message stands where it was written: what comes before it is sent first. */
static void together_keeps_the_order_of_what_is_no_message(void)
{
	struct controller *c = controller_of("good", NULL);
	struct error e = { "" };
	char order[64] = "";
	json_t *records;
	const json_t *r;
	size_t i;

	CU_ASSERT_EQUAL(run_plan(c,
				 plan_of("[{'n':1,'do':'together','line':4,'steps':["
					 "{'n':2,'do':'poll','line':5,'cq':'ac'},{'n':3,'do':'poll','line':6,'cq':'bc'},"
					 "{'n':4,'do':'connect','line':7,'pairs':['p']},{'n':5,'do':'poll','line':8,'cq':'ac'}]}]",
					 20 * NSEC_PER_SEC),
				 &records, &e),
			0);
	json_array_foreach(records, i, r)
		if (json_has(r, "kind", "step"))
			snprintf(order + strlen(order), sizeof order - strlen(order), "%d%s ", (int)json_int(r, "step", 0),
				 json_has(r, "phase", "begin") ? "(" : ")");
	CU_ASSERT_STRING_EQUAL(order, "1( 2( 3( 2) 3) 4( 4) 5( 5) 1) ");
	json_decref(records);
	controller_done(c);
}

/* What is late while a case runs is on its record, and nothing else. */
static void late_step(void *user, const char *case_id, int step, const char *what)
{
	(void)case_id;
	(void)what;
	if (step == 2)
		kernel_witness_saw(user, 1, 40 * NSEC_PER_MSEC);
}

/* Something was 700 ms late before its next case. */
static struct kernel_witness *watch(struct controller *c)
{
	struct kernel_witness *w = NULL;

	CU_ASSERT_EQUAL_FATAL(kernel_witness_new(3, &w, NULL), 0);
	kernel_witness_saw(w, 0, 700 * NSEC_PER_MSEC);
	c->o.witness = w;
	return w;
}

static void how_late_the_kernel_was_is_of_the_case(void)
{
	struct controller *c = controller_of("good", NULL);
	struct kernel_witness *w = watch(c);
	struct error e = { "" };
	json_t *records;

	c->o.on_step = late_step;
	c->o.user = w;
	for (int late = 1; late >= 0; late--) {
		const json_t *rec;

		CU_ASSERT_EQUAL(
			run_plan(c, plan_of(late ? "[" CONNECT "," POST "]" : "[" CONNECT "]", 20 * NSEC_PER_SEC), &records, &e),
			0);
		rec = find_kind(records, "clock", "\"witness\"");
		CU_ASSERT_STRING_EQUAL(json_str(rec, "src"), "controller");
		CU_ASSERT_EQUAL(json_int(rec, "samples", -1), late);
		CU_ASSERT_EQUAL(json_u64(rec, "late_max_ns", 1), (uint64_t)late * 40 * NSEC_PER_MSEC);
		json_decref(records);
	}
	controller_done(c);
	kernel_witness_free(w);
}

/* What the case before it had on record is not its own: it counts as one of which nothing was measured. */
static void a_case_that_did_not_begin_has_no_lateness(void)
{
	struct controller *c = controller_of("no device", NULL);
	struct kernel_witness *w = watch(c);
	struct error e = { "" };
	json_t *records;

	CU_ASSERT(run_plan(c, plan_of("[" CONNECT "]", 20 * NSEC_PER_SEC), &records, &e) < 0);
	CU_ASSERT_PTR_NOT_NULL(find_kind(records, "step", "setup"));
	CU_ASSERT_PTR_NULL(find_kind(records, "clock", "\"witness\""));
	CU_ASSERT_EQUAL(run_lateness(dir), UINT64_MAX);
	json_decref(records);
	controller_done(c);
	kernel_witness_free(w);
}

static void agents_elsewhere_have_timers_of_their_own(void)
{
	struct ctl_agent here = { .name = "a", .line = (struct line *)"", .hello = json_pack("{s:s}", "clk", "b/1") },
			 there = { .name = "b", .line = (struct line *)"", .hello = json_pack("{s:s}", "clk", "b/2") };
	struct kernel_witness *w = NULL;
	struct controller c;
	struct case_run r;

	CU_ASSERT_EQUAL_FATAL(kernel_witness_new(1, &w, NULL), 0);
	bare_run(&r, &c, plan_of("[]", NSEC_PER_SEC));
	here.c = there.c = &c;
	here.next = &there;
	c.agents = &here;
	snprintf(c.clk, sizeof c.clk, "b/1");
	for (int all = 0; all < 2; all++) {
		struct ops ops = { .head = NULL };
		char asked[8] = "";

		c.o.witness = all ? NULL : w;
		witness_add(&r, &ops, true);
		witness_add(&r, &ops, false);
		for (const struct op *op = ops.head; op; op = op->next) {
			CU_ASSERT_STRING_EQUAL(json_str(op->req, "op"), "witness");
			snprintf(asked + strlen(asked), sizeof asked - strlen(asked), "%s", op->agent);
		}
		CU_ASSERT_STRING_EQUAL(asked, all ? "abab" : "bb");
		ops_free(&ops);
	}
	c.agents = NULL;
	bare_run_done(&r);
	json_decref(here.hello);
	json_decref(there.hello);
	kernel_witness_free(w);
}

/* A device whose QPs are in RTS and stay there. Mode "no device": there is none. */
static json_t *stays_in_rts(const json_t *req)
{
	static json_int_t t = 1000;
	const char *mode = getenv(MODE);

	if (strcmp(json_str(req, "op"), "device_open") == 0 && mode && strcmp(mode, "no device") == 0)
		return json_pack("{s:i,s:s}", "rc", -ENODEV, "error", "no such device");
	if (strcmp(json_str(req, "op"), "qp_query") != 0)
		return NULL;
	say_record(json_pack("{s:I,s:s,s:O,s:i,s:s,s:O,s:{s:s}}", "t", t++, "kind", "state", "obj", json_object_get(req, "name"),
			     "life", 1, "new", "RTS", "by", json_object_get(req, "by"), "queried", "state", "RTS"));
	return json_pack("{s:i,s:i,s:{s:s}}", "rc", 0, "life", 1, "state", "state", "RTS");
}

static unsigned looks_at(const json_t *records, const char *qp)
{
	unsigned looks = 0;
	const json_t *r;
	size_t i;

	json_array_foreach((json_t *)records, i, r)
		looks += json_has(r, "kind", "state") && json_has(r, "obj", qp) && json_has(r, "by", "query");
	return looks;
}

/* As often as its length is worth, from its begin to its end: 50 ms apart it would be 40 times. */
static void a_long_window_is_looked_at_some_twenty_times(void)
{
	struct controller *c = controller_of("good", NULL);
	struct error e = { "" };
	json_t *records;
	unsigned looks;

	CU_ASSERT_EQUAL(run_plan(c,
				 plan_of("[" CONNECT ",{'n':2,'do':'expect','line':6,'at':['p.a'],'qp':'RTS','for_ns':2000000000}]",
					 20 * NSEC_PER_SEC),
				 &records, &e),
			0);
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 2), "met");
	looks = looks_at(records, "p.a");
	ROW_ASSERT(looks >= 4 && looks <= 24, "%u looks", looks);
	json_decref(records);
	controller_done(c);
}

static const struct test_case tests[] = {
	{ "a case runs to its end", a_case_runs_to_its_end },
	{ "the bystander comes and goes", the_bystander_comes_and_goes },
	{ "a bystander that cannot be is an error of the setup", a_bystander_that_cannot_be_is_an_error_of_the_setup },
	{ "how late the kernel was is of the case", how_late_the_kernel_was_is_of_the_case },
	{ "a case that did not begin has no lateness", a_case_that_did_not_begin_has_no_lateness },
	{ "agents elsewhere have timers of their own", agents_elsewhere_have_timers_of_their_own },
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
	{ "together keeps the order of what is no message", together_keeps_the_order_of_what_is_no_message },
	{ "a long window is looked at some twenty times", a_long_window_is_looked_at_some_twenty_times },
};

int main(void)
{
	fake_special = stays_in_rts;
	if (getenv(MODE))
		return fake_agent(getenv(MODE));
	return run_in_dir("controller_case", tests, sizeof tests / sizeof tests[0]);
}
