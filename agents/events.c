/* SPDX-License-Identifier: MIT */
#include "events.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "../harness/names.h"
#include "../harness/log.h"
#include "../harness/units.h"
#include "object.h"

static struct object *resolve(struct agent *a, const struct ibv_async_event *ev, struct dev *dev)
{
	enum event_subject subject = event_subject((int)ev->event_type);

	if (subject == EVENT_OF_DEV || subject == EVENT_OF_PORT)
		return &dev->o;
	for (struct object *o = a->objects; o; o = o->hh.next) {
		if ((subject == EVENT_OF_QP && o->type == OBJECT_QP && ((struct qp *)o)->qp == ev->element.qp) ||
		    (subject == EVENT_OF_CQ && o->type == OBJECT_CQ && ((struct cq *)o)->cq == ev->element.cq) ||
		    (subject == EVENT_OF_SRQ && o->type == OBJECT_SRQ && ((struct srq *)o)->srq == ev->element.srq))
			return o;
	}
	return NULL;
}

static void keep(struct agent *a, uint64_t t, const char *obj, const char *event)
{
	if (json_array_size(a->events) >= AGENT_EVENTS_KEPT)
		json_array_remove(a->events, 0);
	json_array_append_new(a->events, json_pack("{s:I, s:s, s:s}", "t", (json_int_t)t, "obj", obj, "event", event));
}

static void report(struct agent *a, struct dev *dev, const struct ibv_async_event *ev)
{
	const struct object *o = resolve(a, ev, dev);
	const char *event = name_of(&names_event, (int)ev->event_type), *name = o ? o->name : "?";
	json_t *f = json_pack("{s:s}", "event", event);
	uint64_t t = now_ns();

	if (event_subject((int)ev->event_type) == EVENT_OF_PORT)
		json_object_set_new(f, "port", json_integer(ev->element.port_num));
	if (event[0] == '?')
		json_object_set_new(f, "number", json_integer((json_int_t)ev->event_type));
	keep(a, t, name, event);
	agent_record(a, t, "event", name, o ? o->life : 0, f);
}

static unsigned take_events(struct agent *a, struct dev *dev)
{
	struct ibv_async_event ev;
	unsigned n = 0;

	while (ibv_get_async_event(dev->ctx, &ev) == 0) {
		report(a, dev, &ev);
		ibv_ack_async_event(&ev);
		n++;
	}
	return n;
}

struct watch {
	struct agent *agent;
	struct dev *dev;
};

static void watch_free(void *user)
{
	free(user);
}

static int on_async(sd_event_source *source, int fd, uint32_t revents, void *user)
{
	struct watch *w = user;

	(void)source;
	(void)fd;
	if (take_events(w->agent, w->dev) == 0 && revents & (EPOLLERR | EPOLLHUP)) /* the device is gone: nothing will come */
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
	return 0;
}

void events_watch(struct agent *a, struct dev *dev)
{
	int fd = dev->ctx->async_fd, flags = fcntl(fd, F_GETFL);
	struct watch *w = malloc(sizeof(*w));

	if (!w)
		abort();
	*w = (struct watch){ a, dev };
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    sd_event_add_io(a->loop, &dev->async, fd, EPOLLIN, on_async, w) < 0) {
		log_warn("%s: async events of %s cannot be watched", dev->o.name, dev->rdma);
		free(w);
		return;
	}
	sd_event_source_set_destroy_callback(dev->async, watch_free);
}

void op_events(struct agent *a, struct request *r)
{
	unsigned n = 0;

	for (struct object *o = a->objects; o; o = o->hh.next) {
		if (o->type == OBJECT_DEV && o->alive && !o->busy && ((struct dev *)o)->async)
			n += take_events(a, (struct dev *)o);
	}
	request_reply(r, json_pack("{s:i}", "pending", (int)n));
}
