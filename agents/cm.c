/* SPDX-License-Identifier: MIT */
#include "cm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../harness/json.h"
#include "../harness/units.h"
#include "object.h"
#include "qp.h"
#include "verbs_thread.h"

#define CM_DEVICE "/dev/infiniband/rdma_cm"
#define RESOLVE_MS 2000
#define PRIVATE_BYTES 56 /* what is left of a request's room, the shortest of the messages */
#define BACKLOG 8

struct cm_call {
	struct verbs_call call;
	struct cm *cm;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id; /* made, or worked on */
	union cm_addr {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} src, dst;
	uint8_t ack_timeout;
	bool has_ack_timeout;
	struct rdma_conn_param param;
	char text[PRIVATE_BYTES];
};

bool cm_is_there(void)
{
	int fd = open(CM_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static int failed(int rc)
{
	return rc ? (errno ? errno : EIO) : 0;
}

/* An address as a device's GID has it; one of the link alone wants the interface. */
static int addr_parse(const char *gid, const char *netdev, int port, union cm_addr *ret)
{
	struct in6_addr raw;

	if (!gid || inet_pton(AF_INET6, gid, &raw) != 1)
		return -EINVAL;
	memset(ret, 0, sizeof(*ret));
	if (IN6_IS_ADDR_V4MAPPED(&raw)) {
		ret->v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
		memcpy(&ret->v4.sin_addr, &raw.s6_addr[12], 4);
		return 0;
	}
	ret->v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = raw };
	if (IN6_IS_ADDR_LINKLOCAL(&raw))
		ret->v6.sin6_scope_id = netdev ? if_nametoindex(netdev) : 0;
	return 0;
}

static struct cm_call *call_new(struct cm *cm, struct request *r, const char *verb, void (*run)(struct verbs_call *call),
				void (*finish)(struct agent *a, struct verbs_call *call))
{
	struct cm_call *c = verbs_call_new(sizeof(*c));

	c->call = (struct verbs_call){ .verb = verb, .obj = &cm->o, .req = r, .run = run, .finish = finish };
	c->cm = cm;
	c->id = cm->id;
	return c;
}

static void fill_param(struct agent *a, struct cm_call *c, const json_t *body)
{
	const struct qp *qp = (struct qp *)object_find(a, OBJECT_QP, c->cm->qp_name);
	const char *text = json_str(body, "private");
	size_t len = text ? strnlen(text, sizeof(c->text)) : 0;

	memcpy(c->text, text ? text : "", len);
	c->param = (struct rdma_conn_param){
		.private_data = c->text,
		.private_data_len = (uint8_t)len,
		.responder_resources = (uint8_t)json_int(body, "responder_resources", 1),
		.initiator_depth = (uint8_t)json_int(body, "initiator_depth", 1),
		.flow_control = 1,
		.retry_count = (uint8_t)json_int(body, "retry_count", 7),
		.rnr_retry_count = (uint8_t)json_int(body, "rnr_retry_count", 7),
		.srq = qp && qp->srq,
		.qp_num = qp && qp->qp ? qp->qp->qp_num : 0,
	};
	c->call.args = json_pack("{s:I, s:i, s:i, s:i, s:i}", "qpn", (json_int_t)c->param.qp_num, "responder_resources",
				 (int)c->param.responder_resources, "initiator_depth", (int)c->param.initiator_depth, "retry_count",
				 (int)c->param.retry_count, "rnr_retry_count", (int)c->param.rnr_retry_count);
}

/* ---- ends that are made ---- */

/* A channel that does not block, and an ID on it. */
static int make_id(struct cm_call *c)
{
	int flags;

	c->channel = rdma_create_event_channel();
	if (!c->channel)
		return errno ? errno : EIO;
	flags = fcntl(c->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(c->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return errno;
	c->call.verb = "rdma_create_id";
	return failed(rdma_create_id(c->channel, &c->id, NULL, RDMA_PS_TCP));
}

static void unmake_id(struct cm_call *c)
{
	if (c->id)
		rdma_destroy_id(c->id);
	if (c->channel)
		rdma_destroy_event_channel(c->channel);
	c->id = NULL;
	c->channel = NULL;
}

static void run_listen(struct verbs_call *call)
{
	struct cm_call *c = (struct cm_call *)call;

	call->err = make_id(c);
	if (!call->err) {
		call->verb = "rdma_bind_addr";
		call->err = failed(rdma_bind_addr(c->id, &c->src.any));
	}
	if (!call->err) {
		call->verb = "rdma_listen";
		call->err = failed(rdma_listen(c->id, BACKLOG));
	}
	if (call->err)
		unmake_id(c);
}

/* Without an ACK timeout of the file's the CM takes its own, of seconds. */
static void run_resolve(struct verbs_call *call)
{
	struct cm_call *c = (struct cm_call *)call;

	call->err = make_id(c);
	if (!call->err && c->has_ack_timeout) {
		call->verb = "rdma_set_option";
		call->err = failed(rdma_set_option(c->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &c->ack_timeout,
						   sizeof(c->ack_timeout)));
	}
	if (!call->err) {
		call->verb = "rdma_resolve_addr";
		call->err = failed(rdma_resolve_addr(c->id, &c->src.any, &c->dst.any, RESOLVE_MS));
	}
	if (call->err)
		unmake_id(c);
}

static void finish_made(struct agent *a, struct verbs_call *call)
{
	struct cm_call *c = (struct cm_call *)call;
	struct cm *cm = c->cm;
	bool listens = call->run == run_listen;
	json_t *ret = NULL;

	object_settle(&cm->o, c->id != NULL);
	if (!call->cancelled && c->id)
		ret = json_pack("{s:i}", "life", (int)cm->o.life);
	if (ret && listens)
		json_object_set_new(ret, "port", json_integer(ntohs(rdma_get_src_port(c->id))));
	if (!call->cancelled)
		verbs_record(a, call, json_incref(ret));
	if (c->id) {
		cm->channel = c->channel;
		*(listens ? &cm->listener : &cm->id) = c->id;
		cm_watch(a, cm);
	} else {
		json_decref(cm->param);
		cm->param = NULL;
	}
	verbs_end(call, ret);
}

/* The object, with what its former life left taken away. */
static struct cm *claim(struct agent *a, struct request *r)
{
	const char *qp_name = json_str(r->body, "qp");
	struct object *qp = object_need(a, r, OBJECT_QP, "qp"), *o = qp ? object_claim(a, r, OBJECT_CM) : NULL;
	struct cm *cm = (struct cm *)o;

	if (!cm)
		return NULL;
	snprintf(cm->qp_name, sizeof(cm->qp_name), "%s", qp_name);
	cm->qp_life = qp->life;
	cm->seen = 0;
	cm->taking_leave = false;
	return cm;
}

static void make(struct agent *a, struct request *r, void (*run)(struct verbs_call *call))
{
	const char *netdev = json_str(r->body, "netdev"), *peer = json_str(r->body, "peer");
	struct cm *cm = claim(a, r);
	struct cm_call *c;

	if (!cm)
		return;
	c = call_new(cm, r, "rdma_create_event_channel", run, finish_made);
	if (addr_parse(json_str(r->body, "addr"), netdev, 0, &c->src) < 0 ||
	    (run == run_resolve && addr_parse(peer, netdev, (int)json_int(r->body, "port", 0), &c->dst) < 0)) {
		object_settle(&cm->o, false);
		request_fail(r, -EINVAL, "%s: %s: an address is no GID", json_str(r->body, "op"), cm->o.name);
		free(c);
		return;
	}
	c->has_ack_timeout = json_object_get(r->body, "timeout") != NULL;
	c->ack_timeout = (uint8_t)json_int(r->body, "timeout", 0);
	if (run == run_resolve)
		cm->param = json_incref(r->body);
	verbs_submit(a, &c->call, json_u64(r->body, "deadline_ns", 0));
}

void op_cm_listen(struct agent *a, struct request *r)
{
	make(a, r, run_listen);
}

void op_cm_connect(struct agent *a, struct request *r)
{
	make(a, r, run_resolve);
}

/* ---- calls on an ID ---- */

static void run_route(struct verbs_call *call)
{
	call->err = failed(rdma_resolve_route(((struct cm_call *)call)->id, RESOLVE_MS));
}

static void run_connect(struct verbs_call *call)
{
	struct cm_call *c = (struct cm_call *)call;

	call->err = failed(rdma_connect(c->id, &c->param));
}

static void run_accept(struct verbs_call *call)
{
	struct cm_call *c = (struct cm_call *)call;

	call->err = failed(rdma_accept(c->id, &c->param));
}

static void run_reject(struct verbs_call *call)
{
	struct cm_call *c = (struct cm_call *)call;

	call->err = failed(rdma_reject(c->id, c->text, c->param.private_data_len));
}

static void run_establish(struct verbs_call *call)
{
	call->err = failed(rdma_establish(((struct cm_call *)call)->id));
}

static void run_disconnect(struct verbs_call *call)
{
	call->err = failed(rdma_disconnect(((struct cm_call *)call)->id));
}

/* Nobody asked for it: a failure ends the connection. */
static void finish_own(struct agent *a, struct verbs_call *call)
{
	struct cm *cm = ((struct cm_call *)call)->cm;
	const char *verb = call->verb;
	int err = call->cancelled ? ECANCELED : call->err;

	if (!call->cancelled)
		verbs_record(a, call, NULL);
	verbs_end(call, NULL);
	if (err)
		cm_fail(a, cm, verb, err);
}

static void finish_asked(struct agent *a, struct verbs_call *call)
{
	if (!call->cancelled)
		verbs_record(a, call, NULL);
	call->obj->busy = false;
	verbs_end(call, NULL);
}

void cm_resolve_route(struct agent *a, struct cm *cm)
{
	verbs_submit(a, &call_new(cm, NULL, "rdma_resolve_route", run_route, finish_own)->call, 0);
}

void cm_ask_peer(struct agent *a, struct cm *cm)
{
	struct cm_call *c = call_new(cm, NULL, "rdma_connect", run_connect, finish_own);

	fill_param(a, c, cm->param);
	verbs_submit(a, &c->call, 0);
}

static void to_err(struct agent *a, struct cm *cm)
{
	struct qp *qp = (struct qp *)object_find(a, OBJECT_QP, cm->qp_name);

	if (qp && qp->o.life == cm->qp_life && qp->state != IBV_QPS_RESET)
		qp_to_err(a, qp, "cm");
}

static void finish_leave(struct agent *a, struct verbs_call *call)
{
	if (!call->cancelled)
		verbs_record(a, call, NULL);
	verbs_end(call, NULL);
}

void cm_take_leave(struct agent *a, struct cm *cm)
{
	if (cm->taking_leave)
		return;
	cm->taking_leave = true;
	to_err(a, cm);
	verbs_submit(a, &call_new(cm, NULL, "rdma_disconnect", run_disconnect, finish_leave)->call, 0);
}

/* Of an end that has an ID: a listener has one once somebody asked. */
static struct cm *need(struct agent *a, struct request *r)
{
	struct cm *cm = (struct cm *)object_need(a, r, OBJECT_CM, "name");

	if (cm && !cm->id) {
		request_fail(r, -ENOTCONN, "%s: %s: nobody has asked for a connection", json_str(r->body, "op"), cm->o.name);
		return NULL;
	}
	return cm;
}

static void ask_for(struct agent *a, struct request *r, const char *verb, void (*run)(struct verbs_call *call))
{
	struct cm *cm = need(a, r);
	struct cm_call *c;

	if (!cm)
		return;
	c = call_new(cm, r, verb, run, finish_asked);
	if (run == run_accept || run == run_reject)
		fill_param(a, c, r->body);
	cm->o.busy = true;
	verbs_submit(a, &c->call, json_u64(r->body, "deadline_ns", 0));
}

void op_cm_accept(struct agent *a, struct request *r)
{
	ask_for(a, r, "rdma_accept", run_accept);
}

void op_cm_reject(struct agent *a, struct request *r)
{
	ask_for(a, r, "rdma_reject", run_reject);
}

void op_cm_establish(struct agent *a, struct request *r)
{
	ask_for(a, r, "rdma_establish", run_establish);
}

/* The QP first: what it has outstanding is flushed, and the peer's packets meet nobody. */
void op_cm_disconnect(struct agent *a, struct request *r)
{
	struct cm *cm = need(a, r);

	if (!cm)
		return;
	to_err(a, cm);
	cm->taking_leave = true;
	ask_for(a, r, "rdma_disconnect", run_disconnect);
}

/* ---- its end ---- */

void cm_begin_destroy(struct agent *a, struct object *o)
{
	struct cm *cm = (struct cm *)o;

	cm_end_waits(a, cm, "the connection's end is destroyed");
	cm->source = sd_event_source_disable_unref(cm->source);
}

/* Takes leave of a peer that is connected. */
int cm_call_destroy(struct object *o)
{
	struct cm *cm = (struct cm *)o;
	int err = cm->id ? failed(rdma_destroy_id(cm->id)) : 0;

	if (!err)
		cm->id = NULL;
	if (!err && cm->listener)
		err = failed(rdma_destroy_id(cm->listener));
	if (!err)
		cm->listener = NULL;
	return err;
}

void cm_end_destroy(struct agent *a, struct object *o, bool gone)
{
	struct cm *cm = (struct cm *)o;

	if (!gone) {
		cm_watch(a, cm);
		return;
	}
	rdma_destroy_event_channel(cm->channel);
	cm->channel = NULL;
	json_decref(cm->asked);
	json_decref(cm->failed);
	json_decref(cm->param);
	cm->asked = cm->failed = cm->param = NULL;
}
