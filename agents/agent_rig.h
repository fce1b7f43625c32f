/* SPDX-License-Identifier: MIT */
/* An agent inside a test program, spoken to over pipes; what it says is kept. Included by one file of a test program. */
#ifndef QD_AGENT_RIG_H
#define QD_AGENT_RIG_H

#include <CUnit/Basic.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../harness/json.h"
#include "../harness/line.h"
#include "../harness/loop.h"
#include "../harness/units.h"
#include "agent.h"

#define RIG_WAIT_NS (60 * NSEC_PER_SEC)

static struct {
	sd_event *loop;
	struct agent *agent;
	struct line *line;
	json_t *hello, *records, *replies;
	int next_id, raw_fd;
	bool ended;
} rig;

static void rig_on_json(void *user, json_t *value)
{
	(void)user;
	if (json_object_get(value, "hello"))
		rig.hello = json_incref(value);
	else if (json_object_get(value, "rec"))
		json_array_append(rig.records, json_object_get(value, "rec"));
	else
		json_array_append(rig.replies, value);
}

static void rig_on_text(void *user, const char *text)
{
	(void)user;
	fprintf(stderr, "not JSON: %s\n", text);
	CU_FAIL("the agent said something that is no JSON");
}

static void rig_on_end(void *user, int err)
{
	(void)user;
	(void)err;
	rig.ended = true;
}

static const struct line_ops rig_ops = { .on_json = rig_on_json, .on_text = rig_on_text, .on_end = rig_on_end };

static void rig_start(void)
{
	int to[2] = { -1, -1 }, from[2] = { -1, -1 };
	struct error e = { "" };

	memset(&rig, 0, sizeof(rig));
	rig.records = json_array();
	rig.replies = json_array();
	rig.next_id = 1;
	CU_ASSERT_FATAL(sd_event_new(&rig.loop) >= 0);
	CU_ASSERT_FATAL(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
	rig.raw_fd = dup(to[1]);
	CU_ASSERT_EQUAL_FATAL(agent_new(rig.loop, to[0], from[1], &rig.agent, &e), 0);
	CU_ASSERT_EQUAL_FATAL(line_new(rig.loop, from[0], to[1], &rig_ops, NULL, &rig.line), 0);
}

static void rig_stop(void)
{
	agent_free(rig.agent);
	line_free(rig.line);
	close(rig.raw_fd);
	json_decref(rig.records);
	json_decref(rig.replies);
	json_decref(rig.hello);
	sd_event_unref(rig.loop);
}

static json_t *rig_reply(json_int_t id)
{
	json_t *r;
	size_t i;

	json_array_foreach(rig.replies, i, r) {
		if (json_int(r, "id", -1) == id)
			return r;
	}
	return NULL;
}

static bool rig_answered(void *user)
{
	return rig_reply(*(int *)user) != NULL;
}

static int rig_send(const char *fmt, ...)
{
	json_t *req;
	va_list ap;
	int id = rig.next_id++;

	va_start(ap, fmt);
	req = json_vpack_ex(NULL, 0, fmt, ap);
	va_end(ap);
	CU_ASSERT_PTR_NOT_NULL_FATAL(req);
	json_object_set_new(req, "id", json_integer(id));
	CU_ASSERT_EQUAL(line_send(rig.line, req), 0);
	json_decref(req);
	return id;
}

/* Borrowed; lives until rig_stop(). */
static json_t *rig_wait(int id)
{
	CU_ASSERT_EQUAL(loop_wait(rig.loop, rig_answered, &id, now_ns() + RIG_WAIT_NS), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(rig_reply(id));
	return rig_reply(id);
}

#define rig_ask(...) rig_wait(rig_send(__VA_ARGS__))
#define rig_rc(...) ((int)json_int(rig_ask(__VA_ARGS__), "rc", -EIO))

/* The device `dev`, its `pd` and a `cq` of 64. */
static inline void rig_objects(void)
{
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "device_open", "name", "dev", "device", "fake0"), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "pd_create", "name", "pd", "dev", "dev"), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i}", "op", "cq_create", "name", "cq", "dev", "dev", "depth", 64), 0);
}

/* The n-th record (from 0) of a kind about an object; NULL when there are fewer. Borrowed. */
static inline json_t *rig_record(const char *kind, const char *obj, unsigned n)
{
	json_t *r;
	size_t i;

	json_array_foreach(rig.records, i, r) {
		const char *o = json_str(r, "obj");

		if (strcmp(json_str(r, "kind"), kind) == 0 && (!obj || (o && strcmp(o, obj) == 0)) && n-- == 0)
			return r;
	}
	return NULL;
}

#endif
