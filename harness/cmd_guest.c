/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data.h"
#include "guest.h"
#include "guest_saved.h"
#include "guest_shell.h"
#include "journal.h"
#include "log.h"
#include "units.h"

#define EXIT_GUEST_LOST 125
#define BOOT_FILE "boot.txt"
#define REGISTERS "registers.txt"

enum key { KEY_KERNEL = 256, KEY_MODULES, KEY_ACCEL, KEY_RUN, KEY_SHARE, KEY_LANE, KEY_COLD, KEY_DEADLINE, KEY_UPDATE };

static const struct argp_option options[] = {
	{ "kernel", KEY_KERNEL, "SERIES|IMAGE", 0, "boot Debian's newest kernel of that series (6.12, newest), or this one", 0 },
	{ "modules", KEY_MODULES, "DIR", 0, "its modules (the folder that holds modules.dep, or one with lib/modules/VERSION)", 0 },
	{ "accel", KEY_ACCEL, "ACCEL", 0, "kvm, tcg or auto (kvm where it works; the default)", 0 },
	{ "run", KEY_RUN, "DIR", 0, "shell: enter the guest that the run in DIR keeps up (--keep)", 0 },
	{ "share", KEY_SHARE, "DIR", 0, "a folder that the guest may write to, at the same path", 0 },
	{ "lane", KEY_LANE, NULL, 0, "with two linked RDMA devices (qd0a-..., qd0b-...)", 0 },
	{ "cold", KEY_COLD, NULL, 0, "run: boot it, whether a saved one is there or not", 0 },
	{ "deadline", KEY_DEADLINE, "TIME", 0, "run: end the guest when the command has not ended by then (3600s)", 0 },
	{ "update", KEY_UPDATE, NULL, 0, "prepare: look for a newer distribution kernel", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

struct input {
	const char *verb, *kernel, *modules, *accel, *run_dir, *share;
	char **command;
	int n_command;
	uint64_t deadline_ns; /* from the guest's start */
	bool lane, cold, update;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct input *in = state->input;

	switch (key) {
	case KEY_KERNEL:
		in->kernel = arg;
		break;
	case KEY_MODULES:
		in->modules = arg;
		break;
	case KEY_ACCEL:
		in->accel = arg;
		break;
	case KEY_RUN:
		in->run_dir = arg;
		break;
	case KEY_SHARE:
		in->share = arg;
		break;
	case KEY_LANE:
		in->lane = true;
		break;
	case KEY_DEADLINE:
		if (units_parse_duration(arg, &in->deadline_ns) < 0 || in->deadline_ns == 0)
			argp_error(state, "--deadline: '%s' is no time (90s)", arg);
		break;
	case KEY_COLD:
		in->cold = true;
		break;
	case KEY_UPDATE:
		in->update = true;
		break;
	case ARGP_KEY_ARG:
		/* This and the rest are the command's own. */
		in->command = state->argv + state->next - 1;
		in->n_command = state->argc - state->next + 1;
		state->next = state->argc;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* A boot of one's own: a scratch folder for its script, a journal. */
struct session {
	struct guest_kernel kernel;
	const char *accel;
	struct journal *journal;
	char dir[PATH_MAX];
	char share[PATH_MAX];
	char *inner;
	struct guest_saved *saved;
	int dir_id;
};

static int session_open(struct session *s, const struct input *in, struct error *e)
{
	const char *tmp = getenv("TMPDIR");
	int rc = guest_kernel_find(in->kernel, in->modules, false, &s->kernel, e);

	if (rc == 0)
		rc = guest_accel(in->accel, &s->kernel, &s->accel, e);
	if (rc == 0 && in->share && !realpath(in->share, s->share))
		rc = error_set(e, -errno, "--share %s: %s", in->share, strerror(errno));
	if (rc == 0)
		rc = data_program("qpdrill-inner", &s->inner, e);
	if (rc == 0)
		rc = journal_open(&s->journal, e);
	if (rc < 0)
		return rc;
	snprintf(s->dir, sizeof s->dir, "%s/qpdrill-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
	if (!mkdtemp(s->dir)) {
		rc = error_set(e, -errno, "%s: %s", s->dir, strerror(errno));
		s->dir[0] = '\0';
		return rc;
	}
	const char *const undo[] = { "rm", "-rf", s->dir, NULL };

	return journal_add(s->journal, undo, &s->dir_id, e);
}

static void session_close(struct session *s)
{
	static const char *const names[] = { BOOT_FILE, REGISTERS, "console.log" };
	char path[PATH_MAX + 32];

	for (size_t i = 0; s->dir[0] && i < sizeof names / sizeof names[0]; i++) {
		snprintf(path, sizeof path, "%s/%s", s->dir, names[i]);
		unlink(path);
	}
	if (s->dir[0] && rmdir(s->dir) == 0 && s->dir_id)
		journal_done(s->journal, s->dir_id);
	journal_close(s->journal);
	guest_kernel_release(&s->kernel);
	guest_saved_free(s->saved);
	free(s->inner);
}

/* The command as the guest is to run it, NULL-terminated, in *ret (caller frees; the words are borrowed). */
static int command_words(const struct input *in, const struct session *s, const char *const command[], const char ***ret,
			 struct error *e)
{
	size_t n = 0, k = 0;

	while (command[n])
		n++;
	const char **words = calloc(n + 3, sizeof *words);

	if (!words)
		return error_set(e, -ENOMEM, "out of memory");
	if (in->lane) {
		words[k++] = s->inner;
		words[k++] = "--lane";
	}
	memcpy(words + k, command, n * sizeof *words);
	*ret = words;
	return 0;
}

/* ---- guest run ---- */

enum { FROM_OUT, FROM_ERR, FROM_RC, FROM_END, NUM_FROM };

struct relay {
	struct pollfd from[NUM_FROM];
	char rc[16];
	size_t rc_len;
	bool broken; /* our own stdout is gone */
};

/* False when there was nothing. */
static bool relay_one(struct relay *r, int which)
{
	char buf[16384];
	ssize_t n = r->from[which].fd >= 0 ? read(r->from[which].fd, buf, sizeof buf) : -1;

	if (n <= 0) {
		if (n == 0)
			r->from[which].fd = -1;
		return false;
	}
	if (which == FROM_RC) {
		for (ssize_t i = 0; i < n && r->rc_len < sizeof r->rc - 1; i++)
			r->rc[r->rc_len++] = buf[i];
		return true;
	}
	for (ssize_t done = 0; done < n && !r->broken;) {
		ssize_t w = write(which == FROM_OUT ? STDOUT_FILENO : STDERR_FILENO, buf + done, (size_t)(n - done));

		if (w < 0 && errno != EINTR)
			r->broken = true;
		done += w > 0 ? w : 0;
	}
	return true;
}

/* Passes on what comes until the status has come, the guest is gone (-EIO) or the time is up (-ETIMEDOUT). */
static int relay_all(struct relay *r, uint64_t end_ns)
{
	bool ended = false, late = false;

	for (int i = 0; i < FROM_END; i++)
		fcntl(r->from[i].fd, F_SETFL, O_NONBLOCK);
	while (!ended && !late && !r->broken && !memchr(r->rc, '\n', r->rc_len)) {
		uint64_t now = now_ns(), left_ms = now < end_ns ? (end_ns - now) / NSEC_PER_MSEC + 1 : 0;
		int n = poll(r->from, NUM_FROM, left_ms < INT_MAX ? (int)left_ms : INT_MAX);

		if (n < 0 && errno != EINTR)
			break;
		late = n == 0 && left_ms < INT_MAX;
		for (int i = 0; i < FROM_END; i++)
			if (r->from[i].revents)
				relay_one(r, i);
		ended = r->from[FROM_END].revents != 0;
	}
	for (int i = 0; i < FROM_END; i++)
		while (!r->broken && relay_one(r, i))
			;
	return memchr(r->rc, '\n', r->rc_len) ? (int)strtol(r->rc, NULL, 10) & 0xff : late ? -ETIMEDOUT : -EIO;
}

static void print_file(const char *path, size_t max_lines)
{
	json_t *tail = guest_console_tail(path, max_lines), *line;
	size_t i;

	json_array_foreach(tail, i, line)
		fprintf(stderr, "    %s\n", json_string_value(line));
	json_decref(tail);
}

static void tell_end(const struct input *in, struct guest *g, int why, const char *dir, const char *console)
{
	char path[PATH_MAX + 32], limit[32];

	if (why != -ETIMEDOUT) {
		log_error("the guest ended before the command did; its console's last lines:");
		print_file(console, 40);
		return;
	}
	snprintf(path, sizeof path, "%s/" REGISTERS, dir);
	guest_look(g, path);
	log_error("the command has not ended within %s (--deadline); what the guest's kernel says, and its processors:",
		  units_format_ns(in->deadline_ns, limit, sizeof limit));
	print_file(console, 200);
	print_file(path, 80);
}

static int run_in_guest(const struct input *in, struct session *s, struct error *e)
{
	const char *const shell_line[] = { "/bin/bash", "-c", in->command[0], NULL };
	char cwd[PATH_MAX], console[PATH_MAX + 32];
	const char **words = NULL;
	/* A single word is a line for the shell. */
	int rc = command_words(in, s, in->n_command == 1 ? shell_line : (const char *const *)in->command, &words, e);

	if (rc < 0)
		return rc;
	const struct guest_boot what = {
		.argv = words, .cwd = getcwd(cwd, sizeof cwd), .out = "out", .err = "err", .status = "status"
	};
	const struct guest_saved_options so = { .kernel = &s->kernel, .accel = s->accel, .inner = s->inner, .journal = s->journal };
	int err[2] = { -1, -1 }, status[2] = { -1, -1 };
	struct guest g;

	if (!in->cold)
		s->saved = guest_saved_find(&so);

	rc = guest_write_boot(s->dir, BOOT_FILE, &s->kernel, in->share ? s->share : NULL, &what, e);
	free(words);
	if (rc == 0 && (pipe2(err, O_CLOEXEC) < 0 || pipe2(status, O_CLOEXEC) < 0))
		rc = error_set(e, -errno, "no pipe: %s", strerror(errno));
	if (rc < 0)
		goto close_pipes;
	fcntl(err[1], F_SETFD, 0);
	fcntl(status[1], F_SETFD, 0);
	snprintf(console, sizeof console, "%s/console.log", s->dir);
	const struct guest_port ports[] = { { "out", -1, false }, { "err", err[1], false }, { "status", status[1], false } };
	const struct guest_options o = { .kernel = &s->kernel,
					 .accel = s->accel,
					 .share = s->dir,
					 .boot_file = BOOT_FILE,
					 .console = console,
					 .ports = ports,
					 .n_ports = 3,
					 .extra_share = in->share ? s->share : NULL,
					 .shell_fd = -1,
					 .err_fd = -1,
					 .saved = s->saved };

	rc = guest_start(&o, s->journal, &g, e);
	if (rc < 0)
		goto close_pipes;
	struct relay r = {
		.from = { { g.proc.out, POLLIN, 0 }, { err[0], POLLIN, 0 }, { status[0], POLLIN, 0 }, { g.proc.pidfd, POLLIN, 0 } }
	};

	rc = relay_all(&r, now_ns() + in->deadline_ns);
	if (rc < 0)
		tell_end(in, &g, rc, s->dir, console);
	guest_stop(&g);
	rc = rc < 0 ? EXIT_GUEST_LOST : rc;
close_pipes:
	for (int i = 0; i < 2; i++) {
		if (err[i] >= 0)
			close(err[i]);
		if (status[i] >= 0)
			close(status[i]);
	}
	return rc;
}

/* ---- guest shell ---- */

/* The terminal is QEMU's: keys and signals go to the guest. */
static int run_on_terminal(char **argv, struct journal *journal, struct error *e)
{
	pid_t parent = getpid(), pid = fork();
	int id = 0, status = 0;

	if (pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent)
			execvp(argv[0], argv);
		_exit(127);
	}
	if (pid < 0)
		return error_set(e, -errno, "fork: %s", strerror(errno));
	int rc = journal_add_process(journal, pid, &id, e);

	if (rc < 0)
		kill(pid, SIGKILL);
	signal(SIGINT, SIG_IGN);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (id)
		journal_done(journal, id);
	if (rc == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127)
		rc = error_set(e, -ENOENT, "qemu-system-x86_64 is missing: `make setup` installs it");
	return rc;
}

static int shell_in_guest(const struct input *in, struct session *s, struct error *e)
{
	static const char greeting[] = "echo 'In the guest: the host is read-only below a scratch layer. exit ends it.'; exec env "
				       "PS1='guest:\\w\\$ ' bash --norc -i";
	const char *term = getenv("TERM"), *env[2] = { NULL }, **words = NULL;
	struct winsize w;
	char cwd[PATH_MAX], term_var[128], line[256], **argv = NULL;
	const struct guest_machine cold = { .kind = GUEST_COLD, .tell_rate = true, .qmp_fd = -1, .control_fd = -1 };
	const struct guest_options o = { .kernel = &s->kernel,
					 .accel = s->accel,
					 .share = s->dir,
					 .boot_file = BOOT_FILE,
					 .extra_share = in->share ? s->share : NULL,
					 .shell_fd = -1,
					 .err_fd = -1 };
	int rc;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return error_set(e, -ENOTTY, "guest shell wants a terminal; `guest run CMD` does without");
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_row == 0 || w.ws_col == 0)
		w = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	snprintf(term_var, sizeof term_var, "TERM=%s", term ? term : "linux");
	env[0] = term_var;
	snprintf(line, sizeof line, "stty rows %u cols %u; %s", w.ws_row, w.ws_col, greeting);
	rc = command_words(in, s, (const char *const[]){ "/bin/bash", "-c", line, NULL }, &words, e);
	if (rc < 0)
		return rc;
	const struct guest_boot what = { .argv = words, .env = env, .cwd = getcwd(cwd, sizeof cwd), .tty = "/dev/ttyS0" };

	rc = guest_write_boot(s->dir, BOOT_FILE, &s->kernel, in->share ? s->share : NULL, &what, e);
	free(words);
	if (rc == 0)
		rc = guest_argv(&o, &cold, &argv, e);
	if (rc == 0)
		rc = run_on_terminal(argv, s->journal, e);
	guest_argv_free(argv);
	return rc;
}

static int prepare(const struct input *in, struct error *e)
{
	struct guest_kernel k;
	const char *accel;
	int rc = guest_kernel_find(in->kernel, in->modules, in->update, &k, e);

	if (rc < 0)
		return rc;
	rc = guest_accel(in->accel, &k, &accel, e);
	if (rc == 0)
		printf("kernel %s\nimage %s\nmodules %s\naccel %s\n", k.release, k.image, k.modules, accel);
	guest_kernel_release(&k);
	return rc;
}

int cmd_guest(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "shell\nrun COMMAND...\nprepare",
		.doc = "A small virtual machine whose kernel has rxe, with this machine's files (read-only).\v"
		       "shell: a shell in it. run: runs COMMAND in it, prints what it prints and ends with its status (125: the "
		       "guest was lost); a single "
		       "word is a line for bash. prepare: puts its kernel into the cache.",
	};
	struct input in = { .accel = "auto", .deadline_ns = 3600 * NSEC_PER_SEC };
	struct session s = { .dir = "" };
	struct error e = { "" };
	int rc;

	if (argc > 1 && argv[1][0] != '-') {
		in.verb = argv[1];
		argv[1] = argv[0];
		argc--;
		argv++;
	}
	/* Options end where the command begins. */
	setenv("POSIXLY_CORRECT", "1", 1);
	command_parse(&argp, argc, argv, &in);
	unsetenv("POSIXLY_CORRECT");
	if (!in.verb) {
		log_error("guest: shell, run or prepare?");
		return EXIT_USAGE;
	}
	if (strcmp(in.verb, "prepare") == 0) {
		rc = prepare(&in, &e);
	} else if (strcmp(in.verb, "shell") == 0 && in.run_dir) {
		rc = guest_shell_attach(in.run_dir, &e);
	} else if (strcmp(in.verb, "shell") == 0 || (strcmp(in.verb, "run") == 0 && in.n_command)) {
		rc = session_open(&s, &in, &e);
		if (rc == 0)
			rc = in.verb[0] == 's' ? shell_in_guest(&in, &s, &e) : run_in_guest(&in, &s, &e);
		session_close(&s);
	} else {
		log_error("guest %s: %s", in.verb,
			  strcmp(in.verb, "run") == 0 ? "which command?" : "there are shell, run and prepare");
		return EXIT_USAGE;
	}
	if (rc < 0)
		log_error("%s", e.text);
	return rc < 0 ? EXIT_ERROR : rc;
}
