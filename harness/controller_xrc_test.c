/* SPDX-License-Identifier: MIT */
/*
 * What the agents are asked for an extended reliable connection: one that is no more than canned answers refuses whatever lacks
 * what it has to have, or has what it must not have.
 */
#include "controller_rig.h"

#include "controller_fake.h"

#define GOLDEN "harness/testdata/plan/extended-connections.plan.json"
#define WRONG_NUMBER (~40 & 0xffffff)

static bool sends(const char *qp)
{
	return strcmp(qp, "p.a") == 0 || strcmp(qp, "r.a") == 0 || strcmp(qp, "q.b") == 0;
}

static bool has(const json_t *o, const char *key)
{
	return json_object_get(o, key) != NULL;
}

static bool srq_is_right(const json_t *req)
{
	const char *cq = json_str(req, "cq"), *xrcd = json_str(req, "xrcd"), *name = json_str(req, "name");

	if (strcmp(name, "u") == 0)
		return strcmp(cq, "q.a.rcq") == 0 && strcmp(xrcd, "a.xrcd") == 0;
	return cq && xrcd && strcmp(cq, "p.b.rcq") == 0 && strcmp(xrcd, "b.xrcd") == 0;
}

static bool move_is_right(const json_t *req)
{
	const json_t *set = json_object_get(req, "set");
	const char *to = json_str(req, "to");
	bool sender = sends(json_str(req, "name"));

	if (strcmp(to, "RTR") == 0)
		return has(set, "dest_qpn") && has(set, "min_rnr_timer") == !sender && has(set, "max_dest_rd_atomic") == !sender;
	if (strcmp(to, "RTS") == 0)
		return has(set, "sq_psn") && has(set, "timeout") && has(set, "retry_cnt") == sender &&
		       has(set, "rnr_retry") == sender && has(set, "max_rd_atomic") == sender;
	return has(set, "access");
}

static bool traffic_is_right(const json_t *req)
{
	bool sender = sends(json_str(req, "qp"));
	int64_t number = strcmp(json_str(req, "qp"), "q.b") == 0 ? 42 : 40;

	return strcmp(json_str(req, "role"), sender ? "tx" : "rx") == 0 &&
	       json_int(req, "remote_srqn", -1) == (sender ? number : -1);
}

static json_t *answer(bool right)
{
	return right ? NULL : json_pack("{s:i,s:s}", "rc", -EINVAL, "error", "not as it has to be");
}

static json_t *strict(const json_t *req)
{
	static const char *const numbers[] = { "s", "t", "u" };
	const char *op = json_str(req, "op"), *as = json_str(req, "as");

	if (strcmp(op, "device_caps") == 0)
		return json_pack(getenv("WITHOUT_XRC") ? "{s:i,s:[]}" : "{s:i,s:[s]}", "rc", 0, "caps", "xrc");
	for (int i = 0; strcmp(op, "srq_create") == 0 && i < 3; i++)
		if (strcmp(json_str(req, "name"), numbers[i]) == 0 && srq_is_right(req))
			return json_pack("{s:i,s:i,s:i,s:i}", "rc", 0, "life", 1, "depth", 64, "srqn", 40 + i);
	if (strcmp(op, "srq_create") == 0)
		return answer(false);
	if (strcmp(op, "qp_create") == 0)
		return answer(has(req, "xrcd") == !sends(json_str(req, "name")));
	if (strcmp(op, "qp_modify") == 0)
		return answer(move_is_right(req));
	if (strcmp(op, "post_recv") == 0)
		return answer(has(req, "srq") && !has(req, "qp"));
	if (strcmp(op, "find") == 0)
		return answer(has(req, "srq") == (as && strcmp(as, "second") == 0));
	if (strcmp(op, "traffic") == 0)
		return traffic_is_right(req) ? json_pack("{s:i,s:i,s:i,s:i}", "rc", 0, "done", sends(json_str(req, "qp")) ? 6 : 0,
							 "errors", 0, "bad_payload", 0)
					     : answer(false);
	if (strcmp(op, "post") == 0)
		return answer(json_int(req, "remote_srqn", -1) == (strcmp(as, "second") == 0    ? 41
								   : strcmp(as, "nobodys") == 0 ? WRONG_NUMBER
												: 40));
	return NULL;
}

/* The planner's own plan, with these steps. */
static json_t *plan_with(const char *steps)
{
	json_t *plan = json_load_file(GOLDEN, 0, NULL), *list;
	char *text = strdup(steps);

	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	list = json_loads(text, 0, NULL);
	free(text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(plan);
	CU_ASSERT_PTR_NOT_NULL_FATAL(list);
	json_object_set_new(plan, "steps", list);
	json_object_set_new(plan, "requires", json_pack("[s]", "xrc"));
	json_object_set_new(plan, "bystander", json_false());
	json_object_set_new(plan, "budget_ns", json_integer(20000000000));
	return plan;
}

#define POST(n, as, more)                                                                                                          \
	"{'n':" n ",'do':'post','line':6,'at':['p.a'],'op':'SEND','as':'" as "','tag':4096,'size':64,'count':1,'stride':64,"       \
	"'slots':1,'tx_off':0,'returns':['0']" more "}"

static void requests_have_what_they_need(void)
{
	static const char steps[] = "[{'n':1,'do':'connect','line':5,'pairs':['p','q','r']}," POST("2", "first", "") "," POST(
		"3", "second",
		",'srq':'t'") "," POST("4", "nobodys",
				       ",'srqn':'wrong'") ","
							  "{'n':5,'do':'traffic','line':7,'pairs':['p','q','r'],'ops':['READ'],'"
							  "size':64,'depth':1,'messages':6,'tag':8192}]";
	struct controller *c = controller_of("good", NULL);
	struct error e = { "" };
	json_t *records;

	CU_ASSERT_EQUAL(run_plan(c, plan_with(steps), &records, &e), 0);
	for (int i = 1; i <= 5; i++)
		ROW_ASSERT(strcmp(outcome_of(records, i), "done") == 0, "step %d: %s", i, outcome_of(records, i));
	CU_ASSERT_PTR_NULL(find_kind(records, "step", "not as it has to be"));
	json_decref(records);
	controller_done(c);
}

static void a_device_without_makes_a_skip(void)
{
	struct controller *c;
	struct error e = { "" };
	json_t *records, *after = NULL;
	char path[128];

	setenv("WITHOUT_XRC", "1", 1);
	c = controller_of("good", NULL);
	CU_ASSERT_EQUAL(run_plan(c, plan_with("[{'n':1,'do':'connect','line':5,'pairs':['p']}]"), &records, &e), 0);
	snprintf(path, sizeof path, "%s/plan.json", dir);
	CU_ASSERT_EQUAL_FATAL(json_load(path, &after, NULL), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(json_str(after, "skip"));
	CU_ASSERT_PTR_NOT_NULL(strstr(json_str(after, "skip"), "needs xrc, which the device does not have"));
	CU_ASSERT_STRING_EQUAL(outcome_of(records, 1), "none");
	json_decref(after);
	json_decref(records);
	controller_done(c);
	unsetenv("WITHOUT_XRC");
}

static const struct test_case tests[] = {
	{ "requests have what they need", requests_have_what_they_need },
	{ "a device without makes a skip", a_device_without_makes_a_skip },
};

int main(void)
{
	fake_special = strict;
	if (getenv(MODE))
		return fake_agent(getenv(MODE));
	return run_in_dir("controller_xrc", tests, sizeof tests / sizeof tests[0]);
}
