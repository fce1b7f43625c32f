/* SPDX-License-Identifier: MIT */
/* The address behind an end's GID: gone, or gone and back at another place of the port's GID table. */
#include "link_common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../harness/json.h"

/* An address of the same network that no end has: so far from the ends' own. */
#define PLACEHOLDER_BIT 0x80u

static const char *address(const struct fault *f)
{
	const char *text = json_str(f->state, "address");

	return text ? text : "";
}

static int change(struct fault *f, const char *what, const char *addr, struct error *e)
{
	char before[128];

	snprintf(before, sizeof before, "addr %s %s dev", what, addr);
	return link_ip(f, before, "", NULL, e);
}

/* The device's IPv4 address and its neighbours, which go with it. */
static int keep(struct fault *f, struct error *e)
{
	json_t *shown = NULL;
	const json_t *info;
	char text[96] = "";
	size_t i;
	int rc = link_ip(f, "addr show dev", "", &shown, e);

	if (rc)
		return rc;
	json_array_foreach(json_object_get(link_first(shown), "addr_info"), i, info)
		if (json_str(info, "family") && strcmp(json_str(info, "family"), "inet") == 0 && !text[0])
			snprintf(text, sizeof text, "%s/%lld", json_str(info, "local"), (long long)json_int(info, "prefixlen", 32));
	json_decref(shown);
	if (!text[0])
		return error_set(e, -EADDRNOTAVAIL, "%s: %s has no IPv4 address", f->ops->name, link_netdev(f));
	json_object_set_new(f->state, "address", json_string(text));
	return link_neighbours_keep(f, e);
}

/* address_removed */

static int removed_inject(struct fault *f, struct error *e)
{
	int rc = keep(f, e);

	return rc ? rc : change(f, "del", address(f), e);
}

static int removed_clear(struct fault *f, struct error *e)
{
	int rc = change(f, "add", address(f), e);

	return rc ? rc : link_neighbours_restore(f, e);
}

static int removed_prove(struct fault *f, json_t **ret, struct error *e)
{
	json_t *shown = NULL;
	const json_t *info;
	bool there = false;
	size_t i;
	int rc = f->active ? link_ip(f, "addr show dev", "", &shown, e) : -1;

	json_array_foreach(json_object_get(link_first(shown), "addr_info"), i, info) {
		const char *local = json_str(info, "local"), *gone = address(f);

		there = there || (local && strncmp(local, gone, strlen(local)) == 0 && gone[strlen(local)] == '/');
	}
	json_decref(shown);
	*ret = json_pack("{s:s,s:b}", "address", address(f), "there", (int)there);
	return rc == 0 && !there;
}

/* address_moved */

static int placeholder(struct fault *f, char *buf, size_t size, struct error *e)
{
	char text[96], shown[INET_ADDRSTRLEN];
	struct in_addr a;

	snprintf(text, sizeof text, "%.*s", (int)strcspn(address(f), "/"), address(f));
	if (inet_pton(AF_INET, text, &a) != 1)
		return error_set(e, -EINVAL, "%s: %s is no IPv4 address", f->ops->name, text);
	a.s_addr ^= htonl(PLACEHOLDER_BIT);
	snprintf(buf, size, "%s/32", inet_ntop(AF_INET, &a, shown, sizeof shown));
	return 0;
}

/* A free place of the table is taken from its beginning: while the address is away another one takes the place that it had. A
 * device that keeps the place for QPs which still use it has none to give away, and the address moves all the same. */
static int moved_inject(struct fault *f, struct error *e)
{
	const char *agent = fault_agent(f, fault_arg(f, "at"));
	int before = f->env->gid_index(f->env->ctl, agent, -1, e), after, rc;
	char other[64] = "";

	if (before < 0)
		return before;
	rc = keep(f, e);
	if (!rc)
		rc = placeholder(f, other, sizeof other, e);
	if (!rc)
		rc = change(f, "del", address(f), e);
	if (!rc)
		rc = change(f, "add", other, e);
	if (!rc)
		rc = change(f, "add", address(f), e);
	if (!rc)
		rc = link_neighbours_restore(f, e);
	if (rc)
		return rc;
	after = f->env->gid_index(f->env->ctl, agent, before, e);
	rc = change(f, "del", other, after < 0 ? NULL : e);
	json_object_set_new(f->state, "before", json_integer(before));
	json_object_set_new(f->state, "after", json_integer(after < 0 ? before : after));
	return after < 0 ? after : rc;
}

static int moved_prove(struct fault *f, json_t **ret, struct error *e)
{
	int64_t before = json_int(f->state, "before", -1), after = json_int(f->state, "after", -1);

	(void)e;
	*ret = json_pack("{s:s,s:I,s:I}", "address", address(f), "index_before", (json_int_t)before, "index_after",
			 (json_int_t)after);
	return before >= 0 && after >= 0 && before != after;
}

const struct fault_ops fault_address_removed = {
	.name = "address_removed",
	.help = "the address behind an end's GID goes away",
	.layer = FAULT_LINK,
	.blast = FAULT_BLAST_DEVICE,
	.params = link_end_params,
	.proof = "ip no longer shows the address",
	.detection = fault_detect_silent,
	.inject = removed_inject,
	.clear = removed_clear,
	.prove = removed_prove,
};
const struct fault_ops fault_address_moved = {
	.name = "address_moved",
	.help = "the address behind an end's GID goes and comes back at another index of the GID table, where it stays",
	.layer = FAULT_LINK,
	.blast = FAULT_BLAST_DEVICE,
	.params = link_end_params,
	.proof = "the index of the GID before and after",
	.detection = fault_detect_silent,
	.inject = moved_inject,
	.clear = fault_clear_nothing,
	.prove = moved_prove,
};
