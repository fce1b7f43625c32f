/* SPDX-License-Identifier: MIT */
/* The inner controller: runs in the guest what the outer one hands out, says how far it is. */
#include "executor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "executor_lane.h"
#include "guest_boot.h"
#include "json.h"
#include "line.h"
#include "log.h"
#include "loop.h"
#include "proc.h"
#include "units.h"

struct inner {
	const char *run_dir;
	struct line *line;
	struct executor_lane *lane;
	json_t *todo;        /* requests in the order they came */
	const char *case_id; /* of the running one */
	bool ended;
};

static void on_json(void *user, json_t *value)
{
	struct inner *in = user;

	json_array_append(in->todo, value);
}

static void on_text(void *user, const char *text)
{
	(void)user;
	log_warn("channel: not JSON: %.80s", text);
}

static void on_end(void *user, int err)
{
	struct inner *in = user;

	(void)err;
	in->ended = true;
}

static bool has_work(void *user)
{
	const struct inner *in = user;

	return in->ended || json_array_size(in->todo) > 0;
}

static void tell(struct inner *in, json_t *message)
{
	if (line_send(in->line, message) < 0)
		log_warn("channel: cannot write");
	json_decref(message);
}

static void on_step(void *user, const char *case_id, int step, const char *what)
{
	struct inner *in = user;

	tell(in, json_pack("{s:s,s:s,s:i,s:s}", "case", case_id, "state", "step", "step", step, "what", what));
}

static void run_case(struct inner *in, const json_t *request)
{
	const char *id = json_str(request, "case"), *dir = json_str(request, "dir");
	struct error e = { "" };
	char path[PATH_MAX];
	uint64_t begin = now_ns();

	snprintf(path, sizeof path, "%s/%s", in->run_dir, dir ? dir : id);
	tell(in, json_pack("{s:s,s:s}", "case", id, "state", "start"));
	executor_lane_run(in->lane, path, &e);
	tell(in, json_pack("{s:s,s:s,s:I,s:b,s:s}", "case", id, "state", "done", "dur_ns", (json_int_t)(now_ns() - begin), "marked",
			   executor_lane_kernel_marked(in->lane), "error", e.text));
}

/* What `qpdrill bench` asks between cases: how long n spawns of /bin/true take, one by one. */
static void measure_spawns(struct inner *in, int n)
{
	const char *const argv[] = { "/bin/true", NULL };
	json_t *list = json_array();

	for (int i = 0; i < n; i++) {
		uint64_t begin = now_ns();
		struct error e;

		if (proc_run((char *const *)argv, 10 * NSEC_PER_SEC, NULL, &e) == 0)
			json_array_append_new(list, json_integer((json_int_t)(now_ns() - begin)));
	}
	tell(in, json_pack("{s:o}", "spawn_ns", list));
}

static long status_value(const char *pid, const char *key)
{
	char path[64], line[256];
	long value = -1;

	snprintf(path, sizeof path, "/proc/%s/status", pid);
	FILE *f = fopen(path, "re");

	while (f && value < 0 && fgets(line, sizeof line, f))
		if (strncmp(line, key, strlen(key)) == 0)
			value = strtol(line + strlen(key), NULL, 10);
	if (f)
		fclose(f);
	return value;
}

/* Peak memory of this controller and of the agents that it keeps. */
static void measure_memory(struct inner *in)
{
	json_t *agents = json_array();
	DIR *proc = opendir("/proc");

	for (const struct dirent *d; proc && (d = readdir(proc));) {
		char path[300], name[32] = "";

		if (d->d_name[0] < '1' || d->d_name[0] > '9' || status_value(d->d_name, "PPid:") != getpid())
			continue;
		snprintf(path, sizeof path, "/proc/%s/comm", d->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd >= 0 && read(fd, name, sizeof name - 1) > 0 && strncmp(name, "qpdrill-agent", 13) == 0)
			json_array_append_new(agents, json_integer(status_value(d->d_name, "VmHWM:")));
		if (fd >= 0)
			close(fd);
	}
	if (proc)
		closedir(proc);
	tell(in, json_pack("{s:{s:i,s:o}}", "memory_kb", "controller", (int)status_value("self", "VmHWM:"), "agents", agents));
}

static int serve(struct inner *in, sd_event *loop)
{
	for (;;) {
		int rc = loop_wait(loop, has_work, in, UINT64_MAX);

		if (rc < 0 || json_array_size(in->todo) == 0)
			return rc;
		json_t *request = json_incref(json_array_get(in->todo, 0));
		bool bye = json_bool(request, "bye", false);

		json_array_remove(in->todo, 0);
		if (json_str(request, "case"))
			run_case(in, request);
		else if (json_int(request, "spawn", 0) > 0)
			measure_spawns(in, (int)json_int(request, "spawn", 0));
		else if (json_bool(request, "memory", false))
			measure_memory(in);
		json_decref(request);
		if (bye)
			return 0;
	}
}

/* inner.json, as the outer controller wrote it for this boot. */
static const char **launch_of(const json_t *options)
{
	const json_t *launch = json_object_get(options, "launch");
	size_t n = json_array_size(launch);
	const char **argv = n ? calloc(n + 1, sizeof *argv) : NULL;

	for (size_t i = 0; argv && i < n; i++)
		argv[i] = json_string_value(json_array_get(launch, i)) ?: "";
	return argv;
}

static int open_channel(struct inner *in, sd_event *loop, const char *channel, struct error *e)
{
	static const struct line_ops ops = { .on_json = on_json, .on_text = on_text, .on_end = on_end };
	int fd = open(channel, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return error_set(e, -errno, "%s: %s", channel, strerror(errno));
	/* The port can be opened once only, and a descriptor can be watched once only. */
	int out = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	int rc = out < 0 ? -errno : line_new(loop, fd, out, &ops, in, &in->line);

	if (rc < 0) {
		close(fd);
		if (out >= 0)
			close(out);
		return error_set(e, rc, "%s: %s", channel, strerror(-rc));
	}
	return 0;
}

int executor_inner(const char *run_dir, const char *channel, struct error *e)
{
	struct inner in = { .run_dir = run_dir, .todo = json_array() };
	json_t *options = NULL;
	const char **launch = NULL;
	sd_event *loop = NULL;
	char path[PATH_MAX];
	int rc = sd_event_default(&loop);

	if (rc < 0 || !in.todo)
		return error_set(e, rc < 0 ? rc : -ENOMEM, "event loop: %s", strerror(rc < 0 ? -rc : ENOMEM));
	snprintf(path, sizeof path, "%s/inner.json", run_dir);
	rc = json_load(path, &options, e);
	if (rc < 0)
		goto free_loop;
	log_init("qpdrill-inner", json_bool(options, "verbose", false));
	rc = open_channel(&in, loop, channel, e);
	if (rc < 0)
		goto free_options;
	launch = launch_of(options);
	const struct lane_options lo = {
		.launch = launch,
		.rdma_core = json_str(options, "rdma_core"),
		.kept = access(GUEST_BOOT_LANES, R_OK) == 0 ? GUEST_BOOT_LANES : NULL,
		.boot = (int)json_int(options, "boot", 1),
		.keep = json_bool(options, "keep", false),
		.on_step = on_step,
		.user = &in,
	};

	rc = executor_lane_open(loop, &lo, &in.lane, e);
	if (rc < 0) {
		tell(&in, json_pack("{s:s}", "error", e->text));
		goto free_line;
	}
	tell(&in, json_pack("{s:o}", "ready", executor_lane_environment(in.lane)));
	rc = serve(&in, loop);
	tell(&in, json_pack("{s:b}", "bye", true));
free_line:
	line_flush(in.line, 2 * NSEC_PER_SEC);
	line_free(in.line);
free_options:
	/* The lane goes with the guest: taking it down costs time and shows nothing. */
	json_decref(options);
	free(launch);
free_loop:
	json_decref(in.todo);
	sd_event_unref(loop);
	return rc;
}
