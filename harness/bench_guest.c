/* SPDX-License-Identifier: MIT */
/*
 * What the harness itself costs, as ratios: a guest until it is ready against the bare kernel to its first program; a restored
 * guest with its lanes up against that; a case without timers against one spawn of /bin/true in the same guest. Rounds are
 * interleaved, so that a busy machine is busy for both.
 *
 * A case's time is the lane's own, from taking the request to the last record on disk: agents asked and answering, records, the
 * lab's picture, the clean state that the next case finds. It has no bystander and no wire, and it is not the first, which
 * starts the agents. What it would take whoever checks the same by hand is subtracted: the time inside the verbs that the agents
 * have on record (devices, objects, moves), of the one end that spent more of it, as both work at the same time. Everything else
 * counts as overhead, also what nobody can spare: posting, the flight of two messages, the wake-ups for their completions, and
 * the destruction of what was made.
 */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data.h"
#include "diag.h"
#include "guest.h"
#include "guest_boot.h"
#include "guest_saved.h"
#include "journal.h"
#include "json.h"
#include "log.h"
#include "plan.h"
#include "scenario.h"
#include "units.h"
#include "many.h"

#define ANSWER_TIMEOUT_NS (120 * NSEC_PER_SEC)
#define BOOT_BAR 1.5
#define RESTORE_BAR 0.35
#define CASE_BAR 2.0
#define CASES_PER_ROUND 5
#define SPAWNS_PER_CASE 5
#define CASE_ID "bench/nothing-fails"

/* Nothing in it waits for a timer. */
#define SCENARIO(more)                                                                                                             \
	"qpdrill: 1\n"                                                                                                             \
	"title: One message each way, nothing fails\n"                                                                             \
	"bystander: none\n" more "steps:\n"                                                                                        \
	"  - connect:\n"                                                                                                           \
	"  - post: { at: a, op: SEND, size: 64, as: there }\n"                                                                     \
	"  - expect: { of: there, wc: SUCCESS }\n"                                                                                 \
	"  - post: { at: b, op: SEND, size: 64, as: back }\n"                                                                      \
	"  - expect: { of: back, wc: SUCCESS }\n"

/* Where a case's plan lies, and what it is. */
static const struct bench_case {
	const char *dir, *text;
} plain = { "case", SCENARIO("") }, wired = { "wired", SCENARIO("requires: [wire]\n") };

struct bench {
	const char *accel;
	struct guest_kernel kernel;
	struct journal *journal;
	struct guest_saved *saved;
	char *self;
	char dir[PATH_MAX];
	int dir_id;
	struct bench_samples bare, ready, boot_ratio, restored, restore_ratio, spawn, cases, verbs, case_ratio, controller_kb,
		agent_kb, wire_kb;
};

/* ---- a guest to talk to ---- */

struct talk {
	struct guest g;
	char *buf;
	size_t len;
};

/* The next line of the guest that is JSON and has `key`, in *ret (new reference); other lines are passed over. */
static int await(struct talk *t, const char *key, json_t **ret, struct error *e)
{
	uint64_t end = now_ns() + ANSWER_TIMEOUT_NS;

	for (;;) {
		char *nl = t->len ? memchr(t->buf, '\n', t->len) : NULL;

		if (nl) {
			json_t *value = json_loadb(t->buf, (size_t)(nl - t->buf), 0, NULL);

			t->len -= (size_t)(nl + 1 - t->buf);
			memmove(t->buf, nl + 1, t->len);
			if (json_object_get(value, key) && (strcmp(key, "state") != 0 || json_has(value, "state", "done"))) {
				*ret = value;
				return 0;
			}
			if (json_str(value, "error") && !json_object_get(value, "case")) {
				error_set(e, -EIO, "in the guest: %s", json_str(value, "error"));
				json_decref(value);
				return -EIO;
			}
			json_decref(value);
			continue;
		}
		struct pollfd p = { .fd = t->g.proc.out, .events = POLLIN };
		char *grown = realloc(t->buf, t->len + 4096);

		if (!grown)
			return error_set(e, -ENOMEM, "out of memory");
		t->buf = grown;
		if (now_ns() >= end)
			return error_set(e, -ETIMEDOUT, "the guest did not answer with '%s'", key);
		if (poll(&p, 1, 1000) <= 0)
			continue;
		ssize_t n = read(p.fd, t->buf + t->len, 4096);

		if (n <= 0)
			return error_set(e, -EPIPE, "the guest ended while '%s' was awaited", key);
		t->len += (size_t)n;
	}
}

static int ask(struct talk *t, json_t *request, const char *key, json_t **ret, struct error *e)
{
	char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
	int rc = text && dprintf(t->g.proc.in, "%s\n", text) > 0 ? 0 : error_set(e, -EIO, "the guest takes no request");

	free(text);
	json_decref(request);
	return rc < 0 ? rc : await(t, key, ret, e);
}

static int start(struct bench *b, struct talk *t, bool bare, struct guest_saved *saved, struct error *e)
{
	char console[PATH_MAX + 32];
	const struct guest_port port = { .name = "channel", .fd = -1 };

	snprintf(console, sizeof console, "%s/console.log", b->dir);
	const struct guest_options o = { .kernel = &b->kernel,
					 .accel = b->accel,
					 .share = b->dir,
					 .boot_file = "boot.txt",
					 .console = bare ? NULL : console,
					 .ports = &port,
					 .n_ports = bare ? 0 : 1,
					 .shell_fd = -1,
					 .err_fd = -1,
					 .bare = bare,
					 .saved = saved };

	*t = (struct talk){ .buf = NULL };
	return guest_start(&o, b->journal, &t->g, e);
}

static int boot_bare(struct bench *b, double *ret_ms, struct error *e)
{
	struct talk t;
	uint64_t begin = now_ns();
	int rc = start(b, &t, true, NULL, e);

	if (rc < 0)
		return rc;
	for (char buf[4096] = ""; rc == 0;) {
		size_t keep = strlen(buf) > 2000 ? 2000 : strlen(buf);

		memmove(buf, buf + strlen(buf) - keep, keep);
		ssize_t n = read(t.g.proc.out, buf + keep, sizeof buf - keep - 1);

		if (n <= 0)
			rc = error_set(e, -EPIPE, "the bare kernel did not reach its first program");
		buf[n > 0 ? keep + (size_t)n : keep] = '\0';
		if (strstr(buf, GUEST_BOOT_PROBE_MARK))
			break;
	}
	*ret_ms = (double)(now_ns() - begin) / 1e6;
	guest_stop(&t.g);
	return rc;
}

/* ---- one round ---- */

/* Inside verbs, of the agent that spent more. */
static int time_in_verbs(const struct bench *b, double *ret_ms, struct error *e)
{
	json_t *records = NULL, *r, *spent = json_object(), *of;
	char path[PATH_MAX + 64];
	bool torn = false;
	const char *src;
	size_t i;

	snprintf(path, sizeof path, "%s/%s/observations.jsonl", b->dir, plain.dir);
	int rc = many_load_records(path, &records, &torn, e);

	json_array_foreach(records, i, r) {
		src = json_str(r, "src");
		if (src && strncmp(src, "agent/", 6) == 0)
			json_object_set_new(spent, src, json_integer(json_int(spent, src, 0) + json_int(r, "dur_ns", 0)));
	}
	*ret_ms = 0;
	json_object_foreach(spent, src, of)
		*ret_ms = (double)json_integer_value(of) / 1e6 > *ret_ms ? (double)json_integer_value(of) / 1e6 : *ret_ms;
	json_decref(records);
	json_decref(spent);
	return rc == 0 && *ret_ms <= 0 ? error_set(e, -EIO, "%s: no verb is on record", path) : rc;
}

static int run_case(struct talk *t, const struct bench_case *c, json_t **ret, struct error *e)
{
	json_t *answer = NULL;
	int rc = ask(t, json_pack("{s:s,s:s}", "case", CASE_ID, "dir", c->dir), "state", &answer, e);

	if (rc == 0 && json_str(answer, "error") && json_str(answer, "error")[0]) {
		rc = error_set(e, -EIO, "the case does not run: %s", json_str(answer, "error"));
		json_decref(answer);
	} else if (rc == 0) {
		*ret = answer;
	}
	return rc;
}

static int measure_cases(struct bench *b, struct talk *t, struct error *e)
{
	int rc = 0;

	/* The first starts the agents. */
	for (int i = 0; rc == 0 && i <= CASES_PER_ROUND; i++) {
		struct bench_samples spawns = { .n = 0 };
		json_t *answer = NULL, *v;
		size_t k;

		rc = ask(t, json_pack("{s:i}", "spawn", SPAWNS_PER_CASE), "spawn_ns", &answer, e);
		json_array_foreach(json_object_get(answer, "spawn_ns"), k, v)
			bench_sample(&spawns, (double)json_integer_value(v) / 1e6);
		json_decref(answer);
		answer = NULL;
		if (rc == 0)
			rc = run_case(t, &plain, &answer, e);
		double verbs = 0;

		if (rc == 0)
			rc = time_in_verbs(b, &verbs, e);
		if (rc == 0 && i > 0) {
			double ms = (double)json_int(answer, "dur_ns", 0) / 1e6, spawn = bench_median(&spawns);

			bench_sample(&b->cases, ms);
			bench_sample(&b->verbs, verbs);
			bench_sample(&b->spawn, spawn);
			bench_sample(&b->case_ratio, (ms - verbs) / spawn);
		}
		json_decref(answer);
	}
	return rc;
}

static int measure_memory(struct bench *b, struct talk *t, struct error *e)
{
	json_t *answer = NULL, *v;
	size_t i;
	int rc = ask(t, json_pack("{s:b}", "memory", true), "memory_kb", &answer, e);
	const json_t *m = json_object_get(answer, "memory_kb");

	if (rc == 0) {
		bench_sample(&b->controller_kb, (double)json_int(m, "controller", 0));
		json_array_foreach(json_object_get(m, "agents"), i, v)
			bench_sample(&b->agent_kb, (double)json_integer_value(v));
	}
	json_decref(answer);
	return rc;
}

/* Of a lane that has a wire, after a case. */
static int measure_wire(struct bench *b, struct talk *t, struct error *e)
{
	json_t *answer = NULL, *v;
	size_t i;
	int rc = run_case(t, &wired, &answer, e);

	json_decref(answer);
	answer = NULL;
	if (rc == 0)
		rc = ask(t, json_pack("{s:b}", "memory", true), "memory_kb", &answer, e);
	json_array_foreach(json_object_get(json_object_get(answer, "memory_kb"), "wires"), i, v)
		bench_sample(&b->wire_kb, (double)json_integer_value(v));
	json_decref(answer);
	return rc == 0 && b->wire_kb.n == 0 ? error_set(e, -EIO, "a lane with a wire has none after a case") : rc;
}

static int write_inner(const struct bench *b, int lanes, struct error *e)
{
	char path[PATH_MAX + 32];
	json_t *inner = json_pack("{s:i,s:i,s:b}", "boot", 1, "lanes", lanes, "wire", lanes > 1);

	snprintf(path, sizeof path, "%s/inner.json", b->dir);
	int rc = inner ? json_save(path, inner, e) : error_set(e, -ENOMEM, "out of memory");

	json_decref(inner);
	return rc;
}

/* Starts a guest that serves cases; *ret_ms: until it takes one. On success it is the caller's to end. */
static int boot_ready(struct bench *b, struct talk *t, struct guest_saved *saved, double *ret_ms, struct error *e)
{
	uint64_t begin = now_ns();
	json_t *ready = NULL;
	/* One lane where they are made, all where they are there. */
	int rc = write_inner(b, saved ? GUEST_SAVED_LANES : 1, e);

	if (rc == 0)
		rc = start(b, t, false, saved, e);
	if (rc)
		return rc;
	rc = await(t, "ready", &ready, e);
	*ret_ms = (double)(now_ns() - begin) / 1e6;
	json_decref(ready);
	if (rc == 0 && saved && t->g.control < 0)
		rc = error_set(e, -EIO, "the saved guest was not restored");
	if (rc) {
		guest_stop(&t->g);
		free(t->buf);
	}
	return rc;
}

static int measure_boots(struct bench *b, struct talk *ret, struct error *e)
{
	double bare = 0, ready = 0, restored = 0;
	struct talk t;
	int rc = boot_bare(b, &bare, e);

	if (rc == 0)
		rc = boot_ready(b, &t, b->saved, &restored, e);
	if (rc)
		return rc;
	rc = measure_wire(b, &t, e);
	guest_stop(&t.g);
	free(t.buf);
	if (rc == 0)
		rc = boot_ready(b, ret, NULL, &ready, e);
	if (rc)
		return rc;
	bench_sample(&b->bare, bare);
	bench_sample(&b->ready, ready);
	bench_sample(&b->boot_ratio, ready / bare);
	bench_sample(&b->restored, restored);
	bench_sample(&b->restore_ratio, restored / ready);
	return 0;
}

static int one_round(struct bench *b, struct error *e)
{
	struct talk t;
	int rc = measure_boots(b, &t, e);

	if (rc)
		return rc;
	rc = measure_cases(b, &t, e);
	if (rc == 0)
		rc = measure_memory(b, &t, e);
	guest_stop(&t.g);
	free(t.buf);
	return rc;
}

/* ---- around it ---- */

static int write_plan(const struct bench *b, const struct bench_case *c, struct error *e)
{
	struct scenario s;
	struct diag d = { 0 };
	const struct plan_options po = { .seed = 1, .file = "bench" };
	char path[PATH_MAX + 32];
	json_t *plan = NULL;
	int rc = scenario_load_text(c->text, strlen(c->text), "bench", CASE_ID, &s, &d);

	if (rc < 0)
		return error_set(e, rc, "%s", d.text ? d.text : "the bench's own scenario does not load");
	rc = plan_make(&s.cases[0], &po, &plan, e);
	snprintf(path, sizeof path, "%s/%s", b->dir, c->dir);
	if (rc == 0 && mkdir(path, 0777) < 0)
		rc = error_set(e, -errno, "%s: %s", path, strerror(errno));
	snprintf(path, sizeof path, "%s/%s/plan.json", b->dir, c->dir);
	if (rc == 0)
		rc = json_save(path, plan, e);
	json_decref(plan);
	scenario_release(&s);
	diag_release(&d);
	return rc;
}

static int prepare(const struct bench_options *o, struct bench *b, struct error *e)
{
	const char *tmp = getenv("TMPDIR");
	int rc = guest_kernel_find(o->kernel_image, o->modules, false, &b->kernel, e);

	if (rc == 0)
		rc = guest_accel(o->accel, &b->kernel, &b->accel, e);
	if (rc == 0)
		rc = data_program("qpdrill-inner", &b->self, e);
	if (rc == 0)
		rc = journal_open(&b->journal, e);
	snprintf(b->dir, sizeof b->dir, "%s/qpdrill-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
	if (rc == 0 && !mkdtemp(b->dir))
		rc = error_set(e, -errno, "%s: %s", b->dir, strerror(errno));
	const char *const undo[] = { "rm", "-rf", b->dir, NULL };

	if (rc == 0)
		rc = journal_add(b->journal, undo, &b->dir_id, e);
	if (rc == 0)
		rc = write_plan(b, &plain, e);
	if (rc == 0)
		rc = write_plan(b, &wired, e);
	const char *const argv[] = { b->self, b->dir, NULL };
	const struct guest_boot what = { .argv = argv, .channel = "channel", .early = true };

	if (rc == 0)
		rc = guest_write_boot(b->dir, "boot.txt", &b->kernel, NULL, &what, e);
	if (rc < 0)
		return rc;
	const struct guest_saved_options so = {
		.kernel = &b->kernel, .accel = b->accel, .inner = b->self, .lanes = GUEST_SAVED_LANES, .journal = b->journal
	};

	b->saved = guest_saved_find(&so);
	return b->saved ? 0 : error_set(e, -EIO, "no saved guest to measure");
}

static void put_away(struct bench *b)
{
	const char *const rm[] = { "rm", "-rf", b->dir, NULL };
	struct error ignored;

	if (b->dir_id && proc_run((char *const *)rm, 20 * NSEC_PER_SEC, NULL, &ignored) == 0)
		journal_done(b->journal, b->dir_id);
	journal_close(b->journal);
	guest_saved_free(b->saved);
	guest_kernel_release(&b->kernel);
	free(b->self);
}

struct row {
	struct bench_figure figure;
	size_t offset;
};

static const struct row rows[] = {
	{ { "boot_bare", "bare kernel to its first program", "ms", 0, 0 }, offsetof(struct bench, bare) },
	{ { "boot_ready", "guest until it takes a case", "ms", 0, 0 }, offsetof(struct bench, ready) },
	{ { "boot_ratio", "  ratio", "x", BOOT_BAR, 0 }, offsetof(struct bench, boot_ratio) },
	{ { "boot_restored", "restored guest, 8 lanes up, until it takes one", "ms", 0, 0 }, offsetof(struct bench, restored) },
	{ { "restore_ratio", "  ratio to the booted one", "x", RESTORE_BAR, 0 }, offsetof(struct bench, restore_ratio) },
	{ { "spawn", "one spawn of /bin/true in the guest", "ms", 0, 0 }, offsetof(struct bench, spawn) },
	{ { "case", "a case in which nothing waits for a timer", "ms", 0, 0 }, offsetof(struct bench, cases) },
	{ { "case_verbs", "  of that inside verbs", "ms", 0, 0 }, offsetof(struct bench, verbs) },
	{ { "case_ratio", "  ratio of the rest to a spawn", "x", CASE_BAR, 0 }, offsetof(struct bench, case_ratio) },
	{ { "memory_controller", "peak memory of the controller", "kB", 0, 0 }, offsetof(struct bench, controller_kb) },
	{ { "memory_agent", "peak memory of an agent", "kB", 0, 0 }, offsetof(struct bench, agent_kb) },
	{ { "memory_wire", "peak memory of a wire", "kB", 0, 0 }, offsetof(struct bench, wire_kb) },
};

int bench_guest(const struct bench_options *o, json_t *figures, json_t *about, struct error *e)
{
	struct bench *b = calloc(1, sizeof *b);

	if (!b)
		return error_set(e, -ENOMEM, "out of memory");
	int rc = prepare(o, b, e);

	for (unsigned i = 0; rc == 0 && i < o->rounds; i++) {
		log_info("bench: guest, round %u of %u", i + 1, o->rounds);
		rc = one_round(b, e);
	}
	for (size_t i = 0; rc == 0 && i < sizeof rows / sizeof rows[0]; i++)
		bench_add(figures, &rows[i].figure, (struct bench_samples *)(void *)((char *)b + rows[i].offset));
	if (rc == 0) {
		json_object_set_new(about, "kernel", json_string(b->kernel.release));
		json_object_set_new(about, "accel", json_string(b->accel));
	}
	put_away(b);
	free(b);
	return rc;
}
