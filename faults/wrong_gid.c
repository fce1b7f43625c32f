/* SPDX-License-Identifier: MIT */
/* An end is told a GID that is not its peer's. */
#include "fault_common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "../harness/json.h"

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end that is told a wrong GID" },
	{ .name = "gid", .type = FAULT_PARAM_STRING, .help = "the GID; default: one of the same network that is nobody's" },
	{ .name = NULL },
};

/* A neighbour entry for the address behind a GID that is nobody's, so that the device can be connected to it. */
static int neighbour(struct fault *f, const char *verb, const char *rest, struct error *e)
{
	const char *address = json_str(f->state, "address");
	char args[128];

	if (!address)
		return 0;
	snprintf(args, sizeof args, "neigh %s %s dev %s%s", verb, address,
		 json_str(f->env->device(f->env->ctl, fault_agent(f, fault_arg(f, "at"))), "netdev"), rest);
	return f->env->lab(f->env->ctl, "ip", args, NULL, e);
}

static int inject(struct fault *f, struct error *e)
{
	const json_t *device = f->env->device(f->env->ctl, fault_agent(f, fault_arg(f, "at")));
	const char *own = json_str(device, "gid");
	struct in6_addr gid;
	char text[INET6_ADDRSTRLEN];

	if (fault_arg(f, "gid"))
		return 0;
	if (!own || inet_pton(AF_INET6, own, &gid) != 1)
		return error_set(e, -EADDRNOTAVAIL, "wrong_gid: the device of %s has no GID", fault_arg(f, "at"));
	gid.s6_addr[15] ^= 0x80;
	json_object_set_new(f->state, "gid", json_string(inet_ntop(AF_INET6, &gid, text, sizeof text)));
	if (!IN6_IS_ADDR_V4MAPPED(&gid) || !json_str(device, "netdev"))
		return 0;
	json_object_set_new(f->state, "address", json_string(inet_ntop(AF_INET, &gid.s6_addr[12], text, sizeof text)));
	return neighbour(f, "replace", " lladdr 02:00:00:00:00:99 nud permanent", e);
}

static int clear(struct fault *f, struct error *e)
{
	return neighbour(f, "del", "", e);
}

static void on_handover(struct fault *f, const char *to_qp, json_t *handover)
{
	const char *gid = fault_arg(f, "gid");

	if (!fault_names(f, "at", to_qp))
		return;
	if (!gid)
		gid = json_str(f->state, "gid");
	if (!gid)
		return;
	json_object_set(f->state, "true", json_object_get(handover, "gid"));
	json_object_set_new(f->state, "told", json_string(gid));
	json_object_set_new(handover, "gid", json_string(gid));
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	const char *truth = json_str(f->state, "true"), *told = json_str(f->state, "told");
	const json_t *rtr = json_object_get(f->env->qp(f->env->ctl, fault_arg(f, "at")), "rtr");

	unsigned posted = fault_pair_posted(f, fault_arg(f, "at"));

	(void)e;
	*ret = json_pack("{s:s,s:s,s:b,s:i}", "told", told ? told : "", "peer", truth ? truth : "", "connected", rtr != NULL,
			 "posted", (int)posted);
	return posted && told && truth && rtr && strcmp(told, truth) != 0;
}

const struct fault_ops fault_wrong_gid = {
	.name = "wrong_gid",
	.help = "an end is connected to a GID that is not its peer's",
	.layer = FAULT_VERBS,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.proof = "the GID handed over differs from the peer's, the device took it, and something was sent by it",
	.detection = fault_detect_silent,
	.inject = inject,
	.clear = clear,
	.prove = prove,
	.on_handover = on_handover,
};
