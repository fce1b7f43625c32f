/* SPDX-License-Identifier: MIT */
#include "action.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int parse_value(const char *name, const json_t *value, struct action_field *ret, struct error *e)
{
	const char *text = json_string_value(value);
	char *end = NULL;

	if (json_is_integer(value)) {
		ret->how = '=';
		ret->value = (uint64_t)json_integer_value(value);
		return 0;
	}
	if (json_is_boolean(value)) {
		ret->how = '=';
		ret->value = json_is_true(value);
		return 0;
	}
	if (!text || !*text)
		return error_set(e, -EINVAL, "`%s` is a number, or a change of it: \"+1\", \"-1\", \"^0xff\"", name);
	ret->how = strchr("+-^", *text) ? *text++ : '=';
	errno = 0;
	ret->value = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-')
		return error_set(e, -EINVAL, "`%s`: \"%s\" is no number", name, json_string_value(value));
	return 0;
}

static int parse_opcode(const json_t *value, struct action_field *ret)
{
	const struct packet_opcode *op = json_is_string(value) ? packet_opcode_by_name(json_string_value(value)) : NULL;

	if (!op)
		return -EINVAL;
	ret->how = '=';
	ret->value = op->value;
	return 0;
}

int action_fields_parse(const json_t *map, struct action_fields *ret, struct error *e)
{
	struct action_fields fields = { 0 };
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)map, name, value) {
		struct action_field *row = &fields.rows[fields.n];

		if (fields.n == ACTION_FIELDS_MAX)
			return error_set(e, -EINVAL, "more than %d fields", ACTION_FIELDS_MAX);
		row->field = packet_field_find(name);
		if (!row->field)
			return error_set(e, -EINVAL, "a packet has no field `%s`", name);
		if (strcmp(name, "opcode") || parse_opcode(value, row)) {
			int rc = parse_value(name, value, row, e);

			if (rc)
				return rc;
		}
		/* a relative PSN may be negative */
		if (strcmp(name, "psn") && row->field->bits < 64 && row->value >> row->field->bits)
			return error_set(e, -EINVAL, "`%s` has %u bits", name, row->field->bits);
		fields.n++;
	}
	if (!fields.n)
		return error_set(e, -EINVAL, "no field is named");
	*ret = fields;
	return 0;
}

static bool new_value(const struct action_field *row, const struct action_packet *p, uint64_t *ret)
{
	uint64_t old = 0, mask = row->field->bits == 64 ? UINT64_MAX : (1ULL << row->field->bits) - 1;

	if (packet_field_get(p->frame, &p->p, row->field->name, &old))
		return false;
	switch (row->how) {
	case '+':
		*ret = (old + row->value) & mask;
		return true;
	case '-':
		*ret = (old - row->value) & mask;
		return true;
	case '^':
		*ret = (old ^ row->value) & mask;
		return true;
	default:
		if (!strcmp(row->field->name, "psn")) {
			*ret = (p->zero_psn + row->value) & mask;
			return p->known;
		}
		*ret = row->value & mask;
		return true;
	}
}

bool action_fields_apply(const struct action_fields *fields, struct action_packet *p)
{
	uint64_t values[ACTION_FIELDS_MAX];

	for (unsigned i = 0; i < fields->n; i++)
		if (!new_value(&fields->rows[i], p, &values[i]))
			return false;
	for (unsigned i = 0; i < fields->n; i++)
		packet_field_set(p->frame, &p->p, fields->rows[i].field->name, values[i]);
	packet_icrc_mend(p->frame, &p->p);
	return true;
}
