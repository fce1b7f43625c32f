/* SPDX-License-Identifier: MIT */
/*
 * A device that exists only in a test program: libibverbs' functions, defined here, come before the library's. It keeps just enough
 * to refuse what a real one refuses. Included by one file of a test program.
 */
#ifndef QD_FAKE_VERBS_H
#define QD_FAKE_VERBS_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../harness/attr.h"

#undef ibv_query_port
#undef ibv_reg_mr

#define FAKE_MAX 256

struct fake_cq {
	struct ibv_cq cq;
	struct ibv_wc wc[FAKE_MAX];
	unsigned n_wc;
	bool armed;
	unsigned reported, acked;
};

struct fake_qp {
	struct ibv_qp qp;
	struct ibv_qp_attr attr;
	struct ibv_qp_cap cap;
	int last_mask;
	struct ibv_send_wr sent[FAKE_MAX];
	struct ibv_sge first_sge[FAKE_MAX];
	unsigned n_sent;
	uint64_t received[FAKE_MAX];
	unsigned n_received;
	int recv_sge;           /* of the newest */
	struct fake_xrcd *xrcd; /* of an XRC_RECV QP */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t acked;
	int live;           /* objects that were made and not destroyed */
	unsigned calls;     /* that can fail */
	unsigned fail_at;   /* the number of the call that fails with ENOMEM, from 1; 0: none */
	unsigned post_room; /* requests that the send queue still takes */
	struct fake_qp *qp; /* the newest */
	struct fake_srq *srq;
	struct fake_cq *cq;
	struct ibv_ah_attr ah_attr; /* of the newest */
	int attached;               /* memberships in groups */
	unsigned cap_flags;         /* of the device, IBV_DEVICE_* */
	/* Calls of the extended interface, where a test wants any. */
	void (*extend)(struct verbs_context *verbs);
	const struct fake_qp *refused; /* a move of it fails */
	const struct fake_qp *stuck;   /* a move of it does not return while that is so (fake_stick()) */
	uint32_t next_key, next_qpn;
} fake = { .lock = PTHREAD_MUTEX_INITIALIZER,
	   .acked = PTHREAD_COND_INITIALIZER,
	   .post_room = FAKE_MAX,
	   .next_key = 0x100,
	   .next_qpn = 17 };

static struct ibv_device fake_device = { .name = "fake0" };
static struct verbs_context fake_verbs;
#define fake_context fake_verbs.context

static bool fake_fails(void)
{
	bool fails;

	pthread_mutex_lock(&fake.lock);
	fails = ++fake.calls == fake.fail_at;
	pthread_mutex_unlock(&fake.lock);
	if (fails)
		errno = ENOMEM;
	return fails;
}

static void *fake_make(size_t size)
{
	void *p = fake_fails() ? NULL : calloc(1, size);

	if (p)
		__atomic_add_fetch(&fake.live, 1, __ATOMIC_SEQ_CST);
	return p;
}

static int fake_unmake(void *p)
{
	free(p);
	__atomic_sub_fetch(&fake.live, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static int fake_poll(struct ibv_cq *ibcq, int max, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)ibcq;
	unsigned n = cq->n_wc < (unsigned)max ? cq->n_wc : (unsigned)max;

	memcpy(wc, cq->wc, n * sizeof(*wc));
	memmove(cq->wc, cq->wc + n, (cq->n_wc - n) * sizeof(*wc));
	cq->n_wc -= n;
	return (int)n;
}

static int fake_notify(struct ibv_cq *ibcq, int solicited)
{
	(void)solicited;
	((struct fake_cq *)ibcq)->armed = true;
	return 0;
}

static int fake_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)ibqp;

	for (; wr; wr = wr->next) {
		if (fake.post_room == 0 || qp->n_sent == FAKE_MAX || qp->attr.qp_state < IBV_QPS_RTS) {
			*bad = wr;
			return qp->attr.qp_state < IBV_QPS_RTS ? EINVAL : ENOMEM;
		}
		fake.post_room--;
		qp->first_sge[qp->n_sent] = wr->num_sge ? wr->sg_list[0] : (struct ibv_sge){ 0 };
		qp->sent[qp->n_sent++] = *wr;
	}
	return 0;
}

static int fake_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)ibqp;

	for (; wr; wr = wr->next) {
		if (qp->n_received >= qp->cap.max_recv_wr) {
			*bad = wr;
			return ENOMEM;
		}
		qp->recv_sge = wr->num_sge;
		qp->received[qp->n_received++] = wr->wr_id;
	}
	return 0;
}

static struct ibv_mw *fake_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *mw = fake_make(sizeof(*mw));

	if (mw)
		*mw = (struct ibv_mw){ .context = pd->context, .pd = pd, .rkey = fake.next_key++ << 8, .type = type };
	return mw;
}

static int fake_dealloc_mw(struct ibv_mw *mw)
{
	return fake_unmake(mw);
}

/* As providers do it: a request of the send queue, and the window has its new key when it was taken. */
static int fake_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = { .wr_id = bind->wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = bind->send_flags }, *bad;
	int err;

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = mw->rkey + 0x10;
	wr.bind_mw.bind_info = bind->bind_info;
	err = fake_post_send(ibqp, &wr, &bad);
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}

/* A completion into a CQ, and the event if somebody asked. */
__attribute__((unused)) static void fake_complete(struct fake_cq *cq, struct ibv_wc wc)
{
	const uint64_t one = 1;

	cq->wc[cq->n_wc++] = wc;
	if (cq->armed && cq->cq.channel && write(cq->cq.channel->fd, &one, sizeof(one)) < 0)
		abort();
	cq->armed = false;
}

static int fake_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

struct ibv_device **ibv_get_device_list(int *n)
{
	static struct ibv_device *list[] = { &fake_device, NULL };

	*n = 1;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	(void)list;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	if (fake_fails())
		return NULL;
	fake.live++;
	fake_context = (struct ibv_context){ .device = device,
					     .async_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
					     .ops = { .poll_cq = fake_poll,
						      .req_notify_cq = fake_notify,
						      .post_send = fake_post_send,
						      .post_recv = fake_post_recv,
						      .post_srq_recv = fake_post_srq_recv,
						      .alloc_mw = fake_alloc_mw,
						      .dealloc_mw = fake_dealloc_mw,
						      .bind_mw = fake_bind_mw } };
	if (fake.extend)
		fake.extend(&fake_verbs);
	return &fake_context;
}

int ibv_close_device(struct ibv_context *context)
{
	close(context->async_fd);
	fake.live--;
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	*attr = (struct ibv_device_attr){ .max_qp = 100, .fw_ver = "1", .device_cap_flags = fake.cap_flags };
	return fake_fails() ? ENOMEM : 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	(void)context;
	(void)port;
	((struct ibv_port_attr *)attr)->state = IBV_PORT_ACTIVE;
	((struct ibv_port_attr *)attr)->active_mtu = IBV_MTU_1024;
	return fake_fails() ? ENOMEM : 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	(void)context;
	(void)port;
	(void)index;
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = gid->raw[11] = 0xff;
	gid->raw[12] = 10;
	gid->raw[15] = 1;
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max, uint32_t flags, size_t size)
{
	(void)max;
	(void)flags;
	(void)size;
	entries[0] = (struct ibv_gid_entry){ .gid_index = 0, .port_num = 1, .gid_type = IBV_GID_TYPE_ROCE_V2 };
	entries[0].gid.raw[0] = 0xfe;
	entries[1] = (struct ibv_gid_entry){ .gid_index = 3, .port_num = 1, .gid_type = IBV_GID_TYPE_ROCE_V2 };
	ibv_query_gid(context, 1, 3, &entries[1].gid);
	return 2;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = fake_make(sizeof(*pd));

	if (pd)
		pd->context = context;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	return fake_unmake(pd);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct ibv_mr *mr = fake_make(sizeof(*mr));

	(void)iova;
	(void)access;
	if (mr)
		*mr = (struct ibv_mr){ .context = pd->context,
				       .pd = pd,
				       .addr = addr,
				       .length = length,
				       .lkey = fake.next_key,
				       .rkey = fake.next_key++ };
	return mr;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	return fake_unmake(mr);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *c = fake_make(sizeof(*c));

	if (c)
		*c = (struct ibv_comp_channel){ .context = context, .fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE) };
	return c;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *c)
{
	close(c->fd);
	return fake_unmake(c);
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah *ah = fake_make(sizeof(*ah));

	if (ah)
		*ah = (struct ibv_ah){ .context = pd->context, .pd = pd };
	fake.ah_attr = *attr;
	return ah;
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)lid;
	if (gid->raw[0] != 0xff)
		return EINVAL;
	fake.attached++;
	return 0;
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	if (!fake.attached)
		return EINVAL;
	fake.attached--;
	return 0;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	return fake_unmake(ah);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *user, struct ibv_comp_channel *channel, int vector)
{
	struct fake_cq *cq = fake_make(sizeof(*cq));

	(void)vector;
	if (!cq)
		return NULL;
	cq->cq = (struct ibv_cq){ .context = context, .channel = channel, .cq_context = user, .cqe = cqe };
	fake.cq = cq;
	return &cq->cq;
}

/* As the library's: does not return while an event is not acknowledged. */
int ibv_destroy_cq(struct ibv_cq *ibcq)
{
	struct fake_cq *cq = (struct fake_cq *)ibcq;

	pthread_mutex_lock(&fake.lock);
	while (cq->acked != cq->reported)
		pthread_cond_wait(&fake.acked, &fake.lock);
	pthread_mutex_unlock(&fake.lock);
	return fake_unmake(cq);
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **ret, void **context)
{
	uint64_t one;

	if (read(channel->fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
		return -1;
	/* Each channel serves one CQ here. */
	*ret = &fake.cq->cq;
	*context = NULL;
	((struct fake_cq *)*ret)->reported++;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *ibcq, unsigned int n)
{
	pthread_mutex_lock(&fake.lock);
	((struct fake_cq *)ibcq)->acked += n;
	pthread_cond_broadcast(&fake.acked);
	pthread_mutex_unlock(&fake.lock);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct fake_qp *qp = fake_make(sizeof(*qp));

	if (!qp)
		return NULL;
	qp->qp = (struct ibv_qp){ .context = pd->context,
				  .pd = pd,
				  .send_cq = init->send_cq,
				  .recv_cq = init->recv_cq,
				  .qp_num = fake.next_qpn++,
				  .qp_type = init->qp_type };
	qp->cap = init->cap;
	fake.qp = qp;
	return &qp->qp;
}

struct fake_srq {
	struct ibv_srq srq;
	struct ibv_srq_attr attr;
	uint32_t number; /* of an XRC SRQ */
	struct ibv_cq *cq;
	struct fake_xrcd *xrcd;
	uint64_t received[FAKE_MAX];
	unsigned n_received;
};

/* A domain does not go while anything is in it. */
struct fake_xrcd {
	struct ibv_xrcd xrcd;
	int users;
};

static int fake_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_srq *srq = (struct fake_srq *)ibsrq;

	for (; wr; wr = wr->next) {
		if (srq->n_received >= srq->attr.max_wr || srq->n_received == FAKE_MAX) {
			*bad = wr;
			return ENOMEM;
		}
		srq->received[srq->n_received++] = wr->wr_id;
	}
	return 0;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct fake_srq *srq = fake_make(sizeof(*srq));

	if (!srq)
		return NULL;
	srq->srq = (struct ibv_srq){ .context = pd->context, .pd = pd };
	srq->attr = init->attr;
	fake.srq = srq;
	return &srq->srq;
}

int ibv_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct fake_srq *srq = (struct fake_srq *)ibsrq;

	if (mask & IBV_SRQ_LIMIT && attr->srq_limit > srq->attr.max_wr)
		return EINVAL;
	if (mask & IBV_SRQ_LIMIT)
		srq->attr.srq_limit = attr->srq_limit;
	if (mask & IBV_SRQ_MAX_WR)
		srq->attr.max_wr = attr->max_wr;
	return 0;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	struct fake_xrcd *xrcd = ((struct fake_srq *)srq)->xrcd;

	if (xrcd)
		xrcd->users--;
	return fake_unmake(srq);
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct fake_xrcd *xrcd = ((struct fake_qp *)qp)->xrcd;

	if (xrcd)
		xrcd->users--;
	return fake_unmake(qp);
}

__attribute__((unused)) static void fake_stick(const struct fake_qp *qp)
{
	pthread_mutex_lock(&fake.lock);
	fake.stuck = qp;
	pthread_cond_broadcast(&fake.acked);
	pthread_mutex_unlock(&fake.lock);
}

int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *qp = (struct fake_qp *)ibqp;
	const struct transition *t = transition_find((int)ibqp->qp_type, (int)qp->attr.qp_state, (int)attr->qp_state);

	qp->last_mask = mask;
	pthread_mutex_lock(&fake.lock);
	while (fake.stuck == qp)
		pthread_cond_wait(&fake.acked, &fake.lock);
	pthread_mutex_unlock(&fake.lock);
	if (fake_fails() || fake.refused == qp)
		return ENOMEM;
	if (!t || (mask & t->required) != t->required || mask & ~(t->required | t->optional | IBV_QP_STATE))
		return EINVAL;
	if (attr->qp_state == IBV_QPS_RESET)
		qp->n_sent = qp->n_received = 0;
	qp->attr = *attr;
	return 0;
}

int ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct fake_qp *qp = (struct fake_qp *)ibqp;

	(void)mask;
	*attr = qp->attr;
	*init = (struct ibv_qp_init_attr){ .cap = qp->cap };
	return 0;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	(void)context;
	(void)event;
	return -1;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

#endif
