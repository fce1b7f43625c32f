/* SPDX-License-Identifier: MIT */
/* Captures that are written to their end while packets go on, and the replies that wait for it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <utlist.h>

#include "../harness/units.h"
#include "wire_serve_internal.h"

#define JOIN_NS NSEC_PER_SEC

struct wire_drain {
	struct wire_drain *prev, *next;
	struct wire_serve *s;
	struct wire_capture *capture;
	struct wire_answer *answer;
	json_t *reply; /* the part of the answer that tells of it */
	sd_event_source *written, *late;
};

static void free_drain(struct wire_drain *d)
{
	DL_DELETE(d->s->drains, d);
	sd_event_source_disable_unref(d->written);
	sd_event_source_disable_unref(d->late);
	json_decref(d->reply);
	free(d);
}

/* The writer has come to its end, or its time has. 0 or what broke the writing. */
static int end_drain(struct wire_drain *d, uint64_t join_ns)
{
	struct wire_serve *s = d->s;
	struct wire_answer *answer = d->answer;
	struct error e = { "" };
	int rc = wire_capture_close(d->capture, join_ns);

	if (rc) {
		json_object_set_new(d->reply, "rc", json_integer(rc));
		error_set(&e, rc, "the capture could not be written to its end: %s", strerror(-rc));
		json_object_set_new(d->reply, "error", json_string(e.text));
	}
	free_drain(d);
	answer->waits--;
	wire_serve_answer(s, answer);
	return rc;
}

static int on_written(sd_event_source *source, int fd, uint32_t revents, void *user)
{
	(void)source;
	(void)fd;
	(void)revents;
	end_drain(user, JOIN_NS);
	return 0;
}

static int on_late(sd_event_source *source, uint64_t usec, void *user)
{
	(void)source;
	(void)usec;
	end_drain(user, 0);
	return 0;
}

int wire_drain(struct wire_serve *s, struct wire_capture *c, uint64_t deadline_ns, struct wire_answer *answer, json_t *reply,
	       struct error *e)
{
	struct wire_drain *d = calloc(1, sizeof *d);
	int rc = d ? 0 : -ENOMEM;

	wire_capture_finish(c);
	if (rc)
		goto close_capture;
	*d = (struct wire_drain){ .s = s, .capture = c, .answer = answer, .reply = json_incref(reply) };
	DL_APPEND(s->drains, d);
	rc = sd_event_add_io(s->loop, &d->written, wire_capture_fd(c), EPOLLIN, on_written, d);
	if (rc >= 0)
		rc = sd_event_add_time_relative(s->loop, &d->late, CLOCK_MONOTONIC, deadline_ns / NSEC_PER_USEC, 1, on_late, d);
	if (rc < 0)
		goto free_drain;
	answer->waits++;
	return 0;
free_drain:
	free_drain(d);
close_capture:
	wire_capture_close(c, 0);
	return error_set(e, rc, "the end of the capture cannot be waited for: %s", strerror(-rc));
}

int wire_drain_all(struct wire_serve *s, uint64_t deadline_ns)
{
	uint64_t until_ns = now_ns() + deadline_ns;
	struct wire_drain *d = NULL, *next;
	int broken = 0;

	DL_FOREACH_SAFE(s->drains, d, next)
	{
		uint64_t now = now_ns();
		int rc = end_drain(d, now < until_ns ? until_ns - now : 0);

		broken = broken ? broken : rc;
	}
	return broken;
}
