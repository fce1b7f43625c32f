/* SPDX-License-Identifier: MIT */
#include "schedule.h"

#include <errno.h>
#include <stdlib.h>

enum state { STATE_WAITS, STATE_RUNS, STATE_DONE };

/* Who goes before whom, whatever the lengths. */
enum rank { RANK_BESIDE, RANK_EXCLUSIVE, RANK_ALONE, RANK_FRESH };

struct entry {
	enum state state;
	enum rank rank;
	uint64_t expect_ns;
};

struct schedule {
	bool in_order, stopped;
	struct entry *entries;
	size_t n, running;
	bool alone; /* what runs wants nothing beside it */
};

int schedule_new(unsigned lanes, struct schedule **ret)
{
	struct schedule *s = calloc(1, sizeof *s);

	if (!s)
		return -ENOMEM;
	s->in_order = lanes <= 1;
	*ret = s;
	return 0;
}

void schedule_free(struct schedule *s)
{
	if (!s)
		return;
	free(s->entries);
	free(s);
}

int schedule_add(struct schedule *s, uint64_t expect_ns, bool exclusive)
{
	struct entry *grown = reallocarray(s->entries, s->n + 1, sizeof *grown);

	if (!grown)
		return -ENOMEM;
	s->entries = grown;
	grown[s->n++] = (struct entry){ .rank = exclusive && !s->in_order ? RANK_EXCLUSIVE : RANK_BESIDE, .expect_ns = expect_ns };
	return 0;
}

static bool goes_before(const struct schedule *s, const struct entry *a, const struct entry *b)
{
	if (a->rank != b->rank)
		return a->rank < b->rank;
	return !s->in_order && a->expect_ns > b->expect_ns;
}

static struct entry *first_waiting(const struct schedule *s)
{
	struct entry *first = NULL;

	for (size_t i = 0; i < s->n; i++)
		if (s->entries[i].state == STATE_WAITS && (!first || goes_before(s, &s->entries[i], first)))
			first = &s->entries[i];
	return first;
}

enum schedule_answer schedule_next(struct schedule *s, size_t *ret_number, bool *ret_fresh)
{
	struct entry *e = s->stopped ? NULL : first_waiting(s);

	if (!e)
		return s->running && !s->stopped ? SCHEDULE_WAIT : SCHEDULE_END;
	if (s->running && (s->alone || e->rank != RANK_BESIDE))
		return SCHEDULE_WAIT;
	e->state = STATE_RUNS;
	s->running++;
	s->alone = e->rank != RANK_BESIDE;
	*ret_number = (size_t)(e - s->entries);
	*ret_fresh = e->rank == RANK_FRESH;
	return SCHEDULE_CASE;
}

static void ended(struct schedule *s, size_t number, enum state state)
{
	if (number >= s->n || s->entries[number].state != STATE_RUNS)
		return;
	s->entries[number].state = state;
	s->running--;
}

void schedule_done(struct schedule *s, size_t number)
{
	ended(s, number, STATE_DONE);
}

void schedule_again(struct schedule *s, size_t number, enum schedule_again how)
{
	static const enum rank ranks[] = {
		[SCHEDULE_BESIDE] = RANK_BESIDE, [SCHEDULE_ALONE] = RANK_ALONE, [SCHEDULE_FRESH] = RANK_FRESH
	};

	ended(s, number, STATE_WAITS);
	if (number < s->n && ranks[how] > s->entries[number].rank)
		s->entries[number].rank = ranks[how];
}

void schedule_stop(struct schedule *s)
{
	s->stopped = true;
}
