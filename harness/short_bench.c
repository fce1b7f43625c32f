/* SPDX-License-Identifier: MIT */
/*
 * Says in seconds whether something that runs for every message, packet or case became slow. What is judged are instructions,
 * counted by callgrind, each thing's beside those of fixed work: however fast, busy or many its processors are, one program counts
 * the same. Another compiler makes another program, so a reference is of one compiler, architecture and width of vectors (callgrind
 * shows a program a processor of its own, which depends on the real one in that alone); where there is none, nothing is judged.
 *
 * short_bench FILE           judges by FILE: 0 all is well, 1 something is worse by more than a third, 77 no reference for this
 * short_bench --write FILE   measures, and keeps it in FILE as the reference for this
 * short_bench --slow FILE    the same as the first, while everything does its work one and a half times: proves that that is found
 * short_bench --times        processor time, each thing's beside fixed work, for people
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "../agents/agent.h"
#include "../agents/object.h"
#include "../agents/traffic.h"
#include "bench.h"
#include "diag.h"
#include "hist.h"
#include "json.h"
#include "log.h"
#include "packet.h"
#include "pattern.h"
#include "plan.h"
#include "proc.h"
#include "scenario.h"
#include "units.h"
#include "verdict.h"
#include "many.h"

#define BLOCKS 3
#define ROUNDS 50
#define COUNTED 4 /* times that each thing is done while it is counted; even */
#define VALGRIND_NS (300 * NSEC_PER_SEC)
#define STR(x) STR_(x)
#define STR_(x) #x
#define MESSAGE 65536
#define FEW 10u
#define MANY 1000u
#define GOLDEN "harness/testdata/verdict/packets-recorded"

static struct {
	uint8_t from[MESSAGE], to[MESSAGE], frame[4400];
	size_t frame_bytes;
	struct agent agent;
	struct queue *queue;
	struct hist hist;
	json_t *plan, *records;
	struct crowd {
		struct agent agent;
		struct ibv_qp verbs[MANY];
		struct qp qps[MANY];
		unsigned n;
	} few, many;
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
		/* A compiler that sees through malloc() would leave it out. */
		__asm__ volatile("" : : "r"(p) : "memory");
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

/* So many completions, each of a traffic that runs, among n queue pairs: whose it is, and the turn after it. */
static void turns(struct crowd *c)
{
	for (unsigned i = 0; i < MANY; i++) {
		struct traffic *t = traffic_find(&c->agent, "t", qp_by_qpn(&c->agent, c->qps[i % c->n].number));

		traffic_touch(t);
		traffic_turn(&c->agent);
		sink += traffic_runs(t, t->number);
	}
}

static void turns_of_few(void)
{
	turns(&it.few);
}

static void turns_of_many(void)
{
	turns(&it.many);
}

/* `beside` is what it is timed beside; instructions are counted beside those of work(), or, `counted_too`, of that as well: then
 * the figure says what more of something makes of the cost of each. */
static const struct entry {
	struct bench_figure figure;
	void (*what)(void);
	void (*beside)(void);
	bool counted_too;
} entries[] = {
	{ { "fill", "a payload filled", "x", 0, 0 }, fill, copy, false },
	{ { "check", "a payload checked", "x", 0, 0 }, check, copy, false },
	{ { "account", "3200 completions taken", "x", 0, 0 }, account, work, false },
	{ { "decode", "2000 packets decoded", "x", 0, 0 }, decode, work, false },
	{ { "plan", "a scenario loaded and planned", "x", 0, 0 }, plan, work, false },
	{ { "judge", "a case of the wire judged", "x", 0, 0 }, judge, work, false },
	{ { "turns", "completions among 1000 queue pairs, to 10", "x", 0, 0 }, turns_of_many, turns_of_few, true },
};
#define NUM_ENTRIES (sizeof entries / sizeof *entries)

/* ---- instructions ---- */

static void (*volatile counted_what)(void);
static volatile int counted_times;

/* callgrind knows it by its name: it collects in here alone, and writes a file each time that this returns. */
static __attribute__((noinline)) void counted(void)
{
	for (int i = 0; i < counted_times; i++)
		counted_what();
}

/* The first time is another: what it allocates stays, what it calls is looked up. */
static void count_one(void (*what)(void), int times)
{
	counted_what = what;
	counted_what();
	counted_times = times;
	counted();
}

/* What this process is, below callgrind: prints the width of its vectors, and does everything so that it is counted. */
static int be_counted(bool slow)
{
	const char *vectors = "plain";

#ifdef __x86_64__
	vectors = __builtin_cpu_supports("avx2") ? "avx2" : __builtin_cpu_supports("avx") ? "avx" : "sse";
#endif
	puts(vectors);
	count_one(work, COUNTED);
	for (size_t i = 0; i < NUM_ENTRIES; i++) {
		if (entries[i].counted_too)
			count_one(entries[i].beside, COUNTED);
		count_one(entries[i].what, slow ? COUNTED * 3 / 2 : COUNTED);
	}
	return 0;
}

/* "totals: 123" of the n-th file, from 1. */
static int read_total(const char *dir, size_t n, double *ret, struct error *e)
{
	char path[PATH_MAX + 32], line[256];
	unsigned long long total = 0;

	snprintf(path, sizeof path, "%s/out.%zu", dir, n);
	FILE *in = fopen(path, "re");

	while (in && fgets(line, sizeof line, in))
		if (sscanf(line, "totals: %llu", &total) == 1)
			break;
	if (in)
		fclose(in);
	unlink(path);
	if (total == 0)
		return error_set(e, -EIO, "callgrind has counted nothing: %s", path);
	*ret = (double)total;
	return 0;
}

static int run_callgrind(const char *dir, bool slow, char vectors[16], struct error *e)
{
	char self[PATH_MAX] = "", out[PATH_MAX + 32], log[PATH_MAX + 32], *said = NULL;
	const char *const argv[] = { "valgrind",
				     "-q",
				     "--tool=callgrind",
				     "--toggle-collect=counted",
				     "--dump-after=counted",
				     out,
				     log,
				     self,
				     slow ? "--be-counted-slow" : "--be-counted",
				     NULL };
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	int rc;

	if (n < 0)
		return error_set(e, -errno, "/proc/self/exe: %s", strerror(errno));
	snprintf(out, sizeof out, "--callgrind-out-file=%s/out", dir);
	snprintf(log, sizeof log, "--log-file=%s/log", dir);
	rc = proc_run((char *const *)argv, VALGRIND_NS, &said, e);
	if (rc > 0)
		rc = error_set(e, -EIO, "valgrind ended with status %d: %s/log", rc, dir);
	if (rc == 0)
		snprintf(vectors, 16, "%.*s", (int)strcspn(said ?: "", "\n"), said ?: "");
	free(said);
	return rc;
}

/* "x86_64 gcc-12 avx2". */
static void name_kind(char *buf, size_t size, const char *vectors)
{
#ifdef __clang__
	static const char compiler[] = "clang-" STR(__clang_major__);
#else
	static const char compiler[] = "gcc-" STR(__GNUC__);
#endif
	struct utsname u;

	uname(&u);
	snprintf(buf, size, "%s %s %s", u.machine, compiler, vectors);
}

static int count(bool slow, char kind[96], json_t **ret, struct error *e)
{
	char dir[PATH_MAX], path[PATH_MAX + 8], vectors[16];
	const char *tmp = getenv("TMPDIR");
	json_t *figures = json_object();
	double works = 1, beside = 1, total = 0;
	size_t n = 1;

	snprintf(dir, sizeof dir, "%.3000s/qd-bench.XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
	if (!mkdtemp(dir)) {
		json_decref(figures);
		return error_set(e, -errno, "%s: %s", dir, strerror(errno));
	}
	int rc = run_callgrind(dir, slow, vectors, e);

	if (rc == 0)
		rc = read_total(dir, n++, &works, e);
	for (size_t i = 0; rc == 0 && i < NUM_ENTRIES; i++) {
		struct bench_samples s = { .n = 0 };

		beside = works;
		if (entries[i].counted_too)
			rc = read_total(dir, n++, &beside, e);
		if (rc == 0)
			rc = read_total(dir, n++, &total, e);
		bench_sample(&s, total / beside);
		bench_add(figures, &entries[i].figure, &s);
	}
	if (rc < 0) {
		json_decref(figures);
		return rc;
	}
	/* What it writes at its end, of everything outside. */
	snprintf(path, sizeof path, "%s/out", dir);
	unlink(path);
	snprintf(path, sizeof path, "%s/log", dir);
	unlink(path);
	rmdir(dir);
	name_kind(kind, 96, vectors);
	*ret = json_pack("{s:o}", "figures", figures);
	return 0;
}

static int against(const char *path, bool slow, struct error *e)
{
	json_t *kept = NULL, *now = NULL;
	char kind[96];
	int rc = json_load(path, &kept, e), worse = 0;

	if (rc == 0)
		rc = count(slow, kind, &now, e);
	const json_t *reference = rc == 0 ? json_object_get(json_object_get(kept, "references"), kind) : NULL;

	if (rc == 0 && !reference) {
		printf("%s has no reference for %s\n", path, kind);
		rc = 77;
	}
	if (rc == 0)
		worse = bench_compare(reference, now, stdout, e);
	if (worse < 0)
		rc = error_prefix(e, worse, "%s and what was counted here", path);
	json_decref(kept);
	json_decref(now);
	return rc ? rc : worse > 0;
}

static int write_reference(const char *path, struct error *e)
{
	json_t *kept = NULL, *now = NULL, *references;
	char kind[96];
	int rc = count(false, kind, &now, e);

	if (rc < 0)
		return rc;
	if (access(path, F_OK) != 0)
		kept = json_pack("{s:i,s:{}}", "schema", 2, "references");
	else
		rc = json_load(path, &kept, e);
	references = json_object_get(kept, "references");
	if (rc == 0 && json_object_set(references, kind, now) < 0)
		rc = error_set(e, -EINVAL, "%s: no references in it", path);
	if (rc == 0)
		rc = json_save(path, kept, e);
	json_decref(kept);
	json_decref(now);
	return rc;
}

/* ---- time ---- */

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

static void print_times(void)
{
	struct bench_samples ratio[NUM_ENTRIES] = { { .n = 0 } };
	json_t *figures = json_object();

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
	bench_table(figures, false);
	json_decref(figures);
}

/* Queue pairs of an agent, on each a traffic that runs and has nothing to send. */
static void crowd_gather(struct crowd *c, unsigned n)
{
	for (c->n = 0; c->n < n; c->n++) {
		struct qp *qp = &c->qps[c->n];
		struct traffic *t;

		c->verbs[c->n].qp_num = 17 + c->n;
		qp->qp = &c->verbs[c->n];
		qp_number_add(&c->agent, qp);
		t = traffic_make(&c->agent, "t", qp);
		t->state = TRAFFIC_RUNNING;
		t->rx = true;
		t->expect = UINT64_MAX;
	}
}

static void crowd_disperse(struct crowd *c)
{
	for (; c->n; c->n--)
		qp_number_del(&c->agent, &c->qps[c->n - 1]);
	agent_forget(&c->agent);
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
	crowd_gather(&it.few, FEW);
	crowd_gather(&it.many, MANY);
	memset(it.from, 0x5a, sizeof it.from);
	int rc = json_load(GOLDEN "/plan.json", &it.plan, e);

	return rc ? rc : many_load_records(GOLDEN "/observations.jsonl", &it.records, &torn, e);
}

int main(int argc, char **argv)
{
	const char *option = argc > 1 && argv[1][0] == '-' ? argv[1] : "", *path = argc > 1 ? argv[argc - 1] : NULL;
	bool slow = strcmp(option, "--slow") == 0, write = strcmp(option, "--write") == 0, times = strcmp(option, "--times") == 0;
	bool counted_slow = strcmp(option, "--be-counted-slow") == 0, be = counted_slow || strcmp(option, "--be-counted") == 0;
	struct error e = { "" };
	int rc;

	log_init("short_bench", false);
	if (argc < 2 || argc != 2 + (slow || write) || (option[0] && !slow && !write && !times && !be)) {
		fputs("usage: short_bench [--slow|--write] FILE | short_bench --times\n", stderr);
		return 2;
	}
	rc = prepare(&e);
	if (rc == 0 && be)
		rc = be_counted(counted_slow);
	else if (rc == 0 && times)
		print_times();
	else if (rc == 0)
		rc = write ? write_reference(path, &e) : against(path, slow, &e);
	if (rc < 0)
		log_error("%s", e.text);
	crowd_disperse(&it.few);
	crowd_disperse(&it.many);
	queue_free(it.queue);
	free(it.agent.queues);
	json_decref(it.plan);
	json_decref(it.records);
	return rc < 0 ? 3 : rc;
}
