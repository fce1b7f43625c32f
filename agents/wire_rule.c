/* SPDX-License-Identifier: MIT */
#include "wire_rule.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/units.h"

/* What is left for the action when the wire's own keys are taken out. New reference. */
static json_t *action_args(const json_t *rule)
{
	static const char *const own[] = { "id", "op", "as", "match", "action", "times", "for" };
	json_t *args = json_copy((json_t *)rule);

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		json_object_del(args, own[i]);
	return args;
}

static int read_bounds(const json_t *rule, uint64_t now_ns, struct wire_rule *r, struct error *e)
{
	const json_t *times = json_object_get(rule, "times"), *lasts = json_object_get(rule, "for");
	uint64_t for_ns = 0;

	if (times && (!json_is_integer(times) || json_integer_value(times) < 1))
		return error_set(e, -EINVAL, "`times` is a number from 1");
	r->times = (uint64_t)json_integer_value(times);
	if (json_is_integer(lasts) && json_integer_value(lasts) > 0)
		for_ns = (uint64_t)json_integer_value(lasts);
	else if (lasts && (!json_is_string(lasts) || units_parse_duration(json_string_value(lasts), &for_ns) || !for_ns))
		return error_set(e, -EINVAL, "`for` is a duration above 0");
	r->expires_ns = for_ns ? now_ns + for_ns : UINT64_MAX;
	return 0;
}

static int read_action(const json_t *rule, struct wire_rule *r, struct error *e)
{
	const char *name = json_str(rule, "action");
	const struct action_ops *ops = name ? action_find(name) : NULL;

	if (!ops)
		return error_set(e, -EINVAL, "there is no action `%s`", name ? name : "");
	json_t *args = action_args(rule);

	r->action.ops = ops;
	r->action.match = json_object_get(r->json, "match");
	int rc = action_check(ops, args, e);

	if (!rc && ops->prepare)
		rc = ops->prepare(&r->action, args, e);
	json_decref(args);
	return rc;
}

int wire_rule_new(const json_t *rule, struct wire_names *names, const struct action_env *env, uint64_t order, uint64_t now_ns,
		  struct wire_rule **ret, struct error *e)
{
	const char *as = json_str(rule, "as");
	struct wire_rule *r = calloc(1, sizeof *r);
	int rc;

	if (!r)
		return error_set(e, -ENOMEM, "no memory");
	r->action.env = env;
	r->order = order;
	r->json = json_deep_copy(rule);
	if (!as || !*as) {
		rc = error_set(e, -EINVAL, "a rule needs a name: `as`");
		goto free_rule;
	}
	r->name = wire_name(names, as);
	rc = wire_match_parse(json_object_get(rule, "match"), names, &r->match, e);
	if (!rc)
		rc = read_bounds(rule, now_ns, r, e);
	if (!rc)
		rc = read_action(rule, r, e);
	if (rc)
		goto free_rule;
	r->anything = r->action.ops->anything && wire_match_is_empty(&r->match);
	*ret = r;
	return 0;
free_rule:
	wire_rule_free(r);
	return rc;
}

void wire_rule_free(struct wire_rule *r)
{
	if (!r)
		return;
	free(r->action.state);
	json_decref(r->json);
	free(r);
}

void wire_rule_hit(struct wire_rule *r, uint64_t n)
{
	r->hits++;
	if (n && r->n_packets < WIRE_HITS_MAX)
		r->packets[r->n_packets++] = n;
	if (r->times && r->hits >= r->times)
		r->spent = true;
}

/* A rule without a hit says what it saw instead. */
static void explain(const struct wire_rule *r, char *buf, size_t size)
{
	size_t at = 0;
	int n;

	if (!r->reached) {
		snprintf(buf, size, "no RoCEv2 packet came to it");
		return;
	}
	n = snprintf(buf, size, "%llu packets came to it", (unsigned long long)r->reached);
	for (int i = WIRE_MATCHED + 1; i < NUM_WIRE_REFUSALS; i++) {
		at += n > 0 && (size_t)n < size - at ? (size_t)n : 0;
		n = 0;
		if (r->match.refused[i])
			n = snprintf(buf + at, size - at, ", %llu %s", (unsigned long long)r->match.refused[i],
				     wire_refusal_texts[i]);
	}
	at += n > 0 && (size_t)n < size - at ? (size_t)n : 0;
	if (r->unfit)
		snprintf(buf + at, size - at, ", %llu to which `%s` could not be done", (unsigned long long)r->unfit,
			 r->action.ops->name);
}

json_t *wire_rule_report(const struct wire_rule *r, const struct wire_names *names)
{
	json_t *packets = json_array(), *reasons = json_object();
	char why[1024];

	for (unsigned i = 0; i < r->n_packets; i++)
		json_array_append_new(packets, json_integer((json_int_t)r->packets[i]));
	for (int i = WIRE_MATCHED + 1; i < NUM_WIRE_REFUSALS; i++)
		if (r->match.refused[i])
			json_object_set_new(reasons, wire_refusal_names[i], json_integer((json_int_t)r->match.refused[i]));
	json_t *report = json_pack("{s:s, s:s, s:b, s:I, s:o, s:I, s:I, s:I, s:I, s:o}", "as", wire_name_text(names, r->name),
				   "action", r->action.ops->name, "active", !r->spent, "hits", (json_int_t)r->hits, "packets",
				   packets, "reached", (json_int_t)r->reached, "invented", (json_int_t)r->invented, "kept",
				   (json_int_t)r->n_held, "unfit", (json_int_t)r->unfit, "refused", reasons);

	if (!r->hits) {
		explain(r, why, sizeof why);
		json_object_set_new(report, "why", json_string(why));
	}
	return report;
}
