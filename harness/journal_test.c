/* SPDX-License-Identifier: MIT */
#include "journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static char dir[] = "/tmp/qd-journal-XXXXXX";

static unsigned count_files(void)
{
	DIR *d = opendir(dir);
	unsigned n = 0;

	for (const struct dirent *e; d && (e = readdir(d));)
		n += strncmp(e->d_name, "journal-", 8) == 0;
	if (d)
		closedir(d);
	return n;
}

static void add_echo(struct journal *j, const char *text, int *ret_id)
{
	char script[128];
	struct error e;

	snprintf(script, sizeof script, "printf %s >>%s/out", text, dir);
	const char *const undo[] = { "sh", "-c", script, NULL };

	CU_ASSERT_EQUAL(journal_add(j, undo, ret_id, &e), 0);
}

static const char *output(void)
{
	static char buf[64];
	char path[64];

	snprintf(path, sizeof path, "%s/out", dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, buf, sizeof buf - 1) : 0;

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	unlink(path);
	return buf;
}

/* A controller that makes changes and is killed: entries a, b, c of which b was undone. */
static void killed_controller(pid_t victim)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct journal *j = NULL;
		struct error e;
		int id;

		if (journal_open(&j, &e) != 0)
			_exit(1);
		add_echo(j, "a", NULL);
		add_echo(j, "b", &id);
		add_echo(j, "c", NULL);
		journal_done(j, id);
		if (victim && journal_add_process(j, victim, NULL, &e) != 0)
			_exit(1);
		raise(SIGKILL);
	}
	int status = 0;

	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT(WIFSIGNALED(status));
}

static void clean_end_leaves_nothing(void)
{
	struct journal *j = NULL;
	struct error e;
	int id = 0;

	CU_ASSERT_EQUAL_FATAL(journal_open(&j, &e), 0);
	CU_ASSERT_EQUAL(count_files(), 1);
	add_echo(j, "x", &id);
	journal_done(j, id);
	journal_close(j);
	CU_ASSERT_EQUAL(count_files(), 0);
	CU_ASSERT_STRING_EQUAL(output(), "");
}

static void killed_is_undone_newest_first(void)
{
	struct error e = { "" };
	unsigned n = 0;

	killed_controller(0);
	CU_ASSERT_EQUAL(count_files(), 1);
	CU_ASSERT_EQUAL(journal_clean(&n, false, &e), 0);
	CU_ASSERT_EQUAL(n, 2);
	CU_ASSERT_STRING_EQUAL(output(), "ca");
	CU_ASSERT_EQUAL(count_files(), 0);
	CU_ASSERT_EQUAL(journal_clean(&n, false, &e), 0);
	CU_ASSERT_EQUAL(n, 0);
}

static void closed_with_entries_is_undone_later(void)
{
	struct journal *j = NULL;
	struct error e;
	unsigned n = 0;

	CU_ASSERT_EQUAL_FATAL(journal_open(&j, &e), 0);
	add_echo(j, "y", NULL);
	journal_close(j);
	CU_ASSERT_EQUAL(count_files(), 1);
	CU_ASSERT_EQUAL(journal_clean(&n, false, &e), 0);
	CU_ASSERT_EQUAL(n, 1);
	CU_ASSERT_STRING_EQUAL(output(), "y");
}

static void living_is_left_alone(void)
{
	struct journal *j = NULL;
	struct error e;
	unsigned n = 9;

	CU_ASSERT_EQUAL_FATAL(journal_open(&j, &e), 0);
	add_echo(j, "z", NULL);
	CU_ASSERT_EQUAL(journal_clean(&n, false, &e), 0);
	CU_ASSERT_EQUAL(n, 0);
	CU_ASSERT_STRING_EQUAL(output(), "");
	CU_ASSERT_EQUAL(count_files(), 1);
	journal_close(j);
	CU_ASSERT_EQUAL(journal_clean(&n, false, &e), 0);
	CU_ASSERT_STRING_EQUAL(output(), "z");
}

static pid_t start_victim(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static void processes_end_by_id(void)
{
	pid_t victim = start_victim();
	struct error e;
	unsigned n = 0;
	int status = 0;

	killed_controller(victim);
	CU_ASSERT_EQUAL(journal_clean(&n, false, &e), 0);
	CU_ASSERT_EQUAL(n, 3);
	CU_ASSERT_EQUAL(waitpid(victim, &status, 0), victim);
	CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	(void)output();
}

/* Same pid, other start time; and a last line that was torn by the kill. */
static void recycled_pid_is_not_hit(void)
{
	pid_t victim = start_victim();
	char path[64], boot[64] = "";
	struct error e;
	unsigned n = 9;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t got = read(fd, boot, sizeof boot - 1);

	close(fd);
	boot[got > 0 ? got - 1 : 0] = '\0';
	snprintf(path, sizeof path, "%s/journal-1-0.jsonl", dir);
	FILE *f = fopen(path, "we");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fprintf(f, "{\"controller\":1,\"boot_id\":\"%s\",\"netns\":\"\"}\n{\"id\":1,\"pid\":%d,\"start\":\"0x1\"}\n{\"id\":2,\"und",
		boot, (int)victim);
	fclose(f);
	CU_ASSERT_EQUAL(journal_clean(&n, false, &e), 0);
	CU_ASSERT_EQUAL(n, 0);
	CU_ASSERT_EQUAL(kill(victim, 0), 0);
	CU_ASSERT_EQUAL(waitpid(victim, NULL, WNOHANG), 0);
	kill(victim, SIGKILL);
	waitpid(victim, NULL, 0);
	CU_ASSERT_EQUAL(count_files(), 0);
}

static void damaged_is_set_aside(void)
{
	char path[64];
	struct error e = { "" };
	unsigned n = 9;

	for (int round = 0; round < 2; round++) {
		snprintf(path, sizeof path, "%s/journal-1-0.jsonl", dir);
		FILE *f = fopen(path, "we");

		CU_ASSERT_PTR_NOT_NULL_FATAL(f);
		fputs("no JSON\n", f);
		fclose(f);
		CU_ASSERT_EQUAL(journal_clean(&n, false, &e), 0);
		CU_ASSERT_EQUAL(n, 0);
		CU_ASSERT(access(path, F_OK) < 0);
	}
	snprintf(path, sizeof path, "%s/damaged-journal-1-0.jsonl", dir);
	CU_ASSERT_EQUAL(unlink(path), 0);
}

static void unusable_folder_is_named(void)
{
	struct journal *j = NULL;
	struct error e = { "" };

	setenv("QPDRILL_STATE", "/proc/nowhere", 1);
	CU_ASSERT(journal_open(&j, &e) < 0);
	CU_ASSERT_PTR_NULL(j);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "/proc/nowhere"));
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "QPDRILL_STATE"));
	setenv("QPDRILL_STATE", dir, 1);
}

int main(void)
{
	static const struct test_case cases[] = {
		{ "a clean end leaves nothing", clean_end_leaves_nothing },
		{ "what a killed controller left is undone newest first", killed_is_undone_newest_first },
		{ "entries left at close are undone later", closed_with_entries_is_undone_later },
		{ "the journal of a living controller is left alone", living_is_left_alone },
		{ "processes end by id", processes_end_by_id },
		{ "a recycled pid is not hit", recycled_pid_is_not_hit },
		{ "a damaged journal is set aside", damaged_is_set_aside },
		{ "an unusable folder is named", unusable_folder_is_named },
	};

	if (!mkdtemp(dir))
		return 1;
	setenv("QPDRILL_STATE", dir, 1);
	int status = test_run("journal", cases, sizeof cases / sizeof cases[0]);

	if (rmdir(dir) != 0)
		status = 1;
	return status;
}
