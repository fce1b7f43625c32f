/* SPDX-License-Identifier: MIT */
#include "executor_pool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "log.h"
#include "loop.h"
#include "units.h"

#define CASE_MARGIN_NS (45 * NSEC_PER_SEC) /* more than the longest single wait, a lab command's */

static bool stopped(const struct pool *p)
{
	return p->o->stop && *p->o->stop;
}

static const char *id_of(const struct pool *p, const struct pool_lane *l)
{
	return p->queue->cases[l->index].id;
}

/* ---- what came ---- */

void pool_on_message(struct pool *p, unsigned lane, const json_t *message)
{
	const char *state = json_str(message, "state"), *id = json_str(message, "case"), *error = json_str(message, "error");
	struct pool_lane *l = lane < p->n ? &p->lane[lane] : NULL;

	if (!l || !l->busy || !state || !id || strcmp(id, id_of(p, l)) != 0)
		return;
	if (strcmp(state, "step") == 0) {
		if (p->o->on_step)
			p->o->on_step(p->o->user, l->index, (int)json_int(message, "step", 0), json_str(message, "what") ?: "");
	} else if (strcmp(state, "paused") == 0 || strcmp(state, "resumed") == 0) {
		l->paused = strcmp(state, "paused") == 0;
		if (p->o->on_pause)
			p->o->on_pause(p->o->user, l->index, message);
	} else if (strcmp(state, "done") == 0) {
		l->ended = true;
		l->marked = json_bool(message, "marked", false);
		l->stuck = json_bool(message, "stuck", false);
		l->own = (unsigned)json_int(message, "own", 0);
		l->other = (unsigned)json_int(message, "other", 0);
		l->dur_ns = json_u64(message, "dur_ns", 0);
		snprintf(l->why, sizeof l->why, "the kernel said: %s", json_str(message, "complaint") ?: "?");
		if (error && error[0])
			log_warn("%s: %s", id, error);
	}
}

void pool_on_lane_gone(struct pool *p, unsigned lane, const char *why)
{
	struct pool_lane *l = lane < p->n ? &p->lane[lane] : NULL;

	if (!l || l->aside)
		return;
	l->aside = true;
	if (!l->busy || l->ended)
		return;
	l->ended = l->silent = true;
	snprintf(l->why, sizeof l->why, "its controller %s", why);
}

void pool_on_gone(struct pool *p)
{
	p->gone = true;
}

/* ---- handing out ---- */

static unsigned busy(const struct pool *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->n; i++)
		n += p->lane[i].busy;
	return n;
}

static struct pool_lane *free_lane(struct pool *p)
{
	for (unsigned i = 0; i < p->n; i++)
		if (!p->lane[i].busy && !p->lane[i].aside)
			return &p->lane[i];
	return NULL;
}

static int start(struct pool *p, struct pool_lane *l, size_t index, struct error *e)
{
	bool beside = busy(p) > 0;

	for (unsigned i = 0; beside && i < p->n; i++)
		p->lane[i].beside |= p->lane[i].busy;
	*l = (struct pool_lane){ .busy = true, .beside = beside, .index = index, .begin_ns = now_ns() };
	l->until_ns = l->begin_ns + p->queue->cases[index].budget_ns + CASE_MARGIN_NS;
	p->used = true;
	p->o->on_start(p->o->user, index);
	return p->ops->start(p->user, (unsigned)(l - p->lane), index, e);
}

static int boot(struct pool *p, struct error *e)
{
	if (!p->ops->boot)
		return 0;
	p->up = p->used = p->worn = false;
	memset(p->lane, 0, sizeof p->lane);
	int rc = p->ops->boot(p->user, e);

	p->up = rc == 0;
	return rc;
}

/* The case that is next, from before or from next(); false when there is none now. */
static bool take_next(struct pool *p, bool *ret_fresh)
{
	enum executor_next answer;

	*ret_fresh = p->has_next;
	if (p->has_next)
		return true;
	if (p->over || p->waiting)
		return false;
	answer = p->o->next(p->o->user, &p->next, ret_fresh);
	p->over = answer == EXECUTOR_END;
	p->waiting = answer == EXECUTOR_WAIT;
	p->has_next = answer == EXECUTOR_CASE;
	return p->has_next;
}

/* A boot that is worn is given nothing: what runs in it ends first. */
static int hand_out(struct pool *p, struct error *e)
{
	bool fresh;
	int rc = 0;

	while (rc == 0 && !stopped(p) && !p->failed) {
		struct pool_lane *l = free_lane(p);

		if (p->ops->boot && busy(p) && (p->worn || p->gone))
			return 0;
		if (!l && (busy(p) || !p->ops->boot))
			return busy(p) ? 0 : error_set(e, -EIO, "no lane is left: a process in each cannot be ended");
		if (!take_next(p, &fresh))
			return 0;
		if (!p->up || p->worn || p->gone || !l || (fresh && p->used))
			rc = boot(p, e);
		if (rc == 0) {
			p->has_next = false;
			rc = start(p, free_lane(p), p->next, e);
		}
	}
	return rc;
}

/* ---- what became of them ---- */

/* Whose doing it was, while the case ran beside others. */
static enum executor_blame blame_of(const struct pool *p, const struct pool_lane *l)
{
	if (!l->beside)
		return EXECUTOR_OWN;
	if (l->silent || l->other)
		return EXECUTOR_ALONE;
	return l->marked && !l->own && p->ops->boot ? EXECUTOR_BESIDE : EXECUTOR_OWN;
}

static int conclude(struct pool *p, struct pool_lane *l, struct error *e)
{
	struct executor_end end = { .boot = p->boot, .lane = (int)(l - p->lane), .dur_ns = l->dur_ns, .beside = l->beside };
	struct pool_lane was = *l;
	int rc = 0;

	end.blame = blame_of(p, l);
	end.why = was.why;
	if (was.silent)
		end.dur_ns = now_ns() - was.begin_ns;
	if (was.silent && end.blame == EXECUTOR_OWN)
		log_warn("%s: the %s is lost: %s", id_of(p, l), was.whole ? "guest" : "lane", was.why);
	if (was.marked && !p->worn && p->ops->boot)
		log_info("guest: its kernel complained; what follows gets a fresh one");
	/* Asking a silent one what it does may end it. */
	p->worn |= was.marked || (was.stuck && p->ops->boot) || (was.silent && end.blame == EXECUTOR_OWN);
	*l = (struct pool_lane){ .aside = was.aside || was.stuck };
	p->last = was.index;
	if (was.silent && end.blame == EXECUTOR_OWN)
		rc = p->ops->lost(p->user, was.index, was.whole, was.why, e);
	if (rc == 0 && !p->o->on_done(p->o->user, was.index, &end))
		p->failed = true;
	p->waiting = false;
	return rc;
}

/* Everything that ran when the boot went. */
static void note_gone(struct pool *p)
{
	char text[160] = "";
	unsigned suspects = 0;

	/* Those that had ended before are none. */
	for (unsigned i = 0; i < p->n; i++)
		suspects += p->lane[i].busy && !p->lane[i].ended;
	if (suspects)
		p->ops->gone_text(p->user, text, sizeof text);
	for (unsigned i = 0; i < p->n; i++) {
		struct pool_lane *l = &p->lane[i];

		if (!l->busy || l->ended)
			continue;
		l->beside = suspects > 1;
		l->ended = l->silent = l->whole = true;
		snprintf(l->why, sizeof l->why, "%s", text);
	}
}

static void note_late(struct pool *p)
{
	uint64_t now = now_ns();

	for (unsigned i = 0; i < p->n; i++) {
		struct pool_lane *l = &p->lane[i];

		if (!l->busy || l->ended || now < l->until_ns)
			continue;
		l->ended = l->silent = l->aside = true;
		snprintf(l->why, sizeof l->why, "no answer within %llu s (the case's time and %llu s more)",
			 (unsigned long long)((l->until_ns - l->begin_ns) / NSEC_PER_SEC), CASE_MARGIN_NS / NSEC_PER_SEC);
	}
}

static struct pool_lane *ended_lane(struct pool *p)
{
	for (unsigned i = 0; i < p->n; i++)
		if (p->lane[i].busy && p->lane[i].ended)
			return &p->lane[i];
	return NULL;
}

static bool goes_on(const struct pool *p)
{
	return p->o->go_on && *p->o->go_on;
}

static bool something_came(void *user)
{
	struct pool *p = user;

	return stopped(p) || p->gone || goes_on(p) || ended_lane(p);
}

/* The word to go on is for all that stand. */
static void let_go_on(struct pool *p)
{
	if (!goes_on(p))
		return;
	for (unsigned i = 0; i < p->n; i++)
		if (p->lane[i].busy && p->lane[i].paused && p->ops->resume(p->user, i) < 0)
			log_warn("%s: cannot be told to go on", id_of(p, &p->lane[i]));
	*p->o->go_on = false;
}

static int wait_for_news(struct pool *p)
{
	uint64_t until = UINT64_MAX;

	for (unsigned i = 0; i < p->n; i++)
		if (p->lane[i].busy && p->lane[i].until_ns < until)
			until = p->lane[i].until_ns;
	int rc = loop_wait(p->loop, something_came, p, until);

	return rc == -ETIMEDOUT ? 0 : rc;
}

int pool_run(struct pool *p, struct error *e)
{
	struct pool_lane *l;
	int rc = 0;

	p->up = !p->ops->boot;
	while (rc == 0 && !stopped(p)) {
		rc = hand_out(p, e);
		if (rc < 0 || !busy(p))
			break;
		rc = wait_for_news(p);
		if (rc < 0)
			rc = error_set(e, rc, "event loop: %s", strerror(-rc));
		let_go_on(p);
		if (p->gone)
			note_gone(p);
		note_late(p);
		while (rc == 0 && !stopped(p) && (l = ended_lane(p)))
			rc = conclude(p, l, e);
	}
	if (rc == 0 && p->failed && p->o->keep && p->up && !p->gone && !stopped(p) && p->ops->keep_up)
		p->ops->keep_up(p->user, p->last);
	else if (rc == 0 && stopped(p))
		rc = error_set(e, -EINTR, "interrupted");
	return rc;
}
