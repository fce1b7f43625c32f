/* SPDX-License-Identifier: MIT */
/* What the plan's objects are right now: existing or not, which life, what the device returned for them. */
#include "controller_step.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "names.h"

const char *const ctl_object_type_names[NUM_OBJECT_TYPES] = {
	[OBJECT_INVALID] = "?", [OBJECT_PD] = "pd", [OBJECT_CQ] = "cq", [OBJECT_SRQ] = "srq",   [OBJECT_MR] = "mr",
	[OBJECT_MW] = "mw",     [OBJECT_AH] = "ah", [OBJECT_QP] = "qp", [OBJECT_XRCD] = "xrcd",
};

static const struct {
	const char *array;
	enum object_type type;
} plan_arrays[] = {
	{ "pds", OBJECT_PD }, { "cqs", OBJECT_CQ }, { "srqs", OBJECT_SRQ },   { "mrs", OBJECT_MR },
	{ "mws", OBJECT_MW }, { "ahs", OBJECT_AH }, { "xrcds", OBJECT_XRCD }, { "qps", OBJECT_QP },
};

static int object_add(struct case_run *r, const json_t *plan, enum object_type type, struct error *e)
{
	const char *name = json_str(plan, "name"), *agent = json_str(plan, "agent");
	struct object *o;

	if (!name || !agent)
		return error_set(e, -EINVAL, "plan.json: a %s without name or agent", ctl_object_type_names[type]);
	if (ctl_object_find(r, name))
		return error_set(e, -EINVAL, "plan.json: two objects are called %s", name);
	o = calloc(1, sizeof *o);
	if (!o)
		return error_set(e, -ENOMEM, "out of memory");
	o->name = name;
	o->named = json_object_get(plan, "name");
	o->type = type;
	o->plan = plan;
	o->agent = agent;
	o->is_rx = json_has(plan, "role", "rx");
	if (type == OBJECT_QP) {
		o->peer = json_str(plan, "peer");
		o->pair = json_str(plan, "pair");
		o->sq_psn = (uint32_t)json_int(json_object_get(plan, "attr"), "sq_psn", 0) & CTL_PSN_MASK;
		o->override_attr = json_object();
	}
	o->number = r->n_objects++;
	HASH_ADD_KEYPTR(hh, r->objects, o->name, strlen(o->name), o);
	return 0;
}

static int objects_add(struct case_run *r, const json_t *lists, struct error *e)
{
	for (size_t i = 0; i < sizeof plan_arrays / sizeof plan_arrays[0]; i++) {
		const json_t *plan;
		size_t j;

		json_array_foreach(json_object_get(lists, plan_arrays[i].array), j, plan) {
			int rc = object_add(r, plan, plan_arrays[i].type, e);

			if (rc)
				return rc;
		}
	}
	return 0;
}

/* Handed over with the QP that it belongs to, or with each of its agent. */
static void add_keyed(struct case_run *r, struct object *o)
{
	struct object *qp = o->type == OBJECT_MR ? ctl_object_find(r, json_str(o->plan, "qp")) : NULL;
	struct object **tail = qp ? &qp->keyed : &r->keyed;

	while (*tail)
		tail = &(*tail)->keyed;
	*tail = o;
}

int ctl_objects_init(struct case_run *r, struct error *e)
{
	int rc = objects_add(r, r->plan, e);
	struct object *o;

	if (!rc)
		rc = objects_add(r, json_object_get(r->plan, PLAN_BYSTANDER), e);
	for (o = rc ? NULL : r->objects; o; o = o->hh.next)
		if (o->type == OBJECT_MR || o->type == OBJECT_MW)
			add_keyed(r, o);
	if (!rc)
		many_classes(r);
	return rc;
}

void ctl_objects_free(struct case_run *r)
{
	struct object *o, *tmp;

	HASH_ITER(hh, r->objects, o, tmp)
	{
		HASH_DEL(r->objects, o);
		json_decref(o->ret);
		json_decref(o->told);
		json_decref(o->queried);
		json_decref(o->rtr);
		json_decref(o->rts);
		json_decref(o->override_attr);
		json_decref(o->view);
		json_decref(o->key);
		free(o);
	}
}

struct object *ctl_object_find(struct case_run *r, const char *name)
{
	struct object *o = NULL;

	if (name)
		HASH_FIND_STR(r->objects, name, o);
	return o;
}

void ctl_objects_lost(struct case_run *r, const char *agent)
{
	struct object *o;

	traffics_lost(r, agent);
	for (o = r->objects; o; o = o->hh.next) {
		if (strcmp(o->agent, agent) != 0)
			continue;
		o->exists = o->leaving = o->has_cm = false;
		o->state = NULL;
		o->receives_posted = false;
		o->receives_own = 0;
		o->kept_back = 0;
	}
}

const json_t *qp_attr(const struct object *qp, const char *name)
{
	const json_t *v = json_object_get(qp->override_attr, name);

	return v ? v : json_object_get(json_object_get(qp->plan, "attr"), name);
}

const json_t *qp_cap(const struct object *qp, const char *name)
{
	const json_t *v = json_object_get(qp->override_attr, name);

	return v ? v : json_object_get(json_object_get(qp->plan, "cap"), name);
}

/* The object that a reference's left part names: an object, an agent with one QP, or a queue's QP. */
static struct object *ref_object(struct case_run *r, const char *name, size_t len)
{
	struct object *o, *found = NULL;

	HASH_FIND(hh, r->objects, name, len, o);
	if (o)
		return o;
	for (o = r->objects; o; o = o->hh.next) {
		if (o->type != OBJECT_QP || strlen(o->agent) != len || strncmp(o->agent, name, len) != 0)
			continue;
		if (found)
			return NULL;
		found = o;
	}
	return found;
}

static const json_t *ref_value(const struct object *o, const char *what)
{
	const json_t *const places[] = {
		/* The newest word first: some devices make more of a queue than they said when they made it. */
		json_object_get(o->queried, "cap"), json_object_get(o->ret, "cap"),   o->ret,  o->queried,
		json_object_get(o->plan, "cap"),    json_object_get(o->plan, "attr"), o->plan,
	};

	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		const json_t *v = json_object_get(places[i], what);

		if (json_is_integer(v))
			return v;
	}
	return NULL;
}

int value_resolve(struct case_run *r, const json_t *value, int64_t def, int64_t *ret, struct error *e)
{
	const char *ref = json_str(value, "ref"), *dot;
	const struct object *o;
	const json_t *v;

	if (!value || json_is_null(value)) {
		*ret = def;
		return 0;
	}
	if (json_is_integer(value)) {
		*ret = json_integer_value(value);
		return 0;
	}
	if (!ref)
		return error_set(e, -EINVAL, "a number or a reference was expected in the plan");
	dot = strrchr(ref, '.');
	o = dot ? ref_object(r, ref, (size_t)(dot - ref)) : NULL;
	if (!o)
		return error_set(e, -ENOENT, "%s: there is no such object", ref);
	v = ref_value(o, dot + 1);
	if (!v)
		return error_set(e, -ENOENT, "%s: %s has returned no %s", ref, o->name, dot + 1);
	*ret = json_integer_value(v) + json_int(value, "add", 0);
	return 0;
}

/* "p.a@1" counts as "p.a", "p.a.recv" as its QP. */
static struct object *end_object(struct case_run *r, const char *name)
{
	size_t len = strcspn(name, "@");
	struct object *o = NULL;

	HASH_FIND(hh, r->objects, name, len, o);
	if (!o && len > 5 && (strncmp(name + len - 5, ".send", 5) == 0 || strncmp(name + len - 5, ".recv", 5) == 0))
		HASH_FIND(hh, r->objects, name, len - 5, o);
	return o && o->type == OBJECT_QP ? o : NULL;
}

/* Each once: `marks` of the case is another number for each list of ends. */
static int ends_add(struct case_run *r, struct ends *ends, struct object *qp)
{
	struct object **more;

	if (!ends->n)
		r->marks++;
	if (qp->marked == r->marks)
		return 0;
	more = realloc(ends->qp, (ends->n + 1) * sizeof *more); /* NOLINT(bugprone-sizeof-expression): an array of pointers */
	if (!more)
		return -ENOMEM;
	ends->qp = more;
	ends->qp[ends->n++] = qp;
	qp->marked = r->marks;
	return 0;
}

void ends_free(struct ends *ends)
{
	free(ends->qp);
	*ends = (struct ends){ NULL, 0 };
}

bool ends_have(const struct ends *ends, const struct object *qp)
{
	for (size_t i = 0; i < ends->n; i++)
		if (ends->qp[i] == qp)
			return true;
	return false;
}

/* The QP that a pair has at one of these agents. */
static struct object *end_at(struct case_run *r, const char *pair, const json_t *agents)
{
	const char *agent;
	const json_t *value;

	json_object_foreach((json_t *)agents, agent, value) {
		char name[2 * CTL_NAME_MAX];
		struct object *o;

		snprintf(name, sizeof name, "%s.%s", pair, agent);
		o = ctl_object_find(r, name);
		if (o && o->type == OBJECT_QP && o->pair && strcmp(o->pair, pair) == 0)
			return o;
	}
	return NULL;
}

/* Both ends, in the order of the plan. */
static int add_pair(struct case_run *r, struct ends *ends, const char *pair, struct error *e)
{
	struct object *one = end_at(r, pair, json_object_get(r->plan, "agents")), *other;

	if (!one)
		one = end_at(r, pair, json_object_get(json_object_get(r->plan, PLAN_BYSTANDER), "agents"));
	if (!one)
		return error_set(e, -ENOENT, "there is no pair %s in the plan", pair);
	other = ctl_object_find(r, one->peer);
	if (other && other->number < one->number) {
		struct object *first = other;

		other = one;
		one = first;
	}
	if (ends_add(r, ends, one) || (other && ends_add(r, ends, other)))
		return error_set(e, -ENOMEM, "out of memory");
	return 0;
}

static int add_all_pairs(struct case_run *r, struct ends *ends, struct error *e)
{
	struct object *o;

	for (o = r->objects; o; o = o->hh.next)
		if (o->type == OBJECT_QP && o->pair && !plan_is_bystander(o->pair) && ends_add(r, ends, o))
			return error_set(e, -ENOMEM, "out of memory");
	return ends->n ? 0 : error_set(e, -ENOENT, "there is no pair at all in the plan");
}

int ends_of_pairs(struct case_run *r, const json_t *pairs, struct ends *ret, struct error *e)
{
	struct ends ends = { NULL, 0 };
	const json_t *pair;
	size_t i;
	int rc = 0;

	if (!pairs)
		rc = add_all_pairs(r, &ends, e);
	json_array_foreach(pairs, i, pair)
		if (!rc)
			rc = add_pair(r, &ends, json_string_value(pair), e);
	if (rc)
		ends_free(&ends);
	else
		*ret = ends;
	return rc;
}

int ends_of_names(struct case_run *r, const json_t *names, struct ends *ret, struct error *e)
{
	struct ends ends = { NULL, 0 };
	size_t n = json_is_string(names) ? 1 : json_array_size(names);

	for (size_t i = 0; i < n; i++) {
		const char *name = json_string_value(json_is_string(names) ? names : json_array_get(names, i));
		struct object *o = name ? end_object(r, name) : NULL;

		if (!o || ends_add(r, &ends, o)) {
			ends_free(&ends);
			return error_set(e, o ? -ENOMEM : -ENOENT, "there is no end %s in the plan", name ? name : "?");
		}
	}
	*ret = ends;
	return 0;
}

/* Of a pair's other end, of the pairs that a step names, of what a named post used. */
int ends_involved(struct case_run *r, const json_t *step, struct ends *ret, struct error *e)
{
	struct ends ends = { NULL, 0 };
	const json_t *at = json_object_get(step, "at"), *name;
	const char *of = json_str(step, "of");
	struct post *p;
	size_t i;

	json_array_foreach(at, i, name) {
		struct object *o = json_is_string(name) ? end_object(r, json_string_value(name)) : NULL;

		if (o && o->pair)
			add_pair(r, &ends, o->pair, NULL);
	}
	json_array_foreach(json_object_get(step, "pairs"), i, name)
		add_pair(r, &ends, json_string_value(name), NULL);
	for (p = of ? r->posts : NULL; p; p = p->next)
		if (p->qp && strcmp(p->as, of) == 0)
			add_pair(r, &ends, p->qp->pair, NULL);
	if (ends.n) {
		*ret = ends;
		return 0;
	}
	return ends_of_pairs(r, NULL, ret, e);
}
