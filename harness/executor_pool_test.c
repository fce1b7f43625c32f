/* SPDX-License-Identifier: MIT */
/* A pool over lanes that are not there: each case is a letter that says what comes of it, those that began first end first. */
#include "executor_pool.h"

#include "json.h"
#include "schedule.h"
#include "test.h"

/*
 * Cases: . ends well   c the kernel complains and names its devices   u it complains and names none   k the kernel dies   g the
 * lane's process dies   s it ends, and a process of it cannot be ended Log: "B" a boot, a letter (a, b, …) for a case that begins;
 * what came of it: "a=" its own, "a>" again beside others, "a!" again alone, "a-" lost for good, with the lane alone; "a--" with
 * the whole boot
 */
static const struct row {
	unsigned lanes;
	const char *cases, *log;
	int rc;
} rows[] = {
	{ 1, "...", "B a a= b b= c c=", 0 },
	{ 1, ".c.", "B a a= b b= B c c=", 0 },
	{ 1, ".u.", "B a a= b b= B c c=", 0 },
	{ 1, ".k.", "B a a= b b-- b= B c c=", 0 },
	{ 1, "g.", "B a a- a= B b b=", 0 },
	{ 1, "s.", "B a a= B b b=", 0 },
	{ 2, "....", "B a b a= c b= d c= d=", 0 },
	{ 2, "k.", "B a b a! b! B a a-- a= B b b=", 0 },
	{ 2, ".k.", "B a b a= c c! b! B b b-- b= B c c=", 0 },
	{ 2, "u..", "B a b a! b! B c c= B a a= B b b=", 0 },
	{ 2, "c..", "B a b a= b> B b c b= c=", 0 },
	{ 2, "g..", "B a b a! b= c c= B a a- a=", 0 },
	{ 2, "s..", "B a b a= b= B c c=", 0 },
	{ 2, "ss.", "B a b a= b= B c c=", 0 },
};

struct world {
	const struct row *row;
	sd_event *loop;
	struct schedule *schedule;
	struct pool pool;
	struct executor_case cases[8];
	size_t lane_case[EXECUTOR_LANES_MAX];
	unsigned other[EXECUTOR_LANES_MAX]; /* complaints that name nobody, as each lane has seen them */
	unsigned order[EXECUTOR_LANES_MAX], n_running;
	bool marked;
	char log[256];
};

__attribute__((format(printf, 2, 3))) static void say(struct world *w, const char *fmt, ...)
{
	size_t len = strlen(w->log);
	va_list ap;

	if (len)
		snprintf(w->log + len, sizeof w->log - len, " ");
	len = strlen(w->log);
	va_start(ap, fmt);
	vsnprintf(w->log + len, sizeof w->log - len, fmt, ap);
	va_end(ap);
}

static char letter(size_t i)
{
	return (char)('a' + (int)i);
}

static void done(struct world *w, unsigned lane, unsigned own, bool stuck)
{
	size_t i = w->lane_case[lane];
	json_t *m = json_pack("{s:s,s:s,s:i,s:b,s:b,s:i,s:i,s:s}", "case", w->cases[i].id, "state", "done", "dur_ns", 5, "marked",
			      w->marked, "stuck", stuck, "own", (int)own, "other", (int)w->other[lane], "complaint", "BUG");

	pool_on_message(&w->pool, lane, m);
	json_decref(m);
}

static int on_turn(sd_event_source *source, void *user)
{
	struct world *w = user;
	unsigned lane = w->order[0];
	char what;

	(void)source;
	if (!w->n_running)
		return 0;
	what = w->row->cases[w->lane_case[lane]];
	memmove(w->order, w->order + 1, sizeof w->order - sizeof w->order[0]);
	w->n_running--;
	w->marked |= what == 'c' || what == 'u';
	w->other[lane] += what == 'u';
	for (unsigned k = 0; k < w->n_running; k++)
		w->other[w->order[k]] += what == 'u';
	if (what == 'k') {
		w->n_running = 0;
		pool_on_gone(&w->pool);
	} else if (what == 'g') {
		pool_on_lane_gone(&w->pool, lane, "was ended");
	} else {
		done(w, lane, what == 'c', what == 's');
	}
	return 0;
}

static int fake_boot(void *user, struct error *e)
{
	struct world *w = user;

	(void)e;
	say(w, "B");
	w->pool.boot++;
	w->pool.gone = w->marked = false;
	return 0;
}

static int fake_start(void *user, unsigned lane, size_t index, struct error *e)
{
	struct world *w = user;
	sd_event_source *turn = NULL;

	(void)e;
	w->lane_case[lane] = index;
	w->other[lane] = 0;
	w->order[w->n_running++] = lane;
	CU_ASSERT(sd_event_add_defer(w->loop, &turn, on_turn, w) >= 0);
	/* After all that begins now. */
	sd_event_source_set_priority(turn, SD_EVENT_PRIORITY_IDLE);
	sd_event_source_set_floating(turn, true);
	sd_event_source_unref(turn);
	return 0;
}

static int fake_lost(void *user, size_t index, bool whole, const char *why, struct error *e)
{
	struct world *w = user;

	(void)e;
	CU_ASSERT(why[0] != '\0');
	say(w, "%c%s", letter(index), whole ? "--" : "-");
	return 0;
}

static void fake_gone_text(void *user, char *buf, size_t size)
{
	(void)user;
	snprintf(buf, size, "it died");
}

static enum executor_next fake_next(void *user, size_t *ret_index, bool *ret_fresh)
{
	static const enum executor_next answers[] = {
		[SCHEDULE_CASE] = EXECUTOR_CASE, [SCHEDULE_WAIT] = EXECUTOR_WAIT, [SCHEDULE_END] = EXECUTOR_END
	};
	struct world *w = user;

	return answers[schedule_next(w->schedule, ret_index, ret_fresh)];
}

static void fake_on_start(void *user, size_t index)
{
	say(user, "%c", letter(index));
}

static bool fake_on_done(void *user, size_t index, const struct executor_end *end)
{
	static const char marks[] = { [EXECUTOR_OWN] = '=', [EXECUTOR_BESIDE] = '>', [EXECUTOR_ALONE] = '!' };
	struct world *w = user;

	say(w, "%c%c", letter(index), marks[end->blame]);
	CU_ASSERT_EQUAL(end->boot, w->pool.boot);
	CU_ASSERT(end->blame == EXECUTOR_OWN || end->why[0] != '\0');
	if (end->blame == EXECUTOR_OWN)
		schedule_done(w->schedule, index);
	else
		schedule_again(w->schedule, index, end->blame == EXECUTOR_ALONE ? SCHEDULE_FRESH : SCHEDULE_BESIDE);
	return true;
}

static const struct pool_ops ops = { .boot = fake_boot, .start = fake_start, .lost = fake_lost, .gone_text = fake_gone_text };

static void play(const struct row *row)
{
	static const char *const ids[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
	struct world w = { .row = row };
	struct executor_queue queue = { .cases = w.cases, .n = strlen(row->cases) };
	const struct executor_options o = {
		.lanes = row->lanes, .next = fake_next, .on_start = fake_on_start, .on_done = fake_on_done, .user = &w
	};
	struct error e = { "" };
	int rc;

	CU_ASSERT_EQUAL_FATAL(schedule_new(row->lanes, &w.schedule), 0);
	CU_ASSERT_FATAL(sd_event_new(&w.loop) >= 0);
	for (size_t i = 0; i < queue.n; i++) {
		w.cases[i] = (struct executor_case){ .id = ids[i], .dir = "/nowhere", .budget_ns = 1000000000 };
		CU_ASSERT_EQUAL(schedule_add(w.schedule, 1, false), 0);
	}
	w.pool = (struct pool){ .loop = w.loop, .o = &o, .queue = &queue, .ops = &ops, .user = &w, .n = row->lanes };
	rc = pool_run(&w.pool, &e);
	ROW_ASSERT(rc == row->rc, "%u lanes, %s: %d (%s)", row->lanes, row->cases, rc, e.text);
	ROW_ASSERT(strcmp(w.log, row->log) == 0, "%u lanes, %s: expected %s, seen %s", row->lanes, row->cases, row->log, w.log);
	schedule_free(w.schedule);
	sd_event_unref(w.loop);
}

static void whose_doing_it_was(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		play(&rows[i]);
}

static const struct test_case cases[] = {
	{ "whose doing it was", whose_doing_it_was },
};

TEST_MAIN("executor_pool", cases)
