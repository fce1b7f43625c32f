/* SPDX-License-Identifier: MIT */
/* What this process holds of the machine. */
#include "agent.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/proc.h"

/* Kilobytes by their name in /proc/self/status; -errno. */
static int64_t status_bytes(const char *name)
{
	FILE *f = fopen("/proc/self/status", "re");
	size_t len = strlen(name);
	char line[256];
	int64_t bytes = -ENOENT;

	if (!f)
		return -errno;
	while (bytes < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, len) && line[len] == ':')
			bytes = strtoll(line + len + 1, NULL, 10) * 1024;
	fclose(f);
	return bytes;
}

void op_usage(struct agent *a, struct request *r)
{
	int64_t anon = status_bytes("RssAnon");
	int files = proc_files();
	struct mallinfo2 heap = mallinfo2();

	(void)a;
	if (anon < 0 || files < 0) {
		request_fail(r, anon < 0 ? (int)anon : files, "usage: /proc/self cannot be read");
		return;
	}
	request_reply(r, json_pack("{s:i,s:I,s:I}", "files", files, "anon_bytes", (json_int_t)anon, "heap_bytes",
				   (json_int_t)(heap.uordblks + heap.hblkhd)));
}
