/* SPDX-License-Identifier: MIT */
/* What wire_serve.c (loop, records) and wire_ops.c (requests) share. */
#ifndef QD_WIRE_SERVE_INTERNAL_H
#define QD_WIRE_SERVE_INTERNAL_H

#include <jansson.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "../harness/line.h"
#include "wire_path.h"
#include "wire_serve.h"

#define WIRE_LAST_WORDS_NS 1000000000ull
#define WIRE_CAPTURE_END_NS (3ull * 1000000000) /* a capture that is longer about its end is broken */

/* How a port was opened: only the same once more can take it over. */
struct wire_kept {
	struct wire_link *link; /* NULL: none */
	char netdev[IF_NAMESIZE];
	unsigned frames, frame_bytes;
};

struct wire_port {
	struct wire_serve *serve;
	unsigned index;
	char name[32];
	struct wire_link *link;
	struct wire_kept how;             /* its link is not used */
	struct wire_link_counters told;   /* at the last look; `lost` records have spoken of it */
	struct wire_link_counters then;   /* at then_ns: what the device had counted by then is due */
	uint64_t then_ns, before_then_ns; /* the latter: the time of the counters before those; what is missing went astray since */
	uint64_t missing_in, missing_out; /* of what the device has counted or was given: told too */
};

/* A message on its way to the controller, which may have to wait for captures. */
struct wire_answer {
	json_t *message;
	unsigned waits;
};

struct wire_drain;

struct wire_serve {
	sd_event *loop;
	int epoll_fd; /* the ports and the loop */
	bool turn;    /* the loop has something to do, or a timer to set */
	struct line *line;
	struct wire_port port[2];
	struct wire_kept kept[2]; /* ports that a release left open, for whoever opens them next */
	struct wire_path *path;   /* NULL until open */
	struct wire_capture *capture;
	struct wire_drain *drains; /* captures that are being written to their end */
	sd_event_source *timer;
	uint64_t armed_ns;
	uint64_t send_at_ns; /* when queued records are to be sent; UINT64_MAX: none */
	uint64_t looked_ns;  /* when counters were looked at last */
	uint64_t flushed_ns; /* when the capture was brought up to date last */
	json_t *records;     /* waiting to be sent as one line */
	uint64_t records_lost, captures_told, path_lost_told[2];
	int64_t unaccounted_told[2];
	int64_t real_offset_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
	bool leaving;
	bool settling; /* nothing is on its way any more */
};

struct wire_clock wire_serve_clock(void);
/* Queues a record (stolen). */
void wire_serve_record(struct wire_serve *s, json_t *rec);
/* Ends runs and sends the queued records. */
void wire_serve_send_records(struct wire_serve *s);
/* Looks at all counters and records what was lost since the last time. */
void wire_serve_look(struct wire_serve *s);
/* Nothing that came in or went out at this port was lost on the way, as far as was looked. */
bool wire_serve_port_complete(const struct wire_port *p);
/* A `clock` record with both clocks now; stepped_ns 0: no step. */
void wire_serve_tell_clock(struct wire_serve *s, int64_t stepped_ns);
/* Sets the timer for what comes next. */
void wire_serve_arm(struct wire_serve *s);
/* Opens the ports and begins to carry. */
int wire_serve_open(struct wire_serve *s, const char *const netdevs[2], const char *const names[2], unsigned frames,
		    unsigned frame_bytes, struct error *e);
/* Takes what has come in, and looks at all counters a last time: from here on the account of this link does not change. */
void wire_serve_settle(struct wire_serve *s);
/* Nothing is carried any more, and what rules keep is gone. The ports are closed, or (keep) left open for the next
 * wire_serve_open(). The capture is left to the caller (NULL: none). */
struct wire_capture *wire_serve_close(struct wire_serve *s, bool keep);

/* ---- ports that stay open (wire_kept.c) ---- */

/* One that was left open, if it is the very same and nothing has become of it since: to open a port takes the kernel long. NULL:
 * there is none. */
struct wire_link *wire_kept_take(struct wire_serve *s, const struct wire_kept *how);
/* Takes over the port's link if it can be taken up again. */
void wire_kept_put(struct wire_serve *s, struct wire_port *p);
void wire_kept_close(struct wire_serve *s);

/* Lets a capture (taken over) be written to its end, up to deadline_ns from now, while packets go on: until then the answer waits.
 * A failure is put into `reply`, a part of the answer's message. */
int wire_drain(struct wire_serve *s, struct wire_capture *c, uint64_t deadline_ns, struct wire_answer *answer, json_t *reply,
	       struct error *e);
/* Waits for all of them, and answers. 0 or the first failure. */
int wire_drain_all(struct wire_serve *s, uint64_t deadline_ns);
/* Sends and frees an answer that waits for nothing. */
void wire_serve_answer(struct wire_serve *s, struct wire_answer *answer);

/* Answers one request, or a batch. */
void wire_ops_request(struct wire_serve *s, json_t *request);

#endif
