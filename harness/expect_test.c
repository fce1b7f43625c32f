/* SPDX-License-Identifier: MIT */
/* Expectations of completions, states and events, and what a profile excuses of them. */
#include "expect_rig.h"

static const char *const state_text[] = { "invalid", "pending", "met", "broken" };

/* S SUCCESS, F WR_FLUSH_ERR, R RETRY_EXC_ERR, N RNR_RETRY_EXC_ERR: completions of a post of `posted`, in order. */
static const struct pattern_row {
	unsigned posted;
	const char *came, *pattern;
	uint64_t later_ns;
	enum expect_state state;
} pattern_rows[] = {
	{ 3, "", "{'all':['SUCCESS']}", 0, EXPECT_PENDING },
	{ 3, "SS", "{'all':['SUCCESS']}", 0, EXPECT_PENDING },
	{ 3, "SSS", "{'all':['SUCCESS']}", 0, EXPECT_MET },
	{ 3, "SSF", "{'all':['SUCCESS']}", 0, EXPECT_BROKEN },
	{ 3, "SF", "{'all':['SUCCESS']}", 0, EXPECT_BROKEN },
	{ 3, "FSF", "{'all':['SUCCESS','WR_FLUSH_ERR']}", 0, EXPECT_MET },
	{ 3, "", "{'none':true}", 0, EXPECT_MET },
	{ 3, "S", "{'none':true}", 0, EXPECT_BROKEN },
	{ 3, "R", "{'seq':[{'any':['RETRY_EXC_ERR'],'min':1,'max':1},{'any':['WR_FLUSH_ERR'],'rest':true}]}", 0, EXPECT_PENDING },
	{ 3, "RFF", "{'seq':[{'any':['RETRY_EXC_ERR'],'min':1,'max':1},{'any':['WR_FLUSH_ERR'],'rest':true}]}", 0, EXPECT_MET },
	{ 1, "R", "{'seq':[{'any':['RETRY_EXC_ERR'],'min':1,'max':1},{'any':['WR_FLUSH_ERR'],'rest':true}]}", 0, EXPECT_MET },
	{ 3, "FRF", "{'seq':[{'any':['RETRY_EXC_ERR'],'min':1,'max':1},{'any':['WR_FLUSH_ERR'],'rest':true}]}", 0, EXPECT_BROKEN },
	{ 3, "RFS", "{'seq':[{'any':['RETRY_EXC_ERR'],'min':1,'max':1},{'any':['WR_FLUSH_ERR'],'rest':true}]}", 0, EXPECT_BROKEN },
	{ 3, "NFF", "{'seq':[{'any':['RETRY_EXC_ERR','RNR_RETRY_EXC_ERR'],'min':1,'max':1},{'any':['WR_FLUSH_ERR'],'rest':true}]}",
	  0, EXPECT_MET },
	{ 4, "SSRF",
	  "{'seq':[{'any':['SUCCESS'],'min':1},{'any':['RETRY_EXC_ERR'],'min':1,'max':1},{'any':['WR_FLUSH_ERR'],'rest':true}]}", 0,
	  EXPECT_MET },
	{ 4, "RFFF",
	  "{'seq':[{'any':['SUCCESS'],'min':1},{'any':['RETRY_EXC_ERR'],'min':1,'max':1},{'any':['WR_FLUSH_ERR'],'rest':true}]}", 0,
	  EXPECT_BROKEN },
	{ 4, "SS", "{'seq':[{'any':['SUCCESS'],'min':2,'max':2}]}", 0, EXPECT_MET },
	{ 4, "SSSS", "{'seq':[{'any':['SUCCESS'],'min':2,'max':2}]}", 0, EXPECT_MET },
	{ 4, "S", "{'seq':[{'any':['SUCCESS'],'min':2,'max':2}]}", 0, EXPECT_PENDING },
	{ 4, "SSF", "{'seq':[{'any':['SUCCESS'],'min':3,'max':3}]}", 0, EXPECT_BROKEN },
	/* A range waits until nothing more can come, or nothing came for a while. */
	{ 4, "SS", "{'seq':[{'any':['SUCCESS'],'min':1,'max':3}]}", 0, EXPECT_PENDING },
	{ 4, "SS", "{'seq':[{'any':['SUCCESS'],'min':1,'max':3}]}", 200 * MS, EXPECT_MET },
	{ 4, "SSSS", "{'seq':[{'any':['SUCCESS'],'min':1,'max':3}]}", 0, EXPECT_BROKEN },
	{ 4, "SSSS", "{'seq':[{'any':['SUCCESS'],'min':1,'max':4}]}", 0, EXPECT_MET },
	/* Where elements overlap every way of sharing them out counts. */
	{ 4, "SSSF", "{'seq':[{'any':['SUCCESS'],'min':1},{'any':['SUCCESS','WR_FLUSH_ERR'],'min':2,'max':2}]}", 0, EXPECT_MET },
	{ 3, "SFF",
	  "{'seq':[{'any':['SUCCESS'],'min':0,'max':1},{'any':['SUCCESS'],'min':1,'max':1},{'any':['WR_FLUSH_ERR'],'rest':true}]}",
	  0, EXPECT_MET },
	/* All of the post has ended and the pattern has not. */
	{ 2, "SS", "{'seq':[{'any':['SUCCESS'],'min':2,'max':2},{'any':['WR_FLUSH_ERR'],'min':1,'max':1}]}", 0, EXPECT_BROKEN },
};

static const char *status_of(char letter)
{
	return letter == 'S' ? "SUCCESS" : letter == 'F' ? "WR_FLUSH_ERR" : letter == 'R' ? "RETRY_EXC_ERR" : "RNR_RETRY_EXC_ERR";
}

static void test_patterns(void)
{
	for (size_t i = 0; i < sizeof(pattern_rows) / sizeof(pattern_rows[0]); i++) {
		const struct pattern_row *row = &pattern_rows[i];
		enum expect_state state;
		struct world w;
		char x[1024];

		world_new(&w, NULL);
		post(&w, "p.a.send", "w", 0, row->posted, true);
		begin(&w, 2);
		for (unsigned k = 0; row->came[k]; k++)
			wc(&w, "p.a.send", k, 1, status_of(row->came[k]));
		snprintf(x, sizeof(x), "{'n':2,'of':'w','wc':%s}", row->pattern);
		state = ask(&w, x, row->later_ns);
		ROW_ASSERT(state == row->state, "row %zu: %u posted, `%s` came, %s: %s", i, row->posted, row->came, row->pattern,
			   state_text[state]);
		world_free(&w);
	}
}

static void test_nothing_accepted(void)
{
	struct world w;

	world_new(&w, NULL);
	feed(&w, "{'kind':'post','src':'agent/"
		 "a','obj':'p.a.send','life':1,'step':1,'as':'w','op':'SEND','count':2,'accepted':0,'errno':22}");
	CU_ASSERT(ask(&w, "{'n':2,'of':'w','wc':{'all':['SUCCESS']}}", 0) == EXPECT_BROKEN);
	CU_ASSERT(ask(&w, "{'n':2,'of':'w','wc':{'none':true}}", 0) == EXPECT_MET);
	CU_ASSERT(ask(&w, "{'n':2,'of':'other','wc':{'all':['SUCCESS']}}", 0) == EXPECT_PENDING);
	world_free(&w);
}

/* An unsignaled request that a later completion passed has succeeded. */
static void test_unsignaled(void)
{
	struct world w;

	world_new(&w, NULL);
	post(&w, "p.a.send", "quiet", 0, 3, false);
	CU_ASSERT(ask(&w, "{'n':2,'of':'quiet','wc':{'all':['SUCCESS']}}", 0) == EXPECT_PENDING);
	post(&w, "p.a.send", "loud", 3, 1, true);
	wc(&w, "p.a.send", 3, 1, "SUCCESS");
	CU_ASSERT(ask(&w, "{'n':2,'of':'quiet','wc':{'all':['SUCCESS']}}", 0) == EXPECT_MET);
	CU_ASSERT(model_in_flight(w.m, "p.a") == 0);
	world_free(&w);
}

/* At an end each expectation takes, in order, what none before it took. */
static void test_taking_in_order(void)
{
	static const char two[] = "{'n':2,'at':['p.a'],'wc':{'seq':[{'any':['SUCCESS'],'min':2,'max':2}]}}";
	static const char rest[] = "{'n':2,'at':['p.a'],'wc':{'seq':[{'any':['RETRY_EXC_ERR'],'min':1,'max':1},{'any':['WR_FLUSH_"
				   "ERR'],'rest':true}]}}";
	struct world w;

	world_new(&w, NULL);
	post(&w, "p.a.send", "w", 0, 4, true);
	begin(&w, 2);
	for (unsigned k = 0; k < 4; k++)
		wc(&w, "p.a.send", k, 1, status_of("SSRF"[k]));
	CU_ASSERT(ask(&w, rest, 0) == EXPECT_BROKEN);
	CU_ASSERT(ask(&w, two, 0) == EXPECT_MET);
	settle(&w, two);
	begin(&w, 2);
	CU_ASSERT(ask(&w, rest, 0) == EXPECT_MET);
	settle(&w, rest);
	begin(&w, 2);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.a'],'wc':{'none':true}}", 0) == EXPECT_MET);
	CU_ASSERT(ask(&w, rest, 0) == EXPECT_PENDING);
	world_free(&w);
}

/* "Every one" of the receives that the peer's sends used, and those flushed. */
static void test_receives(void)
{
	static const char every[] = "{'n':2,'at':['p.b'],'recv_wc':{'all':['SUCCESS']}}";
	static const char flushed[] =
		"{'n':2,'at':['p.b'],'recv_wc':{'seq':[{'any':['SUCCESS'],'min':2,'max':2},{'any':['WR_FLUSH_ERR'],'rest':true}]}}";
	struct world w;

	world_new(&w, NULL);
	post(&w, "p.b.recv", "", 0, 4, true);
	post(&w, "p.a.send", "w", 0, 2, true);
	begin(&w, 2);
	wc(&w, "p.b.recv", 0, 1, "SUCCESS");
	CU_ASSERT(ask(&w, every, 0) == EXPECT_PENDING);
	wc(&w, "p.a.send", 0, 2, "SUCCESS");
	CU_ASSERT(ask(&w, every, 0) == EXPECT_PENDING);
	wc(&w, "p.b.recv", 1, 1, "SUCCESS");
	CU_ASSERT(ask(&w, every, 0) == EXPECT_MET);
	CU_ASSERT(ask(&w, flushed, 0) == EXPECT_PENDING);
	wc(&w, "p.b.recv", 2, 2, "WR_FLUSH_ERR");
	CU_ASSERT(ask(&w, flushed, 0) == EXPECT_MET);
	CU_ASSERT(ask(&w, every, 0) == EXPECT_BROKEN);
	world_free(&w);
}

static void test_state_must_be_fresh(void)
{
	struct world w;

	world_new(&w, NULL);
	feed(&w,
	     "{'kind':'state','src':'agent/a','obj':'p.a','life':1,'step':1,'new':'RTS','queried':{'state':'RTS','timeout':14}}");
	begin(&w, 2);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.a'],'qp':'RTS'}", 0) == EXPECT_PENDING);
	feed(&w,
	     "{'kind':'state','src':'agent/a','obj':'p.a','life':1,'step':2,'new':'RTS','queried':{'state':'RTS','timeout':14}}");
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.a'],'qp':'RTS'}", 0) == EXPECT_MET);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.a'],'qp':'ERR'}", 0) == EXPECT_PENDING);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.a'],'attr':{'timeout':{'op':'==','value':14}}}", 0) == EXPECT_MET);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.a'],'attr':{'timeout':15}}", 0) == EXPECT_PENDING);
	feed(&w, "{'kind':'state','src':'agent/a','obj':'p.a','life':1,'step':2,'new':'ERR','queried':{'state':'ERR'}}");
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.a'],'qp':'RTS'}", 0) == EXPECT_BROKEN);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.a','p.b'],'qp':'ERR'}", 0) == EXPECT_PENDING);
	world_free(&w);
}

static void test_events(void)
{
	static const char both[] = "{'n':2,'at':['p.b'],'event':{'all':['CQ_ERR','QP_FATAL']}}";
	struct world w;

	world_new(&w, NULL);
	begin(&w, 2);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'event':{'none':true}}", 0) == EXPECT_MET);
	feed(&w, "{'kind':'event','src':'agent/b','obj':'p.b','life':1,'step':2,'event':'COMM_EST'}");
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'event':{'none':true}}", 0) == EXPECT_MET);
	feed(&w, "{'kind':'event','src':'agent/b','obj':'p.b','life':1,'step':2,'event':'QP_FATAL'}");
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'event':{'none':true}}", 0) == EXPECT_BROKEN);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.a'],'event':{'none':true}}", 0) == EXPECT_MET);
	CU_ASSERT(ask(&w, both, 0) == EXPECT_PENDING);
	/* The event of a CQ belongs to the QP that uses it. */
	feed(&w, "{'kind':'event','src':'agent/b','obj':'rx','life':1,'step':2,'event':'CQ_ERR'}");
	CU_ASSERT(ask(&w, both, 0) == EXPECT_MET);
	settle(&w, both);
	begin(&w, 2);
	CU_ASSERT(ask(&w, both, 0) == EXPECT_PENDING);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'event':{'none':true}}", 0) == EXPECT_MET);
	/* It may say so again for each completion that it loses. */
	feed(&w, "{'kind':'event','src':'agent/b','obj':'rx','life':1,'step':2,'event':'CQ_ERR'}");
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'event':{'none':true}}", 0) == EXPECT_MET);
	feed(&w, "{'kind':'event','src':'agent/b','obj':'rx','life':2,'step':2,'event':'CQ_ERR'}");
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'event':{'none':true}}", 0) == EXPECT_BROKEN);
	world_free(&w);
}

/* A queue that is drained says so where it was asked, once; what was asked for is still against `none`. */
static void test_drained(void)
{
	static const char none[] = "{'n':2,'at':['p.a'],'event':{'none':true}}";
	static const char drained[] = "{'n':2,'at':['p.a'],'event':{'all':['SQ_DRAINED']}}";
	static const char by_profile[] = "[{'id':'unasked','seen':['6.1.0-57-amd64'],'when':{'event':'none','notify':'unasked'},"
					 "'device':'SQ_DRAINED'},{'id':'again','seen':['6.1.0-57-amd64'],'when':{'event':'none',"
					 "'notify':'again'},'device':'SQ_DRAINED'}]";
	static const struct {
		const char *by, *notify; /* of the move into SQD */
		const char *profile;
		unsigned events;
		bool moved, unexplained, taken_first;
		enum expect_state state; /* of `none` */
	} rows[] = {
		{ "step", "0", NULL, 0, true, false, false, EXPECT_MET },
		{ "step", "0", NULL, 1, false, true, false, EXPECT_BROKEN }, /* never in SQD */
		{ "step", "0", NULL, 1, true, true, false, EXPECT_BROKEN },
		{ "step", "0", by_profile, 1, true, true, false, EXPECT_MET },
		{ "step", "1", NULL, 1, true, false, false, EXPECT_BROKEN },
		{ "step", "1", NULL, 1, true, false, true, EXPECT_MET },
		{ "step", "1", by_profile, 1, true, false, false, EXPECT_BROKEN },
		{ "step", "1", NULL, 2, true, true, true, EXPECT_BROKEN },
		{ "step", "1", by_profile, 2, true, true, true, EXPECT_MET },
		{ "recover", "1", NULL, 1, true, false, false, EXPECT_MET },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum expect_state state;
		struct world w;
		char text[512];

		world_new(&w, rows[i].profile);
		begin(&w, 2);
		snprintf(text, sizeof(text),
			 "{'kind':'state','src':'agent/"
			 "a','obj':'p.a','life':1,'step':2,'asked':'SQD','old':'RTS','new':'SQD','by':'%s',"
			 "'attrs':{'en_sqd_async_notify':%s}}",
			 rows[i].by, rows[i].notify);
		if (rows[i].moved)
			feed(&w, text);
		for (unsigned k = 0; k < rows[i].events; k++)
			feed(&w, "{'kind':'event','src':'agent/a','obj':'p.a','life':1,'step':2,'event':'SQ_DRAINED'}");
		if (rows[i].taken_first)
			settle(&w, drained);
		if (rows[i].taken_first)
			begin(&w, 2);
		state = ask(&w, none, 0);
		ROW_ASSERT(state == rows[i].state, "row %zu: %s", i, state_text[state]);
		if (rows[i].events)
			ROW_ASSERT(m_event_explained(w.m, &w.m->events.v[rows[i].events - 1]) == !rows[i].unexplained, "row %zu",
				   i);
		world_free(&w);
	}
}

static const char entries[] =
	"[{'id':'no-event','seen':['6.1.0-57-amd64'],'when':{'event':'QP_ACCESS_ERR','at':'responder'},'device':'none'},"
	"{'id':'lkey','seen':['6.1.0-57-amd64'],'when':{'spec':'LOC_PROT_ERR','queue':'send'},'device':'LOC_QP_OP_ERR'},"
	"{'id':'unseen','seen':[],'when':{'spec':'REM_INV_REQ_ERR','queue':'send'},'device':'REM_OP_ERR'},"
	"{'id':'state','seen':['6.1.0-57-amd64'],'when':{'state':'SQE'},'device':'ERR'}]";

/* What never comes is waited for a little, not for the whole deadline. */
static void test_profile_event(void)
{
	static const char x[] = "{'n':2,'at':['p.b'],'event':{'all':['QP_ACCESS_ERR']},'deadline_ns':9000000000}";
	struct world w;

	world_new(&w, entries);
	begin(&w, 2);
	CU_ASSERT(ask(&w, x, 10 * MS) == EXPECT_PENDING);
	CU_ASSERT(ask(&w, x, 300 * MS) == EXPECT_MET);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'event':{'all':['QP_REQ_ERR']}}", 300 * MS) == EXPECT_PENDING);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'event':{'all':['QP_REQ_ERR','QP_ACCESS_ERR']}}", 300 * MS) == EXPECT_PENDING);
	world_free(&w);
	world_new(&w, NULL);
	begin(&w, 2);
	CU_ASSERT(ask(&w, x, 300 * MS) == EXPECT_PENDING);
	world_free(&w);
}

/* An entry for an event of a refused request excuses nothing where the peer's request was not refused in that way. */
static void test_profile_peer(void)
{
	static const char of_refusals[] = "[{'id':'no-event','seen':['6.1.0-57-amd64'],'when':{'event':'QP_ACCESS_ERR','peer':['"
					  "REM_ACCESS_ERR']},'device':'none'},"
					  "{'id':'other','seen':['6.1.0-57-amd64'],'when':{'spec':'REM_ACCESS_ERR','queue':'send'},"
					  "'device':'RETRY_EXC_ERR'}]";
	static const char x[] = "{'n':2,'at':['p.b'],'event':{'all':['QP_ACCESS_ERR']},'deadline_ns':9000000000}";
	static const struct {
		const char *status; /* of the peer's request; NULL: none */
		const char *wanted; /* of it, taken before; NULL: as it is */
		enum expect_state state;
	} rows[] = {
		{ NULL, NULL, EXPECT_PENDING },
		{ "SUCCESS", NULL, EXPECT_PENDING },
		{ "RETRY_EXC_ERR", NULL, EXPECT_PENDING },
		{ "REM_ACCESS_ERR", NULL, EXPECT_MET },
		{ "RETRY_EXC_ERR", "REM_ACCESS_ERR", EXPECT_MET },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world w;

		world_new(&w, of_refusals);
		post(&w, "p.a.send", "w", 0, 1, true);
		begin(&w, 2);
		if (rows[i].status)
			wc(&w, "p.a.send", 0, 1, rows[i].status);
		if (rows[i].wanted) {
			char text[128];
			json_t *taken;

			snprintf(text, sizeof(text), "{'n':2,'of':'w','wc':{'all':['%s']}}", rows[i].wanted);
			taken = parse(text);
			CU_ASSERT(model_expect(w.m, taken, w.t, NULL) == EXPECT_MET);
			model_settle(w.m, taken);
			json_decref(taken);
		}
		ROW_ASSERT(ask(&w, x, 300 * MS) == rows[i].state, "row %zu", i);
		world_free(&w);
	}
}

/* A queried attribute that the device has another value for, and packets that it never sends. */
static void test_profile_attr_and_packets(void)
{
	static const char own[] =
		"[{'id':'hops','seen':['6.1.0-57-amd64'],'when':{'attr':'hop_limit'},'device':'64'},"
		"{'id':'unsent','seen':['6.1.0-57-amd64'],'when':{'packets':'traffic_class=0x68'},'device':'none'}]";
	static const struct {
		const char *x;
		enum expect_state state;
	} rows[] = {
		{ "{'n':2,'at':['p.a'],'attr':{'hop_limit':3}}", EXPECT_MET },
		{ "{'n':2,'at':['p.a'],'attr':{'hop_limit':64}}", EXPECT_MET },
		{ "{'n':2,'at':['p.a'],'attr':{'timeout':9}}", EXPECT_PENDING },
		{ "{'n':2,'at':['p.a'],'attr':{'hop_limit':3,'timeout':9}}", EXPECT_PENDING },
		{ "{'n':2,'packets':{'from':['p.a'],'traffic_class':104},'count':{'op':'==','value':4}}", EXPECT_MET },
		{ "{'n':2,'packets':{'from':['a'],'traffic_class':104},'count':{'op':'==','value':4}}", EXPECT_MET },
		/* What is not asked for, or asked of no end, or comes all the same, the entry does not speak of. */
		{ "{'n':2,'packets':{'from':['p.a'],'traffic_class':72},'count':{'op':'==','value':4}}", EXPECT_PENDING },
		{ "{'n':2,'packets':{'traffic_class':104},'count':{'op':'==','value':4}}", EXPECT_PENDING },
		{ "{'n':2,'packets':{'from':['p.a']},'count':{'op':'==','value':4}}", EXPECT_PENDING },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world w;

		world_new(&w, own);
		feed(&w,
		     "{'kind':'connection','src':'controller','step':1,'pair':'p','life':1,'ends':[{'qp':'p.a','life':1},{'qp':'"
		     "p.b','life':1}]}");
		begin(&w, 2);
		feed(&w, "{'kind':'state','src':'agent/"
			 "a','step':2,'obj':'p.a','life':1,'old':'RTS','new':'RTS','by':'query','errno':0,'"
			 "queried':{'state':'RTS','hop_limit':64,'timeout':14}}");
		ROW_ASSERT(ask(&w, rows[i].x, 300 * MS) == rows[i].state, "%s", rows[i].x);
		world_free(&w);
	}
}

static void test_profile_status(void)
{
	json_t *x = parse("{'n':2,'of':'w','wc':{'all':['LOC_PROT_ERR']}}"), *why = NULL;
	struct world w;

	world_new(&w, entries);
	post(&w, "p.a.send", "w", 0, 1, true);
	begin(&w, 2);
	wc(&w, "p.a.send", 0, 1, "LOC_QP_OP_ERR");
	CU_ASSERT(model_expect(w.m, x, w.t, &why) == EXPECT_MET);
	CU_ASSERT(json_array_has(json_object_get(why, "deviations"), "lkey"));
	CU_ASSERT(ask(&w, "{'n':2,'of':'w','wc':{'all':['LOC_LEN_ERR']}}", 0) == EXPECT_BROKEN);
	json_decref(why);
	world_free(&w);
	/* The same on a kernel that no run has shown it on: broken, and the entry is named. */
	world_new(&w, entries);
	post(&w, "p.a.send", "w", 0, 1, true);
	begin(&w, 2);
	wc(&w, "p.a.send", 0, 1, "REM_OP_ERR");
	json_decref(x);
	x = parse("{'n':2,'of':'w','wc':{'all':['REM_INV_REQ_ERR']}}");
	CU_ASSERT(model_expect(w.m, x, w.t, &why) == EXPECT_BROKEN);
	CU_ASSERT(json_array_has(json_object_get(why, "likely"), "unseen"));
	CU_ASSERT(json_array_size(json_object_get(why, "deviations")) == 0);
	json_decref(why);
	json_decref(x);
	world_free(&w);
}

static void test_profile_state(void)
{
	struct world w;

	world_new(&w, entries);
	begin(&w, 2);
	feed(&w, "{'kind':'state','src':'agent/a','obj':'p.a','life':1,'step':2,'new':'ERR','queried':{'state':'ERR'}}");
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.a'],'qp':'SQE'}", 0) == EXPECT_MET);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.a'],'qp':'SQD'}", 0) == EXPECT_BROKEN);
	world_free(&w);
}

static const struct test_case cases[] = {
	{ "patterns of completions", test_patterns },
	{ "nothing accepted", test_nothing_accepted },
	{ "unsignaled requests", test_unsignaled },
	{ "taken in order", test_taking_in_order },
	{ "receives", test_receives },
	{ "a state must be fresh", test_state_must_be_fresh },
	{ "events", test_events },
	{ "a drained queue", test_drained },
	{ "profile: an event that never comes", test_profile_event },
	{ "profile: an event of a request that was refused", test_profile_peer },
	{ "a profile's attributes and packets", test_profile_attr_and_packets },
	{ "profile: another status", test_profile_status },
	{ "profile: another state", test_profile_state },
};

TEST_MAIN("expect", cases)
