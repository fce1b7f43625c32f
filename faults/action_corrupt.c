/* SPDX-License-Identifier: MIT */
#include "action.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum part { PART_PAYLOAD, PART_HEADER, PART_ICRC };

struct corrupt {
	enum part part;
	uint64_t bit;
	bool mended;
};

static const char *const parts[] = { "payload", "header", "icrc", NULL };
static const char *const icrcs[] = { "wrong", "mended", NULL };
static const struct fault_param params[] = {
	{ .name = "where",
	  .type = FAULT_PARAM_ENUM,
	  .values = parts,
	  .def = "payload",
	  .help = "header: from the first byte of BTH" },
	{ .name = "bit",
	  .type = FAULT_PARAM_INT,
	  .max = 1 << 24,
	  .def = "0",
	  .help = "which bit is flipped, from the first byte's lowest" },
	{ .name = "icrc",
	  .type = FAULT_PARAM_ENUM,
	  .values = icrcs,
	  .def = "wrong",
	  .help = "wrong: as it was, so that it no longer fits" },
	{ 0 },
};

static int prepare(struct action *a, const json_t *args, struct error *e)
{
	struct corrupt c = { .bit = (uint64_t)action_int(a->ops, args, "bit") };
	const char *where = action_text(a->ops, args, "where");

	c.part = !strcmp(where, "header") ? PART_HEADER : !strcmp(where, "icrc") ? PART_ICRC : PART_PAYLOAD;
	c.mended = !strcmp(action_text(a->ops, args, "icrc"), "mended");
	if (c.part == PART_HEADER && c.bit / 8 == 4)
		return error_set(
			e, -EINVAL,
			"`bit` %llu of the header lies in BTH's fifth byte, which the ICRC leaves out: nobody could notice",
			(unsigned long long)c.bit);
	if (c.part == PART_ICRC && (c.mended || c.bit >= 32))
		return error_set(e, -EINVAL, "the ICRC has bits 0 to 31 and cannot be mended too");
	a->state = malloc(sizeof c);
	if (!a->state)
		return error_set(e, -ENOMEM, "no memory");
	memcpy(a->state, &c, sizeof c);
	return 0;
}

static enum action_result apply(struct action *a, struct action_packet *p)
{
	const struct corrupt *c = a->state;
	size_t start = c->part == PART_HEADER ? p->p.bth : c->part == PART_ICRC ? p->p.icrc : p->p.payload;
	size_t end = c->part == PART_HEADER ? p->p.payload
		     : c->part == PART_ICRC ? p->p.icrc + 4u
					    : p->p.payload + (size_t)p->p.payload_bytes;

	if (start + c->bit / 8 >= end)
		return ACTION_MISS;
	packet_udp_unchecked(p->frame, &p->p);
	p->frame[start + c->bit / 8] ^= (uint8_t)(1u << c->bit % 8);
	if (c->mended)
		packet_icrc_mend(p->frame, &p->p);
	return ACTION_CHANGE;
}

const struct action_ops action_corrupt = {
	.name = "corrupt",
	.help = "one bit of header, payload or ICRC is flipped",
	.params = params,
	.prepare = prepare,
	.apply = apply,
};
