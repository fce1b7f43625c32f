/* SPDX-License-Identifier: MIT */
#include "wire_backlog.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH "/proc/net/softnet_stat"
#define WAITING 11 /* column */
#define LINE_BYTES 160

/* One processor's line. False where it has no such columns. */
static bool read_line(const char *line, uint32_t *ret_taken, uint32_t *ret_waiting)
{
	unsigned long value = 0, taken = 0;

	for (int column = 0; column <= WAITING; column++) {
		char *end;

		line += strspn(line, " ");
		value = strtoul(line, &end, 16);
		if (!isxdigit((unsigned char)*line) || end == line)
			return false;
		taken = column ? taken : value;
		line = end;
	}
	*ret_taken = (uint32_t)taken;
	*ret_waiting = (uint32_t)value;
	return true;
}

static const char *next_line(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end + 1 : line + strlen(line);
}

bool wire_backlog_read(const char *text, struct wire_backlog *ret)
{
	struct wire_backlog b = { .n = 0 };
	uint32_t taken, waiting;

	for (const char *line = text; *line; line = next_line(line)) {
		if (b.n == WIRE_CPUS_MAX || !read_line(line, &taken, &waiting))
			return false;
		b.due[b.n++] = taken + waiting;
	}
	if (!b.n)
		return false;
	*ret = b;
	return true;
}

bool wire_backlog_is_done(const struct wire_backlog *then, const char *now)
{
	uint32_t taken, waiting;

	for (unsigned i = 0; i < then->n && *now; i++, now = next_line(now))
		if (read_line(now, &taken, &waiting) && waiting && (int32_t)(taken - then->due[i]) < 0)
			return false;
	return true;
}

static bool read_file(char *text, size_t size)
{
	int fd = open(PATH, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 1;

	while (fd >= 0 && n > 0 && len + 1 < size) {
		n = read(fd, text + len, size - len - 1);
		len += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0)
		close(fd);
	text[len] = '\0';
	return len > 0;
}

bool wire_backlog_look(struct wire_backlog *ret)
{
	char text[WIRE_CPUS_MAX * LINE_BYTES];

	return read_file(text, sizeof text) && wire_backlog_read(text, ret);
}

bool wire_backlog_is_done_now(const struct wire_backlog *then)
{
	char text[WIRE_CPUS_MAX * LINE_BYTES];

	return !read_file(text, sizeof text) || wire_backlog_is_done(then, text);
}
