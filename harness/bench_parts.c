/* SPDX-License-Identifier: MIT */
/* Parts of a bench that other programs measure: agents beside perftest, the suite, the wire. */
#include "bench.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "data.h"
#include "json.h"
#include "log.h"
#include "proc.h"
#include "units.h"

#define PART_TIMEOUT_NS (1800 * NSEC_PER_SEC)
#define DATA_ROUNDS 3 /* times the others: what moves data for a third of a second differs by half from one time to the next */
#define SUITE_ROUNDS_MAX 3
#define SUITE_BAR 1.3

/* The last line of a program's output that is a JSON object. */
static json_t *last_json(const char *out)
{
	json_t *found = NULL;

	for (const char *line = out; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		size_t len = strcspn(line, "\n");
		json_t *v = *line == '{' ? json_loadb(line, len, 0, NULL) : NULL;

		if (v) {
			json_decref(found);
			found = v;
		}
	}
	return found;
}

/* Runs a program that prints its figures. A status of 77 is "cannot be measured here": *ret stays NULL. */
static int run_for_json(const char *const argv[], json_t **ret, struct error *e)
{
	char *out = NULL;
	int rc = proc_run((char *const *)argv, PART_TIMEOUT_NS, &out, e);

	if (rc == 77) {
		log_warn("bench: %s: %s", argv[0], out ? out : "skipped");
		rc = 0;
	} else if (rc >= 0) {
		*ret = last_json(out ? out : "");
		rc = *ret ? 0 : error_set(e, -EIO, "%s printed no figures (status %d)", argv[0], rc);
	}
	free(out);
	return rc;
}

int bench_in_guest(const struct bench_options *o, const char *program, bool lane, const char *rounds, json_t **ret, struct error *e)
{
	char *bench = NULL, *self = NULL;
	int rc = data_program(program, &bench, e);

	if (rc == 0)
		rc = data_program("qpdrill", &self, e);
	if (rc == 0) {
		const char *argv[16] = { self, "guest", "run", "--accel", o->accel };
		int n = 5;

		if (lane)
			argv[n++] = "--lane";
		if (o->kernel_image) {
			argv[n++] = "--kernel";
			argv[n++] = o->kernel_image;
		}
		if (o->modules) {
			argv[n++] = "--modules";
			argv[n++] = o->modules;
		}
		argv[n++] = bench;
		argv[n++] = rounds;
		rc = run_for_json(argv, ret, e);
	}
	free(bench);
	free(self);
	return rc;
}

/* ---- agents beside perftest ---- */

static const struct data_row {
	const char *key;
	struct bench_figure agent, tool, ratio;
	bool less; /* is better */
} data_rows[] = {
	{ "send_bw",
	  { "agent_send_bw", "agent, SEND of 64 KiB", "MiB/s", 0, 0 },
	  { "perftest_send_bw", "ib_send_bw -e", "MiB/s", 0, 0 },
	  { "send_bw_ratio", "  ratio", "x", 0, 0.95 },
	  false },
	{ "write_bw",
	  { "agent_write_bw", "agent, WRITE of 64 KiB", "MiB/s", 0, 0 },
	  { "perftest_write_bw", "ib_write_bw", "MiB/s", 0, 0 },
	  { "write_bw_ratio", "  ratio", "x", 0, 0.95 },
	  false },
	{ "read_bw",
	  { "agent_read_bw", "agent, READ of 64 KiB", "MiB/s", 0, 0 },
	  { "perftest_read_bw", "ib_read_bw -e", "MiB/s", 0, 0 },
	  { "read_bw_ratio", "  ratio", "x", 0, 0.95 },
	  false },
	{ "send_lat",
	  { "agent_send_lat", "agent, SEND of 2 B, one way", "us", 0, 0 },
	  { "perftest_send_lat", "ib_send_lat -e", "us", 0, 0 },
	  { "send_lat_ratio", "  ratio", "x", 1.1, 0 },
	  true },
};

static void add_data_row(json_t *figures, const struct data_row *row, const json_t *measured)
{
	const json_t *agents = json_object_get(measured, "agent"), *tools = json_object_get(measured, "perftest");
	struct bench_samples agent = { .n = 0 }, tool = { .n = 0 }, ratio = { .n = 0 };

	for (size_t i = 0; i < json_array_size(agents) && i < json_array_size(tools); i++) {
		double a = json_number_value(json_array_get(agents, i)), t = json_number_value(json_array_get(tools, i));

		bench_sample(&agent, a);
		bench_sample(&tool, t);
		bench_sample(&ratio, t > 0 ? a / t : 0);
	}
	bench_add(figures, &row->agent, &agent);
	bench_add(figures, &row->tool, &tool);
	bench_add(figures, &row->ratio, &ratio);
}

int bench_data(const struct bench_options *o, json_t *figures, json_t *about, struct error *e)
{
	char rounds[16];
	json_t *measured = NULL;

	(void)about;
	snprintf(rounds, sizeof rounds, "%u", DATA_ROUNDS * o->rounds);
	log_info("bench: agents beside perftest, %s rounds", rounds);
	int rc = bench_in_guest(o, "agent_bench", true, rounds, &measured, e);

	for (size_t i = 0; rc == 0 && measured && i < sizeof data_rows / sizeof *data_rows; i++)
		add_data_row(figures, &data_rows[i], json_object_get(json_object_get(measured, "figures"), data_rows[i].key));
	json_decref(measured);
	return rc;
}

/* ---- the suite ---- */

static double cpu_of_children(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int longest_case(const char *dir, double *ret_s, struct error *e)
{
	char path[PATH_MAX + 32];
	json_t *results = NULL, *r;
	bool torn = false;
	size_t i;

	snprintf(path, sizeof path, "%s/latest/results.jsonl", dir);
	int rc = json_load_lines(path, &results, &torn, e);

	*ret_s = 0;
	json_array_foreach(results, i, r) {
		double s = (double)json_int(r, "duration_ns", 0) / 1e9;

		*ret_s = s > *ret_s ? s : *ret_s;
	}
	json_decref(results);
	return rc == 0 && *ret_s <= 0 ? error_set(e, -EIO, "%s: no case has run", path) : rc;
}

struct suite {
	struct bench_samples wall, longest, cpu, ratio;
};

static int run_suite(const struct bench_options *o, const char *self, const char *scenarios, const char *dir, struct suite *s,
		     struct error *e)
{
	char receive[PATH_MAX], srq[PATH_MAX];
	const char *const argv[] = {
		self, "run", receive, srq, "--quiet", "--lab", "guest", "--accel", o->accel, "--out", dir, NULL
	};
	double cores = (double)sysconf(_SC_NPROCESSORS_ONLN), longest = 0, cpu = cpu_of_children();
	uint64_t begin = now_ns();
	char *out = NULL;

	snprintf(receive, sizeof receive, "%s/receive", scenarios);
	snprintf(srq, sizeof srq, "%s/srq", scenarios);
	int rc = proc_run((char *const *)argv, PART_TIMEOUT_NS, &out, e);
	double wall = (double)(now_ns() - begin) / 1e9;

	if (rc > 0)
		rc = error_set(e, -EIO, "the suite does not pass: %.400s", out ? out : "");
	free(out);
	if (rc == 0)
		rc = longest_case(dir, &longest, e);
	if (rc < 0)
		return rc;
	cpu = (cpu_of_children() - cpu) / cores;
	bench_sample(&s->wall, wall);
	bench_sample(&s->longest, longest);
	bench_sample(&s->cpu, cpu);
	bench_sample(&s->ratio, wall / (longest > cpu ? longest : cpu));
	return 0;
}

int bench_suite(const struct bench_options *o, json_t *figures, json_t *about, struct error *e)
{
	static const struct bench_figure wall = { "suite_wall", "a short suite, side by side", "s", 0, 0 },
					 longest = { "suite_longest", "its longest case", "s", 0, 0 },
					 cpu = { "suite_cpu", "its CPU time, a core's share", "s", 0, 0 },
					 ratio = { "suite_ratio", "  ratio to the larger of both", "x", SUITE_BAR, 0 };
	char dir[] = "/tmp/qpdrill-bench-XXXXXX", *self = NULL, *scenarios = NULL;
	struct suite s = { .wall = { .n = 0 } };
	const char *const rm[] = { "rm", "-rf", dir, NULL };
	unsigned rounds = o->rounds < SUITE_ROUNDS_MAX ? o->rounds : SUITE_ROUNDS_MAX;
	struct error ignored;

	(void)about;
	if (!mkdtemp(dir))
		return error_set(e, -errno, "%s: %s", dir, strerror(errno));
	int rc = data_program("qpdrill", &self, e);

	if (rc == 0)
		rc = data_path("scenarios", &scenarios, e);
	for (unsigned i = 0; rc == 0 && i < rounds; i++) {
		log_info("bench: suite, round %u of %u", i + 1, rounds);
		rc = run_suite(o, self, scenarios, dir, &s, e);
	}
	if (rc == 0) {
		bench_add(figures, &wall, &s.wall);
		bench_add(figures, &longest, &s.longest);
		bench_add(figures, &cpu, &s.cpu);
		bench_add(figures, &ratio, &s.ratio);
	}
	proc_run((char *const *)rm, 20 * NSEC_PER_SEC, NULL, &ignored);
	free(self);
	free(scenarios);
	return rc;
}

/* ---- the wire beside a bridge ---- */

int bench_wire(const struct bench_options *o, json_t *figures, json_t *about, struct error *e)
{
	char rounds[16], *bench = NULL;
	json_t *measured = NULL, *v;
	const char *key;
	int rc = data_program("wire_bench", &bench, e);

	(void)about;
	snprintf(rounds, sizeof rounds, "%u", o->rounds);
	if (rc == 0) {
		const char *const argv[] = { bench, rounds, "300", "json", NULL };

		log_info("bench: the wire beside a bridge, %s rounds", rounds);
		rc = run_for_json(argv, &measured, e);
	}
	if (rc == 0)
		json_object_foreach(json_object_get(measured, "figures"), key, v)
			json_object_set(figures, key, v);
	json_decref(measured);
	free(bench);
	return rc;
}
