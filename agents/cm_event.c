/* SPDX-License-Identifier: MIT */
#include "cm.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <utlist.h>

#include "../harness/json.h"
#include "../harness/loop.h"
#include "../harness/names.h"
#include "../harness/units.h"
#include "object.h"
#include "qp_attr.h"
#include "verbs_thread.h"

/* A request that waits for an event. */
struct cm_wait {
	struct agent *agent;
	struct cm *cm;
	struct request *req;
	enum rdma_cm_event_type event;
	sd_event_source *timer;
	struct cm_wait *next;
};

struct attrs_call {
	struct verbs_call call;
	struct cm *cm;
	struct rdma_cm_id *id;
	struct ibv_qp_attr rtr, rts;
	json_t *told; /* owned */
};

static void wait_free(struct cm_wait *w)
{
	LL_DELETE(w->cm->waits, w);
	sd_event_source_disable_unref(w->timer);
	free(w);
}

/* ---- what a QP needs of a connection ---- */

static void run_attrs(struct verbs_call *call)
{
	struct attrs_call *c = (struct attrs_call *)call;
	int mask;

	c->rtr.qp_state = IBV_QPS_RTR;
	c->rts.qp_state = IBV_QPS_RTS;
	if (rdma_init_qp_attr(c->id, &c->rtr, &mask) || rdma_init_qp_attr(c->id, &c->rts, &mask))
		call->err = errno ? errno : EIO;
}

static void finish_attrs(struct agent *a, struct verbs_call *call)
{
	struct attrs_call *c = (struct attrs_call *)call;
	const struct ibv_qp_cap none = { 0 };

	if (!call->cancelled) {
		verbs_record(a, call, NULL);
		json_object_set_new(c->told, "rtr", qp_attr_json(&c->rtr, &none, c->rtr.dest_qp_num));
		json_object_set_new(c->told, "rts", qp_attr_json(&c->rts, &none, c->rtr.dest_qp_num));
	}
	verbs_end(call, c->told);
}

static void reply_with_attrs(struct agent *a, struct cm *cm, struct request *r)
{
	struct attrs_call *c = verbs_call_new(sizeof(*c));

	c->call = (struct verbs_call){
		.verb = "rdma_init_qp_attr", .obj = &cm->o, .req = r, .run = run_attrs, .finish = finish_attrs
	};
	c->cm = cm;
	c->id = cm->id;
	c->told = json_deep_copy(cm->asked);
	verbs_submit(a, &c->call, 0);
}

/* ---- those that wait ---- */

static void answer_one(struct cm_wait *w)
{
	struct agent *a = w->agent;
	struct cm *cm = w->cm;
	struct request *r = w->req;
	enum rdma_cm_event_type event = w->event;

	wait_free(w);
	if (event == RDMA_CM_EVENT_CONNECT_REQUEST || event == RDMA_CM_EVENT_CONNECT_RESPONSE)
		reply_with_attrs(a, cm, r);
	else
		request_reply(r, json_pack("{s:s}", "event", name_of(&names_cm_event, (int)event)));
}

static void fail_one(struct cm_wait *w)
{
	const struct cm *cm = w->cm;
	struct request *r = w->req;
	const char *event = json_str(cm->failed, "event"), *reason = json_str(cm->failed, "reason");
	int rc = (int)json_int(cm->failed, "rc", -EIO);

	wait_free(w);
	request_fail_with(r, rc, json_deep_copy(cm->failed), "%s: %s%s%s", cm->o.name, event ? event : "it failed",
			  reason ? " " : "", reason ? reason : "");
}

void cm_answer(struct agent *a, struct cm *cm)
{
	struct cm_wait *w = cm->waits;

	(void)a;
	while (w) {
		struct cm_wait *next = w->next;

		if (cm->seen & 1u << w->event)
			answer_one(w);
		else if (cm->failed)
			fail_one(w);
		w = next;
	}
}

void cm_end_waits(struct agent *a, struct cm *cm, const char *why)
{
	for (struct object *o = a->objects; o; o = o->hh.next) {
		struct cm *of = (struct cm *)o;

		while (o->type == OBJECT_CM && (!cm || cm == of) && of->waits) {
			struct request *r = of->waits->req;

			wait_free(of->waits);
			request_fail(r, -ECANCELED, "%s: %s", o->name, why);
		}
	}
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *user)
{
	struct cm_wait *w = user;
	struct request *r = w->req;
	const char *name = w->cm->o.name, *event = name_of(&names_cm_event, (int)w->event);

	(void)source;
	(void)usec;
	wait_free(w);
	request_fail(r, -ETIMEDOUT, "%s: no %s has come", name, event);
	return 0;
}

void op_cm_wait(struct agent *a, struct request *r)
{
	struct object *o = object_need(a, r, OBJECT_CM, "name");
	const char *event_name = json_str(r->body, "event");
	const struct name *event = name_find(&names_cm_event, event_name ? event_name : "");
	struct cm_wait *w;

	if (!o)
		return;
	if (!event) {
		request_fail(r, -EINVAL, "cm_wait: %s: unknown event \"%s\"", o->name, event_name ? event_name : "");
		return;
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		abort();
	*w = (struct cm_wait){ .agent = a, .cm = (struct cm *)o, .req = r, .event = (enum rdma_cm_event_type)event->value };
	if (loop_timer(a->loop, now_ns() + request_deadline_ns(r), on_deadline, w, &w->timer) < 0)
		abort(); /* no memory */
	LL_APPEND(w->cm->waits, w);
	cm_answer(a, w->cm);
}

/* ---- events ---- */

static int rc_of(const struct rdma_cm_event *ev)
{
	switch (ev->event) {
	case RDMA_CM_EVENT_REJECTED:
		return -ECONNREFUSED;
	case RDMA_CM_EVENT_DISCONNECTED:
		return -ECONNRESET;
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return ev->status < 0 ? ev->status : -EHOSTUNREACH;
	default:
		return 0;
	}
}

/* Whether the private data of an event means anything. */
static bool has_param(enum rdma_cm_event_type event)
{
	return event == RDMA_CM_EVENT_CONNECT_REQUEST || event == RDMA_CM_EVENT_CONNECT_RESPONSE ||
	       event == RDMA_CM_EVENT_REJECTED || event == RDMA_CM_EVENT_ESTABLISHED;
}

/* The message's room is filled up with zeros. What is no text is told in hex. */
static json_t *private_json(const struct rdma_conn_param *p)
{
	const uint8_t *data = p->private_data;
	size_t len = data ? p->private_data_len : 0;
	char hex[2 * UINT8_MAX + 3] = "0x";

	while (len && !data[len - 1])
		len--;
	for (size_t i = 0; i < len; i++)
		if (data[i] < 0x20 || data[i] > 0x7e) {
			for (size_t k = 0; k < len; k++)
				snprintf(hex + 2 + 2 * k, 3, "%02x", data[k]);
			return json_string(hex);
		}
	return len ? json_stringn((const char *)data, len) : NULL;
}

static json_t *fields_of(const struct rdma_cm_event *ev)
{
	json_t *f = json_pack("{s:s, s:i}", "event", name_of(&names_cm_event, (int)ev->event), "status", ev->status);
	json_t *private = has_param(ev->event) ? private_json(&ev->param.conn) : NULL;

	if (ev->event == RDMA_CM_EVENT_REJECTED)
		json_object_set_new(f, "reason", json_string(name_of(&names_cm_reject, ev->status)));
	else if (name_find(&names_cm_reject, name_of(&names_cm_event, (int)ev->event)))
		json_object_set_new(f, "reason", json_string(name_of(&names_cm_event, (int)ev->event)));
	if (private)
		json_object_set_new(f, "private", private);
	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST || ev->event == RDMA_CM_EVENT_CONNECT_RESPONSE)
		json_object_update_new(f, json_pack("{s:I, s:i, s:i, s:i, s:i}", "qpn", (json_int_t)ev->param.conn.qp_num,
						    "responder_resources", (int)ev->param.conn.responder_resources,
						    "initiator_depth", (int)ev->param.conn.initiator_depth, "retry_count",
						    (int)ev->param.conn.retry_count, "rnr_retry_count",
						    (int)ev->param.conn.rnr_retry_count));
	return f;
}

static void note_end(struct cm *cm, json_t *fields, int rc)
{
	json_decref(cm->failed);
	cm->failed = json_incref(fields);
	json_object_set_new(cm->failed, "rc", json_integer(rc));
}

void cm_fail(struct agent *a, struct cm *cm, const char *verb, int err)
{
	json_t *fields = json_pack("{s:o, s:i}", "event", json_sprintf("%s: %s", verb, strerror(err)), "status", -err);

	note_end(cm, fields, -err);
	json_decref(fields);
	cm_answer(a, cm);
}

static void act_on(struct agent *a, struct cm *cm, enum rdma_cm_event_type event)
{
	switch (event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		cm_resolve_route(a, cm);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		cm_ask_peer(a, cm);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		cm_take_leave(a, cm);
		break;
	default:
		break;
	}
}

static void on_event(struct agent *a, struct cm *cm, struct rdma_cm_event *ev)
{
	enum rdma_cm_event_type event = ev->event;
	json_t *fields = fields_of(ev);
	struct rdma_cm_id *of = ev->id, *one_too_many = NULL;
	int rc = rc_of(ev);

	if (event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		one_too_many = cm->id ? of : NULL;
		if (!cm->id)
			cm->id = of;
	}
	rdma_ack_cm_event(ev);
	agent_record(a, now_ns(), "cm", cm->qp_name, cm->qp_life, json_incref(fields));
	if (one_too_many) {
		/* One end takes one connection: whoever asks next is refused, by this. */
		rdma_destroy_id(one_too_many);
		json_decref(fields);
		return;
	}
	cm->seen |= 1u << event;
	if (event == RDMA_CM_EVENT_CONNECT_REQUEST || event == RDMA_CM_EVENT_CONNECT_RESPONSE) {
		json_decref(cm->asked);
		cm->asked = json_incref(fields);
	}
	if (rc)
		note_end(cm, fields, rc);
	json_decref(fields);
	act_on(a, cm, event);
	cm_answer(a, cm);
}

struct watch {
	struct agent *agent;
	struct cm *cm;
};

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *user)
{
	const struct watch *w = user;
	struct rdma_cm_event *ev;

	(void)source;
	(void)fd;
	(void)revents;
	while (w->cm->source && rdma_get_cm_event(w->cm->channel, &ev) == 0)
		on_event(w->agent, w->cm, ev);
	return 0;
}

static void watch_free(void *user)
{
	free(user);
}

void cm_watch(struct agent *a, struct cm *cm)
{
	struct watch *w = malloc(sizeof(*w));

	if (!w)
		abort();
	*w = (struct watch){ a, cm };
	if (sd_event_add_io(a->loop, &cm->source, cm->channel->fd, EPOLLIN, on_readable, w) < 0)
		abort(); /* no memory */
	sd_event_source_set_destroy_callback(cm->source, watch_free);
}
