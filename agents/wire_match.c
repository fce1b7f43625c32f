/* SPDX-License-Identifier: MIT */
#include "wire_match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALL_CLASSES ((1u << NUM_PACKET_CLASSES) - 1)

const char *const wire_refusal_names[NUM_WIRE_REFUSALS] = {
	[WIRE_MATCHED] = "matched",     [WIRE_WRONG_CLASS] = "class",
	[WIRE_WRONG_FROM] = "from",     [WIRE_WRONG_PAIR] = "pair",
	[WIRE_WRONG_OPCODE] = "opcode", [WIRE_WRONG_SYNDROME] = "syndrome",
	[WIRE_WRONG_SIZE] = "size",     [WIRE_UNKNOWN_CONNECTION] = "unknown_connection",
	[WIRE_WRONG_PSN] = "psn",       [WIRE_WRONG_TRANSMISSION] = "transmission",
	[WIRE_WRONG_NTH] = "nth",
};

const char *const wire_refusal_texts[NUM_WIRE_REFUSALS] = {
	[WIRE_MATCHED] = "matched",
	[WIRE_WRONG_CLASS] = "of another class",
	[WIRE_WRONG_FROM] = "from another end",
	[WIRE_WRONG_PAIR] = "of another pair",
	[WIRE_WRONG_OPCODE] = "with another opcode",
	[WIRE_WRONG_SYNDROME] = "with another syndrome, or none",
	[WIRE_WRONG_SIZE] = "of another size",
	[WIRE_UNKNOWN_CONNECTION] = "of no known connection, so without a relative PSN",
	[WIRE_WRONG_PSN] = "with another PSN",
	[WIRE_WRONG_TRANSMISSION] = "not that transmission of their PSN",
	[WIRE_WRONG_NTH] = "not the one that was meant by its count",
};

static int read_range(const char *key, const json_t *value, int64_t low, struct wire_range *ret, struct error *e)
{
	const char *op = json_string_value(json_object_get(value, "op"));
	const json_t *min = json_object_get(value, "min"), *max = json_object_get(value, "max"),
		     *v = json_object_get(value, "value");

	*ret = (struct wire_range){ .set = true, .min = INT64_MIN, .max = INT64_MAX };
	if (json_is_integer(value)) {
		ret->min = ret->max = json_integer_value(value);
	} else if (op && !strcmp(op, "range") && (min || max) && (!min || json_is_integer(min)) && (!max || json_is_integer(max))) {
		ret->min = min ? json_integer_value(min) : INT64_MIN;
		ret->max = max ? json_integer_value(max) : INT64_MAX;
	} else if (op && json_is_integer(v) && strchr("=<>", op[0])) {
		int64_t n = json_integer_value(v);

		ret->min = op[0] == '=' || !strcmp(op, ">=") ? n : op[0] == '>' ? n + 1 : INT64_MIN;
		ret->max = op[0] == '=' || !strcmp(op, "<=") ? n : op[0] == '<' ? n - 1 : INT64_MAX;
	} else {
		return error_set(e, -EINVAL, "`%s` is a number or a range", key);
	}
	if (ret->min > ret->max || ret->max < low)
		return error_set(e, -EINVAL, "`%s` can never be: it is at least %lld", key, (long long)low);
	return 0;
}

/* Calls one() for a string, or for each in a list. */
static int each_name(const char *key, const json_t *value, int (*one)(const char *text, void *user), void *user, struct error *e)
{
	const json_t *item;
	size_t i;

	if (json_is_string(value)) {
		if (one(json_string_value(value), user) == 0)
			return 0;
		return error_set(e, -EINVAL, "`%s`: there is no \"%s\"", key, json_string_value(value));
	}
	if (!json_is_array(value) || !json_array_size(value))
		return error_set(e, -EINVAL, "`%s` is a name or a list of names", key);
	json_array_foreach((json_t *)value, i, item) {
		if (!json_is_string(item) || one(json_string_value(item), user))
			return error_set(e, -EINVAL, "`%s`: number %zu is not one it knows", key, i + 1);
	}
	return 0;
}

struct parse {
	struct wire_match *m;
	struct wire_names *names;
};

static int add_class(const char *text, void *user)
{
	enum packet_class class = packet_class_find(text);

	((struct parse *)user)->m->classes |= 1u << class;
	return class == PACKET_CLASS_INVALID ? -EINVAL : 0;
}

static int add_opcode(const char *text, void *user)
{
	const struct packet_opcode *op = packet_opcode_by_name(text);

	if (!op)
		return -EINVAL;
	((struct parse *)user)->m->opcodes[op->value / 32] |= 1u << op->value % 32;
	((struct parse *)user)->m->opcodes_set = true;
	return 0;
}

static int add_syndrome(const json_t *value, struct parse *parse)
{
	const struct packet_syndrome *known = json_is_string(value) ? packet_syndrome_by_name(json_string_value(value)) : NULL;
	json_int_t first = known                    ? known->first
			   : json_is_integer(value) ? json_integer_value(value)
						    : -1,
		   last = known ? known->last : first;

	if (first < 0 || last > UINT8_MAX)
		return -EINVAL;
	for (json_int_t s = first; s <= last; s++)
		parse->m->syndromes[s / 32] |= 1u << s % 32;
	parse->m->syndromes_set = true;
	return 0;
}

static int read_syndromes(const json_t *value, struct parse *parse, struct error *e)
{
	const json_t *item;
	size_t i;

	if (!json_is_array(value) && !add_syndrome(value, parse))
		return 0;
	if (!json_array_size(value))
		return error_set(e, -EINVAL, "`syndrome` is a name, a number to 255, or a list of these");
	json_array_foreach((json_t *)value, i, item) {
		if (add_syndrome(item, parse))
			return error_set(e, -EINVAL, "`syndrome`: number %zu is not one it knows", i + 1);
	}
	return 0;
}

/* "a" (this agent, or port, in any pair) or "p.a". */
static int add_from(const char *text, void *user)
{
	struct parse *parse = user;
	const char *dot = strrchr(text, '.');
	unsigned i = parse->m->n_from;

	if (i == WIRE_NAMES_MAX || !*text)
		return -EINVAL;
	if (dot) {
		char *pair = strndup(text, (size_t)(dot - text));

		parse->m->from[i].pair = pair ? wire_name(parse->names, pair) : 0;
		free(pair);
		if (!parse->m->from[i].pair)
			return -ENOMEM;
	}
	parse->m->from[i].agent = wire_name(parse->names, dot ? dot + 1 : text);
	parse->m->n_from++;
	return parse->m->from[i].agent ? 0 : -ENOMEM;
}

static int add_pair(const char *text, void *user)
{
	struct parse *parse = user;

	if (parse->m->n_pairs == WIRE_NAMES_MAX || !*text)
		return -EINVAL;
	parse->m->pairs[parse->m->n_pairs] = wire_name(parse->names, text);
	return parse->m->pairs[parse->m->n_pairs++] ? 0 : -ENOMEM;
}

static int read_key(const char *key, const json_t *value, struct parse *parse, struct error *e)
{
	struct wire_match *m = parse->m;

	if (!strcmp(key, "from"))
		return each_name(key, value, add_from, parse, e);
	if (!strcmp(key, "pair"))
		return each_name(key, value, add_pair, parse, e);
	if (!strcmp(key, "class")) {
		m->classes = 0;
		return each_name(key, value, add_class, parse, e);
	}
	if (!strcmp(key, "opcode"))
		return each_name(key, value, add_opcode, parse, e);
	if (!strcmp(key, "syndrome"))
		return read_syndromes(value, parse, e);
	if (!strcmp(key, "size"))
		return read_range(key, value, 0, &m->size, e);
	if (!strcmp(key, "psn"))
		return read_range(key, value, INT64_MIN, &m->psn, e);
	if (!strcmp(key, "nth"))
		return read_range(key, value, 1, &m->nth, e);
	if (!strcmp(key, "transmission"))
		return read_range(key, value, 1, &m->transmission, e);
	if (strcmp(key, "every"))
		return error_set(e, -EINVAL, "has no `%s`", key);
	if (!json_is_integer(value) || json_integer_value(value) < 1)
		return error_set(e, -EINVAL, "`every` is a number from 1");
	m->every = (uint64_t)json_integer_value(value);
	return 0;
}

int wire_match_parse(const json_t *match, struct wire_names *names, struct wire_match *ret, struct error *e)
{
	struct wire_match m = { .classes = ALL_CLASSES };
	struct parse parse = { .m = &m, .names = names };
	const char *key;
	json_t *value;

	if (match && !json_is_object(match))
		return error_set(e, -EINVAL, "match is a map");
	json_object_foreach((json_t *)match, key, value) {
		int rc = read_key(key, value, &parse, e);

		if (rc)
			return error_prefix(e, rc, "match");
	}
	m.first_from = m.from[0];
	*ret = m;
	return 0;
}

bool wire_match_is_empty(const struct wire_match *m)
{
	return m->classes == ALL_CLASSES && !m->opcodes_set && !m->syndromes_set && !m->n_from && !m->n_pairs && !m->size.set &&
	       !m->psn.set && !m->transmission.set && !m->nth.set && !m->every;
}

static bool in_range(const struct wire_range *r, int64_t v)
{
	return !r->set || (v >= r->min && v <= r->max);
}

static bool from_matches(const struct wire_match *m, const struct wire_look *look)
{
	const struct wire_from *f = &m->first_from;

	if (m->n_from && f->agent == look->agent && (!f->pair || f->pair == look->pair))
		return true;
	for (unsigned i = 1; i < m->n_from; i++)
		if (m->from[i].agent == look->agent && (!m->from[i].pair || m->from[i].pair == look->pair))
			return true;
	return !m->n_from;
}

static bool pair_matches(const struct wire_match *m, const struct wire_look *look)
{
	for (unsigned i = 0; i < m->n_pairs; i++)
		if (m->pairs[i] == look->pair)
			return true;
	return !m->n_pairs;
}

enum wire_refusal wire_match_sender(const struct wire_match *m, const struct wire_look *look)
{
	if (!(m->classes & 1u << look->class))
		return WIRE_WRONG_CLASS;
	if (!from_matches(m, look))
		return WIRE_WRONG_FROM;
	if (!pair_matches(m, look))
		return WIRE_WRONG_PAIR;
	if (m->opcodes_set && !(m->opcodes[look->opcode / 32] & 1u << look->opcode % 32))
		return WIRE_WRONG_OPCODE;
	if (m->syndromes_set && (!look->aeth || !(m->syndromes[look->syndrome / 32] & 1u << look->syndrome % 32)))
		return WIRE_WRONG_SYNDROME;
	return WIRE_MATCHED;
}

uint64_t wire_match_misses(const struct wire_match *m)
{
	uint64_t by_nth = 0, by_every = m->every ? m->every - 1 - m->count % m->every : 0;

	if (m->nth.set && m->nth.max <= (int64_t)m->count)
		return UINT64_MAX;
	if (m->nth.set && m->nth.min > (int64_t)m->count + 1)
		by_nth = (uint64_t)m->nth.min - m->count - 1;
	return by_nth > by_every ? by_nth : by_every;
}

static enum wire_refusal refuse(struct wire_match *m, const struct wire_look *look)
{
	enum wire_refusal sender = wire_match_sender(m, look);

	if (sender != WIRE_MATCHED)
		return sender;
	if (!in_range(&m->size, look->size))
		return WIRE_WRONG_SIZE;
	if ((m->psn.set || m->transmission.set) && !look->transmission)
		return WIRE_UNKNOWN_CONNECTION;
	if (!in_range(&m->psn, look->psn))
		return WIRE_WRONG_PSN;
	if (!in_range(&m->transmission, look->transmission))
		return WIRE_WRONG_TRANSMISSION;
	m->count++;
	if (!in_range(&m->nth, (int64_t)m->count) || (m->every && m->count % m->every))
		return WIRE_WRONG_NTH;
	return WIRE_MATCHED;
}

enum wire_refusal wire_match_try(struct wire_match *m, const struct wire_look *look)
{
	enum wire_refusal r = refuse(m, look);

	m->refused[r]++;
	return r;
}
