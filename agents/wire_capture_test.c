/* SPDX-License-Identifier: MIT */
#include "wire_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../harness/test.h"

#define SECOND 1000000000ull

static const char *const names[2] = { "a", "b" };

static uint8_t *read_file(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc(4 << 20);

	*ret_len = f ? fread(data, 1, 4 << 20, f) : 0;
	if (f)
		fclose(f);
	return data;
}

static uint32_t u32(const uint8_t *b)
{
	uint32_t v;

	memcpy(&v, b, sizeof v);
	return v;
}

static void make_path(char path[64])
{
	snprintf(path, 64, "%s/qd-capture-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	close(mkstemp(path));
}

struct seen {
	unsigned sections, interfaces, packets, comments;
	uint64_t last_ns;
	uint32_t last_port, last_len, last_flags;
	char last_comment[128];
};

/* Walks the blocks; -1 when their lengths do not fit. */
static int walk(const uint8_t *data, size_t len, struct seen *ret)
{
	size_t at = 0;

	memset(ret, 0, sizeof *ret);
	while (at < len) {
		uint32_t type = u32(data + at), total = u32(data + at + 4);

		if (total % 4 || total < 12 || at + total > len || u32(data + at + total - 4) != total)
			return -1;
		ret->sections += type == 0x0a0d0d0a;
		ret->interfaces += type == 1;
		if (type == 6) {
			const uint8_t *b = data + at + 8, *end = data + at + total - 4;

			ret->packets++;
			ret->last_port = u32(b);
			ret->last_ns = (uint64_t)u32(b + 4) << 32 | u32(b + 8);
			ret->last_len = u32(b + 12);
			for (b += 20 + (ret->last_len + 3) / 4 * 4; b < end;) {
				uint32_t head = u32(b), n = head >> 16;

				if ((head & 0xffff) == 2)
					ret->last_flags = u32(b + 4);
				if ((head & 0xffff) == 1) {
					ret->comments++;
					memcpy(ret->last_comment, b + 4, n < 127 ? n : 127);
					ret->last_comment[n < 127 ? n : 127] = 0;
				}
				b += 4 + (n + 3) / 4 * 4;
			}
		}
		at += total;
	}
	return 0;
}

static void test_blocks(void)
{
	struct wire_capture *c = NULL;
	struct seen seen;
	uint8_t frame[1500] = { 1, 2, 3 };
	char path[64];
	size_t len;

	make_path(path);
	CU_ASSERT(wire_capture_open(path, names, 0, &c, NULL) == 0);
	for (uint64_t i = 1; i <= 500; i++) {
		CU_ASSERT(wire_capture_begin(c, i & 1, false, i, frame, (size_t)i * 3) == i);
		wire_capture_end(c, i == 7 ? "eaten" : NULL);
	}
	CU_ASSERT(wire_capture_begin(c, 1, true, 1700000000123456789, frame, 61) == 501);
	wire_capture_end(c, "changed by x");
	CU_ASSERT(wire_capture_packets(c) == 501 && wire_capture_lost(c) == 0);
	CU_ASSERT(wire_capture_close(c, 5 * SECOND) == 0);
	uint8_t *data = read_file(path, &len);

	CU_ASSERT(walk(data, len, &seen) == 0 && seen.sections == 1 && seen.interfaces == 2 && seen.packets == 501 &&
		  seen.comments == 2);
	CU_ASSERT(seen.last_ns == 1700000000123456789 && seen.last_port == 1 && seen.last_len == 61 && seen.last_flags == 2);
	CU_ASSERT_STRING_EQUAL(seen.last_comment, "changed by x");
	free(data);
	unlink(path);
}

struct reader {
	int fd;
	uint8_t *data;
	size_t len;
};

static void *read_all(void *user)
{
	struct reader *r = user;
	ssize_t n;

	fcntl(r->fd, F_SETFL, 0);
	while ((n = read(r->fd, r->data + r->len, (16u << 20) - r->len)) > 0)
		r->len += (size_t)n;
	return NULL;
}

/* A pipe that nobody reads yet: what does not fit is lost and counted, and nobody waits. Then it is read: the rest is whole. */
static void test_overflow(void)
{
	struct reader reader = { .data = malloc(16 << 20) };
	struct wire_capture *c = NULL;
	struct seen seen;
	uint8_t frame[4096] = { 0 };
	char path[64];
	uint64_t kept = 0, lost = 0;
	pthread_t thread;

	make_path(path);
	unlink(path);
	CU_ASSERT(mkfifo(path, 0600) == 0);
	reader.fd = open(path, O_RDONLY | O_NONBLOCK);
	CU_ASSERT(wire_capture_open(path, names, 1 << 20, &c, NULL) == 0);
	for (int i = 0; i < 3000; i++) {
		uint64_t n = wire_capture_begin(c, 0, false, 1, frame, sizeof frame);

		if (n) {
			ROW_ASSERT(n == ++kept, "%d", i);
			wire_capture_end(c, NULL);
		} else {
			lost++;
		}
	}
	CU_ASSERT(lost > 1000 && kept > 100 && wire_capture_lost(c) == lost && wire_capture_packets(c) == kept);
	CU_ASSERT(pthread_create(&thread, NULL, read_all, &reader) == 0);
	CU_ASSERT(wire_capture_close(c, 10 * SECOND) == 0);
	pthread_join(thread, NULL);
	CU_ASSERT(walk(reader.data, reader.len, &seen) == 0 && seen.packets == kept);
	close(reader.fd);
	free(reader.data);
	unlink(path);
}

static void test_refused(void)
{
	struct wire_capture *c = NULL;
	struct error e = { "" };
	uint8_t frame[64] = { 0 };

	CU_ASSERT(wire_capture_open("/proc/nonexistent/wire.pcapng", names, 0, &c, &e) == -ENOENT && c == NULL &&
		  strstr(e.text, "/proc/nonexistent/"));
	CU_ASSERT(wire_capture_open("/dev/full", names, 0, &c, &e) == 0);
	wire_capture_begin(c, 0, false, 1, frame, sizeof frame);
	wire_capture_end(c, NULL);
	CU_ASSERT(wire_capture_close(c, SECOND) == -ENOSPC);
	CU_ASSERT(wire_capture_close(NULL, 0) == 0);
}

static const struct test_case cases[] = {
	{ "blocks, stamps, directions and comments", test_blocks },
	{ "a slow disk loses captures and stalls nobody", test_overflow },
	{ "what cannot be written", test_refused },
};
TEST_MAIN("wire_capture", cases)
