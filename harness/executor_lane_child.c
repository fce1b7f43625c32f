/* SPDX-License-Identifier: MIT */
/* A lane's process: one controller, one case at a time, as it is asked. */
#include "executor_lane.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "controller.h"
#include "file_line.h"
#include "json.h"
#include "line.h"
#include "log.h"
#include "loop.h"
#include "proc.h"
#include "profile.h"
#include "units.h"

/* Who looks at the progress sees a step that takes as long; what is over sooner is not told, and costs nothing. */
#define STEP_TOLD_NS (200 * NSEC_PER_MSEC)
/* Documentation/admin-guide/tainted-kernels: died, warned, locked up. */
#define TAINT_MARKS (1ul << 7 | 1ul << 9 | 1ul << 14)

struct child {
	const struct lane_child *what;
	sd_event *loop;
	struct line *line;
	struct controller *controller;
	struct profile profile;
	bool has_profile;
	unsigned long taint;
	json_t *todo; /* requests in the order they came */
	bool ended;
	bool resume;              /* a case that has stopped is to go on */
	sd_event_source *telling; /* of the step that runs then */
	int step;
	char case_id[512], doing[32];
};

static unsigned long read_taint(void)
{
	char buf[32];

	file_line("/proc/sys/kernel/tainted", buf, sizeof buf);
	return strtoul(buf, NULL, 10) & TAINT_MARKS;
}

static void tell(struct child *c, json_t *message)
{
	if (line_send(c->line, message) < 0)
		log_warn("lane %d: cannot write to its parent", c->what->lane.lane);
	json_decref(message);
}

/* ---- cases ---- */

static int on_told(sd_event_source *source, uint64_t usec, void *user)
{
	struct child *c = user;

	(void)source;
	(void)usec;
	c->telling = sd_event_source_disable_unref(c->telling);
	tell(c, json_pack("{s:s,s:s,s:i,s:s}", "case", c->case_id, "state", "step", "step", c->step, "what", c->doing));
	return 0;
}

static void on_step(void *user, const char *case_id, int step, const char *what)
{
	struct child *c = user;

	c->step = step;
	snprintf(c->case_id, sizeof c->case_id, "%s", case_id);
	snprintf(c->doing, sizeof c->doing, "%s", what ? what : "?");
	if (!c->telling)
		loop_timer(c->loop, now_ns() + STEP_TOLD_NS, on_told, c, &c->telling);
}

static void on_pause(void *user, const json_t *where)
{
	struct child *c = user;

	c->resume = false;
	tell(c, json_incref((json_t *)where));
}

static bool resumed(void *user)
{
	const struct child *c = user;

	return c->resume || c->ended;
}

static void load_profile(struct child *c, const char *case_dir)
{
	char path[PATH_MAX];
	struct diag d = { 0 };
	struct error e;
	struct utsname u;

	snprintf(path, sizeof path, "%s/profile.yaml", case_dir);
	uname(&u);
	if (access(path, R_OK) != 0)
		return;
	if (profile_load(path, u.release, &c->profile, &d, &e) == 0)
		c->has_profile = true;
	else
		log_warn("%s: %s", path, d.text ? d.text : e.text);
	diag_release(&d);
}

static int make_controller(struct child *c, const char *case_dir, struct error *e)
{
	/* One profile serves a whole run: every case folder has the same copy. */
	if (!c->has_profile)
		load_profile(c, case_dir);
	const struct controller_options o = {
		.agent_path = c->what->agent,
		.wire_path = c->what->wire,
		.launch = c->what->o->launch,
		.profile = c->has_profile ? &c->profile : NULL,
		.witness = c->what->witness,
		.any_link = c->what->o->any_link,
		.keep = c->what->o->keep,
		.on_step = on_step,
		.on_pause = on_pause,
		.resumed = resumed,
		.user = c,
	};

	return controller_new(c->loop, c->what->lab, &c->what->lane, &o, &c->controller, e);
}

static void drop_controller(struct child *c)
{
	controller_free(c->controller);
	c->controller = NULL;
}

static void run_case(struct child *c, const json_t *request)
{
	const char *id = json_str(request, "case"), *dir = json_str(request, "dir");
	const struct controller_complaints none = { 0 }, *said = &none;
	uint64_t begin = now_ns();
	struct error e = { "" };
	bool stuck = false;
	int rc;

	tell(c, json_pack("{s:s,s:s}", "case", id, "state", "start"));
	/* With keep nothing was let go after the case before: its agents go now. */
	if (c->what->o->keep && c->controller)
		drop_controller(c);
	rc = c->controller ? 0 : make_controller(c, dir, &e);
	if (rc == 0)
		rc = controller_run_case(c->controller, dir, &e);
	c->telling = sd_event_source_disable_unref(c->telling);
	if (c->controller) {
		said = controller_complaints(c->controller);
		stuck = controller_is_stuck(c->controller);
	}
	tell(c, json_pack("{s:s,s:s,s:I,s:b,s:b,s:i,s:i,s:s,s:s}", "case", id, "state", "done", "dur_ns",
			  (json_int_t)(now_ns() - begin), "marked", (read_taint() & ~c->taint) != 0, "stuck", stuck, "own",
			  (int)said->own, "other", (int)said->other, "complaint", said->first, "error", e.text));
	if (rc < 0 && c->controller && !c->what->o->keep)
		drop_controller(c);
}

/* ---- what is measured between cases ---- */

/* How long n spawns of /bin/true take, one by one. */
static void measure_spawns(struct child *c, int n)
{
	const char *const argv[] = { "/bin/true", NULL };
	json_t *list = json_array();

	for (int i = 0; i < n; i++) {
		uint64_t begin = now_ns();
		struct error e;

		if (proc_run((char *const *)argv, 10 * NSEC_PER_SEC, NULL, &e) == 0)
			json_array_append_new(list, json_integer((json_int_t)(now_ns() - begin)));
	}
	tell(c, json_pack("{s:o}", "spawn_ns", list));
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

/* Peak memory of this controller, and of the agents and wires that it keeps. */
static void measure_memory(struct child *c)
{
	json_t *agents = json_array(), *wires = json_array();
	DIR *proc = opendir("/proc");

	for (const struct dirent *d; proc && (d = readdir(proc));) {
		char path[300], name[32] = "";

		if (d->d_name[0] < '1' || d->d_name[0] > '9' || status_value(d->d_name, "PPid:") != getpid())
			continue;
		snprintf(path, sizeof path, "/proc/%s/comm", d->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			continue;
		if (read(fd, name, sizeof name - 1) > 0) {
			json_t *of = strncmp(name, "qpdrill-agent", 13) == 0  ? agents
				     : strncmp(name, "qpdrill-wire", 12) == 0 ? wires
									      : NULL;

			if (of)
				json_array_append_new(of, json_integer(status_value(d->d_name, "VmHWM:")));
		}
		close(fd);
	}
	if (proc)
		closedir(proc);
	tell(c, json_pack("{s:{s:i,s:o,s:o}}", "memory_kb", "controller", (int)status_value("self", "VmHWM:"), "agents", agents,
			  "wires", wires));
}

/* ---- requests ---- */

static void on_json(void *user, json_t *value)
{
	struct child *c = user;

	if (json_bool(value, "resume", false))
		c->resume = true;
	else
		json_array_append(c->todo, value);
}

static void on_text(void *user, const char *text)
{
	(void)user;
	log_warn("lane: not JSON: %.80s", text);
}

static void on_end(void *user, int err)
{
	struct child *c = user;

	(void)err;
	c->ended = true;
}

static bool has_work(void *user)
{
	const struct child *c = user;

	return c->ended || json_array_size(c->todo) > 0;
}

static int serve(struct child *c)
{
	for (;;) {
		int rc = loop_wait(c->loop, has_work, c, UINT64_MAX);

		if (rc < 0 || c->ended)
			return rc;
		json_t *request = json_incref(json_array_get(c->todo, 0));

		json_array_remove(c->todo, 0);
		if (json_str(request, "case") && json_str(request, "dir"))
			run_case(c, request);
		else if (json_int(request, "spawn", 0) > 0)
			measure_spawns(c, (int)json_int(request, "spawn", 0));
		else if (json_bool(request, "memory", false))
			measure_memory(c);
		json_decref(request);
	}
}

_Noreturn void lane_child_main(const struct lane_child *what, int fd)
{
	static const struct line_ops ops = { .on_json = on_json, .on_text = on_text, .on_end = on_end };
	struct child c = { .what = what, .todo = json_array(), .taint = read_taint() };
	struct error e;
	int out = fcntl(fd, F_DUPFD_CLOEXEC, 3), rc = sd_event_new(&c.loop);

	if (rc >= 0)
		rc = out < 0 ? -errno : line_new(c.loop, fd, out, &ops, &c, &c.line);
	if (rc < 0)
		_exit(3);
	rc = what->lab->ops->forked(what->lab, &e);
	if (rc < 0)
		log_error("lane %d: %s", what->lane.lane, e.text);
	else
		rc = serve(&c);
	drop_controller(&c);
	_exit(rc < 0 ? 3 : 0);
}
