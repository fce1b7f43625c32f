/* SPDX-License-Identifier: MIT */
/* A sweep over packets: what a first pass is, and the values that stand for one packet. */
#include "scenario_loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "scenario.h"

#define PSN_MAX 0xffffff

static const char *const *class_words(void)
{
	for (const struct gkey *k = grammar_match; k->name; k++)
		if (!strcmp(k->name, "class"))
			return k->words;
	return NULL;
}

int scenario_packet_class(const char *name)
{
	const char *const *words = class_words();

	for (int i = 0; name && words && words[i]; i++)
		if (!strcmp(words[i], name))
			return i;
	return -1;
}

const char *scenario_packet_class_name(int place)
{
	for (int i = 0; class_words()[i]; i++)
		if (i == place)
			return class_words()[i];
	return NULL;
}

char *scenario_packet_name(const json_t *packet)
{
	const char *from = json_str(packet, "from"), *class_name = json_str(packet, "class");
	char *name;

	if (asprintf(&name, "%s.%s.%lld", from ? from : "?", class_name ? class_name : "?", (long long)json_int(packet, "psn", 0)) <
	    0)
		return NULL;
	return name;
}

json_t *scenario_packet_parse(const char *name)
{
	char copy[256], *psn, *class_name, *end;
	long n;

	if (strlen(name) >= sizeof(copy))
		return NULL;
	snprintf(copy, sizeof(copy), "%s", name);
	psn = strrchr(copy, '.');
	if (!psn || psn == copy || psn[1] < '0' || psn[1] > '9')
		return NULL;
	*psn++ = '\0';
	n = strtol(psn, &end, 10);
	class_name = strrchr(copy, '.');
	if (*end || n > PSN_MAX || !class_name || class_name == copy || scenario_packet_class(class_name + 1) < 0)
		return NULL;
	*class_name++ = '\0';
	return json_pack("{s:s,s:s,s:i}", "from", copy, "class", class_name, "psn", (int)n);
}

bool packets_check(struct loader *l, const struct ynode *sweep, const struct ynode *value)
{
	bool ok = true;

	for (size_t i = 0; i < value->n; i++) {
		if (!strcmp(value->kids[i]->key->text, "packets"))
			continue;
		complain(l, value->kids[i]->key, "`sweep: { packet: { packets: { from: a } } }`",
			 "unknown key `%s`: what is swept over packets has `packets:` alone", value->kids[i]->key->text);
		ok = false;
	}
	if (ok && !value->n) {
		complain(l, value, "`sweep: { packet: { packets: { from: a } } }`",
			 "a swept name has a list of values, or `packets:`");
		ok = false;
	}
	if (value != sweep_packets(sweep)) {
		complain(l, value->key, "write another file", "`%s` and `%s` are both swept over packets: one name can be",
			 sweep_packets(sweep)->key->text, value->key->text);
		ok = false;
	}
	return ok;
}

/* Before anything has been found any packet does: the match is well-formed or not whichever it is. */
struct ynode *packets_value(struct loader *l, const struct ynode *where, char **ret_shown)
{
	struct ynode *map = ytree_map(&l->tree, where);
	const json_t *packet = l->mode == SWEEP_PACKET ? l->packet : NULL;
	char psn[24];
	bool ok = map != NULL;

	snprintf(psn, sizeof(psn), "%lld", (long long)json_int(packet, "psn", 0));
	if (packet)
		ok = ok && ytree_put(&l->tree, map, "from", json_str(packet, "from"));
	ok = ok && ytree_put(&l->tree, map, "class", packet ? json_str(packet, "class") : "request");
	ok = ok && ytree_put(&l->tree, map, "psn", psn);
	*ret_shown = packet ? scenario_packet_name(packet) : strdup(SCENARIO_FIRST_PASS);
	return ok && *ret_shown ? map : NULL;
}

static void check_swept_match(struct loader *l, const struct ynode *map, void *out)
{
	static const char *const refused[] = { "nth", "transmission", "every" };

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (json_object_get(out, refused[i]))
			complain(l, ynode_get(map, refused[i])->key, "allowed: from, pair, class, opcode, syndrome, size, psn",
				 "packets are swept by direction, class and PSN: `%s` has no meaning here", refused[i]);
	match_is_present(l, map, out);
}

static void check_swept_file(struct loader *l, const struct ynode *swept)
{
	const char *name = swept->key->text;
	bool used = false;

	for (size_t i = 0; i < l->n_vars; i++)
		used |= l->vars[i].key == swept->key && l->vars[i].used;
	if (!json_array_has(json_object_get(l->doc, "requires"), "wire"))
		complain(l, swept->key, "`requires: [wire]`", "`%s` is swept over packets: the file has to require the wire", name);
	if (used && !l->matched)
		complain(l, swept->key, "`- fault: { wire: { match: \"${packet}\", action: drop, times: 1 }, as: lost }`",
			 "`%s` is swept over packets and is the `match` of no fault", name);
}

void packets_finish(struct loader *l, struct ynode *swept)
{
	static const struct gmap map = { .what = "`packets` of a sweep", .keys = grammar_match, .check = check_swept_match };
	static const struct gkey key = { .name = "packets", .type = G_MAP, .map = &map };
	json_t *match = value_parse(l, ynode_get(swept, "packets"), &key);

	if (l->mode == SWEEP_CHECKED)
		check_swept_file(l, swept);
	else if (l->mode == SWEEP_FIRST_PASS)
		json_object_set_new(l->doc, "first_pass", json_pack("{s:s,s:O?}", "name", swept->key->text, "match", match));
	else if (l->mode == SWEEP_PACKET)
		json_object_set_new(l->doc, "packet", json_deep_copy(l->packet));
	json_decref(match);
}

/* What waits for completions waits for the transfer; what else an expectation says is about the fault. */
static bool expect_waits(json_t *out)
{
	static const char *const kept[] = { "do", "line", "col", "at", "of", "wc", "recv_wc", "within" };
	const char *key;
	json_t *value;
	void *next;

	if (!json_object_get(out, "wc") && !json_object_get(out, "recv_wc"))
		return false;
	json_object_foreach_safe(out, next, key, value)
	{
		bool keep = false;

		for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
			keep |= !strcmp(kept[i], key);
		if (!keep)
			json_object_del(out, key);
	}
	return true;
}

static bool clears_more(struct loader *l, json_t *out)
{
	json_t *names = json_object_get(out, "arg");

	for (size_t i = json_array_size(names); i-- > 0;)
		if (json_bool(json_object_get(l->labels, json_string_value(json_array_get(names, i))), "gone", false))
			json_array_remove(names, i);
	return json_array_size(names) > 0;
}

static bool in_first_pass(struct loader *l, json_t *out)
{
	const char *what = json_str(out, "do");

	if (l->posted && (!strcmp(what, "recover") || !strcmp(what, "traffic")))
		l->over = true;
	if (l->over || !strcmp(what, "allow"))
		return false;
	if (!strcmp(what, "clear"))
		return clears_more(l, out);
	if (l->touched)
		return false;
	if (!strcmp(what, "post"))
		l->posted = true;
	if (!strcmp(what, "expect"))
		return expect_waits(out);
	return !json_object_get(out, "steps") || json_array_size(json_object_get(out, "steps")) > 0;
}

json_t *packets_step(struct loader *l, json_t *out)
{
	const char *name = json_str(out, "as");

	if (in_first_pass(l, out))
		return out;
	if (name)
		json_object_set_new(json_object_get(l->labels, name), "gone", json_true());
	json_decref(out);
	return NULL;
}
