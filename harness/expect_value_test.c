/* SPDX-License-Identifier: MIT */
/* Expectations of payload, numbers, ledger, traffic and packets. */
#include "expect_rig.h"

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
	/* Memory that went with its process: waiting for it is vain. That of a frozen one can be seen again. */
	begin(&w, 3);
	post(&w, "p.a.send", "v", 2, 1, true);
	feed(&w, "{'kind':'payload','src':'controller','obj':'p.a','step':4,'as':'v','at':'p.b','total':1,'unreachable':'dead'}");
	CU_ASSERT(ask(&w, "{'n':3,'of':'v','payload':'absent'}", 0) == EXPECT_PENDING);
	wc(&w, "p.a.send", 2, 1, "RETRY_EXC_ERR");
	CU_ASSERT(ask(&w, "{'n':3,'of':'v','payload':'absent'}", 0) == EXPECT_BROKEN);
	feed(&w, "{'kind':'payload','src':'controller','obj':'p.a','step':4,'as':'v','at':'p.b','total':1,'unreachable':'frozen'}");
	CU_ASSERT(ask(&w, "{'n':3,'of':'v','payload':'absent'}", 0) == EXPECT_PENDING);
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
		{ "{'class':['ack','request'],'opcode':['RC_ACKNOWLEDGE','RC_SEND_ONLY']}", "{'op':'==','value':3}", EXPECT_MET },
		{ "{'syndrome':'NAK_PSN'}", "{'op':'==','value':0}", EXPECT_MET },
		{ "{'syndrome':'ACK'}", "{'op':'==','value':1}", EXPECT_MET },
		{ "{'syndrome':31}", "{'op':'==','value':1}", EXPECT_MET },
		{ "{'syndrome':30}", "{'op':'==','value':1}", EXPECT_PENDING },
		{ "{'syndrome':['NAK_PSN',31]}", "{'op':'==','value':1}", EXPECT_MET },
		{ "{'from':['p.a@1'],'psn':0}", "{'op':'==','value':1}", EXPECT_MET },
		/* Of the way only what is not plain is on record. */
		{ "{'traffic_class':104,'hop_limit':3}", "{'op':'==','value':1}", EXPECT_MET },
		{ "{'traffic_class':0,'hop_limit':64,'flow_label':0}", "{'op':'==','value':7}", EXPECT_MET },
		{ "{'hop_limit':{'op':'range','min':4,'max':63}}", "{'op':'==','value':0}", EXPECT_MET },
		{ "{'flow_label':1}", "{'op':'==','value':1}", EXPECT_PENDING },
		{ "{'source_port':49152}", "{'op':'==','value':7}", EXPECT_MET },
		{ "{'source_port':{'op':'range','min':49153}}", "{'op':'==','value':1}", EXPECT_MET },
		{ "{'dont_fragment':1,'header_words':5,'udp_checksum':0,'reserved':0}", "{'op':'==','value':8}", EXPECT_MET },
		{ "{'from':['a']}", "{'op':'==','value':1},'different':'source_port'", EXPECT_MET },
		{ "{}", "{'op':'==','value':3},'different':'source_port'", EXPECT_PENDING },
		{ "{}", "{'op':'==','value':2},'different':'source_port'", EXPECT_MET },
		{ "{}", "{'op':'==','value':1},'different':'udp_checksum'", EXPECT_MET },
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
		   "transmission':1,'count':5,'source_port':49152");
	packet(&w, "'obj':'p.a','from':'a','life':2,'class':'request','opcode':'RC_SEND_ONLY','size':64,'psn':0,'transmission':2,'"
		   "count':1,'source_port':49152");
	packet(&w, "'obj':'p.a','from':'a','life':2,'class':'request','opcode':'RC_SEND_ONLY','size':64,'psn':0,'transmission':3,'"
		   "count':1,'fate':'eaten','source_port':49152");
	packet(&w, "'obj':'p.a','from':'a','life':2,'class':'request','opcode':'RC_SEND_ONLY','size':64,'psn':0,'transmission':3,'"
		   "count':1,'late':true");
	packet(&w, "'obj':'p.b','from':'b','life':2,'class':'ack','opcode':'RC_ACKNOWLEDGE','size':0,'psn':4,'transmission':1,'"
		   "count':1,'syndrome':31,'traffic_class':104,'hop_limit':3,'source_port':49200");
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

TEST_MAIN("expect_value", cases)
