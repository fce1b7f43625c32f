/* SPDX-License-Identifier: MIT */
#include "lab.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "json.h"
#include "lab_device.h"
#include "lab_driver.h"
#include "lab_netdev.h"
#include "lab_netns.h"
#include "lab_ready.h"
#include "lab_rxe_lane.h"
#include "log.h"
#include "units.h"

static struct lab_rxe *rxe_of(struct lab *lab)
{
	return (struct lab_rxe *)((char *)lab - offsetof(struct lab_rxe, lab));
}

/* ---- tools ---- */

static struct lane *lane_of_device(struct lab_rxe *r, const char *name, int *ret_end)
{
	for (int i = 0; i < MAX_LANES * NUM_KINDS; i++) {
		struct lane *s = &r->lanes[i / NUM_KINDS][i % NUM_KINDS];

		for (int end = 0; s->used && end < 2; end++) {
			if (strcmp(s->name[end], name) == 0) {
				*ret_end = end;
				return s;
			}
		}
	}
	return NULL;
}

/* Where the first device that the command names lives. */
static enum lab_space space_of(struct lab_rxe *r, const char *args)
{
	char word[LAB_NAME_MAX];

	for (const char *p = args; r->apart.on && *(p += strspn(p, " ")); p += strcspn(p, " ")) {
		size_t len = strcspn(p, " ");
		int end;

		if (len >= sizeof word)
			continue;
		memcpy(word, p, len);
		word[len] = '\0';
		if (lane_of_device(r, word, &end))
			return lab_apart_space(&r->apart, end);
	}
	return LAB_HOME;
}

static int rxe_command(struct lab *lab, const char *tool, const char *args, json_t **ret_out, struct error *e)
{
	struct lab_rxe *r = rxe_of(lab);
	enum lab_which which;
	int rc = lab_tools_find(tool, &which, e);

	/* RDMA devices are the same from everywhere. */
	return rc ? rc : lab_tools_run_text(&r->tools, which == LAB_RDMA ? LAB_HOME : space_of(r, args), which, args, ret_out, e);
}

/* ---- lanes ---- */

/* Marks the second bytes that an address ("10.1.2.3") or a route ("10.16.0.0/12") in 10.0.0.0/8 covers. A route to all of it marks
 * none: ours are narrower, and win. */
static void mark_taken(bool taken[256], const char *text)
{
	const char *slash = text ? strchr(text, '/') : NULL;
	unsigned long len = slash ? strtoul(slash + 1, NULL, 10) : 32;
	unsigned long span = len <= 8 ? 0 : len < 16 ? 1ul << (16 - len) : 1;

	if (!text || strncmp(text, "10.", 3) != 0)
		return;
	for (unsigned long b = strtoul(text + 3, NULL, 10); span > 0 && b < 256; b++, span--)
		taken[b] = true;
}

/* A 10.x that no address and no route of this machine lies in. */
static int choose_net(struct lab_rxe *r, struct error *e)
{
	json_t *addrs = NULL, *routes = NULL, *item, *addr;
	bool taken[256] = { false };
	size_t i, k;
	int rc = lab_tools_run(&r->tools, LAB_HOME, LAB_IP, &addrs, e, "addr show");

	if (rc == 0)
		rc = lab_tools_run(&r->tools, LAB_HOME, LAB_IP, &routes, e, "route show");
	json_array_foreach(addrs, i, item)
		json_array_foreach(json_object_get(item, "addr_info"), k, addr)
			mark_taken(taken, json_str(addr, "local"));
	json_array_foreach(routes, i, item)
		mark_taken(taken, json_str(item, "dst"));
	json_decref(addrs);
	json_decref(routes);
	if (rc < 0)
		return rc;
	for (unsigned n = 0; n < 32; n++) {
		int net = 224 + (int)((r->token + n) % 32);

		if (!taken[net]) {
			r->net = net;
			return 0;
		}
	}
	return error_set(e, -EADDRINUSE,
			 "no free network for the links: 10.224.0.0/16 to 10.255.0.0/16 are all in use on this machine");
}

static int await_lane(struct lane *s, int events, struct error *e)
{
	int rc = lab_ready_wait(&s->made, s->want, events, e);

	for (int i = 0; rc == 0 && i < 2; i++)
		lab_device_uncache(s->name[i]);
	return rc;
}

static int bring_up(struct lab_rxe *r, int lane, enum kind kind, struct error *e)
{
	int events = lab_ready_events();
	int rc = rxe_lane_make(r, lane, kind, e);
	struct error ignored;

	if (rc == 0)
		rc = await_lane(&r->lanes[lane][kind], events, e);
	if (events >= 0)
		close(events);
	if (rc < 0) {
		rxe_lane_remove(r, &r->lanes[lane][kind], &ignored);
		return error_prefix(e, rc, "lane %d", lane);
	}
	return 0;
}

static int rxe_lanes_up(struct lab *lab, int n, bool wire, struct lab_lane *ret, struct error *e)
{
	struct lab_rxe *r = rxe_of(lab);
	int kinds = wire ? NUM_KINDS : KIND_DIRECT + 1, events = lab_ready_events(), rc = 0;
	struct error ignored;

	if (n < 1 || n > MAX_LANES || r->lanes[0][KIND_DIRECT].used)
		rc = error_set(e, -EINVAL, "%d lanes: there can be 1 to %d, once", n, MAX_LANES);
	/* The kernel makes the ones ready while others are made. */
	for (int i = 0; rc == 0 && i < n * kinds; i++)
		rc = rxe_lane_make(r, i / kinds, (enum kind)(i % kinds), e);
	for (int i = 0; rc == 0 && i < n * kinds; i++)
		rc = await_lane(&r->lanes[i / kinds][i % kinds], events, e);
	if (events >= 0)
		close(events);
	for (int i = 0; rc < 0 && i < n * kinds; i++)
		if (r->lanes[i / kinds][i % kinds].used)
			rxe_lane_remove(r, &r->lanes[i / kinds][i % kinds], &ignored);
	for (int i = 0; rc == 0 && i < n; i++)
		ret[i] = r->lanes[i][KIND_DIRECT].made;
	return rc;
}

/* What this process would make itself nobody would take down. */
static int rxe_forked(struct lab *lab, struct error *e)
{
	struct lab_rxe *r = rxe_of(lab);

	(void)e;
	r->journal = NULL;
	r->apart.undo[0] = r->apart.undo[1] = 0;
	lab_tools_forked(&r->tools);
	memset(r->pictures, 0, sizeof r->pictures);
	return 0;
}

static int rxe_lane_up(struct lab *lab, int lane, struct lab_lane *ret, struct error *e)
{
	struct lab_rxe *r = rxe_of(lab);

	if (lane < 0 || lane >= MAX_LANES || r->lanes[lane][KIND_DIRECT].used)
		return error_set(e, -EINVAL, "lane %d: %s", lane,
				 lane < 0 || lane >= MAX_LANES ? "there are 0 to 63" : "is up already");
	int rc = bring_up(r, lane, KIND_DIRECT, e);

	if (rc == 0)
		*ret = r->lanes[lane][KIND_DIRECT].made;
	return rc;
}

static int rxe_lane_wire(struct lab *lab, int lane, struct lab_lane *ret, struct error *e)
{
	struct lab_rxe *r = rxe_of(lab);
	int rc = 0;

	if (lane < 0 || lane >= MAX_LANES || !r->lanes[lane][KIND_DIRECT].used)
		return error_set(e, -EINVAL, "lane %d is not up: there is nothing to put a wire beside", lane);
	if (!r->lanes[lane][KIND_WIRE].used && !r->journal)
		return error_set(e, -EINVAL, "lane %d has no place for a wire, and it was brought up elsewhere", lane);
	if (!r->lanes[lane][KIND_WIRE].used)
		rc = bring_up(r, lane, KIND_WIRE, e);
	if (rc == 0)
		*ret = r->lanes[lane][KIND_WIRE].made;
	return rc;
}

/* Everything else about a lane follows from these. */
static int rxe_keep(struct lab *lab, int n, const char *path, struct error *e)
{
	const struct lab_rxe *r = rxe_of(lab);
	json_t *kept = json_pack("{s:i,s:i,s:b,s:s,s:i,s:i}", "token", (int)r->token, "net", r->net, "apart", (int)r->apart.on,
				 "why", r->apart.why, "lanes", n, "wires", n > 0 && r->lanes[n - 1][KIND_WIRE].used ? n : 0);
	int rc = kept ? json_save(path, kept, e) : error_set(e, -ENOMEM, "out of memory");

	json_decref(kept);
	return rc;
}

static int take_kept(struct lab_rxe *r, const char *path, struct error *e)
{
	json_t *kept = NULL;
	int rc = json_load(path, &kept, e);

	if (rc < 0)
		return rc;
	r->token = (unsigned)json_int(kept, "token", 0);
	r->net = (int)json_int(kept, "net", 0);
	r->kept[KIND_DIRECT] = (int)json_int(kept, "lanes", 0);
	r->kept[KIND_WIRE] = (int)json_int(kept, "wires", 0);
	r->apart.on = json_bool(kept, "apart", false);
	snprintf(r->apart.why, sizeof r->apart.why, "%s", json_str(kept, "why") ?: "");
	json_decref(kept);
	lab_apart_name(&r->apart, r->token);
	return r->apart.on ? lab_apart_adopt(&r->apart, &r->tools, e) : 0;
}

/* The MAC and the link-local address are wanted only where there is to be one. */
static int end_ipv6(const struct lab_device *d, bool on, char ret_mac[24], char ret_addr[48], struct error *e)
{
	int back, rc = lab_netns_enter(d->netns, &back, e);

	if (rc < 0)
		return rc;
	rc = lab_netdev_ipv6(d->netdev, on, e);
	if (rc == 0 && on)
		rc = lab_netdev_link_local(d->netdev, ret_mac, ret_addr, e);
	lab_netns_leave(back);
	return rc;
}

static int rxe_set_ipv6(struct lab *lab, const struct lab_lane *lane, bool on, struct error *e)
{
	char mac[2][24], addr[2][48], args[192];
	int rc = 0;

	for (int i = 0; rc == 0 && i < 2; i++)
		rc = end_ipv6(&lane->device[i], on, mac[i], addr[i], e);
	/* Known neighbours ask for nothing on the link, and leave nothing learned behind. */
	for (int i = 0; rc == 0 && on && i < 2; i++) {
		snprintf(args, sizeof args, "neigh replace %s lladdr %s dev %s nud permanent", addr[i], mac[i],
			 lane->device[1 - i].netdev);
		rc = rxe_command(lab, "ip", args, NULL, e);
	}
	return rc;
}

static int set_mtu(struct lab *lab, const char *netdev, int mtu, struct error *e)
{
	char args[64];

	snprintf(args, sizeof args, "link set %s mtu %d", netdev, mtu);
	return rxe_command(lab, "ip", args, NULL, e);
}

static int rxe_set_mtu(struct lab *lab, const struct lab_lane *lane, int mtu, struct error *e)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < 2; i++) {
		if (lane->far[i][0])
			rc = set_mtu(lab, lane->far[i], mtu, e);
		if (rc == 0)
			rc = set_mtu(lab, lane->device[i].netdev, mtu, e);
	}
	return rc;
}

/* ---- one device ---- */

static int rxe_device_del(struct lab *lab, const char *rdma, struct error *e)
{
	struct lab_rxe *r = rxe_of(lab);

	int end;

	if (!lane_of_device(r, rdma, &end))
		return error_set(e, -ENODEV, "%s is no device of this lab", rdma);
	proc_stop(&r->removal, SIGKILL, 0);
	lab_tools_stale(&r->tools);
	return lab_device_del(rdma, &r->removal, e);
}

static int rxe_device_gone(struct lab *lab, const char *rdma, struct error *e)
{
	return lab_device_gone(rdma, &rxe_of(lab)->removal, e);
}

static int rxe_device_add(struct lab *lab, const char *rdma, struct error *e)
{
	struct lab_rxe *r = rxe_of(lab);
	int end, rc;
	struct lane *s = lane_of_device(r, rdma, &end);

	if (!s)
		return error_set(e, -ENODEV, "%s is no device of this lab", rdma);
	rc = lab_tools_run(&r->tools, lab_apart_space(&r->apart, end), LAB_RDMA, NULL, e, "link add %s type rxe netdev %s", rdma,
			   rdma);
	return rc < 0 ? rc : await_lane(s, -1, e);
}

static int snapshot_command(void *user, unsigned space, const char *tool, const char *args, json_t **ret_out, struct error *e)
{
	struct lab_rxe *r = rxe_of(user);
	enum lab_which which;
	int rc = lab_tools_find(tool, &which, e);

	return rc ? rc : lab_tools_run_text(&r->tools, (enum lab_space)space, which, args, ret_out, e);
}

static int rxe_snapshot(struct lab *lab, int lane, json_t **ret, struct error *e)
{
	struct lab_rxe *r = rxe_of(lab);
	char suffix[8];

	if (lane < 0 || lane >= MAX_LANES)
		return error_set(e, -EINVAL, "lane %d: there are 0 to 63", lane);
	snprintf(suffix, sizeof suffix, "-%04x", r->token);
	const struct lab_snapshot_of of = { .command = snapshot_command,
					    .user = lab,
					    .netns = { "", r->apart.path[0], r->apart.path[1] },
					    .n = r->apart.on ? 3 : 1,
					    .lane = lane,
					    .suffix = suffix };
	return lab_snapshot(&of, &r->pictures[lane], ret, e);
}

/* ---- life ---- */

static void rxe_close(struct lab *lab)
{
	struct lab_rxe *r = rxe_of(lab);

	for (int i = 0; i < MAX_LANES * NUM_KINDS; i++) {
		struct lane *s = &r->lanes[i / NUM_KINDS][i % NUM_KINDS];
		struct error e;

		if (s->used && rxe_lane_remove(r, s, &e) < 0)
			log_warn("lane %d could not be put back: %s; `qpdrill clean` tries again", i / NUM_KINDS, e.text);
	}
	proc_stop(&r->removal, SIGKILL, 0);
	struct error e;

	if (lab_apart_end(&r->apart, &r->tools, r->journal, &e) < 0)
		log_warn("%s; `qpdrill clean` tries again", e.text);
	lab_tools_free(&r->tools, LAB_HOME);
	for (int i = 0; i < MAX_LANES; i++)
		lab_snapshot_forget(r->pictures[i]);
	free(r);
}

static int open_lab(struct journal *journal, const char *kept, struct lab **ret, struct error *e)
{
	struct lab_rxe *r = calloc(1, sizeof *r);
	uint16_t token = 0;
	int rc = 0;

	if (!r)
		return error_set(e, -ENOMEM, "out of memory");
	r->lab.ops = &lab_rxe;
	r->removal = (struct proc){ .pidfd = -1, .in = -1, .out = -1 };
	r->journal = journal;
	if (getrandom(&token, sizeof token, 0) != sizeof token)
		token = (uint16_t)getpid();
	r->token = token;
	rc = lab_tools_new(&r->tools, LAB_HOME, "", e);
	/* rdma finds nothing to talk to before the modules are there; ip does. */
	if (rc == 0)
		rc = kept ? take_kept(r, kept, e) : choose_net(r, e);
	if (rc == 0)
		rc = lab_driver_load(e);
	if (rc == 0)
		rc = lab_tool_start(r->tools.tool[LAB_HOME][LAB_RDMA], e);
	if (rc == 0 && !kept)
		rc = lab_apart_try(&r->apart, &r->tools, journal, r->token, e);
	if (rc < 0) {
		rxe_close(&r->lab);
		return rc;
	}
	r->lab.one_netns = r->apart.on ? NULL : r->apart.why;
	*ret = &r->lab;
	return 0;
}

static int rxe_open(sd_event *loop, struct journal *journal, struct lab **ret, struct error *e)
{
	(void)loop;
	return open_lab(journal, NULL, ret, e);
}

static int rxe_adopt(sd_event *loop, struct journal *journal, const char *path, struct lab **ret, struct error *e)
{
	(void)loop;
	return open_lab(journal, path, ret, e);
}

const struct lab_ops lab_rxe = {
	.name = "rxe",
	.help = "two rxe devices on a veth pair in the running kernel",
	.probe = lab_driver_probe,
	.open = rxe_open,
	.lane_up = rxe_lane_up,
	.lanes_up = rxe_lanes_up,
	.forked = rxe_forked,
	.lane_wire = rxe_lane_wire,
	.keep = rxe_keep,
	.adopt = rxe_adopt,
	.set_mtu = rxe_set_mtu,
	.set_ipv6 = rxe_set_ipv6,
	.device_del = rxe_device_del,
	.device_gone = rxe_device_gone,
	.device_add = rxe_device_add,
	.command = rxe_command,
	.snapshot = rxe_snapshot,
	.close = rxe_close,
};
