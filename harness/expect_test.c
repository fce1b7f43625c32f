/* SPDX-License-Identifier: MIT */
#include "observe.h"

#include <stdlib.h>
#include <string.h>

#include "expect_internal.h"
#include "json.h"
#include "test.h"
#include "units.h"

#define MS NSEC_PER_MSEC

static const char plan_text[] =
	"{'steps':[{'n':1,'do':'post','as':'w'},{'n':2,'do':'expect'}],'agents':{'a':{'device':'a'},'b':{'device':'b'}},"
	"'qps':[{'name':'p.a','pair':'p','agent':'a','peer':'p.b','type':'RC','send_cq':'p.a.scq','recv_cq':'p.a.rcq','attr':{}},"
	"{'name':'p.b','pair':'p','agent':'b','peer':'p.a','type':'RC','send_cq':'p.b.scq','recv_cq':'rx','attr':{}}]}";

/* JSON with single quotes, so that a row can be read. */
static json_t *parse(const char *text)
{
	char *copy = strdup(text);
	json_error_t e;
	json_t *v;

	for (char *c = copy; *c; c++)
		if (*c == '\'')
			*c = '"';
	v = json_loads(copy, JSON_DECODE_ANY, &e);
	if (!v)
		fprintf(stderr, "    %s: %s\n", text, e.text);
	CU_ASSERT_FATAL(v != NULL);
	free(copy);
	return v;
}

struct world {
	json_t *plan;
	struct model *m;
	uint64_t t;
	struct profile profile;
};

static void world_new(struct world *w, const char *entries)
{
	memset(w, 0, sizeof(*w));
	w->plan = parse(plan_text);
	w->t = 1000 * MS;
	if (entries) {
		w->profile.kernel = strdup("6.1.0-57-amd64");
		w->profile.entries = parse(entries);
	}
	CU_ASSERT_FATAL(model_new(w->plan, entries ? &w->profile : NULL, &w->m) == 0);
}

static void world_free(struct world *w)
{
	model_free(w->m);
	profile_release(&w->profile);
	json_decref(w->plan);
}

static void feed(struct world *w, const char *text)
{
	json_t *r = parse(text);

	if (!json_object_get(r, "t"))
		json_object_set_new(r, "t", json_integer((json_int_t)w->t));
	w->t += MS;
	model_feed(w->m, r);
	json_decref(r);
}

static void post(struct world *w, const char *queue, const char *as, unsigned first, unsigned n, bool signaled)
{
	char text[512];
	char agent = queue[2];
	unsigned q = strstr(queue, "recv") ? 2 : 1;

	snprintf(text, sizeof(text),
		 "{'kind':'post','src':'agent/"
		 "%c','obj':'%s','life':1,'step':1,'as':'%s','op':'%s','size':64,'count':%u,'accepted':%u,'errno':0,'by':'step',"
		 "'signaled':%s,'first':'0x%llx','last':'0x%llx'}",
		 agent, queue, as, q == 2 ? "RECV" : "SEND", n, n, signaled ? "true" : "false",
		 (unsigned long long)wrid_encode((struct wrid){ 1, q, q == 2 ? WRID_RECV : WRID_SEND, first }),
		 (unsigned long long)wrid_encode((struct wrid){ 1, q, q == 2 ? WRID_RECV : WRID_SEND, first + n - 1 }));
	feed(w, text);
}

static void wc(struct world *w, const char *queue, unsigned first, unsigned n, const char *status)
{
	unsigned q = strstr(queue, "recv") ? 2 : 1;
	char text[512];

	snprintf(text, sizeof(text),
		 "{'kind':'wc','src':'agent/"
		 "%c','obj':'%s','life':1,'step':2,'cq':'x','first':'0x%llx','last':'0x%llx','count':%u,'status':'%s'}",
		 queue[2], queue, (unsigned long long)wrid_encode((struct wrid){ 1, q, q == 2 ? WRID_RECV : WRID_SEND, first }),
		 (unsigned long long)wrid_encode((struct wrid){ 1, q, q == 2 ? WRID_RECV : WRID_SEND, first + n - 1 }), n, status);
	feed(w, text);
}

static void begin(struct world *w, int step)
{
	char text[128];

	snprintf(text, sizeof(text), "{'kind':'step','phase':'begin','do':'x','step':%d}", step);
	feed(w, text);
}

static enum expect_state ask(struct world *w, const char *expectation, uint64_t later_ns)
{
	json_t *x = parse(expectation);
	enum expect_state state = model_expect(w->m, x, w->t + later_ns, NULL);

	json_decref(x);
	return state;
}

static void settle(struct world *w, const char *expectation)
{
	json_t *x = parse(expectation);

	model_settle(w->m, x);
	json_decref(x);
}

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

static void test_payload(void)
{
	static const char intact[] = "{'n':2,'of':'w','payload':'intact'}", absent[] = "{'n':2,'of':'w','payload':'absent'}";
	struct world w;

	world_new(&w, NULL);
	post(&w, "p.a.send", "w", 0, 2, true);
	feed(&w, "{'kind':'payload','src':'controller','obj':'p.a','step':1,'as':'w','at':'p.b','total':2,'intact':2,'absent':0}");
	begin(&w, 2);
	CU_ASSERT(ask(&w, intact, 0) == EXPECT_PENDING);
	feed(&w, "{'kind':'payload','src':'controller','obj':'p.a','step':2,'as':'w','at':'p.b','total':2,'intact':1,'absent':1}");
	CU_ASSERT(ask(&w, intact, 0) == EXPECT_PENDING);
	wc(&w, "p.a.send", 0, 2, "SUCCESS");
	CU_ASSERT(ask(&w, intact, 0) == EXPECT_BROKEN);
	CU_ASSERT(ask(&w, "{'n':2,'of':'w','payload':'partial'}", 0) == EXPECT_MET);
	feed(&w, "{'kind':'payload','src':'controller','obj':'p.a','step':2,'as':'w','at':'p.b','total':2,'intact':2,'absent':0}");
	CU_ASSERT(ask(&w, intact, 0) == EXPECT_MET);
	CU_ASSERT(ask(&w, absent, 0) == EXPECT_BROKEN);
	/* Messages of no bytes are not looked at: nothing of them can lack. */
	feed(&w, "{'kind':'post','src':'agent/"
		 "a','obj':'p.a.send','life':1,'step':1,'as':'e','op':'SEND','size':0,'count':1,'accepted':1,'errno':0,"
		 "'by':'step','signaled':true,'first':'0x10001100000005','last':'0x10001100000005'}");
	CU_ASSERT(ask(&w, "{'n':2,'of':'e','payload':'intact'}", 0) == EXPECT_MET);
	CU_ASSERT(ask(&w, "{'n':2,'of':'e','payload':'stale'}", 0) == EXPECT_BROKEN);
	world_free(&w);
}

static void test_numbers(void)
{
	struct world w;

	world_new(&w, NULL);
	feed(&w, "{'kind':'counter','src':'agent/b','obj':'dev.b','step':0,'values':{'duplicate_request':40}}");
	feed(&w, "{'kind':'verb','src':'agent/b','obj':'rx','step':0,'verb':'ibv_create_cq','errno':0,'ret':{'cqe':31}}");
	begin(&w, 2);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'counter':{'duplicate_request':{'op':'>=','value':0}}}", 0) == EXPECT_PENDING);
	feed(&w, "{'kind':'counter','src':'agent/b','obj':'dev.b','step':2,'values':{'duplicate_request':43}}");
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'counter':{'duplicate_request':{'op':'>=','value':3}}}", 0) == EXPECT_MET);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'counter':{'duplicate_request':{'op':'>=','value':4}}}", 0) == EXPECT_PENDING);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'counter':{'duplicate_request':{'op':'<=','value':2}}}", 0) == EXPECT_BROKEN);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'counter':{'duplicate_request':{'op':'range','min':2,'max':5}}}", 0) == EXPECT_MET);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'counter':{'duplicate_request':{'op':'<=','value':{'ref':'rx.cqe','add':-28}}}}",
		      0) == EXPECT_MET);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'counter':{'no_such':{'op':'>=','value':0}}}", 0) == EXPECT_PENDING);
	world_free(&w);
}

static void test_ledger(void)
{
	struct world w;

	world_new(&w, NULL);
	post(&w, "p.a.send", "w", 0, 4, true);
	begin(&w, 2);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.a'],'ledger':{'in_flight':0}}", 0) == EXPECT_PENDING);
	wc(&w, "p.a.send", 0, 1, "SUCCESS");
	CU_ASSERT(model_in_flight(w.m, "p.a") == 3);
	feed(&w, "{'kind':'state','src':'agent/a','obj':'p.a','life':2,'step':2,'asked':'RESET','new':'RESET','errno':0}");
	CU_ASSERT(model_in_flight(w.m, "p.a") == 0);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.a'],'ledger':{'in_flight':0,'discarded':{'op':'==','value':3}}}", 0) == EXPECT_MET);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.a'],'ledger':{'discarded':2}}", 0) == EXPECT_BROKEN);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'ledger':{'recv':'open'}}", 0) == EXPECT_PENDING);
	post(&w, "p.b.recv", "", 0, 4, true);
	feed(&w, "{'kind':'event','src':'agent/b','obj':'rx','life':1,'step':2,'event':'CQ_ERR'}");
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.b'],'ledger':{'recv':'open'}}", 0) == EXPECT_MET);
	world_free(&w);
}

static void test_traffic_statistics(void)
{
	struct world w;

	world_new(&w, NULL);
	begin(&w, 2);
	CU_ASSERT(ask(&w, "{'n':2,'of':'live','errors':0}", 0) == EXPECT_PENDING);
	feed(&w,
	     "{'kind':'traffic','src':'agent/"
	     "a','obj':'p.a','step':2,'as':'live','from':'p.a','phase':'before:death','p99_ns':1000,'errors':0,'gap_max_ns':5}");
	feed(&w,
	     "{'kind':'traffic','src':'agent/"
	     "a','obj':'p.a','step':2,'as':'live','from':'p.a','phase':'during:death','p99_ns':2500,'errors':0,'gap_max_ns':90}");
	CU_ASSERT(ask(&w,
		      "{'n':2,'of':'live','during':'death','errors':0,'gap':{'op':'<=','value':100,'unit':'ns'},'p99':{'op':'<=','"
		      "value':3,'before':true}}",
		      0) == EXPECT_MET);
	CU_ASSERT(ask(&w, "{'n':2,'of':'live','during':'death','p99':{'op':'<=','value':2,'before':true}}", 0) == EXPECT_BROKEN);
	CU_ASSERT(ask(&w, "{'n':2,'of':'live','errors':0}", 0) == EXPECT_PENDING);
	feed(&w, "{'kind':'traffic','src':'agent/a','obj':'p.a','step':2,'as':'live','from':'p.a','phase':'end','errors':2}");
	CU_ASSERT(ask(&w, "{'n':2,'of':'live','errors':0}", 0) == EXPECT_BROKEN);
	CU_ASSERT(ask(&w, "{'n':2,'of':'live','payload':'intact'}", 0) == EXPECT_BROKEN);
	feed(&w, "{'kind':'traffic','src':'agent/"
		 "a','obj':'p.a','step':2,'as':'live','from':'p.a','phase':'now','errors':0,'done':7,'bad_payload':0}");
	CU_ASSERT(ask(&w, "{'n':2,'of':'live','errors':0}", 0) == EXPECT_MET);
	CU_ASSERT(ask(&w, "{'n':2,'of':'live','payload':'intact'}", 0) == EXPECT_MET);
	CU_ASSERT(ask(&w, "{'n':2,'of':'live','payload':'absent'}", 0) == EXPECT_PENDING);
	CU_ASSERT(ask(&w, "{'n':2,'of':'live','p50':{'op':'>=','value':5,'unit':'ns'}}", 0) ==
		  EXPECT_PENDING); /* nothing was answered yet */
	feed(&w, "{'kind':'traffic','src':'agent/"
		 "a','obj':'p.a','step':2,'as':'live','from':'p.a','phase':'stop','errors':0,'done':7,'bad_payload':1}");
	CU_ASSERT(ask(&w, "{'n':2,'of':'live','payload':'intact'}", 0) == EXPECT_BROKEN);
	world_free(&w);
}

static void test_any(void)
{
	static const char x[] = "{'n':2,'any':[{'of':'w','wc':{'all':['SUCCESS']}},{'at':['p.b'],'event':{'all':['QP_FATAL']}}]}";
	struct world w;

	world_new(&w, NULL);
	post(&w, "p.a.send", "w", 0, 1, true);
	begin(&w, 2);
	CU_ASSERT(ask(&w, x, 0) == EXPECT_PENDING);
	wc(&w, "p.a.send", 0, 1, "WR_FLUSH_ERR");
	CU_ASSERT(ask(&w, x, 0) == EXPECT_PENDING);
	feed(&w, "{'kind':'event','src':'agent/b','obj':'p.b','life':1,'step':2,'event':'QP_FATAL'}");
	CU_ASSERT(ask(&w, x, 0) == EXPECT_MET);
	CU_ASSERT(ask(&w, "{'n':2,'any':[{'of':'w','wc':{'all':['SUCCESS']}}]}", 0) == EXPECT_BROKEN);
	world_free(&w);
}

/* What cannot be checked is no expectation that holds. */
static void test_nothing_to_check(void)
{
	struct world w;

	world_new(&w, NULL);
	CU_ASSERT(ask(&w, "{'n':2,'at':['p.a']}", 0) == EXPECT_BROKEN);
	CU_ASSERT(ask(&w, "{'n':2,'any':[]}", 0) == EXPECT_BROKEN);
	CU_ASSERT(ask(&w, "{'n':2,'packets':{'from':'a'},'count':4}", 0) == EXPECT_BROKEN);
	CU_ASSERT(ask(&w, "{'n':2,'at':['nobody'],'qp':'RTS'}", 0) == EXPECT_BROKEN);
	world_free(&w);
}

static void packet(struct world *w, const char *more)
{
	char text[512];

	snprintf(text, sizeof(text), "{'kind':'packet','src':'wire','step':1,'pair':'p',%s}", more);
	feed(w, text);
}

/* Packets are counted by what the scenario says of them, runs by their packets, and what did not come in not at all. */
static void test_packets(void)
{
	static const struct {
		const char *match, *count;
		enum expect_state state;
	} rows[] = {
		{ "{'from':['a'],'class':'request'}", "{'op':'==','value':7}", EXPECT_MET },
		{ "{'from':['p.a'],'class':'request'}", "{'op':'==','value':7}", EXPECT_MET },
		{ "{'from':['p.b']}", "{'op':'==','value':1}", EXPECT_MET },
		{ "{'class':['ack','nak']}", "{'op':'==','value':1}", EXPECT_MET },
		{ "{'psn':0,'from':['a']}", "{'op':'==','value':3}", EXPECT_MET },
		{ "{'psn':0,'from':['a']}", "{'op':'==','value':2}", EXPECT_BROKEN },
		{ "{'psn':0,'from':['a']}", "{'op':'==','value':4}", EXPECT_PENDING },
		{ "{'psn':0,'from':['a']}", "{'op':'>=','value':2}", EXPECT_MET },
		{ "{'psn':{'op':'range','min':1,'max':2},'from':['a']}", "{'op':'==','value':2}", EXPECT_MET },
		{ "{'psn':{'op':'range','min':4},'from':['a']}", "{'op':'==','value':1}", EXPECT_MET },
		{ "{'transmission':2}", "{'op':'==','value':1}", EXPECT_MET },
		{ "{'from':['a'],'transmission':{'op':'>=','value':2}}", "{'op':'==','value':2}", EXPECT_MET },
		{ "{'opcode':'RC_SEND_ONLY'}", "{'op':'==','value':2}", EXPECT_MET },
		{ "{'size':1024}", "{'op':'==','value':5}", EXPECT_MET },
		{ "{'from':['a'],'every':2}", "{'op':'==','value':3}", EXPECT_MET },
		{ "{'from':['a'],'nth':{'op':'range','min':2,'max':4}}", "{'op':'==','value':3}", EXPECT_MET },
		{ "{'pair':['p']}", "{'op':'==','value':8}", EXPECT_MET },
		{ "{'pair':['q']}", "{'op':'<=','value':0}", EXPECT_MET },
		{ "{'from':['p.a@1'],'psn':0}", "{'op':'==','value':1}", EXPECT_MET },
	};
	struct world w;
	char text[256];

	world_new(&w, NULL);
	feed(&w, "{'kind':'connection','src':'controller','step':1,'pair':'p','life':1,'ends':[{'qp':'p.a','life':1},{'qp':'p.b','"
		 "life':1}]}");
	packet(&w, "'obj':'p.a','from':'a','life':1,'class':'request','opcode':'RC_SEND_ONLY','size':64,'psn':0,'transmission':1,'"
		   "count':1");
	feed(&w, "{'kind':'connection','src':'controller','step':1,'pair':'p','life':2,'ends':[{'qp':'p.a','life':2},{'qp':'p.b','"
		 "life':2}]}");
	packet(&w, "'obj':'p.a','from':'a','life':2,'class':'request','opcode':'RC_RDMA_WRITE_MIDDLE','size':1024,'psn':0,'"
		   "transmission':1,'count':5");
	packet(&w, "'obj':'p.a','from':'a','life':2,'class':'request','opcode':'RC_SEND_ONLY','size':64,'psn':0,'transmission':2,'"
		   "count':1");
	packet(&w, "'obj':'p.a','from':'a','life':2,'class':'request','opcode':'RC_SEND_ONLY','size':64,'psn':0,'transmission':3,'"
		   "count':1,'fate':'eaten'");
	packet(&w, "'obj':'p.a','from':'a','life':2,'class':'request','opcode':'RC_SEND_ONLY','size':64,'psn':0,'transmission':3,'"
		   "count':1,'late':true");
	packet(&w, "'obj':'p.b','from':'b','life':2,'class':'ack','opcode':'RC_ACKNOWLEDGE','size':0,'psn':4,'transmission':1,'"
		   "count':1");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum expect_state state;

		snprintf(text, sizeof(text), "{'n':2,'packets':%s,'count':%s}", rows[i].match, rows[i].count);
		state = ask(&w, text, 0);
		ROW_ASSERT(state == rows[i].state, "%s: state %d, expected %d", text, (int)state, (int)rows[i].state);
	}
	world_free(&w);
}

static void test_needs(void)
{
	static const struct {
		const char *step;
		bool state, counter, payload;
	} rows[] = {
		{ "{'wc':{'none':true}}", false, false, false },
		{ "{'qp':'ERR'}", true, false, false },
		{ "{'attr':{}}", true, false, false },
		{ "{'counter':{},'payload':'intact'}", false, true, true },
		{ "{'any':[{'qp':'ERR'},{'payload':'absent'}]}", true, false, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *step = parse(rows[i].step);
		struct model_needs n = model_expect_needs(step);

		ROW_ASSERT(n.state == rows[i].state && n.counter == rows[i].counter && n.payload == rows[i].payload, "%s",
			   rows[i].step);
		json_decref(step);
	}
}

static void test_progress(void)
{
	unsigned accepted, completed;
	struct world w;

	world_new(&w, NULL);
	post(&w, "p.a.send", "w", 0, 4, true);
	wc(&w, "p.a.send", 0, 3, "SUCCESS");
	model_post_progress(w.m, "w", &accepted, &completed);
	CU_ASSERT(accepted == 4 && completed == 3);
	model_post_progress(w.m, "nothing", &accepted, &completed);
	CU_ASSERT(accepted == 0 && completed == 0);
	world_free(&w);
}

static void test_sequence_sets(void)
{
	static const struct {
		uint32_t first, last, twice;
		size_t ranges;
		uint32_t size;
	} rows[] = {
		{ 5, 5, 0, 1, 1 }, { 7, 9, 0, 2, 4 },    { 6, 6, 0, 1, 5 },    { 6, 7, 2, 1, 5 },
		{ 0, 1, 0, 2, 7 }, { 20, 30, 0, 3, 18 }, { 0, 40, 18, 1, 41 }, { 0xfffffffe, 0xffffffff, 0, 2, 43 },
	};
	struct seq_set s = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t twice;

		CU_ASSERT(seq_set_add(&s, rows[i].first, rows[i].last, &twice) == 0);
		ROW_ASSERT(twice == rows[i].twice && s.r.n == rows[i].ranges && seq_set_size(&s) == rows[i].size,
			   "row %zu: %u twice, %zu ranges, %u in all", i, twice, s.r.n, seq_set_size(&s));
	}
	free(s.r.v);
}

static const struct test_case cases[] = {
	{ "patterns of completions", test_patterns },
	{ "nothing accepted", test_nothing_accepted },
	{ "unsignaled requests", test_unsignaled },
	{ "taken in order", test_taking_in_order },
	{ "receives", test_receives },
	{ "a state must be fresh", test_state_must_be_fresh },
	{ "events", test_events },
	{ "profile: an event that never comes", test_profile_event },
	{ "profile: another status", test_profile_status },
	{ "profile: another state", test_profile_state },
	{ "payload", test_payload },
	{ "counters and references", test_numbers },
	{ "ledger", test_ledger },
	{ "statistics of a traffic", test_traffic_statistics },
	{ "any", test_any },
	{ "nothing to check", test_nothing_to_check },
	{ "packets are counted", test_packets },
	{ "what an expectation needs", test_needs },
	{ "progress of a post", test_progress },
	{ "sets of sequence numbers", test_sequence_sets },
};

TEST_MAIN("expect", cases)
