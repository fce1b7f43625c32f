/* SPDX-License-Identifier: MIT */
#include "action.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_MAX 64

struct replay {
	uint64_t by_ns;
	bool next_life, fit_qpn, fit_psn;
	struct action_fields fields;
	unsigned n;
	struct kept {
		uint8_t *frame;
		size_t len;
		unsigned pair, port, life;
		int64_t psn;
	} kept[KEPT_MAX];
	uint8_t store[]; /* KEPT_MAX frames follow */
};

#define FRAME_MAX 9216

static const char *const intos[] = { "now", "next_life", NULL };
static const char *const fits[] = { "none", "qpn", "psn", "both", NULL };
static const struct fault_param params[] = {
	{ .name = "by",
	  .type = FAULT_PARAM_DURATION,
	  .max = 3600000000000,
	  .unit = "ns",
	  .def = "0ns",
	  .help = "how much later the copy comes" },
	{ .name = "into",
	  .type = FAULT_PARAM_ENUM,
	  .values = intos,
	  .def = "now",
	  .help = "next_life: after the first packet that its sender sends in its QP's next life" },
	{ .name = "fit",
	  .type = FAULT_PARAM_ENUM,
	  .values = fits,
	  .def = "none",
	  .help = "what of it is made to fit the next life: the QPN, the PSN (the same, relative)" },
	{ .name = "rewrite", .type = FAULT_PARAM_MAP, .help = "fields of the copy and their new values" },
	{ 0 },
};

static int prepare(struct action *a, const json_t *args, struct error *e)
{
	struct action_fields fields = { 0 };
	const json_t *map = json_object_get(args, "rewrite");
	const char *fit = action_text(a->ops, args, "fit");
	bool next_life = !strcmp(action_text(a->ops, args, "into"), "next_life");
	int rc = map ? action_fields_parse(map, &fields, e) : 0;

	if (rc)
		return error_prefix(e, rc, "rewrite");
	struct replay *r = calloc(1, sizeof *r + (next_life ? (size_t)KEPT_MAX * FRAME_MAX : 0));

	if (!r)
		return error_set(e, -ENOMEM, "no memory");
	r->by_ns = (uint64_t)action_int(a->ops, args, "by");
	r->next_life = next_life;
	r->fit_qpn = !strcmp(fit, "qpn") || !strcmp(fit, "both");
	r->fit_psn = !strcmp(fit, "psn") || !strcmp(fit, "both");
	r->fields = fields;
	a->state = r;
	return 0;
}

/* What was kept of a former life goes into this one. */
static void deliver(struct action *a, const struct action_packet *now)
{
	struct replay *r = a->state;
	unsigned left = 0;

	for (unsigned i = 0; i < r->n; i++) {
		struct kept *k = &r->kept[i];

		if (!now->known || k->pair != now->pair || k->port != now->port || k->life >= now->life) {
			r->kept[left++] = *k;
			continue;
		}
		struct action_packet p = *now;

		p.frame = k->frame;
		p.len = k->len;
		p.psn = k->psn;
		packet_decode(p.frame, p.len, &p.p);
		if (r->fit_qpn)
			packet_field_set(p.frame, &p.p, "dest_qp", now->to.qpn);
		if (r->fit_psn)
			packet_field_set(p.frame, &p.p, "psn", (now->zero_psn + (uint64_t)k->psn) & PACKET_PSN_MASK);
		if (r->fit_qpn || r->fit_psn)
			packet_icrc_mend(p.frame, &p.p);
		if (r->fields.n)
			action_fields_apply(&r->fields, &p);
		a->env->copy(a->env->wire, a, &p, r->by_ns);
	}
	r->n = left;
	a->watching = left > 0;
}

static enum action_result replay_now(struct action *a, const struct action_packet *p)
{
	const struct replay *r = a->state;
	struct action_packet copy = *p;

	copy.frame = malloc(p->len);
	if (!copy.frame)
		return ACTION_MISS;
	memcpy(copy.frame, p->frame, p->len);
	bool ok = (!r->fields.n || action_fields_apply(&r->fields, &copy)) && !a->env->copy(a->env->wire, a, &copy, r->by_ns);

	free(copy.frame);
	return ok ? ACTION_PASS : ACTION_MISS;
}

/* Only frames that nothing refers to any more are overwritten: slots are found by what the kept ones use. */
static uint8_t *free_slot(struct replay *r)
{
	for (unsigned s = 0; s < KEPT_MAX; s++) {
		uint8_t *slot = r->store + (size_t)s * FRAME_MAX;
		bool used = false;

		for (unsigned i = 0; i < r->n; i++)
			used |= r->kept[i].frame == slot;
		if (!used)
			return slot;
	}
	return NULL;
}

static enum action_result apply(struct action *a, struct action_packet *p)
{
	struct replay *r = a->state;

	if (!r->next_life)
		return replay_now(a, p);
	deliver(a, p);
	uint8_t *slot = r->n < KEPT_MAX && p->known && p->len <= FRAME_MAX ? free_slot(r) : NULL;

	if (!slot)
		return ACTION_MISS;
	memcpy(slot, p->frame, p->len);
	r->kept[r->n++] =
		(struct kept){ .frame = slot, .len = p->len, .pair = p->pair, .port = p->port, .life = p->life, .psn = p->psn };
	a->watching = true;
	return ACTION_PASS;
}

static enum action_result seen(struct action *a, struct action_packet *p)
{
	deliver(a, p);
	return ACTION_PASS;
}

const struct action_ops action_replay = {
	.name = "replay",
	.help = "the packet comes again, later or in its QP's next life",
	.params = params,
	.prepare = prepare,
	.apply = apply,
	.seen = seen,
};
