/* SPDX-License-Identifier: MIT */
/* The inner controller: brings the lanes of a guest up, passes on what the outer one hands out and what the lanes say. */
#include "executor.h"

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
#include "units.h"

struct inner {
	const char *run_dir;
	struct line *line;
	struct lanes *lanes;
	bool ended;
};

static void tell(struct inner *in, json_t *message)
{
	if (line_send(in->line, message) < 0)
		log_warn("channel: cannot write");
	json_decref(message);
}

/* ---- from the lanes ---- */

static void on_message(void *user, unsigned lane, json_t *message)
{
	json_t *copy = json_copy(message);

	json_object_set_new(copy, "lane", json_integer(lane));
	tell(user, copy);
}

static void on_gone(void *user, unsigned lane, const char *why)
{
	tell(user, json_pack("{s:i,s:s}", "lane", (int)lane, "gone", why));
}

/* ---- from outside ---- */

static void on_json(void *user, json_t *value)
{
	struct inner *in = user;
	const char *dir = json_str(value, "dir");
	unsigned lane = (unsigned)json_int(value, "lane", 0);
	json_t *request;

	if (json_bool(value, "bye", false)) {
		in->ended = true;
		return;
	}
	request = json_copy(value);
	json_object_del(request, "lane");
	if (dir)
		json_object_set_new(request, "dir", json_sprintf("%s/%s", in->run_dir, dir));
	if (lanes_ask(in->lanes, lane, request) < 0)
		on_gone(in, lane, "takes no request");
	json_decref(request);
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

static bool has_ended(void *user)
{
	return ((const struct inner *)user)->ended;
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
	struct inner in = { .run_dir = run_dir };
	json_t *options = NULL;
	const char **launch = NULL;
	sd_event *loop = NULL;
	char path[PATH_MAX];
	int rc = sd_event_default(&loop);

	if (rc < 0)
		return error_set(e, rc, "event loop: %s", strerror(-rc));
	snprintf(path, sizeof path, "%s/inner.json", run_dir);
	rc = json_load(path, &options, e);
	if (rc < 0)
		goto free_loop;
	log_init("qpdrill-inner", json_bool(options, "verbose", false));
	rc = open_channel(&in, loop, channel, e);
	if (rc < 0)
		goto free_options;
	launch = launch_of(options);
	const struct lanes_options lo = {
		.launch = launch,
		.rdma_core = json_str(options, "rdma_core"),
		.kept = access(GUEST_BOOT_LANES, R_OK) == 0 ? GUEST_BOOT_LANES : NULL,
		.boot = (int)json_int(options, "boot", 1),
		.n = (unsigned)json_int(options, "lanes", 1),
		.wire = json_bool(options, "wire", false),
		.keep = json_bool(options, "keep", false),
		.on_message = on_message,
		.on_gone = on_gone,
		.user = &in,
	};

	rc = lanes_open(loop, &lo, &in.lanes, e);
	if (rc < 0) {
		tell(&in, json_pack("{s:s}", "error", e->text));
		goto free_line;
	}
	tell(&in, json_pack("{s:o}", "ready", lanes_environment(in.lanes)));
	rc = loop_wait(loop, has_ended, &in, UINT64_MAX);
	tell(&in, json_pack("{s:b}", "bye", true));
free_line:
	line_flush(in.line, 2 * NSEC_PER_SEC);
	line_free(in.line);
free_options:
	/* The lanes go with the guest: taking them down costs time and shows nothing. */
	json_decref(options);
	free(launch);
free_loop:
	sd_event_unref(loop);
	return rc;
}
