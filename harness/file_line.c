/* SPDX-License-Identifier: MIT */
#include "file_line.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool file_line(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, buf, size - 1) : -1;

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return n > 0;
}
