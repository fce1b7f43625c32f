/* SPDX-License-Identifier: MIT */
/* The controller's helpers: PSNs, references, ends, lives, accounts. */
#include "controller_step.h"

#include <CUnit/Basic.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include "cmp.h"
#include "controller_rig.h"
#include "json.h"
#include "log.h"
#include "units.h"
#include "wrid.h"

static void every_life_starts_far_from_the_last(void)
{
	uint32_t psn = 4660;

	for (unsigned life = 1; life <= 1000; life++) {
		uint32_t last = (psn + (life * 7919u) % 100000u) & CTL_PSN_MASK;
		uint32_t next = psn_away(psn, last, case_random(42, "p.a", life));
		uint32_t ahead = (next - last) & CTL_PSN_MASK, behind = (psn - next) & CTL_PSN_MASK;

		CU_ASSERT_FATAL(next <= CTL_PSN_MASK);
		CU_ASSERT_FATAL(ahead >= CTL_PSN_GAP && behind >= CTL_PSN_GAP);
		CU_ASSERT_EQUAL(next, psn_away(psn, last, case_random(42, "p.a", life)));
		psn = next;
	}
	CU_ASSERT_NOT_EQUAL(case_random(42, "p.a", 1), case_random(42, "p.b", 1));
	CU_ASSERT_NOT_EQUAL(case_random(42, "p.a", 1), case_random(43, "p.a", 1));
	/* A window that leaves no such place still gives the farthest one. */
	CU_ASSERT_EQUAL(psn_away(0, 0xf00000, 5), 0xf80000);
}

static void references_resolve_to_what_the_device_returned(void)
{
	static const struct {
		const char *ref;
		int add, rc;
		int64_t value;
	} rows[] = {
		{ "p.a.max_send_wr", 0, 0, 63 },                                 /* returned */
		{ "p.a.max_recv_wr", 1, 0, 65 }, { "a.max_send_wr", -3, 0, 60 }, /* an agent with one QP */
		{ "ac.cqe", 16, 0, 271 },        { "bc.depth", 0, 0, 128 },      /* not made: planned */
		{ "p.b.timeout", 0, 0, 14 },     { "ac.nothing", 0, -ENOENT, 0 },
		{ "zz.cqe", 0, -ENOENT, 0 },     { "cqe", 0, -ENOENT, 0 },
	};
	struct controller c;
	struct case_run r;
	struct object *o;

	bare_run(&r, &c, plan_of("[]", 0));
	ctl_object_find(&r, "p.a")->ret = json_pack("{s:{s:i,s:i}}", "cap", "max_send_wr", 63, "max_recv_wr", 64);
	ctl_object_find(&r, "ac")->ret = json_pack("{s:i}", "cqe", 255);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *v = json_pack("{s:s,s:i}", "ref", rows[i].ref, "add", rows[i].add);
		struct error e = { "" };
		int64_t got = 0;

		CU_ASSERT_EQUAL(value_resolve(&r, v, -1, &got, &e), rows[i].rc);
		CU_ASSERT_EQUAL(got, rows[i].value);
		CU_ASSERT_EQUAL(e.text[0] != 0, rows[i].rc != 0);
		json_decref(v);
	}
	int64_t got = 0;

	CU_ASSERT_EQUAL(value_resolve(&r, NULL, 9, &got, NULL), 0);
	CU_ASSERT_EQUAL(got, 9);
	o = ctl_object_find(&r, "p.b");
	CU_ASSERT_STRING_EQUAL(o->peer, "p.a");
	bare_run_done(&r);
}

static void members_of_a_list_are_resolved(void)
{
	json_t *step = json_pack("{s:s,s:[s],s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:b,s:[{s:s,s:i},{s:s,s:{s:s,s:i},s:i},{s:s,s:s,s:i}]}",
				 "do", "post", "at", "p.a", "op", "SEND", "size", 64, "count", 3, "tag", 4096, "tx_off", 0,
				 "stride", 64, "slots", 3, "chain", 1, "members", "op", "SEND", "size", 64, "op", "WRITE", "sge",
				 "ref", "p.a.max_send_sge", "add", 1, "size", 64, "op", "WRITE", "rkey", "wrong", "size", 64);
	struct controller c;
	struct case_run r;
	struct ops ops = { .head = NULL };
	struct error e = { "" };
	const struct post *list;
	const json_t *members;
	unsigned n = 0;

	bare_run(&r, &c, plan_of("[]", 0));
	ctl_object_find(&r, "p.a")->ret = json_pack("{s:{s:i}}", "cap", "max_send_sge", 2);
	ctl_object_find(&r, "p.a")->told = json_pack("{s:{s:{s:i,s:s}}}", "keys", "p.b.mem", "rkey", 6, "addr", "0x1000");
	CU_ASSERT_EQUAL_FATAL(step_post_queue(&r, step, &ops, &e), 0);
	members = json_object_get(ops.head->req, "members");
	CU_ASSERT_EQUAL(json_int(json_array_get(members, 1), "sge", -1), 3);
	CU_ASSERT_EQUAL(json_int(json_array_get(members, 1), "rkey", -1), 6);
	CU_ASSERT_EQUAL(json_int(json_array_get(members, 2), "rkey", -1), 6 ^ 0xffffffffLL);
	CU_ASSERT_PTR_NULL(json_object_get(json_array_get(members, 0), "rkey"));
	/* Each has an account of its own; all of it is the newest. */
	list = r.posts ? r.posts->prev : NULL;
	for (const struct post *p = r.posts; p && n < 3; p = p->next, n++) {
		static const char *const want[] = { "SEND", "WRITE", "WRITE" };

		CU_ASSERT(p->index == n && p->list == list && strcmp(p->op, want[n]) == 0);
	}
	CU_ASSERT(list && !list->list);
	CU_ASSERT_EQUAL(n, 3);
	ops_free(&ops);
	json_decref(step);
	bare_run_done(&r);
}

/* As `addr:` has it; the region of 4096 bytes begins at 0x10000, and the post is for 64 bytes at 128. */
static void addresses_are_wrong_as_asked(void)
{
	static const struct {
		const char *addr;
		uint64_t raddr, roff;
		int rc;
		bool data;
	} rows[] = {
		{ NULL, 0x10000, 128, 0, true },   { "beyond", 0x10000 + 4096 - 63, 0, 0, false },
		{ "before", 0xffff, 0, 0, false }, { "zero", 0, 0, 0, false },
		{ "own", 0x30000, 0, 0, false },   { "misaligned", 0x10000, 129, 0, true },
		{ "other", 0, 0, -ENOENT, false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *step = json_pack("{s:s,s:[s],s:s,s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:s*}", "do", "post", "at", "p.a", "as",
					 "w", "op", "WRITE", "size", 64, "count", 1, "tag", 4096, "tx_off", 0, "mem_off", 128,
					 "stride", 64, "slots", 1, "addr", rows[i].addr);
		struct controller c;
		struct case_run r;
		struct ops ops = { .head = NULL };
		struct error e = { "" };
		const json_t *req;

		bare_run(&r, &c, plan_of("[]", 0));
		ctl_object_find(&r, "p.a.mem")->ret = json_pack("{s:s}", "addr", "0x30000");
		ctl_object_find(&r, "p.a.mem")->exists = ctl_object_find(&r, "p.b.mem")->exists = true;
		ctl_object_find(&r, "p.b.mem")->rkey = 6;
		ctl_object_find(&r, "p.a")->told = json_pack("{s:{s:{s:i,s:s}}}", "keys", "p.b.mem", "rkey", 6, "addr", "0x10000");
		ROW_ASSERT(step_post_queue(&r, step, &ops, &e) == rows[i].rc, "%s: %s", rows[i].addr, e.text);
		if (!rows[i].rc) {
			req = ops.head->req;
			ROW_ASSERT(json_u64(req, "raddr", 1) == rows[i].raddr && json_u64(req, "roff", 1) == rows[i].roff,
				   "%s: %#llx", rows[i].addr, (unsigned long long)json_u64(req, "raddr", 1));
			ROW_ASSERT(json_int(req, "rkey", 0) == 6 && r.posts->data == rows[i].data, "%s", rows[i].addr);
		}
		ops_free(&ops);
		json_decref(step);
		bare_run_done(&r);
	}
}

/* Before a connect nobody was told of any memory: a post that is to be refused is tried all the same. */
static void a_refused_post_needs_no_key(void)
{
	static const struct {
		const char *returns;
		int rc;
	} rows[] = { { "EINVAL", 0 }, { "0", -ENOKEY } };

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *step = json_pack("{s:s,s:[s],s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:[s]}", "do", "post", "at", "p.a", "op",
					 "WRITE", "size", 64, "count", 1, "tag", 4096, "tx_off", 0, "mem_off", 0, "stride", 64,
					 "slots", 1, "returns", rows[i].returns);
		struct controller c;
		struct case_run r;
		struct ops ops = { .head = NULL };
		struct error e = { "" };

		bare_run(&r, &c, plan_of("[]", 0));
		ctl_object_find(&r, "p.b.mem")->exists = true;
		ROW_ASSERT(step_post_queue(&r, step, &ops, &e) == rows[i].rc, "%s: %s", rows[i].returns, e.text);
		ops_free(&ops);
		json_decref(step);
		bare_run_done(&r);
	}
}

static void ends_are_found_by_pair_life_and_queue(void)
{
	static const struct {
		const char *name;
		int rc;
	} rows[] = { { "p.a", 0 }, { "p.a@1", 0 }, { "p.b.recv", 0 }, { "ac", -ENOENT }, { "p.c", -ENOENT } };
	struct controller c;
	struct case_run r;
	struct ends ends = { NULL, 0 };

	bare_run(&r, &c, plan_of("[]", 0));
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *names = json_pack("[s]", rows[i].name);

		CU_ASSERT_EQUAL(ends_of_names(&r, names, &ends, NULL), rows[i].rc);
		CU_ASSERT_EQUAL(ends.n, rows[i].rc ? 0 : 1);
		ends_free(&ends);
		json_decref(names);
	}
	CU_ASSERT_EQUAL(ends_of_pairs(&r, NULL, &ends, NULL), 0);
	CU_ASSERT_EQUAL(ends.n, 2);
	ends_free(&ends);
	bare_run_done(&r);
}

static void lives_and_keys_follow_the_replies(void)
{
	struct controller c;
	struct case_run r;
	struct object *qp, *mr;
	json_t *create = json_pack("{s:s,s:s}", "op", "qp_create", "name", "p.a"),
	       *made = json_pack("{s:i,s:i,s:i}", "rc", 0, "life", 1, "qpn", 17);
	json_t *reset = json_pack("{s:s,s:s,s:s}", "op", "qp_modify", "name", "p.a", "to", "RESET");
	json_t *is_reset = json_pack("{s:i,s:i,s:{s:s}}", "rc", 0, "life", 2, "queried", "state", "RESET");
	json_t *reg = json_pack("{s:s,s:s}", "op", "mr_create", "name", "p.a.mem"),
	       *key = json_pack("{s:i,s:i,s:i}", "rc", 0, "life", 1, "rkey", 6);
	json_t *refused = json_pack("{s:i}", "rc", -EINVAL);
	uint32_t first;

	bare_run(&r, &c, plan_of("[]", 0));
	qp = ctl_object_find(&r, "p.a");
	mr = ctl_object_find(&r, "p.a.mem");
	first = qp->sq_psn;
	CU_ASSERT_EQUAL(first, 4660);
	effect_apply(&r, "a", create, refused);
	CU_ASSERT_FALSE(qp->exists);
	effect_apply(&r, "a", create, made);
	CU_ASSERT_TRUE(qp->exists);
	CU_ASSERT_EQUAL(qp->qpn, 17);
	CU_ASSERT_EQUAL(qp->sq_psn, first);
	qp->receives_posted = true;
	effect_apply(&r, "a", reset, is_reset);
	CU_ASSERT_FALSE(qp->receives_posted);
	CU_ASSERT_EQUAL(qp->life, 2);
	CU_ASSERT(((qp->sq_psn - first) & CTL_PSN_MASK) >= CTL_PSN_GAP && ((first - qp->sq_psn) & CTL_PSN_MASK) >= CTL_PSN_GAP);
	effect_apply(&r, "a", reg, key);
	CU_ASSERT_FALSE(mr->had_old);
	json_object_set_new(key, "rkey", json_integer(7));
	effect_apply(&r, "a", reg, key);
	CU_ASSERT_TRUE(mr->had_old);
	CU_ASSERT_EQUAL(mr->old_rkey, 6);
	CU_ASSERT_EQUAL(mr->rkey, 7);
	ctl_objects_lost(&r, "a");
	CU_ASSERT_FALSE(qp->exists);
	CU_ASSERT_FALSE(mr->exists);
	json_t *all[] = { create, made, reset, is_reset, reg, key, refused };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		json_decref(all[i]);
	bare_run_done(&r);
}

static json_t *hex_id(unsigned life, uint32_t seq)
{
	return json_hex(wrid_encode((struct wrid){ .life = life, .queue = 3, .kind = WRID_SEND, .seq = seq }));
}

static void completions_are_counted_by_post(void)
{
	struct controller c;
	struct case_run r;
	struct post *p = calloc(1, sizeof *p);
	json_t *rec;

	bare_run(&r, &c, plan_of("[]", 0));
	p->qp = ctl_object_find(&r, "p.a");
	p->tag = 4096;
	posts_add(&r, p);
	rec = json_pack("{s:s,s:s,s:i,s:i,s:o,s:o}", "kind", "post", "obj", "p.a.send", "tag", 4096, "accepted", 4, "first",
			hex_id(1, 10), "last", hex_id(1, 13));
	posts_note(&r, rec);
	json_decref(rec);
	CU_ASSERT_TRUE(p->has_ids);
	CU_ASSERT_EQUAL(p->accepted, 4);
	/* A run that begins before it, one of another life, and an error. */
	rec = json_pack("{s:s,s:s,s:s,s:i,s:o,s:o}", "kind", "wc", "obj", "p.a.send", "status", "SUCCESS", "count", 5, "first",
			hex_id(1, 7), "last", hex_id(1, 11));
	posts_note(&r, rec);
	json_decref(rec);
	CU_ASSERT_EQUAL(p->succeeded, 2);
	rec = json_pack("{s:s,s:s,s:s,s:i,s:o,s:o}", "kind", "wc", "obj", "p.a.send", "status", "SUCCESS", "count", 2, "first",
			hex_id(2, 10), "last", hex_id(2, 11));
	posts_note(&r, rec);
	json_decref(rec);
	CU_ASSERT_EQUAL(p->succeeded, 2);
	rec = json_pack("{s:s,s:s,s:s,s:i,s:o,s:o}", "kind", "wc", "obj", "p.a.send", "status", "WR_FLUSH_ERR", "count", 2, "first",
			hex_id(1, 12), "last", hex_id(1, 13));
	posts_note(&r, rec);
	json_decref(rec);
	CU_ASSERT_EQUAL(p->failed, 2);
	CU_ASSERT_EQUAL(json_int(r.wc_counts, "p.a.send WR_FLUSH_ERR", 0), 2);
	bare_run_done(&r);
}

static void differences_are_what_only_one_side_has(void)
{
	json_t *a = json_pack("[{s:s},{s:s}]", "ifname", "lo", "ifname", "v0"),
	       *b = json_pack("[{s:s},{s:s}]", "ifname", "v1", "ifname", "lo");
	json_t *gone = residue_difference(a, b), *new = residue_difference(b, a), *none = residue_difference(NULL, a);

	CU_ASSERT_EQUAL_FATAL(json_array_size(gone), 1);
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(gone, 0), "ifname"), "v0");
	CU_ASSERT_EQUAL_FATAL(json_array_size(new), 1);
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(new, 0), "ifname"), "v1");
	CU_ASSERT_EQUAL(json_array_size(none), 0);
	json_decref(a);
	json_decref(b);
	json_decref(gone);
	json_decref(new);
	json_decref(none);
}

static void comparisons_hold(void)
{
	static const struct {
		const char *op;
		int64_t value;
		bool holds;
	} rows[] = {
		{ ">=", 3, true }, { ">=", 4, false }, { "<=", 3, true }, { "<=", 2, false }, { ">", 2, true },  { ">", 3, false },
		{ "<", 4, true },  { "<", 3, false },  { "==", 3, true }, { "==", 2, false }, { "~", 3, false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *cmp = json_pack("{s:s,s:I}", "op", rows[i].op, "value", (json_int_t)rows[i].value);

		CU_ASSERT_EQUAL(compare_holds(cmp, 3), rows[i].holds);
		json_decref(cmp);
	}
	json_t *range = json_pack("{s:s,s:i,s:i}", "op", "range", "min", 2, "max", 3),
	       *open = json_pack("{s:s,s:i}", "op", "range", "min", 4);

	CU_ASSERT_TRUE(compare_holds(range, 3));
	CU_ASSERT_FALSE(compare_holds(range, 4));
	CU_ASSERT_TRUE(compare_holds(open, 400));
	CU_ASSERT_FALSE(compare_holds(open, 3));
	json_decref(range);
	json_decref(open);
}

static void put(const char *base, const char *rel, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", base, rel);
	for (char *c = strchr(path + 1, '/'); c; c = strchr(c + 1, '/')) {
		*c = 0;
		mkdir(path, 0755);
		*c = '/';
	}
	f = fopen(path, "we");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fprintf(f, "%s\n", text);
	fclose(f);
}

static void a_gid_is_found_where_it_stands(void)
{
	static const char *const files[][2] = {
		{ "class/infiniband/r/ports/1/gids/0", "0000:0000:0000:0000:0000:0000:0000:0000" },
		{ "class/infiniband/r/ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0001" },
		{ "class/infiniband/r/ports/1/gids/2", "0000:0000:0000:0000:0000:ffff:0a00:0001" },
		{ "class/infiniband/r/ports/1/gid_attrs/types/1", "IB/RoCE v1" },
		{ "class/infiniband/r/ports/1/gid_attrs/types/2", "RoCE v2" },
	};
	char base[64];
	char *argv[] = { (char[]){ "rm" }, (char[]){ "-r" }, base, NULL };

	snprintf(base, sizeof base, "%s/sys", dir);
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		put(base, files[i][0], files[i][1]);
	CU_ASSERT_EQUAL(gid_find(base, "r", 1, "::ffff:10.0.0.1"), 2);
	CU_ASSERT_EQUAL(gid_find(base, "r", 1, "::ffff:10.0.0.2"), -ENOENT);
	CU_ASSERT_EQUAL(gid_find(base, "r", 2, "::ffff:10.0.0.1"), -ENOENT);
	CU_ASSERT_EQUAL(gid_find(base, "r", 1, "nonsense"), -EINVAL);
	CU_ASSERT_EQUAL(proc_run(argv, 5 * NSEC_PER_SEC, NULL, NULL), 0);
}

static void tables_are_complete(void)
{
	static const char *const steps[] = { "connect", "create",   "destroy",  "modify", "post",     "post_recv",
					     "poll",    "traffic",  "fault",    "clear",  "expect",   "allow",
					     "recover", "remember", "exchange", "repeat", "together", "wait" };
	static const char *const paths[] = { "reset", "recreate", "cm", "sq", "sqd", "reopen", "restart" };

	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		const struct step_ops *s = step_find(steps[i]);

		CU_ASSERT_PTR_NOT_NULL(s);
		if (s)
			CU_ASSERT_TRUE((s->run == NULL) == (s->queue != NULL));
	}
	CU_ASSERT_PTR_NULL(step_find("dance"));
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
		CU_ASSERT(recover_find(paths[i]) && recover_find(paths[i])->run);
	for (int i = 0; i < NUM_OUTCOMES; i++)
		CU_ASSERT_PTR_NOT_NULL(outcome_names[i]);
	for (int i = 0; i < NUM_OBJECT_TYPES; i++)
		CU_ASSERT_PTR_NOT_NULL(ctl_object_type_names[i]);
}

static unsigned looks, busy_looks;

static bool is_busy(struct case_run *r)
{
	(void)r;
	return looks++ < busy_looks;
}

static bool never(void *user)
{
	(void)user;
	return false;
}

static bool after_one_look(void *user)
{
	(void)user;
	return looks == 1;
}

static void who_is_at_work_is_waited_for(void)
{
	struct controller c;
	struct case_run r;

	bare_run(&r, &c, plan_of("[]", 0));
	CU_ASSERT_FATAL(sd_event_new(&c.loop) >= 0);
	CU_ASSERT_EQUAL_FATAL(recorder_open(&(struct recorder_options){ .path = "/dev/null" }, &r.rec, NULL), 0);
	for (busy_looks = 0; busy_looks < 3; busy_looks += 2) {
		looks = 0;
		/* One look of idleness is all that is granted: those at work do not count. */
		CU_ASSERT_EQUAL(case_wait_idle(&r, never, NULL, is_busy, 1), -ETIMEDOUT);
		CU_ASSERT_EQUAL(looks, busy_looks + 1);
	}
	looks = 0;
	busy_looks = 9;
	CU_ASSERT_EQUAL(case_wait_idle(&r, after_one_look, NULL, is_busy, 1), 0);
	CU_ASSERT_EQUAL(looks, 1);
	recorder_close(r.rec);
	sd_event_unref(c.loop);
	bare_run_done(&r);
}

static const struct test_case tests[] = {
	{ "every life starts far from the last", every_life_starts_far_from_the_last },
	{ "members of a list are resolved", members_of_a_list_are_resolved },
	{ "addresses are wrong as asked", addresses_are_wrong_as_asked },
	{ "a post that is to be refused needs no key", a_refused_post_needs_no_key },
	{ "references resolve to what the device returned", references_resolve_to_what_the_device_returned },
	{ "ends are found by pair, life and queue", ends_are_found_by_pair_life_and_queue },
	{ "lives and keys follow the replies", lives_and_keys_follow_the_replies },
	{ "completions are counted by post", completions_are_counted_by_post },
	{ "differences are what only one side has", differences_are_what_only_one_side_has },
	{ "comparisons hold", comparisons_hold },
	{ "who is at work is waited for", who_is_at_work_is_waited_for },
	{ "a GID is found where it stands", a_gid_is_found_where_it_stands },
	{ "tables are complete", tables_are_complete },
};

int main(void)
{
	return run_in_dir("controller", tests, sizeof tests / sizeof tests[0]);
}
