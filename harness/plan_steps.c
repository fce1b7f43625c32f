/* SPDX-License-Identifier: MIT */
#include "plan_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../faults/fault.h"
#include "json.h"
#include "names.h"

#define TRAFFIC_MESSAGES 64
#define CHECK_MESSAGES 24

static void set_default(json_t *step, const char *key, json_t *value)
{
	if (json_object_get(step, key))
		json_decref(value);
	else
		json_object_set_new(step, key, value);
}

static int resolve_ends(struct planner *p, json_t *step, const char *key, enum ends_how how)
{
	json_t *value = json_object_get(step, key), *list, *names;
	int rc;

	if (!value)
		return 0;
	list = json_is_array(value) ? json_incref(value) : json_pack("[O]", value);
	rc = plan_ends(p, list, how, &names);
	json_decref(list);
	if (!rc)
		json_object_set_new(step, key, names);
	return rc;
}

/* `pair` (a list, or absent for all) becomes `pairs`. */
static int resolve_pairs(struct planner *p, json_t *step)
{
	json_t *names;
	int rc = plan_pairs(p, json_object_get(step, "pair"), &names);

	if (rc)
		return rc;
	json_object_del(step, "pair");
	json_object_set_new(step, "pairs", names);
	return 0;
}

static int resolve_names(struct planner *p, json_t *step, const char *key)
{
	json_t *list = json_object_get(step, key), *item, *out;
	size_t i;

	if (!list)
		return 0;
	if (json_is_string(list)) {
		json_t *name = plan_object_name(p, json_string_value(list));

		return name ? json_object_set_new(step, key, name) : -EINVAL;
	}
	out = json_array();
	json_array_foreach(list, i, item) {
		json_t *name = plan_object_name(p, json_string_value(item));

		if (!name) {
			json_decref(out);
			return -EINVAL;
		}
		json_array_append_new(out, name);
	}
	return json_object_set_new(step, key, out);
}

static void set_returns(json_t *step)
{
	set_default(step, "returns", json_pack("[s]", "0"));
}

static int do_connect(struct planner *p, json_t *step)
{
	set_default(step, "by", json_string("verbs"));
	set_returns(step);
	return resolve_pairs(p, step);
}

static int do_create_destroy(struct planner *p, json_t *step)
{
	static const char *const keys[] = { "cq", "srq", "mr", "mw", "ah", "pd" };
	int rc = resolve_ends(p, step, "qp", ENDS_QPS);

	for (size_t i = 0; !rc && i < sizeof(keys) / sizeof(*keys); i++)
		rc = resolve_names(p, step, keys[i]);
	set_returns(step);
	return rc;
}

static int do_modify(struct planner *p, json_t *step)
{
	set_returns(step);
	return resolve_ends(p, step, "at", ENDS_RESIZED);
}

static void message_defaults(struct planner *p, json_t *message)
{
	const char *op = json_str(message, "op");
	int64_t bytes = PLAN_POST_BYTES;

	if (plan_op_is_atomic(op))
		bytes = 8;
	else if (op && !strcmp(op, "BIND_MW"))
		bytes = json_int(plan_find(p->plan, "mws", json_str(message, "mw")), "bytes", 0);
	else if (op && !strcmp(op, "LOCAL_INV"))
		bytes = 0;
	set_default(message, "size", json_integer(bytes));
	set_default(message, "signaled", json_true());
	if (op && !strcmp(op, "CMP_AND_SWP")) {
		set_default(message, "compare", json_integer(0));
		set_default(message, "swap", json_integer(1));
	}
	if (op && !strcmp(op, "FETCH_AND_ADD"))
		set_default(message, "add", json_integer(1));
}

/* A chain whose members differ: `chain: [...]` becomes `members` and `chain: true`. */
static void chain_members(struct planner *p, json_t *step, void (*defaults)(struct planner *p, json_t *member))
{
	json_t *chain = json_object_get(step, "chain"), *member;
	size_t i;

	if (!json_is_array(chain))
		return;
	json_array_foreach(chain, i, member) {
		if (json_str(step, "op"))
			set_default(member, "op", json_incref(json_object_get(step, "op")));
		defaults(p, member);
	}
	json_object_set(step, "members", chain);
	json_object_set_new(step, "count", json_integer((json_int_t)json_array_size(chain)));
	json_object_set_new(step, "chain", json_true());
}

static int resolve_to(struct planner *p, json_t *step)
{
	json_t *to = json_object_get(step, "to"), *name;
	const char *mr = json_is_string(to) ? json_string_value(to) : json_str(to, "mr");
	int64_t add = json_int(to, "add", 0);

	if (!to)
		return 0;
	name = mr ? plan_object_name(p, mr) : NULL;
	if (!name)
		return mr ? -EINVAL : error_set(p->e, -EINVAL, "to: wanted is the name of an MR");
	return json_object_set_new(step, "to", json_pack("{s:o,s:I}", "mr", name, "add", (json_int_t)add));
}

/* The address handles of a post and of its members. */
static int resolve_handles(struct planner *p, json_t *step)
{
	json_t *chain = json_object_get(step, "chain"), *member;
	size_t i;
	int rc = resolve_names(p, step, "ah");

	for (i = 0; !rc && json_is_array(chain) && (member = json_array_get(chain, i)); i++)
		rc = resolve_names(p, member, "ah");
	return rc;
}

static int do_post(struct planner *p, json_t *step)
{
	const char *as = json_str(step, "as");
	int rc = resolve_ends(p, step, "at", ENDS_QPS);

	if (!rc)
		rc = resolve_to(p, step);
	if (!rc)
		rc = resolve_handles(p, step);
	if (rc)
		return rc;
	chain_members(p, step, message_defaults);
	message_defaults(p, step);
	set_default(step, "count", json_integer(1));
	set_returns(step);
	rc = plan_place(p, step);
	if (!rc && as)
		json_object_set(p->posts, as, step);
	return rc;
}

static void receive_defaults(struct planner *p, json_t *member)
{
	(void)p;
	set_default(member, "size", json_integer(PLAN_POST_BYTES));
}

/* What lies in front of each message in the receives of these ends. */
static int64_t head_of(const struct planner *p, const json_t *at)
{
	int64_t head = 0;
	const json_t *name;
	size_t i;

	json_array_foreach(at, i, name) {
		const char *text = json_string_value(name);
		const json_t *o = plan_qp(p->plan, text);
		int64_t own = json_int(o ? o : plan_find(p->plan, "srqs", text), "head_bytes", 0);

		head = own > head ? own : head;
	}
	return head;
}

static int do_post_recv(struct planner *p, json_t *step)
{
	int rc;

	chain_members(p, step, receive_defaults);
	set_default(step, "count", json_integer(1));
	set_returns(step);
	rc = resolve_ends(p, step, "at", ENDS_SRQS);
	if (!rc)
		set_default(step, "size", json_integer((json_int_t)p->msg_bytes + head_of(p, json_object_get(step, "at"))));
	return rc;
}

static int do_attach(struct planner *p, json_t *step)
{
	set_returns(step);
	return resolve_ends(p, step, "at", ENDS_QPS);
}

static int do_poll(struct planner *p, json_t *step)
{
	if (json_object_get(step, "wait"))
		set_default(step, "events", json_integer(1));
	return resolve_names(p, step, "cq");
}

/* READs are for reliable connections. */
static bool all_read(const struct planner *p, const json_t *pairs)
{
	const json_t *qp;
	size_t i;

	json_array_foreach(p->qps, i, qp)
		if (json_array_has(pairs, json_str(qp, "pair")) && !qp_type_is_reliable(json_str(qp, "type")))
			return false;
	return true;
}

static bool any_datagram(const struct planner *p, const json_t *pairs)
{
	const json_t *qp;
	size_t i;

	json_array_foreach(p->qps, i, qp)
		if (json_array_has(pairs, json_str(qp, "pair")) && !strcmp(json_str(qp, "type"), "UD"))
			return true;
	return false;
}

static json_t *all_ops(const struct planner *p, const json_t *pairs, int messages)
{
	if (!messages && plan_any_xrc(p, pairs)) /* see plan_xrc_traffic() */
		return json_pack("[s,s]", "WRITE", "READ");
	if (any_datagram(p, pairs))
		return json_pack("[s]", "SEND");
	return all_read(p, pairs) ? json_pack("[s,s,s]", "SEND", "WRITE", "READ") : json_pack("[s,s]", "SEND", "WRITE");
}

static void traffic_defaults(struct planner *p, json_t *traffic, const json_t *pairs, int messages)
{
	set_default(traffic, "ops", all_ops(p, pairs, messages));
	set_default(traffic, "size", json_integer(PLAN_TRAFFIC_BYTES));
	set_default(traffic, "depth", json_integer(PLAN_TRAFFIC_DEPTH));
	set_default(traffic, "messages", json_integer(messages));
	json_object_set_new(traffic, "tag", json_integer(++p->tags * PLAN_TAG_STEP));
}

static int do_traffic(struct planner *p, json_t *step)
{
	bool background = json_str(step, "as") != NULL;
	int rc;

	if (json_object_get(step, "stop"))
		return 0;
	rc = resolve_pairs(p, step);
	if (!rc)
		rc = resolve_to(p, step);
	if (rc)
		return rc;
	traffic_defaults(p, step, json_object_get(step, "pairs"), background ? 0 : TRAFFIC_MESSAGES);
	json_object_set_new(step, "background", json_boolean(background));
	plan_traffic_room(p, json_object_get(step, "pairs"), step);
	return plan_xrc_traffic(p, step, json_object_get(step, "pairs"));
}

static int do_remember(struct planner *p, json_t *step)
{
	int rc = resolve_ends(p, step, "end", ENDS_QPS);

	return rc ? rc : resolve_names(p, step, "mr");
}

static int do_exchange(struct planner *p, json_t *step)
{
	int rc = resolve_pairs(p, step);

	return rc ? rc : resolve_names(p, step, "mr");
}

static int do_recover(struct planner *p, json_t *step)
{
	json_t *check = json_object_get(step, "check");
	int rc = resolve_pairs(p, step);

	if (!rc)
		rc = resolve_ends(p, step, "ends", ENDS_QPS);
	if (!rc)
		rc = resolve_names(p, step, "replace");
	if (rc)
		return rc;
	if (!check) {
		check = json_object();
		json_object_set_new(step, "check", check);
	}
	traffic_defaults(p, check, json_object_get(step, "pairs"), CHECK_MESSAGES);
	set_default(step, "attempts", json_integer(1));
	set_default(step, "backoff", json_integer(0));
	set_default(step, "result", json_string("verified"));
	set_default(step, "if_needed", json_false());
	plan_traffic_room(p, json_object_get(step, "pairs"), check);
	return plan_xrc_traffic(p, check, json_object_get(step, "pairs"));
}

/* A link's fault is about a device: any QP of the agent will do to name it. */
static int resolve_fault_end(struct planner *p, json_t *args, const struct fault_param *param, enum fault_layer layer)
{
	json_t *value = json_object_get(args, param->name), *list, *names;
	int rc;

	if (!value)
		return 0;
	if (layer == FAULT_LINK && json_is_string(value) && json_object_get(p->agents, json_string_value(value)))
		list = json_pack("[o]", json_sprintf("*.%s", json_string_value(value)));
	else
		list = json_is_array(value) ? json_incref(value) : json_pack("[O]", value);
	rc = plan_ends(p, list, ENDS_ANY, &names);
	json_decref(list);
	if (rc)
		return rc;
	if (param->type == FAULT_PARAM_ENDS) {
		json_object_set_new(args, param->name, names);
		return 0;
	}
	if (json_array_size(names) != 1 && layer != FAULT_LINK)
		rc = error_set(p->e, -EINVAL, "%s: one end is wanted, these are %zu", param->name, json_array_size(names));
	else
		json_object_set(args, param->name, json_array_get(names, 0));
	json_decref(names);
	return rc;
}

/* Ends and pairs of a packet match; an agent alone stays as it is: it means that agent in any pair. */
int plan_match(struct planner *p, json_t *match)
{
	json_t *from = json_object_get(match, "from"), *pair = json_object_get(match, "pair"), *names;
	bool agents = true;
	size_t i;
	const json_t *item;
	int rc = 0;

	if (json_is_string(from))
		json_object_set_new(match, "from", json_pack("[O]", from));
	from = json_object_get(match, "from");
	json_array_foreach(from, i, item)
		agents = agents && json_object_get(p->agents, json_string_value(item));
	if (!agents)
		rc = resolve_ends(p, match, "from", ENDS_QPS);
	if (rc || !pair)
		return rc;
	rc = plan_pairs(p, pair, &names);
	if (!rc)
		json_object_set_new(match, "pair", names);
	return rc;
}

static int fault_args(struct planner *p, json_t *args, const struct fault_ops *ops)
{
	for (const struct fault_param *param = ops->params; param && param->name; param++) {
		json_t *value = json_object_get(args, param->name);
		int rc = 0;

		if (param->type == FAULT_PARAM_END || param->type == FAULT_PARAM_ENDS)
			rc = resolve_fault_end(p, args, param, ops->layer);
		else if (param->type == FAULT_PARAM_MAP && value && !strcmp(param->name, "match"))
			rc = plan_match(p, value);
		if (rc)
			return rc;
	}
	return 0;
}

static int do_fault(struct planner *p, json_t *step)
{
	const char *name = json_str(step, "fault");
	const struct fault_ops *ops = name ? fault_find(name) : NULL;
	json_t *args = json_object_get(step, "args");
	uint64_t for_ns = (uint64_t)json_int(step, "for", 0);
	int rc;

	if (!args) {
		args = json_object();
		json_object_set_new(step, "args", args);
	}
	set_default(step, "as", json_sprintf("%s#%lld", name ? name : "fault", (long long)json_int(step, "n", 0)));
	if (for_ns)
		json_object_set_new(step, "for_ns", json_integer((json_int_t)for_ns));
	/* plan_skip() says that this build does not have it. */
	if (!ops)
		return 0;
	rc = fault_args(p, args, ops);
	if (rc)
		return rc;
	json_object_set_new(step, "layer", json_string(fault_layer_names[ops->layer]));
	json_object_set_new(step, "blast", json_string(fault_blast_names[fault_blast_of(ops, json_object_get(step, "args"))]));
	json_object_set_new(step, "detection",
			    json_string(detection_names[ops->detection ? ops->detection(args) : DETECTION_NONE]));
	return 0;
}

static int do_clear(struct planner *p, json_t *step)
{
	(void)p;
	(void)step;
	return 0;
}

static void observation_time(json_t *step)
{
	json_t *for_ns = json_object_get(step, "for");

	if (!for_ns)
		return;
	json_object_set(step, "for_ns", for_ns);
	json_object_del(step, "for");
}

static int do_expect(struct planner *p, json_t *step)
{
	size_t i;
	json_t *choice;
	int rc = resolve_ends(p, step, "at", ENDS_ANY);

	if (!rc && json_object_get(step, "packets"))
		rc = plan_match(p, json_object_get(step, "packets"));
	observation_time(step);
	json_array_foreach(json_object_get(step, "any"), i, choice) {
		if (!rc)
			rc = do_expect(p, choice);
	}
	return rc;
}

static int do_repeat(struct planner *p, json_t *step)
{
	json_t *steps = json_array();
	int rc = plan_steps(p, json_object_get(step, "steps"), steps);

	json_object_set_new(step, "steps", steps);
	return rc;
}

static int do_wait(struct planner *p, json_t *step)
{
	(void)p;
	json_object_set(step, "for_ns", json_object_get(step, "arg"));
	return 0;
}

static const struct step_plan {
	const char *name;
	int (*plan)(struct planner *p, json_t *step);
} step_plans[] = {
	{ "attach", do_attach },   { "detach", do_attach },         { "allow", do_expect },           { "clear", do_clear },
	{ "connect", do_connect }, { "create", do_create_destroy }, { "destroy", do_create_destroy }, { "exchange", do_exchange },
	{ "expect", do_expect },   { "fault", do_fault },           { "modify", do_modify },          { "poll", do_poll },
	{ "post", do_post },       { "post_recv", do_post_recv },   { "recover", do_recover },        { "remember", do_remember },
	{ "repeat", do_repeat },   { "together", do_repeat },       { "traffic", do_traffic },        { "wait", do_wait },
};

static int plan_one(struct planner *p, const json_t *in, json_t *out)
{
	const char *what = json_str(in, "do");
	json_t *step = json_deep_copy(in);
	int rc;

	json_array_append_new(out, step);
	json_object_set_new(step, "n", json_integer(++p->steps));
	for (size_t i = 0; i < sizeof(step_plans) / sizeof(*step_plans); i++) {
		if (!what || strcmp(step_plans[i].name, what))
			continue;
		rc = json_object_get(step, "steps") ? 0 : plan_refs(p, step);
		if (!rc)
			rc = step_plans[i].plan(p, step);
		if (rc && json_object_get(step, "steps"))
			return rc;
		if (rc)
			return error_prefix(p->e, rc, "%s:%lld: %s", p->o->file ? p->o->file : "-",
					    (long long)json_int(in, "line", 0), what);
		return 0;
	}
	return error_set(p->e, -EINVAL, "%s:%lld: there is no step '%s'", p->o->file ? p->o->file : "-",
			 (long long)json_int(in, "line", 0), what ? what : "");
}

int plan_steps(struct planner *p, const json_t *in, json_t *out)
{
	size_t i;
	json_t *step;

	json_array_foreach(in, i, step) {
		int rc = plan_one(p, step, out);

		if (rc)
			return rc;
	}
	return 0;
}
