/* SPDX-License-Identifier: MIT */
#include "lab_tools.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[NUM_LAB_WHICH] = { "ip", "tc", "rdma" };

int lab_tools_new(struct lab_tools *t, enum lab_space space, const char *netns, struct error *e)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < NUM_LAB_WHICH; i++)
		rc = lab_tool_new(names[i], netns, &t->tool[space][i], e);
	return rc;
}

void lab_tools_free(struct lab_tools *t, enum lab_space space)
{
	for (int i = 0; i < NUM_LAB_WHICH; i++) {
		lab_tool_free(t->tool[space][i]);
		t->tool[space][i] = NULL;
	}
}

void lab_tools_forked(struct lab_tools *t)
{
	for (int i = 0; i < NUM_LAB_SPACES * NUM_LAB_WHICH; i++)
		if (t->tool[i / NUM_LAB_WHICH][i % NUM_LAB_WHICH])
			lab_tool_forked(t->tool[i / NUM_LAB_WHICH][i % NUM_LAB_WHICH]);
}

int lab_tools_find(const char *name, enum lab_which *ret, struct error *e)
{
	for (int i = 0; i < NUM_LAB_WHICH; i++) {
		if (strcmp(name, names[i]) == 0) {
			*ret = (enum lab_which)i;
			return 0;
		}
	}
	return error_set(e, -EINVAL, "%s: the lab knows ip, tc and rdma", name);
}

void lab_tools_stale(struct lab_tools *t)
{
	for (int i = 0; i < NUM_LAB_SPACES; i++)
		t->rdma_stale[i] = true;
}

int lab_tools_run_text(struct lab_tools *t, enum lab_space space, enum lab_which which, const char *args, json_t **ret_out,
		       struct error *e)
{
	bool changes = strstr(args, "link add") || strstr(args, "link del");

	if (which == LAB_RDMA && t->rdma_stale[space] && strncmp(args, "link add", 8) != 0) {
		lab_tool_restart(t->tool[space][LAB_RDMA]);
		t->rdma_stale[space] = false;
	}
	int rc = lab_tool_run(t->tool[space][which], args, LAB_TOOL_TIMEOUT_NS, ret_out, e);

	if (changes && which != LAB_TC)
		lab_tools_stale(t);
	return rc;
}

int lab_tools_run(struct lab_tools *t, enum lab_space space, enum lab_which which, json_t **ret_out, struct error *e,
		  const char *fmt, ...)
{
	char args[512];
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(args, sizeof args, fmt, ap);

	va_end(ap);
	if (n < 0 || n >= (int)sizeof args)
		return error_set(e, -EINVAL, "%s: command too long", names[which]);
	return lab_tools_run_text(t, space, which, args, ret_out, e);
}

int lab_tools_batch(struct lab_tools *t, enum lab_space space, enum lab_which which, const char *lines, struct error *e)
{
	int rc = lab_tool_batch(t->tool[space][which], lines, LAB_TOOL_TIMEOUT_NS, e);

	if (which == LAB_RDMA)
		lab_tools_stale(t);
	return rc;
}
