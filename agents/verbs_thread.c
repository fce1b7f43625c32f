/* SPDX-License-Identifier: MIT */
#include "verbs_thread.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../harness/loop.h"
#include "../harness/units.h"
#include "agent.h"
#include "object.h"

struct verbs_thread {
	struct agent *agent;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct verbs_call *queue, **tail;     /* not begun */
	struct verbs_call *done, **done_tail; /* returned, not yet seen by the loop */
	struct verbs_call *running;
	bool stop;
	int efd;
	sd_event_source *source;
};

static void *thread_main(void *user)
{
	struct verbs_thread *t = user;
	const uint64_t one = 1;

	pthread_mutex_lock(&t->lock);
	for (;;) {
		struct verbs_call *call = t->queue;

		if (t->stop)
			break;
		if (!call) {
			pthread_cond_wait(&t->wake, &t->lock);
			continue;
		}
		t->queue = call->next;
		if (!t->queue)
			t->tail = &t->queue;
		call->state = VERBS_CALL_RUNNING;
		t->running = call;
		pthread_mutex_unlock(&t->lock);

		call->started_ns = now_ns();
		call->run(call);
		if (!call->ended_ns)
			call->ended_ns = now_ns();

		pthread_mutex_lock(&t->lock);
		call->state = VERBS_CALL_RETURNED;
		call->next = NULL;
		t->running = NULL;
		*t->done_tail = call;
		t->done_tail = &call->next;
		if (write(t->efd, &one, sizeof(one)) < 0)
			abort(); /* a counter cannot overflow here */
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

static void finish(struct verbs_thread *t, struct verbs_call *call)
{
	call->deadline = sd_event_source_disable_unref(call->deadline);
	call->finish(t->agent, call);
}

static int on_returned(sd_event_source *source, int fd, uint32_t revents, void *user)
{
	struct verbs_thread *t = user;
	uint64_t count;

	(void)source;
	(void)revents;
	if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return -errno;
	for (;;) {
		struct verbs_call *call;

		pthread_mutex_lock(&t->lock);
		call = t->done;
		if (call) {
			t->done = call->next;
			if (!t->done)
				t->done_tail = &t->done;
		}
		pthread_mutex_unlock(&t->lock);
		if (!call)
			return 0;
		finish(t, call);
	}
}

static bool unqueue(struct verbs_thread *t, struct verbs_call *call)
{
	for (struct verbs_call **at = &t->queue; *at; at = &(*at)->next) {
		if (*at != call)
			continue;
		*at = call->next;
		if (t->tail == &call->next)
			t->tail = at;
		return true;
	}
	return false;
}

static void never_began(struct verbs_thread *t, struct verbs_call *call, uint64_t waited_ns)
{
	const struct verbs_call *ahead = verbs_running(t);
	struct request *req = call->req;

	call->cancelled = true;
	call->req = NULL;
	agent_record(t->agent, now_ns(), "blocked", call->obj->name, call->obj->life,
		     json_pack("{s:s, s:I, s:b}", "verb", call->verb, "waited_ns", (json_int_t)waited_ns, "begun", 0));
	if (req)
		request_fail_with(req, -ETIMEDOUT, json_pack("{s:b}", "blocked", 1),
				  "%s of %s was not made: %s of %s has not returned", call->verb, call->obj->name,
				  ahead ? ahead->verb : "another call", ahead ? verbs_call_at(ahead)->name : "another object");
	finish(t, call);
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *user)
{
	struct verbs_call *call = user;
	struct verbs_thread *t = call->thread;
	uint64_t waited_ns = now_ns() - call->submitted_ns;
	struct request *req = call->req;
	enum verbs_call_state state;
	struct error e;
	int rc;

	(void)source;
	(void)usec;
	pthread_mutex_lock(&t->lock);
	state = call->state;
	if (state == VERBS_CALL_QUEUED)
		unqueue(t, call);
	pthread_mutex_unlock(&t->lock);
	if (state == VERBS_CALL_RETURNED) /* its finish() comes with the eventfd */
		return 0;
	if (state == VERBS_CALL_QUEUED) {
		never_began(t, call, waited_ns);
		return 0;
	}
	call->late = true;
	call->req = NULL;
	if (call->overdue) {
		call->overdue(t->agent, call, waited_ns);
		return 0;
	}
	rc = verbs_overdue(t->agent, call->verb, call->obj, waited_ns, &e);
	if (req)
		request_fail_with(req, rc, json_pack("{s:b}", "blocked", 1), "%s", e.text);
	return 0;
}

int verbs_overdue(struct agent *a, const char *verb, const struct object *obj, uint64_t waited_ns, struct error *e)
{
	agent_record(a, now_ns(), "blocked", obj->name, obj->life,
		     json_pack("{s:s, s:I}", "verb", verb, "waited_ns", (json_int_t)waited_ns));
	return error_set(e, -ETIMEDOUT, "%s of %s has not returned after %llu ms", verb, obj->name,
			 (unsigned long long)(waited_ns / NSEC_PER_MSEC));
}

const struct object *verbs_call_at(const struct verbs_call *call)
{
	return call->at ? call->at(call) : call->obj;
}

void verbs_submit(struct agent *a, struct verbs_call *call, uint64_t deadline_ns)
{
	struct verbs_thread *t = a->verbs;

	call->thread = t;
	call->submitted_ns = now_ns();
	call->state = VERBS_CALL_QUEUED;
	if (loop_timer(a->loop, call->submitted_ns + (deadline_ns ? deadline_ns : AGENT_DEADLINE_NS), on_deadline, call,
		       &call->deadline) < 0)
		abort(); /* no memory for a timer */
	pthread_mutex_lock(&t->lock);
	call->next = NULL;
	*t->tail = call;
	t->tail = &call->next;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
}

const struct verbs_call *verbs_running(const struct verbs_thread *t)
{
	struct verbs_thread *open = (struct verbs_thread *)t;
	const struct verbs_call *call;

	pthread_mutex_lock(&open->lock);
	call = t->running;
	pthread_mutex_unlock(&open->lock);
	return call;
}

void verbs_record(struct agent *a, const struct verbs_call *call, json_t *ret)
{
	json_t *fields = json_pack("{s:s, s:i, s:I, s:O*, s:o*}", "verb", call->verb, "errno", call->err, "dur_ns",
				   (json_int_t)(call->ended_ns - call->started_ns), "args", call->args, "ret", ret);

	if (call->late)
		json_object_set_new(fields, "late", json_true());
	agent_record(a, call->started_ns, "verb", call->obj->name, call->obj->life, fields);
}

void verbs_reply(struct verbs_call *call, json_t *fields)
{
	struct request *req = call->req;

	call->req = NULL;
	if (!req) {
		json_decref(fields);
	} else if (call->err) {
		json_decref(fields);
		request_fail(req, -call->err, "%s: %s: %s", call->verb, call->obj->name, strerror(call->err));
	} else {
		request_reply(req, fields);
	}
}

int verbs_thread_new(struct agent *a, struct verbs_thread **ret)
{
	struct verbs_thread *t = calloc(1, sizeof(*t));
	sigset_t all, old;
	int rc;

	if (!t)
		return -ENOMEM;
	t->agent = a;
	t->tail = &t->queue;
	t->done_tail = &t->done;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->wake, NULL);
	t->efd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->efd < 0) {
		rc = -errno;
		goto free_thread;
	}
	rc = sd_event_add_io(a->loop, &t->source, t->efd, EPOLLIN, on_returned, t);
	if (rc < 0)
		goto close_efd;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = -pthread_create(&t->thread, NULL, thread_main, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc < 0)
		goto close_efd;
	*ret = t;
	return 0;
close_efd:
	sd_event_source_disable_unref(t->source);
	close(t->efd);
free_thread:
	free(t);
	return rc;
}

void verbs_thread_free(struct verbs_thread *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	sd_event_source_disable_unref(t->source);
	close(t->efd);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->wake);
	free(t);
}

void *verbs_call_new(size_t bytes)
{
	void *call = calloc(1, bytes);

	if (!call)
		abort();
	return call;
}

void verbs_end(struct verbs_call *call, json_t *fields)
{
	verbs_reply(call, fields);
	json_decref(call->args);
	free(call);
}
