/* SPDX-License-Identifier: MIT */
#include "kernel_witness.h"

#include <CUnit/Basic.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "json.h"
#include "test.h"
#include "units.h"

#define LONG_NS (10 * NSEC_PER_SEC)

static uint64_t value_of(const struct kernel_witness *w, unsigned lane, const char *name)
{
	json_t *rec = kernel_witness_json(w, lane);
	uint64_t value = json_u64(rec, name, UINT64_MAX);

	CU_ASSERT(json_bool(rec, "witness", false));
	json_decref(rec);
	return value;
}

/* Bounded: whether it comes to that. */
static bool comes_to(const struct kernel_witness *w, unsigned lane, const char *name, uint64_t value)
{
	const struct timespec turn = { 0, NSEC_PER_MSEC };
	uint64_t end = now_ns() + LONG_NS;

	while (value_of(w, lane, name) < value && now_ns() < end)
		nanosleep(&turn, NULL);
	return value_of(w, lane, name) >= value;
}

static void each_lane_counts_from_its_begin(void)
{
	struct kernel_witness *w = NULL;
	uint64_t first, of_second;

	CU_ASSERT_EQUAL_FATAL(kernel_witness_new(2, &w, NULL), 0);
	kernel_witness_begin(w, 0);
	kernel_witness_begin(w, 1);
	CU_ASSERT_EQUAL(value_of(w, 0, "samples"), 0);
	CU_ASSERT_EQUAL_FATAL(kernel_witness_start(w, NULL), 0);
	CU_ASSERT(comes_to(w, 0, "samples", 5));
	first = value_of(w, 0, "samples");
	kernel_witness_begin(w, 1);
	of_second = value_of(w, 1, "samples");
	CU_ASSERT(of_second < value_of(w, 0, "samples"));
	CU_ASSERT(comes_to(w, 1, "samples", 1));
	CU_ASSERT(value_of(w, 0, "samples") >= first);
	CU_ASSERT(value_of(w, 0, "period_ns") > 0);
	kernel_witness_free(w);
}

/* A process of its own, so that all of it can be stopped: what it would have done then comes late. */
static void ticker(struct kernel_witness *w)
{
	if (kernel_witness_start(w, NULL))
		_exit(1);
	for (;;)
		pause();
}

static void standstill_is_seen_from_elsewhere(void)
{
	const uint64_t still_ns = 120 * NSEC_PER_MSEC;
	struct kernel_witness *w = NULL;
	int status = 0;
	pid_t pid;

	CU_ASSERT_EQUAL_FATAL(kernel_witness_new(2, &w, NULL), 0);
	pid = fork();
	if (pid == 0)
		ticker(w);
	CU_ASSERT_FATAL(pid > 0);
	kernel_witness_begin(w, 0);
	CU_ASSERT(comes_to(w, 0, "samples", 3));
	kill(pid, SIGSTOP);
	CU_ASSERT_EQUAL(waitpid(pid, &status, WUNTRACED), pid);
	/* Before the late tick has come. */
	CU_ASSERT(comes_to(w, 0, "late_max_ns", still_ns));
	kill(pid, SIGCONT);
	CU_ASSERT(comes_to(w, 0, "samples", value_of(w, 0, "samples") + 4));
	CU_ASSERT(value_of(w, 0, "late_max_ns") >= still_ns);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	kernel_witness_free(w);
}

/* What one case has seen is not of the next, and not taken from another lane's. */
static void what_was_late_before_does_not_count(void)
{
	struct kernel_witness *w = NULL;
	uint64_t late;

	CU_ASSERT_EQUAL_FATAL(kernel_witness_new(2, &w, NULL), 0);
	kernel_witness_begin(w, 0);
	kernel_witness_begin(w, 1);
	kernel_witness_saw(w, 0, 500 * NSEC_PER_MSEC);
	CU_ASSERT_EQUAL(value_of(w, 0, "late_max_ns"), 500 * NSEC_PER_MSEC);
	CU_ASSERT_EQUAL(value_of(w, 1, "late_max_ns"), 500 * NSEC_PER_MSEC);
	kernel_witness_begin(w, 0);
	late = value_of(w, 0, "late_max_ns");
	CU_ASSERT_EQUAL(late, 0);
	CU_ASSERT_EQUAL(value_of(w, 0, "samples"), 0);
	CU_ASSERT_EQUAL(value_of(w, 1, "late_max_ns"), 500 * NSEC_PER_MSEC);
	CU_ASSERT_EQUAL(value_of(w, 1, "samples"), 1);
	kernel_witness_free(w);
}

/* Somewhere in 0..1023: neither the first ones nor beside each other. */
static void a_watch_for_each_processor_sees_all(void)
{
	static const struct {
		unsigned n;
		bool sees;
	} rows[] = { { 1, true }, { 2, true }, { 3, false }, { 8, false }, { 256, false } };

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		for (unsigned n = 0; n < rows[i].n; n++)
			CPU_SET(5 + 3 * n, &set);
		ROW_ASSERT(kernel_witness_sees(&set) == rows[i].sees, "%u processors", rows[i].n);
	}
}

/* Of a process that may use only this one, both watches are there. */
static void one_processor_is_watched(void)
{
	struct kernel_witness *w = NULL;
	cpu_set_t set;
	pid_t pid;

	CPU_ZERO(&set);
	CPU_SET((unsigned)sched_getcpu(), &set);
	CU_ASSERT_EQUAL_FATAL(kernel_witness_new(1, &w, NULL), 0);
	kernel_witness_begin(w, 0);
	pid = fork();
	if (pid == 0) {
		if (sched_setaffinity(0, sizeof set, &set) || !kernel_witness_sees_all())
			_exit(1);
		ticker(w);
	}
	CU_ASSERT_FATAL(pid > 0);
	CU_ASSERT(comes_to(w, 0, "samples", 6));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	kernel_witness_free(w);
}

static const struct test_case cases[] = {
	{ "a watch for each processor sees all", a_watch_for_each_processor_sees_all },
	{ "one processor is watched", one_processor_is_watched },
	{ "each lane counts from its begin", each_lane_counts_from_its_begin },
	{ "a standstill is seen from elsewhere", standstill_is_seen_from_elsewhere },
	{ "what was late before does not count", what_was_late_before_does_not_count },
};

int main(void)
{
	return test_run("kernel_witness", cases, sizeof(cases) / sizeof(cases[0]));
}
