/* SPDX-License-Identifier: MIT */
#include "template.h"

#include <errno.h>
#include <jansson.h>

#include "../faults/action.h"
#include "../faults/fault.h"
#include "diag.h"
#include "plan.h"
#include "scenario.h"
#include "test.h"

static char *write_text(const char *fault, const char *action, int *ret_rc, struct error *e)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	MUST(out);
	*ret_rc = template_write(out, "receive/new-one", fault, action, e);
	fclose(out);
	return text;
}

/* Whether a step of the plan, or one within it, injects this fault with this action. */
static bool injects(const json_t *plan, const char *fault, const char *action)
{
	const json_t *step;
	size_t i;

	json_array_foreach(json_object_get(plan, "steps"), i, step) {
		const char *name = json_string_value(json_object_get(step, "fault"));
		const char *does = json_string_value(json_object_get(json_object_get(step, "args"), "action"));

		if (name && !strcmp(name, fault) && (!action || (does && !strcmp(does, action))))
			return true;
	}
	return false;
}

/* It is well-formed without a warning, has one case, and that has a plan in which the fault is. */
static void check_template(const char *fault, const char *action)
{
	struct error e = { "" };
	struct diag d = { 0 };
	struct scenario s;
	json_t *plan = NULL;
	int rc;
	char *text = write_text(fault, action, &rc, &e);

	ROW_ASSERT(rc == 0, "%s %s: %s", fault, action ? action : "", e.text);
	rc = scenario_load_text(text, strlen(text), "t.yaml", "receive/new-one", &s, &d);
	ROW_ASSERT(rc == 0 && !d.warnings, "%s %s: %s", fault, action ? action : "", d.text ? d.text : "");
	if (!rc) {
		struct plan_options o = { .seed = 1, .file = "t.yaml" };

		ROW_ASSERT(s.n_cases == 1, "%s: %zu cases", fault, s.n_cases);
		rc = plan_make(&s.cases[0], &o, &plan, &e);
		ROW_ASSERT(rc == 0, "%s %s: %s", fault, action ? action : "", e.text);
		ROW_ASSERT(plan && injects(plan, fault, action), "%s %s is not injected", fault, action ? action : "");
		json_decref(plan);
		scenario_release(&s);
	}
	diag_release(&d);
	free(text);
}

static void test_every_fault(void)
{
	for (const struct fault_ops *const *f = fault_table; *f; f++)
		check_template((*f)->name, NULL);
}

static void test_every_action(void)
{
	for (const struct action_ops *const *a = action_table; *a; a++)
		check_template("wire", (*a)->name);
}

/* Each parameter stands in it, set or in a comment, with its help. */
static void test_parameters(void)
{
	for (const struct fault_ops *const *f = fault_table; *f; f++) {
		struct error e;
		int rc;
		char *text = write_text((*f)->name, NULL, &rc, &e), *at = text ? strstr(text, "  - fault:\n") : NULL;

		ROW_ASSERT(at, "%s", (*f)->name);
		for (const struct fault_param *p = (*f)->params; at && p && p->name && strcmp((*f)->name, "wire") != 0; p++) {
			char key[64];

			snprintf(key, sizeof(key), "%s: ", p->name);
			ROW_ASSERT(strstr(at, key), "%s has no %s", (*f)->name, p->name);
			ROW_ASSERT(strstr(at, p->help) || strlen(p->help) > 80, "%s: no help of %s", (*f)->name, p->name);
		}
		free(text);
	}
}

/* A scene of a fault that is not there any more would never be seen again. */
static void test_scenes_are_of_faults(void)
{
	for (const struct scene *s = scene_table; s->name; s++)
		ROW_ASSERT(fault_find(s->name), "%s", s->name);
	for (const struct scene *s = scene_actions; s->name; s++)
		ROW_ASSERT(action_find(s->name), "%s", s->name);
}

static void test_refused(void)
{
	static const struct {
		const char *fault, *action;
		int rc;
	} rows[] = {
		{ "nope", NULL, -ENOENT },
		{ "wire", "nope", -ENOENT },
		{ "netem", "drop", -EINVAL },
		{ NULL, "drop", -EINVAL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct error e = { "" };
		int rc;
		char *text = write_text(rows[i].fault, rows[i].action, &rc, &e);

		ROW_ASSERT(rc == rows[i].rc && e.text[0] && !*text, "row %zu: %d %s", i, rc, e.text);
		free(text);
	}
}

static void test_ids(void)
{
	static const struct {
		const char *id;
		bool good;
	} rows[] = {
		{ "receive/peer-that-is-slow", true },
		{ "a/b", true },
		{ "x1/y2", true },
		{ "receive", false },
		{ "/receive", false },
		{ "receive/", false },
		{ "receive/x.yaml", false },
		{ "a/b/c", false },
		{ "../b", false },
		{ "a/..", false },
		{ "A/b", false },
		{ "a/b c", false },
		{ "a/-b", false },
		{ "a/b-", false },
		{ "a/1b", false },
		{ "profiles/rxe", false },
		{ "refs/demands", false },
		{ "", false },
		{ "a/b\n", false },
		{ "a/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct error e = { "" };

		ROW_ASSERT((template_check_id(rows[i].id, &e) == 0) == rows[i].good, "'%s': %s", rows[i].id, e.text);
	}
}

static const struct test_case cases[] = {
	{ "a scenario for every fault passes check and plan", test_every_fault },
	{ "and for every action of the wire", test_every_action },
	{ "it has all parameters of its fault", test_parameters },
	{ "scenes are of faults that there are", test_scenes_are_of_faults },
	{ "what there is not is refused", test_refused },
	{ "names of files", test_ids },
};

TEST_MAIN("template", cases)
