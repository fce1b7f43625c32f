/* SPDX-License-Identifier: MIT */
/* What a scenario names: steps by `as:`, objects by their key. */
#include "scenario_loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

static const struct {
	unsigned flag;
	const char *kind;
} object_kinds[] = {
	{ G_OBJ_CQ, "cq" }, { G_OBJ_SRQ, "srq" }, { G_OBJ_MR, "mr" }, { G_OBJ_PD, "pd" }, { G_OBJ_MW, "mw" }, { G_OBJ_AH, "ah" },
};

static const struct {
	unsigned flag;
	const char *text;
} label_kinds[] = {
	{ G_OF_POST, "post" },   { G_OF_RECV, "post_recv" },    { G_OF_TRAFFIC, "traffic" },
	{ G_OF_FAULT, "fault" }, { G_OF_REMEMBER, "remember" }, { G_OF_RECOVER, "recover" },
};

static void label_kinds_text(unsigned flags, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < sizeof(label_kinds) / sizeof(label_kinds[0]); i++)
		if (flags & label_kinds[i].flag && used < size)
			used += (size_t)snprintf(buf + used, size - used, "%s`%s`", used ? " or " : "", label_kinds[i].text);
}

json_t *parse_label(struct loader *l, struct ynode *n, const struct gkey *k)
{
	const char *text = scalar_text(l, n, "the name of an earlier step"), *name;
	struct word_list w = { .n = 0 };
	char hint[HINT_SIZE], kinds[160];
	const json_t *label;
	json_t *value;

	if (!text)
		return NULL;
	label = json_object_get(l->labels, text);
	if (label && json_int(label, "kind", 0) & (int64_t)k->flags) {
		l->touched |= json_bool(label, "gone", false);
		return json_string(text);
	}
	label_kinds_text(k->flags, kinds, sizeof(kinds));
	json_object_foreach(l->labels, name, value)
		if (json_int(value, "kind", 0) & (int64_t)k->flags)
			words_add(&w, name);
	if (!w.n)
		snprintf(hint, sizeof(hint), "no earlier step %s has an `as:`", kinds);
	else
		words_hint(&w, text, hint, sizeof(hint));
	if (label)
		complain(l, n, hint, "`%s` is a `%s` (line %d); `%s` wants %s", text, json_str(label, "do"),
			 (int)json_int(label, "line", 0), k->name, kinds);
	else
		complain(l, n, hint, "no earlier step is named `%s`", text);
	return NULL;
}

json_t *parse_labels(struct loader *l, struct ynode *n, const struct gkey *k)
{
	return parse_list(l, n, k, "the name of an earlier step", parse_label);
}

static bool kind_wanted(const char *kind, unsigned flags)
{
	for (size_t i = 0; i < sizeof(object_kinds) / sizeof(object_kinds[0]); i++)
		if (!strcmp(object_kinds[i].kind, kind))
			return flags & object_kinds[i].flag;
	return false;
}

/* `p.b.mem`, `b.rcq`, `a.pd`: what is made as needed has a name too. */
static bool own_object(struct loader *l, struct ynode *n, const char *text, unsigned flags)
{
	static const struct {
		const char *suffix;
		unsigned flag;
	} own[] = {
		{ "tx", G_OBJ_MR },  { "rx", G_OBJ_MR },  { "mem", G_OBJ_MR }, { "trf", G_OBJ_MR },
		{ "scq", G_OBJ_CQ }, { "rcq", G_OBJ_CQ }, { "ah", G_OBJ_AH },
	};
	const char *dot = strrchr(text, '.');
	struct ynode head = *n;
	json_t *end;
	char part[3 * GRAMMAR_MAX_NAME];

	if (!dot || (size_t)(dot - text) >= sizeof(part))
		return false;
	snprintf(part, sizeof(part), "%.*s", (int)(dot - text), text);
	if (!strcmp(dot + 1, "pd"))
		return flags & G_OBJ_PD && json_object_get(l->agents, part);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (strcmp(own[i].suffix, dot + 1) || !(flags & own[i].flag))
			continue;
		head.text = part;
		head.span = head.exact ? strlen(part) : head.span;
		end = parse_end(l, &head, &(struct gkey){ .name = "end", .type = G_END });
		json_decref(end);
		/* A wrong end has been complained about: it is this kind of name all the same. */
		return true;
	}
	return false;
}

json_t *parse_object(struct loader *l, struct ynode *n, const struct gkey *k)
{
	const char *text = scalar_text(l, n, "the name of an object"), *name;
	struct word_list w = { .n = 0 };
	char hint[HINT_SIZE], kinds[64] = "";
	const json_t *object;
	json_t *value;
	size_t used = 0;

	if (!text)
		return NULL;
	object = json_object_get(l->objects, text);
	if (object ? kind_wanted(json_str(object, "kind"), k->flags) : own_object(l, n, text, k->flags))
		return json_string(text);
	for (size_t i = 0; i < sizeof(object_kinds) / sizeof(object_kinds[0]); i++)
		if (k->flags & object_kinds[i].flag)
			used += (size_t)snprintf(kinds + used, sizeof(kinds) - used, "%s%s", used ? " or " : "",
						 object_kinds[i].kind);
	json_object_foreach(l->objects, name, value)
		if (kind_wanted(json_str(value, "kind"), k->flags))
			words_add(&w, name);
	if (!w.n)
		snprintf(hint, sizeof(hint), "the file names no %s; one is named at the top level, as `%s: { NAME: { at: a } }`",
			 kinds,
			 k->flags & G_OBJ_MR   ? "mr"
			 : k->flags & G_OBJ_CQ ? "cq"
					       : kinds);
	else
		words_hint(&w, text, hint, sizeof(hint));
	if (object)
		complain(l, n, hint, "`%s` is a %s, not a %s", text, json_str(object, "kind"), kinds);
	else
		complain(l, n, hint, "there is no %s `%s`", kinds, text);
	return NULL;
}

json_t *parse_objects(struct loader *l, struct ynode *n, const struct gkey *k)
{
	return parse_list(l, n, k, "the name of an object", parse_object);
}

/* `pool`, `pool + 4096`. */
json_t *parse_place(struct loader *l, struct ynode *n, const struct gkey *k)
{
	static const char hint[] = "`pool`, `pool + 4096`";
	const char *text = scalar_text(l, n, "a memory region"), *plus;
	struct ynode head = *n;
	char name[3 * GRAMMAR_MAX_NAME];
	int64_t add = 0;
	json_t *mr;

	if (!text)
		return NULL;
	plus = strstr(text, " + ");
	if (plus) {
		const char *digits = plus + 3;

		if (!*digits || strspn(digits, "0123456789") != strlen(digits) || strlen(digits) > 10) {
			complain_part(l, n, (size_t)(digits - text), strlen(digits) ? strlen(digits) : 1, hint,
				      "a number of bytes is wanted");
			return NULL;
		}
		add = strtoll(digits, NULL, 10);
	}
	if ((plus ? (size_t)(plus - text) : strlen(text)) >= sizeof(name)) {
		complain(l, n, hint, "no name is that long");
		return NULL;
	}
	snprintf(name, sizeof(name), "%.*s", plus ? (int)(plus - text) : (int)strlen(text), text);
	head.text = name;
	head.span = head.exact ? strlen(name) : head.span;
	mr = parse_object(l, &head, &(struct gkey){ .name = k->name, .type = G_OBJECT, .flags = G_OBJ_MR | G_OBJ_MW });
	if (!mr)
		return NULL;
	json_decref(mr);
	return json_pack("{s:s,s:I}", "mr", name, "add", (json_int_t)add);
}
