/* SPDX-License-Identifier: MIT */
/* The controller's side of the wire, against one that this program plays itself. */
#include "controller_case.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller_rig.h"
#include "json.h"
#include "test.h"
#include "units.h"
#include "many.h"

#define MODE "QD_FAKE_WIRE"
#define FOLDER "QD_FAKE_FOLDER"

/* ---- a wire made of canned answers ---- */

static void say(json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT);

	printf("%s\n", text);
	fflush(stdout);
	free(text);
	json_decref(value);
}

/* A request, kept beside the record when it can be. */
static json_t *noted(const char *line)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof path, "%s/asked", getenv(FOLDER));
	f = fopen(path, "ae");
	if (f) {
		fputs(line, f);
		fclose(f);
	}
	return json_loads(line, 0, NULL);
}

static json_t *replies(const json_t *ops, const char *mode)
{
	json_t *all = json_array(), *op;
	size_t i;

	json_array_foreach(ops, i, op) {
		if (!strcmp(json_str(op, "op"), "open") && !strcmp(mode, "refuses"))
			json_array_append_new(all, json_pack("{s:i,s:s}", "rc", -ENODEV, "error", "qd0fa: no such device"));
		else
			json_array_append_new(all, json_pack("{s:i}", "rc", 0));
	}
	return all;
}

/* Modes: good, stillborn, future (another protocol), refuses (to open), dies (at a rule), deaf (to a rule), mute (no hello and no
 * end). */
static int fake_wire(const char *mode)
{
	static char line[1 << 16];

	if (!strcmp(mode, "stillborn"))
		return 3;
	say(json_pack("{s:{s:i,s:s,s:i,s:s}}", "hello", "protocol", !strcmp(mode, "future") ? 9 : 1, "build", "fake", "pid",
		      (int)getpid(), "clk", "b/1"));
	while (fgets(line, sizeof line, stdin)) {
		json_t *req = noted(line);
		const char *op = json_str(req, "op");
		bool rule = op && !strcmp(op, "rule");

		if (rule && !strcmp(mode, "dies")) {
			json_decref(req);
			return 7;
		}
		if (op && !strcmp(op, "clock"))
			say(json_pack("{s:[{s:s,s:i,s:s,s:s,s:i}]}", "recs", "kind", "packet", "t", 5, "from", "a", "class", "ack",
				      "count", 1));
		if (op && !strcmp(op, "batch"))
			say(json_pack("{s:O,s:i,s:o}", "id", json_object_get(req, "id"), "rc", 0, "replies",
				      replies(json_object_get(req, "ops"), mode)));
		else if (!rule || strcmp(mode, "deaf"))
			say(json_pack("{s:O,s:i,s:b,s:O}", "id", json_object_get(req, "id"), "rc", 0, "complete", 1, "asked", req));
		json_decref(req);
	}
	return 0;
}

/* ---- a case around it ---- */

struct rig {
	struct controller c;
	struct case_run r;
	struct lab_lane lane;
	char self[512];
};

static void rig_new(struct rig *g, const char *mode)
{
	char path[128];
	ssize_t n;

	memset(g, 0, sizeof *g);
	n = readlink("/proc/self/exe", g->self, sizeof g->self - 1);
	CU_ASSERT_FATAL(n > 0);
	setenv(MODE, mode, 1);
	setenv(FOLDER, dir, 1);
	snprintf(path, sizeof path, "%s/asked", dir);
	unlink(path);
	g->lane = (struct lab_lane){ .device = { { .name = "a" }, { .name = "b" } }, .far = { "qd0fa", "qd0fb" } };
	g->c = (struct controller){ .kmsg_fd = -1, .o = { .wire_path = g->self }, .run = &g->r };
	CU_ASSERT_FATAL(sd_event_default(&g->c.loop) >= 0);
	g->r = (struct case_run){ .c = &g->c,
				  .lane = &g->lane,
				  .plan = plan_of("[]", 0),
				  .seed = 1,
				  .wc_counts = json_object(),
				  .inbox = json_array(),
				  .connections = json_object(),
				  .to_tell = json_array(),
				  .dir = dir };
	CU_ASSERT_EQUAL_FATAL(ctl_objects_init(&g->r, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(model_new(g->r.plan, NULL, &g->r.model), 0);
	snprintf(path, sizeof path, "%s/observations.jsonl", dir);
	CU_ASSERT_EQUAL_FATAL(recorder_open(&(struct recorder_options){ .path = path, .clk = "b/1" }, &g->r.rec, NULL), 0);
}

/* What is on record. New reference. */
static json_t *rig_done(struct rig *g)
{
	json_t *records = NULL;
	char path[128];

	case_drain(&g->r);
	wire_free(&g->c);
	posts_free(&g->r);
	ctl_objects_free(&g->r);
	model_free(g->r.model);
	recorder_close(g->r.rec);
	json_decref(g->r.plan);
	json_decref(g->r.wc_counts);
	json_decref(g->r.inbox);
	json_decref(g->r.connections);
	json_decref(g->r.to_tell);
	sd_event_unref(g->c.loop);
	unsetenv(MODE);
	snprintf(path, sizeof path, "%s/observations.jsonl", dir);
	CU_ASSERT_EQUAL(many_load_records(path, &records, &(bool){ false }, NULL), 0);
	unlink(path);
	return records;
}

static bool is(const json_t *rec, const char *key, const char *value)
{
	return !strcmp(value, "*") || (json_str(rec, key) && !strcmp(json_str(rec, key), value));
}

static unsigned count(const json_t *records, const char *src, const char *kind, const char *part)
{
	unsigned n = 0;
	const json_t *r;
	size_t i;

	json_array_foreach(records, i, r) {
		char *text = json_dumps(r, JSON_COMPACT);

		n += (is(r, "src", src) || is(r, "op", src)) && is(r, "kind", kind) && (!part || strstr(text, part));
		free(text);
	}
	return n;
}

static void exist(struct rig *g, const char *name, uint32_t qpn, uint32_t psn, unsigned life)
{
	struct object *qp = ctl_object_find(&g->r, name);

	qp->exists = true;
	qp->qpn = qpn;
	qp->sq_psn = psn;
	qp->life = life;
}

static void a_connection_is_told_once_per_life(void)
{
	struct error e = { "" };
	struct object *a, *b;
	json_t *records;
	struct rig g;

	rig_new(&g, "good");
	a = ctl_object_find(&g.r, "p.a");
	b = ctl_object_find(&g.r, "p.b");
	CU_ASSERT_EQUAL(wire_connect(&g.r, a, &e), 0); /* without a wire nothing is told */
	CU_ASSERT_EQUAL(wire_open(&g.r, &e), 0);
	exist(&g, "p.a", 17, 100, 1);
	CU_ASSERT_EQUAL(wire_connect(&g.r, a, &e), 0); /* its peer is not there yet */
	exist(&g, "p.b", 18, 200, 1);
	CU_ASSERT_EQUAL(wire_connect(&g.r, a, &e), 0);
	CU_ASSERT_EQUAL(wire_connect(&g.r, b, &e), 0);
	exist(&g, "p.b", 18, 300, 2); /* one end alone begins anew */
	CU_ASSERT_EQUAL(wire_connect(&g.r, b, &e), 0);
	wire_sync(&g.r);
	wire_close(&g.r);
	CU_ASSERT_EQUAL(json_int(json_object_get(g.r.connections, "p"), "life", 0), 2);
	records = rig_done(&g);
	CU_ASSERT_EQUAL(count(records, "controller", "connection", NULL), 2);
	CU_ASSERT_EQUAL(count(records, "controller", "connection", "\"psn\":300"), 1);
	CU_ASSERT_EQUAL(count(records, "wire", "hello", "fake"), 1);
	CU_ASSERT_EQUAL(count(records, "wire", "packet", "ack"), 1);
	CU_ASSERT_EQUAL(count(records, "wire", "wire_stats", "true"), 1);
	json_decref(records);
}

static void what_cannot_begin_is_told(void)
{
	static const struct {
		const char *mode, *text;
	} rows[] = {
		{ "stillborn", "said no hello: exit status 3" },
		{ "future", "speaks protocol 9, expected 1" },
		{ "refuses", "wire open: qd0fa: no such device" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct error e = { "" };
		struct rig g;

		rig_new(&g, rows[i].mode);
		ROW_ASSERT(wire_open(&g.r, &e) < 0, "%s: it opened", rows[i].mode);
		ROW_ASSERT(strstr(e.text, rows[i].text), "%s: '%s'", rows[i].mode, e.text);
		json_decref(rig_done(&g));
	}
}

/* One that dies and one that hangs end the case, soon, and are started anew by the next. */
static void its_end_is_the_end_of_the_case(void)
{
	static const struct {
		const char *mode, *text;
		int rc;
	} rows[] = {
		{ "dies", "the wire died: exit status 7", -EPIPE },
		{ "deaf", "the wire did not answer `rule` within ", -EPIPE },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		uint64_t begin = now_ns();
		struct error e = { "" };
		json_t *records;
		struct rig g;

		rig_new(&g, rows[i].mode);
		CU_ASSERT_EQUAL(wire_open(&g.r, &e), 0);
		CU_ASSERT_EQUAL(wire_ask(&g.r, json_pack("{s:s}", "op", "rule"), NULL, &e), rows[i].rc);
		CU_ASSERT_EQUAL(wire_ask(&g.r, json_pack("{s:s}", "op", "clock"), NULL, &e), -EPIPE);
		case_wait(&g.r, NULL, NULL, now_ns() + 50 * NSEC_PER_MSEC);
		CU_ASSERT(g.r.end_ns && g.r.end_ns <= now_ns());
		wire_close(&g.r);
		CU_ASSERT(now_ns() - begin < 100 * NSEC_PER_SEC);
		setenv(MODE, "good", 1);
		CU_ASSERT_EQUAL(wire_open(&g.r, &e), 0);
		records = rig_done(&g);
		CU_ASSERT_EQUAL(count(records, "controller", "lost", rows[i].text), 1);
		json_decref(records);
	}
}

/* Whatever happened to it since the case before: this one has another, and nothing on record of the old one's end. */
static void its_end_between_cases_is_nobodys(void)
{
	static const int signals[] = { SIGKILL, SIGSTOP };

	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
		struct error e = { "" };
		json_t *records;
		pid_t pid = 0, old;
		struct rig g;

		rig_new(&g, "good");
		CU_ASSERT_EQUAL(wire_open(&g.r, &e), 0);
		CU_ASSERT_EQUAL(wire_stop(&g.r, false, &pid, &e), 0); /* only to know its pid */
		wire_close(&g.r);
		old = pid;
		CU_ASSERT_EQUAL(kill(old, signals[i]), 0);
		g.r.wires = 0;
		CU_ASSERT_EQUAL(wire_open(&g.r, &e), 0);
		CU_ASSERT_EQUAL(wire_stop(&g.r, false, &pid, &e), 0);
		CU_ASSERT(pid != old && kill(old, 0) < 0);
		CU_ASSERT_EQUAL(g.r.end_ns, 0);
		wire_close(&g.r);
		records = rig_done(&g);
		CU_ASSERT_EQUAL(count(records, "controller", "lost", NULL), 0);
		CU_ASSERT_EQUAL(count(records, "wire", "wire_stats", NULL), 2);
		json_decref(records);
	}
}

/* As a fault it is killed and replaced, or stopped and let go on: the case goes on, and the next one knows the connections. */
static void its_planned_end_is_no_end_of_the_case(void)
{
	struct error e = { "" };
	struct object *a, *b;
	char status[64] = "", path[128];
	json_t *records;
	struct rig g;
	pid_t pid = 0;

	rig_new(&g, "good");
	a = ctl_object_find(&g.r, "p.a");
	b = ctl_object_find(&g.r, "p.b");
	CU_ASSERT_EQUAL(wire_kill(&g.r, status, sizeof status, &e), -ESRCH);
	CU_ASSERT_EQUAL(wire_open(&g.r, &e), 0);
	exist(&g, "p.a", 17, 100, 1);
	exist(&g, "p.b", 18, 200, 1);
	CU_ASSERT_EQUAL(wire_connect(&g.r, a, &e), 0);
	CU_ASSERT_EQUAL(wire_restart(&g.r, &e), -EBUSY);

	CU_ASSERT_EQUAL(wire_stop(&g.r, true, &pid, &e), 0);
	CU_ASSERT(pid > 0 && wire_is_stopped(&g.r));
	exist(&g, "p.b", 18, 300, 2);
	CU_ASSERT_EQUAL(wire_connect(&g.r, b, &e), 0); /* told when it goes on */
	CU_ASSERT_EQUAL(g.r.told, 1);
	wire_sync(&g.r);
	CU_ASSERT_EQUAL(wire_ask(&g.r, json_pack("{s:s}", "op", "rule"), NULL, &e), -EPIPE);
	CU_ASSERT_EQUAL(wire_stop(&g.r, false, &pid, &e), 0);
	CU_ASSERT_EQUAL(g.r.told, 2);

	CU_ASSERT_EQUAL(wire_kill(&g.r, status, sizeof status, &e), 0);
	CU_ASSERT_STRING_EQUAL(status, "killed by signal 9");
	CU_ASSERT_EQUAL(kill(pid, 0), -1); /* reaped too */
	exist(&g, "p.a", 17, 400, 2);
	CU_ASSERT_EQUAL(wire_connect(&g.r, a, &e), 0);
	CU_ASSERT_EQUAL(wire_restart(&g.r, &e), 0);
	CU_ASSERT_EQUAL(g.r.told, 3);
	CU_ASSERT_EQUAL(g.r.end_ns, 0);
	wire_sync(&g.r);
	wire_close(&g.r);
	records = rig_done(&g);
	CU_ASSERT_EQUAL(count(records, "controller", "lost", NULL), 0);
	CU_ASSERT_EQUAL(count(records, "controller", "connection", NULL), 3);
	CU_ASSERT_EQUAL(count(records, "wire", "hello", NULL), 2);
	CU_ASSERT_EQUAL(count(records, "wire", "wire_stats", NULL), 1);
	json_decref(records);
	snprintf(path, sizeof path, "%s/asked", dir);
	records = NULL;
	CU_ASSERT_EQUAL(many_load_records(path, &records, &(bool){ false }, NULL), 0);
	CU_ASSERT_EQUAL(count(records, "*", "*", "\"op\":\"connect\""), 3);
	/* The other one knows all of them before it carries a packet. */
	CU_ASSERT_EQUAL(count(records, "batch", "*", "\"psn\":200"), 1);
	CU_ASSERT_EQUAL(count(records, "batch", "*", "\"psn\":300"), 1);
	CU_ASSERT_EQUAL(count(records, "batch", "*", "\"psn\":400"), 1);
	CU_ASSERT_EQUAL(count(records, "*", "*", "/wire.pcapng"), 1);
	CU_ASSERT_EQUAL(count(records, "*", "*", "/wire-2.pcapng"), 1);
	json_decref(records);
}

int main(void)
{
	static const struct test_case cases[] = {
		{ "a connection is told once per life", a_connection_is_told_once_per_life },
		{ "what cannot begin is told", what_cannot_begin_is_told },
		{ "its end is the end of the case", its_end_is_the_end_of_the_case },
		{ "its end between cases is nobody's", its_end_between_cases_is_nobodys },
		{ "its planned end is no end of the case", its_planned_end_is_no_end_of_the_case },
	};
	const char *mode = getenv(MODE);

	if (mode)
		return fake_wire(mode);
	return run_in_dir("controller_wire", cases, sizeof cases / sizeof cases[0]);
}
