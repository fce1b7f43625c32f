/* SPDX-License-Identifier: MIT */
/* What the ends are told of each other. The controller carries it, so that every identity fault is a changed field on its way. */
#include "controller_case.h"

#include <errno.h>
#include <string.h>

#include "controller_xrc.h"
#include "json.h"

/* splitmix64: a well-mixed word from a counter. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

uint64_t case_random(uint64_t seed, const char *name, unsigned count)
{
	uint64_t h = 0xcbf29ce484222325ULL;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3ULL;
	return mix(mix(seed ^ h) + count);
}

uint32_t psn_away(uint32_t first, uint32_t last, uint64_t random)
{
	uint32_t window = (last - first) & CTL_PSN_MASK;
	uint32_t taken = window + 2 * CTL_PSN_GAP;

	/* A window so long that nothing is far enough from it: the middle of what is left. */
	if (taken > CTL_PSN_MASK)
		return (last + ((CTL_PSN_MASK + 1 - window) / 2)) & CTL_PSN_MASK;
	return (last + CTL_PSN_GAP + (uint32_t)(random % (CTL_PSN_MASK + 2 - taken))) & CTL_PSN_MASK;
}

/* A window lies in a region: where, is known even before it is bound. */
static json_t *window_key(struct case_run *r, const struct object *mw)
{
	const struct object *over = ctl_object_find(r, json_str(mw->plan, "over"));
	uint64_t addr = over ? json_u64(over->ret, "addr", 0) + json_u64(mw->plan, "offset", 0) : 0;

	return json_pack("{s:I,s:o,s:i}", "rkey", (json_int_t)mw->rkey, "addr", json_hex(addr), "life", (int)mw->life);
}

/* Borrowed: the same in each handover, until the region gets another key. */
static json_t *region_key(struct object *mr)
{
	if (!mr->key || mr->key_rkey != mr->rkey || mr->key_life != mr->life) {
		json_decref(mr->key);
		mr->key_rkey = mr->rkey;
		mr->key_life = mr->life;
		mr->key = json_pack("{s:I,s:O,s:i}", "rkey", (json_int_t)mr->rkey, "addr", json_object_get(mr->ret, "addr"), "life",
				    (int)mr->life);
	}
	return mr->key;
}

static void add_keys(struct case_run *r, const struct object *qp, struct object *first, json_t *keys)
{
	for (struct object *o = first; o; o = o->keyed) {
		if (!o->exists || strcmp(o->agent, qp->agent) != 0)
			continue;
		if (o->type == OBJECT_MW)
			json_object_set_new(keys, o->name, window_key(r, o));
		else
			json_object_set(keys, o->name, region_key(o));
	}
}

static json_t *keys_of(struct case_run *r, const struct object *qp)
{
	json_t *keys = json_object();

	add_keys(r, qp, r->keyed, keys);
	add_keys(r, qp, qp->keyed, keys);
	return keys;
}

json_t *handover_make(struct case_run *r, const struct object *qp)
{
	const struct ctl_agent *a = agent_find(r, qp->agent);
	const json_t *device = a ? a->device : NULL;
	const char *gid = json_str(device, "gid");
	json_t *told;

	told = json_pack("{s:O,s:I,s:I,s:s,s:I,s:I,s:i,s:o}", "qp", qp->named, "qpn", (json_int_t)qp->qpn, "psn",
			 (json_int_t)qp->sq_psn, "gid", gid ? gid : "", "lid", (json_int_t)json_int(device, "lid", 0), "mtu",
			 (json_int_t)json_int(device, "mtu", 0), "life", (int)qp->life, "keys", keys_of(r, qp));
	if (told && is_datagram(qp))
		json_object_set_new(told, "qkey", json_integer(json_integer_value(qp_attr(qp, "qkey"))));
	if (told && xrc_receives(qp))
		json_object_set_new(told, "srqns", xrc_srqns(r, qp));
	return told;
}

json_t *handover_region(struct object *mr)
{
	return json_pack("{s:{s:O}}", "keys", mr->name, region_key(mr));
}

static bool has_keys(const json_t *keys, struct object *first, const char *agent, size_t *ret_n)
{
	for (struct object *o = first; o; o = o->keyed) {
		if (!o->exists || strcmp(o->agent, agent) != 0)
			continue;
		if (o->type != OBJECT_MR || json_object_get(keys, o->name) != region_key(o))
			return false;
		++*ret_n;
	}
	return true;
}

/* What the same QP told the same end in its life before, but for where it counts from: most of it need not be put together again.
 */
static bool tell_again(struct case_run *r, struct object *to, const struct object *peer)
{
	const json_t *keys = json_object_get(to->told, "keys"), *gid = json_object_get(to->told, "gid");
	const struct ctl_agent *a = agent_find(r, peer->agent);
	size_t n = 0;

	if (!peer->alike || faults_active(r) || wire_wanted(r) || !to->told || to->told->refcount != 1 || !a)
		return false;
	if (json_object_get(to->told, "qp") != peer->named || json_int(to->told, "qpn", -1) != peer->qpn ||
	    !json_equal(gid, json_object_get(a->device, "gid")) || !has_keys(keys, r->keyed, peer->agent, &n) ||
	    !has_keys(keys, peer->keyed, peer->agent, &n) || n != json_object_size(keys))
		return false;
	json_object_set_new(to->told, "psn", json_integer(peer->sq_psn));
	json_object_set_new(to->told, "life", json_integer(peer->life));
	return true;
}

/* Of all there is to tell the key of one region is new; whatever else was told before stays. */
static void keep_other_keys(const json_t *before, json_t *told, const char *region)
{
	json_t *keys = json_copy(json_object_get(before, "keys")), *key = json_object_get(json_object_get(told, "keys"), region);

	if (!keys)
		keys = json_object();
	if (key)
		json_object_set(keys, region, key);
	else
		json_object_del(keys, region);
	json_object_set_new(told, "keys", keys);
	json_object_del(told, "srqns");
}

/* region: NULL for all of them. */
static int tell(struct case_run *r, struct object *to, bool keys_only, const char *region, struct error *e)
{
	struct object *peer = ctl_object_find(r, to->peer);
	json_t *told;

	if (!peer)
		return error_set(e, -ENOENT, "%s has no peer in the plan", to->name);
	if (!peer->exists && !keys_only)
		return error_set(e, -ENOTCONN, "%s cannot be told of %s, which does not exist", to->name, peer->name);
	if (!keys_only && tell_again(r, to, peer))
		return 0;
	told = handover_make(r, peer);
	if (!told)
		return error_set(e, -ENOMEM, "out of memory");
	faults_on_handover(r, to->name, told);
	if (region)
		keep_other_keys(to->told, told, region);
	if (keys_only && to->told) {
		json_object_set(to->told, "keys", json_object_get(told, "keys"));
		if (json_object_get(told, "srqns"))
			json_object_set(to->told, "srqns", json_object_get(told, "srqns"));
		json_decref(told);
		return 0;
	}
	json_decref(to->told);
	to->told = told;
	return wire_connect(r, to, e);
}

int handover_tell(struct case_run *r, struct object *to, bool keys_only, struct error *e)
{
	return tell(r, to, keys_only, NULL, e);
}

int handover_tell_key(struct case_run *r, struct object *to, const char *region, struct error *e)
{
	return tell(r, to, true, region, e);
}
