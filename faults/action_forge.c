/* SPDX-License-Identifier: MIT */
#include "action.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define READ_MAX 4096

struct forge {
	uint64_t by_ns;
	bool instead, onward; /* onward: to the receiver of the packet that matched */
	uint8_t opcode, syndrome;
	uint32_t msn;
	bool psn_absolute; /* psn is relative to the connection; else to the packet */
	int64_t psn;
	size_t size;
};

static const struct kind {
	const char *name, *opcode;
	uint8_t syndrome;
} kinds[] = {
	{ "ACK", "RC_ACKNOWLEDGE", AETH_ACK },
	{ "NAK_PSN", "RC_ACKNOWLEDGE", AETH_NAK_PSN },
	{ "NAK_INV_REQ", "RC_ACKNOWLEDGE", AETH_NAK_INV_REQ },
	{ "NAK_ACCESS", "RC_ACKNOWLEDGE", AETH_NAK_ACCESS },
	{ "NAK_OP", "RC_ACKNOWLEDGE", AETH_NAK_OP },
	{ "NAK_INV_RD_REQ", "RC_ACKNOWLEDGE", AETH_NAK_INV_RD_REQ },
	{ "RNR_NAK", "RC_ACKNOWLEDGE", AETH_RNR_NAK },
	{ "READ_RESPONSE", "RC_RDMA_READ_RESPONSE_ONLY", AETH_ACK },
	{ "CNP", "CNP", 0 },
};

static const struct fault_param params[] = {
	{ .name = "forge",
	  .type = FAULT_PARAM_MAP,
	  .required = true,
	  .help = "kind (ACK NAK_PSN NAK_INV_REQ NAK_ACCESS NAK_OP NAK_INV_RD_REQ RNR_NAK READ_RESPONSE CNP), psn, syndrome, "
		  "timer, "
		  "msn, size, opcode, to, instead" },
	{ .name = "by",
	  .type = FAULT_PARAM_DURATION,
	  .max = 3600000000000,
	  .unit = "ns",
	  .def = "0ns",
	  .help = "how much later than the packet" },
	{ 0 },
};

/* An integer of the map within [0, max], or def. */
static int read_int(const json_t *map, const char *key, int64_t max, int64_t def, int64_t *ret, struct error *e)
{
	const json_t *v = json_object_get(map, key);

	if (v && (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > max))
		return error_set(e, -EINVAL, "`%s` is a number from 0 to %lld", key, (long long)max);
	*ret = v ? json_integer_value(v) : def;
	return 0;
}

static int read_psn(const json_t *map, struct forge *f, struct error *e)
{
	const json_t *v = json_object_get(map, "psn");
	const char *text = json_string_value(v);
	char *end = NULL;

	if (!v)
		return 0;
	if (json_is_integer(v)) {
		f->psn_absolute = true;
		f->psn = json_integer_value(v);
		return 0;
	}
	if (text && (*text == '+' || *text == '-'))
		f->psn = strtoll(text, &end, 0);
	if (!end || *end)
		return error_set(e, -EINVAL, "`psn` is a number relative to the connection, or \"+n\" or \"-n\" from the packet's");
	return 0;
}

static int read_kind(const json_t *map, struct forge *f, struct error *e)
{
	const char *name = json_string_value(json_object_get(map, "kind")),
		   *opcode = json_string_value(json_object_get(map, "opcode"));
	const struct kind *kind = NULL;

	for (size_t i = 0; name && i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(kinds[i].name, name))
			kind = &kinds[i];
	if (!kind)
		return error_set(
			e, -EINVAL,
			"`kind` is one of: ACK NAK_PSN NAK_INV_REQ NAK_ACCESS NAK_OP NAK_INV_RD_REQ RNR_NAK READ_RESPONSE CNP");
	const struct packet_opcode *op = packet_opcode_by_name(opcode ? opcode : kind->opcode);

	if (!op || op->class != packet_opcode_by_name(kind->opcode)->class)
		return error_set(e, -EINVAL, "`opcode` is none of a %s", name);
	f->opcode = op->value;
	f->syndrome = kind->syndrome;
	return 0;
}

static int read_way(const json_t *map, struct forge *f, struct error *e)
{
	const json_t *to = json_object_get(map, "to"), *instead = json_object_get(map, "instead");

	if (to && (!json_is_string(to) || (strcmp(json_string_value(to), "sender") && strcmp(json_string_value(to), "receiver"))))
		return error_set(e, -EINVAL, "`to` is sender or receiver (of the packet that matched)");
	if (instead && !json_is_boolean(instead))
		return error_set(e, -EINVAL, "`instead` is true or false");
	f->onward = to && !strcmp(json_string_value(to), "receiver");
	f->instead = json_is_true(instead);
	return 0;
}

static int read_forge(const json_t *map, struct forge *f, struct error *e)
{
	static const char *const keys[] = { "kind", "psn", "syndrome", "timer", "msn", "size", "opcode", "to", "instead", NULL };
	int64_t syndrome, timer, msn, size;
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)map, key, value) {
		const char *const *k = keys;

		while (*k && strcmp(*k, key))
			k++;
		if (!*k)
			return error_set(e, -EINVAL, "has no `%s`", key);
	}
	if (read_kind(map, f, e) || read_psn(map, f, e) || read_way(map, f, e) ||
	    read_int(map, "syndrome", 255, f->syndrome, &syndrome, e) || read_int(map, "timer", 31, 0, &timer, e) ||
	    read_int(map, "msn", 0xffffff, 0, &msn, e) || read_int(map, "size", READ_MAX, 0, &size, e))
		return -EINVAL;
	if (json_object_get(map, "timer") && f->syndrome != AETH_RNR_NAK)
		return error_set(e, -EINVAL, "only an RNR_NAK has a `timer`");
	if (size && !packet_opcode_find(f->opcode)->payload)
		return error_set(e, -EINVAL, "only a READ_RESPONSE has a `size`");
	f->syndrome = (uint8_t)(syndrome | timer);
	f->msn = (uint32_t)msn;
	f->size = (size_t)size;
	return 0;
}

static int prepare(struct action *a, const json_t *args, struct error *e)
{
	struct forge *f = calloc(1, sizeof *f);

	if (!f)
		return error_set(e, -ENOMEM, "no memory");
	a->state = f;
	f->by_ns = (uint64_t)action_int(a->ops, args, "by");
	int rc = read_forge(json_object_get(args, "forge"), f, e);

	return rc ? error_prefix(e, rc, "forge") : 0;
}

static void turn_round(struct packet_spec *s)
{
	struct packet_spec old = *s;

	memcpy(s->dmac, old.smac, 6);
	memcpy(s->smac, old.dmac, 6);
	memcpy(s->src, old.dst, 16);
	memcpy(s->dst, old.src, 16);
}

static enum action_result apply(struct action *a, struct action_packet *p)
{
	const struct forge *f = a->state;
	uint8_t frame[PACKET_MAX_HEADERS_BYTES + READ_MAX + 8];
	struct packet_spec s;

	if (!p->known)
		return ACTION_MISS;
	packet_spec_answer(p->frame, &p->p, &s);
	if (f->onward)
		turn_round(&s);
	s.opcode = f->opcode;
	s.dest_qp = f->onward ? p->to.qpn : p->from.qpn;
	s.psn = (p->zero_psn + (uint32_t)(f->psn_absolute ? f->psn : p->psn + f->psn)) & PACKET_PSN_MASK;
	if (packet_opcode_find(f->opcode)->class == PACKET_CLASS_CNP)
		s.psn = 0;
	s.syndrome = f->syndrome;
	s.msn = f->msn;
	s.payload_bytes = f->size;
	int len = packet_build(&s, frame, sizeof frame);

	if (len < 0 || a->env->invent(a->env->wire, a, f->onward ? p->port : !p->port, frame, (size_t)len, f->by_ns))
		return ACTION_MISS;
	return f->instead ? ACTION_EAT : ACTION_PASS;
}

const struct action_ops action_forge = {
	.name = "forge",
	.help = "an answer that nobody sent, at the moment of the packet that matches",
	.params = params,
	.prepare = prepare,
	.apply = apply,
};
