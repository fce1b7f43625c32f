/* SPDX-License-Identifier: MIT */
#include "wire_serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "../harness/log.h"
#include "../harness/record.h"
#include "../harness/units.h"
#include "wire_backlog.h"
#include "wire_serve_internal.h"

#ifndef QD_BUILD
#define QD_BUILD "unversioned"
#endif

#define SEND_EVERY_NS (5 * NSEC_PER_MSEC)
#define LOOK_EVERY_NS (100 * NSEC_PER_MSEC)
#define FLUSH_EVERY_NS (500 * NSEC_PER_MSEC) /* each costs a write to what may be another machine's disk */
#define DUE_NS (2 * NSEC_PER_SEC)
#define RECORDS_MAX 256
#define PENDING_MAX (16u << 20)
#define STEP_NS 1000000
#define CLOCK_TRIES 8
#define CLOCK_NEAR_NS 20000
#define TAKE_BURSTS 64
#define SETTLE_NS (50 * NSEC_PER_MSEC)
#define SETTLE_MAX_NS (3 * NSEC_PER_SEC)

static uint64_t read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

struct wire_clock wire_serve_clock(void)
{
	struct wire_clock best = { 0 };
	uint64_t least = UINT64_MAX;

	/* Between two readings the process may have lost the processor: packets are stamped by one clock and told by the other. */
	for (int i = 0; i < CLOCK_TRIES && least > CLOCK_NEAR_NS; i++) {
		uint64_t before = read_clock(CLOCK_MONOTONIC), real = read_clock(CLOCK_REALTIME),
			 after = read_clock(CLOCK_MONOTONIC);

		if (after - before >= least)
			continue;
		least = after - before;
		best = (struct wire_clock){ .mono_ns = before + least / 2, .real_ns = real };
	}
	return best;
}

/* ---- records ---- */

static void fail(struct wire_serve *s, int rc)
{
	if (rc == 0 || s->leaving || rc == -EPIPE)
		return;
	log_error("a line cannot be sent: %s (%zu bytes are waiting)", strerror(-rc), line_pending(s->line));
	s->turn = true;
	sd_event_exit(s->loop, 1);
}

void wire_serve_record(struct wire_serve *s, json_t *rec)
{
	/* a controller that does not read costs packet records, and says so, but never the path its pace */
	if (line_pending(s->line) > PENDING_MAX) {
		s->records_lost++;
		json_decref(rec);
		return;
	}
	json_array_append_new(s->records, rec);
	if (json_array_size(s->records) < RECORDS_MAX)
		return;
	json_t *all = json_pack("{s:O}", "recs", s->records);

	fail(s, line_send(s->line, all));
	json_decref(all);
	json_decref(s->records);
	s->records = json_array();
}

static void path_record(void *user, json_t *rec)
{
	wire_serve_record(user, rec);
}

void wire_serve_send_records(struct wire_serve *s)
{
	if (s->path)
		wire_report_flush(wire_path_report(s->path), UINT64_MAX);
	s->send_at_ns = UINT64_MAX;
	if (!json_array_size(s->records))
		return;
	json_t *all = json_pack("{s:O}", "recs", s->records);

	fail(s, line_send(s->line, all));
	json_decref(all);
	json_decref(s->records);
	s->records = json_array();
}

static json_t *tell_lost(struct wire_serve *s, const char *what, const char *port, uint64_t count, const char *why)
{
	json_t *rec = json_pack("{s:I, s:s, s:s, s:I, s:s}", "t", (json_int_t)now_ns(), "kind", "lost", "what", what, "count",
				(json_int_t)count, "why", why);

	if (port)
		json_object_set_new(rec, "port", json_string(port));
	json_array_append_new(s->records, rec);
	return rec;
}

/* Lost beyond the wire: at the network device or behind it. since: 0 where they were lost since the last look. */
static void tell_lost_by_device(struct wire_serve *s, const char *port, uint64_t count, const char *why, uint64_t since)
{
	json_t *rec = tell_lost(s, "frames", port, count, why);

	json_object_set_new(rec, "by", json_string("device"));
	if (since)
		json_object_set_new(rec, "since", json_integer((json_int_t)since));
}

/* What the device had counted a while ago must have come here by now, and what it had been given must have left. On a busy machine
 * the kernel's own threads may have frames in hand for long. */
static void compare_with_device(struct wire_serve *s, struct wire_port *p, const struct wire_link_counters *n)
{
	uint64_t in = p->then.device_in > n->in ? p->then.device_in - n->in : 0,
		 out = p->then.out > n->device_out ? p->then.out - n->device_out : 0;
	char why[160];

	if (n->peer_dropped > p->told.peer_dropped)
		tell_lost_by_device(s, p->name, n->peer_dropped - p->told.peer_dropped,
				    "the other end of the veth sent them and the network device did not take them", 0);
	if (!s->settling && now_ns() - p->then_ns < DUE_NS)
		return;
	const uint64_t since = p->before_then_ns;

	p->then = *n;
	p->before_then_ns = p->then_ns;
	p->then_ns = now_ns();
	if (in > p->missing_in)
		tell_lost_by_device(s, p->name, in - p->missing_in, "the network device has counted them and they did not come",
				    since);
	if (out > p->missing_out) {
		snprintf(why, sizeof why, "the network device was given them and has not sent them (dropped by itself: %llu)",
			 (unsigned long long)n->device_dropped);
		tell_lost_by_device(s, p->name, out - p->missing_out, why, since);
	}
	p->missing_in = in > p->missing_in ? in : p->missing_in;
	p->missing_out = out > p->missing_out ? out : p->missing_out;
}

static void look_at_port(struct wire_serve *s, struct wire_port *p)
{
	struct wire_link_counters n, *told = &p->told;
	char why[128];

	p->link->ops->counters(p->link, &n);
	if (n.dropped > told->dropped)
		tell_lost(s, "frames", p->name, n.dropped - told->dropped, "they came in and the receive ring was full");
	if (n.truncated > told->truncated)
		tell_lost(s, "frames", p->name, n.truncated - told->truncated,
			  "they were longer than a slot of the receive ring (offloading left on?)");
	if (n.send_failed > told->send_failed) {
		snprintf(why, sizeof why, "they could not be sent: %s", strerror(n.send_errno));
		tell_lost_by_device(s, p->name, n.send_failed - told->send_failed, why, 0);
	}
	if (n.exact)
		compare_with_device(s, p, &n);
	else if (n.device_dropped > told->device_dropped)
		tell_lost_by_device(s, p->name, n.device_dropped - told->device_dropped,
				    "the network device dropped them after they were sent", 0);
	if (n.unsummed > told->unsummed && !told->unsummed)
		tell_lost(s, "checksums", p->name, n.unsummed,
			  "frames without a checksum, left to offloading, were carried as they are");
	*told = n;
}

bool wire_serve_port_complete(const struct wire_port *p)
{
	const struct wire_link_counters *n = &p->told;

	if (n->dropped || n->truncated || n->send_failed)
		return false;
	return n->exact ? !n->peer_dropped && !p->missing_in && !p->missing_out : !n->device_dropped;
}

/* What has come in by now, and no more than a ring holds. */
static void take_all(struct wire_serve *s)
{
	for (unsigned i = 0; i < 2; i++)
		for (unsigned n = 0; n < TAKE_BURSTS && wire_path_pump(s->path, i, wire_serve_clock()); n++)
			;
}

void wire_serve_look(struct wire_serve *s)
{
	struct wire_clock now = wire_serve_clock();
	int64_t offset = (int64_t)(now.real_ns - now.mono_ns), stepped = offset - s->real_offset_ns;

	if (!s->path)
		return;
	take_all(s);
	for (unsigned i = 0; i < 2; i++) {
		int64_t unaccounted = wire_path_unaccounted(s->path, i);

		look_at_port(s, &s->port[i]);
		if (unaccounted != s->unaccounted_told[i]) {
			tell_lost(s, "account", s->port[i].name, (uint64_t)llabs(unaccounted),
				  "in + invented is not out + eaten + kept + lost");
			s->unaccounted_told[i] = unaccounted;
		}
	}
	if (s->records_lost) {
		tell_lost(s, "packet records", NULL, s->records_lost, "the controller did not take them in time");
		s->records_lost = 0;
	}
	if (s->capture && wire_capture_lost(s->capture) > s->captures_told) {
		tell_lost(s, "captures", NULL, wire_capture_lost(s->capture) - s->captures_told,
			  "the capture's buffers were full; the packets went their way");
		s->captures_told = wire_capture_lost(s->capture);
	}
	if (llabs(stepped) > STEP_NS)
		wire_serve_tell_clock(s, stepped);
	s->looked_ns = now.mono_ns;
}

void wire_serve_tell_clock(struct wire_serve *s, int64_t stepped_ns)
{
	struct wire_clock now = wire_serve_clock();
	json_t *rec = json_pack("{s:I, s:s, s:I, s:I}", "t", (json_int_t)now.mono_ns, "kind", "clock", "realtime_ns",
				(json_int_t)now.real_ns, "monotonic_ns", (json_int_t)now.mono_ns);

	if (stepped_ns)
		json_object_set_new(rec, "stepped_ns", json_integer(stepped_ns));
	s->real_offset_ns = (int64_t)(now.real_ns - now.mono_ns);
	json_array_append_new(s->records, rec);
}

/* ---- the loop ---- */

static int on_timer(sd_event_source *source, uint64_t usec, void *user)
{
	struct wire_serve *s = user;
	struct wire_clock now = wire_serve_clock();

	(void)source;
	(void)usec;
	s->armed_ns = UINT64_MAX;
	if (!s->path)
		return 0;
	if (wire_path_next(s->path) <= now.mono_ns)
		wire_path_due(s->path, now);
	if (now.mono_ns - s->looked_ns >= LOOK_EVERY_NS) {
		wire_serve_look(s);
		if (s->capture && now.mono_ns - s->flushed_ns >= FLUSH_EVERY_NS) {
			wire_capture_flush(s->capture);
			s->flushed_ns = now.mono_ns;
		}
	}
	if (s->send_at_ns <= now.mono_ns)
		wire_serve_send_records(s);
	wire_serve_arm(s);
	return 0;
}

void wire_serve_arm(struct wire_serve *s)
{
	if (!s->path)
		return;
	uint64_t next = wire_path_next(s->path), look = s->looked_ns + LOOK_EVERY_NS;

	if (s->send_at_ns == UINT64_MAX && (json_array_size(s->records) || wire_path_report(s->path)->open))
		s->send_at_ns = now_ns() + SEND_EVERY_NS;
	next = look < next ? look : next;
	next = s->send_at_ns < next ? s->send_at_ns : next;
	if (next >= s->armed_ns)
		return;
	s->armed_ns = next;
	s->turn = true;
	sd_event_source_set_time(s->timer, next / NSEC_PER_USEC + !!(next % NSEC_PER_USEC));
	sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

static void on_port(struct wire_port *p, uint32_t revents)
{
	struct wire_serve *s = p->serve;

	if (revents & (EPOLLERR | EPOLLHUP)) {
		int err = p->link->ops->error(p->link);

		if (err)
			tell_lost(s, "port", p->name, 1, strerror(-err));
	}
	wire_path_pump(s->path, p->index, wire_serve_clock());
	wire_serve_arm(s);
}

static void close_port(struct wire_port *p)
{
	if (p->link)
		p->link->ops->close(p->link);
	p->link = NULL;
}

static int open_port(struct wire_serve *s, struct wire_port *p, const char *netdev, unsigned frames, unsigned frame_bytes,
		     struct error *e)
{
	p->how = (struct wire_kept){ .frames = frames, .frame_bytes = frame_bytes };
	snprintf(p->how.netdev, sizeof p->how.netdev, "%s", netdev);
	p->link = wire_kept_take(s, &p->how);
	return p->link ? 0 : wire_link_packet_open(netdev, frames, frame_bytes, &p->link, e);
}

/* What one port takes and the other cannot send would be lost. */
static int same_mtu(struct wire_link *const links[2], const char *const netdevs[2], struct error *e)
{
	if (links[0]->mtu == links[1]->mtu)
		return 0;
	return error_set(e, -EINVAL, "the ports have different MTUs: %s %u, %s %u", netdevs[0], links[0]->mtu, netdevs[1],
			 links[1]->mtu);
}

int wire_serve_open(struct wire_serve *s, const char *const netdevs[2], const char *const names[2], unsigned frames,
		    unsigned frame_bytes, struct error *e)
{
	struct wire_link *links[2];
	int rc;

	for (unsigned i = 0; i < 2; i++) {
		struct wire_port *p = &s->port[i];

		*p = (struct wire_port){ .serve = s, .index = i };
		snprintf(p->name, sizeof p->name, "%s", names[i]);
	}
	for (unsigned i = 0; i < 2; i++) {
		rc = open_port(s, &s->port[i], netdevs[i], frames, frame_bytes, e);
		if (rc)
			goto close_ports;
		links[i] = s->port[i].link;
	}
	wire_kept_close(s);
	rc = same_mtu(links, netdevs, e);
	if (rc)
		goto close_ports;
	rc = wire_path_new(links, names, path_record, s, &s->path);
	if (rc) {
		error_set(e, rc, "no memory");
		goto close_ports;
	}
	for (unsigned i = 0; i < 2; i++) {
		struct wire_port *p = &s->port[i];

		struct epoll_event wanted = { .events = EPOLLIN, .data.ptr = p };

		if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, p->link->ops->fd(p->link), &wanted)) {
			rc = error_set(e, -errno, "port %s: %s", p->name, strerror(errno));
			goto free_path;
		}
	}
	s->armed_ns = s->send_at_ns = UINT64_MAX;
	s->looked_ns = now_ns();
	wire_serve_tell_clock(s, 0);
	wire_serve_arm(s);
	return 0;
free_path:
	wire_path_free(s->path);
	s->path = NULL;
close_ports:
	close_port(&s->port[0]);
	close_port(&s->port[1]);
	wire_kept_close(s);
	return rc;
}

/* Frames that a device has counted may still be on their way through the kernel. */
static bool is_settled(const struct wire_serve *s)
{
	struct wire_link_counters n;
	bool settled = true;

	for (unsigned i = 0; i < 2; i++) {
		s->port[i].link->ops->counters(s->port[i].link, &n);
		settled = settled && (!n.exact || (n.device_in <= n.in && n.out <= n.device_out));
	}
	return settled;
}

void wire_serve_settle(struct wire_serve *s)
{
	uint64_t begin_ns = now_ns(), waited_ns = 0;
	struct epoll_event came[2];
	struct wire_backlog backlog;
	bool on_its_way = wire_backlog_look(&backlog);

	/* What is lost never comes: it is waited for until the kernel has nothing in hand any more of what it had. */
	for (take_all(s); !is_settled(s) && waited_ns < (on_its_way ? SETTLE_MAX_NS : SETTLE_NS); waited_ns = now_ns() - begin_ns) {
		epoll_wait(s->epoll_fd, came, 2, 1);
		on_its_way = on_its_way && !wire_backlog_is_done_now(&backlog);
		take_all(s);
	}
	/* the second look holds against what is here now what the devices had counted at the first */
	s->settling = true;
	wire_serve_look(s);
	wire_serve_look(s);
	s->settling = false;
}

struct wire_capture *wire_serve_close(struct wire_serve *s, bool keep)
{
	struct wire_capture *c = s->capture;

	wire_kept_close(s);
	if (s->path) {
		wire_path_capture(s->path, NULL);
		wire_path_free(s->path);
		for (unsigned i = 0; keep && i < 2; i++)
			wire_kept_put(s, &s->port[i]);
	}
	s->path = NULL;
	s->capture = NULL;
	close_port(&s->port[0]);
	close_port(&s->port[1]);
	return c;
}

/* All that the event loop has to do now. */
static int turn(struct wire_serve *s)
{
	int rc;

	do {
		s->turn = false;
		rc = sd_event_run(s->loop, 0);
	} while (rc > 0 && sd_event_get_state(s->loop) != SD_EVENT_FINISHED);
	return rc;
}

int wire_serve_run(struct wire_serve *s)
{
	int rc = turn(s), code = 0;

	while (rc >= 0 && sd_event_get_state(s->loop) != SD_EVENT_FINISHED) {
		struct epoll_event events[3];
		int n = epoll_wait(s->epoll_fd, events, 3, -1);

		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++) {
			struct wire_port *p = events[i].data.ptr;

			if (p)
				on_port(p, events[i].events);
			else
				s->turn = true;
		}
		if (s->turn)
			rc = turn(s);
	}
	return rc < 0 ? rc : sd_event_get_exit_code(s->loop, &code) < 0 ? 0 : code;
}

/* ---- the line ---- */

static void on_json(void *user, json_t *value)
{
	struct wire_serve *s = user;

	wire_ops_request(s, value);
	wire_serve_arm(s);
}

void wire_serve_answer(struct wire_serve *s, struct wire_answer *answer)
{
	if (answer->waits)
		return;
	/* what a request caused is told before its reply */
	wire_serve_send_records(s);
	if (line_send(s->line, answer->message) && !s->leaving)
		sd_event_exit(s->loop, 1);
	json_decref(answer->message);
	free(answer);
}

static void on_text(void *user, const char *text)
{
	char shown[256];

	(void)user;
	log_error("a line that is no JSON object: %s", log_escape(text, shown, sizeof shown));
}

static void on_end(void *user, int err)
{
	struct wire_serve *s = user;

	s->leaving = true;
	if (err && err != -EPIPE && err != -ECONNRESET)
		log_error("the controller's line: %s", strerror(-err));
	sd_event_exit(s->loop, 0);
}

static const struct line_ops line_ops = { .on_json = on_json, .on_text = on_text, .on_end = on_end };

static int say_hello(struct wire_serve *s)
{
	char clk[160], boot_id[64];

	recorder_clock_domain(clk, sizeof clk);
	snprintf(boot_id, sizeof boot_id, "%.*s", (int)strcspn(clk, "/"), clk);
	json_t *caps = json_array();

	for (const struct action_ops *const *a = action_table; *a; a++)
		json_array_append_new(caps, json_string((*a)->name));
	json_t *hello = json_pack("{s:{s:i, s:s, s:I, s:s, s:s, s:o}}", "hello", "protocol", WIRE_PROTOCOL, "build", QD_BUILD,
				  "pid", (json_int_t)getpid(), "boot_id", boot_id, "clk", clk, "caps", caps);
	int rc = hello ? line_send(s->line, hello) : -ENOMEM;

	json_decref(hello);
	return rc;
}

int wire_serve_new(sd_event *loop, int rfd, int wfd, struct wire_serve **ret, struct error *e)
{
	struct wire_serve *s = calloc(1, sizeof *s);
	int rc;

	if (!s)
		return error_set(e, -ENOMEM, "no memory");
	s->loop = sd_event_ref(loop);
	s->records = json_array();
	s->armed_ns = s->send_at_ns = UINT64_MAX;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event wanted = { .events = EPOLLIN }; /* of no port */

	if (s->epoll_fd < 0 || epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, sd_event_get_fd(loop), &wanted)) {
		rc = error_set(e, -errno, "epoll: %s", strerror(errno));
		goto free_serve;
	}
	rc = line_new(loop, rfd, wfd, &line_ops, s, &s->line);
	if (rc) {
		error_set(e, rc, "stdin and stdout: %s", strerror(-rc));
		goto free_serve;
	}
	rc = sd_event_add_time(loop, &s->timer, CLOCK_MONOTONIC, UINT64_MAX, 1, on_timer, s);
	if (rc < 0) {
		error_set(e, rc, "a timer: %s", strerror(-rc));
		goto free_serve;
	}
	sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
	rc = say_hello(s);
	if (rc) {
		error_set(e, rc, "the hello: %s", strerror(-rc));
		goto free_serve;
	}
	*ret = s;
	return 0;
free_serve:
	wire_serve_free(s);
	return rc;
}

int wire_serve_free(struct wire_serve *s)
{
	if (!s)
		return 0;
	int drained = wire_drain_all(s, WIRE_CAPTURE_END_NS),
	    rc = wire_capture_close(wire_serve_close(s, false), WIRE_CAPTURE_END_NS);

	/* what waited for a capture is answered, also where the requests have come to their end meanwhile */
	if (s->line)
		line_flush(s->line, WIRE_LAST_WORDS_NS);
	sd_event_source_disable_unref(s->timer);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	line_free(s->line);
	json_decref(s->records);
	sd_event_unref(s->loop);
	free(s);
	return rc ? rc : drained;
}
