/* SPDX-License-Identifier: MIT */
#include "proc.h"

#include <CUnit/Basic.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "units.h"

/* exec wants char *const [], and string literals are const here. */
#define S(text) ((char *)(text))

static void run_gives_status_and_output(void)
{
	static const struct {
		const char *script;
		int rc;
		const char *out;
	} rows[] = {
		{ "printf hello", 0, "hello" },
		{ "exit 7", 7, "" },
		{ "kill -9 $$", 128 + SIGKILL, "" },
		{ "printf 'a\\nb\\n'; exit 77", 77, "a\nb\n" },
		{ "cat", 0, "" }, /* standard input is at its end */
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char *argv[] = { S("sh"), S("-c"), S(rows[i].script), NULL };
		char *out = NULL;
		struct error e = { "" };

		CU_ASSERT_EQUAL(proc_run(argv, 5 * NSEC_PER_SEC, &out, &e), rows[i].rc);
		CU_ASSERT_PTR_NOT_NULL(out);
		if (out)
			CU_ASSERT_STRING_EQUAL(out, rows[i].out);
		free(out);
	}
}

/* In a process group of its own where a hangup is ignored. */
static void hangup_is_not_passed_on(void)
{
	char *argv[] = { S("sh"), S("-c"), S("cut -d' ' -f5 /proc/self/stat"), NULL };

	for (int ignored = 0; ignored < 2; ignored++) {
		void (*before)(int) = signal(SIGHUP, ignored ? SIG_IGN : SIG_DFL);
		struct error e = { "" };
		char *out = NULL;

		CU_ASSERT_EQUAL(proc_run(argv, 5 * NSEC_PER_SEC, &out, &e), 0);
		CU_ASSERT_EQUAL(strtol(out, NULL, 10) != getpgrp(), ignored);
		free(out);
		signal(SIGHUP, before);
	}
}

static void run_ends_at_its_deadline(void)
{
	char *argv[] = { S("sh"), S("-c"), S("exec sleep 600"), NULL };
	struct error e = { "" };
	char *out = NULL;
	uint64_t start = now_ns();

	CU_ASSERT_EQUAL(proc_run(argv, 50 * NSEC_PER_MSEC, &out, &e), -ETIMEDOUT);
	CU_ASSERT(now_ns() - start < 300 * NSEC_PER_SEC);
	CU_ASSERT_PTR_NULL(out);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "50 ms"));
}

static void run_bounds_what_it_keeps(void)
{
	char *argv[] = { S("sh"), S("-c"), S("head -c 3000000 /dev/zero"), NULL };
	struct error e = { "" };

	CU_ASSERT_EQUAL(proc_run(argv, 10 * NSEC_PER_SEC, NULL, &e), -EFBIG);
}

static void a_missing_program_is_named(void)
{
	char *argv[] = { S("qpdrill-no-such-program"), NULL };
	struct proc p = { .pid = 42 };
	struct error e = { "" };

	CU_ASSERT_EQUAL(proc_spawn(&p, argv, NULL, -1, &e), -ENOENT);
	CU_ASSERT_EQUAL(p.pid, 42);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "qpdrill-no-such-program"));
}

static ssize_t read_some(int fd, char *buf, size_t size)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 5000) == 1 ? read(fd, buf, size) : -1;
}

static void spawn_talks_and_stops(void)
{
	char *argv[] = { S("sh"), S("-c"), S("read x; echo \"$x $QD_TEST\"; exec sleep 30"), NULL };
	const char *env[] = { "QD_TEST=there", NULL };
	struct error e = { "" };
	char buf[64] = "";
	struct proc p;

	CU_ASSERT_EQUAL_FATAL(proc_spawn(&p, argv, env, -1, &e), 0);
	CU_ASSERT_FALSE(proc_poll(&p));
	CU_ASSERT_EQUAL(write(p.in, "hi\n", 3), 3);
	CU_ASSERT_EQUAL(read_some(p.out, buf, sizeof buf - 1), 9);
	CU_ASSERT_STRING_EQUAL(buf, "hi there\n");
	proc_stop(&p, SIGTERM, 60 * NSEC_PER_SEC);
	CU_ASSERT_TRUE(p.ended);
	CU_ASSERT_TRUE(WIFSIGNALED(p.status) && WTERMSIG(p.status) == SIGTERM);
	proc_stop(&p, SIGTERM, NSEC_PER_SEC); /* again: nothing happens */
	CU_ASSERT_EQUAL(p.pidfd, -1);
}

static void one_that_ignores_the_signal_is_killed(void)
{
	char *argv[] = { S("sh"), S("-c"), S("trap '' TERM; echo up; while :; do sleep 1; done"), NULL };
	struct error e = { "" };
	char buf[8];
	struct proc p;

	CU_ASSERT_EQUAL_FATAL(proc_spawn(&p, argv, NULL, -1, &e), 0);
	CU_ASSERT_EQUAL(read_some(p.out, buf, sizeof buf), 3);
	proc_stop(&p, SIGTERM, 20 * NSEC_PER_MSEC);
	CU_ASSERT_TRUE(p.ended);
	CU_ASSERT_TRUE(WIFSIGNALED(p.status) && WTERMSIG(p.status) == SIGKILL);
}

static void stopping_an_empty_one_is_harmless(void)
{
	struct proc p = { .pidfd = -1, .in = -1, .out = -1 };

	proc_stop(&p, SIGTERM, NSEC_PER_SEC);
	CU_ASSERT_EQUAL(p.pid, 0);
}

/* A child whose parent dies must not live on: the middle process starts one, tells its pid and is killed. */
static void a_child_dies_with_its_parent(void)
{
	int fd[2];
	pid_t middle, grandchild = 0;
	struct pollfd pfd;

	CU_ASSERT_EQUAL_FATAL(pipe(fd), 0);
	middle = fork();
	if (middle == 0) {
		char *argv[] = { S("sleep"), S("600"), NULL };
		struct proc p;

		if (proc_spawn(&p, argv, NULL, -1, NULL) != 0 || write(fd[1], &p.pid, sizeof p.pid) != (ssize_t)sizeof p.pid)
			_exit(1);
		pause();
		_exit(0);
	}
	CU_ASSERT_EQUAL_FATAL(read(fd[0], &grandchild, sizeof grandchild), (ssize_t)sizeof grandchild);
	close(fd[1]);
	kill(middle, SIGKILL);
	waitpid(middle, NULL, 0);
	/* The grandchild holds no copy of the pipe, so ask for the process itself. */
	pfd = (struct pollfd){ .fd = -1 };
	for (int i = 0; i < 5000 && kill(grandchild, 0) == 0; i++) {
		char path[64], state = 0;
		FILE *f;

		snprintf(path, sizeof path, "/proc/%d/stat", grandchild);
		f = fopen(path, "re");
		if (!f)
			break;
		if (fscanf(f, "%*d %*s %c", &state) == 1 && state == 'Z')
			i = 5000;
		fclose(f);
		poll(&pfd, 1, 10);
	}
	char path[64], state = 'X';
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", grandchild);
	f = fopen(path, "re");
	if (f) {
		if (fscanf(f, "%*d %*s %c", &state) != 1)
			state = 'X';
		fclose(f);
	}
	CU_ASSERT(state == 'X' || state == 'Z');
	close(fd[0]);
}

/* Whatever the machine does meanwhile: who spins wants a processor all the time, and who is stopped never does. */
static void who_spins_is_at_work(void)
{
	char *argv[] = { S("sh"), S("-c"), S("while :; do :; done"), NULL };
	uint64_t begin_ns = now_ns(), end_ns = begin_ns + 60 * NSEC_PER_SEC;
	struct error e = { "" };
	struct proc p;
	int status;

	CU_ASSERT_EQUAL_FATAL(proc_spawn(&p, argv, NULL, -1, &e), 0);
	while (!proc_is_at_work(p.pid) && now_ns() < end_ns)
		poll(NULL, 0, 1);
	CU_ASSERT(proc_is_at_work(p.pid));
	if (access("/proc/self/schedstat", R_OK) == 0)
		while (!proc_waited_ns(p.pid) && now_ns() < end_ns)
			poll(NULL, 0, 1);
	CU_ASSERT(proc_waited_ns(p.pid) <= now_ns() - begin_ns);
	CU_ASSERT_EQUAL(kill(p.pid, SIGSTOP), 0);
	CU_ASSERT_EQUAL(waitpid(p.pid, &status, WUNTRACED), p.pid);
	CU_ASSERT(!proc_is_at_work(p.pid));
	proc_stop(&p, SIGKILL, 0);
	CU_ASSERT(!proc_is_at_work(p.pid) && !proc_is_at_work(0));
	CU_ASSERT_EQUAL(proc_waited_ns(p.pid), 0);
}

int main(void)
{
	CU_pSuite suite;
	unsigned failed;

	if (CU_initialize_registry() != CUE_SUCCESS)
		return 2;
	suite = CU_add_suite("proc", NULL, NULL);
	CU_ADD_TEST(suite, run_gives_status_and_output);
	CU_ADD_TEST(suite, hangup_is_not_passed_on);
	CU_ADD_TEST(suite, run_ends_at_its_deadline);
	CU_ADD_TEST(suite, run_bounds_what_it_keeps);
	CU_ADD_TEST(suite, a_missing_program_is_named);
	CU_ADD_TEST(suite, spawn_talks_and_stops);
	CU_ADD_TEST(suite, one_that_ignores_the_signal_is_killed);
	CU_ADD_TEST(suite, stopping_an_empty_one_is_harmless);
	CU_ADD_TEST(suite, a_child_dies_with_its_parent);
	CU_ADD_TEST(suite, who_spins_is_at_work);
	CU_basic_set_mode(CU_BRM_NORMAL);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failed ? 1 : 0;
}
