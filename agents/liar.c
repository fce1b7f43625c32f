/* SPDX-License-Identifier: MIT */
/*
 * For tests alone: stands between a controller and an agent (as its launch prefix) and lies for it. A post that is named after a
 * lie arms it; everything else goes through as it is. Each lie is what a broken device, library or agent would make the harness
 * see. usage: liar AGENT [ARGUMENT...]
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../harness/json.h"
#include "../harness/units.h"
#include "../harness/wrid.h"

#define LATE_NS (100 * NSEC_PER_SEC)
#define BESIDE "beside." /* how the names of objects begin that nobody asked for */

struct lie;

struct liar {
	FILE *from_agent, *to_agent, *to_controller;
	const struct lie *armed;
	char queue[128];         /* of the post that armed it */
	json_int_t post, verify; /* ids of requests: the one with that post, the one that asks for payload */
	int verify_member;       /* which of a batch; -1: it is none */
	json_t *held;            /* what goes behind the next of its kind */
	bool leaked, told;       /* nothing was released yet; it was lied once */
	unsigned kept;           /* objects made beside those that were asked for */
};

/* Each writes what takes the record's, or the reply's, place. NULL: it goes through. */
struct lie {
	const char *name;
	void (*wc)(struct liar *l, json_t *message, json_t *rec);
	void (*payload)(json_t *reply);
	bool swallows_reply, keeps_all, keeps_qps;
};

static void write_line(FILE *out, const json_t *value)
{
	json_dumpf(value, out, JSON_COMPACT);
	fputc('\n', out);
	fflush(out);
}

static void say(struct liar *l, const json_t *message)
{
	write_line(l->to_controller, message);
}

static void move_ids(json_t *rec, const char *key, int64_t by)
{
	struct wrid id = wrid_decode(json_u64(rec, key, 0));

	id.seq = (uint32_t)(id.seq + by);
	json_object_set_new(rec, key, json_hex(wrid_encode(id)));
}

static void lose(struct liar *l, json_t *message, json_t *rec)
{
	(void)l;
	(void)message;
	(void)rec;
}

static void twice(struct liar *l, json_t *message, json_t *rec)
{
	(void)rec;
	say(l, message);
	say(l, message);
}

static void other_id(struct liar *l, json_t *message, json_t *rec)
{
	move_ids(rec, "first", 1000);
	move_ids(rec, "last", 1000);
	say(l, message);
}

static void other_status(struct liar *l, json_t *message, json_t *rec)
{
	json_object_set_new(rec, "status", json_string("REM_OP_ERR"));
	json_object_set_new(rec, "count", json_integer(1));
	json_object_set(rec, "last", json_object_get(rec, "first"));
	say(l, message);
}

/* The last of the run comes before the others. */
static void out_of_order(struct liar *l, json_t *message, json_t *rec)
{
	int64_t count = json_int(rec, "count", 1);
	json_t *others, *of;

	if (l->held || count < 2) {
		if (!l->held) {
			l->held = json_incref(message);
			l->told = false;
			return;
		}
		say(l, message);
		say(l, l->held);
		json_decref(l->held);
		l->held = NULL;
		return;
	}
	others = json_deep_copy(message);
	of = json_object_get(others, "rec");
	move_ids(of, "last", -1);
	json_object_set_new(of, "count", json_integer(count - 1));
	json_object_set(rec, "first", json_object_get(rec, "last"));
	json_object_set_new(rec, "count", json_integer(1));
	say(l, message);
	say(l, others);
	json_decref(others);
}

static void late(struct liar *l, json_t *message, json_t *rec)
{
	json_object_set_new(rec, "t", json_integer(json_int(rec, "t", 0) + (json_int_t)LATE_NS));
	json_object_set_new(rec, "t_last", json_integer(json_int(rec, "t_last", 0) + (json_int_t)LATE_NS));
	say(l, message);
}

/* The first n of the messages are that instead of intact. */
static void not_whole(json_t *reply, const char *instead, int64_t n)
{
	const char *was = json_str(reply, "indices");
	char indices[512];

	json_object_set_new(reply, "intact", json_integer(json_int(reply, "intact", 0) - n));
	json_object_set_new(reply, instead, json_integer(json_int(reply, instead, 0) + n));
	if (!was)
		return;
	snprintf(indices, sizeof(indices), "%s", was);
	for (int64_t i = 0; i < n && indices[i]; i++)
		indices[i] = instead[0];
	json_object_set_new(reply, "indices", json_string(indices));
}

static void flipped(json_t *reply)
{
	not_whole(reply, "partial", 1);
}

static void stale(json_t *reply)
{
	not_whole(reply, "stale", json_int(reply, "intact", 0));
}

static const struct lie lies[] = {
	{ .name = "lost_completion", .wc = lose },          { .name = "doubled_completion", .wc = twice },
	{ .name = "wrong_wr_id", .wc = other_id },          { .name = "wrong_status", .wc = other_status },
	{ .name = "wrong_order", .wc = out_of_order },      { .name = "late_detection", .wc = late },
	{ .name = "flipped_byte", .payload = flipped },     { .name = "stale_payload", .payload = stale },
	{ .name = "leaked_qp", .keeps_all = true },         { .name = "silent_hang", .swallows_reply = true },
	{ .name = "leaked_each_round", .keeps_qps = true },
};

static const struct lie *lie_named(const char *name)
{
	for (size_t i = 0; name && i < sizeof(lies) / sizeof(lies[0]); i++)
		if (!strcmp(lies[i].name, name))
			return &lies[i];
	return NULL;
}

/* ---- what the controller asks ---- */

/* With each QP one more, which nobody destroys. */
static void make_beside(struct liar *l, const json_t *request)
{
	json_t *more = json_deep_copy(request);

	json_object_set_new(more, "id", json_integer(-1));
	json_object_set_new(more, "name", json_sprintf(BESIDE "%u", ++l->kept));
	write_line(l->to_agent, more);
	json_decref(more);
}

static void look_at_request(struct liar *l, const json_t *request, json_int_t id, int member)
{
	const char *op = json_str(request, "op");
	const struct lie *lie;

	if (op && !strcmp(op, "post") && (lie = lie_named(json_str(request, "as")))) {
		l->armed = lie;
		l->told = false;
		l->post = id;
		snprintf(l->queue, sizeof(l->queue), "%s.send", json_str(request, "qp") ? json_str(request, "qp") : "");
	} else if (op && !strcmp(op, "qp_create") && l->armed && l->armed->keeps_qps) {
		make_beside(l, request);
	} else if (op && !strcmp(op, "verify") && l->armed && l->armed->payload) {
		l->verify = id;
		l->verify_member = member;
	}
}

static bool pass(struct liar *l, FILE *in, bool from_agent);

/* True when the agent is not asked. */
static bool take_request(struct liar *l, const json_t *request)
{
	const char *op = json_str(request, "op");
	json_int_t id = json_int(request, "id", -1);
	const json_t *member;
	json_t *reply;
	size_t i;

	if (op && !strcmp(op, "release") && l->armed && l->armed->keeps_all) {
		l->leaked = true;
		l->armed = NULL;
		reply = json_pack("{s:I,s:i,s:[]}", "id", id, "rc", 0, "left");
		say(l, reply);
		json_decref(reply);
		return true;
	}
	/* The next case is no part of the lie. */
	if (l->leaked) {
		reply = json_pack("{s:s,s:i}", "op", "release", "id", -1);
		write_line(l->to_agent, reply);
		json_decref(reply);
		while (l->leaked && pass(l, l->from_agent, true))
			;
	}
	look_at_request(l, request, id, -1);
	json_array_foreach(json_object_get(request, "ops"), i, member)
		look_at_request(l, member, id, (int)i);
	return false;
}

/* ---- what the agent answers ---- */

static bool lie_about_record(struct liar *l, json_t *message, json_t *rec)
{
	const char *kind = json_str(rec, "kind"), *obj = json_str(rec, "obj");

	if (obj && !strncmp(obj, BESIDE, strlen(BESIDE)))
		return true;
	if (!l->armed || !l->armed->wc || l->told || !kind || strcmp(kind, "wc") || !obj || strcmp(obj, l->queue) ||
	    json_str(rec, "traffic"))
		return false;
	l->told = true;
	l->armed->wc(l, message, rec);
	return true;
}

static bool lie_about_reply(struct liar *l, json_t *message)
{
	json_int_t id = json_int(message, "id", -2);

	/* To a request of our own. */
	if (id == -1) {
		l->leaked = false;
		return true;
	}
	if (l->armed && l->armed->swallows_reply && id == l->post)
		return true;
	/* Each time: a look that comes before all have ended is followed by another. */
	if (l->armed && l->armed->payload && id == l->verify) {
		json_t *of = l->verify_member < 0 ? message
						  : json_array_get(json_object_get(message, "replies"), (size_t)l->verify_member);

		if (json_int(of, "intact", 0) > 0)
			l->armed->payload(of);
	}
	return false;
}

static void take_answer(struct liar *l, json_t *message)
{
	json_t *rec = json_object_get(message, "rec");

	if (rec ? lie_about_record(l, message, rec) : lie_about_reply(l, message))
		return;
	say(l, message);
}

/* ---- both ways ---- */

/* One line from `in`; what is no JSON goes through as it is. False: there is nothing more. */
static bool pass(struct liar *l, FILE *in, bool from_agent)
{
	char *line = NULL;
	size_t size = 0;
	json_t *value;
	bool more = getline(&line, &size, in) > 0;

	value = more ? json_loads(line, 0, NULL) : NULL;
	if (more && !value)
		fputs(line, from_agent ? l->to_controller : l->to_agent);
	else if (more && from_agent)
		take_answer(l, value);
	else if (more && !take_request(l, value))
		write_line(l->to_agent, value);
	json_decref(value);
	free(line);
	return more;
}

static pid_t start(char **argv, int *ret_in, int *ret_out)
{
	int to[2], from[2];
	pid_t pid;

	if (pipe(to) || pipe(from))
		return -1;
	pid = fork();
	if (pid)
		goto parent;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(to[0], 0);
	dup2(from[1], 1);
	for (int i = 0; i < 2; i++) {
		close(to[i]);
		close(from[i]);
	}
	execvp(argv[0], argv);
	_exit(127);
parent:
	close(to[0]);
	close(from[1]);
	*ret_in = to[1];
	*ret_out = from[0];
	return pid;
}

int main(int argc, char **argv)
{
	struct liar l = { .to_controller = stdout, .post = -2, .verify = -2 };
	int in = -1, out = -1, status = 0;
	pid_t pid = argc > 1 ? start(argv + 1, &in, &out) : -1;
	FILE *agent = pid > 0 ? fdopen(out, "r") : NULL;

	l.from_agent = agent;
	l.to_agent = pid > 0 ? fdopen(in, "w") : NULL;
	if (!agent || !l.to_agent) {
		fprintf(stderr, "usage: liar AGENT [ARGUMENT...]\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	/* What poll() sees must not lie in a buffer. */
	setvbuf(agent, NULL, _IONBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	for (bool asks = true, answers = true; answers;) {
		struct pollfd fds[2] = { { .fd = asks ? 0 : -1, .events = POLLIN }, { .fd = fileno(agent), .events = POLLIN } };

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[1].revents)
			answers = pass(&l, agent, true);
		if (asks && fds[0].revents && !pass(&l, stdin, false)) {
			asks = false;
			fclose(l.to_agent);
		}
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
