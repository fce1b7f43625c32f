/* SPDX-License-Identifier: MIT */
/*
 * A JSON-lines endpoint on sd-event: agent, wire and controller speak through it.
 *
 * Threading: one loop, one thread. Nothing blocks: lines that the peer does not take are queued up to
 * LINE_QUEUE_MAX bytes, then line_send fails with -ENOBUFS (an `error` of the harness). A line longer than
 * LINE_MAX_BYTES is an error. Descriptors are made non-blocking and closed by line_free (on failure of line_new they
 * stay the caller's). Programs that use this ignore SIGPIPE. line_free may be called from a callback of the same line.
 */
#ifndef QD_LINE_H
#define QD_LINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>
#include <systemd/sd-event.h>

#define LINE_MAX_BYTES (8u << 20)
#define LINE_QUEUE_MAX (32u << 20)
#define LINE_CORK_NS (10ull * 1000000)

struct line;

struct line_ops {
	/* A line before it is read: true, and it was all that was wanted of it. text is borrowed and ends with a 0. May be NULL. */
	bool (*on_line)(void *user, const char *text, size_t len);
	/* A line that is a JSON object. value is borrowed. */
	void (*on_json)(void *user, json_t *value);
	/* A line that is not (launcher chatter before the hello, garbage after it). */
	void (*on_text)(void *user, const char *text);
	/* End of file (err 0) or a read/write error (negative errno). Called once; the line is dead. When the peer stops
	 * reading, what it wrote before is still delivered first. */
	void (*on_end)(void *user, int err);
};

/* While on_json() is told of a line: the line itself. */
const char *line_text(const struct line *line, size_t *ret_len);
int line_new(sd_event *loop, int rfd, int wfd, const struct line_ops *ops, void *user, struct line **ret);
void line_free(struct line *line);
/* 0, -ENOBUFS (queue full), -EMSGSIZE (a line too long), or what broke the pipe. Nothing of a refused line is written. */
int line_send(struct line *line, const json_t *value);
/* The same of an object that is text already, in parts, without the newline. */
int line_send_text(struct line *line, const struct iovec *parts, size_t n);
/* Until as many line_uncork() have come, lines may wait for each other, up to LINE_CORK_NS: to write many at once spares the peer,
 * and this process, a wake-up for each. */
void line_cork(struct line *line);
void line_uncork(struct line *line);
/* Bytes not yet written. */
size_t line_pending(const struct line *line);
/* Writes what is queued, blocking up to deadline_ns from now: only for a last word before exit. */
int line_flush(struct line *line, unsigned long long deadline_ns);

#endif
