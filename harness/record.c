/* SPDX-License-Identifier: MIT */
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file_line.h"
#include "json.h"
#include "many.h"
#include "units.h"

#define KEPT_MAX (64u << 10)

struct recorder {
	int fd;
	int boot, lane, step;
	int error;
	uint64_t n;
	char *clk;
	char iter[64];
	uint64_t lag_ns, due_ns; /* due_ns: of what is kept */
	char *kept;
	size_t kept_len, kept_room;
};

int recorder_open(const struct recorder_options *o, struct recorder **ret, struct error *e)
{
	struct recorder *r = calloc(1, sizeof *r);
	int rc;

	if (!r)
		return error_set(e, -ENOMEM, "%s: out of memory", o->path);
	r->boot = o->boot;
	r->lane = o->lane;
	r->lag_ns = o->lag_ns;
	r->clk = strdup(o->clk ? o->clk : "");
	r->fd = open(o->path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
	if (r->fd < 0) {
		rc = error_set(e, -errno, "cannot write %s: %s", o->path, strerror(errno));
		goto free_recorder;
	}
	if (!r->clk) {
		rc = error_set(e, -ENOMEM, "%s: out of memory", o->path);
		goto close_file;
	}
	*ret = r;
	return 0;
close_file:
	close(r->fd);
free_recorder:
	free(r->clk);
	free(r);
	return rc;
}

void recorder_close(struct recorder *r)
{
	if (!r)
		return;
	recorder_flush(r);
	close(r->fd);
	free(r->kept);
	free(r->clk);
	free(r);
}

void recorder_step(struct recorder *r, int step, const char *iter)
{
	r->step = step;
	snprintf(r->iter, sizeof r->iter, "%s", iter ? iter : "");
}

static int write_all(int fd, const char *buf, size_t len)
{
	while (len) {
		ssize_t n = write(fd, buf, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		buf += n;
		len -= (size_t)n;
	}
	return 0;
}

/* A record of many takes a number for each. */
static uint64_t records_in(const json_t *rec)
{
	size_t n = many_is_record(rec) ? many_count(rec) : 1;

	return n ? n : 1;
}

/* Its number is the next one, and that of the last of many is the newest. */
static void complete(struct recorder *r, const char *src, const char *clk, json_t *rec)
{
	json_object_set_new(rec, "v", json_integer(1));
	json_object_set_new(rec, "n", json_integer((json_int_t)r->n + 1));
	r->n += records_in(rec);
	if (!json_object_get(rec, "t"))
		json_object_set_new(rec, "t", json_integer((json_int_t)now_ns()));
	json_object_set_new(rec, "clk", json_string(clk ? clk : r->clk));
	json_object_set_new(rec, "src", json_string(src));
	json_object_set_new(rec, "boot", json_integer(r->boot));
	json_object_set_new(rec, "lane", json_integer(r->lane));
	json_object_set_new(rec, "step", json_integer(r->step));
	if (r->iter[0])
		json_object_set_new(rec, "iter", json_string(r->iter));
}

/* 0 or -ENOMEM. */
static int keep(struct recorder *r, const char *text, size_t len)
{
	if (r->kept_len + len > r->kept_room) {
		size_t room = 2 * (r->kept_len + len);
		char *more = realloc(r->kept, room);

		if (!more)
			return -ENOMEM;
		r->kept = more;
		r->kept_room = room;
	}
	memcpy(r->kept + r->kept_len, text, len);
	r->kept_len += len;
	return 0;
}

int recorder_flush(struct recorder *r)
{
	if (r->kept_len && !r->error)
		r->error = write_all(r->fd, r->kept, r->kept_len);
	r->kept_len = 0;
	return r->error;
}

uint64_t recorder_due(const struct recorder *r)
{
	return r->kept_len ? r->due_ns : UINT64_MAX;
}

/* A line that is whole but for its newline, in place of its terminating 0: one buffer, one write. Freed. */
static int put_line(struct recorder *r, char *line, size_t len)
{
	int rc;

	line[len] = '\n';
	if (!r->kept_len)
		r->due_ns = now_ns() + r->lag_ns;
	rc = keep(r, line, len + 1);
	free(line);
	if (rc)
		r->error = rc;
	else if (!r->lag_ns || r->kept_len >= KEPT_MAX)
		recorder_flush(r);
	return r->error;
}

int recorder_write(struct recorder *r, const char *src, const char *clk, json_t *rec)
{
	char *line;

	if (r->error)
		return r->error;
	complete(r, src, clk, rec);
	line = json_dumps(rec, JSON_COMPACT);
	return line ? put_line(r, line, strlen(line)) : (r->error = -EILSEQ);
}

/* It says itself when it was, and nothing that is for the recorder to say. */
static bool can_be_continued(const json_t *rec)
{
	static const char *const ours[] = { "v", "n", "clk", "src", "boot", "lane", "step", "iter" };

	for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
		if (json_object_get(rec, ours[i]))
			return false;
	return json_object_get(rec, "t") != NULL;
}

int recorder_write_unread(struct recorder *r, const char *src, const char *clk, const char *text, size_t len, uint64_t count,
			  json_t **ret_more)
{
	json_t *more = json_pack("{s:I}", "t", (json_int_t)0);
	char *end, *line = NULL;

	complete(r, src, clk, more);
	r->n += count - 1;
	json_object_del(more, "t"); /* its own */
	end = json_dumps(more, JSON_COMPACT);
	if (end && asprintf(&line, "%.*s,%s", (int)len - 1, text, end + 1) < 0)
		line = NULL;
	free(end);
	*ret_more = more;
	return line ? put_line(r, line, strlen(line)) : (r->error = -ENOMEM);
}

int recorder_write_text(struct recorder *r, const char *src, const char *clk, json_t *rec, const char *text, size_t len)
{
	json_t *more;
	int rc;

	if (r->error || len < 3 || text[0] != '{' || text[len - 1] != '}' || !can_be_continued(rec))
		return recorder_write(r, src, clk, rec);
	rc = recorder_write_unread(r, src, clk, text, len, records_in(rec), &more);
	json_object_update(rec, more);
	json_decref(more);
	return rc;
}

int recorder_error(const struct recorder *r)
{
	return r->error;
}

uint64_t recorder_count(const struct recorder *r)
{
	return r->n;
}

char *recorder_clock_domain(char *buf, size_t size)
{
	char boot[64], ns[64] = "";
	ssize_t n;

	file_line(BOOT_ID_PATH, boot, sizeof boot);
	/* "time:[4026531834]"; kernels before 5.6 have no time namespaces. */
	n = readlink("/proc/self/ns/time", ns, sizeof ns - 1);
	ns[n > 0 ? n : 0] = 0;
	snprintf(buf, size, "%s/%s", boot, ns);
	return buf;
}
