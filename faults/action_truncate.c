/* SPDX-License-Identifier: MIT */
#include "action.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct truncate {
	size_t bytes;
	bool icrc_wrong, lengths_kept;
};

static const char *const icrcs[] = { "mended", "wrong", NULL };
static const char *const lengths[] = { "mended", "kept", NULL };
static const struct fault_param params[] = {
	{ .name = "bytes",
	  .type = FAULT_PARAM_SIZE,
	  .required = true,
	  .min = 1,
	  .max = 65535,
	  .unit = "bytes",
	  .help = "how many its payload loses at the end" },
	{ .name = "icrc", .type = FAULT_PARAM_ENUM, .values = icrcs, .def = "mended", .help = "wrong: the old one" },
	{ .name = "lengths",
	  .type = FAULT_PARAM_ENUM,
	  .values = lengths,
	  .def = "mended",
	  .help = "kept: IP and UDP promise more than there is" },
	{ 0 },
};

static int prepare(struct action *a, const json_t *args, struct error *e)
{
	struct truncate *t = malloc(sizeof *t);

	if (!t)
		return error_set(e, -ENOMEM, "no memory");
	t->bytes = (size_t)action_int(a->ops, args, "bytes");
	t->icrc_wrong = !strcmp(action_text(a->ops, args, "icrc"), "wrong");
	t->lengths_kept = !strcmp(action_text(a->ops, args, "lengths"), "kept");
	a->state = t;
	return 0;
}

static enum action_result apply(struct action *a, struct action_packet *p)
{
	const struct truncate *t = a->state;

	if (t->bytes > (size_t)p->p.payload_bytes + p->p.pad)
		return ACTION_MISS;
	if (t->lengths_kept) {
		p->len = p->p.icrc + 4u - t->bytes;
		return ACTION_CHANGE;
	}
	p->len = packet_cut(p->frame, p->len, &p->p, t->bytes);
	packet_decode(p->frame, p->len, &p->p);
	if (!t->icrc_wrong && p->p.icrc)
		packet_icrc_mend(p->frame, &p->p);
	return ACTION_CHANGE;
}

const struct action_ops action_truncate = {
	.name = "truncate",
	.help = "the end of the payload is missing",
	.params = params,
	.prepare = prepare,
	.apply = apply,
};
