/* SPDX-License-Identifier: MIT */
#include "lab_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "proc.h"
#include "units.h"

#define OUTPUT_MAX (4u << 20)
/* rdma opens a socket for each device that a command looks at and closes none: it would run out of descriptors in a long run. */
#define COMMANDS_MAX 20u
#define DUMPS_MAX 20

struct text {
	char *data;
	size_t len;
};

struct tool_kind {
	const char *name;
	const char *argv[6];
	unsigned commands_max; /* after so many it is begun anew; 0: never */
};

/* -s: counters with every qdisc. rdma reads -batch as -b atch. */
static const struct tool_kind kinds[] = {
	{ "ip", { "-force", "-j", "-batch", "-" }, 0 },
	{ "tc", { "-s", "-force", "-j", "-batch", "-" }, 0 },
	{ "rdma", { "-f", "-j", "-b", "-" }, COMMANDS_MAX },
};

struct lab_tool {
	const struct tool_kind *kind;
	char netns[64];
	struct proc proc;
	bool running;
	int err; /* our end of its stderr */
	unsigned mark;
	struct text out, complaint;
};

int lab_tool_new(const char *name, const char *netns, struct lab_tool **ret, struct error *e)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		if (strcmp(kinds[i].name, name) != 0)
			continue;
		struct lab_tool *t = calloc(1, sizeof *t);

		if (!t)
			return error_set(e, -ENOMEM, "out of memory");
		t->kind = &kinds[i];
		snprintf(t->netns, sizeof t->netns, "%s", netns);
		t->err = -1;
		*ret = t;
		return 0;
	}
	return error_set(e, -EINVAL, "%s: no such program; there are ip, tc and rdma", name);
}

void lab_tool_restart(struct lab_tool *t)
{
	if (t->running)
		proc_stop(&t->proc, SIGKILL, 0);
	t->running = false;
	if (t->err >= 0)
		close(t->err);
	t->err = -1;
}

/* Its descriptors may be closed by now, and stand for something else. */
void lab_tool_forked(struct lab_tool *t)
{
	t->running = false;
	t->proc = (struct proc){ .pidfd = -1, .in = -1, .out = -1 };
	t->err = -1;
}

void lab_tool_free(struct lab_tool *t)
{
	if (!t)
		return;
	lab_tool_restart(t);
	free(t->out.data);
	free(t->complaint.data);
	free(t);
}

int lab_tool_start(struct lab_tool *t, struct error *e)
{
	static const char *const env[] = { "LC_ALL=C", NULL };
	static const char *const folders[] = { "", "/usr/sbin/", "/sbin/" };
	int pipe_fds[2];
	int rc = -ENOENT;

	if (t->running)
		return 0;

	if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_set(e, -errno, "%s: no pipe: %s", t->kind->name, strerror(errno));
	/* Only our end must not block. */
	fcntl(pipe_fds[1], F_SETFL, 0);
	for (size_t f = 0; rc == -ENOENT && f < sizeof folders / sizeof folders[0]; f++) {
		char path[32];
		char *argv[8] = { path };

		snprintf(path, sizeof path, "%s%s", folders[f], t->kind->name);
		for (size_t i = 0; t->kind->argv[i]; i++)
			argv[i + 1] = (char *)t->kind->argv[i];
		rc = proc_spawn_in(t->netns, &t->proc, argv, env, pipe_fds[1], e);
	}
	close(pipe_fds[1]);
	if (rc < 0) {
		close(pipe_fds[0]);
		return error_prefix(e, rc, "%s (package iproute2)", t->kind->name);
	}
	t->err = pipe_fds[0];
	t->running = true;
	fcntl(t->proc.in, F_SETFL, O_NONBLOCK);
	fcntl(t->proc.out, F_SETFL, O_NONBLOCK);
	return 0;
}

/* 1 when there was something, 0 when there is nothing now, -EPIPE at the end, -EFBIG, -ENOMEM. */
static int take(int fd, struct text *t)
{
	char chunk[8192];
	ssize_t n = read(fd, chunk, sizeof chunk);

	if (n == 0)
		return -EPIPE;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (t->len + (size_t)n > OUTPUT_MAX)
		return -EFBIG;
	char *grown = realloc(t->data, t->len + (size_t)n + 1);

	if (!grown)
		return -ENOMEM;
	memcpy(grown + t->len, chunk, (size_t)n);
	t->data = grown;
	t->len += (size_t)n;
	t->data[t->len] = '\0';
	return 1;
}

static void clear(struct text *t)
{
	t->len = 0;
	if (t->data)
		t->data[0] = '\0';
}

static int send_all(struct lab_tool *t, const char *text, uint64_t end)
{
	size_t len = strlen(text), done = 0;

	while (done < len) {
		ssize_t n = write(t->proc.in, text + done, len - done);

		if (n > 0) {
			done += (size_t)n;
			continue;
		}
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		struct pollfd p = { .fd = t->proc.in, .events = POLLOUT };

		if (now_ns() >= end)
			return -ETIMEDOUT;
		poll(&p, 1, 20);
	}
	return 0;
}

/* Reads both streams until the mark has come on stderr, with its line; then what is left on stdout. */
static int await_mark(struct lab_tool *t, const char *mark, uint64_t end)
{
	int rc;

	for (;;) {
		const char *seen = t->complaint.data ? strstr(t->complaint.data, mark) : NULL;

		if (seen && strchr(seen, '\n')) {
			while ((rc = take(t->proc.out, &t->out)) > 0)
				;
			return rc;
		}
		uint64_t now = now_ns();
		struct pollfd p[2] = { { .fd = t->proc.out, .events = POLLIN }, { .fd = t->err, .events = POLLIN } };

		if (now >= end)
			return -ETIMEDOUT;
		if (poll(p, 2, (int)((end - now) / NSEC_PER_MSEC) + 1) <= 0)
			continue;
		for (int i = 0; i < 2; i++) {
			if (!p[i].revents)
				continue;
			rc = take(p[i].fd, i ? &t->complaint : &t->out);
			if (rc < 0)
				return rc;
		}
	}
}

int lab_tool_errno(const char *text)
{
	static const struct {
		const char *part;
		int err;
	} words[] = {
		{ "Cannot find device", ENODEV }, { "Wrong device name", ENODEV }, { "does not exist", ENODEV },
		{ "is unknown", EINVAL },         { "Unknown object", EINVAL },    { "Usage:", EINVAL },
	};
	int found = 0;
	size_t longest = 0;

	/* The longest name wins: "Invalid argument" and not a shorter one inside it. */
	for (int i = 1; i < 134; i++) {
		const char *name = strerrordesc_np(i);

		if (name && strlen(name) > longest && strstr(text, name)) {
			found = i;
			longest = strlen(name);
		}
	}
	for (size_t i = 0; !found && i < sizeof words / sizeof words[0]; i++)
		if (strstr(text, words[i].part))
			found = words[i].err;
	return found ? -found : -EIO;
}

/* Copies the lines of a complaint that say something: not the mark, not the line count. */
static void says(const char *text, const char *mark, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	while (*text && used + 1 < size) {
		size_t len = strcspn(text, "\n");

		if (memmem(text, len, mark, strlen(mark)))
			break;
		if (len && strncmp(text, "Command failed -:", 17) != 0) {
			int n = snprintf(buf + used, size - used, "%s%.*s", used ? "; " : "", (int)len, text);

			used += n > 0 ? (size_t)n : 0;
		}
		text += len + (text[len] == '\n');
	}
}

static void strip_empty(json_t *value)
{
	for (size_t i = json_array_size(value); i-- > 0;)
		if (json_is_object(json_array_get(value, i)) && json_object_size(json_array_get(value, i)) == 0)
			json_array_remove(value, i);
}

static json_t *parse_answer(const struct text *out)
{
	json_t *value = out->len ? json_loadb(out->data, out->len, JSON_DISABLE_EOF_CHECK, NULL) : NULL;

	if (!value && out->len)
		value = json_string(out->data);
	strip_empty(value);
	return value ? value : json_null();
}

/* Sends lines and a mark, and waits for the mark. What was said before it goes to said. */
static int exchange(struct lab_tool *t, const char *lines, uint64_t timeout_ns, char *said, size_t size, struct error *e)
{
	uint64_t end = now_ns() + timeout_ns;
	char mark[32], text[2048];
	int rc = 0;

	snprintf(mark, sizeof mark, "qdmark%u", ++t->mark);
	if (snprintf(text, sizeof text, "%s\n%s\n", lines, mark) >= (int)sizeof text)
		return error_set(e, -EINVAL, "%s: commands of more than 2000 characters", t->kind->name);
	if (t->running && (proc_poll(&t->proc) || (t->kind->commands_max && t->mark % t->kind->commands_max == 0)))
		lab_tool_restart(t);
	if (!t->running)
		rc = lab_tool_start(t, e);
	if (rc < 0)
		return rc;
	/* What an earlier command left unflushed belongs to nobody. */
	while (take(t->proc.out, &t->out) > 0)
		;
	clear(&t->out);
	clear(&t->complaint);
	rc = send_all(t, text, end);
	if (rc == 0)
		rc = await_mark(t, mark, end);
	if (rc < 0) {
		const char *what = rc == -ETIMEDOUT ? "no answer in time; it was ended"
				   : rc == -EPIPE   ? "it ended without an answer"
						    : strerror(-rc);

		lab_tool_restart(t);
		return error_set(e, rc, "%s %s: %s", t->kind->name, lines, what);
	}
	says(t->complaint.data, mark, said, size);
	log_debug("%s %s%s%s", t->kind->name, lines, said[0] ? ": " : "", said);
	if (said[0] && strncmp(said, "Warning", 7) != 0)
		return error_set(e, lab_tool_errno(said), "%s %s: %s", t->kind->name, lines, said);
	return 0;
}

static int refuse_odd(const struct lab_tool *t, const char *text, const char *odd, struct error *e)
{
	if (!strpbrk(text, odd))
		return 0;
	return error_set(e, -EINVAL, "%s %s: a command cannot hold quotes, backslashes, # or a line break", t->kind->name, text);
}

/* Something changed while the kernel was telling what there is. */
static bool is_inconsistent(int rc, const char *said)
{
	return rc < 0 && strstr(said, "Dump was interrupted");
}

int lab_tool_run(struct lab_tool *t, const char *args, uint64_t timeout_ns, json_t **ret_out, struct error *e)
{
	char said[768] = "";
	int rc = refuse_odd(t, args, "\n\\#'\"", e);

	if (rc == 0)
		rc = exchange(t, args, timeout_ns, said, sizeof said, e);
	for (int again = 0; again < DUMPS_MAX && is_inconsistent(rc, said); again++)
		rc = exchange(t, args, timeout_ns, said, sizeof said, e);
	if (rc == 0 && ret_out)
		*ret_out = parse_answer(&t->out);
	return rc;
}

int lab_tool_batch(struct lab_tool *t, const char *lines, uint64_t timeout_ns, struct error *e)
{
	char said[768];
	int rc = refuse_odd(t, lines, "\\#'\"", e);

	return rc ? rc : exchange(t, lines, timeout_ns, said, sizeof said, e);
}
