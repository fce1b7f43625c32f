/* SPDX-License-Identifier: MIT */
#include "cq_set.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../harness/units.h"
#include "cq.h"
#include "object.h"

#define BUSY_NS NSEC_PER_MSEC         /* after so long without a pause the loop has its turn, whoever else is ready */
#define PAUSE_NS (50 * NSEC_PER_USEC) /* longer than a look that finds something at once */

struct cq_set {
	struct agent *agent;
	int epoll_fd;
	sd_event_source *source;   /* NULL while the set runs the loop */
	uint64_t since_ns, end_ns; /* of the work without a pause: its begin, the end of the newest part */
};

/* One at a time, in turn: the kernel puts what it told behind the others, and what is told may be gone after another. */
static int next_event(struct cq_set *w, int timeout_ms, struct epoll_event *ret)
{
	int n = epoll_wait(w->epoll_fd, ret, 1, timeout_ms);

	return n < 0 && errno != EINTR ? -errno : n > 0;
}

static int on_ready(sd_event_source *source, int fd, uint32_t revents, void *user)
{
	struct cq_set *w = user;
	struct epoll_event event;

	(void)source;
	(void)fd;
	(void)revents;
	if (next_event(w, 0, &event) > 0)
		cq_ready(w->agent, event.data.ptr);
	return 0;
}

int cq_set_new(struct agent *a, struct cq_set **ret)
{
	struct cq_set *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return -ENOMEM;
	w->agent = a;
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	rc = w->epoll_fd < 0 ? -errno : sd_event_add_io(a->loop, &w->source, w->epoll_fd, EPOLLIN, on_ready, w);
	if (rc < 0) {
		cq_set_free(w);
		return rc;
	}
	*ret = w;
	return 0;
}

void cq_set_free(struct cq_set *w)
{
	if (!w)
		return;
	sd_event_source_disable_unref(w->source);
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	free(w);
}

void cq_set_add(struct cq_set *w, struct cq *cq)
{
	struct epoll_event wanted = { .events = EPOLLIN, .data.ptr = cq };

	if (epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, cq->channel->fd, &wanted) < 0 && errno != EEXIST)
		abort(); /* no memory */
}

void cq_set_remove(struct cq_set *w, struct cq *cq)
{
	epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, cq->channel->fd, NULL);
}

/* Where many are ready, the loop would wait for each of them. Returns whether it has waited long enough. */
static bool work(struct cq_set *w, struct cq *cq)
{
	uint64_t begin_ns = now_ns();
	bool long_enough;

	if (begin_ns - w->end_ns > PAUSE_NS)
		w->since_ns = begin_ns;
	cq_ready(w->agent, cq);
	w->end_ns = now_ns();
	long_enough = w->end_ns - w->since_ns > BUSY_NS;
	if (long_enough)
		w->since_ns = w->end_ns;
	return long_enough;
}

int cq_set_run(struct cq_set *w)
{
	sd_event *loop = w->agent->loop;
	struct epoll_event of_loop = { .events = EPOLLIN };
	int rc = 1, code = 0; /* rc > 0: the loop may have more to do than its descriptor shows */

	w->source = sd_event_source_disable_unref(w->source);
	if (epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, sd_event_get_fd(loop), &of_loop) < 0)
		return -errno;
	while (rc >= 0 && sd_event_get_state(loop) != SD_EVENT_FINISHED) {
		struct epoll_event event = { .data.ptr = NULL };
		int n = next_event(w, rc > 0 ? 0 : -1, &event);

		if (n < 0)
			return n;
		if (event.data.ptr)
			n = work(w, event.data.ptr);
		if (n > 0 || rc > 0 || w->agent->turn) {
			w->agent->turn = false;
			rc = sd_event_run(loop, 0);
		}
	}
	return rc < 0 ? rc : sd_event_get_exit_code(loop, &code) < 0 ? 0 : code;
}
