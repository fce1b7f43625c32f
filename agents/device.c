/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/attr.h"
#include "../harness/file_line.h"
#include "../harness/json.h"
#include "events.h"
#include "object.h"
#include "verbs_thread.h"

#define GIDS_MAX 256

struct open_call {
	struct verbs_call call;
	struct dev *dev;
	char rdma[64];
	int port, want_gid; /* -1: choose */
	struct ibv_context *ctx;
	struct ibv_device_attr attr;
	struct ibv_port_attr port_attr;
	union ibv_gid gid;
	int gid_index;
	const char *what; /* the step that failed */
};

static struct ibv_device *find_device(struct ibv_device **list, int n, const char *name)
{
	for (int i = 0; i < n; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			return list[i];
	}
	return NULL;
}

static bool maps_ipv4(const union ibv_gid *gid)
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid->raw);
}

/* The first RoCE v2 GID that maps an IPv4 address, else the first RoCE v2 one, else index 0. */
static void choose_gid(struct open_call *c)
{
	struct ibv_gid_entry *table = calloc(GIDS_MAX, sizeof(*table));
	ssize_t n = table ? ibv_query_gid_table(c->ctx, table, GIDS_MAX, 0) : 0;
	const struct ibv_gid_entry *best = NULL;

	for (ssize_t i = 0; i < n; i++) {
		if (table[i].port_num != (uint32_t)c->port || table[i].gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		if (!best || (maps_ipv4(&table[i].gid) && !maps_ipv4(&best->gid)))
			best = &table[i];
	}
	c->gid_index = best ? (int)best->gid_index : 0;
	free(table);
}

/* To find all devices of the machine costs many times what it costs to open one: the list is kept. Verbs thread only. */
static struct ibv_device **known;
static int n_known;

static void forget_devices(void)
{
	if (known)
		ibv_free_device_list(known);
	known = NULL;
	n_known = 0;
}

/* A device that was made anew may have another's number, under which it would be opened. */
static bool is_still(const struct ibv_device *device, const char *rdma)
{
	char path[128], now[64];

	snprintf(path, sizeof(path), "/sys/class/infiniband_verbs/%s/ibdev", device->dev_name);
	return file_line(path, now, sizeof(now)) && strcmp(now, rdma) == 0;
}

static int open_device(struct open_call *c)
{
	struct ibv_device *device = find_device(known, n_known, c->rdma);

	c->what = "ibv_open_device";
	if (device && is_still(device, c->rdma))
		c->ctx = ibv_open_device(device);
	if (c->ctx)
		return 0;
	forget_devices();
	known = ibv_get_device_list(&n_known);
	device = find_device(known, known ? n_known : 0, c->rdma);
	errno = 0;
	if (device)
		c->ctx = ibv_open_device(device);
	if (!device)
		return ENODEV;
	return c->ctx ? 0 : errno ? errno : EIO;
}

static void run_open(struct verbs_call *call)
{
	struct open_call *c = (struct open_call *)call;

	call->err = open_device(c);
	if (call->err)
		return;
	c->what = "ibv_query_device";
	call->err = ibv_query_device(c->ctx, &c->attr);
	if (call->err)
		goto close_device;
	c->what = "ibv_query_port";
	call->err = ibv_query_port(c->ctx, (uint8_t)c->port, &c->port_attr);
	if (call->err)
		goto close_device;
	c->gid_index = c->want_gid;
	if (c->want_gid < 0)
		choose_gid(c);
	c->what = "ibv_query_gid";
	if (ibv_query_gid(c->ctx, (uint8_t)c->port, c->gid_index, &c->gid) != 0) {
		call->err = errno ? errno : EINVAL;
		goto close_device;
	}
	return;
close_device:
	ibv_close_device(c->ctx);
	c->ctx = NULL;
}

static json_t *device_json(const struct dev *dev)
{
	static const char *const states[] = { "NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER" };
	const struct ibv_device_attr *d = &dev->attr;
	unsigned state = (unsigned)dev->port_attr.state;
	char gid[INET6_ADDRSTRLEN];
	json_t *attr, *f;

	inet_ntop(AF_INET6, dev->gid.raw, gid, sizeof(gid));
	attr = json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b}", "max_qp", d->max_qp, "max_qp_wr",
			 d->max_qp_wr, "max_sge", d->max_sge, "max_cq", d->max_cq, "max_cqe", d->max_cqe, "max_mr", d->max_mr,
			 "max_pd", d->max_pd, "max_srq", d->max_srq, "max_srq_wr", d->max_srq_wr, "max_srq_sge", d->max_srq_sge,
			 "max_qp_rd_atom", d->max_qp_rd_atom, "max_qp_init_rd_atom", d->max_qp_init_rd_atom, "atomics",
			 d->atomic_cap != IBV_ATOMIC_NONE);
	f = json_pack("{s:s, s:i, s:i, s:i, s:s, s:o, s:s, s:I, s:I, s:o}", "gid", gid, "gid_index", dev->gid_index, "lid",
		      (int)dev->port_attr.lid, "mtu", mtu_from_enum((int)dev->port_attr.active_mtu), "state",
		      state < sizeof(states) / sizeof(*states) ? states[state] : "?", "guid", json_hex(be64toh(d->node_guid)), "fw",
		      d->fw_ver, "vendor_id", (json_int_t)d->vendor_id, "part_id", (json_int_t)d->vendor_part_id, "attr", attr);
	return f;
}

static void set_text(json_t *f, const char *key, const char *text)
{
	if (*text)
		json_object_set_new(f, key, json_string(text));
}

/* Where a device sits on PCI, and what sits there; nothing where it is on none. */
static void add_pci(json_t *f, const char *rdma)
{
	char path[160], target[PATH_MAX], vendor[16], device[16], id[40];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/subsystem", rdma);
	if (!realpath(path, target) || strcmp(strrchr(target, '/'), "/pci") != 0)
		return;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", rdma);
	if (!realpath(path, target))
		return;
	set_text(f, "pci", strrchr(target, '/') + 1);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/vendor", rdma);
	if (!file_line(path, vendor, sizeof(vendor)))
		return;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/device", rdma);
	if (!file_line(path, device, sizeof(device)))
		return;
	snprintf(id, sizeof(id), "%s:%s", vendor, device);
	set_text(f, "pci_id", id);
}

/* What a report is signed with: where the device sits, and what its port runs at. */
static void describe(json_t *f, const struct dev *dev)
{
	static const int lane_mbps[] = { 2500, 5000, 10000, 10000, 14062, 25781, 53125, 106250 }; /* by bit of active_speed */
	static const int widths[] = { 1, 4, 8, 12, 2 };                                           /* by bit of active_width */
	unsigned speed = dev->port_attr.active_speed, width = dev->port_attr.active_width;
	char path[160], netdev[64];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/gid_attrs/ndevs/%d", dev->rdma, dev->port, dev->gid_index);
	if (file_line(path, netdev, sizeof(netdev)))
		set_text(f, "netdev", netdev);
	add_pci(f, dev->rdma);
	for (unsigned i = 0; i < sizeof(lane_mbps) / sizeof(*lane_mbps); i++)
		if (speed == 1u << i)
			json_object_set_new(f, "lane_mbps", json_integer(lane_mbps[i]));
	for (unsigned i = 0; i < sizeof(widths) / sizeof(*widths); i++)
		if (width == 1u << i)
			json_object_set_new(f, "width", json_integer(widths[i]));
	set_text(f, "layer", dev->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
}

/* What a record keeps of it: what the device is. What else it can do, and where it sits, is told when this agent opens it first. */
static json_t *identity_json(struct agent *a, const struct dev *dev, const json_t *device)
{
	json_t *f = json_copy((json_t *)device);

	if (strcmp(a->described, dev->rdma) != 0) {
		snprintf(a->described, sizeof(a->described), "%s", dev->rdma);
		describe(f, dev);
	} else {
		json_object_del(f, "attr");
	}
	return f;
}

static void finish_open(struct agent *a, struct verbs_call *call)
{
	struct open_call *c = (struct open_call *)call;
	struct dev *dev = c->dev;
	json_t *f = NULL;

	if (c->ctx) {
		dev->ctx = c->ctx;
		dev->attr = c->attr;
		dev->port_attr = c->port_attr;
		dev->port = c->port;
		dev->gid = c->gid;
		dev->gid_index = c->gid_index;
		memcpy(dev->rdma, c->rdma, sizeof(dev->rdma));
		f = device_json(dev);
	}
	if (!call->cancelled) {
		if (call->err)
			call->verb = c->what;
		verbs_record(a, call, f ? identity_json(a, dev, f) : NULL);
	}
	object_settle(&dev->o, c->ctx != NULL);
	if (c->ctx)
		events_watch(a, dev);
	verbs_end(call, f);
}

/* A call that begins with opening the device that r names, for its caller to fill in and submit; NULL: r is answered. */
static struct open_call *open_call_new(struct agent *a, struct request *r, const char *op)
{
	const char *rdma = json_str(r->body, "device");
	struct open_call *c;
	struct object *o;

	if (!rdma || strlen(rdma) >= sizeof(c->rdma)) {
		request_fail(r, -EINVAL, "%s: no device is named", op);
		return NULL;
	}
	o = object_claim(a, r, OBJECT_DEV);
	if (!o)
		return NULL;
	c = verbs_call_new(sizeof(*c));
	*c = (struct open_call){ .call = { .verb = "ibv_open_device", .obj = o, .req = r }, .dev = (struct dev *)o };
	snprintf(c->rdma, sizeof(c->rdma), "%s", rdma);
	return c;
}

void op_device_open(struct agent *a, struct request *r)
{
	struct open_call *c = open_call_new(a, r, "device_open");

	if (!c)
		return;
	c->call.run = run_open;
	c->call.finish = finish_open;
	c->call.args = json_pack("{s:s}", "device", c->rdma);
	c->port = (int)json_int(r->body, "port", 1);
	c->want_gid = (int)json_int(r->body, "gid_index", -1);
	verbs_submit(a, &c->call, json_u64(r->body, "deadline_ns", 0));
}

/* What the flags of a device say that it can do, and an agent cannot know before it looks. */
static const struct {
	const char *name;
	unsigned flag;
} device_caps[] = {
	{ "xrc", IBV_DEVICE_XRC },
};

static void run_caps(struct verbs_call *call)
{
	struct open_call *c = (struct open_call *)call;

	call->err = open_device(c);
	if (call->err)
		return;
	c->what = "ibv_query_device";
	call->err = ibv_query_device(c->ctx, &c->attr);
	ibv_close_device(c->ctx);
}

static void finish_caps(struct agent *a, struct verbs_call *call)
{
	struct open_call *c = (struct open_call *)call;
	json_t *caps = json_array();

	(void)a;
	for (size_t i = 0; i < sizeof(device_caps) / sizeof(*device_caps); i++)
		if (c->attr.device_cap_flags & device_caps[i].flag)
			json_array_append_new(caps, json_string(device_caps[i].name));
	if (call->err)
		call->verb = c->what;
	object_settle(&c->dev->o, false);
	verbs_end(call, json_pack("{s:o}", "caps", caps));
}

void op_device_caps(struct agent *a, struct request *r)
{
	struct open_call *c = open_call_new(a, r, "device_caps");

	if (!c)
		return;
	c->call.run = run_caps;
	c->call.finish = finish_caps;
	verbs_submit(a, &c->call, json_u64(r->body, "deadline_ns", 0));
}

struct pd_call {
	struct verbs_call call;
	struct pd *pd;
	struct ibv_context *ctx;
	struct ibv_pd *made;
};

static void run_pd(struct verbs_call *call)
{
	struct pd_call *c = (struct pd_call *)call;

	errno = 0;
	c->made = ibv_alloc_pd(c->ctx);
	if (!c->made)
		call->err = errno ? errno : EIO;
}

static void finish_pd(struct agent *a, struct verbs_call *call)
{
	struct pd_call *c = (struct pd_call *)call;
	struct pd *pd = c->pd;

	if (!call->cancelled)
		verbs_record(a, call, NULL);
	pd->pd = c->made;
	object_settle(&pd->o, c->made != NULL);
	if (!c->made)
		pd->dev->o.users--;
	verbs_end(call, json_pack("{s:i}", "life", (int)pd->o.life));
}

void op_pd_create(struct agent *a, struct request *r)
{
	struct object *dev = object_need(a, r, OBJECT_DEV, "dev"), *o;
	struct pd_call *c;

	if (!dev)
		return;
	o = object_claim(a, r, OBJECT_PD);
	if (!o)
		return;
	c = verbs_call_new(sizeof(*c));
	*c = (struct pd_call){ .call = { .verb = "ibv_alloc_pd",
					 .obj = o,
					 .req = r,
					 .run = run_pd,
					 .finish = finish_pd,
					 .args = json_pack("{s:s}", "dev", dev->name) },
			       .pd = (struct pd *)o,
			       .ctx = ((struct dev *)dev)->ctx };
	c->pd->dev = (struct dev *)dev;
	dev->users++;
	verbs_submit(a, &c->call, json_u64(r->body, "deadline_ns", 0));
}
