/* SPDX-License-Identifier: MIT */
#include "action.h"

static enum action_result apply(struct action *a, struct action_packet *p)
{
	return a->env->take(a->env->wire, a, p, ACTION_FOREVER) ? ACTION_MISS : ACTION_TAKE;
}

const struct action_ops action_hold = {
	.name = "hold",
	.help = "the packet is kept until the rule is cleared",
	.apply = apply,
};
