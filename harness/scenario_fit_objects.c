/* SPDX-License-Identifier: MIT */
#include "scenario_loader.h"

#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "attr.h"
#include "json.h"

/* One `used_by` of a map of objects, while its ends are looked at. */
struct use {
	const char *kind, *name, *at;
	const struct ynode *node; /* of the end at hand */
	bool alone;               /* an end has one of the kind for each queue */
	json_t *users;            /* "p.a.send": the name of the object that it has */
};

static void take_queue(struct loader *l, const struct use *u, const char *pair, const char *agent, const char *queue)
{
	char end[3 * GRAMMAR_MAX_NAME];
	const char *other;

	snprintf(end, sizeof(end), "%s.%s%s", pair, agent, queue);
	other = json_str(u->users, end);
	if (other && strcmp(other, u->name))
		complain(l, u->node, NULL, "`%s` has the %s `%s` already", end, u->kind, other);
	else if (!other)
		json_object_set_new(u->users, end, json_string(u->name));
}

/* An end of an extended reliable connection may receive from several, each of which is of no other kind of connection. */
static void take_srq(struct loader *l, const struct use *u, const struct end_walk *w)
{
	int type = file_qp_type(l, w->pair, w->agent);
	const char *pair = json_object_iter_key(w->iter);
	char key[2 * GRAMMAR_MAX_NAME];
	const json_t *before;

	if (type == IBV_QPT_XRC_SEND) {
		complain(l, u->node, "the other end receives", "`%s.%s` is XRC_SEND: it receives nothing", pair, w->agent);
		return;
	}
	snprintf(key, sizeof(key), "srq %s", u->name); /* no end is called so */
	before = json_object_get(u->users, key);
	if (before && json_is_true(before) != is_xrc_type(type))
		complain(l, u->node, "another SRQ", "`%s` is of XRC connections or of others: `%s.%s` is %s", u->name, pair,
			 w->agent, name_of(&names_qp_type, type));
	json_object_set_new(u->users, key, json_boolean(is_xrc_type(type)));
	if (!is_xrc_type(type))
		take_queue(l, u, pair, w->agent, "");
}

/* An index behind a pair's name chooses some of many: those are left to the plan. */
static void fit_user(struct loader *l, const struct use *u, const char *end)
{
	bool send = strstr(end, ".send") != NULL, recv = strstr(end, ".recv") != NULL;
	struct end_walk w;

	end_walk_begin(&w, l, end);
	while (end_walk_next(&w)) {
		const char *pair = json_object_iter_key(w.iter);

		if (strcmp(w.agent, u->at)) {
			if (*w.name.agent)
				complain(l, u->node, NULL, "the %s `%s` is at `%s`: `%s` cannot use it", u->kind, u->name, u->at,
					 w.agent);
			continue;
		}
		if (!u->alone || strchr(end, '['))
			continue;
		if (!strcmp(u->kind, "srq")) {
			take_srq(l, u, &w);
			continue;
		}
		if (!recv)
			take_queue(l, u, pair, w.agent, ".send");
		if (!send)
			take_queue(l, u, pair, w.agent, ".recv");
	}
}

static void fit_users(struct loader *l, struct ynode *node, const json_t *object, struct use *u)
{
	struct ynode *list = ynode_get(node, "used_by");
	size_t i;
	json_t *end;

	list = list ? sweep_resolve(l, list) : NULL;
	json_array_foreach(json_object_get(object, "used_by"), i, end) {
		u->node = list && list->kind == YNODE_LIST && i < list->n ? sweep_resolve(l, list->kids[i]) : list;
		if (u->node)
			fit_user(l, u, json_string_value(end));
	}
}

/* A protection domain and a region are of the agent whose objects lie in them. */
static void fit_same_agent(struct loader *l, struct ynode *node, const json_t *object, const char *key, const struct use *u)
{
	const char *name = json_str(object, key), *at = json_str(json_object_get(l->objects, name ? name : ""), "at");

	if (at && strcmp(at, u->at))
		complain(l, ynode_get(node, key), NULL, "`%s` is at `%s`: the %s `%s` at `%s` cannot lie in it", name, at, u->kind,
			 u->name, u->at);
}

static void fit_limit(struct loader *l, struct ynode *node, const json_t *object)
{
	int64_t depth = json_int(object, "depth", -1), limit = json_int(object, "limit", 0);
	char hint[120];

	if (depth < 0 || limit <= depth)
		return;
	snprintf(hint, sizeof(hint), "allowed: 0 to %lld; a `modify` may ask for more, and `returns:` say so", (long long)depth);
	complain(l, ynode_get(node, "limit"), hint, "a limit of %lld: the SRQ holds %lld", (long long)limit, (long long)depth);
}

/* With a size of its own a window may reach beyond its region: that is what a bind is to refuse. */
static void fit_window_offset(struct loader *l, struct ynode *node, const json_t *object)
{
	const char *over = json_str(object, "over");
	int64_t bytes = json_int(json_object_get(json_object_get(l->doc, "mr"), over ? over : ""), "size", INT64_MAX);

	if (!json_object_get(object, "size") && json_int(object, "offset", 0) >= bytes)
		complain(l, ynode_get(node, "offset"), "`size:` beside it, where the bind is to be refused",
			 "the region `%s` has %lld bytes: nothing of it is left for the window", over, (long long)bytes);
}

static void fit_window_rights(struct loader *l, struct ynode *node)
{
	static const char *const rights[] = { "REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC" };
	struct ynode *access = ynode_get(node, "access");

	access = access ? sweep_resolve(l, access) : NULL;
	for (size_t i = 0; access && access->kind == YNODE_LIST && i < access->n; i++) {
		const struct ynode *one = sweep_resolve(l, access->kids[i]);
		bool known = !one;

		for (size_t k = 0; one && k < sizeof(rights) / sizeof(rights[0]); k++)
			known = known || !strcmp(one->text, rights[k]);
		if (!known)
			complain(l, one, "allowed: REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC",
				 "`%s`: a window opens a region for the peer alone", one->text);
	}
}

/* Without a word a handle leads to the one agent that those of its own are connected to. */
static void fit_handle(struct loader *l, struct ynode *node, const json_t *object, const struct use *u)
{
	const char *peer = NULL;
	struct end_walk w;
	bool one = true;

	if (json_str(object, "to") || json_str(object, "group"))
		return;
	end_walk_begin(&w, l, u->at);
	while (end_walk_next(&w)) {
		const json_t *ends = json_object_get(w.pair, "ends");
		const char *other = json_string_value(json_array_get(ends, w.at == 1));

		one = one && other && (!peer || !strcmp(peer, other));
		peer = other;
	}
	if (!peer || !one)
		complain(l, ynode_get(node, "at"), "`to: AGENT`, or `group: \"ff02::1\"`",
			 "the AH `%s` has to say where it leads: `%s` has %s", u->name, u->at,
			 peer ? "peers in several agents" : "no peer");
}

static void fit_kind(struct loader *l, struct ynode *root, const char *kind)
{
	struct ynode *map = ynode_get(root, kind);
	struct use u = { .kind = kind, .alone = !strcmp(kind, "srq") || !strcmp(kind, "cq") || !strcmp(kind, "pd") };
	json_t *object;

	map = map ? sweep_resolve(l, map) : NULL;
	if (!map)
		return;
	u.users = json_object();
	json_object_foreach(json_object_get(l->doc, kind), u.name, object) {
		struct ynode *node = ynode_get(map, u.name);

		node = node ? sweep_resolve(l, node) : NULL;
		u.at = json_str(object, "at");
		if (!node || !u.at)
			continue;
		fit_users(l, node, object, &u);
		fit_same_agent(l, node, object, "pd", &u);
		fit_same_agent(l, node, object, "over", &u);
		if (!strcmp(kind, "srq"))
			fit_limit(l, node, object);
		if (!strcmp(kind, "ah"))
			fit_handle(l, node, object, &u);
		if (!strcmp(kind, "mw")) {
			fit_window_offset(l, node, object);
			fit_window_rights(l, node);
		}
	}
	json_decref(u.users);
}

void fit_objects(struct loader *l, struct ynode *root)
{
	static const char *const kinds[] = { "pd", "srq", "cq", "mr", "mw", "ah" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		fit_kind(l, root, kinds[i]);
}

/* The path of a UD QP is in its own handle, which is made from the same attributes. */
static bool takes(int type, const struct attr *a)
{
	return a->kind != ATTR_MODIFY || (a->mask == IBV_QP_AV && type == IBV_QPT_UD) || type_takes(type, a->mask);
}

/* pair: NULL for the file's own block; agent: whose the block is, or NULL. */
static void mark(struct loader *l, struct ynode *block, const json_t *pair, const char *agent)
{
	block = block ? sweep_resolve(l, block) : NULL;
	for (size_t i = 0; block && block->kind == YNODE_MAP && i < block->n; i++) {
		struct ynode *key = block->kids[i]->key;
		const struct attr *a = attr_find(key->text);
		struct end_walk w;

		if (!agent && json_object_get(l->agents, key->text)) {
			mark(l, block->kids[i], pair, key->text);
			continue;
		}
		end_walk_begin(&w, l, "*");
		while (a && end_walk_next(&w)) {
			int type = file_qp_type(l, w.pair, w.agent);

			if ((pair && w.pair != pair) || (agent && strcmp(agent, w.agent)))
				continue;
			key->qp_type = type;
			key->qp_tried = true;
			key->qp_taken |= takes(type, a);
		}
	}
}

void fit_block(struct loader *l, struct ynode *block)
{
	mark(l, block, NULL, NULL);
}

void fit_attrs(struct loader *l, struct ynode *root)
{
	struct ynode *pairs = ynode_get(root, "pairs");
	const char *name;
	json_t *pair;

	mark(l, ynode_get(root, "qp"), NULL, NULL);
	pairs = pairs ? sweep_resolve(l, pairs) : NULL;
	json_object_foreach(l->pairs, name, pair) {
		struct ynode *node = pairs ? ynode_get(pairs, name) : NULL;

		node = node ? sweep_resolve(l, node) : NULL;
		if (node)
			mark(l, ynode_get(node, "qp"), pair, NULL);
	}
}

static const char *takers(const struct attr *a, char *buf, size_t size)
{
	static const int types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	size_t used = 0;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (takes(types[i], a) && used < size)
			used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? ", " : "it is of ",
						 name_of(&names_qp_type, types[i]));
	return buf;
}

void fit_attrs_finish(struct loader *l)
{
	char hint[80];

	for (const struct ynode *n = l->tree.all; n; n = n->next)
		if (n->qp_tried && !n->qp_taken)
			complain(l, n, takers(attr_find(n->text), hint, sizeof(hint)), "QPs of type %s have no `%s`",
				 name_of(&names_qp_type, n->qp_type), n->text);
}
