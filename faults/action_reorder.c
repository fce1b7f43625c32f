/* SPDX-License-Identifier: MIT */
#include "action.h"

#include <errno.h>
#include <stdlib.h>

#define WAITING_MAX 1024

/* Those that wait, oldest first: how many others have to overtake each. */
struct reorder {
	unsigned packets;
	unsigned n, head;
	struct {
		unsigned left, port, pair;
	} waiting[WAITING_MAX];
};

static const struct fault_param params[] = {
	{ .name = "packets",
	  .type = FAULT_PARAM_INT,
	  .min = 1,
	  .max = 1000000,
	  .def = "1",
	  .help = "how many others of its pair and direction overtake it" },
	{ 0 },
};

static int prepare(struct action *a, const json_t *args, struct error *e)
{
	struct reorder *r = calloc(1, sizeof *r);

	if (!r)
		return error_set(e, -ENOMEM, "no memory");
	r->packets = (unsigned)action_int(a->ops, args, "packets");
	a->state = r;
	return 0;
}

static enum action_result apply(struct action *a, struct action_packet *p)
{
	struct reorder *r = a->state;
	unsigned at = (r->head + r->n) % WAITING_MAX;

	if (r->n == WAITING_MAX || a->env->take(a->env->wire, a, p, ACTION_FOREVER))
		return ACTION_MISS;
	r->waiting[at].left = r->packets;
	r->waiting[at].port = p->port;
	r->waiting[at].pair = p->pair;
	r->n++;
	a->watching = true;
	return ACTION_TAKE;
}

static enum action_result seen(struct action *a, struct action_packet *p)
{
	struct reorder *r = a->state;
	unsigned free_now = 0;

	for (unsigned i = 0; i < r->n; i++) {
		unsigned at = (r->head + i) % WAITING_MAX;

		if (r->waiting[at].left && r->waiting[at].port == p->port && r->waiting[at].pair == p->pair)
			r->waiting[at].left--;
	}
	while (free_now < r->n && !r->waiting[(r->head + free_now) % WAITING_MAX].left)
		free_now++;
	if (!free_now)
		return ACTION_PASS;
	a->env->let_go(a->env->wire, a, free_now);
	r->head = (r->head + free_now) % WAITING_MAX;
	r->n -= free_now;
	a->watching = r->n > 0;
	return ACTION_PASS;
}

const struct action_ops action_reorder = {
	.name = "reorder",
	.help = "the packet is kept until others have passed, or the rule is cleared",
	.params = params,
	.prepare = prepare,
	.apply = apply,
	.seen = seen,
};
