/* SPDX-License-Identifier: MIT */
#include "action.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct fault_param params[] = {
	{ .name = "rewrite", .type = FAULT_PARAM_MAP, .required = true, .help = "fields and their new values; the ICRC is mended" },
	{ 0 },
};

static int prepare(struct action *a, const json_t *args, struct error *e)
{
	struct action_fields fields;
	int rc = action_fields_parse(json_object_get(args, "rewrite"), &fields, e);

	if (rc)
		return error_prefix(e, rc, "rewrite");
	a->state = malloc(sizeof fields);
	if (!a->state)
		return error_set(e, -ENOMEM, "no memory");
	memcpy(a->state, &fields, sizeof fields);
	return 0;
}

static enum action_result apply(struct action *a, struct action_packet *p)
{
	return action_fields_apply(a->state, p) ? ACTION_CHANGE : ACTION_MISS;
}

const struct action_ops action_rewrite = {
	.name = "rewrite",
	.help = "fields of the packet get other values",
	.params = params,
	.prepare = prepare,
	.apply = apply,
};
