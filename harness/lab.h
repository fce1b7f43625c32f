/* SPDX-License-Identifier: MIT */
/*
 * Where the link comes from, in this kernel: makes lanes (two linked RDMA devices each), changes links for faults, tells
 * what is there, and puts everything back. The `guest` lab is not one of these: it boots a kernel and runs this
 * program with lab `rxe` inside (guest.h).
 *
 * Every command is bounded; every change on a host is in the journal before it is made (journal.h).
 */
#ifndef QD_LAB_H
#define QD_LAB_H

#include <jansson.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "error.h"
#include "journal.h"

struct lab;

struct lab_device {
	char name[32]; /* "a": what scenarios call it */
	char rdma[32]; /* rxe device: "qd0a-3f9c" */
	char netdev[16];
	char netns[32]; /* the path of the network namespace that it lives in; "": this process's own */
	int port;
	int gid_index;
	char gid[64];
};

struct lab_lane {
	int lane;
	int boot;
	struct lab_device device[2]; /* a, b */
	char far[2][16];             /* where the wire stands: the other ends of a's and b's links; "" on a direct link */
};

struct lab_ops {
	const char *name; /* "rxe" */
	const char *help;
	/* 0 when it can run here, else a negative errno with the reason. */
	int (*probe)(struct error *e);
	int (*open)(sd_event *loop, struct journal *journal, struct lab **ret, struct error *e);
	int (*lane_up)(struct lab *lab, int lane, struct lab_lane *ret, struct error *e);
	/* Lanes 0 to n - 1 at once, which takes hardly longer than one; with their places for a wire, too, where `wire` is set. */
	int (*lanes_up)(struct lab *lab, int n, bool wire, struct lab_lane *ret, struct error *e);
	/* In a child process after fork(): the lanes are its to use and not to take down, the programs it talks to are its own. */
	int (*forked)(struct lab *lab, struct error *e);
	/* A second pair of devices of a lane that is up, linked by nothing but the wire between `far`: made when first asked for,
	 * the same ever after. NULL: this lab has no place for a wire. */
	int (*lane_wire)(struct lab *lab, int lane, struct lab_lane *ret, struct error *e);
	/* Writes to a file what another process of this kernel needs to take over lanes 0 to n - 1 (with their places for a wire,
	 * where those are up too) as they are; this one is then not to close the lab. adopt: what that other process opens it with.
	 */
	int (*keep)(struct lab *lab, int n, const char *path, struct error *e);
	int (*adopt)(sd_event *loop, struct journal *journal, const char *path, struct lab **ret, struct error *e);
	int (*set_mtu)(struct lab *lab, const struct lab_lane *lane, int mtu, struct error *e);
	/* The ends have link-local IPv6 addresses, whose GIDs work then, or none (so a lane begins): nothing of IPv6 is on it. */
	int (*set_ipv6)(struct lab *lab, const struct lab_lane *lane, bool on, struct error *e);
	/* An RDMA device of a lane that is up is taken away, and made anew under its name. Its removal ends when nobody has it open
	 * any more: device_gone is 1 then, 0 before, a negative errno when it was refused. When device_add returns it can be used.
	 */
	int (*device_del)(struct lab *lab, const char *rdma, struct error *e);
	int (*device_gone)(struct lab *lab, const char *rdma, struct error *e);
	int (*device_add)(struct lab *lab, const char *rdma, struct error *e);
	/* One command of ip, tc or rdma ("tc", "qdisc replace dev X root netem loss 5%"): ret_out (may be NULL) is the parsed JSON
	 * answer or null. It is run in the network namespace of the first device of the lab's that it names. For faults. */
	int (*command)(struct lab *lab, const char *tool, const char *args, json_t **ret_out, struct error *e);
	/* A picture of everything that a case on this lane might leave behind: {"rdma":[…],"link":[…],"qdisc":[…],"rule":[…]}. New
	 * reference. */
	int (*snapshot)(struct lab *lab, int lane, json_t **ret, struct error *e);
	void (*close)(struct lab *lab); /* undoes all, closes the journal's entries */
};

struct lab {
	const struct lab_ops *ops;
	const char *one_netns; /* why both ends of a lane live in one network namespace; NULL: each has one of its own */
};

extern const struct lab_ops lab_rxe;
const struct lab_ops *lab_find(const char *name);

/* Counters of a device, from sysfs: hw_counters and port counters by name. New reference. */
json_t *lab_counters(const char *rdma, int port);

#endif
