/* SPDX-License-Identifier: MIT */
#include "action.h"

#include <errno.h>
#include <stdlib.h>

static const struct fault_param params[] = {
	{ .name = "by",
	  .type = FAULT_PARAM_DURATION,
	  .required = true,
	  .min = 1,
	  .max = 3600000000000,
	  .unit = "ns",
	  .help = "how much later it goes on" },
	{ 0 },
};

static int prepare(struct action *a, const json_t *args, struct error *e)
{
	uint64_t *by_ns = malloc(sizeof *by_ns);

	if (!by_ns)
		return error_set(e, -ENOMEM, "no memory");
	*by_ns = (uint64_t)action_int(a->ops, args, "by");
	a->state = by_ns;
	return 0;
}

static enum action_result apply(struct action *a, struct action_packet *p)
{
	const uint64_t *by_ns = a->state;

	return a->env->take(a->env->wire, a, p, *by_ns) ? ACTION_MISS : ACTION_TAKE;
}

const struct action_ops action_delay = {
	.name = "delay",
	.help = "the packet comes later; others overtake it",
	.params = params,
	.prepare = prepare,
	.apply = apply,
};
