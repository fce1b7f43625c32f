/* SPDX-License-Identifier: MIT */
#include "plan_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

#define NO_INDEX (-1)
#define ALL_INDICES (-2)
#define END_MAX 128

/* `p[7].a.recv@2` taken apart. */
struct end {
	char text[END_MAX];
	const char *head; /* pair, agent or "*" */
	int index;
	const char *agent; /* NULL: any */
	const char *queue; /* "send" "recv" or NULL */
	const char *life;  /* "2" or NULL */
	bool head_is_agent;
};

static bool is_queue(const char *s)
{
	return s && (!strcmp(s, "send") || !strcmp(s, "recv"));
}

static int end_index(struct end *end, char *head)
{
	char *open = strchr(head, '['), *close;

	end->index = NO_INDEX;
	if (!open)
		return 0;
	*open++ = 0;
	close = strchr(open, ']');
	if (!close || close[1])
		return -EINVAL;
	*close = 0;
	if (!strcmp(open, "*")) {
		end->index = ALL_INDICES;
		return 0;
	}
	if (!*open || strspn(open, "0123456789") != strlen(open) || strlen(open) > 6)
		return -EINVAL;
	end->index = (int)strtol(open, NULL, 10);
	return 0;
}

static bool is_pair(const struct planner *p, const char *name)
{
	const char *key;
	json_t *pair;

	json_object_foreach(p->pairs, key, pair)
		if (!strcmp(json_str(pair, "of"), name))
			return true;
	return false;
}

static int end_parse(struct planner *p, const char *text, struct end *end)
{
	char *part[3] = { NULL, NULL, NULL }, *at, *rest, *s;
	size_t n = 0;
	bool pair;

	*end = (struct end){ .index = NO_INDEX };
	if (snprintf(end->text, sizeof(end->text), "%s", text) >= (int)sizeof(end->text))
		return error_set(p->e, -EINVAL, "'%.40s...' is too long for an end", text);
	at = strchr(end->text, '@');
	if (at) {
		*at = 0;
		end->life = at + 1;
	}
	rest = end->text;
	while ((s = strsep(&rest, "."))) {
		if (n == 3)
			return error_set(p->e, -EINVAL, "'%s' has too many parts for an end", text);
		part[n++] = s;
	}
	if (n == 0 || end_index(end, part[0]) < 0)
		return error_set(p->e, -EINVAL, "'%s' is no end", text);
	end->head = part[0];
	if (n > 1 && is_queue(part[n - 1]))
		end->queue = part[--n];
	pair = is_pair(p, end->head);
	end->head_is_agent =
		strcmp(end->head, "*") && json_object_get(p->agents, end->head) && !(pair && (n > 1 || end->index != NO_INDEX));
	if (strcmp(end->head, "*") && !pair && !end->head_is_agent)
		return error_set(p->e, -EINVAL, "'%s': there is no pair and no agent called '%s'", text, end->head);
	if (n > 2 || (end->head_is_agent && n > 1))
		return error_set(p->e, -EINVAL, "'%s' is no end", text);
	end->agent = n > 1 ? part[1] : NULL;
	return 0;
}

static bool end_matches(const struct planner *p, const struct end *end, const json_t *qp)
{
	const json_t *pair = json_object_get(p->pairs, json_str(qp, "pair"));
	const char *agent = json_str(qp, "agent");

	if (end->head_is_agent)
		return !strcmp(end->head, agent);
	if (end->agent && strcmp(end->agent, agent))
		return false;
	if (!strcmp(end->head, "*"))
		return true;
	if (strcmp(end->head, json_str(pair, "of")))
		return false;
	return end->index == NO_INDEX || end->index == ALL_INDICES || end->index == json_int(pair, "index", 0);
}

static void append_once(json_t *array, json_t *name)
{
	if (!json_array_has(array, json_string_value(name)))
		json_array_append(array, name);
	json_decref(name);
}

static int end_count_check(struct planner *p, const struct end *end, const char *text, unsigned agents_qps, unsigned pairs)
{
	if (!agents_qps)
		return error_set(p->e, -EINVAL, "'%s' names no QP of this scenario", text);
	if (end->head_is_agent && agents_qps > 1)
		return error_set(p->e, -EINVAL, "'%s' has %u QPs: say which, as PAIR.%s", text, agents_qps, text);
	if (!end->head_is_agent && end->index == NO_INDEX && pairs > 1 && strcmp(end->head, "*"))
		return error_set(p->e, -EINVAL, "'%s': there are %u pairs '%s': say which, as %s[0] or %s[*]", text, pairs,
				 end->head, end->head, end->head);
	return 0;
}

static int end_add(struct planner *p, const char *text, enum ends_how how, json_t *names)
{
	struct end end;
	unsigned n = 0, pairs = 0;
	const char *last_pair = "";
	size_t i;
	json_t *qp;
	int rc = end_parse(p, text, &end);

	if (rc)
		return rc;
	if (end.queue && (how == ENDS_QPS || how == ENDS_SRQS || how == ENDS_RESIZED))
		return error_set(p->e, -EINVAL, "'%s' is a queue where a QP is wanted", text);
	json_array_foreach(p->qps, i, qp) {
		if (!end_matches(p, &end, qp))
			continue;
		n++;
		pairs += strcmp(last_pair, json_str(qp, "pair")) != 0;
		last_pair = json_str(qp, "pair");
		append_once(names, json_sprintf("%s%s%s%s%s", json_str(qp, "name"), end.queue ? "." : "",
						end.queue ? end.queue : "", end.life ? "@" : "", end.life ? end.life : ""));
	}
	return how == ENDS_USED && n ? 0 : end_count_check(p, &end, text, n, pairs);
}

/* A named CQ, SRQ, MR or an agent's device: "srq.x", "x", "dev.a". */
static const char *other_object(const struct planner *p, const char *text, enum ends_how how)
{
	static const struct {
		const char *prefix, *array;
	} kinds[] = { { "cq.", "cqs" }, { "srq.", "srqs" }, { "mr.", "mrs" }, { "pd.", "pds" } };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		size_t len = strlen(kinds[i].prefix);

		bool srqs = !strcmp(kinds[i].array, "srqs"), cqs = !strcmp(kinds[i].array, "cqs");

		if (how != ENDS_ANY && !(how == ENDS_SRQS && srqs) && !(how == ENDS_RESIZED && (srqs || cqs)))
			continue;
		if (!strncmp(text, kinds[i].prefix, len) && plan_find(p->plan, kinds[i].array, text + len))
			return text + len;
		if (plan_find(p->plan, kinds[i].array, text))
			return text;
	}
	if (how == ENDS_ANY && !strncmp(text, "dev.", 4) && json_object_get(p->agents, text + 4))
		return text;
	return NULL;
}

int plan_ends(struct planner *p, const json_t *list, enum ends_how how, json_t **ret)
{
	json_t *names = json_array(), *item;
	size_t i;
	int rc = 0;

	json_array_foreach(list, i, item) {
		const char *text = json_string_value(item), *other;

		if (!text) {
			rc = error_set(p->e, -EINVAL, "an end must be a name");
			break;
		}
		other = other_object(p, text, how);
		if (other)
			append_once(names, json_string(other));
		else
			rc = end_add(p, text, how, names);
		if (rc)
			break;
	}
	if (rc) {
		json_decref(names);
		return rc;
	}
	*ret = names;
	return 0;
}

int plan_used_by(struct planner *p, const json_t *object, json_t **ret)
{
	const json_t *list = json_object_get(object, "used_by");

	if (!list) {
		*ret = json_array();
		return 0;
	}
	return plan_ends(p, list, ENDS_USED, ret);
}

static bool pair_matches(const struct planner *p, const char *text, const char *instance, const json_t *pair)
{
	struct end end = { .index = NO_INDEX };
	const char *agent;
	size_t i;
	json_t *item;

	if (!strcmp(text, "*") || !strcmp(text, instance))
		return true;
	if (snprintf(end.text, sizeof(end.text), "%s", text) >= (int)sizeof(end.text) || end_index(&end, end.text) < 0)
		return false;
	if (!strcmp(end.text, json_str(pair, "of")))
		return end.index == NO_INDEX || end.index == ALL_INDICES || end.index == json_int(pair, "index", 0);
	agent = json_object_get(p->agents, text) ? text : NULL;
	json_array_foreach(json_object_get(pair, "ends"), i, item)
		if (agent && !strcmp(agent, json_string_value(item)))
			return true;
	return false;
}

int plan_pairs(struct planner *p, const json_t *list, json_t **ret)
{
	json_t *names = json_array(), *pair, *item;
	const char *instance;
	size_t i;

	if (!list) {
		json_object_foreach(p->pairs, instance, pair)
			json_array_append_new(names, json_string(instance));
		*ret = names;
		return 0;
	}
	json_array_foreach(list, i, item) {
		size_t before = json_array_size(names);

		json_object_foreach(p->pairs, instance, pair)
			if (pair_matches(p, json_string_value(item), instance, pair))
				append_once(names, json_string(instance));
		if (json_array_size(names) == before && !json_array_has(names, json_string_value(item))) {
			json_decref(names);
			return error_set(p->e, -EINVAL, "there is no pair '%s'", json_string_value(item));
		}
	}
	*ret = names;
	return 0;
}

/* What each QP has unless the file says otherwise. */
static bool is_own_object(const char *suffix)
{
	static const char *const suffixes[] = { ".scq", ".rcq", ".tx", ".rx", ".mem", ".trf", ".ah" };

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++)
		if (!strcmp(suffix, suffixes[i]))
			return true;
	return false;
}

json_t *plan_object_name(struct planner *p, const char *name)
{
	const char *dot = strrchr(name, '.');
	json_t *list, *ends = NULL, *canonical = NULL;

	if (plan_find(p->plan, "cqs", name) || plan_find(p->plan, "srqs", name) || plan_find(p->plan, "mrs", name) ||
	    plan_find(p->plan, "mws", name) || plan_find(p->plan, "pds", name) || plan_find(p->plan, "ahs", name))
		return json_string(name);
	if (!dot || !is_own_object(dot)) {
		error_set(p->e, -EINVAL, "there is no object '%s'", name);
		return NULL;
	}
	list = json_pack("[s%]", name, (size_t)(dot - name));
	if (!plan_ends(p, list, ENDS_QPS, &ends)) {
		if (json_array_size(ends) == 1)
			canonical = json_sprintf("%s%s", json_string_value(json_array_get(ends, 0)), dot);
		else
			error_set(p->e, -EINVAL, "'%s' is several objects where one is wanted", name);
	}
	json_decref(ends);
	json_decref(list);
	return canonical;
}

static int ref_name(struct planner *p, json_t *ref)
{
	const char *text = json_str(ref, "ref");
	const char *dot = strrchr(text, '.');
	char head[END_MAX];
	json_t *list, *ends = NULL;
	int rc;

	if (!dot)
		return error_set(p->e, -EINVAL, "'%s' is no value of an end or a queue", text);
	snprintf(head, sizeof(head), "%.*s", (int)(dot - text), text);
	if (plan_find(p->plan, "cqs", head) || plan_find(p->plan, "srqs", head) || plan_find(p->plan, "mrs", head))
		return 0;
	list = json_pack("[s]", head);
	rc = plan_ends(p, list, ENDS_QPS, &ends);
	json_decref(list);
	if (rc)
		return rc;
	if (json_array_size(ends) == 1)
		json_object_set_new(ref, "ref", json_sprintf("%s%s", json_string_value(json_array_get(ends, 0)), dot));
	else
		rc = error_set(p->e, -EINVAL, "'%s' is several values where one is wanted", text);
	json_decref(ends);
	return rc;
}

int plan_refs(struct planner *p, json_t *value)
{
	const char *key;
	json_t *member;
	size_t i;
	int rc = 0;

	if (json_is_array(value)) {
		json_array_foreach(value, i, member)
			if (!rc)
				rc = plan_refs(p, member);
	} else if (json_is_object(value)) {
		if (json_str(value, "ref"))
			return ref_name(p, value);
		json_object_foreach(value, key, member)
			if (!rc)
				rc = plan_refs(p, member);
	}
	return rc;
}

uint64_t plan_rounded_up(uint64_t n)
{
	uint64_t power = 1;

	while (power < n + 1)
		power <<= 1;
	return power;
}

uint64_t plan_ref_bound(struct planner *p, const json_t *value)
{
	const char *text = json_str(value, "ref"), *dot;
	const json_t *object, *number = NULL;
	char head[END_MAX];
	uint64_t bound;

	if (json_is_integer(value))
		return (uint64_t)json_integer_value(value);
	if (!text)
		return 1;
	dot = strrchr(text, '.');
	snprintf(head, sizeof(head), "%.*s", dot ? (int)(dot - text) : 0, text);
	object = plan_qp(p->plan, head);
	if (object) {
		number = json_object_get(json_object_get(object, "cap"), dot + 1);
		if (!number)
			number = json_object_get(json_object_get(object, "attr"), dot + 1);
	}
	object = plan_find(p->plan, "cqs", head);
	if (!object)
		object = plan_find(p->plan, "srqs", head);
	if (object)
		number = json_object_get(object, "depth");
	/* A device may round a depth up to the next power of two. */
	bound = plan_rounded_up(json_is_integer(number) ? (uint64_t)json_integer_value(number) : 64);
	if (json_int(value, "add", 0) < 0 && (uint64_t)-json_int(value, "add", 0) >= bound)
		return 1;
	return bound + (uint64_t)json_int(value, "add", 0);
}
