/* SPDX-License-Identifier: MIT */
/* What a network device itself has counted, to be held against what the wire has received from it and given to it. */
#ifndef QD_WIRE_DEVICE_H
#define QD_WIRE_DEVICE_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

enum { WIRE_FIGURE_IN, WIRE_FIGURE_OUT, WIRE_FIGURE_OUT_DROPPED, WIRE_FIGURE_PEER_DROPPED, NUM_WIRE_FIGURES };

struct wire_device {
	char name[IF_NAMESIZE];
	bool exact;             /* a veth: it counts every frame at once, and nothing that does not come up to here */
	char peer[IF_NAMESIZE]; /* the other end of a veth, when it is in this namespace; else "" */
	/* The files of sysfs, open: they are read ten times a second, and a line of /proc/net/dev costs as much as those of all
	 * devices. -1 where sysfs shows another namespace than this process's: then it is /proc/self/net/dev. */
	int figure[NUM_WIRE_FIGURES];
};

struct wire_device_counters {
	uint64_t in, out, out_dropped;
	uint64_t peer_dropped; /* what its peer sent and it did not take */
};

/* fd: any socket. What it opens is let go by wire_device_release(); one that is all -1 holds nothing. */
void wire_device_init(struct wire_device *d, const char *name, int fd);
/* All of it 0 when the device is not there. */
void wire_device_release(struct wire_device *d);
void wire_device_read(const struct wire_device *d, struct wire_device_counters *ret);

#endif
