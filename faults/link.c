/* SPDX-License-Identifier: MIT */
/* The network device under an end: down, or with shorter frames. What was there is read before and put back by clear. */
#include "link_common.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../harness/json.h"

/* link_down */

static bool has_flag(const json_t *link, const char *flag)
{
	return json_has(link, "flags", flag);
}

static int down_inject(struct fault *f, struct error *e)
{
	int rc = link_neighbours_keep(f, e);

	return rc ? rc : link_ip(f, "link set dev", "down", NULL, e);
}

static int down_clear(struct fault *f, struct error *e)
{
	int rc = link_ip(f, "link set dev", "up", NULL, e);

	return rc ? rc : link_neighbours_restore(f, e);
}

static int down_prove(struct fault *f, json_t **ret, struct error *e)
{
	json_t *shown = NULL;
	bool down = false;

	if (f->active && link_ip(f, "addr show dev", "", &shown, e) == 0 && link_first(shown))
		down = !has_flag(link_first(shown), "UP");
	json_decref(shown);
	*ret = json_pack("{s:b}", "down", (int)down);
	return down;
}

/* mtu_shrunk */

static int mtu_now(struct fault *f, int64_t *ret, struct error *e)
{
	json_t *shown = NULL;
	int rc = link_ip(f, "addr show dev", "", &shown, e);

	if (!rc && !link_first(shown))
		rc = error_set(e, -ENODEV, "%s: ip shows no such device", link_netdev(f));
	if (!rc)
		*ret = json_int(link_first(shown), "mtu", 0);
	json_decref(shown);
	return rc;
}

static int mtu_set(struct fault *f, int64_t mtu, struct error *e)
{
	char text[32];

	snprintf(text, sizeof text, "mtu %lld", (long long)mtu);
	return link_ip(f, "link set dev", text, NULL, e);
}

#define IPV6_MIN_MTU 1280

static bool has_ipv6(struct fault *f)
{
	json_t *shown = NULL;
	const json_t *info;
	bool found = false;
	size_t i;

	if (link_ip(f, "addr show dev", "", &shown, NULL))
		return false;
	json_array_foreach(json_object_get(link_first(shown), "addr_info"), i, info)
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
		rc = link_ip(f, "link set dev", "addrgenmode none", NULL, e);
		if (!rc)
			rc = link_ip(f, "addr flush dev", "scope link", NULL, e);
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
	.params = link_end_params,
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
