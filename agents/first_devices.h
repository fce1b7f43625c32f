/* SPDX-License-Identifier: MIT */
/* The RDMA devices that a test or a benchmark takes when none are named. */
#ifndef QD_FIRST_DEVICES_H
#define QD_FIRST_DEVICES_H

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The first two by name, which live as long as the program; false when there are fewer. */
static inline bool first_devices(const char **ret_a, const char **ret_b)
{
	struct dirent **list = NULL;
	const char *names[2] = { NULL, NULL };
	int n = scandir("/sys/class/infiniband", &list, NULL, alphasort), found = 0;

	for (int i = 0; i < n; i++) {
		if (list[i]->d_name[0] != '.' && found < 2)
			names[found++] = strdup(list[i]->d_name);
		free(list[i]);
	}
	free(list);
	if (found < 2)
		return false;
	*ret_a = names[0];
	*ret_b = names[1];
	return true;
}

#endif
