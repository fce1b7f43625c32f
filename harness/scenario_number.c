/* SPDX-License-Identifier: MIT */
#include "scenario_loader.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "units.h"

enum token {
	NOT_A_NUMBER,
	A_NUMBER,
	TOO_BIG,
};

/* Decimal or 0x, nothing behind it. */
static enum token read_u64(const char *text, size_t len, uint64_t *ret)
{
	bool hex = len > 2 && text[0] == '0' && text[1] == 'x';
	uint64_t value = 0;

	if (!len)
		return NOT_A_NUMBER;
	for (size_t i = hex ? 2 : 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		uint64_t digit;

		if (isdigit(c))
			digit = c - '0';
		else if (hex && isxdigit(c))
			digit = (uint64_t)(tolower(c) - 'a') + 10;
		else
			return NOT_A_NUMBER;
		if (__builtin_mul_overflow(value, hex ? 16 : 10, &value) || __builtin_add_overflow(value, digit, &value))
			return TOO_BIG;
	}
	*ret = value;
	return A_NUMBER;
}

static const char *range_hint(const struct gkey *k, char *buf, size_t size)
{
	if (!k->max)
		return NULL;
	snprintf(buf, size, "allowed: %lld to %lld", (long long)k->min, (long long)k->max);
	return buf;
}

static json_t *in_range(struct loader *l, const struct ynode *n, const struct gkey *k, uint64_t value)
{
	char hint[80];

	if (k->flags & G_HEX)
		return value <= INT64_MAX ? json_integer((json_int_t)value) : json_hex(value);
	if (value <= INT64_MAX && (int64_t)value >= k->min && (!k->max || (int64_t)value <= k->max))
		return json_integer((json_int_t)value);
	complain(l, n, range_hint(k, hint, sizeof(hint)), "%s is out of range for `%s`", n->text, k->name);
	return NULL;
}

/* Why `text` is no number, as far as it can be guessed. */
static void complain_number(struct loader *l, const struct ynode *n, const struct gkey *k)
{
	const char *wanted = k->type == G_SIZE ? "a size" : "a number";
	const char *hint = k->type == G_RANGE    ? "`3`, `2..5`, `2..`"
			   : k->type == G_SIZE   ? "`64`, `4KiB`, `2MiB`, `1GiB`"
			   : k->flags & G_NO_REF ? "`64`, `0x40`"
						 : "`64`, `0x40`, `a.max_send_wr + 1`";
	uint64_t ignored;
	char shown[80];

	if (n->kind == YNODE_SCALAR && !n->plain && read_u64(n->text, strlen(n->text), &ignored) == A_NUMBER)
		complain(l, n, "write it without quotes", "%s is wanted, found the text `%s`", wanted, n->text);
	else if (n->kind == YNODE_SCALAR && !units_parse_duration(n->text, &ignored))
		complain(l, n, hint, "%s is wanted for `%s`, found the duration `%s`", wanted, k->name, n->text);
	else if (n->kind == YNODE_SCALAR && k->type != G_SIZE && !units_parse_size(n->text, &ignored))
		complain(l, n, hint, "a plain number is wanted for `%s`, found the size `%s`", k->name, n->text);
	else if (n->kind == YNODE_SCALAR && n->text[0] == '-' && isdigit((unsigned char)n->text[1]))
		complain(l, n, range_hint(k, shown, sizeof(shown)), "`%s` may not be negative", k->name);
	else
		complain(l, n, hint, "%s is wanted for `%s`, found %s", wanted, k->name, node_shown(n, shown, sizeof(shown)));
}

json_t *parse_number(struct loader *l, struct ynode *n, const struct gkey *k)
{
	bool is_ref = false;
	uint64_t value;
	char hint[80];
	json_t *ref;

	if (n->kind != YNODE_SCALAR || node_is_null(n)) {
		complain_number(l, n, k);
		return NULL;
	}
	switch (n->plain ? read_u64(n->text, strlen(n->text), &value) : NOT_A_NUMBER) {
	case A_NUMBER:
		return in_range(l, n, k, value);
	case TOO_BIG:
		complain(l, n, range_hint(k, hint, sizeof(hint)), "%s does not fit into 64 bits", n->text);
		return NULL;
	case NOT_A_NUMBER:
		break;
	}
	if (k->type == G_SIZE) {
		int rc = units_parse_size(n->text, &value);

		if (!rc && n->plain)
			return in_range(l, n, k, value);
		if (!rc || rc == -ERANGE)
			return rc ? in_range(l, n, k, UINT64_MAX) : in_range(l, n, k, value);
	}
	if (k->flags & G_NO_REF) {
		complain_number(l, n, k);
		return NULL;
	}
	ref = parse_ref(l, n, n->text, 0, &is_ref);
	if (!is_ref)
		complain_number(l, n, k);
	return ref;
}

json_t *parse_duration(struct loader *l, struct ynode *n, const struct gkey *k)
{
	static const char hint[] = "a duration has a unit: `20ms`, `3s`, `10us`, `5ns`";
	uint64_t ns;
	char shown[80], most[32];
	int rc;

	if (n->kind != YNODE_SCALAR || node_is_null(n)) {
		complain(l, n, hint, "a duration is wanted for `%s`, found %s", k->name, node_shown(n, shown, sizeof(shown)));
		return NULL;
	}
	rc = units_parse_duration(n->text, &ns);
	if (rc == -EINVAL) {
		if (n->plain && read_u64(n->text, strlen(n->text), &ns) == A_NUMBER)
			complain(l, n, hint, "a duration is wanted for `%s`: `%s` has no unit", k->name, n->text);
		else
			complain(l, n, hint, "a duration is wanted for `%s`, found %s", k->name,
				 node_shown(n, shown, sizeof(shown)));
		return NULL;
	}
	if (!rc && ns <= INT64_MAX && (int64_t)ns >= k->min && (!k->max || (int64_t)ns <= k->max))
		return json_integer((json_int_t)ns);
	complain(l, n, NULL, "`%s` is out of range for `%s`: at most %s", n->text, k->name,
		 units_format_ns(k->max ? (uint64_t)k->max : INT64_MAX, most, sizeof(most)));
	return NULL;
}

/* Where the two dots of a range are, NULL when it is none. A ref has single dots only. */
static const char *range_dots(const char *text)
{
	return strstr(text, "..");
}

json_t *parse_range(struct loader *l, struct ynode *n, const struct gkey *k)
{
	const char *text = scalar_text(l, n, "a number or a range"), *dots;
	uint64_t low, high = 0;
	char hint[80];

	if (!text)
		return NULL;
	dots = range_dots(text);
	if (!dots)
		return parse_number(
			l, n,
			&(struct gkey){
				.name = k->name, .type = G_RANGE, .flags = k->flags | G_NO_REF, .min = k->min, .max = k->max });
	if (read_u64(text, (size_t)(dots - text), &low) != A_NUMBER ||
	    (dots[2] && read_u64(dots + 2, strlen(dots + 2), &high) != A_NUMBER)) {
		complain(l, n, "`3`, `2..5`, `2..`", "`%s` is no range", text);
		return NULL;
	}
	if (low > INT64_MAX || high > INT64_MAX || (int64_t)low < k->min ||
	    (k->max && ((int64_t)low > k->max || (int64_t)high > k->max))) {
		complain(l, n, range_hint(k, hint, sizeof(hint)), "%s is out of range for `%s`", text, k->name);
		return NULL;
	}
	if (!dots[2])
		return json_pack("{s:s,s:I}", "op", "range", "min", (json_int_t)low);
	if (low > high) {
		complain(l, n, NULL, "the range `%s` is empty: its beginning is above its end", text);
		return NULL;
	}
	return json_pack("{s:s,s:I,s:I}", "op", "range", "min", (json_int_t)low, "max", (json_int_t)high);
}

/* What may be compared with, as a hint. */
static const char *compare_hint(const struct gkey *k)
{
	if (k->flags & G_BEFORE)
		return k->flags & G_TIME ? "`\"<= 100ms\"`, `1ms..5ms`, `\"<= 3 x before\"`"
					 : "`3`, `\">= 3\"`, `5..9`, `2..`, `\"<= 3 x before\"`";
	return k->flags & G_TIME ? "`\"<= 100ms\"`, `1ms..5ms`" : "`3`, `\">= 3\"`, `5..9`, `2..`";
}

struct operand {
	json_t *value;
	bool time;
};

/* One side of a comparison: 3, 100ms, a.max_send_wr + 1. false after a complaint. */
static bool read_operand(struct loader *l, struct ynode *n, const char *text, size_t off, size_t len, const struct gkey *k,
			 struct operand *ret)
{
	char part[128];
	uint64_t value;
	bool is_ref = false;

	*ret = (struct operand){ .value = NULL };
	if (len >= sizeof(part))
		goto wrong;
	memcpy(part, text + off, len);
	part[len] = '\0';
	if (!units_parse_duration(part, &value) && value <= INT64_MAX) {
		ret->time = true;
	} else if (read_u64(part, len, &value) != A_NUMBER || value > INT64_MAX) {
		ret->value = parse_ref(l, n, part, off, &is_ref);
		if (is_ref)
			return ret->value != NULL;
		goto wrong;
	}
	if (ret->time && !(k->flags & G_TIME)) {
		complain_part(l, n, off, len, compare_hint(k), "`%s` is a count, found the duration `%s`", k->name, part);
		return false;
	}
	ret->value = json_integer((json_int_t)value);
	return true;
wrong:
	complain_part(l, n, off, len ? len : 1, compare_hint(k), "`%s` cannot be compared with", text + off);
	return false;
}

static bool unit_missing(struct loader *l, struct ynode *n, size_t off, size_t len, const struct gkey *k, const struct operand *o)
{
	if (!(k->flags & G_TIME) || o->time || json_is_object(o->value))
		return false;
	complain_part(l, n, off, len, compare_hint(k), "`%s` is a time: `%.*s` has no unit", k->name, (int)len, n->text + off);
	return true;
}

static json_t *compare_range(struct loader *l, struct ynode *n, const char *text, const char *dots, const struct gkey *k)
{
	size_t low_len = (size_t)(dots - text), high_off = low_len + 2, high_len = strlen(text) - high_off;
	struct operand low, high = { .value = NULL };
	json_t *cmp = NULL;

	if (!read_operand(l, n, text, 0, low_len, k, &low))
		return NULL;
	if (high_len && !read_operand(l, n, text, high_off, high_len, k, &high))
		goto free_low;
	if (unit_missing(l, n, 0, low_len, k, &low) || (high_len && unit_missing(l, n, high_off, high_len, k, &high)))
		goto free_low;
	if (json_is_integer(low.value) && json_is_integer(high.value) &&
	    json_integer_value(low.value) > json_integer_value(high.value)) {
		complain(l, n, NULL, "the range `%s` is empty: its beginning is above its end", text);
		goto free_low;
	}
	cmp = json_pack("{s:s,s:O}", "op", "range", "min", low.value);
	if (high.value)
		json_object_set(cmp, "max", high.value);
	if (low.time)
		json_object_set_new(cmp, "unit", json_string("ns"));
free_low:
	json_decref(low.value);
	json_decref(high.value);
	return cmp;
}

static size_t skip_spaces(const char *text, size_t off)
{
	while (text[off] == ' ')
		off++;
	return off;
}

json_t *parse_compare(struct loader *l, struct ynode *n, const struct gkey *k)
{
	static const char *const ops[] = { "<=", ">=", "==", "<", ">" };
	static const char before_word[] = " x before";
	const char *text = scalar_text(l, n, "a comparison"), *op = "==", *dots;
	size_t off = 0, len;
	bool before = false;
	struct operand o;
	json_t *cmp;

	if (!text)
		return NULL;
	dots = range_dots(text);
	if (dots)
		return compare_range(l, n, text, dots, k);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (strncmp(text, ops[i], strlen(ops[i])))
			continue;
		op = ops[i];
		off = skip_spaces(text, strlen(op));
		break;
	}
	len = strlen(text) - off;
	if (len > strlen(before_word) && !strcmp(text + strlen(text) - strlen(before_word), before_word)) {
		before = true;
		len -= strlen(before_word);
	}
	if (before && !(k->flags & G_BEFORE)) {
		complain_part(l, n, off, strlen(text) - off, compare_hint(k), "nothing of `%s` is known from before a fault",
			      k->name);
		return NULL;
	}
	if (!read_operand(l, n, text, off, len, k, &o))
		return NULL;
	if (!strcmp(op, "<") && json_is_integer(o.value) && !json_integer_value(o.value)) {
		complain(l, n, compare_hint(k), "`%s` is never below 0", k->name);
		json_decref(o.value);
		return NULL;
	}
	if (before ? o.time : unit_missing(l, n, off, len, k, &o)) {
		if (before)
			complain_part(l, n, off, len, "`\"<= 3 x before\"`", "`x before` takes a plain number");
		json_decref(o.value);
		return NULL;
	}
	cmp = json_pack("{s:s,s:o}", "op", op, "value", o.value);
	if (before)
		json_object_set_new(cmp, "before", json_true());
	if (o.time)
		json_object_set_new(cmp, "unit", json_string("ns"));
	return cmp;
}

json_t *parse_measure(struct loader *l, struct ynode *n, const struct gkey *k)
{
	uint64_t value;

	if (n->kind == YNODE_SCALAR && n->plain && !(k->flags & G_TIME) && read_u64(n->text, strlen(n->text), &value) == A_NUMBER)
		return in_range(l, n, k, value);
	return parse_compare(l, n, k);
}

/* The second pair's packets are counted as well: only how much there is at least can be said. */
static void check_counter(struct loader *l, const struct ynode *n, const char *name, const json_t *value)
{
	const char *op = json_str(value, "op");
	bool bounded = op && strcmp(op, ">") && strcmp(op, ">=") && (strcmp(op, "range") || json_object_get(value, "max"));

	if (bounded && !json_object_get(l->doc, "bystander"))
		complain(l, n, "`\">= 3\"`; or `bystander: none` at the top of the file; or `packets` of the wire",
			 "the device's `%s` counts what the bystander does as well: an upper bound means nothing", name);
}

json_t *parse_counters(struct loader *l, struct ynode *n, const struct gkey *k)
{
	static const char hint[] = "`counter: { duplicate_request: \">= 3\" }`";
	json_t *out;
	char shown[80];

	(void)k;
	if (n->kind != YNODE_MAP || !n->n) {
		complain(l, n, hint, "counters by name are wanted, found %s", node_shown(n, shown, sizeof(shown)));
		return NULL;
	}
	out = json_object();
	for (size_t i = 0; i < n->n; i++) {
		struct ynode *kid = n->kids[i];
		json_t *value = value_parse(l, kid, &(struct gkey){ .name = kid->key->text, .type = G_COMPARE });

		if (!value)
			continue;
		check_counter(l, kid, kid->key->text, value);
		json_object_set_new(out, kid->key->text, value);
	}
	return out;
}
