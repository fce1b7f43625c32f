/* SPDX-License-Identifier: MIT */
#include "scenario_loader.h"

#include <ctype.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attr.h"
#include "json.h"

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyz0123456789_-"

static bool pair_has(const json_t *pair, const char *agent)
{
	return json_array_has(json_object_get(pair, "ends"), agent);
}

unsigned agent_qps(const struct loader *l, const char *agent)
{
	const char *name;
	json_t *pair;
	unsigned n = 0;

	json_object_foreach(l->pairs, name, pair)
		if (pair_has(pair, agent))
			n += (unsigned)json_int(pair, "count", 1);
	return n;
}

/* `PAIR.AGENT` of every pair and every agent with one QP. */
static const char *ends_hint(const struct loader *l, const char *text, char *buf, size_t size)
{
	static char made[24][2 * GRAMMAR_MAX_NAME + 8];
	struct word_list w = { .n = 0 };
	const char *name;
	json_t *pair, *value;
	size_t n = 0, i;

	json_object_foreach(l->agents, name, value)
		if (agent_qps(l, name) == 1)
			words_add(&w, name);
	json_object_foreach(l->pairs, name, pair)
		json_array_foreach(json_object_get(pair, "ends"), i, value)
			if (n < sizeof(made) / sizeof(made[0])) {
				snprintf(made[n], sizeof(made[n]), "%s%s.%s", name, json_int(pair, "count", 1) > 1 ? "[*]" : "",
					 json_string_value(value));
				words_add(&w, made[n++]);
			}
	words_add(&w, "*");
	return words_hint(&w, text, buf, size);
}

struct end_reader {
	struct loader *l;
	const struct ynode *n;
	const char *text;
	size_t off; /* of text in the node */
	unsigned flags;
};

static bool end_wrong(const struct end_reader *r, size_t off, size_t len, const char *why)
{
	char hint[HINT_SIZE];

	complain_part(r->l, r->n, r->off + off, len ? len : 1, ends_hint(r->l, r->text, hint, sizeof(hint)), "`%s`: %s", r->text,
		      why);
	return false;
}

static bool copy_name(char *buf, const char *text, size_t len)
{
	if (!len || len > GRAMMAR_MAX_NAME)
		return false;
	memcpy(buf, text, len);
	buf[len] = '\0';
	return true;
}

/* `[7]` or `[*]` behind a pair's name. */
static bool read_index(const struct end_reader *r, const char *open, const char *stop, struct end_name *e)
{
	size_t digits = strspn(open + 1, "0123456789");

	if (open + 3 == stop && open[1] == '*' && open[2] == ']') {
		e->index = -2;
		return true;
	}
	if (!digits || digits > 6 || open + 2 + digits != stop || open[1 + digits] != ']')
		return end_wrong(r, (size_t)(open - r->text), (size_t)(stop - open), "an index is `[7]` or `[*]`");
	e->index = (int)strtol(open + 1, NULL, 10);
	return true;
}

static bool check_index(const struct end_reader *r, const struct end_name *e)
{
	const json_t *pair = json_object_get(r->l->pairs, e->pair);
	long count = (long)json_int(pair, "count", 1);
	char why[320];

	if (e->index >= count) {
		snprintf(why, sizeof(why), "pair `%s` has %ld QP%s at each end, counted from 0", e->pair, count,
			 count == 1 ? "" : "s");
		return end_wrong(r, 0, strlen(r->text), why);
	}
	if (e->index == -1 && count > 1) {
		snprintf(why, sizeof(why), "pair `%s` has %ld QPs at each end: say which, as `%s[0].%s` or `%s[*].%s`", e->pair,
			 count, e->pair, e->agent, e->pair, e->agent);
		return end_wrong(r, 0, strlen(r->text), why);
	}
	return true;
}

static bool check_agent(const struct end_reader *r, const struct end_name *e)
{
	unsigned qps = agent_qps(r->l, e->agent);
	char why[320];

	if (!qps) {
		snprintf(why, sizeof(why), "agent `%s` is in no pair", e->agent);
		return end_wrong(r, 0, strlen(r->text), why);
	}
	if (qps > 1 && !(r->flags & G_SEVERAL)) {
		snprintf(why, sizeof(why), "agent `%s` has %u QPs: say which, as PAIR.%s or `*.%s`", e->agent, qps, e->agent,
			 e->agent);
		return end_wrong(r, 0, strlen(r->text), why);
	}
	return true;
}

/* srq.x, cq.x, dev.a. */
static bool read_thing(const struct end_reader *r, const char *first, const char *rest, struct end_name *e)
{
	struct word_list w = { .n = 0 };
	const char *name;
	json_t *o;
	char hint[HINT_SIZE];

	if (!(r->flags & G_THINGS))
		return end_wrong(r, 0, strlen(r->text), "a QP is wanted here");
	snprintf(e->thing, sizeof(e->thing), "%s", first);
	if (!strcmp(first, "dev")) {
		if (json_object_get(r->l->agents, rest))
			return true;
		words_add_object(&w, r->l->agents);
	} else {
		json_object_foreach(r->l->objects, name, o) {
			if (strcmp(json_str(o, "kind"), first))
				continue;
			if (!strcmp(name, rest))
				return true;
			words_add(&w, name);
		}
	}
	complain_part(r->l, r->n, r->off + strlen(first) + 1, strlen(rest) ? strlen(rest) : 1,
		      words_hint(&w, rest, hint, sizeof(hint)), "there is no %s `%s`", strcmp(first, "dev") ? first : "agent",
		      rest);
	return false;
}

static bool is_queue(const char *text, size_t len)
{
	return len == 4 && (!strncmp(text, "send", 4) || !strncmp(text, "recv", 4));
}

static bool read_second(const struct end_reader *r, const char *second, size_t len, struct end_name *e)
{
	const json_t *pair = json_object_get(r->l->pairs, e->pair);
	char why[320];

	if (!copy_name(e->agent, second, len) || !json_object_get(r->l->agents, e->agent))
		return end_wrong(r, (size_t)(second - r->text), len, "there is no such agent");
	if (!pair)
		return check_agent(&(struct end_reader){ r->l, r->n, r->text, r->off, r->flags | G_SEVERAL }, e);
	if (pair_has(pair, e->agent))
		return check_index(r, e);
	snprintf(why, sizeof(why), "agent `%s` is no end of pair `%s`", e->agent, e->pair);
	return end_wrong(r, (size_t)(second - r->text), len, why);
}

/* `p[7].a.recv` without its life. stop: end of the text that is read. */
static bool read_parts(const struct end_reader *r, const char *stop, struct end_name *e)
{
	const char *text = r->text, *dot = memchr(text, '.', (size_t)(stop - text));
	const char *first_stop = dot ? dot : stop, *open = memchr(text, '[', (size_t)(first_stop - text));
	const char *second = dot ? dot + 1 : NULL, *second_stop = stop, *queue = NULL;
	size_t name_len = (size_t)((open ? open : first_stop) - text);
	char first[GRAMMAR_MAX_NAME + 1];
	bool is_pair, is_agent;

	if (!copy_name(first, text, name_len))
		return end_wrong(r, 0, strlen(text), "this is no end");
	if (second && is_queue(second, (size_t)(stop - second))) {
		queue = second;
		second = NULL;
	} else if (second) {
		const char *last = memrchr(second, '.', (size_t)(stop - second));

		if (last && is_queue(last + 1, (size_t)(stop - last - 1))) {
			queue = last + 1;
			second_stop = last;
		}
	}
	e->queue = queue != NULL;
	if (queue && !(r->flags & G_QUEUES))
		return end_wrong(r, (size_t)(queue - text), 4, "an end is wanted here, not one of its queues");
	if (open && !read_index(r, open, first_stop, e))
		return false;
	if (!strcmp(first, "*") && !open) {
		snprintf(e->pair, sizeof(e->pair), "*");
		return second ? read_second(r, second, (size_t)(second_stop - second), e) : true;
	}
	is_pair = json_object_get(r->l->pairs, first) != NULL;
	is_agent = json_object_get(r->l->agents, first) != NULL;
	if (!is_pair && !is_agent)
		return end_wrong(r, 0, name_len, second ? "there is no such pair" : "there is no such end");
	if (is_agent && !second && !open) {
		snprintf(e->agent, sizeof(e->agent), "%s", first);
		return check_agent(r, e);
	}
	if (!is_pair)
		return end_wrong(r, 0, name_len, "this is an agent; an end is PAIR.AGENT, a queue AGENT.send or AGENT.recv");
	if (!second)
		return end_wrong(r, 0, name_len, "this is a pair; an end is PAIR.AGENT");
	snprintf(e->pair, sizeof(e->pair), "%s", first);
	return read_second(r, second, (size_t)(second_stop - second), e);
}

static bool read_end(const struct end_reader *r, struct end_name *e)
{
	static const char *const things[] = { "srq", "cq", "dev" };
	const char *at = strchr(r->text, '@'), *stop = at ? at : r->text + strlen(r->text);

	*e = (struct end_name){ .index = -1 };
	if (at) {
		size_t digits = strspn(at + 1, "0123456789");

		if (!(r->flags & G_LIVES))
			return end_wrong(r, (size_t)(at - r->text), strlen(at), "an earlier life cannot act any more");
		if (!digits || digits > 4 || at[1 + digits] || at[1] == '0')
			return end_wrong(r, (size_t)(at - r->text), strlen(at), "a life is `@1`, `@2`...");
	}
	for (size_t i = 0; i < sizeof(things) / sizeof(things[0]); i++) {
		size_t len = strlen(things[i]);

		if (!strncmp(r->text, things[i], len) && r->text[len] == '.' && !at)
			return read_thing(r, things[i], r->text + len + 1, e);
	}
	return read_parts(r, stop, e);
}

static json_t *one_end(struct loader *l, struct ynode *n, const struct gkey *k)
{
	char shown[80];
	struct end_name e;

	if (n->kind != YNODE_SCALAR || node_is_null(n) || (n->plain && (!strcmp(n->text, "true") || !strcmp(n->text, "false")))) {
		char hint[HINT_SIZE];

		complain(l, n, ends_hint(l, NULL, hint, sizeof(hint)), "%s is wanted, found %s",
			 k->type == G_END ? "one end" : "an end", node_shown(n, shown, sizeof(shown)));
		return NULL;
	}
	if (!read_end(&(struct end_reader){ l, n, n->text, 0, k->flags }, &e))
		return NULL;
	return json_string(n->text);
}

json_t *parse_end(struct loader *l, struct ynode *n, const struct gkey *k)
{
	if (n->kind == YNODE_SCALAR && strchr(n->text, '*')) {
		complain(l, n, NULL, "one end is wanted, `%s` is several", n->text);
		return NULL;
	}
	return one_end(l, n, k);
}

/* The one QP that an end stands for, or false. */
static bool only_end(const struct loader *l, const char *text, struct end_walk *ret)
{
	struct end_walk w;

	if (strpbrk(text, "*@"))
		return false;
	end_walk_begin(&w, l, text);
	*ret = w;
	if (w.name.queue || !end_walk_next(ret))
		return false;
	w = *ret;
	return !end_walk_next(&w);
}

/* `a` and `p.a` are one QP, written in two ways. */
static bool is_same_end(const struct loader *l, const char *a, const char *b)
{
	struct end_walk x, y;

	if (!strcmp(a, b))
		return true;
	return only_end(l, a, &x) && only_end(l, b, &y) && x.pair == y.pair && !strcmp(x.agent, y.agent) &&
	       x.name.index == y.name.index;
}

#define COMPARED_MAX 64 /* a hostile list would cost its square */

static void refuse_twice(struct loader *l, struct ynode *n, const json_t *ends)
{
	for (size_t i = 1; i < json_array_size(ends) && i < COMPARED_MAX; i++) {
		const char *end = json_string_value(json_array_get(ends, i));

		for (size_t k = 0; k < i; k++) {
			const char *other = json_string_value(json_array_get(ends, k));

			if (!is_same_end(l, end, other))
				continue;
			complain(l, n->kind == YNODE_LIST && i < n->n ? n->kids[i] : n, NULL,
				 strcmp(end, other) ? "`%s` is there twice: it is `%s`" : "`%s` is there twice", end, other);
			return;
		}
	}
}

json_t *parse_ends(struct loader *l, struct ynode *n, const struct gkey *k)
{
	size_t errors = l->n_errors;
	json_t *ends = parse_list(l, n, k, "an end", one_end);

	/* Only what is right can be compared. */
	if (ends && l->n_errors == errors)
		refuse_twice(l, n, ends);
	return ends;
}

static json_t *one_pair(struct loader *l, struct ynode *n, const struct gkey *k)
{
	const char *text = scalar_text(l, n, "a pair"), *open;
	char name[GRAMMAR_MAX_NAME + 1], hint[HINT_SIZE];
	struct word_list w = { .n = 0 };
	struct end_name e = { .index = -1 };

	(void)k;
	if (!text)
		return NULL;
	if (!strcmp(text, "*"))
		return json_string(text);
	open = strchr(text, '[');
	if (copy_name(name, text, open ? (size_t)(open - text) : strlen(text)) && json_object_get(l->pairs, name)) {
		struct end_reader r = { l, n, text, 0, 0 };
		long count = (long)json_int(json_object_get(l->pairs, name), "count", 1);

		if (open && !read_index(&r, open, text + strlen(text), &e))
			return NULL;
		if (e.index < count)
			return json_string(text);
		complain(l, n, NULL, "pair `%s` has %ld QP%s at each end, counted from 0", name, count, count == 1 ? "" : "s");
		return NULL;
	}
	words_add_object(&w, l->pairs);
	words_add(&w, "\"*\"");
	complain(l, n, words_hint(&w, text, hint, sizeof(hint)), "there is no pair `%s`", text);
	return NULL;
}

json_t *parse_pairs(struct loader *l, struct ynode *n, const struct gkey *k)
{
	return parse_list(l, n, k, "a pair", one_pair);
}

json_t *parse_agent(struct loader *l, struct ynode *n, const struct gkey *k)
{
	struct word_list w = { .n = 0 };
	char hint[HINT_SIZE], shown[80];

	(void)k;
	if (n->kind == YNODE_SCALAR && json_object_get(l->agents, n->text))
		return json_string(n->text);
	words_add_object(&w, l->agents);
	complain(l, n, words_hint(&w, n->kind == YNODE_SCALAR ? n->text : NULL, hint, sizeof(hint)), "%s is no agent",
		 node_shown(n, shown, sizeof(shown)));
	return NULL;
}

json_t *parse_device(struct loader *l, struct ynode *n, const struct gkey *k)
{
	struct word_list w = { .n = 0 };
	char hint[HINT_SIZE], shown[80];
	const char *name;
	json_t *agent;

	(void)k;
	json_object_foreach(l->agents, name, agent)
		words_add(&w, json_str(agent, "device"));
	if (n->kind == YNODE_SCALAR)
		for (size_t i = 0; i < w.n; i++)
			if (!strcmp(w.word[i], n->text))
				return json_string(n->text);
	complain(l, n, words_hint(&w, n->kind == YNODE_SCALAR ? n->text : NULL, hint, sizeof(hint)),
		 "%s is no device that an agent uses", node_shown(n, shown, sizeof(shown)));
	return NULL;
}

static bool is_number_attr(const char *name)
{
	const struct attr *a = attr_find(name);

	return a && (a->kind == ATTR_CAP || (a->kind == ATTR_MODIFY && a->max > 0));
}

static bool ref_property(struct loader *l, const struct ynode *n, size_t off, const char *property, const char *kind)
{
	static const char *const of_cq[] = { "cqe", "depth", NULL }, *const of_srq[] = { "depth", "max_sge", "limit", NULL },
				 *const of_mr[] = { "bytes", NULL };
	struct word_list w = { .n = 0 };
	char hint[HINT_SIZE];

	if (!kind) {
		for (size_t i = 0; i < attr_table_n; i++)
			if (is_number_attr(attr_table[i].name))
				words_add(&w, attr_table[i].name);
	} else {
		words_add_all(&w, !strcmp(kind, "cq") ? of_cq : !strcmp(kind, "srq") ? of_srq : of_mr);
	}
	for (size_t i = 0; i < w.n; i++)
		if (!strcmp(w.word[i], property))
			return true;
	complain_part(l, n, off, strlen(property) ? strlen(property) : 1, words_hint(&w, property, hint, sizeof(hint)),
		      "%s has no value `%s`", kind ? kind : "a QP", property);
	return false;
}

/* Splits `NAME + 16` and gives NAME's length; false when the text has not that form. */
static bool split_sum(const char *text, size_t *ret_len, int64_t *ret_add)
{
	size_t len = strcspn(text, " ");
	const char *p = text + len;
	size_t digits;

	*ret_len = len;
	*ret_add = 0;
	if (!*p)
		return len > 0;
	if (strncmp(p, " + ", 3) && strncmp(p, " - ", 3))
		return false;
	digits = strspn(p + 3, "0123456789");
	if (!digits || digits > 12 || p[3 + digits])
		return false;
	*ret_add = strtoll(p + 3, NULL, 10) * (p[1] == '-' ? -1 : 1);
	return true;
}

json_t *parse_ref(struct loader *l, struct ynode *n, const char *text, size_t off, bool *ret_is_ref)
{
	char head[3 * GRAMMAR_MAX_NAME], name[3 * GRAMMAR_MAX_NAME];
	struct end_name e;
	size_t len;
	int64_t add;
	char *dot;
	const json_t *object;

	*ret_is_ref = false;
	if (!islower((unsigned char)text[0]) || !split_sum(text, &len, &add) || len >= sizeof(head))
		return NULL;
	snprintf(head, sizeof(head), "%.*s", (int)len, text);
	snprintf(name, sizeof(name), "%s", head);
	dot = strrchr(head, '.');
	if (!dot)
		return NULL;
	*ret_is_ref = true;
	*dot++ = '\0';
	object = json_object_get(l->objects, head);
	if (!object) {
		struct end_reader r = { l, n, head, off, 0 };

		if (!read_end(&r, &e))
			return NULL;
		if (e.index == -2 || !strcmp(e.pair, "*")) {
			end_wrong(&r, 0, strlen(head), "one value is wanted, this is several");
			return NULL;
		}
	}
	if (!ref_property(l, n, off + strlen(head) + 1, dot, object ? json_str(object, "kind") : NULL))
		return NULL;
	return json_pack("{s:s,s:I}", "ref", name, "add", (json_int_t)add);
}

/* The nearer goes first: the pair's own for this agent, the pair's, the file's for this agent, the file's. */
const json_t *file_qp_attr(const struct loader *l, const json_t *pair, const char *agent, const char *name)
{
	const json_t *blocks[] = { json_object_get(pair, "qp"), json_object_get(l->doc, "qp") }, *value;

	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		value = json_object_get(json_object_get(blocks[i], agent), name);
		if (!value)
			value = json_object_get(blocks[i], name);
		if (value)
			return value;
	}
	return NULL;
}

int file_qp_type(const struct loader *l, const json_t *pair, const char *agent)
{
	const char *text = json_string_value(file_qp_attr(l, pair, agent, "type"));
	const struct name *type = text ? name_find(&names_qp_type, text) : NULL;
	const char *first = json_string_value(json_array_get(json_object_get(pair, "ends"), 0));

	if (text && !strcmp(text, "XRC") && first && strcmp(first, agent)) /* of a pair the other end */
		return IBV_QPT_XRC_RECV;
	return type ? type->value : IBV_QPT_RC;
}

bool file_qp_unanswered(const struct loader *l, const json_t *pair, const char *agent)
{
	int type = file_qp_type(l, pair, agent);

	return type == IBV_QPT_UC || type == IBV_QPT_UD;
}

void end_walk_begin(struct end_walk *w, const struct loader *l, const char *end)
{
	struct loader copy = *l;
	struct ynode quiet = { .kind = YNODE_SCALAR };
	struct end_reader r = { &copy, &quiet, end, 0, G_QUEUES | G_LIVES | G_SEVERAL };
	bool thing = !strncmp(end, "srq.", 4) || !strncmp(end, "cq.", 3) || !strncmp(end, "dev.", 4);

	*w = (struct end_walk){ .l = l };
	/* Ends that came through parse_ends are known to be right: nothing can be complained about. */
	if (!thing && read_end(&r, &w->name))
		w->iter = json_object_iter(l->pairs);
}

bool end_walk_next(struct end_walk *w)
{
	const char *pair = w->name.pair, *agent = w->name.agent;

	for (; w->iter; w->iter = json_object_iter_next(w->l->pairs, w->iter), w->at = 0) {
		const json_t *ends;

		w->pair = json_object_iter_value(w->iter);
		ends = json_object_get(w->pair, "ends");
		if (*pair && strcmp(pair, "*") && strcmp(pair, json_object_iter_key(w->iter)))
			continue;
		while (w->at < json_array_size(ends)) {
			w->agent = json_string_value(json_array_get(ends, w->at++));
			if (w->agent && (!*agent || !strcmp(agent, w->agent)))
				return true;
		}
	}
	return false;
}

int64_t end_attr(const struct loader *l, const char *end, const char *name, int64_t def)
{
	struct end_walk w;

	end_walk_begin(&w, l, end);
	if (end_walk_next(&w) && json_is_integer(file_qp_attr(l, w.pair, w.agent, name)))
		def = json_integer_value(file_qp_attr(l, w.pair, w.agent, name));
	return def;
}
