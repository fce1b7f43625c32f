/* SPDX-License-Identifier: MIT */
#include "expect_rig.h"

#include "observe_model.h"

static const struct {
	const char *args, *with;
	bool has;
} rows[] = {
	{ "{\"behind\":16}", "[\"behind\"]", true },
	{ "{\"ahead\":16}", "[\"behind\"]", false },
	{ "{\"ahead\":16}", "[]", true },
	{ "{\"action\":\"forge\"}", "[\"action=forge\"]", true },
	{ "{\"action\":\"drop\"}", "[\"action=forge\"]", false },
	{ "{\"forge\":{\"kind\":\"ACK\",\"psn\":\"+100\"}}", "[\"forge.psn=+100\"]", true },
	{ "{\"forge\":{\"kind\":\"ACK\",\"psn\":\"+100\"}}", "[\"forge.psn=+10\"]", false },
	{ "{\"forge\":{\"kind\":\"ACK\",\"psn\":\"+100\"}}", "[\"forge.kind=ACK\",\"forge.psn=+100\"]", true },
	{ "{\"forge\":{\"kind\":\"ACK\",\"psn\":\"+100\"}}", "[\"forge.kind=NAK_OP\",\"forge.psn=+100\"]", false },
	{ "{\"forge\":{\"kind\":\"ACK\"}}", "[\"forge.psn\"]", false },
	{ "{\"kind\":\"ACK\"}", "[\"forge.kind=ACK\"]", false },
	{ "{\"rewrite\":{\"syndrome\":100}}", "[\"rewrite.syndrome=0x64\"]", true },
	{ "{\"rewrite\":{\"syndrome\":100}}", "[\"rewrite.syndrome=0x64..0x7f\"]", true },
	{ "{\"rewrite\":{\"syndrome\":127}}", "[\"rewrite.syndrome=0x64..0x7f\"]", true },
	{ "{\"rewrite\":{\"syndrome\":99}}", "[\"rewrite.syndrome=0x64..0x7f\"]", false },
	{ "{\"rewrite\":{\"syndrome\":128}}", "[\"rewrite.syndrome=0x64..0x7f\"]", false },
	{ "{\"rewrite\":{\"syndrome\":100}}", "[\"rewrite.syndrome=100x\"]", false },
	{ "{\"rewrite\":{\"syndrome\":\"100\"}}", "[\"rewrite.syndrome=0x64..0x7f\"]", false },
	{ "{\"rewrite\":{\"opcode\":\"RC_SEND_LAST\"}}", "[\"rewrite.opcode=RC_SEND_LAST\"]", true },
	{ "{\"rewrite\":7}", "[\"rewrite.opcode=7\"]", false },
};

static void test_with(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *args = json_loads(rows[i].args, 0, NULL), *with = json_loads(rows[i].with, 0, NULL);

		ROW_ASSERT(args && with, "row %zu", i);
		ROW_ASSERT(m_profile_has_arguments(args, with) == rows[i].has, "%s with %s", rows[i].args, rows[i].with);
		json_decref(args);
		json_decref(with);
	}
}

/* Which end the fault was given. */
static void test_fault_at(void)
{
	static const struct {
		const char *at, *fault_at;
		bool excused;
	} ends[] = { { "p.a", "own", true }, { "p.b", "own", false }, { "p.b", "peer", true }, { "p.a", "peer", false } };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct m_match what = { .spec = "RETRY_EXC_ERR" };
		char text[512];
		struct world w;
		bool seen;

		snprintf(
			text, sizeof(text),
			"[{'id':'dead','seen':['6.1.0-57-amd64'],'when':{'spec':'RETRY_EXC_ERR','queue':'send','fault':'link_down',"
			"'fault_at':'%s'},'device':'LOC_QP_OP_ERR'}]",
			ends[i].fault_at);
		world_new(&w, text);
		snprintf(text, sizeof(text),
			 "{'kind':'fault','src':'controller','step':2,'as':'f','nth':1,'name':'link_down','at':['%s'],'phase':'"
			 "inject',"
			 "'detection':'silent','blast':'link'}",
			 ends[i].at);
		feed(&w, text);
		what.qp = m_qp_find(w.m, "p.a", 3);
		what.rec = w.m->n_recs;
		ROW_ASSERT((m_profile_excuse(w.m, &what, "LOC_QP_OP_ERR", &seen) != NULL) == ends[i].excused, "at %s, asked for %s",
			   ends[i].at, ends[i].fault_at);
		world_free(&w);
	}
}

/* P a traffic posts receives, p a step does; S and F one succeeds, is flushed, in order: what was posted last is asked about. */
static const struct {
	const char *story;
	bool excused;
} stories[] = {
	{ "PSSPFF", true }, /* of the first four two came, two were flushed; the others were posted behind the flush */
	{ "PSSFFP", true }, /* and everybody was told so */
	{ "PSSpFF", false }, { "PSSP", false }, { "PSSPFFF", false }, { "PSPSFF", false }, { "P", false },
};

static void test_posted_on_the_way_to_error(void)
{
	static const char entry[] = "[{'id':'stay','seen':['6.1.0-57-amd64'],'when':{'spec':'WR_FLUSH_ERR','queue':'recv',"
				    "'posted_in':'ERR'},'device':'none'}]";

	for (size_t i = 0; i < sizeof(stories) / sizeof(stories[0]); i++) {
		unsigned posted = 0, ended = 0;
		struct world w;
		char text[512];
		bool seen;

		world_new(&w, entry);
		feed(&w, "{'kind':'state','src':'agent/b','obj':'p.b','life':1,'step':1,'asked':'RTS','old':'RTR','new':'RTS'}");
		for (const char *c = stories[i].story; *c; c++) {
			if (*c == 'S' || *c == 'F') {
				wc(&w, "p.b.recv", ended++, 1, *c == 'S' ? "SUCCESS" : "WR_FLUSH_ERR");
				continue;
			}
			unsigned n = posted ? 2 : 4;

			snprintf(text, sizeof(text),
				 "{'kind':'post','src':'agent/"
				 "b','obj':'p.b.recv','life':1,'step':1,'op':'RECV','count':%u,'accepted':%u,"
				 "'first':'0x%llx','last':'0x%llx','traffic':'%s'}",
				 n, n, 0x1000000000000ull | posted, 0x1000000000000ull | (posted + n - 1), *c == 'P' ? "t" : "");
			feed(&w, text);
			posted += n;
		}
		const struct m_post *p = &w.m->posts.v[w.m->posts.n - 1];
		struct m_match what = { .qp = m_qp_find(w.m, "p.b", 3),
					.life = 1,
					.post = p,
					.recv = true,
					.spec = "WR_FLUSH_ERR",
					.rec = w.m->n_recs };

		ROW_ASSERT((m_profile_excuse(w.m, &what, "none", &seen) != NULL) == stories[i].excused, "%s", stories[i].story);
		world_free(&w);
	}
}

/* One condition each of what the device did: requests on the wire, work that was out when its queue pair went to SQD. */
static const struct {
	const char *when, *record; /* fed between a post of two and the question */
	unsigned ended;            /* so many of the two before it */
	bool excused;
} moments[] = {
	{ "'hole':'inside'", "'kind':'packet','obj':'p.a','pair':'p','opcode':'UC_SEND_MIDDLE','fate':'eaten'", 0, true },
	{ "'hole':'inside'", "'kind':'packet','obj':'p.a','pair':'p','opcode':'UC_SEND_LAST_WITH_IMMEDIATE','fate':'changed'", 0,
	  true },
	{ "'hole':'inside'", "'kind':'packet','obj':'p.a','pair':'p','opcode':'UC_SEND_MIDDLE','fate':'passed'", 0, false },
	{ "'hole':'inside'", "'kind':'packet','obj':'p.a','pair':'p','opcode':'UC_SEND_FIRST','fate':'eaten'", 0, false },
	{ "'hole':'inside'", "'kind':'packet','obj':'p.a','pair':'p','opcode':'UC_SEND_ONLY','fate':'eaten'", 0, false },
	{ "'drain':'outstanding'", "'kind':'state','obj':'p.a','life':1,'asked':'SQD','old':'RTS','new':'SQD'", 1, true },
	{ "'drain':'outstanding'", "'kind':'state','obj':'p.a','life':1,'asked':'SQD','old':'RTS','new':'SQD'", 2, false },
	{ "'drain':'outstanding'", "'kind':'state','obj':'p.a','life':1,'asked':'SQD','old':'SQD','new':'SQD'", 1, false },
	{ "'drain':'outstanding'", "'kind':'state','obj':'p.a','life':1,'asked':'RTS','old':'RTS','new':'RTS'", 1, false },
	{ "'size':'9..64'", "'kind':'klog'", 0, true },
	{ "'size':'0..63'", "'kind':'klog'", 0, false },
	{ "'to':'misaligned'", "'kind':'klog'", 0, false },
};

static void test_moments(void)
{
	for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++) {
		struct world w;
		char text[512];
		bool seen;

		snprintf(text, sizeof(text),
			 "[{'id':'so','seen':['6.1.0-57-amd64'],'when':{'spec':'SUCCESS','queue':'send',%s},'device':'none'}]",
			 moments[i].when);
		world_new(&w, text);
		post(&w, "p.a.send", "w", 0, 2, true);
		if (moments[i].ended)
			wc(&w, "p.a.send", 0, moments[i].ended, "SUCCESS");
		snprintf(text, sizeof(text), "{'src':'controller','step':1,%s}", moments[i].record);
		feed(&w, text);
		struct m_match what = {
			.qp = m_qp_find(w.m, "p.a", 3), .life = 1, .post = &w.m->posts.v[0], .spec = "SUCCESS", .rec = w.m->n_recs
		};

		ROW_ASSERT((m_profile_excuse(w.m, &what, "none", &seen) != NULL) == moments[i].excused, "row %zu: %s %s", i,
			   moments[i].when, moments[i].record);
		world_free(&w);
	}
}

/* What the library refuses where the specification has a completion: the profile speaks of both. */
static void test_refused_by_the_library(void)
{
	static const char entry[] = "[{'id':'so','seen':['6.1.0-57-amd64'],'when':{'spec':'REM_INV_REQ_ERR','queue':'send',"
				    "'op':['FETCH_AND_ADD']},'device':'none'}]";
	static const char asked[] = "{'of':'w','wc':{'all':['REM_INV_REQ_ERR']}}";

	for (int known = 0; known < 2; known++) {
		struct world w;

		world_new(&w, known ? entry : "[]");
		feed(&w, "{'kind':'post','src':'agent/a','obj':'p.a.send','life':1,'step':1,'as':'w','op':'FETCH_AND_ADD','size':8,"
			 "'count':1,'accepted':0,'errno':22,'bad':0}");
		begin(&w, 2);
		enum expect_state got = ask(&w, asked, 0), expected = known ? EXPECT_MET : EXPECT_BROKEN;

		ROW_ASSERT(got == expected, "%d: %d", known, (int)got);
		world_free(&w);
	}
}

static const struct test_case cases[] = {
	{ "refused by the library", test_refused_by_the_library },
	{ "what the device had before it", test_moments },
	{ "the end that a fault was given", test_fault_at },
	{ "what a fault was given", test_with },
	{ "a receive posted on the way to ERR", test_posted_on_the_way_to_error },
};

TEST_MAIN("profile_match", cases)
