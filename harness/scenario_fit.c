/* SPDX-License-Identifier: MIT */
#include "scenario_loader.h"

#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "attr.h"
#include "json.h"

static const struct ynode *key_of(const struct ynode *map, const char *name)
{
	const struct ynode *kid = ynode_get(map, name);

	return kid ? kid->key : ynode_place(map);
}

/* The first QP of these ends that is of another type than `type`, or of it. */
static bool find_type(struct loader *l, const json_t *ends, int type, bool of_it, struct end_walk *ret)
{
	size_t i;
	json_t *end;

	json_array_foreach(ends, i, end) {
		end_walk_begin(ret, l, json_string_value(end));
		while (end_walk_next(ret))
			if ((file_qp_type(l, ret->pair, ret->agent) == type) == of_it)
				return true;
	}
	return false;
}

static const char *type_of(struct loader *l, const struct end_walk *w)
{
	return name_of(&names_qp_type, file_qp_type(l, w->pair, w->agent));
}

/* A call that may be refused may be as wrong as the author likes. */
static bool has_to_succeed(const json_t *out)
{
	const json_t *returns = json_object_get(out, "returns");

	return !returns || (json_array_size(returns) == 1 && json_array_has(returns, "0"));
}

/* A step about what UD alone has. */
static void want_ud(struct loader *l, const struct ynode *key, const json_t *ends)
{
	struct end_walk w;

	if (find_type(l, ends, IBV_QPT_UD, false, &w))
		complain(l, key, "`qp: { type: UD }`", "`%s` is of UD: the QP of `%s` is %s", key->text, w.agent, type_of(l, &w));
}

/* What is not named here stands beside any operation. */
static const struct {
	const char *key, *ops;
} takers[] = {
	{ "compare", "CMP_AND_SWP" },
	{ "swap", "CMP_AND_SWP" },
	{ "add", "FETCH_AND_ADD" },
	{ "imm", "SEND_WITH_IMM, WRITE_WITH_IMM" },
	{ "mw", "BIND_MW, LOCAL_INV, SEND_WITH_INV" },
	{ "to", "WRITE, WRITE_WITH_IMM, READ, CMP_AND_SWP, FETCH_AND_ADD" },
	{ "addr", "WRITE, WRITE_WITH_IMM, READ, CMP_AND_SWP, FETCH_AND_ADD" },
	{ "rkey", "WRITE, WRITE_WITH_IMM, READ, CMP_AND_SWP, FETCH_AND_ADD, BIND_MW, LOCAL_INV, SEND_WITH_INV" },
};

static bool in_list(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
		if ((at == list || at[-1] == ' ') && (at[len] == ',' || !at[len]))
			return true;
	return false;
}

/* A window is bound and invalidated by its own end, and invalidated by the peer's SEND. */
static void fit_window(struct loader *l, const struct ynode *map, const json_t *out, const char *op, const json_t *ends)
{
	const char *mw = json_str(out, "mw"), *at = json_str(json_object_get(l->objects, mw ? mw : ""), "at");
	bool own = strcmp(op, "SEND_WITH_INV") != 0;
	size_t i;
	json_t *end;

	if (!mw && !json_object_get(out, "rkey")) {
		complain(l, key_of(map, "op"), "`mw: NAME` of the top level `mw:`", "`%s` of which window?", op);
		return;
	}
	json_array_foreach(ends, i, end) {
		struct end_walk w;

		end_walk_begin(&w, l, json_string_value(end));
		while (at && end_walk_next(&w)) {
			const json_t *peers = json_object_get(w.pair, "ends");

			if (own ? !strcmp(w.agent, at) : strcmp(w.agent, at) && json_array_has(peers, at))
				continue;
			complain(l, ynode_get(map, "mw"),
				 own ? "the end that has the window opens and closes it"
				     : "the peer of the end that has the window sends it",
				 "the window `%s` is at `%s`: `%s` cannot `%s` it", mw, at, w.agent, op);
			return;
		}
	}
}

/* One request: a post, or a member of its list. */
static void fit_request(struct loader *l, const struct ynode *map, const json_t *out, const char *op, const json_t *ends)
{
	static const char *const ud[] = { "ah", "qkey", "qpn" };
	const char *ah = json_str(out, "ah"), *at = json_str(json_object_get(l->objects, ah ? ah : ""), "at");
	char hint[160];
	struct end_walk w;

	for (size_t i = 0; i < sizeof(takers) / sizeof(takers[0]); i++)
		if (json_object_get(out, takers[i].key) && !in_list(takers[i].ops, op)) {
			snprintf(hint, sizeof(hint), "it is of %s", takers[i].ops);
			complain(l, key_of(map, takers[i].key), hint, "`%s` takes no `%s`", op, takers[i].key);
		}
	for (size_t i = 0; i < sizeof(ud) / sizeof(ud[0]); i++)
		if (json_object_get(out, ud[i]))
			want_ud(l, key_of(map, ud[i]), ends);
	fit_xrc_request(l, map, out, ends);
	if (in_list("BIND_MW, LOCAL_INV, SEND_WITH_INV", op))
		fit_window(l, map, out, op, ends);
	for (size_t i = 0; at && i < json_array_size(ends); i++) {
		end_walk_begin(&w, l, json_string_value(json_array_get(ends, i)));
		while (end_walk_next(&w))
			if (strcmp(w.agent, at))
				complain(l, ynode_get(map, "ah"), "each end sends by handles of its own",
					 "the handle `%s` is at `%s`: `%s` cannot send by it", ah, at, w.agent);
	}
}

static void fit_bad_wr(struct loader *l, const struct ynode *map, const json_t *out)
{
	const json_t *bad = json_object_get(out, "bad_wr"), *chain = json_object_get(out, "chain");
	const json_t *count = json_object_get(out, "count");
	int64_t n = json_is_array(chain) ? (int64_t)json_array_size(chain) : json_int(out, "count", 1);

	if (!bad)
		return;
	if (has_to_succeed(out))
		complain(l, key_of(map, "bad_wr"), "`returns: EINVAL`", "`bad_wr` of a list that is not refused");
	else if (json_integer_value(bad) >= n && (!count || json_is_integer(count)))
		complain(l, ynode_get(map, "bad_wr"), "they are counted from 0", "this list has %lld request%s", (long long)n,
			 n == 1 ? "" : "s");
}

void fit_post(struct loader *l, const struct ynode *map, const json_t *out)
{
	const char *op = json_str(out, "op"), *own;
	const json_t *chain = json_object_get(out, "chain"), *ends = json_object_get(out, "at");
	struct ynode *list = ynode_get(map, "chain");
	size_t i;
	json_t *member;

	fit_bad_wr(l, map, out);
	fit_xrc_queue(l, map, out, false);
	if (!json_is_array(chain)) {
		fit_request(l, map, out, op, ends);
		return;
	}
	list = sweep_resolve(l, list);
	json_array_foreach(chain, i, member) {
		const struct ynode *node = list && i < list->n ? sweep_resolve(l, list->kids[i]) : NULL;

		own = json_str(member, "op") ? json_str(member, "op") : op;
		if (node && own)
			fit_request(l, node, member, own, ends);
	}
}

/* Whether any move of this type takes a bit of the mask; a type that the table does not have takes all. */
bool type_takes(int type, int mask)
{
	int all = 0;

	for (size_t i = 0; i < transition_table_n; i++)
		if (transition_table[i].type == type)
			all |= transition_table[i].required | transition_table[i].optional;
	return !mask || !all || all & mask;
}

/* An attribute or a bit that no move of its type takes is refused by every device. */
static void fit_mask(struct loader *l, const struct ynode *where, const json_t *ends, int mask)
{
	size_t i;
	json_t *end;

	json_array_foreach(ends, i, end) {
		struct end_walk w;

		end_walk_begin(&w, l, json_string_value(end));
		while (end_walk_next(&w)) {
			if (type_takes(file_qp_type(l, w.pair, w.agent), mask))
				continue;
			complain(l, where, "`returns: EINVAL` says that it is to be refused",
				 "no move of a QP of type %s takes `%s`", type_of(l, &w), where->text);
			return;
		}
	}
}

void fit_modify(struct loader *l, const struct ynode *map, const json_t *out)
{
	const json_t *ends = json_object_get(out, "at"), *add = json_object_get(out, "add");
	struct ynode *set = ynode_get(map, "set"), *bits = ynode_get(map, "add");
	const char *name, *to = json_str(out, "to");
	json_t *value;
	size_t i;

	if (!has_to_succeed(out))
		return;
	if (to && !strcmp(to, "SQE") && !json_object_get(out, "mask"))
		complain(l, ynode_get(map, "to"), "`returns: EINVAL` says that it is to be refused",
			 "no move leads to SQE: an error of a send does");
	set = set ? sweep_resolve(l, set) : NULL;
	bits = bits ? sweep_resolve(l, bits) : NULL;
	json_object_foreach(json_object_get(out, "set"), name, value)
		if (attr_find(name) && set && ynode_get(set, name))
			fit_mask(l, ynode_get(set, name)->key, ends, attr_find(name)->mask);
	json_array_foreach(add, i, value) {
		const struct name *bit = name_find(&names_attr_mask, json_string_value(value));
		struct ynode *node = bits && bits->kind == YNODE_LIST && i < bits->n ? bits->kids[i] : bits;

		if (bit && node && (node = sweep_resolve(l, node)))
			fit_mask(l, node, ends, bit->value);
	}
}

void fit_group(struct loader *l, const struct ynode *map, const json_t *out)
{
	struct end_walk w;

	if (has_to_succeed(out) && find_type(l, json_object_get(out, "at"), IBV_QPT_UD, false, &w))
		complain(l, ynode_get(map, "at"), "`qp: { type: UD }`, or `returns: EINVAL`",
			 "only UD QPs join groups: that of `%s` is %s", w.agent, type_of(l, &w));
}

const char *file_srq_of(struct loader *l, const struct end_walk *of)
{
	const char *name;
	json_t *srq, *end;
	size_t i;

	json_object_foreach(json_object_get(l->doc, "srq"), name, srq)
		json_array_foreach(json_object_get(srq, "used_by"), i, end) {
			struct end_walk w;

			end_walk_begin(&w, l, json_string_value(end));
			while (end_walk_next(&w))
				if (w.pair == of->pair && !strcmp(w.agent, of->agent) && json_has(srq, "at", w.agent))
					return name;
		}
	return NULL;
}

void fit_post_recv(struct loader *l, const struct ynode *map, const json_t *out)
{
	char hint[GRAMMAR_MAX_NAME + 16];
	size_t i;
	json_t *end;

	fit_xrc_queue(l, map, out, true);
	json_array_foreach(json_object_get(out, "at"), i, end) {
		struct end_walk w;

		end_walk_begin(&w, l, json_string_value(end));
		while (end_walk_next(&w)) {
			const char *srq = file_srq_of(l, &w);

			if (!srq)
				continue;
			snprintf(hint, sizeof(hint), "`at: srq.%s`", srq);
			complain(l, ynode_get(map, "at"), hint, "`%s` has no receive queue of its own", json_string_value(end));
			return;
		}
	}
}

void fit_connect(struct loader *l, const struct ynode *map, const json_t *out)
{
	const json_t *pairs = json_object_get(out, "pair");
	struct end_walk w;

	fit_xrc_connect(l, map, pairs);
	if (!json_has(out, "by", "cm"))
		return;
	end_walk_begin(&w, l, "*");
	while (end_walk_next(&w)) {
		if (pairs && !json_array_has(pairs, json_object_iter_key(w.iter)) && !json_array_has(pairs, "*"))
			continue;
		if (file_qp_type(l, w.pair, w.agent) != IBV_QPT_UD && !is_xrc_type(file_qp_type(l, w.pair, w.agent)))
			continue;
		complain(l, ynode_get(map, "by"), "`by: verbs`", "rdma_cm connects QPs of type RC and UC, `%s.%s` is %s",
			 json_object_iter_key(w.iter), w.agent, type_of(l, &w));
		return;
	}
}

static void fit_path(struct loader *l, const struct ynode *map, const char *path, const struct end_walk *w)
{
	int type = file_qp_type(l, w->pair, w->agent);

	if (!strcmp(path, "sq") && (type == IBV_QPT_RC || is_xrc_type(type)))
		complain(l, ynode_get(map, "path"), "`path: reset`, `path: recreate`",
			 "`sq` leads out of SQE, a state that QPs of type %s do not have", type_of(l, w));
}

void fit_lossy(struct loader *l, const struct ynode *map, const json_t *out)
{
	const json_t *pairs = json_object_get(out, "pair");
	struct end_walk w;

	end_walk_begin(&w, l, "*");
	while (end_walk_next(&w)) {
		if (pairs && !json_array_has(pairs, json_object_iter_key(w.iter)) && !json_array_has(pairs, "*"))
			continue;
		if (file_qp_unanswered(l, w.pair, w.agent))
			continue;
		complain(l, key_of(map, "lossy"), "`qp: { type: UC }`",
			 "on %s nothing is lost while the connection lives: `lossy` is of UC and UD", type_of(l, &w));
		return;
	}
}

/* What is fixed when a QP is created changes with a new one alone; in SQD it takes what a move from SQD to SQD takes. */
static void fit_new_qp(struct loader *l, const struct ynode *map, const json_t *block, const char *path, int type)
{
	static const char *const same_qp[] = { "reset", "sq", "sqd" };
	const struct transition *again = strcmp(path, "sqd") ? NULL : transition_find(type, IBV_QPS_SQD, IBV_QPS_SQD);
	const char *key;
	json_t *value;
	bool same = false;

	for (size_t i = 0; i < sizeof(same_qp) / sizeof(same_qp[0]); i++)
		same |= !strcmp(path, same_qp[i]);
	json_object_foreach((json_t *)block, key, value) {
		const struct attr *a = attr_find(key);

		if (json_is_object(value) && !json_object_get(value, "ref"))
			fit_new_qp(l, ynode_get(map, key), value, path, type);
		else if (!strcmp(key, "type"))
			complain(l, key_of(map, key), "the top level `qp: { type: UC }`",
				 "a recovery makes QPs of the type that they had");
		else if (!strcmp(key, "sq_psn"))
			complain(l, key_of(map, key), "the top level `qp: { sq_psn: 7 }` is that of the first life",
				 "a new life has PSNs of its own");
		else if (same && a && a->kind != ATTR_MODIFY)
			complain(l, key_of(map, key), "`path: recreate`",
				 "`%s` is fixed when a QP is created, and `%s` keeps the QP", key, path);
		else if (again && a && a->mask && type_takes(type, a->mask) && !((again->required | again->optional) & a->mask))
			complain(l, key_of(map, key), "`path: reset`", "a drained send queue takes no `%s`", key);
	}
}

static bool is_cq(const struct loader *l, const char *name)
{
	const char *dot = strrchr(name, '.');

	return json_object_get(json_object_get(l->doc, "cq"), name) || (dot && (!strcmp(dot, ".scq") || !strcmp(dot, ".rcq")));
}

/* What QPs hold: an end that does not act keeps it. A region is held by none. */
static bool is_held(const struct loader *l, const char *name)
{
	return is_cq(l, name) || json_object_get(json_object_get(l->doc, "srq"), name);
}

/* The ends of an object: by the name of what is made as needed its own, else all of its agent. */
static bool is_of_end(const struct loader *l, const char *name, const struct end_walk *of)
{
	const char *at = json_str(json_object_get(l->objects, name), "at"), *dot = strrchr(name, '.');
	char end[3 * GRAMMAR_MAX_NAME];
	struct end_walk w;

	if (at || !dot)
		return at && !strcmp(at, of->agent);
	snprintf(end, sizeof(end), "%.*s", (int)(dot - name), name);
	end_walk_begin(&w, l, end);
	while (end_walk_next(&w))
		if (w.pair == of->pair && !strcmp(w.agent, of->agent))
			return true;
	return false;
}

/* Whether one of these ends acts in a recovery that holds the object. */
static bool is_of_one_that_acts(const struct loader *l, const char *name, const json_t *ends)
{
	size_t i;
	json_t *end;

	json_array_foreach(ends, i, end) {
		struct end_walk w;

		end_walk_begin(&w, l, json_string_value(end));
		while (end_walk_next(&w))
			if (is_of_end(l, name, &w))
				return true;
	}
	return false;
}

static void fit_replace(struct loader *l, const struct ynode *map, const json_t *out, const char *path)
{
	const json_t *names = json_object_get(out, "replace"), *ends = json_object_get(out, "ends");
	size_t i;
	json_t *name;

	if (json_array_size(names) && (!strcmp(path, "sq") || !strcmp(path, "sqd"))) {
		complain(l, key_of(map, "replace"), "`path: recreate`", "`%s` keeps the connection, and renews nothing", path);
		return;
	}
	/* A wrong end in such a name has been complained about, and means none. */
	json_array_foreach(names, i, name)
		if (ends && !l->n_errors && is_held(l, json_string_value(name)) &&
		    !is_of_one_that_acts(l, json_string_value(name), ends))
			complain(l, key_of(map, "replace"), "`ends:` with its end, or without `ends:`",
				 "`%s` belongs to no end that acts here: what uses it keeps it", json_string_value(name));
		else if (!strcmp(path, "reset") && is_cq(l, json_string_value(name)))
			complain(l, key_of(map, "replace"), "`path: recreate`",
				 "`reset` keeps the QPs, and cannot replace the CQ `%s` that they use", json_string_value(name));
}

void fit_recover(struct loader *l, const struct ynode *map, const json_t *out)
{
	const char *path = json_str(out, "path");
	const json_t *pairs = json_object_get(out, "pair");
	struct end_walk w;
	size_t i;
	json_t *pair;

	l->cm |= !strcmp(path, "cm");
	fit_block(l, ynode_get(map, "qp"));
	end_walk_begin(&w, l, "*");
	if (end_walk_next(&w)) {
		fit_new_qp(l, ynode_get(map, "qp"), json_object_get(out, "qp"), path, file_qp_type(l, w.pair, w.agent));
		if (!pairs)
			fit_path(l, map, path, &w);
	}
	fit_replace(l, map, out, path);
	json_array_foreach(pairs, i, pair) {
		char end[2 * GRAMMAR_MAX_NAME + 8];
		const char *name = json_string_value(pair);
		const char *first = json_string_value(json_array_get(json_object_get(json_object_get(l->pairs, name), "ends"), 0));

		if (!first)
			continue;
		snprintf(end, sizeof(end), "%s.%s", name, first);
		end_walk_begin(&w, l, end);
		if (end_walk_next(&w))
			fit_path(l, map, path, &w);
	}
}

/* What can be said of a thing that is no QP. */
static const struct {
	const char *prefix, *what, *subjects;
} things[] = {
	{ "srq.", "an SRQ", "event, ledger, recv_wc" },
	{ "cq.", "a CQ", "event" },
	{ "dev.", "a device", "event, counter" },
};

static void fit_things(struct loader *l, const struct ynode *map, const json_t *out)
{
	static const char *const subjects[] = { "wc", "recv_wc", "qp", "attr", "event", "cm", "counter", "ledger", "grh" };
	size_t i;
	json_t *end;
	char hint[64];

	json_array_foreach(json_object_get(out, "at"), i, end)
		for (size_t t = 0; t < sizeof(things) / sizeof(things[0]); t++) {
			if (strncmp(json_string_value(end), things[t].prefix, strlen(things[t].prefix)))
				continue;
			snprintf(hint, sizeof(hint), "allowed: %s", things[t].subjects);
			for (size_t k = 0; k < sizeof(subjects) / sizeof(subjects[0]); k++)
				if (json_object_get(out, subjects[k]) && !in_list(things[t].subjects, subjects[k]))
					complain(l, key_of(map, subjects[k]), hint, "%s has no `%s`", things[t].what, subjects[k]);
		}
}

/* How the names of the objects that raise an event begin; those of ends have no beginning of their own. */
static const char *raised_by(int event)
{
	static const char *const prefixes[] = { [EVENT_OF_DEV] = "dev.",
						[EVENT_OF_PORT] = "dev.",
						[EVENT_OF_QP] = "",
						[EVENT_OF_CQ] = "cq.",
						[EVENT_OF_SRQ] = "srq." };

	return prefixes[event_subject(event)];
}

static bool end_has_srq(const struct loader *l)
{
	return json_object_size(json_object_get(l->doc, "srq")) > 0;
}

/* An end stands for its queues and its device too; srq.x, cq.x and dev.x for themselves. */
static void fit_event(struct loader *l, const struct ynode *map, const char *end, const char *text)
{
	const struct name *event = name_find(&names_event, text);
	const char *by = event ? raised_by(event->value) : "", *own = "";
	char hint[80];

	for (size_t t = 0; t < sizeof(things) / sizeof(things[0]); t++)
		if (!strncmp(end, things[t].prefix, strlen(things[t].prefix)))
			own = things[t].prefix;
	if (!event || !strcmp(by, own) || (!*own && (strcmp(by, "srq.") || end_has_srq(l))))
		return;
	snprintf(hint, sizeof(hint), *by ? "`at: %sNAME`" : "`at: a`, the end of a QP", by);
	complain(l, ynode_get(map, "event"), hint, "`%s` does not come from `%s`", text, end);
}

static void fit_events(struct loader *l, const struct ynode *map, const json_t *out)
{
	const json_t *all = json_object_get(json_object_get(out, "event"), "all");
	size_t i, k;
	json_t *end, *event;

	json_array_foreach(json_object_get(out, "at"), i, end)
		json_array_foreach(all, k, event)
			fit_event(l, map, json_string_value(end), json_string_value(event));
}

/* The first error of a send takes an RC QP to ERR at once. */
static void fit_sqe(struct loader *l, const struct ynode *map, const json_t *out)
{
	size_t i;
	json_t *end;

	json_array_foreach(json_object_get(out, "at"), i, end) {
		struct end_walk w;

		end_walk_begin(&w, l, json_string_value(end));
		while (json_has(out, "qp", "SQE") && end_walk_next(&w)) {
			if (file_qp_unanswered(l, w.pair, w.agent))
				continue;
			complain(l, ynode_get(map, "qp"), "`qp: ERR`", "SQE is a state of UC and UD: the QP of `%s` is %s", w.agent,
				 type_of(l, &w));
			return;
		}
	}
}

void fit_expect(struct loader *l, const struct ynode *map, const json_t *out)
{
	const char *of = json_str(out, "of");
	unsigned kind = (unsigned)json_int(json_object_get(l->labels, of ? of : ""), "kind", 0);

	fit_things(l, map, out);
	fit_events(l, map, out);
	fit_sqe(l, map, out);
	fit_block(l, ynode_get(map, "attr"));
	if (json_object_get(json_object_get(out, "cm"), "all") && !l->cm)
		complain(l, key_of(map, "cm"), "`connect: { by: cm }`", "no earlier step connects by rdma_cm");
	if (json_object_get(out, "grh"))
		want_ud(l, key_of(map, "grh"), json_object_get(out, "at"));
	if (json_object_get(out, "phase") && !(kind & G_OF_RECOVER))
		complain(l, key_of(map, "phase"), "`of: NAME` of a `recover`", "`phase` of which recovery?");
}
