/* SPDX-License-Identifier: MIT */
/*
 * What many queue pairs cost, in this kernel: scale_bench [ROUNDS [PAIRS]]. Pairs on shared CQs, two agents, one controller, as any
 * case has them: all pairs are broken at once, recovered by `reset`, and carry verified traffic; beside it the bare loop, the same
 * moves of as many queue pairs on the same devices by one process that does nothing else (bare_moves.h), once without and once with
 * their receives. Before that they carry traffic in the background, all at the same time, and are looked at twice: what each has
 * done between is its rate. Rounds go over all numbers of pairs, so that a busy machine is busy for all of them.
 *
 * Prints one line of JSON, formats.md, "Bench". PAIRS: that number alone.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../harness/bench.h"
#include "../harness/controller.h"
#include "../harness/data.h"
#include "../harness/diag.h"
#include "../harness/journal.h"
#include "../harness/json.h"
#include "../harness/lab.h"
#include "../harness/log.h"
#include "../harness/many.h"
#include "../harness/plan.h"
#include "../harness/scenario.h"
#include "../harness/units.h"
#include "bare_moves.h"

#define DEPTHS_MAX 16
#define CQ_MAX 32767
#define SIZE 64

/* How often it breaks in a round, how deep its send queues are filled, one after the other. */
static const struct size {
	unsigned pairs, cycles;
	unsigned depths[DEPTHS_MAX];
	const char *window; /* of a look at the rate */
} sizes[] = {
	{ 1, 0, { 1, 2, 4, 8, 16, 32, 64, 128 }, "300ms" },
	{ 10, 4, { 1 }, "300ms" },
	{ 100, 3, { 1 }, "500ms" },
	{ 1000, 1, { 1 }, "2s" },
};
#define NUM_SIZES (sizeof sizes / sizeof *sizes)

static struct {
	sd_event *loop;
	struct journal *journal;
	struct lab *lab;
	struct lab_lane lane;
	struct controller *controller;
	char *agent, dir[PATH_MAX];
	json_t *cost, *bare, *whole, *load; /* what was measured, each an array of rows */
	int round;
} it;

/* ---- the case ---- */

static void write_loads(FILE *f, const struct size *s)
{
	for (size_t i = 0; i < DEPTHS_MAX && s->depths[i]; i++)
		fprintf(f,
			"      - traffic: { pair: \"*\", ops: [SEND], size: %d, depth: %u, as: depth-%u }\n"
			"      - expect:  { of: depth-%u, errors: 0 }\n"
			"      - wait:    %s\n"
			"      - expect:  { of: depth-%u, errors: 0 }\n"
			"      - traffic: { stop: depth-%u }\n",
			SIZE, s->depths[i], s->depths[i], s->depths[i], s->window, s->depths[i], s->depths[i]);
}

static char *scenario_text(const struct size *s)
{
	unsigned depth = s->pairs * 64 < 4096 ? 4096 : s->pairs * 64 > CQ_MAX ? CQ_MAX : s->pairs * 64;
	const char *all = s->pairs > 1 ? "p[*]" : "p";
	size_t bytes;
	char *text = NULL;
	FILE *f = open_memstream(&text, &bytes);

	if (!f)
		return NULL;
	/* Deep queues for the one pair that fills them. */
	unsigned sends = s->pairs > 1 ? 16 : 128, receives = s->pairs > 1 ? 16 : 512;

	fprintf(f,
		"qpdrill: 1\n"
		"title: Pairs on shared CQs carry traffic, break at once, recover, and carry verified traffic\n"
		"bystander: none\n"
		"pairs:\n  p: { ends: [a, b], count: %u }\n"
		"cq:\n  all-a: { at: a, depth: %u, used_by: [\"%s.a\"] }\n  all-b: { at: b, depth: %u, used_by: [\"%s.b\"] }\n"
		"qp: { type: RC, timeout: 20, retry_cnt: 6, max_send_wr: %u, max_recv_wr: %u }\n"
		"steps:\n"
		"  - connect:\n"
		"  - allow: { at: [\"%s.a\", \"%s.b\"], recv_wc: WR_FLUSH_ERR }\n",
		s->pairs, depth, all, depth, all, sends, receives, all, all);
	fprintf(f, "  - repeat:\n      times: 1\n      steps:\n");
	write_loads(f, s);
	if (s->cycles)
		fprintf(f,
			"  - repeat:\n      times: %u\n      steps:\n"
			"      - modify:  { at: [\"%s.a\"], to: ERR }\n"
			"      - recover: { pair: \"*\", path: reset, check: { ops: [SEND, WRITE, READ], messages: 3, depth: 2, "
			"size: %d } }\n",
			s->cycles, all, SIZE);
	fclose(f);
	return text;
}

static int write_plan(const struct size *s, struct error *e)
{
	const struct plan_options po = { .seed = 1, .file = "bench" };
	char *text = scenario_text(s), path[PATH_MAX + 16];
	struct diag d = { 0 };
	struct scenario of;
	json_t *plan = NULL;

	if (!text)
		return error_set(e, -ENOMEM, "out of memory");
	int rc = scenario_load_text(text, strlen(text), "bench", "bench/pairs", &of, &d);

	if (rc < 0) {
		error_set(e, rc, "%s", d.text ? d.text : "the bench's own scenario does not load");
	} else {
		rc = plan_make(&of.cases[0], &po, &plan, e);
		snprintf(path, sizeof path, "%s/plan.json", it.dir);
		if (rc == 0)
			rc = json_save(path, plan, e);
		scenario_release(&of);
	}
	json_decref(plan);
	diag_release(&d);
	free(text);
	return rc;
}

/* ---- what its records say ---- */

struct reading {
	const struct size *size;
	int64_t step_ns, broke_ns, began_ns, rts_ns, verified_ns; /* of the newest break */
	unsigned verified;                                        /* pairs */
	json_t *looks;                                            /* QP -> its first look */
	double rate, p99_us;
	struct bench_samples p50_us;
	unsigned looked; /* ends, twice */
};

static bool is(const json_t *r, const char *key, const char *text)
{
	return strcmp(json_str(r, key) ?: "", text) == 0;
}

static void broken_and_back(const struct reading *g)
{
	double n = g->size->pairs * 1e3;

	json_array_append_new(it.cost,
			      json_pack("{s:i,s:i,s:f,s:f,s:f}", "round", it.round, "pairs", (int)g->size->pairs, "drained_us",
					(double)(g->began_ns - g->broke_ns) / n, "rts_us", (double)(g->rts_ns - g->broke_ns) / n,
					"verified_us", (double)(g->verified_ns - g->broke_ns) / n));
}

static int note_step(struct reading *g, const json_t *r, struct error *e)
{
	if (is(r, "do", "modify") && is(r, "phase", "begin")) {
		g->broke_ns = json_int(r, "t", 0);
		g->verified = 0;
	}
	if (is(r, "phase", "begin"))
		g->step_ns = json_int(r, "t", 0);
	if (!is(r, "phase", "end"))
		return 0;
	log_debug("%u pairs: %s took %lld ms", g->size->pairs, json_str(r, "do") ?: "?",
		  (long long)((json_int(r, "t", 0) - g->step_ns) / (int64_t)NSEC_PER_MSEC));
	if (!is(r, "outcome", "done") && !is(r, "outcome", "met"))
		return error_set(e, -EIO, "%u pairs: step %lld, %s: %s, %s", g->size->pairs, (long long)json_int(r, "step", 0),
				 json_str(r, "do") ?: "?", json_str(r, "outcome") ?: "?", json_str(r, "text") ?: "");
	if (!is(r, "do", "recover"))
		return 0;
	if (g->verified != g->size->pairs)
		return error_set(e, -EIO, "%u of %u pairs were verified", g->verified, g->size->pairs);
	broken_and_back(g);
	return 0;
}

static void note_recover(struct reading *g, const json_t *r)
{
	if (is(r, "phase", "begin"))
		g->began_ns = json_int(r, "t", 0);
	if (is(r, "phase", "rts"))
		g->rts_ns = json_int(r, "t", 0);
	if (is(r, "phase", "verified")) {
		g->verified_ns = json_int(r, "t", 0);
		g->verified++;
	}
}

/* Each end is looked at twice: between, it has done so much in so long. */
static int note_look(struct reading *g, const json_t *r, struct error *e)
{
	const char *qp = json_str(r, "obj") ?: "?", *as = json_str(r, "as") ?: "?";
	const json_t *first = json_object_get(g->looks, qp);
	int64_t ns = json_int(r, "t", 0) - json_int(first, "t", 0);

	if (json_int(r, "errors", 0) || json_int(r, "bad_payload", 0))
		return error_set(e, -EIO, "%u pairs: %s at %s: %s", g->size->pairs, as, qp, json_str(r, "first_error") ?: "?");
	if (!first) {
		json_object_set(g->looks, qp, (json_t *)r);
		return 0;
	}
	g->rate += ns > 0 ? (double)(json_int(r, "done", 0) - json_int(first, "done", 0)) * 1e9 / (double)ns : 0;
	bench_sample(&g->p50_us, (double)json_int(r, "p50_ns", 0) / 1e3);
	g->p99_us = (double)json_int(r, "p99_ns", 0) / 1e3 > g->p99_us ? (double)json_int(r, "p99_ns", 0) / 1e3 : g->p99_us;
	if (++g->looked < 2 * g->size->pairs)
		return 0;
	json_array_append_new(it.load, json_pack("{s:i,s:i,s:i,s:f,s:f,s:f}", "round", it.round, "pairs", (int)g->size->pairs,
						 "depth", (int)strtol(as + strcspn(as, "0123456789"), NULL, 10), "rate", g->rate,
						 "p50_us", bench_median(&g->p50_us), "p99_us", g->p99_us));
	json_object_clear(g->looks);
	g->rate = g->p99_us = 0;
	g->p50_us.n = g->looked = 0;
	return 0;
}

/* Of the many records few are asked. */
static bool matters(const char *line)
{
	return strstr(line, "\"kind\":\"recover\"") || strstr(line, "\"kind\":\"step\"") || strstr(line, "\"phase\":\"now\"") ||
	       strstr(line, "\"of\":\"recover\"") || strstr(line, "\"of\":\"traffic\"");
}

static int note_record(struct reading *g, const json_t *r, struct error *e)
{
	if (is(r, "kind", "step"))
		return note_step(g, r, e);
	if (is(r, "kind", "recover"))
		note_recover(g, r);
	else if (is(r, "kind", "traffic") && is(r, "phase", "now"))
		return note_look(g, r, e);
	return 0;
}

static int note(struct reading *g, const char *line, struct error *e)
{
	json_t *r = matters(line) ? json_loads(line, 0, NULL) : NULL;
	size_t n = many_is_record(r) ? many_count(r) : 0;
	int rc = r && !n ? note_record(g, r, e) : 0;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		json_t *one = many_record(r, i);

		rc = note_record(g, one, e);
		json_decref(one);
	}
	json_decref(r);
	return rc;
}

static int read_records(const struct size *s, struct error *e)
{
	struct reading g = { .size = s, .looks = json_object() };
	char path[PATH_MAX + 32], *line = NULL;
	size_t room = 0, cost = json_array_size(it.cost), loads = json_array_size(it.load), depths = 0;
	int rc = 0;

	snprintf(path, sizeof path, "%s/observations.jsonl", it.dir);
	FILE *f = fopen(path, "re");

	if (!f)
		rc = error_set(e, -errno, "%s: %s", path, strerror(errno));
	while (rc == 0 && getline(&line, &room, f) > 0)
		rc = note(&g, line, e);
	if (f)
		fclose(f);
	free(line);
	json_decref(g.looks);
	while (depths < DEPTHS_MAX && s->depths[depths])
		depths++;
	cost = json_array_size(it.cost) - cost;
	loads = json_array_size(it.load) - loads;
	if (rc == 0 && (cost != s->cycles || loads != depths))
		rc = error_set(e, -EIO, "%u pairs: %zu of %u breaks and %zu of %zu loads are on record", s->pairs, cost, s->cycles,
			       loads, depths);
	return rc;
}

/* ---- a round ---- */

static int measure(const struct size *s, struct error *e)
{
	double us = 0;
	int rc = write_plan(s, e);

	if (rc == 0)
		rc = controller_run_case(it.controller, it.dir, e);
	if (rc == 0)
		rc = read_records(s, e);
	for (unsigned i = 0; rc == 0 && i < 2 * s->cycles; i++) {
		bool whole = i % 2;

		rc = bare_moves(it.lane.device[0].rdma, it.lane.device[1].rdma, s->pairs, whole, &us, e);
		if (rc == 0)
			json_array_append_new(whole ? it.whole : it.bare,
					      json_pack("{s:i,s:i,s:f}", "round", it.round, "pairs", (int)s->pairs, "us", us));
	}
	return rc;
}

static int prepare(struct error *e)
{
	struct controller_options o = { .agent_path = NULL };
	int rc = data_program("qpdrill-agent", &it.agent, e);

	snprintf(it.dir, sizeof it.dir, "%s/qpdrill-bench-XXXXXX", getenv("TMPDIR") ?: "/tmp");
	if (rc == 0 && !mkdtemp(it.dir))
		rc = error_set(e, -errno, "%s: %s", it.dir, strerror(errno));
	if (rc == 0 && sd_event_default(&it.loop) < 0)
		rc = error_set(e, -ENOMEM, "no event loop");
	if (rc == 0)
		rc = journal_open(&it.journal, e);
	if (rc == 0)
		rc = lab_rxe.open(NULL, it.journal, &it.lab, e);
	if (rc == 0)
		rc = it.lab->ops->lane_up(it.lab, 0, &it.lane, e);
	o.agent_path = it.agent;
	return rc ? rc : controller_new(it.loop, it.lab, &it.lane, &o, &it.controller, e);
}

static void put_away(void)
{
	static const char *const files[] = { "plan.json", "observations.jsonl" };
	char path[PATH_MAX + 32];

	controller_free(it.controller);
	if (it.lab)
		it.lab->ops->close(it.lab);
	journal_close(it.journal);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(path, sizeof path, "%s/%s", it.dir, files[i]);
		unlink(path);
	}
	rmdir(it.dir);
	free(it.agent);
	sd_event_unref(it.loop);
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1, only = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	struct error e = { "" };

	log_init("scale_bench", getenv("QPDRILL_VERBOSE") != NULL);
	signal(SIGPIPE, SIG_IGN);
	it.cost = json_array();
	it.bare = json_array();
	it.whole = json_array();
	it.load = json_array();
	int rc = prepare(&e);

	for (; rc == 0 && it.round < rounds; it.round++)
		for (size_t i = 0; rc == 0 && i < NUM_SIZES; i++)
			rc = only && only != (long)sizes[i].pairs ? 0 : measure(&sizes[i], &e);
	put_away();
	json_t *all = json_pack("{s:o,s:o,s:o,s:o}", "cost", it.cost, "bare", it.bare, "whole", it.whole, "load", it.load);

	if (rc < 0)
		log_error("%s", e.text);
	else if (json_dumpf(all, stdout, JSON_COMPACT) == 0)
		putchar('\n');
	json_decref(all);
	return rc < 0 ? 3 : 0;
}
