/* SPDX-License-Identifier: MIT */
/*
 * A few ratios that say in seconds whether something became slow: short_bench REFERENCE prints them beside the reference's and ends
 * with 1 when one is worse by more than a third; short_bench --write FILE makes a reference. Processor time of one thread is
 * measured, each thing beside a fixed piece of work in the same round: other load cancels out, another processor does not: where it
 * is not the reference's, nothing is judged, and the exit status is 77. What misses is measured once more.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../agents/agent.h"
#include "../agents/hist.h"
#include "../agents/queue.h"
#include "bench.h"
#include "diag.h"
#include "json.h"
#include "log.h"
#include "packet.h"
#include "pattern.h"
#include "plan.h"
#include "scenario.h"
#include "units.h"
#include "verdict.h"

#define BLOCKS 9
#define ROUNDS 50
#define MESSAGE 65536
#define GOLDEN "harness/testdata/verdict/packets-recorded"

static struct {
	uint8_t from[MESSAGE], to[MESSAGE], frame[4400];
	size_t frame_bytes;
	struct agent agent;
	struct queue *queue;
	struct hist hist;
	json_t *plan, *records;
} it;
static volatile uint64_t sink;

/* ---- what others are measured by ---- */

static void copy(void)
{
	for (int i = 0; i < 16; i++) {
		memcpy(it.to, it.from, MESSAGE);
		__asm__ volatile("" ::: "memory");
	}
}

/* Arithmetic, branches and small allocations, as programs have them. */
static void work(void)
{
	uint64_t x = sink | 1;

	for (int i = 0; i < 4000; i++) {
		char *p = malloc(16 + x % 200);

		for (int k = 0; k < 8; k++)
			x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ULL + (uintptr_t)k;
		if (p)
			p[0] = (char)x;
		sink += x & 1 ? x : ~x;
		free(p);
	}
}

/* ---- what is measured ---- */

static void fill(void)
{
	for (uint64_t i = 0; i < 16; i++)
		pattern_fill((struct pattern){ .seed = 1, .tag = 4096, .index = i }, it.to, MESSAGE);
}

static void check(void)
{
	for (int i = 0; i < 16; i++)
		sink += pattern_check((struct pattern){ .seed = 1, .tag = 4096, .index = 15 }, it.to, MESSAGE);
}

/* What a traffic keeps of each message, in batches of 32. */
static void account(void)
{
	static const struct ibv_wc wc = { .status = IBV_WC_SUCCESS, .opcode = IBV_WC_SEND };

	for (int batch = 0; batch < 100; batch++) {
		uint32_t first = it.queue->next;

		queue_accept(it.queue, 32, &(struct wr){ .kind = WRID_TRAFFIC, .signaled = true });
		for (uint32_t i = 0; i < 32; i++) {
			struct wrid id = { .life = 1, .queue = it.queue->number, .kind = WRID_TRAFFIC, .seq = first + i };
			struct wr wr;
			enum queue_taken taken = queue_complete(it.queue, id, &wr);

			run_add(&it.agent, it.queue, id, &wc, "cq", 1000 + i, 1, taken);
			hist_add(&it.hist, 1000 + i);
		}
		it.queue->run.count = 0;
	}
}

static void decode(void)
{
	for (int i = 0; i < 2000; i++) {
		struct packet p;

		sink += packet_decode(it.frame, it.frame_bytes, &p);
	}
}

static void plan(void)
{
	static const char text[] =
		"qpdrill: 1\ntitle: Something of everything\nsteps:\n  - connect:\n"
		"  - fault: { wire: { match: { from: a, class: request, nth: 2 }, action: drop, times: 1 }, as: hole }\n"
		"  - post: { at: a, op: SEND, size: 4KiB, count: 4, as: x }\n"
		"  - expect: { of: x, wc: SUCCESS, payload: intact }\n"
		"  - traffic: { ops: [SEND, WRITE, READ], messages: 32 }\n";
	const struct plan_options po = { .seed = 1, .file = "bench" };
	struct diag d = { 0 };
	struct scenario s;
	struct error e;
	json_t *made = NULL;

	if (scenario_load_text(text, strlen(text), "bench", "bench/short", &s, &d) < 0 ||
	    plan_make(&s.cases[0], &po, &made, &e) < 0) {
		fprintf(stderr, "short_bench: its own scenario has no plan: %s\n", d.text ? d.text : e.text);
		exit(3);
	}
	json_decref(made);
	scenario_release(&s);
	diag_release(&d);
}

static void judge(void)
{
	const struct verdict_options o = { .strict = false };
	json_t *verdict = NULL;
	struct error e;

	if (verdict_judge(it.plan, it.records, false, NULL, &o, &verdict, &e) < 0) {
		fprintf(stderr, "short_bench: %s: %s\n", GOLDEN, e.text);
		exit(3);
	}
	json_decref(verdict);
}

static const struct entry {
	struct bench_figure figure;
	void (*what)(void);
	void (*beside)(void);
} entries[] = {
	{ { "fill", "a payload filled, to its copy", "x", 0, 0 }, fill, copy },
	{ { "check", "a payload checked, to its copy", "x", 0, 0 }, check, copy },
	{ { "account", "3200 completions taken, to fixed work", "x", 0, 0 }, account, work },
	{ { "decode", "2000 packets decoded, to fixed work", "x", 0, 0 }, decode, work },
	{ { "plan", "a scenario loaded and planned, to fixed work", "x", 0, 0 }, plan, work },
	{ { "judge", "a case of the wire judged, to fixed work", "x", 0, 0 }, judge, work },
};
#define NUM_ENTRIES (sizeof entries / sizeof *entries)

static double cpu_us(void (*f)(void))
{
	struct timespec from, to;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	f();
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	return (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3;
}

/* The least of a block is what a thing costs; what is above it, others cause. */
static void keep_least(double *least, double us, int round)
{
	if (round == 0 || us < *least)
		*least = us;
}

/* "model name" of the first processor, or "unknown". */
static void processor_name(char *buf, size_t size)
{
	FILE *in = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(buf, size, "unknown");
	while (in && fgets(line, sizeof line, in)) {
		const char *name = strchr(line, ':');

		if (strncmp(line, "model name", 10) != 0 || !name)
			continue;
		snprintf(buf, size, "%.*s", (int)strcspn(name + 2, "\n"), name + 2);
		break;
	}
	if (in)
		fclose(in);
}

static json_t *measure(void)
{
	struct bench_samples ratio[NUM_ENTRIES] = { { .n = 0 } };
	json_t *figures = json_object();
	char processor[128];

	for (int block = 0; block < BLOCKS; block++) {
		double what[NUM_ENTRIES], beside[NUM_ENTRIES];

		for (int round = 0; round < ROUNDS; round++)
			for (size_t i = 0; i < NUM_ENTRIES; i++) {
				keep_least(&beside[i], cpu_us(entries[i].beside), round);
				keep_least(&what[i], cpu_us(entries[i].what), round);
			}
		for (size_t i = 0; i < NUM_ENTRIES; i++)
			bench_sample(&ratio[i], what[i] / beside[i]);
	}
	for (size_t i = 0; i < NUM_ENTRIES; i++)
		bench_add(figures, &entries[i].figure, &ratio[i]);
	processor_name(processor, sizeof processor);
	return json_pack("{s:i,s:s,s:o}", "schema", 1, "processor", processor, "figures", figures);
}

static int prepare(struct error *e)
{
	const struct packet_spec spec = { .opcode = 4, .payload_bytes = 1024, .dest_qp = 17, .psn = 7, .src_port = 0xc000 };
	bool torn;
	int n = packet_build(&spec, it.frame, sizeof it.frame);

	if (n < 0)
		return error_set(e, n, "no packet can be built");
	it.frame_bytes = (size_t)n;
	it.queue = queue_new(&it.agent, "bench", NULL, true);
	queue_begin(it.queue, 1);
	memset(it.from, 0x5a, sizeof it.from);
	int rc = json_load(GOLDEN "/plan.json", &it.plan, e);

	return rc ? rc : json_load_lines(GOLDEN "/observations.jsonl", &it.records, &torn, e);
}

static int against(const char *path, struct error *e)
{
	json_t *reference = NULL;
	int rc = json_load(path, &reference, e), worse = 1;
	char here[128];

	processor_name(here, sizeof here);
	if (rc == 0 && !json_has(reference, "processor", here)) {
		printf("the reference was measured on %s, this is %s\n", json_str(reference, "processor"), here);
		rc = 77;
	}
	for (int i = 0; rc == 0 && worse > 0 && i < 2; i++) {
		json_t *now = measure();

		if (i)
			puts("measured once more:");
		worse = bench_compare(reference, now, stdout);
		json_decref(now);
	}
	json_decref(reference);
	if (rc == 0 && worse < 0)
		rc = error_set(e, worse, "%s has no ratio that is measured here", path);
	return rc ? rc : worse > 0;
}

int main(int argc, char **argv)
{
	struct error e = { "" };
	int rc;

	log_init("short_bench", false);
	if (argc < 2 || (strcmp(argv[1], "--write") == 0) != (argc == 3)) {
		fputs("usage: short_bench REFERENCE | short_bench --write FILE\n", stderr);
		return 2;
	}
	rc = prepare(&e);
	if (rc == 0 && argc == 2) {
		rc = against(argv[1], &e);
	} else if (rc == 0) {
		json_t *now = measure();

		rc = json_save(argv[2], now, &e);
		json_decref(now);
	}
	if (rc < 0)
		log_error("%s", e.text);
	queue_free(it.queue);
	free(it.agent.queues);
	json_decref(it.plan);
	json_decref(it.records);
	return rc < 0 ? 3 : rc;
}
