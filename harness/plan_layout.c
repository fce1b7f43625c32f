/* SPDX-License-Identifier: MIT */
#include "plan_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

#define ALIGN 64

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

bool plan_op_is_atomic(const char *op)
{
	return op && (!strcmp(op, "CMP_AND_SWP") || !strcmp(op, "FETCH_AND_ADD"));
}

bool plan_op_is_remote(const char *op)
{
	return op && (!strncmp(op, "WRITE", 5) || !strcmp(op, "READ") || plan_op_is_atomic(op));
}

/* The largest value that the file gives an attribute, wherever it stands. */
static uint64_t largest_given(const json_t *in, const char *attr)
{
	uint64_t largest = 0;
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)in, key, value) {
		if (json_is_object(value))
			largest = max_u64(largest, largest_given(value, attr));
		else if (!strcmp(key, attr) && json_is_integer(value))
			largest = max_u64(largest, (uint64_t)json_integer_value(value));
	}
	return largest;
}

/* Of a size that a device says: as long as what it is asked for may become. */
static uint64_t size_given(const json_t *doc, const json_t *message, uint64_t def)
{
	const json_t *size = json_object_get(message, "size");
	const char *ref = json_str(size, "ref"), *attr = ref ? strrchr(ref, '.') : NULL;
	int64_t add = json_int(size, "add", 0);
	uint64_t asked;

	if (!attr)
		return (uint64_t)json_int(message, "size", (int64_t)def);
	asked = max_u64(largest_given(json_object_get(doc, "qp"), attr + 1),
			largest_given(json_object_get(doc, "pairs"), attr + 1));
	asked = plan_rounded_up(asked ? asked : PLAN_POST_BYTES);
	return add < 0 && (uint64_t)-add > asked ? 0 : asked + (uint64_t)add;
}

static uint64_t longest_of(const json_t *doc, const json_t *step)
{
	const char *what = json_str(step, "do"), *op = json_str(step, "op");
	const json_t *check = what && !strcmp(what, "recover") ? json_object_get(step, "check") : step;
	uint64_t longest = 0;
	size_t i;
	json_t *member;

	if (!what)
		return 0;
	if (!strcmp(what, "post_recv") || (!strcmp(what, "post") && op && !strncmp(op, "SEND", 4)))
		longest = size_given(doc, step, PLAN_POST_BYTES);
	json_array_foreach(json_object_get(step, "chain"), i, member)
		longest = max_u64(longest, size_given(doc, member, PLAN_POST_BYTES));
	if ((!strcmp(what, "traffic") && !json_object_get(step, "stop")) || !strcmp(what, "recover"))
		if (!json_object_get(check, "ops") || json_has(check, "ops", "SEND") || json_has(check, "ops", "SEND_WITH_IMM"))
			longest = (uint64_t)json_int(check, "size", PLAN_TRAFFIC_BYTES);
	return longest;
}

uint64_t plan_longest_message(const json_t *doc, const json_t *steps)
{
	uint64_t longest = PLAN_MSG_BYTES_MIN;
	size_t i;
	json_t *step;

	json_array_foreach(steps, i, step) {
		longest = max_u64(longest, longest_of(doc, step));
		longest = max_u64(longest, plan_longest_message(doc, json_object_get(step, "steps")));
	}
	return longest;
}

static uint64_t stride_of(uint64_t size)
{
	return size ? (size + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
}

static uint64_t room(const struct planner *p, const char *mr)
{
	return (uint64_t)json_int(p->room, mr, 0);
}

static void room_take(struct planner *p, const char *mr, uint64_t end)
{
	json_object_set_new(p->room, mr, json_integer((json_int_t)max_u64(room(p, mr), end)));
}

/* The same offset in an MR of each of these QPs (or of their peers), where none of them has anything yet. */
static uint64_t place_in_own(struct planner *p, const json_t *at, const char *role, bool peers, uint64_t bytes)
{
	uint64_t off = 0;
	size_t i;
	json_t *item;
	char name[160];

	for (int pass = 0; pass < 2; pass++)
		json_array_foreach(at, i, item) {
			const char *qp = json_string_value(item);

			snprintf(name, sizeof(name), "%s.%s", peers ? json_str(plan_qp(p->plan, qp), "peer") : qp, role);
			if (pass == 0)
				off = max_u64(off, room(p, name));
			else
				room_take(p, name, off + bytes);
		}
	return off;
}

/* In a named MR each end has its own part, one after the other, from the offset that was given or where there is room. */
static void place_in_named(struct planner *p, json_t *step, uint64_t bytes)
{
	json_t *to = json_object_get(step, "to");
	const char *mr = json_str(to, "mr");
	uint64_t add = (uint64_t)json_int(to, "add", 0), off = add, ends = json_array_size(json_object_get(step, "at"));
	const json_t *window = plan_find(p->plan, "mws", mr);
	uint64_t size = (uint64_t)json_int(window ? window : plan_find(p->plan, "mrs", mr), "bytes", 0);

	if (!add) {
		off = room(p, mr);
		if (off + ends * bytes > size)
			off = 0;
		room_take(p, mr, off + ends * bytes);
	}
	json_object_set_new(step, "mem_off", json_integer((json_int_t)off));
	json_object_set_new(step, "mem_step", json_integer(ends > 1 ? (json_int_t)bytes : 0));
}

bool plan_op_has_data(const char *op)
{
	return !op || (strcmp(op, "LOCAL_INV") && strcmp(op, "BIND_MW"));
}

/* What a message may be long: where a device's word decides, as long as that may become. */
static uint64_t size_bound(struct planner *p, const json_t *message)
{
	const json_t *size = json_object_get(message, "size");

	return size && plan_op_has_data(json_str(message, "op")) ? plan_ref_bound(p, size) : 0;
}

static uint64_t member_size_max(struct planner *p, const json_t *step)
{
	uint64_t size = size_bound(p, step);
	size_t i;
	json_t *member;

	json_array_foreach(json_object_get(step, "members"), i, member)
		size = max_u64(size, size_bound(p, member));
	return size;
}

static bool touches_peer(const json_t *step)
{
	size_t i;
	json_t *member;

	json_array_foreach(json_object_get(step, "members"), i, member)
		if (plan_op_is_remote(json_str(member, "op")))
			return true;
	return plan_op_is_remote(json_str(step, "op"));
}

static int place_replay(struct planner *p, json_t *step)
{
	static const char *const places[] = { "tag", "tx_off", "mem_off", "mem_step", "stride", "slots", "to" };
	const char *of = json_str(step, "replay");
	const json_t *original = json_object_get(p->posts, of);

	if (!original)
		return error_set(p->e, -EINVAL, "replay: no post before it is called '%s'", of);
	if (member_size_max(p, step) > (uint64_t)json_int(original, "stride", 0))
		return error_set(p->e, -EINVAL, "replay: '%s' has %lld bytes a message, this one asks for %llu", of,
				 (long long)json_int(original, "stride", 0), (unsigned long long)member_size_max(p, step));
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (json_object_get(original, places[i]))
			json_object_set(step, places[i], json_object_get(original, places[i]));
	return 0;
}

int plan_place(struct planner *p, json_t *step)
{
	const json_t *at = json_object_get(step, "at");
	uint64_t stride = stride_of(member_size_max(p, step)), slots;

	if (json_str(step, "replay"))
		return place_replay(p, step);
	slots = json_object_get(step, "members") ? json_array_size(json_object_get(step, "members"))
						 : plan_ref_bound(p, json_object_get(step, "count"));
	if (slots * stride > PLAN_POST_BYTES_MAX)
		slots = PLAN_POST_BYTES_MAX / stride;
	if (!slots)
		slots = 1;
	json_object_set_new(step, "tag", json_integer(++p->tags * PLAN_TAG_STEP));
	json_object_set_new(step, "stride", json_integer((json_int_t)stride));
	json_object_set_new(step, "slots", json_integer((json_int_t)slots));
	json_object_set_new(step, "tx_off", json_integer((json_int_t)place_in_own(p, at, "tx", false, slots * stride)));
	if (!touches_peer(step))
		return 0;
	if (json_object_get(step, "to"))
		place_in_named(p, step, slots * stride);
	else
		json_object_set_new(step, "mem_off", json_integer((json_int_t)place_in_own(p, at, "mem", true, slots * stride)));
	return 0;
}

void plan_traffic_room(struct planner *p, const json_t *pairs, const json_t *traffic)
{
	uint64_t quarter = stride_of((uint64_t)json_int(traffic, "size", PLAN_TRAFFIC_BYTES)) *
			   plan_ref_bound(p, json_object_get(traffic, "depth"));
	size_t i, k;
	json_t *pair, *qp;

	json_array_foreach(pairs, i, pair)
		json_array_foreach(p->qps, k, qp) {
			const char *name = json_str(qp, "name");

			if (!strcmp(json_str(qp, "pair"), json_string_value(pair)))
				json_object_set_new(
					p->traffic, name,
					json_integer((json_int_t)max_u64((uint64_t)json_int(p->traffic, name, 0), quarter)));
		}
}
