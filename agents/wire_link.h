/* SPDX-License-Identifier: MIT */
/*
 * One port of the wire: where whole Ethernet frames come in and go out. Two of them make a wire.
 *
 * A burst: receive() gives frames that stay valid, and may be changed in place, until done(); send() copies what it is given.
 * Nothing blocks, except that send() waits a bounded moment for a queue that is full.
 */
#ifndef QD_WIRE_LINK_H
#define QD_WIRE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "../harness/error.h"

#define WIRE_BURST 64

struct wire_buf {
	uint8_t *data;
	size_t len;
	uint64_t real_ns; /* CLOCK_REALTIME when the kernel had it */
};

/* All count from the opening of the port. */
struct wire_link_counters {
	uint64_t in, out;
	uint64_t dropped;        /* came in and found the ring full */
	uint64_t truncated;      /* longer than a slot of the ring: lost */
	uint64_t send_failed;    /* could not be sent */
	uint64_t device_dropped; /* sent, and lost by the network device (its tx drops) */
	uint64_t peer_dropped;   /* sent by the veth at the other end, and lost on the way in */
	/* What the device has received and sent by its own account. exact: that can be held against in and out (a veth). */
	uint64_t device_in, device_out;
	bool exact;
	uint64_t unsummed; /* carried with a checksum that was left to offloading: the far end will refuse it */
	int send_errno;    /* of the last failed send */
};

struct wire_link;

struct wire_link_ops {
	const char *name;
	int (*fd)(const struct wire_link *l);
	/* Up to max frames that have come in. */
	unsigned (*receive)(struct wire_link *l, struct wire_buf *bufs, unsigned max);
	void (*done)(struct wire_link *l);
	/* In order. What could not be sent is counted in send_failed; returns how many were sent. */
	unsigned (*send)(struct wire_link *l, const struct iovec *frames, unsigned n);
	void (*counters)(struct wire_link *l, struct wire_link_counters *ret);
	/* What the descriptor reports when poll says error: negative errno, 0 when nothing. */
	int (*error)(struct wire_link *l);
	/* As if it had been opened just now: what has come in meanwhile is gone, and all counts begin at 0. A negative errno where
	 * only opening it would do (another device of that name, another MTU, a device that is not fit). NULL: never. */
	int (*again)(struct wire_link *l);
	void (*close)(struct wire_link *l);
};

struct wire_link {
	const struct wire_link_ops *ops;
	unsigned mtu; /* when it was opened; 0: not known */
	struct wire_link_counters n;
};

/* A network device by AF_PACKET, promiscuous, with a receive ring of `frames` slots for frames of up to frame_bytes (0: defaults,
 * the device's MTU and at least 4500 bytes). Needs CAP_NET_RAW. -ENETDOWN, -EINVAL: a device that is down, or that puts
 * frames together (GRO, LRO). */
int wire_link_packet_open(const char *netdev, unsigned frames, unsigned frame_bytes, struct wire_link **ret, struct error *e);

/* Two queues in memory, for tests. */
int wire_link_memory_open(struct wire_link **ret);
int wire_link_memory_push(struct wire_link *l, const uint8_t *frame, size_t len, uint64_t real_ns);
/* The oldest frame that was sent; borrowed until the next pop. False: none. */
bool wire_link_memory_pop(struct wire_link *l, const uint8_t **ret_frame, size_t *ret_len);
/* The next n sends fail. */
void wire_link_memory_fail(struct wire_link *l, unsigned n);

#endif
