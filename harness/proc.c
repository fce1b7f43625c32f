/* SPDX-License-Identifier: MIT */
#include "proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file_line.h"
#include "units.h"

#define PROC_OUTPUT_MAX (1u << 20)
#define PROC_KILL_WAIT_NS (2 * NSEC_PER_SEC)

static int pidfd_open_(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0u);
}

static int pidfd_signal(int pidfd, int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0u);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void child_fail(int report)
{
	int err = errno;
	ssize_t n = write(report, &err, sizeof err);

	_exit(n == (ssize_t)sizeof err ? 127 : 126);
}

struct child_setup {
	const char *netns;
	char *const *argv;
	const char *const *env_add;
	int in, out, err, report;
	pid_t parent;
};

__attribute__((noreturn)) static void child_run(const struct child_setup *s)
{
	struct sigaction hangup;
	sigset_t none;

	/* The parent may be gone before the request takes effect. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != s->parent)
		_exit(126);
	if (s->netns[0]) {
		int fd = open(s->netns, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
			child_fail(s->report);
		close(fd);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	/* A hangup that is ignored (nohup) would still end QEMU, which does not ask. It is told to process groups. */
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler == SIG_IGN)
		setpgid(0, 0);
	if (dup2(s->in, 0) < 0 || dup2(s->out, 1) < 0 || (s->err >= 0 && dup2(s->err, 2) < 0))
		child_fail(s->report);
	for (size_t i = 0; s->env_add && s->env_add[i]; i++)
		putenv((char *)s->env_add[i]);
	execvp(s->argv[0], s->argv);
	child_fail(s->report);
	_exit(126);
}

/* Waits for the exec: end of file on the pipe when it worked, an errno when it did not. */
static int exec_result(int report)
{
	int err = 0;
	ssize_t n;

	do {
		n = read(report, &err, sizeof err);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof err ? -err : 0;
}

int proc_spawn(struct proc *ret, char *const argv[], const char *const *env_add, int err_fd, struct error *e)
{
	return proc_spawn_in("", ret, argv, env_add, err_fd, e);
}

int proc_spawn_in(const char *netns, struct proc *ret, char *const argv[], const char *const *env_add, int err_fd, struct error *e)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, report[2] = { -1, -1 };
	struct proc p = { .pidfd = -1, .in = -1, .out = -1 };
	int rc;

	if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(report, O_CLOEXEC) != 0) {
		rc = error_set(e, -errno, "cannot start %s: no pipe: %s", argv[0], strerror(errno));
		goto close_pipes;
	}
	struct child_setup setup = { .netns = netns,
				     .argv = argv,
				     .env_add = env_add,
				     .in = in[0],
				     .out = out[1],
				     .err = err_fd,
				     .report = report[1],
				     .parent = getpid() };
	p.pid = fork();
	if (p.pid < 0) {
		rc = error_set(e, -errno, "cannot start %s: fork: %s", argv[0], strerror(errno));
		goto close_pipes;
	}
	if (p.pid == 0)
		child_run(&setup);
	close_fd(&report[1]);
	rc = exec_result(report[0]);
	p.pidfd = rc ? -1 : pidfd_open_(p.pid);
	if (!rc && p.pidfd < 0) {
		rc = -errno;
		kill(p.pid, SIGKILL);
	}
	if (rc) {
		waitpid(p.pid, NULL, 0);
		error_set(e, rc, "cannot start %s%s%s: %s", argv[0], netns[0] ? " in network namespace " : "", netns,
			  strerror(-rc));
		goto close_pipes;
	}
	p.in = in[1];
	p.out = out[0];
	in[1] = out[0] = -1;
	*ret = p;
close_pipes:
	for (int i = 0; i < 2; i++) {
		close_fd(&in[i]);
		close_fd(&out[i]);
		close_fd(&report[i]);
	}
	return rc;
}

bool proc_poll(struct proc *p)
{
	int status;
	pid_t got;

	if (p->ended || p->pid <= 0)
		return true;
	got = waitpid(p->pid, &status, WNOHANG);
	if (got != p->pid)
		return got < 0 && errno == ECHILD ? (p->ended = true) : false;
	p->status = status;
	p->ended = true;
	return true;
}

bool proc_wait(struct proc *p, uint64_t timeout_ns)
{
	uint64_t end = now_ns() + timeout_ns;

	while (!proc_poll(p)) {
		uint64_t now = now_ns();
		struct pollfd pfd = { .fd = p->pidfd, .events = POLLIN };
		struct timespec left;

		if (now >= end)
			return false;
		left.tv_sec = (time_t)((end - now) / NSEC_PER_SEC);
		left.tv_nsec = (long)((end - now) % NSEC_PER_SEC);
		ppoll(&pfd, 1, &left, NULL);
	}
	return true;
}

void proc_stop(struct proc *p, int sig, uint64_t grace_ns)
{
	close_fd(&p->in);
	close_fd(&p->out);
	if (p->pid > 0 && !proc_poll(p)) {
		pidfd_signal(p->pidfd, sig);
		if (!proc_wait(p, grace_ns)) {
			pidfd_signal(p->pidfd, SIGKILL);
			proc_wait(p, PROC_KILL_WAIT_NS);
		}
	}
	if (p->pidfd > 0)
		close_fd(&p->pidfd);
	p->pidfd = -1;
}

/* Reads until end of file or the deadline. 0, -ETIMEDOUT or -EFBIG. */
static int read_output(int fd, uint64_t end, char *buf, size_t *len)
{
	char rest[4096];
	int rc = 0;

	for (;;) {
		uint64_t now = now_ns();
		struct pollfd pfd = { .fd = fd, .events = POLLIN };
		struct timespec left;
		ssize_t n;

		if (now >= end)
			return -ETIMEDOUT;
		left.tv_sec = (time_t)((end - now) / NSEC_PER_SEC);
		left.tv_nsec = (long)((end - now) % NSEC_PER_SEC);
		if (ppoll(&pfd, 1, &left, NULL) <= 0)
			continue;
		n = *len < PROC_OUTPUT_MAX ? read(fd, buf + *len, PROC_OUTPUT_MAX - *len) : read(fd, rest, sizeof rest);
		if (n == 0)
			return rc;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && *len < PROC_OUTPUT_MAX)
			*len += (size_t)n;
		else if (n > 0)
			rc = -EFBIG;
	}
}

int proc_run(char *const argv[], uint64_t timeout_ns, char **ret_out, struct error *e)
{
	uint64_t end = now_ns() + timeout_ns;
	char *buf = malloc(PROC_OUTPUT_MAX + 1);
	struct proc p = { .pidfd = -1, .in = -1, .out = -1 };
	size_t len = 0;
	int rc;

	if (!buf)
		return error_set(e, -ENOMEM, "cannot run %s: out of memory", argv[0]);
	rc = proc_spawn(&p, argv, NULL, -1, e);
	if (rc)
		goto free_buf;
	close_fd(&p.in);
	rc = read_output(p.out, end, buf, &len);
	if (!rc && !proc_wait(&p, end > now_ns() ? end - now_ns() : 0))
		rc = -ETIMEDOUT;
	proc_stop(&p, SIGKILL, 0);
	if (rc == -ETIMEDOUT)
		error_set(e, rc, "%s did not end within %llu ms", argv[0], (unsigned long long)(timeout_ns / NSEC_PER_MSEC));
	else if (rc)
		error_set(e, rc, "%s: output: %s", argv[0], rc == -EFBIG ? "more than 1 MiB" : strerror(-rc));
	else
		rc = WIFSIGNALED(p.status) ? 128 + WTERMSIG(p.status) : WEXITSTATUS(p.status);
	if (rc >= 0 && ret_out) {
		buf[len] = 0;
		*ret_out = buf;
		return rc;
	}
free_buf:
	free(buf);
	return rc;
}

int proc_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *d;
	int n = -1; /* the folder's own */

	if (!dir)
		return -errno;
	while ((d = readdir(dir)))
		n += d->d_name[0] != '.';
	closedir(dir);
	return n;
}

bool proc_is_at_work(pid_t pid)
{
	char path[64], line[256];
	const char *state;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (pid <= 0 || !file_line(path, line, sizeof line))
		return false;
	/* Behind the name, which may hold anything. */
	state = strrchr(line, ')');
	return state && (state[1] == ' ') && (state[2] == 'R' || state[2] == 'D');
}

uint64_t proc_waited_ns(pid_t pid)
{
	char path[64], line[128];
	uint64_t most = 0;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	DIR *dir = pid > 0 ? opendir(path) : NULL;

	for (const struct dirent *d; dir && (d = readdir(dir));) {
		char *end = line;

		snprintf(path, sizeof path, "/proc/%d/task/%.16s/schedstat", (int)pid, d->d_name);
		if (d->d_name[0] == '.' || !file_line(path, line, sizeof line))
			continue;
		strtoull(line, &end, 10); /* on a processor */
		uint64_t waited = strtoull(end, NULL, 10);

		most = waited > most ? waited : most;
	}
	if (dir)
		closedir(dir);
	return most;
}
