/* SPDX-License-Identifier: MIT */
/*
 * qpdrill-wire as a process: two ports, a path, a capture, and JSON lines that say what to do with them (wire.md).
 *
 * One loop, one thread (and the capture's writer). End of file on the line means: leave.
 */
#ifndef QD_WIRE_SERVE_H
#define QD_WIRE_SERVE_H

#include <stddef.h>
#include <systemd/sd-event.h>

#include "../harness/error.h"

#define WIRE_PROTOCOL 1

struct wire_serve;

/* Says hello. The descriptors are taken over. */
int wire_serve_new(sd_event *loop, int rfd, int wfd, struct wire_serve **ret, struct error *e);
/* Until the loop is told to exit; returns its exit code or a negative errno. The ports are waited for beside the loop: a turn of it
 * for each frame would be a good part of the time that a frame takes through the wire. */
int wire_serve_run(struct wire_serve *s);
/* Closes ports and capture, and says what is left to say, each within a bound; NULL is fine. Returns 0, or the first errno of a
 * capture that could not be written. */
int wire_serve_free(struct wire_serve *s);

/* Row i of the table of requests (wire_ops.c); nothing is changed behind the last. */
void wire_ops_row(size_t i, const char **ret_name, const char **ret_help);

#endif
