/* SPDX-License-Identifier: MIT */
#include "plan_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attr.h"
#include "json.h"
#include "names.h"
#include "units.h"

/* An Ethernet MTU that carries an IB MTU of 1024, of 4096. */
#define LINK_MTU 1500
#define LINK_MTU_JUMBO 4200
#define LINK_MTU_MIN 576
#define LINK_MTU_MAX 9600

static const char *const cap_names[] = { "max_send_wr", "max_recv_wr", "max_send_sge", "max_recv_sge", "max_inline_data" };
static const char *const attr_names[] = {
	"timeout",    "retry_cnt", "rnr_retry", "min_rnr_timer", "path_mtu", "max_rd_atomic", "max_dest_rd_atomic",
	"pkey_index", "gid_index", "hop_limit", "traffic_class", "sl",       "flow_label",    "access",
	"sq_psn",     "rq_psn",    "qkey",
};

static bool listed(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

#define LISTED(names, name) listed(names, sizeof(names) / sizeof(*(names)), name)

static bool can_be_set(const char *name)
{
	return LISTED(cap_names, name) || LISTED(attr_names, name) || !strcmp(name, "type") || !strcmp(name, "signal_all");
}

/* splitmix64: a well-mixed number for each (seed, name). */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static int64_t psn_of(uint64_t seed, const char *qp)
{
	uint64_t x = mix(seed);

	for (; *qp; qp++)
		x = mix(x ^ (unsigned char)*qp);
	return (int64_t)(x & 0xffffff);
}

static int64_t psn_choose(const struct planner *p, const json_t *qp)
{
	const char *name = json_str(qp, "name"), *peer = json_str(qp, "peer");
	int64_t own = psn_of(p->o->seed, name);

	/* Equal PSNs on both ends would hide a mix-up of sq_psn and rq_psn. */
	if (own == psn_of(p->o->seed, peer) && strcmp(name, peer) > 0)
		own = (own + 0x1000) & 0xffffff;
	return own;
}

static json_t *access_default(void)
{
	return json_pack("[s,s,s]", "REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC");
}

static int value_check(struct planner *p, const char *where, const struct attr *a, const json_t *value)
{
	int64_t n = json_integer_value(value);

	if (json_is_object(value))
		return error_set(p->e, -EINVAL, "%s.%s: what a device returns is not known before its QPs are made", where,
				 a->name);
	if (!json_is_integer(value))
		return 0;
	if (n < a->min || n > a->max)
		return error_set(p->e, -EINVAL, "%s.%s is %lld, allowed are %lld to %lld", where, a->name, (long long)n,
				 (long long)a->min, (long long)a->max);
	if (!strcmp(a->name, "path_mtu") && !mtu_to_enum(n))
		return error_set(p->e, -EINVAL, "%s.path_mtu is %lld, allowed are 256, 512, 1024, 2048, 4096", where, (long long)n);
	return 0;
}

static int value_put(struct planner *p, json_t *qp, const char *where, const char *name, json_t *value)
{
	const struct attr *a = attr_find(name);
	int rc;

	if (!a || !can_be_set(name))
		return error_set(p->e, -EINVAL, "%s.%s: there is no such attribute of a QP", where, name);
	rc = value_check(p, where, a, value);
	if (rc)
		return rc;
	if (LISTED(cap_names, name))
		json_object_set(json_object_get(qp, "cap"), name, value);
	else if (LISTED(attr_names, name))
		json_object_set(json_object_get(qp, "attr"), name, value);
	else
		json_object_set(qp, name, value);
	return 0;
}

/* No attribute of the QP, but how it is made and used. */
static bool api_put(json_t *qp, const char *name, json_t *value)
{
	return !strcmp(name, "api") && !json_object_set(qp, "api", value);
}

/* A `qp:` block: what is for all, then what is for this agent. */
static int block_put(struct planner *p, json_t *qp, const char *where, const json_t *block)
{
	const char *agent = json_str(qp, "agent"), *name;
	json_t *value;
	int rc;

	json_object_foreach((json_t *)block, name, value) {
		if (json_object_get(p->agents, name) && json_is_object(value))
			continue;
		if (api_put(qp, name, value))
			continue;
		rc = value_put(p, qp, where, name, value);
		if (rc)
			return rc;
	}
	json_object_foreach(json_object_get(block, agent), name, value) {
		if (api_put(qp, name, value))
			continue;
		rc = value_put(p, qp, where, name, value);
		if (rc)
			return rc;
	}
	return 0;
}

/* "18", "4KiB", "true", "RC", "REMOTE_READ,REMOTE_WRITE". */
static json_t *set_value(const struct attr *a, const char *text)
{
	uint64_t n;
	char *end;

	if (!strcmp(a->name, "type"))
		return name_find(&names_qp_type, text) ? json_string(text) : NULL;
	if (!strcmp(a->name, "signal_all"))
		return !strcmp(text, "true") ? json_true() : !strcmp(text, "false") ? json_false() : NULL;
	if (!strcmp(a->name, "access")) {
		json_t *list = json_array();

		for (const char *s = text; *s; s += strcspn(s, ","), s += *s == ',') {
			json_t *flag = json_pack("s%", s, strcspn(s, ","));

			if (!name_find(&names_access, json_string_value(flag))) {
				json_decref(flag);
				json_decref(list);
				return NULL;
			}
			json_array_append_new(list, flag);
		}
		return list;
	}
	if (!strncmp(text, "0x", 2)) {
		errno = 0;
		n = strtoull(text, &end, 16);
		return errno || *end || n > INT64_MAX ? NULL : json_integer((json_int_t)n);
	}
	return units_parse_size(text, &n) || n > INT64_MAX ? NULL : json_integer((json_int_t)n);
}

/* "qp.a.timeout=18" in parts; agent is "" where none is named. */
struct setting {
	char agent[64];
	char name[64];
	const char *value;
	bool link;
};

static int setting_parse(struct planner *p, const char *text, struct setting *ret)
{
	const char *equals = strchr(text, '='), *dot, *last;
	bool link = !strncmp(text, "link.", 5);

	if (!equals || !equals[1] || (!link && strncmp(text, "qp.", 3)))
		return error_set(p->e, -EINVAL,
				 "--set %s: wanted is qp.ATTRIBUTE=VALUE, qp.AGENT.ATTRIBUTE=VALUE or link.mtu=VALUE", text);
	*ret = (struct setting){ .value = equals + 1, .link = link };
	dot = strchr(text, '.') + 1;
	last = memrchr(dot, '.', (size_t)(equals - dot));
	if (last && last - dot < (int)sizeof(ret->agent))
		memcpy(ret->agent, dot, (size_t)(last - dot));
	last = last ? last + 1 : dot;
	if (equals - last < (int)sizeof(ret->name))
		memcpy(ret->name, last, (size_t)(equals - last));
	return 0;
}

int plan_set_check(struct planner *p)
{
	for (const char *const *s = p->o->set; s && *s; s++) {
		struct setting set = { .link = false };
		const struct attr *a;
		json_t *value;
		int rc = setting_parse(p, *s, &set);

		if (rc)
			return rc;
		if (set.link && (strcmp(set.name, "mtu") || set.agent[0]))
			return error_set(p->e, -EINVAL, "--set %s: of a link only the mtu can be set", *s);
		if (set.link)
			continue;
		if (set.agent[0] && !json_object_get(p->agents, set.agent))
			return error_set(p->e, -EINVAL, "--set %s: there is no agent '%s'", *s, set.agent);
		a = attr_find(set.name);
		if (!a || !can_be_set(set.name))
			return error_set(p->e, -EINVAL, "--set %s: '%s' is no attribute of a QP", *s, set.name);
		value = set_value(a, set.value);
		if (!value)
			return error_set(p->e, -EINVAL, "--set %s: '%s' is no value for %s (%s)", *s, set.value, a->name, a->help);
		rc = value_check(p, "--set qp", a, value);
		json_decref(value);
		if (rc)
			return rc;
	}
	return 0;
}

static int set_put(struct planner *p, json_t *qp)
{
	for (const char *const *s = p->o->set; s && *s; s++) {
		struct setting set = { .link = false };
		json_t *value;
		int rc = setting_parse(p, *s, &set);

		if (rc)
			return rc;
		if (set.link || (set.agent[0] && strcmp(set.agent, json_str(qp, "agent"))))
			continue;
		value = set_value(attr_find(set.name), set.value);
		rc = value_put(p, qp, "--set qp", set.name, value);
		json_decref(value);
		if (rc)
			return rc;
	}
	return 0;
}

void plan_attributes_default(struct planner *p, json_t *qp)
{
	json_t *cap = json_object(), *attr = json_object();

	for (size_t i = 0; i < sizeof(cap_names) / sizeof(*cap_names); i++)
		json_object_set_new(cap, cap_names[i], json_integer(attr_find(cap_names[i])->def));
	for (size_t i = 0; i < sizeof(attr_names) / sizeof(*attr_names); i++) {
		int64_t def = attr_find(attr_names[i])->def;

		if (strcmp(attr_names[i], "qkey"))
			json_object_set_new(attr, attr_names[i], def < 0 ? json_null() : json_integer(def));
	}
	json_object_set_new(attr, "access", access_default());
	json_object_set_new(attr, "sq_psn", json_integer(psn_choose(p, qp)));
	json_object_set_new(qp, "cap", cap);
	json_object_set_new(qp, "attr", attr);
	json_object_set_new(qp, "type", json_string("RC"));
	json_object_set_new(qp, "signal_all", json_false());
}

static bool at_names(const struct planner *p, const json_t *at, const json_t *qp)
{
	const char *agent = json_str(qp, "agent"), *of = json_str(json_object_get(p->pairs, json_str(qp, "pair")), "of");
	size_t i;
	json_t *item;

	json_array_foreach(at, i, item) {
		const char *text = json_string_value(item), *dot;

		if (!text)
			continue;
		dot = strchr(text, '.');
		if (!strcmp(text, "*") || !strcmp(text, agent) ||
		    (dot && !strcmp(dot + 1, agent) && (*text == '*' || !strncmp(text, of, strlen(of)))))
			return true;
	}
	return false;
}

static void raise_to(json_t *cap, const char *name, int64_t n)
{
	if (json_int(cap, name, 0) < n)
		json_object_set_new(cap, name, json_integer(n));
}

/* Posts that want more than the default get it, unless the file itself says how much there is. */
static void raise_caps(const struct planner *p, json_t *qp, const json_t *steps)
{
	json_t *cap = json_object_get(qp, "cap"), *step;
	size_t i;

	json_array_foreach(steps, i, step) {
		const char *what = json_str(step, "do");
		bool accepted = !json_object_get(step, "returns") || json_has(step, "returns", "0");

		raise_caps(p, qp, json_object_get(step, "steps"));
		if (!what || strncmp(what, "post", 4) || !accepted || !at_names(p, json_object_get(step, "at"), qp))
			continue;
		raise_to(cap, strcmp(what, "post") ? "max_recv_sge" : "max_send_sge", json_int(step, "sge", 0));
		if (strcmp(what, "post"))
			continue;
		raise_to(cap, "max_send_wr", json_int(step, "count", 0));
		if (json_bool(step, "inline", false))
			raise_to(cap, "max_inline_data", json_int(step, "size", 64));
	}
}

int plan_attributes(struct planner *p, json_t *qp, const json_t *pair_qp)
{
	int rc;

	plan_attributes_default(p, qp);
	raise_caps(p, qp, json_object_get(p->doc, "steps"));
	rc = block_put(p, qp, "qp", json_object_get(p->doc, "qp"));
	if (!rc && pair_qp)
		rc = block_put(p, qp, "pair's qp", pair_qp);
	if (!rc)
		rc = set_put(p, qp);
	return rc;
}

int plan_link(struct planner *p)
{
	int64_t mtu = json_int(json_object_get(p->doc, "link"), "mtu", 0);
	uint64_t n;
	size_t i;
	json_t *qp;

	for (const char *const *s = p->o->set; s && *s; s++) {
		struct setting set = { .link = false };

		if (setting_parse(p, *s, &set) || !set.link)
			continue;
		if (units_parse_size(set.value, &n) || n < LINK_MTU_MIN || n > LINK_MTU_MAX)
			return error_set(p->e, -EINVAL, "--set %s: wanted is an MTU of %d to %d", *s, LINK_MTU_MIN, LINK_MTU_MAX);
		mtu = (int64_t)n;
	}
	/* A path MTU that the link cannot carry is a fault of its own; nobody gets it by merely asking for a large one. */
	if (!mtu) {
		mtu = LINK_MTU;
		json_array_foreach(p->qps, i, qp)
			if (json_int(json_object_get(qp, "attr"), "path_mtu", 0) > 1024)
				mtu = LINK_MTU_JUMBO;
	}
	json_object_set_new(p->plan, "link", json_pack("{s:I}", "mtu", (json_int_t)mtu));
	if (json_bool(json_object_get(p->doc, "link"), "ipv6", false))
		json_object_set_new(json_object_get(p->plan, "link"), "ipv6", json_true());
	return 0;
}
