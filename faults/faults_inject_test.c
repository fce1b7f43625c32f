/* SPDX-License-Identifier: MIT */
/* How each fault is injected, cleared and proven, against a world made of a few values. */
#include "faults_rig.h"

#include "../harness/test.h"

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

static void stale_peer_hands_over_one_old_key(void)
{
	struct world w;
	struct fault f;
	json_t *handover = parse("{'qpn':20,'psn':7,'gid':'::b','keys':{'m':{'rkey':2},'n':{'rkey':5}}}");
	const json_t *keys;

	world_init(&w);
	json_object_set_new(w.remembered, "old", parse("{'keys':{'m':{'rkey':1}}}"));
	f = fault_of(&w, "stale_peer", parse("{'at':'p.a','use':'old'}"));
	CU_ASSERT_EQUAL(f.ops->inject(&f, NULL), 0);
	f.ops->on_handover(&f, "p.a", handover);
	keys = json_object_get(handover, "keys");
	CU_ASSERT_EQUAL(json_int(json_object_get(keys, "m"), "rkey", 0), 1);
	CU_ASSERT_EQUAL(json_int(json_object_get(keys, "n"), "rkey", 0), 5);
	CU_ASSERT_EQUAL(json_int(handover, "qpn", 0), 20);
	CU_ASSERT_EQUAL(prove(&f), 0);
	w.posts = 1;
	CU_ASSERT_EQUAL(prove(&f), 1);
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

static void mr_shrunk_registers_fewer_bytes(void)
{
	static const struct {
		const char *mr;
		int bytes, registered;
		bool proven; /* once something was posted */
	} rows[] = {
		{ "p.b.mem", 4096, 1024, true },
		{ "p.b.mem", 512, 512, false }, /* not so long to begin with */
		{ "p.b.rx", 4096, 4096, false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct world w;
		struct fault f;
		json_t *req = json_pack("{s:i}", "bytes", rows[i].bytes);

		world_init(&w);
		f = fault_of(&w, "mr_shrunk", parse("{'at':'p.b','size':1024}"));
		f.ops->on_create(&f, rows[i].mr, req);
		ROW_ASSERT(json_int(req, "bytes", 0) == rows[i].registered, "row %zu", i);
		CU_ASSERT_EQUAL(prove(&f), 0); /* nothing was posted */
		w.posts = 1;
		ROW_ASSERT(prove(&f) == rows[i].proven, "row %zu", i);
		CU_ASSERT_EQUAL(f.ops->clear(&f, NULL), 0);
		json_object_set_new(req, "bytes", json_integer(4096));
		f.ops->on_create(&f, rows[i].mr, req);
		ROW_ASSERT(json_int(req, "bytes", 0) == 4096, "row %zu", i);
		fault_done(&f);
		json_decref(req);
		world_free(&w);
	}
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
		{ "ah_destroyed", "{'send':{'in_flight':2}}", "{'send':{'in_flight':0}}" },
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
		const char *name, *args, *status;
		int fired;
		unsigned restarted;
	} rows[] = {
		{ "agent_killed", "{'agent':'b'}", "killed by signal 9", 1, 1 },
		{ "agent_restarted", "{'agent':'b'}", "killed by signal 9", 1, 1 },
		{ "agent_restarted", "{'agent':'b'}", "exit status 1", 0, 1 },
		{ "controller_killed", "{'agent':'b'}", "exit status 0", 1, 1 },
		{ "controller_killed", "{'agent':'b'}", "killed by signal 11", 0, 1 },
		{ "agent_frozen", "{'agent':'b'}", "stopped", 1, 0 },
		{ "agent_frozen", "{'agent':'b'}", "not stopped", 0, 0 },
		{ "wire_killed", "{}", "killed by signal 9", 1, 1 },
		{ "wire_killed", "{'how':'kill'}", "exit status 1", 0, 1 },
		{ "wire_killed", "{'how':'stop'}", "stopped", 1, 0 },
		{ "wire_killed", "{'how':'stop'}", "not stopped", 0, 0 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct world w;
		struct fault f;
		struct error e = { "" };

		world_init(&w);
		f = fault_of(&w, rows[i].name, parse(rows[i].args));
		CU_ASSERT_EQUAL(f.ops->inject(&f, &e), -ESRCH);
		CU_ASSERT_EQUAL(prove(&f), 0);
		w.status = rows[i].status;
		CU_ASSERT_EQUAL(f.ops->inject(&f, &e), 0);
		CU_ASSERT_EQUAL(prove(&f), rows[i].fired);
		CU_ASSERT_EQUAL(f.ops->clear(&f, &e), 0);
		CU_ASSERT_EQUAL(w.restarted, rows[i].restarted);
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

static const struct test_case tests[] = {
	{ "missing_receive needs a refused send", missing_receive_needs_a_refused_send },
	{ "late_receive waits from the first post", late_receive_waits_from_the_first_post },
	{ "peer_held holds one end and shows it", peer_held_holds_one_end_and_shows_it },
	{ "psn_mismatch changes what the peer is told", psn_mismatch_changes_what_the_peer_is_told },
	{ "wrong_gid is nobody's", wrong_gid_is_nobodys },
	{ "stale_peer hands over the old values", stale_peer_hands_over_the_old_values },
	{ "stale_peer hands over one old key", stale_peer_hands_over_one_old_key },
	{ "access_revoked of a QP leaves the right out", access_revoked_of_a_qp_leaves_the_right_out },
	{ "mr_shrunk registers fewer bytes", mr_shrunk_registers_fewer_bytes },
	{ "access_revoked of an MR registers it anew", access_revoked_of_an_mr_registers_it_anew },
	{ "states and destruction are proven by the answer", states_and_destruction_are_proven_by_the_answer },
	{ "events are counted over both CQs", events_are_counted_over_both_cqs },
	{ "processes are proven by their state", processes_are_proven_by_their_state },
	{ "netem writes its command and counts", netem_writes_its_command_and_counts },
	{ "attributes are changed at one end", attributes_are_changed_at_one_end },
};

TEST_MAIN("faults_inject", tests)
