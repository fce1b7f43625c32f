/* SPDX-License-Identifier: MIT */
#include "scenario_loader.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

/* `A | B`, a piece of a text from off to end. Appends to a new array; NULL after a complaint. */
static json_t *alternatives(struct loader *l, const struct ynode *n, size_t off, size_t end, const struct name_table *table)
{
	json_t *array = json_array();
	size_t first = l->n_errors;

	for (;;) {
		size_t stop = off;
		struct word_list w = { .n = 0 };
		char word[64], hint[HINT_SIZE];

		while (off < end && n->text[off] == ' ')
			off++;
		for (stop = off; stop < end && n->text[stop] != '|'; stop++)
			;
		size_t len = stop - off;

		while (len && n->text[off + len - 1] == ' ')
			len--;
		snprintf(word, sizeof(word), "%.*s", (int)len, n->text + off);
		if (name_find(table, word)) {
			json_array_append_new(array, json_string(word));
		} else {
			words_add_table(&w, table);
			if (len)
				complain_part(l, n, off, len, words_hint(&w, word, hint, sizeof(hint)), "`%s` is no %s", word,
					      table->what);
			else
				complain_part(l, n, off, 1, words_hint(&w, NULL, hint, sizeof(hint)), "a %s is wanted here",
					      table->what);
		}
		if (stop >= end)
			break;
		off = stop + 1;
	}
	if (l->n_errors == first)
		return array;
	json_decref(array);
	return NULL;
}

/* What follows " x " in an item: 3, 2..5, 1.., rest, b.max_recv_wr. */
static bool read_times(struct loader *l, struct ynode *n, size_t off, json_t *item)
{
	static const char hint[] = "`x 3`, `x 2..5`, `x 1..`, `x rest`, `x b.max_recv_wr`";
	const char *text = n->text + off;
	size_t digits = strspn(text, "0123456789");
	bool is_ref = false;
	json_t *ref;

	if (!strcmp(text, "rest")) {
		json_object_set_new(item, "rest", json_true());
		return true;
	}
	if (digits && digits < 10) {
		long low = strtol(text, NULL, 10), high = low;
		const char *rest = text + digits;

		if (!strncmp(rest, "..", 2) && strspn(rest + 2, "0123456789") == strlen(rest + 2) && strlen(rest + 2) < 10)
			high = rest[2] ? strtol(rest + 2, NULL, 10) : -1;
		else if (*rest)
			goto wrong;
		if (high >= 0 && low > high) {
			complain_part(l, n, off, strlen(text), NULL, "the range `%s` is empty: its beginning is above its end",
				      text);
			return false;
		}
		if (!high) {
			complain_part(l, n, off, strlen(text), hint, "`x 0` stands for nothing: leave the item out");
			return false;
		}
		json_object_set_new(item, "min", json_integer(low));
		if (high >= 0)
			json_object_set_new(item, "max", json_integer(high));
		return true;
	}
	ref = parse_ref(l, n, text, off, &is_ref);
	if (ref) {
		json_object_set(item, "min", ref);
		json_object_set_new(item, "max", ref);
		return true;
	}
	if (is_ref)
		return false;
wrong:
	complain_part(l, n, off, strlen(text) ? strlen(text) : 1, hint, "`%s` is no number of times", text);
	return false;
}

static json_t *wc_item(struct loader *l, struct ynode *n, const struct gkey *k)
{
	const char *text = scalar_text(l, n, "a WC status"), *times;
	json_t *item, *any;

	if (!text)
		return NULL;
	if (!strcmp(text, "none")) {
		complain(l, n, NULL, "`none` stands alone, not in a list");
		return NULL;
	}
	times = strstr(text, " x ");
	any = alternatives(l, n, 0, times ? (size_t)(times - text) : strlen(text), k->names);
	if (!any)
		return NULL;
	item = json_pack("{s:o}", "any", any);
	if (!times) {
		json_object_set_new(item, "min", json_integer(1));
		json_object_set_new(item, "max", json_integer(1));
	} else if (!read_times(l, n, (size_t)(times - text) + 3, item)) {
		json_decref(item);
		return NULL;
	}
	return item;
}

static json_t *wc_sequence(struct loader *l, struct ynode *n, const struct gkey *k)
{
	json_t *seq = json_array();

	if (!n->n)
		complain(l, n, "`none`, `SUCCESS`, `[RETRY_EXC_ERR, WR_FLUSH_ERR x rest]`", "an empty pattern");
	for (size_t i = 0; i < n->n; i++) {
		struct ynode *kid = n->kids[i]->bad ? NULL : sweep_resolve(l, n->kids[i]);
		json_t *item = kid ? wc_item(l, kid, k) : NULL;

		if (item && json_bool(item, "rest", false) && i + 1 < n->n)
			complain(l, kid, NULL, "`x rest` takes all that is left: it has to be the last item");
		if (item)
			json_array_append_new(seq, item);
	}
	return json_pack("{s:o}", "seq", seq);
}

json_t *parse_wc(struct loader *l, struct ynode *n, const struct gkey *k)
{
	const char *text;
	json_t *all;

	if (n->kind == YNODE_LIST)
		return wc_sequence(l, n, k);
	text = scalar_text(l, n, "a WC pattern");
	if (!text)
		return NULL;
	if (!strcmp(text, "none"))
		return json_pack("{s:b}", "none", 1);
	if (strstr(text, " x ")) {
		json_t *item = wc_item(l, n, k);

		return item ? json_pack("{s:[o]}", "seq", item) : NULL;
	}
	all = alternatives(l, n, 0, strlen(text), k->names);
	return all ? json_pack("{s:o}", "all", all) : NULL;
}

json_t *parse_events(struct loader *l, struct ynode *n, const struct gkey *k)
{
	json_t *all;

	if (n->kind == YNODE_SCALAR && !strcmp(n->text, "none"))
		return json_pack("{s:b}", "none", 1);
	if (n->kind == YNODE_SCALAR && strchr(n->text, '|')) {
		complain(l, n, "`expect: { any: [ { at: a, event: A }, { at: a, event: B } ] }`; of an `allow` the list `[A, B]`",
			 "`%s`: events have no alternatives, a list means all of them", n->text);
		return NULL;
	}
	all = parse_list(l, n, k, "an event", parse_word);
	return all ? json_pack("{s:o}", "all", all) : NULL;
}

static json_t *one_errno(struct loader *l, struct ynode *n, const struct gkey *k)
{
	const char *text = scalar_text(l, n, "an errno name");

	return text ? alternatives(l, n, 0, strlen(text), k->names) : NULL;
}

json_t *parse_errnos(struct loader *l, struct ynode *n, const struct gkey *k)
{
	json_t *all;

	if (n->kind != YNODE_LIST)
		return one_errno(l, n, k);
	all = json_array();
	if (!n->n)
		complain(l, n, NULL, "an empty list of errno names");
	for (size_t i = 0; i < n->n; i++) {
		struct ynode *kid = n->kids[i]->bad ? NULL : sweep_resolve(l, n->kids[i]);
		json_t *some = kid ? one_errno(l, kid, k) : NULL;

		if (some)
			json_array_extend(all, some);
		json_decref(some);
	}
	return all;
}
