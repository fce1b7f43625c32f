/* SPDX-License-Identifier: MIT */
#include "object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../harness/json.h"
#include "traffic.h"

const char *const object_type_names[NUM_OBJECT_TYPES] = { "?", "dev", "pd", "mr", "mw", "ah", "cq", "srq", "qp", "cm", "xrcd" };

static const size_t sizes[NUM_OBJECT_TYPES] = {
	[OBJECT_DEV] = sizeof(struct dev),   [OBJECT_PD] = sizeof(struct pd), [OBJECT_MR] = sizeof(struct mr),
	[OBJECT_MW] = sizeof(struct mw),     [OBJECT_AH] = sizeof(struct ah), [OBJECT_CQ] = sizeof(struct cq),
	[OBJECT_SRQ] = sizeof(struct srq),   [OBJECT_QP] = sizeof(struct qp), [OBJECT_CM] = sizeof(struct cm),
	[OBJECT_XRCD] = sizeof(struct xrcd),
};

static char *make_key(enum object_type type, const char *name)
{
	size_t len = strlen(name);
	char *key = malloc(len + 2);

	if (!key)
		abort();
	key[0] = (char)('0' + type);
	memcpy(key + 1, name, len + 1);
	return key;
}

struct object *object_find(struct agent *a, enum object_type type, const char *name)
{
	char *key = make_key(type, name);
	struct object *o;

	HASH_FIND_STR(a->objects, key, o);
	free(key);
	return o;
}

int object_want(struct agent *a, enum object_type type, const char *op, const char *name, struct object **ret, struct error *e)
{
	struct object *o = object_find(a, type, name);

	if (!o || !o->alive)
		return error_set(e, -ENOENT, "%s: there is no %s %s%s", op, object_type_names[type], name,
				 o && o->life ? ": it was destroyed" : "");
	if (o->busy)
		return error_set(e, -EBUSY, "%s: another call on %s %s has not returned", op, object_type_names[type], name);
	*ret = o;
	return 0;
}

struct object *object_need(struct agent *a, struct request *r, enum object_type type, const char *key)
{
	const char *name = json_str(r->body, key), *op = json_str(r->body, "op");
	struct object *o = NULL;
	struct error e = { "" };
	int rc;

	if (!name) {
		request_fail(r, -EINVAL, "%s: no %s is named", op, key);
		return NULL;
	}
	rc = object_want(a, type, op, name, &o, &e);
	if (rc < 0)
		request_fail(r, rc, "%s", e.text);
	return o;
}

struct object *object_claim(struct agent *a, struct request *r, enum object_type type)
{
	const char *name = json_str(r->body, "name");
	uint64_t given;
	struct object *o;

	if (!name || !*name) {
		request_fail(r, -EINVAL, "%s: no name is given", json_str(r->body, "op"));
		return NULL;
	}
	o = object_find(a, type, name);
	if (o && (o->alive || o->busy)) {
		request_fail(r, -EEXIST, "%s: %s %s %s", json_str(r->body, "op"), object_type_names[type], name,
			     o->busy ? "is busy: another call has not returned" : "lives already");
		return NULL;
	}
	if (!o) {
		o = calloc(1, sizes[type]);
		if (!o)
			abort();
		o->type = type;
		o->key = make_key(type, name);
		o->name = o->key + 1;
		HASH_ADD_KEYPTR(hh, a->objects, o->key, strlen(o->key), o);
	}
	o->busy = true;
	o->life++;
	given = json_u64(r->body, "life", 0);
	if (given > o->life) /* lives that an agent before this one has counted */
		o->life = (unsigned)given;
	return o;
}

void object_settle(struct object *o, bool lives)
{
	o->busy = false;
	o->alive = lives;
	if (!lives)
		o->life--;
}

struct qp *qp_by_qpn(struct agent *a, uint32_t qpn)
{
	struct qp *qp;

	HASH_FIND(by_number, a->qps_by_number, &qpn, sizeof(qpn), qp);
	return qp;
}

void qp_number_add(struct agent *a, struct qp *qp)
{
	qp->number = qp->qp->qp_num;
	HASH_ADD(by_number, a->qps_by_number, number, sizeof(qp->number), qp);
}

void qp_number_del(struct agent *a, struct qp *qp)
{
	HASH_DELETE(by_number, a->qps_by_number, qp);
}

struct queue *qp_recv_queue(struct qp *qp)
{
	return qp->srq ? qp->srq->rq : qp->rq;
}

uint64_t request_deadline_ns(const struct request *r)
{
	uint64_t ns = json_u64(r->body, "deadline_ns", 0);

	return ns ? ns : AGENT_DEADLINE_NS;
}

void qp_discard(struct agent *a, struct qp *qp)
{
	traffic_qp_gone(a, qp);
	run_flush(a, qp->sq);
	run_flush(a, qp->rq);
	queue_discard(qp->sq);
	queue_discard(qp->rq);
}

void agent_forget(struct agent *a)
{
	struct object *o = a->objects;

	traffic_forget(a);
	HASH_CLEAR(by_number, a->qps_by_number);
	HASH_CLEAR(hh, a->objects); /* their links stay */
	while (o) {
		struct object *next = o->hh.next;
		struct mr *mr = (struct mr *)o;

		if (o->type == OBJECT_MR && mr->addr)
			munmap(mr->addr, mr->mapped);
		free(o->key);
		free(o);
		o = next;
	}
	for (unsigned i = 1; i < a->n_queues; i++)
		queue_free(a->queues[i]);
	free(a->queues);
	a->queues = NULL;
	a->n_queues = 0;
	for (unsigned i = 1; i < a->n_traffic_names; i++)
		free(a->traffic_names[i]);
	free(a->traffic_names);
	a->traffic_names = NULL;
	a->n_traffic_names = 0;
}
