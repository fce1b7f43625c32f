/* SPDX-License-Identifier: MIT */
#include "plan.h"

#include <errno.h>
#include <string.h>

#include "json.h"
#include "plan_internal.h"

const json_t *plan_find(const json_t *plan, const char *array, const char *name)
{
	size_t i;
	json_t *object;

	json_array_foreach(json_object_get(plan, array), i, object) {
		const char *s = json_str(object, "name");

		if (s && name && !strcmp(s, name))
			return object;
	}
	return NULL;
}

const json_t *plan_qp(const json_t *plan, const char *name)
{
	return plan_find(plan, "qps", name);
}

static const json_t *find_step(const json_t *steps, int n)
{
	size_t i;
	json_t *step;

	json_array_foreach(steps, i, step) {
		const json_t *inner;

		if (json_int(step, "n", 0) == n)
			return step;
		inner = find_step(json_object_get(step, "steps"), n);
		if (inner)
			return inner;
	}
	return NULL;
}

const json_t *plan_step(const json_t *plan, int n)
{
	return find_step(json_object_get(plan, "steps"), n);
}

static json_t *copy_or(const json_t *doc, const char *key, json_t *otherwise)
{
	json_t *value = json_object_get(doc, key);

	if (!value)
		return otherwise;
	json_decref(otherwise);
	return json_deep_copy(value);
}

static json_t *plan_head(const struct scenario_case *c, const struct plan_options *o)
{
	json_t *plan = json_object(), *set = json_array();

	for (const char *const *s = o->set; s && *s; s++)
		json_array_append_new(set, json_string(*s));
	json_object_set_new(plan, "schema", json_integer(1));
	json_object_set_new(plan, "case", json_string(c->id));
	json_object_set_new(plan, "file", json_string(o->file ? o->file : "-"));
	json_object_set_new(plan, "title", copy_or(c->doc, "title", json_string("")));
	json_object_set_new(plan, "refs", copy_or(c->doc, "refs", json_array()));
	json_object_set_new(plan, "tags", copy_or(c->doc, "tags", json_array()));
	json_object_set_new(plan, "requires", copy_or(c->doc, "requires", json_array()));
	json_object_set_new(plan, "seed", json_hex(o->seed));
	json_object_set_new(plan, "sweep", c->sweep ? json_deep_copy(c->sweep) : json_null());
	json_object_set_new(plan, "set", set);
	json_object_set_new(plan, "exclusive", copy_or(c->doc, "exclusive", json_false()));
	return plan;
}

static json_t *member(json_t *plan, const char *key, json_t *value)
{
	json_object_set_new(plan, key, value);
	return value;
}

/* A first pass, or what followed from one; absent otherwise. */
static int swept_packets(struct planner *p)
{
	json_t *pass = json_deep_copy(json_object_get(p->doc, "first_pass"));
	const json_t *packet = json_object_get(p->doc, "packet");

	if (packet)
		json_object_set_new(p->plan, "packet", json_deep_copy(packet));
	if (!pass)
		return 0;
	json_object_set_new(p->plan, "first_pass", pass);
	return plan_match(p, json_object_get(pass, "match"));
}

static int plan_fill(struct planner *p)
{
	json_t *plan = p->plan, *steps = json_array();
	int rc;

	p->agents = member(plan, "agents", json_object());
	p->pds = member(plan, "pds", json_array());
	p->cqs = member(plan, "cqs", json_array());
	p->srqs = member(plan, "srqs", json_array());
	p->mrs = member(plan, "mrs", json_array());
	p->qps = member(plan, "qps", json_array());
	json_object_set_new(plan, "steps", steps);
	p->msg_bytes = plan_longest_message(p->doc, json_object_get(p->doc, "steps"));
	json_object_set_new(plan, "msg_bytes", json_integer((json_int_t)p->msg_bytes));
	rc = plan_objects(p);
	if (!rc)
		rc = plan_steps(p, json_object_get(p->doc, "steps"), steps);
	if (!rc)
		plan_deadlines(p, steps);
	if (!rc)
		rc = plan_memory(p);
	if (!rc)
		rc = swept_packets(p);
	if (rc)
		return rc;
	json_object_set_new(plan, "bystander", plan_bystander(p));
	json_object_set_new(plan, "budget_ns", json_integer((json_int_t)plan_budget(steps)));
	plan_skip(p);
	json_object_set_new(plan, "skip", p->skip[0] ? json_string(p->skip) : json_null());
	return 0;
}

int plan_make(const struct scenario_case *c, const struct plan_options *o, json_t **ret_plan, struct error *e)
{
	struct planner p = {
		.doc = c->doc,
		.o = o,
		.e = e,
		.plan = plan_head(c, o),
		.pairs = json_object(),
		.posts = json_object(),
		.timers = json_object(),
		.post_timers = json_object(),
		.room = json_object(),
		.traffic = json_object(),
	};
	int rc = plan_fill(&p);

	json_decref(p.pairs);
	json_decref(p.posts);
	json_decref(p.timers);
	json_decref(p.post_timers);
	json_decref(p.room);
	json_decref(p.traffic);
	if (rc) {
		json_decref(p.plan);
		return error_prefix(e, rc, "case %s", c->id);
	}
	*ret_plan = p.plan;
	return 0;
}
