/* SPDX-License-Identifier: MIT */
/* The one line of a small file, as sysfs and procfs have them. */
#ifndef QD_FILE_LINE_H
#define QD_FILE_LINE_H

#include <stdbool.h>
#include <stddef.h>

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"

/* The file's first line, or what fits of it, without its end. False, and an empty buf, where there is no file or nothing in it. */
bool file_line(const char *path, char *buf, size_t size);

#endif
