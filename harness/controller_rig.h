/* SPDX-License-Identifier: MIT */
/* What the tests of the controller share: a plan of one pair with these steps, a folder for the files of a case. */
#ifndef QD_CONTROLLER_RIG_H
#define QD_CONTROLLER_RIG_H

#include <jansson.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller_case.h"
#include "log.h"
#include "test.h"

static char dir[] = "/tmp/qdctlXXXXXX";

/* steps: JSON with ' for ". New reference. */
static inline json_t *plan_of(const char *steps, uint64_t budget_ns)
{
	static const char *const text =
		"{'schema':1,'case':'t/x','seed':'0x1','requires':[],'skip':null,'agents':{'a':{'device':'a'},'b':{'device':'b'}},"
		"'pds':[{'name':'a.pd','agent':'a'},{'name':'b.pd','agent':'b'}],"
		"'cqs':[{'name':'ac','agent':'a','depth':128,'poll':'auto'},{'name':'bc','agent':'b','depth':128,'poll':'auto'}],'"
		"srqs':[],"
		"'mrs':[{'name':'p.a.mem','agent':'a','pd':'a.pd','bytes':4096,'access':['LOCAL_WRITE'],'qp':'p.a','role':'mem'},"
		"{'name':'p.b.mem','agent':'b','pd':'b.pd','bytes':4096,'access':['LOCAL_WRITE'],'qp':'p.b','role':'mem'}],"
		"'qps':[{'name':'p.a','pair':'p','agent':'a','peer':'p.b','type':'RC','pd':'a.pd','send_cq':'ac','recv_cq':'ac','"
		"srq':null,"
		"'cap':{'max_send_wr':64,'max_recv_wr':64},'signal_all':false,'attr':{'timeout':14,'sq_psn':4660,'path_mtu':1024}},"
		"{'name':'p.b','pair':'p','agent':'b','peer':'p.a','type':'RC','pd':'b.pd','send_cq':'bc','recv_cq':'bc','srq':"
		"null,"
		"'cap':{'max_send_wr':64,'max_recv_wr':64},'signal_all':false,'attr':{'timeout':14,'sq_psn':22136,'path_mtu':1024}}"
		"],"
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

/* The cases with an empty folder `dir`; what they leave there besides their files is a failure. */
static int run_in_dir(const char *suite_name, const struct test_case *cases, size_t n)
{
	static const char *const files[] = { "plan.json", "observations.jsonl", "asked" };
	char path[128];
	int status;

	signal(SIGPIPE, SIG_IGN);
	log_init(suite_name, false);
	if (!mkdtemp(dir))
		return 2;
	status = test_run(suite_name, cases, n);
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, files[i]);
		unlink(path);
	}
	return rmdir(dir) ? 1 : status;
}

/* A case that runs without agents. plan is stolen. */
static inline void bare_run(struct case_run *r, struct controller *c, json_t *plan)
{
	*c = (struct controller){ .kmsg_fd = -1 };
	*r = (struct case_run){ .c = c,
				.id = "t/x",
				.plan = plan,
				.seed = 1,
				.wc_counts = json_object(),
				.traffic_posts = json_object(),
				.inbox = json_array(),
				.remembered = json_object(),
				.traffics = json_object() };
	CU_ASSERT_EQUAL_FATAL(ctl_objects_init(r, NULL), 0);
}

static inline void bare_run_done(struct case_run *r)
{
	posts_free(r);
	ctl_objects_free(r);
	json_decref(r->wc_counts);
	json_decref(r->traffic_posts);
	json_decref(r->inbox);
	json_decref(r->unread);
	json_decref(r->remembered);
	json_decref(r->traffics);
	json_decref(r->plan);
}

#endif
