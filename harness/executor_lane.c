/* SPDX-License-Identifier: MIT */
#include "executor_lane.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data.h"
#include "journal.h"
#include "kernel_witness.h"
#include "line.h"
#include "log.h"
#include "proc.h"
#include "rdma_core.h"
#include "units.h"

#define LEAVE_NS (3 * NSEC_PER_SEC)
#define REAP_NS (200 * NSEC_PER_MSEC)

struct lane_process {
	struct lanes *x;
	unsigned number;
	struct proc proc;
	struct line *line;
	bool busy; /* asked for a case and has not said that it is done */
};

struct lanes {
	sd_event *loop;
	struct lanes_options o;
	struct journal *journal;
	struct lab *lab;
	struct lab_lane lane[EXECUTOR_LANES_MAX];
	struct lane_process process[EXECUTOR_LANES_MAX];
	char *agent, *wire;
	struct kernel_witness *witness;
};

/* Where a libibverbs of one's own may lie below its prefix. */
static const char *const lib_dirs[] = { "lib/x86_64-linux-gnu", "lib64", "lib" };

static void library_version(const char *prefix, char *buf, size_t size)
{
	char path[PATH_MAX];

	snprintf(buf, size, "unknown");
	for (size_t i = 0; i < sizeof lib_dirs / sizeof lib_dirs[0]; i++) {
		snprintf(path, sizeof path, "%s/%s/libibverbs.so.1", prefix, lib_dirs[i]);
		if (rdma_core_version(path, buf, size))
			return;
	}
}

char *rdma_core_find(const char *prefix, struct error *e)
{
	for (size_t i = 0; i < sizeof lib_dirs / sizeof lib_dirs[0]; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof path, "%s/%s/libibverbs.so.1", prefix, lib_dirs[i]);
		if (access(path, R_OK) == 0)
			return realpath(prefix, NULL);
	}
	error_set(e, -ENOENT, "%s has no libibverbs.so.1 in %s, %s or %s", prefix, lib_dirs[0], lib_dirs[1], lib_dirs[2]);
	return NULL;
}

static void use_rdma_core(const char *prefix)
{
	char path[3 * PATH_MAX];

	snprintf(path, sizeof path, "%s/%s:%s/%s:%s/%s", prefix, lib_dirs[0], prefix, lib_dirs[1], prefix, lib_dirs[2]);
	setenv("LD_LIBRARY_PATH", path, 1);
}

/* ---- a lane's process ---- */

static void on_json(void *user, json_t *value)
{
	struct lane_process *p = user;
	const char *state = json_string_value(json_object_get(value, "state"));

	if (state && strcmp(state, "done") == 0)
		p->busy = false;
	p->x->o.on_message(p->x->o.user, p->number, value);
}

static void on_text(void *user, const char *text)
{
	const struct lane_process *p = user;

	log_warn("lane %u: not JSON: %.80s", p->number, text);
}

static void on_end(void *user, int err)
{
	struct lane_process *p = user;
	char why[80];

	(void)err;
	/* End of file comes a moment before it can be reaped. */
	proc_wait(&p->proc, REAP_NS);
	if (!p->proc.ended)
		snprintf(why, sizeof why, "has closed its socket");
	else if (WIFSIGNALED(p->proc.status))
		snprintf(why, sizeof why, "was ended by signal %d (%s)", WTERMSIG(p->proc.status),
			 strsignal(WTERMSIG(p->proc.status)));
	else
		snprintf(why, sizeof why, "has ended with status %d", WEXITSTATUS(p->proc.status));
	p->x->o.on_gone(p->x->o.user, p->number, why);
}

static const struct line_ops process_ops = { .on_json = on_json, .on_text = on_text, .on_end = on_end };

/* The parent's descriptors are the parent's: an end of file must not wait for this process. */
static int keep_only(int fd)
{
	int kept = fd == 3 ? fd : dup3(fd, 3, O_CLOEXEC);

	if (kept == 3)
		syscall(SYS_close_range, 4u, ~0u, 0u);
	return kept;
}

_Noreturn static void run_child(struct lanes *x, unsigned number, int fd, pid_t parent)
{
	const struct lane_child what = {
		.lab = x->lab, .lane = x->lane[number], .o = &x->o, .agent = x->agent, .wire = x->wire, .witness = x->witness
	};

	/* The parent may be gone before the request takes effect. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(3);
	fd = keep_only(fd);
	if (fd < 0)
		_exit(3);
	lane_child_main(&what, fd);
}

static int start(struct lanes *x, unsigned number, struct error *e)
{
	struct lane_process *p = &x->process[number];
	int fds[2], out, rc;
	pid_t parent = getpid();

	*p = (struct lane_process){ .x = x, .number = number, .proc = { .pidfd = -1, .in = -1, .out = -1 } };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return error_set(e, -errno, "lane %u: no socket: %s", number, strerror(errno));
	fflush(NULL);
	p->proc.pid = fork();
	if (p->proc.pid == 0)
		run_child(x, number, fds[1], parent);
	close(fds[1]);
	if (p->proc.pid < 0) {
		close(fds[0]);
		return error_set(e, -errno, "lane %u: fork: %s", number, strerror(errno));
	}
	p->proc.pidfd = (int)syscall(SYS_pidfd_open, p->proc.pid, 0u);
	/* A descriptor can be watched once only. */
	out = fcntl(fds[0], F_DUPFD_CLOEXEC, 3);
	rc = p->proc.pidfd < 0 || out < 0 ? -errno : line_new(x->loop, fds[0], out, &process_ops, p, &p->line);
	if (rc == 0)
		return 0;
	close(fds[0]);
	if (out >= 0)
		close(out);
	return error_set(e, rc, "lane %u: %s", number, strerror(-rc));
}

/* A launcher's agents may run elsewhere, or with less right to run. */
static bool has_witness(const struct lanes_options *o)
{
	return !o->launch && kernel_witness_sees_all();
}

int lanes_open(sd_event *loop, const struct lanes_options *o, struct lanes **ret, struct error *e)
{
	struct lanes *x = calloc(1, sizeof *x);
	int rc;

	if (!x)
		return error_set(e, -ENOMEM, "out of memory");
	x->loop = loop;
	x->o = *o;
	rc = o->n >= 1 && o->n <= EXECUTOR_LANES_MAX
		     ? data_program("qpdrill-agent", &x->agent, e)
		     : error_set(e, -EINVAL, "%u lanes: there can be 1 to %d", o->n, EXECUTOR_LANES_MAX);
	if (rc == 0)
		rc = data_program("qpdrill-wire", &x->wire, e);
	if (rc == 0)
		rc = journal_open(&x->journal, e);
	if (rc == 0)
		rc = o->kept ? lab_rxe.adopt(loop, x->journal, o->kept, &x->lab, e) : lab_rxe.open(loop, x->journal, &x->lab, e);
	if (rc == 0)
		rc = x->lab->ops->lanes_up(x->lab, (int)o->n, o->wire, x->lane, e);
	if (rc == 0 && o->rdma_core)
		use_rdma_core(o->rdma_core);
	if (rc == 0)
		rc = has_witness(o) ? kernel_witness_new(o->n, &x->witness, e) : 0;
	for (unsigned i = 0; rc == 0 && i < o->n; i++) {
		x->lane[i].boot = o->boot;
		rc = start(x, i, e);
	}
	if (rc == 0 && x->witness)
		rc = kernel_witness_start(x->witness, e);
	if (rc < 0) {
		lanes_close(x);
		return rc;
	}
	*ret = x;
	return 0;
}

json_t *lanes_environment(const struct lanes *x)
{
	char path[128], fw[64] = "", core[64];
	struct utsname u;

	uname(&u);
	snprintf(path, sizeof path, "/sys/class/infiniband/%s/fw_ver", x->lane[0].device[0].rdma);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, fw, sizeof fw - 1) : 0;

	if (fd >= 0)
		close(fd);
	fw[n > 0 ? n : 0] = '\0';
	fw[strcspn(fw, "\n")] = '\0';
	library_version(x->o.rdma_core ? x->o.rdma_core : "/usr", core, sizeof core);
	return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s*,s:b}", "kernel", u.release, "provider", "rxe", "firmware", fw, "rdma_core",
			 core, "lab", x->lab->ops->name, "netns", x->lab->one_netns ? "one" : "each", "netns_why",
			 x->lab->one_netns, "guest", getenv("QPDRILL_GUEST") != NULL);
}

int lanes_ask(struct lanes *x, unsigned lane, const json_t *request)
{
	struct lane_process *p = lane < x->o.n ? &x->process[lane] : NULL;

	if (!p || !p->line)
		return -ENODEV;
	p->busy |= json_object_get(request, "case") != NULL;
	return line_send(p->line, request);
}

void lanes_close(struct lanes *x)
{
	if (!x)
		return;
	/* All are told before any is waited for: end of file is the word. */
	for (unsigned i = 0; i < x->o.n && i < EXECUTOR_LANES_MAX; i++) {
		line_free(x->process[i].line);
		x->process[i].line = NULL;
	}
	for (unsigned i = 0; i < x->o.n && i < EXECUTOR_LANES_MAX; i++) {
		struct lane_process *p = &x->process[i];

		if (p->proc.pid > 0)
			proc_stop(&p->proc, p->busy ? SIGKILL : 0, p->busy ? 0 : LEAVE_NS);
	}
	if (x->lab)
		x->lab->ops->close(x->lab);
	journal_close(x->journal);
	kernel_witness_free(x->witness);
	free(x->agent);
	free(x->wire);
	free(x);
}
