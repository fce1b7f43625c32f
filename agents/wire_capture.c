/* SPDX-License-Identifier: MIT */
#include "wire_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define BUFFERS 8
#define MIN_BUFFER_BYTES (128u << 10)
#define DEFAULT_TOTAL_BYTES (8u << 20)
#define SNAP_BYTES 65535

#define BLOCK_SECTION 0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET 6u
#define OPTION_COMMENT 1
#define OPTION_PACKET_FLAGS 2
#define OPTION_IF_NAME 2
#define OPTION_IF_TSRESOL 9
#define LINKTYPE_ETHERNET 1

struct buffer {
	uint8_t *data;
	size_t used;
};

/* A buffer is in exactly one place: current (the path fills it), full (the writer takes the oldest) or free. */
struct wire_capture {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	int fd, done_fd; /* done_fd: an eventfd, written when the writer leaves */
	size_t buffer_bytes;
	struct buffer all[BUFFERS], *current, *full[BUFFERS], *free[BUFFERS];
	unsigned n_full, n_free;
	bool closing;
	atomic_int broken; /* errno of the first failed write */
	size_t block;      /* where the packet that was begun starts in current */
	uint64_t packets, lost;
};

static void put(struct buffer *b, const void *bytes, size_t n)
{
	memcpy(b->data + b->used, bytes, n);
	b->used += n;
}

static void put32(struct buffer *b, uint32_t v)
{
	put(b, &v, sizeof v);
}

static void pad(struct buffer *b)
{
	static const uint8_t zeros[4];

	put(b, zeros, -b->used & 3);
}

/* Everything is in this machine's byte order: the section header says which. */
static void put_option(struct buffer *b, uint16_t code, const void *value, size_t n)
{
	uint16_t head[2] = { code, (uint16_t)n };

	put(b, head, sizeof head);
	put(b, value, n);
	pad(b);
}

static size_t begin_block(struct buffer *b, uint32_t type)
{
	size_t at = b->used;

	put32(b, type);
	put32(b, 0);
	return at;
}

static void end_block(struct buffer *b, size_t at)
{
	uint32_t total = (uint32_t)(b->used - at + 4);

	put32(b, total);
	memcpy(b->data + at + 4, &total, sizeof total);
}

static void put_headers(struct buffer *b, const char *const names[2])
{
	static const uint16_t version[2] = { 1, 0 };
	static const uint8_t nanoseconds = 9;
	uint64_t unknown_length = UINT64_MAX;
	size_t at = begin_block(b, BLOCK_SECTION);

	put32(b, 0x1a2b3c4d);
	put(b, version, sizeof version);
	put(b, &unknown_length, sizeof unknown_length);
	end_block(b, at);
	for (int i = 0; i < 2; i++) {
		uint16_t link[2] = { LINKTYPE_ETHERNET, 0 };

		at = begin_block(b, BLOCK_INTERFACE);
		put(b, link, sizeof link);
		put32(b, SNAP_BYTES);
		put_option(b, OPTION_IF_NAME, names[i], strnlen(names[i], 255));
		put_option(b, OPTION_IF_TSRESOL, &nanoseconds, 1);
		put32(b, 0);
		end_block(b, at);
	}
}

static void write_all(struct wire_capture *c, const struct buffer *b)
{
	for (size_t at = 0; at < b->used && !c->broken;) {
		ssize_t n = write(c->fd, b->data + at, b->used - at);

		if (n > 0)
			at += (size_t)n;
		else if (n < 0 && errno != EINTR)
			c->broken = errno;
	}
}

static void *writer(void *user)
{
	struct wire_capture *c = user;

	pthread_mutex_lock(&c->lock);
	for (;;) {
		while (!c->n_full && !c->closing)
			pthread_cond_wait(&c->wake, &c->lock);
		if (!c->n_full)
			break;
		struct buffer *b = c->full[0];

		/* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers */
		memmove(c->full, c->full + 1, --c->n_full * sizeof *c->full);
		pthread_mutex_unlock(&c->lock);
		write_all(c, b);
		b->used = 0;
		pthread_mutex_lock(&c->lock);
		c->free[c->n_free++] = b;
	}
	pthread_mutex_unlock(&c->lock);
	eventfd_write(c->done_fd, 1);
	return NULL;
}

/* Gives the current buffer to the writer and takes a free one; there may be none. */
static void hand_over(struct wire_capture *c)
{
	pthread_mutex_lock(&c->lock);
	if (c->current && c->current->used) {
		c->full[c->n_full++] = c->current;
		c->current = NULL;
		pthread_cond_signal(&c->wake);
	}
	if (!c->current && c->n_free)
		c->current = c->free[--c->n_free];
	pthread_mutex_unlock(&c->lock);
}

static void destroy(struct wire_capture *c)
{
	for (int i = 0; i < BUFFERS; i++)
		free(c->all[i].data);
	if (c->fd >= 0)
		close(c->fd);
	if (c->done_fd >= 0)
		close(c->done_fd);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

int wire_capture_open(const char *path, const char *const names[2], size_t buffer_bytes, struct wire_capture **ret, struct error *e)
{
	struct wire_capture *c = calloc(1, sizeof *c);
	int rc;

	if (!c)
		return error_set(e, -ENOMEM, "no memory");
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->wake, NULL);
	c->buffer_bytes = (buffer_bytes ? buffer_bytes : DEFAULT_TOTAL_BYTES) / BUFFERS;
	if (c->buffer_bytes < MIN_BUFFER_BYTES)
		c->buffer_bytes = MIN_BUFFER_BYTES;
	c->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (c->fd < 0) {
		rc = error_set(e, -errno, "%s: %s", path, strerror(errno));
		goto destroy_capture;
	}
	if (c->done_fd < 0) {
		rc = error_set(e, -errno, "an eventfd: %s", strerror(errno));
		goto destroy_capture;
	}
	for (int i = 0; i < BUFFERS; i++) {
		c->all[i].data = malloc(c->buffer_bytes);
		if (!c->all[i].data) {
			rc = error_set(e, -ENOMEM, "no memory for the capture");
			goto destroy_capture;
		}
		c->free[c->n_free++] = &c->all[i];
	}
	c->current = c->free[--c->n_free];
	put_headers(c->current, names);
	rc = pthread_create(&c->thread, NULL, writer, c);
	if (rc) {
		rc = error_set(e, -rc, "the writer's thread: %s", strerror(rc));
		goto destroy_capture;
	}
	*ret = c;
	return 0;
destroy_capture:
	destroy(c);
	return rc;
}

uint64_t wire_capture_begin(struct wire_capture *c, unsigned port, bool sent, uint64_t real_ns, const uint8_t *frame, size_t len)
{
	size_t need = len + WIRE_CAPTURE_COMMENT_MAX + 64;
	uint32_t flags = sent ? 2 : 1;

	if (!c->current || c->current->used + need > c->buffer_bytes)
		hand_over(c);
	if (!c->current || len > SNAP_BYTES || c->broken) {
		c->lost++;
		return 0;
	}
	struct buffer *b = c->current;

	c->block = begin_block(b, BLOCK_PACKET);
	put32(b, port);
	put32(b, (uint32_t)(real_ns >> 32));
	put32(b, (uint32_t)real_ns);
	put32(b, (uint32_t)len);
	put32(b, (uint32_t)len);
	put(b, frame, len);
	pad(b);
	put_option(b, OPTION_PACKET_FLAGS, &flags, sizeof flags);
	return ++c->packets;
}

void wire_capture_end(struct wire_capture *c, const char *comment)
{
	struct buffer *b = c->current;

	if (comment && *comment)
		put_option(b, OPTION_COMMENT, comment, strnlen(comment, WIRE_CAPTURE_COMMENT_MAX));
	put32(b, 0);
	end_block(b, c->block);
}

void wire_capture_flush(struct wire_capture *c)
{
	hand_over(c);
}

uint64_t wire_capture_packets(const struct wire_capture *c)
{
	return c->packets;
}

uint64_t wire_capture_lost(const struct wire_capture *c)
{
	return c->lost;
}

void wire_capture_finish(struct wire_capture *c)
{
	hand_over(c);
	pthread_mutex_lock(&c->lock);
	c->closing = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
}

int wire_capture_fd(const struct wire_capture *c)
{
	return c->done_fd;
}

int wire_capture_close(struct wire_capture *c, uint64_t deadline_ns)
{
	struct timespec until;

	if (!c)
		return 0;
	wire_capture_finish(c);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (time_t)(deadline_ns / 1000000000u);
	until.tv_nsec += (long)(deadline_ns % 1000000000u);
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (pthread_timedjoin_np(c->thread, NULL, &until)) {
		pthread_detach(c->thread);
		return -ETIMEDOUT;
	}
	int broken = c->broken;

	destroy(c);
	return -broken;
}
