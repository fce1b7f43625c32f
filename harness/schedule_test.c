/* SPDX-License-Identifier: MIT */
/* Orders as texts: what a number of lanes is given, one letter a case, when the case that began first ends first. */
#include "schedule.h"

#include <string.h>

#include "test.h"

/* length, then marks: x exclusive; when it has ended for the first time: ! runs again in a fresh boot, - alone, ~ beside others, +
 * adds one of length 5 */
static const struct row {
	unsigned lanes;
	const char *cases[8];
	const char *order; /* "|": nothing was given although a lane was free; "A": in a fresh boot */
} rows[] = {
	{ 1, { "1", "9", "5" }, "abc" },
	{ 1, { "1", "9x", "5" }, "abc" },
	{ 1, { "1!", "9", "5" }, "abcA" },
	{ 1, { "1+", "9" }, "abc" },
	{ 2, { "1", "9", "5" }, "bca" },
	{ 2, { "5", "5", "5" }, "abc" },
	{ 2, { "9x", "1", "5" }, "cb|a" },
	{ 2, { "9x", "8x", "1" }, "c|a|b" },
	{ 2, { "9!", "1", "5" }, "acb|A" },
	{ 2, { "9!", "8!", "1" }, "abc|A|B" },
	{ 2, { "9~", "1", "5" }, "acab" },
	{ 2, { "9-", "1", "5" }, "acb|a" },
	{ 2, { "9!", "8-", "5" }, "abc|b|A" },
	{ 1, { "9-", "8" }, "aba" },
	{ 3, { "9+", "1" }, "ab|c" },
	{ 2, { "9+", "6x" }, "a|c|b" },
	{ 4, { "3" }, "a" },
};

struct play {
	struct schedule *s;
	const struct row *row;
	size_t running[8], n_running, added;
	char order[64];
};

static const char *marks_of(const struct play *p, size_t i)
{
	for (size_t k = 0; k <= i; k++)
		if (!p->row->cases[k])
			return "";
	return p->row->cases[i] + 1;
}

static void note(struct play *p, char c)
{
	size_t len = strlen(p->order);

	if (len + 1 < sizeof p->order)
		p->order[len] = c;
}

static void fill(struct play *p)
{
	enum schedule_answer answer = SCHEDULE_CASE;

	while (p->n_running < p->row->lanes && answer == SCHEDULE_CASE) {
		size_t number = 99;
		bool fresh = false;

		answer = schedule_next(p->s, &number, &fresh);
		if (answer == SCHEDULE_CASE) {
			p->running[p->n_running++] = number;
			note(p, (char)((fresh ? 'A' : 'a') + (char)number));
		}
	}
	ROW_ASSERT(answer != SCHEDULE_END || !p->n_running, "%s: the end, and one runs", p->row->order);
	ROW_ASSERT(answer != SCHEDULE_WAIT || p->n_running, "%s: nothing runs, and no end", p->row->order);
	if (answer == SCHEDULE_WAIT && p->order[strlen(p->order) - 1] != '|')
		note(p, '|');
}

static void end_first(struct play *p, bool again[8])
{
	size_t number = p->running[0];
	const char *marks = marks_of(p, number);

	memmove(p->running, p->running + 1, sizeof p->running - sizeof p->running[0]);
	p->n_running--;
	if (!again[number] && strpbrk(marks, "!~-")) {
		again[number] = true;
		schedule_again(p->s, number,
			       strchr(marks, '!')   ? SCHEDULE_FRESH
			       : strchr(marks, '-') ? SCHEDULE_ALONE
						    : SCHEDULE_BESIDE);
		return;
	}
	if (strchr(marks, '+'))
		CU_ASSERT_EQUAL(schedule_add(p->s, 5, false), 0);
	schedule_done(p->s, number);
}

static void play(const struct row *row)
{
	struct play p = { .row = row };
	bool again[8] = { false };

	CU_ASSERT_EQUAL_FATAL(schedule_new(row->lanes, &p.s), 0);
	for (size_t i = 0; row->cases[i]; i++)
		CU_ASSERT_EQUAL(schedule_add(p.s, (uint64_t)(row->cases[i][0] - '0'), strchr(row->cases[i], 'x') != NULL), 0);
	fill(&p);
	while (p.n_running) {
		end_first(&p, again);
		fill(&p);
	}
	/* A pause counts when something comes after it. */
	if (p.order[strlen(p.order) - 1] == '|')
		p.order[strlen(p.order) - 1] = '\0';
	ROW_ASSERT(strcmp(p.order, row->order) == 0, "%u lanes: expected %s, seen %s", row->lanes, row->order, p.order);
	schedule_free(p.s);
}

static void orders(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		play(&rows[i]);
}

static void after_a_stop_nothing_is_given(void)
{
	struct schedule *s = NULL;
	size_t number;
	bool fresh;

	CU_ASSERT_EQUAL_FATAL(schedule_new(2, &s), 0);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(schedule_add(s, 1, false), 0);
	CU_ASSERT_EQUAL(schedule_next(s, &number, &fresh), SCHEDULE_CASE);
	schedule_stop(s);
	CU_ASSERT_EQUAL(schedule_next(s, &number, &fresh), SCHEDULE_END);
	schedule_done(s, 0);
	CU_ASSERT_EQUAL(schedule_next(s, &number, &fresh), SCHEDULE_END);
	schedule_free(s);
}

static const struct test_case cases[] = {
	{ "orders", orders },
	{ "after a stop nothing is given", after_a_stop_nothing_is_given },
};

TEST_MAIN("schedule", cases)
