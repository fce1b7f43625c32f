/* SPDX-License-Identifier: MIT */
#include "file_line.h"

#include <stdlib.h>
#include <unistd.h>

#include "test.h"

static const struct {
	const char *in, *want;
	bool is_there;
} rows[] = {
	{ "", "", false },
	{ "\n", "", true },
	{ "ACTIVE\n", "ACTIVE", true },
	{ "without an end", "without an end", true },
	{ "one\ntwo\n", "one", true },
	{ "longer than its buffer is\n", "longer than its", true },
};

static void lines(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[] = "/tmp/qd-file-line-XXXXXX", buf[16] = "before";
		int fd = mkstemp(path);

		MUST(fd >= 0 && write(fd, rows[i].in, strlen(rows[i].in)) == (ssize_t)strlen(rows[i].in));
		close(fd);
		ROW_ASSERT(file_line(path, buf, sizeof(buf)) == rows[i].is_there, "row %zu", i);
		ROW_ASSERT(!strcmp(buf, rows[i].want), "row %zu: '%s'", i, buf);
		unlink(path);
		ROW_ASSERT(!file_line(path, buf, sizeof(buf)) && !buf[0], "row %zu: no file", i);
	}
}

static const struct test_case cases[] = {
	{ "the first line, as much as fits", lines },
};

TEST_MAIN("file_line", cases)
