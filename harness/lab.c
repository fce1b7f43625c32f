/* SPDX-License-Identifier: MIT */
#include "lab.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct lab_ops *const lab_table[] = { &lab_rxe };

const struct lab_ops *lab_find(const char *name)
{
	for (size_t i = 0; i < sizeof lab_table / sizeof lab_table[0]; i++)
		if (strcmp(lab_table[i]->name, name) == 0)
			return lab_table[i];
	return NULL;
}

static void read_counters(const char *dir, json_t *into)
{
	DIR *d = opendir(dir);

	for (const struct dirent *entry; d && (entry = readdir(d));) {
		char buf[64];

		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "lifespan") == 0)
			continue;
		int fd = openat(dirfd(d), entry->d_name, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd >= 0 ? read(fd, buf, sizeof buf - 1) : -1;

		if (fd >= 0)
			close(fd);
		if (n <= 0)
			continue;
		buf[n] = '\0';
		char *end;
		unsigned long long value = strtoull(buf, &end, 10);

		if (end != buf)
			json_object_set_new(into, entry->d_name, json_integer((json_int_t)value));
	}
	if (d)
		closedir(d);
}

json_t *lab_counters(const char *rdma, int port)
{
	static const char *const folders[] = { "hw_counters", "counters" };
	json_t *values = json_object();

	for (size_t i = 0; values && i < sizeof folders / sizeof folders[0]; i++) {
		char dir[160];

		snprintf(dir, sizeof dir, "/sys/class/infiniband/%s/ports/%d/%s", rdma, port, folders[i]);
		read_counters(dir, values);
	}
	return values;
}
