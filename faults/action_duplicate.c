/* SPDX-License-Identifier: MIT */
#include "action.h"

#include <errno.h>
#include <stdlib.h>

struct duplicate {
	int64_t copies;
	uint64_t by_ns;
};

static const struct fault_param params[] = {
	{ .name = "copies", .type = FAULT_PARAM_INT, .min = 1, .max = 64, .def = "1", .help = "how many more of it" },
	{ .name = "by",
	  .type = FAULT_PARAM_DURATION,
	  .max = 3600000000000,
	  .unit = "ns",
	  .def = "0ns",
	  .help = "how much later each copy follows" },
	{ 0 },
};

static int prepare(struct action *a, const json_t *args, struct error *e)
{
	struct duplicate *d = malloc(sizeof *d);

	if (!d)
		return error_set(e, -ENOMEM, "no memory");
	d->copies = action_int(a->ops, args, "copies");
	d->by_ns = (uint64_t)action_int(a->ops, args, "by");
	a->state = d;
	return 0;
}

static enum action_result apply(struct action *a, struct action_packet *p)
{
	const struct duplicate *d = a->state;

	for (int64_t i = 0; i < d->copies; i++)
		if (a->env->copy(a->env->wire, a, p, d->by_ns * (uint64_t)(i + 1)))
			return ACTION_MISS;
	return ACTION_PASS;
}

const struct action_ops action_duplicate = {
	.name = "duplicate",
	.help = "the packet comes more than once",
	.params = params,
	.prepare = prepare,
	.apply = apply,
};
