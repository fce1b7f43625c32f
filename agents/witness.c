/* SPDX-License-Identifier: MIT */
#include "witness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/loop.h"
#include "../harness/units.h"
#include "agent.h"
#include "hist.h"

#define PERIOD_MIN_NS (100 * NSEC_PER_USEC)

struct witness {
	sd_event_source *timer;
	uint64_t period_ns, due_ns;
	struct hist late;
};

void witness_free(struct witness *w)
{
	if (!w)
		return;
	sd_event_source_disable_unref(w->timer);
	free(w);
}

json_t *witness_json(const struct witness *w)
{
	if (!w)
		return NULL;
	return json_pack("{s:b, s:I, s:I, s:I, s:I}", "witness", 1, "samples", (json_int_t)w->late.count, "late_max_ns",
			 (json_int_t)w->late.max, "late_p99_ns", (json_int_t)hist_quantile(&w->late, 990), "period_ns",
			 (json_int_t)w->period_ns);
}

static int on_tick(sd_event_source *source, uint64_t usec, void *user)
{
	struct witness *w = user;
	uint64_t now = now_ns();

	(void)usec;
	hist_add(&w->late, now > w->due_ns ? now - w->due_ns : 0);
	w->due_ns += w->period_ns;
	if (w->due_ns <= now) /* what was missed is in the lateness; there is no catching up */
		w->due_ns = now + w->period_ns;
	sd_event_source_set_time(source, w->due_ns / NSEC_PER_USEC);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

void op_witness(struct agent *a, struct request *r)
{
	uint64_t period_ns = json_u64(r->body, "period_ns", 0);
	struct witness *w;

	if (a->witness) {
		json_t *report = witness_json(a->witness);

		agent_record(a, now_ns(), "clock", NULL, 0, json_incref(report));
		witness_free(a->witness);
		a->witness = NULL;
		if (period_ns == 0) {
			request_reply(r, report);
			return;
		}
		json_decref(report);
	}
	if (period_ns == 0) {
		request_reply(r, NULL);
		return;
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		abort();
	w->period_ns = period_ns < PERIOD_MIN_NS ? PERIOD_MIN_NS : period_ns;
	w->due_ns = now_ns() + w->period_ns;
	if (loop_timer(a->loop, w->due_ns, on_tick, w, &w->timer) < 0) {
		free(w);
		request_fail(r, -ENOMEM, "witness: no timer");
		return;
	}
	/* Before everything else: it measures the machine, not this program's work. */
	sd_event_source_set_priority(w->timer, SD_EVENT_PRIORITY_IMPORTANT);
	a->witness = w;
	request_reply(r, NULL);
}
