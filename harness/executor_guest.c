/* SPDX-License-Identifier: MIT */
/* The outer controller: boots guests whose lanes run the cases (executor_pool.h); a dead or silent guest is the finding of the case
 * it ran. */
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
#include "executor_pool.h"
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
#define BYE_TIMEOUT_NS (5 * NSEC_PER_SEC)
#define BOOT_LONGEST_NS (600 * NSEC_PER_SEC)
#define BOOT_LOOK_NS NSEC_PER_SEC
#define BOOT_TRIES 3 /* the second one is cold, whatever the first was */

struct outer {
	sd_event *loop;
	const struct executor_options *o;
	const struct executor_queue *queue;
	struct pool pool;
	char run_dir[PATH_MAX];
	struct journal *journal;
	struct guest_kernel kernel;
	const char *accel;
	char qemu[64];
	char *inner; /* the program that runs in the guest */
	struct guest_saved *saved;
	struct guest_patience patience;
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
	bool ready, bye;
	json_t *environment;
	struct error inner_error;
};

static bool stopped(const struct outer *x)
{
	return x->o->stop && *x->o->stop;
}

/* ---- what the inner controller says ---- */

static void on_json(void *user, json_t *value)
{
	struct outer *x = user;
	unsigned lane = (unsigned)json_int(value, "lane", 0);

	if (json_object_get(value, "ready")) {
		x->ready = true;
		json_decref(x->environment);
		x->environment = json_incref(json_object_get(value, "ready"));
	} else if (json_str(value, "gone")) {
		pool_on_lane_gone(&x->pool, lane, json_str(value, "gone"));
	} else if (json_str(value, "case")) {
		pool_on_message(&x->pool, lane, value);
	} else if (json_str(value, "error")) {
		error_set(&x->inner_error, -EIO, "in the guest: %s", json_str(value, "error"));
	} else if (json_bool(value, "bye", false)) {
		x->bye = true;
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
	pool_on_gone(&x->pool);
}

static int on_exit_event(sd_event_source *source, int fd, uint32_t events, void *user)
{
	struct outer *x = user;

	(void)fd;
	(void)events;
	sd_event_source_set_enabled(source, SD_EVENT_OFF);
	x->gone = true;
	pool_on_gone(&x->pool);
	return 0;
}

/* ---- a boot ---- */

static int write_inner_options(struct outer *x, struct error *e)
{
	json_t *launch = json_array();
	char path[PATH_MAX + 32];

	for (const char *const *word = x->o->launch; word && *word; word++)
		json_array_append_new(launch, json_string(*word));
	json_t *options = json_pack("{s:i,s:i,s:b,s:o,s:s?,s:b,s:b}", "boot", x->boot, "lanes", (int)x->pool.n, "wire", x->o->wire,
				    "launch", launch, "rdma_core", x->o->rdma_core, "keep", x->o->keep, "verbose", x->o->verbose);

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
	const struct guest_boot what = { .argv = argv, .channel = port.name, .shell = x->o->keep || x->o->pause, .early = true };
	char boot_file[32];
	int rc;

	snprintf(boot_file, sizeof boot_file, "boot-%d.txt", x->boot);
	snprintf(x->console, sizeof x->console, "%s/console-%d.log", x->run_dir, x->boot);
	snprintf(x->qemu_log, sizeof x->qemu_log, "%s/qemu-%d.log", x->run_dir, x->boot);
	rc = write_inner_options(x, e);
	if (rc == 0)
		rc = guest_write_boot(x->run_dir, boot_file, &x->kernel, NULL, &what, e);
	if (rc == 0 && (x->o->keep || x->o->pause))
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
	x->up = x->gone = x->ready = x->bye = false;
	if (x->qemu_log[0] && stat(x->qemu_log, &st) == 0 && st.st_size == 0)
		unlink(x->qemu_log);
}

static bool boot_settled(void *user)
{
	const struct outer *x = user;

	return x->ready || x->gone || x->inner_error.text[0] || stopped(x);
}

/* What a processor was waited for does not count. */
static int await_boot(struct outer *x)
{
	uint64_t begin = now_ns(), took = 0;
	int rc = -ETIMEDOUT;

	while (rc == -ETIMEDOUT && took < BOOT_LONGEST_NS && took < BOOT_TIMEOUT_NS + proc_waited_ns(x->guest.proc.pid)) {
		rc = loop_wait(x->loop, boot_settled, x, now_ns() + BOOT_LOOK_NS);
		took = now_ns() - begin;
	}
	return rc;
}

static int boot_failed(struct outer *x, int rc, uint64_t took_ns, struct error *e)
{
	json_t *console = guest_console_tail(x->console, 5), *qemu = guest_console_tail(x->qemu_log, 3), *line;
	char tail[768] = "", took[64];
	size_t i, used = 0;

	units_format_ns(took_ns, took, sizeof took);
	if (x->inner_error.text[0])
		error_set(e, -EIO, "%s", x->inner_error.text);
	else
		error_set(e, -EIO, "the guest %s %s", rc == -ETIMEDOUT ? "was not ready after" : "ended before it was ready, after",
			  took);
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
		rc = await_boot(x);
		if (stopped(x))
			rc = error_set(e, -EINTR, "interrupted");
		else if (!x->ready)
			rc = boot_failed(x, rc, now_ns() - begin, e);
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

/* ---- cases ---- */

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

static int start_case(void *user, unsigned lane, size_t i, struct error *e)
{
	struct outer *x = user;
	json_t *request = json_pack("{s:s,s:s,s:i}", "case", x->queue->cases[i].id, "dir", case_dir(x, i), "lane", (int)lane);
	int rc = line_send(x->line, request);

	json_decref(request);
	/* A channel that broke is found at its end. */
	if (rc < 0)
		log_debug("channel of the guest: %s", strerror(-rc));
	return rc == -ENOMEM ? error_set(e, rc, "out of memory") : 0;
}

static int resume(void *user, unsigned lane)
{
	struct outer *x = user;
	json_t *request = json_pack("{s:b,s:i}", "resume", true, "lane", (int)lane);
	int rc = line_send(x->line, request);

	json_decref(request);
	return rc;
}

static void gone_text(void *user, char *buf, size_t size)
{
	struct outer *x = user;
	int status = proc_poll(&x->guest.proc) ? x->guest.proc.status : -1;

	if (status > 0 && WIFSIGNALED(status))
		snprintf(buf, size, "its QEMU was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (status > 0)
		snprintf(buf, size, "its QEMU ended with status %d", WEXITSTATUS(status));
	else if (inner_ended(x))
		snprintf(buf, size, "the controller in it has ended, or was ended");
	else
		snprintf(buf, size, "its kernel stopped or restarted");
}

static int case_lost(void *user, size_t i, bool whole, const char *why, struct error *e)
{
	struct outer *x = user;

	if (!whole && !x->gone)
		look(x);
	return executor_crash_record(x->queue->cases[i].dir, x->console, x->boot, whole ? "guest" : "lane", why, e);
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

static void keep_up(void *user, size_t i)
{
	struct outer *x = user;

	log_info("the guest of %s stays up. Enter it with\n    %s guest shell --run %s\nCtrl-C here ends it", x->queue->cases[i].id,
		 x->o->self, x->run_dir);
	loop_wait(x->loop, is_stopped_or_gone, x, UINT64_MAX);
}

static int boot(void *user, struct error *e)
{
	struct outer *x = user;
	int rc = -EIO;

	send_off(x);
	for (int try = 0; try < BOOT_TRIES && rc < 0 && !stopped(x); try++) {
		if (try > 0)
			log_warn("%s\nguest: one more try", e->text);
		rc = boot_once(x, e);
	}
	x->pool.boot = x->boot;
	x->pool.gone = x->gone;
	return stopped(x) ? -EINTR : rc;
}

static const struct pool_ops pool_ops = {
	.boot = boot,
	.start = start_case,
	.resume = resume,
	.lost = case_lost,
	.gone_text = gone_text,
	.keep_up = keep_up,
};

static int run_all(struct outer *x, struct error *e)
{
	int rc;

	x->pool = (struct pool){ .loop = x->loop, .o = x->o, .queue = x->queue, .ops = &pool_ops, .user = x, .n = x->o->lanes };
	rc = pool_run(&x->pool, e);
	send_off(x);
	return rc;
}

static int guest_probe(struct error *e)
{
	char version[64];

	if (!guest_qemu_version(version, sizeof version)[0])
		return error_set(e, -ENOENT,
				 "lab guest needs qemu-system-x86_64, which does not say its version: `make setup` installs it");
	return 0;
}

/* Signals and the run's deadline are the loop's, which nobody runs while a guest is waited for. */
static bool ends_meanwhile(void *user)
{
	struct outer *x = user;

	int rc = 1;

	while (!stopped(x) && rc > 0)
		rc = sd_event_run(x->loop, 0);
	if (rc < 0)
		x->patience.fd = -1;
	return stopped(x);
}

static void find_saved(struct outer *x)
{
	const struct guest_saved_options so = { .kernel = &x->kernel,
						.accel = x->accel,
						.inner = x->inner,
						.lanes = GUEST_SAVED_LANES,
						.journal = x->journal,
						.patience = &x->patience };

	x->patience = (struct guest_patience){ .fd = sd_event_get_fd(x->loop), .ends = ends_meanwhile, .user = x };
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
