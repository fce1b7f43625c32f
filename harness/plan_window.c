/* SPDX-License-Identifier: MIT */
#include "plan.h"

#include <string.h>

#include "attr.h"
#include "json.h"
#include "units.h"

const char *const detection_names[NUM_DETECTIONS] = {
	[DETECTION_INVALID] = "invalid", [DETECTION_LOCAL] = "local",   [DETECTION_NAK] = "nak",   [DETECTION_SEQ_NAK] = "seq-nak",
	[DETECTION_RNR] = "rnr",         [DETECTION_SILENT] = "silent", [DETECTION_NONE] = "none",
};

static const struct window window_at_once = { .low_ns = 0, .high_ns = WINDOW_AT_ONCE_NS };
static const struct window window_never = { .low_ns = UINT64_MAX, .high_ns = UINT64_MAX, .never = true };
static const struct window window_any = { .low_ns = 0, .high_ns = UINT64_MAX };

/* retries: how many timeouts must pass at least and at most before the error. */
static struct window window_timer(const json_t *attr, unsigned at_least, unsigned at_most)
{
	uint64_t t_ns = timer_ack_ns((unsigned)json_int(attr, "timeout", 0));

	if (t_ns == 0)
		return window_never;
	return (struct window){ .low_ns = at_least * t_ns, .high_ns = at_most * 4 * t_ns };
}

static struct window window_rnr(const json_t *attr, const json_t *peer_attr)
{
	unsigned retries = (unsigned)json_int(attr, "rnr_retry", 0);
	uint64_t wait_ns;

	if (retries == 7)
		return window_never;
	if (!json_object_get(peer_attr, "min_rnr_timer"))
		return window_any;
	wait_ns = timer_rnr_ns((unsigned)json_int(peer_attr, "min_rnr_timer", 0));
	if (retries == 0)
		return (struct window){ .low_ns = 0, .high_ns = WINDOW_AT_ONCE_NS, .high_warns = true };
	return (struct window){ .low_ns = retries * wait_ns, .high_ns = 4 * retries * wait_ns, .high_warns = true };
}

static uint64_t above(uint64_t floor_ns, uint64_t ns)
{
	return floor_ns > ns ? floor_ns - ns : 0;
}

unsigned plan_window_timing(struct window *w, enum detection d, const json_t *attr, const json_t *peer_attr, const json_t *timing)
{
	uint64_t grid = json_u64(timing, "granularity", 0), adaptive = json_u64(timing, "ack_adaptive", 0), slack, wait, t_ns;
	unsigned turns;

	if (d == DETECTION_RNR) {
		turns = (unsigned)json_int(attr, "rnr_retry", 0);
		wait = above(json_u64(timing, "rnr_floor", 0), timer_rnr_ns((unsigned)json_int(peer_attr, "min_rnr_timer", 0)));
	} else if (d == DETECTION_SILENT || d == DETECTION_SEQ_NAK) {
		t_ns = timer_ack_ns((unsigned)json_int(attr, "timeout", 0));
		turns = (unsigned)json_int(attr, "retry_cnt", 0) + 1;
		wait = above(json_u64(timing, "ack_floor", 0), t_ns);
		/* Its own scheme begins with shorter timers; how many of them there are does not change. */
		if (adaptive && t_ns && adaptive < t_ns)
			w->low_ns = w->low_ns / t_ns * adaptive;
	} else {
		return 0;
	}
	if (w->never)
		return turns;
	slack = turns * grid;
	w->low_ns = w->low_ns > slack ? w->low_ns - slack : 0;
	if (w->high_ns != UINT64_MAX)
		w->high_ns += turns * (4 * wait + 2 * grid);
	return turns;
}

enum detection plan_detection(const char *status)
{
	if (!strcmp(status, "RETRY_EXC_ERR"))
		return DETECTION_SILENT;
	if (!strcmp(status, "RNR_RETRY_EXC_ERR"))
		return DETECTION_RNR;
	return strncmp(status, "REM_", 4) ? DETECTION_LOCAL : DETECTION_NAK;
}

struct window plan_window(enum detection d, const json_t *attr, const json_t *peer_attr, bool seen_start)
{
	unsigned retries = (unsigned)json_int(attr, "retry_cnt", 0);

	switch (d) {
	case DETECTION_LOCAL:
	case DETECTION_NAK:
		return window_at_once;
	case DETECTION_SILENT:
		return window_timer(attr, seen_start ? retries + 1 : retries, retries + 1);
	case DETECTION_SEQ_NAK:
		/* The NAK itself spent one retry: what is left is the silence after it. */
		return retries ? window_timer(attr, retries, retries) : window_at_once;
	case DETECTION_RNR:
		return window_rnr(attr, peer_attr);
	case DETECTION_NONE:
		return window_never;
	case DETECTION_INVALID:
	case NUM_DETECTIONS:
		break;
	}
	return window_any;
}
