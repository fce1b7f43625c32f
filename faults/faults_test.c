/* SPDX-License-Identifier: MIT */
/* The table itself, what each row promises, and the hooks against a world made of a few values. */
#include "fault_common.h"

#include <CUnit/Basic.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "action.h"

/* ---- a world ---- */

struct world {
	json_t *plan, *qp, *counters, *remembered, *device, *reply, *netem;
	json_t *asked;    /* every request */
	json_t *commands; /* every lab command */
	unsigned wc, posts, released, resumed, exchanged, renewed, restarted;
	uint64_t timer_ns;
	const char *status;
	int rc;
	struct fault_env env;
};

static int w_request(void *ctl, const char *agent, json_t *req, json_t **ret_reply, struct error *e)
{
	struct world *w = ctl;

	(void)agent;
	json_array_append_new(w->asked, req);
	if (w->rc < 0)
		return error_set(e, w->rc, "refused");
	if (ret_reply)
		*ret_reply = json_incref(w->reply);
	return 0;
}

static int w_lab(void *ctl, const char *tool, const char *args, json_t **ret_out, struct error *e)
{
	struct world *w = ctl;

	(void)e;
	json_array_append_new(w->commands, json_sprintf("%s %s", tool, args));
	if (ret_out)
		*ret_out = json_incref(w->netem);
	return 0;
}

static const json_t *w_device(void *ctl, const char *agent)
{
	(void)agent;
	return ((struct world *)ctl)->device;
}

static const json_t *w_plan(void *ctl)
{
	return ((struct world *)ctl)->plan;
}

static const char *w_peer(void *ctl, const char *qp)
{
	(void)ctl;
	return strcmp(qp, "p.a") == 0 ? "p.b" : "p.a";
}

static const json_t *w_qp(void *ctl, const char *qp)
{
	return json_object_get(((struct world *)ctl)->qp, qp);
}

static const json_t *w_remembered(void *ctl, const char *name)
{
	return json_object_get(((struct world *)ctl)->remembered, name);
}

static json_t *w_counters(void *ctl, const char *agent)
{
	(void)agent;
	return json_deep_copy(((struct world *)ctl)->counters);
}

static int w_release(void *ctl, const char *qp, struct error *e)
{
	(void)qp;
	(void)e;
	((struct world *)ctl)->released++;
	return 0;
}

static int w_resume(void *ctl, const char *qp, struct error *e)
{
	(void)qp;
	(void)e;
	((struct world *)ctl)->resumed++;
	return 0;
}

static int w_exchange(void *ctl, const char *pair, struct error *e)
{
	(void)e;
	CU_ASSERT_STRING_EQUAL(pair, "p");
	((struct world *)ctl)->exchanged++;
	return 0;
}

static int w_timer(void *ctl, struct fault *f, uint64_t after_ns)
{
	(void)f;
	((struct world *)ctl)->timer_ns = after_ns;
	return 0;
}

static unsigned w_wc_count(void *ctl, const char *queue, const char *status)
{
	(void)queue;
	(void)status;
	return ((struct world *)ctl)->wc;
}

static unsigned w_posts_since(void *ctl, const struct fault *f, const char *qp)
{
	(void)f;
	(void)qp;
	return ((struct world *)ctl)->posts;
}

static int w_signal(void *ctl, const char *agent, int sig, char *ret_status, size_t size, struct error *e)
{
	struct world *w = ctl;

	(void)agent;
	(void)sig;
	if (!w->status)
		return error_set(e, -ESRCH, "gone");
	if (ret_status)
		snprintf(ret_status, size, "%s", w->status);
	return 0;
}

static int w_restart(void *ctl, const char *agent, struct error *e)
{
	(void)agent;
	(void)e;
	((struct world *)ctl)->restarted++;
	return 0;
}

static int w_wire(void *ctl, json_t *req, json_t **ret_reply, struct error *e)
{
	return w_request(ctl, "wire", req, ret_reply, e);
}

static int w_mr_renew(void *ctl, const char *mr, const json_t *access, struct error *e)
{
	struct world *w = ctl;

	(void)e;
	w->renewed++;
	json_array_append_new(w->asked, json_pack("{s:s,s:s,s:O?}", "op", "renew", "mr", mr, "access", access));
	return 0;
}

static void world_init(struct world *w)
{
	*w = (struct world){
		.plan = json_pack(
			"{s:[{s:s,s:s,s:s,s:s,s:s,s:s,s:{s:[s,s]}},{s:s,s:s,s:s,s:s,s:s,s:s,s:{s:[s,s]}}],s:[{s:s,s:s,s:[s,s]}]}",
			"qps", "name", "p.a", "pair", "p", "agent", "a", "peer", "p.b", "send_cq", "ac", "recv_cq", "ac", "attr",
			"access", "REMOTE_WRITE", "REMOTE_READ", "name", "p.b", "pair", "p", "agent", "b", "peer", "p.a", "send_cq",
			"bs", "recv_cq", "br", "attr", "access", "REMOTE_WRITE", "REMOTE_READ", "mrs", "name", "p.b.mem", "agent",
			"b", "access", "LOCAL_WRITE", "REMOTE_WRITE"),
		.qp = json_pack("{s:{s:s},s:{s:s}}", "p.a", "state", "RTS", "p.b", "state", "RTS"),
		.counters = json_pack("{s:i,s:i}", "send_rnr_err", 5, "rcvd_rnr_err", 5),
		.remembered = json_object(),
		.device = json_pack("{s:s,s:s}", "netdev", "v0", "gid", "::a"),
		.reply = json_object(),
		.netem = json_array(),
		.asked = json_array(),
		.commands = json_array(),
		.env = { .request = w_request,
			 .lab = w_lab,
			 .device = w_device,
			 .plan = w_plan,
			 .peer = w_peer,
			 .qp = w_qp,
			 .remembered = w_remembered,
			 .counters = w_counters,
			 .release_receives = w_release,
			 .resume_connect = w_resume,
			 .exchange = w_exchange,
			 .timer = w_timer,
			 .wc_count = w_wc_count,
			 .posts_since = w_posts_since,
			 .signal = w_signal,
			 .restart = w_restart,
			 .wire = w_wire,
			 .mr_renew = w_mr_renew },
	};
	w->env.ctl = w;
}

static void world_free(struct world *w)
{
	json_t *all[] = { w->plan, w->qp, w->counters, w->remembered, w->device, w->reply, w->netem, w->asked, w->commands };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		json_decref(all[i]);
}

/* args is stolen. */
static struct fault fault_of(struct world *w, const char *name, json_t *args)
{
	const struct fault_ops *ops = fault_find(name);

	if (!ops || !args)
		abort();
	return (struct fault){ .ops = ops, .env = &w->env, .as = "x", .args = args, .state = json_object(), .active = true };
}

static void fault_done(struct fault *f)
{
	json_decref((json_t *)f->args);
	json_decref(f->state);
}

static int prove(struct fault *f)
{
	json_t *evidence = NULL;
	struct error e = { "" };
	int rc = f->ops->prove(f, &evidence, &e);

	CU_ASSERT(rc < 0 || json_object_size(evidence) > 0);
	json_decref(evidence);
	return rc;
}

static json_t *parse(const char *text)
{
	char buf[256];
	json_t *v;

	snprintf(buf, sizeof buf, "%s", text);
	for (char *c = buf; *c; c++)
		if (*c == '\'')
			*c = '"';
	v = json_loads(buf, 0, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(v);
	return v;
}

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

/* ---- hooks ---- */

static void missing_receive_needs_a_refused_send(void)
{
	struct world w;
	struct fault f;

	world_init(&w);
	f = fault_of(&w, "missing_receive", parse("{'at':['p.b']}"));
	CU_ASSERT_EQUAL(f.ops->inject(&f, NULL), 0);
	CU_ASSERT_TRUE(f.ops->holds_receives(&f, "p.b"));
	CU_ASSERT_FALSE(f.ops->holds_receives(&f, "p.a"));
	CU_ASSERT_EQUAL(prove(&f), 0);
	json_object_set_new(w.counters, "send_rnr_err", json_integer(6));
	CU_ASSERT_EQUAL(prove(&f), 1);
	json_object_set_new(w.counters, "send_rnr_err", json_integer(5));
	/* A device without such counters: the status is evidence enough. */
	w.wc = 1;
	CU_ASSERT_EQUAL(prove(&f), 1);
	CU_ASSERT_EQUAL(f.ops->clear(&f, NULL), 0);
	CU_ASSERT_EQUAL(w.released, 1);
	fault_done(&f);
	world_free(&w);
}

static void late_receive_waits_from_the_first_post(void)
{
	struct world w;
	struct fault f;

	world_init(&w);
	f = fault_of(&w, "late_receive", parse("{'at':'p.b','by':5000000}"));
	CU_ASSERT_EQUAL(f.ops->inject(&f, NULL), 0);
	CU_ASSERT_TRUE(f.ops->holds_receives(&f, "p.b"));
	f.ops->on_post(&f, "p.b");
	CU_ASSERT_EQUAL(w.timer_ns, 0);
	f.ops->on_post(&f, "p.a");
	CU_ASSERT_EQUAL(w.timer_ns, 5000000);
	CU_ASSERT_EQUAL(prove(&f), 0);
	w.posts = 1;
	f.ops->on_timer(&f);
	CU_ASSERT_EQUAL(w.released, 1);
	CU_ASSERT_FALSE(f.ops->holds_receives(&f, "p.b"));
	CU_ASSERT_EQUAL(prove(&f), 1);
	CU_ASSERT_EQUAL(f.ops->clear(&f, NULL), 0);
	CU_ASSERT_EQUAL(w.released, 1);
	fault_done(&f);
	/* Nothing was waiting: it made no difference. */
	w.posts = 0;
	f = fault_of(&w, "late_receive", parse("{'at':'p.b','by':5000000}"));
	f.ops->inject(&f, NULL);
	f.ops->on_timer(&f);
	CU_ASSERT_EQUAL(prove(&f), 0);
	fault_done(&f);
	world_free(&w);
}

static void peer_held_holds_one_end_and_shows_it(void)
{
	struct world w;
	struct fault f;

	world_init(&w);
	f = fault_of(&w, "peer_held", parse("{'at':'p.b','in':'INIT'}"));
	CU_ASSERT_STRING_EQUAL(f.ops->holds_state(&f, "p.b"), "INIT");
	CU_ASSERT_PTR_NULL(f.ops->holds_state(&f, "p.a"));
	json_object_set_new(w.reply, "queried", json_pack("{s:s}", "state", "RTS"));
	CU_ASSERT_EQUAL(prove(&f), 0);
	json_object_set_new(w.reply, "queried", json_pack("{s:s}", "state", "INIT"));
	CU_ASSERT_EQUAL(prove(&f), 1);
	json_object_set_new(json_object_get(w.qp, "p.a"), "state", json_string("INIT"));
	CU_ASSERT_EQUAL(prove(&f), 0);
	CU_ASSERT_EQUAL(f.ops->clear(&f, NULL), 0);
	CU_ASSERT_EQUAL(w.resumed, 1);
	fault_done(&f);
	world_free(&w);
}

static void psn_mismatch_changes_what_the_peer_is_told(void)
{
	static const struct {
		const char *args;
		int told; /* of a PSN 0x10 */
	} rows[] = {
		{ "{'at':'p.a','ahead':3}", 0x0d },
		{ "{'at':'p.a','behind':3}", 0x13 },
		{ "{'at':'p.a','ahead':17}", 0xffffff },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct world w;
		struct fault f;
		json_t *handover = json_pack("{s:i}", "psn", 0x10);

		world_init(&w);
		f = fault_of(&w, "psn_mismatch", parse(rows[i].args));
		f.ops->on_handover(&f, "p.a", handover);
		CU_ASSERT_EQUAL(json_int(handover, "psn", -1), 0x10);
		f.ops->on_handover(&f, "p.b", handover);
		CU_ASSERT_EQUAL(json_int(handover, "psn", -1), rows[i].told);
		CU_ASSERT_EQUAL(prove(&f), 0);
		json_object_set_new(json_object_get(w.qp, "p.a"), "rts", json_pack("{s:i}", "sq_psn", 0x10));
		json_object_set_new(json_object_get(w.qp, "p.b"), "rtr", json_pack("{s:i}", "rq_psn", 0x10));
		CU_ASSERT_EQUAL(prove(&f), 0);
		json_object_set_new(json_object_get(w.qp, "p.b"), "rtr", json_pack("{s:i}", "rq_psn", rows[i].told));
		CU_ASSERT_EQUAL(prove(&f), 0); /* nothing was sent under it */
		w.posts = 1;
		CU_ASSERT_EQUAL(prove(&f), 1);
		fault_done(&f);
		json_decref(handover);
		world_free(&w);
	}
}

static void stale_peer_hands_over_the_old_values(void)
{
	struct world w;
	struct fault f;
	struct error e = { "" };
	json_t *handover = parse("{'qpn':20,'psn':7,'gid':'::b','keys':{'m':{'rkey':2}}}");

	world_init(&w);
	f = fault_of(&w, "stale_peer", parse("{'at':'p.a','use':'old','what':'qpn'}"));
	CU_ASSERT_EQUAL(f.ops->inject(&f, &e), -ENOENT);
	json_object_set_new(w.remembered, "old", parse("{'qpn':17,'psn':3,'gid':'::b','keys':{'m':{'rkey':1}}}"));
	CU_ASSERT_EQUAL(f.ops->inject(&f, &e), 0);
	f.ops->on_handover(&f, "p.b", handover);
	CU_ASSERT_EQUAL(json_int(handover, "qpn", 0), 20);
	f.ops->on_handover(&f, "p.a", handover);
	CU_ASSERT_EQUAL(json_int(handover, "qpn", 0), 17);
	CU_ASSERT_EQUAL(json_int(handover, "psn", 0), 7);
	CU_ASSERT_EQUAL(prove(&f), 0);
	json_object_set_new(json_object_get(w.qp, "p.a"), "rtr", json_pack("{s:i}", "dest_qpn", 17));
	CU_ASSERT_EQUAL(prove(&f), 0);
	w.posts = 1;
	CU_ASSERT_EQUAL(prove(&f), 1);
	f.ops->on_post(&f, "p.a");
	/* In its next life the end asks again, and is told the truth; what was shown stays shown. */
	json_object_set_new(json_object_get(w.qp, "p.a"), "life", json_integer(2));
	json_object_set_new(handover, "qpn", json_integer(21));
	f.ops->on_handover(&f, "p.a", handover);
	CU_ASSERT_EQUAL(json_int(handover, "qpn", 0), 21);
	json_object_set_new(json_object_get(w.qp, "p.a"), "rtr", json_pack("{s:i}", "dest_qpn", 21));
	CU_ASSERT_EQUAL(prove(&f), 1);
	fault_done(&f);
	/* The device gave out the same QPN again: nothing was stale. */
	json_object_set_new(handover, "qpn", json_integer(17));
	f = fault_of(&w, "stale_peer", parse("{'at':'p.a','use':'old','what':'qpn'}"));
	f.ops->on_handover(&f, "p.a", handover);
	CU_ASSERT_EQUAL(prove(&f), 0);
	fault_done(&f);
	json_decref(handover);
	world_free(&w);
}

static void wrong_gid_is_nobodys(void)
{
	struct world w;
	struct fault f;
	struct error e = { "" };
	json_t *handover = parse("{'gid':'::ffff:10.0.0.2'}");

	world_init(&w);
	json_object_set_new(w.device, "gid", json_string("::ffff:10.0.0.1"));
	f = fault_of(&w, "wrong_gid", parse("{'at':'p.a'}"));
	CU_ASSERT_EQUAL(f.ops->inject(&f, &e), 0);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(w.commands, 0)),
			       "ip neigh replace 10.0.0.129 dev v0 lladdr 02:00:00:00:00:99 nud permanent");
	f.ops->on_handover(&f, "p.b", handover);
	CU_ASSERT_STRING_EQUAL(json_str(handover, "gid"), "::ffff:10.0.0.2");
	f.ops->on_handover(&f, "p.a", handover);
	CU_ASSERT_STRING_EQUAL(json_str(handover, "gid"), "::ffff:10.0.0.129");
	json_object_set_new(json_object_get(w.qp, "p.a"), "rtr", json_object());
	CU_ASSERT_EQUAL(prove(&f), 0);
	w.posts = 1;
	CU_ASSERT_EQUAL(prove(&f), 1);
	CU_ASSERT_EQUAL(f.ops->clear(&f, &e), 0);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(w.commands, 1)), "ip neigh del 10.0.0.129 dev v0");
	fault_done(&f);
	json_decref(handover);
	world_free(&w);
}

static void access_revoked_of_a_qp_leaves_the_right_out(void)
{
	struct world w;
	struct fault f;
	json_t *set = parse("{'access':['REMOTE_WRITE','REMOTE_READ']}");

	world_init(&w);
	f = fault_of(&w, "access_revoked", parse("{'at':'p.b','of':'qp','right':'REMOTE_WRITE'}"));
	CU_ASSERT_EQUAL(f.ops->inject(&f, NULL), 0);
	CU_ASSERT_EQUAL(json_array_size(w.asked), 0);
	f.ops->on_modify(&f, "p.a", "INIT", set);
	CU_ASSERT_TRUE(json_has(set, "access", "REMOTE_WRITE"));
	f.ops->on_modify(&f, "p.b", "INIT", set);
	CU_ASSERT_FALSE(json_has(set, "access", "REMOTE_WRITE"));
	CU_ASSERT_TRUE(json_has(set, "access", "REMOTE_READ"));
	json_object_set_new(w.reply, "queried", parse("{'state':'RTS','access':['REMOTE_WRITE']}"));
	CU_ASSERT_EQUAL(prove(&f), 0);
	json_object_set_new(w.reply, "queried", parse("{'state':'RTS','access':['REMOTE_READ']}"));
	CU_ASSERT_EQUAL(prove(&f), 0); /* nobody has posted anything */
	w.posts = 1;
	CU_ASSERT_EQUAL(prove(&f), 1);
	fault_done(&f);
	json_decref(set);
	world_free(&w);
}

static void access_revoked_of_an_mr_registers_it_anew(void)
{
	struct world w;
	struct fault f;
	const json_t *asked;

	world_init(&w);
	json_object_set_new(json_object_get(w.qp, "p.b"), "exists", json_true());
	f = fault_of(&w, "access_revoked", parse("{'at':'p.b','of':'mr','right':'REMOTE_WRITE'}"));
	CU_ASSERT_EQUAL(prove(&f), 0);
	CU_ASSERT_EQUAL(f.ops->inject(&f, NULL), 0);
	CU_ASSERT_EQUAL(w.renewed, 1);
	CU_ASSERT_EQUAL(w.exchanged, 1);
	asked = json_array_get(w.asked, 0);
	CU_ASSERT_STRING_EQUAL(json_str(asked, "mr"), "p.b.mem");
	CU_ASSERT_TRUE(json_has(asked, "access", "LOCAL_WRITE"));
	CU_ASSERT_FALSE(json_has(asked, "access", "REMOTE_WRITE"));
	CU_ASSERT_EQUAL(prove(&f), 0);
	w.posts = 1;
	CU_ASSERT_EQUAL(prove(&f), 1);
	CU_ASSERT_EQUAL(f.ops->clear(&f, NULL), 0);
	CU_ASSERT_EQUAL(w.renewed, 2);
	fault_done(&f);
	world_free(&w);
}

static void states_and_destruction_are_proven_by_the_answer(void)
{
	static const struct {
		const char *name, *reply, *other;
	} rows[] = {
		{ "qp_error", "{'queried':{'state':'ERR'}}", "{'queried':{'state':'RTS'}}" },
		{ "qp_reset", "{'queried':{'state':'RESET'}}", "{'queried':{'state':'ERR'}}" },
		{ "qp_destroyed", "{'life':1}", NULL },
		{ "mr_deregistered", "{'life':1}", NULL },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct world w;
		struct fault f;
		struct error e = { "" };

		world_init(&w);
		json_decref(w.reply);
		w.reply = parse(rows[i].reply);
		f = fault_of(&w, rows[i].name, parse("{'at':'p.b'}"));
		CU_ASSERT_EQUAL(prove(&f), 0);
		w.rc = -EBUSY;
		CU_ASSERT_EQUAL(f.ops->inject(&f, &e), -EBUSY);
		CU_ASSERT_EQUAL(prove(&f), 0);
		w.rc = 0;
		CU_ASSERT_EQUAL(f.ops->inject(&f, &e), 0);
		CU_ASSERT_EQUAL(prove(&f), 1);
		fault_done(&f);
		if (rows[i].other) {
			json_decref(w.reply);
			w.reply = parse(rows[i].other);
			f = fault_of(&w, rows[i].name, parse("{'at':'p.b'}"));
			CU_ASSERT_EQUAL(f.ops->inject(&f, &e), 0);
			CU_ASSERT_EQUAL(prove(&f), 0);
			fault_done(&f);
		}
		world_free(&w);
	}
}

static void events_are_counted_over_both_cqs(void)
{
	struct world w;
	struct fault f;

	world_init(&w);
	json_object_set_new(w.reply, "unacked", json_integer(0));
	f = fault_of(&w, "events_unacknowledged", parse("{'at':'p.b'}"));
	CU_ASSERT_EQUAL(f.ops->inject(&f, NULL), 0);
	CU_ASSERT_EQUAL(json_array_size(w.asked), 2);
	CU_ASSERT_EQUAL(prove(&f), 0);
	json_object_set_new(w.reply, "unacked", json_integer(1));
	f.active = false;
	CU_ASSERT_EQUAL(f.ops->clear(&f, NULL), 0);
	CU_ASSERT_EQUAL(prove(&f), 1);
	fault_done(&f);
	/* One CQ for both queues is asked once. */
	json_array_clear(w.asked);
	f = fault_of(&w, "events_unacknowledged", parse("{'at':'p.a'}"));
	CU_ASSERT_EQUAL(f.ops->inject(&f, NULL), 0);
	CU_ASSERT_EQUAL(json_array_size(w.asked), 1);
	fault_done(&f);
	world_free(&w);
}

static void processes_are_proven_by_their_state(void)
{
	static const struct {
		const char *name, *status;
		int fired;
	} rows[] = {
		{ "agent_killed", "killed by signal 9", 1 },
		{ "agent_frozen", "stopped", 1 },
		{ "agent_frozen", "not stopped", 0 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct world w;
		struct fault f;
		struct error e = { "" };

		world_init(&w);
		f = fault_of(&w, rows[i].name, parse("{'agent':'b'}"));
		CU_ASSERT_EQUAL(f.ops->inject(&f, &e), -ESRCH);
		CU_ASSERT_EQUAL(prove(&f), 0);
		w.status = rows[i].status;
		CU_ASSERT_EQUAL(f.ops->inject(&f, &e), 0);
		CU_ASSERT_EQUAL(prove(&f), rows[i].fired);
		CU_ASSERT_EQUAL(f.ops->clear(&f, &e), 0);
		fault_done(&f);
		world_free(&w);
	}
}

static void netem_writes_its_command_and_counts(void)
{
	static const struct {
		const char *args, *command, *shown;
		int fired;
	} rows[] = {
		{ "{'at':'p.a','loss':'5%'}", "tc qdisc replace dev v0 root netem limit 100000 loss 5%",
		  "[{'kind':'netem','drops':2,'packets':9}]", 1 },
		{ "{'at':'p.a','loss':'5%'}", "tc qdisc replace dev v0 root netem limit 100000 loss 5%",
		  "[{'kind':'netem','drops':0,'packets':9}]", 0 },
		{ "{'at':'p.a','delay':20000000,'jitter':1000000}",
		  "tc qdisc replace dev v0 root netem limit 100000 delay 20000us 1000us",
		  "[{'kind':'netem','drops':0,'packets':1}]", 1 },
		{ "{'at':'p.a','delay':20000000}", "tc qdisc replace dev v0 root netem limit 100000 delay 20000us",
		  "[{'kind':'noqueue'},{'kind':'netem','drops':0,'packets':0}]", 0 },
		{ "{'at':'p.a','args':'rate 1mbit'}", "tc qdisc replace dev v0 root netem limit 100000 rate 1mbit", "[]", 0 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct world w;
		struct fault f;
		struct error e = { "" };

		world_init(&w);
		json_decref(w.netem);
		w.netem = parse(rows[i].shown);
		f = fault_of(&w, "netem", parse(rows[i].args));
		CU_ASSERT_EQUAL(f.ops->inject(&f, &e), 0);
		CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(w.commands, 0)), rows[i].command);
		f.active = false;
		CU_ASSERT_EQUAL(f.ops->clear(&f, &e), 0);
		CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(w.commands, 2)), "tc qdisc del dev v0 root");
		CU_ASSERT_EQUAL(prove(&f), rows[i].fired);
		fault_done(&f);
		world_free(&w);
	}
}

static void attributes_are_changed_at_one_end(void)
{
	struct world w;
	struct fault f;
	json_t *set = json_pack("{s:i}", "path_mtu", 1024);

	world_init(&w);
	f = fault_of(&w, "mtu_mismatch", parse("{'at':'p.b','mtu':256}"));
	f.ops->on_modify(&f, "p.a", "RTR", set);
	f.ops->on_modify(&f, "p.b", "INIT", set);
	CU_ASSERT_EQUAL(json_int(set, "path_mtu", 0), 1024);
	CU_ASSERT_EQUAL(prove(&f), 0);
	f.ops->on_modify(&f, "p.b", "RTR", set);
	CU_ASSERT_EQUAL(json_int(set, "path_mtu", 0), 256);
	json_object_set_new(w.reply, "queried", json_pack("{s:i}", "path_mtu", 1024));
	CU_ASSERT_EQUAL(prove(&f), 0);
	json_object_set_new(w.reply, "queried", json_pack("{s:i}", "path_mtu", 256));
	CU_ASSERT_EQUAL(prove(&f), 1);
	fault_done(&f);
	json_decref(set);
	world_free(&w);
}

static const CU_TestInfo tests[] = {
	{ "the table is sorted and found", the_table_is_sorted_and_found },
	{ "every name of the design is there", every_name_of_the_design_is_there },
	{ "every row is complete", every_row_is_complete },
	{ "detection follows the arguments", detection_follows_the_arguments },
	{ "checks refuse what the table cannot", checks_refuse_what_the_table_cannot },
	{ "a rule of the wire is proven by its report", a_rule_of_the_wire_is_proven_by_its_report },
	{ "the wire has the parameters of all actions", the_wire_has_the_parameters_of_all_actions },
	{ "missing_receive needs a refused send", missing_receive_needs_a_refused_send },
	{ "late_receive waits from the first post", late_receive_waits_from_the_first_post },
	{ "peer_held holds one end and shows it", peer_held_holds_one_end_and_shows_it },
	{ "psn_mismatch changes what the peer is told", psn_mismatch_changes_what_the_peer_is_told },
	{ "wrong_gid is nobody's", wrong_gid_is_nobodys },
	{ "stale_peer hands over the old values", stale_peer_hands_over_the_old_values },
	{ "access_revoked of a QP leaves the right out", access_revoked_of_a_qp_leaves_the_right_out },
	{ "access_revoked of an MR registers it anew", access_revoked_of_an_mr_registers_it_anew },
	{ "states and destruction are proven by the answer", states_and_destruction_are_proven_by_the_answer },
	{ "events are counted over both CQs", events_are_counted_over_both_cqs },
	{ "processes are proven by their state", processes_are_proven_by_their_state },
	{ "netem writes its command and counts", netem_writes_its_command_and_counts },
	{ "attributes are changed at one end", attributes_are_changed_at_one_end },
};

int main(void)
{
	CU_pSuite suite;
	unsigned failed;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 2;
	suite = CU_add_suite("faults", NULL, NULL);
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
		CU_add_test(suite, tests[i].pName, tests[i].pTestFunc);
	CU_basic_set_mode(CU_BRM_NORMAL);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failed ? 1 : 0;
}
