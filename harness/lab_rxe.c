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
#include "lab_name.h"
#include "lab_netdev.h"
#include "lab_ready.h"
#include "lab_snapshot.h"
#include "lab_tool.h"
#include "log.h"
#include "units.h"

#define MAX_LANES 64
#define DEFAULT_MTU 1500

enum tool { TOOL_IP, TOOL_TC, TOOL_RDMA, NUM_TOOLS };
static const char *const tool_names[NUM_TOOLS] = { "ip", "tc", "rdma" };

/* What a lane's link is made of: one veth pair, or two with the wire between their far ends. */
enum kind { KIND_DIRECT, KIND_WIRE, NUM_KINDS };
static const char *const kind_letters[NUM_KINDS] = { "", "w" };

struct lane {
	bool used;
	int lane;
	enum kind kind;
	int undo_link[2], undo_rdma[2]; /* journal ids; 0: none */
	char name[2][LAB_NAME_MAX], far[2][LAB_NAME_MAX];
	char want[2][64]; /* GIDs */
	struct lab_lane made;
};

struct lab_rxe {
	struct lab lab;
	struct journal *journal;
	struct lab_tool *tool[NUM_TOOLS];
	bool rdma_stale;     /* devices came or went since rdma started */
	unsigned token;      /* 16 bits: in names and MAC addresses */
	int net;             /* second byte of the addresses: 10.net.lane.0/30 */
	int kept[NUM_KINDS]; /* so many lanes were up before this process: they are taken as they are */
	struct lane lanes[MAX_LANES][NUM_KINDS];
	struct lab_snapshot_memory *pictures[MAX_LANES];
	struct proc removal; /* of one device at a time */
};

static struct lab_rxe *rxe_of(struct lab *lab)
{
	return (struct lab_rxe *)((char *)lab - offsetof(struct lab_rxe, lab));
}

/* ---- tools ---- */

static int run(struct lab_rxe *r, enum tool tool, json_t **ret_out, struct error *e, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

static int run_text(struct lab_rxe *r, enum tool tool, const char *args, json_t **ret_out, struct error *e)
{
	bool changes = strstr(args, "link add") || strstr(args, "link del");

	if (tool == TOOL_RDMA && r->rdma_stale && strncmp(args, "link add", 8) != 0) {
		lab_tool_restart(r->tool[TOOL_RDMA]);
		r->rdma_stale = false;
	}
	int rc = lab_tool_run(r->tool[tool], args, LAB_TOOL_TIMEOUT_NS, ret_out, e);

	if (changes && tool != TOOL_TC)
		r->rdma_stale = true;
	return rc;
}

static int run(struct lab_rxe *r, enum tool tool, json_t **ret_out, struct error *e, const char *fmt, ...)
{
	char args[512];
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(args, sizeof args, fmt, ap);

	va_end(ap);
	if (n < 0 || n >= (int)sizeof args)
		return error_set(e, -EINVAL, "%s: command too long", tool_names[tool]);
	return run_text(r, tool, args, ret_out, e);
}

static int rxe_command(struct lab *lab, const char *tool, const char *args, json_t **ret_out, struct error *e)
{
	for (int i = 0; i < NUM_TOOLS; i++)
		if (strcmp(tool, tool_names[i]) == 0)
			return run_text(rxe_of(lab), (enum tool)i, args, ret_out, e);
	return error_set(e, -EINVAL, "%s: the lab knows ip, tc and rdma", tool);
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
	int rc = run(r, TOOL_IP, &addrs, e, "addr show");

	if (rc == 0)
		rc = run(r, TOOL_IP, &routes, e, "route show");
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

static int add_undo(struct lab_rxe *r, const char *tool, const char *name, int *ret_id, struct error *e)
{
	const char *const undo[] = { tool, "link", "del", name, NULL };

	return journal_add(r->journal, undo, ret_id, e);
}

/* Last byte of the address of an end: a lane has 10.net.lane.0/30 for its direct link and the next /30 for that with a wire. */
static int host_of(const struct lane *s, int i)
{
	return 4 * (int)s->kind + i + 1;
}

/* What both ends need of ip once they are there. */
static int configure_links(struct lab_rxe *r, const struct lane *s, char mac[2][24], struct error *e)
{
	char lines[1024];
	size_t used = 0;
	int rc = 0;

	for (int i = 0; rc == 0 && i < 2; i++) {
		rc = lab_netdev_end(s->name[i], e);
		int n = snprintf(lines + used, sizeof lines - used,
				 "%saddr add 10.%d.%d.%d/30 dev %s\nlink set %s up\nneigh replace 10.%d.%d.%d lladdr %s dev %s nud "
				 "permanent",
				 i ? "\n" : "", r->net, s->lane, host_of(s, i), s->name[i], s->name[i], r->net, s->lane,
				 host_of(s, 1 - i), mac[1 - i], s->name[i]);

		used += n > 0 ? (size_t)n : 0;
	}
	return rc ? rc : lab_tool_batch(r->tool[TOOL_IP], lines, LAB_TOOL_TIMEOUT_NS, e);
}

static int make_devices(struct lab_rxe *r, struct lane *s, struct error *e)
{
	char lines[256];
	int rc = add_undo(r, "rdma", s->name[0], &s->undo_rdma[0], e);

	if (rc == 0)
		rc = add_undo(r, "rdma", s->name[1], &s->undo_rdma[1], e);
	snprintf(lines, sizeof lines, "link add %s type rxe netdev %s\nlink add %s type rxe netdev %s", s->name[0], s->name[0],
		 s->name[1], s->name[1]);
	if (rc == 0)
		rc = lab_tool_batch(r->tool[TOOL_RDMA], lines, LAB_TOOL_TIMEOUT_NS, e);
	r->rdma_stale = true;
	return rc;
}

static int make_veth(struct lab_rxe *r, struct lane *s, char mac[2][24], struct error *e)
{
	int rc = add_undo(r, "ip", s->name[0], &s->undo_link[0], e);

	if (rc == 0)
		rc = run(r, TOOL_IP, NULL, e, "link add %s address %s mtu %d type veth peer name %s address %s mtu %d", s->name[0],
			 mac[0], DEFAULT_MTU, s->name[1], mac[1], DEFAULT_MTU);
	return rc;
}

static int make_veths_for_wire(struct lab_rxe *r, struct lane *s, char mac[2][24], struct error *e)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < 2; i++) {
		rc = add_undo(r, "ip", s->name[i], &s->undo_link[i], e);
		if (rc == 0)
			rc = run(r, TOOL_IP, NULL, e, "link add %s address %s mtu %d type veth peer name %s mtu %d", s->name[i],
				 mac[i], DEFAULT_MTU, s->far[i], DEFAULT_MTU);
		if (rc == 0)
			rc = lab_netdev_plain(s->name[i], e);
		if (rc == 0)
			rc = lab_netdev_plain(s->far[i], e);
		if (rc == 0)
			rc = run(r, TOOL_IP, NULL, e, "link set %s up", s->far[i]);
	}
	return rc;
}

static int make_links(struct lab_rxe *r, struct lane *s, struct error *e)
{
	char mac[2][24];
	int rc;

	if (s->lane < r->kept[s->kind])
		return 0;
	for (int i = 0; i < 2; i++)
		snprintf(mac[i], sizeof mac[i], "02:71:%02x:%02x:%02x:%02x", r->token >> 8, r->token & 0xff, s->lane & 0xff,
			 host_of(s, i));
	rc = s->kind == KIND_WIRE ? make_veths_for_wire(r, s, mac, e) : make_veth(r, s, mac, e);
	if (rc == 0)
		rc = configure_links(r, s, mac, e);
	return rc ? rc : make_devices(r, s, e);
}

static int remove_links(struct lab_rxe *r, struct lane *s, struct error *e)
{
	struct error ignored;
	int first = 0;

	for (int i = 0; i < 2; i++) {
		if (!s->undo_rdma[i])
			continue;
		int rc = run(r, TOOL_RDMA, NULL, &ignored, "link del %s", s->name[i]);

		if (rc == 0 || rc == -ENODEV)
			journal_done(r->journal, s->undo_rdma[i]);
		else if (!first)
			first = error_set(e, rc, "%s", ignored.text);
	}
	for (int i = 0; i < 2; i++) {
		if (!s->undo_link[i])
			continue;
		int rc = run(r, TOOL_IP, NULL, &ignored, "link del %s", s->name[i]);

		if (rc == 0 || rc == -ENODEV)
			journal_done(r->journal, s->undo_link[i]);
		else if (!first)
			first = error_set(e, rc, "%s", ignored.text);
	}
	*s = (struct lane){ 0 };
	return first;
}

static void name_devices(const struct lab_rxe *r, struct lane *s, struct lab_lane *l, char want[2][64])
{
	for (int i = 0; i < 2; i++) {
		struct lab_device *d = &l->device[i];

		lab_name(s->name[i], s->lane, kind_letters[s->kind], (char)('a' + i), r->token);
		if (s->kind == KIND_WIRE) {
			lab_name(s->far[i], s->lane, "f", (char)('a' + i), r->token);
			snprintf(l->far[i], sizeof l->far[i], "%s", s->far[i]);
		}
		snprintf(d->name, sizeof d->name, "%c", 'a' + i);
		snprintf(d->rdma, sizeof d->rdma, "%s", s->name[i]);
		snprintf(d->netdev, sizeof d->netdev, "%s", s->name[i]);
		d->port = 1;
		snprintf(want[i], sizeof want[i], "0000:0000:0000:0000:0000:ffff:0a%02x:%02x%02x", r->net, s->lane, host_of(s, i));
	}
}

static int make_lane(struct lab_rxe *r, int lane, enum kind kind, struct error *e)
{
	struct lane *s = &r->lanes[lane][kind];

	*s = (struct lane){ .used = true, .lane = lane, .kind = kind, .made = { .lane = lane } };
	name_devices(r, s, &s->made, s->want);
	return make_links(r, s, e);
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
	int rc = make_lane(r, lane, kind, e);
	struct error ignored;

	if (rc == 0)
		rc = await_lane(&r->lanes[lane][kind], events, e);
	if (events >= 0)
		close(events);
	if (rc < 0) {
		remove_links(r, &r->lanes[lane][kind], &ignored);
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
		rc = make_lane(r, i / kinds, (enum kind)(i % kinds), e);
	for (int i = 0; rc == 0 && i < n * kinds; i++)
		rc = await_lane(&r->lanes[i / kinds][i % kinds], events, e);
	if (events >= 0)
		close(events);
	for (int i = 0; rc < 0 && i < n * kinds; i++)
		if (r->lanes[i / kinds][i % kinds].used)
			remove_links(r, &r->lanes[i / kinds][i % kinds], &ignored);
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
	for (int i = 0; i < NUM_TOOLS; i++)
		lab_tool_forked(r->tool[i]);
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
	json_t *kept = json_pack("{s:i,s:i,s:i,s:i}", "token", (int)r->token, "net", r->net, "lanes", n, "wires",
				 n > 0 && r->lanes[n - 1][KIND_WIRE].used ? n : 0);
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
	json_decref(kept);
	return 0;
}

static int rxe_set_ipv6(struct lab *lab, const struct lab_lane *lane, bool on, struct error *e)
{
	char mac[24], addr[48];
	int rc = 0;

	for (int i = 0; rc == 0 && i < 2; i++)
		rc = lab_netdev_ipv6(lane->device[i].netdev, on, e);
	/* Known neighbours ask for nothing on the link, and leave nothing learned behind. */
	for (int i = 0; rc == 0 && on && i < 2; i++) {
		rc = lab_netdev_link_local(lane->device[i].netdev, mac, addr, e);
		if (rc == 0)
			rc = run(rxe_of(lab), TOOL_IP, NULL, e, "neigh replace %s lladdr %s dev %s nud permanent", addr, mac,
				 lane->device[1 - i].netdev);
	}
	return rc;
}

static int rxe_set_mtu(struct lab *lab, const struct lab_lane *lane, int mtu, struct error *e)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < 2; i++) {
		if (lane->far[i][0])
			rc = run(rxe_of(lab), TOOL_IP, NULL, e, "link set %s mtu %d", lane->far[i], mtu);
		if (rc == 0)
			rc = run(rxe_of(lab), TOOL_IP, NULL, e, "link set %s mtu %d", lane->device[i].netdev, mtu);
	}
	return rc;
}

/* ---- one device ---- */

static struct lane *lane_of_device(struct lab_rxe *r, const char *rdma)
{
	for (int i = 0; i < MAX_LANES * NUM_KINDS; i++) {
		struct lane *s = &r->lanes[i / NUM_KINDS][i % NUM_KINDS];

		if (s->used && (strcmp(s->name[0], rdma) == 0 || strcmp(s->name[1], rdma) == 0))
			return s;
	}
	return NULL;
}

static int rxe_device_del(struct lab *lab, const char *rdma, struct error *e)
{
	struct lab_rxe *r = rxe_of(lab);

	if (!lane_of_device(r, rdma))
		return error_set(e, -ENODEV, "%s is no device of this lab", rdma);
	proc_stop(&r->removal, SIGKILL, 0);
	r->rdma_stale = true;
	return lab_device_del(rdma, &r->removal, e);
}

static int rxe_device_gone(struct lab *lab, const char *rdma, struct error *e)
{
	return lab_device_gone(rdma, &rxe_of(lab)->removal, e);
}

static int rxe_device_add(struct lab *lab, const char *rdma, struct error *e)
{
	struct lab_rxe *r = rxe_of(lab);
	struct lane *s = lane_of_device(r, rdma);
	int rc;

	if (!s)
		return error_set(e, -ENODEV, "%s is no device of this lab", rdma);
	rc = run(r, TOOL_RDMA, NULL, e, "link add %s type rxe netdev %s", rdma, rdma);
	return rc < 0 ? rc : await_lane(s, -1, e);
}

static int snapshot_command(void *user, const char *tool, const char *args, json_t **ret_out, struct error *e)
{
	return rxe_command(user, tool, args, ret_out, e);
}

static int rxe_snapshot(struct lab *lab, int lane, json_t **ret, struct error *e)
{
	struct lab_rxe *r = rxe_of(lab);
	char suffix[8];

	if (lane < 0 || lane >= MAX_LANES)
		return error_set(e, -EINVAL, "lane %d: there are 0 to 63", lane);
	snprintf(suffix, sizeof suffix, "-%04x", r->token);
	return lab_snapshot(snapshot_command, lab, lane, suffix, &r->pictures[lane], ret, e);
}

/* ---- life ---- */

static void rxe_close(struct lab *lab)
{
	struct lab_rxe *r = rxe_of(lab);

	for (int i = 0; i < MAX_LANES * NUM_KINDS; i++) {
		struct lane *s = &r->lanes[i / NUM_KINDS][i % NUM_KINDS];
		struct error e;

		if (s->used && remove_links(r, s, &e) < 0)
			log_warn("lane %d could not be put back: %s; `qpdrill clean` tries again", i / NUM_KINDS, e.text);
	}
	proc_stop(&r->removal, SIGKILL, 0);
	for (int i = 0; i < NUM_TOOLS; i++)
		lab_tool_free(r->tool[i]);
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
	for (int i = 0; rc == 0 && i < NUM_TOOLS; i++)
		rc = lab_tool_new(tool_names[i], &r->tool[i], e);
	/* rdma finds nothing to talk to before the modules are there; ip does. */
	if (rc == 0)
		rc = kept ? take_kept(r, kept, e) : choose_net(r, e);
	if (rc == 0)
		rc = lab_driver_load(e);
	if (rc == 0)
		rc = lab_tool_start(r->tool[TOOL_RDMA], e);
	if (rc < 0) {
		rxe_close(&r->lab);
		return rc;
	}
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
