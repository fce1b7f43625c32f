/* SPDX-License-Identifier: MIT */
/* What steps make of the attributes that timers follow from. */
#include "plan_timers.h"

#include <stdio.h>
#include <string.h>

#include "json.h"
#include "test.h"

#define PLAN                                                                                                                       \
	"{'qps':[{'name':'p.a','pair':'p','agent':'a','peer':'p.b','attr':{'timeout':13,'retry_cnt':2,'sl':0}},"                   \
	"{'name':'p.b','pair':'p','agent':'b','peer':'p.a','attr':{'timeout':13,'retry_cnt':2,'sl':0}}]}"
#define RECOVER(more) "{'n':5,'do':'recover','pairs':['p'],'path':" more "}"
#define MODIFY(more) "{'n':6,'do':'modify','at':['p.a'],'returns':['0']," more "}"
#define LONGER "'reset','qp':{'timeout':20}"

static json_t *parse(const char *text)
{
	char buf[2048];
	json_t *value;

	snprintf(buf, sizeof(buf), "%s", text);
	for (char *c = buf; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	value = json_loads(buf, 0, NULL);
	if (!value)
		fprintf(stderr, "%s\n", buf);
	CU_ASSERT_FATAL(value != NULL);
	return value;
}

static const struct row {
	const char *steps, *a, *b; /* what each may have in the end: timeout/retry_cnt */
	bool same_life;            /* of p.a, since step 1 */
} rows[] = {
	{ "", "13/2", "13/2", true },
	{ RECOVER("'reset'"), "13/2", "13/2", true },
	{ RECOVER(LONGER), "20/2", "20/2", false },
	{ RECOVER("'reset','qp':{'a':{'timeout':20},'retry_cnt':1,'sl':3}"), "20/1", "13/1", false },
	{ RECOVER("'reset','qp':{'a':{'timeout':20},'timeout':14}"), "20/2", "14/2", false },
	{ RECOVER("'reset','ends':['p.b'],'qp':{'timeout':20}"), "13/2", "20/2", true },
	{ RECOVER("'reset','qp':{'timeout':{'ref':'p.b.timeout'}}"), "13/2", "13/2", false },
	{ RECOVER(LONGER) "," RECOVER("'recreate'"), "20/2", "20/2", false },
	{ RECOVER(LONGER) "," RECOVER("'recreate','qp':{'timeout':12}"), "12/2", "12/2", false },
	{ RECOVER(LONGER ",'if_needed':true"), "13/2 20/2", "13/2 20/2", false },
	{ RECOVER(LONGER ",'if_needed':true") "," RECOVER("'reset'"), "13/2 20/2", "13/2 20/2", false },
	{ RECOVER(LONGER ",'result':'fails'"), "13/2 20/2", "13/2 20/2", false },
	{ RECOVER(LONGER ",'result':'fails'") "," RECOVER("'reset'"), "20/2", "20/2", false },
	{ RECOVER("'sqd','qp':{'timeout':20}"), "20/2", "20/2", true },
	{ MODIFY("'set':{'timeout':20}"), "20/2", "13/2", true },
	{ MODIFY("'set':{'timeout':20}") "," RECOVER("'sqd','qp':{'retry_cnt':1}"), "20/1", "13/1", true },
	{ MODIFY("'set':{'timeout':20}") "," RECOVER("'reset'"), "13/2", "13/2", false },
	{ MODIFY("'set':{'timeout':20}") "," MODIFY("'to':'RESET'"), "13/2", "13/2", false },
	{ MODIFY("'set':{'timeout':20}") ",{'do':'connect','pairs':['p']}", "13/2 20/2", "13/2", true },
	{ MODIFY("'set':{'timeout':20}") ",{'n':7,'do':'destroy','qp':['p.a'],'returns':['0']}", "13/2", "13/2", false },
	{ MODIFY("'set':{'timeout':77}"), "13/2", "13/2", true },
	{ MODIFY("'set':{'timeout':20},'mask':'exact'"), "13/2", "13/2", true },
	{ "{'do':'modify','at':['p.a'],'returns':['EINVAL'],'set':{'timeout':20}}", "13/2", "13/2", true },
	{ "{'do':'modify','at':['p.a'],'returns':['0','EINVAL'],'set':{'timeout':20}}", "13/2 20/2", "13/2", true },
};

static const char *variants(const json_t *timers, const json_t *plan, const char *name, char *buf, size_t size)
{
	static const int sorted[] = { 12, 13, 14, 20 };
	const json_t *qp = plan_qp(plan, name);

	*buf = 0;
	for (size_t s = 0; s < sizeof(sorted) / sizeof(*sorted); s++) {
		for (size_t i = 0; i < plan_timers_count(timers, qp); i++) {
			const json_t *attr = plan_timers_at(timers, qp, i);

			if (json_int(attr, "timeout", -1) == sorted[s])
				snprintf(buf + strlen(buf), size - strlen(buf), "%s%d/%d", *buf ? " " : "", sorted[s],
					 (int)json_int(attr, "retry_cnt", -1));
		}
	}
	return buf;
}

static void steps_change_timers(void)
{
	json_t *plan = parse(PLAN), *posted = parse("{'n':1}");

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char text[1024], a[64], b[64];
		json_t *steps, *step, *timers = json_object();
		bool same;
		size_t k;

		snprintf(text, sizeof(text), "[%s]", rows[i].steps);
		steps = parse(text);
		json_array_foreach(steps, k, step)
			plan_timers_follow(timers, plan, step);
		variants(timers, plan, "p.a", a, sizeof(a));
		variants(timers, plan, "p.b", b, sizeof(b));
		same = plan_timers_same_life(timers, plan_qp(plan, "p.a"), posted);
		ROW_ASSERT(!strcmp(a, rows[i].a) && !strcmp(b, rows[i].b) && same == rows[i].same_life, "%s: a %s, b %s, %d",
			   rows[i].steps, a, b, same);
		json_decref(steps);
		json_decref(timers);
	}
	json_decref(plan);
	json_decref(posted);
}

static void a_round_begins_with_what_another_left(void)
{
	static const struct {
		const char *steps, *a, *b;
		int times;
	} repeats[] = {
		{ RECOVER(LONGER), "13/2 20/2", "13/2 20/2", 2 },
		{ RECOVER(LONGER), "13/2", "13/2", 1 },
		{ "{'do':'repeat','times':3,'steps':[" MODIFY("'set':{'retry_cnt':7}") "]}", "13/2 13/7", "13/2", 2 },
		{ RECOVER(LONGER) "," RECOVER("'reset','qp':{'timeout':12},'if_needed':true"), "12/2 13/2 20/2", "12/2 13/2 20/2",
		  9 },
	};
	json_t *plan = parse(PLAN);

	for (size_t i = 0; i < sizeof(repeats) / sizeof(*repeats); i++) {
		char text[1024], a[64], b[64];
		json_t *step, *timers = json_object();

		snprintf(text, sizeof(text), "{'do':'repeat','times':%d,'steps':[%s]}", repeats[i].times, repeats[i].steps);
		step = parse(text);
		plan_timers_rounds(timers, plan, step);
		variants(timers, plan, "p.a", a, sizeof(a));
		variants(timers, plan, "p.b", b, sizeof(b));
		ROW_ASSERT(!strcmp(a, repeats[i].a) && !strcmp(b, repeats[i].b), "%s: a %s, b %s", repeats[i].steps, a, b);
		json_decref(step);
		json_decref(timers);
	}
	json_decref(plan);
}

static const struct test_case cases[] = {
	{ "steps change timers", steps_change_timers },
	{ "a round begins with what another left", a_round_begins_with_what_another_left },
};

TEST_MAIN("plan_timers", cases)
