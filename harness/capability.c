/* SPDX-License-Identifier: MIT */
#include "capability.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

const struct capability capability_table[] = {
	{ "atomics", "the device does atomics", "caps" },
	{ "cm", "agents connect by rdma_cm", "caps" },
	{ "extended", "the extended interface: ibv_wr_*, ibv_start_poll", "caps" },
	{ "guest", "the scenario may break the kernel it runs on: lab guest only", "guest" },
	{ "multicast", "datagrams to groups of IPv6", "caps" },
	{ "multicast_ipv4", "datagrams to groups of IPv4", "caps" },
	{ "mw", "memory windows", "caps" },
	{ "srq", "shared receive queues", "caps" },
	{ "uc", "unreliable connections", "caps" },
	{ "ud", "datagrams", "caps" },
	{ "wire", "packets are seen and changed on their way", "wire" },
	{ "xrc", "extended reliable connections", "device" },
};
const size_t capability_table_n = sizeof(capability_table) / sizeof(*capability_table);

const struct capability *capability_find(const char *name)
{
	for (size_t i = 0; i < capability_table_n; i++)
		if (!strcmp(capability_table[i].name, name))
			return &capability_table[i];
	return NULL;
}

static bool is_kernel(const char *requirement)
{
	return !strncmp(requirement, "kernel", 6) && strchr(" <>=", requirement[6]) && requirement[6];
}

static bool is_lab(const char *requirement)
{
	return !strncmp(requirement, "lab:", 4);
}

bool capability_missing(const char *requirement, char *buf, size_t size)
{
	if (is_kernel(requirement) || is_lab(requirement))
		return false;
	if (capability_find(requirement))
		return false;
	snprintf(buf, size, "needs %s, which nothing here provides", requirement);
	return true;
}

/* "6.12.115-amd64" -> 6, 12, 115; what is not there is 0. */
static void version_parse(const char *text, long v[3])
{
	v[0] = v[1] = v[2] = 0;
	for (int i = 0; i < 3; i++) {
		char *end;

		v[i] = strtol(text, &end, 10);
		if (*end != '.')
			return;
		text = end + 1;
	}
}

static int version_compare(const char *a, const char *b)
{
	long va[3], vb[3];

	version_parse(a, va);
	version_parse(b, vb);
	for (int i = 0; i < 3; i++)
		if (va[i] != vb[i])
			return va[i] < vb[i] ? -1 : 1;
	return 0;
}

static bool kernel_fits(const char *requirement, const char *kernel)
{
	const char *op = requirement + strlen("kernel");
	size_t len;
	int order;

	op += strspn(op, " ");
	len = strspn(op, "<>=");
	order = version_compare(kernel, op + len + strspn(op + len, " "));
	return (order < 0 && memchr(op, '<', len)) || (order > 0 && memchr(op, '>', len)) || (order == 0 && memchr(op, '=', len));
}

/* The guest's own lab is rxe: it is both. */
static bool lab_fits(const char *requirement, const json_t *env)
{
	const char *wanted = requirement + 4 + strspn(requirement + 4, " "), *lab = json_str(env, "lab");

	if (!strcmp(wanted, "guest") && json_object_get(env, "guest"))
		return json_bool(env, "guest", false);
	if (!strcmp(wanted, "rxe") && json_bool(env, "guest", false))
		return true;
	return !lab || !strcmp(wanted, lab);
}

static bool caps_have(const json_t *caps, const char *name)
{
	size_t i;
	json_t *cap;

	json_array_foreach(caps, i, cap)
		if (json_is_string(cap) && !strcasecmp(json_string_value(cap), name))
			return true;
	return false;
}

static bool fulfilled(const char *requirement, const json_t *env, char *buf, size_t size)
{
	const char *kernel = json_str(env, "kernel");
	const struct capability *c = capability_find(requirement);
	const json_t *caps = json_object_get(env, "caps"), *of_device = json_object_get(env, "device_caps");

	if (is_kernel(requirement) && kernel && !kernel_fits(requirement, kernel))
		snprintf(buf, size, "needs %s, this is %s", requirement, kernel);
	else if (is_lab(requirement) && !lab_fits(requirement, env))
		snprintf(buf, size, "needs %s, this is lab %s", requirement, json_str(env, "lab") ? json_str(env, "lab") : "?");
	else if (c && !strcmp(c->env, "guest") && json_object_get(env, "guest") && !json_bool(env, "guest", false))
		snprintf(buf, size, "needs the guest lab: it may break the kernel it runs on");
	else if (c && !strcmp(c->env, "wire") && json_object_get(env, "wire") && !json_bool(env, "wire", false))
		snprintf(buf, size, "needs the wire, for which this lab has no place");
	else if (c && !strcmp(c->env, "caps") && caps && !caps_have(caps, requirement))
		snprintf(buf, size, "needs %s, which the device does not have", requirement);
	else if (c && !strcmp(c->env, "device") && of_device && !caps_have(of_device, requirement))
		snprintf(buf, size, "needs %s, which the device does not have: its device_cap_flags do not say so", requirement);
	else
		return true;
	return false;
}

bool capability_asks_device(const json_t *requires)
{
	size_t i;
	json_t *item;

	json_array_foreach(requires, i, item) {
		const struct capability *c = json_is_string(item) ? capability_find(json_string_value(item)) : NULL;

		if (c && !strcmp(c->env, "device"))
			return true;
	}
	return false;
}

bool capability_check(const json_t *requires, const json_t *env, char *buf, size_t size)
{
	size_t i;
	json_t *item;

	json_array_foreach(requires, i, item) {
		const char *requirement = json_string_value(item);

		if (requirement && (capability_missing(requirement, buf, size) || !fulfilled(requirement, env, buf, size)))
			return false;
	}
	return true;
}
