/* SPDX-License-Identifier: MIT */
#include "pause.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "plan.h"

/* What is looked for in the steps, and the steps inside of steps. */
struct search {
	const char *as, *does;
	long number, line;
	const json_t *found, *around; /* around: the `together` that it is a member of */
	unsigned n;
};

static void look(struct search *s, const json_t *steps, const json_t *around)
{
	const json_t *step;
	size_t i;

	json_array_foreach((json_t *)steps, i, step) {
		bool together = json_has(step, "do", "together");
		bool is = (s->as && json_has(step, "as", s->as)) || (s->does && json_has(step, "do", s->does)) ||
			  (s->number && json_int(step, "n", 0) == s->number) || (s->line && json_int(step, "line", 0) == s->line);

		if (is) {
			s->n++;
			s->found = step;
			s->around = around;
		}
		look(s, json_object_get(step, "steps"), together ? step : around);
	}
}

/* "scenarios/x.yaml:14", or ":14": the line, when the file is the plan's. 0: it names none. */
static long line_of(const json_t *plan, const char *text)
{
	const char *colon = strrchr(text, ':'), *file = json_str(plan, "file"), *cut;
	size_t len = colon ? (size_t)(colon - text) : 0;
	char *end;
	long line = colon ? strtol(colon + 1, &end, 10) : 0;

	if (line <= 0 || *end)
		return 0;
	if (!len || !file)
		return line;
	cut = strlen(file) >= len ? file + strlen(file) - len : "";
	return !strncmp(cut, text, len) && (cut == file || cut[-1] == '/') ? line : 0;
}

static long number_of(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	return n > 0 && !*end ? n : 0;
}

static struct search find(const json_t *plan, const char *text)
{
	struct search by_name = { .as = text }, by_what = { .does = text };
	struct search by_place = { .number = number_of(text), .line = line_of(plan, text) };
	const json_t *steps = json_object_get(plan, "steps");

	if (by_place.number || by_place.line) {
		look(&by_place, steps, NULL);
		return by_place;
	}
	look(&by_name, steps, NULL);
	if (by_name.n)
		return by_name;
	look(&by_what, steps, NULL);
	return by_what;
}

int pause_plan(json_t *plan, const char *text, uint64_t max_ns, struct error *e)
{
	struct search s = find(plan, text);
	const char *file = json_str(plan, "file");

	if (!s.n)
		return error_set(
			e, -ENOENT,
			"--pause-at: %s has no step '%.80s': its number, its name (`as`), %s:LINE, or what it does (`qpdrill plan` "
			"shows them)",
			json_str(plan, "case"), text, file ? file : "FILE");
	if (s.n > 1)
		return error_set(e, -EINVAL, "--pause-at: %u steps of %s are '%.80s': which one? A number is wanted", s.n,
				 json_str(plan, "case"), text);
	if (s.around)
		return error_set(e, -EINVAL,
				 "--pause-at: step %d is sent together with others, in one message: step %d is the first of them",
				 (int)json_int(s.found, "n", 0), (int)json_int(s.around, "n", 0));
	json_object_set_new(plan, "pause",
			    json_pack("{s:O,s:I}", "step", json_object_get(s.found, "n"), "max_ns", (json_int_t)max_ns));
	return 0;
}

uint64_t pause_max_ns(const json_t *plan)
{
	return json_u64(json_object_get(plan, "pause"), "max_ns", 0);
}
