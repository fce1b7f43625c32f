/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/names.h"
#include "../harness/units.h"
#include "counters.h"
#include "object.h"
#include "qp.h"
#include "verbs_thread.h"
#include "witness.h"

#define MISSING_MAX 8u

static json_t *queue_json(const struct queue *q)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "posted", (json_int_t)q->posted, "completed", (json_int_t)q->completed,
			 "retired", (json_int_t)q->retired, "discarded", (json_int_t)q->discarded, "in_flight",
			 (json_int_t)q->in_flight, "double", (json_int_t)q->doubled);
}

static json_t *missing_json(struct queue *q)
{
	json_t *list = json_array();

	for (uint32_t s = q->oldest; s != q->next && json_array_size(list) < MISSING_MAX; s++) {
		const struct wr *wr = queue_wr(q, s);

		if (wr && wr->state == WR_OUT)
			json_array_append_new(
				list, json_hex(wrid_encode((struct wrid){
					      .life = q->life, .queue = q->number, .kind = (enum wrid_kind)wr->kind, .seq = s })));
	}
	return list;
}

void op_ledger(struct agent *a, struct request *r)
{
	const char *name = json_str(r->body, "qp");
	struct object *o = name ? object_find(a, OBJECT_QP, name) : NULL;
	struct qp *qp = (struct qp *)o;

	if (!o || !qp->sq) {
		request_fail(r, -ENOENT, "ledger: there is no qp %s", name ? name : "(none named)");
		return;
	}
	request_reply(r, json_pack("{s:i, s:o, s:o}", "life", (int)o->life, "send", queue_json(qp->sq), "recv",
				   queue_json(qp_recv_queue(qp))));
}

static json_t *qps_json(struct agent *a)
{
	json_t *list = json_array();

	for (struct object *o = a->objects; o; o = o->hh.next) {
		json_t *queried = NULL, *f;
		int rc;

		if (o->type != OBJECT_QP)
			continue;
		f = json_pack("{s:s, s:i, s:b, s:b}", "name", o->name, "life", (int)o->life, "alive", o->alive, "busy", o->busy);
		rc = o->alive && !o->busy ? qp_query((struct qp *)o, &queried) : 0;
		if (rc < 0)
			json_object_set_new(f, "error", json_string(strerror(-rc)));
		if (queried)
			json_object_set_new(f, "queried", queried);
		json_array_append_new(list, f);
	}
	return list;
}

static json_t *queues_json(struct agent *a)
{
	json_t *list = json_array();

	for (unsigned i = 1; i < a->n_queues; i++) {
		struct queue *q = a->queues[i];
		json_t *f = queue_json(q);

		json_object_set_new(f, "name", json_string(q->name));
		json_object_set_new(f, "life", json_integer(q->life));
		if (q->in_flight)
			json_object_set_new(f, "missing", missing_json(q));
		json_array_append_new(list, f);
	}
	return list;
}

static json_t *mrs_json(struct agent *a)
{
	json_t *list = json_array();

	for (struct object *o = a->objects; o; o = o->hh.next) {
		const struct mr *mr = (struct mr *)o;
		json_t *f;

		if (o->type != OBJECT_MR)
			continue;
		f = json_pack("{s:s, s:i, s:b, s:o, s:I}", "name", o->name, "life", (int)o->life, "alive", o->alive, "addr",
			      json_hex((uintptr_t)mr->addr), "bytes", (json_int_t)mr->bytes);
		if (mr->mr)
			json_object_update_new(
				f, json_pack("{s:I, s:I}", "lkey", (json_int_t)mr->mr->lkey, "rkey", (json_int_t)mr->mr->rkey));
		json_array_append_new(list, f);
	}
	return list;
}

static json_t *cqs_json(struct agent *a)
{
	json_t *list = json_array();

	for (struct object *o = a->objects; o; o = o->hh.next) {
		const struct cq *cq = (struct cq *)o;

		if (o->type == OBJECT_CQ)
			json_array_append_new(list, json_pack("{s:s, s:i, s:b, s:b, s:b, s:i}", "name", o->name, "life",
							      (int)o->life, "alive", o->alive, "manual", cq->manual, "hold",
							      cq->hold, "unacked", (int)cq->unacked));
	}
	return list;
}

static json_t *all_counters(struct agent *a)
{
	json_t *all = json_object();

	for (struct object *o = a->objects; o; o = o->hh.next) {
		if (o->type == OBJECT_DEV && o->alive && !o->busy)
			json_object_set_new(all, o->name, counters_read(a, (struct dev *)o));
	}
	return all;
}

void op_dump(struct agent *a, struct request *r)
{
	const struct verbs_call *running = verbs_running(a->verbs);
	json_t *f = json_pack("{s:o, s:o, s:o, s:o, s:o, s:O, s:o*}", "qps", qps_json(a), "queues", queues_json(a), "mrs",
			      mrs_json(a), "cqs", cqs_json(a), "counters", all_counters(a), "events", a->events, "witness",
			      witness_json(a->witness));

	if (json_object_get(r->body, "why"))
		json_object_set(f, "why", json_object_get(r->body, "why"));
	if (running)
		json_object_set_new(f, "running",
				    json_pack("{s:s, s:s}", "verb", running->verb, "obj", verbs_call_at(running)->name));
	agent_record(a, now_ns(), "dump", NULL, 0, json_incref(f));
	request_reply(r, f);
}
