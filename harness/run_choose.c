/* SPDX-License-Identifier: MIT */
/* Where a run takes place, and on how many lanes. */
#include "run.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "log.h"

/* Two lanes keep a processor busy while their cases wait for timers. Eight on the two that a guest has took half as much processor
 * time again, and their timers were seconds late. */
#define LANES_PER_CPU 2
#define LANES_DEFAULT_MAX 4

int run_choose_executor(const struct run_options *o, const struct executor_ops **ret, struct error *e)
{
	struct error why = { "" };

	*ret = o->executor;
	if (*ret)
		return 0;
	if (!strcmp(o->lab, "guest") || !strcmp(o->lab, "rxe")) {
		*ret = o->lab[0] == 'g' ? &executor_guest : &executor_native;
		return (*ret)->probe(e) ? error_prefix(e, -ENODEV, "lab %s cannot run here", o->lab) : 0;
	}
	/* A kernel of one's own can only be tested in a guest. */
	*ret = &executor_native;
	if (!o->kernel && !(*ret)->probe(&why))
		return 0;
	*ret = &executor_guest;
	if (why.text[0])
		log_debug("lab rxe is not possible here (%s): lab guest", why.text);
	if (!(*ret)->probe(e))
		return 0;
	if (why.text[0])
		return error_prefix(e, -ENODEV, "no lab can run here. rxe: %s; guest", why.text);
	return error_prefix(e, -ENODEV, "lab guest cannot run here");
}

unsigned run_choose_lanes(const struct run_options *o, const struct run_cases *list)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned n = cpus > 0 && LANES_PER_CPU * cpus < LANES_DEFAULT_MAX ? (unsigned)(LANES_PER_CPU * cpus) : LANES_DEFAULT_MAX;
	bool may_grow = false;

	n = o->lanes ? o->lanes : n;

	/* What is kept up is one case's lab: nothing else is to run in it. */
	if (o->keep)
		return 1;
	for (size_t i = 0; i < list->n; i++)
		may_grow |= list->cases[i].source->first_pass;
	return list->n < n && !may_grow ? (unsigned)list->n : n;
}

bool run_wire_wanted(const struct run_cases *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (json_bool(list->cases[i].plan, "wire", false))
			return true;
	return false;
}
