/* SPDX-License-Identifier: MIT */
/* Extended reliable connections: what their two ends cannot do, and what they cannot be without. */
#include "scenario_loader.h"

#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

bool is_xrc_type(int type)
{
	return type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
}

static const char *peer_of(const struct end_walk *w)
{
	const json_t *ends = json_object_get(w->pair, "ends");
	const char *first = json_string_value(json_array_get(ends, 0));

	return first && strcmp(first, w->agent) ? first : json_string_value(json_array_get(ends, 1));
}

static bool is_first(const struct end_walk *w)
{
	const char *first = json_string_value(json_array_get(json_object_get(w->pair, "ends"), 0));

	return first && !strcmp(first, w->agent);
}

void fit_xrc_connect(struct loader *l, const struct ynode *map, const json_t *pairs)
{
	const struct ynode *key = map->key ? map->key : map;
	struct end_walk w;

	end_walk_begin(&w, l, "*");
	while (end_walk_next(&w)) {
		const char *name = json_object_iter_key(w.iter), *peer = peer_of(&w);
		int type = file_qp_type(l, w.pair, w.agent), other = peer ? file_qp_type(l, w.pair, peer) : type;
		char hint[3 * GRAMMAR_MAX_NAME];

		if (pairs && !json_array_has(pairs, name) && !json_array_has(pairs, "*"))
			continue;
		if (is_first(&w) && (is_xrc_type(type) != is_xrc_type(other) || (is_xrc_type(type) && type == other)))
			complain(l, key, "`type: XRC`, or XRC_SEND of the one and XRC_RECV of the other",
				 "`%s.%s` is %s and `%s.%s` is %s: they cannot be connected", name, w.agent,
				 name_of(&names_qp_type, type), name, peer, name_of(&names_qp_type, other));
		if (type != IBV_QPT_XRC_RECV || file_srq_of(l, &w))
			continue;
		snprintf(hint, sizeof(hint), "`srq: { s: { at: %s, used_by: [%s.%s] } }`", w.agent, name, w.agent);
		complain(l, key, hint, "`%s.%s` is XRC_RECV: it receives from SRQs alone, and has none", name, w.agent);
	}
}

/* The SRQ is one of those that the other end receives from. */
static void fit_srq(struct loader *l, const struct ynode *map, const json_t *out, const struct end_walk *w)
{
	const char *srq = json_str(out, "srq"), *peer = peer_of(w), *name = json_object_iter_key(w->iter);
	size_t i;
	json_t *end;

	json_array_foreach(json_object_get(json_object_get(json_object_get(l->doc, "srq"), srq), "used_by"), i, end) {
		struct end_walk user;

		end_walk_begin(&user, l, json_string_value(end));
		while (end_walk_next(&user))
			if (user.pair == w->pair && peer && !strcmp(user.agent, peer))
				return;
	}
	complain(l, ynode_get(map, "srq"), "`used_by:` of the SRQ names who receives from it", "`%s.%s` does not receive from `%s`",
		 name, peer ? peer : "", srq);
}

void fit_xrc_request(struct loader *l, const struct ynode *map, const json_t *out, const json_t *ends)
{
	static const char *const keys[] = { "srq", "srqn" };
	size_t i;
	json_t *end;

	json_array_foreach(ends, i, end) {
		struct end_walk w;

		end_walk_begin(&w, l, json_string_value(end));
		while (end_walk_next(&w)) {
			int type = file_qp_type(l, w.pair, w.agent);

			for (size_t k = 0; k < 2; k++)
				if (json_object_get(out, keys[k]) && type != IBV_QPT_XRC_SEND)
					complain(l, ynode_get(map, keys[k])->key, "`qp: { type: XRC }`",
						 "`%s` is of XRC_SEND: the QP of `%s` is %s", keys[k], w.agent,
						 name_of(&names_qp_type, type));
			if (json_str(out, "srq") && type == IBV_QPT_XRC_SEND)
				fit_srq(l, map, out, &w);
		}
	}
}

/* The first of these ends that is of the type. */
static const char *end_of_type(struct loader *l, const json_t *ends, int type)
{
	size_t i;
	json_t *end;

	json_array_foreach(ends, i, end) {
		struct end_walk w;

		end_walk_begin(&w, l, json_string_value(end));
		while (end_walk_next(&w))
			if (file_qp_type(l, w.pair, w.agent) == type)
				return json_string_value(end);
	}
	return NULL;
}

void fit_xrc_queue(struct loader *l, const struct ynode *map, const json_t *out, bool recv)
{
	const char *end = end_of_type(l, json_object_get(out, "at"), recv ? IBV_QPT_XRC_SEND : IBV_QPT_XRC_RECV);

	if (end)
		complain(l, ynode_get(map, "at"),
			 recv ? "what it sends is received at the other end, `at: srq.NAME`" : "the other end sends",
			 "`%s` is %s: it has no %s queue", end, recv ? "XRC_SEND" : "XRC_RECV", recv ? "receive" : "send");
}
