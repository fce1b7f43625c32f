/* SPDX-License-Identifier: MIT */
/*
 * Golden tests, run from the top of the tree: each good/NAME.yaml loads into what good/NAME.json holds; each
 * mistakes/NAME.yaml is refused with exactly the text of mistakes/NAME.txt. With QPDRILL_GOLDEN=write the files are written anew
 * (and looked at before they are committed).
 */
#include "scenario.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json.h"
#include "scenario_grammar.h"
#include "scenario_loader.h"
#include "scenario_rig.h"
#include "test.h"

#define FOLDER "harness/testdata/scenario"

static bool writes_golden(void)
{
	const char *v = getenv("QPDRILL_GOLDEN");

	return v && !strcmp(v, "write");
}

static char *with_suffix(const char *path, const char *suffix)
{
	char *out;

	return asprintf(&out, "%.*s%s", (int)(strlen(path) - strlen(".yaml")), path, suffix) < 0 ? NULL : out;
}

static void check_mistake(const struct scenario_path *p)
{
	struct scenario s;
	struct diag d = { 0 };
	char *source = read_text(p->path), *golden_path = with_suffix(p->path, ".txt"), *golden, *name = NULL;
	struct stat st;

	MUST(source && golden_path && !stat(p->path, &st) && asprintf(&name, "%s.yaml", p->id) > 0);
	int rc = scenario_load_text(source, (size_t)st.st_size, name, p->id, &s, &d);

	ROW_ASSERT(rc == -EINVAL, "%s was loaded", p->id);
	ROW_ASSERT(d.errors > 0, "%s has no mistakes", p->id);
	if (!rc)
		scenario_release(&s);
	if (writes_golden()) {
		FILE *f = fopen(golden_path, "w");

		MUST(f != NULL);
		fputs(d.text, f);
		fclose(f);
	}
	golden = read_text(golden_path);
	ROW_ASSERT(golden && d.text && !strcmp(golden, d.text), "%s gave\n%s", p->id, d.text);
	free(golden);
	free(name);
	free(source);
	free(golden_path);
	diag_release(&d);
}

static void mistakes_are_refused(void)
{
	struct scenario_path *paths;
	size_t n;
	struct error e = { "" };

	MUST(scenario_find(FOLDER "/mistakes", &paths, &n, &e) == 0);
	CU_ASSERT(n >= 40);
	for (size_t i = 0; i < n; i++)
		check_mistake(&paths[i]);
	scenario_paths_free(paths, n);
}

static json_t *as_json(const struct scenario *s)
{
	json_t *cases = json_array();

	for (size_t i = 0; i < s->n_cases; i++)
		json_array_append_new(cases, json_pack("{s:s,s:O?,s:O}", "id", s->cases[i].id, "sweep", s->cases[i].sweep, "doc",
						       s->cases[i].doc));
	return cases;
}

static void check_good(const struct scenario_path *p)
{
	struct scenario s;
	struct diag d = { 0 };
	struct error e = { "" };
	char *golden_path = with_suffix(p->path, ".json");
	json_t *golden = NULL, *got;
	int rc = scenario_load(p->path, p->id, &s, &d, &e);

	ROW_ASSERT(!rc && !d.errors, "%s: %s\n%s", p->id, e.text, d.text ? d.text : "");
	diag_release(&d);
	if (!rc) {
		got = as_json(&s);
		if (writes_golden())
			json_save(golden_path, got, &e);
		ROW_ASSERT(!json_load(golden_path, &golden, &e), "%s", e.text);
		ROW_ASSERT(json_equal(golden, got), "%s differs from %s", p->id, golden_path);
		json_decref(golden);
		json_decref(got);
		scenario_release(&s);
	}
	free(golden_path);
}

static void good_files_load(void)
{
	struct scenario_path *paths;
	size_t n;
	struct error e = { "" };

	MUST(scenario_find(FOLDER "/good", &paths, &n, &e) == 0);
	CU_ASSERT(n >= 3);
	for (size_t i = 0; i < n; i++)
		check_good(&paths[i]);
	scenario_paths_free(paths, n);
}

#define PACKETS(value, more) "sweep: { k: " value " }\n" more
#define STEPS "steps:\n  - fault: { wire: { match: \"${k}\", action: drop }, as: f }\n  - connect:\n"

/* Body of a file that is otherwise right; what it says of line and column. */
static const struct {
	const char *body, *place;
} places[] = {
	{ "steps: [ { connect: }, { wait: 20 } ]\n", "f:3:32: error: a duration is wanted for `wait`: `20` has no unit" },
	{ "steps:\n  - post: { at: a, op: SEND, count: -1 }\n", "f:4:37: error: `count` may not be negative" },
	{ "steps:\n  - post: { at: a, op: SEND, count: 99999999999999999999 }\n",
	  "f:4:37: error: 99999999999999999999 does not fit into 64 bits" },
	{ "steps:\n  - post: { at: a, op: SEND, size: 99GiB }\n", "f:4:36: error: 99GiB is out of range for `size`" },
	{ "steps:\n  - post: { at: a@1, op: SEND }\n", "f:4:18: error: `a@1`: an earlier life cannot act any more" },
	{ "steps:\n  - expect: { at: a@x, qp: RTS }\n", "f:4:20: error: `a@x`: a life is `@1`, `@2`..." },
	{ "steps:\n  - post: { at: a.send, op: SEND }\n", "f:4:19: error: `a.send`: an end is wanted here, not one of its queues" },
	{ "steps:\n  - post: { at: [a, a], op: SEND }\n", "f:4:21: error: `a` is there twice" },
	{ "steps:\n  - post: { at: {}, op: SEND }\n", "f:4:17: error: an end or a list of them is wanted, found a map" },
	{ "steps:\n  - connect: { from: a }\n", "f:4:16: error: `from` is of rdma_cm: verbs know no such thing" },
	{ "steps:\n  - expect: { at: a, wc: [] }\n", "f:4:26: error: an empty pattern" },
	{ "steps:\n  - expect: { at: a, wc: SUCCESS x 0 }\n", "f:4:36: error: `x 0` stands for nothing: leave the item out" },
	{ "steps:\n  - expect: { at: a, wc: SUCCESS | }\n", "f:4:35: error: a WC status is wanted here" },
	{ "steps:\n  - wait: ${x\n", "f:4:11: error: `${` without its end" },
	{ "sweep: { x: 1 }\nsteps:\n  - wait: 1s\n", "f:3:13: error: a swept name in a map has a list of values" },
	{ "sweep: { x: [\"${x}\"] }\nsteps:\n  - wait: \"${x}\"\n", "f:3:15: error: `${}` cannot stand in the sweep itself" },
	{ "sweep: [ { x: a/b }, { x: a b } ]\nsteps:\n  - post: { at: a, op: SEND, as: \"${x}\" }\n",
	  "f:3:1: error: two cases of this sweep have the same id `f~x=a_b`" },
	{ "sweep: { x: [1, 1] }\nsteps:\n  - wait: \"${x}ms\"\n",
	  "f:3:1: error: two cases of this sweep have the same id `f~x=1`" },
	/* A sweep over packets. */
	{ PACKETS("{ packets: {} }", "") STEPS, "f:3:10: error: `k` is swept over packets: the file has to require the wire" },
	{ PACKETS("{ packets: {} }", "requires: [wire]\n") "steps:\n  - connect:\n  - expect: { packets: \"${k}\", count: 1 }\n",
	  "f:3:10: error: `k` is swept over packets and is the `match` of no fault" },
	{ PACKETS("{ packets: {} }", "requires: [wire]\n") "steps:\n  - connect:\n", "f:3:10: error: `k` is swept but never used" },
	{ PACKETS("{ packets: {} }", "requires: [wire]\n") STEPS "  - wait: \"${k}\"\n", "f:3:13: error: a duration is wanted" },
	{ PACKETS("{ packets: {} }", "requires: [wire]\n") STEPS "  - wait: \"${k}ms\"\n",
	  "f:8:12: error: `${k}` is no single value: it cannot be a part of a text" },
	{ PACKETS("{ packets: {}, x: 1 }", "requires: [wire]\n") STEPS,
	  "f:3:28: error: unknown key `x`: what is swept over packets has `packets:` alone" },
	{ PACKETS("{}", "requires: [wire]\n") STEPS, "f:3:13: error: a swept name has a list of values, or `packets:`" },
	{ PACKETS("{ packets: [a] }", "requires: [wire]\n") STEPS,
	  "f:3:24: error: `packets` of a sweep is a map of keys, found a list" },
	{ PACKETS("{ packets: { clas: ack } }", "requires: [wire]\n") STEPS,
	  "f:3:26: error: unknown key `clas` in `packets` of a sweep" },
	{ PACKETS("{ packets: { from: c } }", "requires: [wire]\n") STEPS, "f:3:32: error: " },
	{ PACKETS("{ packets: { nth: 2 } }", "requires: [wire]\n") STEPS,
	  "f:3:26: error: packets are swept by direction, class and PSN: `nth` has no meaning here" },
	{ PACKETS("{ packets: {} }, j: { packets: {} }", "requires: [wire]\n") STEPS,
	  "f:3:30: error: `k` and `j` are both swept over packets: one name can be" },
	{ "sweep: [ { k: { packets: {} } } ]\nrequires: [wire]\n" STEPS,
	  "f:3:12: error: a sweep over packets stands in a map of lists, not in a row" },
	{ "agents: { x: { device: a }, b: }\nsteps:\n  - connect:\n",
	  "f:3:1: error: the default pair is of agents `a` and `b`: the file has to say its `pairs`" },
	{ "agents: { a: , x: }\npairs: { p: { ends: [a, x] } }\nsteps:\n  - connect:\n",
	  "f:3:16: error: on which device is agent `x`? only `a` and `b` have a default" },
	{ "agents: { timeout: { device: a }, b: }\npairs: { p: { ends: [timeout, b] } }\nsteps:\n  - connect:\n",
	  "f:3:11: error: `timeout` is an attribute of QPs: under `qp:` it could mean either" },
	{ "pairs: { p: { ends: [a, a] } }\nsteps:\n  - connect:\n", "f:3:25: error: `a` is there twice" },
	{ "pairs: { srq: { ends: [a, b] } }\nsteps:\n  - connect:\n", "f:3:10: error: `srq` has a meaning of its own in ends" },
	{ "pairs: { p: { ends: [a, b], count: 5000 } }\nsteps:\n  - connect:\n",
	  "f:3:36: error: 5000 is out of range for `count`" },
	{ "cq: { x: { at: a } }\nmr: { x: { at: a } }\nsteps:\n  - connect:\n", "f:4:7: error: `x` is a cq already" },
	{ "qp: { dest_qpn: 17 }\nsteps:\n  - connect:\n", "f:3:7: error: `dest_qpn` is handed over when the ends connect" },
	{ "qp: { timeout: a.timeout }\nsteps:\n  - connect:\n",
	  "f:3:16: error: a number is wanted for `timeout`, found `a.timeout`" },
	{ "steps:\n  - modify: { at: a, set: { type: RC } }\n", "f:4:29: error: `type` is fixed when a QP is created" },
	{ "steps:\n  - modify: { at: a, set: { limit: 1 } }\n", "f:4:29: error: `limit` is an attribute of an SRQ" },
	{ "steps:\n  - repeat: { times: 0, steps: [ { connect: } ] }\n", "f:4:22: error: 0 is out of range for `times`" },
	{ "steps:\n  - repeat: { times: 1001, steps: [ { repeat: { times: 1000, steps: [ { connect: } ] } } ] }\n",
	  "f:4:22: error: more than 1000000 rounds, with those of the repeats inside" },
	{ "bystander: none\nsteps:\n  - connect: { by: cm }\n  - fault: { device_recreated: { at: b } }\n",
	  "f:6:14: error: fault `device_recreated` cannot take a device after a connect by rdma_cm: librdmacm keeps every device "
	  "open" },
	{ "steps:\n  - connect:\n  - traffic: { ops: [SEND, FETCH_AND_ADD], messages: 3 }\n",
	  "f:5:28: error: `FETCH_AND_ADD` cannot stand under `ops`" },
	{ "steps:\n  - recover: { path: reset, check: { ops: [SEND_WITH_IMM] } }\n",
	  "f:4:44: error: `SEND_WITH_IMM` cannot stand under `ops`" },
	{ "steps:\n  - recover: { path: reset, replace: [p.b.mem, p.b.rcq] }\n",
	  "f:4:29: error: `reset` keeps the QPs, and cannot replace the CQ `p.b.rcq` that they use" },
	{ "cq: { x: { at: a, used_by: [a.send] } }\nsteps:\n  - recover: { path: reset, replace: x }\n",
	  "f:5:29: error: `reset` keeps the QPs, and cannot replace the CQ `x` that they use" },
	{ "steps:\n  - recover: { path: restart, ends: b, replace: p.a.scq, result: fails }\n",
	  "f:4:40: error: `p.a.scq` belongs to no end that acts here: what uses it keeps it" },
	{ "cq: { pool: { at: b, used_by: [b] } }\nsteps:\n  - recover: { path: reset, ends: [a], replace: [p.a.mem, pool] }\n",
	  "f:5:40: error: `pool` belongs to no end that acts here" },
	{ "steps:\n  - recover: { path: reset, ends: [a], replace: [p.z.mem] }\n", "f:4:52: error: `p.z`: there is no such agent" },
	{ "steps:\n  - recover: { path: reset, result: fails, if_needed: true }\n",
	  "f:4:44: error: a recovery that is left out does not fail" },
	{ "steps:\n  - recover: { path: recreate, qp: { type: UC } }\n",
	  "f:4:38: error: a recovery makes QPs of the type that they had" },
	{ "steps:\n  - recover: { path: reset, qp: { b: { sq_psn: 7 } } }\n", "f:4:40: error: a new life has PSNs of its own" },
	{ "steps:\n  - recover: { path: sqd, replace: [p.b.mem] }\n",
	  "f:4:27: error: `sqd` keeps the connection, and renews nothing" },
	{ "steps:\n  - recover: { path: sqd, qp: { timeout: 15, a: { path_mtu: 512 } } }\n",
	  "f:4:51: error: a drained send queue takes no `path_mtu`" },
	{ "steps:\n  - repeat: { times: 3, passes: \">= 5\", steps: [ { connect: } ] }\n",
	  "f:4:34: error: `passes` never holds: there are 3 rounds" },
	{ "steps:\n  - repeat: { times: 9, resources: flat, steps: [ { connect: } ] }\n",
	  "f:4:36: error: `resources: flat` wants at least 10 rounds" },
	{ "pairs: { p: { ends: [a, b], count: 1024 }, q: { ends: [a, b], count: 1024 }, r: { ends: [a, b], count: 1024 }, s: { "
	  "ends: [a, b], "
	  "count: 1024 }, t: { ends: [a, b] } }\nsteps:\n  - connect: { pair: \"*\" }\n",
	  "f:3:1: error: 4097 pairs of QPs; at most 4096" },
	{ "steps:\n  - together: [ { connect: } ]\n", "f:4:5: error: `together` is a list of at least two steps" },
	{ "steps:\n  - together: [ { wait: 1s }, { connect: } ]\n", "f:4:19: error: `wait` cannot stand in `together`" },
	{ "steps:\n  - repeat: { times: 3, passes: \"<= 3 x before\", steps: [ { connect: } ] }\n",
	  "f:4:37: error: nothing of `passes` is known from before a fault" },
	{ "steps:\n  - fault: { netem: { at: a, loss: 5% }, as: f }\n  - expect: { fault: f, hits: \"< 0\" }\n",
	  "f:5:32: error: `hits` is never below 0" },
	{ "steps:\n  - recover: { path: reset, as: back }\n  - expect: { of: back, wc: SUCCESS }\n",
	  "f:5:25: error: `back` is a `recover`: it has no `wc` of its own" },
	{ "steps:\n  - recover: { path: reset }\n  - expect: { phase: { symptom: \"<= 1s\" } }\n",
	  "f:5:15: error: `phase` of which recovery?" },
	{ "steps:\n  - recover: { path: reset, ends: [a, p.a] }\n", "f:4:39: error: `p.a` is there twice: it is `a`" },
	{ "steps:\n  - expect: { at: [b.recv, b, b.recv], event: none }\n", "f:4:31: error: `b.recv` is there twice" },
	{ "qp: { b: { type: UC } }\nsteps:\n  - expect: { at: [b, a], qp: SQE }\n",
	  "f:5:31: error: SQE is a state of UC and UD: the QP of `a` is RC" },
	{ "steps:\n  - recover: { path: reset, check: { messages: 1048576, size: 2GiB } }\n",
	  "f:4:63: error: 2GiB is out of range for `size`" },
	{ "steps:\n  - recover: { path: reset, returns: EINVAL }\n", "f:4:29: error: unknown key `returns` in `recover`" },
	{ "mr: { m: { at: b } }\nsteps:\n  - remember: { end: b, mr: m, as: old }\n",
	  "f:5:25: error: `mr` and `end` exclude each other" },
	{ "steps:\n  - exchange: { returns: EINVAL }\n", "f:4:17: error: unknown key `returns` in `exchange`" },
	{ "steps:\n  - allow: { at: a, event: COMM_EST, for: 1s }\n", "f:4:38: error: `allow` takes no `for`" },
	{ "steps:\n  - expect: { any: [ { at: a, wc: none }, { at: a, qp: ERR } ] }\n", "f:4:35: error: `wc: none` wants `for:`" },
	{ "steps:\n  - expect: { any: [ { at: a, qp: ERR } ] }\n", "f:4:20: error: `any` is a list of at least 2 maps" },
	{ "steps:\n  - post_recv: { at: a, as: r }\n  - expect: { of: r, wc: SUCCESS }\n",
	  "f:5:22: error: completions of receives are `recv_wc`" },
	{ "steps:\n  - expect: { packets: { class: ackk }, count: 1 }\n", "f:4:33: error: `ackk` cannot stand under `class`" },
	{ "steps:\n  - expect: { packets: { class: [ack, ackk] }, count: 1 }\n",
	  "f:4:39: error: `ackk` cannot stand under `class`" },
	{ "steps:\n  - expect: { packets: { class: [ack, ack] }, count: 1 }\n", "f:4:39: error: `ack` is there twice" },
	{ "steps:\n  - expect: { packets: { class: [] }, count: 1 }\n",
	  "f:4:33: error: a name or a list of them is wanted, found an empty list" },
	{ "steps:\n  - expect: { packets: { opcode: RC_SEND_OLNY }, count: 0 }\n",
	  "f:4:34: error: `RC_SEND_OLNY` cannot stand under `opcode`" },
	{ "steps:\n  - expect: { packets: { syndrome: NAK_FOO }, count: 0 }\n",
	  "f:4:36: error: `NAK_FOO` cannot stand under `syndrome`" },
	{ "steps:\n  - expect: { packets: { syndrome: [NAK_PSN, 256] }, count: 0 }\n",
	  "f:4:46: error: 256 is out of range for `syndrome`" },
	{ "steps:\n  - expect: { packets: { nth: 0 }, count: 1 }\n", "f:4:31: error: 0 is out of range for `nth`" },
	{ "steps:\n  - expect: { packets: { transmission: 0.. }, count: 1 }\n",
	  "f:4:40: error: 0.. is out of range for `transmission`" },
	{ "steps:\n  - fault: { wire: { match: { from: a@1 }, action: drop } }\n",
	  "f:4:37: error: `a@1`: an earlier life cannot act any more" },
	{ "steps:\n  - traffic: { ops: [SEND], messages: 8, lossy: true, as: t }\n",
	  "f:4:42: error: on RC nothing is lost while the connection lives" },
	{ "qp: { type: UC }\nsteps:\n  - traffic: { ops: [SEND], messages: 8, lossy: true }\n",
	  "f:5:42: error: `lossy` wants `as` beside it" },
	{ "qp: { type: UC }\nsteps:\n  - traffic: { ops: [SEND, WRITE], lossy: true, as: t }\n",
	  "f:5:36: error: what is lost of a WRITE leaves no gap" },
	{ "steps:\n  - recover: { path: reset, qp: { b: { max_recv_wr: 64 } } }\n",
	  "f:4:40: error: `max_recv_wr` is fixed when a QP is created, and `reset` keeps the QP" },
	{ "steps:\n  - expect: { at: a, qp: RTS, says: { imm: 1 } }\n", "f:4:31: error: `says` wants `wc` beside it" },
	{ "steps:\n  - expect: { packets: { class: ack } }\n", "f:4:15: error: `packets` wants `count` beside it" },
	{ "steps:\n  - fault: { stale_peer: { at: a, use: never } }\n", "f:4:40: error: no earlier step is named `never`" },
	{ "steps:\n  - fault: { psn_mismatch: { at: a } }\n", "f:4:14: error: fault `psn_mismatch`" },
	{ "qp: { type: UD }\nsteps:\n  - attach: { at: a, group: \"fe80::1\" }\n", "f:5:30: error: `fe80::1` is no multicast GID" },
	{ "agents: { a: { device: a }, b: { device: b }, c: { device: b } }\npairs: { p: { ends: [a, b] }, q: { ends: [a, c] } }\n"
	  "ah: { x: { at: a } }\nsteps:\n  - connect:\n",
	  "f:5:16: error: the AH `x` has to say where it leads: `a` has peers in several agents" },
	{ "srq: { pool: { at: b, used_by: [b] } }\nsteps:\n  - post_recv: { at: b }\n",
	  "f:5:22: error: `b` has no receive queue of its own" },
	{ "steps:\n  - allow: { at: b, event: QP_REQ_ERR | QP_FATAL }\n",
	  "f:4:28: error: `QP_REQ_ERR | QP_FATAL`: events have no alternatives" },
	{ "ah: { x: { at: a, group: \"ff02::1\", to: b } }\nsteps:\n  - connect:\n",
	  "f:3:37: error: `to` and `group` exclude each other" },
	{ "steps:\n  - fault: { netem: { at: a, loss: 5 } }\n",
	  "f:4:36: error: a percentage from 0% to 100% is wanted for `loss`, found `5`" },
	{ "steps:\n  - modify: { at: a, to: ERR }\n    post: { at: a, op: SEND }\n",
	  "f:5:5: error: a second key `post` in one step, beside `modify`" },
	{ "title: again\nsteps:\n  - connect:\n", "f:3:1: error: `title` is there twice; first in line 2" },
	{ "requires: wire\nsteps: connect\n", "f:4:1: error: steps are a list of at least one, found `connect`" },
};

static void places_are_exact(void)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct scenario s;
		struct diag d = { 0 };
		char *text;

		MUST(asprintf(&text, "qpdrill: 1\ntitle: t\n%s", places[i].body) > 0);
		int rc = scenario_load_text(text, strlen(text), "f", "f", &s, &d);

		ROW_ASSERT(rc == -EINVAL, "row %zu was loaded:\n%s", i, text);
		ROW_ASSERT(d.text && !strncmp(d.text, places[i].place, strlen(places[i].place)), "row %zu:\n%sgave\n%s", i, text,
			   d.text ? d.text : "nothing");
		if (!rc)
			scenario_release(&s);
		diag_release(&d);
		free(text);
	}
}

/* What looks like a mistake and is none. */
static void these_are_right(void)
{
	static const char *const bodies[] = {
		"qp: { timeout: 0, retry_cnt: 0 }\nsteps:\n  - post: { at: a, op: SEND, as: w }\n  - expect: { of: w, wc: "
		"RETRY_EXC_ERR }\n",
		"qp: { timeout: 0 }\nsteps:\n  - post: { at: a, op: SEND, as: w }\n  - modify: { at: a, set: { timeout: 9 } }\n  - "
		"expect: { of: w, wc: RETRY_EXC_ERR }\n",
		"qp: { timeout: 0 }\nsteps:\n  - post: { at: a, op: SEND, as: w }\n  - expect: { of: w, wc: RETRY_EXC_ERR | "
		"WR_FLUSH_ERR }\n",
		"qp: { b: { timeout: 0 } }\nsteps:\n  - expect: { at: a, wc: RETRY_EXC_ERR }\n",
		"steps:\n  - modify: { at: a, set: { retry_cnt: 99, path_mtu: 17 } }\n",
		"agents: { a: { device: a }, b: { device: b }, c: { device: b } }\npairs: { p: { ends: [a, b] }, q: { ends: [a, c] "
		"} }\n"
		"ah: { x: { at: a, group: \"ff02::1\" }, y: { at: b } }\nsteps:\n  - connect:\n",
		"steps:\n  - expect: { at: \"*\", qp: RTS }\n  - expect: { at: \"*.a\", qp: RTS }\n",
		"steps:\n  - post: { at: a, op: WRITE, size: a.max_inline_data + 1 }\n",
		"refs: []\ntags: x\nrequires: srq\nsteps:\n  - connect: {}\n",
		"qp: { type: UD }\nsteps:\n  - attach: { at: a, group: \"::ffff:239.1.2.3\" }\n  - detach: { at: a, group: "
		"\"FF02::1\" }\n",
		"sweep: { type: [RC, UC, UD] }\nqp: { type: \"${type}\", timeout: 14, qkey: 3 }\nsteps:\n  - connect:\n",
		"qp: { type: UD, hop_limit: 3, a: { type: RC, timeout: 3 } }\nsteps:\n  - connect:\n",
		"srq: { s: { at: b, used_by: [b] } }\nsteps:\n  - allow: { at: b, event: [SRQ_LIMIT_REACHED, CQ_ERR, GID_CHANGE] "
		"}\n",
		"steps:\n  - attach: { at: a, group: \"ff02::1\", returns: EINVAL }\n",
		"refs: ['many ''quoted'' ''words'' ''in'' ''one'' ''text'' ''of'' ''many'' ''pieces''']\nsteps:\n  - connect:\n",
		"steps:\n  - post: { at: a, op: SEND_WITH_INV, rkey: wrong }\n  - post: { at: a, op: LOCAL_INV, rkey: wrong }\n",
		"qp: { type: UC }\nsteps:\n  - expect: { at: b, recv_wc: REM_ACCESS_ERR }\n  - expect: { at: a, wc: SUCCESS | "
		"RETRY_EXC_ERR }\n",
		"steps:\n  - connect: { by: cm }\n  - expect: { at: a, cm: DISCONNECTED }\n  - recover: { path: cm }\n",
		"mr: { pool: { at: b } }\ncq: { x: { at: b, used_by: [b] } }\nsteps:\n  - recover: { path: recreate, ends: b, "
		"replace: [pool, x, b.mem, p.b.trf] }\n  - recover: { path: recreate, replace: [p.a.mem, x] }\n  - recover: { "
		"path: "
		"reset, if_needed: true, result: verified }\n",
		"requires: [wire]\nsteps:\n  - recover: { path: reset, as: back }\n  - expect: { of: back, phase: { symptom: \"<= "
		"1s\" } }\n",
		"steps:\n  - recover: { path: reset, as: back }\n  - expect: { of: back, phase: { symptom: \"<= 1s\" } }\n  - "
		"expect: { "
		"packets: { class: nak }, count: \"> 0\" }\n",
		"pairs: { p: { ends: [a, b], count: 2 }, q: { ends: [a, b] } }\nsteps:\n  - expect: { at: [\"p[0].a\", \"p[1].a\", "
		"q.a, "
		"q.b, \"p[*].a\"], qp: RTS }\n",
		"steps:\n  - traffic: { ops: [SEND], as: live }\n  - allow: { of: live, wc: RETRY_EXC_ERR }\n  - expect: { of: "
		"live, wc: [SUCCESS x 0.., RETRY_EXC_ERR, WR_FLUSH_ERR x rest] }\n",
		"steps:\n  - recover: { path: reset, ends: a, replace: [p.b.mem] }\n",
		"steps:\n  - post: { at: a, op: SEND, as: 'quoted' }\n  - expect: { of: quoted, wc: 'SUCCESS' }\n",
	};

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct scenario s = { 0 };
		struct diag d = { 0 };
		char *text;

		MUST(asprintf(&text, "qpdrill: 1\ntitle: t\n%s", bodies[i]) > 0);
		ROW_ASSERT(!scenario_load_text(text, strlen(text), "f", "f", &s, &d), "row %zu:\n%s", i, d.text ? d.text : "");
		ROW_ASSERT(!d.errors && !d.warnings, "row %zu", i);
		scenario_release(&s);
		diag_release(&d);
		free(text);
	}
}

static void hostile_input_is_bounded(void)
{
	static const struct {
		const char *head, *repeated, *tail;
		size_t times;
		const char *says;
	} rows[] = {
		{ "qpdrill: 1\ntitle: t\nsteps: ", "[", "", 100000, "nested deeper than 32 levels" },
		{ "qpdrill: 1\ntitle: t\nsteps: [", "{bogus: 1},", "]\n", 20000, "more mistakes than the 100 that are shown" },
		{ "qpdrill: 1\ntitle: t\nsteps:\n", "  - wait: 1s\n", "", 5000, "more than 4096 steps" },
		{ "qpdrill: 1\ntitle: t\nsweep: { x: [", "1,", "] }\nsteps:\n  - connect:\n", 5000, "more than 4096 cases" },
		{ "qpdrill: 1\ntitle: ", "x", "\n", 1 << 21, "at most 1048576 are read" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct scenario s;
		struct diag d = { 0 };
		char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		MUST(f != NULL);
		fputs(rows[i].head, f);
		for (size_t k = 0; k < rows[i].times; k++)
			fputs(rows[i].repeated, f);
		fputs(rows[i].tail, f);
		fclose(f);
		ROW_ASSERT(scenario_load_text(text, size, "f", "f", &s, &d) == -EINVAL, "row %zu was loaded", i);
		ROW_ASSERT(d.text && strstr(d.text, rows[i].says), "row %zu gave\n%.2000s", i, d.text ? d.text : "");
		diag_release(&d);
		free(text);
	}
}

static char *case_ids(const struct scenario *s)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	for (size_t i = 0; f && i < s->n_cases; i++)
		fprintf(f, "%s%s", i ? " " : "", s->cases[i].id);
	if (f)
		fclose(f);
	return text;
}

/* A step of the case that speaks of the packet has it as the file would: its match, in the document. */
static void packets_are_followed(void)
{
	struct scenario s, of;
	struct diag d = { 0 };
	struct error e = { "" };
	json_t *packets = json_array(), *bad = json_pack("[{s:s,s:s,s:i}]", "from", "c", "class", "ack", "psn", 0), *golden = NULL,
	       *got;
	static const char *const names[] = { "a.request.0", "a.request.3", "p.b.ack.3" };
	char *ids;

	MUST(scenario_load(FOLDER "/good/packets.yaml", "packets", &s, &d, &e) == 0);
	ids = case_ids(&s);
	CU_ASSERT_STRING_EQUAL(ids, "packets~op=SEND~packet=first-pass~size=64 packets~op=SEND~packet=first-pass~size=4KiB "
				    "packets~op=READ~packet=first-pass~size=64 packets~op=READ~packet=first-pass~size=4KiB");
	free(ids);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		json_t *packet = scenario_packet_parse(names[i]);
		char *name = scenario_packet_name(packet);

		CU_ASSERT_STRING_EQUAL(name, names[i]);
		free(name);
		json_array_append_new(packets, packet);
	}
	MUST(scenario_follow(&s, &s.cases[3], packets, &of, &e) == 0);
	ids = case_ids(&of);
	CU_ASSERT_STRING_EQUAL(ids, "packets~op=READ~packet=a.request.0~size=4KiB packets~op=READ~packet=a.request.3~size=4KiB "
				    "packets~op=READ~packet=p.b.ack.3~size=4KiB");
	free(ids);
	got = as_json(&of);
	if (writes_golden())
		json_save(FOLDER "/packets-followed.json", got, &e);
	ROW_ASSERT(!json_load(FOLDER "/packets-followed.json", &golden, &e) && json_equal(golden, got), "packets-followed.json");
	json_decref(golden);
	json_decref(got);
	scenario_release(&of);
	for (size_t i = json_array_size(packets); i <= GRAMMAR_MAX_CASES; i++)
		json_array_append(packets, json_array_get(packets, 0));
	CU_ASSERT(scenario_follow(&s, &s.cases[0], packets, &of, &e) == -E2BIG);
	CU_ASSERT(scenario_follow(&s, &s.cases[0], bad, &of, &e) == -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "packets~op=SEND~packet=first-pass~size=64: the cases that follow"));
	json_decref(bad);
	json_decref(packets);
	scenario_release(&s);
}

static void ids_come_from_paths(void)
{
	struct scenario_path *paths;
	struct error e = { "" };
	size_t n;

	MUST(scenario_find(FOLDER "/", &paths, &n, &e) == 0);
	CU_ASSERT(n > 40);
	for (size_t i = 1; i < n; i++)
		ROW_ASSERT(strcmp(paths[i - 1].path, paths[i].path) < 0, "%s is out of order", paths[i].path);
	CU_ASSERT_STRING_EQUAL(paths[0].id, "good/combinations");
	CU_ASSERT_STRING_EQUAL(paths[0].path, FOLDER "/good/combinations.yaml");
	scenario_paths_free(paths, n);

	MUST(scenario_find(FOLDER "/good/rows.yaml", &paths, &n, &e) == 0);
	CU_ASSERT_EQUAL(n, 1);
	CU_ASSERT_STRING_EQUAL(paths[0].id, "rows");
	scenario_paths_free(paths, n);

	CU_ASSERT_EQUAL(scenario_find(FOLDER "/none.yaml", &paths, &n, &e), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "none.yaml"));
}

/* The root of an id is the nearest folder named scenarios; profiles are no scenarios. */
static void ids_below_scenarios(void)
{
	char dir[] = "/tmp/qd-find-XXXXXX", path[128];
	static const char *const folders[] = { "", "/scenarios", "/scenarios/core", "/scenarios/profiles" };
	static const char *const files[] = { "/scenarios/core/x.yaml", "/scenarios/profiles/rxe.yaml",
					     "/scenarios/core/README.md" };
	struct scenario_path *paths;
	struct error e = { "" };
	size_t n;

	MUST(mkdtemp(dir) != NULL);
	for (size_t i = 1; i < 4; i++) {
		snprintf(path, sizeof(path), "%s%s", dir, folders[i]);
		mkdir(path, 0700);
	}
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s%s", dir, files[i]);
		FILE *f = fopen(path, "w");

		MUST(f != NULL);
		fclose(f);
	}
	MUST(scenario_find(dir, &paths, &n, &e) == 0);
	CU_ASSERT_EQUAL(n, 1);
	CU_ASSERT_STRING_EQUAL(paths[0].id, "scenarios/core/x");
	scenario_paths_free(paths, n);
	snprintf(path, sizeof(path), "%s%s", dir, files[0]);
	MUST(scenario_find(path, &paths, &n, &e) == 0);
	CU_ASSERT_STRING_EQUAL(paths[0].id, "core/x");
	scenario_paths_free(paths, n);
	for (size_t i = 3; i-- > 0;) {
		snprintf(path, sizeof(path), "%s%s", dir, files[i]);
		unlink(path);
	}
	for (size_t i = 4; i-- > 0;) {
		snprintf(path, sizeof(path), "%s%s", dir, folders[i]);
		rmdir(path);
	}
}

static void an_unreadable_file_is_an_error(void)
{
	struct scenario s;
	struct diag d = { 0 };
	struct error e = { "" };

	CU_ASSERT_EQUAL(scenario_load("/nonexistent/x.yaml", "x", &s, &d, &e), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "/nonexistent/x.yaml"));
	CU_ASSERT_PTR_NULL(d.text);
}

static const struct test_case cases[] = {
	{ "good files load", good_files_load },
	{ "mistakes are refused, each with its golden text", mistakes_are_refused },
	{ "places are exact", places_are_exact },
	{ "these are right", these_are_right },
	{ "hostile input is bounded", hostile_input_is_bounded },
	{ "packets are followed", packets_are_followed },
	{ "ids come from paths", ids_come_from_paths },
	{ "ids below scenarios", ids_below_scenarios },
	{ "an unreadable file is an error", an_unreadable_file_is_an_error },
};

TEST_MAIN("scenario", cases)
