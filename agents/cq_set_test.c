/* SPDX-License-Identifier: MIT */
#include "cq_set.h"

#include "agent_rig.h"
#include "cq.h"
#include "fake_verbs.h"
#include "object.h"
#include "../harness/test.h"

#define MANY 5000u /* completions, more than two turns of a CQ */
#define TURN 2048u /* completions before others get theirs */
#define CLOCKS 20  /* requests */
#define HANG_S 120 /* a loop that starves a test starves its deadlines as well */
#define EXIT_CODE 7

static void set_up(void)
{
	rig_start();
	rig_objects();
	CU_ASSERT_EQUAL_FATAL(rig_rc("{s:s, s:s, s:s, s:s, s:s, s:s}", "op", "qp_create", "name", "p.a", "pd", "pd", "type", "RC",
				     "send_cq", "cq", "recv_cq", "cq"),
			      0);
}

static struct cq *the_cq(void)
{
	return (struct cq *)object_find(rig.agent, OBJECT_CQ, "cq");
}

static void signal_event(void)
{
	const uint64_t one = 1;

	MUST(write(the_cq()->channel->fd, &one, sizeof(one)) == (ssize_t)sizeof(one));
}

/* ---- more completions than a turn takes ---- */

static uint32_t next_seq;
static struct queue *receives;

static int poll_many(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	int n = 0;

	(void)cq;
	for (; n < max && next_seq < MANY; n++)
		wc[n] = (struct ibv_wc){
			.wr_id = wrid_encode((struct wrid){
				.life = receives->life, .queue = receives->number, .kind = WRID_RECV, .seq = next_seq++ }),
			.opcode = IBV_WC_RECV
		};
	return n;
}

static void test_turns(void)
{
	static const struct {
		uint64_t completed;
		unsigned events; /* taken so far */
	} rows[] = { { TURN, 0 }, { 2ull * TURN, 0 }, { MANY, 1 } };
	struct cq *cq;

	set_up();
	cq = the_cq();
	receives = ((struct qp *)object_find(rig.agent, OBJECT_QP, "p.a"))->rq;
	queue_accept(receives, MANY, &(struct wr){ .kind = WRID_RECV, .signaled = true });
	next_seq = 0;
	fake_context.ops.poll_cq = poll_many;
	((struct fake_cq *)cq->cq)->armed = false;
	signal_event();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		cq_ready(rig.agent, cq);
		ROW_ASSERT(receives->completed == rows[i].completed, "turn %zu: %llu completed", i,
			   (unsigned long long)receives->completed);
		ROW_ASSERT(((struct fake_cq *)cq->cq)->reported == rows[i].events, "turn %zu", i);
	}
	CU_ASSERT(((struct fake_cq *)cq->cq)->armed);
	CU_ASSERT_EQUAL(((struct fake_cq *)cq->cq)->acked, 1);
	fake_context.ops.poll_cq = fake_poll;
	CU_ASSERT_EQUAL(rig_rc("{s:s}", "op", "release"), 0);
	CU_ASSERT_EQUAL(json_int(rig_record("wc", "p.a.recv", 0), "count", -1), TURN);
	CU_ASSERT_EQUAL(json_int(rig_record("wc", "p.a.recv", 2), "count", -1), MANY - 2 * TURN);
	CU_ASSERT_EQUAL(fake.live, 0);
	rig_stop();
}

/* ---- the loop beside it ---- */

static unsigned notified;

/* It has an event whenever it is asked for one. */
static int notify_always(struct ibv_cq *cq, int solicited)
{
	(void)solicited;
	(void)cq;
	notified++;
	signal_event();
	return 0;
}

struct sequel {
	sd_event_source *timer;
	int ids[CLOCKS], release;
	unsigned looks;
	bool released;
};

/* From a timer: when all is answered everything is released, and then the loop ends. */
static int on_look(sd_event_source *source, uint64_t usec, void *user)
{
	struct sequel *s = user;

	(void)usec;
	s->looks++;
	if (s->release && rig_reply(s->release))
		return sd_event_exit(rig.loop, EXIT_CODE);
	if (!s->release && rig_reply(s->ids[CLOCKS - 1]))
		s->release = rig_send("{s:s}", "op", "release");
	sd_event_source_set_time(source, now_ns() / NSEC_PER_USEC + 1000);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static void run_to_the_end(struct sequel *s)
{
	alarm(HANG_S);
	CU_ASSERT_EQUAL(cq_set_run(rig.agent->cq_set), EXIT_CODE);
	alarm(0);
	CU_ASSERT_EQUAL(json_int(rig_reply(s->release), "rc", -1), 0);
	CU_ASSERT_EQUAL(fake.live, 0);
	sd_event_source_disable_unref(s->timer);
	rig_stop();
}

static void test_always_ready(void)
{
	struct sequel s = { .looks = 0 };

	set_up();
	notified = 0;
	fake_context.ops.req_notify_cq = notify_always;
	fake_complete(fake.cq, (struct ibv_wc){ .wr_id = UINT64_MAX });
	for (int i = 0; i < CLOCKS; i++)
		s.ids[i] = rig_send("{s:s}", "op", "clock");
	CU_ASSERT_FATAL(loop_timer(rig.loop, now_ns(), on_look, &s, &s.timer) >= 0);
	run_to_the_end(&s);
	CU_ASSERT(s.looks >= 3);
	CU_ASSERT(notified >= CLOCKS);
	fake_context.ops.req_notify_cq = fake_notify;
}

/* A timer that is set while completions are taken, when the loop has long come to rest. */
#define POLLS 50u
static struct sequel *set_by_poll;
static unsigned polls;

static int poll_and_set(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	if (++polls < POLLS) {
		signal_event();
	} else if (polls == POLLS) {
		CU_ASSERT_FATAL(loop_timer(rig.loop, now_ns() + NSEC_PER_MSEC, on_look, set_by_poll, &set_by_poll->timer) >= 0);
		rig.agent->turn = true;
	}
	return fake_poll(cq, max, wc);
}

static void test_timer_of_a_completion(void)
{
	struct sequel s = { .looks = 0 };

	set_up();
	for (int i = 0; i < CLOCKS; i++)
		s.ids[i] = rig_send("{s:s}", "op", "clock");
	rig_wait(s.ids[CLOCKS - 1]);
	set_by_poll = &s;
	polls = 0;
	fake_context.ops.poll_cq = poll_and_set;
	signal_event();
	run_to_the_end(&s);
	CU_ASSERT(s.looks >= 1);
	fake_context.ops.poll_cq = fake_poll;
}

int main(void)
{
	static const struct test_case cases[] = {
		{ "more completions than a turn takes: the event stays until all are taken", test_turns },
		{ "a CQ that is always ready starves neither requests nor timers", test_always_ready },
		{ "a timer that is set while completions are taken fires", test_timer_of_a_completion },
	};

	signal(SIGPIPE, SIG_IGN);
	return test_run("cq_set", cases, sizeof(cases) / sizeof(*cases));
}
