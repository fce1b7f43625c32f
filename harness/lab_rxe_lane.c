/* SPDX-License-Identifier: MIT */
#include "lab_rxe_lane.h"

#include <errno.h>
#include <stdio.h>

#include "lab_netdev.h"
#include "lab_netns.h"

#define DEFAULT_MTU 1500

static const char *const kind_letters[NUM_KINDS] = { "", "w" };

static int add_undo_rdma(struct lab_rxe *r, const char *name, int *ret_id, struct error *e)
{
	const char *const undo[] = { "rdma", "link", "del", name, NULL };

	return journal_add(r->journal, undo, ret_id, e);
}

static int add_undo_link(struct lab_rxe *r, struct lane *s, int i, struct error *e)
{
	const char *const here[] = { "ip", "link", "del", s->name[i], NULL };
	const char *const there[] = { "ip", "-n", r->apart.name[i], "link", "del", s->name[i], NULL };

	return journal_add(r->journal, r->apart.on ? there : here, &s->undo_link[i], e);
}

/* Last byte of the address of an end: a lane has 10.net.lane.0/30 for its direct link and the next /30 for that with a wire. */
static int host_of(const struct lane *s, int i)
{
	return 4 * (int)s->kind + i + 1;
}

/* What an end needs of ip once it is there. */
static int end_lines(const struct lab_rxe *r, const struct lane *s, int i, char mac[2][24], char *buf, size_t size)
{
	return snprintf(buf, size,
			"addr add 10.%d.%d.%d/30 dev %s\nlink set %s up\nneigh replace 10.%d.%d.%d lladdr %s dev %s nud permanent",
			r->net, s->lane, host_of(s, i), s->name[i], s->name[i], r->net, s->lane, host_of(s, 1 - i), mac[1 - i],
			s->name[i]);
}

static int configure_end(const struct lane *s, int i, struct error *e)
{
	int back, rc = lab_netns_enter(s->made.device[i].netns, &back, e);

	if (rc < 0)
		return rc;
	rc = lab_netdev_end(s->name[i], e);
	lab_netns_leave(back);
	return rc;
}

/* Both with one wait where they are in one namespace. */
static int configure_links(struct lab_rxe *r, const struct lane *s, char mac[2][24], struct error *e)
{
	char lines[1024];
	size_t used = 0;
	int rc = 0;

	for (int i = 0; rc == 0 && i < 2; i++) {
		rc = configure_end(s, i, e);
		if (used)
			lines[used++] = '\n';
		int n = end_lines(r, s, i, mac, lines + used, sizeof lines - used);

		used += n > 0 ? (size_t)n : 0;
		if (rc == 0 && (i == 1 || r->apart.on)) {
			rc = lab_tools_batch(&r->tools, lab_apart_space(&r->apart, i), LAB_IP, lines, e);
			used = 0;
		}
	}
	return rc;
}

static int make_devices(struct lab_rxe *r, struct lane *s, struct error *e)
{
	char lines[256];
	size_t used = 0;
	int rc = 0;

	for (int i = 0; rc == 0 && i < 2; i++) {
		rc = add_undo_rdma(r, s->name[i], &s->undo_rdma[i], e);
		int n = snprintf(lines + used, sizeof lines - used, "%slink add %s type rxe netdev %s", used ? "\n" : "",
				 s->name[i], s->name[i]);

		used += n > 0 ? (size_t)n : 0;
		if (rc == 0 && (i == 1 || r->apart.on)) {
			rc = lab_tools_batch(&r->tools, lab_apart_space(&r->apart, i), LAB_RDMA, lines, e);
			used = 0;
		}
	}
	return rc;
}

static int make_veth(struct lab_rxe *r, struct lane *s, char mac[2][24], struct error *e)
{
	int rc = add_undo_link(r, s, 0, e);

	if (rc == 0)
		rc = lab_tools_run(&r->tools, LAB_HOME, LAB_IP, NULL, e,
				   "link add %s address %s mtu %d type veth peer name %s address %s mtu %d", s->name[0], mac[0],
				   DEFAULT_MTU, s->name[1], mac[1], DEFAULT_MTU);
	return rc;
}

static int make_veths_for_wire(struct lab_rxe *r, struct lane *s, char mac[2][24], struct error *e)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < 2; i++) {
		rc = add_undo_link(r, s, i, e);
		if (rc == 0)
			rc = lab_tools_run(&r->tools, LAB_HOME, LAB_IP, NULL, e,
					   "link add %s address %s mtu %d type veth peer name %s mtu %d", s->name[i], mac[i],
					   DEFAULT_MTU, s->far[i], DEFAULT_MTU);
		if (rc == 0)
			rc = lab_netdev_plain(s->name[i], e);
		if (rc == 0)
			rc = lab_netdev_plain(s->far[i], e);
		if (rc == 0)
			rc = lab_tools_run(&r->tools, LAB_HOME, LAB_IP, NULL, e, "link set %s up", s->far[i]);
	}
	return rc;
}

/* What is set through /sys is set before: it goes along, and is not to be seen from here any more. */
static int move_ends(struct lab_rxe *r, const struct lane *s, struct error *e)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < 2; i++) {
		rc = lab_netdev_order(s->name[i], e);
		if (rc == 0 && r->apart.on)
			rc = lab_tools_run(&r->tools, LAB_HOME, LAB_IP, NULL, e, "link set %s netns %s", s->name[i],
					   r->apart.name[i]);
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
		rc = move_ends(r, s, e);
	if (rc == 0)
		rc = configure_links(r, s, mac, e);
	return rc ? rc : make_devices(r, s, e);
}

/* Before it has moved it is still here. */
static int remove_link(struct lab_rxe *r, const char *name, int end, struct error *e)
{
	enum lab_space space = lab_apart_space(&r->apart, end);
	int rc = lab_tools_run(&r->tools, space, LAB_IP, NULL, e, "link del %s", name);

	return rc == -ENODEV && space != LAB_HOME ? lab_tools_run(&r->tools, LAB_HOME, LAB_IP, NULL, e, "link del %s", name) : rc;
}

int rxe_lane_remove(struct lab_rxe *r, struct lane *s, struct error *e)
{
	struct error ignored;
	int first = 0;

	for (int i = 0; i < 2; i++) {
		if (!s->undo_rdma[i])
			continue;
		int rc = lab_tools_run(&r->tools, LAB_HOME, LAB_RDMA, NULL, &ignored, "link del %s", s->name[i]);

		if (rc == 0 || rc == -ENODEV)
			journal_done(r->journal, s->undo_rdma[i]);
		else if (!first)
			first = error_set(e, rc, "%s", ignored.text);
	}
	for (int i = 0; i < 2; i++) {
		if (!s->undo_link[i])
			continue;
		int rc = remove_link(r, s->name[i], i, &ignored);

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
		if (r->apart.on)
			snprintf(d->netns, sizeof d->netns, "%s", r->apart.path[i]);
		d->port = 1;
		snprintf(want[i], sizeof want[i], "0000:0000:0000:0000:0000:ffff:0a%02x:%02x%02x", r->net, s->lane, host_of(s, i));
	}
}

int rxe_lane_make(struct lab_rxe *r, int lane, enum kind kind, struct error *e)
{
	struct lane *s = &r->lanes[lane][kind];

	*s = (struct lane){ .used = true, .lane = lane, .kind = kind, .made = { .lane = lane } };
	name_devices(r, s, &s->made, s->want);
	return make_links(r, s, e);
}
