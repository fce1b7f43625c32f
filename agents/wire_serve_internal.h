/* SPDX-License-Identifier: MIT */
/* What wire_serve.c (loop, records) and wire_ops.c (requests) share. */
#ifndef QD_WIRE_SERVE_INTERNAL_H
#define QD_WIRE_SERVE_INTERNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "../harness/line.h"
#include "wire_path.h"
#include "wire_serve.h"

struct wire_port {
	struct wire_serve *serve;
	unsigned index;
	char name[32];
	struct wire_link *link;
	sd_event_source *source;
	struct wire_link_counters told; /* what `lost` records have spoken of */
};

struct wire_serve {
	sd_event *loop;
	struct line *line;
	struct wire_port port[2];
	struct wire_path *path; /* NULL until open */
	struct wire_capture *capture;
	sd_event_source *timer;
	uint64_t armed_ns;
	uint64_t send_at_ns; /* when queued records are to be sent; UINT64_MAX: none */
	uint64_t looked_ns;  /* when counters were looked at last */
	json_t *records;     /* waiting to be sent as one line */
	uint64_t records_lost, captures_told, path_lost_told[2];
	int64_t unaccounted_told[2];
	int64_t real_offset_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
	bool leaving;
};

struct wire_clock wire_serve_clock(void);
/* Queues a record (stolen). */
void wire_serve_record(struct wire_serve *s, json_t *rec);
/* Ends runs and sends the queued records. */
void wire_serve_send_records(struct wire_serve *s);
/* Looks at all counters and records what was lost since the last time. */
void wire_serve_look(struct wire_serve *s);
/* A `clock` record with both clocks now; stepped_ns 0: no step. */
void wire_serve_tell_clock(struct wire_serve *s, int64_t stepped_ns);
/* Sets the timer for what comes next. */
void wire_serve_arm(struct wire_serve *s);
/* Opens the ports and begins to carry. */
int wire_serve_open(struct wire_serve *s, const char *const netdevs[2], const char *const names[2], unsigned frames,
		    unsigned frame_bytes, struct error *e);
/* Closes capture and ports; what is kept is gone. */
int wire_serve_close(struct wire_serve *s);

/* Answers one request, or a batch. */
void wire_ops_request(struct wire_serve *s, json_t *request);

#endif
