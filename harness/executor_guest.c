/* SPDX-License-Identifier: MIT */
/* The outer controller: boots guests, hands out cases one by one, takes a dead or silent guest as the finding of the case it ran.
 */
#include "executor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data.h"
#include "executor_crash.h"
#include "guest.h"
#include "guest_saved.h"
#include "guest_shell.h"
#include "journal.h"
#include "json.h"
#include "line.h"
#include "log.h"
#include "loop.h"
#include "units.h"

#define BOOT_TIMEOUT_NS (90 * NSEC_PER_SEC)
#define CASE_MARGIN_NS (45 * NSEC_PER_SEC) /* more than the longest single wait, a lab command's */
#define BYE_TIMEOUT_NS (5 * NSEC_PER_SEC)
#define BOOT_TRIES 2

struct outer {
	sd_event *loop;
	const struct executor_options *o;
	const struct executor_queue *queue;
	char run_dir[PATH_MAX];
	struct journal *journal;
	struct guest_kernel kernel;
	const char *accel;
	char qemu[64];
	char *inner; /* the program that runs in the guest */
	struct guest_saved *saved;
	bool environment_told;

	/* of the present boot */
	int boot;
	struct guest guest;
	struct line *line;
	sd_event_source *exit_source;
	int shell_fd;
	char console[PATH_MAX + 32], qemu_log[PATH_MAX + 32];
	bool up;   /* started and not yet taken down */
	bool gone; /* QEMU has ended, or its channel */
	bool ready, done, marked, bye;
	json_t *environment;
	struct error inner_error;
	size_t index; /* of the running case */
	uint64_t dur_ns;
};

static bool stopped(const struct outer *x)
{
	return x->o->stop && *x->o->stop;
}

/* ---- what the inner controller says ---- */

static void on_case_state(struct outer *x, const json_t *value)
{
	const char *state = json_str(value, "state"), *id = json_str(value, "case");

	if (!state || !id || strcmp(id, x->queue->cases[x->index].id) != 0)
		return;
	if (strcmp(state, "step") == 0) {
		if (x->o->on_step)
			x->o->on_step(x->o->user, x->index, (int)json_int(value, "step", 0), json_str(value, "what") ?: "");
	} else if (strcmp(state, "done") == 0) {
		x->done = true;
		x->marked = json_bool(value, "marked", false);
		x->dur_ns = json_u64(value, "dur_ns", 0);
		if (json_str(value, "error") && json_str(value, "error")[0])
			log_warn("%s: %s", id, json_str(value, "error"));
	}
}

static void on_json(void *user, json_t *value)
{
	struct outer *x = user;

	if (json_object_get(value, "ready")) {
		x->ready = true;
		json_decref(x->environment);
		x->environment = json_incref(json_object_get(value, "ready"));
	} else if (json_str(value, "error") && !json_str(value, "case")) {
		error_set(&x->inner_error, -EIO, "in the guest: %s", json_str(value, "error"));
	} else if (json_bool(value, "bye", false)) {
		x->bye = true;
	} else {
		on_case_state(x, value);
	}
}

static void on_text(void *user, const char *text)
{
	(void)user;
	log_warn("channel of the guest: not JSON: %.80s", text);
}

static void on_end(void *user, int err)
{
	struct outer *x = user;

	(void)err;
	x->gone = true;
}

static int on_exit_event(sd_event_source *source, int fd, uint32_t events, void *user)
{
	struct outer *x = user;

	(void)fd;
	(void)events;
	sd_event_source_set_enabled(source, SD_EVENT_OFF);
	x->gone = true;
	return 0;
}

/* ---- a boot ---- */

static int write_inner_options(struct outer *x, struct error *e)
{
	json_t *launch = json_array();
	char path[PATH_MAX + 32];

	for (const char *const *word = x->o->launch; word && *word; word++)
		json_array_append_new(launch, json_string(*word));
	json_t *options = json_pack("{s:i,s:o,s:s?,s:b,s:b}", "boot", x->boot, "launch", launch, "rdma_core", x->o->rdma_core,
				    "keep", x->o->keep, "verbose", x->o->verbose);

	snprintf(path, sizeof path, "%s/inner.json", x->run_dir);
	int rc = options ? json_save(path, options, e) : error_set(e, -ENOMEM, "out of memory");

	json_decref(options);
	return rc;
}

static int start_guest(struct outer *x, struct error *e)
{
	static const struct line_ops ops = { .on_json = on_json, .on_text = on_text, .on_end = on_end };
	const struct guest_port port = { .name = "channel", .fd = -1 };
	const char *const argv[] = { x->inner, x->run_dir, NULL };
	const struct guest_boot what = { .argv = argv, .channel = port.name, .shell = x->o->keep, .early = true };
	char boot_file[32];
	int rc;

	snprintf(boot_file, sizeof boot_file, "boot-%d.txt", x->boot);
	snprintf(x->console, sizeof x->console, "%s/console-%d.log", x->run_dir, x->boot);
	snprintf(x->qemu_log, sizeof x->qemu_log, "%s/qemu-%d.log", x->run_dir, x->boot);
	rc = write_inner_options(x, e);
	if (rc == 0)
		rc = guest_write_boot(x->run_dir, boot_file, &x->kernel, NULL, &what, e);
	if (rc == 0 && x->o->keep)
		rc = guest_shell_listen(x->run_dir, &x->shell_fd, e);
	if (rc < 0)
		return rc;
	int log_fd = open(x->qemu_log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	const struct guest_options go = {
		.kernel = &x->kernel,
		.accel = x->accel,
		.share = x->run_dir,
		.boot_file = boot_file,
		.console = x->console,
		.ports = &port,
		.n_ports = 1,
		.shell_fd = x->shell_fd,
		.err_fd = log_fd,
		.saved = x->saved,
	};

	rc = guest_start(&go, x->journal, &x->guest, e);
	if (log_fd >= 0)
		close(log_fd);
	if (rc < 0)
		return rc;
	x->up = true;
	rc = sd_event_add_io(x->loop, &x->exit_source, x->guest.proc.pidfd, EPOLLIN, on_exit_event, x);
	if (rc >= 0)
		rc = line_new(x->loop, x->guest.proc.out, x->guest.proc.in, &ops, x, &x->line);
	if (rc < 0)
		return error_set(e, rc, "guest: %s", strerror(-rc));
	/* Descriptors of the line now. */
	x->guest.proc.in = x->guest.proc.out = -1;
	return 0;
}

static void take_down(struct outer *x)
{
	struct stat st;

	x->exit_source = sd_event_source_disable_unref(x->exit_source);
	line_free(x->line);
	x->line = NULL;
	if (x->up)
		guest_stop(&x->guest);
	if (x->shell_fd >= 0)
		guest_shell_unlisten(x->run_dir, x->shell_fd);
	x->shell_fd = -1;
	x->up = x->gone = x->ready = x->done = x->marked = x->bye = false;
	if (x->qemu_log[0] && stat(x->qemu_log, &st) == 0 && st.st_size == 0)
		unlink(x->qemu_log);
}

static bool boot_settled(void *user)
{
	const struct outer *x = user;

	return x->ready || x->gone || x->inner_error.text[0] || stopped(x);
}

static int boot_failed(struct outer *x, int rc, struct error *e)
{
	json_t *console = guest_console_tail(x->console, 5), *qemu = guest_console_tail(x->qemu_log, 3), *line;
	char tail[768] = "";
	size_t i, used = 0;

	if (x->inner_error.text[0])
		error_set(e, -EIO, "%s", x->inner_error.text);
	else
		error_set(e, -EIO, "the guest %s",
			  rc == -ETIMEDOUT ? "did not become ready within 90 s" : "ended before it was ready");
	json_array_extend(qemu, console);
	json_array_foreach(qemu, i, line) {
		int n = snprintf(tail + used, sizeof tail - used, "\n    %s", json_string_value(line));

		used += n > 0 && used + (size_t)n < sizeof tail ? (size_t)n : 0;
	}
	tail[used] = '\0';
	json_decref(console);
	json_decref(qemu);
	struct error head = *e;

	return error_set(e, -EIO, "%s; console: %s; it ends in:%s", head.text, x->console, used ? tail : " (nothing was printed)");
}

static int boot_once(struct outer *x, struct error *e)
{
	uint64_t begin = now_ns();
	int rc;

	x->boot++;
	x->inner_error.text[0] = '\0';
	rc = start_guest(x, e);
	if (rc == 0)
		log_info("guest: %s %s (QEMU %s, %s)", x->guest.control >= 0 ? "restored" : "booting", x->kernel.release, x->qemu,
			 x->accel);
	if (rc == 0) {
		rc = loop_wait(x->loop, boot_settled, x, now_ns() + BOOT_TIMEOUT_NS);
		if (stopped(x))
			rc = error_set(e, -EINTR, "interrupted");
		else if (!x->ready)
			rc = boot_failed(x, rc, e);
		if (rc < 0 && rc != -EINTR && x->guest.control >= 0)
			guest_saved_drop(x->saved, e->text);
	}
	if (rc < 0) {
		take_down(x);
		return rc;
	}
	log_debug("guest: ready after %llu ms", (unsigned long long)((now_ns() - begin) / NSEC_PER_MSEC));
	if (!x->environment_told && x->o->on_environment) {
		json_object_set_new(x->environment, "lab", json_string("guest"));
		json_object_set_new(x->environment, "qemu", json_string(x->qemu));
		json_object_set_new(x->environment, "accel", json_string(x->accel));
		x->o->on_environment(x->o->user, x->environment);
	}
	x->environment_told = true;
	return 0;
}

static int boot(struct outer *x, struct error *e)
{
	int rc = -EIO;

	for (int try = 0; try < BOOT_TRIES && rc < 0 && !stopped(x); try++) {
		if (try > 0)
			log_warn("%s\nguest: one more try", e->text);
		rc = boot_once(x, e);
	}
	return rc;
}

/* ---- cases ---- */

static bool case_settled(void *user)
{
	const struct outer *x = user;

	return x->done || x->gone || stopped(x);
}

/* Relative to the run folder, as the inner controller sees it. */
static const char *case_dir(const struct outer *x, size_t i)
{
	const char *dir = x->queue->cases[i].dir, *cut = x->o->run_dir;
	size_t len = strlen(cut);

	return strncmp(dir, cut, len) == 0 && dir[len] == '/' ? dir + len + 1 : dir;
}

/* The guest's first program powers it off when what it started has ended. */
static bool inner_ended(const struct outer *x)
{
	json_t *tail = guest_console_tail(x->console, 2), *line;
	bool found = false;
	size_t i;

	json_array_foreach(tail, i, line)
		found |= strstr(json_string_value(line), "reboot: Power down") != NULL;
	json_decref(tail);
	return found;
}

static void look(struct outer *x)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof path, "%s/registers-%d.txt", x->run_dir, x->boot);
	guest_look(&x->guest, path);
}

static int guest_is_lost(struct outer *x, size_t i, int rc, struct error *e)
{
	char text[160];
	int status = proc_poll(&x->guest.proc) ? x->guest.proc.status : -1;

	if (rc == -ETIMEDOUT && status < 0) {
		look(x);
		snprintf(text, sizeof text,
			 "no answer within %llu s (the case's time and %llu s more); its kernel was asked what it does, and it was "
			 "ended",
			 (unsigned long long)((x->queue->cases[i].budget_ns + CASE_MARGIN_NS) / NSEC_PER_SEC),
			 CASE_MARGIN_NS / NSEC_PER_SEC);
	} else if (status > 0 && WIFSIGNALED(status))
		snprintf(text, sizeof text, "its QEMU was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (status > 0)
		snprintf(text, sizeof text, "its QEMU ended with status %d", WEXITSTATUS(status));
	else if (inner_ended(x))
		snprintf(text, sizeof text, "the controller in it has ended, or was ended");
	else
		snprintf(text, sizeof text, "its kernel stopped or restarted");
	log_warn("%s: the guest is lost: %s", x->queue->cases[i].id, text);
	return executor_crash_record(x->queue->cases[i].dir, x->console, x->boot, text, e);
}

/* Runs case i in the guest that is up. *ret_fresh: the next case needs a new one. */
static int run_case(struct outer *x, size_t i, bool *ret_fresh, struct error *e)
{
	uint64_t begin = now_ns();
	json_t *request = json_pack("{s:s,s:s}", "case", x->queue->cases[i].id, "dir", case_dir(x, i));
	int rc;

	x->index = i;
	x->done = x->marked = false;
	x->dur_ns = 0;
	x->o->on_start(x->o->user, i);
	rc = line_send(x->line, request);
	json_decref(request);
	if (rc == 0)
		rc = loop_wait(x->loop, case_settled, x, begin + x->queue->cases[i].budget_ns + CASE_MARGIN_NS);
	if (x->done) {
		*ret_fresh = x->marked || x->gone;
		return 0;
	}
	if (stopped(x))
		return error_set(e, -EINTR, "interrupted");
	*ret_fresh = true;
	x->dur_ns = now_ns() - begin;
	return guest_is_lost(x, i, rc, e);
}

static bool said_bye(void *user)
{
	const struct outer *x = user;

	return x->bye || x->gone;
}

static void send_off(struct outer *x)
{
	json_t *bye = json_pack("{s:b}", "bye", true);

	if (x->line && !x->gone && !stopped(x) && line_send(x->line, bye) == 0)
		loop_wait(x->loop, said_bye, x, now_ns() + BYE_TIMEOUT_NS);
	json_decref(bye);
	take_down(x);
}

static bool is_stopped_or_gone(void *user)
{
	const struct outer *x = user;

	return stopped(x) || x->gone;
}

static void keep_up(struct outer *x)
{
	log_info("the guest of %s stays up. Enter it with\n    %s guest shell --run %s\nCtrl-C here ends it",
		 x->queue->cases[x->index].id, x->o->self, x->run_dir);
	loop_wait(x->loop, is_stopped_or_gone, x, UINT64_MAX);
}

static int run_all(struct outer *x, struct error *e)
{
	bool go_on = true, fresh = true, wanted = false;
	int rc = 0;
	size_t i;

	while (go_on && rc == 0 && x->o->next(x->o->user, &i, &wanted) == EXECUTOR_CASE) {
		fresh |= wanted;
		if (fresh) {
			send_off(x);
			rc = boot(x, e);
		}
		fresh = false;
		if (rc == 0 && !stopped(x))
			rc = run_case(x, i, &fresh, e);
		else if (rc == 0)
			rc = error_set(e, -EINTR, "interrupted");
		if (rc == 0)
			go_on = x->o->on_done(x->o->user, i, &(struct executor_end){ .boot = x->boot, .dur_ns = x->dur_ns });
		if (fresh && x->done)
			log_info("guest: its kernel complained; the next case gets a fresh one");
	}
	if (rc == 0 && !go_on && x->o->keep && x->up && !x->gone && !stopped(x))
		keep_up(x);
	send_off(x);
	return rc;
}

static int guest_probe(struct error *e)
{
	char version[64];

	if (!guest_qemu_version(version, sizeof version)[0])
		return error_set(e, -ENOENT, "lab guest needs qemu-system-x86_64: `make setup` installs it");
	return 0;
}

static void find_saved(struct outer *x)
{
	const struct guest_saved_options so = {
		.kernel = &x->kernel, .accel = x->accel, .inner = x->inner, .lanes = GUEST_SAVED_LANES, .journal = x->journal
	};

	x->saved = guest_saved_find(&so);
}

static int guest_run(sd_event *loop, const struct executor_queue *queue, const struct executor_options *o, struct error *e)
{
	struct outer x = { .loop = loop, .o = o, .queue = queue, .shell_fd = -1 };
	unsigned undone = 0;
	int rc = journal_clean(&undone, o->verbose, e);

	if (undone)
		log_info("put back %u change%s that a killed run had left", undone, undone == 1 ? "" : "s");
	if (rc == 0 && !realpath(o->run_dir, x.run_dir))
		rc = error_set(e, -errno, "%s: %s", o->run_dir, strerror(errno));
	if (rc == 0)
		rc = data_program("qpdrill-inner", &x.inner, e);
	if (rc == 0)
		rc = journal_open(&x.journal, e);
	if (rc == 0)
		rc = guest_kernel_find(o->kernel, o->modules, false, &x.kernel, e);
	if (rc == 0)
		rc = guest_accel(o->accel, &x.kernel, &x.accel, e);
	guest_qemu_version(x.qemu, sizeof x.qemu);
	if (rc == 0 && !o->cold)
		find_saved(&x);
	if (rc == 0)
		rc = run_all(&x, e);
	guest_saved_free(x.saved);
	json_decref(x.environment);
	guest_kernel_release(&x.kernel);
	free(x.inner);
	journal_close(x.journal);
	return rc;
}

const struct executor_ops executor_guest = {
	.name = "guest",
	.probe = guest_probe,
	.run = guest_run,
};
