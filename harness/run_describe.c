/* SPDX-License-Identifier: MIT */
/* What run.json says of a run before it begins: how it was called, and what repeats it. */
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "json.h"
#include "shell_word.h"

#ifndef QD_BUILD
#define QD_BUILD QPDRILL_VERSION
#endif

/* What came by standard input is not there any more: a copy of it is. */
static int keep_stdin(const struct run_cases *list, const struct run_folder *f, struct error *e)
{
	for (size_t i = 0; i < list->n_scenarios; i++) {
		const struct scenario *s = &list->scenarios[i];

		if (!strcmp(s->path, SCENARIO_STDIN))
			return run_folder_keep(f, SCENARIO_STDIN_ID ".yaml", s->source, s->source_len, e);
	}
	return 0;
}

/* The paths with which the same scenarios are found again. New reference. */
static json_t *paths_of(const struct run_options *o, const struct run_folder *f)
{
	json_t *paths = json_array();

	for (size_t i = 0; i < o->n_paths; i++)
		json_array_append_new(paths, strcmp(o->paths[i], "-") ? json_string(o->paths[i])
								      : json_sprintf("%s/" SCENARIO_STDIN_ID ".yaml", f->dir));
	return paths;
}

static json_t *repeat_command(const struct run_options *o, const json_t *paths)
{
	char *text = NULL;
	size_t size, i;
	FILE *out = open_memstream(&text, &size);
	json_t *path, *command = NULL;

	if (!out)
		return NULL;
	fprintf(out, "%s run", o->program ? o->program : "qpdrill");
	json_array_foreach(paths, i, path)
		shell_word(out, json_string_value(path));
	fputs(o->repeat_options ? o->repeat_options : "", out);
	if (fclose(out) == 0)
		command = json_string(text);
	free(text);
	return command;
}

/* Which of the cases, and how often, as words of a command: who repeats one case says that instead. */
static json_t *narrowed(const struct run_options *o)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	json_t *words = NULL;

	if (!out)
		return NULL;
	for (size_t i = 0; i < o->n_select; i++) {
		fputs(" --select", out);
		shell_word(out, o->select[i]);
	}
	if (o->shards)
		fprintf(out, " --shard %u/%u", o->shard, o->shards);
	if (o->repeat > 1)
		fprintf(out, " --repeat %u%s", o->repeat, o->fail_fast ? " --fail-fast" : "");
	if (fclose(out) == 0)
		words = json_string(text);
	free(text);
	return words;
}

int run_describe(const struct run_options *o, const struct run_cases *list, struct run_folder *f, struct error *e)
{
	json_t *set = json_array(), *require = json_array(), *paths = paths_of(o, f);
	char host[65] = "";

	for (const char *const *s = o->set; s && *s; s++)
		json_array_append_new(set, json_string(*s));
	for (size_t i = 0; i < o->n_require; i++)
		json_array_append_new(require, json_string(o->require[i]));
	json_object_set(f->run, "command", (json_t *)o->command);
	json_object_set_new(f->run, "repeat", repeat_command(o, paths));
	json_object_set_new(f->run, "narrowed", narrowed(o));
	json_object_set_new(f->run, "paths", paths);
	json_object_set_new(f->run, "seed", json_hex(o->seed));
	json_object_set_new(f->run, "set", set);
	json_object_set_new(f->run, "strict", json_boolean(o->strict));
	if (o->n_require)
		json_object_set(f->run, "require", require);
	json_decref(require);
	json_object_set_new(f->run, "profile", json_string(o->provider));
	json_object_set_new(f->run, "build", json_string(QD_BUILD));
	if (!gethostname(host, sizeof(host) - 1))
		json_object_set_new(f->run, "host", json_string(host));
	return keep_stdin(list, f, e);
}
