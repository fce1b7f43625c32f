/* SPDX-License-Identifier: MIT */
/*
 * How fast agents move messages, beside perftest on the same two RDMA devices in the same run: agent_bench [ROUNDS [FIGURE]].
 * Rounds are interleaved. Both sleep on completion events where perftest can (SEND, READ), else perftest spins: with two
 * processors, what spins has one of them to itself, or on a busy machine takes it from the device. An agent looks at every byte
 * that came, perftest at none. Prints one line of JSON:
 * {"figures": {NAME: {"agent": [..], "perftest": [..]}}}; MiB/s, or microseconds one way.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../harness/json.h"
#include "../harness/line.h"
#include "../harness/log.h"
#include "../harness/loop.h"
#include "../harness/proc.h"
#include "../harness/units.h"
#include "first_devices.h"

#define ANSWER_NS (120 * NSEC_PER_SEC)
#define TOOL_NS (30 * NSEC_PER_SEC)
#define BIG 65536
#define SMALL 2
#define DEPTH 32
#define RECEIVES 256
#define READS 16
#define TIMEOUT 18 /* as an exponent: a busy machine is late, and is not to send everything twice */
#define PORT "18515"
#define PORT_HEX ":4853"

struct peer {
	const char *name;
	const char *device;
	struct proc proc;
	struct line *line;
	json_t *reply, *records, *dev, *qp, *trf;
	bool hello, ended;
	int next_id;
};

/* One figure: what perftest calls it, what a traffic does. */
struct figure {
	const char *key, *tool, *op, *events;
	int size, messages;
	bool latency;
};

static const struct figure figures[] = {
	{ "send_bw", "ib_send_bw", "SEND", "-e", BIG, 800, false },
	{ "write_bw", "ib_write_bw", "WRITE", NULL, BIG, 800, false },
	{ "read_bw", "ib_read_bw", "READ", "-e", BIG, 800, false },
	{ "send_lat", "ib_send_lat", "SEND", "-e", SMALL, 500, true },
};
#define NUM_FIGURES (sizeof figures / sizeof *figures)

static sd_event *loop;
static struct peer peers[2] = { { .name = "a" }, { .name = "b" } };
static char agent_path[PATH_MAX];

/* ---- agents ---- */

static void on_json(void *user, json_t *value)
{
	struct peer *p = user;

	if (json_object_get(value, "hello")) {
		p->hello = true;
	} else if (json_object_get(value, "rec")) {
		json_array_append(p->records, json_object_get(value, "rec"));
	} else if (json_int(value, "id", -1) == p->next_id) {
		json_decref(p->reply);
		p->reply = json_incref(value);
	}
}

static void on_text(void *user, const char *text)
{
	log_warn("agent %s: %s", ((struct peer *)user)->name, text);
}

static void on_end(void *user, int err)
{
	(void)err;
	((struct peer *)user)->ended = true;
}

static bool has_hello(void *user)
{
	return ((struct peer *)user)->hello || ((struct peer *)user)->ended;
}

static bool has_reply(void *user)
{
	return ((struct peer *)user)->reply || ((struct peer *)user)->ended;
}

static int start_agent(struct peer *p, struct error *e)
{
	static const struct line_ops ops = { .on_json = on_json, .on_text = on_text, .on_end = on_end };
	char *argv[] = { agent_path, NULL };
	int rc = proc_spawn(&p->proc, argv, NULL, -1, e);

	if (rc < 0)
		return rc;
	p->records = json_array();
	rc = line_new(loop, p->proc.out, p->proc.in, &ops, p, &p->line);
	if (rc < 0)
		return error_set(e, rc, "agent %s: %s", p->name, strerror(-rc));
	p->proc.in = p->proc.out = -1;
	loop_wait(loop, has_hello, p, now_ns() + ANSWER_NS);
	return p->hello ? 0 : error_set(e, -EPIPE, "agent %s does not start", p->name);
}

static void request(struct peer *p, json_t *req)
{
	json_decref(p->reply);
	p->reply = NULL;
	json_object_set_new(req, "id", json_integer(++p->next_id));
	line_send(p->line, req);
	json_decref(req);
}

/* The answer to the last request, in *ret when it is not NULL. */
static int answer(struct peer *p, json_t **ret, struct error *e)
{
	loop_wait(loop, has_reply, p, now_ns() + ANSWER_NS);
	if (!p->reply)
		return error_set(e, -ETIMEDOUT, "agent %s does not answer", p->name);
	if (json_int(p->reply, "rc", -EIO) < 0)
		return error_set(e, -EIO, "agent %s: %s", p->name, json_str(p->reply, "error") ?: "a request failed");
	if (ret) {
		json_decref(*ret);
		*ret = json_incref(p->reply);
	}
	return 0;
}

static int ask(struct peer *p, json_t **ret, struct error *e, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	json_t *req = json_vpack_ex(NULL, 0, fmt, ap);
	va_end(ap);
	if (!req)
		return error_set(e, -EINVAL, "a request does not pack: %s", fmt);
	request(p, req);
	return answer(p, ret, e);
}

static int create(struct peer *p, struct error *e)
{
	int rc = ask(p, &p->dev, e, "{s:s, s:s, s:s, s:i}", "op", "device_open", "name", "dev", "device", p->device, "port", 1);

	if (rc == 0)
		rc = ask(p, NULL, e, "{s:s, s:s}", "op", "seed", "seed", "0x2a");
	if (rc == 0)
		rc = ask(p, NULL, e, "{s:s, s:s, s:s}", "op", "pd_create", "name", "pd", "dev", "dev");
	if (rc == 0)
		rc = ask(p, NULL, e, "{s:s, s:s, s:s, s:i}", "op", "cq_create", "name", "cq", "dev", "dev", "depth", 1024);
	if (rc == 0)
		rc = ask(p, NULL, e, "{s:s, s:s, s:s, s:i, s:[s]}", "op", "mr_create", "name", "rx", "pd", "pd", "bytes",
			 RECEIVES * BIG, "access", "LOCAL_WRITE");
	if (rc == 0)
		rc = ask(p, &p->trf, e, "{s:s, s:s, s:s, s:i, s:[s,s,s]}", "op", "mr_create", "name", "trf", "pd", "pd", "bytes",
			 4 * DEPTH * BIG, "access", "LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ");
	if (rc == 0)
		rc = ask(p, &p->qp, e, "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:{s:i, s:i}}", "op", "qp_create", "name", "q", "pd",
			 "pd", "type", "RC", "send_cq", "cq", "recv_cq", "cq", "rx", "rx", "cap", "max_send_wr", DEPTH,
			 "max_recv_wr", RECEIVES);
	return rc;
}

static int to_rts(struct peer *p, const struct peer *q, struct error *e)
{
	int rc = ask(p, NULL, e, "{s:s, s:s, s:s, s:{s:i, s:[s,s], s:n}}", "op", "qp_modify", "name", "q", "to", "INIT", "set",
		     "pkey_index", 0, "access", "REMOTE_WRITE", "REMOTE_READ", "gid_index");

	if (rc == 0)
		rc = ask(p, NULL, e, "{s:s, s:s, s:i, s:i, s:i}", "op", "post_recv", "qp", "q", "count", RECEIVES, "size", BIG,
			 "stride", BIG);
	if (rc == 0)
		rc = ask(p, NULL, e, "{s:s, s:s, s:s, s:{s:i, s:I, s:s, s:i, s:i, s:i}}", "op", "qp_modify", "name", "q", "to",
			 "RTR", "set", "path_mtu", 1024, "dest_qpn", (json_int_t)json_int(q->qp, "qpn", 0), "dest_gid",
			 json_str(q->dev, "gid"), "rq_psn", 1000, "max_dest_rd_atomic", READS, "min_rnr_timer", 12);
	if (rc == 0)
		rc = ask(p, NULL, e, "{s:s, s:s, s:s, s:{s:i, s:i, s:i, s:i, s:i}}", "op", "qp_modify", "name", "q", "to", "RTS",
			 "set", "timeout", TIMEOUT, "retry_cnt", 7, "rnr_retry", 7, "sq_psn", 1000, "max_rd_atomic", READS);
	return rc;
}

static json_t *traffic_request(const struct figure *f, int end)
{
	bool sends = strcmp(f->op, "SEND") == 0;
	const struct peer *peer = &peers[!end];

	return json_pack("{s:s, s:s, s:s, s:[s], s:i, s:i, s:i, s:i, s:i, s:s, s:i, s:b, s:I, s:s, s:s, s:I}", "op", "traffic",
			 "as", "t", "qp", "q", "ops", f->op, "depth", DEPTH, "messages", f->latency || end == 0 ? f->messages : 0,
			 "tag", 0x1000 * (1 + end), "peer_tag", 0x1000 * (2 - end), "expect_messages",
			 sends && (f->latency || end == 1) ? f->messages : 0, "role",
			 f->latency ? "both"
			 : end      ? "rx"
				    : "tx",
			 "peer_receives", f->latency ? 2 : RECEIVES, "answers", f->latency && end == 1, "rkey",
			 (json_int_t)json_int(peer->trf, "rkey", 0), "raddr", json_str(peer->trf, "addr"), "mr", "trf",
			 "deadline_ns", (json_int_t)ANSWER_NS);
}

/* Earliest `t` of the records of that kind, latest `t_last`. */
static void widen(const json_t *records, const char *kind, uint64_t *from, uint64_t *to)
{
	const json_t *r;
	size_t i;

	json_array_foreach((json_t *)records, i, r) {
		uint64_t t = json_u64(r, "t", 0), last = json_u64(r, "t_last", 0);

		if (strcmp(json_str(r, "kind") ?: "", kind) != 0)
			continue;
		if (from && t && t < *from)
			*from = t;
		if (to && last > *to)
			*to = last;
	}
}

static int run_agents(const struct figure *f, double *ret, struct error *e)
{
	uint64_t from = UINT64_MAX, to = 0;
	int rc = 0;

	for (int i = 0; rc == 0 && i < 2; i++) {
		rc = ask(&peers[i], NULL, e, "{s:s, s:s, s:s, s:i, s:i, s:s}", "op", "traffic_prepare", "as", "t", "qp", "q",
			 "size", f->size, "tag", 0x1000 * (1 + i), "mr", "trf");
		json_array_clear(peers[i].records);
	}
	if (rc < 0)
		return rc;
	/* The end that only answers first. */
	for (int i = 1; i >= 0; i--)
		request(&peers[i], traffic_request(f, i));
	for (int i = 0; i < 2; i++) {
		rc = answer(&peers[i], NULL, e);
		if (rc < 0)
			return rc;
		if (json_int(peers[i].reply, "bad_payload", -1) != 0)
			return error_set(e, -EIO, "agent %s: %lld payloads are not its peer's", peers[i].name,
					 (long long)json_int(peers[i].reply, "bad_payload", -1));
	}
	/* Records come before the answer to what they are about. */
	widen(peers[0].records, "post", &from, NULL);
	widen(peers[0].records, "wc", NULL, &to);
	if (to <= from)
		return error_set(e, -EIO, "agent a says nothing of when it posted and when that was done");
	double seconds = (double)(to - from) / 1e9;

	*ret = f->latency ? seconds * 1e6 / 2 / f->messages : (double)f->size * f->messages / seconds / (1 << 20);
	return 0;
}

/* ---- perftest ---- */

static bool listens(void)
{
	FILE *f = fopen("/proc/net/tcp", "re");
	char line[256], local[64], state[4];
	bool found = false;

	while (f && !found && fgets(line, sizeof line, f))
		found = sscanf(line, " %*s %63s %*s %3s", local, state) == 2 && strstr(local, PORT_HEX) && strcmp(state, "0A") == 0;
	if (f)
		fclose(f);
	return found;
}

static int await_listener(struct proc *server, const char *tool, struct error *e)
{
	uint64_t deadline = now_ns() + ANSWER_NS;

	while (!listens()) {
		if (proc_poll(server) || now_ns() >= deadline)
			return error_set(e, -EIO, "%s does not listen", tool);
		poll(NULL, 0, 10);
	}
	return 0;
}

/* The row of the table that begins with the message's size: size, iterations, then the figures. */
static int parse_table(const struct figure *f, const char *out, double *ret, struct error *e)
{
	for (const char *line = out; line; line = strchr(line, '\n')) {
		double v[6] = { 0 };
		const char *at;
		char *end;
		int n = 0;

		line += *line == '\n';
		at = line + strspn(line, " \t");
		for (; n < 6 && *at != '\n'; at = end + strspn(end, " \t")) {
			v[n] = strtod(at, &end);
			if (end == at)
				break;
			n++;
		}
		if (n < 4 || (int)v[0] != f->size)
			continue;
		*ret = f->latency ? v[5] : v[3];
		return *ret > 0 ? 0 : error_set(e, -EIO, "%s says 0", f->tool);
	}
	return error_set(e, -EIO, "%s printed no figures: %.300s", f->tool, out);
}

static void close_pipes(struct proc *p)
{
	close(p->in);
	close(p->out);
	p->in = p->out = -1;
}

static int try_perftest(const struct figure *f, double *ret, struct error *e)
{
	char size[16], n[16], depth[16], reads[16], timeout[16], *out = NULL;
	const char *argv[32] = { f->tool, "-F", "-d", peers[1].device, "-x", "1",  "-m", "1024",
				 "-p",    PORT, "-u", timeout,         "-s", size, "-n", n };
	unsigned argc = 16;
	struct proc server;
	int rc;

	snprintf(size, sizeof size, "%d", f->size);
	snprintf(n, sizeof n, "%d", f->messages);
	snprintf(depth, sizeof depth, "%d", DEPTH);
	snprintf(reads, sizeof reads, "%d", READS);
	snprintf(timeout, sizeof timeout, "%d", TIMEOUT);
	if (!f->latency) {
		argv[argc++] = "-t";
		argv[argc++] = depth;
	}
	if (strcmp(f->op, "READ") == 0) {
		argv[argc++] = "-o";
		argv[argc++] = reads;
	}
	if (f->events)
		argv[argc++] = f->events;
	rc = proc_spawn(&server, (char *const *)argv, NULL, -1, e);
	if (rc < 0)
		return rc;
	rc = await_listener(&server, f->tool, e);
	argv[3] = peers[0].device;
	argv[argc] = "127.0.0.1";
	if (rc == 0)
		rc = proc_run((char *const *)argv, TOOL_NS, &out, e);
	if (rc > 0)
		rc = error_set(e, -EIO, "%s ended with status %d", f->tool, rc);
	if (rc == 0)
		rc = parse_table(f, out, ret, e);
	proc_stop(&server, SIGTERM, 5 * NSEC_PER_SEC);
	close_pipes(&server);
	free(out);
	return rc;
}

/* Its two ends may miss each other, and one that sleeps may miss an event. */
static int run_perftest(const struct figure *f, double *ret, struct error *e)
{
	int rc = try_perftest(f, ret, e);

	if (rc < 0) {
		log_warn("%s; again", e->text);
		rc = try_perftest(f, ret, e);
	}
	return rc;
}

/* ---- around it ---- */

static int prepare(struct error *e)
{
	ssize_t n = readlink("/proc/self/exe", agent_path, sizeof agent_path - 32);
	int rc = 0;

	if (!first_devices(&peers[0].device, &peers[1].device))
		rc = error_set(e, -ENODEV, "fewer than two RDMA devices in /sys/class/infiniband");

	agent_path[n > 0 ? n : 0] = '\0';
	dirname(agent_path);
	strncat(agent_path, "/qpdrill-agent", 31);
	if (rc == 0 && sd_event_new(&loop) < 0)
		rc = error_set(e, -ENOMEM, "no event loop");
	for (int i = 0; rc == 0 && i < 2; i++)
		rc = start_agent(&peers[i], e);
	for (int i = 0; rc == 0 && i < 2; i++)
		rc = create(&peers[i], e);
	for (int i = 0; rc == 0 && i < 2; i++)
		rc = to_rts(&peers[i], &peers[!i], e);
	return rc;
}

static int measure(const struct figure *f, json_t *into, bool agents_first, struct error *e)
{
	double agent = 0, tool = 0;
	int rc = agents_first ? run_agents(f, &agent, e) : 0;

	if (rc == 0)
		rc = run_perftest(f, &tool, e);
	if (rc == 0 && !agents_first)
		rc = run_agents(f, &agent, e);
	if (rc < 0)
		return error_prefix(e, rc, "%s", f->key);
	json_array_append_new(json_object_get(into, "agent"), json_real(agent));
	json_array_append_new(json_object_get(into, "perftest"), json_real(tool));
	log_info("%s: agent %.2f, perftest %.2f", f->key, agent, tool);
	return 0;
}

static bool is_wanted(const char *only, const struct figure *f)
{
	return !only || strcmp(only, f->key) == 0;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 3;
	json_t *out = json_object();
	struct error e = { "" };

	log_init("agent_bench", getenv("QPDRILL_VERBOSE") != NULL);
	signal(SIGPIPE, SIG_IGN);
	int rc = prepare(&e);

	for (size_t i = 0; i < NUM_FIGURES; i++)
		json_object_set_new(out, figures[i].key, json_pack("{s:[],s:[]}", "agent", "perftest"));
	/* Once for nothing: memory that was never touched is no part of the question. */
	for (size_t i = 0; rc == 0 && i < NUM_FIGURES; i++)
		rc = is_wanted(argc > 2 ? argv[2] : NULL, &figures[i]) ? run_agents(&figures[i], &(double){ 0 }, &e) : 0;
	for (long round = 0; rc == 0 && round < rounds; round++)
		for (size_t i = 0; rc == 0 && i < NUM_FIGURES; i++)
			if (is_wanted(argc > 2 ? argv[2] : NULL, &figures[i]))
				rc = measure(&figures[i], json_object_get(out, figures[i].key), round % 2 == 0, &e);
	for (int i = 0; i < 2; i++) {
		line_free(peers[i].line); /* their end */
		proc_stop(&peers[i].proc, SIGTERM, 5 * NSEC_PER_SEC);
		json_decref(peers[i].records);
		json_decref(peers[i].reply);
		json_decref(peers[i].dev);
		json_decref(peers[i].qp);
		json_decref(peers[i].trf);
	}
	if (rc < 0) {
		log_error("%s", e.text);
	} else {
		json_t *all = json_pack("{s:O}", "figures", out);

		json_dumpf(all, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(all);
	}
	json_decref(out);
	sd_event_unref(loop);
	return rc < 0 ? 3 : 0;
}
