/* SPDX-License-Identifier: MIT */
/*
 * Writes wire.pcapng (section header, two interface descriptions, enhanced packets with nanosecond stamps and comments) without
 * ever making the path wait: packets are put into buffers that a thread of its own writes out. When all are full a packet is
 * missing in the capture, and counted, and has gone its way all the same.
 *
 * Threads: everything here is called by the wire's thread; the writer only ever sees whole buffers.
 */
#ifndef QD_WIRE_CAPTURE_H
#define QD_WIRE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../harness/error.h"

struct wire_capture;

#define WIRE_CAPTURE_COMMENT_MAX 512

/* Creates the file. names: of the two ports. buffer_bytes 0: 8 MiB. */
int wire_capture_open(const char *path, const char *const names[2], size_t buffer_bytes, struct wire_capture **ret,
		      struct error *e);
/* Begins a packet as it is now; every begin has its end before the next one. Returns its number in the file, from 1, or 0 when it
 * is lost (then there is no end). sent: it leaves at this port, else it came in there. */
uint64_t wire_capture_begin(struct wire_capture *c, unsigned port, bool sent, uint64_t real_ns, const uint8_t *frame, size_t len);
void wire_capture_end(struct wire_capture *c, const char *comment); /* NULL or "": none */
/* Hands over what there is, so that the file is up to date soon. */
void wire_capture_flush(struct wire_capture *c);
/* Packets written so far and lost so far. */
uint64_t wire_capture_packets(const struct wire_capture *c);
uint64_t wire_capture_lost(const struct wire_capture *c);
/* Nothing more comes: what there is goes to the writer. Returns at once; wire_capture_fd() is readable when all is written, or
 * writing has failed. */
void wire_capture_finish(struct wire_capture *c);
int wire_capture_fd(const struct wire_capture *c);
/* Finishes, and waits for it up to deadline_ns from now. Returns 0 or what broke the writing (-ETIMEDOUT: a disk that hangs; the
 * thread is left to itself). NULL is fine. */
int wire_capture_close(struct wire_capture *c, uint64_t deadline_ns);

#endif
