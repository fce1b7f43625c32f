/* SPDX-License-Identifier: MIT */
/* The table itself, and what each row promises. */
#include "faults_rig.h"

#include "../harness/test.h"

/* ---- the table ---- */

static void the_table_is_sorted_and_found(void)
{
	CU_ASSERT_PTR_NOT_NULL_FATAL(fault_table[0]);
	for (size_t i = 0; fault_table[i]; i++) {
		CU_ASSERT_PTR_EQUAL(fault_find(fault_table[i]->name), fault_table[i]);
		if (i)
			CU_ASSERT(strcmp(fault_table[i - 1]->name, fault_table[i]->name) < 0);
	}
	CU_ASSERT_PTR_NULL(fault_find("no_such_fault"));
	CU_ASSERT_PTR_NULL(fault_find(NULL));
}

static void every_name_of_the_design_is_there(void)
{
	static const char *const names[] = {
		"missing_receive",
		"late_receive",
		"peer_held",
		"psn_mismatch",
		"pkey_index",
		"stale_peer",
		"wrong_gid",
		"mtu_mismatch",
		"rd_atomic_mismatch",
		"mr_deregistered",
		"mr_shrunk",
		"memory_replaced",
		"memory_rewritten",
		"access_revoked",
		"cq_swapped",
		"cq_too_small",
		"srq_dry",
		"qp_error",
		"qp_destroyed",
		"qp_reset",
		"ah_destroyed",
		"events_unacknowledged",
		"netem",
		"link_down",
		"address_removed",
		"address_moved",
		"mtu_shrunk",
		"neighbour",
		"device_recreated",
		"wire",
		"agent_killed",
		"agent_frozen",
		"agent_restarted",
		"controller_killed",
		"wire_killed",
	};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		CU_ASSERT_PTR_NOT_NULL(fault_find(names[i]));
}

static void param_is_complete(const struct fault_ops *ops, const struct fault_param *p)
{
	bool ok = p->type > FAULT_PARAM_INVALID && p->type < NUM_FAULT_PARAM_TYPES && p->help && p->help[0] && p->min <= p->max &&
		  (p->type == FAULT_PARAM_ENUM) == (p->values != NULL);

	if (!ok)
		printf("\n%s.%s is not complete\n", ops->name, p->name);
	CU_ASSERT(ok);
}

static void every_row_is_complete(void)
{
	for (size_t i = 0; fault_table[i]; i++) {
		const struct fault_ops *ops = fault_table[i];

		CU_ASSERT(ops->help && ops->help[0] && !strchr(ops->help, '\n'));
		CU_ASSERT(ops->proof && ops->proof[0]);
		CU_ASSERT(ops->layer > FAULT_LAYER_INVALID && ops->layer < NUM_FAULT_LAYERS);
		CU_ASSERT(ops->blast > FAULT_BLAST_INVALID && ops->blast < NUM_FAULT_BLASTS);
		if (!ops->params || !ops->detection)
			abort();
		for (const struct fault_param *p = ops->params; p->name; p++)
			param_is_complete(ops, p);
		/* What cannot be injected must say what it lacks, so that its cases are skipped; what can must be able to show it.
		 */
		if (!ops->inject)
			CU_ASSERT(ops->needs && ops->needs[0]);
		if (ops->inject)
			CU_ASSERT_PTR_NOT_NULL(ops->prove);
	}
	for (int l = 0; l < NUM_FAULT_LAYERS; l++)
		CU_ASSERT_PTR_NOT_NULL(fault_layer_names[l]);
	for (int b = 0; b < NUM_FAULT_BLASTS; b++)
		CU_ASSERT_PTR_NOT_NULL(fault_blast_names[b]);
}

static void detection_follows_the_arguments(void)
{
	static const struct {
		const char *name, *args;
		enum detection d;
	} rows[] = {
		{ "psn_mismatch", "{'at':'p.a','ahead':3}", DETECTION_SEQ_NAK },
		{ "psn_mismatch", "{'at':'p.a','behind':3}", DETECTION_SILENT },
		{ "peer_held", "{'at':'p.a','in':'INIT'}", DETECTION_SILENT },
		{ "peer_held", "{'at':'p.a','in':'RTR'}", DETECTION_NONE },
		{ "stale_peer", "{'at':'p.a','use':'x'}", DETECTION_SILENT },
		{ "stale_peer", "{'at':'p.a','use':'x','what':'keys'}", DETECTION_NAK },
		{ "access_revoked", "{'at':'p.a','of':'mr','right':'LOCAL_WRITE','mr':'p.a.tx'}", DETECTION_LOCAL },
		{ "access_revoked", "{'at':'p.b','of':'qp','right':'REMOTE_WRITE'}", DETECTION_NAK },
		{ "missing_receive", "{'at':['p.b']}", DETECTION_RNR },
		{ "netem", "{'at':'p.a','loss':'5%'}", DETECTION_SILENT },
		{ "netem", "{'at':'p.a','duplicate':'5%'}", DETECTION_NONE },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *args = parse(rows[i].args);

		CU_ASSERT_EQUAL(fault_find(rows[i].name)->detection(args), rows[i].d);
		json_decref(args);
	}
}

static void blast_follows_the_arguments(void)
{
	static const struct {
		const char *name, *args;
		enum fault_blast b;
	} rows[] = {
		{ "qp_error", "{'at':'p.a'}", FAULT_BLAST_PAIR },
		{ "agent_killed", "{'agent':'a'}", FAULT_BLAST_PAIR },
		{ "netem", "{'at':'p.a','loss':'5%'}", FAULT_BLAST_LINK },
		{ "address_removed", "{'at':'p.a'}", FAULT_BLAST_DEVICE },
		{ "wire", "{'action':'drop'}", FAULT_BLAST_PAIR },
		{ "wire", "{'action':'blackhole','match':{'pair':['p']}}", FAULT_BLAST_PAIR },
		{ "wire", "{'action':'blackhole','match':{'from':['p.a']}}", FAULT_BLAST_LINK },
		{ "wire", "{'action':'blackhole'}", FAULT_BLAST_LINK },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *args = parse(rows[i].args);

		ROW_ASSERT(fault_blast_of(fault_find(rows[i].name), args) == rows[i].b, "%s %s", rows[i].name, rows[i].args);
		json_decref(args);
	}
}

static void checks_refuse_what_the_table_cannot(void)
{
	static const struct {
		const char *name, *args;
		bool ok;
	} rows[] = {
		{ "psn_mismatch", "{'at':'p.a','ahead':3}", true },
		{ "psn_mismatch", "{'at':'p.a'}", false },
		{ "psn_mismatch", "{'at':'p.a','ahead':3,'behind':4}", false },
		{ "access_revoked", "{'of':'mr','right':'LOCAL_WRITE'}", true },
		{ "access_revoked", "{'of':'qp','right':'LOCAL_WRITE'}", false },
		{ "access_revoked", "{'of':'qp','right':'REMOTE_READ','mr':'x'}", false },
		{ "netem", "{'at':'p.a'}", false },
		{ "netem", "{'at':'p.a','delay':1000000}", true },
		{ "netem", "{'at':'p.a','loss':'1%','jitter':1000}", false },
		{ "netem", "{'at':'p.a','args':'loss gemodel 1% 10%'}", true },
		{ "netem", "{'at':'p.a','args':'loss 1%; qdisc del'}", false },
		{ "netem", "{'at':'p.a','loss':'1%','reorder':'5%'}", false },
		{ "wire", "{'action':'drop','match':{'class':'ack'}}", true },
		{ "wire", "{'action':'delay'}", false },
		{ "wire", "{'action':'rewrite'}", false },
		{ "wire", "{'action':'forge'}", false },
		{ "wire", "{'action':'drop','by':5}", false },
		{ "wire", "{'action':'delay','by':20000000,'times':1}", true },
		{ "wire", "{'action':'rewrite','rewrite':{'psn':'+1','pkey':4660}}", true },
		{ "wire", "{'action':'rewrite','rewrite':{'colour':1}}", false },
		{ "wire", "{'action':'corrupt','where':'icrc'}", true },
		{ "wire", "{'action':'corrupt','where':'moon'}", false },
		{ "wire", "{'action':'forge','forge':{'kind':'NAK_OP'}}", true },
		{ "wire", "{'action':'forge','forge':{'kind':'NAK_MOON'}}", false },
		{ "wire", "{'action':'replay','into':'next_life','fit':'both'}", true },
		{ "wire", "{'action':'swallow'}", false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct error e = { "" };
		json_t *args = parse(rows[i].args);
		int rc = fault_find(rows[i].name)->check(args, &e);

		CU_ASSERT_EQUAL(rc, rows[i].ok ? 0 : -EINVAL);
		CU_ASSERT_EQUAL(e.text[0] == 0, rows[i].ok);
		json_decref(args);
	}
}

/* ---- the wire ---- */

static const struct wire_row {
	const char *args, *report;
	int proof;
} wire_rows[] = {
	{ "{'action':'drop'}", "{'hits':2,'invented':0}", 1 },
	{ "{'action':'drop'}", "{'hits':0,'why':'no packet came'}", 0 },
	{ "{'action':'forge','forge':{'kind':'ACK'}}", "{'hits':2,'invented':0}", 0 },
	{ "{'action':'forge','forge':{'kind':'ACK'}}", "{'hits':2,'invented':1}", 1 },
	{ "{'action':'replay'}", "{'hits':1,'invented':0}", 1 },
	{ "{'action':'replay','into':'next_life'}", "{'hits':1,'invented':0}", 0 },
	{ "{'action':'replay','into':'next_life'}", "{'hits':1,'invented':1}", 1 },
};

static void a_rule_of_the_wire_is_proven_by_its_report(void)
{
	for (size_t i = 0; i < sizeof wire_rows / sizeof wire_rows[0]; i++) {
		struct error e = { "" };
		json_t *evidence = NULL;
		struct world w;
		struct fault f;

		world_init(&w);
		f = fault_of(&w, "wire", parse(wire_rows[i].args));
		json_object_set_new(f.state, "for_ns", json_integer(7));
		CU_ASSERT_EQUAL(f.ops->inject(&f, NULL), 0);
		CU_ASSERT_STRING_EQUAL(json_str(json_array_get(w.asked, 0), "op"), "rule");
		CU_ASSERT_STRING_EQUAL(json_str(json_array_get(w.asked, 0), "as"), "x");
		CU_ASSERT_EQUAL(json_int(json_array_get(w.asked, 0), "for", 0), 7);
		json_object_set_new(w.reply, "rule", parse(wire_rows[i].report));
		CU_ASSERT_EQUAL(f.ops->prove(&f, &evidence, &e), wire_rows[i].proof);
		CU_ASSERT_EQUAL(e.text[0] != 0, !wire_rows[i].proof);
		json_decref(evidence);
		CU_ASSERT_EQUAL(f.ops->clear(&f, NULL), 0);
		/* What it was when it was cleared stays its proof. */
		json_object_clear(w.reply);
		CU_ASSERT_EQUAL(prove(&f), wire_rows[i].proof);
		w.rc = -EPIPE;
		CU_ASSERT_EQUAL(f.ops->inject(&f, NULL), -EPIPE);
		fault_done(&f);
		world_free(&w);
	}
}

static void the_wire_has_the_parameters_of_all_actions(void)
{
	const struct fault_ops *ops = fault_find("wire");

	for (const struct action_ops *const *a = action_table; *a; a++)
		for (const struct fault_param *p = (*a)->params; p && p->name; p++) {
			bool there = false;

			for (const struct fault_param *w = ops->params; w->name; w++)
				there |= !strcmp(w->name, p->name) && w->type == p->type && w->min <= p->min && w->max >= p->max &&
					 !w->required;
			CU_ASSERT_TRUE(there);
		}
}

static const struct test_case tests[] = {
	{ "the table is sorted and found", the_table_is_sorted_and_found },
	{ "every name of the design is there", every_name_of_the_design_is_there },
	{ "every row is complete", every_row_is_complete },
	{ "blast follows the arguments", blast_follows_the_arguments },
	{ "detection follows the arguments", detection_follows_the_arguments },
	{ "checks refuse what the table cannot", checks_refuse_what_the_table_cannot },
	{ "a rule of the wire is proven by its report", a_rule_of_the_wire_is_proven_by_its_report },
	{ "the wire has the parameters of all actions", the_wire_has_the_parameters_of_all_actions },
};

TEST_MAIN("faults", tests)
