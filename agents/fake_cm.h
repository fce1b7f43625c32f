/* SPDX-License-Identifier: MIT */
/* An rdma_cm that exists only in a test program, beside fake_verbs.h: calls succeed unless one is to fail, events are what the test
 * makes. Included by one file of a test program. */
#ifndef QD_FAKE_CM_H
#define QD_FAKE_CM_H

#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FAKE_CM_EVENTS 16

static struct {
	pthread_mutex_t lock;
	int live;         /* channels and IDs */
	const char *fail; /* this call fails with EIO */
	unsigned made, acked, disconnects, rejects;
	struct rdma_conn_param param; /* of the last connect or accept */
	struct rdma_cm_id *id;        /* the newest */
	struct rdma_cm_event events[FAKE_CM_EVENTS];
	unsigned first, last;
} fake_cm = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int fake_cm_rc(const char *call)
{
	if (!fake_cm.fail || strcmp(fake_cm.fail, call) != 0)
		return 0;
	errno = EIO;
	return -1;
}

/* private may be NULL. */
static void fake_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status, const char *private, uint32_t qpn)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&fake_cm.lock);
	fake_cm.events[fake_cm.last++ % FAKE_CM_EVENTS] = (struct rdma_cm_event){
		.id = id,
		.event = type,
		.status = status,
		.param.conn = { .private_data = private,
				.private_data_len = private ? (uint8_t)(strlen(private) + 1) : 0,
				.qp_num = qpn,
				.responder_resources = 4,
				.initiator_depth = 2 },
	};
	fake_cm.made++;
	pthread_mutex_unlock(&fake_cm.lock);
	if (write(id->channel->fd, &one, sizeof(one)) < 0)
		abort();
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rdma_event_channel *c = fake_cm_rc("rdma_create_event_channel") ? NULL : calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	__atomic_add_fetch(&fake_cm.live, 1, __ATOMIC_SEQ_CST);
	return c;
}

void rdma_destroy_event_channel(struct rdma_event_channel *c)
{
	close(c->fd);
	free(c);
	__atomic_sub_fetch(&fake_cm.live, 1, __ATOMIC_SEQ_CST);
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
{
	(void)ps;
	if (fake_cm_rc("rdma_create_id"))
		return -1;
	*id = calloc(1, sizeof(**id));
	if (!*id)
		return -1;
	(*id)->channel = channel;
	(*id)->context = context;
	fake_cm.id = *id;
	__atomic_add_fetch(&fake_cm.live, 1, __ATOMIC_SEQ_CST);
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	free(id);
	__atomic_sub_fetch(&fake_cm.live, 1, __ATOMIC_SEQ_CST);
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)id;
	(void)addr;
	return fake_cm_rc("rdma_bind_addr");
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	(void)id;
	(void)backlog;
	return fake_cm_rc("rdma_listen");
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	(void)id;
	return htons(4711);
}

int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t size)
{
	(void)id;
	(void)level;
	(void)name;
	(void)value;
	(void)size;
	return fake_cm_rc("rdma_set_option");
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int ms)
{
	(void)src;
	(void)dst;
	(void)ms;
	if (fake_cm_rc("rdma_resolve_addr"))
		return -1;
	fake_cm_event(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL, 0);
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int ms)
{
	(void)ms;
	if (fake_cm_rc("rdma_resolve_route"))
		return -1;
	fake_cm_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL, 0);
	return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	(void)id;
	fake_cm.param = *param;
	return fake_cm_rc("rdma_connect");
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	(void)id;
	fake_cm.param = *param;
	return fake_cm_rc("rdma_accept");
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t len)
{
	(void)id;
	(void)private_data;
	(void)len;
	fake_cm.rejects++;
	return fake_cm_rc("rdma_reject");
}

int rdma_establish(struct rdma_cm_id *id)
{
	(void)id;
	return fake_cm_rc("rdma_establish");
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	(void)id;
	__atomic_add_fetch(&fake_cm.disconnects, 1, __ATOMIC_SEQ_CST);
	return fake_cm_rc("rdma_disconnect");
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	(void)id;
	*mask = 0;
	attr->rq_psn = 0x111;
	attr->sq_psn = 0x222;
	attr->dest_qp_num = 77;
	return fake_cm_rc("rdma_init_qp_attr");
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **ret)
{
	uint64_t one;

	if (read(channel->fd, &one, sizeof(one)) < 0)
		return -1;
	pthread_mutex_lock(&fake_cm.lock);
	*ret = &fake_cm.events[fake_cm.first++ % FAKE_CM_EVENTS];
	pthread_mutex_unlock(&fake_cm.lock);
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	(void)event;
	fake_cm.acked++;
	return 0;
}

#endif
