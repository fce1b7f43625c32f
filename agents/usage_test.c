/* SPDX-License-Identifier: MIT */
/* What an agent holds: told as it is, and no more of it with each traffic. */
#include "traffic.h"

#include <CUnit/Basic.h>

#include "agent_rig.h"
#include "fake_verbs.h"
#include "object.h"
#include "../harness/test.h"

static void set_up(void)
{
	fake.post_room = FAKE_MAX;
	rig_start();
	rig_objects();
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i}", "op", "mr_create", "name", "trf", "pd", "pd", "bytes", 16384), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s, s:s, s:{s:i}}", "op", "qp_create", "name", "q", "pd", "pd", "send_cq", "cq",
			       "recv_cq", "cq", "cap", "max_recv_wr", 64),
			0);
}

static void tear_down(void)
{
	CU_ASSERT_EQUAL(json_int(rig_ask("{s:s}", "op", "release"), "rc", -1), 0);
	CU_ASSERT_EQUAL(fake.live, 0);
	rig_stop();
}

static void files_and_memory_are_told(void)
{
	enum { MORE = 5, BYTES = 3000000 };
	int64_t files, heap;
	int fds[MORE];
	char *block;
	json_t *v;

	set_up();
	v = rig_ask("{s:s}", "op", "usage");
	files = json_int(v, "files", -1);
	heap = json_int(v, "heap_bytes", -1);
	CU_ASSERT(files >= 3 && heap >= 0 && json_int(v, "anon_bytes", -1) > 0);
	for (int i = 0; i < MORE; i++)
		fds[i] = dup(0);
	block = malloc(BYTES);
	CU_ASSERT_PTR_NOT_NULL_FATAL(block);
	memset(block, 1, BYTES);
	v = rig_ask("{s:s}", "op", "usage");
	CU_ASSERT_EQUAL(json_int(v, "files", -1), files + MORE);
	/* A sanitizer's allocator tells nothing of its heap. */
	CU_ASSERT(heap == 0 || json_int(v, "heap_bytes", -1) >= heap + BYTES);
	free(block);
	for (int i = 0; i < MORE; i++)
		close(fds[i]);
	CU_ASSERT_EQUAL(json_int(rig_ask("{s:s}", "op", "usage"), "files", -1), files);
	tear_down();
}

static void what_has_ended_is_forgotten(void)
{
	const struct traffic *t;
	unsigned kept = 0;
	char as[32];

	set_up();
	for (int i = 0; i < 200; i++) {
		snprintf(as, sizeof(as), "t.%d", i);
		CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i, s:i, s:s, s:i}", "op", "traffic_prepare", "as", as, "qp", "q", "size",
				       64, "tag", 5, "mr", "trf", "receives", 0),
				0);
	}
	for (t = rig.agent->traffics; t; t = t->links.all)
		kept++;
	CU_ASSERT(kept >= 1 && kept <= 3);
	CU_ASSERT(rig.agent->n_traffic_names <= 5);
	t = traffic_find(rig.agent, "t.199", NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(t);
	CU_ASSERT_STRING_EQUAL(rig.agent->traffic_names[t->number], "t.199");
	CU_ASSERT_PTR_NULL(traffic_find(rig.agent, "t.0", NULL));
	tear_down();
}

static const struct test_case cases[] = {
	{ "files and memory are told", files_and_memory_are_told },
	{ "what has ended is forgotten", what_has_ended_is_forgotten },
};

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	return test_run("usage", cases, sizeof(cases) / sizeof(cases[0]));
}
