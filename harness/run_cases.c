/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

static int load_path(const char *path, struct run_cases *list, struct diag *d, struct error *e)
{
	struct scenario_path *found = NULL;
	size_t n = 0;
	int rc = scenario_find(path, &found, &n, e);

	if (rc)
		return rc;
	/* A path that stands for nothing is a mistake even where others stand for something. */
	if (!n)
		rc = error_set(e, -ENODATA, "no scenario to run: there is no *.yaml below %s", path);
	for (size_t i = 0; !rc && i < n; i++) {
		struct scenario *grown = reallocarray(list->scenarios, list->n_scenarios + 1, sizeof(*grown));
		bool *named;

		if (!grown) {
			rc = error_set(e, -ENOMEM, "out of memory");
			break;
		}
		list->scenarios = grown;
		named = reallocarray(list->named, list->n_scenarios + 1, sizeof(*named));
		if (!named) {
			rc = error_set(e, -ENOMEM, "out of memory");
			break;
		}
		list->named = named;
		named[list->n_scenarios] = !strcmp(found[i].path, path);
		rc = scenario_load(found[i].path, found[i].id, &grown[list->n_scenarios], d, e);
		if (!rc)
			list->n_scenarios++;
		/* One faulty file does not hide the mistakes of the next. */
		else if (rc == -EINVAL && d->errors)
			rc = 0;
	}
	scenario_paths_free(found, n);
	return rc;
}

static int add_cases(struct run_cases *list, struct error *e)
{
	for (size_t s = 0; s < list->n_scenarios; s++)
		list->n += list->scenarios[s].n_cases;
	list->cases = calloc(list->n ? list->n : 1, sizeof(*list->cases));
	if (!list->cases)
		return error_set(e, -ENOMEM, "out of memory");
	list->n = 0;
	for (size_t s = 0; s < list->n_scenarios; s++)
		for (size_t i = 0; i < list->scenarios[s].n_cases; i++) {
			struct run_case *c = &list->cases[list->n++];

			c->place = list->n - 1;
			c->scenario = &list->scenarios[s];
			c->source = &list->scenarios[s].cases[i];
			c->named = list->named[s];
			c->id = strdup(c->source->id);
			c->dir = c->id ? run_case_dir(c->id) : NULL;
			if (!c->dir)
				return error_set(e, -ENOMEM, "out of memory");
		}
	return 0;
}

static int by_dir(const void *a, const void *b)
{
	return strcmp((*(struct run_case *const *)a)->dir, (*(struct run_case *const *)b)->dir);
}

static int refuse_twins(const struct run_cases *list, struct error *e)
{
	struct run_case **sorted = calloc(list->n ? list->n : 1, sizeof(struct run_case *));
	int rc = 0;

	if (!sorted)
		return error_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < list->n; i++)
		sorted[i] = &list->cases[i];
	qsort(sorted, list->n, sizeof(struct run_case *), by_dir);
	for (size_t i = 1; i < list->n && !rc; i++)
		if (!strcmp(sorted[i - 1]->dir, sorted[i]->dir))
			rc = error_set(e, -EEXIST, "%s and %s are both case %s: run them one at a time",
				       sorted[i - 1]->scenario->path, sorted[i]->scenario->path, sorted[i]->id);
	free(sorted);
	return rc;
}

int run_cases_load(const char *const *paths, size_t n, struct run_cases *ret, struct diag *d, struct error *e)
{
	struct run_cases list = { 0 };
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++)
		rc = load_path(paths[i], &list, d, e);
	if (!rc && d->errors)
		rc = error_set(e, -EINVAL, "%u mistake%s in scenario files", d->errors, d->errors == 1 ? "" : "s");
	if (!rc)
		rc = add_cases(&list, e);
	if (!rc)
		rc = refuse_twins(&list, e);
	if (rc)
		run_cases_release(&list);
	else
		*ret = list;
	return rc;
}

static void case_release(struct run_case *c)
{
	free(c->id);
	free(c->dir);
	json_decref(c->plan);
	json_decref(c->result);
	free(c->again);
}

static bool glob_matches(const char *glob, const struct scenario_case *c)
{
	size_t i;
	json_t *tag;

	if (!fnmatch(glob, c->id, 0) || !strcmp(glob, c->id))
		return true;
	json_array_foreach(json_object_get(c->doc, "tags"), i, tag)
		if (json_is_string(tag) && !fnmatch(glob, json_string_value(tag), 0))
			return true;
	return false;
}

static bool is_selected(const struct run_cases *list, const struct scenario_case *c)
{
	for (size_t g = 0; g < list->n_globs; g++)
		if (glob_matches(list->globs[g], c))
			return true;
	return !list->n_globs;
}

bool run_case_selected(const struct run_cases *list, const struct run_case *c)
{
	return is_selected(list, c->source);
}

static void cases_keep(struct run_cases *list, bool (*is_kept)(const struct run_cases *list, const struct run_case *c, void *user),
		       void *user)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->n; i++) {
		if (!is_kept(list, &list->cases[i], user)) {
			case_release(&list->cases[i]);
			continue;
		}
		list->cases[kept] = list->cases[i];
		list->cases[kept].place = kept;
		kept++;
	}
	list->n = kept;
}

static bool is_wanted(const struct run_cases *list, const struct run_case *c, void *user)
{
	(void)user;
	return is_selected(list, c->source) || run_follow_possible(list, c->source);
}

bool run_cases_glob_fits(const struct run_cases *list, const char *glob)
{
	const struct run_cases alone = { .globs = &glob, .n_globs = 1 };

	for (size_t i = 0; i < list->n; i++)
		if (is_wanted(&alone, &list->cases[i], NULL))
			return true;
	return false;
}

void run_cases_select(struct run_cases *list, const char *const *globs, size_t n)
{
	list->globs = globs;
	list->n_globs = n;
	cases_keep(list, is_wanted, NULL);
}

static bool is_for_everyday(const struct run_cases *list, const struct run_case *c, void *user)
{
	(void)list;
	(void)user;
	return c->named || !json_array_has(json_object_get(c->source->doc, "tags"), RUN_LEFT_OUT);
}

size_t run_cases_leave_out(struct run_cases *list)
{
	size_t before = list->n;

	cases_keep(list, is_for_everyday, NULL);
	return before - list->n;
}

static bool is_in_part(const struct run_cases *list, const struct run_case *c, void *user)
{
	const unsigned *part = user;

	(void)list;
	return run_in_shard(c->id, part[0], part[1]);
}

void run_cases_shard(struct run_cases *list, unsigned shard, unsigned shards)
{
	cases_keep(list, is_in_part, (unsigned[]){ shard, shards });
}

int run_cases_repeat(struct run_cases *list, unsigned n)
{
	struct run_case *many = calloc(list->n * n + 1, sizeof(*many));
	size_t k = 0;

	if (!many)
		return -ENOMEM;
	for (size_t i = 0; i < list->n; i++)
		for (unsigned r = 1; r <= n; r++) {
			struct run_case *c = &many[k++];

			c->place = k - 1;
			c->scenario = list->cases[i].scenario;
			c->source = list->cases[i].source;
			if (asprintf(&c->id, "%s~r%u", list->cases[i].id, r) < 0)
				c->id = NULL;
			c->dir = c->id ? run_case_dir(c->id) : NULL;
		}
	for (size_t i = 0; i < list->n; i++)
		case_release(&list->cases[i]);
	free(list->cases);
	list->cases = many;
	list->n = k;
	for (size_t i = 0; i < k; i++)
		if (!many[i].dir)
			return -ENOMEM;
	return 0;
}

uint64_t run_cases_budget(const struct run_cases *list)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < list->n; i++)
		if (!json_str(list->cases[i].plan, "skip"))
			ns += json_u64(list->cases[i].plan, "budget_ns", 0);
	return ns;
}

int run_case_plan(struct run_case *c, const struct plan_options *o, struct error *e)
{
	struct scenario_case source = *c->source;
	struct plan_options own = *o;

	source.id = c->id;
	own.file = c->scenario->path;
	return plan_make(&source, &own, &c->plan, e);
}

int run_cases_plan(struct run_cases *list, const struct plan_options *o, struct error *e)
{
	for (size_t i = 0; i < list->n; i++) {
		int rc = run_case_plan(&list->cases[i], o, e);

		if (rc)
			return rc;
	}
	return 0;
}

void run_cases_release(struct run_cases *list)
{
	for (size_t i = 0; i < list->n; i++)
		case_release(&list->cases[i]);
	for (size_t i = 0; i < list->n_scenarios; i++)
		scenario_release(&list->scenarios[i]);
	for (size_t i = 0; i < list->n_followers; i++) {
		scenario_release(list->followers[i]);
		free(list->followers[i]);
	}
	free(list->followers);
	free(list->cases);
	free(list->scenarios);
	free(list->named);
	*list = (struct run_cases){ 0 };
}
