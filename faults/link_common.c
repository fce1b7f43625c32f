/* SPDX-License-Identifier: MIT */
#include "link_common.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../harness/json.h"

const struct fault_param link_end_params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end whose device it is" },
	{ .name = NULL },
};

const char *link_netdev(const struct fault *f)
{
	return json_str(f->env->device(f->env->ctl, fault_agent(f, fault_arg(f, "at"))), "netdev");
}

int link_ip(struct fault *f, const char *before, const char *after, json_t **ret_out, struct error *e)
{
	const char *dev = link_netdev(f);
	char args[256];
	int rc;

	if (!dev)
		return error_set(e, -ENODEV, "%s: %s has no network device in this lab", f->ops->name, fault_arg(f, "at"));
	snprintf(args, sizeof args, "%s %s%s%s", before, dev, after[0] ? " " : "", after);
	rc = f->env->lab(f->env->ctl, "ip", args, ret_out, e);
	return rc < 0 ? rc : 0;
}

const json_t *link_first(const json_t *list)
{
	const json_t *item;
	size_t i;

	/* iproute2 fills up with empty objects for what it filtered out. */
	json_array_foreach((json_t *)list, i, item)
		if (json_object_size(item))
			return item;
	return NULL;
}

int link_neighbours_keep(struct fault *f, struct error *e)
{
	json_t *neigh = NULL;
	int rc = link_ip(f, "neigh show dev", "", &neigh, e);

	if (!rc && neigh)
		json_object_set_new(f->state, "neigh", neigh);
	return rc;
}

int link_neighbours_restore(struct fault *f, struct error *e)
{
	const json_t *n;
	size_t i;
	int rc = 0;

	json_array_foreach(json_object_get(f->state, "neigh"), i, n) {
		char what[160], dev[96];

		if (rc || !json_str(n, "dst") || !json_str(n, "lladdr"))
			continue;
		snprintf(what, sizeof what, "neigh replace %s lladdr %s dev", json_str(n, "dst"), json_str(n, "lladdr"));
		snprintf(dev, sizeof dev, "nud permanent");
		rc = link_ip(f, what, dev, NULL, e);
	}
	return rc;
}
