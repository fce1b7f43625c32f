/* SPDX-License-Identifier: MIT */
#include "release.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/log.h"
#include "../harness/names.h"
#include "../harness/units.h"
#include "agent.h"
#include "cm.h"
#include "counters.h"
#include "cq.h"
#include "destroy.h"
#include "drain.h"
#include "group.h"
#include "traffic.h"
#include "verbs_thread.h"
#include "witness.h"

struct release_call {
	struct verbs_call call;
	struct object **objects; /* in the order of their destruction */
	int *err;
	size_t n;
	bool exit;
};

/* Windows first: there are devices on which a QP cannot go while one is bound over it. */
static const enum object_type order[] = { OBJECT_MW, OBJECT_CM, OBJECT_QP, OBJECT_SRQ, OBJECT_XRCD,
					  OBJECT_CQ, OBJECT_MR, OBJECT_AH, OBJECT_PD,  OBJECT_DEV };

/* The device closes on the loop's side only when nothing of it is left: its users are counted there. Here the count is of what
 * refused. */
static bool refused_of(const struct release_call *c, const struct object *dev)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct object *o = c->objects[i];
		const struct dev *of = o->type == OBJECT_PD     ? ((struct pd *)o)->dev
				       : o->type == OBJECT_CQ   ? ((struct cq *)o)->dev
				       : o->type == OBJECT_XRCD ? ((struct xrcd *)o)->dev
								: NULL;

		if (c->err[i] && of && &of->o == dev)
			return true;
	}
	return false;
}

static void run_release(struct verbs_call *call)
{
	struct release_call *c = (struct release_call *)call;

	for (size_t i = 0; i < c->n; i++) {
		struct object *o = c->objects[i];

		if (o->type == OBJECT_QP)
			groups_leave((struct qp *)o);
		call->verb = destructors[o->type].verb;
		call->obj = o;
		if (o->type == OBJECT_DEV)
			c->err[i] = refused_of(c, o) ? EBUSY : ibv_close_device(((struct dev *)o)->ctx) ? EIO : 0;
		else
			c->err[i] = destructors[o->type].call(o);
	}
}

static void forget_case(struct agent *a)
{
	agent_forget(a);
	json_array_clear(a->events);
	a->seed = 0;
	json_decref(witness_end(a));
}

static json_t *left_json(const struct object *o, int err)
{
	return json_pack("{s:s, s:s, s:i, s:s}", "type", object_type_names[o->type], "name", o->name, "errno", err, "error",
			 strerror(err));
}

/* An object whose own call had not returned when the release began, and which lives on. */
static void add_survivors(struct agent *a, const struct release_call *c, json_t *left)
{
	for (const struct object *o = a->objects; o; o = o->hh.next) {
		bool known = false;

		for (size_t i = 0; i < c->n; i++)
			known |= c->objects[i] == o;
		if (o->alive && !known)
			json_array_append_new(left, left_json(o, EBUSY));
	}
}

/* What refused stays, with everything that it was made of. */
static json_t *settle_objects(struct agent *a, struct release_call *c)
{
	json_t *left = json_array();

	for (size_t i = 0; i < c->n; i++) {
		struct object *o = c->objects[i];

		if (c->err[i]) {
			destructors[o->type].end(a, o, false);
			o->busy = false;
			json_array_append_new(left, left_json(o, c->err[i]));
			continue;
		}
		o->alive = false;
		destructors[o->type].end(a, o, true);
		o->busy = false;
	}
	return left;
}

static void finish_release(struct agent *a, struct verbs_call *call)
{
	struct release_call *c = (struct release_call *)call;
	json_t *left;

	if (call->cancelled) {
		for (size_t i = 0; i < c->n; i++) {
			c->objects[i]->busy = false;
			destructors[c->objects[i]->type].end(a, c->objects[i], false);
		}
		goto free_call;
	}
	agent_record(
		a, call->started_ns, "release", NULL, 0,
		json_pack("{s:I, s:I}", "objects", (json_int_t)c->n, "dur_ns", (json_int_t)(call->ended_ns - call->started_ns)));
	left = settle_objects(a, c);
	add_survivors(a, c, left);
	if (json_array_size(left) == 0)
		forget_case(a);
	if (call->req) {
		struct request *req = call->req;

		call->req = NULL;
		request_reply(req, json_pack("{s:O}", "left", left));
	}
	json_decref(left);
free_call:
	if (c->exit)
		sd_event_exit(a->loop, 0);
	free(c->objects);
	free(c->err);
	free(c);
}

static size_t collect(struct agent *a, struct object **objects)
{
	size_t n = 0;

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		for (struct object *o = a->objects; o; o = o->hh.next) {
			if (o->type == order[i] && o->alive && !o->busy)
				objects[n++] = o;
		}
	}
	return n;
}

/* Everything that waits for something is answered; what a destructor would wait for is given. */
static void let_go(struct agent *a)
{
	struct traffic *t;

	for (t = a->traffics; t; t = t->links.all)
		traffic_end(t, -ECANCELED, "stop", "everything is released");
	drain_end_all(a);
	counters_end_all(a);
	cq_end_waits(a);
	cm_end_waits(a, NULL, "everything is released");
	for (struct object *o = a->objects; o; o = o->hh.next) {
		if (o->type == OBJECT_CQ && o->alive && ((struct cq *)o)->cq)
			cq_acknowledge((struct cq *)o);
	}
}

static void start(struct agent *a, struct request *r, uint64_t deadline_ns, bool exit)
{
	struct release_call *c = calloc(1, sizeof(*c));
	size_t total = HASH_COUNT(a->objects);

	if (!c)
		abort();
	let_go(a);
	c->objects = calloc(total + 1, sizeof(struct object *));
	c->err = calloc(total + 1, sizeof(*c->err));
	if (!c->objects || !c->err)
		abort();
	c->n = collect(a, c->objects);
	c->exit = exit;
	if (c->n == 0 && !verbs_running(a->verbs)) {
		free(c->objects);
		free(c->err);
		free(c);
		forget_case(a);
		if (exit)
			sd_event_exit(a->loop, 0);
		if (r)
			request_reply(r, json_pack("{s:[]}", "left"));
		return;
	}
	c->call = (struct verbs_call){
		.verb = "release", .req = r, .run = run_release, .finish = finish_release, .obj = c->n ? c->objects[0] : a->objects
	};
	for (size_t i = 0; i < c->n; i++) {
		destructors[c->objects[i]->type].begin(a, c->objects[i]);
		c->objects[i]->busy = true;
	}
	verbs_submit(a, &c->call, deadline_ns);
}

void op_release(struct agent *a, struct request *r)
{
	start(a, r, json_u64(r->body, "deadline_ns", 0), false);
}

static int on_overdue(sd_event_source *source, uint64_t usec, void *user)
{
	struct agent *a = user;

	(void)source;
	(void)usec;
	log_warn("left with objects that could not be destroyed in time");
	return sd_event_exit(a->loop, 0);
}

void release_and_exit(struct agent *a, uint64_t deadline_ns)
{
	sd_event_source *timer;

	if (sd_event_add_time_relative(a->loop, &timer, CLOCK_MONOTONIC, deadline_ns / NSEC_PER_USEC, 1, on_overdue, a) < 0) {
		sd_event_exit(a->loop, 1);
		return;
	}
	sd_event_source_set_floating(timer, true);
	sd_event_source_unref(timer);
	start(a, NULL, deadline_ns, true);
}
