/* SPDX-License-Identifier: MIT */
/* The network device under an end: down, shorter frames, no address. What was there is read before and put back by clear. */
#include "fault_common.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../harness/json.h"

static const char *netdev(const struct fault *f)
{
	return json_str(f->env->device(f->env->ctl, fault_agent(f, fault_arg(f, "at"))), "netdev");
}

/* One command of ip about the end's device, whose name goes between before and after. What a device is, is asked with `addr show`:
 * after a `link show` an ip that is kept open for many commands leaves the addresses out of its later answers. */
static int ip(struct fault *f, const char *before, const char *after, json_t **ret_out, struct error *e)
{
	const char *dev = netdev(f);
	char args[256];
	int rc;

	if (!dev)
		return error_set(e, -ENODEV, "%s: %s has no network device in this lab", f->ops->name, fault_arg(f, "at"));
	snprintf(args, sizeof args, "%s %s%s%s", before, dev, after[0] ? " " : "", after);
	rc = f->env->lab(f->env->ctl, "ip", args, ret_out, e);
	return rc < 0 ? rc : 0;
}

static const json_t *first(const json_t *list)
{
	const json_t *item;
	size_t i;

	/* iproute2 fills up with empty objects for what it filtered out. */
	json_array_foreach((json_t *)list, i, item)
		if (json_object_size(item))
			return item;
	return NULL;
}

static bool has_flag(const json_t *link, const char *flag)
{
	return json_has(link, "flags", flag);
}

/* A device that goes down, or loses its address, forgets its permanent neighbours. */
static int neighbours_keep(struct fault *f, struct error *e)
{
	json_t *neigh = NULL;
	int rc = ip(f, "neigh show dev", "", &neigh, e);

	if (!rc && neigh)
		json_object_set_new(f->state, "neigh", neigh);
	return rc;
}

static int neighbours_restore(struct fault *f, struct error *e)
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
		rc = ip(f, what, dev, NULL, e);
	}
	return rc;
}

/* link_down */

static int down_inject(struct fault *f, struct error *e)
{
	int rc = neighbours_keep(f, e);

	return rc ? rc : ip(f, "link set dev", "down", NULL, e);
}

static int down_clear(struct fault *f, struct error *e)
{
	int rc = ip(f, "link set dev", "up", NULL, e);

	return rc ? rc : neighbours_restore(f, e);
}

static int down_prove(struct fault *f, json_t **ret, struct error *e)
{
	json_t *shown = NULL;
	bool down = false;

	if (f->active && ip(f, "addr show dev", "", &shown, e) == 0 && first(shown))
		down = !has_flag(first(shown), "UP");
	json_decref(shown);
	*ret = json_pack("{s:b}", "down", (int)down);
	return down;
}

/* mtu_shrunk */

static int mtu_now(struct fault *f, int64_t *ret, struct error *e)
{
	json_t *shown = NULL;
	int rc = ip(f, "addr show dev", "", &shown, e);

	if (!rc && !first(shown))
		rc = error_set(e, -ENODEV, "%s: ip shows no such device", netdev(f));
	if (!rc)
		*ret = json_int(first(shown), "mtu", 0);
	json_decref(shown);
	return rc;
}

static int mtu_set(struct fault *f, int64_t mtu, struct error *e)
{
	char text[32];

	snprintf(text, sizeof text, "mtu %lld", (long long)mtu);
	return ip(f, "link set dev", text, NULL, e);
}

#define IPV6_MIN_MTU 1280

static bool has_ipv6(struct fault *f)
{
	json_t *shown = NULL;
	const json_t *info;
	bool found = false;
	size_t i;

	if (ip(f, "addr show dev", "", &shown, NULL))
		return false;
	json_array_foreach(json_object_get(first(shown), "addr_info"), i, info)
		found = found || (json_str(info, "family") && strcmp(json_str(info, "family"), "inet6") == 0);
	json_decref(shown);
	return found;
}

static int mtu_inject(struct fault *f, struct error *e)
{
	int64_t before = 0;
	int rc = mtu_now(f, &before, e);

	if (rc)
		return rc;
	json_object_set_new(f->state, "before", json_integer(before));
	json_object_set_new(f->state, "ipv6", json_boolean(has_ipv6(f)));
	return mtu_set(f, json_int(f->args, "mtu", 0), e);
}

static int mtu_clear(struct fault *f, struct error *e)
{
	int rc = mtu_set(f, json_int(f->state, "before", 1500), e);

	/* Below its minimum IPv6 leaves the device; back above, it comes with its defaults, which a lab without IPv6 does not want.
	 */
	if (!rc && json_int(f->args, "mtu", 0) < IPV6_MIN_MTU && !json_bool(f->state, "ipv6", true)) {
		rc = ip(f, "link set dev", "addrgenmode none", NULL, e);
		if (!rc)
			rc = ip(f, "addr flush dev", "scope link", NULL, e);
	}
	return rc;
}

static int mtu_prove(struct fault *f, json_t **ret, struct error *e)
{
	int64_t now = 0, before = json_int(f->state, "before", 0);
	bool smaller = f->active && mtu_now(f, &now, e) == 0 && now == json_int(f->args, "mtu", 0) && now < before;

	*ret = json_pack("{s:I,s:I}", "before", (json_int_t)before, "now", (json_int_t)now);
	return smaller;
}

/* address_removed */

static int address_inject(struct fault *f, struct error *e)
{
	json_t *shown = NULL;
	const json_t *info;
	char text[96] = "", what[128];
	size_t i;
	int rc = ip(f, "addr show dev", "", &shown, e);

	if (rc)
		return rc;
	json_array_foreach(json_object_get(first(shown), "addr_info"), i, info)
		if (json_str(info, "family") && strcmp(json_str(info, "family"), "inet") == 0 && !text[0])
			snprintf(text, sizeof text, "%s/%lld", json_str(info, "local"), (long long)json_int(info, "prefixlen", 32));
	json_decref(shown);
	if (!text[0])
		return error_set(e, -EADDRNOTAVAIL, "address_removed: %s has no IPv4 address", netdev(f));
	json_object_set_new(f->state, "address", json_string(text));
	rc = neighbours_keep(f, e);
	if (rc)
		return rc;
	snprintf(what, sizeof what, "addr del %s dev", text);
	return ip(f, what, "", NULL, e);
}

static int address_clear(struct fault *f, struct error *e)
{
	char what[128];
	int rc;

	snprintf(what, sizeof what, "addr add %s dev", json_str(f->state, "address"));
	rc = ip(f, what, "", NULL, e);
	return rc ? rc : neighbours_restore(f, e);
}

static int address_prove(struct fault *f, json_t **ret, struct error *e)
{
	json_t *shown = NULL;
	const json_t *info;
	bool there = false;
	size_t i;
	int rc = f->active ? ip(f, "addr show dev", "", &shown, e) : -1;

	json_array_foreach(json_object_get(first(shown), "addr_info"), i, info) {
		const char *local = json_str(info, "local"), *gone = json_str(f->state, "address");

		there = there || (local && gone && strncmp(local, gone, strlen(local)) == 0 && gone[strlen(local)] == '/');
	}
	json_decref(shown);
	*ret = json_pack("{s:s,s:b}", "address", json_str(f->state, "address") ? json_str(f->state, "address") : "", "there",
			 (int)there);
	return rc == 0 && !there;
}

static const struct fault_param end_params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end whose device it is" },
	{ .name = NULL },
};
static const struct fault_param mtu_params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end whose device it is" },
	{ .name = "mtu",
	  .type = FAULT_PARAM_INT,
	  .required = true,
	  .min = 576,
	  .max = 65535,
	  .unit = "bytes",
	  .help = "of its frames' payload" },
	{ .name = NULL },
};

const struct fault_ops fault_link_down = {
	.name = "link_down",
	.help = "an end's network device goes down",
	.layer = FAULT_LINK,
	.blast = FAULT_BLAST_LINK,
	.params = end_params,
	.proof = "ip shows the device without UP",
	.detection = fault_detect_silent,
	.inject = down_inject,
	.clear = down_clear,
	.prove = down_prove,
};
const struct fault_ops fault_mtu_shrunk = {
	.name = "mtu_shrunk",
	.help = "an end's network device carries shorter frames than before",
	.layer = FAULT_LINK,
	.blast = FAULT_BLAST_LINK,
	.params = mtu_params,
	.proof = "ip shows the smaller MTU",
	.detection = fault_detect_silent,
	.inject = mtu_inject,
	.clear = mtu_clear,
	.prove = mtu_prove,
};
const struct fault_ops fault_address_removed = {
	.name = "address_removed",
	.help = "the address behind an end's GID goes away",
	.layer = FAULT_LINK,
	.blast = FAULT_BLAST_DEVICE,
	.params = end_params,
	.proof = "ip no longer shows the address",
	.detection = fault_detect_silent,
	.inject = address_inject,
	.clear = address_clear,
	.prove = address_prove,
};
