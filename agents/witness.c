/* SPDX-License-Identifier: MIT */
#include "witness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "../harness/json.h"
#include "../harness/kernel_witness.h"
#include "../harness/units.h"
#include "agent.h"

#define PERIOD_MIN_NS (100 * NSEC_PER_USEC)

struct witness {
	sd_event_source *source; /* of a timer that goes off by itself: to set it anew each time would cost as much as the look */
	uint64_t period_ns, due_ns;
	struct hist late;
};

void witness_free(struct witness *w)
{
	if (!w)
		return;
	sd_event_source_disable_unref(w->source);
	free(w);
}

json_t *witness_json(const struct witness *w)
{
	if (!w)
		return NULL;
	return witness_record(&w->late, w->period_ns);
}

static int on_tick(sd_event_source *source, int fd, uint32_t revents, void *user)
{
	struct witness *w = user;
	uint64_t now, times = 0;

	(void)source;
	(void)revents;
	if (read(fd, &times, sizeof(times)) != sizeof(times) || !times)
		return 0;
	now = now_ns();
	hist_add(&w->late, now > w->due_ns ? now - w->due_ns : 0);
	w->due_ns += times * w->period_ns; /* what was missed is in the lateness; there is no catching up */
	return 0;
}

/* 0 or a negative errno. */
static int start(struct agent *a, struct witness *w)
{
	struct itimerspec at;
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	w->due_ns = now_ns() + w->period_ns;
	at.it_value = (struct timespec){ (time_t)(w->due_ns / NSEC_PER_SEC), (long)(w->due_ns % NSEC_PER_SEC) };
	at.it_interval = (struct timespec){ (time_t)(w->period_ns / NSEC_PER_SEC), (long)(w->period_ns % NSEC_PER_SEC) };
	rc = timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL) ? -errno : 0;
	if (rc == 0)
		rc = sd_event_add_io(a->loop, &w->source, fd, EPOLLIN, on_tick, w);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	sd_event_source_set_io_fd_own(w->source, true);
	/* Before everything else: it measures the machine, not this program's work. */
	sd_event_source_set_priority(w->source, SD_EVENT_PRIORITY_IMPORTANT);
	return 0;
}

json_t *witness_end(struct agent *a)
{
	json_t *report = witness_json(a->witness);

	if (report)
		agent_record(a, now_ns(), "clock", NULL, 0, json_incref(report));
	witness_free(a->witness);
	a->witness = NULL;
	return report;
}

void op_witness(struct agent *a, struct request *r)
{
	uint64_t period_ns = json_u64(r->body, "period_ns", 0);
	struct witness *w;
	int rc;

	if (a->witness) {
		json_t *report = witness_end(a);

		if (period_ns == 0) {
			request_reply(r, report);
			return;
		}
		json_decref(report);
	}
	if (period_ns == 0) {
		request_reply(r, NULL);
		return;
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		abort();
	w->period_ns = period_ns < PERIOD_MIN_NS ? PERIOD_MIN_NS : period_ns;
	rc = start(a, w);
	if (rc < 0) {
		free(w);
		request_fail(r, rc, "witness: no timer: %s", strerror(-rc));
		return;
	}
	a->witness = w;
	request_reply(r, NULL);
}
