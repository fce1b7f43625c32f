/* SPDX-License-Identifier: MIT */
#include "rdma_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SONAME ".so.1."

bool rdma_core_version(const char *path, char *buf, size_t size)
{
	char *real = realpath(path, NULL), *minor = real ? strstr(real, SONAME) : NULL;
	char *dot = minor ? strchr(minor + strlen(SONAME), '.') : NULL;

	if (dot)
		snprintf(buf, size, "%s", dot + 1);
	free(real);
	return dot != NULL;
}
