/* SPDX-License-Identifier: MIT */
#include "line.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "loop.h"
#include "units.h"

#define READ_CHUNK (64u << 10)
#define CORK_BYTES (32u << 10)  /* more does not wait */
#define KEEP_BYTES (256u << 10) /* an idle buffer above this is given back */

struct buffer {
	char *data;
	size_t head, len, cap; /* len bytes from head */
};

struct line {
	const struct line_ops *ops;
	void *user;
	int rfd, wfd;
	sd_event_source *read_source, *write_source, *broken_source, *cork_source;
	unsigned corks;
	struct buffer in, out;
	size_t scanned;   /* bytes of `in` known to hold no newline */
	const char *told; /* that on_json() is told of */
	size_t told_len;
	int write_err;
	bool polled_write; /* wfd can be watched; a regular file cannot and never blocks */
	bool ended;
	bool dispatching, doomed; /* line_free came from inside a callback */
};

static void buffer_release(struct buffer *b)
{
	free(b->data);
	*b = (struct buffer){ 0 };
}

static int buffer_reserve(struct buffer *b, size_t more)
{
	size_t cap = b->cap ? b->cap : 4096;
	char *data;

	if (b->head && (b->len == 0 || b->head + b->len + more > b->cap)) {
		memmove(b->data, b->data + b->head, b->len);
		b->head = 0;
	}
	while (cap < b->len + more)
		cap *= 2;
	if (cap == b->cap)
		return 0;
	data = realloc(b->data, cap);
	if (!data)
		return -ENOMEM;
	b->data = data;
	b->cap = cap;
	return 0;
}

static void buffer_consume(struct buffer *b, size_t n)
{
	b->head += n;
	b->len -= n;
	if (b->len)
		return;
	b->head = 0;
	if (b->cap > KEEP_BYTES)
		buffer_release(b);
}

static void line_destroy(struct line *line)
{
	sd_event_source_disable_unref(line->read_source);
	sd_event_source_disable_unref(line->write_source);
	sd_event_source_disable_unref(line->broken_source);
	sd_event_source_disable_unref(line->cork_source);
	buffer_release(&line->in);
	buffer_release(&line->out);
	close(line->rfd);
	if (line->wfd != line->rfd)
		close(line->wfd);
	free(line);
}

void line_free(struct line *line)
{
	if (!line)
		return;
	if (line->dispatching) {
		line->doomed = true;
		return;
	}
	line_destroy(line);
}

static void end(struct line *line, int err)
{
	if (line->ended)
		return;
	line->ended = true;
	sd_event_source_set_enabled(line->read_source, SD_EVENT_OFF);
	if (line->write_source)
		sd_event_source_set_enabled(line->write_source, SD_EVENT_OFF);
	if (line->ops->on_end && !line->doomed)
		line->ops->on_end(line->user, err);
}

/* text is NUL-terminated by the caller, in place of its newline. */
static void take_line(struct line *line, char *text, size_t len)
{
	json_t *value;

	if (len && text[len - 1] == '\r')
		text[--len] = '\0';
	if (len == 0 || (line->ops->on_line && line->ops->on_line(line->user, text, len)))
		return;
	value = text[0] == '{' ? json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	if (value) {
		line->told = text;
		line->told_len = len;
		line->ops->on_json(line->user, value);
		json_decref(value);
	} else if (line->ops->on_text) {
		line->ops->on_text(line->user, text);
	}
}

const char *line_text(const struct line *line, size_t *ret_len)
{
	*ret_len = line->told_len;
	return line->told;
}

static void take_lines(struct line *line)
{
	while (!line->doomed && !line->ended && line->in.len) {
		char *start = line->in.data + line->in.head, *nl;

		nl = line->in.len > line->scanned ? memchr(start + line->scanned, '\n', line->in.len - line->scanned) : NULL;
		if (!nl) {
			line->scanned = line->in.len;
			break;
		}
		*nl = '\0';
		take_line(line, start, (size_t)(nl - start));
		line->scanned = 0;
		buffer_consume(&line->in, (size_t)(nl - start) + 1);
	}
	if (line->in.len > LINE_MAX_BYTES)
		end(line, -EMSGSIZE);
}

/* The last line of a stream may lack its newline. */
static void take_rest(struct line *line)
{
	size_t len = line->in.len;

	if (len == 0 || line->ended || buffer_reserve(&line->in, 1) < 0)
		return;
	line->in.data[line->in.head + len] = '\0';
	take_line(line, line->in.data + line->in.head, len);
	buffer_consume(&line->in, len);
}

static void read_some(struct line *line)
{
	ssize_t n;

	if (buffer_reserve(&line->in, READ_CHUNK) < 0) {
		end(line, -ENOMEM);
		return;
	}
	n = read(line->rfd, line->in.data + line->in.head + line->in.len, READ_CHUNK);
	if (n > 0) {
		line->in.len += (size_t)n;
		take_lines(line);
	} else if (n == 0) {
		take_rest(line);
		end(line, 0);
	} else if (errno != EAGAIN && errno != EINTR) {
		end(line, -errno);
	}
}

static int dispatch_read(struct line *line)
{
	line->dispatching = true;
	read_some(line);
	line->dispatching = false;
	if (line->doomed)
		line_destroy(line);
	return 0;
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *user)
{
	(void)source;
	(void)fd;
	(void)revents;
	return dispatch_read(user);
}

static int on_read_turn(sd_event_source *source, void *user)
{
	(void)source;
	return dispatch_read(user);
}

/* Runs when nothing else is to be read: what the peer said before it broke the pipe comes first. */
static int on_broken(sd_event_source *source, void *user)
{
	struct line *line = user;

	(void)source;
	line->dispatching = true;
	end(line, line->write_err);
	line->dispatching = false;
	if (line->doomed)
		line_destroy(line);
	return 0;
}

static void write_broken(struct line *line, int err)
{
	line->write_err = err;
	buffer_release(&line->out);
	if (line->write_source)
		sd_event_source_set_enabled(line->write_source, SD_EVENT_OFF);
	sd_event_source_set_enabled(line->broken_source, SD_EVENT_ONESHOT);
}

/* 0 when all is written, -EAGAIN when the peer does not take more now, else the error that broke the pipe. */
static int write_some(struct line *line)
{
	while (line->out.len) {
		ssize_t n = write(line->wfd, line->out.data + line->out.head, line->out.len);

		if (n >= 0) {
			buffer_consume(&line->out, (size_t)n);
		} else if (errno == EAGAIN) {
			return -EAGAIN;
		} else if (errno != EINTR) {
			write_broken(line, -errno);
			return line->write_err;
		}
	}
	return 0;
}

static int on_writable(sd_event_source *source, int fd, uint32_t revents, void *user)
{
	struct line *line = user;

	(void)fd;
	(void)revents;
	if (write_some(line) == 0)
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
	return 0;
}

/* As write_some(), and what the peer does not take now goes when it does. */
static int push(struct line *line)
{
	int rc = write_some(line);

	if (rc == -EAGAIN && line->polled_write)
		rc = sd_event_source_set_enabled(line->write_source, SD_EVENT_ON);
	return rc < 0 ? rc : 0;
}

static int on_corked_long(sd_event_source *source, uint64_t usec, void *user)
{
	(void)source;
	(void)usec;
	push(user);
	return 0;
}

/* Something may block what is to end the waiting. False: nothing can be waited for. */
static bool arm_cork(struct line *line)
{
	uint64_t at_ns = now_ns() + LINE_CORK_NS;

	if (!line->cork_source)
		return loop_timer(sd_event_source_get_event(line->read_source), at_ns, on_corked_long, line, &line->cork_source) >=
		       0;
	return sd_event_source_set_time(line->cork_source, at_ns / NSEC_PER_USEC) >= 0 &&
	       sd_event_source_set_enabled(line->cork_source, SD_EVENT_ONESHOT) >= 0;
}

void line_cork(struct line *line)
{
	line->corks++;
}

void line_uncork(struct line *line)
{
	if (--line->corks || !line->out.len || line->write_err || line->ended)
		return;
	if (line->cork_source)
		sd_event_source_set_enabled(line->cork_source, SD_EVENT_OFF);
	push(line);
}

struct dump_to {
	struct buffer *out;
	size_t start;
};

static int dump_chunk(const char *text, size_t size, void *user)
{
	struct dump_to *to = user;

	if (to->out->len - to->start + size > LINE_MAX_BYTES || buffer_reserve(to->out, size) < 0)
		return -1;
	memcpy(to->out->data + to->out->head + to->out->len, text, size);
	to->out->len += size;
	return 0;
}

/* From `start` on there is one more line; rc: what became of it. */
static int line_sent(struct line *line, size_t start, int rc)
{
	bool idle = start == 0;

	if (rc == 0 && line->out.len > LINE_QUEUE_MAX)
		rc = -ENOBUFS;
	if (rc < 0) {
		line->out.len = start;
		return rc;
	}
	if (line->corks && line->out.len < CORK_BYTES && (!idle || arm_cork(line)))
		return 0;
	return idle || line->corks ? push(line) : 0;
}

static int may_send(const struct line *line)
{
	return line->write_err ? line->write_err : line->ended ? -EPIPE : 0;
}

int line_send(struct line *line, const json_t *value)
{
	struct dump_to to = { &line->out, line->out.len };
	int rc = may_send(line);

	if (rc < 0)
		return rc;
	if (json_dump_callback(value, dump_chunk, &to, JSON_COMPACT) < 0 || dump_chunk("\n", 1, &to) < 0)
		rc = -EMSGSIZE;
	return line_sent(line, to.start, rc);
}

int line_send_text(struct line *line, const struct iovec *parts, size_t n)
{
	struct dump_to to = { &line->out, line->out.len };
	int rc = may_send(line);

	if (rc < 0)
		return rc;
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = dump_chunk(parts[i].iov_base, parts[i].iov_len, &to) < 0 ? -EMSGSIZE : 0;
	if (rc == 0 && dump_chunk("\n", 1, &to) < 0)
		rc = -EMSGSIZE;
	return line_sent(line, to.start, rc);
}

size_t line_pending(const struct line *line)
{
	return line->out.len;
}

int line_flush(struct line *line, unsigned long long deadline_ns)
{
	uint64_t until = now_ns() + deadline_ns;

	for (;;) {
		struct pollfd pfd = { .fd = line->wfd, .events = POLLOUT };
		uint64_t now = now_ns();
		struct timespec left;
		int rc = line->write_err ? line->write_err : write_some(line);

		if (rc != -EAGAIN)
			return rc;
		if (now >= until)
			return -ETIMEDOUT;
		left = (struct timespec){ .tv_sec = (time_t)((until - now) / NSEC_PER_SEC),
					  .tv_nsec = (long)((until - now) % NSEC_PER_SEC) };
		if (ppoll(&pfd, 1, &left, NULL) < 0 && errno != EINTR)
			return -errno;
	}
}

static int set_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

static int watch(sd_event *loop, struct line *line)
{
	int rc = sd_event_add_io(loop, &line->read_source, line->rfd, EPOLLIN, on_readable, line);

	if (rc == -EPERM) { /* a regular file: always readable */
		rc = sd_event_add_defer(loop, &line->read_source, on_read_turn, line);
		if (rc >= 0)
			rc = sd_event_source_set_enabled(line->read_source, SD_EVENT_ON);
	}
	if (rc < 0)
		return rc;
	line->polled_write = true;
	if (line->wfd == line->rfd) {
		int copy = fcntl(line->wfd, F_DUPFD_CLOEXEC, 3); /* epoll takes each descriptor once */

		if (copy < 0)
			return -errno;
		line->wfd = copy;
	}
	rc = sd_event_add_io(loop, &line->write_source, line->wfd, EPOLLOUT, on_writable, line);
	if (rc == -EPERM)
		line->polled_write = false;
	else if (rc < 0 || (rc = sd_event_source_set_enabled(line->write_source, SD_EVENT_OFF)) < 0)
		return rc;
	rc = sd_event_add_defer(loop, &line->broken_source, on_broken, line);
	if (rc < 0 || (rc = sd_event_source_set_enabled(line->broken_source, SD_EVENT_OFF)) < 0)
		return rc;
	return sd_event_source_set_priority(line->broken_source, SD_EVENT_PRIORITY_IDLE);
}

int line_new(sd_event *loop, int rfd, int wfd, const struct line_ops *ops, void *user, struct line **ret)
{
	struct line *line = calloc(1, sizeof(*line));
	int rc;

	if (!line)
		return -ENOMEM;
	*line = (struct line){ .ops = ops, .user = user, .rfd = rfd, .wfd = wfd };
	rc = set_nonblock(rfd);
	if (rc == 0)
		rc = set_nonblock(wfd);
	if (rc == 0)
		rc = watch(loop, line);
	if (rc < 0)
		goto free_line;
	*ret = line;
	return 0;
free_line:
	/* The descriptors stay the caller's on failure. */
	sd_event_source_disable_unref(line->read_source);
	sd_event_source_disable_unref(line->write_source);
	sd_event_source_disable_unref(line->broken_source);
	if (line->wfd != wfd)
		close(line->wfd);
	free(line);
	return rc;
}
