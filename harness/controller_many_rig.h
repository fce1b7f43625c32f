/* SPDX-License-Identifier: MIT */
/* Plans of many pairs. */
#ifndef QD_CONTROLLER_MANY_RIG_H
#define QD_CONTROLLER_MANY_RIG_H

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller_case.h"
#include "controller_rig.h"
#include "json.h"

/* With ' for ". */
static inline json_t *quoted_json(const char *quoted)
{
	char *text = strdup(quoted);
	json_t *value;

	for (char *at = text; *at; at++)
		*at = *at == '\'' ? '"' : *at;
	value = json_loads(text, 0, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(value);
	free(text);
	return value;
}

static inline void name_all(json_t *step, unsigned pairs)
{
	json_t *names = json_array(), *at = json_array(), *inner;
	size_t k;

	for (unsigned i = 0; i < pairs; i++) {
		json_array_append_new(names, json_sprintf("p[%u]", i));
		json_array_append_new(at, json_sprintf("p[%u].a", i));
		json_array_append_new(at, json_sprintf("p[%u].b", i));
	}
	if (json_has(step, "do", "modify"))
		json_object_set(step, "at", at);
	else if (!json_object_get(step, "pairs"))
		json_object_set(step, "pairs", names);
	json_decref(names);
	json_decref(at);
	json_array_foreach(json_object_get(step, "steps"), k, inner)
		name_all(inner, pairs);
}

/* Pairs p[0], p[1] … that differ in their PSNs; steps that name none mean all. */
static inline json_t *plan_of_pairs(const char *steps, unsigned pairs)
{
	json_t *plan = plan_of(steps, 30ULL * 1000000000), *two = json_object_get(plan, "qps"), *qps = json_array(), *step;
	size_t k;

	for (unsigned i = 0; i < pairs; i++) {
		for (unsigned end = 0; end < 2; end++) {
			json_t *qp = json_deep_copy(json_array_get(two, end));

			json_object_set_new(qp, "name", json_sprintf("p[%u].%c", i, "ab"[end]));
			json_object_set_new(qp, "pair", json_sprintf("p[%u]", i));
			json_object_set_new(qp, "peer", json_sprintf("p[%u].%c", i, "ba"[end]));
			json_object_set_new(json_object_get(qp, "attr"), "sq_psn", json_integer(1000 * (json_int_t)i + end));
			json_array_append_new(qps, qp);
		}
	}
	json_object_set_new(plan, "qps", qps);
	json_object_set_new(plan, "mrs", json_array());
	json_array_foreach(json_object_get(plan, "steps"), k, step)
		name_all(step, pairs);
	return plan;
}

#endif
