/* SPDX-License-Identifier: MIT */
/* Agents as processes, for a test program that speaks to two of them. Included by one file of it. */
#ifndef QD_AGENT_PEER_H
#define QD_AGENT_PEER_H

#include <CUnit/Basic.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../harness/json.h"
#include "../harness/line.h"
#include "../harness/loop.h"
#include "../harness/proc.h"
#include "../harness/units.h"

#define ANSWER_NS (10 * NSEC_PER_SEC)

struct peer {
	const char *name;
	const char *device;
	struct proc proc;
	struct line *line;
	json_t *hello, *records, *replies;
	unsigned chatter, garbage;
	bool ended;
	int next_id;
	json_t *dev, *qp, *trf, *mem; /* answers of device_open, qp_create, mr_create */
};

static sd_event *loop;
static struct peer peers[2] = { { .name = "a" }, { .name = "b" } };
static char agent_path[PATH_MAX];

static void on_json(void *user, json_t *value)
{
	struct peer *p = user;
	char id[32];

	if (json_object_get(value, "hello")) {
		p->hello = json_incref(value);
	} else if (json_object_get(value, "rec")) {
		json_array_append(p->records, json_object_get(value, "rec"));
	} else {
		snprintf(id, sizeof(id), "%lld", (long long)json_int(value, "id", -1));
		json_object_set(p->replies, id, value);
	}
}

static void on_text(void *user, const char *text)
{
	struct peer *p = user;

	(void)text;
	if (p->hello)
		p->garbage++;
	else
		p->chatter++;
}

static void on_end(void *user, int err)
{
	(void)err;
	((struct peer *)user)->ended = true;
}

static const struct line_ops ops = { .on_json = on_json, .on_text = on_text, .on_end = on_end };

struct awaited {
	struct peer *p;
	const char *id;
	/* or a record */
	size_t from;
	const char *kind, *obj, *key, *text;
	json_t *found;
};

static bool answered(void *user)
{
	struct awaited *w = user;

	w->found = json_object_get(w->p->replies, w->id);
	return w->found || w->p->ended;
}

static bool recorded(void *user)
{
	struct awaited *w = user;

	for (; w->from < json_array_size(w->p->records); w->from++) {
		json_t *r = json_array_get(w->p->records, w->from);
		const char *kind = json_str(r, "kind"), *obj = json_str(r, "obj"), *text = w->key ? json_str(r, w->key) : NULL;

		if (strcmp(kind, w->kind) == 0 && (!w->obj || (obj && strcmp(obj, w->obj) == 0)) &&
		    (!w->key || (text && strcmp(text, w->text) == 0))) {
			w->found = r;
			return true;
		}
	}
	return w->p->ended;
}

/* The first record from number `from` on of that kind and object whose key holds text (key NULL: any); borrowed. */
static json_t *record_from(struct peer *p, size_t from, const char *kind, const char *obj, const char *key, const char *text)
{
	struct awaited w = { .p = p, .from = from, .kind = kind, .obj = obj, .key = key, .text = text };

	loop_wait(loop, recorded, &w, now_ns() + ANSWER_NS);
	return w.found;
}

static int send_request(struct peer *p, json_t *req)
{
	int id = p->next_id++;

	json_object_set_new(req, "id", json_integer(id));
	CU_ASSERT_EQUAL(line_send(p->line, req), 0);
	json_decref(req);
	return id;
}

static json_t *answer_of(struct peer *p, int id)
{
	struct awaited w = { .p = p };
	json_t *found;
	char text[32];

	snprintf(text, sizeof(text), "%d", id);
	w.id = text;
	loop_wait(loop, answered, &w, now_ns() + ANSWER_NS);
	if (!w.found) {
		fprintf(stderr, "agent %s: no answer to request %d\n", p->name, id);
		return json_pack("{s:i, s:s}", "rc", -ETIMEDOUT, "error", "no answer");
	}
	found = json_incref(w.found);
	json_object_del(p->replies, text);
	return found;
}

static json_t *ask(struct peer *p, const char *fmt, ...)
{
	json_t *req;
	va_list ap;

	va_start(ap, fmt);
	req = json_vpack_ex(NULL, 0, fmt, ap);
	va_end(ap);
	if (!req) {
		CU_FAIL("a request does not pack");
		return json_pack("{s:i}", "rc", -EINVAL);
	}
	return answer_of(p, send_request(p, req));
}

static int rc_of(json_t *reply)
{
	int rc = (int)json_int(reply, "rc", -EIO);

	if (rc < 0 && json_str(reply, "error"))
		fprintf(stderr, "  (%s)\n", json_str(reply, "error"));
	json_decref(reply);
	return rc;
}

#define ASK(...) rc_of(ask(__VA_ARGS__))

static bool has_hello(void *user)
{
	return ((struct peer *)user)->hello || ((struct peer *)user)->ended;
}

static void start(struct peer *p, bool banner)
{
	static char sh[] = "sh", c[] = "-c", script[] = "echo banner; exec \"$@\"", dashes[] = "--";
	char *direct[] = { agent_path, NULL };
	char *with_banner[] = { sh, c, script, dashes, agent_path, NULL };
	struct error e = { "" };

	p->records = json_array();
	p->replies = json_object();
	p->next_id = 1;
	if (proc_spawn(&p->proc, banner ? with_banner : direct, NULL, -1, &e) < 0) {
		fprintf(stderr, "%s\n", e.text);
		CU_FAIL_FATAL("the agent does not start");
	}
	CU_ASSERT_EQUAL_FATAL(line_new(loop, p->proc.out, p->proc.in, &ops, p, &p->line), 0);
	p->proc.in = p->proc.out = -1;
	CU_ASSERT_EQUAL(loop_wait(loop, has_hello, p, now_ns() + ANSWER_NS), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p->hello);
}

#endif
