/* SPDX-License-Identifier: MIT */
#include "scenario_loader.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cmp.h"
#include "json.h"
#include "resources.h"

/* The key of a member, else of the map itself: where a complaint about a whole map stands. */
static const struct ynode *key_of(const struct ynode *map, const char *name)
{
	const struct ynode *kid = name ? ynode_get(map, name) : NULL;

	if (kid)
		return kid->key;
	return ynode_place(map);
}

/* The first of some keys that is there, or NULL. */
static const char *first_of(const json_t *out, const char *const *names)
{
	for (; *names; names++)
		if (json_object_get(out, *names))
			return *names;
	return NULL;
}

static void want_with(struct loader *l, const struct ynode *map, const json_t *out, const char *key, const char *other)
{
	if (json_object_get(out, key) && !json_object_get(out, other))
		complain(l, key_of(map, key), NULL, "`%s` wants `%s` beside it", key, other);
}

static void not_with(struct loader *l, const struct ynode *map, const json_t *out, const char *key, const char *other)
{
	if (json_object_get(out, key) && json_object_get(out, other))
		complain(l, key_of(map, key), NULL, "`%s` and `%s` exclude each other", key, other);
}

void check_not_empty(struct loader *l, const struct ynode *map, void *out)
{
	if (!json_object_size(out))
		complain(l, key_of(map, NULL), NULL, "nothing is asked for");
}

void check_connect(struct loader *l, const struct ynode *map, void *out)
{
	static const char *const cm_only[] = { "from", "refused" };
	const char *by = json_str(out, "by");

	for (size_t i = 0; i < sizeof(cm_only) / sizeof(cm_only[0]); i++)
		if (json_object_get(out, cm_only[i]) && (!by || strcmp(by, "cm")))
			complain(l, key_of(map, cm_only[i]), "`by: cm`", "`%s` is of rdma_cm: verbs know no such thing",
				 cm_only[i]);
	l->cm |= by && !strcmp(by, "cm");
	l->cm_keeps |= by && !strcmp(by, "cm");
	not_with(l, map, out, "upto", "refused");
	if (by && !strcmp(by, "cm") && json_object_get(out, "upto"))
		complain(l, key_of(map, "upto"), NULL, "`upto` is of `by: verbs`: the CM connects, or it does not");
	fit_connect(l, map, out);
}

void check_objects(struct loader *l, const struct ynode *map, void *out)
{
	static const char *const kinds[] = { "qp", "cq", "srq", "mr", "mw", "ah", "pd", NULL };

	if (!first_of(out, kinds))
		complain(l, key_of(map, NULL), "`{ qp: a }`, `{ mr: pool }`", "no object is named");
}

static bool has_prefix(const json_t *ends, const char *prefix)
{
	size_t i;
	json_t *end;

	json_array_foreach(ends, i, end)
		if (!strncmp(json_string_value(end), prefix, strlen(prefix)))
			return true;
	return false;
}

void check_modify(struct loader *l, const struct ynode *map, void *out)
{
	static const char *const qp_only[] = { "to", "leave_out", "add", "mask" };
	static const char *const retry[] = { "timeout", "retry_cnt", "rnr_retry", NULL };
	bool srq = has_prefix(json_object_get(out, "at"), "srq."), cq = has_prefix(json_object_get(out, "at"), "cq.");
	const char *key;
	json_t *value, *set = json_object_get(out, "set");

	if (has_prefix(json_object_get(out, "at"), "dev."))
		complain(l, key_of(map, "at"), NULL, "QPs, SRQs and CQs can be modified");
	if (!set && !json_object_get(out, "to"))
		complain(l, key_of(map, NULL), "`to: ERR`, `set: { timeout: 18 }`", "`modify` wants `to` or `set`");
	if (json_object_get(out, "mask") && !json_object_get(out, "to"))
		complain(l, key_of(map, "mask"), "`to: RTR`", "`mask` is about a move: `modify` wants `to`");
	not_with(l, map, out, "set", "mask");
	not_with(l, map, out, "leave_out", "mask");
	not_with(l, map, out, "add", "mask");
	if (first_of(set, retry))
		l->attrs_changed = true;
	for (size_t i = 0; (srq || cq) && i < sizeof(qp_only) / sizeof(qp_only[0]); i++)
		if (json_object_get(out, qp_only[i]))
			complain(l, key_of(map, qp_only[i]), srq ? "`set: { limit: 8 }`" : "`set: { depth: 64 }`", "%s has no `%s`",
				 srq ? "an SRQ" : "a CQ", qp_only[i]);
	json_object_foreach(set, key, value)
		if (!strcmp(key, "depth") != cq)
			complain(l, key_of(ynode_get(map, "set"), key), cq ? "allowed: depth" : "`at: cq.NAME`",
				 cq ? "a CQ has no attribute `%s`" : "`%s` is an attribute of a CQ", key);
		else if ((!strcmp(key, "limit") || !strcmp(key, "max_wr")) != srq)
			complain(l, key_of(ynode_get(map, "set"), key), srq ? "allowed: limit, max_wr" : "`at: srq.NAME`",
				 srq ? "an SRQ has no attribute `%s`" : "`%s` is an attribute of an SRQ", key);
	if (!srq && !cq)
		fit_modify(l, map, out);
}

void check_post(struct loader *l, const struct ynode *map, void *out)
{
	const json_t *chain = json_object_get(out, "chain");
	const char *op = json_str(out, "op");
	const struct ynode *list;
	size_t i;
	json_t *member;

	if (json_is_array(chain)) {
		list = sweep_resolve(l, ynode_get(map, "chain"));
		json_array_foreach(chain, i, member)
			if (!op && !json_str(member, "op"))
				complain(l, list && i < list->n ? list->kids[i] : key_of(map, "chain"), NULL,
					 "this member has no `op`, nor has the post");
		not_with(l, map, out, "count", "chain");
		not_with(l, map, out, "replay", "chain");
		fit_post(l, map, out);
		return;
	}
	if (!op)
		complain(l, key_of(map, NULL), NULL, "a step `post` wants `op:` (the operation)");
	else
		fit_post(l, map, out);
}

void check_post_recv(struct loader *l, const struct ynode *map, void *out)
{
	fit_post_recv(l, map, out);
}

/* Rounds of the innermost repeat below; never more than one above the bound. */
static int64_t rounds(const json_t *repeat)
{
	int64_t most = 1, times = json_int(repeat, "times", 1);
	const json_t *step;
	size_t i;

	json_array_foreach(json_object_get(repeat, "steps"), i, step) {
		int64_t inner = json_object_get(step, "times") ? rounds(step) : 1;

		most = inner > most ? inner : most;
	}
	return times > GRAMMAR_MAX_ROUNDS / most ? GRAMMAR_MAX_ROUNDS + 1 : times * most;
}

static bool can_hold(const json_t *passes, int64_t times)
{
	for (int64_t n = times > GRAMMAR_MAX_ROUNDS ? GRAMMAR_MAX_ROUNDS : times; n >= 0; n--)
		if (compare_holds(passes, n))
			return true;
	return false;
}

void check_repeat(struct loader *l, const struct ynode *map, void *out)
{
	if (rounds(out) > GRAMMAR_MAX_ROUNDS)
		complain(l, ynode_get(map, "times"), NULL, "more than %d rounds, with those of the repeats inside",
			 GRAMMAR_MAX_ROUNDS);
	if (json_object_get(out, "passes") && !can_hold(json_object_get(out, "passes"), json_int(out, "times", 1)))
		complain(l, ynode_get(map, "passes"), NULL, "`passes` never holds: there are %lld rounds",
			 (long long)json_int(out, "times", 1));
	if (json_object_get(out, "resources") && json_int(out, "times", 1) < RESOURCES_ROUNDS_MIN)
		complain(l, ynode_get(map, "resources"), NULL, "`resources: flat` wants at least %d rounds", RESOURCES_ROUNDS_MIN);
}

/* A group is a multicast GID; of IPv4 it is mapped. */
static bool is_group(const char *text)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint8_t gid[16];

	if (!text || inet_pton(AF_INET6, text, gid) != 1)
		return false;
	return gid[0] == 0xff || (!memcmp(gid, mapped, sizeof(mapped)) && gid[12] >> 4 == 0xe);
}

static void check_group(struct loader *l, const struct ynode *map, const json_t *out)
{
	if (!is_group(json_str(out, "group")))
		complain(l, ynode_get(map, "group"), "`\"ff02::1\"`, of IPv4 `\"::ffff:239.1.2.3\"`", "`%s` is no multicast GID",
			 json_str(out, "group") ? json_str(out, "group") : "");
}

void check_attach(struct loader *l, const struct ynode *map, void *out)
{
	check_group(l, map, out);
	fit_group(l, map, out);
}

void check_ah(struct loader *l, const struct ynode *map, void *out)
{
	not_with(l, map, out, "to", "group");
	if (json_object_get(out, "group"))
		check_group(l, map, out);
}

void check_poll(struct loader *l, const struct ynode *map, void *out)
{
	const char *name = json_str(out, "cq");
	const json_t *cq = json_object_get(json_object_get(l->doc, "cq"), name);
	const char *poll = json_str(cq, "poll");

	if (!poll || strcmp(poll, "manual"))
		complain(l, ynode_get(map, "cq"), "`cq: { NAME: { at: a, poll: manual } }`",
			 "the CQ `%s` is polled by the harness already", name);
	want_with(l, map, out, "events", "wait");
	if (!json_bool(out, "ack", true))
		want_with(l, map, out, "ack", "wait");
	not_with(l, map, out, "arm", "wait");
	not_with(l, map, out, "arm", "max");
	not_with(l, map, out, "wait", "max");
	not_with(l, map, out, "arm", "ack");
}

void check_traffic(struct loader *l, const struct ynode *map, void *out)
{
	static const char *const others[] = { "pair", "ops", "size", "depth", "messages", "to", "as", "lossy", NULL };
	const char *other = first_of(out, others);

	if (json_object_get(out, "stop")) {
		if (other)
			complain(l, key_of(map, other), "`- traffic: { stop: NAME }`", "`stop` stands alone");
		return;
	}
	if (!json_object_get(out, "ops"))
		complain(l, key_of(map, NULL), "`ops: [SEND, WRITE, READ]`",
			 "a step `traffic` wants `ops:` (operations, mixed), or `stop:`");
	if (!json_object_get(out, "messages") && !json_object_get(out, "as"))
		complain(l, key_of(map, NULL), "`messages: 64`, or `as: NAME` and later `- traffic: { stop: NAME }`",
			 "this traffic would never end");
	want_with(l, map, out, "lossy", "as");
	if (json_bool(out, "lossy", false))
		fit_lossy(l, map, out);
	if (json_bool(out, "lossy", false) && (json_array_size(json_object_get(out, "ops")) != 1 || !json_has(out, "ops", "SEND")))
		complain(l, key_of(map, "lossy"), "`ops: [SEND]`", "what is lost of a WRITE leaves no gap: a lossy traffic sends");
}

void check_remember(struct loader *l, const struct ynode *map, void *out)
{
	if (!json_object_get(out, "end") && !json_object_get(out, "mr"))
		complain(l, key_of(map, NULL), "`{ end: b, as: NAME }`", "`remember` wants `end` or `mr`");
	not_with(l, map, out, "mr", "end");
	if (!json_object_get(out, "as"))
		complain(l, key_of(map, NULL), "`{ end: b, as: NAME }`", "`remember` without `as:` keeps it under no name");
}

void check_recover(struct loader *l, const struct ynode *map, void *out)
{
	static const char *const retry[] = { "timeout", "retry_cnt", "rnr_retry", NULL };

	if (json_has(out, "path", "cm") || json_has(out, "path", "restart"))
		l->cm_keeps = json_has(out, "path", "cm");
	want_with(l, map, out, "backoff", "attempts");
	if (json_has(out, "result", "fails") && json_bool(out, "if_needed", false))
		complain(l, key_of(map, "if_needed"), "`result: fails` alone",
			 "a recovery that is left out does not fail: `if_needed` and `result: fails` exclude each other");
	if (first_of(json_object_get(out, "qp"), retry))
		l->attrs_changed = true;
	fit_recover(l, map, out);
}

static const char *const subjects[] = { "wc",     "recv_wc",   "qp",   "attr",    "event",     "cm",  "payload", "counter",
					"ledger", "packets",   "hits", "errors",  "gap",       "p50", "p99",     "phase",
					"grh",    "delivered", "lost", "doubled", "reordered", NULL };

/* Whose? Each subject needs an end, or a name that it is of. */
static void check_owner(struct loader *l, const struct ynode *map, json_t *out)
{
	static const char *const of_end[] = { "qp", "attr", "event", "cm", "counter", "ledger", "grh", NULL };
	static const char *const of_traffic[] = {
		"errors", "gap", "p50", "p99", "delivered", "lost", "doubled", "reordered", NULL
	};
	const char *key, *of = json_str(out, "of");
	const json_t *label = of ? json_object_get(l->labels, of) : NULL;
	unsigned kind = (unsigned)json_int(label, "kind", 0);

	key = first_of(out, of_end);
	if (key && !json_object_get(out, "at"))
		complain(l, key_of(map, key), "`at: a`", "`%s` of which end?", key);
	for (const char *const *k = (const char *const[]){ "wc", "recv_wc", NULL }; *k; k++)
		if (json_object_get(out, *k) && !of && !json_object_get(out, "at"))
			complain(l, key_of(map, *k), "`at: a`, or `of: NAME` of a post", "`%s` of which end or post?", *k);
	for (const char *const *k = (const char *const[]){ "wc", "recv_wc", NULL }; *k; k++)
		if (json_object_get(out, *k) && !json_object_get(out, "at") && kind &&
		    !(kind & (G_OF_POST | G_OF_RECV | G_OF_TRAFFIC)))
			complain(l, key_of(map, *k), "`at: a`, or `of: NAME` of a post",
				 "`%s` is a `%s`: it has no `%s` of its own", of, json_str(label, "do"), *k);
	if (json_object_get(out, "payload") && !(kind & (G_OF_POST | G_OF_TRAFFIC)))
		complain(l, key_of(map, "payload"), "`of: NAME`", "`payload` of which post or traffic?");
	key = first_of(out, of_traffic);
	if (key && !(kind & G_OF_TRAFFIC))
		complain(l, key_of(map, key), "`of: NAME` of a `traffic`", "`%s` of which traffic?", key);
	if (json_object_get(out, "wc") && kind & G_OF_RECV)
		complain(l, key_of(map, "wc"), "`recv_wc`", "completions of receives are `recv_wc`");
	if (json_object_get(out, "recv_wc") && kind & G_OF_POST)
		complain(l, key_of(map, "recv_wc"), "`recv_wc` at the peer's end; `wc` for the post itself",
			 "a post of sends has no receive completions");
	if (json_object_get(out, "hits") && !json_object_get(out, "fault") && !(kind & G_OF_FAULT))
		complain(l, key_of(map, "hits"), "`fault: NAME`", "`hits` of which fault?");
}

/* none means nothing came: for how long has to be said. */
static void check_none(struct loader *l, const struct ynode *map, json_t *out)
{
	for (const char *const *k = (const char *const[]){ "wc", "recv_wc", NULL }; *k; k++)
		if (json_bool(json_object_get(out, *k), "none", false) && !json_object_get(out, "for"))
			complain(l, ynode_get(map, *k), "`for: 100ms`", "`%s: none` wants `for:`: how long has nothing to come?",
				 *k);
}

/* An item that only this status can satisfy: the pattern cannot hold without it. */
static bool pattern_needs(const json_t *wc, const char *status)
{
	const json_t *all = json_object_get(wc, "all");
	size_t i;
	json_t *item;

	if (json_array_size(all) == 1 && json_array_has(all, status))
		return true;
	json_array_foreach(json_object_get(wc, "seq"), i, item) {
		const json_t *any = json_object_get(item, "any");

		if (json_array_size(any) == 1 && json_array_has(any, status) && json_int(item, "min", 0) > 0)
			return true;
	}
	return false;
}

/* The scalar in a pattern that speaks of this status, and where. */
static const struct ynode *status_node(struct loader *l, struct ynode *n, const char *status, size_t *ret_off)
{
	const char *found;

	n = sweep_resolve(l, n);
	if (!n)
		return NULL;
	if (n->kind == YNODE_SCALAR) {
		found = strstr(n->text, status);
		*ret_off = found ? (size_t)(found - n->text) : 0;
		return found ? n : NULL;
	}
	for (size_t i = 0; i < n->n; i++) {
		const struct ynode *hit = status_node(l, n->kids[i], status, ret_off);

		if (hit)
			return hit;
	}
	return NULL;
}

/* What tells of an answer, or of none, where none is ever waited for. */
static void check_unanswered(struct loader *l, const struct ynode *map, const json_t *wc, const json_t *ends)
{
	static const char *const statuses[] = {
		"RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR", "REM_INV_REQ_ERR", "REM_ACCESS_ERR", "REM_OP_ERR", "BAD_RESP_ERR", NULL
	};
	size_t i, off;
	json_t *end;

	for (const char *const *status = statuses; *status; status++) {
		const struct ynode *n = pattern_needs(wc, *status) ? status_node(l, ynode_get(map, "wc"), *status, &off) : NULL;

		if (!n)
			continue;
		json_array_foreach(ends, i, end) {
			struct end_walk w;

			end_walk_begin(&w, l, json_string_value(end));
			if (!end_walk_next(&w) || !file_qp_unanswered(l, w.pair, w.agent))
				continue;
			complain_part(l, n, off, strlen(*status), "what was sent is done, whether it arrives or not",
				      "%s can never come at `%s`: nobody answers a QP of type %s", *status, json_string_value(end),
				      name_of(&names_qp_type, file_qp_type(l, w.pair, w.agent)));
			break;
		}
	}
}

static void check_never(struct loader *l, const struct ynode *map, json_t *out)
{
	static const struct {
		const char *status, *attr;
		int64_t value, def;
		const char *why;
	} never[] = {
		{ "RNR_RETRY_EXC_ERR", "rnr_retry", 7, 5, "rnr_retry 7 repeats for ever" },
		{ "RETRY_EXC_ERR", "timeout", 0, 14, "timeout 0 waits for ever" },
	};
	const json_t *wc = json_object_get(out, "wc"), *ends = json_object_get(out, "at");
	const char *of = json_str(out, "of");
	size_t i, off;
	json_t *end;

	if (!ends && of)
		ends = json_object_get(json_object_get(l->labels, of), "at");
	check_unanswered(l, map, wc, ends);
	for (size_t k = 0; !l->attrs_changed && k < sizeof(never) / sizeof(never[0]); k++) {
		const struct ynode *n;

		if (!pattern_needs(wc, never[k].status))
			continue;
		json_array_foreach(ends, i, end) {
			const char *name = json_string_value(end);

			if (end_attr(l, name, never[k].attr, never[k].def) != never[k].value)
				continue;
			/* With retry_cnt 0 a sequence NAK ends it without any timer. */
			if (!strcmp(never[k].attr, "timeout") && end_attr(l, name, "retry_cnt", 5) == 0)
				continue;
			n = status_node(l, ynode_get(map, "wc"), never[k].status, &off);
			if (n)
				complain_part(l, n, off, strlen(never[k].status), never[k].why,
					      "%s can never come at `%s`: its %s is %d", never[k].status, name, never[k].attr,
					      (int)never[k].value);
			break;
		}
	}
}

static void check_subjects(struct loader *l, const struct ynode *map, json_t *out)
{
	struct word_list w = { .n = 0 };
	char hint[HINT_SIZE];

	if (!first_of(out, subjects)) {
		words_add_all(&w, subjects);
		complain(l, key_of(map, NULL), words_hint(&w, NULL, hint, sizeof(hint)), "nothing is expected here");
		return;
	}
	check_owner(l, map, out);
	want_with(l, map, out, "packets", "count");
	want_with(l, map, out, "count", "packets");
	want_with(l, map, out, "different", "packets");
	if (!json_object_get(out, "recv_wc"))
		want_with(l, map, out, "says", "wc");
	want_with(l, map, out, "fault", "hits");
	want_with(l, map, out, "during", "of");
	not_with(l, map, out, "within", "for");
	fit_expect(l, map, out);
}

void check_expect(struct loader *l, const struct ynode *map, void *out)
{
	check_subjects(l, map, out);
	check_none(l, map, out);
	check_never(l, map, out);
}

void check_allow(struct loader *l, const struct ynode *map, void *out)
{
	check_subjects(l, map, out);
	for (const char *const *k = (const char *const[]){ "within", "for", NULL }; *k; k++)
		if (json_object_get(out, *k))
			complain(l, key_of(map, *k), "`allow` holds from its step to the end", "`allow` takes no `%s`", *k);
}

static bool yaml11_bool(const struct ynode *n)
{
	static const char *const words[] = { "on", "off", "yes", "no" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (n->plain && !strcasecmp(n->text, words[i]))
			return true;
	return false;
}

static void check_key(struct loader *l, struct ynode *map, size_t i)
{
	struct ynode *kid = map->kids[i];

	if (yaml11_bool(kid->key)) {
		complain(l, kid->key, strcasecmp(kid->key->text, "on") ? NULL : "the key is `at`",
			 "`%s` as a key: YAML 1.1 readers take it for a boolean", kid->key->text);
		/* It is read as what was meant, so that nothing is said to be missing. */
		if (!strcmp(kid->key->text, "on") && !ynode_get(map, "at"))
			memcpy(kid->key->text, "at", sizeof("at"));
		else
			kid->bad = true;
	}
	for (size_t k = 0; k < i; k++) {
		if (strcmp(map->kids[k]->key->text, kid->key->text))
			continue;
		complain(l, kid->key, NULL, "`%s` is there twice; first in line %u", kid->key->text, map->kids[k]->key->line);
		kid->bad = true;
		return;
	}
}

static void check_node(struct loader *l, struct ynode *n)
{
	if (n->kind == YNODE_SCALAR && yaml11_bool(n)) {
		complain(l, n, "booleans are true and false", "`%s` as a value: YAML 1.1 readers take it for a boolean", n->text);
		n->bad = true;
	}
	/* A hostile map of very many keys would cost its square; no map of the language has so many. */
	if (n->kind == YNODE_MAP && n->n > 1024) {
		complain(l, n, NULL, "a map of %zu keys", n->n);
		n->bad = true;
		return;
	}
	for (size_t i = 0; i < n->n; i++) {
		if (n->kind == YNODE_MAP)
			check_key(l, n, i);
		check_node(l, n->kids[i]);
	}
}

void check_tree(struct loader *l)
{
	check_node(l, l->tree.root);
}
