/* SPDX-License-Identifier: MIT */
/* Which cases a run has: those below the paths, less what --select and --shard leave out. */
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "diag.h"
#include "json.h"
#include "log.h"
#include "pause.h"

/* FNV-1a: the same on every machine, so that the parts of a split fit together. */
static uint64_t hash_of(const char *text)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3ull;
	return h;
}

bool run_in_shard(const char *case_id, unsigned shard, unsigned shards)
{
	return shards <= 1 || hash_of(case_id) % shards == shard - 1;
}

static int nothing(const struct run_options *o, size_t loaded, size_t selected, size_t left_out, struct error *e)
{
	if (!loaded)
		error_set(e, -ENOENT, "no scenario to run: there is no *.yaml below %s", o->paths[0]);
	else if (!selected && o->rerun)
		error_set(e, -ENOENT, "no scenario to run: none of what failed in that run is among these %zu cases", loaded);
	else if (left_out && !selected)
		error_set(e, -ENOENT,
			  "no scenario to run: all of these %zu cases are tagged `" RUN_LEFT_OUT
			  "`, and run with --all or --select " RUN_LEFT_OUT,
			  loaded);
	else
		error_set(e, -ENOENT, "no scenario to run: --shard %u/%u holds none of %zu cases", o->shard, o->shards, selected);
	return EXIT_ERROR;
}

/* A glob that stands for nothing is a mistake even where others stand for something. A case of an earlier run that is gone is told,
 * and counted: what failed then has not passed now. */
static int check_globs(const struct run_options *o, struct run_cases *list, struct error *e)
{
	for (size_t i = 0; i < o->n_select; i++) {
		if (run_cases_glob_fits(list, o->select[i]))
			continue;
		if (!o->rerun) {
			error_set(e, -ENOENT,
				  "no scenario to run: --select %s matches none of %zu cases (`qpdrill list scenarios` names them)",
				  o->select[i], list->n);
			return EXIT_ERROR;
		}
		if (!o->rerun_part) {
			log_warn("%s did not pass in that run, and is not there any more: it is not run", o->select[i]);
			list->gone++;
		}
	}
	return 0;
}

/* A first pass that is there only for what follows from it runs as ever. */
static bool stops(const struct run_cases *list, const struct run_case *c)
{
	return !c->source->first_pass || (run_case_selected(list, c) && !run_follow_possible(list, c->source));
}

int run_cases_pause(const struct run_options *o, struct run_cases *list, struct error *e)
{
	unsigned n = 0;

	if (!o->pause_at)
		return 0;
	for (size_t i = 0; i < list->n; i++) {
		struct run_case *c = &list->cases[i];

		if (!stops(list, c) || json_object_get(c->plan, "pause"))
			continue;
		if (n++) {
			error_set(e, -EINVAL, "--pause-at looks at one case, and there are %zu: --select chooses it by its name",
				  list->n);
			return EXIT_USAGE;
		}
		if (pause_plan(c->plan, o->pause_at, o->pause_max_ns, e))
			return EXIT_USAGE;
	}
	return 0;
}

int run_load(const struct run_options *o, struct run_cases *ret, size_t *ret_left_out, struct error *e)
{
	struct plan_options plan = { .seed = o->seed, .set = o->set };
	struct diag d = { 0 };
	size_t loaded, selected, left_out;
	int rc = run_cases_load(o->paths, o->n_paths, ret, &d, e);

	if (d.text)
		fputs(d.text, stderr);
	diag_release(&d);
	if (rc)
		return rc == -ENODATA ? EXIT_ERROR : EXIT_USAGE;
	loaded = ret->n;
	rc = loaded ? check_globs(o, ret, e) : 0;
	if (rc)
		return rc;
	run_cases_select(ret, o->select, o->n_select);
	left_out = o->all || o->n_select ? 0 : run_cases_leave_out(ret);
	selected = ret->n;
	run_cases_shard(ret, o->shard, o->shards);
	if (!ret->n)
		return nothing(o, loaded, selected, left_out, e);
	if (o->repeat > 1 && run_cases_repeat(ret, o->repeat)) {
		error_set(e, -ENOMEM, "out of memory");
		return EXIT_ERROR;
	}
	*ret_left_out = left_out;
	if (run_cases_plan(ret, &plan, e))
		return EXIT_USAGE;
	return run_cases_pause(o, ret, e);
}
