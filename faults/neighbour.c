/* SPDX-License-Identifier: MIT */
/* An end's neighbour entries point to a link address that nobody on the link has: what it sends is for nobody. */
#include "link_common.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "../harness/json.h"

#define NOBODY "02:71:ff:ff:ff:fe" /* locally administered, and of no lane */

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end whose neighbour table it is" },
	{ .name = "lladdr", .type = FAULT_PARAM_STRING, .def = NOBODY, .help = "the link address that its peer seems to have" },
	{ .name = NULL },
};

static const char *lladdr(const struct fault *f)
{
	return fault_arg(f, "lladdr") ? fault_arg(f, "lladdr") : NOBODY;
}

static int check(const json_t *args, struct error *e)
{
	const char *text = json_str(args, "lladdr");
	size_t n = 0;

	for (const char *c = text; c && *c; c++, n++)
		if (n % 3 == 2 ? *c != ':' : !isxdigit((unsigned char)*c))
			break;
	if (text && (n != strlen(NOBODY) || text[n]))
		return error_set(e, -EINVAL, "neighbour: `%s` is no link address (" NOBODY ")", text);
	return 0;
}

static bool is_entry(const json_t *n)
{
	return json_str(n, "dst") && json_str(n, "lladdr");
}

static int inject(struct fault *f, struct error *e)
{
	const json_t *n;
	size_t i, found = 0;
	int rc = link_neighbours_keep(f, e);

	json_array_foreach(json_object_get(f->state, "neigh"), i, n) {
		char what[160];

		if (rc || !is_entry(n))
			continue;
		snprintf(what, sizeof what, "neigh replace %s lladdr %s dev", json_str(n, "dst"), lladdr(f));
		rc = link_ip(f, what, "nud permanent", NULL, e);
		found++;
	}
	if (!rc && !found)
		rc = error_set(e, -ENOENT, "neighbour: %s knows no neighbour", link_netdev(f));
	return rc;
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	json_t *shown = NULL, *seen = json_array();
	const json_t *n;
	size_t i, changed = 0;
	int rc = f->active ? link_ip(f, "neigh show dev", "", &shown, e) : -1;

	json_array_foreach(shown, i, n) {
		if (!is_entry(n))
			continue;
		json_array_append_new(seen, json_sprintf("%s %s", json_str(n, "dst"), json_str(n, "lladdr")));
		changed += strcasecmp(json_str(n, "lladdr"), lladdr(f)) == 0;
	}
	json_decref(shown);
	*ret = json_pack("{s:o}", "neighbours", seen);
	return rc == 0 && changed > 0;
}

const struct fault_ops fault_neighbour = {
	.name = "neighbour",
	.help = "an end's neighbour entry points to another link address: what it sends reaches nobody",
	.layer = FAULT_LINK,
	.blast = FAULT_BLAST_DEVICE,
	.params = params,
	.proof = "ip shows the entry with the other link address",
	.detection = fault_detect_silent,
	.check = check,
	.inject = inject,
	.clear = link_neighbours_restore,
	.prove = prove,
};
