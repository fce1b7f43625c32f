/* SPDX-License-Identifier: MIT */
#include "cmp.h"

#include <errno.h>
#include <string.h>

#include "json.h"

int cmp_op(const char *op, int64_t value, int64_t want)
{
	if (!strcmp(op, "=="))
		return value == want;
	if (!strcmp(op, ">="))
		return value >= want;
	if (!strcmp(op, "<="))
		return value <= want;
	if (!strcmp(op, ">"))
		return value > want;
	if (!strcmp(op, "<"))
		return value < want;
	if (!strcmp(op, "!="))
		return value != want;
	return -EINVAL;
}

bool compare_holds(const json_t *cmp, int64_t value)
{
	const char *op = json_str(cmp, "op");

	if (!op)
		return json_is_integer(cmp) && value == json_integer_value(cmp);
	if (!strcmp(op, "range"))
		return value >= json_int(cmp, "min", INT64_MIN) && value <= json_int(cmp, "max", INT64_MAX);
	return cmp_op(op, value, json_int(cmp, "value", 0)) == 1;
}
