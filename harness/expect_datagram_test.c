/* SPDX-License-Identifier: MIT */
#include "expect_rig.h"

static void message(struct world *w, unsigned seq, const char *grh)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "{'kind':'wc','src':'agent/"
		 "b','obj':'p.b.recv','life':1,'step':2,'cq':'rx','first':'0x%llx','last':'0x%llx','count':1,"
		 "'status':'SUCCESS','opcode':'RECV','bytes':104,'src_qp':18,'pkey_index':0,'grh':%s}",
		 (unsigned long long)wrid_encode((struct wrid){ 1, 2, WRID_RECV, seq }),
		 (unsigned long long)wrid_encode((struct wrid){ 1, 2, WRID_RECV, seq }), grh);
	feed(w, text);
}

static const struct {
	const char *expectation;
	enum expect_state state;
} rows[] = {
	{ "{'n':2,'at':['p.b'],'grh':{'version':4}}", EXPECT_MET },
	{ "{'n':2,'at':['p.b'],'grh':{'hop_limit':7,'traffic_class':32}}", EXPECT_MET },
	{ "{'n':2,'at':['p.b'],'grh':{'hop_limit':{'op':'range','min':5,'max':9}}}", EXPECT_MET },
	{ "{'n':2,'at':['p.b'],'grh':{'hop_limit':64}}", EXPECT_PENDING }, /* that of the message before */
	{ "{'n':2,'at':['p.b'],'grh':{'version':4,'traffic_class':0}}", EXPECT_PENDING },
	{ "{'n':2,'at':['p.a'],'grh':{'version':4}}", EXPECT_PENDING }, /* nothing came there */
};

static void test_rows(void)
{
	struct world w;

	world_new(&w, NULL);
	post(&w, "p.b.recv", "r", 0, 3, true);
	begin(&w, 2);
	CU_ASSERT(ask(&w, rows[0].expectation, 0) == EXPECT_PENDING);
	message(&w, 0, "{'version':4,'hop_limit':64,'traffic_class':0}");
	message(&w, 1, "{'version':4,'hop_limit':7,'traffic_class':32}");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		ROW_ASSERT(ask(&w, rows[i].expectation, 0) == rows[i].state, "%s", rows[i].expectation);
	/* A completion that says there is no header has none to look at. */
	message(&w, 2, "null");
	CU_ASSERT(ask(&w, rows[0].expectation, 0) == EXPECT_PENDING);
	world_free(&w);
}

/* What completions say beside their status. */
static void test_says(void)
{
#define TWO "{'n':2,'at':['p.b'],'recv_wc':{'seq':[{'any':['SUCCESS'],'min':2,'max':2}]},'says':"
	static const struct {
		const char *expectation;
		enum expect_state state;
	} said[] = {
		{ TWO "{'bytes':104,'opcode':'RECV'}}", EXPECT_MET },
		{ TWO "{'bytes':{'op':'>=','value':100}}}", EXPECT_MET },
		{ TWO "{'bytes':64}}", EXPECT_BROKEN },
		{ TWO "{'opcode':'RECV_RDMA_WITH_IMM'}}", EXPECT_BROKEN },
		{ TWO "{'imm':0}}", EXPECT_BROKEN },             /* it says of none */
		{ TWO "{'invalidated':'win'}}", EXPECT_BROKEN }, /* the same, and no such window was bound */
	};
	struct world w;

	world_new(&w, NULL);
	post(&w, "p.b.recv", "r", 0, 3, true);
	begin(&w, 2);
	message(&w, 0, "{'version':4}");
	message(&w, 1, "{'version':4}");
	for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++)
		ROW_ASSERT(ask(&w, said[i].expectation, 0) == said[i].state, "%s", said[i].expectation);
	world_free(&w);
}

/* What the profile says of an attribute of the path holds of the header that it makes. */
static void test_profile(void)
{
	static const char entry[] =
		"[{'id':'route','provider':'rxe','kernel':{},'seen':['6.1.0-57-amd64'],'when':{'attr':'hop_limit'},"
		"'device':'64'}]";
	struct world w;

	world_new(&w, entry);
	post(&w, "p.b.recv", "r", 0, 1, true);
	begin(&w, 2);
	message(&w, 0, "{'version':4,'hop_limit':64,'traffic_class':0}");
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'grh':{'hop_limit':9}}", 0) == EXPECT_MET);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'grh':{'hop_limit':9,'traffic_class':8}}", 0) == EXPECT_PENDING);
	world_free(&w);
	world_new(&w, entry);
	post(&w, "p.b.recv", "r", 0, 1, true);
	begin(&w, 2);
	message(&w, 0, "{'version':4,'hop_limit':63,'traffic_class':0}");
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'grh':{'hop_limit':9}}", 0) == EXPECT_PENDING);
	world_free(&w);
}

static const struct test_case cases[] = {
	{ "what a completion says beside its status", test_says },
	{ "what stands in front of the newest message", test_rows },
	{ "a field that the profile has otherwise", test_profile },
};

TEST_MAIN("expect_datagram", cases)
