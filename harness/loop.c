/* SPDX-License-Identifier: MIT */
#include "loop.h"

#include <errno.h>

#include "units.h"

#define LAST_LOOKS 64
#define ACCURACY_USEC 1 /* 0 would mean a quarter of a second */

static int on_deadline(sd_event_source *source, uint64_t usec, void *user)
{
	(void)source;
	(void)usec;
	*(bool *)user = true;
	return 0;
}

int loop_timer(sd_event *loop, uint64_t at_ns, sd_event_time_handler_t cb, void *user, sd_event_source **ret)
{
	/* Rounded up: a timer never fires before its time. */
	uint64_t usec = at_ns / 1000 + (at_ns % 1000 != 0);

	return sd_event_add_time(loop, ret, CLOCK_MONOTONIC, usec, ACCURACY_USEC, cb, user);
}

int loop_wait(sd_event *loop, bool (*done)(void *user), void *user, uint64_t deadline_ns)
{
	sd_event_source *timer = NULL;
	bool late = false;
	int rc;

	if (done(user))
		return 0;
	if (now_ns() >= deadline_ns)
		return -ETIMEDOUT;
	rc = loop_timer(loop, deadline_ns, on_deadline, &late, &timer);
	if (rc < 0)
		return rc;
	do {
		rc = sd_event_run(loop, UINT64_MAX);
		if (rc < 0)
			goto out_timer;
		rc = 0;
		if (done(user))
			goto out_timer;
	} while (!late);
	/* Who had no turn until now has not looked at what came in time. */
	for (int i = 0; i < LAST_LOOKS; i++) {
		rc = sd_event_run(loop, 0);
		if (rc < 0)
			goto out_timer;
		if (done(user)) {
			rc = 0;
			goto out_timer;
		}
		if (rc == 0)
			break;
	}
	rc = -ETIMEDOUT;
out_timer:
	sd_event_source_disable_unref(timer);
	return rc;
}
