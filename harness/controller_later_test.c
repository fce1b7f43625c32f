/* SPDX-License-Identifier: MIT */
/* Records that are written down at once and read afterwards: what they tell is the same. */
#include "controller_case.h"

#include <CUnit/Basic.h>
#include <stdio.h>
#include <string.h>

#include "controller_many_rig.h"
#include "controller_fake.h"
#include "json.h"
#include "many.h"
#include "units.h"
#include "wrid.h"

#define PAIRS 40

struct bench {
	struct controller c;
	struct case_run r;
	char path[128];
	json_int_t t;
};

static void set_up(struct bench *b)
{
	struct recorder_options o = { .path = b->path, .clk = "c/1", .boot = 1, .lane = 2 };

	b->t = 1000;
	snprintf(b->path, sizeof b->path, "%s/observations.jsonl", dir);
	bare_run(&b->r, &b->c,
		 plan_of_pairs("[{'n':1,'do':'expect','line':5,'at':['p[5].a','p[6].a'],'qp':'RTS'},"
			       "{'n':2,'do':'expect','line':6,'at':['p[3].a'],'qp':'RTS'}]",
			       PAIRS));
	CU_ASSERT_EQUAL_FATAL(recorder_open(&o, &b->r.rec, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(model_new(b->r.plan, NULL, &b->r.model), 0);
	recorder_step(b->r.rec, 3, "");
}

static void tear_down(struct bench *b)
{
	recorder_close(b->r.rec);
	model_free(b->r.model);
	bare_run_done(&b->r);
}

/* As a line of an agent does it. */
static void hear(struct bench *b, const char *src, const char *text, uint64_t count)
{
	if (b->r.later && count)
		case_note_unread(&b->r, src, "a/1", text, strlen(text), count);
	else
		case_note_text(&b->r, src, "a/1", json_loads(text, 0, NULL), text, strlen(text));
}

static uint64_t wr_of(unsigned pair, uint32_t seq)
{
	return wrid_encode((struct wrid){ .life = 1, .queue = 2 * pair + 1, .kind = WRID_RECV, .seq = seq });
}

/* Of all ends at an agent; fields: what each of them says, ' for ". */
static void hear_of_all(struct bench *b, char agent, const char *kind, const char *queue, const char *fields)
{
	char src[16];
	json_t *records = json_array(), *fold;
	char *text;

	for (unsigned i = 0; i < PAIRS; i++) {
		json_t *one = quoted_json(fields);

		json_object_set_new(one, "kind", json_string(kind));
		json_object_set_new(one, "t", json_integer(b->t++));
		json_object_set_new(one, "obj", json_sprintf("p[%u].%c%s", i, agent, queue));
		if (json_object_get(one, "queried"))
			json_object_set_new(json_object_get(one, "queried"), "rq_psn", json_integer(7 * (json_int_t)i));
		if (queue[0]) {
			json_object_set_new(one, "first", json_hex(wr_of(i, 0)));
			json_object_set_new(one, "last", json_hex(wr_of(i, (uint32_t)json_int(one, "count", 1) - 1)));
		}
		json_array_append_new(records, one);
	}
	fold = fake_fold(records);
	text = json_dumps(fold, JSON_COMPACT);
	snprintf(src, sizeof src, "agent/%c", agent);
	hear(b, src, text, PAIRS);
	free(text);
	json_decref(fold);
	json_decref(records);
}

static const json_t *step_at(const struct bench *b, size_t i)
{
	return json_array_get(json_object_get(b->r.plan, "steps"), i);
}

/* It counts from here. */
static void step_begins(struct bench *b, int n)
{
	recorder_step(b->r.rec, n, "");
	case_record(&b->r, "controller",
		    json_pack("{s:s,s:s,s:s,s:i}", "kind", "step", "phase", "begin", "do", "expect", "line", 5));
}

static json_t *or_null(json_t *value)
{
	return value ? json_incref(value) : json_null();
}

/* What the controller and its model know. */
static json_t *known(struct bench *b)
{
	json_t *all = json_object(), *lines = NULL, *r;
	bool torn;
	size_t i;

	for (struct object *o = b->r.objects; o; o = o->hh.next)
		if (o->type == OBJECT_QP)
			json_object_set_new(all, o->name,
					    json_pack("{s:s?,s:o,s:o,s:o,s:i}", "state", o->state, "queried", or_null(o->queried),
						      "rtr", or_null(o->rtr), "rts", or_null(o->rts), "in_flight",
						      (int)model_in_flight(b->r.model, o->name)));
	json_object_set_new(all, "news", json_integer(b->r.news));
	/* p[5].a is in RTS, p[3].a is not any more. */
	json_object_set_new(all, "met", json_integer(model_expect(b->r.model, step_at(b, 0), 10000, NULL)));
	json_object_set_new(all, "unmet", json_integer(model_expect(b->r.model, step_at(b, 1), 10000, NULL)));
	CU_ASSERT_EQUAL_FATAL(many_load_records(b->path, &lines, &torn, NULL), 0);
	json_array_foreach(lines, i, r) {
		ROW_ASSERT(json_int(r, "n", -1) == (json_int_t)i + 1, "record %zu has number %lld", i + 1,
			   (long long)json_int(r, "n", -1));
		if (json_has(r, "src", "controller"))
			json_object_del(r, "t");
	}
	json_object_set_new(all, "records", lines);
	return all;
}

static void story(struct bench *b, bool later)
{
	json_t *one =
		json_pack("{s:{s:s,s:i,s:s,s:i,s:s,s:i,s:o,s:o}}", "rec", "kind", "wc", "t", 5000, "obj", "p[17].a.recv", "life", 1,
			  "status", "WR_FLUSH_ERR", "count", 1, "first", json_hex(wr_of(17, 3)), "last", json_hex(wr_of(17, 3)));
	char *text;

	b->r.later = later;
	step_begins(b, 2);
	step_begins(b, 1);
	hear_of_all(b, 'a', "post", ".recv", "{'life':1,'op':'RECV','by':'connect','count':8,'accepted':8,'errno':0}");
	hear_of_all(b, 'a', "state", "", "{'life':1,'asked':'RTR','new':'RTR','errno':0,'queried':{'state':'RTR','sq_psn':5}}");
	case_record(&b->r, "controller",
		    json_pack("{s:s,s:s,s:s,s:i,s:s}", "kind", "recover", "pair", "p[3]", "path", "reset", "attempt", 1, "phase",
			      "told"));
	hear_of_all(b, 'a', "state", "", "{'life':1,'asked':'RTS','new':'RTS','errno':0,'queried':{'state':'RTS','sq_psn':6}}");
	text = json_dumps(json_object_get(one, "rec"), JSON_COMPACT);
	hear(b, "agent/a", text, 0);
	free(text);
	json_decref(one);
	/* One by itself is not known before those in front of it. */
	hear(b, "agent/a",
	     "{\"kind\":\"state\",\"t\":6000,\"obj\":\"p[3].a\",\"life\":1,\"new\":\"ERR\",\"errno\":0,\"by\":\"event\"}", 0);
	hear_of_all(b, 'b', "state", "", "{'life':1,'asked':'ERR','new':'ERR','errno':0,'queried':{'state':'ERR','sq_psn':9}}");
	hear_of_all(b, 'a', "wc", ".recv", "{'life':1,'status':'WR_FLUSH_ERR','count':3}");
	case_record(&b->r, "controller",
		    json_pack("{s:s,s:s,s:s,s:i,s:s}", "kind", "recover", "pair", "p[3]", "path", "reset", "attempt", 1, "phase",
			      "rts"));
	case_drain(&b->r);
}

static void read_later_they_tell_the_same(void)
{
	struct bench at_once, later;
	json_t *a, *b;

	set_up(&at_once);
	story(&at_once, false);
	a = known(&at_once);
	tear_down(&at_once);
	CU_ASSERT_EQUAL(json_int(a, "met", 0), EXPECT_MET);
	CU_ASSERT_EQUAL(json_int(a, "unmet", 0), EXPECT_BROKEN);
	CU_ASSERT_STRING_EQUAL(json_str(json_object_get(a, "p[5].a"), "state"), "RTS");
	CU_ASSERT_STRING_EQUAL(json_str(json_object_get(a, "p[5].b"), "state"), "ERR");
	CU_ASSERT_STRING_EQUAL(json_str(json_object_get(a, "p[3].a"), "state"), "ERR");
	CU_ASSERT_EQUAL(json_int(json_object_get(a, "p[5].a"), "in_flight", -1), 5);
	CU_ASSERT_EQUAL(json_int(json_object_get(a, "p[17].a"), "in_flight", -1), 4);
	CU_ASSERT_EQUAL(json_int(json_object_get(json_object_get(a, "p[5].a"), "rtr"), "sq_psn", -1), 5);
	set_up(&later);
	story(&later, true);
	/* All of it is on disk, and nothing of it is known. */
	CU_ASSERT_PTR_NULL(ctl_object_find(&later.r, "p[5].a")->state);
	CU_ASSERT_EQUAL(model_in_flight(later.r.model, "p[5].a"), 0);
	CU_ASSERT_EQUAL(recorder_count(later.r.rec), json_array_size(json_object_get(a, "records")));
	case_later(&later.r, false);
	b = known(&later);
	CU_ASSERT_PTR_NULL(later.r.unread);
	tear_down(&later);
	ROW_ASSERT(json_equal(a, b), "at once %.3000s, later %.3000s", json_dumps(a, 0), json_dumps(b, 0));
	json_decref(a);
	json_decref(b);
}

/* It said that before it died, and its objects went with it. */
static void what_a_dead_agent_said_gives_its_objects_no_state(void)
{
	struct ctl_agent dead = { .name = "a", .ended = true, .proc = { .pid = -1, .pidfd = -1 } };
	struct bench b;

	set_up(&b);
	dead.hello = json_object();
	b.c.agents = &dead;
	ctl_object_find(&b.r, "p[5].a")->exists = true;
	b.r.later = true;
	hear_of_all(&b, 'a', "state", "", "{'life':1,'asked':'RTS','new':'RTS','errno':0,'queried':{'state':'RTS','sq_psn':6}}");
	case_drain(&b.r);
	case_later(&b.r, false);
	CU_ASSERT_FALSE(ctl_object_find(&b.r, "p[5].a")->exists);
	CU_ASSERT_PTR_NULL(ctl_object_find(&b.r, "p[5].a")->state);
	b.c.agents = NULL;
	json_decref(dead.hello);
	tear_down(&b);
}

static void put_off_is_only_what_nobody_waits_for(void)
{
	struct fault_run active = { .done = false }, cleared = { .done = true };
	struct post *p = calloc(1, sizeof *p);
	struct bench b;

	set_up(&b);
	case_later(&b.r, true);
	CU_ASSERT_TRUE(b.r.later);
	b.r.faults = &cleared;
	case_later(&b.r, true);
	CU_ASSERT_TRUE(b.r.later);
	b.r.faults = &active;
	case_later(&b.r, true);
	CU_ASSERT_FALSE(b.r.later);
	b.r.faults = NULL;
	json_object_set_new(b.r.traffics, "running", json_true());
	case_later(&b.r, true);
	CU_ASSERT_FALSE(b.r.later);
	json_object_clear(b.r.traffics);
	p->qp = ctl_object_find(&b.r, "p[5].a");
	posts_add(&b.r, p);
	case_later(&b.r, true);
	CU_ASSERT_FALSE(b.r.later);
	tear_down(&b);
}

static void an_address_that_moved_is_known_at_once(void)
{
	struct ctl_agent a = { .name = "a" };
	struct bench b;

	set_up(&b);
	b.c.agents = &a;
	b.r.later = true;
	hear(&b, "agent/a", "{\"kind\":\"event\",\"t\":9,\"obj\":\"dev.a\",\"event\":\"GID_CHANGE\"}", 0);
	case_drain(&b.r);
	CU_ASSERT_TRUE(a.gid_changed);
	b.c.agents = NULL;
	case_later(&b.r, false);
	tear_down(&b);
}

/* At once it is not even written: a file that cannot be read is of no use to anybody. */
static void a_record_of_many_that_is_none_is_a_loss(void)
{
	static const struct {
		const char *text;
		uint64_t count;
		bool later;
	} rows[] = {
		{ "{\"kind\":\"many\",\"of\":\"state\",\"t\":1,\"count\":3,\"all\":{},\"each\":{\"obj\":[\"p[0].a\",\"p[1].a\"]}}",
		  3, false },
		{ "{\"kind\":\"many\",\"of\":\"state\",\"t\":1,\"count\":0,\"all\":{},\"each\":{}}", 0, false },
		{ "{\"kind\":\"many\",\"of\":\"state\",\"t\":1,\"count\":-4,\"all\":{},\"each\":{}}", 0, false },
		{ "{\"kind\":\"many\",\"of\":\"state\",\"t\":1,\"count\":3,\"all\":[],\"each\":{}}", 3, false },
		{ "{\"kind\":\"many\",\"of\":\"state\",\"t\":1}", 0, false },
		{ "{\"kind\":\"many\",\"of\":\"state\",\"t\":1,\"count\":3,\"all\":{},\"each\":{\"obj\":[\"p[0].a\",\"p[1].a\"]}}",
		  3, true },
		{ "{\"kind\":\"many\",\"of\":\"state\",\"t\":1,\"count\":3,\"all\":{},\"each\":{\"obj\":7}}", 3, true },
		{ "{\"kind\":\"many\",\"of\":\"state\",\"t\":1,\"count\":3,\"all\":{,\"each\":{}}", 3, true },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *lines = NULL;
		struct error e = { "" };
		struct bench b;
		bool torn;
		int rc;

		set_up(&b);
		b.r.later = rows[i].later;
		hear(&b, "agent/a", rows[i].text, rows[i].later ? rows[i].count : 0);
		case_later(&b.r, false);
		rc = many_load_records(b.path, &lines, &torn, &e);
		/* What was not read was written, and makes the judge say where. */
		ROW_ASSERT((rc == 0) == !rows[i].later, "row %zu: %d, %s", i, rc, e.text);
		ROW_ASSERT(!rows[i].later || strstr(e.text, "observations.jsonl:1"), "row %zu: %s", i, e.text);
		ROW_ASSERT(rc || (json_array_size(lines) == 1 && json_has(json_array_get(lines, 0), "kind", "lost")), "row %zu", i);
		ROW_ASSERT(recorder_count(b.r.rec) == (rows[i].later ? 4 : 1), "row %zu: %llu records", i,
			   (unsigned long long)recorder_count(b.r.rec));
		json_decref(lines);
		tear_down(&b);
	}
}

static const struct test_case tests[] = {
	{ "read later they tell the same", read_later_they_tell_the_same },
	{ "what a dead agent said gives its objects no state", what_a_dead_agent_said_gives_its_objects_no_state },
	{ "put off is only what nobody waits for", put_off_is_only_what_nobody_waits_for },
	{ "an address that moved is known at once", an_address_that_moved_is_known_at_once },
	{ "a record of many that is none is a loss", a_record_of_many_that_is_none_is_a_loss },
};

int main(void)
{
	if (getenv(MODE))
		return fake_agent(getenv(MODE));
	return run_in_dir("controller_later", tests, sizeof tests / sizeof tests[0]);
}
