/* SPDX-License-Identifier: MIT */
#include "action.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/units.h"

extern const struct action_ops action_blackhole, action_corrupt, action_delay, action_drop, action_duplicate, action_forge,
	action_hold, action_reorder, action_replay, action_rewrite, action_truncate;

const struct action_ops *const action_table[] = {
	&action_blackhole, &action_corrupt, &action_delay,  &action_drop,    &action_duplicate, &action_forge,
	&action_hold,      &action_reorder, &action_replay, &action_rewrite, &action_truncate,  NULL,
};

const struct action_ops *action_find(const char *name)
{
	for (const struct action_ops *const *ops = action_table; *ops; ops++)
		if (!strcmp((*ops)->name, name))
			return *ops;
	return NULL;
}

static const struct fault_param *find_param(const struct action_ops *ops, const char *name)
{
	for (const struct fault_param *p = ops->params; p && p->name; p++)
		if (!strcmp(p->name, name))
			return p;
	return NULL;
}

/* The number that a value stands for; -EINVAL when it is none of its type. */
static int parse_number(const struct fault_param *param, const json_t *value, int64_t *ret)
{
	uint64_t n = 0;
	int rc;

	if (json_is_integer(value)) {
		*ret = json_integer_value(value);
		return 0;
	}
	if (!json_is_string(value))
		return -EINVAL;
	rc = param->type == FAULT_PARAM_DURATION ? units_parse_duration(json_string_value(value), &n)
						 : units_parse_size(json_string_value(value), &n);
	if (rc || n > INT64_MAX)
		return -EINVAL;
	*ret = (int64_t)n;
	return 0;
}

static bool is_number(const struct fault_param *param)
{
	return param->type == FAULT_PARAM_INT || param->type == FAULT_PARAM_DURATION || param->type == FAULT_PARAM_SIZE;
}

static int check_enum(const struct fault_param *param, const json_t *value, struct error *e)
{
	char all[256] = "";
	size_t at = 0;

	for (const char *const *v = param->values; *v; v++) {
		if (json_is_string(value) && !strcmp(json_string_value(value), *v))
			return 0;
		int n = snprintf(all + at, sizeof all - at, "%s%s", at ? " " : "", *v);

		at += n > 0 && (size_t)n < sizeof all - at ? (size_t)n : 0;
	}
	return error_set(e, -EINVAL, "`%s` is one of: %s", param->name, all);
}

static int check_value(const struct fault_param *param, const json_t *value, struct error *e)
{
	int64_t n;

	if (param->type == FAULT_PARAM_ENUM)
		return check_enum(param, value, e);
	if (param->type == FAULT_PARAM_MAP)
		return json_is_object(value) ? 0 : error_set(e, -EINVAL, "`%s` is a map", param->name);
	if (!is_number(param))
		return json_is_string(value) ? 0 : error_set(e, -EINVAL, "`%s` is text", param->name);
	if (parse_number(param, value, &n))
		return error_set(e, -EINVAL, "`%s` is %s", param->name,
				 param->type == FAULT_PARAM_DURATION ? "a duration, 5ms" : "a number");
	if ((param->min || param->max) && (n < param->min || n > param->max))
		return error_set(e, -EINVAL, "`%s` is %lld: it goes from %lld to %lld", param->name, (long long)n,
				 (long long)param->min, (long long)param->max);
	return 0;
}

int action_check(const struct action_ops *ops, const json_t *args, struct error *e)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)args, key, value) {
		const struct fault_param *param = find_param(ops, key);

		if (!param)
			return error_set(e, -EINVAL, "action `%s` has no `%s`", ops->name, key);
		int rc = check_value(param, value, e);

		if (rc)
			return rc;
	}
	for (const struct fault_param *p = ops->params; p && p->name; p++)
		if (p->required && !json_object_get(args, p->name))
			return error_set(e, -EINVAL, "action `%s` needs `%s` (%s)", ops->name, p->name, p->help);
	return 0;
}

int64_t action_int(const struct action_ops *ops, const json_t *args, const char *name)
{
	const struct fault_param *param = find_param(ops, name);
	const json_t *value = json_object_get(args, name);
	int64_t n = 0;

	if (value && parse_number(param, value, &n) == 0)
		return n;
	if (!param->def)
		return 0;
	json_t *def = param->type == FAULT_PARAM_DURATION ? json_string(param->def) : json_integer(strtoll(param->def, NULL, 0));

	parse_number(param, def, &n);
	json_decref(def);
	return n;
}

const char *action_text(const struct action_ops *ops, const json_t *args, const char *name)
{
	const json_t *value = json_object_get(args, name);

	return value ? json_string_value(value) : find_param(ops, name)->def;
}
