/* SPDX-License-Identifier: MIT */
/* A hundred queue pairs of an agent inside a test program, and what it says of them, one by one. Included by one file of a test. */
#ifndef QD_MANY_RIG_H
#define QD_MANY_RIG_H

#include "../harness/many.h"
#include "../harness/test.h"
#include "agent_rig.h"
#include "fake_verbs.h"

#define QPS 100 /* more than the verbs thread takes at once */

static struct fake_qp *made[QPS];

static const char *name_at(size_t i)
{
	static char name[16];

	snprintf(name, sizeof(name), "p[%zu].a", i);
	return name;
}

static void set_up(void)
{
	fake.post_room = FAKE_MAX;
	fake.fail_at = 0;
	fake.refused = NULL;
	rig_start();
	rig_objects();
	for (size_t i = 0; i < QPS; i++) {
		CU_ASSERT_EQUAL_FATAL(rig_rc("{s:s, s:s, s:s, s:s, s:s, s:s}", "op", "qp_create", "name", name_at(i), "pd", "pd",
					     "type", "RC", "send_cq", "cq", "recv_cq", "cq"),
				      0);
		made[i] = fake.qp;
	}
}

static void tear_down(void)
{
	CU_ASSERT_EQUAL(json_array_size(json_object_get(rig_ask("{s:s}", "op", "release"), "left")), 0);
	CU_ASSERT_EQUAL(fake.live, 0);
	rig_stop();
}

/* The records of a kind from the n-th line on, one by one. New reference. */
static json_t *records_from(const char *kind, size_t from)
{
	json_t *found = json_array();

	for (; from < json_array_size(rig.records); from++) {
		json_t *line = json_array_get(rig.records, from);
		size_t n = many_is_record(line) ? many_count(line) : 1;

		CU_ASSERT(n > 0);
		for (size_t i = 0; i < n; i++) {
			json_t *one = many_is_record(line) ? many_record(line, i) : json_deep_copy(line);

			if (strcmp(json_str(one, "kind"), kind) == 0)
				json_array_append(found, one);
			json_decref(one);
		}
	}
	return found;
}

static json_t *reply_of(const json_t *reply, size_t i)
{
	return many_count(reply) ? many_member(reply, i) : json_incref(json_array_get(json_object_get(reply, "replies"), i));
}

static json_t *names_of(size_t n)
{
	json_t *names = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(names, json_string(name_at(i)));
	return names;
}

/* Nothing of it depends on when it was. */
static void without_time(json_t *record)
{
	json_object_del(record, "t");
	json_object_del(record, "dur_ns");
}

static void compare(const json_t *singles, json_t *folded, unsigned lives)
{
	json_t *record;
	size_t i;

	CU_ASSERT_EQUAL_FATAL(json_array_size(singles), json_array_size(folded));
	json_array_foreach(folded, i, record) {
		json_t *other = json_array_get(singles, i);

		CU_ASSERT(json_int(record, "t", 0) > 0 && (!lives || json_object_get(record, "dur_ns")));
		without_time(record);
		without_time(other);
		json_object_set_new(record, "life", json_integer(json_int(record, "life", 0) - lives));
		ROW_ASSERT(json_equal(record, other), "record %zu: %s instead of %s", i, json_dumps(record, 0),
			   json_dumps(other, 0));
	}
}

#endif
