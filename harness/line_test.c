/* SPDX-License-Identifier: MIT */
#include "line.h"

#include <CUnit/Basic.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop.h"
#include "units.h"
#include "test.h"

struct seen {
	struct line *line;
	char log[4096];
	unsigned json, text, ends;
	int err;
	size_t want_json;
	bool free_on_json;
};

static void note(struct seen *s, const char *kind, const char *text)
{
	size_t used = strlen(s->log);

	snprintf(s->log + used, sizeof(s->log) - used, "%s<%s>", kind, text);
}

/* What begins like that is wanted as it came, also where it is no JSON. */
static bool on_line(void *user, const char *text, size_t len)
{
	if (strncmp(text, "{\"raw\"", 6) != 0)
		return false;
	CU_ASSERT_EQUAL(len, strlen(text));
	note(user, "l", text);
	return true;
}

static void on_json(void *user, json_t *value)
{
	struct seen *s = user;
	const char *x = json_string_value(json_object_get(value, "x"));

	s->json++;
	if (x && strlen(x) < 64)
		note(s, "j", x);
	if (s->free_on_json)
		line_free(s->line);
}

static void on_text(void *user, const char *text)
{
	struct seen *s = user;

	s->text++;
	note(s, "t", text);
}

static void on_end(void *user, int err)
{
	struct seen *s = user;

	s->ends++;
	s->err = err;
}

static const struct line_ops ops = { .on_line = on_line, .on_json = on_json, .on_text = on_text, .on_end = on_end };

static bool has_ended(void *user)
{
	return ((struct seen *)user)->ends > 0;
}

static bool has_json(void *user)
{
	struct seen *s = user;

	return s->json >= s->want_json;
}

static int run(sd_event *loop, bool (*done)(void *), struct seen *s)
{
	return loop_wait(loop, done, s, now_ns() + 60 * NSEC_PER_SEC);
}

struct fixture {
	sd_event *loop;
	int peer_in, peer_out; /* what the peer reads and writes */
	struct seen seen;
};

static void set_up(struct fixture *f)
{
	int to[2] = { -1, -1 }, from[2] = { -1, -1 };

	memset(f, 0, sizeof(*f));
	CU_ASSERT_FATAL(sd_event_new(&f->loop) >= 0);
	CU_ASSERT_FATAL(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
	f->peer_out = to[1];
	f->peer_in = from[0];
	CU_ASSERT_EQUAL_FATAL(line_new(f->loop, to[0], from[1], &ops, &f->seen, &f->seen.line), 0);
}

static void tear_down(struct fixture *f)
{
	line_free(f->seen.line);
	if (f->peer_in >= 0)
		close(f->peer_in);
	if (f->peer_out >= 0)
		close(f->peer_out);
	sd_event_unref(f->loop);
}

static void peer_closes(int *fd)
{
	close(*fd);
	*fd = -1;
}

static void test_lines(void)
{
	static const struct {
		const char *input, *log;
	} rows[] = {
		{ "{\"x\":\"1\"}\n{\"x\":\"2\"}\n", "j<1>j<2>" },
		{ "banner\n{\"x\":\"1\"}\n", "t<banner>j<1>" },
		{ "{\"x\":\"1\"}\r\n\n\n{\"x\":\"2\"}", "j<1>j<2>" },
		{ "[1]\n17\n{broken\n", "t<[1]>t<17>t<{broken>" },
		{ "{\"x\":\"1\",\"x\":\"2\"}\n", "t<{\"x\":\"1\",\"x\":\"2\"}>" },
		{ "{\"x\":\"1\"}{\"x\":\"2\"}\n", "t<{\"x\":\"1\"}{\"x\":\"2\"}>" },
		{ "{\"x\":", "t<{\"x\":>" },
		{ "{\"x\":\"1\"}\n{\"raw\":1}\r\n{\"x\":\"2\"}\n{\"raw\"", "j<1>l<{\"raw\":1}>j<2>l<{\"raw\">" },
		{ "", "" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		for (size_t chunk = 1; chunk < 40; chunk += 6) {
			struct fixture f;
			size_t len = strlen(rows[i].input);

			set_up(&f);
			for (size_t at = 0; at < len; at += chunk) {
				size_t n = len - at < chunk ? len - at : chunk;

				CU_ASSERT_EQUAL(write(f.peer_out, rows[i].input + at, n), (ssize_t)n);
				CU_ASSERT(sd_event_run(f.loop, 0) >= 0);
			}
			peer_closes(&f.peer_out);
			CU_ASSERT_EQUAL(run(f.loop, has_ended, &f.seen), 0);
			CU_ASSERT_EQUAL(f.seen.err, 0);
			CU_ASSERT_EQUAL(f.seen.ends, 1);
			CU_ASSERT_STRING_EQUAL(f.seen.log, rows[i].log);
			tear_down(&f);
		}
	}
}

static json_t *big(size_t bytes)
{
	char *text = malloc(bytes + 1);
	json_t *value;

	memset(text, 'a', bytes);
	text[bytes] = '\0';
	value = json_pack("{s:s}", "x", text);
	free(text);
	return value;
}

/* More than a pipe holds goes out once the peer reads; a full queue refuses and leaves nothing half-written. */
static void test_queue(void)
{
	json_t *value = big(1u << 20), *long_one = big(LINE_MAX_BYTES), *small = json_pack("{s:s}", "x", "small");
	struct seen got = { 0 };
	struct fixture f;
	int fds[2];
	unsigned sent = 0;

	set_up(&f);
	CU_ASSERT_EQUAL(line_send(f.seen.line, long_one), -EMSGSIZE);
	CU_ASSERT_EQUAL(line_pending(f.seen.line), 0);
	while (line_send(f.seen.line, value) == 0 && sent < 100)
		sent++;
	CU_ASSERT(sent > 20 && sent < 40);
	CU_ASSERT_EQUAL(line_send(f.seen.line, value), -ENOBUFS);
	CU_ASSERT(line_pending(f.seen.line) <= LINE_QUEUE_MAX);
	CU_ASSERT_EQUAL(line_flush(f.seen.line, 20 * NSEC_PER_MSEC), -ETIMEDOUT);
	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	CU_ASSERT_EQUAL_FATAL(line_new(f.loop, f.peer_in, fds[0], &ops, &got, &got.line), 0);
	got.want_json = sent;
	CU_ASSERT_EQUAL(run(f.loop, has_json, &got), 0);
	CU_ASSERT_EQUAL(line_send(f.seen.line, small), 0);
	got.want_json = sent + 1;
	CU_ASSERT_EQUAL(run(f.loop, has_json, &got), 0);
	CU_ASSERT_STRING_EQUAL(got.log, "j<small>");
	CU_ASSERT_EQUAL(got.text, 0);
	CU_ASSERT_EQUAL(line_pending(f.seen.line), 0);
	CU_ASSERT_EQUAL(line_flush(f.seen.line, 0), 0);
	line_free(got.line);
	f.peer_in = -1;
	close(fds[1]);
	tear_down(&f);
	json_decref(value);
	json_decref(long_one);
	json_decref(small);
}

static void test_too_long(void)
{
	struct fixture f;
	char *text = malloc(1u << 20);
	size_t total = 0;

	memset(text, 'z', 1u << 20);
	set_up(&f);
	CU_ASSERT_EQUAL(fcntl(f.peer_out, F_SETFL, O_NONBLOCK), 0);
	while (!f.seen.ends && total < 2 * (size_t)LINE_MAX_BYTES) {
		ssize_t n = write(f.peer_out, text, 1u << 16);

		total += n > 0 ? (size_t)n : 0;
		CU_ASSERT_FATAL(sd_event_run(f.loop, 0) >= 0);
	}
	CU_ASSERT_EQUAL(f.seen.ends, 1);
	CU_ASSERT_EQUAL(f.seen.err, -EMSGSIZE);
	tear_down(&f);
	free(text);
}

/* The peer's last words come before the news that it reads no more. */
static void test_broken_pipe(void)
{
	json_t *value = json_pack("{s:s}", "x", "hello");
	struct fixture f;

	set_up(&f);
	CU_ASSERT_EQUAL(write(f.peer_out, "{\"x\":\"last\"}\n", 13), 13);
	peer_closes(&f.peer_in);
	CU_ASSERT_EQUAL(line_send(f.seen.line, value), -EPIPE);
	CU_ASSERT_EQUAL(line_send(f.seen.line, value), -EPIPE);
	CU_ASSERT_EQUAL(f.seen.ends, 0);
	CU_ASSERT_EQUAL(run(f.loop, has_ended, &f.seen), 0);
	CU_ASSERT_STRING_EQUAL(f.seen.log, "j<last>");
	CU_ASSERT_EQUAL(f.seen.err, -EPIPE);
	CU_ASSERT_EQUAL(f.seen.ends, 1);
	tear_down(&f);
	json_decref(value);
}

static void test_free_in_callback(void)
{
	struct fixture f;

	set_up(&f);
	f.seen.free_on_json = true;
	CU_ASSERT_EQUAL(write(f.peer_out, "{\"x\":\"1\"}\n{\"x\":\"2\"}\n", 20), 20);
	f.seen.want_json = 1;
	CU_ASSERT_EQUAL(run(f.loop, has_json, &f.seen), 0);
	f.seen.line = NULL;
	CU_ASSERT_STRING_EQUAL(f.seen.log, "j<1>");
	CU_ASSERT_EQUAL(f.seen.ends, 0);
	tear_down(&f);
}

static void test_regular_files(void)
{
	char in_path[] = "/tmp/line-in-XXXXXX", out_path[] = "/tmp/line-out-XXXXXX", buf[64];
	int in = mkstemp(in_path), out = mkstemp(out_path), check;
	json_t *value = json_pack("{s:s}", "x", "out");
	struct seen seen = { 0 };
	sd_event *loop = NULL;

	CU_ASSERT_FATAL(in >= 0 && out >= 0 && sd_event_new(&loop) >= 0);
	CU_ASSERT_EQUAL(write(in, "{\"x\":\"1\"}\n{\"x\":\"2\"}\n", 20), 20);
	CU_ASSERT_EQUAL(lseek(in, 0, SEEK_SET), 0);
	check = dup(out);
	CU_ASSERT_EQUAL_FATAL(line_new(loop, in, out, &ops, &seen, &seen.line), 0);
	CU_ASSERT_EQUAL(run(loop, has_ended, &seen), 0);
	CU_ASSERT_STRING_EQUAL(seen.log, "j<1>j<2>");
	line_free(seen.line);
	seen = (struct seen){ 0 };
	CU_ASSERT_EQUAL_FATAL(line_new(loop, open("/dev/null", O_RDONLY), dup(check), &ops, &seen, &seen.line), 0);
	CU_ASSERT_EQUAL(line_send(seen.line, value), 0);
	CU_ASSERT_EQUAL(pread(check, buf, sizeof(buf), 0), 12);
	CU_ASSERT(memcmp(buf, "{\"x\":\"out\"}\n", 12) == 0);
	line_free(seen.line);
	close(check);
	unlink(in_path);
	unlink(out_path);
	json_decref(value);
	sd_event_unref(loop);
}

static void test_one_socket(void)
{
	json_t *value = json_pack("{s:s}", "x", "1");
	struct seen a = { 0 }, b = { 0 };
	sd_event *loop = NULL;
	int fds[2] = { -1, -1 };

	CU_ASSERT_FATAL(sd_event_new(&loop) >= 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	CU_ASSERT_EQUAL_FATAL(line_new(loop, fds[0], fds[0], &ops, &a, &a.line), 0);
	CU_ASSERT_EQUAL_FATAL(line_new(loop, fds[1], fds[1], &ops, &b, &b.line), 0);
	CU_ASSERT_EQUAL(line_send(a.line, value), 0);
	b.want_json = 1;
	CU_ASSERT_EQUAL(run(loop, has_json, &b), 0);
	line_free(a.line);
	CU_ASSERT_EQUAL(run(loop, has_ended, &b), 0);
	CU_ASSERT_EQUAL(b.err, 0);
	line_free(b.line);
	json_decref(value);
	sd_event_unref(loop);
}

static bool has_come(void *user)
{
	struct pollfd p = { .fd = *(int *)user, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void test_cork(void)
{
	json_t *value = json_pack("{s:s}", "x", "1");
	struct fixture f;
	char buf[64];

	set_up(&f);
	line_cork(f.seen.line);
	line_cork(f.seen.line);
	CU_ASSERT_EQUAL(line_send(f.seen.line, value), 0);
	line_uncork(f.seen.line);
	CU_ASSERT_EQUAL(line_send(f.seen.line, value), 0);
	CU_ASSERT_FALSE(has_come(&f.peer_in));
	CU_ASSERT_EQUAL(line_pending(f.seen.line), 20);
	line_uncork(f.seen.line);
	CU_ASSERT_EQUAL(read(f.peer_in, buf, sizeof(buf)), 20);
	/* What is to end the waiting may never come. */
	line_cork(f.seen.line);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(line_send(f.seen.line, value), 0);
		CU_ASSERT_FALSE(has_come(&f.peer_in));
		CU_ASSERT_EQUAL(loop_wait(f.loop, has_come, &f.peer_in, now_ns() + 5 * NSEC_PER_SEC), 0);
		CU_ASSERT_EQUAL(read(f.peer_in, buf, sizeof(buf)), 10);
	}
	json_decref(value);
	value = json_pack("{s:o}", "x", json_sprintf("%050000d", 0));
	CU_ASSERT_EQUAL(line_send(f.seen.line, value), 0);
	CU_ASSERT(has_come(&f.peer_in)); /* so much does not wait */
	tear_down(&f);
	json_decref(value);
}

static bool never(void *user)
{
	(*(unsigned *)user)++;
	return false;
}

static void test_wait_deadline(void)
{
	uint64_t shortest = UINT64_MAX, before = 0;
	unsigned asked = 0;
	sd_event *loop = NULL;

	CU_ASSERT_FATAL(sd_event_new(&loop) >= 0);
	for (int i = 0; i < 20; i++) {
		before = now_ns();
		CU_ASSERT_EQUAL(loop_wait(loop, never, &asked, before + 5 * NSEC_PER_MSEC), -ETIMEDOUT);
		uint64_t took = now_ns() - before;

		CU_ASSERT(took >= 5 * NSEC_PER_MSEC);
		/* The first may happen to end where sd-event likes to wake. */
		if (i > 0 && took < shortest)
			shortest = took;
	}
	/* With sd-event's default accuracy all but the first take 250 ms; how late a busy machine is differs. */
	CU_ASSERT(shortest < 200 * NSEC_PER_MSEC);
	CU_ASSERT_EQUAL(loop_wait(loop, never, &asked, before), -ETIMEDOUT);
	CU_ASSERT(asked >= 22);
	sd_event_unref(loop);
}

static const struct test_case cases[] = {
	{ "lines in any pieces", test_lines },
	{ "bounded queue", test_queue },
	{ "line too long", test_too_long },
	{ "broken pipe", test_broken_pipe },
	{ "free in callback", test_free_in_callback },
	{ "regular files", test_regular_files },
	{ "one socket both ways", test_one_socket },
	{ "corked lines", test_cork },
	{ "loop_wait deadline", test_wait_deadline },
};

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	return test_run("line", cases, sizeof(cases) / sizeof(cases[0]));
}
