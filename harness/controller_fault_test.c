/* SPDX-License-Identifier: MIT */
/* What a case does about its faults and its rounds, without RDMA; links in a network namespace of its own. */
#include "controller_case.h"

#include <CUnit/Basic.h>

#include "../agents/wire_netns.h"
#include "controller_fake.h"
#include "json.h"
#include "units.h"

static json_t *every(const json_t *records, const char *kind)
{
	json_t *list = json_array();
	const json_t *r;
	size_t i;

	json_array_foreach((json_t *)records, i, r)
		if (json_str(r, "kind") && strcmp(json_str(r, "kind"), kind) == 0)
			json_array_append(list, (json_t *)r);
	return list;
}

/* Each injection has records of its own, and what is still active ends before it. */
static void a_fault_injected_again_is_another_one(void)
{
	static const struct {
		const char *phase;
		int nth;
	} want[] = { { "inject", 1 }, { "fired", 1 }, { "clear", 1 }, { "inject", 2 }, { "fired", 2 } };
	static const char steps[] =
		"[" CONNECT ",{'n':2,'do':'repeat','line':6,'times':2,'steps':[{'n':3,'do':'fault','line':7,'fault':"
		"'qp_error','as':'x','args':{'at':'p.a'}}]}]";
	struct controller *c = controller_of("good", NULL);
	struct error e = { "" };
	json_t *records, *faults;

	CU_ASSERT_EQUAL(run_plan(c, plan_of(steps, 20 * NSEC_PER_SEC), &records, &e), 0);
	faults = every(records, "fault");
	CU_ASSERT(json_array_size(faults) >= sizeof want / sizeof want[0]);
	for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
		const json_t *f = json_array_get(faults, i);

		ROW_ASSERT(json_has(f, "phase", want[i].phase) && json_int(f, "nth", 0) == want[i].nth, "record %zu: %s %d", i,
			   json_str(f, "phase"), (int)json_int(f, "nth", 0));
	}
	json_decref(faults);
	json_decref(records);
	controller_done(c);
}

static void what_is_held_is_looked_at_after_rounds(void)
{
	static const char steps[] =
		"[{'n':1,'do':'repeat','line':5,'times':12,'resources':'flat','steps':[{'n':2,'do':'wait','line':6,'"
		"for_ns':1}]}]";
	struct controller *c = controller_of("good", NULL);
	struct error e = { "" };
	json_t *records, *looks;

	CU_ASSERT_EQUAL(run_plan(c, plan_of(steps, 60 * NSEC_PER_SEC), &records, &e), 0);
	looks = every(records, "resources");
	CU_ASSERT_EQUAL(json_array_size(looks), 11);
	for (size_t i = 0; i < json_array_size(looks); i++) {
		const json_t *l = json_array_get(looks, i);

		CU_ASSERT_EQUAL(json_int(l, "round", 0), (json_int_t)i + 2);
		CU_ASSERT_EQUAL(json_int(l, "step", 0), 1);
		CU_ASSERT_PTR_NULL(json_object_get(l, "iter"));
		CU_ASSERT(json_int(json_object_get(json_object_get(l, "held"), "controller"), "files", 0) > 3);
	}
	json_decref(looks);
	json_decref(records);
	controller_done(c);
}

#define ENDS "{'n':1,'do':'fault','line':6,'fault':'link_down','as':'x','args':{'at':'p.a'}}"

/* A link fault where this machine is reached by: refused before anything is done, unless it was told. */
static void a_link_that_carries_the_route_is_left_alone(void)
{
	static const struct {
		const char *name, *netdev, *route, *session;
		bool any_link;
		const char *why; /* NULL: it is done */
	} rows[] = {
		{ "the default route", "qdguard0", "via 10.99.0.2 dev qdguard0", NULL, false,
		  "qdguard0 carries this machine's default route" },
		{ "told to", "qdguard0", "via 10.99.0.2 dev qdguard0", NULL, true, NULL },
		{ "its other end", "qdguard1", "via 10.99.0.2 dev qdguard0", NULL, false, NULL },
		{ "the login", "qdguard0", NULL, "10.99.0.2 4711 10.99.0.1 22", false, "qdguard0 carries the login" },
		{ "another login", "qdguard0", NULL, "10.98.0.2 4711 10.98.0.1 22", false, NULL },
	};

	CU_ASSERT_EQUAL_FATAL(run("ip link add qdguard0 type veth peer name qdguard1 && ip addr add 10.99.0.1/24 dev qdguard0 &&"
				  " ip link set qdguard0 up && ip link set qdguard1 up"),
			      0);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct controller *c = controller_of("good", NULL);
		struct error e = { "" };
		const json_t *step, *did;
		json_t *records;
		char command[128];

		snprintf(command, sizeof command, "ip route add default %s", rows[i].route ? rows[i].route : "");
		CU_ASSERT_EQUAL_FATAL(rows[i].route ? run(command) : 0, 0);
		if (rows[i].session)
			setenv("SSH_CONNECTION", rows[i].session, 1);
		else
			unsetenv("SSH_CONNECTION");
		snprintf(c->lane.device[0].netdev, sizeof c->lane.device[0].netdev, "%s", rows[i].netdev);
		c->o.any_link = rows[i].any_link;
		CU_ASSERT_EQUAL(run_plan(c, plan_of("[" ENDS "]", 20 * NSEC_PER_SEC), &records, &e), 0);
		step = find_kind(records, "step", "\"end\"");
		did = find_kind(records, "lab", rows[i].netdev);
		ROW_ASSERT(!did == !!rows[i].why, "%s: a command was %s", rows[i].name, did ? "given" : "not given");
		if (rows[i].why) {
			ROW_ASSERT(json_has(step, "outcome", "refused") && strstr(json_str(step, "text"), rows[i].why) &&
					   strstr(json_str(step, "text"), "--allow-any-link"),
				   "%s: %s", rows[i].name, json_str(step, "text"));
			CU_ASSERT_PTR_NOT_NULL(find_kind(records, "fault", "not_fired"));
		}
		json_decref(records);
		controller_done(c);
		CU_ASSERT_EQUAL_FATAL(rows[i].route ? run("ip route del default") : 0, 0);
	}
	unsetenv("SSH_CONNECTION");
}

static const struct test_case tests[] = {
	{ "a fault injected again is another one", a_fault_injected_again_is_another_one },
	{ "what is held is looked at after rounds", what_is_held_is_looked_at_after_rounds },
	{ "a link that carries the route is left alone", a_link_that_carries_the_route_is_left_alone },
};

int main(void)
{
	if (getenv(MODE))
		return fake_agent(getenv(MODE));
	if (enter_namespace()) {
		printf("skipped: no network namespace of its own\n");
		return 77;
	}
	return run_in_dir("controller_fault", tests, sizeof tests / sizeof tests[0]);
}
