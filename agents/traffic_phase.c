/* SPDX-License-Identifier: MIT */
/* What a traffic was like during a part of its time: while a fault was active, for example. */
#include "traffic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/units.h"
#include "agent.h"
#include "object.h"

static void widen(uint64_t *gap_max_ns, uint64_t progress_ns, uint64_t now)
{
	if (now > progress_ns && now - progress_ns > *gap_max_ns)
		*gap_max_ns = now - progress_ns;
}

void traffic_phases_progress(struct traffic *t, uint64_t now)
{
	for (struct traffic_phase *p = t->phases; p; p = p->next) {
		widen(&p->gap_max_ns, p->progress_ns, now);
		p->progress_ns = now;
	}
}

void traffic_phases_latency(struct traffic *t, uint64_t latency_ns)
{
	for (struct traffic_phase *p = t->phases; p; p = p->next)
		hist_add(&p->latency, latency_ns);
}

static struct traffic_phase **phase_find(struct traffic *t, const char *name)
{
	struct traffic_phase **p = &t->phases;

	while (*p && strcmp((*p)->name, name) != 0)
		p = &(*p)->next;
	return p;
}

static void end(struct traffic *t, const char *name)
{
	struct traffic_phase **p = phase_find(t, name), *gone = *p;

	if (!gone)
		return;
	*p = gone->next;
	free(gone->name);
	free(gone);
}

void traffic_phases_forget(struct traffic *t)
{
	while (t->phases)
		end(t, t->phases->name);
}

static void begin(struct traffic *t, const char *name)
{
	struct traffic_phase *p;

	end(t, name);
	p = calloc(1, sizeof(*p));
	if (!p || !(p->name = strdup(name)))
		abort();
	p->sent = t->next;
	p->done = t->done;
	p->errors = t->errors;
	p->bad_payload = t->bad_payload;
	p->bytes = t->bytes;
	p->received = t->received;
	p->progress_ns = now_ns();
	p->next = t->phases;
	t->phases = p;
}

static json_t *look(struct traffic *t, const char *name)
{
	struct traffic_phase *p = *phase_find(t, name);
	uint64_t gap = p ? p->gap_max_ns : t->gap_max_ns, now = now_ns();
	json_t *f = traffic_json(t);

	/* What has not come yet has been waited for as well. */
	if (t->state == TRAFFIC_RUNNING)
		widen(&gap, p ? p->progress_ns : t->progress_ns, now);
	json_object_set_new(f, "gap_max_ns", json_integer((json_int_t)gap));
	json_object_set_new(f, "phase", json_string(name));
	if (p) {
		json_object_set_new(f, "sent", json_integer((json_int_t)(t->next - p->sent)));
		json_object_set_new(f, "done", json_integer((json_int_t)(t->done - p->done)));
		json_object_set_new(f, "errors", json_integer((json_int_t)(t->errors - p->errors)));
		json_object_set_new(f, "bad_payload", json_integer((json_int_t)(t->bad_payload - p->bad_payload)));
		json_object_set_new(f, "bytes", json_integer((json_int_t)(t->bytes - p->bytes)));
		json_object_set_new(f, "received", json_integer((json_int_t)(t->received - p->received)));
		json_object_set_new(f, "p50_ns", json_integer((json_int_t)hist_quantile(&p->latency, 500)));
		json_object_set_new(f, "p99_ns", json_integer((json_int_t)hist_quantile(&p->latency, 990)));
	}
	/* Nothing was answered: there is no latency, not one of 0. */
	if (!(p ? p->latency.count : t->latency.count)) {
		json_object_del(f, "p50_ns");
		json_object_del(f, "p99_ns");
	}
	agent_record(t->agent, now, "traffic", t->qp->o.name, t->qp->o.life, json_incref(f));
	return f;
}

void op_traffic_phase(struct agent *a, struct request *r)
{
	const char *as = json_str(r->body, "as"), *qp_name = json_str(r->body, "qp"), *phase = json_str(r->body, "phase");
	const char *what = json_str(r->body, "what");
	struct object *o = qp_name ? object_find(a, OBJECT_QP, qp_name) : NULL;
	struct traffic *t = as ? traffic_find(a, as, (struct qp *)o) : NULL;

	if (!t || t->state == TRAFFIC_PREPARED) {
		request_fail(r, -ENOENT, "traffic_phase: there is no traffic \"%s\"", as ? as : "");
	} else if (!phase || !what) {
		request_fail(r, -EINVAL, "traffic_phase: it wants a `phase` and a `what` (begin, settled, look, end)");
	} else if (strcmp(what, "begin") == 0) {
		begin(t, phase);
		request_reply(r, NULL);
	} else if (strcmp(what, "settled") == 0) {
		struct traffic_phase *p = *phase_find(t, phase);

		if (p)
			p->latency = (struct hist){ .count = 0 };
		request_reply(r, NULL);
	} else {
		json_t *stats = look(t, phase);

		if (strcmp(what, "end") == 0)
			end(t, phase);
		request_reply(r, stats);
	}
}
