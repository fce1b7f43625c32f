/* SPDX-License-Identifier: MIT */
#include "action.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SCOPES_MAX 64

/* What has gone dark: pairs and directions. Without `pair` in the match it is the whole link. */
struct blackhole {
	bool one_way, whole_link;
	unsigned n;
	struct scope {
		unsigned pair, port;
	} scopes[SCOPES_MAX];
};

static const char *const ways[] = { "both", "one", NULL };
static const struct fault_param params[] = {
	{ .name = "ways",
	  .type = FAULT_PARAM_ENUM,
	  .values = ways,
	  .help = "one: only the direction of the packet that began it; default both, or one with `from`" },
	{ 0 },
};

static int prepare(struct action *a, const json_t *args, struct error *e)
{
	struct blackhole *b = calloc(1, sizeof *b);
	const char *text = json_string_value(json_object_get(args, "ways"));

	if (!b)
		return error_set(e, -ENOMEM, "no memory");
	b->one_way = text ? !strcmp(text, "one") : json_object_get(a->match, "from") != NULL;
	b->whole_link = !json_object_get(a->match, "pair");
	a->state = b;
	return 0;
}

static bool is_dark(const struct blackhole *b, const struct action_packet *p)
{
	for (const struct scope *s = b->scopes; s < b->scopes + b->n; s++)
		if ((b->whole_link || s->pair == p->pair) && (!b->one_way || s->port == p->port))
			return true;
	return false;
}

static enum action_result apply(struct action *a, struct action_packet *p)
{
	struct blackhole *b = a->state;

	if (!is_dark(b, p) && b->n < SCOPES_MAX)
		b->scopes[b->n++] = (struct scope){ .pair = p->pair, .port = p->port };
	a->watching = true;
	return ACTION_EAT;
}

static enum action_result seen(struct action *a, struct action_packet *p)
{
	return is_dark(a->state, p) ? ACTION_EAT : ACTION_PASS;
}

const struct action_ops action_blackhole = {
	.name = "blackhole",
	.help = "the packet is lost, and every later one of its pair (or link, when the match names no pair)",
	.params = params,
	.anything = true,
	.prepare = prepare,
	.apply = apply,
	.seen = seen,
};
