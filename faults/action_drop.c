/* SPDX-License-Identifier: MIT */
#include "action.h"

static enum action_result apply(struct action *a, struct action_packet *p)
{
	(void)a;
	(void)p;
	return ACTION_EAT;
}

const struct action_ops action_drop = {
	.name = "drop",
	.help = "the packet is lost",
	.apply = apply,
};
