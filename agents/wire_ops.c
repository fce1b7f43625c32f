/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "wire_serve_internal.h"

/* A request: fills reply (its own fields only). 0 or a negative errno with e. One that takes its time has run_later instead: it
 * makes the answer wait. */
struct op {
	const char *name;
	int (*run)(struct wire_serve *s, const json_t *req, json_t *reply, struct error *e);
	bool needs_open;
	int (*run_later)(struct wire_serve *s, const json_t *req, json_t *reply, struct wire_answer *answer, struct error *e);
	const char *help; /* one line */
};

static int op_clock(struct wire_serve *s, const json_t *req, json_t *reply, struct error *e)
{
	struct wire_clock now = wire_serve_clock();

	(void)s;
	(void)req;
	(void)e;
	json_object_set_new(reply, "t", json_integer((json_int_t)now.mono_ns));
	json_object_set_new(reply, "realtime_ns", json_integer((json_int_t)now.real_ns));
	return 0;
}

static int op_open(struct wire_serve *s, const json_t *req, json_t *reply, struct error *e)
{
	const json_t *ports = json_object_get(req, "ports");
	const char *names[2], *netdevs[2];
	int64_t frames = json_int(req, "frames", 0), frame_bytes = json_int(req, "frame_bytes", 0);

	if (s->path)
		return error_set(e, -EBUSY, "the wire is open already");
	if (json_array_size(ports) != 2)
		return error_set(e, -EINVAL, "`ports` are two");
	for (size_t i = 0; i < 2; i++) {
		names[i] = json_str(json_array_get(ports, i), "name");
		netdevs[i] = json_str(json_array_get(ports, i), "netdev");
		if (!names[i] || !*names[i] || !netdevs[i])
			return error_set(e, -EINVAL, "each of `ports` has a `name` and a `netdev`");
	}
	if (!strcmp(names[0], names[1]) || !strcmp(netdevs[0], netdevs[1]))
		return error_set(e, -EINVAL, "the two `ports` are the same");
	if (frames < 0 || frames > 65536 || frame_bytes < 0 || frame_bytes > 65535)
		return error_set(e, -ERANGE, "`frames` and `frame_bytes` go up to 65536 and 65535");
	int rc = wire_serve_open(s, netdevs, names, (unsigned)frames, (unsigned)frame_bytes, e);

	if (rc)
		return rc;
	wire_path_check_icrc(s->path, json_bool(req, "icrc", true));
	json_object_set_new(reply, "link", json_string(s->port[0].link->ops->name));
	return 0;
}

static int read_end(const json_t *json, struct wire_names *names, struct wire_end *ret, struct error *e)
{
	const char *agent = json_str(json, "agent"), *addr = json_str(json, "addr");
	int64_t qpn = json_int(json, "qpn", -1), psn = json_int(json, "psn", -1);

	if (!agent || !addr || qpn < 0 || qpn > 0xffffff || psn < 0 || psn > 0xffffff)
		return error_set(e, -EINVAL, "an end has `agent`, `addr`, `qpn` and `psn` (24 bits each)");
	if (wire_address(addr, ret->addr))
		return error_set(e, -EINVAL, "`%s` is no address", addr);
	ret->agent = wire_name(names, agent);
	ret->qpn = (uint32_t)qpn;
	ret->stream.start = (uint32_t)psn;
	return ret->agent ? 0 : error_set(e, -ENOMEM, "no memory");
}

static int op_connect(struct wire_serve *s, const json_t *req, json_t *reply, struct error *e)
{
	const char *pair = json_str(req, "pair");
	const json_t *ends = json_object_get(req, "ends");
	struct wire_conn conn = { .life = (unsigned)json_int(req, "life", 1), .aside = json_bool(req, "aside", false) };

	(void)reply;
	if (!pair || !*pair || json_array_size(ends) != 2)
		return error_set(e, -EINVAL, "a connection has a `pair` and two `ends`");
	conn.pair = wire_name(wire_path_names(s->path), pair);
	for (size_t i = 0; i < 2; i++) {
		int rc = read_end(json_array_get(ends, i), wire_path_names(s->path), &conn.end[i], e);

		if (rc)
			return rc;
	}
	return wire_path_connect(s->path, &conn, e);
}

static int op_disconnect(struct wire_serve *s, const json_t *req, json_t *reply, struct error *e)
{
	(void)reply;
	(void)e;
	wire_path_disconnect(s->path, json_str(req, "pair"));
	return 0;
}

static int op_rule(struct wire_serve *s, const json_t *req, json_t *reply, struct error *e)
{
	(void)reply;
	return wire_path_rule(s->path, req, wire_serve_clock(), e);
}

static int no_rule(const json_t *req, struct error *e)
{
	return error_set(e, -ENOENT, "there is no rule `%s`", json_str(req, "as") ? json_str(req, "as") : "");
}

static int op_clear(struct wire_serve *s, const json_t *req, json_t *reply, struct error *e)
{
	json_t *report = NULL;

	if (!json_str(req, "as") || wire_path_clear(s->path, json_str(req, "as"), wire_serve_clock(), &report))
		return no_rule(req, e);
	json_object_set_new(reply, "rule", report);
	return 0;
}

static int op_report(struct wire_serve *s, const json_t *req, json_t *reply, struct error *e)
{
	const char *as = json_str(req, "as");
	json_t *report = as ? wire_path_rule_report(s->path, as) : wire_path_rules(s->path);

	if (!report)
		return no_rule(req, e);
	json_object_set_new(reply, as ? "rule" : "rules", report);
	return 0;
}

static int op_capture(struct wire_serve *s, const json_t *req, json_t *reply, struct error *e)
{
	const char *path = json_str(req, "path"), *const names[2] = { s->port[0].name, s->port[1].name };

	(void)reply;
	if (s->capture)
		return error_set(e, -EBUSY, "a capture is running already");
	if (!path)
		return error_set(e, -EINVAL, "a capture needs a `path`");
	int rc = wire_capture_open(path, names, (size_t)json_int(req, "buffer_bytes", 0), &s->capture, e);

	if (!rc)
		wire_path_capture(s->path, s->capture);
	s->captures_told = 0;
	return rc;
}

static int op_capture_stop(struct wire_serve *s, const json_t *req, json_t *reply, struct wire_answer *answer, struct error *e)
{
	struct wire_capture *c = s->capture;

	if (!c)
		return error_set(e, -ENOENT, "no capture is running");
	wire_path_capture(s->path, NULL);
	wire_serve_look(s);
	s->capture = NULL;
	json_object_set_new(reply, "packets", json_integer((json_int_t)wire_capture_packets(c)));
	json_object_set_new(reply, "lost", json_integer((json_int_t)wire_capture_lost(c)));
	return wire_drain(s, c, json_u64(req, "deadline_ns", WIRE_CAPTURE_END_NS), answer, reply, e);
}

static int op_records(struct wire_serve *s, const json_t *req, json_t *reply, struct error *e)
{
	const char *packets = json_str(req, "packets");

	(void)reply;
	for (int m = 0; packets && m < NUM_WIRE_REPORT_MODES; m++) {
		if (strcmp(packets, wire_report_mode_names[m]))
			continue;
		wire_report_flush(wire_path_report(s->path), UINT64_MAX);
		wire_path_report(s->path)->mode = (enum wire_report_mode)m;
		return 0;
	}
	return error_set(e, -EINVAL, "`packets` is one of: all touched none");
}

static json_t *account_json(struct wire_serve *s, unsigned i)
{
	const struct wire_account *a = wire_path_account(s->path, i);
	const struct wire_link_counters *in = &s->port[i].told, *out = &s->port[!i].told;
	uint64_t device_dropped = in->peer_dropped + out->device_dropped;
	json_t *classes = json_object();

	for (int c = PACKET_CLASS_INVALID + 1; c < NUM_PACKET_CLASSES; c++)
		if (a->classes[c])
			json_object_set_new(classes, packet_class_names[c], json_integer((json_int_t)a->classes[c]));
	json_t *json = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "from", s->port[i].name,
				 "in", (json_int_t)a->in, "out", (json_int_t)a->out, "eaten", (json_int_t)a->eaten, "invented",
				 (json_int_t)a->invented, "kept", (json_int_t)a->kept, "lost", (json_int_t)a->lost, "ring_dropped",
				 (json_int_t)in->dropped, "truncated", (json_int_t)in->truncated, "device_dropped",
				 (json_int_t)device_dropped, "roce", (json_int_t)a->roce, "malformed", (json_int_t)a->malformed,
				 "icrc_bad", (json_int_t)a->icrc_bad, "classes", classes);

	if (in->exact)
		json_object_set_new(json, "device_in", json_integer((json_int_t)in->device_in));
	if (out->exact)
		json_object_set_new(json, "device_out", json_integer((json_int_t)out->device_out));
	return json;
}

static int op_stats(struct wire_serve *s, const json_t *req, json_t *reply, struct error *e)
{
	json_t *directions = json_array();
	bool complete = true;

	(void)req;
	(void)e;
	wire_serve_look(s);
	for (unsigned i = 0; i < 2; i++) {
		json_array_append_new(directions, account_json(s, i));
		complete = complete && !wire_path_unaccounted(s->path, i) && !wire_path_account(s->path, i)->lost &&
			   wire_serve_port_complete(&s->port[i]);
	}
	json_object_set_new(reply, "directions", directions);
	json_object_set_new(reply, "complete", json_boolean(complete));
	if (s->capture) {
		json_object_set_new(reply, "captured", json_integer((json_int_t)wire_capture_packets(s->capture)));
		json_object_set_new(reply, "capture_lost", json_integer((json_int_t)wire_capture_lost(s->capture)));
	}
	return 0;
}

static int op_release(struct wire_serve *s, const json_t *req, json_t *reply, struct wire_answer *answer, struct error *e)
{
	if (!s->path) {
		wire_serve_close(s, false);
		return 0;
	}
	wire_serve_settle(s);
	wire_serve_tell_clock(s, 0);
	wire_serve_send_records(s);
	op_stats(s, req, reply, e);
	json_object_set_new(reply, "rules", wire_path_rules(s->path));
	struct wire_capture *c = wire_serve_close(s, json_bool(req, "keep", false));

	return c ? wire_drain(s, c, WIRE_CAPTURE_END_NS, answer, reply, e) : 0;
}

static const struct op ops[] = {
	{ "capture", op_capture, true, NULL, "every packet goes into a pcapng file from now on" },
	{ "capture_stop", NULL, true, op_capture_stop, "ends it; answered when all is written" },
	{ "clear", op_clear, true, NULL, "away with a rule: what it held goes on" },
	{ "clock", op_clock, false, NULL, "the time here, by both clocks" },
	{ "connect", op_connect, true, NULL, "tells it of a connection, so that packets have a pair and a relative PSN" },
	{ "disconnect", op_disconnect, true, NULL, "forgets a connection" },
	{ "open", op_open, false, NULL, "joins two network devices: from now on frames are carried" },
	{ "records", op_records, true, NULL, "which packets are told of: all, touched, none" },
	{ "release", NULL, false, op_release, "carries what has come in, then closes the devices" },
	{ "report", op_report, true, NULL, "what rules have done so far" },
	{ "rule", op_rule, true, NULL, "what is to happen to which packets" },
	{ "stats", op_stats, true, NULL, "counts of both directions, and whether anything was lost" },
};

void wire_ops_row(size_t i, const char **ret_name, const char **ret_help)
{
	if (i >= sizeof ops / sizeof *ops)
		return;
	*ret_name = ops[i].name;
	*ret_help = ops[i].help;
}

static int run_op(struct wire_serve *s, const struct op *op, const json_t *req, json_t *reply, struct wire_answer *answer,
		  struct error *e)
{
	if (op->needs_open && !s->path)
		return error_set(e, -ENOTCONN, "the wire is not open");
	return op->run ? op->run(s, req, reply, e) : op->run_later(s, req, reply, answer, e);
}

/* The reply of one request, without its id. New reference. */
static json_t *run_one(struct wire_serve *s, const json_t *req, struct wire_answer *answer)
{
	const char *name = json_str(req, "op");
	json_t *reply = json_object();
	struct error e = { "" };
	int rc = error_set(&e, -ENOSYS, "there is no operation `%s`", name ? name : "");

	for (size_t i = 0; name && i < sizeof ops / sizeof *ops; i++) {
		if (strcmp(ops[i].name, name))
			continue;
		rc = run_op(s, &ops[i], req, reply, answer, &e);
		break;
	}
	json_object_set_new(reply, "rc", json_integer(rc));
	if (rc)
		json_object_set_new(reply, "error", json_string(e.text));
	return reply;
}

void wire_ops_request(struct wire_serve *s, json_t *request)
{
	const char *name = json_str(request, "op");
	struct wire_answer *answer = calloc(1, sizeof *answer);
	json_t *item;
	size_t i;

	if (!answer) {
		sd_event_exit(s->loop, 1);
		return;
	}
	if (name && !strcmp(name, "batch")) {
		json_t *replies = json_array();

		json_array_foreach(json_object_get(request, "ops"), i, item) {
			json_array_append_new(replies, run_one(s, item, answer));
		}
		answer->message = json_pack("{s:i, s:o}", "rc", 0, "replies", replies);
	} else {
		answer->message = run_one(s, request, answer);
	}
	if (json_object_get(request, "id"))
		json_object_set(answer->message, "id", json_object_get(request, "id"));
	wire_serve_answer(s, answer);
}
