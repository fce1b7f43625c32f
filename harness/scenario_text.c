/* SPDX-License-Identifier: MIT */
#include "scenario_loader.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "capability.h"
#include "json.h"
#include "refs.h"

#define TITLE_MAX 140

json_t *parse_text(struct loader *l, struct ynode *n, const struct gkey *k)
{
	const char *text = scalar_text(l, n, "a text");

	(void)k;
	return text ? json_string(text) : NULL;
}

json_t *parse_title(struct loader *l, struct ynode *n, const struct gkey *k)
{
	const char *text = scalar_text(l, n, "a sentence");
	size_t chars = 0;

	(void)k;
	if (!text)
		return NULL;
	for (const char *p = text; *p; p++)
		chars += ((unsigned char)*p & 0xc0) != 0x80;
	if (strchr(text, '\n'))
		complain(l, n, NULL, "the title is one line");
	else if (chars > TITLE_MAX)
		complain(l, n, NULL, "the title has %zu characters; at most %d fit into a report", chars, TITLE_MAX);
	return json_string(text);
}

/* What can never be shown is no mistake of the file, but nothing that it shows either. */
static void check_ref(struct loader *l, const struct ynode *n, const char *text)
{
	struct error e = { "" };
	const struct refs *refs = refs_own(&e);
	const json_t *row = NULL;
	char hint[HINT_SIZE];
	const char *near;

	if (!refs) {
		warn_part(l, n, 0, strlen(text), NULL, "`%s` cannot be looked up: %s", text, e.text);
		return;
	}
	switch (refs_find(refs, text, &row)) {
	case REF_UNKNOWN:
		near = refs_nearest(refs, text);
		snprintf(hint, sizeof(hint), "%s%s%sscenarios/refs has all rows; a section is cited as `IBTA 9.7.5.2.8`",
			 near ? "did you mean `" : "", near ? near : "", near ? "`? " : "");
		complain_part(l, n, 0, strlen(text), hint, "`%s` is known neither as a row nor as a section", text);
		break;
	case REF_ROW:
		if (json_str(row, "never"))
			warn_part(l, n, 0, strlen(text), NULL, "`%s` cannot be shown: %s", text, json_str(row, "never"));
		break;
	default:
		break;
	}
}

static json_t *one_ref(struct loader *l, struct ynode *n, const struct gkey *k)
{
	const char *text = scalar_text(l, n, "a reference");

	(void)k;
	if (!text)
		return NULL;
	check_ref(l, n, text);
	return json_string(text);
}

json_t *parse_refs(struct loader *l, struct ynode *n, const struct gkey *k)
{
	if (n->kind == YNODE_LIST && !n->n)
		return json_array();
	return parse_list(l, n, k, "a reference", one_ref);
}

static bool is_kernel_requirement(const char *text)
{
	static const char *const ops[] = { ">=", "<=", "==", "<", ">" };
	size_t digits;

	if (strncmp(text, "kernel", 6))
		return false;
	text += 6;
	text += strspn(text, " ");
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (strncmp(text, ops[i], strlen(ops[i])))
			continue;
		text += strlen(ops[i]);
		text += strspn(text, " ");
		digits = strspn(text, "0123456789.");
		return digits && isdigit((unsigned char)text[0]) && !text[digits];
	}
	return false;
}

static json_t *one_requirement(struct loader *l, struct ynode *n, const struct gkey *k)
{
	static const char *const labs[] = { "rxe", "guest", "devices", NULL };
	const char *text = scalar_text(l, n, "a capability");
	struct word_list w = { .n = 0 };
	char hint[HINT_SIZE];

	(void)k;
	if (!text)
		return NULL;
	if (capability_find(text) || is_kernel_requirement(text))
		return json_string(text);
	if (!strncmp(text, "lab:", 4)) {
		const char *lab = text + 4 + strspn(text + 4, " ");

		for (size_t i = 0; labs[i]; i++)
			if (!strcmp(lab, labs[i]))
				return json_string(text);
		words_add_all(&w, labs);
		complain(l, n, words_hint(&w, lab, hint, sizeof(hint)), "there is no lab `%s`", lab);
		return NULL;
	}
	for (size_t i = 0; i < capability_table_n; i++)
		words_add(&w, capability_table[i].name);
	words_add(&w, "kernel >= 6.5");
	words_add(&w, "lab: rxe");
	complain(l, n, words_hint(&w, text, hint, sizeof(hint)), "`%s` is no capability", text);
	return NULL;
}

json_t *parse_requires(struct loader *l, struct ynode *n, const struct gkey *k)
{
	if (n->kind == YNODE_LIST && !n->n)
		return json_array();
	return parse_list(l, n, k, "a capability", one_requirement);
}

bool name_check(struct loader *l, const struct ynode *n, const char *text)
{
	static const char *const reserved[] = { "none", "rest", "all",  "any",   "on",   "off",
						"yes",  "no",   "true", "false", "null", NULL };

	if (!islower((unsigned char)text[0]) || strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-") != strlen(text)) {
		complain(l, n, "a small letter first, then small letters, digits, _ and -", "`%s` cannot be a name", text);
		return false;
	}
	if (strlen(text) > GRAMMAR_MAX_NAME) {
		complain(l, n, NULL, "a name has at most %d characters", GRAMMAR_MAX_NAME);
		return false;
	}
	for (size_t i = 0; reserved[i]; i++) {
		if (strcmp(text, reserved[i]))
			continue;
		complain(l, n, "choose another name", "`%s` has a meaning of its own", text);
		return false;
	}
	return true;
}

json_t *parse_name(struct loader *l, struct ynode *n, const struct gkey *k)
{
	char shown[80];

	(void)k;
	if (n->kind == YNODE_SCALAR && n->plain && (!strcmp(n->text, "true") || !strcmp(n->text, "false"))) {
		complain(l, n, NULL, "a name is wanted, found %s", node_shown(n, shown, sizeof(shown)));
		return NULL;
	}
	const char *text = scalar_text(l, n, "a name");

	return text && name_check(l, n, text) ? json_string(text) : NULL;
}

json_t *parse_word(struct loader *l, struct ynode *n, const struct gkey *k)
{
	struct word_list w = { .n = 0 };
	char hint[HINT_SIZE], shown[80];

	if (k->names)
		words_add_table(&w, k->names);
	if (k->words)
		words_add_all(&w, k->words);
	if (n->kind == YNODE_SCALAR)
		for (size_t i = 0; i < w.n; i++)
			if (!strcmp(w.word[i], n->text))
				return json_string(n->text);
	words_hint(&w, n->kind == YNODE_SCALAR ? n->text : NULL, hint, sizeof(hint));
	if (k->names)
		complain(l, n, hint, "%s is no %s", node_shown(n, shown, sizeof(shown)), k->names->what);
	else
		complain(l, n, hint, "%s cannot stand under `%s`", node_shown(n, shown, sizeof(shown)), k->name);
	return NULL;
}
